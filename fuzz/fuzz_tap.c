/* Any messages as what a recorder has forwarded: whatever they hold, the trace and the
 * log that come of them can be read again.
 *
 * The input is a list of messages: what it is, client, engine and number of frames (a
 * byte each), then for each frame its length (two bytes, the lower one first) and its
 * bytes. */
#define _GNU_SOURCE /* memfd_create */

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/tap/tap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FRAMES = 4, MAX_MESSAGES = 200 };

struct input {
    const uint8_t *at;
    size_t left;
};

static uint32_t byte(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

static struct mp_span frame(struct input *in)
{
    size_t len = byte(in);
    struct mp_span s;

    len |= (size_t)byte(in) << 8;
    if (len > in->left)
        len = in->left;
    s = (struct mp_span){in->at, len};
    in->at += len;
    in->left -= len;
    return s;
}

static void one_message(struct tap_recorder *r, struct input *in, uint64_t seq)
{
    struct tap_item *item =
        calloc(1, sizeof(*item) + MAX_FRAMES * sizeof(item->frame[0]));

    assert(item);
    item->what = byte(in) % (TAP_FRONTEND_LOST + 1);
    item->client = byte(in) % 2;
    item->engine = byte(in) % 3;
    item->n_frames = byte(in) % (MAX_FRAMES + 1);
    item->n_frames += item->n_frames == 0; /* libzmq knows no message without */
    item->seq = seq;
    item->at = (struct tap_stamp){(vt_ns)seq * VT_MS, VT_SEC};
    for (uint32_t i = 0; i < item->n_frames; i++)
        item->frame[i] = frame(in);
    tap_decode(r, item);
    free(item);
}

static struct vt_append *memory_file(char path[64], int *fd)
{
    struct vt_append *f;
    struct vt_err err;

    *fd = memfd_create("fuzz", MFD_CLOEXEC);
    assert(*fd >= 0);
    snprintf(path, 64, "/proc/self/fd/%d", *fd);
    if (vt_append_open(&f, path, 1, false, &err) != VT_OK)
        abort();
    return f;
}

static void check_trace(const char *path)
{
    struct vt_records r;
    struct vt_workload w;
    struct vt_err err;

    if (vt_records_load(&r, path, &err) == VT_OK)
        vt_records_free(&r);
    else
        assert(strstr(err.msg, "no requests"));
    if (vt_trace_load(&w, path, &err) == VT_OK)
        vt_workload_free(&w);
    else
        assert(strstr(err.msg, "no requests") || strstr(err.msg, "is empty"));
}

static void check_log(const char *path)
{
    const struct wirelog_entry *e;
    struct wirelog *log;
    struct vt_err err;

    if (wirelog_open(&log, path, &err) != VT_OK)
        abort();
    do {
        if (wirelog_next(log, &e, &err) != VT_OK) {
            fprintf(stderr, "%s\n", err.msg);
            abort();
        }
    } while (e);
    wirelog_close(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_tap_config c = {.record_tokens = true};
    struct tap_log log = {.config = &c};
    struct tap_recorder r = {.config = &c, .log = &log, .block_size = 16};
    struct input in = {data, size};
    char trace[64], wire[64];
    int fd[2];

    r.trace.file = memory_file(trace, &fd[0]);
    r.wire.file = memory_file(wire, &fd[1]);
    for (uint64_t i = 0; in.left > 0 && i < MAX_MESSAGES; i++)
        one_message(&r, &in, i);
    tap_abort_all(&r, TAP_NO_ENGINE, "tap");
    tap_decode_meta(&r);
    tap_output_flush(&r, &r.wire);
    if (vt_append_close(r.trace.file, NULL) || vt_append_close(r.wire.file, NULL))
        abort();
    check_trace(trace);
    check_log(wire);
    close(fd[0]);
    close(fd[1]);
    vt_buf_free(&r.trace.lines);
    vt_buf_free(&r.wire.lines);
    vt_buf_free(&r.stats.lines);
    vt_buf_free(&r.registration);
    tap_requests_free(&r.requests);
    free(r.in_flight);
    free(r.written.cell);
    vt_arena_free(&r.arena);
    return 0;
}
