/* jsonl.h - what the files that read trace.jsonl share.
 *
 * A field that is null counts as absent, and absent fields leave *out as it was.
 * Messages start with "line N: ". */
#ifndef VT_TRACE_JSONL_H
#define VT_TRACE_JSONL_H

#include "trace/internal.h"

int jsonl_get_u32(const struct vt_node *map, const char *key, uint32_t lo, uint32_t hi,
                  uint32_t *out, struct vt_err *err) VT_MUST_CHECK;
int jsonl_get_str(const struct vt_node *map, const char *key, const char **out,
                  struct vt_err *err) VT_MUST_CHECK;
int jsonl_get_ms(const struct vt_node *map, const char *key, vt_ns *out,
                 struct vt_err *err) VT_MUST_CHECK;
/* *out is NULL if absent. */
int jsonl_get_list(const struct vt_node *map, const char *key,
                   const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;
/* A string field, copied. */
int jsonl_copy_str(struct vt_arena *a, const struct vt_node *map, const char *key,
                   const char **out, struct vt_err *err) VT_MUST_CHECK;
int jsonl_bad_field(const struct vt_node *row, const char *key, const char *what,
                    struct vt_err *err);

/* Members of lists. */
bool jsonl_node_u32(const struct vt_node *n, uint32_t lo, uint32_t *out);
bool jsonl_node_ms(const struct vt_node *n, vt_ns *out);

/* ---- rows ------------------------------------------------------------- */

/* Whether the row is the meta line, which only the first may be. *out: its object, or
 * NULL. */
int jsonl_find_meta(const struct vt_node *row, bool first, const struct vt_node **out,
                    struct vt_err *err) VT_MUST_CHECK;
/* Fields that are absent leave *m as it was. */
int jsonl_read_meta(struct vt_meta *m, struct vt_arena *a, const struct vt_node *meta,
                    struct vt_err *err) VT_MUST_CHECK;

/* Whether that is why a request ended before it was done. */
bool jsonl_is_abort(const char *finish_reason);
/* A request that ended without a token leaves nothing to tell. */
bool jsonl_has_no_output(const struct vt_node *row);
/* Of one of those: whether it was given up, and was not just running at the end. */
bool jsonl_was_given_up(const struct vt_node *row);
/* One request. What the record points to is in the arena. `lean`: token ids are not
 * read, content is without names, and texts stay in the row's tree. */
int jsonl_read_row(struct vt_record *q, struct vt_arena *a, const struct vt_node *row,
                   bool lean, struct vt_err *err) VT_MUST_CHECK;

/* Appends the line that vllm-vcr would have written. */
void jsonl_write_vcr(struct vt_buf *b, const struct vt_record *q, uint32_t block_size);

/* ---- records ---------------------------------------------------------- */

#define RECORDS_MAX_SUMMARY 1000000 /* gaps that one itl_summary may stand for */

extern const struct vt_record records_nothing; /* a record with nothing stated */

/* Zeroes *r and copies the source's name. */
int records_init(struct vt_records *r, const char *source,
                 struct vt_err *err) VT_MUST_CHECK;
/* Appends a record with nothing stated. *out is good until the next one. */
int records_add(struct vt_records *r, struct vt_record **out,
                struct vt_err *err) VT_MUST_CHECK;
/* Counts a request that is left out since it failed or was aborted. */
void records_skip(struct vt_records *r, uint32_t part);
/* Names records without an id, sorts by arrival, and states the concurrency where it
 * follows from arrivals and ends. An empty list is an error. */
int records_finish(struct vt_records *r, struct vt_err *err) VT_MUST_CHECK;

/* One line of trace.jsonl: a request, or the meta line if it is the first. */
int records_read_line(struct vt_records *r, const struct vt_node *row, bool first,
                      struct vt_err *err) VT_MUST_CHECK;
/* vt_records_load() over an open reader, which stays the caller's. */
trace_file_reader records_read;

/* ---- steps ------------------------------------------------------------ */

/* vt_steps_load() over an open reader, which stays the caller's. */
trace_file_reader trace_read_steps;
/* vt_steps_from_stats() over an open reader. */
int trace_read_stats(struct vt_steps *out, struct vt_lines *lines,
                     const struct vt_workload *w, struct vt_err *err) VT_MUST_CHECK;
/* Appends the step that one line states. */
int trace_read_step(struct vt_steps *s, const struct vt_node *row,
                    struct vt_err *err) VT_MUST_CHECK;

#endif
