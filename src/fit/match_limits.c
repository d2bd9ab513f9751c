/* match_limits.c - what of the server nobody states: its seats, its pool, and a
 * frontend that reads bursts first. */
#include "fit/match_search.h"

#include <math.h>

/* A pool that nobody states is there if with it the cost falls below this share. */
static const double FALLS_INTO_PLACE = 0.5;

/* ---- limits that nobody states ------------------------------------------ */

/* No request may need more than there is. */
static double longest_of_all(const struct vt_match *m)
{
    double most = 0;

    for (size_t i = 0; i < m->n; i++)
        most = fmax(most, longest_request(m->load[i].w));
    return most;
}

/* For so many tokens. */
static void set_pool(struct vt_match *m, struct vt_match_result *r, double tokens)
{
    for (size_t i = 0; i < m->n; i++) {
        struct vt_engine_config *c = &m->load[i].engine;

        c->block_size = m->load[0].engine.block_size;
        limits_pool(c, fmax(tokens, longest_of_all(m)));
    }
    r->block_size = m->load[0].engine.block_size;
    r->num_gpu_blocks = m->load[0].engine.num_gpu_blocks;
}

void match_find_limits(struct search *s, struct vt_match_result *r)
{
    struct vt_match *m = s->m;
    bool seats_stated = false, pool_stated = false;
    double tokens = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct limits *l = &m->load[i].shown;

        seats_stated |= m->load[i].w->meta.max_num_seqs > 0;
        pool_stated |= m->load[i].w->meta.num_gpu_blocks > 0;
        r->load[i].waited = l->waited;
        if (l->seats > r->max_num_seqs)
            r->max_num_seqs = l->seats;
        tokens = fmax(tokens, l->tokens);
    }
    if (seats_stated)
        r->max_num_seqs = 0;
    for (size_t i = 0; i < m->n && r->max_num_seqs > 0; i++)
        m->load[i].engine.max_num_seqs = r->max_num_seqs;
    s->pool_tokens = pool_stated ? 0 : tokens;
}

static int pool_error(struct search *s, double *sum, struct vt_err *err)
{
    int rc = VT_OK;

    *sum = 0;
    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        double e = 0;

        if (match_counts(s, i))
            rc = match_error(&s->best, i, &e, err);
        *sum += e * e;
    }
    return rc;
}

/* What shows of the pool is about right: of sizes around it the one stays with which
 * the loads come out best. */
static int scan_pool(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    static const double around[] = {0.06, 0.015};
    double found = s->pool_tokens;

    for (size_t i = 0; i < VT_COUNT(around); i++) {
        double middle = found, least = INFINITY;

        for (int k = -5; k <= 5; k++) {
            double tokens = middle * (1 + k * around[i]), e;
            int rc;

            set_pool(s->m, r, tokens);
            if ((rc = pool_error(s, &e, err)))
                return rc;
            if (e < least) {
                least = e;
                found = tokens;
            }
        }
    }
    set_pool(s->m, r, found);
    return VT_OK;
}

/* A pool is only believed in if loads in which requests waited come out wrong without
 * it, and all far better with it. */
int match_find_pool(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    double worst = 0, without = s->best.cost;
    int rc = VT_OK;

    for (size_t i = 0; i < s->m->n && s->pool_tokens > 0 && rc == VT_OK; i++) {
        double e = 0;

        if (match_counts(s, i) && r->load[i].waited)
            rc = match_error(&s->best, i, &e, err);
        worst = fmax(worst, e);
    }
    if (rc != VT_OK || worst < MATCH_UNLIKE)
        return rc;
    set_pool(s->m, r, s->pool_tokens);
    if ((rc = match_best(s, r, err)) || (rc = scan_pool(s, r, err)) ||
        (rc = match_best(s, r, err)) || s->best.cost < FALLS_INTO_PLACE * without)
        return rc;
    for (size_t i = 0; i < s->m->n; i++) {
        struct match_load *l = &s->m->load[i];

        l->engine.num_gpu_blocks = l->unlimited_blocks;
    }
    r->num_gpu_blocks = r->block_size = 0;
    return match_best(s, r, err);
}

/* ---- frontends that read bursts first ----------------------------------- */

/* Python's does, as it was measured. It is believed in if all loads come out far better
 * with it: many that come together have their first tokens later than any engine
 * explains. Only a client sees it. */
int match_find_reading(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    static const double SHOWS = 0.8;
    const struct match_kind *kind = s->best.kind;
    const struct vt_front *python = vt_front_find("python");
    struct attempt a = s->best;
    int rc;

    if (match_look_clock(s->m) != VT_CLOCK_CLIENT)
        return VT_OK;
    s->m->read_us = python->read_us;
    s->m->pass_us = python->pass_us;
    match_point_hints(&a);
    rc = match_fit(&a, match_fine_slopes, MATCH_FINE, err);
    if (rc != VT_OK || a.cost > SHOWS * s->best.cost) {
        s->m->read_us = s->m->pass_us = 0;
        return rc;
    }
    r->read_us = s->m->read_us;
    r->pass_us = s->m->pass_us;
    s->least = INFINITY;
    return match_try(s, (size_t)(kind - match_kinds), r, err);
}
