/* records.h - what the files that fill struct vt_records share; private to trace. */
#ifndef VT_TRACE_RECORDS_H
#define VT_TRACE_RECORDS_H

#include "trace/internal.h"

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

#endif
