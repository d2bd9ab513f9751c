/* cmd_inspect_spans.c - what OpenTelemetry spans hold and lack, beyond the requests and
 * steps that they are read as. */
#include "cli/cmd/inspect.h"

bool inspect_is_spans(const char *path)
{
    enum vt_file kind;
    struct vt_err ignored;

    return vt_file_kind(path, &kind, &ignored) == VT_OK && kind == VT_FILE_SPANS;
}

static int open_spans(struct vt_otlp **o, const char *path, struct vt_err *err)
{
    static const struct vt_otlp_options options = {VT_STEP_INTERVAL, true};
    int rc = vt_otlp_new(o, &options, err);

    if (rc == VT_OK && !(rc = vt_otlp_add_file(*o, path, err)))
        rc = vt_otlp_finish(*o, err);
    return rc;
}

bool inspect_has_steps(const char *path)
{
    struct vt_otlp *o = NULL;
    struct vt_err ignored;
    bool has = false;

    if (inspect_is_spans(path) && open_spans(&o, path, &ignored) == VT_OK)
        for (size_t i = 0; i < vt_otlp_captures(o); i++)
            has |= vt_otlp_capture(o, i)->steps.n > 0;
    vt_otlp_free(o);
    return has;
}

bool inspect_tells_kv_alone(const char *path)
{
    struct vt_otlp *o = NULL;
    struct vt_err ignored;
    uint64_t n = 0;

    if (inspect_is_spans(path) && open_spans(&o, path, &ignored) == VT_OK &&
        vt_otlp_captures(o) == 0)
        for (size_t i = 0; i < VT_KV_EVENTS; i++)
            n += vt_otlp_stats(o)->kv_events[i];
    vt_otlp_free(o);
    return n > 0;
}

/* ---- KV-cache events ---------------------------------------------------- */

enum sort { STORED, STORES, LOADS, SORTS };

struct tally {
    size_t n, timed;
    uint64_t blocks, timed_blocks;
    double ms;
};

static enum sort sort_of(const struct vt_otlp_kv *kv)
{
    return kv->kind == VT_KV_STORE_COMMITTED ? STORED : kv->to_gpu ? LOADS : STORES;
}

/* A transfer counts once, by its end; one that only began, by its beginning. */
static bool counts(const struct vt_otlp_kv *kv)
{
    return kv->kind != VT_KV_TRANSFER_INITIATED;
}

static void add(struct tally *t, const struct vt_otlp_kv *kv)
{
    t->n++;
    t->blocks += kv->blocks;
    if (kv->took_ns < 0)
        return;
    t->timed++;
    t->timed_blocks += kv->blocks;
    t->ms += 1e-6 * (double)kv->took_ns;
}

static void put_tally(struct vt_buf *b, const char *what, const struct tally *t)
{
    if (t->n == 0)
        return;
    vt_buf_printf(b, "  %-10s %8zu events, %llu blocks", what, t->n,
                  (unsigned long long)t->blocks);
    if (t->timed > 0)
        vt_buf_printf(b, ", %.3f ms each, %.3f ms a block", t->ms / (double)t->timed,
                      t->timed_blocks > 0 ? t->ms / (double)t->timed_blocks : 0);
    vt_buf_char(b, '\n');
}

enum { SHOWN = 20 }; /* steps */

static void put_steps(struct vt_buf *b, const struct vt_otlp_capture *c)
{
    size_t shown = 0, steps = 0;

    vt_buf_printf(b, "  %10s %8s %8s %8s %10s %10s\n", "step", "stored", "stores",
                  "loads", "stores ms", "loads ms");
    for (size_t i = 0, to; i < c->n_kv; i = to) {
        struct tally t[SORTS] = {{0}};

        for (to = i; to < c->n_kv && c->kv[to].step == c->kv[i].step; to++)
            if (counts(&c->kv[to]))
                add(&t[sort_of(&c->kv[to])], &c->kv[to]);
        if (t[STORED].n + t[STORES].n + t[LOADS].n == 0)
            continue;
        steps++;
        if (shown == SHOWN)
            continue;
        shown++;
        vt_buf_printf(b, "  %10llu %8llu %8llu %8llu %10.3f %10.3f\n",
                      (unsigned long long)c->kv[i].step,
                      (unsigned long long)t[STORED].blocks,
                      (unsigned long long)t[STORES].blocks,
                      (unsigned long long)t[LOADS].blocks, t[STORES].ms, t[LOADS].ms);
    }
    if (steps > shown)
        vt_buf_printf(b, "  and %zu steps more\n", steps - shown);
}

