/* formats.h - the formats that a workload is read from, by the first line of the file.
 */
#ifndef VT_TRACE_FORMATS_H
#define VT_TRACE_FORMATS_H

#include "trace/internal.h"

/* What is asked of one format. */
struct trace_format {
    const char *name;
    /* first: the first line's tree if it is one JSON value, else NULL. */
    bool (*recognise)(const char *line, size_t len, const struct vt_node *first);
    /* Reads from the line in hand to the end, or until b has enough: then it is called
     * again. */
    int (*read)(struct trace_build *b, struct trace_reader *r, void *state,
                struct vt_err *err);
    size_t state_size; /* of what it keeps between calls; zeroed before the first */
};

enum trace_rows { TRACE_ROWS_TRACE, TRACE_ROWS_REQUESTS };
/* The rows of a file; the first line tells the format of a trace. *out is owned by the
 * caller whatever happens, NULL being fine. */
int trace_file_open(struct trace_feed **out, struct vt_workload *w, const char *path,
                    enum trace_rows rows, struct vt_err *err) VT_MUST_CHECK;

/* A column's integer in [lo, hi]. */
int trace_column_u32(const char *column, const char *text, uint32_t lo, uint32_t hi,
                     uint32_t *out, struct vt_err *err) VT_MUST_CHECK;

extern const struct trace_format trace_format_jsonl, trace_format_azure,
    trace_format_mooncake, trace_format_weka, trace_format_requests;

/* vt_trace_load() and vt_requests_load() over an open reader, which stays the
 * caller's. */
trace_file_reader trace_read, trace_read_requests;

#endif
