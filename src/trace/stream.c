/* stream.c - workloads from any input: whole, or piece by piece.
 *
 * A long input is read twice. The first time tells whether it can be streamed at all
 * and what is wrong with it; the second time serves it. */
#include <assert.h>
#include <math.h>
#include <sys/stat.h>

#include "trace/formats/formats.h"
#include "trace/workload/workload.h"

enum { PIECE = 4096 }; /* requests that are looked through at a time */

static int open_feed(struct trace_feed **out, struct vt_workload *w,
                     const struct vt_input *in, struct vt_err *err)
{
    if (in->kind == VT_INPUT_SPEC)
        return trace_generator_open(out, w, in, err);
    return trace_file_open(
        out, w, in->name,
        in->kind == VT_INPUT_TRACE ? TRACE_ROWS_TRACE : TRACE_ROWS_REQUESTS, err);
}

static int finish(struct trace_feed *f, struct vt_workload *w, struct vt_err *err)
{
    return vt_within(err, trace_build_finish(&f->b, err), "%s", w->source);
}

/* Ends a reading; what failed leaves nothing. */
static int close_feed(struct trace_feed *f, struct vt_workload *w, int rc)
{
    if (f)
        f->close(f);
    if (rc != VT_OK) {
        vt_workload_free(w);
        *w = (struct vt_workload){0};
    }
    return rc;
}

int trace_feed_all(struct trace_feed **feed, struct vt_workload *w, int rc,
                   struct vt_err *err)
{
    bool done;

    if (rc == VT_OK && !(rc = (*feed)->more(*feed, &done, err)))
        rc = finish(*feed, w, err);
    return close_feed(*feed, w, rc);
}

/* ---- a file's requests at another pace ------------------------------------ */

/* How far from the first all others are to be, that so many requests, of which `starts`
 * come by themselves, come at the rate. */
static int find_stretch(struct vt_workload *w, double rate, size_t starts, vt_ns first,
                        vt_ns last, struct vt_err *err)
{
    double span = (double)(last - first);
    double want = (double)w->n / rate / (double)starts * (double)(starts - 1) * 1e9;

    w->stretch = (struct vt_stretch){.on = true, .from = first};
    if (isinf(rate))
        return VT_OK;
    if (!(rate > 0))
        return vt_fail(err, VT_EINPUT, "a request rate must be above 0");
    if (!(span > 0) && starts > 1)
        return vt_fail(err, VT_EINPUT,
                       "%s: all requests come at one moment: there are no gaps that a "
                       "rate could scale",
                       w->source);
    w->stretch.times = span > 0 ? want / span : 0;
    if (want > TRACE_MAX_MS * 1e6)
        return vt_fail(err, VT_EINPUT, "%s: at %g requests a second it takes too long",
                       w->source, rate);
    return VT_OK;
}

static void stretch_requests(struct vt_work *req, size_t n, const struct vt_stretch *s)
{
    for (size_t i = 0; i < n && s->on; i++)
        req[i].arrival_ns =
            s->from + (vt_ns)llround((double)(req[i].arrival_ns - s->from) * s->times);
}

/* With nothing that sets a pace it is the concurrency that does. */
static int hold_requests(struct vt_workload *w, const struct vt_traffic *over,
                         struct vt_err *err)
{
    if (over->concurrency == 0)
        return VT_OK;
    if (w->arrivals == VT_ARRIVALS_SESSION && over->rate != 0 && !isinf(over->rate))
        return vt_fail(err, VT_EINPUT,
                       "sessions that arrive at a rate are all served: no limit on "
                       "those in flight");
    if (w->arrivals == VT_ARRIVALS_RECORDED && isinf(over->rate))
        w->arrivals = VT_ARRIVALS_CLOSED;
    *(w->arrivals == VT_ARRIVALS_RECORDED ? &w->held_to : &w->concurrency) =
        over->concurrency;
    return VT_OK;
}

