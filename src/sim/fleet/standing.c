/* standing.c - the greatest weighted sum, without a look at every candidate.
 *
 * What a look showed stays until the next one, so candidates are put in order once for
 * all requests in between. A request then has a say about few: who has its prompt, or
 * its session. All others have one score by each scorer that asks about the request,
 * and which one that is, any of them tells. Every sum is added up as for all
 * candidates one by one, so that the choice is the same to the last bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/router.h"

enum { ORDERS = 4 }; /* what all others have by two scorers that know two answers */

struct order { /* of all candidates, as if the request said nothing of any */
    bool known;
    double rest[MAX_TERMS]; /* of terms by request: what all have */
    struct ranked {
        double sum;
        uint32_t place;
    } *ranked;    /* descending, equals by place */
    uint32_t *at; /* of each place: where it is ranked */
};

struct standing {
    const struct term *term; /* borrowed */
    uint32_t n_terms, cap;
    struct view {
        uint64_t look;
        double *fixed; /* scores by looks: cap of them for each term */
        struct order order[ORDERS];
        unsigned next; /* to be made anew */
    } view[N_POOLS];
    /* Of the request at hand: those that it has a say about, ascending places, and
     * their sums. */
    uint32_t *few, *merged, *candidate;
    double *score, *sum;
    uint32_t n_few;
};

/* ---- life --------------------------------------------------------------- */

static bool open_view(struct view *v, size_t cap, size_t n_terms)
{
    bool good;

    v->look = UINT64_MAX;
    v->fixed = calloc(cap * n_terms, sizeof(*v->fixed));
    good = v->fixed;
    for (unsigned i = 0; i < ORDERS && good; i++) {
        v->order[i].ranked = calloc(cap, sizeof(*v->order[i].ranked));
        v->order[i].at = calloc(cap, sizeof(*v->order[i].at));
        good = v->order[i].ranked && v->order[i].at;
    }
    return good;
}

int standing_new(struct standing **out, const struct term *term, uint32_t n_terms,
                 uint32_t cap, struct vt_err *err)
{
    struct standing *s = calloc(1, sizeof(*s));
    bool good = s;

    *out = s;
    if (!s)
        return vt_nomem(err);
    s->term = term;
    s->n_terms = n_terms;
    s->cap = cap;
    for (unsigned pool = 0; pool < N_POOLS && good; pool++)
        good = open_view(&s->view[pool], cap, n_terms);
    s->few = calloc((size_t)cap + 1, sizeof(*s->few));
    s->merged = calloc((size_t)cap + 1, sizeof(*s->merged));
    s->candidate = calloc((size_t)cap + 1, sizeof(*s->candidate));
    s->score = calloc(((size_t)cap + 1) * n_terms, sizeof(*s->score));
    s->sum = calloc((size_t)cap + 1, sizeof(*s->sum));
    if (good && s->few && s->merged && s->candidate && s->score && s->sum)
        return VT_OK;
    standing_free(s);
    *out = NULL;
    return vt_nomem(err);
}

void standing_free(struct standing *s)
{
    if (!s)
        return;
    for (unsigned pool = 0; pool < N_POOLS; pool++) {
        for (unsigned i = 0; i < ORDERS; i++) {
            free(s->view[pool].order[i].ranked);
            free(s->view[pool].order[i].at);
        }
        free(s->view[pool].fixed);
    }
    free(s->few);
    free(s->merged);
    free(s->candidate);
    free(s->score);
    free(s->sum);
    free(s);
}

/* ---- whom the request has a say about ------------------------------------ */

/* Adds places that ascend to those that are there. */
static void merge_few(struct standing *s, const uint32_t *place, uint32_t n)
{
    uint32_t *swap = s->few, i = 0, k = 0, to = 0;

    while (i < s->n_few || k < n) {
        uint32_t a = i < s->n_few ? s->few[i] : NO_PLACE;
        uint32_t b = k < n ? place[k] : NO_PLACE;

        s->merged[to++] = a < b ? a : b;
        i += a <= b;
        k += b <= a;
    }
    s->few = s->merged;
    s->merged = swap;
    s->n_few = to;
}

