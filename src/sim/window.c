/* window.c - the requests of a run that are in hand: all of them, or, of a streamed
 * workload, those pieces of which some request is still under way. */
#include <assert.h>
#include <string.h>

#include "sim/run.h"

enum { PIECE = 256, CACHE_LINE = 64 };

/* Neighbours may be written by different threads. */
static_assert(sizeof(struct live) == CACHE_LINE, "one line for each");

/* ---- pieces ----------------------------------------------------------- */

static void piece_free(struct piece *p)
{
    if (!p)
        return;
    vt_workload_free(&p->own);
    free(p->live);
    free(p);
}

/* What is known of so many requests: nothing. */
static int piece_fit(struct piece *p, size_t n, struct vt_err *err)
{
    if (n >= p->cap_live) {
        free(p->live);
        p->cap_live = n + 1;
        p->live = aligned_alloc(CACHE_LINE, p->cap_live * sizeof(*p->live));
    }
    if (!p->live) {
        p->cap_live = 0;
        return vt_nomem(err);
    }
    memset(p->live, 0, n * sizeof(*p->live));
    return VT_OK;
}

/* ---- the window ------------------------------------------------------- */

int window_open(struct window *x, const struct vt_workload *w, struct vt_err *err)
{
    bool streamed = vt_workload_streamed(w);
    size_t n = streamed ? PIECE : 1;

    *x = (struct window){.w = w};
    x->place = calloc(n, sizeof(*x->place));
    if (!x->place)
        return vt_nomem(err);
    x->mask = n - 1;
    if (streamed)
        return vt_stream_open(&x->stream, w, err);
    x->place[0] = calloc(1, sizeof(**x->place));
    if (!x->place[0])
        return vt_nomem(err);
    x->place[0]->w = w;
    x->n_read = w->n;
    return piece_fit(x->place[0], w->n, err);
}

void window_close(struct window *x)
{
    for (size_t i = x->first; x->stream && x->place && i < x->n_read; i++) {
        struct piece *p = window_piece(x, i);

        if (p && i + 1 == p->first + p->own.n)
            piece_free(p);
    }
    if (x->place && !x->stream)
        piece_free(x->place[0]);
    for (struct piece *next; x->spare; x->spare = next) {
        next = x->spare->next;
        piece_free(x->spare);
    }
    free(x->place);
    vt_stream_close(x->stream);
}

/* Places for all requests from the oldest one on and so many more. */
static int widen(struct window *x, size_t more, struct vt_err *err)
{
    size_t n = x->mask + 1;
    struct piece **place;

    while (n < x->n_read - x->first + more)
        n *= 2;
    if (n == x->mask + 1)
        return VT_OK;
    place = calloc(n, sizeof(*place));
    if (!place)
        return vt_nomem(err);
    for (size_t i = x->first; i < x->n_read; i++)
        place[i & (n - 1)] = window_piece(x, i);
    free(x->place);
    x->place = place;
    x->mask = n - 1;
    return VT_OK;
}

static int read_piece(struct window *x, struct piece *p, struct vt_err *err)
{
    int rc = vt_stream_next(x->stream, &p->own, PIECE, err);

    p->w = &p->own;
    p->first = x->n_read;
    p->left = p->own.n;
    if (rc || (rc = piece_fit(p, p->own.n, err)) || (rc = widen(x, p->own.n, err)))
        return rc;
    for (size_t i = 0; i < p->own.n; i++)
        x->place[(p->first + i) & x->mask] = p;
    x->n_read += p->own.n;
    return VT_OK;
}

int window_reach(struct window *x, size_t req, struct vt_err *err)
{
    struct piece *p = x->spare;
    int rc;

    if (req < x->n_read || req >= x->w->n)
        return VT_OK;
    if (p)
        x->spare = p->next;
    else if (!(p = calloc(1, sizeof(*p))))
        return vt_nomem(err);
    rc = read_piece(x, p, err);
    if (rc != VT_OK)
        piece_free(p);
    return rc;
}

void window_let_go(struct window *x, size_t req)
{
    struct piece *p = window_piece(x, req);

    if (!x->stream || --p->left > 0)
        return;
    for (size_t i = 0; i < p->own.n; i++)
        x->place[(p->first + i) & x->mask] = NULL;
    p->next = x->spare;
    x->spare = p;
    while (x->first < x->n_read && !window_piece(x, x->first))
        x->first++;
}

/* ---- checks before a run ---------------------------------------------- */

static int check_piece(const struct vt_workload *piece, const struct vt_workload *w,
                       const struct vt_engine_config *c, struct vt_err *err)
{
    for (size_t i = 0; i < piece->n; i++) {
        const struct vt_work *q = &piece->req[i];
        struct vt_request asked = run_request(piece, q, i);
        int rc = vt_request_check(c, &asked, err);

        if (rc == VT_OK)
            continue;
        rc = vt_within(err, rc, "request '%s'", q->id);
        if (q->line > 0)
            rc = vt_within(err, rc, "line %u", q->line);
        return vt_within(err, rc, "%s", w->source);
    }
    return VT_OK;
}

/* Whether all pass is known from the longest; which one does not, only from a walk. */
static int check_streamed(const struct vt_workload *w, const struct vt_engine_config *c,
                          struct vt_err *err)
{
    const struct vt_request longest = {
        .prompt_tokens = w->most_prompt_tokens,
        .max_tokens = (uint32_t)(w->most_tokens - w->most_prompt_tokens),
    };
    struct vt_workload piece = {0};
    struct vt_stream *s;
    int rc;

    if (vt_request_check(c, &longest, err) == VT_OK)
        return VT_OK;
    if ((rc = vt_stream_open(&s, w, err)))
        return rc;
    do {
        if (!(rc = vt_stream_next(s, &piece, PIECE, err)))
            rc = check_piece(&piece, w, c, err);
    } while (rc == VT_OK && piece.n > 0);
    vt_workload_free(&piece);
    vt_stream_close(s);
    return rc;
}

int run_check_requests(const struct vt_workload *w, const struct vt_engine_config *c,
                       struct vt_err *err)
{
    return vt_workload_streamed(w) ? check_streamed(w, c, err)
                                   : check_piece(w, w, c, err);
}
