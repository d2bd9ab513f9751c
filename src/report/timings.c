/* timings.c - collects what happened to each request until it is summarised. */
#include "report/stats.h"

enum { TTFT, TPOT, ITL, E2E, QUEUE }; /* as vt_stat_rows has them */

struct vt_timings {
    struct vt_cells of[VT_N_STATS];
    uint64_t requests, prompt_tokens, output_tokens, cached_tokens;
    vt_ns first_arrival_ns, last_token_ns;
};

int vt_timings_new(struct vt_timings **out, struct vt_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return vt_nomem(err);
    (*out)->first_arrival_ns = INT64_MAX;
    (*out)->last_token_ns = INT64_MIN;
    return VT_OK;
}

void vt_timings_free(struct vt_timings *t)
{
    if (!t)
        return;
    for (size_t row = 0; row < VT_N_STATS; row++)
        vt_cells_free(&t->of[row]);
    free(t);
}

int vt_timings_add(struct vt_timings *t, const struct vt_timing *one,
                   struct vt_err *err)
{
    vt_ns end_ns = one->arrival_ns + one->e2e_ns;
    vt_ns gaps = one->output_tokens > 1 ? (vt_ns)one->output_tokens - 1 : 1;
    /* Rounded to the nanosecond here, so that every sample is an integer. */
    vt_ns tpot_ns = (2 * (one->e2e_ns - one->ttft_ns) + gaps) / (2 * gaps);
    int rc;

    if ((rc = vt_cells_add(&t->of[TTFT], one->ttft_ns, 1, err)) ||
        (rc = vt_cells_add(&t->of[E2E], one->e2e_ns, 1, err)) ||
        (one->output_tokens >= 2 &&
         (rc = vt_cells_add(&t->of[TPOT], tpot_ns, 1, err))) ||
        (one->queue_ns >= 0 &&
         (rc = vt_cells_add(&t->of[QUEUE], one->queue_ns, 1, err))))
        return rc;
    t->requests++;
    t->prompt_tokens += one->prompt_tokens;
    t->output_tokens += one->output_tokens;
    t->cached_tokens += one->cached_tokens;
    if (one->arrival_ns < t->first_arrival_ns)
        t->first_arrival_ns = one->arrival_ns;
    if (end_ns > t->last_token_ns)
        t->last_token_ns = end_ns;
    return VT_OK;
}

int vt_timings_gap(struct vt_timings *t, vt_ns gap_ns, uint32_t count,
                   struct vt_err *err)
{
    return count > 0 ? vt_cells_add(&t->of[ITL], gap_ns, count, err) : VT_OK;
}

int vt_timings_ungap(struct vt_timings *t, vt_ns gap_ns, struct vt_err *err)
{
    return vt_cells_add(&t->of[ITL], gap_ns, -1, err);
}

int vt_timings_join(struct vt_timings *t, struct vt_timings *from, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t row = 0; row < VT_N_STATS && rc == VT_OK; row++)
        rc = vt_cells_join(&t->of[row], &from->of[row], err);
    t->requests += from->requests;
    t->prompt_tokens += from->prompt_tokens;
    t->output_tokens += from->output_tokens;
    t->cached_tokens += from->cached_tokens;
    if (from->first_arrival_ns < t->first_arrival_ns)
        t->first_arrival_ns = from->first_arrival_ns;
    if (from->last_token_ns > t->last_token_ns)
        t->last_token_ns = from->last_token_ns;
    return rc;
}

int vt_timings_quantiles(struct vt_timings *t, size_t row, const double *percentile,
                         size_t n, double *out, uint64_t *samples, struct vt_err *err)
{
    return vt_cells_quantiles(&t->of[row], percentile, n, out, samples, err);
}

static double per_second(uint64_t n, double duration_s)
{
    return duration_s > 0 ? (double)n / duration_s : 0;
}

int vt_timings_summarise(struct vt_timings *t, vt_ns duration_ns, struct vt_summary *s,
                         struct vt_err *err)
{
    if (duration_ns <= 0)
        duration_ns = t->requests > 0 ? t->last_token_ns - t->first_arrival_ns : 0;
    for (size_t row = 0; row < VT_N_STATS; row++) {
        void *stat = (char *)s + vt_stat_rows[row].offset;
        int rc = vt_cells_stat(&t->of[row], stat, err);

        if (rc != VT_OK)
            return rc;
    }
    s->requests = t->requests;
    s->prompt_tokens = t->prompt_tokens;
    s->output_tokens = t->output_tokens;
    s->cached_tokens = t->cached_tokens;
    s->duration_s = (double)duration_ns / 1e9;
    s->req_per_s = per_second(t->requests, s->duration_s);
    s->output_tok_per_s = per_second(t->output_tokens, s->duration_s);
    s->total_tok_per_s = per_second(t->prompt_tokens + t->output_tokens, s->duration_s);
    return VT_OK;
}

