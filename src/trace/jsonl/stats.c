/* stats.c - what a recorder writes of the scheduler's statistics, and the steps that
 * they show together with the trace of the same recording.
 *
 *     {"ts_ms":81.2,"engine":0,"client":0,"timestamp":4616.3,
 *      "scheduler":{"num_running_reqs":2,"num_waiting_reqs":0,"kv_cache_usage":0.1,...}}
 *
 * An engine tells them once for each step, with the step's tokens in the same message,
 * so a token's time in the trace is its line's. What the trace alone cannot show are
 * steps that computed part of a prompt and gave no token: here they have lines too. */
#include <stdlib.h>

#include "trace/jsonl/jsonl.h"

/* Times were rounded to nanoseconds on both sides; gaps add up. */
enum { SAME_MESSAGE_NS = 20 * 1000 };

struct told { /* one line */
    vt_ns at;
    uint32_t running, waiting;
    double kv_usage;
};

struct stats {
    const struct vt_workload *w;
    struct told *told;
    size_t n, cap;
    uint32_t engine; /* of all lines */
    struct vt_token *token;
    size_t n_tokens;
    uint32_t *pieces; /* of each request: steps before the one with its first token */
};

/* ---- lines ------------------------------------------------------------ */

static int read_row(void *user, struct trace_reader *r, const struct vt_node *row,
                    struct vt_err *err)
{
    struct stats *s = user;
    const struct vt_node *scheduler = vt_get_non_null(row, "scheduler");
    struct told t = {.at = -1};
    uint32_t engine = 0;
    int rc;

    (void)r;
    if (!scheduler)
        return VT_OK;
    if ((rc = jsonl_get_ms(row, "ts_ms", &t.at, err)) ||
        (rc = jsonl_get_u32(row, "engine", 0, UINT32_MAX, &engine, err)) ||
        (rc = jsonl_get_u32(scheduler, "num_running_reqs", 0, INT32_MAX, &t.running,
                            err)) ||
        (rc = jsonl_get_u32(scheduler, "num_waiting_reqs", 0, INT32_MAX, &t.waiting,
                            err)) ||
        (vt_get_non_null(scheduler, "kv_cache_usage") &&
         (rc = vt_get_f64(scheduler, "kv_cache_usage", VT_REQUIRED, 0, 1, &t.kv_usage,
                          err))))
        return rc;
    if (t.at < 0 || (s->n > 0 && t.at < s->told[s->n - 1].at))
        return jsonl_bad_field(row, "ts_ms", "is missing or goes back", err);
    if (s->n > 0 && engine != s->engine)
        return vt_fail(err, VT_EINPUT,
                       "line %u: statistics of several engines, whose requests the "
                       "trace does not tell apart",
                       row->line);
    s->engine = engine;
    rc = vt_grow(&s->told, &s->cap, s->n + 1, sizeof(*s->told), err);
    if (rc == VT_OK)
        s->told[s->n++] = t;
    return rc;
}

/* ---- steps ------------------------------------------------------------ */

/* The request whose prompt was computed when no token came: who came first, of those
 * that still wait for theirs. SIZE_MAX: nobody does. */
static size_t prompt_at(const struct stats *s, vt_ns at)
{
    const struct vt_workload *w = s->w;

    for (size_t i = 0; i < w->n && w->req[i].arrival_ns < at; i++)
        if (w->req[i].arrival_ns + w->measured[i].ttft_ns > at)
            return i;
    return SIZE_MAX;
}

/* Tokens of the message at [*from, ...) that came at `at`; *from moves behind them. */
static size_t count_tokens(const struct stats *s, size_t *from, vt_ns at)
{
    size_t first = *from;

    while (*from < s->n_tokens && s->token[*from].at <= at + SAME_MESSAGE_NS)
        ++*from;
    return *from - first;
}

/* Requests before a lost line are nobody's, and then the two are not of one recording.
 */
static int check_same_recording(const struct stats *s, struct vt_err *err)
{
    size_t next = 0, found = 0;

    for (size_t i = 0; i < s->n; i++) {
        while (next < s->n_tokens &&
               s->token[next].at < s->told[i].at - SAME_MESSAGE_NS)
            next++;
        found += count_tokens(s, &next, s->told[i].at);
    }
    if (10 * found < 9 * s->n_tokens)
        return vt_fail(err, VT_EINPUT,
                       "of %zu tokens in the trace %zu came with a line of these "
                       "statistics: it is another recording",
                       s->n_tokens, found);
    return VT_OK;
}

static void count_pieces(struct stats *s)
{
    size_t next = 0;

    for (size_t i = 0; i < s->n; i++) {
        size_t who;

        while (next < s->n_tokens &&
               s->token[next].at < s->told[i].at - SAME_MESSAGE_NS)
            next++;
        if (count_tokens(s, &next, s->told[i].at) > 0 || s->told[i].running == 0)
            continue;
        who = prompt_at(s, s->told[i].at);
        if (who != SIZE_MAX)
            s->pieces[who]++;
    }
}

/* One piece of a prompt that took several steps; they are taken to be equal. */
static struct vt_step_prefill piece_of(const struct stats *s, size_t who,
                                       uint32_t piece)
{
    const struct vt_work *r = &s->w->req[who];
    uint32_t cached = s->w->measured[who].cached_tokens,
             all = r->prompt_tokens - cached;
    uint32_t n = s->pieces[who] + 1;
    uint32_t from = (uint32_t)((uint64_t)all * piece / n);
    uint32_t to = (uint32_t)((uint64_t)all * (piece + 1) / n);

    return (struct vt_step_prefill){r->id, cached + from, to - from, r->prompt_tokens};
}

