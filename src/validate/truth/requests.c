/* requests.c - which requests there were, and what is measured better from them than
 * the summaries say. */
#include <math.h>
#include <stdlib.h>

#include <string.h>

#include "report/report.h"
#include "validate/gather.h"
#include "validate/truth/truth.h"

/* ---- one request ------------------------------------------------------------ */

/* Content by its name; without any it is what no other request has. */
static int add_segments(struct vt_experiment *e, const struct vt_record *r,
                        uint32_t tokens, struct vt_err *err)
{
    uint32_t n = r->n_segments > 0 ? r->n_segments : 1;
    int rc = vt_grow(&e->segment, &e->cap_segments, e->n_segments + n,
                     sizeof(*e->segment), err);

    for (uint32_t i = 0; i < n && rc == VT_OK; i++) {
        const struct vt_record_segment *s = r->n_segments > 0 ? &r->segment[i] : NULL;

        e->segment[e->n_segments++] = (struct vt_segment){
            .content = s ? vt_content_named(s->name, strlen(s->name))
                         : vt_hash2(5, e->n_requests),
            .tokens = s ? s->tokens : tokens,
        };
    }
    return rc;
}

/* About two events came for a token in the data of old; only where there is one time a
 * token are they tokens' times. */
static bool has_token_times(const struct vt_record *r)
{
    return !r->by_mean && r->ttft_ns >= 0 && r->n_gaps + 1 == r->output_tokens;
}

static int add_gaps(struct vt_experiment *e, struct vt_truth_request *q,
                    const struct vt_record *r, struct vt_err *err)
{
    int rc;

    if (!has_token_times(r))
        return VT_OK;
    rc = vt_grow(&e->gap, &e->cap_gaps, e->n_gaps + r->n_gaps, sizeof(*e->gap), err);
    for (uint32_t i = 0; i < r->n_gaps && rc == VT_OK; i++)
        e->gap[e->n_gaps++] = r->gap[i];
    q->n_gaps = rc == VT_OK ? r->n_gaps : 0;
    return rc;
}

/* What a client counted in the text is not what an engine made that may not stop. */
static bool is_nominal(const struct vt_experiment *e, const struct vt_record *r)
{
    return r->output_tokens == 0 || (e->prefix.ignore_eos && e->prefix.stated &&
                                     !r->counted && !has_token_times(r));
}

/* A request that failed may not be told how long it was; then it was as planned. */
static int add_request(struct vt_experiment *e, const struct vt_record *r,
                       struct vt_err *err)
{
    const struct vt_shared_prefix *p = &e->prefix;
    struct vt_truth_request q = {.start_s = (double)r->arrival_ns / 1e9,
                                 .e2e_s = (double)r->e2e_ns / 1e9,
                                 .ttft_s =
                                     r->ttft_ns < 0 ? NAN : (double)r->ttft_ns / 1e9,
                                 .input_tokens = r->prompt_tokens,
                                 .output_tokens = r->output_tokens,
                                 .stage = r->stage,
                                 .failed = r->failure != NULL,
                                 .first_segment = (uint32_t)e->n_segments,
                                 .first_gap = e->n_gaps};
    int rc;

    if (q.input_tokens == 0 && p->stated)
        q.input_tokens = p->system_prompt_len + p->question_len;
    if (is_nominal(e, r))
        q.output_tokens = p->output_len;
    if (q.input_tokens == 0 || q.output_tokens == 0) {
        e->n_unknown++;
        return VT_OK;
    }
    if ((rc = add_segments(e, r, q.input_tokens, err)) ||
        (!q.failed && (rc = add_gaps(e, &q, r, err))) ||
        (rc = vt_grow(&e->request, &e->cap_requests, e->n_requests + 1,
                      sizeof(*e->request), err)))
        return rc;
    q.n_segments = (uint32_t)e->n_segments - q.first_segment;
    e->request[e->n_requests++] = q;
    return VT_OK;
}

/* ---- all of them ------------------------------------------------------------- */

/* Clients that give up do so after equal times, which the generator may not tell. Where
 * another waited for longer it was something else. */
static void note_failure(struct vt_experiment *e, const struct vt_record *r)
{
    double after_s = (double)r->e2e_ns / 1e9;

    e->n_failed++;
    if (!e->failure)
        e->failure = truth_text(&e->arena, r->failure);
    if (!e->timeout_stated && strstr(r->failure, "imeout") &&
        (e->timeout_s <= 0 || after_s < e->timeout_s))
        e->timeout_s = after_s;
}

