/* cmd_completion.c - vtwin completion and vtwin man: both from the tables. */
#include "cli/cli.h"

static int complete(const struct opt_args *a, struct vt_err *err)
{
    struct vt_buf b = {0};

    if (strcmp(a->operand[0], "bash") == 0)
        opt_complete_bash(&b, cli_commands());
    else if (strcmp(a->operand[0], "zsh") == 0)
        opt_complete_zsh(&b, cli_commands());
    else
        return vt_fail(err, VT_EINPUT, "no completion for '%s', only for bash and zsh",
                       a->operand[0]);
    return cli_print(&b, err);
}

static const char *const shells[] = {"bash", "zsh", NULL};
static const char *const examples[] = {"./run completion bash > vtwin.bash", NULL};

const struct opt_command cmd_completion = {
    .name = "completion",
    .summary = "print shell completion for bash or zsh",
    .usage = "bash|zsh",
    .about = "Writes a script for the shell to source.",
    .operands = shells,
    .least = 1,
    .most = 1,
    .examples = examples,
    .run = complete,
};

static int print_man(const struct opt_args *a, struct vt_err *err)
{
    const struct opt_command *c = a->n_operands > 0 ? cli_find(a->operand[0]) : NULL;
    struct vt_buf b = {0};

    if (a->n_operands == 0) {
        opt_man_program(&b, cli_commands());
        return cli_print(&b, err);
    }
    if (!c)
        return vt_fail(err, VT_EINPUT, "no command '%s'", a->operand[0]);
    opt_man(&b, c);
    return cli_print(&b, err);
}

static const char *const man_examples[] = {"./run man simulate > vtwin-simulate.1",
                                           NULL};

const struct opt_command cmd_man = {
    .name = "man",
    .summary = "print the man page of a command, or of vtwin",
    .usage = "[COMMAND]",
    .about = "Writes roff to stdout, from the same tables as --help. Without a "
             "command: the\n"
             "page of vtwin itself.",
    .most = 1,
    .examples = man_examples,
    .run = print_man,
};
