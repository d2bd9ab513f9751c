/* perfetto.c - a Chrome trace: requests on lanes, counters, engine steps. Times in it
 * are microseconds. Process 1 holds requests, process 2 the engine. */
#include <inttypes.h>

#include "report/report.h"

struct writer {
    struct vt_out *out;
    struct vt_buf b;
    int rc;
    struct vt_err *err;
};

static void flush_if_long(struct writer *w, bool all)
{
    if (w->rc == VT_OK)
        w->rc = vt_out_flush(w->out, &w->b, all, w->err);
}

/* Microseconds, exact to the nanosecond. */
static void put_us(struct vt_jw *j, const char *key, vt_ns t)
{
    vt_jw_key(j, key);
    vt_buf_i64(j->b, t / VT_US);
    if (t % VT_US)
        vt_buf_printf(j->b, ".%03d", (int)(t % VT_US));
}

/* ---- events ----------------------------------------------------------- */

/* The caller adds what the event has, and its `args` if any, and ends it. */
static struct vt_jw open_event(struct writer *w, const char *phase, int pid, size_t tid,
                               vt_ns at)
{
    struct vt_jw j;

    vt_buf_str(&w->b, ",\n");
    vt_jw_init(&j, &w->b, NULL);
    vt_jw_map(&j, NULL);
    vt_jw_str(&j, "ph", phase);
    vt_jw_u64(&j, "pid", (uint64_t)pid);
    vt_jw_u64(&j, "tid", tid);
    put_us(&j, "ts", at);
    return j;
}

static struct vt_jw open_span(struct writer *w, int pid, size_t tid, vt_ns at,
                              vt_ns took, const char *category)
{
    struct vt_jw j = open_event(w, "X", pid, tid, at);

    put_us(&j, "dur", took);
    vt_jw_str(&j, "cat", category);
    return j;
}

static void close_event(struct writer *w, struct vt_jw *j)
{
    vt_jw_end(j); /* args */
    vt_jw_end(j);
    flush_if_long(w, false);
}

static void put_name(struct writer *w, const char *what, int pid, size_t tid,
                     const char *name)
{
    vt_buf_printf(&w->b,
                  "%s{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%zu,\"args\":"
                  "{\"name\":\"%s\"}}",
                  w->b.len > 0 && w->b.data[w->b.len - 1] == '[' ? "\n" : ",\n", what,
                  pid, tid, name);
}

static void put_counter(struct writer *w, const char *name, int pid, vt_ns at, double v)
{
    struct vt_jw j = open_event(w, "C", pid, 0, at);

    vt_jw_str(&j, "name", name);
    vt_jw_map(&j, "args");
    vt_jw_f64(&j, "value", v);
    close_event(w, &j);
}

/* ---- requests --------------------------------------------------------- */

static vt_ns end_of(const struct vt_record *q)
{
    return q->arrival_ns + q->ttft_ns + vt_record_decode_ns(q);
}

static void put_request(struct writer *w, const struct vt_record *q, size_t lane)
{
    struct vt_jw j = open_span(w, 1, lane, q->arrival_ns, q->ttft_ns, "prefill");
    vt_ns at = q->arrival_ns + q->ttft_ns;
    uint32_t rest = 0;

    for (uint32_t i = 0; i < q->n_gaps; i++)
        rest += q->gap_tokens ? q->gap_tokens[i] : 1;
    vt_jw_str(&j, "cname", "rail_animation");
    vt_jw_str(&j, "name", q->id);
    vt_jw_map(&j, "args");
    vt_jw_u64(&j, "prompt_tokens", q->prompt_tokens);
    vt_jw_u64(&j, "cached_tokens", q->cached_tokens);
    vt_jw_u64(&j, "output_tokens", q->output_tokens);
    vt_jw_u64(&j, "first_chunk_tokens", q->output_tokens - rest);
    vt_jw_ms(&j, "ttft_ms", q->ttft_ns);
    if (q->finish_reason)
        vt_jw_str(&j, "finish_reason", q->finish_reason);
    close_event(w, &j);
    for (uint32_t i = 0; i < q->n_gaps && w->rc == VT_OK; i++) {
        uint32_t tokens = q->gap_tokens ? q->gap_tokens[i] : 1;
        vt_ns gap = vt_record_gap(q, i);

        j = open_span(w, 1, lane, at, gap, "decode");
        vt_jw_str(&j, "cname", "thread_state_running");
        if (tokens > 1)
            vt_jw_printf(&j, "name", "\"decode x%u\"", tokens);
        else
            vt_jw_str(&j, "name", "decode");
        vt_jw_map(&j, "args");
        vt_jw_str(&j, "request", q->id);
        vt_jw_ms(&j, "gap_ms", gap);
        vt_jw_u64(&j, "tokens", tokens);
        if (q->gap_running) {
            vt_jw_u64(&j, "num_running", q->gap_running[i]);
            vt_jw_u64(&j, "prefill_tokens", q->gap_prefill[i]);
        }
        close_event(w, &j);
        at += gap;
    }
}

static bool is_shown(const struct vt_record *q)
{
    return q->arrival_ns >= 0 && q->ttft_ns >= 0;
}