int vt_timings_add_measured(struct vt_timings *t, const struct vt_workload *w,
                            struct vt_err *err)
{
    if (!w->measured)
        return vt_fail(err, VT_EINPUT, "%s: holds no measured times", w->source);
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_measured *m = &w->measured[i];
        struct vt_timing one = {
            .arrival_ns = w->req[i].arrival_ns,
            .ttft_ns = m->ttft_ns,
            .e2e_ns = m->e2e_ns,
            .queue_ns = m->queue_ns,
            .prompt_tokens = w->req[i].prompt_tokens,
            .cached_tokens = m->cached_tokens,
            .output_tokens = w->req[i].output_tokens,
        };
        int rc = vt_timings_add(t, &one, err);

        for (uint32_t k = 0; rc == VT_OK && k < m->n_gaps; k++)
            rc = vt_timings_gap(t, w->gap[m->first_gap + k], 1, err);
        if (rc != VT_OK)
            return rc;
    }
    return VT_OK;
}

static int add_view(struct vt_timings *t, const struct vt_view *v, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < v->n && rc == VT_OK && !v->only_samples; i++) {
        const struct vt_seen *q = &v->req[i];

        rc = vt_timings_add(t,
                            &(struct vt_timing){.arrival_ns = q->arrival_ns,
                                                .ttft_ns = q->ttft_ns,
                                                .e2e_ns = q->ttft_ns + q->decode_ns,
                                                .queue_ns = -1,
                                                .prompt_tokens = q->prompt_tokens,
                                                .cached_tokens = q->cached_tokens,
                                                .output_tokens = q->output_tokens},
                            err);
    }
    for (size_t i = 0; i < v->n && rc == VT_OK && v->only_samples; i++)
        if (v->req[i].ttft_ns >= 0)
            rc = vt_cells_add(&t->of[TTFT], v->req[i].ttft_ns, 1, err);
    for (size_t i = 0; i < v->n_gaps && rc == VT_OK; i++)
        rc = vt_timings_gap(t, v->gap[i], 1, err);
    return rc;
}

int vt_summary_view(struct vt_summary *s, const struct vt_view *v, struct vt_err *err)
{
    struct vt_timings *t;
    int rc = vt_timings_new(&t, err);

    *s = (struct vt_summary){0};
    if (rc != VT_OK)
        return rc;
    rc = add_view(t, v, err);
    if (rc == VT_OK)
        rc = vt_timings_summarise(t, 0, s, err);
    vt_timings_free(t);
    return rc;
}

int vt_summary_measured(struct vt_summary *s, const struct vt_workload *w,
                        struct vt_err *err)
{
    struct vt_timings *t;
    int rc = vt_timings_new(&t, err);

    if (rc != VT_OK)
        return rc;
    *s = (struct vt_summary){.workload = w->source, .simulated = w->meta.simulated};
    rc = vt_timings_add_measured(t, w, err);
    if (rc == VT_OK)
        rc = vt_timings_summarise(t, 0, s, err);
    vt_timings_free(t);
    if (s->prompt_tokens > 0)
        s->prefix_hit_rate = (double)s->cached_tokens / (double)s->prompt_tokens;
    return rc;
}

/* ---- several runs ---------------------------------------------------- */

void vt_summary_add(struct vt_summary *mean, const struct vt_summary *run, double share)
{
    mean->requests += run->requests;
    mean->prompt_tokens += run->prompt_tokens;
    mean->output_tokens += run->output_tokens;
    mean->cached_tokens += run->cached_tokens;
    mean->preemptions += run->preemptions;
    mean->steps += run->steps;
    mean->offloads |= run->offloads;
    mean->host_hit_rate += run->host_hit_rate * share;
    vt_offload_totals_add(&mean->offload, &run->offload);
    mean->vllm = run->vllm;
    memcpy(mean->kv_groups, run->kv_groups, sizeof(mean->kv_groups));
    vt_extent_join(&mean->extent, &run->extent);
    mean->kv_usage_peak += run->kv_usage_peak * share;
    for (size_t i = 0; i < VT_N_SCALARS; i++) {
        double *to = (void *)((char *)mean + vt_scalars[i].offset);

        *to += vt_scalar_of(run, i) * share;
    }
    for (size_t row = 0; row < VT_N_STATS; row++) {
        struct vt_stat *to = (void *)((char *)mean + vt_stat_rows[row].offset);

        to->n += vt_stat_of(run, row)->n;
        for (size_t p = 0; p < VT_N_PARTS; p++) {
            double *part = (void *)((char *)to + vt_parts[p].offset);

            *part += vt_part_of(vt_stat_of(run, row), p) * share;
        }
    }
}
