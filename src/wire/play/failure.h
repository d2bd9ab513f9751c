/* failure.h - requests that fail on purpose; private to wire. */
#ifndef VT_WIRE_PLAY_FAILURE_H
#define VT_WIRE_PLAY_FAILURE_H

#include "wire/codec/codec.h"

/* "error,length" to bits 1 << enum wire_finish; kinds are error, length, repetition,
 * abort. */
int failure_kinds_parse(const char *text, uint32_t *kinds,
                        struct vt_err *err) VT_MUST_CHECK;

struct failure; /* opaque; belongs to one thread */
/* As the config has it; what it needs of that is copied. */
int failure_open(struct failure **out, const struct vt_play_config *c,
                 struct vt_err *err) VT_MUST_CHECK;
void failure_close(struct failure *f); /* NULL is fine */

/* Asked once for each request as it arrives: how it ends at once (enum wire_finish), or
 * -1 if it is to be served. An id that is NULL or absent counts as one of its own. */
int failure_next(struct failure *f, const struct mp_span *external_id);

#endif
