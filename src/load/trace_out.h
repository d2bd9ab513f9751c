/* trace_out.h - what the prompts of a written trace have in common; private to load. */
#ifndef VT_LOAD_TRACE_OUT_H
#define VT_LOAD_TRACE_OUT_H

#include "load/load.h"
#include "trace/trace.h"

enum { CONTENTS_BLOCK = 16 };

struct session { /* of the run, as far as it is written */
    uint32_t turns;
    vt_ns ended;                       /* of the turn before */
    struct vt_record_segment *segment; /* in contents.arena */
    uint32_t n, cap;
    uint32_t prompt, output; /* tokens of the turn before */
};

struct contents {
    const struct vt_load_origin *o;
    struct vt_arena arena;
    struct vt_ids ids; /* kept for its memory */
    bool talks;        /* prompts repeat what was said: segments */
    bool by_blocks;    /* prompts are in the plan: hashes of their blocks */
};
void contents_open(struct contents *c, const struct vt_load_origin *o, bool talks);
void contents_close(struct contents *c);
/* Tells what out's prompt is made of. What it points to is in `scratch` or in
 * c->arena. */
int contents_set(struct contents *c, struct session *s, const struct vt_load_record *q,
                 struct vt_record *out, struct vt_arena *scratch,
                 struct vt_err *err) VT_MUST_CHECK;

#endif