static void put_kv(struct vt_buf *b, const struct vt_otlp_capture *c)
{
    struct tally t[SORTS] = {{0}};

    if (c->n_kv == 0)
        return;
    for (size_t i = 0; i < c->n_kv; i++)
        if (counts(&c->kv[i]))
            add(&t[sort_of(&c->kv[i])], &c->kv[i]);
    vt_buf_printf(b, "KV-cache events of %s\n", c->name);
    put_tally(b, "stored", &t[STORED]);
    put_tally(b, "stores", &t[STORES]);
    put_tally(b, "loads", &t[LOADS]);
    put_steps(b, c);
}

int inspect_spans_kv(const char *path, struct vt_buf *b, struct vt_err *err)
{
    struct vt_otlp *o = NULL;
    int rc = open_spans(&o, path, err);

    for (size_t i = 0; rc == VT_OK && i < vt_otlp_captures(o); i++)
        put_kv(b, vt_otlp_capture(o, i));
    vt_otlp_free(o);
    return rc;
}

/* ---- the check ------------------------------------------------------------ */

static void put_found(struct vt_buf *b, const char *path, const struct vt_otlp *o)
{
    const struct vt_otlp_stats *s = vt_otlp_stats(o);
    static const char *const kv[] = {"CacheStoreCommitted", "TransferInitiated",
                                     "TransferCompleted", "other KV-cache events"};

    vt_buf_printf(b,
                  "%s: OpenTelemetry spans: %llu of the API server, %llu of requests, "
                  "%llu of steps, %llu of upstream's, %llu others\n",
                  path, (unsigned long long)s->api_spans,
                  (unsigned long long)s->core_spans, (unsigned long long)s->step_spans,
                  (unsigned long long)s->call_spans,
                  (unsigned long long)s->other_spans);
    for (size_t i = 0; i < vt_otlp_captures(o); i++) {
        const struct vt_otlp_capture *c = vt_otlp_capture(o, i);

        vt_buf_printf(b, "  %s: %zu requests, %zu with times; %zu steps\n", c->name,
                      c->n_journeys, c->work.n, c->steps.n);
    }
    if (s->missing_steps > 0)
        vt_buf_printf(b, "  %llu steps are missing, in %llu holes\n",
                      (unsigned long long)s->missing_steps,
                      (unsigned long long)s->holes);
    if (s->repeated > 0)
        vt_buf_printf(b, "  %llu spans and steps came again\n",
                      (unsigned long long)s->repeated);
    for (size_t i = 0; i < VT_KV_EVENTS; i++)
        if (s->kv_events[i] > 0)
            vt_buf_printf(b, "  %llu %s\n", (unsigned long long)s->kv_events[i], kv[i]);
}

int inspect_spans_check(const char *path, bool all, struct vt_buf *b,
                        struct vt_err *err)
{
    const struct vt_otlp_stats *s;
    struct vt_otlp *o = NULL;
    int rc = open_spans(&o, path, err);

    if (rc == VT_OK) {
        s = vt_otlp_stats(o);
        put_found(b, path, o);
        for (size_t i = 0; all && i < s->n_reasons; i++)
            printf("%s\n", s->reason[i]);
        if (s->malformed > 0)
            rc = vt_fail(err, VT_EINPUT, "%s (%llu spans are malformed)", s->reason[0],
                         (unsigned long long)s->malformed);
    }
    vt_otlp_free(o);
    return rc;
}
