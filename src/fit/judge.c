/* judge.c - whether captures agree, which to believe, and what no engine does. */
#include "fit/internal.h"

#include <math.h>

/* ---- the engine that they ran on ---------------------------------------- */

enum kind { TEXT, NUMBER, SWITCH };

static const struct field {
    const char *name;
    size_t offset;
    enum kind kind;
} fields[] = {
#define FIELD(name, kind) {#name, offsetof(struct vt_meta, name), kind}
    FIELD(model, TEXT),
    FIELD(gpu, TEXT),
    FIELD(vllm_version, TEXT),
    {"tensor_parallel_size", offsetof(struct vt_meta, tp), NUMBER},
    FIELD(max_num_seqs, NUMBER),
    FIELD(max_num_batched_tokens, NUMBER),
    FIELD(max_model_len, NUMBER),
    FIELD(block_size, NUMBER),
    FIELD(num_gpu_blocks, NUMBER),
    FIELD(enable_prefix_caching, SWITCH),
    FIELD(async_scheduling, SWITCH),
#undef FIELD
};

static const void *at(const struct vt_meta *m, const struct field *x)
{
    return (const char *)m + x->offset;
}

static bool is_stated(const struct vt_meta *m, const struct field *x)
{
    switch (x->kind) {
    case TEXT:
        return *(const char *const *)at(m, x) != NULL;
    case NUMBER:
        return *(const uint32_t *)at(m, x) > 0;
    default:
        return *(const int *)at(m, x) >= 0;
    }
}

static bool is_same(const struct vt_meta *a, const struct vt_meta *b,
                    const struct field *x)
{
    if (x->kind == TEXT)
        return strcmp(*(const char *const *)at(a, x), *(const char *const *)at(b, x)) ==
               0;
    return memcmp(at(a, x), at(b, x), sizeof(uint32_t)) == 0;
}

static void copy_field(struct vt_meta *to, const struct vt_meta *from,
                       const struct field *x)
{
    size_t size = x->kind == TEXT ? sizeof(char *) : sizeof(uint32_t);

    memcpy((char *)to + x->offset, at(from, x), size);
}

static void put_value(struct vt_buf *b, const struct vt_meta *m, const struct field *x)
{
    if (x->kind == TEXT)
        vt_buf_str(b, *(const char *const *)at(m, x));
    else if (x->kind == NUMBER)
        vt_buf_printf(b, "%u", *(const uint32_t *)at(m, x));
    else
        vt_buf_str(b, *(const int *)at(m, x) > 0 ? "on" : "off");
}

struct vote {
    size_t winner, votes, stated; /* winner: a capture that says what most say */
};

static struct vote count_votes(const struct vt_fit *f, const struct field *x)
{
    struct vote v = {0};

    for (size_t i = 0; i < f->n; i++) {
        size_t votes = 0;

        if (!is_stated(&f->capture[i].meta, x))
            continue;
        v.stated++;
        for (size_t k = 0; k < f->n; k++)
            votes += is_stated(&f->capture[k].meta, x) &&
                     is_same(&f->capture[i].meta, &f->capture[k].meta, x);
        if (votes > v.votes) {
            v.votes = votes;
            v.winner = i;
        }
    }
    return v;
}

/* "a says 3000, b 45781". */
static int fail_vote(const struct vt_fit *f, const struct field *x, size_t winner,
                     struct vt_err *err)
{
    const struct capture *one = &f->capture[winner];
    struct vt_buf b = {0};
    int rc;

    for (size_t i = 0; i < f->n; i++) {
        const struct capture *c = &f->capture[i];

        if (!is_stated(&c->meta, x) || is_same(&c->meta, &one->meta, x))
            continue;
        vt_buf_printf(&b, "%s says ", one->name);
        put_value(&b, &one->meta, x);
        vt_buf_printf(&b, ", %s ", c->name);
        put_value(&b, &c->meta, x);
        break;
    }
    rc = b.failed ? vt_nomem(err)
                  : vt_fail(err, VT_EINPUT,
                            "captures differ in %s: %s; --limits-of NAME says which "
                            "is right",
                            x->name, b.data);
    vt_buf_free(&b);
    return rc;
}

