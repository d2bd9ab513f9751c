/* plan.c - the plan of loads, cut to the time there is and to the server's speed. */
#include "learn/plan.h"

#include <math.h>

/* To add a load: add a row. Those that are fitted come first. A closed loop's name is
 * followed by its concurrency. */
const struct plan_row plan_rows[] = {
    {"closed", "one stream", VT_LEARN_FITTED, PLAN_CLOSED, 0, PLAN_USUAL, 0},
    {"closed", "a few at once", VT_LEARN_FITTED, PLAN_CLOSED, 0.34, PLAN_USUAL, 0},
    {"closed", "many at once", VT_LEARN_FITTED, PLAN_CLOSED, 0.67, PLAN_USUAL, 0},
    {"closed", "as many as may be", VT_LEARN_FITTED, PLAN_CLOSED, 1, PLAN_USUAL, 0},
    {"long", "long prompts", VT_LEARN_FITTED, PLAN_CLOSED, 0.34, PLAN_LONG, 0},
    {"poisson", "random arrivals", VT_LEARN_FITTED, PLAN_POISSON, 0.4, PLAN_USUAL, 0},
    {"ramp", "arrivals that grow", VT_LEARN_FITTED, PLAN_RAMP, 0.8, PLAN_OTHER, 0},
    {"shared", "shared prefixes", VT_LEARN_FITTED, PLAN_CLOSED, 0.5, PLAN_USUAL, 0.7},
    {"pressed", "more than the KV cache holds", VT_LEARN_FITTED, PLAN_CLOSED, 1,
     PLAN_PRESSED, 0},
    {"unseen-closed", "a closed loop between those", VT_LEARN_UNSEEN, PLAN_CLOSED, 0.5,
     PLAN_OTHER, 0},
    {"unseen-poisson", "random arrivals, faster", VT_LEARN_UNSEEN, PLAN_POISSON, 0.6,
     PLAN_OTHER, 0},
    {"unseen-mixed", "random arrivals, some share prefixes", VT_LEARN_UNSEEN,
     PLAN_POISSON, 0.5, PLAN_OTHER, 0.4},
    {"unseen-bursts", "arrivals in bursts", VT_LEARN_UNSEEN, PLAN_BURST, 0.5,
     PLAN_USUAL, 0},
};
const size_t plan_n_rows = VT_COUNT(plan_rows);

/* Of the budget: each load of the table, and what all checks before, between and after
 * them take. */
static const double LOAD_SHARE = 0.066;

/* ---- sizes -------------------------------------------------------------- */

void plan_rough_model(const struct plan_rough *r, char *text, size_t size)
{
    double base = fmax(1e3 * r->itl_ms - r->decode_us, 1);

    (void)snprintf(
        text, size, "linear:queue=%.3f,base=%.3f,prefill_token=%.6f,decode=%.6f",
        fmax(1e3 * (r->ttft_ms - r->itl_ms), 0), base, r->token_us, r->decode_us);
}

static uint32_t whole(double v, uint32_t lo, double hi)
{
    v = fmin(v, hi);
    return v > lo ? (uint32_t)v : lo;
}

int plan_sizes(struct plan_sizes *s, const struct plan_rough *r,
               const struct vt_meta *engine, const struct vt_learn_config *c,
               uint32_t top, struct vt_err *err)
{
    /* A load holds so many requests of one stream, one after the other. */
    enum { IN_TURN = 5, LEAST_OUTPUT = 8, MOST_OUTPUT = 192 };
    double step_ms = r->itl_ms + 1e-3 * r->decode_us * (top - 1);
    double room = engine->max_model_len > 0 ? engine->max_model_len : 4096;
    /* One block is nobody's. */
    double pool = ((double)engine->num_gpu_blocks - 1) * engine->block_size;
    double least_s, busy_ms;

    s->seconds = LOAD_SHARE * c->seconds;
    s->top = top;
    least_s = 1e-3 * IN_TURN * (r->ttft_ms + LEAST_OUTPUT * step_ms);
    if (s->seconds < least_s)
        return vt_fail(
            err, VT_ECHECK,
            "%g s are too short: at %.3g ms a token with %u requests at once "
            "it takes %.0f s to learn something",
            c->seconds, step_ms, (unsigned)top, ceil(least_s / LOAD_SHARE));
    s->output = whole(1e3 * s->seconds / IN_TURN / step_ms, LEAST_OUTPUT, MOST_OUTPUT);
    if (pool > 0 && pool < room)
        room = pool;
    room = fmax(room - 2.0 * s->output - 2, 2);
    /* All prompts of a round take about as long as their outputs. */
    busy_ms = s->output * step_ms;
    s->prompt = whole(fmin(1e3 * busy_ms / r->token_us / top, 1024), 32, room / 2);
    s->longest = whole(fmin(1e3 * busy_ms / r->token_us, 8192), s->prompt, room);
    s->pressed = pool > 0 ? whole(1.3 * pool / top - s->output, 1, 1e9) : 0;
    if (1.5 * s->pressed > room || s->pressed <= s->prompt / 2 ||
        1e-6 * r->token_us * top * s->pressed > 0.5 * s->seconds)
        s->pressed = 0;
    return VT_OK;
}

