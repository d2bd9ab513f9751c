/* stamps.h - when the tokens of one request came; private to load. */
#ifndef VT_LOAD_STAMPS_H
#define VT_LOAD_STAMPS_H

#include "load/load.h"

struct stamps { /* borrowed from the record */
    const vt_ns *at;
    uint32_t n;
};
/* The events that brought tokens. */
struct stamps stamps_of(const struct vt_load_record *q, enum vt_load_backend backend);
/* Each of them brought one token or more. Otherwise there are more events than tokens,
 * and nobody knows which is which. */
bool stamps_are_tokens(const struct stamps *s, const struct vt_load_record *q);
/* Tokens of the i-th one, spread evenly: events do not say. */
uint32_t stamps_tokens(const struct stamps *s, const struct vt_load_record *q,
                       uint32_t i);

#endif
