/* codec.h - what frontend and engine say to each other, per line of vLLM; private to
 * wire.
 *
 * Readers borrow from the message and put lists into the caller's arena. Readers accept
 * arrays that are shorter (what is missing has its default) and longer than the newest
 * line (what is beyond is skipped); writers never write more than the line knows. */
#ifndef VT_WIRE_CODEC_H
#define VT_WIRE_CODEC_H

#include "base/base.h"
#include "wire/wire.h"

/* NULL: a span of nothing. */
static inline struct mp_span wire_text(const char *text)
{
    return (struct mp_span){(const uint8_t *)text, text ? strlen(text) : 0};
}

/* Bytes [from, to) of b; absent: there are none. */
static inline struct mp_span wire_part(const struct vt_buf *b, size_t from, size_t to)
{
    if (to <= from)
        return (struct mp_span){0};
    return (struct mp_span){(const uint8_t *)b->data + from, to - from};
}

/* ---- handshake: maps -------------------------------------------------- */

struct wire_hello { /* HELLO and READY */
    struct mp_span status;
    bool local, headless;
    struct mp_span config_hash; /* parallel_config_hash; absent: none */
};
int wire_hello_read(struct wire_hello *h, const void *bytes, size_t len,
                    struct vt_err *err) VT_MUST_CHECK;
/* The hash is written where it is present. */
void wire_hello_write(struct vt_buf *b, const struct wire_hello *h);

struct wire_init {
    struct mp_span *input, *output; /* characters; one of each for every client */
    uint32_t n_clients;
    struct mp_span coordinator_input, coordinator_output; /* absent: none */
    struct mp_span stats_address;   /* frontend_stats_publish_address; absent: none */
    struct mp_span parallel_config; /* value */
};
int wire_init_read(struct wire_init *w, struct vt_arena *a, const void *bytes,
                   size_t len, struct vt_err *err) VT_MUST_CHECK;
void wire_init_write(struct vt_buf *b, const struct wire_init *w);

/* The registration, EngineCoreReadyResponse: every key of every line. */
struct wire_ready {
    uint64_t max_model_len, num_gpu_blocks;
    uint32_t block_size;                         /* as in struct vt_kv_facts */
    uint32_t whole_block_size, state_block_size; /* the same; 0: none */
    const char *dtype, *vllm_version, *instance_id;
    uint32_t world_size, data_parallel_size, data_parallel_rank;
    uint32_t tensor_parallel_size, pipeline_parallel_size;
    uint32_t max_num_seqs, max_num_batched_tokens;
    uint64_t kv_cache_size_tokens;
    double kv_cache_max_concurrency;
    bool supports_lora, enable_sleep_mode;
    uint32_t max_loras;
    /* Where KV events are published; endpoint NULL: they are not. */
    const char *events_endpoint, *events_replay_endpoint, *events_topic;
};
/* What a line lacks is zero or NULL; texts are copied into the arena. */
int wire_ready_read(struct wire_ready *w, struct vt_arena *a, const void *bytes,
                    size_t len, struct vt_err *err) VT_MUST_CHECK;
void wire_ready_write(struct vt_buf *b, const struct wire_ready *r);

/* ---- frontend to engine ----------------------------------------------- */

enum { WIRE_ADD = 0, WIRE_ABORT = 1, WIRE_START_DP_WAVE = 2, WIRE_UTILITY = 3 };

enum { WIRE_REQUEST_FIELDS = 22 }; /* of the newest line */

struct wire_request {  /* EngineCoreRequest */
    uint32_t n_fields; /* that the message had */
    struct mp_span id;
    uint32_t *prompt; /* token ids; NULL: none given */
    uint32_t n_prompt;
    struct mp_span mm_features, sampling, pooling; /* values, as the next ones */
    double arrival_time;                           /* unix seconds */
    struct mp_span lora, cache_salt, prompt_embeds, prompt_is_token_ids;
    int64_t data_parallel_rank; /* -1: none */
    uint32_t client_index;
    int64_t current_wave;
    int32_t priority;
    struct mp_span trace_headers;
    bool resumable;
    struct mp_span external_id; /* characters; absent: none */
    struct mp_span reasoning_ended, reasoning_parser_kwargs; /* values */
    bool abort_immediately;
    struct mp_span session_id, kv_hints; /* values */
};
int wire_request_read(struct wire_request *w, struct vt_arena *a, const void *bytes,
                      size_t len, struct vt_err *err) VT_MUST_CHECK;
