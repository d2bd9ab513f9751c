/* harness.c - every adapter on every experiment. */
#include <stdlib.h>

#include "live/live.h"
#include "tune/tune.h"
#include "validate/adapters/adapters.h"

struct task { /* shared with the workers, which are forks of this process */
    struct vt_harness *h;
    const struct vt_experiments *x;
    const struct vt_harness_config *c;
    const struct adapter *adapter;
    size_t n_adapters;
    struct answer {
        struct vt_stage_metrics *stage, summary;
        size_t n_stages;
    } *answer; /* of each run; on the harness' arena, as its stages */
};

/* What a worker says, followed by the stages. */
struct reply {
    struct vt_adapter_run run; /* its pointers mean nothing */
    struct vt_stage_metrics summary;
    uint64_t n_stages;
};

/* ---- in a worker ----------------------------------------------------- */

static void say_why(struct reply *r, enum vt_adapter_outcome how,
                    const struct vt_err *why)
{
    r->run.outcome = how;
    snprintf(r->run.why, sizeof(r->run.why), "%s", why->msg);
}

/* The clock holds all that the adapter does, conversion and parsing too. */
static void try_adapter(const struct task *t, size_t i, struct reply *r,
                        struct gather *g)
{
    const struct adapter *a = &t->adapter[i % t->n_adapters];
    const struct adapter_job j = {
        .a = a, .e = &t->x->e[i / t->n_adapters], .all = t->x, .c = t->c};
    struct vt_err why = {0};
    vt_ns from;

    if (a->can_run(&j, &why) != VT_OK) {
        say_why(r, VT_ADAPTER_SKIPPED, &why);
        return;
    }
    from = vt_wall_ns();
    if (gather_open(g, j.e, &why) != VT_OK || a->run(&j, g, &why) != VT_OK) {
        say_why(r, VT_ADAPTER_FAILED, &why);
        return;
    }
    r->run.seconds = (double)(vt_wall_ns() - from) / 1e9;
    r->run.requests = g->summary.requests;
    r->run.failed = g->summary.sent - g->summary.requests;
    r->run.extent = g->extent;
    r->run.known = g->known;
    r->run.basis = g->basis;
    r->summary = g->summary;
    r->n_stages = g->n_stages;
}

static int run_job(void *user, size_t i, struct vt_buf *result, struct vt_err *err)
{
    const struct task *t = user;
    struct gather g = {0};
    struct reply r;

    (void)err;
    memset(&r, 0, sizeof(r)); /* padding goes over the wire too */
    try_adapter(t, i, &r, &g);
    vt_buf_add(result, &r, sizeof(r));
    vt_buf_add(result, g.stage, r.n_stages * sizeof(*g.stage));
    gather_close(&g);
    return VT_OK;
}

/* ---- here ------------------------------------------------------------ */

static void tell_of_run(const struct vt_harness_config *c,
                        const struct vt_adapter_run *r, const char *what,
                        const char *why)
{
    struct vt_buf b = {.max = 4096};

    if (!c->tell)
        return;
    vt_buf_printf(&b, "%s: %s \303\227 %s (%s): %s", what, r->simulator,
                  r->experiment->model, r->experiment->workload, why);
    if (!b.failed)
        c->tell(c->user, b.data);
    vt_buf_free(&b);
}

/* Takes one that is over into account. */
static int count_run(struct vt_harness *h, const struct vt_adapter_run *r,
                     const struct answer *a, struct vt_err *err)
{
    h->n_ok += r->outcome == VT_ADAPTER_OK;
    h->n_skipped += r->outcome == VT_ADAPTER_SKIPPED;
    h->n_failed += r->outcome == VT_ADAPTER_FAILED;
    return r->outcome == VT_ADAPTER_OK
               ? vt_errors_add(h, r->simulator, r->experiment, a->stage, a->n_stages,
                               &a->summary, err)
               : VT_OK;
}

