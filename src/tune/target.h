/* target.h - trials at a live server; private to tune. */
#ifndef VT_TUNE_TARGET_H
#define VT_TUNE_TARGET_H

#include "load/load.h"
#include "tune/tune.h"

/* Failed requests, and those that were cut off, are later than any limit. held: times
 * begin when it was a request's turn, not when it was due. *good: how many kept all
 * limits. */
int target_summary(struct vt_summary *s, const struct vt_load_records *r, bool held,
                   const struct vt_slo *slo, uint64_t *good,
                   struct vt_err *err) VT_MUST_CHECK;

/* Warms the server up if it has to be, and empties its prefix cache if it can. */
int target_prepare(struct vt_target *x, const struct vt_load_plan *p,
                   struct vt_err *err) VT_MUST_CHECK;
/* How to ask: the caller's way, and the model's name. */
void target_config(struct vt_load_config *c, const struct vt_target *x);
/* The restart command with its {names} replaced. */
int target_command(struct vt_buf *b, const char *text, const struct vt_setting *s,
                   struct vt_err *err) VT_MUST_CHECK;

#endif
