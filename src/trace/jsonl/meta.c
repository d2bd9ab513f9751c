/* meta.c - the first line of trace.jsonl: what was recorded, where, and under which
 * limits. */
#include "trace/jsonl/jsonl.h"

enum kind {
    TEXT,
    COUNT,
    SWITCH,
    NOTE, /* a text that recorders write and nobody reads back */
    SOURCE,
    CLOCK,
    WORKLOAD,
};

struct field {
    const char *key;
    enum kind kind;
    size_t offset; /* in struct vt_meta; source and workload are none of it */
};

#define FIELD(name, kind) {#name, kind, offsetof(struct vt_meta, name)}

/* In the order in which the twin writes them. */
static const struct field fields[] = {
    FIELD(gpu, TEXT),
    FIELD(tp, COUNT),
    FIELD(vllm_version, TEXT),
    FIELD(model, TEXT),
    {"source", SOURCE, 0},
    FIELD(clock, CLOCK),
    {"workload", WORKLOAD, 0},
    FIELD(num_gpu_blocks, COUNT),
    FIELD(block_size, COUNT),
    FIELD(max_num_seqs, COUNT),
    FIELD(max_num_batched_tokens, COUNT),
    FIELD(max_model_len, COUNT),
    FIELD(kv_cache_dtype, TEXT),
    FIELD(num_speculative_tokens, COUNT),
    FIELD(warmed_for, COUNT),
    FIELD(async_scheduling, SWITCH),
    FIELD(enable_prefix_caching, SWITCH),
};

/* And recorders, whose source is their clock. */
static const struct field recorded[] = {
    {"source", SOURCE, 0},
    FIELD(model, TEXT),
    FIELD(gpu, TEXT),
    FIELD(tp, COUNT),
    FIELD(vllm_version, TEXT),
    FIELD(config_hash, NOTE),
    FIELD(engine_config, NOTE),
    FIELD(block_size, COUNT),
    FIELD(num_gpu_blocks, COUNT),
    FIELD(max_num_seqs, COUNT),
    FIELD(max_num_batched_tokens, COUNT),
    FIELD(max_model_len, COUNT),
};

/* ---- clocks ------------------------------------------------------------ */

const char *const vt_clock_names[] = {"engine", "tap", "client", NULL};

const char *vt_clock_name(enum vt_clock c)
{
    return c == VT_CLOCK_UNSTATED ? "unstated" : vt_clock_names[c - VT_CLOCK_ENGINE];
}

enum vt_clock vt_clock_find(const char *name)
{
    for (int i = 0; vt_clock_names[i]; i++)
        if (strcmp(vt_clock_names[i], name) == 0)
            return (enum vt_clock)(VT_CLOCK_ENGINE + i);
    return VT_CLOCK_UNSTATED;
}

/* What wrote the trace, where that tells whose times it has. */
static enum vt_clock clock_of_source(const char *source)
{
    if (strcmp(source, "engine-step-log") == 0)
        return VT_CLOCK_ENGINE;
    if (strcmp(source, "bench") == 0)
        return VT_CLOCK_CLIENT;
    return vt_clock_find(source); /* a recorder writes "tap", some captures "client" */
}

static int read_clock(enum vt_clock *out, const struct vt_node *meta,
                      struct vt_err *err)
{
    const struct vt_node *stated = vt_get_non_null(meta, "clock");
    const struct vt_node *source = vt_get_non_null(meta, "source");
    const char *name = NULL;
    int rc;

    if (!stated) {
        if (source && source->kind == VT_STR)
            *out = clock_of_source(source->u.str);
        return VT_OK;
    }
    if ((rc = vt_get_str(meta, "clock", VT_REQUIRED, &name, err)))
        return rc;
    *out = vt_clock_find(name);
    if (*out == VT_CLOCK_UNSTATED)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'clock' is neither engine nor tap nor client",
                       stated->line);
    return VT_OK;
}

/* ---- reading ---------------------------------------------------------- */

int jsonl_find_meta(const struct vt_node *row, bool first, const struct vt_node **out,
                    struct vt_err *err)
{
    *out = vt_get(row, "meta");
    if (*out && !first)
        return vt_fail(err, VT_EINPUT,
                       "line %u: 'meta' may only be on the first line (two traces in "
                       "one file?)",
                       row->line);
    if (*out && (*out)->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field 'meta' is not an object",
                       (*out)->line);
    return VT_OK;
}

/* As vt_meta_write() is told by who simulates: "vtwin 0.2.0". */
static bool is_simulated(const struct vt_node *source)
{
    return source && source->kind == VT_STR && strncmp(source->u.str, "vtwin ", 6) == 0;
}

