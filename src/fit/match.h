/* match.h - loads, kinds of model and their fit, as the files of matching by simulation
 * share them. Times are milliseconds unless a name says otherwise. */
#ifndef VT_FIT_MATCH_H
#define VT_FIT_MATCH_H

#include "fit/internal.h"

/* ---- what is compared --------------------------------------------------- */

/* Numbers that a load is summed up in, measured and simulated alike. */
enum { MATCH_CLASSES = 3, MATCH_NUMBERS = 24 };
enum { /* those that people are told of */
       MATCH_TTFT,
       MATCH_TTFT_P99,
       MATCH_ITL,
       MATCH_ITL_P99,
       MATCH_E2E,
       MATCH_E2E_P99,
       MATCH_SPAN,
};

struct match_numbers {
    double v[MATCH_NUMBERS]; /* NAN: there is none */
};

struct match_load {
    char *name;
    const struct vt_workload *w; /* borrowed */
    struct vt_engine_config engine;
    struct limits shown;
    uint32_t unlimited_blocks; /* with room for all, if no pool is stated */
    bool cached;               /* some prompts were, and are simulated so */
    bool gaps_known;           /* times of single tokens, and not just a mean of them */
    uint8_t *class;            /* of each request, by the length of its prompt */
    double pause_us;    /* of closed-loop clients, from an answer to the next request */
    double mean_prompt; /* tokens */
    bool *left_out;     /* requests that no model is to explain */
    struct match_numbers measured;
    double weight[MATCH_NUMBERS]; /* squares sum to 1 */
};

struct vt_match {
    struct vt_fit_shape shape;
    struct match_load *load;
    size_t n, cap;
    /* Of requests that come together a frontend reads all before the first goes on: for
     * each, microseconds; 0: none does. */
    double read_us, pass_us;
};

int match_load_open(struct match_load *l, const char *name, const struct vt_workload *w,
                    struct vt_err *err);
void match_load_close(struct match_load *l);
/* Sums up again what was measured, after left_out has changed. */
int match_load_measure(struct match_load *l, struct vt_err *err);

struct match_ends { /* of one request */
    double ttft, e2e;
};
/* Simulates it behind a frontend. ends: NULL, or room for those of all requests. */
int match_load_run(const struct match_load *l, const struct vt_latency *model,
                   const struct vt_front *front, struct match_numbers *out,
                   struct match_ends *ends, struct vt_err *err);

/* ---- kinds of model ----------------------------------------------------- */

enum { MATCH_TERMS = 48 };

struct match_term {
    const char *name;
    double start; /* in the model's unit */
    double pull;  /* how strongly its logarithm is held there */
};

/* What a first look at the loads tells, for values to start from. */
struct match_hints {
    double itl_us;   /* typical gap of the load with the shortest ones */
    double ttft_us;  /* of the load with the shortest ones */
    double token_us; /* TTFT a prompt token there */
    double pause_us; /* of closed-loop clients */
    const struct vt_fit_shape *shape;
    const double *plain; /* values that the kind before it came to; NULL: none */
    const struct vt_step_params *rebuilt; /* from times of single tokens; NULL: none */
};

/* To add a kind: write its two functions, add a row to match_kinds[]. */
struct match_kind {
    const char *name;
    enum {
        MATCH_ALONE,
        MATCH_WIDER,
        MATCH_REBUILT
    } starts; /* from nothing but hints;
               * from the solution of the kind before it; from rebuilt steps */
    size_t (*terms)(const struct match_hints *h, struct match_term t[MATCH_TERMS]);
    /* Appends the model as a JSON object {"kind", "params"}. */
    void (*write)(const struct match_hints *h, const double *value, struct vt_buf *b);
};

/* match_rebuild.c: the step model of those loads with a weight whose tokens' times are
 * known, by way of rebuilt steps. *found is false where that leads nowhere. */
int match_rebuild(const struct vt_match *m, const double *load_weight,
                  struct vt_step_params *out, bool *found, struct vt_err *err);

/* Whether rebuilt steps are those of a mixture of experts, or of kernels with tiles to
 * fill, where nobody says so: puts it into m->shape. */
int match_find_form(struct vt_match *m, const double *load_weight, struct vt_err *err);

extern const struct match_kind match_kinds[];
extern const size_t match_n_kinds;

#endif