static void put_requests(struct writer *w, const struct vt_records *r, size_t *left_out)
{
    vt_ns *free_at = NULL; /* of each lane; the lowest that is free is taken */
    size_t n = 0, cap = 0;
    char name[32];

    for (size_t i = 0; i < r->n; i++) {
        const struct vt_record *q = &r->rec[i];
        size_t lane = 0;

        if (!is_shown(q)) {
            (*left_out)++;
            continue;
        }
        while (lane < n && free_at[lane] > q->arrival_ns)
            lane++;
        if (lane == n) {
            w->rc = vt_grow(&free_at, &cap, ++n, sizeof(*free_at), w->err);
            if (w->rc != VT_OK)
                break;
            snprintf(name, sizeof(name), "lane %zu", lane + 1);
            put_name(w, "thread_name", 1, lane + 1, name);
        }
        free_at[lane] = end_of(q);
        put_request(w, q, lane + 1);
        if (w->rc != VT_OK)
            break;
    }
    free(free_at);
}

/* ---- requests in flight ----------------------------------------------- */

struct change {
    vt_ns at;
    int by;
};

static int by_time(const void *pa, const void *pb)
{
    const struct change *a = pa, *b = pb;

    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->by - b->by; /* ends before arrivals */
}

static void put_in_flight(struct writer *w, const struct vt_records *r)
{
    struct change *c = malloc((2 * r->n + 1) * sizeof(*c));
    size_t n = 0;
    int now = 0;

    if (!c) {
        w->rc = vt_nomem(w->err);
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (!is_shown(&r->rec[i]))
            continue;
        c[n++] = (struct change){r->rec[i].arrival_ns, 1};
        c[n++] = (struct change){end_of(&r->rec[i]), -1};
    }
    qsort(c, n, sizeof(*c), by_time);
    for (size_t i = 0; i < n && w->rc == VT_OK; i++) {
        now += c[i].by;
        if (i + 1 == n || c[i + 1].at != c[i].at)
            put_counter(w, "requests in flight", 1, c[i].at, now);
    }
    free(c);
}

/* ---- steps ------------------------------------------------------------ */

static void put_step(struct writer *w, const struct vt_step_line *s, vt_ns from)
{
    struct vt_jw j = open_span(w, 2, 1, from, s->out_ns - from, "step");
    uint64_t tokens = 0;

    for (uint32_t i = 0; i < s->n_prefill; i++)
        tokens += s->prefill[i].tokens;
    vt_jw_str(&j, "cname",
              s->n_prefill > 0 ? "rail_animation" : "thread_state_running");
    if (s->n_prefill == 0)
        vt_jw_printf(&j, "name", "\"decode B%u\"", s->decodes);
    else if (s->decodes == 0)
        vt_jw_printf(&j, "name", "\"prefill (+%ur %" PRIu64 "t)\"", s->n_prefill,
                     tokens);
    else
        vt_jw_printf(&j, "name", "\"prefill+decode B%u (+%ur %" PRIu64 "t)\"",
                     s->decodes, s->n_prefill, tokens);
    vt_jw_map(&j, "args");
    vt_jw_u64(&j, "step", s->step);
    vt_jw_u64(&j, "running", s->running);
    vt_jw_u64(&j, "waiting", s->waiting);
    vt_jw_u64(&j, "prefill_requests", s->n_prefill);
    vt_jw_u64(&j, "prefill_tokens", tokens);
    vt_jw_u64(&j, "decode_ctx", s->decode_ctx);
    vt_jw_u64(&j, "preempted", s->n_preempted);
    vt_jw_ms(&j, "step_ms", s->out_ns - from);
    close_event(w, &j);
    j = open_span(w, 2, 2, s->sched_ns, s->sched_end_ns - s->sched_ns, "schedule");
    vt_jw_printf(&j, "name", "\"schedule %" PRIu64 "\"", s->step);
    vt_jw_end(&j);
    put_counter(w, "running", 2, s->out_ns, s->running);
    put_counter(w, "waiting", 2, s->sched_ns, s->waiting);
    put_counter(w, "prefill tokens", 2, s->out_ns, (double)tokens);
    put_counter(w, "KV in use", 2, s->out_ns, s->kv_usage);
}

static void put_steps(struct writer *w, const struct vt_steps *steps)
{
    vt_ns last = 0;

    put_name(w, "process_name", 2, 0, "engine");
    put_name(w, "thread_name", 2, 1, "steps");
    put_name(w, "thread_name", 2, 2, "schedule()");
    for (size_t i = 0; i < steps->n && w->rc == VT_OK; i++) {
        const struct vt_step_line *s = &steps->step[i];
        vt_ns from = i > 0 && last > s->sched_ns ? last : s->sched_ns;

        if (s->out_ns >= from && s->sched_end_ns >= s->sched_ns)
            put_step(w, s, from);
        last = s->out_ns;
    }
}

int vt_perfetto_write(const struct vt_records *r, const struct vt_steps *steps,
                      const char *path, size_t *left_out, struct vt_err *err)
{
    struct writer w = {.err = err};

    *left_out = 0;
    w.rc = vt_out_open(&w.out, path, err);
    if (w.rc != VT_OK)
        return w.rc;
    vt_buf_str(&w.b, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    put_name(&w, "process_name", 1, 0, "requests");
    put_requests(&w, r, left_out);
    if (w.rc == VT_OK)
        put_in_flight(&w, r);
    if (w.rc == VT_OK && steps)
        put_steps(&w, steps);
    vt_buf_str(&w.b, "\n]}\n");
    flush_if_long(&w, true);
    vt_buf_free(&w.b);
    return vt_out_end(w.out, w.rc, err);
}
