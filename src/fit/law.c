/* law.c - the constants of estimates, from captures of several models.
 *
 * All captures of all models are replayed at once, each with the step model that the
 * law gives for its model, and the law's constants are found with which results come
 * when they came. What is not the law's is taken from each model's own fit: what its
 * host takes, how its tokens were sent to experts. */
#include "fit/internal.h"

#include <math.h>

/* Laws miss by more than fits do: errors count less beyond 10 %. */
static const double SOFT = 0.10;
/* How strongly a model's host is held to be like the others', per unit of its
 * logarithm: machines differ by a fourth. */
static const double HOST_PULL = 0.1;
enum { LM_STEPS = 30, LAST_STEPS = 20 };

struct member { /* one model with one set of settings */
    char *name;
    struct vt_fit *fit; /* borrowed */
    struct vt_estimate_query q;
    struct vt_gpu_reach reach;
    struct vt_step_params own;
    bool left_out;
    double host; /* how much slower than the law's its host is, found with it */
};

struct vt_corpus {
    struct member *m;
    size_t n, cap;
};

int vt_corpus_new(struct vt_corpus **out, struct vt_err *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? VT_OK : vt_nomem(err);
}

void vt_corpus_free(struct vt_corpus *c)
{
    for (size_t i = 0; c && i < c->n; i++)
        free(c->m[i].name);
    if (c)
        free(c->m);
    free(c);
}

int vt_corpus_add(struct vt_corpus *c, const char *name, struct vt_fit *f,
                  const struct vt_estimate_query *q, struct vt_err *err)
{
    struct member m = {.fit = f, .q = *q, .name = strdup(name)};
    int rc = m.name ? vt_grow(&c->m, &c->cap, c->n + 1, sizeof(m), err) : vt_nomem(err);

    if (rc == VT_OK)
        rc = vt_gpu_reach(&m.reach, q->gpu->name, err);
    if (rc == VT_OK)
        rc = vt_within(err, vt_fit_solve(f, VT_FIT_ALL, &m.own, NULL, err), "%s", name);
    if (rc == VT_OK)
        c->m[c->n++] = m;
    else
        free(m.name);
    return rc;
}

const struct vt_step_params *vt_corpus_own(const struct vt_corpus *c, size_t i)
{
    return &c->m[i].own;
}

/* The same weights with other settings are no other model. */
static bool same_model(const struct member *a, const struct member *b)
{
    const struct vt_arch *x = a->q.arch, *y = b->q.arch;

    return x->layers == y->layers && x->hidden == y->hidden && x->heads == y->heads &&
           x->vocab == y->vocab && x->experts == y->experts;
}

/* ---- the replay's side -------------------------------------------------- */

enum { MAX_UNKNOWNS = 256 };

struct problem {
    struct vt_corpus *c;
    struct vt_law law;
    struct unknown u[MAX_UNKNOWNS];
    size_t n_terms; /* of the law; after them a host for each member */
};

static double *law_at(struct vt_law *law, size_t offset)
{
    return (double *)(void *)((char *)law + offset);
}

/* What the law says of a member, on that member's own host. */
static void member_params(const struct vt_law *law, const struct member *m,
                          struct vt_step_params *p)
{
    vt_law_params(law, &m->reach, &m->q, p);
    p->expert_spread = m->own.expert_spread;
    p->host_launch_graph *= m->host;
    p->host_launch_mixed *= m->host;
    p->host_launch_eager *= m->host;
    p->host_launch_request = m->own.host_launch_request;
    p->host_tail = m->own.host_tail;
    p->host_lead = m->own.host_lead;
    p->host_sched = m->own.host_sched;
    p->host_sched_request = m->own.host_sched_request;
    p->host_done = m->own.host_done;
    p->host_done_request = m->own.host_done_request;
    p->host_done_end = m->own.host_done_end;
}

static void each_member(void *user, struct hearing *h)
{
    const struct problem *q = user;

    for (size_t i = 0; i < q->c->n; i++) {
        const struct member *m = &q->c->m[i];
        struct vt_step_params p;
        double used = 0;

        if (m->left_out)
            continue;
        member_params(&q->law, m, &p);
        for (size_t k = 0; k < m->fit->n; k++)
            used += capture_used(m->fit, k, VT_FIT_ALL) && m->fit->capture[k].span > 0;
        for (size_t k = 0; k < m->fit->n; k++) {
            const struct capture *c = &m->fit->capture[k];

            if (!capture_used(m->fit, k, VT_FIT_ALL) || c->span <= 0)
                continue;
            h->weight = 1 / (c->span * used);
            replay(c, &p, h->tell, h);
        }
    }
}

static void set_unknowns(void *user, const double *x)
{
    struct problem *q = user;

    for (size_t i = 0; i < q->n_terms; i++)
        *law_at(&q->law, q->u[i].offset) = exp(x[i]);
    for (size_t i = 0; i < q->c->n; i++)
        q->c->m[i].host = exp(x[q->n_terms + i]);
}

/* ---- what is read off --------------------------------------------------- */

enum { MAX_MEMBERS = 128 };

