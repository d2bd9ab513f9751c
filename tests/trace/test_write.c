/* trace.jsonl and steps.jsonl as written: their text, and that it reads back. */
#include "fixture.h"

/* ---- text ------------------------------------------------------------- */

static struct vt_segment segments[] = {
    {.content = 0xabc, .tokens = 10},
    {.content = UINT64_MAX, .offset = 16, .tokens = 5},
};
static struct vt_work work = {
    .id = "a \"b\"",
    .think_ns = 2500000,
    .prompt_tokens = 15,
    .output_tokens = 7,
    .max_tokens = 9,
    .n_segments = 2,
    .session = 3,
    .turn = 1,
    .priority = -4,
    .lora = "sql",
};
static const struct vt_workload one = {
    .req = &work,
    .n = 1,
    .segment = segments,
    .n_segments = 2,
};
static const vt_ns gaps[] = {5000000, 123};
static const uint32_t gap_tokens[] = {1, 5}, running[] = {2, 3}, prefill[] = {0, 64};

static void every_field_in_order(void **state)
{
    struct vt_buf b = {0};
    struct vt_served s = {
        .workload = &one,
        .req = &work,
        .arrival_ns = 1500000,
        .ttft_ns = 20 * VT_MS,
        .gap = gaps,
        .gap_tokens = gap_tokens,
        .gap_running = running,
        .gap_prefill = prefill,
        .n_gaps = 2,
        .output_tokens = 7,
        .cached_tokens = 8,
        .concurrency = 4,
        .preemptions = 1,
        .queue_ns = 250000,
        .finish_reason = "stop",
    };

    (void)state;
    vt_trace_write(&b, &s);
    assert_string_equal(
        b.data,
        "{\"id\":\"a \\\"b\\\"\",\"arrival_ms\":1.5,\"prompt_tokens\":15,"
        "\"cached_tokens\":8,\"output_tokens\":7,\"ttft_ms\":20,"
        "\"itl_ms\":[5,0.000123],\"itl_tokens\":[1,5],"
        "\"itl_ctx\":{\"num_running\":[2,3],\"prefill_tokens\":[0,64]},"
        "\"concurrency\":4,\"queue_ms\":0.25,\"preemptions\":1,"
        "\"segments\":[[\"#0000000000000abc\",10],[\"#ffffffffffffffff\",5,16]],"
        "\"session\":3,\"turn\":1,\"think_ms\":2.5,\"priority\":-4,"
        "\"lora\":\"sql\",\"max_tokens\":9,\"finish_reason\":\"stop\"}\n");
    vt_buf_free(&b);
}

static void fields_that_say_nothing_are_left_out(void **state)
{
    static const uint32_t ones[] = {1, 1};
    struct vt_work plain = work;
    struct vt_buf b = {0};
    struct vt_served s = {
        .workload = &one,
        .req = &plain,
        .gap = gaps,
        .gap_tokens = ones,
        .n_gaps = 2,
        .output_tokens = 7,
    };

    (void)state;
    plain.n_segments = 1;
    plain.session = VT_NO_TURN;
    plain.priority = 0;
    plain.lora = NULL;
    plain.max_tokens = 7;
    vt_trace_write(&b, &s);
    assert_string_equal(b.data,
                        "{\"id\":\"a \\\"b\\\"\",\"arrival_ms\":0,\"prompt_tokens\":15,"
                        "\"cached_tokens\":0,\"output_tokens\":7,\"ttft_ms\":0,"
                        "\"itl_ms\":[5,0.000123],\"concurrency\":0,\"queue_ms\":0,"
                        "\"segments\":[[\"#0000000000000abc\",10]]}\n");
    vt_buf_free(&b);
}

static void a_step(void **state)
{
    static const struct vt_step_prefill prefills[] = {{"x", 0, 318, 318},
                                                      {"y", 16, 4, 30}};
    static const char *const preempted[] = {"p", "q"};
    struct vt_buf b = {0};
    struct vt_step_line s = {
        .step = 4042,
        .sched_ns = 8404000,
        .sched_end_ns = 8685000,
        .out_ns = 49058000,
        .done_ns = 49171000,
        .decodes = 2,
        .decode_ctx = 9000000000,
        .prefill = prefills,
        .n_prefill = 2,
        .waiting = 1,
        .running = 3,
        .kv_usage = 0.0091749,
        .preempted = preempted,
        .n_preempted = 2,
    };

    (void)state;
    vt_steps_write(&b, &s);
    assert_string_equal(
        b.data, "{\"step\":4042,\"sched_ms\":8.404,\"sched_end_ms\":8.685,"
                "\"out_ms\":49.058,\"done_ms\":49.171,\"decodes\":2,"
                "\"decode_ctx\":9000000000,"
                "\"prefill\":[[\"x\",0,318,318],[\"y\",16,4,30]],\"waiting\":1,"
                "\"running\":3,\"kv_usage\":0.00917,\"preempted\":[\"p\",\"q\"]}\n");
    vt_buf_clear(&b);
    s.n_prefill = 0;
    s.n_preempted = 0;
    s.kv_usage = 1;
    vt_steps_write(&b, &s);
    assert_non_null(strstr(b.data, "\"prefill\":[],"));
    assert_non_null(strstr(b.data, "\"kv_usage\":1,\"preempted\":[]}\n"));
    vt_buf_free(&b);
}

