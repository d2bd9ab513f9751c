/* run.h - a run under way: when its requests arrive and the books that are kept. */
#ifndef VT_SIM_RUN_H
#define VT_SIM_RUN_H

#include "report/report.h"
#include "sim/sim.h"

/* ---- requests in hand (window.c) ---------------------------------------------- */

struct live { /* what is known of one request so far */
    vt_ns arrival, queue, first, last;
    uint32_t tokens, cached, concurrency, preemptions;
    uint32_t gaps;      /* index of its gap list */
    uint32_t instance;  /* that has it, */
    uint32_t prefilled; /* and that computed its prompt for it */
    uint16_t engines;   /* that may still name it */
    bool ended;
};

struct piece {                   /* consecutive requests of the workload */
    const struct vt_workload *w; /* the whole one, or `own` */
    struct vt_workload own;
    struct live *live; /* of each request */
    size_t cap_live;
    size_t first; /* of its requests */
    size_t left;  /* of `own`: requests that are not over */
    struct piece *next;
};

struct window {
    const struct vt_workload *w;
    struct vt_stream *stream; /* NULL: all of w is in hand, as one piece */
    /* A ring: that of a request is at req & mask; NULL: it is over. Of a whole one only
     * the first place is asked for. */
    struct piece **place;
    size_t mask;         /* a power of two of them, less one */
    size_t first;        /* request in the ring */
    size_t n_read;       /* requests in hand or over */
    struct piece *spare; /* for pieces to come */
};

int window_open(struct window *x, const struct vt_workload *w, struct vt_err *err);
void window_close(struct window *x); /* also after a failed opening */
/* Sees to it that the request is in hand; they are asked for in order. */
int window_reach(struct window *x, size_t req, struct vt_err *err);
/* The request is over, and nothing will ask for it any more. */
void window_let_go(struct window *x, size_t req);

static inline struct piece *window_piece(const struct window *x, size_t req)
{
    return x->place[req & x->mask];
}
static inline const struct vt_work *window_work(const struct window *x, size_t req)
{
    const struct piece *p = window_piece(x, req);

    return &p->w->req[req - p->first];
}
static inline struct live *window_live(const struct window *x, size_t req)
{
    const struct piece *p = window_piece(x, req);

    return &p->live[req - p->first];
}

/* ---- arrivals: at recorded times, or as earlier requests end (source.c) -------- */

struct source {
    struct window *x;
    enum vt_arrivals mode;
    uint32_t limit;          /* starts in flight; 0: no limit, recorded times */
    uint32_t held_to;        /* of recorded times: sent at most; 0: no limit */
    uint32_t sent;           /* of recorded times: in flight */
    vt_ns free_ns;           /* when the last place became free */
    size_t next;             /* first request not yet looked at as a start; in hand */
    struct vt_agenda agenda; /* requests whose time is set */
    /* Of sessions that are trees, else NULL; heap: */
    uint32_t *before; /* by request: how many it still waits for */
    uint32_t *open;   /* by session: how many have not ended */
};

int source_init(struct source *s, const struct vt_sim_spec *spec, struct window *x,
                struct vt_err *err);
void source_free(struct source *s);

vt_ns source_due(const struct source *s); /* VT_NEVER: nothing until something ends */
/* The request that is due. */
int source_take(struct source *s, size_t *req, struct vt_err *err);
/* A request has ended: its next turn, or the next one in line, may now come, `pause`
 * after it. */
int source_ended(struct source *s, size_t req, vt_ns at, vt_ns pause,
                 struct vt_err *err);
/* Its client has hung up: the same, but nothing more of its session comes. *n: so many
 * requests. */
int source_dropped(struct source *s, size_t req, vt_ns at, size_t *n,
                   struct vt_err *err);

/* ---- whose times (clock.c) ----------------------------------------------------- */

struct run_clock {
    enum vt_clock whose; /* never unstated */
    const struct vt_front *frontend;
    uint64_t seed;
    /* Of the step whose rows are noted: */
    uint64_t step;
    double tap_us, client_us; /* its message to the tap, and on to the client */
    vt_ns out_ns;             /* what of that this clock sees */
    uint32_t ended;           /* requests so far */
    /* The frontend's thread that reads requests: */
    struct held *held;               /* in the order of coming; heap */
    size_t n_held, n_read, n_passed; /* all 0: it has nothing to do */
    size_t cap_held;
    bool reads;           /* else it passes one on */
    vt_ns work_ns;        /* when it has done so */
    uint32_t connections; /* that were made: as many as requests were in flight */
};

void clock_open(struct run_clock *c, const struct vt_sim_spec *spec);
void clock_close(struct run_clock *c);
/* A request comes, one of so many in flight. *on: when it reaches the engine; VT_NEVER:
 * the frontend holds it until clock_due(). */
int clock_come(struct run_clock *c, size_t req, uint32_t prompt_tokens,
               uint32_t in_flight, vt_ns now, vt_ns *on, struct vt_err *err);
