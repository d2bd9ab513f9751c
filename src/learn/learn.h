/* learn.h - a running server to a profile of it: what it says of itself, a short plan
 * of loads, a fit, and loads that the fit has not seen, predicted before they are
 * measured.
 *
 * A server cannot be asked whether it will behave tomorrow as it does now; what can be
 * seen is looked for, and refused: errors, other people's requests, a speed that
 * changes, tokens that come too fast for a client to time them. */
#ifndef VT_LEARN_H
#define VT_LEARN_H

#include "base/base.h"
#include "fit/fit.h"
#include "load/load.h"
#include "report/report.h"
#include "trace/trace.h"

/* ---- where loads are measured ------------------------------------------- */

struct vt_learn_done { /* what came of one load */
    size_t sent, failed;
    char error[200]; /* of the first that failed */
    bool cut;        /* it took too long */
    /* By the server's counters; told false: it has none. */
    bool told;
    uint32_t running, waiting; /* most at one look, where there was time to look */
    int64_t others;            /* requests that ended meanwhile and were not ours */
    uint32_t others_now; /* requests it still works on when all of ours have ended */
    uint64_t preemptions;
    bool drafts; /* tokens are drafted ahead */
};

struct vt_learn_ask {               /* one load to send; all borrowed */
    const struct vt_workload *load; /* as its arrivals say, never more at once than its
                                     * concurrency */
    const struct vt_meta *engine;   /* for the first line of the trace */
    const char *path;               /* of the client's trace */
    double most_s;                  /* it is cut off after so long */
    bool watch; /* look at running and waiting meanwhile, which costs
                 * the times their precision */
};

/* A server, or for tests something that behaves like one. All functions get `user`. */
struct vt_learn_site {
    void *user;
    /* Limits and names; texts live in the arena. VT_ECHECK: nothing to learn from. */
    int (*ask)(void *user, struct vt_arena *arena, struct vt_meta *engine,
               struct vt_err *err);
    /* Sends a load and writes its trace; fills the zeroed *done. Requests that fail are
     * counted there and are no error. */
    int (*measure)(void *user, const struct vt_learn_ask *ask,
                   struct vt_learn_done *done, struct vt_err *err);
    double (*seconds)(void *user); /* the clock that the budget is counted on */
};

struct vt_learn_looks; /* the site's own */

/* A server over HTTP. */
struct vt_learn_http {            /* set config; the rest is the site's own */
    struct vt_load_config config; /* where; api_key, headers, trust; stopped */
    uint64_t seed;                /* of what prompts say: a new one for every run, or
                                   * they are cached already */
    struct vt_arena arena;
    uint32_t ids_below, loads;
    vt_ns until;                   /* when the load under way is cut off */
    size_t failed;                 /* of its requests: one is enough to end it */
    struct vt_learn_done *watched; /* of the load under way; NULL: not watched */
    struct vt_learn_looks *looks;  /* at the KV cache beside it; NULL: none */
};
struct vt_learn_site vt_learn_http(struct vt_learn_http *h); /* borrows h */
void vt_learn_http_close(struct vt_learn_http *h);

/* ---- learning ----------------------------------------------------------- */

struct vt_learn_config { /* all borrowed */
    double seconds;      /* of load on the server, in all */
    uint32_t max_concurrency;
    uint64_t seed;
    const char *kind; /* of model to learn; NULL: the best of all */
    double tolerance; /* percent: median errors of E2E, TTFT and ITL of unseen loads */
    const char *dir;  /* where traces are kept, which is made: those that are fitted,
                       * and in "unseen" and "checks" the others */
    bool (*stopped)(void *user);                /* NULL: never */
    void (*tell)(void *user, const char *line); /* how it goes; NULL: nobody */
    void *user;
};

enum vt_learn_part { VT_LEARN_CHECK, VT_LEARN_FITTED, VT_LEARN_UNSEEN };

struct vt_learn_load {
    const char *name, *about; /* about: one line for people; both in the arena */
    enum vt_learn_part part;
    struct vt_workload planned, measured;
    struct vt_learn_done done;
    struct vt_summary predicted; /* of unseen ones, before they were measured */
    struct vt_summary real;
    struct vt_crossval_row error;
    bool odd; /* it contradicts the others: not learned from */
};

struct vt_learn { /* zero-initialise to start */
    struct vt_arena arena;
    struct vt_meta engine;       /* what is known of the server */
    bool seqs_told, budget_told; /* by the server, and not found out */
    struct vt_learn_load *load;  /* heap; in the order of measuring */
    size_t n, cap;
    struct vt_match_result fit;
    struct vt_crossval_row median, worst; /* of unseen loads: the errors' sizes */
    struct vt_crossval_row expected;      /* by them, of one more */
    double pace_ms[3];                    /* of one stream: first, between, last */
    double fastest_ms, slowest_ms;        /* the same load each time: mean gaps */
    double seconds;                       /* that it took */
    char refusal[400]; /* why the profile is not to be trusted; "": it is */
};

/* How far equal loads of one stream were apart, percent: what changed was the server,
 * and no model of it can be closer to loads at other times. */
double vt_learn_speed_change(const struct vt_learn *l);
/* More than a server on a machine of its own shows. */
#define VT_LEARN_STEADY 10

/* Learns. VT_ECHECK: refused, before there was a fit; VT_EIO: the server is gone or
 * answers with errors. A fit that turned out badly is VT_OK and stands in
 * l->refusal. *l is the caller's to free whatever happens. */
int vt_learn_run(struct vt_learn *l, const struct vt_learn_config *c,
                 const struct vt_learn_site *site, struct vt_err *err) VT_MUST_CHECK;
void vt_learn_free(struct vt_learn *l); /* frees contents, not l */

/* ---- telling of it ------------------------------------------------------ */

/* All append. The plan: loads that would be sent to a server without limits. */
void vt_learn_plan(struct vt_buf *b, const struct vt_learn_config *c);
void vt_learn_table(struct vt_buf *b, const struct vt_learn *l);
void vt_learn_json(struct vt_buf *b, const struct vt_learn *l);
int vt_learn_profile(struct vt_buf *b, const struct vt_learn *l, const char *name,
                     const char *description, struct vt_err *err) VT_MUST_CHECK;
/* One page that needs nothing else. */
int vt_learn_page(const struct vt_learn *l, const char *title, const char *path,
                  struct vt_err *err) VT_MUST_CHECK;

#endif
