/* Traces in their formats: what is read, and what is refused how. */
#include "fixture.h"

static void load_text(struct vt_workload *w, const char *text)
{
    struct vt_err err = {0};
    int rc = fixture_from(trace_read, w, text, &err);

    if (rc != VT_OK)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, VT_OK);
}

static void load_file(struct vt_workload *w, const char *path)
{
    struct vt_err err = {0};
    int rc = vt_trace_load(w, path, &err);

    if (rc != VT_OK)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, VT_OK);
    assert_string_equal(w->source, path);
}

static const struct vt_segment *segment(const struct vt_workload *w, size_t i,
                                        uint32_t k)
{
    assert_true(i < w->n && k < w->req[i].n_segments);
    return &w->segment[w->req[i].first_segment + k];
}

/* ---- trace.jsonl ------------------------------------------------------ */

static void closed_capture(void **state)
{
    struct vt_workload w;

    (void)state;
    load_file(&w, DATA("closed.trace.jsonl.gz"));
    assert_int_equal(w.n, 30);
    assert_int_equal(w.arrivals, VT_ARRIVALS_CLOSED);
    assert_int_equal(w.concurrency, 8);
    assert_string_equal(w.meta.model, "Qwen/Qwen3-8B");
    assert_string_equal(w.meta.gpu, "H200");
    assert_string_equal(w.meta.vllm_version, "0.26.0");
    assert_string_equal(w.meta.workload_name, "closed-c8");
    assert_string_equal(w.meta.workload_kind, "closed");
    assert_int_equal(w.meta.tp, 1);
    assert_int_equal(w.meta.num_gpu_blocks, 49626);
    assert_int_equal(w.meta.block_size, 16);
    assert_int_equal(w.meta.max_num_seqs, 256);
    assert_int_equal(w.meta.max_num_batched_tokens, 8192);
    assert_int_equal(w.meta.max_model_len, 0);
    assert_int_equal(w.meta.async_scheduling, 1);
    assert_int_equal(w.meta.enable_prefix_caching, -1);
    assert_string_equal(w.req[0].id, "closed-c8.657");
    assert_int_equal(w.req[0].arrival_ns, 7522000);
    assert_int_equal(w.req[0].prompt_tokens, 318);
    assert_int_equal(w.req[0].output_tokens, 93);
    assert_int_equal(w.req[0].max_tokens, 93);
    assert_int_equal(w.measured[0].ttft_ns, 41649000);
    assert_int_equal(w.measured[0].n_gaps, 92);
    assert_int_equal(w.gap[0], 128309000);
    assert_null(w.gap_tokens);
    vt_workload_free(&w);
}

static void multiturn_capture(void **state)
{
    struct vt_workload w;
    size_t n_linked = 0;

    (void)state;
    load_file(&w, DATA("multiturn.trace.jsonl.gz"));
    assert_int_equal(w.n, 30);
    assert_int_equal(w.arrivals, VT_ARRIVALS_SESSION);
    assert_int_equal(w.concurrency, 0);
    for (size_t i = 0; i < w.n; i++) {
        const struct vt_work *q = &w.req[i], *next;

        assert_int_equal(q->first_turn, q->turn == 0);
        if (q->next_turn == VT_NO_TURN)
            continue;
        next = &w.req[q->next_turn];
        n_linked++;
        assert_int_equal(next->session, q->session);
        assert_int_equal(next->turn, q->turn + 1);
        /* The next prompt is this one, this output and a new message. */
        assert_int_equal(next->n_segments, q->n_segments + 2);
        for (uint32_t k = 0; k < q->n_segments; k++)
            assert_memory_equal(segment(&w, q->next_turn, k), segment(&w, i, k),
                                sizeof(struct vt_segment));
        assert_int_equal(segment(&w, q->next_turn, q->n_segments)->content,
                         q->output_content);
        assert_int_equal(segment(&w, q->next_turn, q->n_segments)->tokens,
                         q->output_tokens);
    }
    assert_true(n_linked > 10);
    vt_workload_free(&w);
}