/* With two steps in flight a step is scheduled when the one before the last is handed
 * out; when nothing was in flight, when its first request came. */
static vt_ns scheduled_at(const struct vt_steps *out, vt_ns arrival, uint32_t decodes)
{
    vt_ns last = out->n > 0 ? out->step[out->n - 1].out_ns : 0;

    if (decodes == 0 && arrival >= last)
        return arrival;
    return out->n > 1 ? out->step[out->n - 2].out_ns : 0;
}

static int add_step(struct stats *s, struct vt_steps *out, const struct told *t,
                    const struct vt_token *token, size_t n, uint32_t *done,
                    struct vt_err *err)
{
    size_t who = n == 0 ? prompt_at(s, t->at) : SIZE_MAX;
    struct vt_step_line step = {.step = out->n,
                                .out_ns = t->at,
                                .done_ns = t->at,
                                .waiting = t->waiting,
                                .running = t->running,
                                .kv_usage = t->kv_usage};
    struct vt_step_prefill *prefill =
        vt_arena_alloc(&out->arena, (n + 1) * sizeof(*prefill));
    vt_ns arrival = VT_NEVER;
    int rc;

    if (n == 0 && (who == SIZE_MAX || t->running == 0))
        return VT_OK; /* nobody was computed */
    if (!prefill)
        return vt_nomem(err);
    if (n == 0) {
        prefill[step.n_prefill++] = piece_of(s, who, done[who]++);
        arrival = s->w->req[who].arrival_ns;
    }
    for (size_t i = 0; i < n; i++) {
        const struct vt_work *r = &s->w->req[token[i].request];

        if (token[i].index > 0) {
            step.decodes++;
            step.decode_ctx += r->prompt_tokens + token[i].index - 1;
            continue;
        }
        prefill[step.n_prefill++] =
            piece_of(s, token[i].request, s->pieces[token[i].request]);
        arrival = r->arrival_ns < arrival ? r->arrival_ns : arrival;
    }
    for (uint32_t i = 0; i < step.n_prefill; i++)
        if (vt_arena_text(&out->arena, prefill[i].id, &prefill[i].id, err) != VT_OK)
            return VT_ENOMEM;
    step.prefill = prefill;
    step.sched_ns = step.sched_end_ns = scheduled_at(out, arrival, step.decodes);
    out->n_prefill += step.n_prefill;
    rc = vt_grow(&out->step, &out->cap, out->n + 1, sizeof(*out->step), err);
    if (rc == VT_OK)
        out->step[out->n++] = step;
    return rc;
}

static int make_steps(struct stats *s, struct vt_steps *out, struct vt_err *err)
{
    uint32_t *done = calloc(s->w->n, sizeof(*done));
    size_t next = 0;
    int rc = done ? VT_OK : vt_nomem(err);

    for (size_t i = 0; i < s->n && rc == VT_OK; i++) {
        size_t first;

        while (next < s->n_tokens &&
               s->token[next].at < s->told[i].at - SAME_MESSAGE_NS)
            next++;
        first = next;
        rc = add_step(s, out, &s->told[i], &s->token[first],
                      count_tokens(s, &next, s->told[i].at), done, err);
    }
    free(done);
    if (rc == VT_OK && out->n == 0)
        rc = vt_fail(err, VT_EINPUT, "there are no steps");
    return rc;
}

/* ---- files ------------------------------------------------------------ */

int trace_read_stats(struct vt_steps *out, struct vt_lines *lines,
                     const struct vt_workload *w, struct vt_err *err)
{
    struct trace_reader r = {.lines = lines, .name = vt_lines_name(lines)};
    struct stats s = {.w = w};
    int rc;

    *out = (struct vt_steps){.only_out = true};
    if (!w->measured)
        return vt_fail(err, VT_EINPUT, "%s: the trace has no times", r.name);
    if (!(rc = vt_arena_text(&out->arena, r.name, &out->source, err)) &&
        !(rc = trace_reader_next(&r, err)) &&
        !(rc = trace_reader_rows(&r, read_row, &s, err)) &&
        !(rc = vt_workload_tokens(w, &s.token, &s.n_tokens, err)) &&
        !(rc = check_same_recording(&s, err))) {
        s.pieces = calloc(w->n + 1, sizeof(*s.pieces));
        rc = s.pieces ? VT_OK : vt_nomem(err);
    }
    if (rc == VT_OK) {
        count_pieces(&s);
        rc = make_steps(&s, out, err);
    }
    if (rc != VT_OK) {
        rc = strncmp(err->msg, r.name, strlen(r.name)) == 0
                 ? rc
                 : vt_within(err, rc, "%s", r.name);
        vt_steps_free(out);
    }
    free(s.told);
    free(s.token);
    free(s.pieces);
    return rc;
}

int vt_steps_from_stats(struct vt_steps *s, const char *path,
                        const struct vt_workload *w, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_open(&lines, path, err);

    *s = (struct vt_steps){0};
    if (rc != VT_OK)
        return rc;
    rc = trace_read_stats(s, lines, w, err);
    vt_lines_close(lines);
    return rc;
}