static int count_up(struct task *t, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < t->h->n_runs && rc == VT_OK; i++) {
        struct vt_adapter_run *r = &t->h->run[i];
        const struct answer *a = &t->answer[i];
        char why[96];

        if (r->outcome == VT_ADAPTER_FAILED)
            tell_of_run(t->c, r, "FAIL", r->why);
        snprintf(why, sizeof(why), "%zu stages predicted, %zu measured", a->n_stages,
                 r->experiment->n_stages);
        if (r->outcome == VT_ADAPTER_OK && a->n_stages != r->experiment->n_stages)
            tell_of_run(t->c, r, "WARNING", why);
        rc = count_run(t->h, r, a, err);
    }
    return rc;
}

/* Those that are over, in the order in which they will stand at last. */
static int hand_on(struct task *t, struct vt_err *err)
{
    size_t n = t->x->n * t->n_adapters;
    struct vt_harness part = {0};
    int rc = vt_grow(&part.run, &part.cap_runs, n, sizeof(*part.run), err);

    for (size_t i = 0; i < n && rc == VT_OK; i++)
        if (t->h->run[i].experiment) {
            part.run[part.n_runs++] = t->h->run[i];
            rc = count_run(&part, &t->h->run[i], &t->answer[i], err);
        }
    if (rc == VT_OK)
        t->c->progress(t->c->user, &part, n);
    vt_harness_free(&part);
    return rc;
}

static int store_result(void *user, size_t i, const char *result, size_t len,
                        struct vt_err *err)
{
    struct task *t = user;
    struct answer *a = &t->answer[i];
    struct reply r;

    if (len < sizeof(r))
        return vt_fail(err, VT_EIO, "a result of %zu bytes", len);
    memcpy(&r, result, sizeof(r));
    if ((len - sizeof(r)) / sizeof(*a->stage) != r.n_stages)
        return vt_fail(err, VT_EIO, "a result of %zu bytes", len);
    t->h->run[i] = r.run;
    t->h->run[i].simulator = t->adapter[i % t->n_adapters].name;
    t->h->run[i].experiment = &t->x->e[i / t->n_adapters];
    a->summary = r.summary;
    a->n_stages = (size_t)r.n_stages;
    a->stage = vt_arena_alloc(&t->h->arena, (a->n_stages + 1) * sizeof(*a->stage));
    if (!a->stage)
        return vt_nomem(err);
    memcpy(a->stage, result + sizeof(r), a->n_stages * sizeof(*a->stage));
    return t->c->progress ? hand_on(t, err) : VT_OK;
}

static int run_all(struct task *t, struct vt_err *err)
{
    struct vt_jobs jobs = {.n = t->x->n * t->n_adapters,
                           .run = run_job,
                           .done = store_result,
                           .user = t,
                           .workers = t->c->workers};
    int rc;

    t->answer = vt_arena_alloc(&t->h->arena, (jobs.n + 1) * sizeof(*t->answer));
    rc = t->answer
             ? vt_grow(&t->h->run, &t->h->cap_runs, jobs.n + 1, sizeof(*t->h->run), err)
             : vt_nomem(err);
    if (rc == VT_OK)
        memset(t->h->run, 0, (jobs.n + 1) * sizeof(*t->h->run)); /* none is over */
    if (rc || (jobs.n > 0 && (rc = vt_jobs_run(&jobs, err))))
        return rc;
    t->h->n_runs = jobs.n;
    return count_up(t, err);
}

int vt_harness_run(struct vt_harness *h, const struct vt_experiments *x,
                   const struct vt_harness_config *c, struct vt_err *err)
{
    struct task t = {.h = h, .x = x, .c = c};
    int rc;

    *h = (struct vt_harness){0};
    rc = adapters_choose(&h->arena, c, &t.adapter, &t.n_adapters, err);
    if (rc == VT_OK)
        rc = run_all(&t, err);
    if (rc != VT_OK)
        vt_harness_free(h);
    return rc;
}

void vt_harness_free(struct vt_harness *h)
{
    free(h->run);
    free(h->error);
    vt_arena_free(&h->arena);
    *h = (struct vt_harness){0};
}