static const struct clock_row {
    const char *name, *meta;
    enum vt_clock want;
} clock_rows[] = {
    {"the field says it", "\"clock\":\"client\",\"source\":\"tap\"", VT_CLOCK_CLIENT},
    {"a step log is the engine's", "\"source\":\"engine-step-log\"", VT_CLOCK_ENGINE},
    {"a recorder's", "\"source\":\"tap\"", VT_CLOCK_TAP},
    {"a load generator's", "\"source\":\"bench\"", VT_CLOCK_CLIENT},
    {"a client's", "\"source\":\"client\"", VT_CLOCK_CLIENT},
    {"a source that does not tell", "\"source\":\"lab\",\"clock\":null",
     VT_CLOCK_UNSTATED},
    {"nothing", "\"source\":3", VT_CLOCK_UNSTATED},
};

/* Also after the meta line was written again. */
static void times_are_by_somebodys_clock(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(clock_rows); i++) {
        struct vt_workload w, again;
        struct vt_buf b = {0};
        char text[256];

        snprintf(text, sizeof(text),
                 "{\"meta\":{%s}}\n{\"prompt_tokens\":5,\"output_tokens\":2}\n",
                 clock_rows[i].meta);
        load_text(&w, text);
        vt_trace_write_meta(&b, &w, &w.meta, "vtwin");
        vt_buf_str(&b, "{\"prompt_tokens\":5,\"output_tokens\":2}\n");
        load_text(&again, b.data);
        if (w.meta.clock != clock_rows[i].want || again.meta.clock != w.meta.clock)
            fail_msg("%s: %s", clock_rows[i].name, vt_clock_name(w.meta.clock));
        vt_workload_free(&w);
        vt_workload_free(&again);
        vt_buf_free(&b);
    }
}

static void optional_fields_have_defaults(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "\n  \n{\"prompt_tokens\":5,\"output_tokens\":2,\"id\":null}\n"
                  "{\"prompt_tokens\":6,\"output_tokens\":1,\"extra\":{\"a\":[1]}}");
    assert_int_equal(w.n, 2);
    assert_string_equal(w.req[0].id, "request-0");
    assert_string_equal(w.req[1].id, "request-1");
    assert_int_equal(w.req[1].arrival_ns, 0);
    assert_int_equal(w.arrivals, VT_ARRIVALS_RECORDED);
    assert_null(w.measured);
    assert_null(w.meta.model);
    assert_int_equal(w.meta.async_scheduling, -1);
    assert_int_equal(w.req[0].session, VT_NO_TURN);
    assert_true(w.req[0].first_turn);
    assert_int_equal(segment(&w, 0, 0)->tokens, 5);
    assert_int_not_equal(segment(&w, 0, 0)->content, segment(&w, 1, 0)->content);
    vt_workload_free(&w);
}

static void arrivals_are_sorted_stably(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w,
              "{\"id\":\"b\",\"arrival_ms\":2,\"prompt_tokens\":1,\"output_tokens\":2,"
              "\"ttft_ms\":7,\"itl_ms\":[1.5]}\n"
              "{\"id\":\"c\",\"arrival_ms\":2,\"prompt_tokens\":2,\"output_tokens\":1,"
              "\"ttft_ms\":8}\n"
              "{\"id\":\"a\",\"arrival_ms\":1.25,\"prompt_tokens\":3,"
              "\"output_tokens\":1,\"ttft_ms\":9}\n");
    assert_string_equal(w.req[0].id, "a");
    assert_string_equal(w.req[1].id, "b");
    assert_string_equal(w.req[2].id, "c");
    assert_int_equal(w.req[0].arrival_ns, 1250000);
    assert_int_equal(segment(&w, 0, 0)->tokens, 3);
    assert_int_equal(w.measured[0].ttft_ns, 9 * VT_MS);
    assert_int_equal(w.measured[1].e2e_ns, 8500000);
    assert_int_equal(w.measured[1].n_gaps, 1);
    assert_int_equal(w.gap[w.measured[1].first_gap], 1500000);
    vt_workload_free(&w);
}