bool plan_has(const struct plan_row *p, const struct plan_sizes *s)
{
    return p->length != PLAN_PRESSED || s->pressed > 0;
}

uint32_t plan_concurrency(const struct plan_row *p, const struct plan_sizes *s)
{
    double level = pow(s->top, p->level);

    return p->how != PLAN_CLOSED ? s->top : level > 1 ? (uint32_t)lround(level) : 1;
}

/* ---- specs -------------------------------------------------------------- */

static void put_even(struct vt_buf *b, const char *key, uint32_t lo, uint32_t hi)
{
    vt_buf_printf(b, "%s: {dist: uniform, min: %u, max: %u}\n", key, (unsigned)lo,
                  (unsigned)(hi > lo ? hi : lo));
}

static void put_skewed(struct vt_buf *b, const char *key, double median, double sigma,
                       uint32_t most)
{
    vt_buf_printf(b,
                  "%s: {dist: lognormal, median: %.1f, sigma: %g, min: 4, max: %u}\n",
                  key, median > 4 ? median : 4, sigma, (unsigned)(most > 4 ? most : 4));
}

/* Of a shared prefix, which comes before the prompt. */
static uint32_t prefix_tokens(const struct plan_row *p, const struct plan_sizes *s)
{
    uint32_t tokens = s->prompt > 32 ? s->prompt : 32;

    return p->shared <= 0 ? 0 : tokens < s->longest / 2 ? tokens : s->longest / 2;
}

static void put_lengths(struct vt_buf *b, const struct plan_row *p,
                        const struct plan_sizes *s)
{
    uint32_t out = s->output, longest = s->longest - prefix_tokens(p, s);
    uint32_t prompt = s->prompt < longest ? s->prompt : longest;

    switch (p->length) {
    case PLAN_USUAL:
        put_even(b, "prompt", prompt / 8, prompt);
        put_even(b, "output", out / 2, out + out / 2);
        break;
    case PLAN_OTHER:
        put_skewed(b, "prompt", 0.4 * prompt, 0.7, longest);
        put_skewed(b, "output", 0.8 * out, 0.5, 2 * out);
        break;
    case PLAN_LONG:
        put_even(b, "prompt", s->longest / 4, s->longest);
        put_even(b, "output", out / 3, out);
        break;
    case PLAN_PRESSED:
        put_even(b, "prompt", s->pressed / 2, s->pressed + s->pressed / 2);
        put_even(b, "output", out / 2, out + out / 2);
        break;
    }
}

static void put_arrivals(struct vt_buf *b, const struct plan_row *p,
                         const struct plan_sizes *s, size_t n, double rate)
{
    enum { STAGES = 4 };
    uint32_t size = s->top / 3 > 2 ? s->top / 3 : 2;

    switch (p->how) {
    case PLAN_CLOSED:
        vt_buf_printf(b, "requests: %zu\narrival: {process: closed, concurrency: %u}\n",
                      n, (unsigned)plan_concurrency(p, s));
        return;
    case PLAN_POISSON:
        vt_buf_printf(b, "requests: %zu\narrival: {process: poisson, rate: %.6g}\n", n,
                      rate);
        return;
    case PLAN_BURST:
        vt_buf_printf(b,
                      "requests: %zu\narrival: {process: burst, size: %u, interval_s: "
                      "%.6g}\n",
                      n, (unsigned)size, size / rate);
        return;
    case PLAN_RAMP:
        vt_buf_str(b, "arrival: {process: poisson}\nstages:\n");
        for (int i = 1; i <= STAGES; i++)
            vt_buf_printf(b, "  - {rate: %.6g, duration_s: %.6g}\n", rate * i / STAGES,
                          s->seconds / STAGES);
        return;
    }
}

void plan_spec(struct vt_buf *b, const struct plan_row *p, const struct plan_sizes *s,
               size_t n, double rate)
{
    vt_buf_printf(b, "name: %s\n", p->name);
    put_arrivals(b, p, s, n, rate);
    put_lengths(b, p, s);
    if (p->shared > 0)
        vt_buf_printf(b, "prefix: {groups: 3, share: %g, tokens: %u}\n", p->shared,
                      (unsigned)prefix_tokens(p, s));
}

/* ---- for people --------------------------------------------------------- */

void vt_learn_plan(struct vt_buf *b, const struct vt_learn_config *c)
{
    const struct plan_sizes s = {
        .seconds = LOAD_SHARE * c->seconds, .top = c->max_concurrency, .pressed = 1};

    vt_buf_printf(b, "%-16s %-8s %8s %8s\n", "load", "", "at once", "seconds");
    for (size_t i = 0; i < plan_n_rows; i++) {
        const struct plan_row *p = &plan_rows[i];

        vt_buf_printf(b, "%-16s %-8s %8u %8.1f  %s\n", p->name,
                      p->part == VT_LEARN_FITTED ? "fitted" : "unseen",
                      (unsigned)plan_concurrency(p, &s), s.seconds, p->about);
    }
    vt_buf_str(b, "closed loops have so many at once, others at most; before, between "
                  "and after them\none stream says whether the server is as fast as it "
                  "was\n");
}
