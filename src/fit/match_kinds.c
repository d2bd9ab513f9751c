/* match_kinds.c - the kinds of model that loads are matched with: which numbers each
 * has, where to start, and its JSON. */
#include "fit/match.h"

#include <math.h>

/* How strongly a number is held where it started, of its logarithm: against loads that
 * sum to 1 each, just enough for what the loads do not tell. */
static const double FREE = 0.002, KNOWN = 0.1;

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

/* Which numbers one unknown sets: prompts cost the same within graphs and beyond until
 * somebody has steps to tell them apart by. */
static const struct step_term {
    const char *name;
    size_t at[2];
} step_terms_[] = {
#define AT(field) offsetof(struct vt_step_params, field)
    {"base", {AT(base), AT(base)}},
    {"graph_token", {AT(graph_token), AT(graph_token)}},
    {"context", {AT(context_ktoken), AT(context_ktoken)}},
    {"prompt_token", {AT(mixed_token), AT(eager_token)}},
    {"depth", {AT(depth_mtoken), AT(depth_mtoken)}},
    {"arrive", {AT(host_arrive), AT(host_arrive)}},
    {"launch_mixed", {AT(host_launch_mixed), AT(host_launch_mixed)}},
    {"launch_eager", {AT(host_launch_eager), AT(host_launch_eager)}},
    {"request", {AT(host_sched_request), AT(host_sched_request)}},
};

static size_t step_terms(const struct match_hints *h, struct match_term t[MATCH_TERMS])
{
    const struct vt_fit_shape *s = h->shape;
    double itl = h->itl_us;
    const struct {
        double start, pull;
    } from[VT_COUNT(step_terms_)] = {
        {0.9 * itl, FREE},
        {0.003 * itl, FREE},
        {s->context_us > 0 ? s->context_us : 0.005 * itl,
         s->context_us > 0 ? KNOWN : FREE},
        {s->token_us > 0 ? s->token_us : 0.004 * itl, FREE},
        {s->depth_us > 0 ? s->depth_us : 0.2 * itl, s->depth_us > 0 ? KNOWN : FREE},
        {1500, FREE},
        {1.5 * itl, FREE},
        {3 * itl, FREE},
        {15, FREE},
    };
    size_t n = 0;

    for (; n < VT_COUNT(step_terms_); n++)
        (void)put_term(&t[n], step_terms_[n].name, from[n].start, from[n].pull);
    return n;
}

static void step_write(const struct match_hints *h, const double *value,
                       struct vt_buf *b)
{
    struct vt_step_params p;

    vt_step_params_init(&p);
    p.experts = h->shape->experts;
    p.experts_per_token = h->shape->experts_per_token;
    p.expert = h->shape->expert_us;
    for (size_t i = 0; i < VT_COUNT(step_terms_); i++)
        for (size_t k = 0; k < 2; k++)
            *(double *)(void *)((char *)&p + step_terms_[i].at[k]) = value[i];
    vt_fit_step_model(b, &p);
}

const struct match_kind match_kinds[] = {
    {"step", step_terms, step_write},
    {"linear", linear_terms, linear_write},
    {"blackbox", blackbox_terms, blackbox_write},
    {"knob", knob_terms, knob_write},
};
const size_t match_n_kinds = VT_COUNT(match_kinds);