/* The median of a host's cost over the members that pass. */
static double median_of(const struct vt_corpus *c, size_t offset, int windows)
{
    double v[MAX_MEMBERS];
    size_t n = 0;

    for (size_t i = 0; i < c->n && n < MAX_MEMBERS; i++) {
        const struct member *m = &c->m[i];

        if (m->left_out || (windows >= 0 && windows != (m->own.window_share > 0)))
            continue;
        memcpy(&v[n++], (const char *)&m->own + offset, sizeof(*v));
    }
    vt_sort_f64(v, n);
    return n > 0 ? vt_quantile(v, n, 50) : 0;
}

#define READ(field) \
    law->field = median_of(c, offsetof(struct vt_step_params, host_##field), -1)

static void read_hosts(const struct vt_corpus *c, struct vt_law *law)
{
    READ(tail);
    READ(lead);
    READ(arrive);
    READ(intake);
    READ(intake_ktoken);
    READ(wake);
    READ(nap);
    READ(sched);
    READ(done);
    READ(done_request);
    READ(done_end);
    READ(turnaround);
    READ(turnaround_request);
    READ(turnaround_next);
    READ(launch_request);
    law->sched_request =
        median_of(c, offsetof(struct vt_step_params, host_sched_request), 0);
    law->sched_window_request =
        median_of(c, offsetof(struct vt_step_params, host_sched_request), 1);
    if (!(law->sched_window_request > 0))
        law->sched_window_request = 2 * law->sched_request;
    law->turnaround_noise =
        median_of(c, offsetof(struct vt_step_params, turnaround_noise), -1);
    law->launch_noise = median_of(c, offsetof(struct vt_step_params, launch_noise), -1);
}

/* ---- learning ----------------------------------------------------------- */

/* VT_EINPUT: there are too many. */
static int add_unknowns(struct problem *q, struct vt_err *err)
{
    size_t n;
    const struct vt_law_term *t = vt_law_terms(&n);

    vt_law_init(&q->law);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; t[i].pull > 0 && k < t[i].n; k++) {
            size_t offset = t[i].offset + k * sizeof(double);

            q->u[q->n_terms++] =
                (struct unknown){offset, log(*law_at(&q->law, offset)), t[i].pull};
        }
    if (q->n_terms + q->c->n > MAX_UNKNOWNS)
        return vt_fail(err, VT_EINPUT, "more than %zu models",
                       MAX_UNKNOWNS - q->n_terms);
    for (size_t i = 0; i < q->c->n; i++)
        q->u[q->n_terms + i] = (struct unknown){.pull = HOST_PULL};
    return VT_OK;
}

static int solve(struct problem *q, const struct vt_law *from, struct vt_err *err)
{
    struct hearing h = {.set = set_unknowns,
                        .replay = each_member,
                        .user = q,
                        .u = q->u,
                        .m = q->n_terms + q->c->n,
                        .purpose = "learn from",
                        .soft = SOFT,
                        .tolerance = 1e-6,
                        .max_steps = from ? LAST_STEPS : LM_STEPS,
                        .begun = from != NULL};
    struct vt_law begin = from ? *from : q->law;
    double x[MAX_UNKNOWNS];

    for (size_t k = 0; k < q->n_terms; k++)
        x[k] = log(*law_at(&begin, q->u[k].offset));
    for (size_t k = 0; k < q->c->n; k++)
        x[q->n_terms + k] = log(q->c->m[k].host);
    return hear(&h, x, err);
}

int vt_corpus_learn(struct vt_corpus *c, size_t without, const struct vt_law *from,
                    struct vt_law *out, struct vt_err *err)
{
    struct problem *q = calloc(1, sizeof(*q));
    int rc;

    if (!q)
        return vt_nomem(err);
    q->c = c;
    for (size_t i = 0; i < c->n; i++) {
        c->m[i].left_out = without < c->n && same_model(&c->m[i], &c->m[without]);
        if (!from)
            c->m[i].host = 1;
    }
    rc = add_unknowns(q, err);
    if (rc == VT_OK)
        rc = solve(q, from, err);
    read_hosts(c, &q->law);
    *out = q->law;
    free(q);
    return rc;
}

double vt_corpus_host(const struct vt_corpus *c, size_t i)
{
    return c->m[i].host;
}

bool vt_corpus_same(const struct vt_corpus *c, size_t i, size_t k)
{
    return same_model(&c->m[i], &c->m[k]);
}

int vt_law_host(const struct vt_law *law, struct vt_fit *f,
                const struct vt_estimate_query *q, double *slower, struct vt_err *err)
{
    struct problem *p = calloc(1, sizeof(*p));
    struct vt_corpus c = {0};
    int rc = p ? vt_corpus_add(&c, "captures", f, q, err) : vt_nomem(err);

    if (rc == VT_OK) {
        p->c = &c;
        p->law = *law;
        p->u[0] = (struct unknown){.pull = HOST_PULL};
        c.m[0].host = 1;
        rc = solve(p, NULL, err);
        *slower = c.m[0].host;
        free(c.m[0].name);
    }
    free(c.m);
    free(p);
    return rc;
}
