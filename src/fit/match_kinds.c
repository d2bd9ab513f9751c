/* match_kinds.c - the kinds of model that loads are matched with: which numbers each
 * has, where to start, and its JSON. */
#include "fit/match.h"

#include <math.h>

/* How strongly a number is held where it started, of its logarithm: against loads that
 * sum to 1 each, just enough for what the loads do not tell. */
static const double FREE = 0.002, KNOWN = 0.1, BENT = 0.05;

static void put_number(struct vt_buf *b, double v)
{
    vt_buf_f64(b, round(v * 1e6) / 1e6);
}

static size_t put_term(struct match_term *t, const char *name, double start,
                       double pull)
{
    *t = (struct match_term){name, fmax(start, 1e-6), pull};
    return 1;
}

/* {"kind": K, "params": {NAME: value, ...}} */
static void put_flat(const char *kind, const struct match_term *t, size_t n,
                     const double *value, struct vt_buf *b)
{
    vt_buf_printf(b, "{\n    \"kind\": \"%s\",\n    \"params\": {\n", kind);
    for (size_t i = 0; i < n; i++) {
        vt_buf_printf(b, "      \"%s\": ", t[i].name);
        put_number(b, value[i]);
        vt_buf_str(b, i + 1 < n ? ",\n" : "\n");
    }
    vt_buf_str(b, "    }\n  }");
}

/* ---- blackbox ----------------------------------------------------------- */

static size_t blackbox_terms(const struct match_hints *h,
                             struct match_term t[MATCH_TERMS])
{
    size_t n = 0;

    n += put_term(&t[n], "alpha0", 1000, FREE);
    n += put_term(&t[n], "alpha1", 0.3, FREE);
    n += put_term(&t[n], "alpha2", 0.02 * h->itl_us, FREE);
    n += put_term(&t[n], "beta0", 0.9 * h->itl_us, FREE);
    n += put_term(&t[n], "beta1", h->token_us, FREE);
    n += put_term(&t[n], "beta2", 0.003 * h->itl_us, FREE);
    return n;
}

static void blackbox_write(const struct match_hints *h, const double *value,
                           struct vt_buf *b)
{
    (void)h;
    vt_buf_str(b, "{\n    \"kind\": \"blackbox\",\n    \"params\": {\n");
    for (size_t i = 0; i < 6; i++) {
        vt_buf_str(b, i == 0   ? "      \"alpha\": ["
                      : i == 3 ? "      \"beta\": ["
                               : "");
        put_number(b, value[i]);
        vt_buf_str(b, i == 2 ? "],\n" : i == 5 ? "]\n" : ", ");
    }
    vt_buf_str(b, "    }\n  }");
}

/* ---- linear ------------------------------------------------------------- */

static size_t linear_terms(const struct match_hints *h,
                           struct match_term t[MATCH_TERMS])
{
    size_t n = 0;

    n += put_term(&t[n], "queue", 1000, FREE);
    n += put_term(&t[n], "base", 0.9 * h->itl_us, FREE);
    n += put_term(&t[n], "prefill_token", h->token_us, FREE);
    n += put_term(&t[n], "decode", 0.003 * h->itl_us, FREE);
    n += put_term(&t[n], "context_token", 5e-6 * h->itl_us, FREE);
    return n;
}

static void linear_write(const struct match_hints *h, const double *value,
                         struct vt_buf *b)
{
    struct match_term t[MATCH_TERMS];
    size_t n = linear_terms(h, t);

    put_flat("linear", t, n, value, b);
}

/* ---- knob --------------------------------------------------------------- */

/* In milliseconds. The load factor's excess over 1 is what is solved for. */
static size_t knob_terms(const struct match_hints *h, struct match_term t[MATCH_TERMS])
{
    size_t n = 0;

    n += put_term(&t[n], "prefill_overhead", 0.5e-3 * h->ttft_us, FREE);
    n += put_term(&t[n], "prefill_time_per_token", 0.5e-3 * h->token_us, FREE);
    n += put_term(&t[n], "inter_token_latency", 1e-3 * h->itl_us, FREE);
    n += put_term(&t[n], "time_factor_under_load", 0.5, FREE);
    return n;
}

static void knob_write(const struct match_hints *h, const double *value,
                       struct vt_buf *b)
{
    struct match_term t[MATCH_TERMS];
    size_t n = knob_terms(h, t);
    double v[MATCH_TERMS];

