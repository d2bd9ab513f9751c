/* capacity.c - the highest rate within the limits, in the long run.
 *
 * Short runs of one seed find where to look: a bracket, then bisection. Runs that are
 * twice as long close in on it, and runs of all seeds that are twice as long again must
 * agree; as long as they do not, the runs get longer. How long is short depends on how
 * long the engine takes to settle, not on how many requests the workload has.
 *
 * The next rate follows from the results alone. So neither the answer nor the list of
 * rates depends on workers. */
#include "tune/capacity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/trial.h"

enum { MAX_STEPS = 20, MAX_DOUBLINGS = 6, MAX_EXTENSIONS = 5 };

/* Of the requests of a short run: of fewer the p99 is a matter of luck. And of any run,
 * with what they answer: more take longer than anybody waits. */
enum { LEAST_REQUESTS = 2000, MOST_REQUESTS = 250000, MOST_TOKENS = 16000000 };
/* Rounds of stages in a run, and how many times the most they may take for that. */
enum { LEAST_ROUNDS = 3, LONGER_FOR_ROUNDS = 4 };

/* A sketch is to be there before anybody has looked up. */
enum {
    SKETCH_REQUESTS = 400,
    SKETCH_LEAST = 150,
    SKETCH_TOKENS = 80000,
    SKETCH_STEPS = 4
};

#define SHORT_S    300.0 /* of arrivals, at least */
#define SETTLINGS  4     /* in a short run, at least */
#define ROUGHLY    0.04  /* relative width of where to look */
#define STEP       1.03  /* from one rate to the next when closing in */
#define IDLE_SHARE 1e-3  /* of a rate: requests meet nobody */
#define BORNE      0.98  /* of the rate, in runs that are long enough to tell */
#define BORNE_ONCE 0.95  /* in those that are as long as they are */
#define BORNE_SOON 0.85  /* in those that end while the engine still fills up */

/* How the trials of a rate are made. */
struct effort {
    double seconds; /* of arrivals in a short run; 0: the workload as it is */
    double times;   /* as long as a short one */
    uint32_t runs;
    bool counts;
};

/* ---- probes ------------------------------------------------------------------- */

struct batch {
    struct probes *p;
    const struct probed *rate;
};

static int run_probe(void *user, size_t i, struct vt_buf *result, struct vt_err *err)
{
    const struct batch *b = user;
    const struct probed *r = &b->rate[i / b->rate->runs];
    const struct vt_capacity_spec *spec = b->p->spec;
    struct vt_trial t = spec->trial;
    struct probe made;
    int rc;

    memset(&made, 0, sizeof(made)); /* padding too: it travels as bytes */
    t.rate = r->rate;
    t.go_on = r->requests;
    t.seed += i % r->runs;
    /* Rates that were asked for by name are to show what happens there. */
    t.give_up = spec->n_rates == 0 && t.go_on > 0 ? &spec->slo : NULL;
    rc = vt_trial_measure(&t, &made.s, &made.achieved, err);
    if (rc != VT_OK)
        return rc;
    made.made = true;
    made.s.profile = made.s.workload = made.s.version =
        NULL; /* pointers mean nothing elsewhere */
    vt_buf_add(result, &made, sizeof(made));
    return VT_OK;
}

/* Behind the rates that are there already. */
static int store_probe(void *user, size_t i, const char *result, size_t len,
                       struct vt_err *err)
{
    const struct batch *b = user;
    struct probes *p = b->p;
    size_t at = p->n + i / b->rate->runs;

    if (len != sizeof(*p->probe))
        return vt_fail(err, VT_EIO, "a result of %zu bytes", len);
    memcpy(&p->probe[at * p->spec->seeds + i % b->rate->runs], result, len);
    p->trials++;
    return VT_OK;
}

/* Adds a rate whose trials are at place `from`, if all of them were made; in place of
 * earlier ones of the same rate. */
