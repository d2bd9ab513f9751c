/* proc.c - programs that we start: what they say is kept, and they never stay behind.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

extern char **environ;

#define LOOK_NS  (5 * VT_MS) /* between looks whether it has ended */
#define GRACE_NS (2 * VT_SEC)

/* ---- arguments ---------------------------------------------------------- */

static void add_arg(struct vt_proc *p, const char *text, size_t len)
{
    char *copy = vt_arena_copy(&p->arena, text, len);

    if (!copy || vt_grow(&p->argv, &p->cap_args, p->n_args + 2, sizeof(*p->argv),
                         NULL) != VT_OK) {
        p->failed = true;
        return;
    }
    p->argv[p->n_args++] = copy;
    p->argv[p->n_args] = NULL;
}

void vt_proc_arg(struct vt_proc *p, const char *text)
{
    add_arg(p, text, strlen(text));
}

void vt_proc_arg_pair(struct vt_proc *p, const char *flag, const char *value)
{
    vt_proc_arg(p, flag);
    vt_proc_arg(p, value);
}

void vt_proc_arg_u64(struct vt_proc *p, const char *flag, uint64_t v)
{
    char text[20];

    vt_proc_arg(p, flag);
    add_arg(p, text, (size_t)(vt_u64_at(text, v) - text));
}

void vt_proc_arg_printf(struct vt_proc *p, const char *fmt, ...)
{
    struct vt_buf b = {0};
    va_list args;

    va_start(args, fmt);
    vt_buf_vprintf(&b, fmt, args);
    va_end(args);
    if (b.data)
        add_arg(p, b.data, b.len);
    p->failed = p->failed || b.failed;
    vt_buf_free(&b);
}

/* ---- starting ----------------------------------------------------------- */

static const char *name_of(const struct vt_proc *p)
{
    return p->name ? p->name : p->argv[0];
}

/* The file to run: of the directories in PATH the first that has it. */
static int find_program(struct vt_proc *p, const char **program, struct vt_err *err)
{
    const char *at = getenv("PATH");
    struct vt_buf b = {0};

    *program = p->argv[0];
    if (!p->in_path || strchr(p->argv[0], '/'))
        return VT_OK;
    *program = NULL;
    for (at = at ? at : "/usr/bin:/bin"; !*program && !b.failed; at++) {
        size_t n = strcspn(at, ":");

        vt_buf_clear(&b);
        vt_buf_add(&b, n ? at : ".", n ? n : 1);
        vt_buf_printf(&b, "/%s", p->argv[0]);
        if (!b.failed && access(b.data, X_OK) == 0) {
            *program = vt_arena_copy(&p->arena, b.data, b.len);
            b.failed = !*program;
        }
        at += n;
        if (*at == '\0')
            break;
    }
    p->failed = b.failed;
    vt_buf_free(&b);
    if (p->failed)
        return vt_nomem(err);
    return *program ? VT_OK
                    : vt_fail(err, VT_EINPUT, "%s: %s", p->argv[0], strerror(ENOENT));
}

struct streams { /* file descriptors of the child to be */
    int in, out, err;
    int why; /* where it says why it could not become the program */
};

/* Runs in the child: only calls that are safe after fork(). */
static _Noreturn void become(const struct vt_proc *p, const char *program,
                             const struct streams *s, pid_t parent)
{
    static char *const nothing[] = {NULL};
    int no;

    if (p->own_group)
        setpgid(0, 0);
    if (!p->outlives)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if ((p->outlives || getppid() == parent) && dup2(s->in, 0) >= 0 &&
        dup2(s->out, 1) >= 0 && dup2(s->err, 2) >= 0 &&
        (!p->directory || chdir(p->directory) == 0))
        execve(program, p->argv,
               p->our_environment ? environ
               : p->environment   ? p->environment
                                  : nothing);
    no = errno;
    (void)!write(s->why, &no, sizeof(no));
    _exit(127);
}