static void find_few(struct standing *s, const struct memory *m, const struct ask *a)
{
    uint32_t home = home_of(m, a), n = 0, n_sent = 0;
    const struct holder *sent =
        a->n_keys > 0 ? holders_of(&m->sent, a->key[0], &n_sent) : NULL;

    s->n_few = 0;
    merge_few(s, a->hit, a->n_hits);
    for (uint32_t i = 0; i < n_sent; i++)
        if (a->place[sent[i].instance] != NO_PLACE)
            s->candidate[n++] = a->place[sent[i].instance];
    if (n > 0)
        merge_few(s, s->candidate, n);
    if (home != NO_HOME && a->place[home] != NO_PLACE)
        merge_few(s, &a->place[home], 1);
}

/* The first place that is not among them; the number of places if all are. */
static uint32_t first_other(const struct standing *s)
{
    uint32_t k = 0;

    while (k < s->n_few && s->few[k] == k)
        k++;
    return k;
}

/* Scores by request: of those few, and then of one that stands for all others. */
static void score_few(struct standing *s, const struct memory *m, const struct ask *a)
{
    struct ask b = *a;
    uint32_t other = first_other(s);

    for (uint32_t j = 0; j < s->n_few; j++)
        s->candidate[j] = a->candidate[s->few[j]];
    b.candidate = s->candidate;
    b.n = s->n_few;
    if (other < a->n)
        s->candidate[b.n++] = a->candidate[other];
    for (uint32_t i = 0; i < s->n_terms; i++)
        if (s->term[i].scorer->by == BY_REQUEST)
            scorer_score(s->term[i].scorer, m, &b, s->score + i * ((size_t)s->cap + 1));
}

static void sum_few(struct standing *s, const struct view *v)
{
    for (uint32_t j = 0; j < s->n_few; j++) {
        s->sum[j] = 0.0;
        for (uint32_t i = 0; i < s->n_terms; i++) {
            double x = s->term[i].scorer->by == BY_REQUEST
                           ? s->score[i * ((size_t)s->cap + 1) + j]
                           : v->fixed[i * (size_t)s->cap + s->few[j]];

            s->sum[j] += term_part(&s->term[i], x);
        }
    }
}

/* ---- all others ------------------------------------------------------------ */

static void see(struct standing *s, struct view *v, const struct memory *m,
                const struct ask *a)
{
    if (v->look == a->look)
        return;
    v->look = a->look;
    for (unsigned i = 0; i < ORDERS; i++)
        v->order[i].known = false;
    for (uint32_t i = 0; i < s->n_terms; i++)
        if (s->term[i].scorer->by == BY_LOOK)
            scorer_score(s->term[i].scorer, m, a, v->fixed + i * (size_t)s->cap);
}

