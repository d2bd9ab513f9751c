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
    /* Reads from the line in hand to the end. */
    int (*read)(struct trace_build *b, struct trace_reader *r, struct vt_err *err);
};

/* A column's integer in [lo, hi]. */
int trace_column_u32(const char *column, const char *text, uint32_t lo, uint32_t hi,
                     uint32_t *out, struct vt_err *err) VT_MUST_CHECK;

extern const struct trace_format trace_format_jsonl, trace_format_azure,
    trace_format_mooncake;

/* vt_trace_load() and vt_requests_load() over an open reader, which stays the
 * caller's. */
trace_file_reader trace_read, trace_read_requests;

#endif