static void note_others(const struct vt_fit *f, const struct field *x, size_t winner,
                        struct vt_buf *notes)
{
    const struct vt_meta *right = &f->capture[winner].meta;

    for (size_t i = 0; i < f->n; i++) {
        const struct capture *c = &f->capture[i];

        if (!is_stated(&c->meta, x) || is_same(&c->meta, right, x))
            continue;
        vt_buf_printf(notes, "%s: %s is ", c->name, x->name);
        put_value(notes, &c->meta, x);
        vt_buf_str(notes, ", the profile states ");
        put_value(notes, right, x);
        vt_buf_str(notes, " as the others do\n");
    }
}

static int find_capture(const struct vt_fit *f, const char *name, size_t *out,
                        struct vt_err *err)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->capture[i].name, name) == 0) {
            *out = i;
            return VT_OK;
        }
    return vt_fail(err, VT_EINPUT, "there is no capture '%s'", name);
}

int vt_fit_agree(struct vt_fit *f, const char *from, struct vt_buf *notes,
                 struct vt_err *err)
{
    size_t right = 0;
    int rc = from ? find_capture(f, from, &right, err) : VT_OK;

    if (rc != VT_OK || f->n == 0)
        return rc;
    f->engine = f->capture[right].meta;
    for (size_t i = 0; i < VT_COUNT(fields); i++) {
        const struct field *x = &fields[i];
        struct vote v = count_votes(f, x);

        if (v.votes == 0)
            continue;
        if (from && is_stated(&f->capture[right].meta, x))
            v.winner = right;
        else if (2 * v.votes <= v.stated)
            return fail_vote(f, x, v.winner, err);
        copy_field(&f->engine, &f->capture[v.winner].meta, x);
        note_others(f, x, v.winner, notes);
    }
    f->agreed = true;
    return VT_OK;
}

const struct vt_meta *vt_fit_engine(const struct vt_fit *f)
{
    return f->agreed ? &f->engine : &f->capture[0].meta;
}

/* ---- which to believe --------------------------------------------------- */

/* Two runs of one machine differ by up to a tenth; who is further off than this from
 * what the others say, */
static const double FAR_OFF = 0.15;
/* and without whom the others fit so many times better than all do together, is the odd
 * one. His own misfit counts: a model that bends to him may leave the others as they
 * were. So chosen, bench/odd_capture names nobody wrongly. */
static const double BETTER = 2.5;
/* Contexts so many times longer than anybody else's are of another kind. */
static const double MUCH_MORE = 1.25;
/* Where all fit together so well nobody contradicts. */
static const double ALL_WELL = 0.03;
enum { FEWEST = 3 };

/* Medians of a window's error and of its size. */
static int misfit_of(const struct capture *c, const struct vt_step_params *p,
                     double *bias, double *size, struct vt_err *err)
{
    struct window_errors s = {0};

    replay_errors(c, p, &s);
    vt_sort_f64(s.e, s.n);
    *bias = s.n > 0 ? vt_quantile(s.e, s.n, 50) : 0;
    for (size_t i = 0; i < s.n; i++)
        s.e[i] = fabs(s.e[i]);
    vt_sort_f64(s.e, s.n);
    *size = s.n > 0 ? vt_quantile(s.e, s.n, 50) : 0;
    free(s.e);
    return s.failed ? vt_nomem(err) : VT_OK;
}

/* Mean of those sizes over all captures but one. */
static int misfit_of_others(const struct vt_fit *f, size_t but,
                            const struct vt_step_params *p, double *mean,
                            struct vt_err *err)
{
    double sum = 0, n = 0;
    int rc = VT_OK;

    for (size_t i = 0; i < f->n && rc == VT_OK; i++) {
        double bias, size = 0;

        if (!capture_used(f, i, but))
            continue;
        rc = misfit_of(&f->capture[i], p, &bias, &size, err);
        sum += size;
        n++;
    }
    *mean = n > 0 ? sum / n : 0;
    return rc;
}

int capture_without(struct vt_fit *f, size_t i, struct vt_step_params *out,
                    struct vt_err *err)
{
    struct capture *c = &f->capture[i];
    int rc = c->knows_without ? VT_OK : vt_fit_solve(f, i, &c->without, NULL, err);