static void add_if_made(struct probes *p, const struct probed *rate, size_t from)
{
    uint32_t seeds = p->spec->seeds;
    struct probe *probe = &p->probe[from * seeds];
    size_t to = 0;

    for (uint32_t i = 0; i < rate->runs; i++)
        if (!probe[i].made)
            return;
    while (to < p->n && (p->at[to].rate < rate->rate || p->at[to].rate > rate->rate))
        to++;
    memmove(&p->probe[to * seeds], probe, seeds * sizeof(*probe));
    p->at[to] = *rate;
    p->n += to == p->n;
}

/* Stages are run whole: one round to fill and empty the engine, and pairs of them that
 * are judged. */
static uint32_t whole_rounds(const struct probes *p, double requests)
{
    uint32_t rounds = (uint32_t)ceil(requests / (double)p->round) | 1;

    while (rounds > LEAST_ROUNDS && rounds * p->round > p->most_requests)
        rounds -= 2;
    return (uint32_t)((rounds < LEAST_ROUNDS ? LEAST_ROUNDS : rounds) * p->round);
}

static uint32_t requests_for(const struct probes *p, double rate,
                             const struct effort *e)
{
    double n = ceil(fmax(rate * e->seconds, LEAST_REQUESTS) * e->times);

    if (!(e->seconds > 0))
        return 0;
    n = fmin(n, p->most_requests);
    return p->round > 0 ? whole_rounds(p, n) : (uint32_t)n;
}

/* Whether a run cannot be made any longer. */
static bool is_longest(const struct probes *p, double rate, const struct effort *e)
{
    struct effort longer = *e;

    longer.times *= 2;
    return requests_for(p, rate, e) == requests_for(p, rate, &longer);
}

/* Tries n more rates, ascending, in one batch. What was done when it failed counts. */
static int probes_add(struct probes *p, const double *rate, size_t n,
                      const struct effort *e, struct vt_err *err)
{
    uint32_t seeds = p->spec->seeds;
    struct probed *tried = calloc(n, sizeof(*tried));
    struct batch b = {p, tried};
    struct vt_jobs jobs = {
        .n = n * e->runs,
        .run = run_probe,
        .done = store_probe,
        .user = &b,
        .workers = p->spec->workers,
    };
    struct vt_trial longest = p->spec->trial;
    int rc = tried ? vt_grow(&p->at, &p->cap_rates, p->n + n, sizeof(*p->at), err)
                   : vt_nomem(err);

    if (rc == VT_OK)
        rc = vt_grow(&p->probe, &p->cap_probes, (p->n + n) * seeds, sizeof(*p->probe),
                     err);
    if (rc != VT_OK)
        goto out;
    for (size_t i = 0; i < n; i++)
        tried[i] =
            (struct probed){rate[i], requests_for(p, rate[i], e), e->runs, e->counts};
    longest.go_on = tried[n - 1].requests;
    if (p->spec->progress)
        p->spec->progress(p->spec->user, rate[n - 1], e->runs, longest.go_on);
    if ((rc = trial_preload(&longest, e->runs, err)))
        goto out;
    memset(&p->probe[p->n * seeds], 0, n * seeds * sizeof(*p->probe));
    rc = vt_jobs_run(&jobs, err);
    for (size_t i = 0, first = p->n; i < n; i++)
        add_if_made(p, &tried[i], first + i);
out:
    free(tried);
    return rc;
}

static const struct probe *probe_of(const struct probes *p, double rate, size_t *at)
{
    for (*at = 0; *at < p->n; ++*at)
        if (!(p->at[*at].rate < rate || p->at[*at].rate > rate))
            return &p->probe[*at * p->spec->seeds];
    return NULL;
}

static int probe_rate(struct probes *p, double rate, const struct effort *e, bool *pass,
                      struct vt_err *err)
{
    size_t at;
    int rc = probes_add(p, &rate, 1, e, err);

    *pass = rc == VT_OK && probe_of(p, rate, &at) && most_pass(p, at);
    return rc;
}

/* Four digits are enough for a rate that people will read and type. */
static double tidy_rate(double rate)
{
    double unit = pow(10, floor(log10(rate)) - 3);

    return unit < 1 ? round(rate / unit) / round(1 / unit) : round(rate / unit) * unit;
}

/* ---- where to look ------------------------------------------------------------ */

/* Half of what is served when everything comes at once: below most capacities, and not
 * far below. */