static int by_sum(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;

    if (a->sum != b->sum)
        return a->sum > b->sum ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

static void put_in_order(const struct standing *s, const struct view *v,
                         struct order *o, uint32_t n)
{
    bool ordered = true;

    for (uint32_t k = 0; k < n; k++) {
        double sum = 0.0;

        for (uint32_t i = 0; i < s->n_terms; i++)
            sum += term_part(&s->term[i], s->term[i].scorer->by == BY_REQUEST
                                              ? o->rest[i]
                                              : v->fixed[i * (size_t)s->cap + k]);
        o->ranked[k] = (struct ranked){sum, k};
        ordered = ordered && (k == 0 || o->ranked[k - 1].sum >= sum);
    }
    if (!ordered)
        qsort(o->ranked, n, sizeof(*o->ranked), by_sum);
    for (uint32_t k = 0; k < n; k++)
        o->at[o->ranked[k].place] = k;
    o->known = true;
}

static bool is_same(const double *a, const double *b, uint32_t n)
{
    while (n > 0 && a[n - 1] == b[n - 1])
        n--;
    return n == 0;
}

/* By what the one that stands for all others has. */
static const struct order *order_of_others(const struct standing *s, struct view *v,
                                           uint32_t n)
{
    double rest[MAX_TERMS] = {0};
    struct order *o;

    for (uint32_t i = 0; i < s->n_terms; i++)
        if (s->term[i].scorer->by == BY_REQUEST)
            rest[i] = s->score[i * ((size_t)s->cap + 1) + s->n_few];
    for (unsigned i = 0; i < ORDERS; i++)
        if (v->order[i].known && is_same(v->order[i].rest, rest, s->n_terms))
            return &v->order[i];
    o = &v->order[v->next];
    v->next = (v->next + 1) % ORDERS;
    memcpy(o->rest, rest, sizeof(rest));
    put_in_order(s, v, o, n);
    return o;
}

/* Places in [lo, hi) of the order that have one sum; best: the greatest that anyone has
 * of whom the request says nothing. */
struct peers {
    uint32_t lo, hi;
    double best;
};

static struct peers find_best(const struct standing *s, const struct order *o,
                              uint32_t n)
{
    struct peers p = {0, n, -1.0};
    uint32_t first = 0, end;

    /* Those few are skipped: each is ranked once, so that is over soon. */
    for (uint32_t passed = 0; passed < s->n_few && first < n; passed++, first++) {
        uint32_t lo = 0, hi = s->n_few, place = o->ranked[first].place;

        while (lo < hi) {
            uint32_t mid = lo + (hi - lo) / 2;

            if (s->few[mid] < place)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo == s->n_few || s->few[lo] != place)
            break;
    }
    p.best = o->ranked[first].sum;
    for (p.lo = first; p.lo > 0 && o->ranked[p.lo - 1].sum >= p.best;)
        p.lo--;
    end = first + 1;
    while (end < p.hi) {
        uint32_t mid = end + (p.hi - end) / 2;

        if (o->ranked[mid].sum >= p.best)
            end = mid + 1;
        else
            p.hi = mid;
    }
    return p;
}

/* ---- equals ------------------------------------------------------------------ */

static uint32_t count_tied(const struct standing *s, const struct order *o,
                           const struct peers *p, double best)
{
    uint32_t n = p->hi - p->lo;

    for (uint32_t j = 0; j < s->n_few; j++) {
        n += s->sum[j] >= best;
        n -= p->hi > p->lo && o->at[s->few[j]] >= p->lo && o->at[s->few[j]] < p->hi;
    }
    return n;
}

/* The t-th of them by place, from 0: peers follow each other between those few, who
 * have no part in it but by their own sums. */
static uint32_t nth_tied(const struct standing *s, const struct order *o,
                         const struct peers *p, double best, uint32_t t)
{
    uint32_t at = p->lo;

    for (uint32_t j = 0; j < s->n_few; j++) {
        uint32_t lo = at, hi = p->hi;

        while (lo < hi) {
            uint32_t mid = lo + (hi - lo) / 2;

            if (o->ranked[mid].place < s->few[j])
                lo = mid + 1;
            else
                hi = mid;
        }
        if (t < lo - at)
            return o->ranked[at + t].place;
        t -= lo - at;
        at = lo + (lo < p->hi && o->ranked[lo].place == s->few[j]);
        if (s->sum[j] >= best && t-- == 0)
            return s->few[j];
    }
    return o->ranked[at + t].place;
}

uint32_t standing_pick(struct standing *s, const struct memory *m, const struct ask *a,
                       struct vt_rng *rng)
{
    struct view *v = &s->view[a->pool];
    const struct order *o = NULL;
    struct peers p = {0, 0, -1.0};
    double best;
    uint32_t n;

    see(s, v, m, a);
    find_few(s, m, a);
    score_few(s, m, a);
    sum_few(s, v);
    if (s->n_few < a->n) {
        o = order_of_others(s, v, a->n);
        p = find_best(s, o, a->n);
    }
    best = p.best;
    for (uint32_t j = 0; j < s->n_few; j++)
        best = s->sum[j] > best ? s->sum[j] : best;
    if (p.best < best)
        p.lo = p.hi = 0;
    n = count_tied(s, o, &p, best);
    return nth_tied(s, o, &p, best, n > 1 ? (uint32_t)vt_rng_below(rng, n) : 0);
}
