/* The parts of tokenizer.json, each in a file as small as can be. Expected ids were
 * checked against the Python package `tokenizers`. */
#include <pthread.h>
#include <time.h>

#include "testing.h"

/* Bytes a to e, space, and what they merge to. */
#define VOCAB                                                                  \
    "\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"\u0120\":5,\"ab\":6,\"abc\":7," \
    "\"\u0120a\":8,\"cd\":9,\"1\":10,\"2\":11,\"12\":12,\"<\":13,\">\":14"
#define MERGES "[\"a b\",\"ab c\",\"\u0120 a\",\"c d\",\"1 2\"]"
#define MODEL(more) \
    "\"model\":{\"type\":\"BPE\"," more "\"vocab\":{" VOCAB "},\"merges\":" MERGES "}"
#define BYTES "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define PRE(x) \
    ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" x BYTES "]}"
#define SPLIT(how, invert)                                                      \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[0-9]\"},\"behavior\":\"" how \
    "\",\"invert\":" invert "},"
#define ADDED(flags) ",\"added_tokens\":[{\"id\":15,\"content\":\"<>\"," flags "}]"

static struct row {
    const char *name, *json, *text;
    unsigned flags;
    const char *want;
} rows[] = {
    {"nothing", "{" MODEL("") PRE("") "}", "", 0, ""},
    {"the lowest rank merges first", "{" MODEL("") PRE("") "}", "abcd", 0, "7 3"},
    {"among equals the leftmost", "{" MODEL("") PRE("") "}", "ababab", 0, "6 6 6"},
    {"bytes without a token are dropped", "{" MODEL("") PRE("") "}", "axb", 0, "6"},
    {"or become the unknown token", "{" MODEL("\"unk_token\":\"e\",") PRE("") "}",
     "axyb", 0, "0 4 4 1"},
    {"which may stand for several",
     "{" MODEL("\"unk_token\":\"e\",\"fuse_unk\":true,") PRE("") "}", "axyb", 0,
     "0 4 1"},
    {"merges as pairs",
     "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[[\"a\",\"b\"]]}"
     ",\"pre_tokenizer\":" BYTES "}",
     "abb", 0, "2 1"},
    {"a first line of merges.txt",
     "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"#version: 0.2\","
     "\"a b\"]},\"pre_tokenizer\":" BYTES "}",
     "abb", 0, "2 1"},
    {"the last of two merges of a pair counts",
     "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4},\"merges\":["
     "\"a b\",\"b c\",\"a b\"]},\"pre_tokenizer\":" BYTES "}",
     "abc", 0, "0 4"},
    {"a word that no merge leads to is spelt out",
     "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[]}"
     ",\"pre_tokenizer\":" BYTES "}",
     "ab", 0, "0 1"},
    {"unless merges are ignored",
     "{\"model\":{\"ignore_merges\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
     "\"merges\":[]},\"pre_tokenizer\":" BYTES "}",
     "ab", 0, "2"},

    {"a space before the first word",
     "{" MODEL(
         "") ",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}}",
     "ab a", 0, "5 6 8"},
    {"GPT-2's pattern comes with ByteLevel",
     "{" MODEL(
         "") ",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}}",
     "ab12 ab", 0, "6 12 5 6"},
    {"single digits",
     "{" MODEL("") PRE("{\"type\":\"Digits\",\"individual_digits\":true},") "}",
     "ab12c", 0, "6 10 11 2"},
    {"digits together", "{" MODEL("") PRE("{\"type\":\"Digits\"},") "}", "ab12c", 0,
     "6 12 2"},
    {"split: isolated", "{" MODEL("") PRE(SPLIT("Isolated", "false")) "}", "c12d", 0,
     "2 10 11 3"},
    {"split: removed", "{" MODEL("") PRE(SPLIT("Removed", "false")) "}", "c12d", 0,
     "2 3"},
    {"split: removed, inverted", "{" MODEL("") PRE(SPLIT("Removed", "true")) "}",
     "c12d", 0, "10 11"},
    {"split: contiguous", "{" MODEL("") PRE(SPLIT("Contiguous", "false")) "}", "c12d",
     0, "2 12 3"},
    {"split: with the previous",
     "{" MODEL("") PRE(SPLIT("MergedWithPrevious", "false")) "}", "12c12", 0,
     "10 11 2 10 11"},
    {"split: with the next", "{" MODEL("") PRE(SPLIT("MergedWithNext", "false")) "}",
     "1cd12", 0, "10 9 10 11"},
    {"split by a text",
     "{" MODEL("") PRE("{\"type\":\"Split\",\"pattern\":{\"String\":\"b\"},"
                       "\"behavior\":\"Isolated\",\"invert\":false},") "}",
     "abc", 0, "0 1 2"},

    {"an added token", "{" MODEL("") PRE("") ADDED("\"special\":true") "}", "ab<>c", 0,
     "6 15 2"},
    {"as text", "{" MODEL("") PRE("") ADDED("\"special\":true") "}", "ab<>c",
     VT_ENCODE_SPECIAL_AS_TEXT, "6 13 14 2"},
    {"a plain one is found all the same",
     "{" MODEL("") PRE("") ADDED("\"special\":false") "}", "ab<>c",
     VT_ENCODE_SPECIAL_AS_TEXT, "6 15 2"},
    {"not inside a word", "{" MODEL("") PRE("") ADDED("\"single_word\":true") "}",
     "<> a<> <>\u00e9 <>", 0, "15 8 13 14 5 13 14 5 15"},
    {"spaces on its left go", "{" MODEL("") PRE("") ADDED("\"lstrip\":true") "}",
     "a \u3000<> b", 0, "0 15 5 1"},
    {"spaces on its right go", "{" MODEL("") PRE("") ADDED("\"rstrip\":true") "}",
     "a <> \t b<>", 0, "0 5 15 1 15"},
    {"the longest one counts",
     "{" MODEL("") PRE(
         "") ",\"added_tokens\":[{\"id\":15,\"content\":\"<a\"},{\"id\":16,\"content\":"
             "\"<ab>\"},{\"id\":17,\"content\":\"<ab\"}]}",
     "<ab<ab><a<", 0, "17 16 15 13"},
    {"one that the model has keeps its id",
     "{" MODEL("") PRE("") ",\"added_tokens\":[{\"id\":99,\"content\":\"cd\"}]}",
     "abcd", 0, "6 9"},
    {"normalized ones are found in normalized text",
     "{\"normalizer\":{\"type\":\"NFC\"}," MODEL("")
         PRE("") ",\"added_tokens\":[{\"id\":15,\"content\":\"e\u0301\",\"normalized\":"
                 "true}]}",
     "a\u00e9b", 0, "0 15 1"},
    {"others are not",
     "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}"
     "," MODEL("") PRE("") ",\"added_tokens\":[{\"id\":15,\"content\":\"e\u0301\"}]}",
     "a\u00e9e\u0301b", 0, "0 15 1"},

    {"a template around the text",
     "{" MODEL("")
         PRE("") ",\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":"
                 "\"ByteLevel\"},{\"type\":\"TemplateProcessing\",\"single\":[{"
                 "\"SpecialToken\":"
                 "{\"id\":\"B\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_"
                 "id\":0}},"
                 "{\"SpecialToken\":{\"id\":\"E\",\"type_id\":0}}],\"special_tokens\":{"
                 "\"B\":{"
                 "\"ids\":[3,4]},\"E\":{\"ids\":[2]}}}]}}",
     "ab", VT_ENCODE_ADD_SPECIAL, "3 4 6 2"},
};

