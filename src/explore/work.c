/* work.c - commands in processes of their own. A fork has all that the server has and
 * can be killed at any moment, which ends stale work at once. */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "explore/parts.h"

enum { MOST_WORKS = 16, READ_BYTES = 65536, SCRATCH = 4096 };
#define MOST_OUT  ((size_t)64 << 20)
#define MOST_SAID ((size_t)64 << 10)

struct work {
    struct works *all;
    struct work *next;
    int pid, out, said; /* out: a pipe; said: a file without a name */
    struct vt_buf text;
    bool writes;
    work_done *done;
    void *user;
};

struct works {
    const struct vt_explore *x;
    int epoll;
    struct work *first;
    size_t n;
};

int works_open(struct works **out, const struct vt_explore *x, struct vt_err *err)
{
    struct works *w = calloc(1, sizeof(*w));

    *out = w;
    if (!w)
        return vt_nomem(err);
    w->x = x;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll >= 0)
        return VT_OK;
    free(w);
    *out = NULL;
    return vt_fail(err, VT_EIO, "epoll: %s", strerror(errno));
}

int works_fd(const struct works *w)
{
    return w->epoll;
}

/* ---- the other process ---------------------------------------------------------- */

static void scratch_path(char path[SCRATCH], const struct vt_explore *x, int pid)
{
    (void)snprintf(path, SCRATCH, "%s/vtwin-explore-%d.html", x->scratch, pid);
}

/* What it wrote to the file goes where its answer is read. */
static int hand_over(const char *path, int out)
{
    int file = open(path, O_RDONLY), status = file < 0 ? 3 : 0;
    char bytes[4096];
    ssize_t n;

    while (file >= 0 && status == 0 && (n = read(file, bytes, sizeof(bytes))) > 0)
        if (write(out, bytes, (size_t)n) != n)
            status = 3;
    (void)unlink(path);
    return status;
}

/* With one more flag. The fork has no need to free it. */
static int run_writing(const struct vt_explore *x, const struct argv_words *argv,
                       const char *writes)
{
    const char **word = calloc(argv->n + 3, sizeof(*word));
    char flag[64], path[SCRATCH];
    int out = dup(STDOUT_FILENO), none = open("/dev/null", O_WRONLY), status;

    if (!word || out < 0 || none < 0 || dup2(none, STDOUT_FILENO) < 0)
        return 3;
    memcpy(word, argv->word, argv->n * sizeof(*word));
    (void)snprintf(flag, sizeof(flag), "--%s", writes);
    scratch_path(path, x, (int)getpid());
    word[argv->n] = flag;
    word[argv->n + 1] = path;
    status = x->command(x->user, (int)argv->n + 2, word);
    /* Exit status 1 tells of limits: there is a file all the same. */
    return status > 1 || hand_over(path, out) == 0 ? status : 3;
}

/* Nothing of the server's stays open: a connection that it closes must be closed. */
_Noreturn static void be_command(const struct vt_explore *x, int out, int said,
                                 const struct argv_words *argv, const char *writes)
{
    int status, none = open("/dev/null", O_RDONLY);

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (none < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(said, STDERR_FILENO) < 0)
        _exit(3);
    /* By its number: glibc has had a name for it since 2.34 only. */
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0) != 0)
        for (int fd = (int)sysconf(_SC_OPEN_MAX) - 1; fd > STDERR_FILENO; fd--)
            (void)close(fd);
    status = writes ? run_writing(x, argv, writes)
                    : x->command(x->user, (int)argv->n, argv->word);
    fflush(NULL);
    _exit(status);
}

/* A file that only the two processes know. */
static int open_scratch(void)
{
    FILE *f = tmpfile();
    int fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 3) : -1;

    if (f)
        fclose(f);
    return fd;
}

