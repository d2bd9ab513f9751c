/* write.c - trace.jsonl and steps.jsonl, in the field order of the captures. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "trace/jsonl/jsonl.h"

/* ---- requests --------------------------------------------------------- */

enum field {
    ID,
    ARRIVAL,
    TOKENS,
    TIMINGS,
    CONTEXT,
    CONCURRENCY,
    QUEUE,
    CONTENT,
    CONTENT_HASHED,
    SESSION,
    SESSION_NUMBER,
    TOKEN_IDS,
    FINISH,
    INSTANCE,
    END,
};

static void put_timings(struct vt_jw *j, const struct vt_record *q)
{
    if (q->ttft_ns < 0)
        return;
    vt_jw_ms(j, "ttft_ms", q->ttft_ns);
    if (q->by_mean) {
        vt_jw_map(j, "itl_summary");
        vt_jw_ms(j, "mean_ms", q->gap[0]);
        vt_jw_u64(j, "count", q->n_gaps);
        vt_jw_end(j);
        return;
    }
    vt_jw_ms_list(j, "itl_ms", q->gap, q->n_gaps);
    if (q->gap_tokens)
        vt_jw_u32_list(j, "itl_tokens", q->gap_tokens, q->n_gaps);
}

static void put_segments(struct vt_jw *j, const struct vt_record *q)
{
    assert(!q->run || !q->segment);
    vt_jw_list(j, "segments");
    for (uint32_t i = 0; i < q->n_segments; i++) {
        uint32_t tokens = q->run ? q->run[i].tokens : q->segment[i].tokens;
        uint32_t offset = q->run ? q->run[i].offset : q->segment[i].offset;

        vt_jw_list(j, NULL);
        if (q->run) /* a name that reads back as the same content, so that a written
                       trace shares what the original shared */
            vt_jw_printf(j, NULL, "\"#%016" PRIx64 "\"", q->run[i].content);
        else
            vt_jw_str(j, NULL, q->segment[i].name);
        vt_jw_u64(j, NULL, tokens);
        if (offset)
            vt_jw_u64(j, NULL, offset);
        vt_jw_end(j);
    }
    vt_jw_end(j);
}

static void put_hashes(struct vt_jw *j, const uint64_t *v, uint32_t n)
{
    vt_jw_list(j, "block_hashes");
    for (uint32_t i = 0; i < n; i++)
        vt_jw_u64(j, NULL, v[i]);
    vt_jw_end(j);
}

/* FNV-1a over the hash before and the block's tokens, as vllm-vcr chains them. Tokens
 * that are known by content only get numbers that stand for it. */
static void put_hashed_segments(struct vt_jw *j, const struct vt_record *q,
                                uint32_t block_size)
{
    uint64_t h = vt_fnv(VT_FNV_BASIS, VT_FNV_BASIS, 8);
    uint32_t filled = 0;

    if (q->n_segments == 0 || q->prompt_tokens < block_size)
        return;
    vt_jw_list(j, "block_hashes");
    for (uint32_t i = 0; i < q->n_segments; i++) {
        const struct vt_record_segment *s = &q->segment[i];
        uint64_t content = vt_content_named(s->name, strlen(s->name));

        for (uint32_t k = 0; k < s->tokens; k++) {
            h = vt_fnv(h, vt_hash2(content, (uint64_t)s->offset + k), 4);
            if (++filled < block_size)
                continue;
            vt_jw_u64(j, NULL, h);
            h = vt_fnv(VT_FNV_BASIS, h, 8);
            filled = 0;
        }
    }
    vt_jw_end(j);
}

/* What follows the session says how the request is to be served. */
static void put_session(struct vt_jw *j, const struct vt_record *q, bool is_number)
{
    if (q->session) {
        if (is_number)
            vt_jw_raw(j, "session", q->session, strlen(q->session));
        else
            vt_jw_str(j, "session", q->session);
        vt_jw_u64(j, "turn", q->turn);
        if (q->think_ns)
            vt_jw_ms(j, "think_ms", q->think_ns);
    }
    if (q->priority)
        vt_jw_i64(j, "priority", q->priority);
    if (q->lora)
        vt_jw_str(j, "lora", q->lora);
    if (q->max_tokens)
        vt_jw_u64(j, "max_tokens", q->max_tokens);
}