    memcpy(v, value, n * sizeof(*v));
    v[n - 1] += 1;
    put_flat("knob", t, n, v, b);
}

/* ---- step --------------------------------------------------------------- */

/* One unknown and the numbers that it sets, equal ones beside each other in the struct.
 */
struct step_term {
    const char *name;
    size_t at;
    uint32_t n; /* numbers in a row */
    double start, pull;
};

#define AT(field)      offsetof(struct vt_step_params, field)
#define KNOT(field, i) (AT(field) + (i) * sizeof(double))

static double *numbers_at(struct vt_step_params *p, const struct step_term *t)
{
    return (double *)(void *)((char *)p + t->at);
}

static double either(double known, double otherwise)
{
    return known > 0 ? known : otherwise;
}

/* What a few loads can tell apart. Prompts cost the same within graphs and beyond, and
 * a launch kernel by kernel takes twice as long as one piece by piece. */
static size_t plain_terms(const struct match_hints *h, struct step_term *t)
{
    const struct vt_fit_shape *s = h->shape;
    double itl = h->itl_us;
    const struct step_term all[] = {
        {"base", AT(base), 1, 0.9 * itl, FREE},
        {"graph_token", AT(graph_token), 1, 0.003 * itl, FREE},
        {"context", AT(context_ktoken), 1, either(s->context_us, 0.005 * itl),
         s->context_us > 0 ? KNOWN : FREE},
        {"prompt_token", AT(mixed_token), 2, either(s->token_us, h->token_us), FREE},
        {"depth", AT(depth_mtoken), 1, either(s->depth_us, 0.2 * itl),
         s->depth_us > 0 ? KNOWN : FREE},
        {"arrive", AT(host_arrive), 1, 1500, FREE},
        {"launch_mixed", AT(host_launch_mixed), 1, 1.5 * itl, FREE},
        {"launch_eager", AT(host_launch_eager), 1, 3 * itl, FREE},
        {"request", AT(host_sched_request), 1, 15, FREE},
        {"expert", AT(expert), 1, either(s->expert_us, 2 * itl), FREE},
    };
    size_t n = VT_COUNT(all) - (s->experts > 0 ? 0 : 1);

    memcpy(t, all, n * sizeof(*t));
    return n;
}

static void step_fill(const struct match_hints *h, const struct step_term *t, size_t n,
                      const double *value, struct vt_step_params *p)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < t[i].n; k++)
            numbers_at(p, &t[i])[k] = value[i];
    p->experts = h->shape->experts;
    p->experts_per_token = h->shape->experts_per_token;
}

/* What more loads tell, from where the plain one ended: prompts within graphs and
 * beyond, each step and prompt, the host, and how the size of a batch bends it all. */
static size_t full_terms(const struct match_hints *h, struct step_term *t)
{
    static const struct step_term more[] = {
        {"eager_token", AT(eager_token), 1, 0, FREE},
        {"mixed", AT(mixed), 1, 0, FREE},
        {"eager", AT(eager), 1, 0, FREE},
        {"prefill", AT(prefill), 1, 0, FREE},
        {"tail", AT(host_tail), 1, 0, FREE},
        {"sched", AT(host_sched), 1, 0, FREE},
        {"decode_1", KNOT(graph_factor, 0), 2, 1, BENT},
        {"decode_4", KNOT(graph_factor, 2), 2, 1, BENT},
        {"decode_16", KNOT(graph_factor, 4), 2, 1, BENT},
        {"decode_64", KNOT(graph_factor, 6), 2, 1, BENT},
        {"decode_256", KNOT(graph_factor, 8), 2, 1, BENT},
        {"mixed_64", KNOT(mixed_factor, 0), 2, 1, BENT},
        {"mixed_192", KNOT(mixed_factor, 2), 2, 1, BENT},
        {"mixed_512", KNOT(mixed_factor, 4), 4, 1, BENT},
        {"eager_512", KNOT(eager_factor, 0), 3, 1, BENT},
        {"eager_1024", KNOT(eager_factor, 3), 2, 1, BENT},
        {"eager_2048", KNOT(eager_factor, 5), 2, 1, BENT},
        {"eager_8192", KNOT(eager_factor, 7), 1, 1, BENT},
    };
    struct vt_step_params p;
    size_t n_plain = plain_terms(h, t), n = n_plain;

    vt_step_params_init(&p);
    step_fill(h, t, n_plain, h->plain, &p);
    memcpy(&t[n], more, sizeof(more));
    n += VT_COUNT(more);
    for (size_t i = 0; i < n; i++) {
        double v = *numbers_at(&p, &t[i]);

        t[i].n = i < n_plain ? 1 : t[i].n;
        t[i].start = either(v, 0.03 * h->itl_us);
    }
    return n;
}

