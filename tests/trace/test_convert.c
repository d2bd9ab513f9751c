/* Converters: there and back again, reports of load generators, and refusals. */
#include "fixture.h"

#include <unistd.h>

#include "text/text.h"
#include "trace/convert/convert.h"

/* ---- helpers ---------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
    struct vt_out *o;
    struct vt_err err = {0};

    assert_int_equal(vt_out_open(&o, path, &err), VT_OK);
    assert_int_equal(vt_out_write(o, text, strlen(text), &err), VT_OK);
    assert_int_equal(vt_out_commit(o, &err), VT_OK);
}

static struct vt_converted must_convert(const char *in, const char *out, const char *to)
{
    struct vt_convert c = {.in = in, .out = out, .to = to};
    struct vt_converted done;
    struct vt_err err = {0};

    if (vt_convert(&c, &done, &err) != VT_OK)
        fail_msg("%s to %s: %s", in, out, err.msg);
    return done;
}

static void load(struct vt_records *r, const char *path)
{
    struct vt_err err = {0};

    if (vt_records_load(r, path, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static void remove_all(const char *const *path)
{
    for (; *path; path++)
        unlink(*path);
}

static const struct vt_record *find(const struct vt_records *r, const char *id)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->rec[i].id, id) == 0)
            return &r->rec[i];
    fail_msg("no request '%s'", id);
    return NULL;
}

/* ---- there and back --------------------------------------------------- */

static void assert_same_times(const struct vt_record *a, const struct vt_record *b,
                              vt_ns within)
{
    assert_int_equal(a->prompt_tokens, b->prompt_tokens);
    assert_int_equal(a->output_tokens, b->output_tokens);
    assert_true(llabs(a->arrival_ns - b->arrival_ns) <= within);
    assert_true(llabs(a->ttft_ns - b->ttft_ns) <= within);
    assert_int_equal(a->n_gaps, b->n_gaps);
    for (uint32_t i = 0; i < a->n_gaps; i++)
        assert_true(llabs(vt_record_gap(a, i) - vt_record_gap(b, i)) <= within);
}

static void ours_is_written_as_it_was_read(void **state)
{
    static const char *const files[] = {"one.jsonl", "two.jsonl.gz", NULL};
    struct vt_buf a = {0}, b = {0};
    struct vt_records r;
    struct vt_err err = {0};

    (void)state;
    must_convert(DATA("multiturn.trace.jsonl.gz"), files[0], NULL);
    must_convert(files[0], files[1], "vtwin");
    assert_int_equal(vt_read_file(files[0], 1 << 24, &a, &err), VT_OK);
    assert_int_equal(vt_read_file(files[1], 1 << 24, &b, &err), VT_OK);
    assert_string_equal(a.data, b.data);
    load(&r, files[0]);
    assert_non_null(strstr(r.meta_json, "\"weights\":\"dummy\"")); /* of no use to us */
    assert_non_null(r.rec[0].gap_running);
    assert_non_null(r.rec[0].segment);
    vt_records_free(&r);
    vt_buf_free(&a);
    vt_buf_free(&b);
    remove_all(files);
}

static vt_ns end_of(const struct vt_record *q)
{
    return q->arrival_ns + q->ttft_ns + vt_record_decode_ns(q);
}

/* Same timings in another order; prompts that share a prefix share its hashes. */
static void vllm_vcr_traces_say_the_same(void **state)
{
    static const char *const files[] = {"theirs.jsonl", "ours.jsonl", NULL};
    struct vt_records a, b;
    struct vt_converted done;
    uint32_t shared = 0;

    (void)state;
    done = must_convert(DATA("multiturn.trace.jsonl.gz"), files[0], "vcr");
    assert_string_equal(done.from, "vtwin");
    load(&a, DATA("multiturn.trace.jsonl.gz"));
    load(&b, files[0]);
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++) {
        assert_same_times(&a.rec[i], &b.rec[i], 0);
        assert_int_equal(b.rec[i].n_block_hashes, b.rec[i].prompt_tokens / 16);
        assert_int_equal(a.rec[i].concurrency, b.rec[i].concurrency);
        for (size_t k = 0; k < a.n; k++)
            assert_true(i == k || b.rec[i].line < b.rec[k].line ||
                        end_of(&b.rec[i]) >= end_of(&b.rec[k]));
        if (i > 0 && strcmp(a.rec[i].segment[0].name, a.rec[0].segment[0].name) == 0) {
            uint32_t blocks = a.rec[0].segment[0].tokens / 16;

            assert_memory_equal(b.rec[i].block_hash, b.rec[0].block_hash,
                                blocks * sizeof(uint64_t));
            shared++;
        }
    }
    assert_true(shared > 0);
    vt_records_free(&a);
    vt_records_free(&b);
    remove_all(files);
}

static const char grouped[] =
    "{\"meta\":{\"model\":\"org/m\",\"tp\":2,\"block_size\":16}}\n"
    "{\"id\":\"a,1\",\"arrival_ms\":1,\"prompt_tokens\":40,\"output_tokens\":3,"
    "\"ttft_ms\":20.001,\"itl_ms\":[5.002,6],\"segments\":[[\"sys\",32],[\"ua\",8]],"
    "\"finish_reason\":\"stop\"}\n"
    "{\"id\":\"b\",\"arrival_ms\":2.5,\"prompt_tokens\":50,\"output_tokens\":1,"
    "\"ttft_ms\":7,\"segments\":[[\"sys\",32],[\"ub\",18]],\"session\":\"s\",\"turn\":"
    "4,"
    "\"priority\":3}\n"
    "{\"id\":\"c\",\"arrival_ms\":3,\"prompt_tokens\":9,\"output_tokens\":4,"
    "\"ttft_ms\":7,\"itl_summary\":{\"mean_ms\":2,\"count\":3}}\n";

