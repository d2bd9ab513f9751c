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

/* ---- whether a recorded one is what its line asks for, with keys that ours has ----
 */

/* Types a value may have, as bits. */
#define IS(type) (1u << (type))

struct key {
    const char *name;
    unsigned types;
    uint32_t since; /* index of the line that brought it, oldest 0 */
    bool required;  /* by frontends of that line and later */
};

enum { L25, L26, L27, L28, L32 };

/* What frontends of each line demand and accept; Rust's are the stricter ones. */
static const struct key keys[] = {
    {"max_model_len", IS(MP_INT), L25, true},
    {"num_gpu_blocks", IS(MP_INT), L25, true},
    {"block_size", IS(MP_INT), L25, true},
    {"dp_stats_address", IS(MP_STR) | IS(MP_NIL), L25, true},
    {"dtype", IS(MP_STR), L25, true},
    {"vllm_version", IS(MP_STR), L25, true},
    {"world_size", IS(MP_INT), L25, true},
    {"data_parallel_size", IS(MP_INT), L25, true},
    {"kv_cache_size_tokens", IS(MP_INT) | IS(MP_NIL), L25, false},
    {"kv_cache_max_concurrency", IS(MP_FLOAT) | IS(MP_INT) | IS(MP_NIL), L25, false},
    {"tensor_parallel_size", IS(MP_INT), L27, true},
    {"pipeline_parallel_size", IS(MP_INT), L27, true},
    {"decode_context_parallel_size", IS(MP_INT), L27, true},
    {"data_parallel_rank", IS(MP_INT), L27, true},
    {"max_num_seqs", IS(MP_INT), L27, true},
    {"max_num_batched_tokens", IS(MP_INT), L27, true},
    {"instance_id", IS(MP_STR), L27, true},
    {"kv_events_config", IS(MP_MAP) | IS(MP_NIL), L27, false},
    {"weight_transfer_backend", IS(MP_STR) | IS(MP_NIL), L28, false},
    {"enable_sleep_mode", IS(MP_BOOL), L28, false},
    {"supports_draft_weight_updates", IS(MP_BOOL), L28, false},
    {"supports_lora", IS(MP_BOOL), L32, true},
    {"max_loras", IS(MP_INT), L32, true},
    {"mamba_block_size", IS(MP_INT) | IS(MP_NIL), L32, false},
    {"effective_attention_block_size", IS(MP_INT) | IS(MP_NIL), L32, false},
};

static const struct key *find_key(struct mp_span name)
{
    for (size_t i = 0; i < VT_COUNT(keys); i++)
        if (mp_span_is(name, keys[i].name))
            return &keys[i];
    return NULL;
}

/* The registration that play writes; what its values are does not matter here. */
static bool own_has(struct mp_span own, struct mp_span name)
{
    struct mp_in in;
    uint32_t n;

    mp_in_init(&in, own.at, own.len);
    n = mp_map(&in);
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        struct mp_span key = mp_str(&in);

        if (key.len == name.len && memcmp(key.at, name.at, name.len) == 0)
            return true;
        mp_skip(&in);
    }
    return false;
}

static int check_known(struct mp_span map, struct mp_span own, struct vt_err *err)
{
    struct mp_in in, inside;
    uint32_t n;

    mp_in_init(&in, map.at, map.len);
    n = mp_map(&in);
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        struct mp_span name = mp_str(&in), value = mp_raw(&in);
        const struct key *key = in.bad ? NULL : find_key(name);

        if (in.bad)
            break;
        mp_in_init(&inside, value.at, value.len);
        if (key && !(key->types & IS(mp_peek(&inside))))
            return vt_fail(err, VT_ECHECK, "key '%s' has a wrong type", key->name);
        if (!own_has(own, name))
            return vt_fail(err, VT_ECHECK, "play's registration has no key '%.*s'",
                           (int)(name.len < 60 ? name.len : 60), (const char *)name.at);
    }
    if (in.bad || in.at != in.end)
        return vt_fail(err, VT_ECHECK, "not a registration: %s",
                       in.bad ? in.bad : "bytes after its end");
    return VT_OK;
}

int vt_wire_ready_check(const struct vt_wire_line *line, const void *bytes, size_t len,
                        struct vt_err *err)
{
    struct mp_span map = {bytes, len};
    struct vt_buf own = {0};
    size_t n, rank;
    const struct vt_wire_line *const *all = vt_wire_lines(&n);
    int rc;

    for (rank = 0; rank < n && all[rank] != line;)
        rank++;
    if (rank == n) /* any line: only what all of them require */
        rank = 0;
    wire_ready_write(&own, &(struct wire_ready){0});
    rc = own.failed
             ? vt_nomem(err)
             : check_known(map, (struct mp_span){(uint8_t *)own.data, own.len}, err);
    vt_buf_free(&own);
    for (size_t i = 0; i < VT_COUNT(keys) && rc == VT_OK; i++)
        if (keys[i].required && keys[i].since <= rank && !mp_get(map, keys[i].name).at)
            rc = vt_fail(err, VT_ECHECK, "no key '%s', which line %s requires",
                         keys[i].name, line ? line->name : "0.25");
    return rc;
}
