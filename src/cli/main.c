/* main.c - finds the command, runs it, and turns its outcome into an exit status. */
#include <signal.h>

#include "cli/cli.h"
#include "cli/signals.h"

/* Order here is the order in help. */
static const struct opt_command *const commands[] = {
    &cmd_simulate, &cmd_serve,    &cmd_bench,  &cmd_play,    &cmd_record,
    &cmd_compare,  &cmd_capacity, &cmd_tune,   &cmd_explore, &cmd_validate,
    &cmd_conform,  &cmd_fit,      &cmd_learn,  &cmd_inspect, &cmd_profile,
    &cmd_model,    &cmd_workload, &cmd_worker, &cmd_merge,   &cmd_completion,
    &cmd_man,      NULL,
};

const struct opt_command *const *cli_commands(void)
{
    return commands;
}

const struct opt_command *cli_find(const char *name)
{
    for (const struct opt_command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static int print_help(struct vt_err *err)
{
    struct vt_buf b = {0};

    vt_buf_str(&b, "vtwin - a GPU-free twin of a vLLM serving engine\n\n"
                   "usage: vtwin COMMAND [FLAGS]\n"
                   "       vtwin            simulate the built-in workload\n\n");
    for (const struct opt_command *const *k = commands; *k; k++)
        vt_buf_printf(&b, "  %-12s %s\n", (*k)->name, (*k)->summary);
    vt_buf_str(
        &b, "\nvtwin COMMAND --help explains one. vtwin --version tells the version.\n"
            "Exit codes: 0 done; 1 a check failed; 2 bad usage or input; 3 a file\n"
            "or peer became unavailable while running.\n");
    return cli_print(&b, err);
}

/* "vtwin 0.2.0 (commit 1a2b3c4d5e6f; GNU 12.2.0, Release, x86_64 Linux)" */
static int print_version(struct vt_err *err)
{
    struct vt_buf b = {0};

    vt_buf_printf(&b, "vtwin " VT_VERSION " (commit %s; %s)\n", cli_commit, cli_build);
    return cli_print(&b, err);
}

static int find_and_run(int argc, const char *const *argv, struct vt_err *err)
{
    static const char *const default_job[] = {"--out", "vtwin-report"};
    const char *names[VT_COUNT(commands)] = {0}, *name, *near;
    const struct opt_command *c;
    static const char *const help[] = {"--help"};
    bool about;

    if (argc < 2)
        return cli_run(&cmd_simulate, 2, default_job, err);
    if (strcmp(argv[1], "--version") == 0)
        return print_version(err);
    about = strcmp(argv[1], "help") == 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (about && argc == 2))
        return print_help(err);
    if (argv[1][0] == '-')
        return vt_fail(err, VT_EINPUT, "'%s' before a command; vtwin --help shows how",
                       argv[1]);
    name = argv[1 + about];
    c = cli_find(name);
    if (c)
        return about ? cli_run(c, 1, help, err) : cli_run(c, argc - 2, argv + 2, err);
    for (size_t i = 0; commands[i]; i++)
        names[i] = commands[i]->name;
    near = vt_nearest(name, names);
    if (near)
        return vt_fail(err, VT_EINPUT, "unknown command '%s' (did you mean '%s'?)",
                       name, near);
    return vt_fail(err, VT_EINPUT, "unknown command '%s'; --help lists them", name);
}

int cli_main(int argc, const char *const *argv)
{
    struct vt_err err = {0};
    int rc = find_and_run(argc, argv, &err);

    if (rc != VT_OK) {
        /* Names from outside may hold anything; a message stays one line. */
        for (char *c = err.msg; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 127)
                *c = '?';
        fprintf(stderr, "vtwin: %s\n", err.msg);
    }
    return rc == VT_OK ? 0 : rc == VT_ECHECK ? 1 : rc == VT_EINPUT ? 2 : 3;
}

int main(int argc, char **argv)
{
    int status = cli_main(argc, (const char *const *)argv);

    if (cli_signal_caught()) { /* die of it, so that the caller can tell */
        signal(cli_signal_caught(), SIG_DFL);
        raise(cli_signal_caught());
    }
    return status;
}
