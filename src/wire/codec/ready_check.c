/* ready_check.c - whether a recorded registration is what its line of vLLM asks for,
 * and whether ours would have all of its keys. */
#include "wire/codec/codec.h"

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

static uint32_t rank_of(const struct vt_wire_line *line)
{
    size_t n;
    const struct vt_wire_line *const *all = vt_wire_lines(&n);

    for (uint32_t i = 0; i < n; i++)
        if (all[i] == line)
            return i;
    return 0; /* any line: only what all of them require */
}

static const struct key *find_key(struct mp_span name)
{
    for (size_t i = 0; i < VT_COUNT(keys); i++)
        if (mp_span_is(name, keys[i].name))
            return &keys[i];
    return NULL;
}

static bool has_type(struct mp_span value, unsigned types)
{
    struct mp_in in;

    mp_in_init(&in, value.at, value.len);
    return (types & IS(mp_peek(&in))) != 0;
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
    struct mp_in in;
    uint32_t n;

    mp_in_init(&in, map.at, map.len);
    n = mp_map(&in);
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        struct mp_span name = mp_str(&in), value = mp_raw(&in);
        const struct key *key = in.bad ? NULL : find_key(name);

        if (in.bad)
            break;
        if (key && !has_type(value, key->types))
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
    uint32_t rank = rank_of(line);
    struct vt_buf own = {0};
    int rc;

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