static void tracev2_keeps_times_and_prefixes(void **state)
{
    static const char *const files[] = {"g.jsonl",    "v2.yaml",    "v2.csv",
                                        "v2.itl.csv", "back.jsonl", NULL};
    struct vt_records a, b;
    const struct vt_record *q;

    (void)state;
    write_text(files[0], grouped);
    must_convert(files[0], files[1], NULL); /* by the name of the output */
    assert_int_equal(access("v2.csv", F_OK), 0);
    assert_int_equal(access("v2.itl.csv", F_OK), 0);
    must_convert("v2.csv", files[4], NULL);
    load(&a, files[0]);
    load(&b, files[4]);
    assert_int_equal(b.n, 3);
    for (size_t i = 0; i < a.n; i++)
        assert_same_times(&a.rec[i], find(&b, a.rec[i].id), VT_US);
    assert_string_equal(b.meta.model, "org/m");
    assert_int_equal(b.meta.tp, 2);
    q = find(&b, "a,1");
    assert_string_equal(q->segment[0].name, "sys");
    assert_int_equal(q->segment[0].tokens, 32);
    assert_string_equal(q->finish_reason, "stop");
    assert_false(q->by_mean);
    assert_string_equal(find(&b, "b")->session, "s");
    assert_int_equal(find(&b, "b")->turn, 4);
    assert_true(find(&b, "c")->by_mean); /* no chunk times were known */
    vt_records_free(&a);
    vt_records_free(&b);
    remove_all(files);
}

static void request_lists_keep_requests(void **state)
{
    static const char *const files[] = {"g.jsonl", "l.csv", "back.jsonl", NULL};
    struct vt_converted done;
    struct vt_workload w;
    struct vt_err err = {0};
    struct vt_records r;

    (void)state;
    write_text(files[0], grouped);
    done = must_convert(files[0], files[1], NULL);
    assert_string_equal(done.to, "csv");
    assert_string_equal(done.note, "a request list has no measured times");
    assert_int_equal(vt_requests_load(&w, files[1], &err), VT_OK);
    assert_int_equal(w.n, 3);
    assert_string_equal(w.req[0].id, "a,1");
    assert_int_equal(w.req[1].arrival_ns, 2500000);
    assert_int_equal(w.req[1].priority, 3);
    assert_true(w.segment[0].content == w.segment[w.req[1].first_segment].content);
    assert_int_equal(w.segment[0].tokens, 32);
    vt_workload_free(&w);
    must_convert(files[1], files[2], NULL);
    load(&r, files[2]);
    assert_int_equal(r.rec[2].ttft_ns, -1);
    assert_string_equal(r.rec[0].segment[0].name, r.rec[1].segment[0].name);
    vt_records_free(&r);
    remove_all(files);
}

static void more_shared_than_can_be_said_is_told(void **state)
{
    static const char *const files[] = {"l.csv", NULL};
    struct vt_converted done =
        must_convert(DATA("multiturn.trace.jsonl.gz"), files[0], NULL);

    (void)state;
    assert_non_null(strstr(done.note, "nor content shared beyond"));
    must_convert(DATA("mooncake.jsonl"), files[0], NULL);
    must_convert(DATA("azure.csv"), files[0], NULL);
    remove_all(files);
}

/* ---- reports of load generators --------------------------------------- */

static const struct vt_node *tree(struct vt_arena *a, const char *text)
{
    const struct vt_node *root;
    struct vt_err err = {0};

    if (vt_json_parse(a, text, strlen(text), 1, &root, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return root;
}

static int read_tree(convert_tree *read, const char *text, struct vt_records *r,
                     struct vt_err *err)
{
    struct vt_arena a = {0};
    int rc = records_init(r, "t", err);

    assert_int_equal(rc, VT_OK);
    rc = read(r, tree(&a, text), NULL, err);
    vt_arena_free(&a);
    if (rc != VT_OK)
        vt_records_free(r);
    return rc;
}

static void vllm_bench_results_become_traces(void **state)
{
    struct vt_records r;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        read_tree(convert_bench_tree,
                  "{\"model_id\":\"m\",\"input_lens\":[8,9,7],\"output_lens\":[3,2,0],"
                  "\"ttfts\":[0.5,0.25,0],\"itls\":[[0.01,0.02],[0.01,0.03,0.01],[]],"
                  "\"start_times\":[100.5,100.25,101]}",
                  &r, &err),
        VT_OK);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.n_skipped, 1); /* it gave no token */
    assert_string_equal(r.meta.model, "m");
    assert_int_equal(r.rec[0].arrival_ns, 0); /* sorted, from the first */
    assert_int_equal(r.rec[0].prompt_tokens, 9);
    assert_true(r.rec[0].by_mean); /* more chunks than tokens */
    assert_int_equal(vt_record_decode_ns(&r.rec[0]), 50 * VT_MS);
    assert_int_equal(r.rec[1].arrival_ns, 250 * VT_MS);
    assert_int_equal(r.rec[1].gap[1], 20 * VT_MS);
    assert_int_equal(r.rec[1].concurrency, 2);
    vt_records_free(&r);
}

