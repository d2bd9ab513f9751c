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

int trace_read(void *workload, struct vt_lines *lines, struct vt_err *err)
{
    struct trace_reader r = {.lines = lines, .name = vt_lines_name(lines)};
    const struct trace_format *format = NULL;
    const struct vt_node *first = NULL;
    struct vt_arena scratch = {0};
    struct trace_build b;
    int rc;

    if ((rc = trace_build_init(&b, workload, r.name, err)) ||
        (rc = trace_reader_next(&r, err)))
        return trace_build_fail(&b, rc);
    if (!r.line)
        return trace_build_fail(
            &b, vt_fail(err, VT_EINPUT, "%s: the file is empty", r.name));
    rc = vt_json_parse(&scratch, r.line, r.len, 1, &first, err);
    if (rc == VT_EINPUT) /* it may be CSV */
        first = NULL;
    for (size_t i = 0; rc != VT_ENOMEM && !format && i < VT_COUNT(formats); i++)
        if (formats[i]->recognise(r.line, r.len, first))
            format = formats[i];
    vt_arena_free(&scratch);
    if (rc == VT_ENOMEM)
        return trace_build_fail(&b, rc);
    if (!format)
        rc = vt_fail(err, VT_EINPUT,
                     "%s: line %u: not a trace: neither trace.jsonl nor Azure CSV nor "
                     "Mooncake JSONL",
                     r.name, r.number);
    else if (!(rc = format->read(&b, &r, err)))
        rc = vt_within(err, trace_build_finish(&b, err), "%s", r.name);
    return rc ? trace_build_fail(&b, rc) : VT_OK;
}

int vt_trace_load(struct vt_workload *w, const char *path, struct vt_err *err)
{
    return trace_load(w, path, trace_read, err);
}