static void timings_need_every_row(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "{\"prompt_tokens\":1,\"output_tokens\":3,\"ttft_ms\":1,"
                  "\"itl_ms\":[1],\"itl_tokens\":[2]}\n"
                  "{\"prompt_tokens\":1,\"output_tokens\":2,\"ttft_ms\":1}\n");
    assert_null(w.measured);
    assert_null(w.gap);
    assert_null(w.gap_tokens);
    assert_int_equal(w.n_gaps, 0);
    vt_workload_free(&w);
}

static void summaries_count_as_equal_gaps(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "{\"prompt_tokens\":9,\"cached_tokens\":4,\"output_tokens\":4,"
                  "\"ttft_ms\":10,\"itl_summary\":{\"mean_ms\":2.5,\"count\":3}}\n"
                  "{\"arrival_ms\":1,\"prompt_tokens\":9,\"output_tokens\":2,"
                  "\"ttft_ms\":10,\"itl_summary\":{\"mean_ms\":2.5,\"count\":1}}\n"
                  "{\"arrival_ms\":2,\"prompt_tokens\":9,\"output_tokens\":3,"
                  "\"ttft_ms\":10,\"itl_ms\":[1,2]}\n");
    assert_int_equal(w.n_by_mean, 1); /* the mean of one gap is that gap */
    assert_int_equal(w.n_undated, 1);
    assert_int_equal(w.measured[0].n_gaps, 3);
    assert_int_equal(w.measured[0].cached_tokens, 4);
    assert_int_equal(w.measured[0].e2e_ns, 17500000);
    assert_int_equal(w.gap[2], 2500000);
    vt_workload_free(&w);
}

static void chunks_of_several_tokens_are_kept(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "{\"prompt_tokens\":1,\"output_tokens\":3,\"ttft_ms\":1,"
                  "\"itl_ms\":[1,1]}\n"
                  "{\"prompt_tokens\":1,\"output_tokens\":5,\"ttft_ms\":1,"
                  "\"itl_ms\":[1,2],\"itl_tokens\":[1,3],"
                  "\"itl_ctx\":{\"num_running\":[1,2],\"prefill_tokens\":[0,7]}}\n"
                  "{\"prompt_tokens\":1,\"output_tokens\":2,\"ttft_ms\":1,"
                  "\"itl_ms\":[1]}\n");
    const uint32_t want[] = {1, 1, 1, 3, 1};

    assert_int_equal(w.n_gaps, VT_COUNT(want));
    assert_memory_equal(w.gap_tokens, want, sizeof(want));
    vt_workload_free(&w);
}

static void what_ended_a_request_sets_its_limit(void **state)
{
    struct vt_workload w;
    const uint32_t want[] = {7, 7, 8, 20, 8, 20, 8};

    (void)state;
    load_text(
        &w, "{\"prompt_tokens\":1,\"output_tokens\":7}\n"
            "{\"prompt_tokens\":1,\"output_tokens\":7,\"finish_reason\":\"length\","
            "\"max_tokens\":20}\n"
            "{\"prompt_tokens\":1,\"output_tokens\":7,\"finish_reason\":\"stop\"}\n"
            "{\"prompt_tokens\":1,\"output_tokens\":7,\"finish_reason\":\"stop\","
            "\"max_tokens\":20}\n"
            "{\"prompt_tokens\":1,\"output_tokens\":7,\"finish_reason\":\"stop\","
            "\"max_tokens\":7}\n"
            "{\"prompt_tokens\":1,\"output_tokens\":7,\"max_tokens\":20}\n"
            "{\"prompt_tokens\":1,\"output_tokens\":7,\"finish_reason\":\"abort\"}\n");
    for (size_t i = 0; i < VT_COUNT(want); i++)
        assert_int_equal(w.req[i].max_tokens, want[i]);
    vt_workload_free(&w);
}

