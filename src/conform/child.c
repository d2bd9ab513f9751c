/* child.c - see child.h. */
#include "conform/child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOP_MS = 2000 };

/* ---- starting --------------------------------------------------------- */

static int open_log(struct vt_err *err)
{
    char name[] = "/tmp/vtwin-child-XXXXXX";
    int fd = mkstemp(name);

    if (fd < 0) {
        vt_fail(err, VT_EIO, "%s: %s", name, strerror(errno));
        return -1;
    }
    unlink(name);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

/* Runs in the child: only calls that are safe after fork(). */
static _Noreturn void become(int log, pid_t parent, char *const *argv,
                             char *const *environment)
{
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && null >= 0 && dup2(null, 0) >= 0 && dup2(log, 1) >= 0 &&
        dup2(log, 2) >= 0)
        execve(argv[0], argv, environment);
    _exit(127);
}

int child_start(struct child *c, const char *name, char *const *argv,
                char *const *environment, struct vt_err *err)
{
    static char *const nothing[] = {NULL};
    pid_t parent = getpid();

    *c = (struct child){.log = open_log(err), .name = name};
    if (c->log < 0)
        return VT_EIO;
    if (access(argv[0], X_OK) != 0) {
        vt_fail(err, VT_EINPUT, "%s: %s", argv[0], strerror(errno));
        child_stop(c);
        return VT_EINPUT;
    }
    c->pid = fork();
    if (c->pid == 0)
        become(c->log, parent, argv, environment ? environment : nothing);
    if (c->pid < 0) {
        c->pid = 0;
        child_stop(c);
        return vt_fail(err, VT_EIO, "%s: cannot be started: %s", argv[0],
                       strerror(errno));
    }
    return VT_OK;
}

/* ---- watching --------------------------------------------------------- */

void child_last_line(int log, char out[CHILD_LAST_LINE])
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

static int tell(const struct child *c, const char *what, struct vt_err *err)
{
    char line[CHILD_LAST_LINE];

    child_last_line(c->log, line);
    return vt_fail(err, VT_EIO, "%s %s%s%s", c->name, what, *line ? ": " : "", line);
}

bool child_runs(struct child *c, struct vt_err *err)
{
    char how[64];
    int status;

    if (c->pid == 0 || waitpid(c->pid, &status, WNOHANG) == 0)
        return c->pid != 0;
    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "died of signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof(how), "ended with status %d", WEXITSTATUS(status));
    c->pid = 0;
    tell(c, how, err);
    return false;
}

int child_within(const struct child *c, struct vt_err *err, int rc)
{
    struct vt_err what = *err;
    char line[CHILD_LAST_LINE];

    if (rc == VT_OK || c->log < 0)
        return rc;
    child_last_line(c->log, line);
    if (!*line)
        return rc;
    return vt_fail(err, (enum vt_code)rc, "%s (%s: %s)", what.msg, c->name, line);
}

/* ---- stopping --------------------------------------------------------- */

static bool ends_within(pid_t pid, int ms)
{
    for (int waited = 0; waited <= ms; waited += 10) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return true;
        vt_sleep_ns(10 * VT_MS);
    }
    return false;
}

void child_stop(struct child *c)
{
    if (c->pid > 0) {
        kill(c->pid, SIGTERM);
        if (!ends_within(c->pid, STOP_MS)) {
            kill(c->pid, SIGKILL);
            waitpid(c->pid, NULL, 0);
        }
    }
    if (c->name && c->log >= 0)
        close(c->log);
    *c = (struct child){.log = -1};
}

/* ---- ports ------------------------------------------------------------ */

int free_port(uint16_t *port, struct vt_err *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool good;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    good = fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0 &&
           getsockname(fd, (struct sockaddr *)&a, &len) == 0;
    *port = ntohs(a.sin_port);
    if (fd >= 0)
        close(fd);
    return good ? VT_OK : vt_fail(err, VT_EIO, "no free port: %s", strerror(errno));
}
