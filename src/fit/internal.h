/* internal.h - captures as the fit's files share them. Times are milliseconds. */
#ifndef VT_FIT_INTERNAL_H
#define VT_FIT_INTERNAL_H

#include "fit/fit.h"

struct observed { /* one step */
    struct vt_step_features f;
    double sched, sched_end, out, done;
    uint32_t ended; /* requests, as the trace says */
    bool idle;      /* scheduled when nothing was in flight */
    double stall;   /* in the gap that ends with it; 0: none */
    bool stalled;   /* by one, or just after: nothing is learned from its times */
    double moves, moved_blocks; /* transfers handed over before it was launched */
    bool untold; /* it computed again what a preempted request had lost: how much, its
                  * trace does not tell */
};

struct moved { /* a transfer between GPU and host, or several that ended together */
    double begin, end, jobs, blocks;
    bool store;
};

struct pair { /* for a line through points */
    double x, y;
};

struct pairs {
    struct pair *p;
    size_t n, cap;
};

struct join { /* how a request came into a step */
    double arrival, ktokens;
    double missed; /* the last schedule call that went without it; -INFINITY: none */
    double joined; /* the call that took it; -INFINITY: the log has none */
    double rested; /* it ended a rest that began then; NAN: it did not */
    bool queued;   /* that call left some in the queue */
};

struct capture {
    char *name;
    struct vt_arena arena; /* owns meta's strings */
    struct vt_meta meta;
    struct observed *step;
    size_t n, cap;
    bool rebuilt; /* from a trace: only `out` was measured */
    double span;  /* total of its windows */
    size_t n_stalls;
    double stall_ms;
    bool odd;           /* contradicts the others: nothing is learned from it */
    bool knows_without; /* what the others alone say: */
    struct vt_step_params without; /* kept, as several want to know it */
    struct join *join; /* of each request, in the order of arrival; NULL: no trace */
    size_t n_joins;
    double mean_ttft, mean_itl; /* of its trace; 0: none */
    size_t n_requests;          /* the same */
    double clients_ms;          /* from the first arrival to the last token */
    struct pairs turnaround; /* (requests in the step, pause) of closed-loop clients */
    struct moved *moved;     /* by way, loads first, then by end */
    size_t n_moved, cap_moved;
    struct pairs next_turn; /* (0, time from the one before) of those that a step let
                             * go together */
};

struct vt_fit {
    struct vt_fit_shape shape;
    struct capture *capture;
    size_t n, cap;
    bool cleaned; /* stalls are found, of all captures */
    bool agreed;
    struct vt_meta engine; /* that they agree on; its strings are the captures' */
};

/* Whether something is learned from capture i when `left_out` is left out. */
static inline bool capture_used(const struct vt_fit *f, size_t i, size_t left_out)
{
    return i != left_out && !f->capture[i].odd && f->capture[i].n > 0;
}
/* vt_fit_solve() without capture i, once. */
int capture_without(struct vt_fit *f, size_t i, struct vt_step_params *out,
                    struct vt_err *err);

static inline double in_ms(vt_ns t)
{
    return (double)t / 1e6;
}

/* How far a prediction is off, in percent; 0: one of the two is not known. */
static inline double percent_off(double predicted, double measured)
{
    return measured > 0 && predicted >= 0 ? 100 * (predicted / measured - 1) : 0;
}

int pairs_add(struct pairs *p, double x, double y, struct vt_err *err);

/* capture.c, rebuild.c */
int capture_from_steps(struct capture *c, const struct vt_step_params *shape,
                       const struct vt_steps *s, const struct vt_workload *trace,
                       struct vt_err *err);
int capture_from_trace(struct capture *c, const struct vt_step_params *shape,
                       const struct vt_workload *w, struct vt_err *err);
int capture_clients(struct capture *c, const struct vt_steps *s,
                    const struct vt_workload *w, struct vt_err *err);
/* The index of a request that was scheduled then; w->n: there is none. */
size_t find_request(const struct vt_workload *w, const char *id, vt_ns scheduled);
int capture_add_step(struct capture *c, const struct vt_step_params *shape,
                     const struct vt_step_line *s, struct vt_err *err);

/* clean.c: finds what was stalled, once after captures were added. */
void clean_captures(struct vt_fit *f);
/* Milliseconds from the result before, or from when it was scheduled. */
double own_gap(const struct capture *c, size_t i);
/* A copy of the trace with the capture's stalls cut out of all times. Ends with
 * clean_trace_free(); what is not times is borrowed. */
int clean_trace(const struct capture *c, const struct vt_workload *trace,
                struct vt_workload *out, struct vt_err *err);
void clean_trace_free(struct vt_workload *w);