static void a_request_that_the_recording_cut_ends_where_it_was_cut(void **state)
{
    static const struct {
        const char *more;
        uint32_t output, limit;
    } row[] = {
        {"\"itl_ms\":[1,1]", 3, 9},
        {"\"itl_ms\":[1,1],\"itl_tokens\":[1,1]", 9, 9}, /* the first chunk held 7 */
        {"\"itl_ms\":[1,1],\"finish_reason\":\"length\"", 3, 9},
        {"\"itl_summary\":{\"mean_ms\":1,\"count\":4}", 9, 9},
        {"\"itl_ms\":[]", 9, 9}, /* one chunk may have held them all, */
        {"\"itl_ms\":[],\"itl_ctx\":{\"num_running\":[],\"prefill_tokens\":[]}", 1,
         9}, /* but not here, */
        {"\"itl_ms\":[],\"itl_tokens\":[],"
         "\"itl_ctx\":{\"num_running\":[],\"prefill_tokens\":[]}",
         9, 9}, /* and here again */
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_workload w;
        char text[256];

        (void)snprintf(text, sizeof(text),
                       "{\"prompt_tokens\":1,\"output_tokens\":9,\"ttft_ms\":1,%s}\n",
                       row[i].more);
        load_text(&w, text);
        assert_int_equal(w.req[0].output_tokens, row[i].output);
        assert_int_equal(w.req[0].max_tokens, row[i].limit);
        vt_workload_free(&w);
    }
}

static void requests_without_output_are_skipped_if_aborted(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w,
              "{\"prompt_tokens\":1,\"output_tokens\":0,\"finish_reason\":\"abort\"}\n"
              "{\"prompt_tokens\":1,\"output_tokens\":0,\"finish_reason\":\"error\"}\n"
              "{\"prompt_tokens\":1,\"output_tokens\":1}\n");
    assert_int_equal(w.n, 1);
    assert_string_equal(w.req[0].id, "request-2");
    vt_workload_free(&w);
}

/* One aborted request, or how a recorder writes it, does not cost the others their
 * times. Who was still running when a recording ended was not given up. */
static void aborted_requests_without_times_are_counted_and_left_out(void **state)
{
    static const struct {
        const char *more;
        size_t n, unanswered;
    } row[] = {
        {"\"output_tokens\":0,\"finish_reason\":\"abort\"", 1, 1},
        {"\"output_tokens\":null,\"finish_reason\":\"abort\"", 1, 1},
        {"\"finish_reason\":\"error\"", 1, 1},
        {"\"output_tokens\":9,\"finish_reason\":\"abort\"", 1, 1},
        {"\"output_tokens\":9,\"finish_reason\":\"abort\",\"ttft_ms\":null", 1, 1},
        {"\"output_tokens\":2,\"finish_reason\":\"abort\",\"ttft_ms\":5,"
         "\"itl_ms\":[1]",
         2, 0},
        {"\"output_tokens\":0,\"finish_reason\":\"abort\",\"aborted_by\":\"tap\"", 1,
         0},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_workload w;
        char text[256];

        (void)snprintf(text, sizeof(text),
                       "{\"id\":\"a\",\"prompt_tokens\":8,%s}\n"
                       "{\"id\":\"b\",\"prompt_tokens\":3,\"output_tokens\":2,"
                       "\"ttft_ms\":1,\"itl_ms\":[2]}\n",
                       row[i].more);
        load_text(&w, text);
        assert_int_equal(w.n, row[i].n);
        assert_int_equal(w.n_unanswered, row[i].unanswered);
        assert_non_null(w.measured);
        assert_string_equal(w.req[w.n - 1].id, "b");
        assert_int_equal(w.measured[w.n - 1].e2e_ns, 3 * VT_MS);
        vt_workload_free(&w);
    }
}

static void block_hashes_give_content(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "{\"meta\":{\"block_size\":4}}\n"
                  "{\"prompt_tokens\":10,\"output_tokens\":1,"
                  "\"block_hashes\":[18446744073709551615,7]}\n"
                  "{\"prompt_tokens\":8,\"output_tokens\":1,"
                  "\"block_hashes\":[18446744073709551615,9]}\n");
    assert_int_equal(w.req[0].n_segments, 3);
    assert_int_equal(w.req[1].n_segments, 2);
    assert_int_equal(segment(&w, 0, 0)->tokens, 4);
    assert_int_equal(segment(&w, 0, 2)->tokens, 2);
    assert_int_equal(segment(&w, 0, 0)->content, segment(&w, 1, 0)->content);
    assert_int_not_equal(segment(&w, 0, 1)->content, segment(&w, 1, 1)->content);
    vt_workload_free(&w);
}