/* prompt_embeds, a tensor [dtype, [rows, columns], data]: as many tokens as rows. */
uint32_t wire_embedded_tokens(struct mp_span value);
/* vllm-vcr's hashes of a prompt's full blocks. */
void wire_block_hashes(uint64_t *hash, const uint32_t *prompt, uint32_t n_blocks,
                       uint32_t block_size);
/* n_fields of them. */
void wire_request_write(struct vt_buf *b, const struct wire_request *w);

struct wire_sampling { /* what of sampling_params has an effect here; defaults set */
    uint32_t n;
    double temperature;
    bool has_seed;
    int64_t seed;
    uint32_t max_tokens; /* UINT32_MAX: no limit of its own */
    uint32_t min_tokens;
    bool ignore_eos;
    int32_t logprobs, prompt_logprobs; /* -1: the whole vocabulary; INT32_MIN: none */
    int64_t eos_token_id;              /* -1: none */
    uint32_t *stop_token_ids;          /* of its own: not the EOS */
    uint32_t n_stop_token_ids;
    uint32_t *all_stop_token_ids; /* _all_stop_token_ids */
    uint32_t n_all_stop_token_ids;
    uint32_t *allowed_token_ids; /* NULL: all */
    uint32_t n_allowed_token_ids;
    uint32_t *forced_token_ids; /* trace_decode_token_ids; NULL: none */
    uint32_t n_forced_token_ids;
    bool skip_reading_prefix_cache;
    struct mp_span extra_args; /* value */
};
/* A nil value gives the defaults. */
int wire_sampling_read(struct wire_sampling *s, struct vt_arena *a,
                       struct mp_span value, struct vt_err *err) VT_MUST_CHECK;

struct wire_lora {
    struct mp_span name; /* characters; absent: the value is nil */
    int64_t id;
    struct mp_span path; /* characters; may be absent */
};
int wire_lora_read(struct wire_lora *l, struct mp_span value,
                   struct vt_err *err) VT_MUST_CHECK;

/* ABORT: request ids. */
int wire_abort_read(struct mp_span **id, uint32_t *n, struct vt_arena *a,
                    const void *bytes, size_t len, struct vt_err *err) VT_MUST_CHECK;
void wire_abort_write(struct vt_buf *b, struct mp_span *id, uint32_t n);

struct wire_call { /* UTILITY */
    uint32_t client_index;
    struct mp_span call_id; /* value: it goes back bit by bit */
    struct mp_span method;  /* characters */
    struct mp_span args;    /* value, an array */
};
int wire_call_read(struct wire_call *c, const void *bytes, size_t len,
                   struct vt_err *err) VT_MUST_CHECK;
void wire_call_write(struct vt_buf *b, const struct wire_call *c);

/* START_DP_WAVE; *exclude is -1 for nil. */
int wire_wave_read(int64_t *wave, int64_t *exclude, const void *bytes, size_t len,
                   struct vt_err *err) VT_MUST_CHECK;
void wire_wave_write(struct vt_buf *b, int64_t wave, int64_t exclude);

/* ---- engine to frontend ----------------------------------------------- */

enum wire_finish {
    WIRE_UNFINISHED = -1,
    WIRE_STOP,
    WIRE_LENGTH,
    WIRE_ABORTED,
    WIRE_ERROR,
    WIRE_REPETITION
};
const char *wire_finish_name(int finish); /* as trace.jsonl has it; NULL: none */

enum { WIRE_QUEUED = 1, WIRE_SCHEDULED = 2, WIRE_PREEMPTED = 3 };
struct wire_event {
    int type;
    double timestamp;
};

