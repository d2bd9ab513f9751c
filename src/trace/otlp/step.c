/* step.c - spans of scheduler steps: step.BATCH_SUMMARY once for each step, and
 * step.REQUEST_SNAPSHOT for each of its requests where the tracer took them. */
#include "trace/otlp/otlp.h"

#define STEP(name, type, need, member) \
    {name, type, need, offsetof(struct otlp_step, member)}

static const struct otlp_field step_fields[] = {
    STEP("step.id", OTLP_U64, VT_REQUIRED, id),
    STEP("step.ts_start_ns", OTLP_NS, VT_REQUIRED, start_ns),
    STEP("step.ts_end_ns", OTLP_NS, VT_OPTIONAL, end_ns),
    STEP("step.duration_us", OTLP_F64, VT_OPTIONAL, duration_us),
    STEP("queue.running_depth", OTLP_U32, VT_OPTIONAL, running),
    STEP("queue.waiting_depth", OTLP_U32, VT_OPTIONAL, waiting),
    STEP("batch.num_prefill_reqs", OTLP_U32, VT_REQUIRED, prefills),
    STEP("batch.num_decode_reqs", OTLP_U32, VT_REQUIRED, decodes),
    STEP("batch.prefill_tokens", OTLP_U32, VT_REQUIRED, prefill_tokens),
    STEP("batch.scheduled_tokens", OTLP_U32, VT_OPTIONAL, tokens),
    STEP("kv.usage_gpu_ratio", OTLP_F64, VT_OPTIONAL, kv_usage),
    STEP("kv.blocks_total_gpu", OTLP_U32, VT_OPTIONAL, blocks),
    STEP("kv.blocks_free_gpu", OTLP_U32, VT_OPTIONAL, free_blocks),
};

struct snapshot {
    struct otlp_snap s;
    const char *id;
};

#define SNAP(name, type, need, member) \
    {name, type, need, offsetof(struct snapshot, member)}

static const struct otlp_field snap_fields[] = {
    SNAP("step.id", OTLP_U64, VT_REQUIRED, s.step),
    SNAP("request.id", OTLP_STR, VT_REQUIRED, id),
    SNAP("request.num_prompt_tokens", OTLP_U32, VT_REQUIRED, s.prompt),
    SNAP("request.num_computed_tokens", OTLP_U32, VT_REQUIRED, s.computed),
    SNAP("request.num_output_tokens", OTLP_U32, VT_REQUIRED, s.output),
    SNAP("request.scheduled_tokens_this_step", OTLP_U32, VT_REQUIRED, s.scheduled),
    SNAP("kv.blocks_allocated_gpu", OTLP_U32, VT_OPTIONAL, s.blocks),
    SNAP("request.effective_prompt_len", OTLP_U32, VT_OPTIONAL, s.effective),
};

static int out_of_range(const char *key, struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "attribute '%s' is out of range", key);
}

static int add_step(struct otlp_engine *e, const struct vt_node *attributes,
                    struct vt_err *err)
{
    struct otlp_step s = {
        .order = e->n_steps, .end_ns = -1, .duration_us = -1, .out_ns = VT_NEVER};
    int rc = otlp_read(attributes, step_fields, VT_COUNT(step_fields), &s, err);

    if (rc != VT_OK)
        return rc;
    if (s.kv_usage > 1)
        return out_of_range("kv.usage_gpu_ratio", err);
    if (s.prefills > OTLP_MAX_PREFILLS)
        return out_of_range("batch.num_prefill_reqs", err);
    rc = vt_grow(&e->step, &e->cap_steps, e->n_steps + 1, sizeof(s), err);
    if (rc == VT_OK)
        e->step[e->n_steps++] = s;
    return rc;
}

/* A request that runs but has no tokens in this step is no part of it. */
static int add_snap(struct vt_otlp *o, struct otlp_engine *e,
                    const struct vt_node *attributes, struct vt_err *err)
{
    struct snapshot x = {.s = {.blocks = UINT32_MAX, .effective = UINT32_MAX}};
    int rc = otlp_read(attributes, snap_fields, VT_COUNT(snap_fields), &x, err);

    if (rc != VT_OK || x.s.scheduled == 0)
        return rc;
    x.s.order = e->n_snaps;
    if ((rc = otlp_find_request(o, e, x.id, &x.s.request, err)) ||
        (rc = vt_grow(&e->snap, &e->cap_snaps, e->n_snaps + 1, sizeof(x.s), err)))
        return rc;
    e->snap[e->n_snaps++] = x.s;
    return VT_OK;
}

/* Which steps the span stood for, whether or not their events are still there. */
static int read_range(struct otlp_engine *e, const struct otlp_span *s,
                      struct vt_err *err)
{
    static const struct otlp_field fields[] = {
        {"scheduler.step_range_start", OTLP_U64, VT_OPTIONAL, 0},
        {"scheduler.step_range_end", OTLP_U64, VT_OPTIONAL, sizeof(uint64_t)},
    };
    uint64_t range[2] = {UINT64_MAX, UINT64_MAX};
    int rc = otlp_read(s->attributes, fields, VT_COUNT(fields), range, err);

    if (rc != VT_OK || range[0] == UINT64_MAX || range[1] == UINT64_MAX ||
        range[0] > range[1])
        return rc;
    if (!e->has_range || range[0] < e->range_first)
        e->range_first = range[0];
    if (!e->has_range || range[1] > e->range_last)
        e->range_last = range[1];
    e->has_range = true;
    return VT_OK;
}

int otlp_read_steps(struct vt_otlp *o, const struct otlp_span *s, struct vt_err *err)
{
    struct otlp_engine *e = &o->engine[s->engine];
    size_t n_steps = e->n_steps, n_snaps = e->n_snaps;
    int rc = VT_OK;

    for (uint32_t i = 0; s->events && i < s->events->n && rc == VT_OK; i++) {
        const struct vt_node *node = &s->events->u.item[i], *attributes;
        const char *word;

        if ((rc = otlp_event(node, &word, &attributes, err)))
            break;
        if (strcmp(word, "BATCH_SUMMARY") == 0)
            rc = add_step(e, attributes, err);
        else if (strcmp(word, "REQUEST_SNAPSHOT") == 0)
            rc = add_snap(o, e, attributes, err);
        rc = vt_within(err, rc, "event '%.60s'", otlp_get_text(node, "name"));
    }
    if (rc || (rc = read_range(e, s, err))) {
        e->n_steps = n_steps;
        e->n_snaps = n_snaps;
    }
    return rc;
}