static void a_meta_line(void **state)
{
    struct vt_buf b = {0};
    struct vt_workload w = {
        .arrivals = VT_ARRIVALS_CLOSED, .concurrency = 8, .seed = 3};
    struct vt_meta m = {
        .model = "M",
        .gpu = "H200",
        .vllm_version = "0.26.0",
        .workload_name = "n",
        .tp = 1,
        .num_gpu_blocks = 100,
        .block_size = 16,
        .max_num_seqs = 256,
        .max_num_batched_tokens = 8192,
        .max_model_len = 32768,
        .async_scheduling = 1,
        .enable_prefix_caching = 0,
    };

    (void)state;
    vt_trace_write_meta(&b, &w, &m, "vtwin");
    assert_string_equal(
        b.data,
        "{\"meta\":{\"gpu\":\"H200\",\"tp\":1,\"vllm_version\":\"0.26.0\","
        "\"model\":\"M\",\"source\":\"vtwin\",\"workload\":{\"name\":\"n\","
        "\"kind\":\"closed\",\"concurrency\":8,\"seed\":3},\"num_gpu_blocks\":100,"
        "\"block_size\":16,\"max_num_seqs\":256,\"max_num_batched_tokens\":8192,"
        "\"max_model_len\":32768,\"async_scheduling\":true,"
        "\"enable_prefix_caching\":false}}\n");
    vt_buf_free(&b);
}

/* ---- round trips ------------------------------------------------------ */

/* Writes the workload as if it had been served as measured (or at once). */
static void write_all(struct vt_buf *b, const struct vt_workload *w)
{
    vt_trace_write_meta(b, w, &w->meta, "test");
    for (size_t i = 0; i < w->n; i++) {
        struct vt_served s = {
            .workload = w,
            .req = &w->req[i],
            .arrival_ns = w->req[i].arrival_ns,
            .output_tokens = w->req[i].output_tokens,
            .concurrency = 1,
            .finish_reason =
                w->req[i].max_tokens > w->req[i].output_tokens ? "stop" : "length",
        };

        if (w->measured) {
            const struct vt_measured *m = &w->measured[i];

            s.ttft_ns = m->ttft_ns;
            s.cached_tokens = m->cached_tokens;
            s.queue_ns = m->queue_ns;
            s.n_gaps = m->n_gaps;
            s.gap = m->n_gaps ? w->gap + m->first_gap : NULL;
            s.gap_tokens = w->gap_tokens ? w->gap_tokens + m->first_gap : NULL;
        }
        vt_trace_write(b, &s);
    }
    assert_false(b->failed);
}

static void assert_same_segments(const struct vt_workload *a,
                                 const struct vt_workload *b, size_t i)
{
    const struct vt_work *p = &a->req[i], *q = &b->req[i];

    assert_int_equal(p->n_segments, q->n_segments);
    assert_memory_equal(&a->segment[p->first_segment], &b->segment[q->first_segment],
                        p->n_segments * sizeof(*a->segment));
}

static void assert_same_requests(const struct vt_workload *a,
                                 const struct vt_workload *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        struct vt_work p = a->req[i], q = b->req[i];

        assert_string_equal(p.id, q.id);
        assert_same_segments(a, b, i);
        p.id = q.id = NULL;
        p.first_segment = q.first_segment = 0; /* turns may share theirs in one only */
        assert_int_equal(p.arrival_ns, q.arrival_ns);
        assert_int_equal(p.think_ns, q.think_ns);
        assert_int_equal(p.prompt_tokens, q.prompt_tokens);
        assert_int_equal(p.output_tokens, q.output_tokens);
        assert_int_equal(p.max_tokens, q.max_tokens);
        assert_int_equal(p.output_content, q.output_content);
        assert_int_equal(p.session, q.session);
        assert_int_equal(p.turn, q.turn);
        assert_int_equal(p.next_turn, q.next_turn);
        assert_int_equal(p.first_turn, q.first_turn);
        assert_int_equal(p.priority, q.priority);
    }
}

