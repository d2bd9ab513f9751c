/* build.c - assembling a workload: ids, segments, timings, order, sessions.
 *
 * Invariants of a finished workload: requests are sorted by (arrival, order in the
 * file); ids are unique; each request's segments sum to its prompt; the turns of a
 * session form one chain in turn order. */
#include <assert.h>

#include "trace/internal.h"

enum { POOL_BYTES = 4096 };

/* ---- requests --------------------------------------------------------- */

int trace_build_init(struct trace_build *b, struct vt_workload *w, const char *source,
                     struct vt_err *err)
{
    *w = (struct vt_workload){
        .meta = {.async_scheduling = -1, .enable_prefix_caching = -1},
        .arrivals = VT_ARRIVALS_RECORDED,
    };
    *b = (struct trace_build){.w = w,
                              .enough = SIZE_MAX,
                              .max_requests = TRACE_MAX_REQUESTS,
                              .check_ids = true};
    return vt_arena_text(&w->arena, source, &w->source, err);
}

/* Packs strings end to end: the arena's alignment would double the size of ids. */
static const char *pool_copy(struct trace_build *b, const char *text, size_t len)
{
    char *at;

    if (len >= POOL_BYTES / 8)
        return vt_arena_copy(&b->w->names, text, len);
    if (len >= b->pool_left) {
        b->pool = vt_arena_alloc(&b->w->names, POOL_BYTES);
        b->pool_left = b->pool ? POOL_BYTES : 0;
        if (!b->pool)
            return NULL;
    }
    at = b->pool;
    memcpy(at, text, len);
    at[len] = '\0';
    b->pool += len + 1;
    b->pool_left -= len + 1;
    return at;
}

/* In a set of hashes equal ids show at the end, see stream.c. */
static int note_hash(struct trace_build *b, const char *id, size_t len,
                     struct vt_err *err)
{
    int rc = vt_grow(&b->id_hash, &b->cap_id_hashes, b->n_id_hashes + 1,
                     sizeof(*b->id_hash), err);

    if (rc == VT_OK)
        b->id_hash[b->n_id_hashes++] = vt_hash_bytes(id, len, 0);
    return rc;
}

/* Most files number their requests. While ids ascend (shorter before longer) they
 * cannot repeat, so the set of ids is made when the first one does not. */
static int check_id(struct trace_build *b, const char *id, size_t len,
                    struct vt_err *err)
{
    const struct vt_work *req = b->w->req;
    size_t n = b->w->n, last = b->last_id ? strlen(b->last_id) : 0;

    if (len == 0)
        return vt_fail(err, VT_EINPUT, "an id is empty");
    if (memchr(id, '\0', len))
        return vt_fail(err, VT_EINPUT, "an id holds a NUL character");
    if (b->hash_ids)
        return note_hash(b, id, len, err);
    if (b->ids.map.n == 0 &&
        (!b->last_id || last < len || (last == len && memcmp(b->last_id, id, len) < 0)))
        return VT_OK;
    if (b->n > n) { /* too late for a set */
        b->unordered_ids = true;
        return VT_OK;
    }
    for (size_t i = b->ids.map.n; i <= n; i++) {
        const char *text = i < n ? req[i].id : id;
        uint32_t index = (uint32_t)i;
        bool is_new;
        int rc = vt_names_claim(&b->ids, req, sizeof(*req), text,
                                i < n ? strlen(text) : len, &index, &is_new, err);

        if (rc != VT_OK)
            return rc;
        if (!is_new)
            return vt_fail(err, VT_EINPUT, "id '%.80s' is used twice", req[index].id);
    }
    return VT_OK;
}

int trace_build_add(struct trace_build *b, const char *id, size_t len,
                    struct vt_work **out, struct vt_err *err)
{
    struct vt_workload *w = b->w;
    struct vt_work *q;
    int rc;

    if (b->n >= b->max_requests)
        return vt_fail(err, VT_EINPUT, "more than %zu requests", b->max_requests);
    if ((rc = vt_grow(&w->req, &w->cap, w->n + 1, sizeof(*w->req), err)) ||
        (b->check_ids && (rc = check_id(b, id, len, err))))
        return rc;
    q = &w->req[w->n];
    *q = (struct vt_work){
        .id = pool_copy(b, id, len),
        .first_segment = (uint32_t)w->n_segments,
        .output_content = vt_content_output(id, len),
        .line = b->line,
        .session = VT_NO_TURN,
        .next_turn = VT_NO_TURN,
        .beside = VT_NO_TURN,
        .first_turn = true,
    };
    if (!q->id)
        return vt_nomem(err);
    if (b->check_ids)
        b->last_id = q->id;
    b->n++;
    w->n++;
    *out = q;
    return VT_OK;
}