static void put_field(struct vt_jw *j, const struct vt_record *q, enum field f,
                      uint32_t block_size)
{
    switch (f) {
    case ID:
        vt_jw_str(j, "id", q->id);
        break;
    case ARRIVAL:
        if (q->arrival_ns >= 0)
            vt_jw_ms(j, "arrival_ms", q->arrival_ns);
        break;
    case TOKENS:
        vt_jw_u64(j, "prompt_tokens", q->prompt_tokens);
        vt_jw_u64(j, "cached_tokens", q->cached_tokens);
        vt_jw_u64(j, "output_tokens", q->output_tokens);
        break;
    case TIMINGS:
        put_timings(j, q);
        break;
    case CONTEXT:
        if (!q->gap_running || !q->gap_prefill)
            break;
        vt_jw_map(j, "itl_ctx");
        vt_jw_u32_list(j, "num_running", q->gap_running, q->n_gaps);
        vt_jw_u32_list(j, "prefill_tokens", q->gap_prefill, q->n_gaps);
        vt_jw_end(j);
        break;
    case CONCURRENCY:
        if (q->concurrency)
            vt_jw_u64(j, "concurrency", q->concurrency);
        if (q->queue_ns > 0)
            vt_jw_ms(j, "queue_ms", q->queue_ns);
        break;
    case QUEUE:
        vt_jw_u64(j, "concurrency", q->concurrency);
        if (q->queue_ns >= 0)
            vt_jw_ms(j, "queue_ms", q->queue_ns);
        if (q->preemptions)
            vt_jw_u64(j, "preemptions", q->preemptions);
        break;
    case CONTENT:
        if (q->n_segments > 0)
            put_segments(j, q);
        else if (q->n_block_hashes > 0)
            put_hashes(j, q->block_hash, q->n_block_hashes);
        break;
    case CONTENT_HASHED:
        if (q->n_block_hashes > 0)
            put_hashes(j, q->block_hash, q->n_block_hashes);
        else
            put_hashed_segments(j, q, block_size);
        break;
    case SESSION:
    case SESSION_NUMBER:
        put_session(j, q, f == SESSION_NUMBER);
        break;
    case TOKEN_IDS:
        if (q->token_id)
            vt_jw_u32_list(j, "output_token_ids", q->token_id, q->output_tokens);
        break;
    case FINISH:
        if (q->finish_reason)
            vt_jw_str(j, "finish_reason", q->finish_reason);
        break;
    case INSTANCE:
        if (q->instance)
            vt_jw_u64(j, "instance", *q->instance);
        break;
    case END:
        break;
    }
}

static void put_row(struct vt_buf *b, const struct vt_record *q,
                    const enum field *order, uint32_t block_size, const char *more)
{
    struct vt_jw j;

    vt_jw_init(&j, b, NULL);
    vt_jw_map(&j, NULL);
    for (; *order != END; order++)
        put_field(&j, q, *order, block_size);
    if (more)
        vt_buf_str(b, more);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}

void vt_record_write(struct vt_buf *b, const struct vt_record *q, const char *more)
{
    static const enum field order[] = {ID,          ARRIVAL, TOKENS,  TIMINGS,
                                       CONCURRENCY, CONTEXT, CONTENT, SESSION,
                                       TOKEN_IDS,   FINISH,  END};

    put_row(b, q, order, 0, more);
}

