/* target.c - a trial at a live server: the same requests at the same times, as token
 * ids, measured from when they should have left, or, where the client keeps some back,
 * from when they were sent. */
#include <stdlib.h>

#include "load/load.h"
#include "report/report.h"
#include "tune/target.h"
#include "tune/trial.h"

/* Ids that stand for text in every vocabulary of use. */
enum { FIRST_ID = 1000, N_IDS = 30000 };

/* How late a request is that failed, or was cut off: beyond any limit. */
#define NEVER_NS (600 * VT_SEC)

/* ---- what to send -------------------------------------------------------------- */

static int add_request(struct vt_load_plan *p, const struct vt_workload *w,
                       const struct vt_work *q, struct vt_err *err)
{
    uint32_t *id = vt_arena_alloc(&p->arena, (q->prompt_tokens + 1) * sizeof(*id));
    const struct vt_load_turn turn = {
        .id = id,
        .n_ids = q->prompt_tokens,
        .prompt_tokens = q->prompt_tokens,
        .output_tokens = q->output_tokens,
    };
    const struct vt_load_session s = {.at = q->arrival_ns, .turn = &turn, .n_turns = 1};

    if (!id)
        return vt_nomem(err);
    /* Equal content becomes equal ids, so that a prefix cache has the hits it should.
     */
    for (uint32_t i = 0; i < q->n_segments; i++) {
        const struct vt_segment *g = &w->segment[q->first_segment + i];

        for (uint32_t k = 0; k < g->tokens; k++)
            *id++ = FIRST_ID +
                    (uint32_t)(vt_hash2(g->content, (uint64_t)g->offset + k) % N_IDS);
    }
    return vt_load_plan_add(p, &s, err);
}

/* *p is to be freed whatever happens. */
static int plan_load(struct vt_load_plan *p, const struct vt_trial *t,
                     struct vt_err *err)
{
    struct vt_workload w;
    int rc = vt_trial_workload(t, &w, err);

    *p = (struct vt_load_plan){.timed = true, .ignore_eos = true};
    for (size_t i = 0; rc == VT_OK && i < w.n; i++)
        rc = add_request(p, &w, &w.req[i], err);
    vt_trial_workload_free(&w);
    return rc;
}

/* ---- an end in time ------------------------------------------------------------- */

struct watch {
    const struct vt_load_config *asked; /* the caller's */
    const struct vt_load_plan *plan;
    vt_ns grace; /* a request that takes longer breaks a limit; VT_NEVER: not known */
    size_t due;  /* requests planned so long ago */
    vt_ns now;
    size_t done;
    bool hopeless;
};

/* Whoever has not come to an end within the limits of first and later tokens has broken
 * one of both. Where all come at once it is the throughput that is asked for. */
static vt_ns grace_of(const struct vt_slo *slo, const struct vt_load_plan *p)
{
    uint32_t most = 0;
    double ms = slo->e2e_p99;

    for (size_t i = 0; i < p->n; i++)
        if (p->session[i].turn->output_tokens > most)
            most = p->session[i].turn->output_tokens;
    if (!(ms > 0) && slo->ttft_p99 > 0 && slo->tpot_p99 > 0)
        ms = slo->ttft_p99 + slo->tpot_p99 * most;
    if (!(ms > 0 && ms < 1e9) || p->session[p->n - 1].at < vt_ns_from_ms(ms))
        return VT_NEVER;
    return vt_ns_from_ms(ms);
}

static void note_progress(void *user, const struct vt_load_progress *p)
{
    struct watch *w = user;

    w->now = p->now;
    w->done = p->done + p->failed;
    if (w->asked->progress)
        w->asked->progress(w->asked->user, p);
}

/* A p99 is out of reach once more than a hundredth broke that limit; which of the two
 * is not known, so it takes twice as many. */
static bool is_enough(void *user)
{
    struct watch *w = user;
    size_t n = w->plan->n;

    if (w->asked->stopped && w->asked->stopped(w->asked->user))
        return true;
    while (w->grace != VT_NEVER && w->due < n &&
           w->plan->session[w->due].at < w->now - w->grace)
        w->due++;
    w->hopeless = w->due > w->done + n / 50 + 2;
    return w->hopeless;
}

/* ---- what it amounts to --------------------------------------------- */

