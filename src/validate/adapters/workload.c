/* workload.c - an experiment as a list of requests. */
#include <math.h>
#include <stdlib.h>

#include "validate/adapters/adapter.h"

enum { MOST_PROFILE_REQUESTS = 10000000, SEED = 42 };

int adapter_work_add(struct adapter_work *w, vt_ns at, uint32_t prompt, uint32_t output,
                     uint32_t stage, struct vt_err *err)
{
    struct vt_workload *to = &w->w;
    size_t cap_stage = to->cap;
    char id[32];
    size_t len = (size_t)snprintf(id, sizeof(id), "request-%zu", to->n);
    int rc = vt_grow(&to->req, &to->cap, to->n + 1, sizeof(*to->req), err);

    if (rc == VT_OK)
        rc = vt_grow(&w->stage, &cap_stage, to->n + 1, sizeof(*w->stage), err);
    if (rc != VT_OK)
        return rc;
    to->req[to->n] = (struct vt_work){.id = vt_arena_copy(&to->arena, id, len),
                                      .arrival_ns = at,
                                      .prompt_tokens = prompt,
                                      .output_tokens = output,
                                      .max_tokens = output,
                                      .first_segment = (uint32_t)to->n_segments,
                                      .output_content = vt_content_output(id, len),
                                      .session = VT_NO_TURN,
                                      .next_turn = VT_NO_TURN,
                                      .beside = VT_NO_TURN,
                                      .first_turn = true};
    if (!to->req[to->n].id)
        return vt_nomem(err);
    w->stage[to->n++] = stage;
    w->longest = prompt + output > w->longest ? prompt + output : w->longest;
    return VT_OK;
}

int adapter_work_segment(struct adapter_work *work, uint64_t content, uint32_t tokens,
                         struct vt_err *err)
{
    struct vt_workload *w = &work->w;
    int rc;

    if (tokens == 0)
        return VT_OK;
    rc = vt_grow(&w->segment, &w->cap_segments, w->n_segments + 1, sizeof(*w->segment),
                 err);
    if (rc != VT_OK)
        return rc;
    w->segment[w->n_segments++] =
        (struct vt_segment){.content = content, .tokens = tokens};
    w->req[w->n - 1].n_segments++;
    return VT_OK;
}

/* ---- as planned ----------------------------------------------------- */

/* The k-th request: groups take turns, and every question is new unless the generator
 * says how many it had. */
static int add_planned(struct adapter_work *w, const struct vt_shared_prefix *p,
                       vt_ns at, uint32_t stage, struct vt_err *err)
{
    uint64_t all = (uint64_t)p->num_groups * p->num_prompts_per_group;
    uint64_t k = all > 0 ? w->w.n % all : w->w.n;
    uint64_t group =
        k % (p->num_groups > 0 ? p->num_groups : p->num_unique_system_prompts);
    int rc = adapter_work_add(w, at, p->system_prompt_len + p->question_len,
                              p->output_len, stage, err);

    if (rc == VT_OK)
        rc = adapter_work_segment(w, vt_hash2(11, group), p->system_prompt_len, err);
    return rc ? rc : adapter_work_segment(w, vt_hash2(12, k), p->question_len, err);
}

/* inference-perf's constant load is constant on average: gaps are exponential, drawn
 * for a whole stage and stretched to its duration. */
static int add_stage(struct adapter_work *w, const struct vt_experiment *e, size_t s,
                     double start_s, struct vt_err *err)
{
    const struct vt_stage_plan *p = &e->plan[s];
    struct vt_rng once, again;
    double sum = 0, at = 0;
    char stream[48];
    int rc = VT_OK;

    snprintf(stream, sizeof(stream), "validate stage %zu", s);
    vt_rng_init(&once, SEED, stream);
    again = once;
    for (uint64_t k = 0; k < p->requests; k++)
        sum += vt_rng_exp(&once);
    for (uint64_t k = 0; k < p->requests && rc == VT_OK; k++) {
        double ms = (start_s + p->duration_s * at / sum) * 1e3;

        rc = add_planned(w, &e->prefix, vt_ns_from_ms(ms), (uint32_t)s, err);
        at += vt_rng_exp(&again);
    }
    return rc;
}

