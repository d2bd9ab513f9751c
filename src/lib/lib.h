/* lib.h - what stands behind include/vtwin: the rooms' own types inside the opaque
 * ones, and structs of callers that may be older or newer than this library. Private to
 * lib. */
#ifndef VT_LIB_H
#define VT_LIB_H

#include <vtwin/sim.h>

#include "base/base.h"
#include "core/core.h"
#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"
#include "tune/tune.h"

struct vtwin_model {
    const struct vt_latency *latency; /* the profile's, or the next one */
    struct vt_profile profile;
    struct vt_latency *opened; /* owned; NULL: a profile's */
};

/* Takes over a caller's struct of `theirs->size` bytes: what it lacks stays as it is in
 * *own, and what it has more must be zero. `name` is for the message. */
int lib_struct_in(void *own, size_t own_size, const void *theirs, const char *name,
                  struct vt_err *err) VT_MUST_CHECK;
/* Hands out as much of *own as the caller's struct has room for; its size stays. */
void lib_struct_out(void *theirs, const void *own, size_t own_size);
/* Ends a public function: the error as the caller's struct has it. Returns rc. */
int lib_end(struct vtwin_error *theirs, int rc, const struct vt_err *err);

/* The model's engine, and over it the caller's options (NULL: none). */
int lib_engine_config(struct vt_engine_config *c, const struct vtwin_model *m,
                      const struct vtwin_engine_options *o,
                      struct vt_err *err) VT_MUST_CHECK;
void lib_engine_options(struct vtwin_engine_options *o,
                        const struct vt_engine_config *c);

/* What simulations of *o run on. Borrows from both. */
struct lib_site {
    struct vtwin_sim_options o;
    struct vt_engine_config engine;
    struct vt_fleet fleet; /* instances 0: none */
};
int lib_site_open(struct lib_site *s, const struct vtwin_model *m,
                  const struct vtwin_sim_options *o, struct vt_err *err) VT_MUST_CHECK;
void lib_summary_out(struct vtwin_summary *theirs, const struct vt_summary *s,
                     const struct vtwin_model *m);

#endif
