/* pull.c - pulls that share a link, and leases. */
#include "core/pull.h"

#include <math.h>

#include "core/told.h"

void pulls_init(struct pulls *p, const struct vt_remote *r)
{
    *p = (struct pulls){.rate = r->gbs, /* 1e9 bytes in 1e9 nanoseconds */
                        .setup_ns = 1e3 * r->setup_us,
                        .shares = r->shares,
                        .block_bytes = r->block_bytes};
}

void pulls_free(struct pulls *p)
{
    free(p->job);
    free(p->done);
    vt_map_free(&p->word);
}

/* Bytes in a nanosecond of each pull that has begun to move them. */
static double rate_of(const struct pulls *p)
{
    size_t moving = 0;

    for (size_t i = 0; p->shares && i < p->n; i++)
        moving += !p->job[i].held && !(p->job[i].setup_ns > 0);
    return moving > 1 ? p->rate / (double)moving : p->rate;
}

/* Until a pull is over or the rates change, in whole nanoseconds. */
static double next_in(const struct pulls *p)
{
    double rate = rate_of(p), least = INFINITY;

    for (size_t i = 0; i < p->n; i++) {
        const struct pull_job *j = &p->job[i];
        double in = j->held           ? INFINITY
                    : j->setup_ns > 0 ? j->setup_ns
                    : p->rate > 0     ? j->bytes / rate
                                      : 0;

        least = ceil(in) < least ? ceil(in) : least;
    }
    return least;
}

static void pass_ns(struct pulls *p, double ns)
{
    double rate = rate_of(p);

    for (size_t i = 0; i < p->n; i++) {
        struct pull_job *j = &p->job[i];

        if (j->held)
            continue;
        if (j->setup_ns > 0)
            j->setup_ns = j->setup_ns > ns ? j->setup_ns - ns : 0;
        else
            j->bytes = j->bytes > ns * rate ? j->bytes - ns * rate : 0;
    }
    p->now += (vt_ns)ns;
}

/* Those that have all their bytes move on to `done`. */
static int finish(struct pulls *p, struct vt_err *err)
{
    size_t left = 0;
    int rc = vt_grow(&p->done, &p->cap_done, p->n_done + p->n, sizeof(*p->done), err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < p->n; i++) {
        struct pull_job j = p->job[i];

        if (j.held || j.setup_ns > 0 || (p->rate > 0 && j.bytes > 0)) {
            p->job[left++] = j;
            continue;
        }
        j.is.ended_ns = p->now;
        p->done[p->n_done++] = j.is;
    }
    p->n = left;
    return VT_OK;
}

static int advance(struct pulls *p, vt_ns to, struct vt_err *err)
{
    int rc = VT_OK;

    while (rc == VT_OK && p->n > 0) {
        double in = next_in(p);

        if (in > (double)(to - p->now)) {
            if (to > p->now)
                pass_ns(p, (double)(to - p->now));
            return VT_OK;
        }
        pass_ns(p, in);
        rc = finish(p, err);
    }
    if (p->now < to)
        p->now = to;
    return rc;
}

int pulls_launch(struct pulls *p, const struct vt_step_plan *plan, vt_ns asked,
                 vt_ns at, struct vt_err *err)
{
    int rc = advance(p, at, err);

    for (uint32_t i = 0; i < plan->n_pulls && rc == VT_OK; i++) {
        const struct vt_kv_pull *x = &plan->pull[i];
        struct vt_kv_pulled is = {.tag = x->tag,
                                  .bytes = x->blocks * p->block_bytes,
                                  .blocks = x->blocks,
                                  .asked_ns = asked,
                                  .begun_ns = p->now};
        uint64_t *word = x->unsure ? vt_map_get(&p->word, x->tag) : NULL;
        bool there = word && *word;

        rc = vt_grow(&p->job, &p->cap, p->n + 1, sizeof(*p->job), err);
        if (rc == VT_OK)
            p->job[p->n++] = (struct pull_job){is, x->blocks > 0 ? p->setup_ns : 0,
                                               (double)is.bytes, x->unsure};
        if (word)
            vt_map_drop(&p->word, word);
        if (word && rc == VT_OK)
            rc = pulls_reached(p, x->tag, at, there, false, err);
    }
    return rc;
}

static int give_up(struct pulls *p, size_t i, struct vt_err *err)
{
    struct vt_kv_pulled is = p->job[i].is;
    int rc = vt_grow(&p->done, &p->cap_done, p->n_done + 1, sizeof(*p->done), err);

    if (rc != VT_OK)
        return rc;
    is.failed = true;
    is.ended_ns = p->now;
    p->done[p->n_done++] = is;
    memmove(&p->job[i], &p->job[i + 1], (--p->n - i) * sizeof(*p->job));
    return VT_OK;
}