static int take_first(struct vt_workload *w, uint32_t n, struct vt_err *err)
{
    if (n > w->n)
        return vt_fail(err, VT_EINPUT, "%s: has %zu requests, not %u", w->source, w->n,
                       n);
    if (n > 0 && n < w->n && w->forked)
        return vt_fail(err, VT_EINPUT,
                       "%s: the first %u requests would be parts of sessions that are "
                       "trees; they are served whole",
                       w->source, n);
    w->n = n > 0 ? n : w->n;
    return VT_OK;
}

/* Of one that was read whole. What was measured was measured at another load. */
static int put_over(struct vt_workload *w, const struct vt_traffic *over,
                    struct vt_err *err)
{
    vt_ns last = 0;
    size_t starts = 0;
    int rc = take_first(w, over->requests, err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < w->n; i++) {
        if (w->req[i].next_turn != VT_NO_TURN && w->req[i].next_turn >= w->n)
            w->req[i].next_turn = VT_NO_TURN;
        if (w->arrivals != VT_ARRIVALS_SESSION || w->req[i].first_turn) {
            last = w->req[i].arrival_ns;
            starts++;
        }
    }
    trace_free_times(w);
    if (over->rate != 0 && starts > 0)
        rc = find_stretch(w, over->rate, starts, w->req[0].arrival_ns, last, err);
    stretch_requests(w->req, w->n, &w->stretch);
    return rc ? rc : hold_requests(w, over, err);
}

/* Whether anything is to be put over what a file says. */
static bool is_over(const struct vt_input *in)
{
    return in->kind != VT_INPUT_SPEC &&
           (in->over.rate != 0 || in->over.requests > 0 || in->over.concurrency > 0);
}

static int read_whole(struct vt_workload *w, const struct vt_input *in, bool told_cut,
                      struct vt_err *err)
{
    struct trace_feed *f;
    int rc = open_feed(&f, w, in, err);

    if (rc == VT_OK)
        f->b.told_cut = told_cut;
    return trace_feed_all(&f, w, rc, err);
}

/* ---- the first reading ------------------------------------------------ */

struct survey {
    vt_ns last_ns; /* arrival of the request before */
    /* Of those that are taken: so many, from then to then. */
    size_t most, n;
    vt_ns from, to;
    uint32_t most_prompt_tokens;
    uint64_t most_tokens;
    vt_ns least_think_ns;
    size_t n_sessions;
};

/* False: these can't be streamed. */
static bool look_at_piece(struct survey *s, const struct trace_build *b)
{
    const struct vt_workload *w = b->w;

    if (b->n_sessions > 0 || b->unordered_ids ||
        (w->arrivals == VT_ARRIVALS_SESSION && !b->kept_whole))
        return false;
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_work *q = &w->req[i];
        uint64_t tokens = (uint64_t)q->prompt_tokens + q->max_tokens;

        if (q->arrival_ns < s->last_ns)
            return false;
        s->last_ns = q->arrival_ns;
        if (s->n == s->most)
            continue;
        s->from = s->n++ == 0 ? q->arrival_ns : s->from;
        s->to = q->arrival_ns;
        if (!q->first_turn && q->think_ns < s->least_think_ns)
            s->least_think_ns = q->think_ns;
        if (q->session != VT_NO_TURN && q->session >= s->n_sessions)
            s->n_sessions = (size_t)q->session + 1;
        if (q->prompt_tokens > s->most_prompt_tokens)
            s->most_prompt_tokens = q->prompt_tokens;
        if (tokens > s->most_tokens)
            s->most_tokens = tokens;
    }
    return true;
}

static int by_number(const void *pa, const void *pb)
{
    const uint64_t *a = pa, *b = pb;

    return (*a > *b) - (*a < *b);
}

/* Also false for two ids of one hash: whoever reads it whole will know. */
static bool ids_differ(struct trace_build *b)
{
    if (b->n_id_hashes > 0)
        qsort(b->id_hash, b->n_id_hashes, sizeof(*b->id_hash), by_number);
    for (size_t i = 1; i < b->n_id_hashes; i++)
        if (b->id_hash[i] == b->id_hash[i - 1])
            return false;
    return true;
}

