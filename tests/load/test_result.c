/* Results against those of a real `vllm bench serve`: tests/cases/bench has its files
 * and what it printed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load/load.h"

#define CASES VT_TEST_DIR "/cases/bench/"

static struct vt_arena arena;

static const struct vt_node *load(const char *path)
{
    const struct vt_node *root = NULL;
    struct vt_err err = {0};

    if (vt_tree_load(&arena, path, &root, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return root;
}

static double number(const struct vt_node *n)
{
    assert_non_null(n);
    assert_true(n->kind == VT_REAL || n->kind == VT_INT);
    return n->kind == VT_REAL ? n->u.real : (double)n->u.integer;
}

static double get(const struct vt_node *map, const char *key)
{
    return number(vt_get(map, key));
}

static const struct vt_node *item(const struct vt_node *map, const char *key,
                                  uint32_t i)
{
    const struct vt_node *list = vt_get(map, key);

    assert_non_null(list);
    assert_true(i < list->n);
    return &list->u.item[i];
}

static vt_ns ns(double s)
{
    return (vt_ns)llround(s * 1e9);
}

/* vLLM looks at the clock twice for a first token: a gap is from the first look, TTFT
 * to the second, so that a latency is shorter than TTFT and gaps by this, on average.
 */
enum { SECOND_LOOK = 269 };

/* ---- a run, put together again from its detailed result --------------- */

static void rebuild(struct vt_load_records *r, const struct vt_node *root)
{
    uint32_t n = vt_get(root, "ttfts")->n;
    double zero = number(item(root, "start_times", 0));

    r->record = calloc(n, sizeof(*r->record));
    assert_non_null(r->record);
    r->n = r->cap = n;
    r->end = ns(get(root, "duration"));
    for (uint32_t i = 0; i < n; i++) {
        const struct vt_node *gaps = item(root, "itls", i);
        struct vt_load_record *q = &r->record[i];
        vt_ns *stamp = vt_arena_alloc(&r->arena, (gaps->n + 1) * sizeof(*stamp));
        double at = number(item(root, "start_times", i)) - zero;

        q->planned = q->begun = q->sent = ns(at);
        at += number(item(root, "ttfts", i));
        for (uint32_t k = 0; k <= gaps->n; k++) {
            at += k > 0 ? number(&gaps->u.item[k - 1]) : 0;
            stamp[k] = ns(at);
        }
        q->first = q->first_text = stamp[0];
        q->last = q->last_event = q->ended = stamp[gaps->n] - SECOND_LOOK;
        q->stamp = stamp;
        q->n_stamps = gaps->n + 1;
        q->prompt_tokens = (uint32_t)number(item(root, "input_lens", i));
        q->output_tokens = (uint32_t)number(item(root, "output_lens", i));
        q->text = item(root, "generated_texts", i)->u.str;
        q->text_len = item(root, "generated_texts", i)->n;
        q->ok = true;
    }
}

static const struct vt_load_about about = {
    .date = "20261115-033004",
    .backend = "vllm",
    .model = "tiny",
    .tokenizer = "tiny-qwen3",
    .num_prompts = 40,
    .rate = 8,
    .burstiness = 1,
    .metrics = "ttft,tpot,itl,e2el",
    .detailed = true,
};

static void asks_of_the_sample(struct vt_load_asks *a)
{
    vt_load_asks_init(a);
    a->percentile[0] = 50;
    a->percentile[1] = 90;
    a->percentile[2] = 99;
    a->n_percentiles = 3;
}

