/* convert.c - the table of formats and how a file's format is recognised. */
#include <stdlib.h>

#include "trace/convert/convert.h"
#include "trace/formats/formats.h"

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
    {"aiperf", .report = convert_read_aiperf},
    {"otlp", .read = vt_records_load},
    {"azure", .read = convert_read_workload},
    {"mooncake", .read = convert_read_workload},
};

const char *const vt_convert_readers[] = {
    "vtwin",      "vcr",    "tracev2", "csv",   "guidellm", "inference-perf",
    "vllm-bench", "aiperf", "otlp",    "azure", "mooncake", NULL};
const char *const vt_convert_writers[] = {"vtwin", "vcr",           "tracev2", "csv",
                                          "vidur", "llmservingsim", NULL};

/* ---- recognition ------------------------------------------------------ */

/* Files that lie beside reports, or that other commands read: what to give instead. The
 * first that has all of its keys. */
static const struct {
    const char *key, *and_key;
    const char *why;
} others[] = {
    {"load_summary", NULL,
     "a summary of inference-perf; what single requests took is in "
     "per_request_lifecycle_metrics.json (report: request_lifecycle: per_request)"},
    {"aiperf_version", NULL,
     "a summary of AIPerf; what single requests took is in profile_export.jsonl"},
    {"metadata", "payload",
     "AIPerf's raw payloads; what single requests took is in profile_export.jsonl"},
    {"req_per_s", "ttft_ms",
     "a summary of vtwin simulate; single requests are in requests.jsonl"},
    {"sched_ms", NULL, "a step log, which `vtwin fit` reads"},
    {"ts_ms", "scheduler",
     "scheduler statistics, which `vtwin fit` reads beside their trace"},
    {"sock", "dir", "a log of messages; `vtwin record --trace-out` writes a trace"},
    {"name", "model", "a profile, which is what a fit makes"},
};

static const char *what_else(const struct vt_node *root)
{
    for (size_t i = 0; i < VT_COUNT(others); i++)
        if (vt_get(root, others[i].key) &&
            (!others[i].and_key || vt_get(root, others[i].and_key)))
            return others[i].why;
    return NULL;
}

const char *convert_recognise_tree(const struct vt_node *root, const char **why)
{
    if (root->kind == VT_LIST)
        return root->n == 0 || vt_get(&root->u.item[0], "start_time") ? "inference-perf"
                                                                      : NULL;
    if (root->kind != VT_MAP || (*why = what_else(root)))
        return NULL;
    if (vt_get(root, "resourceSpans"))
        return "otlp";
    if (vt_get(root, "benchmarks"))
        return "guidellm";
    if (vt_get(root, "ttfts") || vt_get(root, "mean_ttft_ms") ||
        vt_get(root, "input_lens"))
        return "vllm-bench";
    if (vt_get(root, "metadata") && vt_get(root, "metrics"))
        return "aiperf";
    if (vt_get(root, "timestamp") && vt_get(root, "input_length"))
        return "mooncake";
    if (vt_get(root, "meta") || vt_get(root, "prompt_tokens"))
        return "vtwin";
    return NULL;
}

/* Of the first line, or of a report whose JSON spans lines. */
static const char *recognise_text(const char *path, const char *line, size_t len,
                                  const char **why)
{
    struct vt_arena scratch = {0};
    const struct vt_node *root;
    struct vt_err ignored;
    const char *name = NULL;
    size_t nulls = 0;

    if (strncmp(line, "request_id,client_id,", 21) == 0 ||
        strncmp(line, "trace_version", 13) == 0)
        return "tracev2";
    if (strncmp(line, "TIMESTAMP,ContextTokens,", 24) == 0)
        return "azure";
    if (line[0] != '{' && line[0] != '[' && memchr(line, ',', len))
        return "csv";
    if ((line[0] == '{' || line[0] == '[') &&
        vt_json_parse_report(&scratch, line, len, 1, &nulls, &root, &ignored) == VT_OK)
        name = convert_recognise_tree(root, why);
    if (!name && !*why &&
        vt_report_tree_load(&scratch, path, &nulls, &root, &ignored) == VT_OK)
        name = convert_recognise_tree(root, why);
    vt_arena_free(&scratch);
    return name;
}

int vt_convert_recognise(const char *path, const char **format, const char **why,
                         struct vt_err *err)
{
    struct trace_reader r = {0};
    int rc = vt_lines_open(&r.lines, path, err);

    *format = *why = NULL;
    if (rc != VT_OK)
        return rc;
    rc = trace_reader_next(&r, err);
    if (rc == VT_OK && !r.line)
        rc = vt_fail(err, VT_EINPUT, "%s: the file is empty", path);
    if (rc == VT_OK)
        *format = recognise_text(path, r.line, r.len, why);
    vt_lines_close(r.lines);
    return rc;
}

