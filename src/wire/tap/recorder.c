/* recorder.c - the thread that decodes what was forwarded, and its files. */
#include "wire/tap/tap.h"

#include <errno.h>
#include <poll.h>
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

/* A durable recording takes one message at least, however long that is: it may not be
 * left out. */
bool tap_recorder_put(struct tap_recorder *r, struct tap_item *item)
{
    size_t waiting = atomic_load_explicit(&r->waiting_bytes, memory_order_relaxed);
    bool alone = r->config->durable && waiting == 0;

    if (waiting + item->cost > r->max_waiting && !alone)
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
static int check_output(const struct vt_tap_config *c, const char *path,
                        struct vt_err *err)
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
    if (S_ISREG(st.st_mode) && !c->overwrite && !c->append)
        return vt_fail(err, VT_EINPUT,
                       "%s is there already; --overwrite replaces it, --append goes on "
                       "with it",
                       path);
    if (access(path, W_OK) != 0)
        return vt_fail(err, VT_EINPUT, "%s: cannot write: %s", path, strerror(errno));
    return VT_OK;
}

static int open_file(struct tap_recorder *r, struct tap_output *f, const char *path,
                     int level, struct vt_err *err)
{
    if (!path || f->file)
        return VT_OK;
    return vt_append_open(&f->file, path, level, r->config->append, err);
}

/* What the trace has, where it is to be gone on with. */
static int read_old_trace(struct tap_recorder *r, struct vt_err *err)
{
    const char *path = r->config->trace_out;
    struct stat st;

    if (!r->config->append || !path || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return VT_OK;
    return tap_resume_read(r, path, err);
}

/* ---- the thread ------------------------------------------------------- */

static void release_held(struct tap_recorder *r)
{
    if (r->config->durable)
        (void)eventfd_write(r->released_fd, 1);
}

static void decode_waiting(struct tap_recorder *r)
{
    struct vt_inbox_item *next, *at = vt_inbox_take(&r->inbox);

    for (; at; at = next) {
        struct tap_item *item = (struct tap_item *)at;
        uint64_t before = r->sum.requests;

        next = at->next;
        tap_decode(r, item);
        atomic_fetch_add_explicit(&r->n_written, 1, memory_order_release);
        if (r->sum.requests != before)
            release_held(r);
        atomic_fetch_sub_explicit(&r->waiting_bytes, item->cost, memory_order_relaxed);
        tap_item_free(item);
    }
    release_held(r); /* also of requests that the trace does not have */
    tap_output_flush(r, &r->wire);
    tap_output_flush(r, &r->stats);
}

/* Until the next batch: not at all once a message is held up for what waits. */
static void nap(struct tap_recorder *r)
{
    eventfd_t ignored;

    if (!r->config->durable)
        vt_sleep_ns(NAP_NS);
    else if (vt_wait_fd(r->hurry_fd, vt_wall_ns() + NAP_NS))
        (void)eventfd_read(r->hurry_fd, &ignored);
}

static void *record_until_end(void *arg)
{
    struct tap_recorder *r = arg;
    struct pollfd wake = {.fd = r->inbox.fd, .events = POLLIN};
    bool last;

    /* Of this thread alone, on Linux: forwarding goes before recording, or it would
     * feel every batch where processors are few (bench/tap). A durable recording waits
     * for this thread, so there both are alike. */
    if (!r->config->durable)
        setpriority(PRIO_PROCESS, 0, NICE);
    do {
        poll(&wake, 1, -1);
        vt_inbox_calm(&r->inbox);
        last = atomic_load(&r->ending);
        decode_waiting(r);
        if (!last)
            nap(r);
    } while (!last);
    return NULL;
}

int tap_recorder_start(struct tap_recorder *r, struct tap_stamp now,
                       struct mp_span registration, struct vt_err *err)
{
    const struct vt_tap_config *c = r->config;
    int rc;

    r->zero = now;
    tap_decode_registration(r, registration);
    if (r->old.meta) {
        r->zero = tap_resume_zero(r, now);
        r->meta_written = true;
        if ((rc = tap_resume_check(r, err)))
            return rc;
        tap_tell(r->log, "%s goes on behind %llu requests", c->trace_out,
                 (unsigned long long)r->n_rows);
    }
    if ((rc = open_file(r, &r->trace, c->trace_out, SMALL, err)) ||
        (rc = open_file(r, &r->wire, c->wire_out, FAST, err)) ||
        (rc = open_file(r, &r->stats, c->step_stats_out, SMALL, err)))
        return rc;
    if ((rc = vt_thread_start(&r->thread, record_until_end, r, err)))
        return rc;
    r->running = true;
    return VT_OK;
}

/* ---- the whole -------------------------------------------------------- */

static int open_signals(struct tap_recorder *r, struct vt_err *err)
{
    r->hurry_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    r->released_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return r->hurry_fd >= 0 && r->released_fd >= 0
               ? VT_OK
               : vt_fail(err, VT_EIO, "eventfd: %s", strerror(errno));
}

static void recorder_free(struct tap_recorder *r)
{
    vt_inbox_close(&r->inbox);
    if (r->hurry_fd >= 0)
        close(r->hurry_fd);
    if (r->released_fd >= 0)
        close(r->released_fd);
    tap_requests_free(&r->requests);
    free(r->in_flight);
    vt_map_free(&r->written);
    vt_buf_free(&r->registration);
    vt_arena_free(&r->arena);
    vt_arena_free(&r->old.arena);
    free(r);
}

int tap_recorder_new(struct tap_recorder **out, const struct vt_tap_config *c,
                     struct tap_log *log, struct vt_err *err)
{
    const char *const path[] = {c->trace_out, c->wire_out, c->step_stats_out};
    struct tap_recorder *r;
    int rc;

    *out = NULL;
    for (size_t i = 0; i < VT_COUNT(path); i++) {
        if (path[i] && (rc = check_output(c, path[i], err)))
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
    r->hurry_fd = r->released_fd = -1;
    rc = vt_inbox_open(&r->inbox, err);
    if (rc == VT_OK && c->durable)
        rc = open_signals(r, err);
    if (rc == VT_OK)
        rc = read_old_trace(r, err);
    if (rc != VT_OK) {
        recorder_free(r);
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

        if (open_file(r, &r->wire, r->config->wire_out, FAST, &why) != VT_OK)
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
    recorder_free(r);
    return rc;
}