    c->knows_without = rc == VT_OK;
    *out = c->without;
    return rc;
}

/* Nothing is learned from it any more, or is again: all that was found is open. */
static void set_odd(struct vt_fit *f, size_t who, bool odd)
{
    f->capture[who].odd = odd;
    f->cleaned = false;
    for (size_t i = 0; i < f->n; i++)
        f->capture[i].knows_without = false;
}

/* Quantile of the context that its steps hold for each request. */
static int context_quantile(const struct capture *c, double q, double *out,
                            struct vt_err *err)
{
    double *v = malloc((c->n + 1) * sizeof(*v));

    if (!v)
        return vt_nomem(err);
    for (size_t i = 0; i < c->n; i++)
        v[i] = c->step[i].f.context_k / fmax(c->step[i].f.requests, 1);
    vt_sort_f64(v, c->n);
    *out = vt_quantile(v, c->n, q);
    free(v);
    return VT_OK;
}

/* Whether others have contexts like its typical ones: who is the only one with long
 * ones contradicts nobody, whatever the model makes of them. */
static int is_outvoted(const struct vt_fit *f, size_t i, bool *out, struct vt_err *err)
{
    double own = 0, most = 0, one = 0;
    int rc = context_quantile(&f->capture[i], 50, &own, err);

    for (size_t k = 0; k < f->n && rc == VT_OK; k++) {
        if (!capture_used(f, k, i))
            continue;
        rc = context_quantile(&f->capture[k], 95, &one, err);
        most = fmax(most, one);
    }
    *out = rc == VT_OK && own <= MUCH_MORE * most;
    return rc;
}

struct suspicion {
    size_t who;
    double gain; /* how many times better the others fit than all together */
    double off;  /* from what they say, of the logarithm */
};

/* together: the misfit of all by the fit on all. */
static int suspect(struct vt_fit *f, size_t i, double together, struct suspicion *s,
                   struct vt_err *err)
{
    struct vt_step_params p;
    double without, size;
    bool outvoted;
    int rc = is_outvoted(f, i, &outvoted, err);

    *s = (struct suspicion){.who = i};
    if (rc != VT_OK || !outvoted || (rc = capture_without(f, i, &p, err)) ||
        (rc = misfit_of_others(f, i, &p, &without, err)) ||
        (rc = misfit_of(&f->capture[i], &p, &s->off, &size, err)))
        return rc;
    s->gain = fabs(s->off) > FAR_OFF ? together / fmax(without, 1e-3) : 0;
    return VT_OK;
}

static size_t count_used(const struct vt_fit *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        n += capture_used(f, i, VT_FIT_ALL);
    return n;
}

/* best->who: SIZE_MAX if there is none. */
static int find_odd(struct vt_fit *f, struct suspicion *best, double *second,
                    struct vt_err *err)
{
    struct vt_step_params all;
    double together;
    int rc;

    *best = (struct suspicion){.who = SIZE_MAX};
    *second = 0;
    if (count_used(f) < FEWEST)
        return VT_OK;
    if ((rc = vt_fit_solve(f, VT_FIT_ALL, &all, NULL, err)) ||
        (rc = misfit_of_others(f, VT_FIT_ALL, &all, &together, err)) ||
        together < ALL_WELL)
        return rc;
    for (size_t i = 0; i < f->n && rc == VT_OK; i++) {
        struct suspicion s;

        if (!capture_used(f, i, VT_FIT_ALL))
            continue;
        rc = suspect(f, i, together, &s, err);
        if (rc != VT_OK || s.gain < BETTER)
            continue;
        *second = fmax(*second, fmin(s.gain, best->gain));
        if (s.gain > best->gain)
            *best = s;
    }
    return rc;
}

/* Whether those that are left predict each other, a third of them excepted: it may be
 * the only one of its kind. Without that they are no majority. */
static int do_agree(struct vt_fit *f, bool *out, struct vt_err *err)
{
    size_t beyond = 0;

    for (size_t i = 0; i < f->n; i++) {
        struct vt_step_params p;
        double off, size;
        int rc;

        if (!capture_used(f, i, VT_FIT_ALL))
            continue;
        if ((rc = capture_without(f, i, &p, err)) ||
            (rc = misfit_of(&f->capture[i], &p, &off, &size, err)))
            return rc;
        beyond += fabs(off) > FAR_OFF;
    }
    *out = 3 * beyond <= count_used(f);
    return VT_OK;
}

