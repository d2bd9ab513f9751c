/* ready.c - the registration, EngineCoreReadyResponse: what an engine tells about
 * itself. Frontends ignore keys that they do not know and give up on keys that they
 * miss, so every line gets the keys of all. */
#include "wire/codec/codec.h"
#include "wire/codec/fields.h"

#define READY(text, kind, nil, member) \
    MSG_FIELD(struct wire_ready, text, kind, nil, member)

static const struct msg_field events_fields[] = {
    READY("endpoint", MSG_NAME, MSG_NIL_OK, events_endpoint),
    READY("replay_endpoint", MSG_NAME, MSG_NIL_OK, events_replay_endpoint),
    READY("topic", MSG_NAME, MSG_NIL_OK, events_topic),
};
static const struct msg_table events_table = MSG_TABLE(events_fields);

static const struct msg_field ready_fields[] = {
    READY("max_model_len", MSG_U64, MSG_NEVER_NIL, max_model_len),
    READY("num_gpu_blocks", MSG_U64, MSG_NIL_OK, num_gpu_blocks),
    READY("block_size", MSG_U32, MSG_NIL_OK, block_size),
    READY("dtype", MSG_NAME, MSG_NIL_OK, dtype),
    READY("vllm_version", MSG_NAME, MSG_NIL_OK, vllm_version),
    READY("world_size", MSG_U32, MSG_NIL_OK, world_size),
    READY("data_parallel_size", MSG_U32, MSG_NIL_OK, data_parallel_size),
    READY("tensor_parallel_size", MSG_U32, MSG_NIL_OK, tensor_parallel_size),
    READY("pipeline_parallel_size", MSG_U32, MSG_NIL_OK, pipeline_parallel_size),
    READY("data_parallel_rank", MSG_U32, MSG_NIL_OK, data_parallel_rank),
    READY("max_num_seqs", MSG_U32, MSG_NIL_OK, max_num_seqs),
    READY("max_num_batched_tokens", MSG_U32, MSG_NIL_OK, max_num_batched_tokens),
    READY("instance_id", MSG_NAME, MSG_NIL_OK, instance_id),
    READY("supports_lora", MSG_BOOL, MSG_NIL_OK, supports_lora),
    READY("max_loras", MSG_U32, MSG_NIL_OK, max_loras),
    READY("kv_cache_size_tokens", MSG_U64, MSG_NIL_OK, kv_cache_size_tokens),
    READY("kv_cache_max_concurrency", MSG_F64, MSG_NIL_OK, kv_cache_max_concurrency),
    {MSG_NAMED("kv_events_config", MSG_NESTED, MSG_NIL_OK), .nested = &events_table},
    READY("enable_sleep_mode", MSG_BOOL, MSG_NIL_OK, enable_sleep_mode),
};
static const struct msg_table ready_table = MSG_TABLE(ready_fields);

int wire_ready_read(struct wire_ready *w, struct vt_arena *a, const void *bytes,
                    size_t len, struct vt_err *err)
{
    *w = (struct wire_ready){0};
    return vt_within(err, msg_whole_map(&ready_table, w, a, bytes, len, err),
                     "registration");
}

/* ---- writing ---------------------------------------------------------- */

static void put_nil(struct vt_buf *b, const char *key)
{
    mp_put_str(b, key);
    mp_put_nil(b);
}

static void put_u64(struct vt_buf *b, const char *key, uint64_t v)
{
    mp_put_str(b, key);
    mp_put_u64(b, v);
}

static void put_bool(struct vt_buf *b, const char *key, bool v)
{
    mp_put_str(b, key);
    mp_put_bool(b, v);
}

static void put_name(struct vt_buf *b, const char *key, const char *text)
{
    mp_put_str(b, key);
    if (text)
        mp_put_str(b, text);
    else
        mp_put_nil(b);
}

/* As vLLM's KVEventsConfig has it, with its default sizes of queues. */
static void events_write(struct vt_buf *b, const struct wire_ready *r)
{
    mp_put_str(b, "kv_events_config");
    if (!r->events_endpoint) {
        mp_put_nil(b);
        return;
    }
    mp_put_map(b, 8);
    put_bool(b, "enable_kv_cache_events", true);
    put_name(b, "publisher", "zmq");
    put_name(b, "endpoint", r->events_endpoint);
    put_name(b, "replay_endpoint", r->events_replay_endpoint);
    put_u64(b, "buffer_steps", 10000);
    put_u64(b, "hwm", 100000);
    put_u64(b, "max_queue_size", 100000);
    put_name(b, "topic", r->events_topic ? r->events_topic : "");
}

/* In the order of 0.32, whose registration this is byte by byte. */
void wire_ready_write(struct vt_buf *b, const struct wire_ready *r)
{
    mp_put_map(b, 25);
    put_u64(b, "max_model_len", r->max_model_len);
    put_u64(b, "num_gpu_blocks", r->num_gpu_blocks);
    put_u64(b, "block_size", r->block_size);
    put_nil(b, "dp_stats_address");
    put_name(b, "dtype", r->dtype ? r->dtype : "bfloat16");
    put_name(b, "vllm_version", r->vllm_version ? r->vllm_version : "");
    put_u64(b, "world_size", r->world_size);
    put_u64(b, "data_parallel_size", r->data_parallel_size);
    put_u64(b, "tensor_parallel_size", r->tensor_parallel_size);
    put_u64(b, "pipeline_parallel_size", r->pipeline_parallel_size);
    put_u64(b, "decode_context_parallel_size", 1);
    put_u64(b, "data_parallel_rank", r->data_parallel_rank);
    put_u64(b, "max_num_seqs", r->max_num_seqs);
    put_u64(b, "max_num_batched_tokens", r->max_num_batched_tokens);
    put_name(b, "instance_id", r->instance_id ? r->instance_id : "");
    put_bool(b, "supports_lora", r->supports_lora);
    put_u64(b, "max_loras", r->max_loras);
    put_nil(b, "mamba_block_size");
    put_u64(b, "kv_cache_size_tokens", r->kv_cache_size_tokens);
    mp_put_str(b, "kv_cache_max_concurrency");
    mp_put_f64(b, r->kv_cache_max_concurrency);
    events_write(b, r);
    put_nil(b, "weight_transfer_backend");
    put_bool(b, "enable_sleep_mode", r->enable_sleep_mode);
    put_bool(b, "supports_draft_weight_updates", false);
    put_u64(b, "effective_attention_block_size", r->block_size);
}
