/* request.c - what a frontend asks: ADD, ABORT, UTILITY, START_DP_WAVE. */
#include "base/base.h"
#include "wire/codec/codec.h"
#include "wire/codec/fields.h"

/* ---- ADD -------------------------------------------------------------- */

#define ADD(text, kind, nil, member) \
    MSG_FIELD(struct wire_request, text, kind, nil, member)

static const struct msg_field request_fields[] = {
    ADD("request_id", MSG_TEXT, MSG_NEVER_NIL, id),
    MSG_LIST(struct wire_request, "prompt_token_ids", MSG_TOKENS, MSG_NIL_OK, prompt,
             n_prompt),
    ADD("mm_features", MSG_ARRAY, MSG_NIL_OK, mm_features),
    ADD("sampling_params", MSG_MAP, MSG_NIL_OK, sampling),
    ADD("pooling_params", MSG_ARRAY, MSG_NIL_OK, pooling),
    ADD("arrival_time", MSG_F64, MSG_NEVER_NIL, arrival_time),
    ADD("lora_request", MSG_ARRAY, MSG_NIL_OK, lora),
    ADD("cache_salt", MSG_STRING, MSG_NIL_OK, cache_salt),
    ADD("data_parallel_rank", MSG_I64, MSG_NIL_BELOW_0, data_parallel_rank),
    ADD("prompt_embeds", MSG_ARRAY, MSG_NIL_OK, prompt_embeds),
    ADD("prompt_is_token_ids", MSG_ARRAY, MSG_NIL_OK, prompt_is_token_ids),
    ADD("client_index", MSG_U32, MSG_NEVER_NIL, client_index),
    ADD("current_wave", MSG_I64, MSG_NEVER_NIL, current_wave),
    ADD("priority", MSG_I32, MSG_NEVER_NIL, priority),
    ADD("trace_headers", MSG_MAP, MSG_NIL_OK, trace_headers),
    ADD("resumable", MSG_BOOL, MSG_NEVER_NIL, resumable),
    ADD("external_req_id", MSG_TEXT, MSG_NIL_OK, external_id),
    ADD("reasoning_ended", MSG_FLAG, MSG_NIL_OK, reasoning_ended),
    ADD("reasoning_parser_kwargs", MSG_MAP, MSG_NIL_OK, reasoning_parser_kwargs),
    ADD("abort_immediately", MSG_BOOL, MSG_NEVER_NIL, abort_immediately),
    ADD("session_id", MSG_STRING, MSG_NIL_OK, session_id),
    ADD("kv_hints", MSG_VALUE, MSG_NIL_OK, kv_hints),
};
static const struct msg_table request_table = MSG_TABLE(request_fields);
_Static_assert(VT_COUNT(request_fields) == WIRE_REQUEST_FIELDS, "every field");

int wire_request_read(struct wire_request *w, struct vt_arena *a, const void *bytes,
                      size_t len, struct vt_err *err)
{
    int rc;

    *w = (struct wire_request){.data_parallel_rank = -1};
    rc = msg_whole_array(&request_table, w, a, bytes, len, &w->n_fields, err);
    if (rc == VT_OK && w->n_fields == 0)
        rc = vt_fail(err, VT_EINPUT, "no request_id");
    return vt_within(err, rc, "request");
}

uint32_t wire_embedded_tokens(struct mp_span value)
{
    struct mp_in in;
    uint32_t rows;

    mp_in_init(&in, value.at, value.len);
    if (mp_is_nil(value) || mp_array(&in) < 2)
        return 0;
    mp_skip(&in);
    if (mp_array(&in) == 0)
        return 0;
    rows = mp_u32(&in);
    return in.bad ? 0 : rows;
}

void wire_request_write(struct vt_buf *b, const struct wire_request *w)
{
    uint32_t n = w->n_fields < WIRE_REQUEST_FIELDS ? w->n_fields : WIRE_REQUEST_FIELDS;

    msg_write_array(b, &request_table, n, w);
}

/* FNV-1a over the hash before and the block's tokens. */
void wire_block_hashes(uint64_t *hash, const uint32_t *prompt, uint32_t n_blocks,
                       uint32_t block_size)
{
    for (uint32_t i = 0; i < n_blocks; i++) {
        uint64_t h = vt_fnv(VT_FNV_BASIS, i > 0 ? hash[i - 1] : VT_FNV_BASIS, 8);

        for (uint32_t k = 0; k < block_size; k++)
            h = vt_fnv(h, *prompt++, 4);
        hash[i] = h;
    }
}

/* ---- LoRA ------------------------------------------------------------- */

static const struct msg_field lora_fields[] = {
    MSG_FIELD(struct wire_lora, "lora_name", MSG_TEXT, MSG_NEVER_NIL, name),
    MSG_FIELD(struct wire_lora, "lora_int_id", MSG_I64, MSG_NEVER_NIL, id),
    MSG_FIELD(struct wire_lora, "lora_path", MSG_TEXT, MSG_NIL_OK, path),
};
static const struct msg_table lora_table = MSG_TABLE(lora_fields);