/* ---- as sent --------------------------------------------------------- */

static int add_sent(struct adapter_work *w, const struct vt_experiment *e,
                    struct vt_err *err)
{
    int rc = VT_OK;

    w->sent = e->request;
    for (size_t i = 0; i < e->n_requests && rc == VT_OK; i++) {
        const struct vt_truth_request *q = &e->request[i];

        rc = adapter_work_add(w, vt_ns_from_ms(q->start_s * 1e3), q->input_tokens,
                              q->output_tokens, q->stage, err);
        for (uint32_t k = 0; k < q->n_segments && rc == VT_OK; k++)
            rc = adapter_work_segment(w, e->segment[q->first_segment + k].content,
                                      e->segment[q->first_segment + k].tokens, err);
    }
    return rc;
}

/* Clients that gave up did so when they did; the others, and those that are only
 * planned, would have after the same time. */
static int set_patience(struct adapter_work *w, const struct vt_experiment *e,
                        struct vt_err *err)
{
    if (e->n_failed == 0 && e->timeout_s <= 0)
        return VT_OK;
    w->patience = malloc((w->w.n + 1) * sizeof(*w->patience));
    if (!w->patience)
        return vt_nomem(err);
    for (size_t i = 0; i < w->w.n; i++) {
        bool failed = w->sent && w->sent[i].failed;
        double s = failed ? w->sent[i].e2e_s : e->timeout_s;

        w->patience[i] = failed || s > 0 ? vt_ns_from_ms(s * 1e3) : VT_NEVER;
    }
    return VT_OK;
}

/* ---- either --------------------------------------------------------- */

static bool is_planned(const struct vt_experiment *e)
{
    for (size_t i = 0; i < e->n_plan; i++)
        if (e->plan[i].requests > 0)
            return e->prefix.stated;
    return false;
}

int adapter_work_check(const struct vt_experiment *e, enum vt_harness_workload which,
                       struct vt_err *err)
{
    if (which == VT_WORKLOAD_TRACE && e->n_requests == 0)
        return vt_fail(err, VT_EINPUT, "needs per_request_lifecycle_metrics.json");
    if (which == VT_WORKLOAD_PROFILE && !is_planned(e))
        return vt_fail(err, VT_EINPUT,
                       "needs a profile with shared_prefix lengths and stages");
    if (which == VT_WORKLOAD_ADAPTER && e->n_requests == 0 && !is_planned(e))
        return vt_fail(err, VT_EINPUT,
                       "neither requests nor a profile to make them of");
    return VT_OK;
}

int adapter_work_open(struct adapter_work *w, const struct vt_experiment *e,
                      enum vt_harness_workload which, enum adapter_arrivals arrivals,
                      struct vt_err *err)
{
    bool replay = which == VT_WORKLOAD_TRACE ||
                  (which == VT_WORKLOAD_ADAPTER && e->n_requests > 0);
    double start_s = 0;
    int rc = adapter_work_check(e, which, err);

    *w = (struct adapter_work){
        .w = {.meta = {.async_scheduling = -1, .enable_prefix_caching = -1},
              .arrivals = VT_ARRIVALS_RECORDED}};
    w->w.source = e->folder;
    if (replay && rc == VT_OK)
        rc = add_sent(w, e, err);
    if (rc == VT_OK && !replay && gather_planned(e) > MOST_PROFILE_REQUESTS)
        return vt_fail(err, VT_EINPUT, "more than %d requests", MOST_PROFILE_REQUESTS);
    if (rc == VT_OK && !replay && arrivals != ARRIVALS_OPEN)
        return blis_arrivals_open(w, e, arrivals == ARRIVALS_EARLY, err);
    for (size_t s = 0; !replay && s < e->n_plan && rc == VT_OK; s++) {
        rc = add_stage(w, e, s, start_s, err);
        start_s += e->plan[s].duration_s;
    }
    return rc == VT_OK ? set_patience(w, e, err) : rc;
}

void adapter_work_close(struct adapter_work *w)
{
    vt_workload_free(&w->w);
    free(w->stage);
    free(w->patience);
}