static void inference_perf_requests_become_traces(void **state)
{
    struct vt_records r;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        read_tree(convert_lifecycle_tree,
                  "[{\"start_time\":50.0,\"end_time\":51,\"error\":null,\"info\":"
                  "{\"input_tokens\":5,\"output_tokens\":2,"
                  "\"output_token_times\":[50.5,50.75]}},"
                  "{\"start_time\":49.0,\"info\":{\"input_tokens\":6,"
                  "\"output_tokens\":2,\"output_token_times\":[49.5,49.6,49.7,50]}},"
                  "{\"start_time\":49.5,\"error\":{\"error_type\":\"x\"},\"info\":{}}]",
                  &r, &err),
        VT_OK);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.n_skipped, 1);
    assert_true(r.rec[0].by_mean); /* two events for each token */
    assert_int_equal(vt_record_decode_ns(&r.rec[0]), 500 * VT_MS);
    assert_int_equal(r.rec[1].arrival_ns, VT_SEC);
    assert_int_equal(r.rec[1].gap[0], 250 * VT_MS);
    vt_records_free(&r);
}

#define OLD_ROW(at, more) "{\"start_time\":" at ",\"end_time\":99," more "}"
#define TOKENS(in, out)                                                       \
    "\"error\":null,\"info\":{\"input_tokens\":" in ",\"output_tokens\":" out \
    ",\"output_token_times\":[60,61]}"

/* All that was sent, with what is known of each. */
static void whole_reports_keep_what_failed(void **state)
{
    static const char text[] = "[" OLD_ROW(
        "50",
        TOKENS("8",
               "2") ",\"request\":\"{\\\"prompt\\\":"
                    "\\\"one two three four\\\"}\"") "," /* an engine that may not stop:
                                                            as many as were asked for */
        OLD_ROW("51",
                TOKENS("8", "2") ",\"request\":\"{\\\"prompt\\\":\\\"other "
                                 "words\\\",\\\"ignore_eos\\\":true,\\\"max_tokens\\\":"
                                 "9}\"") "," /* failed, and its prompt was counted
                                                elsewhere */
        OLD_ROW("52", "\"error\":{\"error_type\":\"TimeoutError\"},\"info\":{},"
                      "\"stage_id\":1,\"request\":\"{\\\"prompt\\\":\\\"one two three "
                      "four\\\",\\\"max_tokens\\\":7}\"") "," /* failed, and nothing is
                                                                 known of it */
        OLD_ROW("53",
                "\"error\":{\"error_msg\":\"no\"},\"info\":{}") "," /* what is shared by
                                                                       a hash, and by
                                                                       segments */
        OLD_ROW("54", TOKENS("8", "2") ",\"prompt_hash\":\"ab\"") "," OLD_ROW(
            "55",
            TOKENS(
                "8",
                "2") ",\"prompt_hash\":\"ab\"") "," OLD_ROW("56",
                                                            "\"error\":null,\"info\":{"
                                                            "\"input_tokens\":8,"
                                                            "\"output_tokens\":2,"
                                                            "\"segments\":[[\"s\",5],["
                                                            "\"t\",1]]}") "]";
    const struct convert_from all = {.all = true};
    const struct vt_node *root;
    struct vt_arena a = {0};
    struct vt_records r;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_json_parse(&a, text, strlen(text), 1, &root, &err), VT_OK);
    assert_int_equal(records_init(&r, "test", &err), VT_OK);
    if (convert_lifecycle_tree(&r, root, &all, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(r.n, 7);
    assert_null(r.rec[0].failure);
    assert_int_equal(r.rec[0].e2e_ns, 49 * VT_SEC);
    assert_int_equal(r.rec[0].output_tokens, 2);
    assert_false(r.rec[0].counted);
    assert_int_equal(r.rec[1].output_tokens, 9);
    assert_true(r.rec[1].counted);
    assert_string_equal(r.rec[2].failure, "TimeoutError");
    assert_int_equal(r.rec[2].stage, 1);
    assert_int_equal(r.rec[2].prompt_tokens, 8);
    assert_int_equal(r.rec[2].output_tokens, 7);
    assert_int_equal(r.rec[2].ttft_ns, -1);
    assert_int_equal(r.rec[2].n_segments, r.rec[0].n_segments); /* the same prompt */
    assert_string_equal(r.rec[2].segment[0].name, r.rec[0].segment[0].name);
    assert_non_null(r.rec[3].failure);
    assert_int_equal(r.rec[3].prompt_tokens + r.rec[3].output_tokens, 0);
    assert_string_equal(r.rec[4].segment[0].name, r.rec[5].segment[0].name);
    assert_int_equal(r.rec[4].segment[0].tokens, 8);
    assert_int_equal(r.rec[6].n_segments, 3);
    assert_int_equal(r.rec[6].segment[2].tokens, 2); /* its own */
    assert_int_equal(r.rec[6].ttft_ns, -1);          /* nobody saw its tokens come */
    vt_records_free(&r);
    vt_arena_free(&a);
}

static void guidellm_reports_become_traces(void **state)
{
    struct vt_records r;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        read_tree(
            convert_guidellm_tree,
            "{\"args\":{\"model\":\"m\"},\"benchmarks\":[{\"config\":{\"strategy\":"
            "{\"type_\":\"concurrent\",\"streams\":4}},\"requests\":{\"successful\":["
            "{\"request_id\":\"x\",\"prompt_tokens\":10,\"output_tokens\":5,"
            "\"time_to_first_token_ms\":30.5,\"inter_token_latency_ms\":2.5}]}},"
            "{\"config\":{\"strategy\":{\"type_\":\"poisson\"}},\"requests\":"
            "{\"completed\":[{\"request_id\":\"y\",\"prompt_tokens\":10,"
            "\"output_tokens\":1,\"time_to_first_token_ms\":8,"
            "\"request_start_time\":1700000000.25}]}}]}",
            &r, &err),
        VT_OK);
    assert_int_equal(r.n, 2);
    assert_string_equal(r.meta.model, "m");
    assert_int_equal(find(&r, "x")->concurrency, 4);
    assert_int_equal(find(&r, "x")->arrival_ns, -1);
    assert_int_equal(vt_record_decode_ns(find(&r, "x")), 10 * VT_MS);
    assert_int_equal(find(&r, "y")->arrival_ns, 0);
    assert_int_equal(find(&r, "y")->n_gaps, 0);
    vt_records_free(&r);
}