int vt_fit_sort_out(struct vt_fit *f, struct vt_buf *notes, struct vt_err *err)
{
    for (;;) {
        struct suspicion odd;
        double second;
        bool agree = false;
        int rc = find_odd(f, &odd, &second, err);

        if (rc != VT_OK || odd.who == SIZE_MAX)
            return rc;
        set_odd(f, odd.who, true);
        if (second <= 0.5 * odd.gain && (rc = do_agree(f, &agree, err)))
            return rc;
        if (!agree) {
            set_odd(f, odd.who, false);
            vt_buf_printf(notes,
                          "%s: contradicts the others, or one of them is wrong: no "
                          "majority can tell\n",
                          f->capture[odd.who].name);
            return VT_OK;
        }
        vt_buf_printf(notes,
                      "%s: took %.2f times as long as the other captures say: left "
                      "out\n",
                      f->capture[odd.who].name, exp(-odd.off));
    }
}

/* ---- what no GPU does --------------------------------------------------- */

enum { FEW_STEPS = 20 };

/* Mean gap of plain decode steps, ms; 0: too few. */
static double decode_ms(const struct capture *c)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 1; i < c->n; i++) {
        if (c->step[i].stalled || c->step[i].idle ||
            c->step[i].f.mode != VT_STEP_GRAPH ||
            c->step[i - 1].f.mode != VT_STEP_GRAPH)
            continue;
        sum += own_gap(c, i);
        n++;
    }
    return n < FEW_STEPS ? 0 : sum / (double)n;
}

/* Over a whole capture: where a step's time shows, it shows. */
static int check_arithmetic(const struct capture *c, const struct vt_fit_physics *least,
                            struct vt_err *err)
{
    double took = 0, needs = 0, tokens = 0;

    for (size_t i = 0; i < c->n; i++) {
        double n = c->step[i].f.tokens;

        took += own_gap(c, i);
        needs += 1e-3 * fmax(least->weights_us, n * least->token_us);
        tokens += n;
    }
    if (c->n < FEW_STEPS || took >= needs)
        return VT_OK;
    return vt_fail(err, VT_ECHECK,
                   "%s: %.0f tokens in %.2f s of steps, and the arithmetic of %s takes "
                   "%.2f: no GPU is that fast (were tokens cached and it does not say "
                   "so?)",
                   c->name, tokens, 1e-3 * took, least->gpu, 1e-3 * needs);
}

int vt_fit_check_captures(struct vt_fit *f, const struct vt_fit_physics *least,
                          struct vt_err *err)
{
    int rc = VT_OK;

    clean_captures(f);
    for (size_t i = 0; i < f->n && rc == VT_OK; i++) {
        const struct capture *c = &f->capture[i];
        double ms = decode_ms(c);

        if (ms > 0 && 1e3 * ms < least->weights_us)
            rc = vt_fail(err, VT_ECHECK,
                         "%s: decode steps take %.3f ms, but %s needs %.3f ms to read "
                         "the weights",
                         c->name, ms, least->gpu, 1e-3 * least->weights_us);
        else if (least->token_us > 0)
            rc = check_arithmetic(c, least, err);
    }
    return rc;
}

/* ---- what no engine does ------------------------------------------------ */

/* Most that anybody has seen, and then some. Microseconds. */
static const struct bound {
    const char *what;
    size_t offset;
    double most;
} bounds[] = {
#define BOUND(what, field, most) {what, offsetof(struct vt_step_params, field), most}
    BOUND("launch of a graph", host_launch_graph, 2e5),
    BOUND("launch piece by piece", host_launch_mixed, 2e5),
    BOUND("launch kernel by kernel", host_launch_eager, 2e5),
    BOUND("end of a launch", host_tail, 2e5),
    BOUND("lead of a launch", host_lead, 2e5),
    BOUND("arrival to schedulable", host_arrive, 1e6),
    BOUND("waking up", host_wake, 1e6),
    BOUND("schedule call", host_sched, 2e5),
    BOUND("schedule call for each request", host_sched_request, 1e4),
    BOUND("handing out", host_done, 2e5),
    BOUND("handing out for each request", host_done_request, 1e4),
    BOUND("decode step", base, 5e6),
    BOUND("decoding of a token", graph_token, 1e5),
    BOUND("1,000 tokens of context", context_ktoken, 1e5),
    BOUND("prompt token within the graphs", mixed_token, 1e5),
    BOUND("prompt token", eager_token, 1e5),
#undef BOUND
};

