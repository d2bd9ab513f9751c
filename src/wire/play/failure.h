/* failure.h - requests that fail on purpose; private to wire. */
#ifndef VT_WIRE_PLAY_FAILURE_H
#define VT_WIRE_PLAY_FAILURE_H

#include "wire/codec/codec.h"

struct failure_config {
    double rate;      /* chance that a request fails; 0: none */
    uint32_t kinds;   /* bits 1 << enum wire_finish; 0: errors only */
    uint32_t first;   /* so many fail whatever the rate says, then the rate holds */
    bool first_by_id; /* of each external id, so that a retry succeeds in the end; else
                       * of all requests */
    uint64_t seed;
};

/* "error,length" to bits; kinds are error, length, repetition, abort. */
int failure_kinds_parse(const char *text, uint32_t *kinds,
                        struct vt_err *err) VT_MUST_CHECK;

struct failure; /* opaque; belongs to one thread */
int failure_open(struct failure **out, const struct failure_config *c,
                 struct vt_err *err) VT_MUST_CHECK;
void failure_close(struct failure *f); /* NULL is fine */

/* Asked once for each request as it arrives: how it ends at once (enum wire_finish), or
 * -1 if it is to be served. An id that is NULL or absent counts as one of its own. */
int failure_next(struct failure *f, const struct mp_span *external_id);

#endif
