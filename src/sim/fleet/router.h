/* router.h - the router's scorers and their sums; private to sim's router. */
#ifndef VT_SIM_ROUTER_H
#define VT_SIM_ROUTER_H

#include "sim/fleet/parts.h"

enum { ROUTER_LRU_KEYS = 10000 }; /* BLIS's, for each instance */
enum { MAX_TERMS = 16 };

struct memory {              /* what a router remembers of its own choices */
    struct key_lru *lru;     /* of each instance */
    struct holders sent;     /* the same by prompts' first keys */
    uint32_t *home[N_POOLS]; /* of each session; NO_HOME: none yet; NULL: not wanted */
    /* A ring of instances, the one that was chosen longest ago first, and those that
     * never were before all others; [n] is both of its ends. */
    uint32_t *newer, *older;
    bool *chosen; /* ever */
    uint32_t n;
};

#define NO_HOME UINT32_MAX

static inline uint32_t home_of(const struct memory *m, const struct ask *a)
{
    return m->home[a->pool] && a->session != VT_NO_TURN ? m->home[a->pool][a->session]
                                                        : NO_HOME;
}

enum score_by {
    BY_ALL,     /* anything: each request is to be scored anew */
    BY_LOOK,    /* what a look shows of all candidates */
    BY_REQUEST, /* one score for all but the request's hits, those that its beginning
                 * was sent to, and its session's home */
};

struct scorer {
    const char *name;
    unsigned wants;
    enum score_by by;
    void (*score)(const struct memory *m, const struct ask *a, double *score);
    /* Without a function: the place between the extremes of a sum, the least is best.
     */
    double waiting, running, cached;
};

/* One score in [0, 1] for each candidate. */
void scorer_score(const struct scorer *s, const struct memory *m, const struct ask *a,
                  double *score);
const struct scorer *scorer_find(const char *name, size_t len); /* NULL: none */
/* Their names; returns how many. */
size_t scorer_names(const char **names, size_t max);

struct term {
    const struct scorer *scorer;
    double weight; /* all of them add up to 1 */
};
static inline double term_part(const struct term *t, double score)
{
    return t->weight * (score < 0.0 ? 0.0 : score > 1.0 ? 1.0 : score);
}

/* ---- sums of terms none of which is BY_ALL (standing.c) ----------- */

struct standing; /* opaque */
/* Borrows the terms. cap: most candidates. */
int standing_new(struct standing **out, const struct term *term, uint32_t n_terms,
                 uint32_t cap, struct vt_err *err);
void standing_free(struct standing *s); /* NULL is fine */
/* The place of the greatest sum; equals draw lots. */
uint32_t standing_pick(struct standing *s, const struct memory *m, const struct ask *a,
                       struct vt_rng *rng);

/* As BLIS counts: a request may count twice. */
static inline uint32_t requests_at(const struct seen *s)
{
    return s->waiting + s->running + s->in_flight;
}

#endif