int trace_build_add_numbered(struct trace_build *b, size_t number, struct vt_work **out,
                             struct vt_err *err)
{
    char id[32];
    int len = snprintf(id, sizeof(id), "request-%zu", number);

    return trace_build_add(b, id, (size_t)len, out, err);
}

int trace_build_lora(struct trace_build *b, const char *name, struct vt_err *err)
{
    struct vt_work *q = &b->w->req[b->w->n - 1];

    assert(b->w->n > 0);
    if (*name == '\0')
        return VT_OK;
    q->lora = pool_copy(b, name, strlen(name));
    return q->lora ? VT_OK : vt_nomem(err);
}

int trace_build_segment(struct trace_build *b, uint64_t content, uint32_t offset,
                        uint32_t tokens, struct vt_err *err)
{
    struct vt_workload *w = b->w;
    int rc;

    assert(w->n > 0);
    if (tokens == 0)
        return VT_OK;
    if (w->n_segments >= TRACE_MAX_SEGMENTS)
        return vt_fail(err, VT_EINPUT, "more than %u segments", TRACE_MAX_SEGMENTS);
    rc = vt_grow(&w->segment, &w->cap_segments, w->n_segments + 1, sizeof(*w->segment),
                 err);
    if (rc != VT_OK)
        return rc;
    w->segment[w->n_segments++] = (struct vt_segment){content, offset, tokens};
    w->req[w->n - 1].n_segments++;
    return VT_OK;
}

int trace_build_own(struct trace_build *b, uint32_t tokens, struct vt_err *err)
{
    const char *id = b->w->req[b->w->n - 1].id;

    return trace_build_segment(b, trace_content_own(id, strlen(id)), 0, tokens, err);
}

int trace_build_session(struct trace_build *b, const char *name, size_t len,
                        uint32_t *index, struct vt_err *err)
{
    bool is_new;
    int rc;

    if (memchr(name, '\0', len))
        return vt_fail(err, VT_EINPUT, "a session's name holds a NUL character");
    rc = vt_grow(&b->session, &b->cap_sessions, b->n_sessions + 1, sizeof(*b->session),
                 err);
    if (rc != VT_OK)
        return rc;
    *index = (uint32_t)b->n_sessions;
    rc = vt_names_claim(&b->sessions, b->session, sizeof(*b->session), name, len, index,
                        &is_new, err);
    if (rc != VT_OK || !is_new)
        return rc;
    b->session[b->n_sessions] = pool_copy(b, name, len);
    return b->session[b->n_sessions++] ? VT_OK : vt_nomem(err);
}

/* ---- timings ---------------------------------------------------------- */

int trace_build_measured(struct trace_build *b, vt_ns ttft_ns, uint32_t cached_tokens,
                         struct vt_err *err)
{
    struct vt_workload *w = b->w;
    int rc = vt_grow(&w->measured, &b->cap_measured, w->n, sizeof(*w->measured), err);

    if (rc != VT_OK)
        return rc;
    w->measured[w->n - 1] = (struct vt_measured){.ttft_ns = ttft_ns,
                                                 .e2e_ns = ttft_ns,
                                                 .first_gap = w->n_gaps,
                                                 .cached_tokens = cached_tokens,
                                                 .queue_ns = -1};
    return VT_OK;
}

/* Chunks of several tokens are rare, so the array starts with the first of them. */
static int push_gap_tokens(struct trace_build *b, uint32_t tokens, struct vt_err *err)
{
    struct vt_workload *w = b->w;
    size_t from = w->gap_tokens ? w->n_gaps : 0;
    int rc;

    if (!w->gap_tokens && tokens == 1)
        return VT_OK;
    rc = vt_grow(&w->gap_tokens, &b->cap_gap_tokens, w->n_gaps + 1,
                 sizeof(*w->gap_tokens), err);
    if (rc != VT_OK)
        return rc;
    assert(w->gap_tokens);
    for (size_t i = from; i < w->n_gaps; i++)
        w->gap_tokens[i] = 1;
    w->gap_tokens[w->n_gaps] = tokens;
    return VT_OK;
}

int trace_build_gap(struct trace_build *b, vt_ns gap_ns, uint32_t tokens,
                    struct vt_err *err)
{
    struct vt_workload *w = b->w;
    struct vt_measured *m = &w->measured[w->n - 1];
    int rc;

