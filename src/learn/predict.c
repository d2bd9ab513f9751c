/* predict.c - what a model says of a load: to make loads as long as they should be, and
 * to be judged by what is measured afterwards. */
#include "learn/predict.h"

#include <math.h>

#include "sim/sim.h"

int predict(const struct vt_workload *w, const struct vt_meta *engine,
            const struct vt_latency *model, const struct vt_front *front,
            struct vt_summary *out, struct vt_err *err)
{
    struct vt_sim_spec spec = {.workload = w,
                               .model = model,
                               .clock = VT_CLOCK_CLIENT,
                               .frontend = front,
                               .arrivals = w->arrivals,
                               .concurrency = w->concurrency};

    vt_engine_config_init(&spec.engine);
    vt_engine_config_take(&spec.engine, engine);
    spec.engine.seed = 1;
    *out = (struct vt_summary){0};
    return vt_sim_run(&spec, out, err);
}

/* ---- to size ------------------------------------------------------------ */

static int make_load(struct vt_workload *out, const struct plan_row *p,
                     const struct plan_sizes *s, size_t n, double rate, uint64_t seed,
                     struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    plan_spec(&b, p, s, n, rate);
    rc = b.failed ? vt_nomem(err)
                  : vt_workload_generate_text(out, p->name, b.data, b.len,
                                              (int64_t)(seed & INT64_MAX), err);
    vt_buf_free(&b);
    if (rc == VT_OK && p->how != PLAN_CLOSED)
        out->concurrency = s->top;
    return rc;
}

/* Requests a second that the row's closed loop bears; an open one's lengths at the
 * top. */
static int find_rate(const struct plan_row *p, const struct plan_sizes *s,
                     const struct vt_meta *engine, const struct vt_latency *model,
                     uint64_t seed, double *rate, struct vt_err *err)
{
    struct plan_row closed = *p;
    struct vt_workload w = {0};
    struct vt_summary out;
    size_t n;
    int rc;

    if (p->how != PLAN_CLOSED)
        closed.level = 1;
    closed.how = PLAN_CLOSED;
    n = 4 * (size_t)plan_concurrency(&closed, s);
    rc = make_load(&w, &closed, s, n > 24 ? n : 24, 0, seed, err);
    if (rc == VT_OK)
        rc = predict(&w, engine, model, NULL, &out, err);
    vt_workload_free(&w);
    *rate = rc == VT_OK ? out.req_per_s : 0;
    return rc;
}

int predict_size(struct vt_workload *out, const struct plan_row *p,
                 const struct plan_sizes *s, const struct vt_meta *engine,
                 const struct vt_latency *model, uint64_t seed, struct vt_err *err)
{
    /* A fit simulates its loads thousands of times: more requests than so many tell it
     * little more. */
    enum { LEAST = 12, ENOUGH = 250 };
    size_t least = p->how == PLAN_CLOSED ? 2 * plan_concurrency(p, s) : 0;
    double most = fmax(ENOUGH, 5.0 * plan_concurrency(p, s)), rate, n;
    int rc = find_rate(p, s, engine, model, seed, &rate, err);

    if (rc != VT_OK)
        return rc;
    if (p->how != PLAN_CLOSED)
        rate *= p->level;
    n = fmin(fmax(rate * s->seconds, fmax((double)least, LEAST)), most);
    return make_load(out, p, s, (size_t)n, rate, seed, err);
}
