/* schema.h - drawing JSON by schema, in parts; private to schema*.c. */
#ifndef VT_HTTP_REPLY_SCHEMA_H
#define VT_HTTP_REPLY_SCHEMA_H

#include "http/reply/parts.h"

enum {
    SCHEMA_PARTS = 48,  /* schemas that hold for one value at a time */
    SCHEMA_DEPTH = 24,  /* of values, and of references from one to the next */
    SCHEMA_SHALLOW = 4, /* from this depth on only what must be is written */
    SCHEMA_VALUES = 4096,
    SCHEMA_BYTES = 1 << 16,
};

struct schema_draw {
    struct reply_forms *forms;
    struct vt_buf *b;
    const struct vt_node *root; /* what references start from */
    struct vt_rng rng;
    size_t limit;  /* of the buffer's length */
    uint32_t left; /* values that may still be written */
    bool simple;   /* only what must be is written, at any depth */
    bool failed;
};

/* All schemas that one value must fit: itself, what it refers to, all of allOf, and a
 * branch each of anyOf and oneOf. */
struct schema_view {
    struct schema_draw *d;
    const struct vt_node *part[SCHEMA_PARTS];
    uint32_t n;
};

enum schema_type {
    TYPE_NULL = 1,
    TYPE_BOOL = 2,
    TYPE_INTEGER = 4,
    TYPE_NUMBER = 8,
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64,
};

/* A value that fits all n schemas. */
void schema_value(struct schema_draw *d, const struct vt_node *const *schema,
                  uint32_t n, uint32_t depth);

/* Only what must be is written there. */
static inline bool schema_is_bare(const struct schema_draw *d, uint32_t depth)
{
    return d->simple || depth >= SCHEMA_SHALLOW;
}

/* ---- looking into a view: schema_view.c ------------------------ */

/* Counted as work; where there is too much of it, the draw has failed. */
void schema_spend(struct schema_draw *d, uint64_t work);
const struct vt_node *schema_look(struct schema_draw *d, const struct vt_node *map,
                                  const char *keyword);
/* Of a map or a list of strings, by a name of the client's. */
const struct vt_node *schema_child(struct schema_draw *d, const struct vt_node *parent,
                                   const char *name);
void schema_gather(struct schema_view *v, const struct vt_node *schema, uint32_t depth,
                   uint32_t hops);
/* The first part's value of that key; NULL: none has it. */
const struct vt_node *schema_get(const struct schema_view *v, const char *key);
/* The largest of a key's numbers, or the smallest; false: there is none. */
bool schema_bound(const struct schema_view *v, const char *key, bool most, double *out);
/* The same for counts, at most `limit`. */
uint32_t schema_count(const struct schema_view *v, const char *key, bool most,
                      uint32_t otherwise, uint32_t limit);
/* The sum of the types that a value may have. */
uint32_t schema_types(const struct schema_view *v);
uint32_t schema_type_of(const struct vt_node *value);
uint64_t schema_below(struct schema_draw *d, uint64_t n);

/* ---- scalars: schema_scalar.c ---------------------------------- */

void schema_string(struct schema_draw *d, const struct schema_view *v);
void schema_numeric(struct schema_draw *d, const struct schema_view *v, bool integer);
const char *schema_word(struct schema_draw *d);

#endif