/* The first piece is in hand, and it is not all. From here on ids that do not ascend
 * are told apart by their hashes, and times are not kept. */
static int begin_pieces(struct trace_build *b, struct vt_err *err)
{
    struct vt_workload *w = b->w;
    size_t n = w->n;
    int rc = VT_OK;

    trace_free_times(w);
    b->untimed = true;
    b->enough = PIECE;
    b->hash_ids = b->ids.map.n > 0;
    if (!b->hash_ids)
        return VT_OK;
    rc = vt_grow(&b->id_hash, &b->cap_id_hashes, n, sizeof(*b->id_hash), err);
    for (; rc == VT_OK && b->n_id_hashes < n; b->n_id_hashes++) {
        const char *id = w->req[b->n_id_hashes].id;

        b->id_hash[b->n_id_hashes] = vt_hash_bytes(id, strlen(id), 0);
    }
    return rc;
}

/* Reads on to the end, keeping nothing; *whole: it can't be streamed after all. */
static int look_through(struct trace_feed *f, struct survey *s, bool *whole,
                        struct vt_err *err)
{
    struct trace_build *b = &f->b;
    bool done = false;
    int rc = begin_pieces(b, err);

    while (rc == VT_OK && !(*whole = !look_at_piece(s, b)) && !done &&
           !(rc = trace_build_piece(b, b->w, err)))
        rc = f->more(f, &done, err);
    if (rc == VT_OK && !*whole)
        *whole = !ids_differ(b);
    return rc;
}

static void keep_no_request(struct vt_workload *w)
{
    vt_arena_free(&w->names);
    free(w->req);
    free(w->segment);
    w->req = NULL;
    w->segment = NULL;
    w->cap = w->n_segments = w->cap_segments = 0;
}

/* A pipe, say, can be read only once. */
static bool can_be_read_again(const struct vt_input *in)
{
    struct stat st;

    return in->text || (stat(in->name, &st) == 0 && S_ISREG(st.st_mode));
}

static int pace_stream(struct vt_workload *w, const struct vt_traffic *over,
                       const struct survey *s, struct vt_err *err)
{
    int rc = take_first(w, over->requests, err);

    if (rc == VT_OK && over->rate != 0)
        rc = find_stretch(w, over->rate, w->n, s->from, s->to, err);
    return rc ? rc : hold_requests(w, over, err);
}

/* *whole: it must be read anew, and not in pieces. */
static int read_long(struct vt_workload *w, const struct vt_input *in, size_t most,
                     bool *whole, bool *told_cut, struct vt_err *err)
{
    struct survey s = {.last_ns = INT64_MIN,
                       .least_think_ns = VT_NEVER,
                       .most = is_over(in) && in->over.requests > 0 ? in->over.requests
                                                                    : SIZE_MAX};
    struct trace_feed *f;
    bool done = false;
    int rc = open_feed(&f, w, in, err);

    if (rc == VT_OK) {
        f->b.enough = most + 1;
        rc = f->more(f, &done, err);
    }
    if (rc == VT_OK && done)
        rc = finish(f, w, err);
    if (rc == VT_OK && done && is_over(in))
        rc = put_over(w, &in->over, err);
    else if (rc == VT_OK && !done)
        rc = look_through(f, &s, whole, err);
    if (rc == VT_OK && !done && !*whole) {
        keep_no_request(w);
        w->n = f->b.n;
        w->most_prompt_tokens = s.most_prompt_tokens;
        w->most_tokens = s.most_tokens;
        w->least_think_ns = s.least_think_ns;
        w->n_sessions = s.n_sessions;
        if (is_over(in))
            rc = pace_stream(w, &in->over, &s, err);
    }
    *told_cut = rc == VT_OK && f->b.told_cut;
    return close_feed(f, w, rc);
}

