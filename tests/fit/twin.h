/* twin.h - captures of the twin itself, made in memory, and what may befall them. */
#ifndef VT_TEST_FIT_TWIN_H
#define VT_TEST_FIT_TWIN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "fit/fit.h"
#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"

struct recorder {
    struct vt_steps steps;
    struct vt_workload *w;
    size_t cap_gaps;
};

static inline char *copied(struct vt_arena *a, const char *text)
{
    return vt_arena_copy(a, text, strlen(text));
}

static inline int keep_step(void *user, const struct vt_step_line *s,
                            struct vt_err *err)
{
    struct recorder *r = user;
    struct vt_steps *t = &r->steps;
    struct vt_step_prefill *p;
    int rc = vt_grow(&t->step, &t->cap, t->n + 1, sizeof(*t->step), err);

    if (rc != VT_OK)
        return rc;
    p = vt_arena_alloc(&t->arena, ((size_t)s->n_prefill + 1) * sizeof(*p));
    for (uint32_t i = 0; i < s->n_prefill; i++) {
        p[i] = s->prefill[i];
        p[i].id = copied(&t->arena, s->prefill[i].id);
    }
    t->step[t->n] = *s;
    t->step[t->n].prefill = p;
    t->step[t->n].preempted = NULL;
    t->step[t->n++].n_preempted = 0;
    return VT_OK;
}

static inline int keep_request(void *user, const struct vt_served *s,
                               struct vt_err *err)
{
    struct recorder *r = user;
    struct vt_workload *w = r->w;
    struct vt_measured *m = &w->measured[s->req - w->req];
    int rc =
        vt_grow(&w->gap, &r->cap_gaps, w->n_gaps + s->n_gaps, sizeof(*w->gap), err);

    if (rc != VT_OK)
        return rc;
    *m = (struct vt_measured){.ttft_ns = s->ttft_ns,
                              .e2e_ns = s->ttft_ns,
                              .first_gap = w->n_gaps,
                              .n_gaps = s->n_gaps,
                              .cached_tokens = s->cached_tokens,
                              .queue_ns = s->queue_ns};
    for (uint32_t i = 0; i < s->n_gaps; i++) {
        w->gap[w->n_gaps++] = s->gap[i];
        m->e2e_ns += s->gap[i];
    }
    w->req[s->req - w->req].arrival_ns = s->arrival_ns;
    return VT_OK;
}

#define TRUTH                                                                      \
    "step:base=6000,graph_token=25,context_ktoken=40,mixed=1500,mixed_token=15,"   \
    "eager=1000,eager_token=30,prefill=50,depth_mtoken=800,host_arrive=1000,"      \
    "host_sched=200,host_sched_request=10,host_lead=700,host_launch_graph=900,"    \
    "host_launch_mixed=9000,host_launch_eager=21000,host_tail=2500,host_done=100," \
    "host_done_request=5,host_turnaround=1500"

static const char *const loads[] = {
    "{requests: 30, arrival: {process: closed, concurrency: 2}, prompt: {dist: "
    "lognormal, "
    "median: 400, sigma: 0.9, min: 8, max: 6000}, output: {dist: uniform, min: 5, max: "
    "90}}",
    "{requests: 120, arrival: {process: closed, concurrency: 24}, prompt: {dist: "
    "lognormal, "
    "median: 400, sigma: 0.9, min: 8, max: 6000}, output: {dist: uniform, min: 5, max: "
    "90}}",
    "{requests: 250, arrival: {process: closed, concurrency: 96}, prompt: {dist: "
    "lognormal, "
    "median: 300, sigma: 0.8, min: 8, max: 4000}, output: {dist: uniform, min: 20, "
    "max: 200}}",
    "{requests: 100, arrival: {process: poisson, rate: 9}, prompt: {dist: lognormal, "
    "median: 700, sigma: 0.9, min: 8, max: 8000}, output: {dist: uniform, min: 20, "
    "max: 150}}",
    "{requests: 60, arrival: {process: poisson, rate: 4}, prompt: {dist: uniform, "
    "min: 50, "
    "max: 300}, output: {dist: uniform, min: 60, max: 240}, sessions: {turns: 4, "
    "starters: 5, "
    "starter: 3500}}",
};

enum { N_LOADS = VT_COUNT(loads) };

