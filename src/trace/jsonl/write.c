/* write.c - trace.jsonl and steps.jsonl, in the field order of the captures.
 *
 * Content ids are written as names ("#" and 16 hex digits) that read back as the same
 * ids, so a written trace shares what the original shared. */
#include <math.h>

#include "trace/jsonl/jsonl.h"

static void put_key(struct vt_buf *b, const char *key)
{
    if (b->len > 0 && b->data[b->len - 1] != '{')
        vt_buf_char(b, ',');
    vt_buf_char(b, '"');
    vt_buf_str(b, key);
    vt_buf_add(b, "\":", 2);
}

static void put_u64(struct vt_buf *b, const char *key, uint64_t v)
{
    put_key(b, key);
    vt_buf_u64(b, v);
}

static void put_ms(struct vt_buf *b, const char *key, vt_ns t)
{
    put_key(b, key);
    vt_buf_ms(b, t);
}

static void put_str(struct vt_buf *b, const char *key, const char *text)
{
    put_key(b, key);
    vt_buf_json_str(b, text, strlen(text));
}

/* ---- meta ------------------------------------------------------------- */

static void put_stated_str(struct vt_buf *b, const char *key, const char *text)
{
    if (text)
        put_str(b, key, text);
}

static void put_stated_u32(struct vt_buf *b, const char *key, uint32_t v)
{
    if (v)
        put_u64(b, key, v);
}

static void put_stated_bool(struct vt_buf *b, const char *key, int v)
{
    if (v < 0)
        return;
    put_key(b, key);
    vt_buf_str(b, v ? "true" : "false");
}

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

static void put_workload(struct vt_buf *b, const struct vt_workload *w,
                         const struct vt_meta *m)
{
    put_key(b, "workload");
    vt_buf_char(b, '{');
    put_stated_str(b, "name",
                   m->workload_name ? m->workload_name : w->meta.workload_name);
    put_str(b, "kind", kind_of(w, m));
    put_stated_u32(b, "concurrency", w->concurrency);
    put_u64(b, "seed", w->seed);
    vt_buf_char(b, '}');
}

void vt_trace_write_meta(struct vt_buf *b, const struct vt_workload *w,
                         const struct vt_meta *m, const char *source)
{
    vt_buf_str(b, "{\"meta\":{");
    put_stated_str(b, "gpu", m->gpu);
    put_stated_u32(b, "tp", m->tp);
    put_stated_str(b, "vllm_version", m->vllm_version);
    put_stated_str(b, "model", m->model);
    put_stated_str(b, "source", source);
    put_workload(b, w, m);
    put_stated_u32(b, "num_gpu_blocks", m->num_gpu_blocks);
    put_stated_u32(b, "block_size", m->block_size);
    put_stated_u32(b, "max_num_seqs", m->max_num_seqs);
    put_stated_u32(b, "max_num_batched_tokens", m->max_num_batched_tokens);
    put_stated_u32(b, "max_model_len", m->max_model_len);
    put_stated_bool(b, "async_scheduling", m->async_scheduling);
    put_stated_bool(b, "enable_prefix_caching", m->enable_prefix_caching);
    vt_buf_str(b, "}}\n");
}

/* ---- requests --------------------------------------------------------- */

/* As vt_buf_ms(), into at most 24 bytes, for t >= 0. A trace is nearly all gaps: going
 * through the buffer for each takes twice as long. */
static char *format_ms(char *out, vt_ns t)
{
    uint64_t whole = (uint64_t)t / 1000000;
    uint32_t rest = (uint32_t)((uint64_t)t % 1000000);
    char digits[20];
    int n = 0;

    do
        digits[n++] = (char)('0' + whole % 10);
    while (whole /= 10);
    while (n > 0)
        *out++ = digits[--n];
    if (rest == 0)
        return out;
    out[0] = '.';
    for (int i = 6; i >= 1; i--, rest /= 10)
        out[i] = (char)('0' + rest % 10);
    for (out += 7; out[-1] == '0';)
        out--;
    return out;
}

static void put_ms_list(struct vt_buf *b, const char *key, const vt_ns *t, uint32_t n)
{
    char chunk[1024], *at = chunk;

    put_key(b, key);
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (chunk + sizeof(chunk) - at < 32) {
            vt_buf_add(b, chunk, (size_t)(at - chunk));
            at = chunk;
        }
        if (i > 0)
            *at++ = ',';
        at = format_ms(at, t[i]);
    }
    vt_buf_add(b, chunk, (size_t)(at - chunk));
    vt_buf_char(b, ']');
}

static void put_u32_list(struct vt_buf *b, const char *key, const uint32_t *v,
                         uint32_t n)
{
    put_key(b, key);
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        vt_buf_u64(b, v[i]);
    }
    vt_buf_char(b, ']');
}

static bool all_ones(const uint32_t *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i] != 1)
            return false;
    return true;
}

