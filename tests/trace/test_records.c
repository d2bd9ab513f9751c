/* Traces read as records: every field, what follows from the rest, and refusals. */
#include "fixture.h"

#include "trace/jsonl/jsonl.h"

static int records_from(struct vt_records *r, const char *text, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_from(&lines, "t", text, strlen(text), err);

    assert_int_equal(rc, VT_OK);
    rc = records_read(r, lines, err);
    vt_lines_close(lines);
    return rc;
}

static void every_field_is_kept(void **state)
{
    struct vt_records r;
    struct vt_err err = {0};
    const struct vt_record *q;

    (void)state;
    assert_int_equal(
        records_from(
            &r,
            "{\"meta\": {\"model\":\"m\",\"block_size\":4,\"own\":[1,{}]} }\n"
            "{\"id\":\"a\",\"arrival_ms\":1.5,\"prompt_tokens\":9,\"cached_tokens\":4,"
            "\"output_tokens\":6,\"ttft_ms\":20,\"itl_ms\":[5,0.000123],"
            "\"itl_tokens\":[1,3],\"itl_ctx\":{\"num_running\":[2,3],"
            "\"prefill_tokens\":[0,64]},\"concurrency\":4,"
            "\"segments\":[[\"s\",5],[\"out:b\",4,2]],\"session\":7,\"turn\":2,"
            "\"think_ms\":3,\"priority\":-1,\"max_tokens\":8,"
            "\"finish_reason\":\"stop\",\"block_hashes\":[18446744073709551615,1],"
            "\"output_token_ids\":[1,2,3,4,5,6]}\n",
            &err),
        VT_OK);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.meta.model, "m");
    assert_string_equal(r.meta_json,
                        "{\"model\":\"m\",\"block_size\":4,\"own\":[1,{}]}");
    q = &r.rec[0];
    assert_string_equal(q->id, "a");
    assert_int_equal(q->arrival_ns, 1500000);
    assert_int_equal(q->ttft_ns, 20 * VT_MS);
    assert_int_equal(q->n_gaps, 2);
    assert_int_equal(q->gap[1], 123);
    assert_int_equal(q->gap_tokens[1], 3);
    assert_int_equal(q->gap_running[1], 3);
    assert_int_equal(q->gap_prefill[1], 64);
    assert_int_equal(q->n_segments, 2);
    assert_string_equal(q->segment[1].name, "out:b");
    assert_int_equal(q->segment[1].offset, 2);
    assert_string_equal(q->session, "7");
    assert_int_equal(q->turn, 2);
    assert_int_equal(q->think_ns, 3 * VT_MS);
    assert_int_equal(q->priority, -1);
    assert_int_equal(q->max_tokens, 8);
    assert_string_equal(q->finish_reason, "stop");
    assert_true(q->block_hash[0] == UINT64_MAX);
    assert_int_equal(q->token_id[5], 6);
    assert_int_equal(q->line, 2);
    assert_int_equal(vt_record_decode_ns(q), 5 * VT_MS + 123);
    vt_records_free(&r);
}

static void what_is_not_said_stays_unknown(void **state)
{
    struct vt_records r;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(records_from(&r,
                                  "{\"prompt_tokens\":1,\"output_tokens\":1}\n"
                                  "{\"prompt_tokens\":1,\"output_tokens\":0,"
                                  "\"finish_reason\":\"abort\"}\n"
                                  "{\"prompt_tokens\":2,\"output_tokens\":4,"
                                  "\"ttft_ms\":3,\"itl_summary\":{\"mean_ms\":2,"
                                  "\"count\":3}}\n",
                                  &err),
                     VT_OK);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.n_skipped, 1);
    assert_null(r.meta_json);
    assert_string_equal(r.rec[0].id, "request-0");
    assert_int_equal(r.rec[0].arrival_ns, -1);
    assert_int_equal(r.rec[0].ttft_ns, -1);
    assert_int_equal(r.rec[0].concurrency, 0);
    assert_string_equal(r.rec[1].id, "request-2"); /* lines are counted */
    assert_true(r.rec[1].by_mean);
    assert_int_equal(r.rec[1].n_gaps, 3);
    assert_int_equal(vt_record_gap(&r.rec[1], 2), 2 * VT_MS);
    assert_int_equal(vt_record_decode_ns(&r.rec[1]), 6 * VT_MS);
    vt_records_free(&r);
}

