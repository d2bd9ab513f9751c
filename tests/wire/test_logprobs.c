/* Log probabilities: the shape is vLLM's to the byte, the values are plausible. */
#include "codec_testing.h"

#include <math.h>

#include "wire/play/logprobs.h"

enum { MOST = 4096 };

struct table { /* arrays read back */
    uint32_t n_rows, n_cols;
    uint32_t id[MOST];
    float value[MOST];
    uint64_t rank[MOST];
    uint32_t frames; /* how many arrays were frames of their own */
};

static struct mp_span array_bytes(struct mp_in *in, const struct logprobs_aux *aux,
                                  struct table *t)
{
    struct mp_span bytes;
    int type = 0;

    if (mp_peek(in) == MP_EXT) {
        bytes = mp_ext(in, &type);
        assert_int_equal(type, 3);
        assert_true(bytes.len < 256);
        return bytes;
    }
    t->frames++;
    {
        uint32_t i = mp_u32(in);

        assert_in_range(i, 1, aux->n);
        bytes = (struct mp_span){(const uint8_t *)aux->frame[i - 1].data,
                                 aux->frame[i - 1].len};
    }
    assert_true(bytes.len >= 256);
    return bytes;
}

static void read_array(struct mp_in *in, const struct logprobs_aux *aux,
                       struct table *t, const char *dtype, void *out, size_t cell)
{
    struct mp_span bytes;
    uint32_t dims, cells;

    assert_int_equal(mp_array(in), 3);
    assert_true(mp_span_is(mp_str(in), dtype));
    dims = mp_array(in);
    t->n_rows = cells = mp_u32(in);
    if (dims == 2)
        cells *= t->n_cols = mp_u32(in);
    bytes = array_bytes(in, aux, t);
    assert_int_equal(bytes.len, cells * cell);
    assert_true(cells <= MOST);
    memcpy(out, bytes.at, bytes.len);
}

/* from: where the value starts in b. */
static void read_table(const struct vt_buf *b, size_t from,
                       const struct logprobs_aux *aux, bool prompt, uint32_t n_fields,
                       struct table *t)
{
    uint32_t rank[MOST];
    struct mp_in in;

    memset(t, 0, sizeof(*t));
    mp_in_init(&in, b->data + from, b->len - from);
    assert_int_equal(mp_array(&in), n_fields);
    read_array(&in, aux, t, prompt ? "int32" : "<i4", t->id, 4);
    read_array(&in, aux, t, prompt ? "float32" : "<f4", t->value, 4);
    read_array(&in, aux, t, prompt ? "int32" : "<i8", prompt ? (void *)rank : t->rank,
               prompt ? 4 : 8);
    for (uint32_t i = 0; prompt && i < t->n_rows; i++)
        t->rank[i] = rank[i];
    for (uint32_t i = 3; i < n_fields; i++)
        assert_true(mp_nil(&in));
    assert_null(in.bad);
    assert_int_equal(mp_peek(&in), MP_END);
}

static void check_row(const struct table *t, uint32_t row, uint32_t token,
                      uint32_t vocab)
{
    const uint32_t *id = &t->id[row * t->n_cols];
    const float *value = &t->value[row * t->n_cols];
    uint64_t rank = t->rank[row];
    double sum = 0;

    assert_int_equal(id[0], token);
    assert_in_range(rank, 1, vocab);
    for (uint32_t i = 0; i < t->n_cols; i++)
        assert_true(isfinite(value[i]) && value[i] < 0);
    for (uint32_t i = 1; i < t->n_cols; i++) {
        sum += exp(value[i]);
        assert_true(i == 1 || value[i] < value[i - 1]);
        assert_true(i == rank ? id[i] == token : id[i] != token && id[i] < vocab);
        for (uint32_t k = 1; k < i; k++)
            assert_int_not_equal(id[k], id[i]);
    }
    assert_true(sum < 1);
    if (rank < t->n_cols)
        assert_true(value[0] == value[rank]);
    else if (t->n_cols > 1)
        assert_true(value[0] < value[t->n_cols - 1]);
}

/* ---- rows of all sizes ------------------------------------------------ */