static void names_are_content(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "{\"id\":\"a\",\"prompt_tokens\":6,\"output_tokens\":3,"
                  "\"segments\":[[\"x\",4],[\"none\",0],[\"y\",2]]}\n"
                  "{\"id\":\"b\",\"prompt_tokens\":9,\"output_tokens\":1,"
                  "\"segments\":[[\"x\",4],[\"out:a\",3],[\"x\",2,4]]}\n");
    assert_int_equal(w.req[0].n_segments, 2);
    assert_int_equal(segment(&w, 0, 0)->content, vt_content_named("x", 1));
    assert_int_equal(segment(&w, 1, 0)->content, vt_content_named("x", 1));
    assert_int_equal(segment(&w, 1, 1)->content, w.req[0].output_content);
    assert_int_equal(segment(&w, 1, 2)->content, vt_content_named("x", 1));
    assert_int_equal(segment(&w, 1, 2)->offset, 4);
    assert_int_equal(vt_content_named("out:a", 5), vt_content_output("a", 1));
    assert_int_equal(vt_content_named("#00000000000000ff", 17), 255);
    assert_int_not_equal(vt_content_named("#00000000000000fg", 17), 255);
    vt_workload_free(&w);
}

static void sessions_are_linked_by_turn(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w,
              "{\"meta\":{\"workload\":{\"kind\":\"multiturn\",\"concurrency\":3}}}\n"
              "{\"arrival_ms\":5,\"prompt_tokens\":1,\"output_tokens\":1,"
              "\"session\":\"x\",\"turn\":4,\"think_ms\":1.5}\n"
              "{\"arrival_ms\":2,\"prompt_tokens\":1,\"output_tokens\":1,"
              "\"session\":17,\"turn\":0}\n"
              "{\"arrival_ms\":1,\"prompt_tokens\":1,\"output_tokens\":1}\n"
              "{\"arrival_ms\":3,\"prompt_tokens\":1,\"output_tokens\":1,"
              "\"session\":\"x\",\"turn\":2}\n");
    assert_int_equal(w.arrivals, VT_ARRIVALS_SESSION);
    assert_int_equal(w.concurrency, 3);
    assert_int_equal(w.req[0].session, VT_NO_TURN);
    assert_int_equal(w.req[1].session, 0);
    assert_int_equal(w.req[2].session, 1);
    assert_int_equal(w.req[3].session, 1);
    assert_int_equal(w.req[1].next_turn, VT_NO_TURN);
    assert_int_equal(w.req[2].next_turn, 3);
    assert_true(w.req[2].first_turn);
    assert_false(w.req[3].first_turn);
    assert_int_equal(w.req[3].think_ns, 1500000);
    assert_int_equal(w.req[0].line, 4);
    assert_int_equal(w.req[3].line, 2);
    vt_workload_free(&w);
}

static void kinds_set_arrivals(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "{\"meta\":{\"workload\":{\"kind\":\"burst\",\"concurrency\":3}}}\n"
                  "{\"prompt_tokens\":1,\"output_tokens\":1}\n");
    assert_int_equal(w.arrivals, VT_ARRIVALS_RECORDED);
    assert_int_equal(w.concurrency, 0);
    vt_workload_free(&w);
    load_text(&w, "{\"meta\":{\"workload\":\"something\"}}\n"
                  "{\"prompt_tokens\":1,\"output_tokens\":1}\n");
    assert_int_equal(w.arrivals, VT_ARRIVALS_RECORDED);
    vt_workload_free(&w);
}

static void ids_out_of_order_are_fine(void **state)
{
    struct vt_workload w;
    struct vt_buf b = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        vt_buf_printf(&b, "{\"id\":\"%d\",\"prompt_tokens\":1,\"output_tokens\":1}\n",
                      i * 7919 % 1000);
    load_text(&w, b.data);
    assert_int_equal(w.n, 1000);
    assert_string_equal(w.req[999].id, "81");
    vt_workload_free(&w);
    vt_buf_free(&b);
}

