/* load.h - load generation and honest measurement: what to send, sending it when it is
 * due, and what came of it.
 *
 * Times are nanoseconds since the start of the run, on CLOCK_MONOTONIC. Every planned
 * time is absolute; what was planned and what was done are both kept, so that a client
 * that falls behind shows in its own figures and not in the server's. */
#ifndef VT_LOAD_H
#define VT_LOAD_H

#include "base/base.h"
#include "text/text.h"

/* ---- what to send ------------------------------------------------------ */

struct vt_load_turn { /* one request; borrowed from the plan's arena */
    const char *text; /* NULL: token ids are sent */
    size_t text_len;
    const uint32_t *id;
    uint32_t n_ids;
    uint32_t prompt_tokens; /* as the dataset counts them; 0: unknown */
    uint32_t output_tokens; /* to ask for; 0: no limit is stated */
    vt_ns think_ns;         /* pause after the reply before */
};

struct vt_load_session { /* requests that follow each other; most have one */
    vt_ns at;            /* of the first one, if arrivals are in the plan */
    const char *id;      /* NULL: its number */
    const char *system;  /* NULL: none */
    const struct vt_load_turn *turn;
    uint32_t n_turns;
};

struct vt_load_plan { /* zero-initialise to start */
    struct vt_arena arena;
    struct vt_load_session *session; /* heap */
    size_t n, cap;
    size_t n_turns;  /* of all */
    bool timed;      /* sessions say when they begin */
    bool ignore_eos; /* output is to have exactly the length asked for */
};
void vt_load_plan_free(struct vt_load_plan *p); /* frees contents, not p */

/* ---- arrivals ----------------------------------------------------------- */

enum vt_ramp { VT_RAMP_NONE, VT_RAMP_LINEAR, VT_RAMP_EXPONENTIAL };
struct vt_load_arrivals {
    double rate;       /* per second; INFINITY: all at once */
    double burstiness; /* gamma's shape; 1: Poisson; INFINITY: even */
    enum vt_ramp ramp; /* from ramp_start to ramp_end per second, in place of rate */
    double ramp_start, ramp_end;
    uint64_t seed;
};
/* Send times of n requests, ascending; the last is exactly n / rate, as vLLM's are. */
int vt_arrivals_make(const struct vt_load_arrivals *a, vt_ns *at, size_t n,
                     struct vt_err *err) VT_MUST_CHECK;

/* ---- what came of it ------------------------------------------------------ */

struct vt_load_record { /* one request; owned by the records */
    uint32_t session, turn;
    vt_ns planned; /* when it should have left; of later turns: reply and think time */
    vt_ns begun;   /* when it was its turn: a place under max_concurrency was free */
    vt_ns sent;    /* its last byte was handed to the kernel; 0: never */
    vt_ns first;   /* first event with a choice; 0: none came */
    vt_ns last;    /* last one */
    vt_ns ended;   /* the response was whole, or failed */
    const vt_ns *stamp; /* of every event with a choice, ascending */
    uint32_t n_stamps;
    uint32_t prompt_tokens, output_tokens, cached_tokens;
    uint32_t asked_tokens;  /* output */
    bool counted_by_server; /* token counts come from its usage */
    bool ok;
    int status;        /* of HTTP; 0: none came */
    const char *error; /* NULL: none */
    const char *text;  /* generated; NULL: not kept */
    size_t text_len;
    const char *finish; /* "stop", "length", ...; NULL: unknown */
    const char *request_id;
};

struct vt_load_records { /* zero-initialise to start */
    struct vt_arena arena;
    struct vt_load_record *record; /* heap; in the order of begun */
    size_t n, cap;
    vt_ns end;           /* of the run */
    double start_unix_s; /* of time 0 */
    bool interrupted;
    /* The generator's own doings. */
    vt_ns lag_p50, lag_p99, lag_max; /* sent later than it was its turn */
    uint32_t stalls;                 /* its loop stood still for longer than 5 ms */
    vt_ns stalled;                   /* in all */
    uint32_t peak_concurrency;
};
void vt_load_records_free(struct vt_load_records *r);

#endif
