/* load.c - trace.jsonl as records: the meta line and the lines after it. */
#include "trace/jsonl/jsonl.h"

int records_copy_str(struct vt_records *r, const struct vt_node *map, const char *key,
                     const char **out, struct vt_err *err)
{
    const char *text = NULL;
    int rc = jsonl_get_str(map, key, &text, err);

    if (rc != VT_OK || !text)
        return rc;
    *out = records_text(r, text);
    return *out ? VT_OK : vt_nomem(err);
}

/* ---- meta ------------------------------------------------------------- */

static int read_meta(struct vt_records *r, const struct vt_node *meta,
                     struct vt_err *err)
{
    struct vt_meta *m = &r->meta;
    int rc;

    if (meta->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field 'meta' is not an object",
                       meta->line);
    rc = jsonl_get_limits(meta, m, err);
    if (rc == VT_OK)
        rc = records_copy_str(r, meta, "model", &m->model, err);
    if (rc == VT_OK)
        rc = records_copy_str(r, meta, "gpu", &m->gpu, err);
    if (rc == VT_OK)
        rc = records_copy_str(r, meta, "vllm_version", &m->vllm_version, err);
    if (rc == VT_OK)
        rc = records_copy_str(r, vt_get(meta, "workload"), "name", &m->workload_name,
                              err);
    return rc;
}

int records_read_line(struct vt_records *r, const struct vt_node *row, bool first,
                      struct vt_err *err)
{
    const struct vt_node *meta = vt_get(row, "meta");

    if (meta && first)
        return read_meta(r, meta, err);
    if (meta)
        return vt_fail(err, VT_EINPUT,
                       "line %u: 'meta' may only be on the first line (two traces in "
                       "one file?)",
                       row->line);
    return records_read_row(r, row, err);
}

/* The object after "meta":, without the line's own braces. */
static int keep_meta_text(struct vt_records *r, const struct trace_reader *in,
                          struct vt_err *err)
{
    const char *from = strchr(in->line, ':'), *to = strrchr(in->line, '}');

    if (!from || !to || to <= from)
        return VT_OK;
    for (from++; *from == ' ' || *from == '\t'; from++)
        ;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    r->meta_json = vt_arena_copy(&r->arena, from, (size_t)(to - from));
    return r->meta_json ? VT_OK : vt_nomem(err);
}

static int read_lines(struct vt_records *r, struct trace_reader *in, struct vt_err *err)
{
    struct vt_arena scratch = {0};
    bool first = true;
    int rc = trace_reader_next(in, err);

    while (rc == VT_OK && in->line) {
        const struct vt_node *row;

        rc = trace_reader_json(in, &scratch, &row, err);
        if (rc == VT_OK)
            rc = records_read_line(r, row, first, err);
        if (rc == VT_OK && first && row->n == 1 && vt_get(row, "meta"))
            rc = keep_meta_text(r, in, err);
        if (rc != VT_OK)
            rc = vt_within(err, rc, "%s", in->name);
        else
            rc = trace_reader_next(in, err);
        first = false;
    }
    vt_arena_free(&scratch);
    return rc;
}

int records_read(struct vt_records *r, struct vt_lines *lines, struct vt_err *err)
{
    struct trace_reader in = {.lines = lines, .name = vt_lines_name(lines)};
    int rc = records_init(r, in.name, err);

    if (rc == VT_OK)
        rc = read_lines(r, &in, err);
    if (rc == VT_OK)
        rc = vt_within(err, records_finish(r, err), "%s", in.name);
    if (rc != VT_OK)
        vt_records_free(r);
    return rc;
}

int vt_records_load(struct vt_records *r, const char *path, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_open(&lines, path, err);

    *r = (struct vt_records){0};
    if (rc != VT_OK)
        return rc;
    rc = records_read(r, lines, err);
    vt_lines_close(lines);
    return rc;
}