int vt_workload_read(struct vt_workload *w, const struct vt_input *in, size_t most,
                     struct vt_err *err)
{
    bool whole = most == VT_WHOLE || !can_be_read_again(in), told_cut = false;
    int rc = VT_OK;

    *w = (struct vt_workload){0};
    if (!whole && (rc = read_long(w, in, most, &whole, &told_cut, err)))
        return rc;
    if (whole) {
        vt_workload_free(w);
        *w = (struct vt_workload){0};
        rc = read_whole(w, in, told_cut, err);
        if (rc == VT_OK && is_over(in) && (rc = put_over(w, &in->over, err))) {
            vt_workload_free(w);
            *w = (struct vt_workload){0};
        }
    }
    if (rc != VT_OK)
        return rc;
    w->input = *in;
    w->input.name = w->source;
    return VT_OK;
}

int vt_trace_load(struct vt_workload *w, const char *path, struct vt_err *err)
{
    const struct vt_input in = {.kind = VT_INPUT_TRACE, .name = path};

    return vt_workload_read(w, &in, VT_WHOLE, err);
}

int vt_requests_load(struct vt_workload *w, const char *path, struct vt_err *err)
{
    const struct vt_input in = {.kind = VT_INPUT_REQUESTS, .name = path};

    return vt_workload_read(w, &in, VT_WHOLE, err);
}

int vt_workload_generate(struct vt_workload *w, const char *path, int64_t seed,
                         struct vt_err *err)
{
    const struct vt_input in = {.kind = VT_INPUT_SPEC, .name = path, .seed = seed};

    return vt_workload_read(w, &in, VT_WHOLE, err);
}

int vt_workload_generate_text(struct vt_workload *w, const char *name, const char *text,
                              size_t len, int64_t seed, struct vt_err *err)
{
    const struct vt_input in = {VT_INPUT_SPEC, name, text, len, seed};

    return vt_workload_read(w, &in, VT_WHOLE, err);
}

/* ---- the second ------------------------------------------------------- */

struct vt_stream {
    const struct vt_workload *w;
    struct trace_feed *feed;
    struct vt_workload head; /* what the feed told of itself when it was opened */
    vt_ns last_ns;
};

void vt_stream_close(struct vt_stream *s)
{
    if (!s)
        return;
    if (s->feed)
        s->feed->close(s->feed);
    vt_workload_free(&s->head);
    free(s);
}

int vt_stream_open(struct vt_stream **out, const struct vt_workload *w,
                   struct vt_err *err)
{
    struct vt_stream *s = calloc(1, sizeof(*s));
    int rc;

    assert(vt_workload_streamed(w));
    *out = NULL;
    if (!s)
        return vt_nomem(err);
    s->w = w;
    rc = open_feed(&s->feed, &s->head, &w->input, err);
    if (rc != VT_OK) {
        vt_stream_close(s);
        return rc;
    }
    s->feed->b.untimed = true;
    s->feed->b.told_cut = true;
    *out = s;
    return VT_OK;
}

int vt_stream_next(struct vt_stream *s, struct vt_workload *piece, size_t most,
                   struct vt_err *err)
{
    struct trace_build *b = &s->feed->b;
    size_t left = s->w->n - b->n, want = left < most ? left : most;
    bool done;
    int rc;

    b->check_ids = false; /* the first reading has seen to that */
    if ((rc = trace_build_piece(b, piece, err)) || want == 0)
        return rc;
    piece->source = s->w->source;
    b->enough = want;
    if ((rc = s->feed->more(s->feed, &done, err)))
        return rc;
    for (size_t i = 0; i < piece->n; i++) {
        if (piece->req[i].arrival_ns < s->last_ns)
            left = 0;
        s->last_ns = piece->req[i].arrival_ns;
    }
    if (piece->n < want || piece->n > left || (piece->n > want && !b->kept_whole))
        return vt_fail(err, VT_EIO, "%s: changed while it was being read",
                       s->w->source);
    stretch_requests(piece->req, piece->n, &s->w->stretch);
    return VT_OK;
}
