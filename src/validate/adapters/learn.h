/* learn.h - models from the measurements of the other experiments; private to
 * validate. */
#ifndef VT_VALIDATE_LEARN_H
#define VT_VALIDATE_LEARN_H

#include "validate/adapters/adapter.h"

/* Is there another experiment of the same model, precision, GPU and TP? */
int learn_check(const char *kind, const struct adapter_job *j,
                struct vt_err *err) VT_MUST_CHECK;
/* A profile with their mean TTFT and ITL. */
int learn_knobs(struct vt_buf *profile, const struct adapter_job *j,
                struct vt_err *err) VT_MUST_CHECK;
/* A profile of their requests, which go to a file whose name is put into `path`. */
int learn_trace(struct vt_buf *profile, const struct adapter_job *j, char *path,
                size_t size, struct vt_err *err) VT_MUST_CHECK;

#endif
