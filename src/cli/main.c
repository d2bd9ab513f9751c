/* main.c - finds the command, runs it, and turns its outcome into an exit status. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "trace/trace.h"

/* Order here is the order in help. */
static const struct opt_command *const commands[] = {
    &cmd_simulate, &cmd_serve,    &cmd_bench,      &cmd_play,    &cmd_record,
    &cmd_compare,  &cmd_capacity, &cmd_tune,       &cmd_explore, &cmd_validate,
    &cmd_conform,  &cmd_fit,      &cmd_learn,      &cmd_inspect, &cmd_profile,
    &cmd_model,    &cmd_workload, &cmd_completion, &cmd_man,     NULL,
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

int cli_print(struct vt_buf *b, struct vt_err *err)
{
    bool lost = b->failed;
    bool wrote = lost || b->len == 0 || fwrite(b->data, 1, b->len, stdout) == b->len;

    vt_buf_free(b);
    if (lost)
        return vt_nomem(err);
    if (!wrote || fflush(stdout) != 0)
        return vt_fail(err, VT_EIO, "stdout: %s", strerror(errno));
    return VT_OK;
}

int cli_print_end(struct vt_buf *b, int rc, struct vt_err *err)
{
    if (rc == VT_OK)
        return cli_print(b, err);
    vt_buf_free(b);
    return rc;
}

int cli_save(const char *dir, const char *name, struct vt_buf *b, struct vt_err *err)
{
    int rc = vt_write_file_in(dir, name, b, err);

    vt_buf_free(b);
    return rc;
}

static const char *running; /* the command's name */

void cli_tell(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "vtwin: %s\n", line);
}

void cli_tell_named(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "vtwin %s: %s\n", running, line);
}

const char *cli_report_trace(const char *path, struct cli_report *r)
{
    *r = (struct cli_report){.trace = ""};
    if (!vt_is_directory(path))
        return path;
    (void)snprintf(r->trace, sizeof(r->trace), "%s/requests.jsonl", path);
    (void)snprintf(r->steps, sizeof(r->steps), "%s/steps.jsonl", path);
    if (access(r->steps, F_OK) != 0)
        r->steps[0] = '\0';
    return access(r->trace, F_OK) == 0 ? r->trace : path;
}

const char *cli_base_url(const char *url)
{
    static char bare[4096];
    size_t n = strlen(url);

    while (n > 0 && url[n - 1] == '/')
        n--;
    if (n < strlen("/v1") || n >= sizeof(bare) || memcmp(url + n - 3, "/v1", 3) != 0)
        return url;
    (void)snprintf(bare, sizeof(bare), "%.*s", (int)(n - 3), url);
    return bare;
}

const char *cli_scratch(void)
{
    const char *dir = getenv("TMPDIR");

    return dir && *dir ? dir : "/tmp";
}

#define OPT_T struct cli_files
const struct opt_row cli_files_rows[] = {
    OPT_FLAG(whole, "whole", "refuse traces and step logs whose last line is cut"),
    {0},
};

/* A command may read a file more than once. */
static void warn_of_cut(void *user, const char *line)
{
    static char told[sizeof(((struct vt_err *)0)->msg)];

    (void)user;
    if (strcmp(told, line) == 0)
        return;
    snprintf(told, sizeof(told), "%s", line);
    fprintf(stderr, "warning: %s\n", line);
}

static int print_help(const struct opt_command *c, struct vt_err *err)
{
    struct vt_buf b = {0};

    if (c) {
        opt_help(&b, c);
        return cli_print(&b, err);
    }
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

static int run_command(const struct opt_command *c, int argc, const char *const *argv,
                       struct vt_err *err)
{
    struct opt_args a;
    int rc = opt_parse(&a, c, argc, argv, err);

    running = c->name;
    if (rc == VT_OK && !opt_row_given(&a, cli_files_rows))
        vt_take_cut_files(warn_of_cut, NULL);
    if (rc == VT_OK)
        opt_tell_old(&a, cli_tell, NULL);
    if (rc == VT_OK)
        rc = a.help ? print_help(c, err) : opt_command_run(&a, err);
    opt_free(&a);
    return rc;
}

static int find_and_run(int argc, const char *const *argv, struct vt_err *err)
{
    static const char *const default_job[] = {"--out", "vtwin-report"};
    const char *names[VT_COUNT(commands)] = {0}, *name, *near;
    const struct opt_command *c;
    struct vt_buf version = {0};
    bool about;

    if (argc < 2)
        return run_command(&cmd_simulate, 2, default_job, err);
    if (strcmp(argv[1], "--version") == 0) {
        vt_buf_str(&version, "vtwin " VT_VERSION "\n");
        return cli_print(&version, err);
    }
    about = strcmp(argv[1], "help") == 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (about && argc == 2))
        return print_help(NULL, err);
    if (argv[1][0] == '-')
        return vt_fail(err, VT_EINPUT, "'%s' before a command; vtwin --help shows how",
                       argv[1]);
    name = argv[1 + about];
    c = cli_find(name);
    if (c)
        return about ? print_help(c, err) : run_command(c, argc - 2, argv + 2, err);
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
        cli_ranks_fail(&err);
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