void jsonl_write_vcr(struct vt_buf *b, const struct vt_record *q, uint32_t block_size)
{
    static const enum field order[] = {TOKENS,    TIMINGS, CONCURRENCY,
                                       ARRIVAL,   CONTEXT, CONTENT_HASHED,
                                       TOKEN_IDS, FINISH,  END};
    struct vt_record stated = *q;

    stated.concurrency = q->concurrency ? q->concurrency : 1;
    put_row(b, &stated, order, block_size, NULL);
}

struct vt_record vt_record_of(const struct vt_served *s)
{
    const struct vt_work *w = s->req;

    return (struct vt_record){
        .id = w->id,
        .arrival_ns = s->arrival_ns,
        .ttft_ns = s->ttft_ns,
        .prompt_tokens = w->prompt_tokens,
        .cached_tokens = s->cached_tokens,
        .output_tokens = s->output_tokens,
        .concurrency = s->concurrency,
        .max_tokens = w->max_tokens > s->output_tokens ? w->max_tokens : 0,
        .n_gaps = s->n_gaps,
        .gap = s->gap,
        .gap_running = s->gap_running,
        .gap_prefill = s->gap_prefill,
        .run = w->n_segments > 0 ? &s->workload->segment[w->first_segment] : NULL,
        .n_segments = w->n_segments,
        .turn = w->turn,
        .think_ns = w->think_ns,
        .priority = w->priority,
        .lora = w->lora,
        .finish_reason = s->finish_reason,
        .preemptions = s->preemptions,
        .queue_ns = s->queue_ns,
        .instance = s->instance,
    };
}

void vt_trace_write(struct vt_buf *b, const struct vt_served *s)
{
    static const enum field order[] = {ID,      ARRIVAL,  TOKENS,  TIMINGS,
                                       CONTEXT, QUEUE,    CONTENT, SESSION_NUMBER,
                                       FINISH,  INSTANCE, END};
    struct vt_record q = vt_record_of(s);
    char session[16];

    for (uint32_t i = 0; s->gap_tokens && i < s->n_gaps; i++)
        if (s->gap_tokens[i] != 1)
            q.gap_tokens = s->gap_tokens;
    if (s->req->session != VT_NO_TURN) {
        snprintf(session, sizeof(session), "%u", s->req->session);
        q.session = session;
    }
    put_row(b, &q, order, 0, NULL);
}

/* ---- steps ------------------------------------------------------------ */

void vt_steps_write(struct vt_buf *b, const struct vt_step_line *s)
{
    struct vt_jw j;

    vt_jw_init(&j, b, NULL);
    vt_jw_map(&j, NULL);
    vt_jw_u64(&j, "step", s->step);
    vt_jw_ms(&j, "sched_ms", s->sched_ns);
    vt_jw_ms(&j, "sched_end_ms", s->sched_end_ns);
    vt_jw_ms(&j, "out_ms", s->out_ns);
    vt_jw_ms(&j, "done_ms", s->done_ns);
    vt_jw_u64(&j, "decodes", s->decodes);
    vt_jw_u64(&j, "decode_ctx", s->decode_ctx);
    vt_jw_list(&j, "prefill");
    for (uint32_t i = 0; i < s->n_prefill; i++) {
        vt_jw_list(&j, NULL);
        vt_jw_str(&j, NULL, s->prefill[i].id);
        vt_jw_u64(&j, NULL, s->prefill[i].computed);
        vt_jw_u64(&j, NULL, s->prefill[i].tokens);
        vt_jw_u64(&j, NULL, s->prefill[i].prompt_tokens);
        vt_jw_end(&j);
    }
    vt_jw_end(&j);
    vt_jw_u64(&j, "waiting", s->waiting);
    vt_jw_u64(&j, "running", s->running);
    vt_jw_f64(&j, "kv_usage", round(s->kv_usage * 1e5) / 1e5);
    vt_jw_list(&j, "preempted");
    for (uint32_t i = 0; i < s->n_preempted; i++)
        vt_jw_str(&j, NULL, s->preempted[i]);
    vt_jw_end(&j);
    if (s->instance)
        vt_jw_u64(&j, "instance", *s->instance);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}
