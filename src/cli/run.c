/* run.c - one command from its words to its end, and where what it prints goes: to the
 * streams of the process, or to a program that asked. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "trace/trace.h"

/* Of a thread, so that threads of a program may ask at once. */
static _Thread_local struct {
    struct cli_answer *to; /* NULL: the process is ours */
    const volatile int *stop;
    const char *running; /* the command's name */
    char told[sizeof(((struct vt_err *)0)->msg)];
} here;

/* The command of a process that is ours: it may start threads, which say its name. */
static const char *ours;

/* ---- where words go ------------------------------------------------------------- */

int cli_print(struct vt_buf *b, struct vt_err *err)
{
    bool lost = b->failed;
    bool wrote = true;

    if (here.to && !lost)
        vt_buf_add(&here.to->out, b->data, b->len);
    else if (!lost && b->len > 0)
        wrote = fwrite(b->data, 1, b->len, stdout) == b->len;
    vt_buf_free(b);
    if (lost || (here.to && here.to->out.failed))
        return vt_nomem(err);
    if (!here.to && (!wrote || fflush(stdout) != 0))
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

void cli_say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (here.to)
        vt_buf_vprintf(&here.to->said, fmt, args);
    else
        vfprintf(stderr, fmt, args);
    va_end(args);
}

void cli_tell(void *user, const char *line)
{
    (void)user;
    cli_say("vtwin: %s\n", line);
}

void cli_tell_named(void *user, const char *line)
{
    (void)user;
    cli_say("vtwin %s: %s\n", here.running ? here.running : ours, line);
}

bool cli_seen(void)
{
    return !here.to && isatty(STDERR_FILENO);
}

/* ---- what commands take alike -----------------------------------------------------
 */

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
    static _Thread_local char bare[4096];
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
    (void)user;
    if (strcmp(here.told, line) == 0)
        return;
    snprintf(here.told, sizeof(here.told), "%s", line);
    cli_say("warning: %s\n", line);
}

/* ---- one command -------------------------------------------------------------------
 */

static int print_help(const struct opt_command *c, struct vt_err *err)
{
    struct vt_buf b = {0};

    opt_help(&b, c);
    return cli_print(&b, err);
}

int cli_run(const struct opt_command *c, int argc, const char *const *argv,
            struct vt_err *err)
{
    struct opt_args a;
    int rc = opt_parse(&a, c, argc, argv, err);

    here.running = c->name;
    if (!here.to)
        ours = c->name;
    if (rc == VT_OK && !opt_row_given(&a, cli_files_rows))
        vt_take_cut_files(warn_of_cut, NULL);
    if (rc == VT_OK)
        opt_tell_old(&a, cli_tell, NULL);
    if (rc == VT_OK)
        rc = a.help ? print_help(c, err) : opt_command_run(&a, err);
    opt_free(&a);
    return rc;
}

/* ---- asked by another program
 * -------------------------------------------------------- */

bool cli_asked(void)
{
    return here.to != NULL;
}

bool cli_asked_to_stop(void)
{
    return here.stop && *here.stop != 0;
}

static bool stop_is_set(void *user)
{
    (void)user;
    return cli_asked_to_stop();
}

int cli_ask(struct cli_answer *to, const struct opt_command *c, int argc,
            const char *const *argv, const volatile int *stop, struct vt_err *err)
{
    int rc;

    *to = (struct cli_answer){0};
    here.to = to;
    here.stop = stop;
    here.told[0] = '\0';
    vt_stop_when(stop_is_set, NULL);
    rc = cli_run(c, argc, argv, err);
    /* What the thread does next is not this command's. */
    vt_stop_when(NULL, NULL);
    vt_take_cut_files(NULL, NULL);
    here.to = NULL;
    here.stop = NULL;
    return rc == VT_OK && to->said.failed ? vt_nomem(err) : rc;
}

void cli_answer_free(struct cli_answer *a)
{
    vt_buf_free(&a->out);
    vt_buf_free(&a->said);
}
