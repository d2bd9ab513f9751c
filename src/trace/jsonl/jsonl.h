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

/* ---- records ---------------------------------------------------------- */

#define RECORDS_MAX_SUMMARY 1000000 /* gaps that one itl_summary may stand for */

/* Zeroes *r and copies the source's name. */
int records_init(struct vt_records *r, const char *source,
                 struct vt_err *err) VT_MUST_CHECK;
/* Appends a record with nothing stated. *out is good until the next one. */
int records_add(struct vt_records *r, struct vt_record **out,
                struct vt_err *err) VT_MUST_CHECK;
/* A copy in the arena; NULL: out of memory. */
const char *records_text(struct vt_records *r, const char *text);
/* A string field of a map, copied; NULL and absent leave *out as it was. */
int records_copy_str(struct vt_records *r, const struct vt_node *map, const char *key,
                     const char **out, struct vt_err *err) VT_MUST_CHECK;
/* Names records without an id, sorts by arrival, and states the concurrency where it
 * follows from arrivals and ends. An empty list is an error. */
int records_finish(struct vt_records *r, struct vt_err *err) VT_MUST_CHECK;

/* One request of a trace.jsonl line. Messages start with "line N: ". */
int records_read_row(struct vt_records *r, const struct vt_node *row,
                     struct vt_err *err) VT_MUST_CHECK;
/* The same with "meta" lines, which only the first may be. */
int records_read_line(struct vt_records *r, const struct vt_node *row, bool first,
                      struct vt_err *err) VT_MUST_CHECK;
/* vt_records_load() over an open reader, which stays the caller's. */
int records_read(struct vt_records *r, struct vt_lines *lines,
                 struct vt_err *err) VT_MUST_CHECK;

/* ---- steps ------------------------------------------------------------ */

/* vt_steps_load() over an open reader, which stays the caller's. */
int trace_read_steps(struct vt_steps *s, struct vt_lines *lines,
                     struct vt_err *err) VT_MUST_CHECK;
/* Appends the step that one line states. */
int trace_read_step(struct vt_steps *s, const struct vt_node *row,
                    struct vt_err *err) VT_MUST_CHECK;

#endif
