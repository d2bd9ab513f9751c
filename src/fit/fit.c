#include "fit/internal.h"

#include <math.h>

/* ---- constants of the fit ----------------------------------------------- */

/* How strongly an unknown is held where it started, per unit of its logarithm, against
 * windows whose weights sum to 1 for each capture. A factor of a size that was hardly
 * seen stays near 1; what physics tells beforehand takes good reason to leave; others
 * are held just enough for the system to be solvable. */
static const double FACTOR_PULL = 0.25, PHYSICS_PULL = 0.4, OTHER_PULL = 0.01,
                    ROUTING_PULL = 0.03;
/* Errors beyond this (of the logarithm: 6 %) count less and less: what fits leave is
 * two or three percent, and more than twice that is no noise of the model. */
static const double SOFT = 0.06;
enum { LM_STEPS = 40 }; /* fits settle after 10 to 25 */

/* ---- captures --------------------------------------------------------- */

int vt_fit_new(struct vt_fit **out, const struct vt_fit_shape *shape,
               struct vt_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return vt_nomem(err);
    (*out)->shape = *shape;
    return VT_OK;
}

static void capture_free(struct capture *c)
{
    free(c->name);
    free(c->step);
    free(c->join);
    free(c->moved);
    free(c->turnaround.p);
    free(c->next_turn.p);
    vt_arena_free(&c->arena);
}

void vt_fit_free(struct vt_fit *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        capture_free(&f->capture[i]);
    free(f->capture);
    free(f);
}

static struct vt_step_params shape_params(const struct vt_fit *f)
{
    struct vt_step_params p;

    vt_step_params_init(&p);
    p.experts = f->shape.experts;
    p.experts_per_token = f->shape.experts_per_token;
    p.window = f->shape.reads.window;
    p.window_share = f->shape.reads.window_share;
    if (f->shape.graph_limit > 0)
        p.graph_limit = f->shape.graph_limit;
    return p;
}

bool tokens_are_timed(const struct vt_workload *w)
{
    return w->n_by_mean <= w->n / 20; /* few do no harm */
}

int vt_fit_add(struct vt_fit *f, const char *name, const struct vt_steps *steps,
               const struct vt_workload *trace, struct vt_err *err)
{
    struct vt_step_params shape = shape_params(f);
    struct capture c = {0};
    int rc = vt_grow(&f->capture, &f->cap, f->n + 1, sizeof(c), err);

    if (rc != VT_OK)
        return rc;
    c.name = strdup(name);
    if (!c.name)
        return vt_nomem(err);
    c.meta.async_scheduling = c.meta.enable_prefix_caching = -1;
    if (trace) {
        const char **texts[] = {&c.meta.model,         &c.meta.gpu,
                                &c.meta.vllm_version,  &c.meta.workload_name,
                                &c.meta.workload_kind, &c.meta.kv_cache_dtype};

        c.meta = trace->meta;
        for (size_t i = 0; i < VT_COUNT(texts) && rc == VT_OK; i++)
            rc = vt_arena_text(&c.arena, *texts[i], texts[i], err);
    }
    if (c.meta.max_num_seqs == 0)
        c.meta.max_num_seqs = 256;
    if (rc == VT_OK && steps)
        rc = capture_from_steps(&c, &shape, steps, trace, err);
    else if (rc == VT_OK && trace->measured && tokens_are_timed(trace))
        rc = capture_from_trace(&c, &shape, trace, err);
    else if (rc == VT_OK && !trace->measured)
        rc = vt_fail(err, VT_EINPUT, "no timings to fit");
    if (steps && steps->only_out)
        c.rebuilt = true;
    if (rc == VT_OK && trace)
        rc = capture_clients(&c, c.rebuilt ? NULL : steps, trace, err);
    if (rc != VT_OK) {
        capture_free(&c);
        return vt_within(err, rc, "%s", name);
    }
    c.meta.max_num_seqs = trace ? trace->meta.max_num_seqs : 0; /* as it is stated */
    f->capture[f->n++] = c;
    f->cleaned = f->agreed = false;
    for (size_t i = 0; i < f->n; i++)
        f->capture[i].knows_without = f->capture[i].odd = false;
    return VT_OK;
}

const char *vt_fit_name(const struct vt_fit *f, size_t i)
{
    return f->capture[i].name;
}

/* ---- what is solved for ----------------------------------------------- */

enum { MAX_UNKNOWNS = 80 };

struct problem {
    const struct vt_fit *f;
    size_t left_out;
    struct vt_step_params p;
    struct unknown u[MAX_UNKNOWNS];
    size_t m;
};

#define FIELD(name) offsetof(struct vt_step_params, name)

static double *param_at(struct vt_step_params *p, size_t offset)
{
    return (double *)(void *)((char *)p + offset);
}