static void assert_same_timings(const struct vt_workload *a,
                                const struct vt_workload *b)
{
    assert_int_equal(a->n_gaps, b->n_gaps);
    assert_memory_equal(a->measured, b->measured, a->n * sizeof(*a->measured));
    assert_memory_equal(a->gap, b->gap, a->n_gaps * sizeof(*a->gap));
    assert_int_equal(!a->gap_tokens, !b->gap_tokens);
    if (a->gap_tokens)
        assert_memory_equal(a->gap_tokens, b->gap_tokens,
                            a->n_gaps * sizeof(*a->gap_tokens));
}

static void assert_reads_back(struct vt_workload *a)
{
    struct vt_workload b;
    struct vt_buf first = {0}, second = {0};
    struct vt_err err = {0};
    int rc;

    write_all(&first, a);
    rc = fixture_from(trace_read, &b, first.data, &err);
    if (rc != VT_OK)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, VT_OK);
    assert_same_requests(a, &b);
    if (a->measured)
        assert_same_timings(a, &b);
    assert_int_equal(a->arrivals, b.arrivals);
    assert_int_equal(a->concurrency, b.concurrency);
    assert_int_equal(a->meta.num_gpu_blocks, b.meta.num_gpu_blocks);
    assert_int_equal(a->meta.async_scheduling, b.meta.async_scheduling);
    b.seed = a->seed; /* a trace has none */
    write_all(&second, &b);
    if (a->measured) /* else the second one says that it took no time */
        assert_string_equal(first.data, second.data);
    vt_buf_free(&first);
    vt_buf_free(&second);
    vt_workload_free(&b);
    vt_workload_free(a);
}

static void captures_read_back(void **state)
{
    static const char *const captures[] = {DATA("closed.trace.jsonl.gz"),
                                           DATA("multiturn.trace.jsonl.gz")};
    struct vt_err err;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(captures); i++) {
        struct vt_workload w;

        assert_int_equal(vt_trace_load(&w, captures[i], &err), VT_OK);
        assert_reads_back(&w);
    }
}

static void other_formats_read_back(void **state)
{
    struct vt_workload w;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_trace_load(&w, DATA("azure.csv"), &err), VT_OK);
    assert_reads_back(&w);
    assert_int_equal(vt_trace_load(&w, DATA("mooncake.jsonl"), &err), VT_OK);
    assert_reads_back(&w);
    assert_int_equal(vt_requests_load(&w, DATA("requests.csv"), &err), VT_OK);
    assert_reads_back(&w);
}

static void odd_fields_read_back(void **state)
{
    struct vt_workload w;
    struct vt_err err;

    (void)state;
    assert_int_equal(
        fixture_from(trace_read, &w,
                     "{\"id\":\"a\",\"prompt_tokens\":6,\"output_tokens\":9,"
                     "\"finish_reason\":\"stop\",\"max_tokens\":100,\"priority\":-7,"
                     "\"ttft_ms\":3,\"itl_ms\":[1.25,2],\"itl_tokens\":[1,4],"
                     "\"segments\":[[\"out:b\",4,2],[\"x\",2]]}\n"
                     "{\"id\":\"b\",\"arrival_ms\":0.000001,\"prompt_tokens\":6,"
                     "\"output_tokens\":9,\"finish_reason\":\"stop\",\"ttft_ms\":3,"
                     "\"itl_ms\":[1],\"session\":\"s\",\"turn\":9,\"think_ms\":5}\n",
                     &err),
        VT_OK);
    assert_reads_back(&w);
}

static void generated_workloads_read_back(void **state)
{
    static const char *const specs[] = {
        "requests: 40\narrival: {process: poisson, rate: 3}\nprompt: 30\noutput: 4\n"
        "prefix: {groups: 2, share: 0.5, tokens: 20}\n",
        "requests: 40\narrival: {process: closed, concurrency: 3}\nprompt: 30\noutput: "
        "4\n",
        "requests: 40\narrival: {process: closed, concurrency: 3}\nprompt: 30\noutput: "
        "4\n"
        "sessions: {turns: 3, starter: 5, think_time_s: 0.5}\n",
    };
    struct vt_err err;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(specs); i++) {
        struct vt_workload w;

        assert_int_equal(
            vt_workload_generate_text(&w, "t", specs[i], strlen(specs[i]), -1, &err),
            VT_OK);
        assert_reads_back(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_in_order),
        cmocka_unit_test(fields_that_say_nothing_are_left_out),
        cmocka_unit_test(a_step),
        cmocka_unit_test(a_meta_line),
        cmocka_unit_test(captures_read_back),
        cmocka_unit_test(other_formats_read_back),
        cmocka_unit_test(odd_fields_read_back),
        cmocka_unit_test(generated_workloads_read_back),
    };

    return cmocka_run_group_tests_name("write", tests, NULL, NULL);
}