/* The same kinds, for tests that fit many times. */
static const char *const short_loads[N_LOADS] = {
    "{requests: 16, arrival: {process: closed, concurrency: 2}, prompt: {dist: "
    "lognormal, median: 400, sigma: 0.9, min: 8, max: 6000}, output: {dist: uniform, "
    "min: 5, max: 40}}",
    "{requests: 50, arrival: {process: closed, concurrency: 16}, prompt: {dist: "
    "lognormal, median: 400, sigma: 0.9, min: 8, max: 6000}, output: {dist: uniform, "
    "min: 5, max: 60}}",
    "{requests: 90, arrival: {process: closed, concurrency: 48}, prompt: {dist: "
    "lognormal, median: 300, sigma: 0.8, min: 8, max: 4000}, output: {dist: uniform, "
    "min: 20, max: 90}}",
    "{requests: 36, arrival: {process: poisson, rate: 9}, prompt: {dist: lognormal, "
    "median: 700, sigma: 0.9, min: 8, max: 8000}, output: {dist: uniform, min: 20, "
    "max: 80}}",
    "{requests: 24, arrival: {process: poisson, rate: 5}, prompt: {dist: uniform, min: "
    "50, max: 300}, output: {dist: uniform, min: 20, max: 60}, sessions: {turns: 3, "
    "starters: 5, starter: 3500}}",
};

/* Every so many-th request is given up when its prompt has been computed: the engine
 * did the work, and the trace has no line of it. Not for sessions. */
static inline void give_up(struct vt_workload *w, uint32_t every)
{
    for (size_t i = every - 1; i < w->n; i += every)
        w->req[i].output_tokens = w->req[i].max_tokens = 1;
}

static inline void forget_given_up(struct vt_workload *w, uint32_t every)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        if (i % every == every - 1)
            continue;
        w->req[n] = w->req[i];
        w->measured[n++] = w->measured[i];
    }
    w->n_unanswered = w->n - n;
    w->n = n;
}

struct circumstances { /* all zero: none */
    uint32_t blocks;   /* of the KV cache; 0: more than enough */
    uint32_t give_up_every;
    bool warm; /* of every second prompt three quarters are cached from before */
};

static inline uint32_t warm_tokens(const struct vt_workload *w, size_t i)
{
    return i % 2 == 0 ? w->req[i].prompt_tokens * 3 / 4 / 16 * 16 : 0;
}

static inline uint64_t record_in(struct recorder *r, struct vt_workload *w,
                                 const struct vt_latency *m, const char *yaml,
                                 struct circumstances how)
{
    struct vt_sim_sink sink = {.user = r, .request = keep_request, .step = keep_step};
    struct vt_sim_spec spec = {.workload = w, .model = m, .sink = &sink};
    struct vt_summary sum;
    struct vt_err err = {0};

    memset(w, 0, sizeof(*w));
    memset(r, 0, sizeof(*r));
    r->w = w;
    if (vt_workload_generate_text(w, "test", yaml, strlen(yaml), -1, &err) != VT_OK)
        fail_msg("%s", err.msg);
    w->measured = calloc(w->n, sizeof(*w->measured));
    assert_non_null(w->measured);
    vt_engine_config_init(&spec.engine);
    spec.engine.max_num_seqs = 256;
    if (how.give_up_every > 0)
        give_up(w, how.give_up_every);
    for (size_t i = 0; how.warm && i < w->n; i++)
        w->measured[i].cached_tokens = warm_tokens(w, i);
    spec.cached_as_measured = how.warm;
    if (how.blocks > 0) {
        spec.engine.num_gpu_blocks = how.blocks;
        vt_set_max_model_len(&spec.engine, 8192);
    }
    spec.arrivals = w->arrivals;
    spec.concurrency = w->concurrency;
    if (vt_sim_run(&spec, &sum, &err) != VT_OK)
        fail_msg("%s", err.msg);
    for (size_t i = 0; how.warm && i < w->n; i++)
        w->measured[i].cached_tokens = warm_tokens(w, i);
    if (how.give_up_every > 0)
        forget_given_up(w, how.give_up_every);
    w->meta.max_num_seqs = 256;
    w->meta.async_scheduling = w->meta.enable_prefix_caching = 1;
    return sum.preemptions;
}

static inline void record(struct recorder *r, struct vt_workload *w,
                          const struct vt_latency *m, const char *yaml)
{
    (void)record_in(r, w, m, yaml, (struct circumstances){0});
}

static inline void near(const char *what, double got, double want, double share)
{
    if (fabs(got / want - 1) > share)
        fail_msg("%s: %.2f, not %.2f", what, got, want);
}

/* ---- other times ---------------------------------------------------------- */

typedef vt_ns other_time(const void *user, vt_ns t);