static void add_unknown(struct problem *q, size_t offset, double start, double pull)
{
    q->u[q->m++] = (struct unknown){offset, log(start), pull};
    *param_at(&q->p, offset) = start;
}

/* Where physics says what to expect, it takes good reason to leave that: captures with
 * short contexts alone say little about long ones. */
static void add_known(struct problem *q, size_t offset, double expected,
                      double otherwise)
{
    if (expected > 0)
        add_unknown(q, offset, expected, PHYSICS_PULL);
    else
        add_unknown(q, offset, otherwise, OTHER_PULL);
}

static void add_factors(struct problem *q, size_t offset, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_unknown(q, offset + i * sizeof(double), 1, FACTOR_PULL);
}

/* As far as the tiles of work go that decoding requests and KV heads make. */
static void add_context_factors(struct problem *q)
{
    double heads = q->f->shape.reads.kv_heads;

    for (size_t i = 0; i < VT_STEP_CONTEXT_KNOTS; i++) {
        double tiles = vt_step_context_knots[i] * heads;
        size_t k = 0;

        while (k + 1 < VT_TILES && vt_tiles[k + 1] <= tiles)
            k++;
        add_unknown(q, FIELD(context_factor) + i * sizeof(double),
                    heads > 1 ? vt_tile_factors[k] : 1, FACTOR_PULL);
    }
}

/* Typical gap of decode steps with at most that many tokens, us; 0: none. */
static double decode_gap(const struct problem *q, double lo, double hi)
{
    double sum = 0, n = 0;

    for (size_t i = 0; i < q->f->n; i++) {
        const struct capture *c = &q->f->capture[i];

        for (size_t k = 2; capture_used(q->f, i, q->left_out) && k < c->n; k++) {
            const struct observed *o = &c->step[k];

            if (o->idle || o->stalled || o->f.mode != VT_STEP_GRAPH ||
                o->f.tokens < lo || o->f.tokens > hi ||
                c->step[k - 1].f.mode != VT_STEP_GRAPH)
                continue;
            sum += log(fmax(o->out - c->step[k - 1].out, 1e-3));
            n++;
        }
    }
    return n > 0 ? 1e3 * exp(sum / n) : 0;
}

static bool hands_over(const struct problem *q)
{
    for (size_t i = 0; i < q->f->n; i++)
        if (capture_used(q->f, i, q->left_out) && q->f->capture[i].n_moved > 0)
            return true;
    return false;
}

static int choose_unknowns(struct problem *q, struct vt_err *err)
{
    double small = decode_gap(q, 1, 4), mixed, eager, spread, spread2;
    const struct vt_fit_shape *shape = &q->f->shape;
    bool mixture = shape->experts > 0;

    if (launch_seen(q->f, q->left_out, VT_STEP_MIXED, &mixed, &spread, err) != VT_OK ||
        launch_seen(q->f, q->left_out, VT_STEP_EAGER, &eager, &spread2, err) != VT_OK)
        return VT_ENOMEM;
    if (small <= 0)
        small = fmax(decode_gap(q, 1, 1e9), 1000);
    add_unknown(q, FIELD(base), mixture ? 0.6 * small : 0.95 * small, OTHER_PULL);
    if (mixture) {
        add_known(q, FIELD(expert), shape->expert_us, 3 * small);
        add_unknown(q, FIELD(expert_spread), 0.9, ROUTING_PULL);
    }
    add_known(q, FIELD(context_ktoken), shape->context_us, 0.005 * small);
    add_unknown(q, FIELD(graph_token), 0.003 * small, OTHER_PULL);
    add_unknown(q, FIELD(mixed), 0.3 * small, OTHER_PULL);
    add_unknown(q, FIELD(mixed_token), 0.003 * small, OTHER_PULL);
    add_unknown(q, FIELD(eager), 0.3 * small, OTHER_PULL);
    /* Experts' arithmetic is far less efficient than dense layers': a start, no more.
     */
    add_unknown(q, FIELD(eager_token),
                shape->token_us > 0 ? shape->token_us : 0.0045 * small, OTHER_PULL);
    if (shape->fill_us > 0)
        add_unknown(q, FIELD(fill_row), shape->fill_us, FACTOR_PULL);
    add_unknown(q, FIELD(row), 0.0005 * small, OTHER_PULL);
    add_unknown(q, FIELD(prefill), 0.01 * small, OTHER_PULL);
    add_known(q, FIELD(depth_mtoken), shape->depth_us, 0.2 * small);
    add_unknown(q, FIELD(host_launch_graph), 1800, OTHER_PULL);
    add_unknown(q, FIELD(host_launch_mixed), mixed > 0 ? 900 * mixed : 1.5 * small,
                OTHER_PULL);
    add_unknown(q, FIELD(host_launch_eager), eager > 0 ? 1e3 * eager : 3 * small,
                OTHER_PULL);
    add_unknown(q, FIELD(host_launch_request), 5, OTHER_PULL);
    add_unknown(q, FIELD(host_tail), 1000, OTHER_PULL);
    add_unknown(q, FIELD(host_lead), 800, OTHER_PULL);
    if (hands_over(q)) {
        add_unknown(q, FIELD(host_move), 500, OTHER_PULL);
        add_unknown(q, FIELD(host_move_block), 20, OTHER_PULL);
    }
    add_factors(q, FIELD(graph_factor), VT_STEP_GRAPH_KNOTS);
    add_factors(q, FIELD(mixed_factor), VT_STEP_MIXED_KNOTS);
    add_factors(q, FIELD(eager_factor), VT_STEP_EAGER_KNOTS);
    add_context_factors(q);
    q->p.launch_noise = spread2 > 0 ? spread2 : spread;
    return VT_OK;
}

