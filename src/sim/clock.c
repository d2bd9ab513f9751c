/* clock.c - whose clock a run's times are by.
 *
 * An engine under the virtual clock knows its own arrivals and results. Clients see
 * what the frontend before it adds, a recorder between the two some of it. */
#include <math.h>

#include "sim/run.h"

/* One draw each for a request on its way in and for a step's tokens on theirs out. */
enum { WAY_IN = 0x1f0d, WAY_OUT = 0x0f0d };

void clock_open(struct run_clock *c, const struct vt_sim_spec *spec)
{
    static const struct vt_front none = {.name = "none"};

    c->whose = spec->clock == VT_CLOCK_UNSTATED ? VT_CLOCK_ENGINE : spec->clock;
    c->frontend = spec->frontend ? spec->frontend : &none;
    c->seed = spec->engine.seed;
}

static double vary(const struct run_clock *c, uint64_t way, uint64_t which)
{
    double noise = c->frontend->noise;

    /* Minus half the variance keeps the mean. */
    return noise > 0 ? exp(noise * (vt_draw_normal(c->seed, way, which) - 0.5 * noise))
                     : 1;
}

static double in_us(const struct run_clock *c, size_t req, uint32_t prompt_tokens)
{
    const struct vt_front *f = c->frontend;

    return (f->in_us + 1e-3 * f->in_ktoken_us * prompt_tokens) * vary(c, WAY_IN, req);
}

vt_ns clock_in(const struct run_clock *c, size_t req, uint32_t prompt_tokens)
{
    return c->whose == VT_CLOCK_CLIENT ? vt_ns_from_us(in_us(c, req, prompt_tokens))
                                       : 0;
}

void clock_step(struct run_clock *c, const struct vt_step *s)
{
    const struct vt_front *f = c->frontend;
    double varied, us;

    c->step = s->number;
    c->ended = 0;
    c->out_ns = 0;
    if (c->whose == VT_CLOCK_ENGINE || s->n_rows == 0)
        return;
    varied = vary(c, WAY_OUT, s->number);
    c->tap_us = (f->tap_us + f->tap_row_us * s->n_rows) * varied;
    c->client_us = (f->out_us + f->out_row_us * s->n_rows) * varied;
    us = c->tap_us + (c->whose == VT_CLOCK_CLIENT ? c->client_us : 0);
    /* Rows leave when the result was handled; its message was under way before. */
    if (us > 0)
        c->out_ns = s->out_ns - s->done_ns + vt_ns_from_us(us);
}

vt_ns clock_pause(struct run_clock *c, const struct vt_latency *m, uint32_t requests,
                  size_t req, uint32_t prompt_tokens)
{
    uint32_t before = c->ended++;
    double us = c->frontend->client_us + c->frontend->next_us * before;

    if (c->whose == VT_CLOCK_TAP)
        us += c->client_us + in_us(c, req, prompt_tokens);
    if (c->whose != VT_CLOCK_ENGINE)
        return vt_ns_from_us(us);
    us = m->turnaround_us + m->turnaround_request_us * requests;
    if (m->turnaround_noise > 0) {
        double z = vt_draw_normal(c->seed, UINT64_C(0x7a2d), c->step);

        us *= exp(m->turnaround_noise * (z - 0.5 * m->turnaround_noise));
    }
    return vt_ns_from_us(us + m->turnaround_next_us * before);
}
