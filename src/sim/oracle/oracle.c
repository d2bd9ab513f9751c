/* oracle.c - replays a recorded run of vLLM's scheduler and compares step for step. */
#include "sim/oracle/replay.h"

static int do_add(struct replay *r, uint32_t i, struct vt_err *err)
{
    struct vt_segment *seg = NULL;
    struct vt_request q;
    int rc;

    if (r->c->req[i].added)
        return vt_fail(err, VT_EINPUT, "step %u: request %u is added twice", r->step,
                       i);
    rc = oracle_request(r->c, i, &q, &seg, err);
    if (rc == VT_OK)
        rc = vt_sched_add(r->s, &q, &r->c->req[i].slot, err);
    r->c->req[i].added = rc == VT_OK;
    free(seg);
    return rc;
}

/* An abort may come after the request has ended. */
static int do_abort(struct replay *r, uint32_t i, struct vt_err *err)
{
    uint32_t n_running, n_waiting = vt_sched_waiting(r->s, r->scratch, r->c->n_req);
    const uint32_t *running = vt_sched_running(r->s, &n_running);

    (void)err;
    for (uint32_t k = 0; k < n_running + n_waiting; k++) {
        uint32_t slot = k < n_running ? running[k] : r->scratch[k - n_running];

        if (vt_sched_tag(r->s, slot) == i) {
            vt_sched_abort(r->s, slot);
            break;
        }
    }
    return VT_OK;
}

static int do_each(struct replay *r, const struct vt_node *rec, const char *field,
                   int (*act)(struct replay *, uint32_t, struct vt_err *),
                   struct vt_err *err)
{
    const struct vt_node *list = vt_get(rec, field);
    int rc;

    for (uint32_t k = 0; list && list->kind == VT_LIST && k < list->n; k++) {
        const struct vt_node *n = &list->u.item[k];

        if (n->kind != VT_INT || n->u.integer < 0 || n->u.integer >= r->c->n_req)
            return vt_fail(err, VT_EINPUT, "line %u: no such request", n->line);
        if ((rc = act(r, (uint32_t)n->u.integer, err)))
            return rc;
    }
    return VT_OK;
}

static int do_reset(struct replay *r, const struct vt_node *rec, bool preempt,
                    struct vt_err *err)
{
    const uint64_t *tags = NULL;
    uint32_t n;
    bool ok = vt_sched_reset_cache(r->s, preempt, &tags, &n);
    int rc;

    vt_jw_bool(&r->out, NULL, ok);
    rc = check_field(r, rec, "action_result", "", err);
    if (rc != VT_OK)
        return rc;
    put_tags(r, tags, n);
    return check_field(r, rec, "action_preempt", "[]", err);
}

static int do_action(struct replay *r, const struct vt_node *rec, struct vt_err *err)
{
    const char *a = NULL;
    int rc = vt_get_str(rec, "action", VT_OPTIONAL, &a, err);

    if (rc != VT_OK || !a)
        return rc;
    if (strcmp(a, "pause_new") == 0)
        vt_sched_pause(r->s, VT_PAUSE_NEW);
    else if (strcmp(a, "pause_all") == 0)
        vt_sched_pause(r->s, VT_PAUSE_ALL);
    else if (strcmp(a, "unpause") == 0)
        vt_sched_pause(r->s, VT_RUN);
    else if (strcmp(a, "reset_prefix_cache") == 0)
        return do_reset(r, rec, false, err);
    else if (strcmp(a, "reset_prefix_cache_preempt") == 0)
        return do_reset(r, rec, true, err);
    else
        return vt_fail(err, VT_EINPUT, "line %u: unknown action '%s'", rec->line, a);
    return VT_OK;
}

static int do_step(struct replay *r, const struct vt_node *rec, struct vt_err *err)
{
    const struct vt_node *upd = vt_get(rec, "upd");
    int rc;

    if ((rc = vt_get_u32(rec, "step", VT_REQUIRED, 0, UINT32_MAX, &r->step, err)) ||
        (rc = do_each(r, rec, "add", do_add, err)) ||
        (rc = do_each(r, rec, "abort", do_abort, err)) ||
        (rc = do_action(r, rec, err)) ||
        (vt_get(rec, "sched") && (rc = replay_schedule(r, rec, err))))
        return rc;
    if (!upd || upd->kind != VT_MAP)
        return VT_OK;
    if ((rc = replay_update(r, upd, err)))
        return vt_within(err, rc, "result");
    return replay_events(r, err); /* which are told with results */
}

static int check_case(const char *path, const char *text, size_t len,
                      struct vt_oracle_result *out, struct vt_err *err)
{
    struct oracle_case c;
    struct replay r = {.c = &c};
    int rc = oracle_load(&c, path, text, len, err);

    if (rc != VT_OK)
        return rc;
    vt_jw_init(&r.out, &r.mine, NULL);
    rc = vt_sched_new(&r.s, &c.config, err);
    r.n_groups = rc == VT_OK ? vt_sched_groups(r.s) : 1;
    r.scratch = calloc(c.n_req, sizeof(*r.scratch));
    r.n_told = calloc((size_t)c.n_req * r.n_groups, sizeof(*r.n_told));
    if (rc == VT_OK && (!r.scratch || !r.n_told))
        rc = vt_nomem(err);
    for (; r.at < c.steps->n && rc == VT_OK; r.at++)
        rc = do_step(&r, &c.steps->u.item[r.at], err);
    if (rc == VT_OK)
        rc = replay_events_seen(&r, err);
    rc = vt_within(err, rc, "%s", path);
    (void)snprintf(out->name, sizeof(out->name), "%s", c.name);
    out->steps = c.steps->n;
    out->requests = c.n_req;
    vt_sched_free(r.s);
    for (int i = 0; i < IN_FLIGHT; i++) {
        free(r.flight[i].sampled);
        free(r.flight[i].done);
    }
    free(r.moving);
    free(r.hashes);
    free(r.scratch);
    free(r.n_told);
    vt_buf_free(&r.mine);
    vt_buf_free(&r.theirs);
    oracle_free(&c);
    return rc;
}

int vt_oracle_check(const char *path, struct vt_oracle_result *out, struct vt_err *err)
{
    return check_case(path, NULL, 0, out, err);
}

int vt_oracle_check_text(const char *name, const char *text, size_t len,
                         struct vt_oracle_result *out, struct vt_err *err)
{
    return check_case(name, text, len, out, err);
}