/* ---- the other formats ------------------------------------------------ */

static void azure_rows(void **state)
{
    struct vt_workload w;

    (void)state;
    load_file(&w, DATA("azure.csv"));
    assert_int_equal(w.n, 30);
    assert_int_equal(w.req[0].arrival_ns, 0);
    assert_int_equal(w.req[1].arrival_ns, 52 * VT_MS);
    assert_int_equal(w.req[2].arrival_ns, 98189 * VT_US);
    assert_int_equal(w.req[0].prompt_tokens, 4808);
    assert_int_equal(w.req[0].output_tokens, 10);
    assert_string_equal(w.req[29].id, "request-29");
    vt_workload_free(&w);
}

static void azure_days_and_order(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                  "2024-03-01 00:00:01,3,1\n"
                  "2024-02-28 23:59:59.5,1,1\n"
                  "2024-02-29 00:00:00.000000001+00:00,2,1");
    assert_int_equal(w.req[0].prompt_tokens, 1);
    assert_int_equal(w.req[1].arrival_ns, 500000001);
    assert_int_equal(w.req[2].arrival_ns, 86401 * VT_SEC + 500 * VT_MS);
    vt_workload_free(&w);
}

static void mooncake_blocks(void **state)
{
    struct vt_workload w;

    (void)state;
    load_file(&w, DATA("mooncake.jsonl"));
    assert_int_equal(w.n, 20);
    assert_int_equal(w.req[0].prompt_tokens, 6758);
    assert_int_equal(w.req[0].output_tokens, 500);
    assert_int_equal(w.req[0].n_segments, 14);
    assert_int_equal(segment(&w, 0, 13)->tokens, 6758 - 13 * 512);
    assert_int_equal(segment(&w, 0, 0)->content, segment(&w, 1, 0)->content);
    assert_int_not_equal(segment(&w, 0, 1)->content, segment(&w, 1, 1)->content);
    vt_workload_free(&w);
}

static void missing_file(void **state)
{
    struct vt_workload w;
    struct vt_err err = {0};

    (void)state;
    assert_int_not_equal(vt_trace_load(&w, DATA("absent.jsonl"), &err), VT_OK);
    assert_ptr_equal(strstr(err.msg, DATA("absent.jsonl")), err.msg);
}

/* ---- what is refused -------------------------------------------------- */

#define ROW       "{\"id\":\"a\",\"prompt_tokens\":8,\"output_tokens\":4"
#define AZURE     "TIMESTAMP,ContextTokens,GeneratedTokens\n"
#define MOONCAKE  "{\"timestamp\":0,\"input_length\":"
#define IN_A_LINE "{\"prompt_tokens\":1,\"output_tokens\":1}\n"