/* Forks; *no is why the child could not become the program, 0 if it did. */
static bool fork_child(struct vt_proc *p, const char *program, struct streams *s,
                       int *no)
{
    pid_t parent = getpid(), pid;
    ssize_t got;
    int why[2];

    if (pipe(why) != 0)
        return false;
    fcntl(why[0], F_SETFD, FD_CLOEXEC);
    fcntl(why[1], F_SETFD, FD_CLOEXEC);
    s->why = why[1];
    pid = fork();
    if (pid == 0)
        become(p, program, s, parent);
    *no = errno;
    close(why[1]);
    if (pid > 0) {
        if (p->own_group)
            (void)setpgid(pid, pid); /* whoever comes first */
        p->pid = pid;
        do
            got = read(why[0], no, sizeof(*no));
        while (got < 0 && errno == EINTR);
        if (got != (ssize_t)sizeof(*no))
            *no = 0;
    }
    close(why[0]);
    errno = *no;
    return pid > 0;
}

static int start_with(struct vt_proc *p, const char *program, struct streams *s,
                      struct vt_err *err)
{
    bool input;
    int no = 0;

    if (s->in < 0 || s->out < 0)
        return vt_fail(err, VT_EIO, "%s: %s", s->in < 0 ? "/dev/null" : p->out,
                       strerror(errno));
    if (!fork_child(p, program, s, &no))
        return vt_fail(err, VT_EIO, "%s: cannot be started: %s", p->argv[0],
                       strerror(errno));
    if (no == 0)
        return VT_OK;
    (void)waitpid(p->pid, &p->status, 0);
    p->pid = 0;
    input = no == ENOENT || no == EACCES || no == ENOTDIR;
    return vt_fail(err, input ? VT_EINPUT : VT_EIO, "%s: %s", p->argv[0], strerror(no));
}

int vt_proc_start(struct vt_proc *p, struct vt_err *err)
{
    struct streams s = {.in = -1, .out = STDERR_FILENO, .err = STDERR_FILENO};
    char log[] = "/tmp/vtwin-log-XXXXXX";
    const char *program;
    int rc;

    assert(p->pid == 0);
    if (p->failed || p->n_args == 0)
        return vt_nomem(err);
    rc = find_program(p, &program, err);
    if (rc != VT_OK)
        return rc;
    if (p->output != VT_PROC_TO_STDERR) {
        s.out = s.err = p->log = mkstemp(log);
        if (p->log < 0)
            return vt_fail(err, VT_EIO, "%s: %s", log, strerror(errno));
        p->has_log = true;
        unlink(log);
        fcntl(p->log, F_SETFD, FD_CLOEXEC);
    }
    s.in = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (p->output == VT_PROC_TO_FILE)
        s.out = p->out ? open(p->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                       : s.in;
    if (p->output == VT_PROC_TALK && s.in >= 0) {
        close(s.in);
        s.in = s.out = p->talk;
    }
    rc = start_with(p, program, &s, err);
    if (p->output == VT_PROC_TO_FILE && s.out >= 0 && s.out != s.in)
        close(s.out);
    if (s.in >= 0 && p->output != VT_PROC_TALK)
        close(s.in);
    return rc;
}

/* ---- what it said ------------------------------------------------------- */

static ssize_t read_log(const struct vt_proc *p, char line[VT_PROC_LINE], off_t from)
{
    ssize_t n = p->has_log ? pread(p->log, line, VT_PROC_LINE - 1, from) : 0;

    n = n > 0 ? n : 0;
    line[n] = '\0';
    return n;
}

void vt_proc_first_line(const struct vt_proc *p, char line[VT_PROC_LINE])
{
    size_t blank;

    (void)read_log(p, line, 0);
    blank = strspn(line, " \t\r\n");
    while (blank > 0 && line[blank - 1] != '\n') /* its own indentation stays */
        blank--;
    memmove(line, line + blank, strlen(line + blank) + 1);
    line[strcspn(line, "\r\n")] = '\0';
}

void vt_proc_last_line(const struct vt_proc *p, char line[VT_PROC_LINE])
{
    off_t end = p->has_log ? lseek(p->log, 0, SEEK_END) : 0;
    ssize_t n =
        read_log(p, line, end > VT_PROC_LINE - 1 ? end - (VT_PROC_LINE - 1) : 0);
    char *start;

    while (n > 0 && strchr("\r\n ", line[n - 1]))
        line[--n] = '\0';
    start = strrchr(line, '\n');
    if (start)
        memmove(line, start + 1, strlen(start + 1) + 1);
}

int vt_proc_within(const struct vt_proc *p, struct vt_err *err, int rc)
{
    struct vt_err what = *err;
    char line[VT_PROC_LINE];

    if (rc == VT_OK)
        return rc;
    vt_proc_last_line(p, line);
    if (!*line)
        return rc;
    return vt_fail(err, (enum vt_code)rc, "%s (%s: %s)", what.msg, name_of(p), line);
}

/* ---- its end ------------------------------------------------------------ */

static vt_ns now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * VT_SEC + t.tv_nsec;
}