static double value_of(const struct vt_step_params *p, const struct bound *b)
{
    return *(const double *)(const void *)((const char *)p + b->offset);
}

static bool is_beyond(const struct vt_step_params *p, const struct bound *b)
{
    return !(value_of(p, b) <= b->most); /* NaN too */
}

/* The capture without which it would not be so; the only one; or all. */
static int find_blame(struct vt_fit *f, const struct bound *b, const char **name,
                      struct vt_err *err)
{
    *name = "all captures";
    if (count_used(f) == 1)
        for (size_t i = 0; i < f->n; i++)
            if (capture_used(f, i, VT_FIT_ALL))
                *name = f->capture[i].name;
    for (size_t i = 0; i < f->n && count_used(f) > 1; i++) {
        struct vt_step_params p;
        int rc =
            capture_used(f, i, VT_FIT_ALL) ? capture_without(f, i, &p, err) : VT_OK;

        if (rc != VT_OK)
            return rc;
        if (capture_used(f, i, VT_FIT_ALL) && !is_beyond(&p, b)) {
            *name = f->capture[i].name;
            break;
        }
    }
    return VT_OK;
}

int vt_fit_check_params(struct vt_fit *f, const struct vt_step_params *p,
                        struct vt_err *err)
{
    for (size_t i = 0; i < VT_COUNT(bounds); i++) {
        const char *name = NULL;
        int rc;

        if (!is_beyond(p, &bounds[i]))
            continue;
        rc = find_blame(f, &bounds[i], &name, err);
        if (rc != VT_OK)
            return rc;
        return vt_fail(
            err, VT_ECHECK, "%s: %s of %.1f ms: no engine takes more than %g", name,
            bounds[i].what, 1e-3 * value_of(p, &bounds[i]), 1e-3 * bounds[i].most);
    }
    return VT_OK;
}

/* ---- what they can't tell ----------------------------------------------- */

void vt_fit_thin(const struct vt_fit *f, struct vt_buf *notes)
{
    double steps[3] = {0}, most_running = 0, longest = 0;
    size_t used = count_used(f);

    for (size_t i = 0; i < f->n; i++) {
        size_t untold = 0;

        for (size_t k = 0; k < f->capture[i].n; k++)
            untold += f->capture[i].step[k].untold;
        if (untold > 0)
            vt_buf_printf(
                notes,
                "%s: in %zu steps preempted requests came back; what they "
                "computed again a trace does not tell, so these are left out\n",
                f->capture[i].name, untold);
    }
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; capture_used(f, i, VT_FIT_ALL) && k < f->capture[i].n; k++) {
            const struct vt_step_features *x = &f->capture[i].step[k].f;

            steps[x->mode]++;
            most_running = fmax(most_running, x->running);
            longest = fmax(longest, x->context_k);
        }
    if (used < 2)
        vt_buf_str(notes,
                   "one capture: no load was left out to predict, so how far the "
                   "profile holds for others is not known\n");
    if (steps[VT_STEP_GRAPH] < FEW_STEPS)
        vt_buf_printf(notes,
                      "%.0f plain decode steps: what decoding costs is hardly "
                      "known\n",
                      steps[VT_STEP_GRAPH]);
    if (steps[VT_STEP_EAGER] < FEW_STEPS)
        vt_buf_printf(notes,
                      "%.0f steps beyond the graphs: what long prompts cost is "
                      "hardly known\n",
                      steps[VT_STEP_EAGER]);
    if (most_running <= 2)
        vt_buf_printf(notes,
                      "at most %.0f requests at once: what a batch costs is not "
                      "known\n",
                      most_running);
    if (longest < 2)
        vt_buf_printf(notes,
                      "at most %.0f tokens of context in a step: what a long "
                      "context costs is not known\n",
                      1e3 * longest);
}