static int recognise(const char *path, const char **name, struct vt_err *err)
{
    const char *why;
    int rc = vt_convert_recognise(path, name, &why, err);

    if (rc == VT_OK && !*name)
        rc = vt_fail(err, VT_EINPUT, "%s: %s", path,
                     why ? why : "no format that can be converted; --from names one");
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

static const struct convert_format *format_named(const char *name)
{
    for (size_t i = 0; i < VT_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

/* *from: what the file is, or NULL to find out. On failure nothing is left to free. */
static int read_records(struct vt_records *r, const char *path, const char **from,
                        const struct vt_tokenizer *tokenizer, struct vt_err *err)
{
    const struct convert_from source = {path, tokenizer};
    const struct convert_format *f;
    const struct vt_node *root;
    struct vt_arena a = {0};
    size_t nulls = 0;
    int rc = *from ? VT_OK : recognise(path, from, err);

    if (rc != VT_OK)
        return rc;
    f = format_named(*from);
    if (!f || (!f->read && !f->report && !f->tree))
        return vt_fail(err, VT_EINPUT, "no reader for '%s'", *from);
    if (f->read && tokenizer)
        return vt_fail(err, VT_EINPUT,
                       "no prompts for a tokenizer in a file of format '%s'", *from);
    if (f->read)
        return f->read(r, path, err);
    if (f->report)
        return f->report(r, &source, err);
    if (!(rc = vt_report_tree_load(&a, path, &nulls, &root, err)) &&
        !(rc = records_init(r, path, err))) {
        r->n_nulls = nulls;
        r->meta.clock = VT_CLOCK_CLIENT; /* reports are written by load generators */
        rc = vt_within(err, f->tree(r, root, &source, err), "%s", path);
    }
    vt_arena_free(&a);
    if (rc != VT_OK)
        vt_records_free(r);
    return rc;
}

int vt_convert(const struct vt_convert *c, struct vt_converted *done,
               struct vt_err *err)
{
    const struct convert_format *to;
    struct vt_records r = {0};
    int rc;

    *done = (struct vt_converted){.from = c->from, .to = c->to};
    if (!done->to)
        done->to = format_of_name(c->out);
    to = format_named(done->to);
    if (!to || !to->write)
        return vt_fail(err, VT_EINPUT, "no writer for '%s'", done->to);
    if ((rc = read_records(&r, c->in, &done->from, c->tokenizer, err)))
        return rc;
    done->requests = r.n;
    done->skipped = r.n_skipped;
    done->nulls = r.n_nulls;
    rc = vt_within(err, to->write(&r, c->out, done, err), "%s", c->in);
    vt_records_free(&r);
    return rc;
}

/* ---- reports as workloads --------------------------------------------- */

/* One load of a report by way of the trace that it would be converted to, so that both
 * are the same to whoever reads them. Its first request arrives at 0. */
static int part_workload(struct vt_workload *w, const struct vt_records *r,
                         uint32_t part, const char *format, struct vt_err *err)
{
    struct vt_workload like = {0};
    struct vt_buf b = {0};
    struct vt_lines *lines;
    vt_ns first = -1;
    int rc;

    if (r->n_parts > 0) {
        like.arrivals = r->part[part].arrivals;
        like.concurrency = r->part[part].concurrency;
    }
    vt_trace_write_meta(&b, r->n_parts > 0 ? &like : NULL, &r->meta, format);
    for (size_t i = 0; i < r->n; i++) {
        struct vt_record q = r->rec[i];

        if (q.part != part)
            continue;
        if (first < 0)
            first = q.arrival_ns; /* sorted */
        q.arrival_ns -= q.arrival_ns >= 0 ? first : 0;
        vt_record_write(&b, &q, NULL);
    }
    rc =
        b.failed ? vt_nomem(err) : vt_lines_from(&lines, r->source, b.data, b.len, err);
    if (rc == VT_OK) {
        rc = trace_read(w, lines, err);
        w->n_unanswered += r->n_parts > 0 ? r->part[part].n_unanswered : 0;
        w->n_unanswered += r->n_parts <= 1 ? r->n_unanswered : 0;
        vt_lines_close(lines);
    }
    vt_buf_free(&b);
    return rc;
}

static bool has_requests(const struct vt_records *r, uint32_t part)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->rec[i].part == part)
            return true;
    return false;
}

int vt_report_load(struct vt_report *out, const char *path, struct vt_err *err)
{
    struct vt_records r = {0};
    uint32_t n_parts;
    int rc;

    *out = (struct vt_report){0};
    if ((rc = read_records(&r, path, &out->format, NULL, err)))
        return rc;
    n_parts = r.n_parts > 0 ? r.n_parts : 1;
    out->skipped = r.n_skipped;
    out->nulls = r.n_nulls;
    out->load = calloc(n_parts, sizeof(*out->load));
    if (!out->load)
        rc = vt_nomem(err);
    for (uint32_t i = 0; i < n_parts && rc == VT_OK; i++) {
        struct vt_report_part *to = &out->load[out->n];

        if (!has_requests(&r, i)) /* all of it failed */
            continue;
        rc = part_workload(&to->work, &r, i, out->format, err);
        if (rc == VT_OK)
            out->n++;
        if (rc == VT_OK && r.n_parts > 0)
            rc = vt_arena_text(&out->arena, r.part[i].name, &to->name, err);
    }
    vt_records_free(&r);
    if (rc != VT_OK)
        vt_report_free(out);
    return rc;
}

void vt_report_free(struct vt_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        vt_workload_free(&r->load[i].work);
    free(r->load);
    vt_arena_free(&r->arena);
    *r = (struct vt_report){0};
}
