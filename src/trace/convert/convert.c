/* convert.c - the table of formats and how a file's format is recognised. */
#include "trace/convert/convert.h"

static const struct convert_format formats[] = {
    {"vtwin", .read = vt_records_load, .write = convert_write_trace},
    {"vcr", .read = vt_records_load, .write = convert_write_vcr},
    {"tracev2", .read = convert_read_tracev2, .write = convert_write_tracev2},
    {"csv", .read = convert_read_requests, .write = convert_write_requests},
    {"vidur", .write = convert_write_vidur},
    {"llmservingsim", .write = convert_write_llmservingsim},
    {"guidellm", .tree = convert_guidellm_tree},
    {"inference-perf", .tree = convert_lifecycle_tree},
    {"vllm-bench", .tree = convert_bench_tree},
    {"azure", .read = convert_read_workload},
    {"mooncake", .read = convert_read_workload},
};

const char *const vt_convert_readers[] = {
    "vtwin",          "vcr",        "tracev2", "csv",      "guidellm",
    "inference-perf", "vllm-bench", "azure",   "mooncake", NULL};
const char *const vt_convert_writers[] = {"vtwin", "vcr",           "tracev2", "csv",
                                          "vidur", "llmservingsim", NULL};

/* ---- recognition ------------------------------------------------------ */

const char *convert_recognise_tree(const struct vt_node *root)
{
    if (root->kind == VT_LIST)
        return root->n == 0 || vt_get(&root->u.item[0], "start_time") ? "inference-perf"
                                                                      : NULL;
    if (root->kind != VT_MAP)
        return NULL;
    if (vt_get(root, "benchmarks"))
        return "guidellm";
    if (vt_get(root, "ttfts") || vt_get(root, "mean_ttft_ms") ||
        vt_get(root, "input_lens"))
        return "vllm-bench";
    if (vt_get(root, "timestamp") && vt_get(root, "input_length"))
        return "mooncake";
    if (vt_get(root, "meta") || vt_get(root, "prompt_tokens"))
        return "vtwin";
    return NULL;
}

/* Of the first line, or of a report whose JSON spans lines. */
static const char *recognise_text(const char *path, const char *line, size_t len)
{
    struct vt_arena scratch = {0};
    const struct vt_node *root;
    struct vt_err ignored;
    const char *name = NULL;

    if (strncmp(line, "request_id,client_id,", 21) == 0 ||
        strncmp(line, "trace_version", 13) == 0)
        return "tracev2";
    if (strncmp(line, "TIMESTAMP,ContextTokens,", 24) == 0)
        return "azure";
    if (line[0] != '{' && line[0] != '[' && memchr(line, ',', len))
        return "csv";
    if ((line[0] == '{' || line[0] == '[') &&
        vt_json_parse(&scratch, line, len, 1, &root, &ignored) == VT_OK)
        name = convert_recognise_tree(root);
    if (!name && vt_tree_load(&scratch, path, &root, &ignored) == VT_OK)
        name = convert_recognise_tree(root);
    vt_arena_free(&scratch);
    return name;
}

static int recognise(const char *path, const char **name, struct vt_err *err)
{
    struct trace_reader r = {0};
    int rc = vt_lines_open(&r.lines, path, err);

    if (rc != VT_OK)
        return rc;
    rc = trace_reader_next(&r, err);
    if (rc == VT_OK && !r.line)
        rc = vt_fail(err, VT_EINPUT, "%s: the file is empty", path);
    if (rc == VT_OK) {
        *name = recognise_text(path, r.line, r.len);
        if (!*name)
            rc = vt_fail(err, VT_EINPUT,
                         "%s: no format that can be converted; --from names one", path);
    }
    vt_lines_close(r.lines);
    return rc;
}

static const char *format_of_name(const char *path)
{
    if (vt_is_named(path, ".csv"))
        return "csv";
    if (vt_ends_with(path, ".yaml") || vt_ends_with(path, ".yml"))
        return "tracev2";
    return "vtwin";
}

/* ---- conversion ------------------------------------------------------- */

int vt_convert(const struct vt_convert *c, struct vt_converted *done,
               struct vt_err *err)
{
    const struct convert_format *from = NULL, *to = NULL;
    const struct vt_node *root;
    struct vt_records r = {0};
    struct vt_arena a = {0};
    int rc = VT_OK;

    *done = (struct vt_converted){.from = c->from, .to = c->to};
    if (!done->from)
        rc = recognise(c->in, &done->from, err);
    if (rc != VT_OK)
        return rc;
    if (!done->to)
        done->to = format_of_name(c->out);
    for (size_t i = 0; i < VT_COUNT(formats); i++) {
        from = strcmp(formats[i].name, done->from) == 0 ? &formats[i] : from;
        to = strcmp(formats[i].name, done->to) == 0 ? &formats[i] : to;
    }
    if (!from || (!from->read && !from->tree))
        return vt_fail(err, VT_EINPUT, "no reader for '%s'", done->from);
    if (!to || !to->write)
        return vt_fail(err, VT_EINPUT, "no writer for '%s'", done->to);
    if (from->read)
        rc = from->read(&r, c->in, err);
    else if (!(rc = vt_tree_load(&a, c->in, &root, err)) &&
             !(rc = records_init(&r, c->in, err))) {
        r.meta.clock = VT_CLOCK_CLIENT; /* reports are written by load generators */
        rc = vt_within(err, from->tree(&r, root, err), "%s", c->in);
    }
    vt_arena_free(&a);
    if (rc == VT_OK) {
        done->requests = r.n;
        done->skipped = r.n_skipped;
        rc = vt_within(err, to->write(&r, c->out, done, err), "%s", c->in);
    }
    vt_records_free(&r);
    return rc;
}