static struct shape {
    const char *name;
    int32_t k;
    uint32_t vocab, n_tokens;
    bool greedy, prompt;
    uint32_t n_cols, frames;
} shapes[] = {
    {"the sampled token alone", 0, 1000, 1, false, false, 1, 0},
    {"two beside it", 2, 4096, 1, true, false, 3, 0},
    {"a burst of tokens", 2, 4096, 5, false, false, 3, 0},
    {"256 bytes are a frame", 15, 151936, 4, false, false, 16, 2},
    {"252 bytes are not", 20, 151936, 3, false, false, 21, 0},
    {"many tokens: ranks are a frame too", 0, 151936, 64, false, false, 1, 3},
    {"the whole vocabulary", -1, 97, 3, false, false, 98, 2},
    {"more than there are is all", 200, 97, 3, true, false, 98, 2},
    {"a vocabulary of one", 1, 1, 2, false, false, 2, 0},
    {"a vocabulary of two", -1, 2, 8, false, false, 3, 0},
    {"a prompt", 1, 4096, 2, false, true, 2, 0},
    {"a longer prompt", 3, 4096, 100, false, true, 4, 3},
    {"a prompt of one token has no rows", 5, 4096, 1, false, true, 6, 0},
};

static void rows_are_plausible(void **state)
{
    const struct shape *s = *state;
    uint32_t token[128], n_rows = s->prompt ? s->n_tokens - 1 : s->n_tokens;

    for (uint64_t key = 0; key < 40; key++) {
        struct logprobs_ask ask = {.k = s->k,
                                   .vocab_size = s->vocab,
                                   .key = vt_mix64(key),
                                   .greedy = s->greedy,
                                   .prompt_fields = 5};
        struct logprobs_aux aux = {0};
        struct vt_buf b = {0};
        struct table t;

        for (uint32_t i = 0; i < s->n_tokens; i++)
            token[i] = (uint32_t)(vt_mix64(key * 1000 + i) % s->vocab);
        if (s->prompt)
            assert_int_equal(
                logprobs_put_prompt(&b, &aux, &ask, token, s->n_tokens, NULL), VT_OK);
        else
            assert_int_equal(logprobs_put(&b, &aux, &ask, token, s->n_tokens, 7, NULL),
                             VT_OK);
        read_table(&b, 0, &aux, s->prompt, s->prompt ? 5 : 4, &t);
        assert_int_equal(t.n_rows, n_rows);
        assert_int_equal(t.frames, s->frames);
        assert_int_equal(aux.n, s->frames);
        assert_int_equal(t.n_cols, s->n_cols);
        for (uint32_t i = 0; i < n_rows; i++) {
            check_row(&t, i, token[s->prompt ? i + 1 : i], s->vocab);
            assert_true(!s->greedy || t.rank[i] == 1);
        }
        logprobs_aux_free(&aux);
        vt_buf_free(&b);
    }
}

/* ---- against captures ------------------------------------------------- */

/* What a real engine sent for one token and one beside it, its numbers blanked. */
static struct captured {
    const char *name;
    uint32_t prompt_fields; /* 0: not of a prompt */
    const char *hex;
} captured[] = {
    {"0.26 and 0.32: new_logprobs", 0,
     "94 93a33c6934 920102 d703________________ 93a33c6634 920102 d703________________ "
     "93a33c6938 9101 d703________________ c0"},
    {"0.26: new_prompt_logprobs_tensors", 4,
     "94 93a5696e743332 920102 d703________________ 93a7666c6f61743332 920102 "
     "d703________________ 93a5696e743332 9101 d603________ c0"},
    {"0.32: new_prompt_logprobs_tensors", 5,
     "95 93a5696e743332 920102 d703________________ 93a7666c6f61743332 920102 "
     "d703________________ 93a5696e743332 9101 d603________ c0c0"},
};

static void form_is_as_captured(void **state)
{
    const struct captured *c = *state;
    struct logprobs_ask ask = {
        .k = 1, .vocab_size = 4096, .key = 1, .prompt_fields = c->prompt_fields};
    const uint32_t prompt[] = {2663, 4014};
    struct logprobs_aux aux = {0};
    struct vt_buf b = {0};
    size_t at = 0;

    if (c->prompt_fields)
        assert_int_equal(logprobs_put_prompt(&b, &aux, &ask, prompt, 2, NULL), VT_OK);
    else
        assert_int_equal(logprobs_put(&b, &aux, &ask, prompt, 1, 0, NULL), VT_OK);
    for (const char *h = c->hex; *h; h += *h == ' ' ? 1 : 2) {
        if (*h == ' ')
            continue;
        assert_true(at < b.len);
        if (*h != '_')
            assert_int_equal((uint8_t)b.data[at],
                             hex_value(h[0]) << 4 | hex_value(h[1]));
        at++;
    }
    assert_int_equal(at, b.len);
    logprobs_aux_free(&aux);
    vt_buf_free(&b);
}

/* ---- the rest --------------------------------------------------------- */