vt_ns clock_due(const struct run_clock *c); /* VT_NEVER: none is held */
/* What is due. True: a request was passed on, and reaches the engine at *on. */
bool clock_work(struct run_clock *c, size_t *req, vt_ns *on);
/* Before the step's rows are noted. */
void clock_step(struct run_clock *c, const struct vt_step *s);
/* What a closed-loop client takes between an answer, which came of a step with so many
 * requests, and its next request: asked once for each that the step ended, because
 * those whose answers came together ask one after the other. */
vt_ns clock_pause(struct run_clock *c, const struct vt_latency *m, uint32_t requests,
                  size_t req, uint32_t prompt_tokens);

/* ---- the books of a run (simulate.c) ------------------------------------------ */

struct gaps { /* of one request in flight; reused by later ones */
    vt_ns *gap;
    uint32_t *tokens, *running, *prefill;
    size_t cap; /* of each */
    uint32_t n;
    bool bursts; /* a chunk held more than one token */
};

/* Requests that left an engine with its last step. They are kept until it has made
 * another, because with async scheduling that one was planned before they left. */
struct parting {
    uint64_t *tag;
    size_t n, cap;
};

/* What a thread that runs engines for a while leaves to the one that keeps the books of
 * all (fleet/windows.c). */
struct run_later {
    struct run_end {
        vt_ns due;    /* when its engine's step was taken */
        vt_ns end_ns; /* as the request's client has it */
        vt_ns pause;  /* before what follows */
        size_t req;
        uint32_t instance;
        uint32_t order; /* among those of the thread */
        uint8_t how;    /* enum vt_finish */
    } *end;
    size_t n_ends, cap_ends;
    size_t *over; /* requests that nothing will name any more */
    size_t n_over, cap_over;
    vt_ns due; /* of the step that is being taken */
};

struct sim_run {
    const struct vt_sim_spec *spec;
    const struct vt_workload *w;
    struct vt_engine *engine; /* NULL with a fleet */
    struct vt_timings *timings;
    struct window window;
    struct source source;
    struct parting parting;   /* of the one engine */
    struct vt_agenda leaving; /* requests by when their clients hang up */
    uint32_t in_flight;
    struct run_clock clock;
    size_t finished;
    bool keep_gaps;     /* of each request, until it ends */
    bool tell_requests; /* the sink wants them */
    bool counts_all;    /* whenever they arrive */

    /* Of the engine whose step is being taken. */
    const struct vt_latency *model;
    vt_ns post_ns;
    vt_ns step_done_ns; /* of the step whose rows are noted */
    struct parting *from;
    bool kv_given; /* its prompts were computed elsewhere */
    uint32_t instance;
    struct run_later *later; /* NULL: ends are booked as they come */

    vt_ns same_gap; /* equal gaps in a row, not yet handed on */
    uint32_t n_same_gaps;

    struct gaps *gaps;
    size_t n_gaps, cap_gaps;
    uint32_t *spare_gaps;
    size_t n_spare, cap_spare;

    struct vt_step_prefill *prefill; /* scratch for the step log */
    size_t cap_prefill;
    const char **preempted;
    size_t cap_preempted;
};

/* w: that q's segments are in. */
struct vt_request run_request(const struct vt_workload *w, const struct vt_work *q,
                              size_t tag);
/* The same of a request in hand, for an engine that gets it now. */
struct vt_request run_hand_over(struct sim_run *r, size_t req);
/* It has left the engine whose step is being taken. */
int run_part(struct sim_run *r, size_t req, struct vt_err *err);
int run_check_requests(const struct vt_workload *w, const struct vt_engine_config *c,
                       struct vt_err *err);
/* When the next request comes, or leaves the frontend. */
vt_ns run_due(const struct sim_run *r);
/* It does; *req is which, *on when it reaches the engine. VT_NEVER: not yet. */
int run_arrive(struct sim_run *r, vt_ns now, size_t *req, vt_ns *on,
               struct vt_err *err);
/* When the next client has waited long enough; VT_NEVER: none ever has. What happens at
 * the same time goes before that. */
static inline vt_ns run_leaves(const struct sim_run *r)
{
    return r->leaving.n > 0 ? r->leaving.due[0].at : VT_NEVER;
}
/* He hangs up. *req: what is to be aborted where it is; SIZE_MAX: nothing any more. */
int run_hang_up(struct sim_run *r, size_t *req, struct vt_err *err);
/* Whether it was given up before it came to an engine. */
static inline bool run_is_over(const struct sim_run *r, size_t req)
{
    return window_live(&r->window, req)->ended;
}
/* Of one that was left for later. */
int run_book_end(struct sim_run *r, const struct run_end *e, struct vt_err *err);
/* Gaps that are equal in a row go to the timings together: the last ones, too. */
int run_flush_gaps(struct sim_run *r, struct vt_err *err);
/* Admissions, preemptions and the log; then, in run_take_step(), also tokens and ends.
 */
int run_note_step(struct sim_run *r, const struct vt_step *s, struct vt_err *err);
int run_take_step(struct sim_run *r, const struct vt_step *s, struct vt_err *err);
/* Now and then: tells progress, asks whether to stop. */
int run_look_up(const struct sim_run *r, vt_ns now, struct vt_err *err);

#endif
