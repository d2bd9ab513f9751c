/* requests.c - per_request_lifecycle_metrics.json: which requests there were, and
 * what is measured better from them than the summaries say. */
#include <math.h>
#include <stdlib.h>

#include "report/report.h"
#include "validate/gather.h"
#include "validate/truth/truth.h"

enum { GROUP_CHARS = 64, MOST_TOKENS = 1 << 28 };

/* ---- what a prompt shares ----------------------------------------------------- */

static int add_segment(struct vt_experiment *e, uint64_t content, uint64_t tokens,
                       struct vt_err *err)
{
    int rc;

    if (tokens == 0)
        return VT_OK;
    rc = vt_grow(&e->segment, &e->cap_segments, e->n_segments + 1, sizeof(*e->segment),
                 err);
    if (rc == VT_OK)
        e->segment[e->n_segments++] =
            (struct vt_segment){.content = content, .tokens = (uint32_t)tokens};
    return rc;
}

/* What no other request has. */
static int add_own(struct vt_experiment *e, uint64_t tokens, struct vt_err *err)
{
    return add_segment(e, vt_hash2(5, e->n_requests), tokens, err);
}

/* info.segments, [[name, tokens], ...], where a recorder knew the prompt's content. */
static int known_segments(struct vt_experiment *e, const struct vt_truth_request *q,
                          const struct vt_node *list, struct vt_err *err)
{
    uint64_t left = q->input_tokens;
    int rc = VT_OK;

    for (uint32_t i = 0; i < list->n && rc == VT_OK && left > 0; i++) {
        const struct vt_node *s = &list->u.item[i];
        uint64_t tokens;

        if (s->kind != VT_LIST || s->n != 2 || s->u.item[0].kind != VT_STR ||
            s->u.item[1].kind != VT_INT || s->u.item[1].u.integer < 0)
            return vt_fail(err, VT_EINPUT, "line %u: a segment is not [name, tokens]",
                           s->line);
        tokens = (uint64_t)s->u.item[1].u.integer;
        tokens = tokens < left ? tokens : left;
        rc = add_segment(e, vt_content_named(s->u.item[0].u.str, s->u.item[0].n),
                         tokens, err);
        left -= tokens;
    }
    return rc == VT_OK ? add_own(e, left, err) : rc;
}

/* Requests of one shared prefix begin with the same characters. */
static uint64_t group_of(const struct vt_node *request)
{
    struct vt_arena scratch = {0};
    const struct vt_node *root, *prompt = NULL;
    uint64_t group = 0;

    if (!request || request->kind != VT_STR)
        return 0;
    if (vt_json_parse(&scratch, request->u.str, request->n, 1, &root, NULL) == VT_OK)
        prompt = vt_get(root, "prompt");
    if (prompt && prompt->kind == VT_STR && prompt->n >= GROUP_CHARS)
        group = vt_hash_bytes(prompt->u.str, GROUP_CHARS, 7);
    vt_arena_free(&scratch);
    return group;
}

/* ---- times ---------------------------------------------------------------------- */

static double seconds_of(const struct vt_node *n)
{
    return n->kind == VT_REAL  ? n->u.real
           : n->kind == VT_INT ? (double)n->u.integer
                               : NAN;
}

/* About two events came for a token in the data of old; only where there is one time a
 * token are they tokens' times. */
static int read_times(struct vt_experiment *e, struct vt_truth_request *q,
                      const struct vt_node *times, struct vt_err *err)
{
    int rc = VT_OK;

    q->ttft_s = NAN;
    q->first_gap = e->n_gaps;
    if (!times || times->kind != VT_LIST || times->n == 0)
        return VT_OK;
    q->ttft_s = seconds_of(&times->u.item[0]) - q->start_s;
    if (times->n != q->output_tokens)
        return VT_OK;
    rc = vt_grow(&e->gap, &e->cap_gaps, e->n_gaps + times->n, sizeof(*e->gap), err);
    for (uint32_t i = 1; i < times->n && rc == VT_OK; i++) {
        double gap = seconds_of(&times->u.item[i]) - seconds_of(&times->u.item[i - 1]);

        if (!(gap >= 0 && gap < 1e6))
            return vt_fail(err, VT_EINPUT, "line %u: output_token_times run backwards",
                           times->line);
        e->gap[e->n_gaps++] = vt_ns_from_ms(gap * 1e3);
        q->n_gaps++;
    }
    return rc;
}