static void expect_near(const struct vt_node *want, const struct vt_node *got,
                        const char *key)
{
    assert_int_equal(want->kind, got->kind);
    switch (want->kind) {
    case VT_REAL: /* ours are whole nanoseconds */
        if (fabs(want->u.real - got->u.real) > 1e-6 * fabs(want->u.real) + 2e-9)
            fail_msg("%s: %.17g, not %.17g", key, got->u.real, want->u.real);
        break;
    case VT_INT:
        assert_int_equal(want->u.integer, got->u.integer);
        break;
    case VT_STR:
        assert_string_equal(want->u.str, got->u.str);
        break;
    case VT_LIST:
        assert_int_equal(want->n, got->n);
        for (uint32_t i = 0; i < want->n; i++)
            expect_near(&want->u.item[i], &got->u.item[i], key);
        break;
    default:
        break;
    }
}

static void every_field_of_the_file(void **state)
{
    const struct vt_node *want = load(CASES "result.json"), *got = NULL;
    struct vt_load_records r = {0};
    struct vt_load_summary s;
    struct vt_load_asks a;
    struct vt_buf b = {0};
    struct vt_err err = {0};

    (void)state;
    rebuild(&r, want);
    asks_of_the_sample(&a);
    assert_int_equal(vt_load_summarize(&s, &r, &a, &err), VT_OK);
    vt_load_result_json(&b, &about, &a, &s, &r);
    assert_int_equal(vt_json_parse(&arena, b.data, b.len, 1, &got, &err), VT_OK);
    assert_int_equal(got->n, want->n + 1);
    for (uint32_t i = 0; i < want->n; i++) {
        assert_string_equal(got->u.item[i].key, want->u.item[i].key);
        if (strcmp(want->u.item[i].key, "start_times") != 0)
            expect_near(&want->u.item[i], &got->u.item[i], want->u.item[i].key);
    }
    assert_string_equal(got->u.item[want->n].key, "vtwin");
    vt_buf_free(&b);
    vt_load_records_free(&r);
}

static void expect_file(const char *path, const struct vt_buf *got)
{
    struct vt_buf want = {0};
    struct vt_err err = {0};

    assert_int_equal(vt_read_file(path, 1 << 20, &want, &err), VT_OK);
    assert_false(got->failed);
    assert_string_equal(got->data, want.data);
    vt_buf_free(&want);
}

static void every_line_of_the_table(void **state)
{
    struct vt_load_records r = {0};
    struct vt_load_summary s;
    struct vt_load_asks a;
    struct vt_buf b = {0};
    struct vt_err err = {0};

    (void)state;
    rebuild(&r, load(CASES "result.json"));
    asks_of_the_sample(&a);
    assert_int_equal(vt_load_summarize(&s, &r, &a, &err), VT_OK);
    vt_load_result_table(&b, &about, &a, &s);
    expect_file(CASES "console.txt", &b);
    vt_buf_free(&b);
    vt_load_records_free(&r);
}

/* ---- the chat's: its numbers are given, the bytes must be the same ---- */

static void fill_dist(struct vt_load_dist *d, const struct vt_node *root,
                      const char *key)
{
    char name[64];

    snprintf(name, sizeof(name), "mean_%s_ms", key);
    d->mean = get(root, name);
    snprintf(name, sizeof(name), "median_%s_ms", key);
    d->median = get(root, name);
    snprintf(name, sizeof(name), "std_%s_ms", key);
    d->std = get(root, name);
    snprintf(name, sizeof(name), "p99_%s_ms", key);
    d->p[0] = get(root, name);
}

static void fill(struct vt_load_summary *s, const struct vt_node *root)
{
    *s = (struct vt_load_summary){
        .duration_s = get(root, "duration"),
        .completed = (size_t)get(root, "completed"),
        .failed = (size_t)get(root, "failed"),
        .total_input = (uint64_t)get(root, "total_input_tokens"),
        .total_output = (uint64_t)get(root, "total_output_tokens"),
        .request_throughput = get(root, "request_throughput"),
        .output_throughput = get(root, "output_throughput"),
        .total_throughput = get(root, "total_token_throughput"),
        .max_output_per_s = get(root, "max_output_tokens_per_s"),
        .max_concurrent = (uint32_t)get(root, "max_concurrent_requests"),
    };
    fill_dist(&s->ttft, root, "ttft");
    fill_dist(&s->tpot, root, "tpot");
    fill_dist(&s->itl, root, "itl");
}