static struct fixture_bad bad[] = {
    {"an empty file", "", "t: the file is empty"},
    {"blank lines only", "\n \n", "t: the file is empty"},
    {"meta and no requests", "{\"meta\":{}}\n", "t: there are no requests"},
    {"an unknown format", "\nhello\n",
     "t: line 2: not a trace: neither trace.jsonl nor Azure CSV nor Mooncake JSONL "
     "nor an agent's session"},
    {"a list", IN_A_LINE "[1]\n", "t: line 2: not a JSON object"},
    {"a trace cut in mid-line", IN_A_LINE "{\"prompt_tokens\":1,\"outp",
     "t: line 2: the file ends in the middle of this line"},
    {"meta later on", IN_A_LINE "{\"meta\":{}}\n",
     "t: line 2: 'meta' may only be on the first line (two traces in one file?)"},
    {"meta that is no object", "{\"meta\":1}\n",
     "t: line 1: field 'meta' is not an object"},
    {"a clock that nobody has", "{\"meta\":{\"clock\":\"wall\"}}",
     "t: line 1: field 'clock' is neither engine nor tap nor client"},
    {"a limit of the wrong type", "{\"meta\":{\"tp\":\"two\"}}\n",
     "t: line 1: field 'tp' is not a whole number"},
    {"a closed loop of unknown size",
     "{\"meta\":{\"workload\":{\"kind\":\"closed\"}}}\n",
     "t: line 1: field 'concurrency' is missing"},
    {"no prompt", "{\"output_tokens\":4}\n",
     "t: line 1: field 'prompt_tokens' is missing"},
    {"an empty prompt", "{\"prompt_tokens\":0,\"output_tokens\":4}\n",
     "t: line 1: field 'prompt_tokens' must be from 1 to 2147483647, not 0"},
    {"no output, and no word why", "{\"prompt_tokens\":1,\"output_tokens\":0}\n",
     "t: line 1: field 'output_tokens' must be from 1 to 2147483647, not 0"},
    {"a prompt that is no number", "{\"prompt_tokens\":\"8\",\"output_tokens\":4}\n",
     "t: line 1: field 'prompt_tokens' is not a whole number"},
    {"a negative arrival", ROW ",\"arrival_ms\":-1}\n",
     "t: line 1: field 'arrival_ms' must be from 0 to 1000000000000, not -1"},
    {"more cached than asked", ROW ",\"cached_tokens\":9}\n",
     "t: line 1: field 'cached_tokens' must be from 0 to 8, not 9"},
    {"an id that is no string", "{\"id\":7,\"prompt_tokens\":8,\"output_tokens\":4}\n",
     "t: line 1: field 'id' is not a string"},
    {"an empty id", "{\"id\":\"\",\"prompt_tokens\":8,\"output_tokens\":4}\n",
     "t: line 1: an id is empty"},
    {"an id with a NUL",
     "{\"id\":\"a\\u0000\",\"prompt_tokens\":8,\"output_tokens\":4}\n",
     "t: line 1: an id holds a NUL character"},
    {"an id twice", ROW "}\n" ROW "}\n", "t: line 2: id 'a' is used twice"},
    {"a made-up id twice",
     "{\"id\":\"request-1\",\"prompt_tokens\":8,\"output_tokens\":4}\n"
     "{\"prompt_tokens\":8,\"output_tokens\":4}\n",
     "t: line 2: id 'request-1' is used twice"},
    {"segments that do not sum up", ROW ",\"segments\":[[\"x\",5]]}\n",
     "t: line 1: field 'segments' sums to 5 tokens, but prompt_tokens is 8"},
    {"a segment without tokens", ROW ",\"segments\":[[\"x\"]]}\n",
     "t: line 1: field 'segments' must hold [name, tokens] or [name, tokens, offset]"},
    {"a segment past the end of its content",
     ROW ",\"segments\":[[\"x\",8,4294967295]]}\n",
     "t: line 1: field 'segments' must hold [name, tokens] or [name, tokens, offset]"},
    {"too many block hashes", ROW ",\"block_hashes\":[1]}\n",
     "t: line 1: field 'block_hashes' has 1 hashes, but 8 tokens fill 0 blocks of 16"},
    {"gaps that are no list", ROW ",\"ttft_ms\":1,\"itl_ms\":5}\n",
     "t: line 1: field 'itl_ms' is not a list"},
    {"a negative gap", ROW ",\"ttft_ms\":1,\"itl_ms\":[1,-1]}\n",
     "t: line 1: field 'itl_ms' must hold milliseconds from 0"},
    {"more gaps than tokens", ROW ",\"ttft_ms\":1,\"itl_ms\":[1,1,1,1]}\n",
     "t: line 1: gaps of 4 tokens after the first do not fit in output_tokens 4"},
    {"chunks not parallel to gaps", ROW ",\"itl_ms\":[1,1],\"itl_tokens\":[1]}\n",
     "t: line 1: field 'itl_tokens' is not parallel to 'itl_ms'"},
    {"an empty chunk", ROW ",\"itl_ms\":[1],\"itl_tokens\":[0]}\n",
     "t: line 1: field 'itl_tokens' must hold integers from 1"},
    {"contexts not parallel to gaps",
     ROW ",\"itl_ms\":[1],\"itl_ctx\":{\"num_running\":[1]}}\n",
     "t: line 1: field 'itl_ctx' is not parallel to 'itl_ms'"},
    {"a summary without a count", ROW ",\"itl_summary\":{\"mean_ms\":1}}\n",
     "t: line 1: field 'count' is missing"},
    {"a request that takes too long", ROW ",\"ttft_ms\":1e12,\"itl_ms\":[1e12]}\n",
     "t: line 1: the request takes too long"},
    {"a session without a turn", ROW ",\"session\":\"s\"}\n",
     "t: line 1: field 'turn' is missing"},
    {"a session of the wrong type", ROW ",\"session\":[1],\"turn\":0}\n",
     "t: line 1: field 'session' must be a string or an integer"},
    {"a turn twice",
     ROW ",\"session\":1,\"turn\":0}\n"
         "{\"id\":\"b\",\"prompt_tokens\":8,\"output_tokens\":4,\"session\":\"1\","
         "\"turn\":0}\n",
     "t: line 2: the same session and turn as line 1"},
    {"a limit below the output", ROW ",\"max_tokens\":3}\n",
     "t: line 1: field 'max_tokens' is 3, but output_tokens is 4"},
    {"a priority beyond 32 bits", ROW ",\"priority\":3000000000}\n",
     "t: line 1: field 'priority' must be from -2147483648 to 2147483647, not "
     "3000000000"},
    {"an adapter without a name", ROW ",\"lora\":7}\n",
     "t: line 1: field 'lora' is not a string"},
    {"an Azure trace without rows", AZURE, "t: there are no requests"},
    {"an Azure row with a column less", AZURE "2023-11-16 18:17:03,1\n",
     "t: line 2: a row needs 3 columns"},
    {"an Azure row on a day that is none", AZURE "2023-02-29 18:17:03,1,1\n",
     "t: line 2: column 'TIMESTAMP': '2023-02-29 18:17:03' is not YYYY-MM-DD "
     "HH:MM:SS.fffffff"},
    {"an Azure row without output", AZURE "2023-02-28 18:17:03,1,0\n",
     "t: line 2: column 'GeneratedTokens': '0' is not an integer in [1, 2147483647]"},
    {"a Mooncake row with an id too few",
     MOONCAKE "513,\"output_length\":1,\"hash_ids\":[1]}\n",
     "t: line 1: field 'hash_ids' has 1 ids, not the 2 of 513 tokens"},
    {"a Mooncake row without ids", MOONCAKE "1,\"output_length\":1}\n",
     "t: line 1: field 'hash_ids' must be a list"},
    {"a Mooncake id that is no number",
     MOONCAKE "1,\"output_length\":1,\"hash_ids\":[\"a\"]}\n",
     "t: line 1: field 'hash_ids' must hold integers from 0"},
};