/* In flight at arrival, from arrivals and ends. */
static void concurrency_follows_from_times(void **state)
{
    static const uint32_t want[] = {1, 2, 2, 1};
    struct vt_records r;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        records_from(&r,
                     "{\"id\":\"d\",\"arrival_ms\":90,\"prompt_tokens\":1,"
                     "\"output_tokens\":1,\"ttft_ms\":1}\n"
                     "{\"id\":\"a\",\"arrival_ms\":0,\"prompt_tokens\":1,"
                     "\"output_tokens\":2,\"ttft_ms\":10,\"itl_ms\":[10]}\n"
                     "{\"id\":\"b\",\"arrival_ms\":5,\"prompt_tokens\":1,"
                     "\"output_tokens\":1,\"ttft_ms\":40}\n"
                     "{\"id\":\"c\",\"arrival_ms\":20,\"prompt_tokens\":1,"
                     "\"output_tokens\":1,\"ttft_ms\":40}\n",
                     &err),
        VT_OK);
    for (size_t i = 0; i < r.n; i++) {
        assert_int_equal(r.rec[i].id[0], "abcd"[i]); /* by arrival */
        assert_int_equal(r.rec[i].concurrency, want[i]);
    }
    vt_records_free(&r);
}

static void records_and_workloads_tell_of_the_same_requests(void **state)
{
    static const char *const files[] = {DATA("closed.trace.jsonl.gz"),
                                        DATA("closed-c2.trace.jsonl.gz"),
                                        DATA("multiturn.trace.jsonl.gz")};

    (void)state;
    for (size_t f = 0; f < VT_COUNT(files); f++) {
        struct vt_records r;
        struct vt_workload w;
        struct vt_err err = {0};

        assert_int_equal(vt_records_load(&r, files[f], &err), VT_OK);
        assert_int_equal(vt_trace_load(&w, files[f], &err), VT_OK);
        assert_int_equal(r.n, w.n);
        for (size_t i = 0; i < r.n; i++) {
            assert_string_equal(r.rec[i].id, w.req[i].id);
            assert_int_equal(r.rec[i].prompt_tokens, w.req[i].prompt_tokens);
            assert_int_equal(r.rec[i].n_gaps, w.measured[i].n_gaps);
            assert_int_equal(r.rec[i].ttft_ns + vt_record_decode_ns(&r.rec[i]),
                             w.measured[i].e2e_ns);
        }
        vt_records_free(&r);
        vt_workload_free(&w);
    }
}

#define REQUEST "\"prompt_tokens\":4,\"output_tokens\":3,\"ttft_ms\":1"

static struct fixture_bad bads[] = {
    {"no requests", "{\"meta\":{}}\n", "t: there are no requests"},
    {"meta in the middle", "{" REQUEST "}\n{\"meta\":{}}\n",
     "t: line 2: 'meta' may only be on the first line (two traces in one file?)"},
    {"meta that is no object", "{\"meta\":3}\n",
     "t: line 1: field 'meta' is not an object"},
    {"no prompt", "{\"output_tokens\":1}",
     "t: line 1: field 'prompt_tokens' is missing"},
    {"more gaps than tokens", "{" REQUEST ",\"itl_ms\":[1,2,3]}",
     "t: line 1: gaps of 3 tokens after the first do not fit in output_tokens 3"},
    {"a gap below zero", "{" REQUEST ",\"itl_ms\":[-1]}",
     "t: line 1: field 'itl_ms' must hold milliseconds from 0"},
    {"context that is not parallel",
     "{" REQUEST ",\"itl_ms\":[1],\"itl_ctx\":{\"num_running\":[1],"
     "\"prefill_tokens\":[]}}",
     "t: line 1: field 'itl_ctx' is not parallel to 'itl_ms'"},
    {"tokens that are not parallel",
     "{" REQUEST ",\"itl_ms\":[1],\"itl_tokens\":[1,1]}",
     "t: line 1: field 'itl_tokens' is not parallel to 'itl_ms'"},
    {"a summary without its mean", "{" REQUEST ",\"itl_summary\":{\"count\":2}}",
     "t: line 1: field 'itl_summary' needs 'mean_ms' and 'count'"},
    {"segments that do not sum up", "{" REQUEST ",\"segments\":[[\"a\",3]]}",
     "t: line 1: field 'segments' sums to 3 tokens, but prompt_tokens is 4"},
    {"token ids of another length", "{" REQUEST ",\"output_token_ids\":[1]}",
     "t: line 1: field 'output_token_ids' has 1 ids, but output_tokens is 3"},
    {"times that cannot be added up",
     "{" REQUEST ",\"arrival_ms\":1,\"itl_ms\":[1e12,1e12]}",
     "t: line 1: a request arrives too late or takes too long"},
    {"a session without its turn", "{" REQUEST ",\"session\":\"s\"}",
     "t: line 1: field 'turn' is missing"},
};

static void is_refused(void **state)
{
    const struct fixture_bad *bad = *state;
    struct vt_records r;
    struct vt_err err = {0};

    assert_int_equal(records_from(&r, bad->text, &err), VT_EINPUT);
    assert_string_equal(err.msg, bad->message);
    assert_null(r.rec);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(every_field_is_kept),
        cmocka_unit_test(what_is_not_said_stays_unknown),
        cmocka_unit_test(concurrency_follows_from_times),
        cmocka_unit_test(records_and_workloads_tell_of_the_same_requests),
    };

    return fixture_run("records", plain, VT_COUNT(plain), is_refused, bads,
                       VT_COUNT(bads));
}
