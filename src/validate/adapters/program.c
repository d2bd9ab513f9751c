/* program.c - see program.h. */
#include "validate/adapters/program.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/live.h"

enum { LOOK_MS = 5, CHILD_LAST_LINE = 300 };

/* ---- a command line -------------------------------------------------- */

void program_arg(struct program *p, const char *text)
{
    char *copy = vt_arena_copy(&p->arena, text, strlen(text));

    if (!copy || p->n == PROGRAM_ARGS)
        p->failed = true;
    else
        p->argv[p->n++] = copy;
}

void program_arg_u64(struct program *p, const char *flag, uint64_t v)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    program_arg_pair(p, flag, text);
}

void program_arg_pair(struct program *p, const char *flag, const char *value)
{
    program_arg(p, flag);
    program_arg(p, value);
}

void program_free(struct program *p)
{
    vt_arena_free(&p->arena);
}

/* ---- running --------------------------------------------------------- */

static _Noreturn void become(const struct program *p, int out, int log, pid_t parent)
{
    static char *const nothing[] = {NULL};
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && null >= 0 && dup2(null, 0) >= 0 && dup2(out, 1) >= 0 &&
        dup2(log, 2) >= 0 && (!p->directory || chdir(p->directory) == 0))
        execve(p->argv[0], p->argv, p->environment ? p->environment : nothing);
    _exit(127);
}

/* False: it took too long, and is no more. */
static bool wait_for(pid_t pid, uint32_t timeout_s, int *status)
{
    vt_ns until = timeout_s > 0 ? vt_wall_ns() + timeout_s * VT_SEC : VT_NEVER;

    while (waitpid(pid, status, WNOHANG) == 0) {
        if (vt_wall_ns() > until) {
            kill(pid, SIGKILL);
            waitpid(pid, status, 0);
            return false;
        }
        vt_sleep_ns(LOOK_MS * VT_MS);
    }
    return true;
}

static void child_last_line(int log, char out[CHILD_LAST_LINE])
{
    off_t end = lseek(log, 0, SEEK_END);
    off_t from = end > CHILD_LAST_LINE - 1 ? end - (CHILD_LAST_LINE - 1) : 0;
    ssize_t n = end > 0 ? pread(log, out, (size_t)(end - from), from) : 0;
    char *start;

    n = n > 0 ? n : 0;
    out[n] = '\0';
    while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == ' '))
        out[--n] = '\0';
    start = strrchr(out, '\n');
    if (start)
        memmove(out, start + 1, strlen(start + 1) + 1);
}

static int judge(const struct program *p, int status, int log, struct vt_err *err)
{
    char words[CHILD_LAST_LINE];

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return VT_OK;
    child_last_line(log, words);
    if (WIFSIGNALED(status))
        return vt_fail(err, VT_EIO, "%s died of signal %d: %s", p->argv[0],
                       WTERMSIG(status), words);
    return vt_fail(err, VT_EIO, "%s ended with status %d: %s", p->argv[0],
                   WEXITSTATUS(status), words);
}

static int start(const struct program *p, int log, struct vt_err *err)
{
    pid_t parent = getpid(), pid;
    int out = open(p->out ? p->out : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int status = 0, rc;

    if (out < 0)
        return vt_fail(err, VT_EIO, "%s: %s", p->out, strerror(errno));
    pid = fork();
    if (pid == 0)
        become(p, out, log, parent);
    if (pid < 0)
        rc = vt_fail(err, VT_EIO, "%s cannot be started: %s", p->argv[0],
                     strerror(errno));
    else if (!wait_for(pid, p->timeout_s, &status))
        rc = vt_fail(err, VT_EIO, "%s took longer than %u s", p->argv[0], p->timeout_s);
    else
        rc = judge(p, status, log, err);
    close(out);
    return rc;
}

int program_run(const struct program *p, struct vt_err *err)
{
    char name[] = "/tmp/vtwin-program-XXXXXX";
    int log, rc;

    if (p->failed || p->n == 0)
        return vt_nomem(err);
    log = mkstemp(name);
    if (log < 0)
        return vt_fail(err, VT_EIO, "%s: %s", name, strerror(errno));
    unlink(name);
    rc = start(p, log, err);
    close(log);
    return rc;
}

/* ---- files ----------------------------------------------------------- */

int program_place(char *path, size_t size, const char *scratch, struct vt_err *err)
{
    if ((size_t)snprintf(path, size, "%s/vtwin-validate-XXXXXX", scratch) >= size ||
        !mkdtemp(path))
        return vt_fail(err, VT_EIO, "%s: %s", path, strerror(errno));
    return VT_OK;
}

void program_clear(const char *place)
{
    struct program rm = {0};
    struct vt_err ignored;

    program_arg(&rm, "/bin/rm");
    program_arg_pair(&rm, "-rf", "--");
    program_arg(&rm, place);
    if (program_run(&rm, &ignored) != VT_OK)
        rmdir(place);
    program_free(&rm);
}

/* ---- CSV ------------------------------------------------------------- */

int program_csv_open(struct program_csv *c, const char *path, struct vt_err *err)
{
    size_t len;
    char *line;
    int rc;

    *c = (struct program_csv){0};
    rc = vt_lines_open(&c->lines, path, err);
    if (rc == VT_OK)
        rc = vt_lines_next(c->lines, &line, &len, NULL, err);
    if (rc == VT_OK && !line)
        rc = vt_fail(err, VT_EINPUT, "%s: the file is empty", path);
    if (rc == VT_OK) {
        c->head = strdup(line);
        c->n = c->head ? vt_csv_split(c->head, c->name, VT_COUNT(c->name)) : -1;
        if (c->n < 1)
            rc = vt_fail(err, VT_EINPUT, "%s: no header of at most 64 columns", path);
    }
    if (rc != VT_OK)
        program_csv_close(c);
    return rc;
}

bool program_csv_next(struct program_csv *c)
{
    struct vt_err ignored;
    size_t len;
    char *line;

    while (vt_lines_next(c->lines, &line, &len, NULL, &ignored) == VT_OK && line)
        if (vt_csv_split(line, c->field, VT_COUNT(c->field)) == c->n)
            return true;
    return false;
}

const char *program_csv_text(const struct program_csv *c, const char *column)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->name[i], column) == 0)
            return c->field[i];
    return "";
}

double program_csv_number(const struct program_csv *c, const char *column)
{
    const char *text = program_csv_text(c, column);
    double v;

    return vt_parse_f64(text, strlen(text), &v) ? v : NAN;
}

void program_csv_close(struct program_csv *c)
{
    vt_lines_close(c->lines);
    free(c->head);
    *c = (struct program_csv){0};
}