static void put_gaps(struct vt_buf *b, const struct vt_served *s)
{
    put_ms_list(b, "itl_ms", s->gap, s->n_gaps);
    if (s->gap_tokens && !all_ones(s->gap_tokens, s->n_gaps))
        put_u32_list(b, "itl_tokens", s->gap_tokens, s->n_gaps);
    if (!s->gap_running || !s->gap_prefill)
        return;
    put_key(b, "itl_ctx");
    vt_buf_char(b, '{');
    put_u32_list(b, "num_running", s->gap_running, s->n_gaps);
    put_u32_list(b, "prefill_tokens", s->gap_prefill, s->n_gaps);
    vt_buf_char(b, '}');
}

static void put_content(struct vt_buf *b, uint64_t content)
{
    char name[19] = "\"#";

    for (int i = 0; i < 16; i++)
        name[2 + i] = "0123456789abcdef"[content >> (60 - 4 * i) & 15];
    name[18] = '"';
    vt_buf_add(b, name, sizeof(name));
}

static void put_segments(struct vt_buf *b, const struct vt_workload *w,
                         const struct vt_work *q)
{
    put_key(b, "segments");
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < q->n_segments; i++) {
        const struct vt_segment *s = &w->segment[q->first_segment + i];

        vt_buf_str(b, i > 0 ? ",[" : "[");
        put_content(b, s->content);
        vt_buf_char(b, ',');
        vt_buf_u64(b, s->tokens);
        if (s->offset) {
            vt_buf_char(b, ',');
            vt_buf_u64(b, s->offset);
        }
        vt_buf_char(b, ']');
    }
    vt_buf_char(b, ']');
}

static void put_request_fields(struct vt_buf *b, const struct vt_served *s)
{
    const struct vt_work *q = s->req;

    if (q->session != VT_NO_TURN) {
        put_u64(b, "session", q->session);
        put_u64(b, "turn", q->turn);
        if (q->think_ns)
            put_ms(b, "think_ms", q->think_ns);
    }
    if (q->priority) {
        put_key(b, "priority");
        vt_buf_i64(b, q->priority);
    }
    if (q->max_tokens > s->output_tokens)
        put_u64(b, "max_tokens", q->max_tokens);
    put_stated_str(b, "finish_reason", s->finish_reason);
    if (s->instance)
        put_u64(b, "instance", *s->instance);
}

void vt_trace_write(struct vt_buf *b, const struct vt_served *s)
{
    const struct vt_work *q = s->req;

    vt_buf_char(b, '{');
    put_str(b, "id", q->id);
    put_ms(b, "arrival_ms", s->arrival_ns);
    put_u64(b, "prompt_tokens", q->prompt_tokens);
    put_u64(b, "cached_tokens", s->cached_tokens);
    put_u64(b, "output_tokens", s->output_tokens);
    put_ms(b, "ttft_ms", s->ttft_ns);
    put_gaps(b, s);
    put_u64(b, "concurrency", s->concurrency);
    put_ms(b, "queue_ms", s->queue_ns);
    put_stated_u32(b, "preemptions", s->preemptions);
    put_segments(b, s->workload, q);
    put_request_fields(b, s);
    vt_buf_str(b, "}\n");
}

/* ---- steps ------------------------------------------------------------ */

static void put_prefill(struct vt_buf *b, const struct vt_step_line *s)
{
    put_key(b, "prefill");
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < s->n_prefill; i++) {
        const struct vt_step_prefill *p = &s->prefill[i];

        vt_buf_str(b, i > 0 ? ",[" : "[");
        vt_buf_json_str(b, p->id, strlen(p->id));
        vt_buf_char(b, ',');
        vt_buf_u64(b, p->computed);
        vt_buf_char(b, ',');
        vt_buf_u64(b, p->tokens);
        vt_buf_char(b, ',');
        vt_buf_u64(b, p->prompt_tokens);
        vt_buf_char(b, ']');
    }
    vt_buf_char(b, ']');
}

static void put_preempted(struct vt_buf *b, const struct vt_step_line *s)
{
    put_key(b, "preempted");
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < s->n_preempted; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        vt_buf_json_str(b, s->preempted[i], strlen(s->preempted[i]));
    }
    vt_buf_char(b, ']');
}

void vt_steps_write(struct vt_buf *b, const struct vt_step_line *s)
{
    vt_buf_char(b, '{');
    put_u64(b, "step", s->step);
    put_ms(b, "sched_ms", s->sched_ns);
    put_ms(b, "sched_end_ms", s->sched_end_ns);
    put_ms(b, "out_ms", s->out_ns);
    put_ms(b, "done_ms", s->done_ns);
    put_u64(b, "decodes", s->decodes);
    put_u64(b, "decode_ctx", s->decode_ctx);
    put_prefill(b, s);
    put_u64(b, "waiting", s->waiting);
    put_u64(b, "running", s->running);
    put_key(b, "kv_usage");
    vt_buf_f64(b, round(s->kv_usage * 1e5) / 1e5);
    put_preempted(b, s);
    if (s->instance)
        put_u64(b, "instance", *s->instance);
    vt_buf_str(b, "}\n");
}
