/* moves.c - transfers between GPU and host: the recorded run's stand-in for a worker,
 * and what plans ask of it. */
#include "sim/oracle/replay.h"

/* A store is handed over when the step after its plan's begins, a load at once; either
 * is reported a number of steps later, a flushed one with the step that flushes it. */
static bool is_flushed(const struct vt_kv_moves *m, uint64_t job)
{
    for (uint32_t i = 0; i < m->n_flush; i++)
        if (m->flush[i] == job)
            return true;
    return false;
}

static int hand_over(struct replay *r, uint64_t job, uint32_t due, int64_t load_of,
                     struct vt_err *err)
{
    int rc =
        vt_grow(&r->moving, &r->cap_moving, r->n_moving + 1, sizeof(*r->moving), err);

    if (rc == VT_OK)
        r->moving[r->n_moving++] = (struct moving){job, due, load_of, true};
    return rc;
}

static int step_worker(struct replay *r, const struct vt_kv_moves *m,
                       struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < m->n_store && rc == VT_OK; i++)
        if (is_flushed(m, m->store[i].id))
            rc = hand_over(r, m->store[i].id, r->step + r->c->store_steps, -1, err);
    for (size_t i = 0; i < r->n_moving; i++) {
        struct moving *x = &r->moving[i];

        if (!x->begun)
            x->due = r->step + r->c->store_steps;
        x->begun = true;
        if (is_flushed(m, x->job))
            x->due = r->step;
    }
    for (uint32_t i = 0; i < m->n_load && rc == VT_OK; i++)
        rc = hand_over(r, m->load[i].id, r->step + r->c->load_steps,
                       (int64_t)m->load[i].tag, err);
    return rc;
}

/* Jobs that are over go to the step's flight; those planned now wait for the next. */
static int take_done(struct replay *r, const struct vt_kv_moves *m, struct flight *f,
                     struct vt_err *err)
{
    size_t kept = 0;
    int rc = vt_grow(&f->done, &f->cap_done, r->n_moving, sizeof(*f->done), err);

    if (rc != VT_OK)
        return rc;
    f->n_done = 0;
    for (size_t i = 0; i < r->n_moving; i++) {
        if (r->moving[i].due <= r->step)
            f->done[f->n_done++] = r->moving[i];
        else
            r->moving[kept++] = r->moving[i];
    }
    r->n_moving = kept;
    for (uint32_t i = 0; i < m->n_store && rc == VT_OK; i++) {
        if (is_flushed(m, m->store[i].id))
            continue;
        rc = hand_over(r, m->store[i].id, UINT32_MAX, -1, err);
        if (rc == VT_OK)
            r->moving[r->n_moving - 1].begun = false;
    }
    return rc;
}

static void put_jobs(struct replay *r, const char *key, const struct vt_kv_job *job,
                     uint32_t n)
{
    struct vt_jw *j = &r->out;

    if (n == 0)
        return;
    vt_jw_list(j, key);
    for (uint32_t i = 0; i < n; i++) {
        vt_jw_list(j, NULL);
        vt_jw_u64(j, NULL, job[i].id);
        vt_jw_u64(j, NULL, job[i].tag);
        vt_jw_u32_list(j, NULL, job[i].gpu, job[i].n_gpu);
        vt_jw_u32_list(j, NULL, job[i].cpu, job[i].n_cpu);
        vt_jw_u32_list(j, NULL, job[i].per_group, r->n_groups);
        vt_jw_u32_list(j, NULL, job[i].first, r->n_groups);
        vt_jw_end(j);
    }
    vt_jw_end(j);
}

static void put_done(struct replay *r, const struct flight *f)
{
    bool any = false;

    if (f->n_done == 0)
        return;
    vt_jw_list(&r->out, "done");
    for (uint32_t i = 0; i < f->n_done; i++) {
        vt_jw_u64(&r->out, NULL, f->done[i].job);
        any |= f->done[i].load_of >= 0;
    }
    vt_jw_end(&r->out);
    if (!any)
        return;
    vt_jw_list(&r->out, "recv");
    for (uint32_t i = 0; i < f->n_done; i++)
        if (f->done[i].load_of >= 0)
            vt_jw_u64(&r->out, NULL, (uint64_t)f->done[i].load_of);
    vt_jw_end(&r->out);
}

int replay_moves(struct replay *r, const struct vt_node *rec, struct flight *f,
                 struct vt_err *err)
{
    const struct vt_kv_moves *m = f->plan->moves;
    struct vt_jw *j = &r->out;
    int rc;

    f->n_done = 0;
    if (!m)
        return VT_OK;
    if ((rc = step_worker(r, m, err)) || (rc = take_done(r, m, f, err)))
        return rc;
    vt_jw_map(j, NULL);
    put_jobs(r, "load", m->load, m->n_load);
    put_jobs(r, "store", m->store, m->n_store);
    if (m->n_flush > 0) {
        vt_jw_list(j, "flush");
        for (uint32_t i = 0; i < m->n_flush; i++)
            vt_jw_u64(j, NULL, m->flush[i]);
        vt_jw_end(j);
    }
    if (m->n_evicted > 0)
        vt_jw_u32_list(j, "evict", m->evicted, m->n_evicted);
    if (m->no_room > 0)
        vt_jw_u64(j, "nospace", m->no_room);
    put_done(r, f);
    vt_jw_end(j);
    return check_field(r, rec, "kv", "{}", err);
}

int replay_moved(struct replay *r, const struct flight *f, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < f->n_done && rc == VT_OK; i++)
        rc = vt_sched_moved(r->s, &f->done[i].job, 1, err);
    return rc;
}