static void every_byte_of_the_chat(void **state)
{
    static const struct vt_load_about chat = {
        .date = "20261115-033038",
        .backend = "openai-chat",
        .model = "tiny",
        .tokenizer = "tiny-qwen3",
        .num_prompts = 16,
        .rate = INFINITY,
        .burstiness = 1,
        .max_concurrency = 4,
        .metrics = "ttft,tpot,itl",
    };
    struct vt_load_records none = {0};
    struct vt_load_summary s;
    struct vt_load_asks a;
    struct vt_buf b = {0};
    char *ours;

    (void)state;
    vt_load_asks_init(&a);
    fill(&s, load(CASES "result-chat.json"));
    vt_load_result_table(&b, &chat, &a, &s);
    expect_file(CASES "console-chat.txt", &b);
    vt_buf_clear(&b);
    vt_load_result_json(&b, &chat, &a, &s, &none);
    ours = strstr(b.data, ", \"vtwin\"");
    assert_non_null(ours);
    memcpy(ours, "}", 2);
    expect_file(CASES "result-chat.json", &b);
    vt_buf_free(&b);
}

/* ---- what is not in every result -------------------------------------- */

static void all_that_may_be_in_it(void **state)
{
    static const struct vt_load_pair metadata[] = {{"tp", "2"}, {"note", "a\"b"}};
    static const struct vt_load_about more = {
        .label = "x",
        .metadata = metadata,
        .n_metadata = 2,
        .rate = INFINITY,
        .burstiness = INFINITY,
        .ramp = VT_RAMP_LINEAR,
        .ramp_start = 1,
        .ramp_end = 4,
        .ramp_events = "[{\"rps\": 1}]",
        .metrics = "e2el",
        .goodput = true,
    };
    static const char *const json[] = {
        "\"label\": \"x\", ",
        "\"num_prompts\": 0, \"tp\": \"2\", \"note\": \"a\\\"b\", \"request_rate\": "
        "\"inf\", \"burstiness\": Infinity, \"max_concurrency\": null, "
        "\"ramp_up_strategy\": \"linear\", \"ramp_up_start_rps\": 1, "
        "\"ramp_up_end_rps\": 4, ",
        "\"request_goodput\": 1.5, ",
        "\"probe_completed\": 3, \"probe_failed\": 0, ",
        "\"rps_change_events\": [{\"rps\": 1}], \"spec_decode_acceptance_rate\": 50.0, "
        "\"spec_decode_acceptance_length\": 2.0, \"spec_decode_num_drafts\": 10, "
        "\"spec_decode_draft_tokens\": 20, \"spec_decode_accepted_tokens\": 10, "
        "\"spec_decode_per_position_acceptance_rates\": [0.7, 0.3], ",
        "\"p99.9_e2el_ms\": ",
    };
    static const char *const table[] = {
        "Request goodput (req/s):                 1.50      \n",
        "------------------Probe Requests------------------\n"
        "Probe requests completed:                3         \n",
        "P99.9 E2EL (ms):                         0.00      \n",
        "---------------Speculative Decoding---------------\n"
        "Acceptance rate (%):                     50.00     \n",
        "  Position 1:                            30.00     \n"
        "==================================================\n",
    };
    struct vt_load_records none = {0};
    struct vt_load_summary s = {.request_goodput = 1.5,
                                .probe_completed = 3,
                                .spec = {.on = true,
                                         .drafts = 10,
                                         .draft_tokens = 20,
                                         .accepted_tokens = 10,
                                         .position = {7, 3},
                                         .n_positions = 2}};
    struct vt_load_asks a;
    struct vt_buf b = {0};

    (void)state;
    vt_load_asks_init(&a);
    a.percentile[0] = 99.9;
    vt_load_result_json(&b, &more, &a, &s, &none);
    for (size_t i = 0; i < VT_COUNT(json); i++)
        if (!strstr(b.data, json[i]))
            fail_msg("not in it: %s\n%s", json[i], b.data);
    vt_buf_clear(&b);
    vt_load_result_table(&b, &more, &a, &s);
    for (size_t i = 0; i < VT_COUNT(table); i++)
        if (!strstr(b.data, table[i]))
            fail_msg("not in it: %s\n%s", table[i], b.data);
    vt_buf_free(&b);
}