static void refuses(void **state)
{
    fixture_refuses(trace_read, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_capture),
        cmocka_unit_test(multiturn_capture),
        cmocka_unit_test(times_are_by_somebodys_clock),
        cmocka_unit_test(optional_fields_have_defaults),
        cmocka_unit_test(arrivals_are_sorted_stably),
        cmocka_unit_test(timings_need_every_row),
        cmocka_unit_test(summaries_count_as_equal_gaps),
        cmocka_unit_test(chunks_of_several_tokens_are_kept),
        cmocka_unit_test(what_ended_a_request_sets_its_limit),
        cmocka_unit_test(a_request_that_the_recording_cut_ends_where_it_was_cut),
        cmocka_unit_test(requests_without_output_are_skipped_if_aborted),
        cmocka_unit_test(aborted_requests_without_times_are_counted_and_left_out),
        cmocka_unit_test(block_hashes_give_content),
        cmocka_unit_test(names_are_content),
        cmocka_unit_test(sessions_are_linked_by_turn),
        cmocka_unit_test(kinds_set_arrivals),
        cmocka_unit_test(ids_out_of_order_are_fine),
        cmocka_unit_test(azure_rows),
        cmocka_unit_test(azure_days_and_order),
        cmocka_unit_test(mooncake_blocks),
        cmocka_unit_test(missing_file),
    };

    return fixture_run("trace_load", tests, VT_COUNT(tests), refuses, bad,
                       VT_COUNT(bad));
}