/* arrive.c: the way into the scheduler's queue, from a log and its trace. */
int arrive_note(struct capture *c, const struct vt_steps *s,
                const struct vt_workload *w, struct vt_err *err);
int arrive_costs(const struct vt_fit *f, size_t left_out, struct vt_step_params *p,
                 struct vt_err *err);

/* limits.c: what a load shows of limits by what waited. */
struct limits {
    bool waited;    /* requests did, for something */
    uint32_t seats; /* requests that the engine runs at once; 0: it does not show */
    double tokens;  /* about so many are in its KV cache when it is full; 0: the same */
};
int limits_shown(const struct vt_workload *w, struct limits *out, struct vt_err *err);
/* The engine that served a trace: as its meta line states it, and with room for every
 * request where it does not. What it states is 0 in *shown. VT_ECHECK: with what it
 * states some of its requests could never have finished. */
int limits_engine(struct vt_engine_config *c, const struct vt_workload *w,
                  struct limits *shown, struct vt_err *err);
/* A simulation that could not go on speaks against the capture, not against the way
 * that somebody called it: VT_ECHECK then, else rc. */
int limits_refuse(int rc, struct vt_err *err);
/* Blocks in which so many tokens have room. */
void limits_pool(struct vt_engine_config *c, double tokens);

/* Tokens of the request with the most: with all that it may say, or that it said where
 * no limit is stated. */
double longest_request(const struct vt_workload *w);

/* fit.c: whether a measured trace knows more than the ends of its requests. */
bool tokens_are_timed(const struct vt_workload *w);

/* host.c: what is read off rather than fitted. */
int host_costs(const struct vt_fit *f, size_t left_out, struct vt_step_params *p,
               struct vt_err *err);
/* A mode's typical launch in milliseconds, 0: none seen, and the spread of its
 * logarithm. */
int launch_seen(const struct vt_fit *f, size_t left_out, enum vt_step_mode mode,
                double *launch, double *spread, struct vt_err *err);

/* replay.c: what the model says and what the log says, in milliseconds. A window runs
 * between clean boundaries; a point within one tells when a result came that a long
 * launch delayed, counted from the window's start. */
struct window {
    double predicted, measured;
    double weight_ms;   /* how much of the capture it speaks for, */
    double expected_ms; /* and how much it would if it had taken what is predicted */
    bool point;
};
typedef void window_fn(void *user, struct window w);
void replay(const struct capture *c, const struct vt_step_params *p, window_fn *tell,
            void *user);
double window_error(struct window w); /* its logarithm */

struct window_errors { /* of windows, not of points; e is the caller's to free */
    double *e;
    size_t n, cap;
    bool failed; /* for want of memory */
};
/* Appends those of a capture. */
void replay_errors(const struct capture *c, const struct vt_step_params *p,
                   struct window_errors *out);

/* lm.c: minimises the sum of squares of n residuals over m parameters. */
struct lm_problem {
    size_t m, n;
    void (*residuals)(void *user, const double *x, double *r); /* fills n cells */
    void *user;
    int max_steps;
    /* 0: as it suits smooth residuals. */
    double step;         /* of a derivative */
    double tolerance;    /* ends when an accepted step gains less, share of the cost */
    double most_damping; /* ends when no step damped so much gains anything */
};
int lm_solve(const struct lm_problem *p, double *x, double *least, struct vt_err *err);

/* hear.c: finds the unknowns with which replayed windows take as long as the log says.
 */

/* Each is positive and solved for as a logarithm. `pull` is how strongly it is held
 * where it started. */
struct unknown {
    size_t offset; /* for whoever sets it */
    double start, pull;
};

struct hearing {
    void (*set)(void *user,
                const double *x); /* puts the unknowns where they are used */
    /* Calls replay(c, p, h->tell, h) for each capture, with its h->weight. */
    void (*replay)(void *user, struct hearing *h);
    void *user;
    const struct unknown *u;
    size_t m;
    const char *purpose; /* "the captures hold no steps to ..." */
    double soft;         /* errors beyond this count less and less */
    double tolerance;    /* as lm_problem's */
    int max_steps;
    bool begun; /* x is a solution already, if not the last */
    /* while it replays */
    window_fn *tell;
    double weight; /* of a millisecond of the capture */
    /* How many milliseconds each window and point speaks for: as many as a first
     * solution expects, since measured ones favour what took long by chance, and none
     * if no model explains it. NULL: as measured. */
    double *speaks;
    double *r;
    size_t n;
};
/* An error (of a logarithm), softened so that few large ones don't rule. */
double softened(double e, double soft);
/* x: where to start, and what is found. */
int hear(struct hearing *h, double *x, struct vt_err *err);

#endif
