/* score.c - how well each candidate suits a request, as BLIS scores it. */
#include <math.h>
#include <string.h>

#include "sim/fleet/router.h"

static const struct seen *seen_of(const struct ask *a, uint32_t k)
{
    return &a->seen[a->candidate[k]];
}

static void kv_utilization(const struct memory *m, const struct ask *a, double *score)
{
    (void)m;
    for (uint32_t k = 0; k < a->n; k++)
        score[k] = 1.0 - seen_of(a, k)->kv_usage;
}

static void load_balance(const struct memory *m, const struct ask *a, double *score)
{
    (void)m;
    for (uint32_t k = 0; k < a->n; k++)
        score[k] = 1.0 / (1.0 + requests_at(seen_of(a, k)));
}

static void active_requests(const struct memory *m, const struct ask *a, double *score)
{
    uint32_t most = 0;

    (void)m;
    for (uint32_t k = 0; k < a->n; k++)
        if (seen_of(a, k)->in_flight > most)
            most = seen_of(a, k)->in_flight;
    for (uint32_t k = 0; k < a->n; k++)
        score[k] =
            most == 0 ? 1.0 : (double)(most - seen_of(a, k)->in_flight) / (double)most;
}

static void load_aware(const struct memory *m, const struct ask *a, double *score)
{
    enum { FULL = 128 };

    (void)m;
    for (uint32_t k = 0; k < a->n; k++) {
        uint32_t q = seen_of(a, k)->waiting;

        score[k] = 0.5 * (1.0 - (double)(q < FULL ? q : FULL) / FULL);
    }
}

static void prefix_affinity(const struct memory *m, const struct ask *a, double *score)
{
    for (uint32_t k = 0; k < a->n; k++)
        score[k] = a->n_keys == 0 ? 0.0
                                  : (double)key_lru_match(&m->lru[a->candidate[k]],
                                                          a->key, a->n_keys) /
                                        a->n_keys;
}

/* Spreads prompts that nobody has: to where the last choice is longest ago. */
static void no_hit_lru(const struct memory *m, const struct ask *a, double *score)
{
    uint32_t rank = 0;

    for (uint32_t k = 0; k < a->n && a->n_hits > 0; k++)
        score[k] = 0.5;
    for (uint32_t i = m->newer[m->n]; i != m->n && a->n_hits == 0; i = m->newer[i])
        if (a->place[i] != NO_PLACE)
            score[a->place[i]] = a->n > 1 ? 1.0 - (double)rank++ / (a->n - 1) : 1.0;
}

static void session_affinity(const struct memory *m, const struct ask *a, double *score)
{
    uint32_t home = home_of(m, a);
    bool there = false;

    for (uint32_t k = 0; k < a->n; k++) {
        score[k] = a->candidate[k] == home;
        there |= a->candidate[k] == home;
    }
    for (uint32_t k = 0; k < a->n && !there; k++)
        score[k] = 1.0;
}

/* To add one: write its function, add a row, and its line in docs/simulate.md. */
static const struct scorer scorers[] = {
    {"queue-depth", WANT_STATE, BY_LOOK, .waiting = 1},
    {"kv-utilization", WANT_STATE, BY_LOOK, kv_utilization},
    {"prefix-affinity", WANT_KEYS | WANT_SENT, BY_REQUEST, prefix_affinity},
    {"precise-prefix-cache", WANT_KEYS | WANT_CACHED, BY_REQUEST, .cached = -1},
    {"session-affinity", WANT_HOME, BY_REQUEST, session_affinity},
    {"running-requests", WANT_STATE, BY_LOOK, .running = 1},
    {"vllm-dp", WANT_STATE, BY_LOOK, .waiting = 4, .running = 1},
    {"load-balance", WANT_STATE | WANT_EXACT, BY_ALL, load_balance},
    {"active-requests", WANT_EXACT, BY_ALL, active_requests},
    {"load-aware", WANT_STATE, BY_LOOK, load_aware},
    {"no-hit-lru", WANT_KEYS | WANT_CACHED, BY_ALL, no_hit_lru},
};

void scorer_score(const struct scorer *s, const struct memory *m, const struct ask *a,
                  double *score)
{
    double lo = INFINITY, hi = -INFINITY;

    if (s->score) {
        s->score(m, a, score);
        return;
    }
    for (uint32_t k = 0; k < a->n; k++) {
        const struct seen *x = seen_of(a, k);

        score[k] =
            s->waiting * x->waiting + s->running * x->running + s->cached * x->cached;
        lo = score[k] < lo ? score[k] : lo;
        hi = score[k] > hi ? score[k] : hi;
    }
    for (uint32_t k = 0; k < a->n; k++)
        score[k] = hi <= lo ? 1.0 : (hi - score[k]) / (hi - lo);
}

const struct scorer *scorer_find(const char *name, size_t len)
{
    for (size_t i = 0; i < VT_COUNT(scorers); i++)
        if (vt_is_text(scorers[i].name, name, len))
            return &scorers[i];
    return NULL;
}

size_t scorer_names(const char **names, size_t max)
{
    size_t n = 0;

    for (; n < VT_COUNT(scorers) && n < max; n++)
        names[n] = scorers[n].name;
    return n;
}