static void counters_of_speculative_decoding(void **state)
{
    static const char before[] =
        "# HELP vllm:spec_decode_num_drafts_total x\n"
        "vllm:spec_decode_num_drafts_total{engine=\"0\"} 5.0\n"
        "vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 10.0\n"
        "vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 4.0\n";
    static const char after[] =
        "vllm:spec_decode_num_drafts_total{engine=\"0\"} 7.0\n"
        "vllm:spec_decode_num_drafts_total{engine=\"1\"} 8.0\n"
        "vllm:spec_decode_num_drafts_created{engine=\"1\"} 1.7e9\n"
        "vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 3e+01\n"
        "vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 14.0\n"
        "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 3.0";
    struct vt_load_spec a, b;

    (void)state;
    vt_load_spec_read(&a, before, sizeof(before) - 1);
    vt_load_spec_read(&b, after, sizeof(after) - 1);
    vt_load_spec_minus(&b, &a);
    assert_true(b.on);
    assert_int_equal(b.drafts, 10);
    assert_int_equal(b.draft_tokens, 20);
    assert_int_equal(b.accepted_tokens, 10);
    assert_int_equal(b.n_positions, 2);
    assert_int_equal(b.position[1], 3);
    vt_load_spec_read(&a, "process_cpu 1\n", 14);
    assert_false(a.on);
}

/* ---- Python's ways ---------------------------------------------------- */

static void numbers_as_python_writes_them(void **state)
{
    static const struct {
        double v;
        const char *text;
    } rows[] = {
        {8, "8.0"},
        {0, "0.0"},
        {-0.0, "-0.0"},
        {0.1, "0.1"},
        {5.851869085000089, "5.851869085000089"},
        {1e-4, "0.0001"},
        {2.8154e-05, "2.8154e-05"},
        {1e-7, "1e-07"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {123456789012345680, "1.2345678901234568e+17"},
        {1e100, "1e+100"},
        {-2.5, "-2.5"},
        {1794774394.7253382, "1794774394.7253382"},
        {5e-324, "5e-324"},
        {INFINITY, "Infinity"},
        {NAN, "NaN"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_buf b = {0};

        vt_buf_py_f64(&b, rows[i].v);
        assert_string_equal(b.data, rows[i].text);
        vt_buf_free(&b);
    }
}

static void texts_as_python_writes_them(void **state)
{
    struct vt_buf b = {0};
    static const char text[] =
        "a\"\\/\n\t\x01\x7f \xc3\xbc\xe2\x9d\x8c\xf0\x9f\x98\x80\xff";

    (void)state;
    vt_buf_json_ascii(&b, text, sizeof(text) - 1);
    assert_string_equal(b.data, "\"a\\\"\\\\/\\n\\t\\u0001\x7f "
                                "\\u00fc\\u274c\\ud83d\\ude00\\ufffd\"");
    vt_buf_free(&b);
}

static int free_arena(void **state)
{
    (void)state;
    vt_arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_the_file),
        cmocka_unit_test(every_line_of_the_table),
        cmocka_unit_test(every_byte_of_the_chat),
        cmocka_unit_test(all_that_may_be_in_it),
        cmocka_unit_test(counters_of_speculative_decoding),
        cmocka_unit_test(numbers_as_python_writes_them),
        cmocka_unit_test(texts_as_python_writes_them),
    };

    return cmocka_run_group_tests_name("result", tests, NULL, free_arena);
}