    assert(w->measured && m->first_gap + m->n_gaps == w->n_gaps);
    if (w->n_gaps >= TRACE_MAX_GAPS)
        return vt_fail(err, VT_EINPUT, "more than %d gaps", TRACE_MAX_GAPS);
    m->e2e_ns += gap_ns; /* each is at most TRACE_MAX_MS, so this fits */
    if (m->e2e_ns > vt_ns_from_ms(TRACE_MAX_MS))
        return vt_fail(err, VT_EINPUT, "the request takes too long");
    if ((rc = vt_grow(&w->gap, &b->cap_gaps, w->n_gaps + 1, sizeof(*w->gap), err)) ||
        (rc = push_gap_tokens(b, tokens, err)))
        return rc;
    w->gap[w->n_gaps++] = gap_ns;
    m->n_gaps++;
    return VT_OK;
}

/* ---- order ------------------------------------------------------------ */

/* Links that a reader made are places in the order of adding. */
static int move_links(struct vt_workload *w, const struct trace_place *order,
                      struct vt_err *err)
{
    uint32_t *place = malloc(w->n * sizeof(*place));

    if (!place)
        return vt_nomem(err);
    for (size_t i = 0; i < w->n; i++)
        place[order[i].index] = (uint32_t)i;
    for (size_t i = 0; i < w->n; i++) {
        struct vt_work *q = &w->req[i];

        if (q->next_turn != VT_NO_TURN)
            q->next_turn = place[q->next_turn];
        if (q->beside != VT_NO_TURN)
            q->beside = place[q->beside];
    }
    free(place);
    return VT_OK;
}

static int sort_requests(struct vt_workload *w, struct vt_err *err)
{
    struct trace_place *order;
    size_t sorted = 1;
    int rc;

    while (sorted < w->n && w->req[sorted].arrival_ns >= w->req[sorted - 1].arrival_ns)
        sorted++;
    if (sorted == w->n)
        return VT_OK;
    order = malloc(w->n * sizeof(*order));
    if (!order)
        return vt_nomem(err);
    for (size_t i = 0; i < w->n; i++)
        order[i] = (struct trace_place){w->req[i].arrival_ns, i};
    trace_sort_places(order, w->n);
    rc = trace_reorder(&w->req, order, w->n, sizeof(*w->req), err);
    w->cap = rc ? w->cap : w->n;
    if (rc == VT_OK && w->measured)
        rc = trace_reorder(&w->measured, order, w->n, sizeof(*w->measured), err);
    if (rc == VT_OK && w->forked)
        rc = move_links(w, order, err);
    free(order);
    return rc;
}

/* ---- sessions --------------------------------------------------------- */

struct turn {
    uint32_t session, turn, index;
};

static int by_turn(const void *pa, const void *pb)
{
    const struct turn *a = pa, *b = pb;

    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    if (a->turn != b->turn)
        return a->turn < b->turn ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Numbers sessions by their first appearance in the sorted list. */
static size_t collect_turns(struct vt_workload *w, struct turn *turn,
                            uint32_t *renumber)
{
    uint32_t n_sessions = 0;
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        struct vt_work *q = &w->req[i];

        if (q->session == VT_NO_TURN)
            continue;
        if (renumber[q->session] == 0)
            renumber[q->session] = ++n_sessions;
        q->session = renumber[q->session] - 1;
        turn[n++] = (struct turn){q->session, q->turn, (uint32_t)i};
    }
    return n;
}

static int link_turns(struct vt_workload *w, const struct turn *turn, size_t n,
                      struct vt_err *err)
{
    vt_ns think_ns = 0;

    for (size_t i = 1; i < n; i++) {
        const struct turn *last = &turn[i - 1], *t = &turn[i];

        if (t->session != last->session) {
            think_ns = 0;
            continue;
        }
        if (t->turn == last->turn)
            return vt_fail(err, VT_EINPUT,
                           "line %u: the same session and turn as line %u",
                           w->req[t->index].line, w->req[last->index].line);
        think_ns += w->req[t->index].think_ns;
        if (think_ns > vt_ns_from_ms(TRACE_MAX_MS))
            return vt_fail(err, VT_EINPUT, "line %u: the session thinks too long",
                           w->req[t->index].line);
        w->req[last->index].next_turn = t->index;
        w->req[t->index].first_turn = false;
        w->req[t->index].n_before = 1;
    }
    return VT_OK;
}

