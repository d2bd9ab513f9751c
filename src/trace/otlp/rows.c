/* rows.c - an engine's steps as rows of a step log. */
#include "trace/otlp/otlp.h"

/* What a row is made from; `shift_ns` is how much earlier than by its clock a step
 * stands because the time between steps was left out. */
struct rows {
    struct vt_otlp *o;
    struct otlp_engine *e;
    struct vt_steps *out;
    struct otlp_context context;
    vt_ns origin_ns, shift_ns;
    size_t last; /* step of the last row, plus 1 */
};

/* ---- requests --------------------------------------------------------- */

static const char nobody[] = "?"; /* a request that no span names */

static const char *copy_id(struct rows *r, const char *id)
{
    return id == nobody ? nobody : vt_arena_copy(&r->out->arena, id, strlen(id));
}

static int from_snaps(struct rows *r, const struct otlp_step *s,
                      struct vt_step_line *row, struct vt_step_prefill *prefill,
                      struct vt_err *err)
{
    for (uint32_t i = 0; i < s->n_snaps; i++) {
        const struct otlp_snap *x = &r->e->snap[s->first_snap + i];
        const char *id;

        if (otlp_decodes(x)) {
            row->decodes++;
            row->decode_ctx += x->computed;
            continue;
        }
        id = copy_id(r, r->e->request[x->request].id);
        if (!id)
            return vt_nomem(err);
        prefill[row->n_prefill++] = (struct vt_step_prefill){
            id, x->computed, x->scheduled, x->prompt + x->output};
    }
    return VT_OK;
}

static uint32_t prefills_of(const struct otlp_step *s)
{
    return s->prefills < s->prefill_tokens ? s->prefills : s->prefill_tokens;
}

/* The requests that journeys say were scheduled in this step, if their prompts are just
 * what was prefilled; else equal parts. */
static int from_summary(struct rows *r, const struct otlp_step *s,
                        struct vt_step_line *row, struct vt_step_prefill *prefill,
                        struct vt_err *err)
{
    size_t n, n_named = 0;
    const struct otlp_mark *mark = otlp_marks_of(r->e, s->id, &n);
    uint32_t prefills = prefills_of(s), left = s->prefill_tokens;
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (mark[i].event == OTLP_SCHEDULED && ++n_named)
            sum += r->e->request[mark[i].request].prompt;
    row->n_prefill = prefills;
    for (uint32_t k = 0; k < prefills; k++) {
        uint32_t tokens = left / (prefills - k);
        const char *id = nobody;

        while (n > 0 && mark->event != OTLP_SCHEDULED)
            mark++, n--;
        if (n > 0) {
            id = r->e->request[mark->request].id;
            if (sum == s->prefill_tokens && n_named == prefills)
                tokens = r->e->request[mark->request].prompt;
            mark++, n--;
        }
        left -= tokens;
        prefill[k] = (struct vt_step_prefill){copy_id(r, id), 0, tokens, tokens};
        if (!prefill[k].id)
            return vt_nomem(err);
    }
    return VT_OK;
}

static int fill_requests(struct rows *r, const struct otlp_step *s,
                         struct vt_step_line *row, struct vt_err *err)
{
    uint64_t ctx = otlp_context_at(&r->context, s);
    uint32_t room = s->n_snaps > 0 ? s->n_snaps : prefills_of(s);
    struct vt_step_prefill *prefill = NULL;
    int rc;

    if (room > 0)
        prefill = vt_arena_alloc(&r->out->arena, room * sizeof(*prefill));
    if (room > 0 && !prefill)
        return vt_nomem(err);
    if (s->n_snaps > 0) {
        rc = from_snaps(r, s, row, prefill, err);
    } else {
        row->decodes = s->decodes;
        row->decode_ctx = ctx;
        rc = from_summary(r, s, row, prefill, err);
    }
    row->prefill = row->n_prefill > 0 ? prefill : NULL;
    return rc;
}

/* Also the queue's length before scheduling, which the spans state afterwards. */
static int fill_queue(struct rows *r, const struct otlp_step *s,
                      struct vt_step_line *row, struct vt_err *err)
{
    size_t n, n_preempted = 0;
    const struct otlp_mark *mark = otlp_marks_of(r->e, s->id, &n);
    const char **ids;
    uint32_t came = 0;

