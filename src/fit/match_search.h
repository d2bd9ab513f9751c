/* match_search.h - one attempt and the search among them, as the files of matching
 * share them; private to fit. */
#ifndef VT_FIT_MATCH_SEARCH_H
#define VT_FIT_MATCH_SEARCH_H

#include "fit/match.h"

struct attempt { /* one kind of model on some of the loads */
    const struct vt_match *m;
    const struct match_kind *kind;
    struct match_hints hints;
    struct match_term term[MATCH_TERMS];
    size_t n_terms;
    const double *load_weight; /* 0: left out */
    double x[MATCH_TERMS];     /* logarithms */
    double plain[MATCH_TERMS]; /* what hints point to, if to anything */
    struct vt_step_params rebuilt;
    double cost;
    struct vt_err err; /* of a simulation that failed */
};

struct tried { /* what a kind came to */
    bool found;
    double x[MATCH_TERMS];
};

/* Simulates a load by *x, the logarithms of its terms. */
int match_simulate(struct attempt *a, const double *x, size_t load,
                   struct match_numbers *out, struct match_ends *ends,
                   struct vt_err *err);
/* By slopes over so much of a logarithm, one after the other. */
int match_fit(struct attempt *a, const double *slope, size_t n, struct vt_err *err);
struct match_hints match_look(const struct vt_match *m);
/* Whose times all loads have; unstated: they differ. */
enum vt_clock match_look_clock(const struct vt_match *m);
/* Hints point into the attempt itself, which may have been copied. */
void match_point_hints(struct attempt *a);
/* *found is false: the loads do not have what the kind starts from. `plainer` is of the
 * kind before it, if there is one. */
int match_attempt(struct attempt *a, const struct vt_match *m,
                  const struct match_kind *k, const double *load_weight,
                  const struct tried *plainer, bool *found, struct vt_err *err);
int match_judge(struct attempt *a, size_t i, struct vt_crossval_row *row,
                struct vt_err *err);
double match_log_error(double simulated, double measured); /* of times, ms */
/* What a set of errors amounts to: of two kinds of model the smaller one stays. */
double match_badness(const struct vt_crossval_row *r);
/* The root of the mean square of a load's errors, not softened. */
int match_error(struct attempt *a, size_t i, double *out, struct vt_err *err);

/* Errors (of logarithms) that are larger are not of this model. */
#define MATCH_UNLIKE 0.12

/* ---- the search ---------------------------------------------------------- */

enum { MATCH_FINE = 2 };
extern const double match_fine_slopes[MATCH_FINE]; /* where little is to be won */

struct search {
    struct vt_match *m;
    const struct vt_match_options *o;
    double *load_weight;
    struct vt_crossval_row *row; /* of the kind that is tried: without each load */
    double *cost_without;
    struct attempt best;
    double least;
    double *best_without;
    struct tried *tried; /* of each kind: in this round, or else in one before */
    bool form_sought;
    double pool_tokens; /* of a KV cache that nobody states; 0: none shows */
};

bool match_counts(const struct search *s, size_t i);
size_t match_counting(const struct search *s);
int match_best(struct search *s, struct vt_match_result *r, struct vt_err *err);
/* One kind again, after what it is judged by has changed. */
int match_try(struct search *s, size_t kind, struct vt_match_result *r,
              struct vt_err *err);
/* Those with the most numbers come last, when it is clear which loads count: they cost
 * most, and would explain stalls and odd loads rather than leave them out. */
int match_widen(struct search *s, struct vt_match_result *r, struct vt_err *err);

/* ---- around it ------------------------------------------------------------ */

void match_leave_unanswered_out(struct search *s, struct vt_match_result *r);
int match_leave_stalls_out(struct search *s, struct vt_match_result *r, bool *any,
                           struct vt_err *err);
int match_find_odd(struct search *s, size_t *odd, struct vt_err *err);
void match_find_limits(struct search *s, struct vt_match_result *r);
int match_find_pool(struct search *s, struct vt_match_result *r, struct vt_err *err);
int match_find_reading(struct search *s, struct vt_match_result *r, struct vt_err *err);
void match_refuse(const struct search *s, struct vt_match_result *r);

#endif
