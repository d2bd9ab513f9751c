/* oracle.c - replays a recorded run of vLLM's scheduler and compares step for step. */
#include "sim/oracle/replay.h"

static int request_index(const struct replay *r, const struct vt_node *n, uint32_t *i,
                         struct vt_err *err)
{
    if (n->kind != VT_INT || n->u.integer < 0 || n->u.integer >= r->c->n_req)
        return vt_fail(err, VT_EINPUT, "line %u: no such request", n->line);
    *i = (uint32_t)n->u.integer;
    return VT_OK;
}

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
    uint32_t n, *list = r->scratch;
    const uint32_t *running = vt_sched_running(r->s, &n);

    (void)err;
    for (uint32_t k = 0; k < n; k++)
        if (vt_sched_tag(r->s, running[k]) == i) {
            vt_sched_abort(r->s, running[k]);
            return VT_OK;
        }
    n = vt_sched_waiting(r->s, list, r->c->n_req);
    for (uint32_t k = 0; k < n; k++)
        if (vt_sched_tag(r->s, list[k]) == i) {
            vt_sched_abort(r->s, list[k]);
            return VT_OK;
        }
    return VT_OK;
}

static int do_each(struct replay *r, const struct vt_node *rec, const char *field,
                   int (*act)(struct replay *, uint32_t, struct vt_err *),
                   struct vt_err *err)
{
    const struct vt_node *list = vt_get(rec, field);
    int rc = VT_OK;

    for (uint32_t k = 0; list != NULL && list->kind == VT_LIST && k < list->n; k++) {
        uint32_t i = 0;

        rc = request_index(r, &list->u.item[k], &i, err);
        if (rc == VT_OK)
            rc = act(r, i, err);
        if (rc != VT_OK)
            return rc;
    }
    return rc;
}

static int do_reset(struct replay *r, const struct vt_node *rec, bool preempt,
                    struct vt_err *err)
{
    const uint64_t *tags = NULL;
    uint32_t n;
    bool ok = vt_sched_reset_cache(r->s, preempt, &tags, &n);
    int rc;

    vt_buf_str(&r->mine, ok ? "true" : "false");
    rc = same(r, rec, "action_result", "", err);
    if (rc != VT_OK)
        return rc;
    put_tags(&r->mine, tags, n);
    return same(r, rec, "action_preempt", "[]", err);
}

static int do_action(struct replay *r, const struct vt_node *rec, struct vt_err *err)
{
    const char *a = NULL;
    int rc = vt_get_str(rec, "action", VT_OPTIONAL, &a, err);

    if (rc != VT_OK || a == NULL)
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
    int rc = vt_get_u32(rec, "step", VT_REQUIRED, 0, UINT32_MAX, &r->step, err);

    if (rc == VT_OK)
        rc = do_each(r, rec, "add", do_add, err);
    if (rc == VT_OK)
        rc = do_each(r, rec, "abort", do_abort, err);
    if (rc == VT_OK)
        rc = do_action(r, rec, err);
    if (rc == VT_OK && vt_get(rec, "sched") != NULL)
        rc = replay_schedule(r, rec, err);
    if (rc == VT_OK && upd != NULL && upd->kind == VT_MAP)
        rc = vt_within(err, replay_update(r, upd, err), "result");
    if (rc == VT_OK)
        rc = replay_events(r, err);
    return rc;
}

static int replay_case(struct replay *r, struct vt_err *err)
{
    int rc = vt_sched_new(&r->s, &r->c->config, err);

    r->scratch = calloc(r->c->n_req, sizeof(*r->scratch));
    if (rc == VT_OK && r->scratch == NULL)
        rc = vt_nomem(err);
    for (uint32_t i = 0; i < r->c->steps->n && rc == VT_OK; i++)
        rc = do_step(r, &r->c->steps->u.item[i], err);
    if (rc == VT_OK)
        rc = replay_events_seen(r, err);
    return rc;
}

static int check_case(const char *path, const char *text, size_t len,
                      struct vt_oracle_result *out, struct vt_err *err)
{
    struct oracle_case c;
    struct replay r = {.c = &c};
    int rc = oracle_load(&c, path, text, len, err);

    if (rc != VT_OK)
        return rc;
    rc = vt_within(err, replay_case(&r, err), "%s", path);
    (void)snprintf(out->name, sizeof(out->name), "%s", c.name);
    out->steps = c.steps->n;
    out->requests = c.n_req;
    vt_sched_free(r.s);
    for (int i = 0; i < IN_FLIGHT; i++)
        free(r.flight[i].sampled);
    free(r.hashes);
    free(r.scratch);
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
