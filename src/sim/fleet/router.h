/* router.h - the router's scorers; private to sim's router. */
#ifndef VT_SIM_ROUTER_H
#define VT_SIM_ROUTER_H

#include "sim/fleet/parts.h"

enum { ROUTER_LRU_KEYS = 10000 }; /* BLIS's, for each instance */

struct memory {              /* what a router remembers of its own choices */
    struct key_lru *lru;     /* of each instance */
    uint32_t *home[N_POOLS]; /* of each session; NO_HOME: none yet */
    uint64_t *used;          /* when each instance was last chosen; 0: never */
    uint64_t turn;           /* choices so far */
};

#define NO_HOME UINT32_MAX

struct scorer {
    const char *name;
    unsigned wants;
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

/* As BLIS counts: a request may count twice. */
static inline uint32_t requests_at(const struct seen *s)
{
    return s->waiting + s->running + s->in_flight;
}

#endif