int truth_read_requests(struct vt_experiment *e, const char *path, struct vt_err *err)
{
    struct vt_records r;
    int rc = vt_lifecycle_load(&r, path, err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < r.n && rc == VT_OK; i++) {
        rc = add_request(e, &r.rec[i], err);
        if (r.rec[i].failure)
            note_failure(e, &r.rec[i]);
    }
    vt_records_free(&r);
    e->token_times = e->n_requests > 0;
    for (size_t i = 0; i < e->n_requests && rc == VT_OK; i++) {
        struct vt_truth_request *q = &e->request[i];

        if (!e->timeout_stated && !q->failed && q->e2e_s > e->timeout_s)
            e->timeout_s = 0;

        if (q->stage >= e->n_plan)
            q->stage = gather_stage_at(e, q->start_s);
        e->token_times &= q->failed || q->n_gaps + 1 == q->output_tokens;
    }
    return rc;
}

/* ---- metrics --------------------------------------------------------------------- */

/* Reports keep the word on E2E and TTFT unless requests were cut. */
static void replace_metrics(struct vt_stage_metrics *to,
                            const struct vt_stage_metrics *from,
                            const struct vt_experiment *e, bool all)
{
    for (int i = all ? 0 : 6; i < VT_ERROR_METRICS; i++)
        if (all || e->token_times)
            to->ms[i] = from->ms[i];
    if (!all)
        return;
    to->requests = from->requests;
    to->sent = from->sent;
}

int truth_refine(struct vt_experiment *e, bool all, struct vt_err *err)
{
    struct gather g;
    int rc;

    if (e->n_requests == 0 || !(all || e->token_times))
        return VT_OK;
    rc = gather_open(&g, e, err);
    for (size_t i = 0; i < e->n_requests && rc == VT_OK; i++) {
        const struct vt_truth_request *q = &e->request[i];
        bool gaps = e->token_times && q->n_gaps > 0;
        struct gather_request r = {.stage = q->stage,
                                   .ttft_ms = q->ttft_s * 1e3,
                                   .e2e_ms = q->e2e_s * 1e3,
                                   .output_tokens = q->output_tokens,
                                   .gap = gaps ? &e->gap[q->first_gap] : NULL,
                                   .n_gaps = gaps ? q->n_gaps : 0};

        if (q->failed)
            gather_leave_out(&g, q->stage);
        else
            rc = gather_add(&g, &r, err);
    }
    if (rc == VT_OK)
        rc = gather_finish(&g, err);
    for (size_t i = 0; i < e->n_stages && i < g.n_stages && rc == VT_OK; i++)
        replace_metrics(&e->stage[i], &g.stage[i], e, all);
    if (rc == VT_OK)
        replace_metrics(&e->summary, &g.summary, e, all);
    gather_close(&g);
    return rc;
}

/* ---- cutting --------------------------------------------------------------------- */

/* Each stage but the last its rounded share, the last what is left. */
static void share_out(struct vt_experiment *e, uint64_t most)
{
    uint64_t total = gather_planned(e), given = 0;

    if (total <= most)
        return;
    for (size_t i = 0; i < e->n_plan; i++) {
        struct vt_stage_plan *p = &e->plan[i];
        double share = (double)p->requests / (double)total * (double)most;
        uint64_t n = i + 1 < e->n_plan ? (uint64_t)nearbyint(share) : most - given;

        n = n < most - given ? n : most - given;
        n = n < p->requests ? n : p->requests;
        given += n;
        p->requests = n;
        if (p->rate > 0)
            p->duration_s = (double)n / p->rate;
    }
}

void truth_cut(struct vt_experiment *e, uint64_t most)
{
    size_t kept = 0;

    share_out(e, most);
    for (size_t s = 0; s < e->n_plan; s++) {
        uint64_t left = e->plan[s].requests;

        for (size_t i = 0; i < e->n_requests; i++) {
            if (e->request[i].stage != s)
                continue;
            if (left == 0)
                e->request[i].stage = UINT32_MAX; /* to go */
            else
                left--;
        }
    }
    for (size_t i = 0; i < e->n_requests; i++)
        if (e->request[i].stage != UINT32_MAX)
            e->request[kept++] = e->request[i];
    e->n_requests = kept;
}