/* Looks until it has ended or the time has come. */
static bool ends_by(struct vt_proc *p, vt_ns until)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};

    while (waitpid(p->pid, &p->status, WNOHANG) == 0) {
        if (now_ns() >= until)
            return false;
        nanosleep(&look, NULL);
    }
    p->pid = 0;
    return true;
}

static void kill_it(struct vt_proc *p)
{
    kill(p->own_group ? -p->pid : p->pid, SIGKILL);
    while (waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR)
        ;
    p->pid = 0;
}

/* False: no line of what was kept holds any of the marks. */
static bool telling_line(const struct vt_proc *p, char line[VT_PROC_LINE])
{
    int copy = p->telling && p->has_log ? dup(p->log) : -1;
    FILE *f = copy >= 0 ? fdopen(copy, "r") : NULL;
    bool found = false;

    if (!f) {
        if (copy >= 0)
            close(copy);
        return false;
    }
    rewind(f);
    while (!found && fgets(line, VT_PROC_LINE, f))
        for (size_t i = 0; p->telling[i] && !found; i++)
            found = strstr(line, p->telling[i]) != NULL;
    fclose(f);
    line[strcspn(line, "\r\n")] = '\0';
    return found;
}

static int tell_end(const struct vt_proc *p, struct vt_err *err)
{
    bool signalled = WIFSIGNALED(p->status);
    char line[VT_PROC_LINE] = "";

    if (!telling_line(p, line))
        vt_proc_last_line(p, line);
    return vt_fail(err, VT_EIO, "%s %s %d%s%s", name_of(p),
                   signalled ? "died of signal" : "ended with status",
                   signalled ? WTERMSIG(p->status) : WEXITSTATUS(p->status),
                   *line ? ": " : "", line);
}

bool vt_proc_running(struct vt_proc *p, struct vt_err *err)
{
    if (p->pid == 0)
        return false;
    if (waitpid(p->pid, &p->status, WNOHANG) == 0)
        return true;
    p->pid = 0;
    tell_end(p, err);
    return false;
}

int vt_proc_wait(struct vt_proc *p, vt_ns limit, struct vt_err *err)
{
    if (p->pid != 0 && !ends_by(p, limit > 0 ? now_ns() + limit : VT_NEVER)) {
        kill_it(p);
        return vt_fail(err, VT_EIO, "%s took longer than %g s", name_of(p),
                       (double)limit / 1e9);
    }
    if (WIFEXITED(p->status) && WEXITSTATUS(p->status) == 0)
        return VT_OK;
    return tell_end(p, err);
}

int vt_proc_run(struct vt_proc *p, vt_ns limit, struct vt_err *err)
{
    int rc = vt_proc_start(p, err);

    return rc == VT_OK ? vt_proc_wait(p, limit, err) : rc;
}

void vt_proc_stop(struct vt_proc *p)
{
    int pid = p->pid;

    if (pid > 0) {
        kill(p->own_group ? -pid : pid, SIGTERM);
        if (!ends_by(p, now_ns() + (p->grace ? p->grace : GRACE_NS)))
            kill_it(p);
        else if (p->own_group)
            kill(-pid, SIGKILL); /* those that did not end with it */
    }
    if (p->has_log)
        close(p->log);
    free(p->argv);
    vt_arena_free(&p->arena);
    *p = (struct vt_proc){0};
}
