/* formats.c - choosing a trace's format. */
#include "trace/formats/formats.h"

/* To add a format: write <name>.c, add a row here, describe it in
 * docs/trace-format.md and add a case to tests/trace/test_trace_load.c. The first
 * that recognises the first line reads the file. */
static const struct trace_format *const formats[] = {
    &trace_format_azure,
    &trace_format_mooncake,
    &trace_format_jsonl,
};

/* *out is NULL if no format recognises the line in hand. */
static int format_find(const struct trace_reader *r, const struct trace_format **out,
                       struct vt_err *err)
{
    struct vt_arena scratch = {0};
    const struct vt_node *first = NULL;
    int rc = vt_json_parse(&scratch, r->line, r->len, 1, &first, err);

    *out = NULL;
    if (rc == VT_EINPUT) { /* it may be CSV */
        first = NULL;
        rc = VT_OK;
    }
    for (size_t i = 0; i < VT_COUNT(formats) && rc == VT_OK && !*out; i++)
        if (formats[i]->recognise(r->line, r->len, first))
            *out = formats[i];
    vt_arena_free(&scratch);
    return rc;
}

static int read_format(struct trace_build *b, struct trace_reader *r,
                       struct vt_err *err)
{
    const struct trace_format *format;
    int rc = trace_reader_next(r, err);

    if (rc != VT_OK)
        return rc;
    if (!r->line)
        return vt_fail(err, VT_EINPUT, "%s: the file is empty", r->name);
    rc = format_find(r, &format, err);
    if (rc != VT_OK)
        return rc;
    if (!format)
        return vt_fail(
            err, VT_EINPUT,
            "%s: line %u: not a trace: neither trace.jsonl nor Azure CSV nor "
            "Mooncake JSONL",
            r->name, r->number);
    rc = format->read(b, r, err);
    if (rc == VT_OK)
        rc = vt_within(err, trace_build_finish(b, err), "%s", r->name);
    return rc;
}

int trace_read(struct vt_workload *w, struct vt_lines *lines, struct vt_err *err)
{
    struct trace_reader r = {.lines = lines, .name = vt_lines_name(lines)};
    struct trace_build b;
    int rc = trace_build_init(&b, w, r.name, err);

    if (rc == VT_OK)
        rc = read_format(&b, &r, err);
    return rc == VT_OK ? VT_OK : trace_build_fail(&b, rc);
}

int vt_trace_load(struct vt_workload *w, const char *path, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_open(&lines, path, err);

    if (rc != VT_OK)
        return rc;
    rc = trace_read(w, lines, err);
    vt_lines_close(lines);
    return rc;
}
