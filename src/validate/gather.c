/* gather.c - see gather.h. */
#include "validate/gather.h"

#include <math.h>
#include <stdlib.h>

int gather_open(struct gather *g, const struct vt_experiment *e, struct vt_err *err)
{
    size_t n = e->n_plan > 0 ? e->n_plan : 1;

    *g = (struct gather){.n_stages = n};
    g->part = calloc(n + 1, sizeof(*g->part));
    g->stage = calloc(n, sizeof(*g->stage));
    if (!g->part || !g->stage)
        return vt_nomem(err);
    for (size_t i = 0; i < e->n_plan; i++) {
        g->stage[i].rate = e->plan[i].rate;
        g->stage[i].duration_s = e->plan[i].duration_s;
    }
    return VT_OK;
}

static void add_decode(struct gather_part *p, const struct gather_request *r)
{
    double rest = r->output_tokens - 1.0;

    if (rest < 1)
        return;
    if (r->itl_ms > 0)
        p->decode_ms += r->itl_ms * rest;
    else if (!isnan(r->ttft_ms))
        p->decode_ms += r->e2e_ms - r->ttft_ms;
    else
        return;
    p->decoded += rest;
}

static int add_to(struct gather_part *p, const struct gather_request *r,
                  struct vt_err *err)
{
    int rc = values_add(&p->e2e, r->e2e_ms, err);

    p->requests++;
    if (rc == VT_OK && !isnan(r->ttft_ms))
        rc = values_add(&p->ttft, r->ttft_ms, err);
    for (uint32_t i = 0; i < r->n_gaps && rc == VT_OK; i++)
        rc = values_add(&p->gap, (double)r->gap[i] / 1e6, err);
    if (r->n_gaps == 0)
        add_decode(p, r);
    return rc;
}

static size_t part_of(const struct gather *g, uint32_t stage)
{
    return stage < g->n_stages ? stage : g->n_stages - 1;
}

void gather_leave_out(struct gather *g, uint32_t stage)
{
    g->part[part_of(g, stage)].left_out++;
    g->part[g->n_stages].left_out++;
}

int gather_first_token(struct gather *g, double ttft_ms, struct vt_err *err)
{
    return values_add(&g->part[g->n_stages].ttft, ttft_ms, err);
}

int gather_add(struct gather *g, const struct gather_request *r, struct vt_err *err)
{
    int rc = add_to(&g->part[part_of(g, r->stage)], r, err);

    return rc == VT_OK ? add_to(&g->part[g->n_stages], r, err) : rc;
}

/* mean, p90, p99; NAN without a sample, not 0: nothing was seen. */
static void describe_values(struct values *x, double out[3])
{
    out[0] = out[1] = out[2] = NAN;
    if (x->n == 0)
        return;
    vt_sort_f64(x->v, x->n);
    out[0] = values_mean(x);
    out[1] = vt_quantile(x->v, x->n, 90);
    out[2] = vt_quantile(x->v, x->n, 99);
}

static void finish_part(struct gather_part *p, struct vt_stage_metrics *m)
{
    m->requests = p->requests;
    m->sent = p->requests + p->left_out;
    describe_values(&p->e2e, &m->ms[0]);
    describe_values(&p->ttft, &m->ms[3]);
    describe_values(&p->gap, &m->ms[6]);
    if (p->gap.n == 0 && p->decoded > 0)
        m->ms[6] = p->decode_ms / p->decoded;
}

int gather_finish(struct gather *g, struct vt_err *err)
{
    if (g->part[g->n_stages].requests == 0)
        return vt_fail(err, VT_EINPUT, "no request came to its end");
    for (size_t i = 0; i < g->n_stages; i++) {
        g->stage[i].index = (int32_t)i;
        finish_part(&g->part[i], &g->stage[i]);
    }
    g->summary.index = -1;
    finish_part(&g->part[g->n_stages], &g->summary);
    return VT_OK;
}

void gather_close(struct gather *g)
{
    for (size_t i = 0; g->part && i <= g->n_stages; i++) {
        free(g->part[i].ttft.v);
        free(g->part[i].e2e.v);
        free(g->part[i].gap.v);
    }
    free(g->part);
    free(g->stage);
}

uint64_t gather_planned(const struct vt_experiment *e)
{
    uint64_t n = 0;

    for (size_t i = 0; i < e->n_plan; i++)
        n += e->plan[i].requests;
    return n;
}

uint32_t gather_stage_at(const struct vt_experiment *e, double s)
{
    double end = 0;

    for (size_t i = 0; i < e->n_plan; i++) {
        end += e->plan[i].duration_s;
        if (s < end)
            return (uint32_t)i;
    }
    return e->n_plan > 0 ? (uint32_t)e->n_plan - 1 : 0;
}
