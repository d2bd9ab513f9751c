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

/* As vLLM's KVEventsConfig has it, with its default sizes of queues. */
static uint8_t *events_poke(uint8_t *p, const struct vt_wire_line *line,
                            const void *thing)
{
    const struct wire_ready *r = thing;

    if (!r->events_endpoint)
        return poke_nil(p);
    p = poke_map(p, 8);
    p = poke_bool(POKE_KEY(p, "enable_kv_cache_events"), true);
    p = POKE_KEY(POKE_KEY(p, "publisher"), "zmq");
    p = msg_poke_field(POKE_KEY(p, "endpoint"), line, &events_fields[0], r);
    p = msg_poke_field(POKE_KEY(p, "replay_endpoint"), line, &events_fields[1], r);
    p = poke_u64(POKE_KEY(p, "buffer_steps"), 10000);
    p = poke_u64(POKE_KEY(p, "hwm"), 100000);
    p = poke_u64(POKE_KEY(p, "max_queue_size"), 100000);
    return msg_poke_field(POKE_KEY(p, "topic"), line, &events_fields[2], r);
}

/* In the order of 0.32, whose registration this is byte by byte. */
static const struct msg_field ready_fields[] = {
    READY("max_model_len", MSG_U64, MSG_NEVER_NIL, max_model_len),
    READY("num_gpu_blocks", MSG_U64, MSG_NIL_OK, num_gpu_blocks),
    READY("block_size", MSG_U32, MSG_NIL_OK, block_size),
    MSG_CONST("dp_stats_address", MSG_NIL, MSG_ALL_LINES),
    READY("dtype", MSG_NAME, MSG_NIL_OK, dtype),
    READY("vllm_version", MSG_NAME, MSG_NIL_OK, vllm_version),
    READY("world_size", MSG_U32, MSG_NIL_OK, world_size),
    READY("data_parallel_size", MSG_U32, MSG_NIL_OK, data_parallel_size),
    READY("tensor_parallel_size", MSG_U32, MSG_NIL_OK, tensor_parallel_size),
    READY("pipeline_parallel_size", MSG_U32, MSG_NIL_OK, pipeline_parallel_size),
    MSG_CONST("decode_context_parallel_size", MSG_ONE, MSG_ALL_LINES),
    READY("data_parallel_rank", MSG_U32, MSG_NIL_OK, data_parallel_rank),
    READY("max_num_seqs", MSG_U32, MSG_NIL_OK, max_num_seqs),
    READY("max_num_batched_tokens", MSG_U32, MSG_NIL_OK, max_num_batched_tokens),
    READY("instance_id", MSG_NAME, MSG_NIL_OK, instance_id),
    READY("supports_lora", MSG_BOOL, MSG_NIL_OK, supports_lora),
    READY("max_loras", MSG_U32, MSG_NIL_OK, max_loras),
    READY("mamba_block_size", MSG_U32, MSG_NIL_AT_0, state_block_size),
    READY("kv_cache_size_tokens", MSG_U64, MSG_NIL_OK, kv_cache_size_tokens),
    READY("kv_cache_max_concurrency", MSG_F64, MSG_NIL_OK, kv_cache_max_concurrency),
    {MSG_NAMED("kv_events_config", MSG_NESTED, MSG_NIL_OK), .nested = &events_table,
     .poke = events_poke},
    MSG_CONST("weight_transfer_backend", MSG_NIL, MSG_ALL_LINES),
    READY("enable_sleep_mode", MSG_BOOL, MSG_NIL_OK, enable_sleep_mode),
    MSG_CONST("supports_draft_weight_updates", MSG_FALSE, MSG_ALL_LINES),
    READY("effective_attention_block_size", MSG_U32, MSG_NIL_AT_0, whole_block_size),
};
static const struct msg_table ready_table = MSG_TABLE(ready_fields);

int wire_ready_read(struct wire_ready *w, struct vt_arena *a, const void *bytes,
                    size_t len, struct vt_err *err)
{
    *w = (struct wire_ready){0};
    return vt_within(err, msg_whole_map(&ready_table, w, a, bytes, len, err),
                     "registration");
}

static const char *or_else(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

void wire_ready_write(struct vt_buf *b, const struct wire_ready *r)
{
    struct wire_ready w = *r;

    w.dtype = or_else(r->dtype, "bfloat16");
    w.vllm_version = or_else(r->vllm_version, "");
    w.instance_id = or_else(r->instance_id, "");
    w.events_topic = or_else(r->events_topic, "");
    msg_write_map(b, NULL, &ready_table, &w);
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

enum { L25, L26, L27, L28, L29, L30, L31, L32 };

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
    {"supports_lora", IS(MP_BOOL), L29, true},
    {"max_loras", IS(MP_INT), L29, true},
    {"mamba_block_size", IS(MP_INT) | IS(MP_NIL), L29, false},
    {"effective_attention_block_size", IS(MP_INT) | IS(MP_NIL), L31, false},
};
_Static_assert(VT_COUNT(keys) == VT_COUNT(ready_fields), "ours has them all");

static int check_known(struct mp_span map, struct vt_err *err)
{
    struct mp_in in, inside;
    uint32_t n;

    mp_in_init(&in, map.at, map.len);
    n = mp_map(&in);
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        struct mp_span name = mp_str(&in), value = mp_raw(&in);
        bool own = false; /* play's registration has it */

        if (in.bad)
            break;
        mp_in_init(&inside, value.at, value.len);
        for (size_t k = 0; k < VT_COUNT(keys) && !own; k++) {
            own = mp_span_is(name, keys[k].name);
            if (own && !(keys[k].types & IS(mp_peek(&inside))))
                return vt_fail(err, VT_ECHECK, "key '%s' has a wrong type",
                               keys[k].name);
        }
        if (!own)
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
    size_t n, rank;
    const struct vt_wire_line *const *all = vt_wire_lines(&n);
    int rc;

    for (rank = 0; rank < n && all[rank] != line;)
        rank++;
    if (rank == n) /* any line: only what all of them require */
        rank = 0;
    rc = check_known(map, err);
    for (size_t i = 0; i < VT_COUNT(keys) && rc == VT_OK; i++)
        if (keys[i].required && keys[i].since <= rank && !mp_get(map, keys[i].name).at)
            rc = vt_fail(err, VT_ECHECK, "no key '%s', which line %s requires",
                         keys[i].name, line ? line->name : "0.25");
    return rc;
}
