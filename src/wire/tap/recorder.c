/* recorder.c - the thread that decodes what was forwarded, and its files. */
#include "wire/tap/tap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_BLOCK_SIZE = 16, NICE = 10 };
enum { FAST = 1, SMALL = 6 }; /* levels of gzip: a log is a hundred times its trace */
#define DEFAULT_BACKLOG ((size_t)1 << 30)

/* Under load the recorder naps between batches: waking it for every message would cost
 * the forwarder more than the message itself. Long naps make for long batches, which
 * keep a processor from the forwarder when there are few. */
static const long NAP_NS = 200 * (long)VT_US;

/* ---- queue ------------------------------------------------------------ */

bool tap_recorder_put(struct tap_recorder *r, struct tap_item *item)
{
    size_t waiting =
        atomic_load_explicit(&r->waiting_bytes, memory_order_relaxed) + item->cost;

    if (waiting > r->max_waiting)
        return false;
    atomic_fetch_add_explicit(&r->waiting_bytes, item->cost, memory_order_relaxed);
    vt_inbox_put(&r->inbox, &item->link);
    return true;
}

/* ---- files ------------------------------------------------------------ */

/* Forwarding goes on without files: whoever is served must not notice. */
void tap_recorder_failed(struct tap_recorder *r, const struct vt_err *err)
{
    if (r->failure.code != VT_OK)
        return;
    r->failure = *err;
    tap_tell(r->log, "%s; forwarding goes on, recording has ended", err->msg);
}

void tap_output_flush(struct tap_recorder *r, struct tap_output *f)
{
    struct vt_err err;

    if (f->file && r->failure.code == VT_OK && vt_append_put(f->file, &f->lines, &err))
        tap_recorder_failed(r, &err);
    vt_buf_clear(&f->lines);
}

/* Whether a file may be made there, before anything else is: not over one that is there
 * unless that was asked for. */
static int check_output(const char *path, bool overwrite, struct vt_err *err)
{
    const char *slash = strrchr(path, '/');
    struct stat st;

    if (stat(path, &st) != 0) { /* then its directory must take it */
        char *dir = slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1)
                          : strdup(".");
        int rc = VT_OK;

        if (!dir)
            return vt_nomem(err);
        if (access(dir, W_OK | X_OK) != 0)
            rc = vt_fail(err, VT_EINPUT, "%s: cannot write: %s", path, strerror(errno));
        free(dir);
        return rc;
    }
    if (S_ISDIR(st.st_mode))
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(EISDIR));
    if (S_ISREG(st.st_mode) && !overwrite)
        return vt_fail(err, VT_EINPUT, "%s is there already; --overwrite replaces it",
                       path);
    if (access(path, W_OK) != 0)
        return vt_fail(err, VT_EINPUT, "%s: cannot write: %s", path, strerror(errno));
    return VT_OK;
}

static int open_file(struct tap_output *f, const char *path, int level,
                     struct vt_err *err)
{
    return path && !f->file ? vt_append_open(&f->file, path, level, false, err) : VT_OK;
}

/* ---- the thread ------------------------------------------------------- */

static void decode_waiting(struct tap_recorder *r)
{
    struct vt_inbox_item *next, *at = vt_inbox_take(&r->inbox);

    for (; at; at = next) {
        struct tap_item *item = (struct tap_item *)at;

        next = at->next;
        tap_decode(r, item);
        atomic_fetch_sub_explicit(&r->waiting_bytes, item->cost, memory_order_relaxed);
        tap_item_free(item);
    }
    tap_output_flush(r, &r->wire);
    tap_output_flush(r, &r->stats);
}

static void *record_until_end(void *arg)
{
    struct tap_recorder *r = arg;
    struct pollfd wake = {.fd = r->inbox.fd, .events = POLLIN};
    bool last;

    /* Of this thread alone, on Linux: forwarding goes before recording. */
    setpriority(PRIO_PROCESS, 0, NICE);
    do {
        poll(&wake, 1, -1);
        vt_inbox_calm(&r->inbox);
        last = atomic_load(&r->ending);
        decode_waiting(r);
        if (!last)
            vt_sleep_ns(NAP_NS);
    } while (!last);
    return NULL;
}

