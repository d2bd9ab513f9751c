/* window.c - the requests of a run that are in hand: all of them, or, of a streamed
 * workload, those pieces of which some request is still under way. */
#include "sim/run.h"

enum { PIECE_BITS = 8 };

/* ---- pieces ----------------------------------------------------------- */

static struct piece *piece_new(size_t n)
{
    struct piece *p = calloc(1, sizeof(*p));

    if (p)
        p->live = calloc(n, sizeof(*p->live));
    if (p && p->live)
        return p;
    free(p);
    return NULL;
}

static void piece_free(struct piece *p)
{
    if (!p)
        return;
    vt_workload_free(&p->own);
    free(p->live);
    free(p);
}

/* ---- the window ------------------------------------------------------- */

int window_open(struct window *x, const struct vt_workload *w, struct vt_err *err)
{
    bool streamed = vt_workload_streamed(w);

    *x = (struct window){.w = w, .shift = streamed ? PIECE_BITS : 63, .n_places = 1};
    x->place = calloc(1, sizeof(*x->place));
    if (!x->place)
        return vt_nomem(err);
    if (streamed)
        return vt_stream_open(&x->stream, w, err);
    x->place[0] = piece_new(w->n);
    if (!x->place[0])
        return vt_nomem(err);
    x->place[0]->w = w;
    x->n_read = w->n;
    return VT_OK;
}

void window_close(struct window *x)
{
    for (size_t i = 0; x->place && i < x->n_places; i++)
        piece_free(x->place[i]);
    for (struct piece *next; x->spare; x->spare = next) {
        next = x->spare->next;
        piece_free(x->spare);
    }
    free(x->place);
    vt_stream_close(x->stream);
}

/* Places for as many pieces as there are between the oldest and one more. */
static int widen(struct window *x, struct vt_err *err)
{
    size_t n = 2 * x->n_places;
    struct piece **place = calloc(n, sizeof(*place));

    if (!place)
        return vt_nomem(err);
    for (size_t i = x->first; i < x->end; i++)
        place[i & (n - 1)] = x->place[i & (x->n_places - 1)];
    free(x->place);
    x->place = place;
    x->n_places = n;
    return VT_OK;
}

int window_reach(struct window *x, size_t req, struct vt_err *err)
{
    enum { SIZE = 1 << PIECE_BITS };
    struct piece *p = x->spare;
    int rc;

    if (req < x->n_read || req >= x->w->n)
        return VT_OK;
    if (x->end - x->first == x->n_places && (rc = widen(x, err)))
        return rc;
    if (p)
        x->spare = p->next;
    else if (!(p = piece_new(SIZE)))
        return vt_nomem(err);
    x->place[x->end++ & (x->n_places - 1)] = p;
    p->w = &p->own;
    rc = vt_stream_next(x->stream, &p->own, SIZE, err);
    p->left = p->own.n;
    x->n_read += p->own.n;
    return rc;
}

void window_let_go(struct window *x, size_t req)
{
    struct piece *p = window_piece(x, req);

    if (!x->stream || --p->left > 0)
        return;
    x->place[(req >> x->shift) & (x->n_places - 1)] = NULL;
    p->next = x->spare;
    x->spare = p;
    while (x->first < x->end && !x->place[x->first & (x->n_places - 1)])
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
        if (!(rc = vt_stream_next(s, &piece, 1 << PIECE_BITS, err)))
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