int wire_lora_read(struct wire_lora *l, struct mp_span value, struct vt_err *err)
{
    struct msg_in r;
    int rc;

    *l = (struct wire_lora){0};
    if (mp_is_nil(value))
        return VT_OK;
    msg_begin(&r, NULL, value.at, value.len, err);
    rc = msg_read_array(&lora_table, l, &r, NULL);
    if (rc == VT_OK && !l->name.at)
        rc = vt_fail(err, VT_EINPUT, "no lora_name");
    return vt_within(err, rc, "lora_request");
}

/* ---- ABORT ------------------------------------------------------------ */

struct abort_ids {
    struct mp_span *id;
    uint32_t n;
};
static const struct msg_field abort_field =
    MSG_LIST(struct abort_ids, "request_ids", MSG_TEXTS, MSG_NEVER_NIL, id, n);
static const struct msg_table abort_table = {&abort_field, 1};

int wire_abort_read(struct mp_span **id, uint32_t *n, struct vt_arena *a,
                    const void *bytes, size_t len, struct vt_err *err)
{
    struct abort_ids ids = {0};
    struct msg_in r;
    int rc;

    msg_begin(&r, a, bytes, len, err);
    rc = msg_read_field(&abort_field, &ids, &r);
    if (rc == VT_OK)
        rc = msg_end(&r);
    *id = ids.id;
    *n = rc == VT_OK ? ids.n : 0;
    return vt_within(err, rc, "abort");
}

void wire_abort_write(struct vt_buf *b, struct mp_span *id, uint32_t n)
{
    msg_write_fields(b, NULL, &abort_table, 0, 1, &(struct abort_ids){id, n});
}

/* ---- UTILITY ---------------------------------------------------------- */

static int call_id_read(void *thing, struct msg_in *r)
{
    struct wire_call *c = thing;

    if (mp_peek(&r->in) != MP_INT)
        mp_fail(&r->in, "not an integer");
    c->call_id = mp_raw(&r->in);
    return msg_problem(r);
}

static const struct msg_field call_fields[] = {
    MSG_FIELD(struct wire_call, "client_index", MSG_U32, MSG_NEVER_NIL, client_index),
    {MSG_NAMED("call_id", MSG_VALUE, MSG_NEVER_NIL),
     .at = offsetof(struct wire_call, call_id), .read = call_id_read},
    MSG_FIELD(struct wire_call, "method", MSG_TEXT, MSG_NEVER_NIL, method),
    MSG_FIELD(struct wire_call, "args", MSG_ARRAY, MSG_NIL_OK, args),
};
static const struct msg_table call_table = MSG_TABLE(call_fields);

int wire_call_read(struct wire_call *c, const void *bytes, size_t len,
                   struct vt_err *err)
{
    int rc;

    *c = (struct wire_call){0};
    rc = msg_whole_array(&call_table, c, NULL, bytes, len, NULL, err);
    if (rc == VT_OK && !c->method.at)
        rc = vt_fail(err, VT_EINPUT, "no method");
    return vt_within(err, rc, "utility call");
}

void wire_call_write(struct vt_buf *b, const struct wire_call *c)
{
    static const uint8_t no_items[] = {MSG_NO_ITEMS};
    struct wire_call writing = *c;

    if (!c->args.at)
        writing.args = (struct mp_span){no_items, 1};
    msg_write_array(b, &call_table, call_table.n, &writing);
}

/* ---- START_DP_WAVE ---------------------------------------------------- */

struct wave {
    int64_t wave, exclude;
};
static const struct msg_field wave_fields[] = {
    MSG_FIELD(struct wave, "wave", MSG_I64, MSG_NEVER_NIL, wave),
    MSG_FIELD(struct wave, "exclude_engine_index", MSG_I64, MSG_NIL_BELOW_0, exclude),
};
static const struct msg_table wave_table = MSG_TABLE(wave_fields);

int wire_wave_read(int64_t *wave, int64_t *exclude, const void *bytes, size_t len,
                   struct vt_err *err)
{
    struct wave w = {.exclude = -1};
    uint32_t n = 0;
    int rc = msg_whole_array(&wave_table, &w, NULL, bytes, len, &n, err);

    if (rc == VT_OK && n == 0)
        rc = vt_fail(err, VT_EINPUT, "no number");
    *wave = w.wave;
    *exclude = w.exclude;
    return vt_within(err, rc, "wave");
}

void wire_wave_write(struct vt_buf *b, int64_t wave, int64_t exclude)
{
    msg_write_array(b, &wave_table, wave_table.n, &(struct wave){wave, exclude});
}