static int link_sessions(struct trace_build *b, struct vt_err *err)
{
    struct vt_workload *w = b->w;
    struct turn *turn;
    uint32_t *renumber;
    int rc;

    if (b->n_sessions == 0)
        return VT_OK;
    turn = malloc(w->n * sizeof(*turn));
    renumber = calloc(b->n_sessions, sizeof(*renumber));
    if (turn && renumber) {
        size_t n = collect_turns(w, turn, renumber);

        qsort(turn, n, sizeof(*turn), by_turn);
        rc = w->forked ? VT_OK : link_turns(w, turn, n, err);
    } else {
        rc = vt_nomem(err);
    }
    free(turn);
    free(renumber);
    return rc;
}

/* ---- the end ---------------------------------------------------------- */

void trace_free_times(struct vt_workload *w)
{
    free(w->measured);
    free(w->gap);
    free(w->gap_tokens);
    w->measured = NULL;
    w->gap = NULL;
    w->gap_tokens = NULL;
    w->n_gaps = 0;
    w->n_by_mean = 0;
}

void trace_build_free(struct trace_build *b)
{
    vt_names_free(&b->ids);
    vt_names_free(&b->sessions);
    vt_buf_free(&b->before_id);
    free(b->session);
    free(b->id_hash);
    b->session = NULL;
    b->id_hash = NULL;
}

int trace_build_piece(struct trace_build *b, struct vt_workload *w, struct vt_err *err)
{
    if (b->last_id && b->last_id != b->before_id.data) {
        vt_buf_clear(&b->before_id);
        vt_buf_add(&b->before_id, b->last_id, strlen(b->last_id) + 1);
        if (b->before_id.failed)
            return vt_nomem(err);
        b->last_id = b->before_id.data;
    }
    b->w = w;
    b->pool_left = 0;
    vt_names_free(&b->ids);
    vt_arena_reset(&w->names);
    w->n = 0;
    w->n_segments = 0;
    return VT_OK;
}

/* Keeps the larger block if there is no smaller one. */
static void *shrink(void *array, size_t n, size_t cell)
{
    void *smaller = n ? realloc(array, n * cell) : NULL;

    return smaller ? smaller : array;
}

#ifndef NDEBUG
static bool prompts_add_up(const struct vt_workload *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_segment *s = w->segment + w->req[i].first_segment;
        uint64_t sum = 0;

        for (uint32_t k = 0; k < w->req[i].n_segments; k++)
            sum += s[k].tokens;
        if (sum != w->req[i].prompt_tokens)
            return false;
    }
    return true;
}
#endif

/* Of requests that were aborted before anything was measured. */
static void leave_given_up_out(struct trace_build *b)
{
    struct vt_workload *w = b->w;
    size_t n = 0;

    if (b->n_given_up == w->n) /* nothing in it was measured */
        b->untimed = true;
    if (b->untimed || b->n_given_up == 0)
        return;
    for (size_t i = 0; i < w->n; i++) {
        if (w->measured[i].ttft_ns < 0)
            continue;
        w->req[n] = w->req[i];
        w->measured[n++] = w->measured[i];
    }
    w->n_unanswered += w->n - n;
    w->n = n;
}

int trace_build_finish(struct trace_build *b, struct vt_err *err)
{
    struct vt_workload *w = b->w;
    int rc;

    if (w->n == 0) {
        trace_build_free(b);
        return vt_fail(err, VT_EINPUT, "there are no requests");
    }
    assert(prompts_add_up(w));
    leave_given_up_out(b);
    if (b->untimed)
        trace_free_times(w);
    if (!(rc = sort_requests(w, err)) && !(rc = link_sessions(b, err))) {
        w->req = shrink(w->req, w->n, sizeof(*w->req));
        w->cap = w->n;
        w->segment = shrink(w->segment, w->n_segments, sizeof(*w->segment));
        w->cap_segments = w->n_segments;
        w->measured = shrink(w->measured, w->measured ? w->n : 0, sizeof(*w->measured));
        w->gap = shrink(w->gap, w->n_gaps, sizeof(*w->gap));
        w->gap_tokens = shrink(w->gap_tokens, w->gap_tokens ? w->n_gaps : 0,
                               sizeof(*w->gap_tokens));
    }
    trace_build_free(b);
    return rc;
}

int trace_build_fail(struct trace_build *b, int rc)
{
    trace_build_free(b);
    vt_workload_free(b->w);
    *b->w = (struct vt_workload){0};
    return rc;
}
