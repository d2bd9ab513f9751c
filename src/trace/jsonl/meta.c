/* meta.c - the first line of trace.jsonl: what was recorded, where, and under which
 * limits. */
#include "trace/jsonl/jsonl.h"

enum kind { TEXT, NOTE, COUNT, SWITCH }; /* a note is a text that is not read back */

struct field {
    const char *key;
    enum kind kind;
    size_t offset; /* in struct vt_meta */
};

enum {
    GPU,
    TP,
    VLLM_VERSION,
    MODEL,
    CONFIG_HASH,
    ENGINE_CONFIG,
    NUM_GPU_BLOCKS,
    BLOCK_SIZE,
    MAX_NUM_SEQS,
    MAX_NUM_BATCHED_TOKENS,
    MAX_MODEL_LEN,
    ASYNC_SCHEDULING,
    ENABLE_PREFIX_CACHING,
    SOURCE, /* these two are none of struct vt_meta's */
    WORKLOAD,
};

#define FIELD(name, kind) {#name, kind, offsetof(struct vt_meta, name)}

static const struct field fields[] = {
    [GPU] = FIELD(gpu, TEXT),
    [TP] = FIELD(tp, COUNT),
    [VLLM_VERSION] = FIELD(vllm_version, TEXT),
    [MODEL] = FIELD(model, TEXT),
    [CONFIG_HASH] = FIELD(config_hash, NOTE),
    [ENGINE_CONFIG] = FIELD(engine_config, NOTE),
    [NUM_GPU_BLOCKS] = FIELD(num_gpu_blocks, COUNT),
    [BLOCK_SIZE] = FIELD(block_size, COUNT),
    [MAX_NUM_SEQS] = FIELD(max_num_seqs, COUNT),
    [MAX_NUM_BATCHED_TOKENS] = FIELD(max_num_batched_tokens, COUNT),
    [MAX_MODEL_LEN] = FIELD(max_model_len, COUNT),
    [ASYNC_SCHEDULING] = FIELD(async_scheduling, SWITCH),
    [ENABLE_PREFIX_CACHING] = FIELD(enable_prefix_caching, SWITCH),
};

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

static int read_switch(const struct vt_node *map, const char *key, int *out,
                       struct vt_err *err)
{
    bool v = false;
    int rc;

    if (!jsonl_field(map, key))
        return VT_OK;
    rc = vt_get_bool(map, key, VT_REQUIRED, &v, err);
    if (rc == VT_OK)
        *out = v;
    return rc;
}

int jsonl_read_meta(struct vt_meta *m, struct vt_arena *a, const struct vt_node *meta,
                    struct vt_err *err)
{
    const struct vt_node *workload = vt_get(meta, "workload");
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(fields) && rc == VT_OK; i++) {
        const struct field *f = &fields[i];
        void *out = (char *)m + f->offset;

        if (f->kind == TEXT)
            rc = jsonl_copy_str(a, meta, f->key, out, err);
        else if (f->kind == COUNT)
            rc = jsonl_get_u32(meta, f->key, 1, INT32_MAX, out, err);
        else if (f->kind == SWITCH)
            rc = read_switch(meta, f->key, out, err);
    }
    if (rc != VT_OK || !workload || workload->kind != VT_MAP)
        return rc;
    rc = jsonl_copy_str(a, workload, "name", &m->workload_name, err);
    return rc ? rc : jsonl_copy_str(a, workload, "kind", &m->workload_kind, err);
}

/* ---- writing ---------------------------------------------------------- */

/* The kind from which vt_trace_load() finds the same arrivals again. */
static const char *kind_of(const struct vt_workload *w, const struct vt_meta *m)
{
    const char *kind = m->workload_kind ? m->workload_kind : w->meta.workload_kind;

    if (w->arrivals == VT_ARRIVALS_CLOSED)
        return "closed";
    if (w->arrivals == VT_ARRIVALS_SESSION)
        return "multiturn";
    if (!kind || strcmp(kind, "closed") == 0 || strcmp(kind, "multiturn") == 0)
        return "recorded";
    return kind;
}

static void put_workload(struct vt_jw *j, const struct vt_workload *w,
                         const struct vt_meta *m)
{
    const char *name = m->workload_name ? m->workload_name : w->meta.workload_name;

    vt_jw_map(j, "workload");
    if (name)
        vt_jw_str(j, "name", name);
    vt_jw_str(j, "kind", kind_of(w, m));
    if (w->concurrency)
        vt_jw_u64(j, "concurrency", w->concurrency);
    vt_jw_u64(j, "seed", w->seed);
    vt_jw_end(j);
}

/* What is not stated is left out. */
static void put_field(struct vt_jw *j, const struct field *f, const struct vt_meta *m)
{
    const void *at = (const char *)m + f->offset;
    const char *text;

    if (f->kind == TEXT || f->kind == NOTE) {
        memcpy(&text, at, sizeof(text));
        if (text)
            vt_jw_str(j, f->key, text);
    } else if (f->kind == COUNT && *(const uint32_t *)at > 0) {
        vt_jw_u64(j, f->key, *(const uint32_t *)at);
    } else if (f->kind == SWITCH && *(const int *)at >= 0) {
        vt_jw_bool(j, f->key, *(const int *)at > 0);
    }
}

enum { END = -1 };

static void put_meta(struct vt_buf *b, const int *order, const struct vt_meta *m,
                     const char *source, const struct vt_workload *w, const char *more)
{
    struct vt_jw j;

    vt_jw_init(&j, b, NULL);
    vt_jw_map(&j, NULL);
    vt_jw_map(&j, "meta");
    for (; *order != END; order++) {
        if (*order == SOURCE && source)
            vt_jw_str(&j, "source", source);
        else if (*order == WORKLOAD && w)
            put_workload(&j, w, m);
        else if (*order < SOURCE)
            put_field(&j, &fields[*order], m);
    }
    if (more)
        vt_buf_str(b, more);
    vt_jw_end(&j);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}

void vt_trace_write_meta(struct vt_buf *b, const struct vt_workload *w,
                         const struct vt_meta *m, const char *source)
{
    static const int order[] = {GPU,
                                TP,
                                VLLM_VERSION,
                                MODEL,
                                SOURCE,
                                WORKLOAD,
                                NUM_GPU_BLOCKS,
                                BLOCK_SIZE,
                                MAX_NUM_SEQS,
                                MAX_NUM_BATCHED_TOKENS,
                                MAX_MODEL_LEN,
                                ASYNC_SCHEDULING,
                                ENABLE_PREFIX_CACHING,
                                END};

    put_meta(b, order, m, source, w, NULL);
}

void vt_capture_write_meta(struct vt_buf *b, const struct vt_meta *m,
                           const char *source, const char *more)
{
    static const int order[] = {SOURCE,
                                MODEL,
                                GPU,
                                TP,
                                VLLM_VERSION,
                                CONFIG_HASH,
                                ENGINE_CONFIG,
                                BLOCK_SIZE,
                                NUM_GPU_BLOCKS,
                                MAX_NUM_SEQS,
                                MAX_NUM_BATCHED_TOKENS,
                                MAX_MODEL_LEN,
                                END};

    put_meta(b, order, m, source, NULL, more);
}
