/* sampling.c - sampling_params: a sparse map, of which an engine without a model
 * needs what decides about when and how an answer ends. */
#include "wire/codec/codec.h"
#include "wire/codec/fields.h"

enum { DEFAULT_MAX_TOKENS = 16 };

struct reading {
    struct wire_sampling s;
    struct mp_span seed, max_tokens; /* values: for these nil differs from absent */
};

#define SAMPLING(text, kind, member) \
    MSG_FIELD(struct reading, text, kind, MSG_NIL_OK, s.member)
#define IDS(text, member, n_member) \
    MSG_LIST(struct reading, text, MSG_SOME_TOKENS, MSG_NIL_OK, s.member, s.n_member)

static const struct msg_field fields[] = {
    SAMPLING("n", MSG_U32, n),
    SAMPLING("temperature", MSG_F64, temperature),
    MSG_FIELD(struct reading, "seed", MSG_VALUE, MSG_NIL_OK, seed),
    IDS("stop_token_ids", stop_token_ids, n_stop_token_ids),
    SAMPLING("ignore_eos", MSG_BOOL, ignore_eos),
    MSG_FIELD(struct reading, "max_tokens", MSG_VALUE, MSG_NEVER_NIL, max_tokens),
    SAMPLING("min_tokens", MSG_U32, min_tokens),
    SAMPLING("logprobs", MSG_I32, logprobs),
    SAMPLING("prompt_logprobs", MSG_I32, prompt_logprobs),
    SAMPLING("_eos_token_id", MSG_I64, eos_token_id),
    IDS("_all_stop_token_ids", all_stop_token_ids, n_all_stop_token_ids),
    IDS("allowed_token_ids", allowed_token_ids, n_allowed_token_ids),
    SAMPLING("extra_args", MSG_MAP, extra_args),
    SAMPLING("skip_reading_prefix_cache", MSG_BOOL, skip_reading_prefix_cache),
    IDS("trace_decode_token_ids", forced_token_ids, n_forced_token_ids),
};
static const struct msg_table table = MSG_TABLE(fields);

/* A field whose nil or size needs a look of its own. */
static int number_read(const struct msg_field *f, struct wire_sampling *s,
                       struct mp_span value, struct vt_err *err)
{
    struct msg_in r;

    msg_begin(&r, NULL, value.at, value.len, err);
    return vt_within(err, msg_read_field(f, s, &r), "field '%s'", f->name);
}

static const struct msg_field seed_field =
    MSG_FIELD(struct wire_sampling, "seed", MSG_I64, MSG_NEVER_NIL, seed);
static const struct msg_field max_tokens_field =
    MSG_FIELD(struct wire_sampling, "max_tokens", MSG_U32, MSG_NEVER_NIL, max_tokens);

int wire_sampling_read(struct wire_sampling *s, struct vt_arena *a,
                       struct mp_span value, struct vt_err *err)
{
    struct reading reading = {.s = {
                                  .n = 1,
                                  .temperature = 1.0,
                                  .max_tokens = DEFAULT_MAX_TOKENS,
                                  .logprobs = INT32_MIN,
                                  .prompt_logprobs = INT32_MIN,
                                  .eos_token_id = -1,
                              }};
    struct msg_in r;
    struct mp_in in;
    int rc = VT_OK;

    if (!mp_is_nil(value)) {
        msg_begin(&r, a, value.at, value.len, err);
        rc = msg_read_map(&table, &reading, &r);
    }
    if (rc == VT_OK && reading.seed.at) { /* all 64 bits, signed or unsigned */
        mp_in_init(&in, reading.seed.at, reading.seed.len);
        reading.s.has_seed = true;
        reading.s.seed = (int64_t)mp_u64(&in);
        if (in.bad)
            rc = number_read(&seed_field, &reading.s, reading.seed, err);
    }
    if (rc == VT_OK && mp_is_nil(reading.max_tokens)) {
        if (reading.max_tokens.at)
            reading.s.max_tokens = UINT32_MAX;
    } else if (rc == VT_OK) {
        rc = number_read(&max_tokens_field, &reading.s, reading.max_tokens, err);
    }
    *s = reading.s;
    return vt_within(err, rc, "sampling_params");
}