static int estimate_rate(struct probes *p, double *rate, struct vt_err *err)
{
    struct vt_trial t = p->spec->trial;
    struct vt_summary s;
    int rc;

    t.rate = 1e6;
    if (p->spec->how != VT_CAPACITY_ONCE)
        t.go_on = p->spec->how == VT_CAPACITY_SKETCH ? SKETCH_LEAST : LEAST_REQUESTS;
    rc = vt_trial_run(&t, &s, err);
    if (rc == VT_OK && !(s.req_per_s > 0))
        rc = vt_fail(err, VT_EINPUT, "%s: takes no time at all", t.workload);
    *rate = rc == VT_OK ? tidy_rate(s.req_per_s / 2) : 0;
    return rc;
}

static uint32_t most_requests(const struct vt_workload *w)
{
    double tokens = 0;

    for (size_t i = 0; i < w->n; i++)
        tokens += w->req[i].output_tokens;
    return (uint32_t)fmin(MOST_REQUESTS,
                          fmax(LEAST_REQUESTS, MOST_TOKENS / tokens * (double)w->n));
}

/* How long a short run must be: a new request finds the engine as it will stay only
 * once those that came first have left, and sessions have been spoken to their end. */
static int settle(struct probes *p, double rate, struct effort *e, struct vt_err *err)
{
    struct vt_trial t = p->spec->trial;
    const struct vt_workload *w;
    const struct probe *first;
    bool pass;
    size_t at;
    int rc;

    t.go_on = LEAST_REQUESTS;
    rc = trial_load(&t, &w, err);
    if (rc != VT_OK)
        return rc;
    p->most_requests = most_requests(w);
    p->round = w->round;
    if (p->round * LEAST_ROUNDS > (size_t)p->most_requests * LONGER_FOR_ROUNDS)
        return vt_fail(err, VT_EINPUT,
                       "%s: its stages have %zu requests, of which a long run would "
                       "take too many; --once judges them as they are",
                       w->source, p->round);
    e->seconds = fmax(SHORT_S, SETTLINGS * trial_session_s(w));
    rc = probe_rate(p, rate, e, &pass, err);
    first = probe_of(p, rate, &at);
    if (rc == VT_OK && first)
        e->seconds =
            fmax(SHORT_S, SETTLINGS * (trial_session_s(w) + first->s.e2e.mean / 1e3));
    return rc;
}

/* From `rate` up until it fails, or down until it passes. *low 0: nothing passes, not
 * even requests that meet nobody; *high 0: nothing fails. */
static int bracket_rates(struct probes *p, double rate, const struct effort *e,
                         double *low, double *high, struct vt_err *err)
{
    double idle = tidy_rate(rate * IDLE_SHARE);
    bool pass;
    int rc = VT_OK;

    for (int i = 0; i < MAX_STEPS && rc == VT_OK; i++) {
        rc = probe_rate(p, rate, e, &pass, err);
        if (rc != VT_OK)
            break;
        *(pass ? low : high) = rate;
        if (!pass && i == 0) {
            rc = probe_rate(p, idle, e, &pass, err);
            if (rc || !pass)
                return rc;
        }
        if ((*low > 0 && *high > 0) || (pass && *high == 0 && i == MAX_DOUBLINGS))
            break;
        rate = tidy_rate(*high > 0 ? rate / 2 : rate * 2);
    }
    return rc;
}

static int bisect_rates(struct probes *p, const struct effort *e, double width,
                        double *low, double *high, struct vt_err *err)
{
    int rc = VT_OK;
    bool pass;

    while (rc == VT_OK && *low > 0 && *high > *low * (1 + width)) {
        double middle = tidy_rate((*low + *high) / 2);

        if (!(middle > *low && middle < *high))
            break;
        rc = probe_rate(p, middle, e, &pass, err);
        if (rc == VT_OK)
            *(pass ? low : high) = middle;
    }
    return rc;
}

/* ---- to be sure ------------------------------------------------------- */

