/* jsonl.h - what the files that read trace.jsonl share.
 *
 * A field that is null counts as absent, and absent fields leave *out as it was.
 * Messages start with "line N: ". */
#ifndef VT_TRACE_JSONL_H
#define VT_TRACE_JSONL_H

#include "trace/internal.h"

struct jsonl { /* the file being read */
    struct trace_build *b;
    uint32_t block_size; /* behind block_hashes */
    size_t row;          /* 0-based; skipped ones count */
};

const struct vt_node *jsonl_field(const struct vt_node *map, const char *key);
int jsonl_get_u32(const struct vt_node *map, const char *key, uint32_t lo, uint32_t hi,
                  uint32_t *out, struct vt_err *err) VT_MUST_CHECK;
int jsonl_get_str(const struct vt_node *map, const char *key, const char **out,
                  struct vt_err *err) VT_MUST_CHECK;
int jsonl_get_ms(const struct vt_node *map, const char *key, vt_ns *out,
                 struct vt_err *err) VT_MUST_CHECK;
/* *out is NULL if absent. */
int jsonl_get_list(const struct vt_node *map, const char *key,
                   const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;
/* The engine's limits of a meta line, but for its switches. */
int jsonl_get_limits(const struct vt_node *meta, struct vt_meta *m,
                     struct vt_err *err) VT_MUST_CHECK;
int jsonl_bad_field(const struct vt_node *row, const char *key, const char *what,
                    struct vt_err *err);

/* Members of lists. */
bool jsonl_node_u32(const struct vt_node *n, uint32_t lo, uint32_t *out);
bool jsonl_node_ms(const struct vt_node *n, vt_ns *out);

/* Timings of the request last added. */
int jsonl_read_timings(struct jsonl *f, const struct vt_node *row,
                       uint32_t cached_tokens, struct vt_err *err) VT_MUST_CHECK;

#endif