static void encodes(void **state)
{
    const struct row *r = *state;
    struct vt_tokenizer *t = open_json(r->json);

    assert_ids(t, r->text, r->flags, r->want);
    assert_ids(t, r->text, r->flags, r->want); /* now from the cache of words */
    vt_tokenizer_close(t);
}

static void bad_text_is_named(void **state)
{
    struct vt_tokenizer *t = open_json("{" MODEL("") PRE("") "}");
    struct vt_ids ids = {0};
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_tokenizer_encode(t, "ab", 2, 0, &ids, &err), VT_OK);
    assert_int_equal(vt_tokenizer_encode(t, "ab\xff", 3, 0, &ids, &err), VT_EINPUT);
    assert_string_equal(err.msg, "text is not UTF-8 at byte 2");
    assert_int_equal(ids.n, 1);
    vt_ids_free(&ids);
    vt_tokenizer_close(t);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A hundred times as long may not take ten thousand times as long. */
static void long_words_are_not_quadratic(void **state)
{
    enum { N = 400000 };
    struct vt_tokenizer *t = open_json("{" MODEL("") PRE("") "}");
    char *text = malloc(N);
    struct vt_ids ids = {0};
    double took = seconds();
    struct vt_err err;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < N; i++)
        text[i] = "abcabd"[i % 6];
    assert_int_equal(vt_tokenizer_encode(t, text, N, 0, &ids, &err), VT_OK);
    took = seconds() - took;
    assert_int_equal(ids.n, (N + 1) / 2);
    assert_int_equal(ids.id[0], 7);
    assert_int_equal(ids.id[1], 6);
    assert_int_equal(ids.id[2], 3);
    if (took > 5)
        fail_msg("%d letters took %.1f s", N, took);
    vt_ids_free(&ids);
    free(text);
    vt_tokenizer_close(t);
}

