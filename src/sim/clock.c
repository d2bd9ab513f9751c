/* clock.c - whose clock a run's times are by.
 *
 * An engine under the virtual clock knows its own arrivals and results. Clients see
 * what the frontend before it adds, a recorder between the two some of it. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

void clock_close(struct run_clock *c)
{
    free(c->held);
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

/* ---- requests that come together ---------------------------------------- */

/* One thread reads requests and passes them on. What comes on connections that are
 * there is read as soon as possible, and so before any of it is passed on; of new
 * connections a few are read ahead. More than were ever seen to come together do not
 * hold the others up for good. */
enum { AHEAD_FRESH = 8, AHEAD = 64 };

struct held { /* by the frontend */
    size_t req;
    double in_us;
    bool fresh; /* on a new connection */
};

static void begin_work(struct run_clock *c, vt_ns now)
{
    const struct held *oldest = &c->held[c->n_passed];
    size_t ahead = c->n_read - c->n_passed, most = oldest->fresh ? AHEAD_FRESH : AHEAD;

    c->reads = c->n_read < c->n_held && ahead < most;
    c->work_ns =
        now + vt_ns_from_us(c->reads ? c->frontend->read_us : c->frontend->pass_us);
}

/* Where it never has nothing to do, what was passed on has to go all the same. */
static void forget_passed(struct run_clock *c)
{
    enum { MANY = 1024 };

    if (c->n_passed < MANY || c->n_passed < c->n_held / 2)
        return;
    c->n_held -= c->n_passed;
    c->n_read -= c->n_passed;
    memmove(c->held, c->held + c->n_passed, c->n_held * sizeof(*c->held));
    c->n_passed = 0;
}

int clock_come(struct run_clock *c, size_t req, uint32_t prompt_tokens,
               uint32_t in_flight, vt_ns now, vt_ns *on, struct vt_err *err)
{
    struct held h = {.req = req, .fresh = in_flight > c->connections};
    int rc;

    *on = now;
    if (c->whose != VT_CLOCK_CLIENT)
        return VT_OK;
    h.in_us = in_us(c, req, prompt_tokens);
    *on = now + vt_ns_from_us(h.in_us);
    if (c->frontend->read_us <= 0)
        return VT_OK;
    *on = VT_NEVER;
    c->connections += h.fresh;
    forget_passed(c);
    if ((rc = vt_grow(&c->held, &c->cap_held, c->n_held + 1, sizeof(h), err)))
        return rc;
    c->held[c->n_held++] = h;
    if (c->n_held == 1)
        begin_work(c, now);
    return VT_OK;
}

vt_ns clock_due(const struct run_clock *c)
{
    return c->n_held > 0 ? c->work_ns : VT_NEVER;
}

bool clock_work(struct run_clock *c, size_t *req, vt_ns *on)
{
    const struct vt_front *f = c->frontend;
    const struct held *h = &c->held[c->n_passed];
    bool passed = !c->reads;

    assert(c->n_passed < c->n_held);
    if (passed) {
        *req = h->req;
        *on = c->work_ns + vt_ns_from_us(fmax(h->in_us - f->read_us - f->pass_us, 0));
        c->n_passed++;
    } else {
        c->n_read++;
    }
    if (c->n_passed == c->n_held)
        c->n_held = c->n_read = c->n_passed = 0;
    else
        begin_work(c, c->work_ns);
    return passed;
}

/* ---- steps and pauses ---------------------------------------------------- */

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
