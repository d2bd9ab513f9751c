/* turns.c - what concerns all choices of a request is done a few at a time, so that
 * nobody else's tokens are late for it: they go to an engine, are taken back from it,
 * or are cut. */
#include "http/serve/serve.h"

enum { TURN = 256 }; /* choices; each takes a few microseconds */

static uint32_t admit_some(struct exchange *x, uint32_t most)
{
    vt_ns now = vt_axis_now(&x->s->axis);
    struct vt_err why = {0};
    struct api_error e;
    uint32_t n = 0;

    for (; n < most && x->n_admitted < x->n_choices; n++) {
        struct choice *c = &x->choice[x->n_admitted];

        if (choice_admit(c, now, &why) != VT_OK) {
            api_error_from(&e, &why);
            exchange_error(x, &e);
            x->end = END_BROKEN;
            return n + 1;
        }
        x->n_admitted++;
    }
    return n;
}

/* A choice that was never with an engine has an end to tell, but nothing to take back.
 */
static uint32_t last_to_end(const struct exchange *x)
{
    return x->end == END_CUT ? x->n_choices : x->n_admitted;
}

static uint32_t end_some(struct exchange *x, uint32_t most)
{
    uint32_t n = 0;

    for (; n < most && x->n_ended < last_to_end(x); n++) {
        struct choice *c = &x->choice[x->n_ended];

        if (x->end == END_CUT)
            choice_cut(c, x->n_ended < x->n_admitted);
        else
            choice_take_back(c, x->end == END_GONE ? METRICS_ABORT : METRICS_ERROR);
        x->n_ended++;
    }
    return n;
}

static uint32_t take_turn(struct exchange *x, uint32_t most)
{
    return x->end == END_NONE ? admit_some(x, most) : end_some(x, most);
}

static void tell_broken(struct exchange *x)
{
    struct server *s = x->s;

    if (!x->streaming) {
        serve_error(x, x->error);
        return;
    }
    vt_buf_clear(&s->text);
    out_broken(&s->text, &x->r, x->error);
    net_put(x->conn, s->text.data, s->text.len);
    serve_stream_over(x);
}

/* True: all is done, and an exchange that ends is gone. */
static bool settle(struct exchange *x)
{
    if (x->end == END_NONE)
        return x->n_admitted == x->n_choices;
    if (x->n_ended < last_to_end(x))
        return false;
    if (x->end == END_GONE)
        exchange_free(x);
    else if (x->end == END_BROKEN)
        tell_broken(x);
    else
        serve_finish(x);
    return true;
}

/* ---- who waits for a turn ----------------------------------------------- */

static void wait_turn(struct exchange *x)
{
    struct server *s = x->s;

    if (x->in_turns)
        return;
    x->in_turns = true;
    x->next = NULL;
    *(s->turn ? &s->turn_last->next : &s->turn) = x;
    s->turn_last = x;
}

void serve_turn(struct exchange *x)
{
    if (x->in_turns)
        return;
    if (!x->s->turn) {
        (void)take_turn(x, TURN);
        if (settle(x))
            return;
    }
    wait_turn(x);
}

void serve_turns(struct server *s)
{
    uint32_t left = TURN;

    while (left > 0 && s->turn) {
        struct exchange *x = s->turn;

        s->turn = x->next;
        x->in_turns = false;
        left -= take_turn(x, left);
        if (!settle(x))
            wait_turn(x);
    }
}

/* ---- ends ----------------------------------------------------------------- */

void serve_abort(struct exchange *x)
{
    x->conn = NULL;
    x->end = END_GONE;
    serve_turn(x);
}

void serve_break(struct exchange *x, const struct api_error *e)
{
    if (x->end != END_NONE)
        return;
    if (e != x->error)
        exchange_error(x, e);
    x->end = END_BROKEN;
    serve_turn(x);
}

void serve_cut(struct exchange *x)
{
    if (x->end != END_NONE)
        return;
    x->end = END_CUT;
    wait_turn(x);
}

static void end_now(struct exchange *x, const struct api_error *e)
{
    if (e && x->end == END_NONE) {
        exchange_error(x, e);
        x->end = END_BROKEN;
    } else if (!e) {
        x->conn = NULL;
        x->end = END_GONE;
    }
    wait_turn(x);
}

void serve_end_all(struct server *s, const struct api_error *e)
{
    struct choice *c;

    for (struct exchange *x = s->turn; x; x = x->next)
        end_now(x, e);
    for (size_t at = 0; (c = vt_driver_each(s->driver, &at));)
        end_now(c->x, e);
    while (s->turn)
        serve_turns(s);
}
