/* steps.c - steps.jsonl read back: one engine step for each line.
 *
 *     {"step":82,"sched_ms":4.028,"sched_end_ms":4.333,"out_ms":96.98,"done_ms":97.2,
 *      "decodes":0,"decode_ctx":0,"prefill":[["a.36",0,719,719]],"waiting":1,
 *      "running":1,"kv_usage":0.00395,"preempted":[]}
 *
 * Ids are kept as they stand: recorders write "?" for a request they could not name. */
#include "trace/jsonl/jsonl.h"
#include "trace/otlp/otlp.h"

#define STEPS_MAX UINT32_C(200000000) /* of one file */

/* ---- lists ------------------------------------------------------------ */

static int read_prefill(struct vt_steps *s, const struct vt_node *row,
                        struct vt_step_line *step, struct vt_err *err)
{
    struct vt_step_prefill *prefill;
    const struct vt_node *list;
    int rc = jsonl_get_list(row, "prefill", &list, err);

    if (rc != VT_OK || !list || list->n == 0)
        return rc;
    prefill = vt_arena_alloc(&s->arena, list->n * sizeof(*prefill));
    if (!prefill)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *n = &list->u.item[i], *item = n->u.item;
        struct vt_step_prefill *p = &prefill[i];

        if (n->kind != VT_LIST || n->n != 4 || item[0].kind != VT_STR ||
            !jsonl_node_u32(&item[1], 0, &p->computed) ||
            !jsonl_node_u32(&item[2], 0, &p->tokens) ||
            !jsonl_node_u32(&item[3], 0, &p->prompt_tokens))
            return jsonl_bad_field(
                row, "prefill", "must hold [id, computed, tokens, prompt_tokens]", err);
        p->id = vt_arena_copy(&s->arena, item[0].u.str, item[0].n);
        if (!p->id)
            return vt_nomem(err);
    }
    step->prefill = prefill;
    step->n_prefill = list->n;
    s->n_prefill += list->n;
    return VT_OK;
}

static int read_preempted(struct vt_steps *s, const struct vt_node *row,
                          struct vt_step_line *step, struct vt_err *err)
{
    const struct vt_node *list;
    const char **ids;
    int rc = jsonl_get_list(row, "preempted", &list, err);

    if (rc != VT_OK || !list || list->n == 0)
        return rc;
    ids = vt_arena_alloc(&s->arena, list->n * sizeof(*ids));
    if (!ids)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *id = &list->u.item[i];

        if (id->kind != VT_STR)
            return jsonl_bad_field(row, "preempted", "must hold strings", err);
        ids[i] = vt_arena_copy(&s->arena, id->u.str, id->n);
        if (!ids[i])
            return vt_nomem(err);
    }
    step->preempted = ids;
    step->n_preempted = list->n;
    s->n_preempted += list->n;
    return VT_OK;
}

/* ---- lines ------------------------------------------------------------ */

static int read_counts(const struct vt_node *row, struct vt_step_line *step,
                       struct vt_err *err)
{
    int64_t number = 0, ctx = 0;
    int rc;

    if ((rc = vt_get_i64(row, "step", VT_REQUIRED, 0, INT64_MAX, &number, err)) ||
        (rc = jsonl_get_u32(row, "decodes", 0, INT32_MAX, &step->decodes, err)) ||
        (rc = jsonl_get_u32(row, "waiting", 0, INT32_MAX, &step->waiting, err)) ||
        (rc = jsonl_get_u32(row, "running", 0, INT32_MAX, &step->running, err)) ||
        (vt_get_non_null(row, "decode_ctx") &&
         (rc = vt_get_i64(row, "decode_ctx", VT_REQUIRED, 0, INT64_MAX, &ctx, err))) ||
        (vt_get_non_null(row, "kv_usage") &&
         (rc = vt_get_f64(row, "kv_usage", VT_REQUIRED, 0, 1, &step->kv_usage, err))))
        return rc;
    step->step = (uint64_t)number;
    step->decode_ctx = (uint64_t)ctx;
    for (size_t i = 0; i < 2; i++) {
        const char *key = i == 0 ? "sched_ms" : "out_ms";

        if (!vt_get_non_null(row, key))
            return vt_fail(err, VT_EINPUT, "line %u: field '%s' is missing", row->line,
                           key);
    }
    if ((rc = jsonl_get_ms(row, "sched_ms", &step->sched_ns, err)) ||
        (rc = jsonl_get_ms(row, "out_ms", &step->out_ns, err)))
        return rc;
    step->sched_end_ns = step->sched_ns;
    step->done_ns = step->out_ns;
    rc = jsonl_get_ms(row, "sched_end_ms", &step->sched_end_ns, err);
    return rc ? rc : jsonl_get_ms(row, "done_ms", &step->done_ns, err);
}

int trace_read_step(struct vt_steps *s, const struct vt_node *row, struct vt_err *err)
{
    struct vt_step_line step = {0};
    int rc;

    if ((rc = read_counts(row, &step, err)) ||
        (rc = read_prefill(s, row, &step, err)) ||
        (rc = read_preempted(s, row, &step, err)))
        return rc;
    if (s->n >= STEPS_MAX)
        return vt_fail(err, VT_EINPUT, "line %u: more than %u steps", row->line,
                       STEPS_MAX);
    rc = vt_grow(&s->step, &s->cap, s->n + 1, sizeof(*s->step), err);
    if (rc == VT_OK)
        s->step[s->n++] = step;
    return rc;
}

static int read_row(void *user, struct trace_reader *r, const struct vt_node *row,
                    struct vt_err *err)
{
    (void)r;
    return trace_read_step(user, row, err);
}

int trace_read_steps(void *steps, struct vt_lines *lines, struct vt_err *err)
{
    struct vt_steps *s = steps;
    struct trace_reader r = {.lines = lines, .name = vt_lines_name(lines)};
    int rc;

    *s = (struct vt_steps){0};
    if ((rc = vt_arena_text(&s->arena, r.name, &s->source, err)) ||
        (rc = trace_reader_next(&r, err)) ||
        (rc = trace_reader_rows(&r, read_row, s, err)) ||
        (s->n == 0 && (rc = vt_fail(err, VT_EINPUT, "%s: there are no steps", r.name))))
        vt_steps_free(s);
    return rc;
}

int vt_steps_load(struct vt_steps *s, const char *path, struct vt_err *err)
{
    *s = (struct vt_steps){0};
    return otlp_load_as(s, path, OTLP_AS_STEPS, trace_read_steps, err);
}

void vt_steps_free(struct vt_steps *s)
{
    vt_arena_free(&s->arena);
    free(s->step);
    *s = (struct vt_steps){0};
}