static int start_process(struct work *k, const struct argv_words *argv,
                         const char *writes, struct vt_err *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = k};
    int end[2];

    k->said = open_scratch();
    if (k->said < 0 || pipe2(end, O_CLOEXEC) != 0)
        return vt_fail(err, VT_EIO, "can't make a pipe: %s", strerror(errno));
    k->out = end[0];
    fflush(NULL); /* or the fork would print it again */
    k->pid = fork();
    if (k->pid == 0)
        be_command(k->all->x, end[1], k->said, argv, writes);
    close(end[1]);
    if (k->pid < 0)
        return vt_fail(err, VT_EIO, "can't start a process: %s", strerror(errno));
    (void)setpgid(k->pid, k->pid); /* whoever comes first */
    (void)fcntl(k->out, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(k->all->epoll, EPOLL_CTL_ADD, k->out, &e) != 0)
        return vt_fail(err, VT_EIO, "epoll: %s", strerror(errno));
    return VT_OK;
}

/* ---- its life here -------------------------------------------------------------- */

static void free_work(struct work *k)
{
    struct work **at = &k->all->first;

    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    k->all->n--;
    if (k->out >= 0)
        close(k->out); /* epoll forgets it */
    if (k->said >= 0)
        close(k->said);
    vt_buf_free(&k->text);
    free(k);
}

/* Its exit status; -1: it did not exit. */
static int bury_process(struct work *k)
{
    int status = 0;

    while (waitpid(k->pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void work_cancel(struct work *k)
{
    char path[SCRATCH];

    if (k->pid > 0 && kill(-k->pid, SIGKILL) != 0)
        (void)kill(k->pid, SIGKILL); /* it has no group yet */
    if (k->pid > 0)
        (void)bury_process(k);
    scratch_path(path, k->all->x, k->pid);
    if (k->writes)
        (void)unlink(path);
    free_work(k);
}

int work_start(struct work **out, struct works *w, const struct argv_words *argv,
               const char *writes, work_done *done, void *user, struct vt_err *err)
{
    struct work *k;
    int rc;

    *out = NULL;
    if (w->n >= MOST_WORKS)
        return vt_fail(err, VT_ECHECK, "%d questions are being answered", MOST_WORKS);
    if (!(k = calloc(1, sizeof(*k))))
        return vt_nomem(err);
    *k = (struct work){.all = w,
                       .next = w->first,
                       .pid = -1,
                       .out = -1,
                       .said = -1,
                       .text.max = MOST_OUT,
                       .writes = writes != NULL,
                       .done = done,
                       .user = user};
    w->first = k;
    w->n++;
    rc = start_process(k, argv, writes, err);
    if (rc != VT_OK)
        work_cancel(k);
    else
        *out = k;
    return rc;
}

static void read_said(const struct work *k, struct vt_buf *b)
{
    char bytes[4096];
    ssize_t n;

    b->max = MOST_SAID;
    while (b->len + sizeof(bytes) < MOST_SAID &&
           (n = pread(k->said, bytes, sizeof(bytes), (off_t)b->len)) > 0)
        vt_buf_add(b, bytes, (size_t)n);
}

static void end_work(struct work *k)
{
    struct vt_buf said = {0};
    struct work_answer a = {.out = "", .said = ""};
    bool lost = k->text.failed;

    if (lost)
        (void)kill(-k->pid, SIGKILL);
    a.status = bury_process(k);
    read_said(k, &said);
    if (!lost && k->text.len > 0) {
        a.out = k->text.data;
        a.out_len = k->text.len;
    }
    if (!said.failed && said.len > 0) {
        a.said = said.data;
        a.said_len = said.len;
    }
    if (lost)
        a.status = -1;
    k->done(k->user, &a);
    vt_buf_free(&said);
    free_work(k);
}

/* All that is there; true: it was the last. */
static bool read_work(struct work *k)
{
    char bytes[READ_BYTES];
    ssize_t n;

    while ((n = read(k->out, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            vt_buf_add(&k->text, bytes, (size_t)n);
    return n == 0 || errno != EAGAIN || k->text.failed;
}

void works_hear(struct works *w)
{
    struct epoll_event e;

    /* One at a time: done() may end others. */
    while (epoll_wait(w->epoll, &e, 1, 0) == 1) {
        struct work *k = e.data.ptr;

        if (read_work(k))
            end_work(k);
    }
}

void works_close(struct works *w, void (*drop)(void *user))
{
    if (!w)
        return;
    while (w->first) {
        void *user = w->first->user;

        work_cancel(w->first);
        drop(user);
    }
    close(w->epoll);
    free(w);
}