static void time_of(struct vt_timing *t, const struct vt_load_record *q, bool held,
                    vt_ns end)
{
    vt_ns from = held ? q->begun : q->planned;

    *t = (struct vt_timing){
        .arrival_ns = from,
        .ttft_ns = q->first - from,
        .e2e_ns = q->last - from,
        .queue_ns = -1,
        .prompt_tokens = q->prompt_tokens,
        .cached_tokens = q->cached_tokens,
        .output_tokens = q->output_tokens > 0 ? q->output_tokens : q->n_stamps,
    };
    if (q->ok)
        return;
    t->e2e_ns = end - from + NEVER_NS;
    if (q->first == 0 || q->failure != VT_LOAD_STOPPED)
        t->ttft_ns = t->e2e_ns;
    if (t->output_tokens < 2)
        t->output_tokens = 2;
}

int target_summary(struct vt_summary *s, const struct vt_load_records *r, bool held,
                   const struct vt_slo *slo, uint64_t *good, struct vt_err *err)
{
    struct vt_timings *all;
    int rc = vt_timings_new(&all, err);

    *good = 0;
    for (size_t i = 0; rc == VT_OK && i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];
        struct vt_timing t;

        time_of(&t, q, held, r->end);
        *good += slo_means_kept(slo, t.ttft_ns, t.e2e_ns, t.output_tokens);
        rc = vt_timings_add(all, &t, err);
        for (uint32_t k = 1; rc == VT_OK && k < q->n_stamps; k++)
            rc = vt_timings_gap(all, q->stamp[k] - q->stamp[k - 1], 1, err);
    }
    if (rc == VT_OK)
        rc = vt_timings_summarise(all, r->end, s, err);
    if (rc == VT_OK && s->prompt_tokens > 0)
        s->prefix_hit_rate = (double)s->cached_tokens / (double)s->prompt_tokens;
    vt_timings_free(all);
    return rc;
}

/* As a simulation's requests tell of it. One that was cut off was under way to the end;
 * one that failed says nothing. */
static double borne_rate(const struct vt_load_records *r, const struct vt_load_plan *p,
                         double rate)
{
    vt_ns first = p->session[0].at;
    struct backlog b = backlog_of(p->session[p->n - 1].at - first);

    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];

        if (q->ok || q->failure == VT_LOAD_STOPPED)
            backlog_add(&b, q->planned - first, (q->ok ? q->last : r->end) - first);
    }
    return backlog_rate(&b, rate);
}

/* ---- a trial -------------------------------------------------------- */

static int check_run(const struct vt_load_records *r, const struct watch *w,
                     struct vt_err *err)
{
    size_t ok = 0;
    const struct vt_load_record *bad = NULL;

    if (r->interrupted && !w->hopeless)
        return vt_fail(err, VT_EIO, "stopped");
    for (size_t i = 0; i < r->n; i++) {
        ok += r->record[i].ok ? 1 : 0;
        if (!bad && !r->record[i].ok)
            bad = &r->record[i];
    }
    if (ok > 0 || w->hopeless)
        return VT_OK;
    return vt_fail(err, VT_EIO, "none of %zu requests succeeded: %s", r->n,
                   !bad          ? "none was sent"
                   : bad->detail ? bad->detail
                                 : vt_load_failure_name(bad->failure));
}

static int run_plan(struct vt_target *x, const struct vt_load_plan *p,
                    const struct vt_trial *t, struct vt_summary *out, double *achieved,
                    struct vt_err *err)
{
    /* Whom the client keeps may be late and break nothing. */
    bool held = t->concurrency > 0;
    struct watch w = {
        .asked = x->load, .plan = p, .grace = held ? VT_NEVER : grace_of(&x->slo, p)};
    struct vt_load_config c;
    struct vt_load_records r = {0};
    int rc;

    target_config(&c, x);
    c.max_concurrency = t->concurrency;
    c.stopped = is_enough;
    c.progress = note_progress;
    c.user = &w;
    rc = vt_load_run(&r, p, NULL, &c, err);
    if (rc == VT_OK)
        rc = check_run(&r, &w, err);
    if (rc == VT_OK)
        rc = target_summary(out, &r, held, &x->slo, &x->good, err);
    if (rc == VT_OK && achieved)
        *achieved = borne_rate(&r, p, t->rate);
    if (w.hopeless)
        x->is_warm = false; /* it has to come to rest first */
    vt_load_records_free(&r);
    return rc;
}

int vt_target_measure(void *target, const struct vt_trial *t, struct vt_summary *out,
                      double *achieved, struct vt_err *err)
{
    struct vt_target *x = target;
    struct vt_load_plan plan;
    int rc = plan_load(&plan, t, err);

    if (rc == VT_OK)
        rc = target_prepare(x, &plan, err);
    if (rc == VT_OK)
        rc = run_plan(x, &plan, t, out, achieved, err);
    out->workload = t->workload;
    out->seed = t->seed;
    vt_load_plan_free(&plan);
    return vt_within(err, rc, "%s at %g requests/s", x->load->base_url, t->rate);
}