/* Long words and short ones must agree: the same letters, cut or not. */
static void heap_and_scan_agree(void **state)
{
    struct vt_tokenizer *t;
    struct vt_ids whole = {0}, twice = {0};
    struct vt_err err;
    struct vt_rng rng;
    char text[72];

    (void)state;
    assert_int_equal(vt_tokenizer_open(&t, VT_TEST_DIR "/cases/tiny-qwen3", &err),
                     VT_OK);
    vt_rng_init(&rng, 1, "words");
    for (int k = 0; k < 2000; k++) {
        for (int i = 0; i < 33; i++)
            text[i] = "etaoinshrdlu"[vt_rng_below(&rng, 12)];
        whole.n = twice.n = 0;
        text[32] = '9'; /* a digit stands alone: 32 letters are scanned */
        assert_int_equal(vt_tokenizer_encode(t, text, 33, 0, &whole, &err), VT_OK);
        memmove(text + 1, text, 32);
        text[0] = '-'; /* one more in front: they go through the heap */
        assert_int_equal(vt_tokenizer_encode(t, text, 33, 0, &twice, &err), VT_OK);
        /* No token holds both '-' and a letter, or the first would tell. */
        if (vt_tokenizer_token(t, twice.id[0], NULL)[1] == '\0') {
            assert_int_equal(whole.n, twice.n);
            assert_memory_equal(whole.id, twice.id + 1, (whole.n - 1) * 4);
        }
    }
    vt_ids_free(&whole);
    vt_ids_free(&twice);
    vt_tokenizer_close(t);
}

struct shared {
    const struct vt_tokenizer *t;
    uint64_t sum;
};

static void *encode_much(void *arg)
{
    struct shared *s = arg;
    struct vt_ids ids = {0};
    struct vt_err err;
    struct vt_rng rng;
    char text[64];

    vt_rng_init(&rng, 3, "threads");
    for (int k = 0; k < 3000; k++) {
        for (size_t i = 0; i < sizeof(text); i++)
            text[i] = "the cat sat on a mat"[vt_rng_below(&rng, 20)];
        ids.n = 0;
        if (vt_tokenizer_encode(s->t, text, sizeof(text), 0, &ids, &err) != VT_OK)
            break;
        for (size_t i = 0; i < ids.n; i++)
            s->sum = vt_hash2(s->sum, ids.id[i]);
    }
    vt_ids_free(&ids);
    return NULL;
}

static void threads_get_the_same_ids(void **state)
{
    struct shared s[4] = {0};
    pthread_t thread[4];
    struct vt_tokenizer *t;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_tokenizer_open(&t, VT_TEST_DIR "/cases/tiny-qwen3", &err),
                     VT_OK);
    for (size_t i = 0; i < 4; i++) {
        s[i].t = t;
        assert_int_equal(pthread_create(&thread[i], NULL, encode_much, &s[i]), 0);
    }
    for (size_t i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < 4; i++)
        assert_true(s[i].sum != 0 && s[i].sum == s[0].sum);
    vt_tokenizer_close(t);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows) + 4] = {
        cmocka_unit_test(bad_text_is_named),
        cmocka_unit_test(long_words_are_not_quadratic),
        cmocka_unit_test(heap_and_scan_agree),
        cmocka_unit_test(threads_get_the_same_ids),
    };

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i + 4] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = encodes, .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