int tap_recorder_start(struct tap_recorder *r, struct tap_stamp zero,
                       struct vt_err *err)
{
    const struct vt_tap_config *c = r->config;
    sigset_t all, before;
    int rc;

    r->zero = zero;
    if ((rc = open_file(&r->trace, c->trace_out, SMALL, err)) ||
        (rc = open_file(&r->wire, c->wire_out, FAST, err)) ||
        (rc = open_file(&r->stats, c->step_stats_out, SMALL, err)))
        return rc;
    /* Signals are for the forwarder's thread, whose waiting they interrupt. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&r->thread, NULL, record_until_end, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return vt_fail(err, VT_EIO, "cannot start a thread: %s", strerror(rc));
    r->running = true;
    return VT_OK;
}

/* ---- the whole -------------------------------------------------------- */

int tap_recorder_new(struct tap_recorder **out, const struct vt_tap_config *c,
                     struct tap_log *log, struct vt_err *err)
{
    const char *const path[] = {c->trace_out, c->wire_out, c->step_stats_out};
    struct tap_recorder *r;
    int rc;

    *out = NULL;
    for (size_t i = 0; i < VT_COUNT(path); i++) {
        if (path[i] && (rc = check_output(path[i], c->overwrite, err)))
            return rc;
        for (size_t k = 0; k < i; k++)
            if (path[i] && path[k] && strcmp(path[i], path[k]) == 0)
                return vt_fail(err, VT_EINPUT, "%s would be written twice", path[i]);
    }
    r = calloc(1, sizeof(*r));
    if (!r)
        return vt_nomem(err);
    r->config = c;
    r->log = log;
    r->max_waiting = c->max_backlog_bytes ? c->max_backlog_bytes : DEFAULT_BACKLOG;
    r->block_size = c->block_size ? c->block_size : DEFAULT_BLOCK_SIZE;
    rc = vt_inbox_open(&r->inbox, err);
    if (rc != VT_OK) {
        free(r);
        return rc;
    }
    *out = r;
    return VT_OK;
}

/* The first thing that went wrong is told. */
static int finish_files(struct tap_recorder *r, struct vt_err *err)
{
    struct tap_output *const file[] = {&r->trace, &r->wire, &r->stats};
    struct vt_err first = r->failure, why;
    bool failed = first.code != VT_OK;

    for (size_t i = 0; i < VT_COUNT(file); i++) {
        tap_output_flush(r, file[i]);
        if (vt_append_close(file[i]->file, &why) != VT_OK && !failed) {
            first = why;
            failed = true;
        }
        vt_buf_free(&file[i]->lines);
    }
    return failed ? vt_fail(err, VT_EIO, "%s", first.msg) : VT_OK;
}

int tap_recorder_end(struct tap_recorder *r, bool discard, uint64_t missed,
                     struct vt_tap_summary *sum, struct vt_err *err)
{
    struct vt_inbox_item *next;
    bool ran;
    int rc;

    if (!r)
        return VT_OK;
    ran = r->running;
    if (ran) {
        atomic_store(&r->ending, true);
        (void)eventfd_write(r->inbox.fd, 1);
        pthread_join(r->thread, NULL);
    }
    if (missed > 0)
        tap_decode_missed(r);
    if (ran) {
        tap_abort_all(r, TAP_NO_ENGINE, "tap");
        tap_decode_meta(r);
    } else if (!discard && r->config->wire_out && atomic_load(&r->inbox.newest)) {
        /* Nobody registered: there is no trace, but a log may tell why. */
        struct vt_err why;

        if (open_file(&r->wire, r->config->wire_out, FAST, &why) != VT_OK)
            tap_recorder_failed(r, &why);
        decode_waiting(r);
    }
    for (struct vt_inbox_item *at = vt_inbox_take(&r->inbox); at; at = next) {
        next = at->next;
        tap_item_free((struct tap_item *)at);
    }
    rc = finish_files(r, err);
    sum->requests = r->sum.requests;
    sum->aborted = r->sum.aborted;
    sum->undecodable = r->sum.undecodable;
    sum->incomplete = r->sum.incomplete;
    vt_inbox_close(&r->inbox);
    tap_requests_free(&r->requests);
    free(r->in_flight);
    vt_map_free(&r->written);
    vt_buf_free(&r->registration);
    vt_arena_free(&r->arena);
    free(r);
    return rc;
}