/* ---- what is heard ---------------------------------------------------- */

static void each_capture(void *user, struct hearing *h)
{
    const struct problem *q = user;

    for (size_t i = 0; i < q->f->n; i++) {
        const struct capture *c = &q->f->capture[i];

        if (!capture_used(q->f, i, q->left_out) || c->span <= 0)
            continue;
        h->weight = 1 / c->span; /* captures count the same, however long */
        replay(c, &q->p, h->tell, h);
    }
}

static void set_unknowns(void *user, const double *x)
{
    struct problem *q = user;

    for (size_t i = 0; i < q->m; i++)
        *param_at(&q->p, q->u[i].offset) = exp(x[i]);
}

static int solve(struct problem *q, struct vt_err *err)
{
    struct hearing h = {.set = set_unknowns,
                        .replay = each_capture,
                        .user = q,
                        .u = q->u,
                        .m = q->m,
                        .purpose = "fit",
                        .soft = SOFT,
                        .max_steps = LM_STEPS};
    double x[MAX_UNKNOWNS];

    for (size_t k = 0; k < q->m; k++)
        x[k] = q->u[k].start;
    return hear(&h, x, err);
}

/* ---- afterwards ------------------------------------------------------- */

static void note_seen(struct problem *q)
{
    struct vt_step_params *p = &q->p;

    for (size_t i = 0; i < q->f->n; i++) {
        const struct capture *c = &q->f->capture[i];

        for (size_t k = 0; capture_used(q->f, i, q->left_out) && k < c->n; k++) {
            const struct vt_step_features *f = &c->step[k].f;
            double tokens = f->prompt_tokens + f->requests - f->prefills;

            p->seen_step_tokens = fmax(p->seen_step_tokens, tokens);
            p->seen_running = fmax(p->seen_running, f->running);
            p->seen_context_ktokens = fmax(p->seen_context_ktokens, f->context_k);
        }
    }
}

/* ---- quality ---------------------------------------------------------- */

static int measure_quality(const struct problem *q, struct vt_fit_quality *out,
                           struct vt_err *err)
{
    struct window_errors s = {0};
    double seconds = 0, stalled = 0;

    *out = (struct vt_fit_quality){0};
    for (size_t i = 0; i < q->f->n; i++) {
        struct vt_fit_look look = vt_fit_look(q->f, i);

        if (!capture_used(q->f, i, q->left_out))
            continue;
        out->steps += look.steps;
        out->stalls += look.stalls;
        seconds += look.seconds;
        stalled += look.stall_seconds;
        replay_errors(&q->f->capture[i], &q->p, &s);
    }
    out->windows = s.n;
    out->stall_share = seconds > 0 ? stalled / seconds : 0;
    for (size_t i = 0; i < s.n; i++) {
        out->bias += s.e[i] / (double)s.n;
        s.e[i] = fabs(s.e[i]);
    }
    vt_sort_f64(s.e, s.n);
    out->median_error = vt_quantile(s.e, s.n, 50);
    free(s.e);
    return s.failed ? vt_nomem(err) : VT_OK;
}

int vt_fit_solve(struct vt_fit *f, size_t left_out, struct vt_step_params *out,
                 struct vt_fit_quality *quality, struct vt_err *err)
{
    struct problem q = {.f = f, .left_out = left_out, .p = shape_params(f)};
    int rc;

    clean_captures(f);
    if ((rc = host_costs(f, left_out, &q.p, err)) || (rc = choose_unknowns(&q, err)) ||
        (rc = solve(&q, err)))
        return rc;
    note_seen(&q);
    q.p.expert_spread = fmin(q.p.expert_spread, 1);
    vt_step_make_monotone(&q.p);
    *out = q.p;
    return quality ? measure_quality(&q, quality, err) : VT_OK;
}