/* Since inference-perf 0.7 counts and times have places of their own; those before had
 * them in `info`. */
static const struct vt_node *place_of(const struct vt_node *info, const char *key)
{
    const struct vt_node *asked = vt_get(vt_get(info, "request_metrics"), "text");
    const struct vt_node *answer = vt_get(info, "response_metrics");

    if (vt_get(info, key))
        return info;
    return vt_get(asked, key) ? asked : answer;
}

static int read_fields(struct vt_truth_request *q, const struct vt_node *node,
                       struct vt_err *err)
{
    const struct vt_node *info = vt_get(node, "info");
    double end = 0;
    int rc;

    if ((rc = vt_get_f64(node, "start_time", VT_REQUIRED, -1e12, 1e12, &q->start_s,
                         err)) ||
        (rc = vt_get_f64(node, "end_time", VT_REQUIRED, q->start_s, 1e12, &end, err)) ||
        (rc = vt_get_u32(place_of(info, "input_tokens"), "input_tokens", VT_REQUIRED, 0,
                         MOST_TOKENS, &q->input_tokens, err)) ||
        (rc = vt_get_u32(place_of(info, "output_tokens"), "output_tokens", VT_REQUIRED,
                         0, MOST_TOKENS, &q->output_tokens, err)))
        return rc;
    q->e2e_s = end - q->start_s;
    return vt_get_u32(node, "stage_id", VT_OPTIONAL, 0, TRUTH_MAX_STAGES, &q->stage,
                      err);
}

static int read_request(struct vt_experiment *e, const struct vt_node *node,
                        struct vt_err *err)
{
    const struct vt_node *info = vt_get(node, "info"), *segments;
    const struct vt_node *error = vt_get(node, "error");
    struct vt_truth_request q = {.stage = UINT32_MAX};
    int rc;

    if (error && error->kind != VT_NULL)
        return VT_OK;
    rc = read_fields(&q, node, err);
    if (rc != VT_OK || q.input_tokens == 0 || q.output_tokens == 0)
        return rc;
    q.first_segment = (uint32_t)e->n_segments;
    segments = vt_get(info, "segments");
    if (segments && segments->kind == VT_LIST) {
        rc = known_segments(e, &q, segments, err);
    } else { /* guessed */
        uint64_t group = e->prefix.stated ? group_of(vt_get(node, "request")) : 0;
        uint32_t shared = group != 0 ? e->prefix.system_prompt_len : 0;

        shared = shared < q.input_tokens ? shared : q.input_tokens;
        rc = add_segment(e, group, shared, err);
        if (rc == VT_OK)
            rc = add_own(e, q.input_tokens - shared, err);
    }
    q.n_segments = (uint32_t)e->n_segments - q.first_segment;
    if (rc ||
        (rc = read_times(
             e, &q, vt_get(place_of(info, "output_token_times"), "output_token_times"),
             err)) ||
        (rc = vt_grow(&e->request, &e->cap_requests, e->n_requests + 1,
                      sizeof(*e->request), err)))
        return rc;
    e->request[e->n_requests++] = q;
    return VT_OK;
}

/* ---- order and stages ------------------------------------------------------------ */

static int by_start(const void *a, const void *b)
{
    const struct vt_truth_request *p = a, *q = b;

    if (p->start_s != q->start_s)
        return p->start_s < q->start_s ? -1 : 1;
    return p->first_segment < q->first_segment ? -1 : 1;
}

int truth_read_requests(struct vt_experiment *e, const struct vt_node *root,
                        struct vt_err *err)
{
    double first;
    int rc = VT_OK;

    if (root->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "not a list of requests");
    for (uint32_t i = 0; i < root->n && rc == VT_OK; i++)
        rc = read_request(e, &root->u.item[i], err);
    if (rc != VT_OK || e->n_requests == 0)
        return rc;
    qsort(e->request, e->n_requests, sizeof(*e->request), by_start);
    first = e->request[0].start_s;
    e->token_times = true;
    for (size_t i = 0; i < e->n_requests; i++) {
        struct vt_truth_request *q = &e->request[i];

        q->start_s -= first;
        if (q->stage == UINT32_MAX || q->stage >= e->n_plan)
            q->stage = gather_stage_at(e, q->start_s);
        e->token_times &= q->n_gaps + 1 == q->output_tokens;
    }
    return VT_OK;
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
    if (all)
        to->requests = from->requests;
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