    for (size_t i = 0; i < n; i++) {
        n_preempted += mark[i].event == OTLP_PREEMPTED;
        came += mark[i].event == OTLP_SCHEDULED;
    }
    row->waiting = s->waiting + came;
    row->waiting -= row->waiting < n_preempted ? row->waiting : (uint32_t)n_preempted;
    if (n_preempted == 0)
        return VT_OK;
    ids = vt_arena_alloc(&r->out->arena, n_preempted * sizeof(*ids));
    if (!ids)
        return vt_nomem(err);
    for (size_t i = 0; i < n; i++) {
        if (mark[i].event != OTLP_PREEMPTED)
            continue;
        ids[row->n_preempted] = copy_id(r, r->e->request[mark[i].request].id);
        if (!ids[row->n_preempted++])
            return vt_nomem(err);
    }
    row->preempted = ids;
    return VT_OK;
}

/* ---- times ------------------------------------------------------------ */

/* By duration, steps that follow each other are put end to end: whatever passed between
 * them is not theirs. */
static void fill_times(struct rows *r, size_t i, struct vt_step_line *row)
{
    const struct otlp_step *s = &r->e->step[i];
    bool follows = r->last == i && i > 0 && s->id == s[-1].id + 1 &&
                   (r->e->rests || !otlp_starts_anew(r->e, s));
    vt_ns pause;

    if (r->o->options.step_time == VT_STEP_DURATION && follows) {
        pause = s->start_ns - r->origin_ns - r->shift_ns -
                r->out->step[r->out->n - 1].out_ns;
        r->shift_ns += pause > 0 ? pause : 0;
    } else {
        r->shift_ns = 0;
    }
    row->sched_ns = s->start_ns - r->origin_ns - r->shift_ns;
    row->sched_end_ns = row->sched_ns;
    row->out_ns = s->out_ns - r->origin_ns - r->shift_ns;
    row->done_ns = row->out_ns;
    if (r->o->options.step_time == VT_STEP_INTERVAL && s->end_ns > s->start_ns)
        row->sched_end_ns +=
            (s->end_ns < s->out_ns ? s->end_ns : s->out_ns) - s->start_ns;
}

static int add_row(struct rows *r, size_t i, struct vt_err *err)
{
    const struct otlp_step *s = &r->e->step[i];
    struct vt_step_line row = {
        .step = s->id, .running = s->running, .kv_usage = s->kv_usage};
    int rc;

    if ((rc = vt_grow(&r->out->step, &r->out->cap, r->out->n + 1, sizeof(row), err)) ||
        (rc = fill_requests(r, s, &row, err)) || (rc = fill_queue(r, s, &row, err)))
        return rc;
    fill_times(r, i, &row);
    r->out->n_prefill += row.n_prefill;
    r->out->n_preempted += row.n_preempted;
    r->out->step[r->out->n++] = row;
    r->last = i + 1;
    return VT_OK;
}

int otlp_make_steps(struct vt_otlp *o, struct otlp_engine *e, vt_ns origin_ns,
                    struct vt_steps *out, struct vt_err *err)
{
    struct rows r = {
        .o = o, .e = e, .out = out, .context = {.e = e}, .origin_ns = origin_ns};
    int rc = vt_arena_text(&out->arena, o->source, &out->source, err);

    for (size_t i = 0; i < e->n_steps && rc == VT_OK; i++) {
        const struct otlp_step *s = &e->step[i];

        if (otlp_is_empty(s))
            o->stats.idle_steps++;
        else if (s->out_ns == VT_NEVER ||
                 (r.last > 0 && s->start_ns < e->step[r.last - 1].start_ns))
            o->stats.open_steps++; /* no end, or before the last row by its clock */
        else
            rc = add_row(&r, i, err);
    }
    return rc;
}

int otlp_make_batches(struct vt_otlp *o, const struct otlp_engine *e, vt_ns origin_ns,
                      struct vt_otlp_capture *c, struct vt_err *err)
{
    if (e->n_steps == 0)
        return VT_OK;
    c->batch = vt_arena_alloc(&o->arena, e->n_steps * sizeof(*c->batch));
    if (!c->batch)
        return vt_nomem(err);
    for (size_t i = 0; i < e->n_steps; i++) {
        const struct otlp_step *s = &e->step[i];

        c->batch[c->n_batches++] = (struct vt_otlp_batch){
            .step = s->id,
            .start_ns = s->start_ns - origin_ns,
            .running = s->running,
            .waiting = s->waiting,
            .tokens = s->tokens,
            .blocks = s->blocks,
            .free_blocks = s->free_blocks,
            .kv_usage = s->kv_usage,
        };
    }
    return VT_OK;
}