static size_t step_terms(const struct match_hints *h, struct step_term *t)
{
    return h->plain ? full_terms(h, t) : plain_terms(h, t);
}

static size_t step_list(const struct match_hints *h, struct match_term t[MATCH_TERMS])
{
    struct step_term all[MATCH_TERMS];
    size_t n = step_terms(h, all);

    for (size_t i = 0; i < n; i++)
        (void)put_term(&t[i], all[i].name, all[i].start, all[i].pull);
    return n;
}

static void step_write(const struct match_hints *h, const double *value,
                       struct vt_buf *b)
{
    struct step_term all[MATCH_TERMS];
    size_t n = step_terms(h, all);
    struct vt_step_params p;

    vt_step_params_init(&p);
    step_fill(h, all, n, value, &p);
    p.host_turnaround = h->pause_us;
    vt_fit_step_model(b, &p);
}

/* ---- step, from rebuilt steps ------------------------------------------- */

/* Factors on what was rebuilt, and a request's way into a step, of which token times
 * tell nothing: its arrival, and a factor on what the shipped profiles have of the
 * input thread and of engines at rest. */
enum { R_ARRIVE, R_INTAKE, R_DECODE, R_PROMPT, R_FIXED, R_LAUNCH, R_SCHED, N_REBUILT };
static const double INTAKE = 120, INTAKE_KTOKEN = 300, WAKE = 400, NAP = 1200; /* us */

static size_t rebuilt_terms(const struct match_hints *h,
                            struct match_term t[MATCH_TERMS])
{
    (void)h;
    (void)put_term(&t[R_ARRIVE], "arrive", 1500, FREE);
    (void)put_term(&t[R_INTAKE], "intake", 1, BENT);
    (void)put_term(&t[R_DECODE], "decode", 1, BENT);
    (void)put_term(&t[R_PROMPT], "prompt", 1, BENT);
    (void)put_term(&t[R_FIXED], "fixed", 1, BENT);
    (void)put_term(&t[R_LAUNCH], "launch", 1, BENT);
    (void)put_term(&t[R_SCHED], "sched", 200, FREE);
    return N_REBUILT;
}

static void rebuilt_write(const struct match_hints *h, const double *value,
                          struct vt_buf *b)
{
    struct vt_step_params p = *h->rebuilt;
    const struct {
        int by;
        double *number;
    } scaled[] = {
        {R_DECODE, &p.base},
        {R_DECODE, &p.graph_token},
        {R_DECODE, &p.context_ktoken},
        {R_DECODE, &p.expert},
        {R_PROMPT, &p.mixed_token},
        {R_PROMPT, &p.eager_token},
        {R_PROMPT, &p.depth_mtoken},
        {R_PROMPT, &p.fill_row},
        {R_FIXED, &p.mixed},
        {R_FIXED, &p.eager},
        {R_FIXED, &p.prefill},
        {R_LAUNCH, &p.host_launch_mixed},
        {R_LAUNCH, &p.host_launch_eager},
        {R_LAUNCH, &p.host_tail},
    };

    for (size_t i = 0; i < VT_COUNT(scaled); i++)
        *scaled[i].number *= value[scaled[i].by];
    p.host_arrive = value[R_ARRIVE];
    p.host_intake = value[R_INTAKE] * INTAKE;
    p.host_intake_ktoken = value[R_INTAKE] * INTAKE_KTOKEN;
    p.host_wake = value[R_INTAKE] * WAKE;
    p.host_nap = value[R_INTAKE] * NAP;
    p.host_sched += value[R_SCHED];
    vt_fit_step_model(b, &p);
}

/* Those that cost least to try come first. */
const struct match_kind match_kinds[] = {
    {"linear", MATCH_ALONE, linear_terms, linear_write},
    {"blackbox", MATCH_ALONE, blackbox_terms, blackbox_write},
    {"knob", MATCH_ALONE, knob_terms, knob_write},
    {"step", MATCH_REBUILT, rebuilt_terms, rebuilt_write},
    {"step", MATCH_ALONE, step_list, step_write},
    {"step", MATCH_WIDER, step_list, step_write},
};
const size_t match_n_kinds = VT_COUNT(match_kinds);