int pulls_reached(struct pulls *p, uint64_t tag, vt_ns now, bool there, bool will,
                  struct vt_err *err)
{
    int rc = advance(p, now, err);
    size_t i = 0;
    uint64_t *word;

    while (i < p->n && (p->job[i].is.tag != tag || !p->job[i].held))
        i++;
    if (rc != VT_OK)
        return rc;
    if (i < p->n && !there)
        return give_up(p, i, err);
    if (i < p->n) {
        p->job[i].held = false;
        p->job[i].is.begun_ns = p->now;
        return VT_OK;
    }
    if (!will)
        return VT_OK;
    word = vt_map_put(&p->word, tag);
    if (!word)
        return vt_nomem(err);
    *word = there;
    return VT_OK;
}

void pulls_forget(struct pulls *p, uint64_t tag)
{
    uint64_t *word = vt_map_get(&p->word, tag);

    if (word)
        vt_map_drop(&p->word, word);
}

int pulls_until(struct pulls *p, vt_ns at, uint32_t *n, struct vt_err *err)
{
    int rc = advance(p, at, err);

    *n = told_until(p->done, p->n_done, sizeof(*p->done),
                    offsetof(struct vt_kv_pulled, ended_ns), at);
    return rc;
}

void pulls_told(struct pulls *p, uint32_t n)
{
    told_drop(p->done, &p->n_done, n, sizeof(*p->done));
}

vt_ns pulls_due(const struct pulls *p)
{
    double in;

    if (p->n_done > 0)
        return p->done[0].ended_ns;
    in = next_in(p);
    return in < INFINITY ? p->now + (vt_ns)in : VT_NEVER;
}

/* ---- leases ----------------------------------------------------------- */

void leases_init(struct leases *l, const struct vt_remote *r)
{
    *l = (struct leases){.term = vt_ns_from_us(r->lease_s * 1e6)};
}

void leases_free(struct leases *l)
{
    vt_map_free(&l->until);
    vt_agenda_free(&l->ends);
    free(l->over);
}

int leases_add(struct leases *l, uint64_t tag, vt_ns now, struct vt_err *err)
{
    uint64_t *until = vt_map_put(&l->until, tag);

    if (!until)
        return vt_nomem(err);
    *until = (uint64_t)(now + l->term);
    return l->term > 0 ? vt_agenda_push(&l->ends, now + l->term, tag, err) : VT_OK;
}

int leases_renew(struct leases *l, uint64_t tag, vt_ns now)
{
    uint64_t *until = vt_map_get(&l->until, tag);
    uint64_t to = (uint64_t)(now + l->term * 2 / 3); /* as vLLM extends them */

    if (!until)
        return VT_ECHECK;
    *until = to > *until ? to : *until;
    return VT_OK;
}

static int end_lease(struct leases *l, uint64_t *until, uint64_t tag, vt_ns at,
                     bool expired, struct vt_err *err)
{
    int rc = vt_grow(&l->over, &l->cap_over, l->n_over + 1, sizeof(*l->over), err);

    if (rc != VT_OK)
        return rc;
    vt_map_drop(&l->until, until);
    l->over[l->n_over++] = (struct lease_over){tag, at, expired};
    return VT_OK;
}

int leases_pulled(struct leases *l, uint64_t tag, vt_ns now)
{
    uint64_t *until = vt_map_get(&l->until, tag);

    return until ? end_lease(l, until, tag, now, false, NULL) : VT_ECHECK;
}

int leases_until(struct leases *l, vt_ns at, uint32_t *n, struct vt_err *err)
{
    int rc = VT_OK;

    while (rc == VT_OK && l->ends.n > 0 && l->ends.due[0].at <= at) {
        struct vt_due due = l->ends.due[0];
        uint64_t *until = vt_map_get(&l->until, due.item);

        vt_agenda_remove(&l->ends, 0);
        if (until && (vt_ns)*until > due.at)
            rc = vt_agenda_push(&l->ends, (vt_ns)*until, due.item, err);
        else if (until)
            rc = end_lease(l, until, due.item, due.at, true, err);
    }
    *n = told_until(l->over, l->n_over, sizeof(*l->over),
                    offsetof(struct lease_over, at), at);
    return rc;
}

void leases_told(struct leases *l, uint32_t n)
{
    told_drop(l->over, &l->n_over, n, sizeof(*l->over));
}

vt_ns leases_due(const struct leases *l)
{
    if (l->n_over > 0)
        return l->over[0].at;
    return l->until.n > 0 && l->ends.n > 0 ? l->ends.due[0].at : VT_NEVER;
}