int jsonl_read_meta(struct vt_meta *m, struct vt_arena *a, const struct vt_node *meta,
                    struct vt_err *err)
{
    const struct vt_node *workload = vt_get(meta, "workload"),
                         *speculative = vt_get(meta, "speculative");
    bool on = false;
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(fields) && rc == VT_OK; i++) {
        const struct field *f = &fields[i];
        void *out = (char *)m + f->offset;

        if (f->kind == TEXT)
            rc = jsonl_copy_str(a, meta, f->key, out, err);
        else if (f->kind == COUNT)
            rc = jsonl_get_u32(meta, f->key, 1, INT32_MAX, out, err);
        else if (f->kind == SWITCH && vt_get_non_null(meta, f->key) &&
                 !(rc = vt_get_bool(meta, f->key, VT_REQUIRED, &on, err)))
            *(int *)out = on;
        else if (f->kind == CLOCK)
            rc = read_clock(out, meta, err);
    }
    m->simulated = is_simulated(vt_get_non_null(meta, "source"));
    /* As vLLM's own configuration nests it. */
    if (rc == VT_OK && speculative && speculative->kind == VT_MAP)
        rc = jsonl_get_u32(speculative, "num_speculative_tokens", 1, INT32_MAX,
                           &m->num_speculative_tokens, err);
    if (rc != VT_OK || !workload || workload->kind != VT_MAP)
        return rc;
    rc = jsonl_copy_str(a, workload, "name", &m->workload_name, err);
    return rc ? rc : jsonl_copy_str(a, workload, "kind", &m->workload_kind, err);
}

/* ---- writing ---------------------------------------------------------- */

/* The kind from which vt_trace_load() finds the same arrivals again. Rows do not say
 * who waited for whom in a tree: those come again when they came. */
static const char *kind_of(const struct vt_workload *w, const struct vt_meta *m)
{
    const char *kind = m->workload_kind ? m->workload_kind : w->meta.workload_kind;

    if (w->arrivals == VT_ARRIVALS_CLOSED)
        return "closed";
    if (w->arrivals == VT_ARRIVALS_SESSION && !w->forked)
        return "multiturn";
    if (!kind || strcmp(kind, "closed") == 0 || strcmp(kind, "multiturn") == 0)
        return "recorded";
    return kind;
}

struct line { /* what a meta line says; NULL: nothing of it */
    const struct vt_meta *meta;
    const char *source;
    const struct vt_workload *workload;
    const char *more;
};

/* What is not stated is left out. */
static void put_field(struct vt_jw *j, const struct field *f, const struct line *l)
{
    const void *at = (const char *)l->meta + f->offset;
    const struct vt_workload *w = l->workload;
    const char *text;

    switch (f->kind) {
    case TEXT:
    case NOTE:
        memcpy(&text, at, sizeof(text));
        if (text)
            vt_jw_str(j, f->key, text);
        break;
    case COUNT:
        if (*(const uint32_t *)at > 0)
            vt_jw_u64(j, f->key, *(const uint32_t *)at);
        break;
    case SWITCH:
        if (*(const int *)at >= 0)
            vt_jw_bool(j, f->key, *(const int *)at > 0);
        break;
    case SOURCE:
        if (l->source)
            vt_jw_str(j, f->key, l->source);
        break;
    case CLOCK:
        if (l->meta->clock != VT_CLOCK_UNSTATED)
            vt_jw_str(j, f->key, vt_clock_name(l->meta->clock));
        break;
    case WORKLOAD:
        if (!w)
            break;
        text = l->meta->workload_name ? l->meta->workload_name : w->meta.workload_name;
        vt_jw_map(j, "workload");
        if (text)
            vt_jw_str(j, "name", text);
        vt_jw_str(j, "kind", kind_of(w, l->meta));
        if (w->concurrency)
            vt_jw_u64(j, "concurrency", w->concurrency);
        vt_jw_u64(j, "seed", w->seed);
        vt_jw_end(j);
        break;
    }
}

static void put_line(struct vt_buf *b, const struct field *field, size_t n,
                     const struct line *l)
{
    struct vt_jw j;

    vt_jw_init(&j, b, NULL);
    vt_jw_map(&j, NULL);
    vt_jw_map(&j, "meta");
    for (size_t i = 0; i < n; i++)
        put_field(&j, &field[i], l);
    if (l->more)
        vt_buf_str(b, l->more);
    vt_jw_end(&j);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}

void vt_trace_write_meta(struct vt_buf *b, const struct vt_workload *w,
                         const struct vt_meta *m, const char *source)
{
    put_line(b, fields, VT_COUNT(fields),
             &(struct line){.meta = m, .source = source, .workload = w});
}

void vt_capture_write_meta(struct vt_buf *b, const struct vt_meta *m,
                           const char *source, const char *more)
{
    put_line(b, recorded, VT_COUNT(recorded),
             &(struct line){.meta = m, .source = source, .more = more});
}