/* Around `rate`: by steps that grow, until it lies between two, and then between. */
static int close_in(struct probes *p, double rate, const struct effort *e, double *low,
                    double *high, struct vt_err *err)
{
    double step = 1 + p->spec->tolerance;
    bool pass;
    int rc = VT_OK;

    *low = *high = 0;
    for (int i = 0; i < MAX_STEPS && rc == VT_OK && !(*low > 0 && *high > 0); i++) {
        rc = probe_rate(p, rate, e, &pass, err);
        if (rc != VT_OK)
            return rc;
        *(pass ? low : high) = rate;
        rate = tidy_rate(pass ? rate * step : rate / step);
        step += p->spec->tolerance;
    }
    return rc ? rc : bisect_rates(p, e, p->spec->tolerance, low, high, err);
}

/* The interval follows from the rates between which each seed's own limit lies: they
 * are to be there, if that takes no more than a few steps. */
static int bracket_seeds(struct probes *p, double low, double high,
                         const struct effort *e, struct vt_err *err)
{
    enum { MOST = 3 };
    double step = 1 + p->spec->tolerance;
    bool any;
    size_t at;
    int rc = VT_OK;

    for (int i = 0; i < MOST && rc == VT_OK && low > 0 && probe_of(p, low, &at) &&
                    count_passes(p, at) < e->runs;
         i++)
        rc = probe_rate(p, low = tidy_rate(low / step), e, &any, err);
    for (int i = 0; i < MOST && rc == VT_OK && high > 0 && probe_of(p, high, &at) &&
                    count_passes(p, at) > 0;
         i++)
        rc = probe_rate(p, high = tidy_rate(high * step), e, &any, err);
    return rc;
}

/* A rate that is a little too high breaks its limits only after a while: runs get
 * longer until those twice as long say the same. */
static int make_sure(struct probes *p, double rate, struct effort e, struct vt_err *err)
{
    double low = rate, high, before;
    int rc = VT_OK;

    for (int i = 0; i < MAX_EXTENSIONS && rc == VT_OK && low > 0; i++) {
        before = low;
        e.times *= 2;
        rc = close_in(p, low, &e, &low, &high, err);
        if (rc == VT_OK && i > 0 &&
            (fabs(low / before - 1) <= 2 * p->spec->tolerance ||
             is_longest(p, low, &e)))
            return bracket_seeds(p, low, high, &e, err);
        e.runs = p->spec->seeds;
        e.counts = true;
    }
    return rc;
}

/* ---- the whole ------------------------------------------------------------------ */

static int search_once(struct probes *p, double start, struct vt_err *err)
{
    const struct effort e = {.runs = p->spec->seeds, .counts = true};
    double low = 0, high = 0;
    int rc = bracket_rates(p, start, &e, &low, &high, err);

    return rc ? rc : bisect_rates(p, &e, p->spec->tolerance, &low, &high, err);
}

static int search_long_run(struct probes *p, double start, struct vt_err *err)
{
    bool rough = p->spec->how == VT_CAPACITY_ROUGH;
    struct effort e = {.times = 1, .runs = 1, .counts = rough};
    double low = 0, high = 0;
    int rc;

    if ((rc = settle(p, start, &e, err)) ||
        (rc = bracket_rates(p, start, &e, &low, &high, err)) ||
        (rc = bisect_rates(p, &e, ROUGHLY, &low, &high, err)) || rough)
        return rc;
    if (low > 0 && high > 0)
        return make_sure(p, low, e, err);
    /* All seeds must say so where nothing breaks, or nothing can be kept. */
    e.runs = p->spec->seeds;
    e.counts = true;
    return probe_rate(p, low > 0 ? low : tidy_rate(start * IDLE_SHARE), &e,
                      &(bool){false}, err);
}

/* How many requests a run of a sketch may have: as many as answer so many tokens. */
static int sketch_length(struct probes *p, struct vt_err *err)
{
    struct vt_trial t = p->spec->trial;
    const struct vt_workload *w;
    double tokens = 1;
    int rc;

    t.go_on = SKETCH_REQUESTS;
    rc = trial_load(&t, &w, err);
    for (size_t i = 0; rc == VT_OK && i < w->n; i++)
        tokens += w->req[i].output_tokens;
    if (rc == VT_OK)
        p->most_requests = (uint32_t)fmin(
            SKETCH_REQUESTS, fmax(SKETCH_LEAST, SKETCH_TOKENS / tokens * (double)w->n));
    return rc;
}