/* ---- reports as the tools wrote them ---------------------------------- */

static void read_report(struct vt_report *r, const char *path)
{
    struct vt_err err = {0};

    if (vt_report_load(r, path, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

/* Each was written by the tool itself, loading a server that fails now and then. */
static const struct written {
    const char *path, *format;
    size_t requests, skipped;
    size_t by_mean; /* of them */
    size_t loads;
    uint32_t concurrency; /* of the first load; 0: not a closed loop */
} written[] = {
    {DATA("inference-perf-0.7.json.gz"), "inference-perf", 36, 4, 0, 1, 0},
    {DATA("inference-perf/per_request_lifecycle_metrics.json.gz"), "inference-perf", 22,
     2, 0, 2, 2},
    {DATA("guidellm/benchmarks.json.gz"), "guidellm", 33, 8, 33, 2, 1},
    {DATA("aiperf/profile_export.jsonl.gz"), "aiperf", 12, 2, 0, 1, 3},
    {DATA("vllm-bench/result.json.gz"), "vllm-bench", 40, 0, 0, 1, 0},
};

static void reports_are_read_as_their_tools_write_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(written); i++) {
        const struct written *want = &written[i];
        size_t n = 0, by_mean = 0;
        struct vt_report r;

        read_report(&r, want->path);
        assert_string_equal(r.format, want->format);
        assert_int_equal(r.skipped, want->skipped);
        assert_int_equal(r.n, want->loads);
        for (size_t k = 0; k < r.n; k++) {
            const struct vt_workload *w = &r.load[k].work;

            n += w->n;
            by_mean += w->n_by_mean;
            assert_int_equal(w->meta.clock, VT_CLOCK_CLIENT);
            assert_non_null(w->measured);
            assert_int_equal(w->req[0].arrival_ns, 0);
            assert_int_equal(w->n_undated, 0);
            assert_true((r.load[k].name != NULL) == (r.n > 1));
        }
        assert_int_equal(n, want->requests);
        assert_int_equal(by_mean, want->by_mean);
        assert_int_equal(r.load[0].work.concurrency, want->concurrency);
        assert_int_equal(r.load[0].work.arrivals,
                         want->concurrency ? VT_ARRIVALS_CLOSED : VT_ARRIVALS_RECORDED);
        vt_report_free(&r);
    }
}

/* Stages name their requests nowhere; how many each sends is in config.yaml. */
static void stages_of_inference_perf_are_kept_apart(void **state)
{
    struct vt_report r;

    (void)state;
    read_report(&r, DATA("inference-perf/per_request_lifecycle_metrics.json.gz"));
    assert_string_equal(r.load[0].name, "concurrent-2");
    assert_string_equal(r.load[1].name, "concurrent-4");
    assert_int_equal(r.load[0].work.n + r.load[1].work.n, 10 + 14 - 2);
    assert_int_equal(r.load[1].work.concurrency, 4);
    vt_report_free(&r);
}

/* Two system prompts of 96 tokens, each before one of four questions of 32. */
static void prompts_that_begin_alike_share_their_beginning(void **state)
{
    struct vt_records a;
    size_t same = 0, begin = 0, other = 0;

    (void)state;
    must_convert(DATA("inference-perf-0.7.json.gz"), "shared.jsonl", NULL);
    load(&a, "shared.jsonl");
    for (size_t i = 0; i < a.n; i++) {
        const struct vt_record *q = &a.rec[i];

        assert_int_equal(q->n_segments, 2);
        assert_in_range(q->segment[0].tokens, 93, 99);
        assert_int_equal(q->segment[0].tokens + q->segment[1].tokens, 128);
        for (size_t k = 0; k < i; k++) {
            const struct vt_record *p = &a.rec[k];
            bool first = strcmp(p->segment[0].name, q->segment[0].name) == 0;
            bool second = strcmp(p->segment[1].name, q->segment[1].name) == 0;

            assert_true(first || !second);
            same += first && second;
            begin += first && !second;
            other += !first;
        }
    }
    assert_true(same > 0 && begin > same && other > begin / 2);
    vt_records_free(&a);
    unlink("shared.jsonl");
}

static void what_the_server_counted_is_taken(void **state)
{
    struct vt_report r;
    size_t cached = 0;

    (void)state;
    read_report(&r, DATA("inference-perf-0.7.json.gz"));
    for (size_t i = 0; i < r.load[0].work.n; i++)
        cached += r.load[0].work.measured[i].cached_tokens;
    assert_true(cached > 0); /* prompts repeat */
    vt_report_free(&r);
    read_report(&r, DATA("aiperf/profile_export.jsonl.gz"));
    /* The client sent 64 tokens, the chat template added nine. */
    assert_int_equal(r.load[0].work.req[0].prompt_tokens, 73);
    vt_report_free(&r);
}

static struct asked {
    const char *name;
    const char *one, *two; /* bodies of two requests */
    uint32_t shared;       /* tokens of 100 that they begin with alike */
} askeds[] = {
    {"equal prompts", "{\"prompt\":\"abcdefghij\"}", "{\"prompt\":\"abcdefghij\"}",
     100},
    {"prompts that part half way", "{\"prompt\":\"abcdefghij\"}",
     "{\"prompt\":\"abcdeVWXYZ\"}", 50},
    {"prompts that part at once", "{\"prompt\":\"abcdefghij\"}",
     "{\"prompt\":\"Abcdefghij\"}", 0},
    {"what is shorter than a block", "{\"prompt\":\"abcdefghij\"}",
     "{\"prompt\":\"aXYZUVWRST\"}", 0},
    {"bodies within strings", "\"{\\\"prompt\\\":\\\"abcdefghij\\\"}\"",
     "{\"prompt\":\"abcdefghij\",\"max_tokens\":3}", 100},
    {"prompts without a body", "\"abcdefghij\"", "{\"prompt\":[\"abcdefghij\"]}", 100},
    {"token ids", "{\"prompt\":[1,2,3,4]}", "{\"prompt\":[1,2,3,9]}", 75},
    {"chats", "{\"messages\":[{\"role\":\"u\",\"content\":\"abcdefg\"}]}",
     "{\"messages\":[{\"role\":\"u\",\"content\":[{\"type\":\"text\",\"text\":"
     "\"abcdefg\"}]}]}",
     100},
    {"a chat that goes on", "{\"messages\":[{\"role\":\"u\",\"content\":\"abcdefg\"}]}",
     "{\"messages\":[{\"role\":\"u\",\"content\":\"abcdefg\"},"
     "{\"role\":\"a\",\"content\":\"hijklmn\"}]}",
     66},
    {"bodies that are none", "{\"model\":\"m\"}", "{\"model\":\"m\"}", 0},
};

static void share_what_they_begin_with(void **state)
{
    const struct asked *t = *state;
    const char *const body[] = {t->one, t->two};
    struct convert_prompts p = {0};
    struct vt_arena a = {0};
    struct vt_records r;
    struct vt_record *q;
    struct vt_err err = {0};
    uint32_t shared = 0;

    assert_int_equal(records_init(&r, "t", &err), VT_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(records_add(&r, &q, &err), VT_OK);
        q->prompt_tokens = 100;
        q->output_tokens = 1;
        assert_int_equal(convert_prompt_add(&p, tree(&a, body[i]), i, &err), VT_OK);
    }
    assert_int_equal(convert_prompts_share(&p, &r, &err), VT_OK);
    for (uint32_t i = 0; i < r.rec[0].n_segments && i < r.rec[1].n_segments; i++) {
        const struct vt_record_segment *x = &r.rec[0].segment[i];
        const struct vt_record_segment *y = &r.rec[1].segment[i];

        if (strcmp(x->name, y->name) != 0)
            break;
        shared += x->tokens < y->tokens ? x->tokens : y->tokens;
        if (x->tokens != y->tokens)
            break;
    }
    assert_int_equal(shared, t->shared);
    convert_prompts_free(&p);
    vt_records_free(&r);
    vt_arena_free(&a);
}

/* ---- tokens of texts ----------------------------------------------------- */

/* Bytes and tokens do not go together: a beginning of many short tokens. */
#define DIGITS "1 7 2 9 4 4 8 0 3 5 6 1 9 2 7 7 0 4 3 8 5 2 6 9 1 3 "
#define PROSE                                                                  \
    "because the beginning of the question has been answered for the customer" \
    " before, there is nothing more that could have been said about it"

static struct cut {
    const char *name;
    bool chat;
    const char *one, *two;
} cuts[] = {
    {"texts part where their tokens do", false, DIGITS PROSE, DIGITS "and then"},
    {"what is no token alike is not shared", false, DIGITS "and the",
     DIGITS "and then"},
    {"chats part where the template's tokens do", true, DIGITS PROSE,
     DIGITS "and then"},
};

/* As a server gets it. */
static void ids_of(const struct vt_tokenizer *t, const struct cut *c, const char *text,
                   struct vt_ids *out)
{
    const struct vt_chat_message message = {"user", text};
    const struct vt_chat_options o = {.add_generation_prompt = true};
    struct vt_buf b = {0};
    struct vt_err err = {0};

    if (c->chat)
        assert_int_equal(vt_chat_render(t, &message, 1, &o, &b, &err), VT_OK);
    else
        vt_buf_str(&b, text);
    assert_int_equal(vt_tokenizer_encode(
                         t, b.data, b.len,
                         c->chat ? VT_ENCODE_PLAIN : VT_ENCODE_ADD_SPECIAL, out, &err),
                     VT_OK);
    vt_buf_free(&b);
}

static void a_tokenizer_says_where_prompts_part(void **state)
{
    const struct cut *c = *state;
    const char *const text[] = {c->one, c->two};
    struct convert_prompts p = {0};
    struct vt_tokenizer *t;
    struct vt_arena a = {0};
    struct vt_ids ids[2] = {{0}};
    struct vt_records r;
    struct vt_err err = {0};
    size_t alike = 0;

    if (vt_tokenizer_open(&t, VT_TEST_DIR "/cases/tiny-qwen3", &err) != VT_OK)
        fail_msg("%s", err.msg);
    p.tokenizer = t;
    assert_int_equal(records_init(&r, "t", &err), VT_OK);
    for (size_t i = 0; i < 2; i++) {
        struct vt_record *q;
        char body[600];

        ids_of(t, c, text[i], &ids[i]);
        snprintf(body, sizeof(body), "{%s\"%s\"%s}",
                 c->chat ? "\"messages\":[{\"role\":\"user\",\"content\":"
                         : "\"prompt\":",
                 text[i], c->chat ? "}]" : "");
        assert_int_equal(records_add(&r, &q, &err), VT_OK);
        q->prompt_tokens = (uint32_t)ids[i].n;
        q->output_tokens = 1;
        assert_int_equal(convert_prompt_add(&p, tree(&a, body), i, &err), VT_OK);
    }
    while (alike < ids[0].n && alike < ids[1].n && ids[0].id[alike] == ids[1].id[alike])
        alike++;
    assert_in_range(alike, 16, (ids[0].n < ids[1].n ? ids[0].n : ids[1].n) - 1);
    if (convert_prompts_share(&p, &r, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(r.rec[0].segment[0].name, r.rec[1].segment[0].name);
    assert_int_equal(r.rec[0].segment[0].tokens, alike);
    assert_int_equal(r.rec[1].segment[0].tokens, alike);
    assert_string_not_equal(r.rec[0].segment[1].name, r.rec[1].segment[1].name);
    for (size_t i = 0; i < 2; i++)
        vt_ids_free(&ids[i]);
    convert_prompts_free(&p);
    vt_records_free(&r);
    vt_arena_free(&a);
    vt_tokenizer_close(t);
}

/* ---- conversations -------------------------------------------------------- */

#define TURN(id, talk, turn, start)                                         \
    "{\"request_id\":\"" id "\",\"info\":{\"conversation_id\":\"" talk      \
    "\",\"turn_index\":" turn "},\"prompt_tokens\":10,\"output_tokens\":5," \
    "\"time_to_first_token_ms\":100,\"inter_token_latency_ms\":25,"         \
    "\"request_start_time\":" start "}"

/* b has one turn, c one twice; of a the first took 0.2 s. */
static void conversations_of_guidellm_keep_their_turns(void **state)
{
    struct vt_records r;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        read_tree(
            convert_guidellm_tree,
            "{\"benchmarks\":[{\"config\":{\"strategy\":{\"type_\":"
            "\"concurrent\",\"streams\":2}},\"requests\":{\"successful\":"
            "[" TURN("a1", "a", "1", "1003.5") "," TURN(
                "b0", "b", "0",
                "1001") "," TURN("a0", "a", "0",
                                 "1000") "," TURN("c0", "c", "0",
                                                  "1002") "," TURN("c1", "c", "0",
                                                                   "1004") "]}}]}",
            &r, &err),
        VT_OK);
    assert_string_equal(find(&r, "a0")->session, "a");
    assert_string_equal(find(&r, "a1")->session, "a");
    assert_int_equal(find(&r, "a0")->turn, 0);
    assert_int_equal(find(&r, "a1")->turn, 1);
    assert_int_equal(find(&r, "a0")->think_ns, 0);
    assert_int_equal(find(&r, "a1")->think_ns, 3300 * VT_MS);
    assert_null(find(&r, "b0")->session);
    assert_null(find(&r, "c0")->session);
    assert_null(find(&r, "c1")->session);
    assert_int_equal(r.n_parts, 1);
    assert_int_equal(r.part[0].arrivals, VT_ARRIVALS_SESSION);
    assert_int_equal(r.part[0].concurrency, 2);
    vt_records_free(&r);
}

#define RECORD(id, session, turn, start)                                         \
    "{\"metadata\":{\"x_request_id\":\"" id "\",\"x_correlation_id\":\"" session \
    "\",\"conversation_id\":\"same\",\"turn_index\":" turn                       \
    ",\"request_start_ns\":" start "},\"metrics\":{\"time_to_first_token\":"     \
    "{\"value\":10},\"inter_chunk_latency\":{\"value\":[5]},"                    \
    "\"input_sequence_length\":{\"value\":9},\"output_sequence_length\":"        \
    "{\"value\":2}}}\n"

/* One conversation of the data, held twice. */
static void conversations_of_aiperf_keep_their_turns(void **state)
{
    static const char text[] =
        RECORD("x0", "x", "0", "1000000000") RECORD("y0", "y", "0", "1005000000")
            RECORD("x1", "x", "1", "1020000000") RECORD("y1", "y", "1", "1100000000");
    struct vt_lines *lines;
    struct vt_records r;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_lines_from(&lines, "t", text, sizeof(text) - 1, &err), VT_OK);
    if (convert_aiperf_lines(&r, lines, NULL, NULL, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(find(&r, "x1")->session, "x");
    assert_string_equal(find(&r, "y1")->session, "y");
    assert_int_equal(find(&r, "x1")->turn, 1);
    assert_int_equal(find(&r, "x1")->think_ns, 5 * VT_MS);
    assert_int_equal(find(&r, "y1")->think_ns, 80 * VT_MS);
    assert_int_equal(r.part[0].arrivals, VT_ARRIVALS_SESSION);
    vt_lines_close(lines);
    vt_records_free(&r);
}

/* ---- times of chunks -------------------------------------------------- */

static struct chunked {
    const char *name;
    vt_ns gap[4];
    uint32_t n, output;
    bool by_mean;
    vt_ns ttft, last;
} chunkeds[] = {
    {"a chunk for each token", {5, 6, 7}, 3, 4, false, 100, 7},
    {"chunks of several tokens", {5, 6}, 2, 9, false, 100, 6},
    {"a last chunk that only ends the stream", {50, 60, 70, 0}, 4, 4, false, 100, 70},
    {"a first chunk that only names the role", {1, 60, 70, 50}, 4, 4, false, 101, 50},
    {"one chunk too many, but which", {50, 60, 70, 50}, 4, 4, true, 100, 230 / 3},
    {"two chunks a token", {5, 6, 7}, 3, 2, true, 100, 18},
    {"an end behind a single token", {5}, 1, 1, false, 100, 0},
};

static void chunks_become_gaps(void **state)
{
    const struct chunked *t = *state;
    struct vt_records r;
    struct vt_record *q;
    struct vt_err err = {0};

    assert_int_equal(records_init(&r, "t", &err), VT_OK);
    assert_int_equal(records_add(&r, &q, &err), VT_OK);
    q->output_tokens = t->output;
    q->ttft_ns = 100;
    assert_int_equal(convert_gaps(&r, q, t->gap, t->n, &err), VT_OK);
    assert_int_equal(q->by_mean, t->by_mean);
    assert_int_equal(q->ttft_ns, t->ttft);
    assert_true(q->n_gaps < t->output);
    assert_int_equal(q->n_gaps > 0 ? vt_record_gap(q, q->n_gaps - 1) : 0, t->last);
    vt_records_free(&r);
}

/* ---- refusals --------------------------------------------------------- */

static struct bad {
    const char *name;
    const char *text;
    const char *out, *to;
    const char *message; /* how it ends */
} bads[] = {
    {"vllm-vcr's needs times", "id,arrival_us,input_tokens,output_tokens\na,0,1,1\n",
     "x.jsonl", "vcr",
     "request 'a' has no measured times, which a vllm-vcr trace needs"},
    {"a list needs arrivals", "{\"prompt_tokens\":1,\"output_tokens\":1}\n", "x.csv",
     NULL, "request 'request-0' has no arrival time, which a request list needs"},
    {"TraceV2 needs arrivals", "{\"prompt_tokens\":1,\"output_tokens\":1}\n", "x.yaml",
     NULL, "request 'request-0' has no arrival time, which TraceV2 needs"},
    {"vllm-vcr's needs gaps",
     "{\"prompt_tokens\":1,\"output_tokens\":2,\"ttft_ms\":1}\n", "x.jsonl", "vcr",
     "request 'request-0' has 2 output tokens but no gaps, which a vllm-vcr trace "
     "needs"},
    {"a bench result without details", "{\"mean_ttft_ms\":3}", "x.jsonl", NULL,
     "the result holds summaries only; `vllm bench serve --save-detailed` keeps what "
     "single requests took"},
    {"bench lists that are not parallel",
     "{\"input_lens\":[1],\"output_lens\":[],\"ttfts\":[1],\"itls\":[[]]}", "x.jsonl",
     NULL, "input_lens, output_lens, ttfts and itls are not parallel lists"},
    {"a run that did not stream",
     "[{\"start_time\":1,\"info\":{\"input_tokens\":1,\"output_tokens\":1}}]",
     "x.jsonl", NULL,
     "request 0: no output_token_times: the run did not stream, so first tokens were "
     "not "
     "seen"},
    {"a guidellm report without requests", "{\"benchmarks\":[{}]}", "x.jsonl", NULL,
     "benchmark 0: no list requests.successful (or completed): the report was made "
     "without its requests"},
    {"a run of which nothing is left",
     "[{\"start_time\":1,\"info\":{},\"error\":{\"error_type\":\"x\"}}]", "x.jsonl",
     NULL, "all 1 requests failed, were aborted or gave no token"},
    {"a bench result whose requests all failed",
     "{\"input_lens\":[1],\"output_lens\":[1],\"ttfts\":[1],\"itls\":[[]],\"errors\":"
     "[\"cut off\"]}",
     "x.jsonl", NULL, "all 1 requests failed, were aborted or gave no token"},
    {"AIPerf without streaming",
     "{\"metadata\":{\"request_start_ns\":5},\"metrics\":{\"input_sequence_length\":"
     "{\"value\":3},\"output_sequence_length\":{\"value\":3}}}",
     "x.jsonl", NULL, "no request has a time_to_first_token: the run did not stream"},
    {"guidellm without streaming",
     "{\"benchmarks\":[{\"requests\":{\"successful\":[{\"prompt_tokens\":3,"
     "\"output_tokens\":3,\"time_to_first_token_ms\":NaN}]}}]}",
     "x.jsonl", NULL,
     "no request has a time_to_first_token_ms or inter_token_latency_ms: the run did "
     "not stream"},
    {"AIPerf's payloads", "{\"metadata\":{},\"payload\":{}}", "x.jsonl", NULL,
     "AIPerf's raw payloads; what single requests took is in profile_export.jsonl"},
    {"inference-perf's summary", "{\n\"load_summary\":{}\n}", "x.jsonl", NULL,
     "a summary of inference-perf; what single requests took is in "
     "per_request_lifecycle_metrics.json (report: request_lifecycle: per_request)"},
    {"a step log", "{\"step\":1,\"sched_ms\":1}", "x.jsonl", NULL,
     "a step log, which `vtwin fit` reads"},
    {"nothing that is known", "hello\n", "x.jsonl", NULL,
     "in.tmp: no format that can be converted; --from names one"},
    {"an empty file", "\n\n", "x.jsonl", NULL, "in.tmp: the file is empty"},
    {"a TraceV2 row that is short",
     "request_id,client_id,input_tokens,output_tokens,arrival_time_us\na,b\n",
     "x.jsonl", NULL, "line 2: a row needs 5 columns, as the header has"},
};

/* ---- numbers that are none -------------------------------------------- */

#define G(ttft, itl)                                                            \
    "{\"prompt_tokens\":3,\"output_tokens\":3,\"time_to_first_token_ms\":" ttft \
    ",\"inter_token_latency_ms\":" itl "}"
#define L(times)                                                          \
    "{\"start_time\":1,\"info\":{\"input_tokens\":3,\"output_tokens\":2," \
    "\"output_token_times\":" times "}}"
#define A(ttft, gaps)                                                                \
    "{\"metadata\":{\"request_start_ns\":5},\"metrics\":{\"input_sequence_length\":" \
    "{\"value\":3},\"output_sequence_length\":{\"value\":2},"                        \
    "\"time_to_first_token\":{\"value\":" ttft                                       \
    "},\"inter_chunk_latency\":{\"value\":" gaps "}}}\n"

/* As Python's json module writes what was divided by nothing. */
static struct not_numbers {
    const char *name, *text;
    size_t requests, skipped, nulls;
} not_numbers[] = {
    {"guidellm's NaN and Infinity",
     "{\"benchmarks\":[{\"requests\":{\"successful\":[" G("5", "1") "," G(
         "NaN", "1") "," G("5", "Infinity") "," G("null", "1") "]}}]}",
     1, 3, 2},
    {"a bench result's",
     "{\"input_lens\":[8,null,8,8],\"output_lens\":[2,2,2,2],\"ttfts\":[0.5,0.5,NaN,"
     "0.5],\"itls\":[[0.1],[0.1],[0.1],[-Infinity]],\"mean_tpot_ms\":NaN}",
     1, 3, 3},
    {"inference-perf's", "[" L("[2,3]") "," L("[2,NaN]") "]", 1, 1, 1},
    {"AIPerf's", A("5", "[1]") A("NaN", "[1]") A("5", "[null]"), 1, 2, 1},
};

static void counts_as_missing(void **state)
{
    const struct not_numbers *t = *state;
    struct vt_convert c = {.in = "in.tmp", .out = "out.jsonl"};
    struct vt_converted done;
    struct vt_err err = {0};

    write_text("in.tmp", t->text);
    if (vt_convert(&c, &done, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(done.requests, t->requests);
    assert_int_equal(done.skipped, t->skipped);
    assert_int_equal(done.nulls, t->nulls);
    unlink("in.tmp");
    unlink("out.jsonl");
}

static void is_refused(void **state)
{
    const struct bad *b = *state;
    struct vt_convert c = {.in = "in.tmp", .out = b->out, .to = b->to};
    struct vt_converted done;
    struct vt_err err = {0};
    size_t len, want = strlen(b->message);

    write_text("in.tmp", b->text);
    if (strncmp(b->text, "request_id", 10) == 0) { /* it goes by its name */
        rename("in.tmp", "in.csv");
        c.in = "in.csv";
    }
    assert_int_equal(vt_convert(&c, &done, &err), VT_EINPUT);
    len = strlen(err.msg);
    assert_true(len >= want);
    assert_string_equal(err.msg + len - want, b->message);
    assert_int_not_equal(access(b->out, F_OK), 0);
    unlink(c.in);
}

/* One test for each row of a table, named after it: the name is its first member. */
static void add_rows(struct CMUnitTest *tests, size_t *n, CMUnitTestFunction test,
                     void *rows, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        char *row = (char *)rows + i * size;
        const char *name;

        memcpy(&name, row, sizeof(name));
        tests[(*n)++] =
            (struct CMUnitTest){.name = name, .test_func = test, .initial_state = row};
    }
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(ours_is_written_as_it_was_read),
        cmocka_unit_test(vllm_vcr_traces_say_the_same),
        cmocka_unit_test(tracev2_keeps_times_and_prefixes),
        cmocka_unit_test(request_lists_keep_requests),
        cmocka_unit_test(more_shared_than_can_be_said_is_told),
        cmocka_unit_test(vllm_bench_results_become_traces),
        cmocka_unit_test(inference_perf_requests_become_traces),
        cmocka_unit_test(whole_reports_keep_what_failed),
        cmocka_unit_test(guidellm_reports_become_traces),
        cmocka_unit_test(reports_are_read_as_their_tools_write_them),
        cmocka_unit_test(stages_of_inference_perf_are_kept_apart),
        cmocka_unit_test(prompts_that_begin_alike_share_their_beginning),
        cmocka_unit_test(what_the_server_counted_is_taken),
        cmocka_unit_test(conversations_of_guidellm_keep_their_turns),
        cmocka_unit_test(conversations_of_aiperf_keep_their_turns),
    };
    struct CMUnitTest tests[VT_COUNT(plain) + VT_COUNT(askeds) + VT_COUNT(cuts) +
                            VT_COUNT(chunkeds) + VT_COUNT(not_numbers) +
                            VT_COUNT(bads)];
    size_t n = VT_COUNT(plain);

    memcpy(tests, plain, sizeof(plain));
    add_rows(tests, &n, share_what_they_begin_with, askeds, VT_COUNT(askeds),
             sizeof(askeds[0]));
    add_rows(tests, &n, a_tokenizer_says_where_prompts_part, cuts, VT_COUNT(cuts),
             sizeof(cuts[0]));
    add_rows(tests, &n, chunks_become_gaps, chunkeds, VT_COUNT(chunkeds),
             sizeof(chunkeds[0]));
    add_rows(tests, &n, counts_as_missing, not_numbers, VT_COUNT(not_numbers),
             sizeof(not_numbers[0]));
    add_rows(tests, &n, is_refused, bads, VT_COUNT(bads), sizeof(bads[0]));
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
