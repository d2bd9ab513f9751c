/* params.h - what every model does with its parameters. */
#ifndef VT_MODEL_PARAMS_H
#define VT_MODEL_PARAMS_H

#include "model/model.h"

/* A named number of a model's own struct: to be found at `offset`, in [lo, hi]. A
 * table of these is read and checked for unknown names. */
struct param {
    const char *name;
    size_t offset;
    double lo, hi;
};

#define PARAM_MAX 1e12 /* larger than any duration in microseconds that makes sense */

/* Reads all rows of a NULL-name-terminated table from the map into *model. Missing
 * ones keep what they are; other keys than these and `also` are errors. */
int params_read(const struct vt_node *map, const struct param *table,
                const char *const *also, void *model, struct vt_err *err);

/* One of them by hand; a missing one keeps *out. */
int params_number(const struct vt_node *map, const char *key, double lo, double hi,
                  double *out, struct vt_err *err);

/* A list of exactly n non-negative numbers. */
int params_list(const struct vt_node *map, const char *key, double *out, uint32_t n,
                struct vt_err *err);

/* Opens a model of the named kind; messages name the kind. */
int model_open(struct vt_latency **out, const char *name, const struct vt_node *params,
               struct vt_err *err);

/* A profile's "frontend": a kind, and numbers that are others than its. */
int front_read(struct vt_front *f, const struct vt_node *node, struct vt_err *err);

/* Medians of a fit's errors on captures that it was made without; NULL: not stated. */
const struct vt_node *profile_left_out(const struct vt_profile *p);

/* Tables of the models, one row each in registry.c. */
extern const struct vt_model_kind model_step;
extern const struct vt_model_kind model_blackbox;
extern const struct vt_model_kind model_regression;
extern const struct vt_model_kind model_roofline;
extern const struct vt_model_kind model_crossmodel;
extern const struct vt_model_kind model_trained_roofline;
extern const struct vt_model_kind model_trained_physics;
extern const struct vt_model_kind model_linear;
extern const struct vt_model_kind model_knob;
extern const struct vt_model_kind model_trace;
extern const struct vt_model_kind model_null;

#endif