/* Rates on both sides of what is served when everything comes at once, all in one
 * batch; then a few between the last that passes and the first that fails. */
static int search_sketch(struct probes *p, double start, struct vt_err *err)
{
    static const double share[] = {0.1, 0.5, 1, 1.5, 2, 3};
    const struct effort e = {.seconds = SHORT_S, .times = 1, .runs = 1, .counts = true};
    double rate[VT_COUNT(share)], low = 0, high = 0;
    bool pass;
    int rc = sketch_length(p, err);

    for (size_t i = 0; i < VT_COUNT(share); i++)
        rate[i] = tidy_rate(start * share[i]);
    if (rc == VT_OK)
        rc = probes_add(p, rate, VT_COUNT(share), &e, err);
    for (size_t i = 0; i < p->n && rc == VT_OK && high == 0; i++)
        *(most_pass(p, i) ? &low : &high) = p->at[i].rate;
    for (int i = 0; i < SKETCH_STEPS && rc == VT_OK && low > 0; i++) {
        double next = tidy_rate(high > 0 ? (low + high) / 2 : 1.5 * low);

        rc = probe_rate(p, next, &e, &pass, err);
        if (rc == VT_OK)
            *(pass ? &low : &high) = next;
    }
    return rc;
}

static int search_rates(struct probes *p, struct vt_err *err)
{
    const struct vt_capacity_spec *s = p->spec;
    double start = s->low > 0 ? s->low : s->high;
    int rc = VT_OK;

    if (s->low > 0 && s->high > s->low)
        start = tidy_rate((s->low + s->high) / 2);
    else if (!(start > 0))
        rc = estimate_rate(p, &start, err);
    if (rc != VT_OK)
        return rc;
    return s->how == VT_CAPACITY_ONCE     ? search_once(p, start, err)
           : s->how == VT_CAPACITY_SKETCH ? search_sketch(p, start, err)
                                          : search_long_run(p, start, err);
}

static int try_given_rates(struct probes *p, struct vt_err *err)
{
    const struct vt_capacity_spec *s = p->spec;
    struct effort e = {.times = 1, .runs = 1};
    int rc = s->how != VT_CAPACITY_ONCE ? settle(p, s->rate[0], &e, err) : VT_OK;

    e.times = 2;
    e.runs = s->seeds;
    e.counts = true;
    return rc ? rc : probes_add(p, s->rate, s->n_rates, &e, err);
}

int vt_capacity_find(struct vt_capacity *out, const struct vt_capacity_spec *spec,
                     struct vt_err *err)
{
    struct vt_capacity_spec s = *spec;
    struct probes p = {.spec = &s};
    int rc = VT_OK;

    *out = (struct vt_capacity){0};
    s.how = s.trial.measure ? VT_CAPACITY_ONCE : s.how;
    if (s.how == VT_CAPACITY_ROUGH || s.how == VT_CAPACITY_SKETCH)
        s.seeds = 1;
    s.seeds = s.seeds > 0 ? s.seeds : 3;
    s.tolerance = s.tolerance > 0 ? s.tolerance : 0.02;
    p.borne = s.how == VT_CAPACITY_ONCE     ? BORNE_ONCE
              : s.how == VT_CAPACITY_SKETCH ? BORNE_SOON
                                            : BORNE;
    if (!spec->trial.kept)
        rc = vt_trials_new(&s.trial.kept, err);
    if (rc || (rc = trial_preload(&s.trial, 1, err)))
        goto out;
    rc = s.n_rates > 0 ? try_given_rates(&p, err) : search_rates(&p, err);
    if (rc == VT_OK)
        rc = capacity_judge(out, &p, err);
    else if (p.n > 0 && vt_stopped(NULL) != VT_OK && capacity_judge(out, &p, NULL))
        vt_capacity_free(out);
    free(p.at);
    free(p.probe);
out:
    if (!spec->trial.kept)
        vt_trials_free(s.trial.kept);
    return rc;
}