static void the_same_place_has_the_same_row(void **state)
{
    struct logprobs_ask ask = {.k = 3, .vocab_size = 5000, .key = 9};
    const uint32_t token[] = {5, 6, 7};
    struct logprobs_aux aux = {0};
    struct vt_buf whole = {0}, part = {0};
    struct table a, b;

    (void)state;
    assert_int_equal(logprobs_put(&whole, &aux, &ask, token, 3, 0, NULL), VT_OK);
    assert_int_equal(logprobs_put(&part, &aux, &ask, token + 2, 1, 2, NULL), VT_OK);
    read_table(&whole, 0, &aux, false, 4, &a);
    read_table(&part, 0, &aux, false, 4, &b);
    assert_memory_equal(&a.id[2 * 4], b.id, 4 * sizeof(*b.id));
    assert_memory_equal(&a.value[2 * 4], b.value, 4 * sizeof(*b.value));
    assert_memory_not_equal(&a.value[1 * 4], b.value, 4 * sizeof(*b.value));
    assert_int_equal(a.rank[2], b.rank[0]);
    vt_buf_free(&whole);
    vt_buf_free(&part);
    logprobs_aux_free(&aux);
}

static void outputs_of_one_message_share_its_frames(void **state)
{
    struct logprobs_ask ask = {.k = 20, .vocab_size = 5000, .key = 9};
    uint32_t token[64] = {0};
    struct logprobs_aux aux = {0};
    struct vt_buf b = {0};
    struct table t;
    size_t second;

    (void)state;
    for (int message = 0; message < 3; message++) {
        vt_buf_clear(&b);
        logprobs_aux_clear(&aux);
        assert_int_equal(logprobs_put(&b, &aux, &ask, token, 8, 0, NULL), VT_OK);
        second = b.len;
        assert_int_equal(logprobs_put(&b, &aux, &ask, token, 64, 8, NULL), VT_OK);
        assert_int_equal(aux.n, 5);
        read_table(&b, second, &aux, false, 4, &t);
        assert_int_equal(t.n_rows, 64);
        for (uint32_t i = 0; i < 64; i++)
            check_row(&t, i, 0, 5000);
    }
    vt_buf_free(&b);
    logprobs_aux_free(&aux);
}

static void ranks_follow_the_probabilities(void **state)
{
    struct logprobs_ask ask = {.k = 1, .vocab_size = 150000, .key = 3};
    struct logprobs_aux aux = {0};
    struct vt_buf b = {0};
    uint32_t token[1000] = {0}, best = 0;
    double expected = 0;
    struct table t;

    (void)state;
    assert_int_equal(logprobs_put(&b, &aux, &ask, token, 1000, 0, NULL), VT_OK);
    read_table(&b, 0, &aux, false, 4, &t);
    for (uint32_t i = 0; i < 1000; i++) {
        best += t.rank[i] == 1;
        expected += exp(t.value[2 * i + 1]);
    }
    assert_true(fabs(best - expected) < 60); /* 4 standard deviations */
    vt_buf_free(&b);
    logprobs_aux_free(&aux);
}

static void too_much_is_refused_and_leaves_nothing(void **state)
{
    struct logprobs_ask ask = {.k = -1, .vocab_size = 151936, .key = 3};
    struct logprobs_aux aux = {0};
    struct vt_buf b = {0};
    uint32_t prompt[1000] = {0};
    struct vt_err err;

    (void)state;
    assert_int_equal(logprobs_put_prompt(&b, &aux, &ask, prompt, 1000, &err),
                     VT_EINPUT);
    assert_string_equal(
        err.msg, "log probabilities of 151937 tokens for each of 999 are too many");
    assert_int_equal(b.len, 0);
    assert_int_equal(aux.n, 0);
    logprobs_aux_free(&aux);
}

int main(void)
{
    enum { N = VT_COUNT(shapes), M = VT_COUNT(captured) };
    struct CMUnitTest tests[4 + N + M] = {
        cmocka_unit_test(the_same_place_has_the_same_row),
        cmocka_unit_test(outputs_of_one_message_share_its_frames),
        cmocka_unit_test(ranks_follow_the_probabilities),
        cmocka_unit_test(too_much_is_refused_and_leaves_nothing),
    };

    for (size_t i = 0; i < N; i++)
        tests[4 + i] = (struct CMUnitTest){.name = shapes[i].name,
                                           .test_func = rows_are_plausible,
                                           .initial_state = &shapes[i]};
    for (size_t i = 0; i < M; i++)
        tests[4 + N + i] = (struct CMUnitTest){.name = captured[i].name,
                                               .test_func = form_is_as_captured,
                                               .initial_state = &captured[i]};
    return cmocka_run_group_tests_name("logprobs", tests, NULL, NULL);
}