struct wire_prefill { /* prefill_stats */
    uint32_t prompt, computed, cached, local_cached, external_cached, cache_creation;
};

struct wire_output {   /* EngineCoreOutput */
    struct mp_span id; /* characters */
    const uint32_t *token;
    uint32_t n_tokens;
    struct mp_span logprobs, prompt_logprobs, pooling; /* values, absent: nil */
    int finish;                                        /* enum wire_finish */
    struct mp_span stop_reason;                        /* value: int, text or nil */
    const struct wire_event *event;
    uint32_t n_events;                                      /* 0: nil */
    struct mp_span kv_transfer, ec_transfer, trace_headers; /* values */
    bool has_prefill;
    struct wire_prefill prefill;
    struct mp_span routed_experts; /* value */
    uint64_t n_nans;
    struct mp_span tail[4]; /* mm_cache_miss_hashes, new_sampling_mask,
                             * spec_decode_metrics, prompt_token_id_logprobs */
};

struct wire_spec { /* spec_decoding_stats */
    uint32_t num_spec_tokens;
    uint64_t drafts, draft_tokens, accepted_tokens;
    const uint64_t *accepted_at, *drafted_at; /* by position */
    uint32_t n_accepted_at, n_drafted_at;
};

struct wire_iteration { /* iteration_details */
    uint64_t index;
    uint32_t prefills, prefill_tokens, decodes, decode_tokens;
    double elapsed_ms;
    bool dummy;
};

struct wire_stats { /* scheduler_stats */
    uint32_t running, waiting, skipped_waiting;
    uint64_t step_counter;
    int64_t current_wave;
    double kv_usage;
    struct vt_cache_stats cache; /* prefix_cache_stats */
    bool has_external;
    struct vt_cache_stats external; /* connector_prefix_cache_stats */
    uint64_t host_hits, p2p_hits;   /* of its hits; since 0.32 */
    struct vt_fetches fetches;      /* since 0.32 */
    struct mp_span connector;       /* kv_connector_stats; absent: nil */
    bool has_spec;
    struct wire_spec spec;
    bool has_iteration;
    struct wire_iteration iteration;
    struct mp_span raw; /* the map as it came; not used by the writer */
};

struct wire_outputs { /* EngineCoreOutputs */
    uint32_t engine_index;
    struct wire_output *output;
    uint32_t n_outputs;
    bool has_stats;
    struct wire_stats stats;
    double timestamp;
    bool has_utility;
    struct mp_span call_id;   /* value */
    struct mp_span failure;   /* characters; absent: it went well */
    struct mp_span result;    /* value of [type_info, value]; absent: nil */
    struct mp_span *finished; /* ids; NULL: nil */
    uint32_t n_finished;
    int64_t wave_complete, start_wave; /* -1: nil */
    struct mp_span weight_version;     /* value */
};
/* n_aux is how many buffers follow the message: an index beyond them is an error. */
int wire_outputs_read(struct wire_outputs *o, struct vt_arena *a, const void *bytes,
                      size_t len, uint32_t n_aux, struct vt_err *err) VT_MUST_CHECK;

/* The whole message; arrays have the line's full length, as vLLM writes them. */
void wire_outputs_write(struct vt_buf *b, const struct vt_wire_line *line,
                        const struct wire_outputs *o);
/* The same in parts, for an engine that has no list of struct wire_output: head, then
 * n_outputs rows, then tail. */
void wire_outputs_head(struct vt_buf *b, const struct vt_wire_line *line,
                       uint32_t engine_index, uint32_t n_outputs);
void wire_output_write(struct vt_buf *b, const struct vt_wire_line *line,
                       const struct wire_output *o);
void wire_outputs_tail(struct vt_buf *b, const struct vt_wire_line *line,
                       const struct wire_outputs *o); /* what follows its outputs */

/* The literal message of an engine that has died. */
#define WIRE_DEAD "ENGINE_CORE_DEAD"

#endif