/* Everything happens at another time, what clients do too. */
static inline void change_times(struct recorder *r, other_time *at, const void *user)
{
    struct vt_workload *w = r->w;

    for (size_t i = 0; i < r->steps.n; i++) {
        struct vt_step_line *x = &r->steps.step[i];
        vt_ns *const time[] = {&x->sched_ns, &x->sched_end_ns, &x->out_ns, &x->done_ns};

        for (size_t k = 0; k < VT_COUNT(time); k++)
            *time[k] = at(user, *time[k]);
    }
    for (size_t i = 0; i < w->n; i++) {
        struct vt_measured *m = &w->measured[i];
        vt_ns t = w->req[i].arrival_ns, start = at(user, t), last, now;

        w->req[i].arrival_ns = start;
        m->e2e_ns = at(user, t + m->e2e_ns) - start;
        t += m->ttft_ns;
        last = at(user, t);
        m->ttft_ns = last - start;
        for (uint32_t g = 0; g < m->n_gaps; g++) {
            t += w->gap[m->first_gap + g];
            now = at(user, t);
            w->gap[m->first_gap + g] = now - last;
            last = now;
        }
    }
}

struct stall {
    vt_ns at, lasts;
};

struct stalls {
    const struct stall *s;
    size_t n;
};

static inline vt_ns delayed(const void *user, vt_ns t)
{
    const struct stalls *all = user;
    vt_ns by = 0;

    for (size_t i = 0; i < all->n; i++)
        by += t >= all->s[i].at ? all->s[i].lasts : 0;
    return t + by;
}

static inline void inject_stalls(struct recorder *r, const struct stall *s, size_t n)
{
    struct stalls all = {s, n};

    change_times(r, delayed, &all);
}

static inline vt_ns paced(const void *user, vt_ns t)
{
    return (vt_ns)llround(*(const double *)user * (double)t);
}

/* The same on a machine that takes so many times as long. */
static inline void change_pace(struct recorder *r, double pace)
{
    change_times(r, paced, &pace);
}

/* ---- several, and what befell them --------------------------------------- */

struct captures {
    struct recorder r[N_LOADS];
    struct vt_workload w[N_LOADS];
    struct vt_fit *fit;
};

/* From the result of a step on, a stall delays everything. */
struct where {
    int load;
    double share; /* of its steps */
    double ms;
};

struct mishaps {
    const struct where *stall;
    size_t n;
    double pace; /* of the machine that ran load `odd`; 0: that of all others */
    int odd;
    bool brief; /* of short_loads */
};

/* First uses of kernels: more than half of the shortest captures' time. */
static const struct where first_uses[] = {
    {0, 0.1, 1500}, {0, 0.2, 900},  {0, 0.5, 2200}, {0, 0.9, 700},
    {1, 0.05, 800}, {1, 0.3, 1100}, {1, 0.6, 1300}, {3, 0.4, 120},
};
enum { N_FIRST_USES = VT_COUNT(first_uses) };

static inline void stall_load(struct captures *c, int load, const struct mishaps *m)
{
    const struct vt_steps *s = &c->r[load].steps;
    struct stall own[16];
    size_t n = 0;

    for (size_t k = 0; k < m->n; k++) {
        size_t step = (size_t)(m->stall[k].share * (double)s->n);

        if (m->stall[k].load == load)
            own[n++] =
                (struct stall){s->step[step].out_ns, (vt_ns)(1e6 * m->stall[k].ms)};
    }
    inject_stalls(&c->r[load], own, n);
}

static inline void make_captures(struct captures *c, const char *model,
                                 const struct mishaps *mishaps)
{
    struct vt_fit_shape shape = {0};
    struct vt_latency *m;
    struct vt_err err = {0};

    memset(c, 0, sizeof(*c));
    assert_int_equal(vt_model_open_inline(&m, model, &err), VT_OK);
    assert_int_equal(vt_fit_new(&c->fit, &shape, &err), VT_OK);
    for (int i = 0; i < N_LOADS; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "load-%d", i);
        record(&c->r[i], &c->w[i], m, mishaps->brief ? short_loads[i] : loads[i]);
        stall_load(c, i, mishaps);
        if (mishaps->pace > 0 && mishaps->odd == i)
            change_pace(&c->r[i], mishaps->pace);
        assert_int_equal(vt_fit_add(c->fit, name, &c->r[i].steps, &c->w[i], &err),
                         VT_OK);
    }
    vt_latency_close(m);
}

static inline void free_captures(struct captures *c)
{
    for (int i = 0; i < N_LOADS; i++) {
        vt_steps_free(&c->r[i].steps);
        vt_workload_free(&c->w[i]);
    }
    vt_fit_free(c->fit);
}

#endif
