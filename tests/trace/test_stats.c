/* A recorder's statistics of the scheduler, and the steps that they show. */
#include "fixture.h"

#include "trace/formats/formats.h"
#include "trace/jsonl/jsonl.h"

/* a: a prompt of 90 tokens, 30 of them cached, in two steps, and three tokens; b comes
 * while a decodes, a prompt of 8. */
static const char run[] =
    "{\"meta\":{\"source\":\"tap\"}}\n"
    "{\"id\":\"a\",\"arrival_ms\":10,\"prompt_tokens\":90,\"cached_tokens\":30,"
    "\"output_tokens\":3,\"ttft_ms\":20,\"itl_ms\":[5,6.5]}\n"
    "{\"id\":\"b\",\"arrival_ms\":31,\"prompt_tokens\":8,\"output_tokens\":1,"
    "\"ttft_ms\":10.5}\n";

#define STATS(at, n) "{\"ts_ms\":" at ",\"engine\":0," RUNNING n "}}\n"
#define RUNNING      "\"scheduler\":{\"num_running_reqs\":"

static const char told[] = /* clang-format off */
    STATS("20", "1")      /* part of a's prompt */
    STATS("30", "1")      /* the rest of it: a's first token */
    STATS("35", "1")      /* its second */
    STATS("41.5", "2")    /* its third, and b's first */
    STATS("42", "0");     /* nobody is left */
/* clang-format on */

static int read_both(const char *trace, const char *stats, struct vt_steps *s,
                     struct vt_err *err)
{
    struct vt_lines *a, *b;
    struct vt_workload w;
    int rc;

    assert_int_equal(vt_lines_from(&a, "trace", trace, strlen(trace), err), VT_OK);
    assert_int_equal(vt_lines_from(&b, "stats", stats, strlen(stats), err), VT_OK);
    if (trace_read(&w, a, err) != VT_OK)
        fail_msg("%s", err->msg);
    rc = trace_read_stats(s, b, &w, err);
    vt_lines_close(a);
    vt_lines_close(b);
    vt_workload_free(&w);
    return rc;
}

static void every_line_with_work_is_a_step(void **state)
{
    struct vt_err err = {0};
    struct vt_steps s;

    (void)state;
    if (read_both(run, told, &s, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_true(s.only_out);
    assert_int_equal(s.n, 4);
    assert_int_equal(s.step[0].out_ns, 20 * VT_MS);
    assert_int_equal(s.step[0].sched_ns, 10 * VT_MS); /* it met an idle engine */
    assert_int_equal(s.step[0].decodes, 0);
    assert_int_equal(s.step[0].n_prefill, 1); /* no token tells of it */
    assert_string_equal(s.step[0].prefill[0].id, "a");
    assert_int_equal(s.step[0].prefill[0].computed, 30);
    assert_int_equal(s.step[0].prefill[0].tokens, 30);
    assert_int_equal(s.step[1].prefill[0].computed, 60);
    assert_int_equal(s.step[1].prefill[0].tokens, 30);
    assert_int_equal(s.step[2].decodes, 1);
    assert_int_equal(s.step[2].decode_ctx, 90);
    assert_int_equal(s.step[3].decodes, 1);
    assert_int_equal(s.step[3].decode_ctx, 91);
    assert_int_equal(s.step[3].n_prefill, 1);
    assert_int_equal(s.step[3].prefill[0].tokens, 8);
    assert_int_equal(s.step[3].running, 2);
    vt_steps_free(&s);
}

static struct bad {
    const char *name;
    const char *stats, *message;
} bads[] = {
    {"statistics of another recording", STATS("20", "1") STATS("30", "1"),
     "stats: of 4 tokens in the trace 1 came with a line of these statistics: it is "
     "another recording"},
    {"times that go back", STATS("20", "1") STATS("19", "1"),
     "stats: line 2: field 'ts_ms' is missing or goes back"},
    {"two engines", STATS("20", "1") "{\"ts_ms\":21,\"engine\":1,\"scheduler\":{}}\n",
     "stats: line 2: statistics of several engines, whose requests the trace does not "
     "tell apart"},
    {"no statistics", "{}\n",
     "stats: of 4 tokens in the trace 0 came with a line of "
     "these statistics: it is another recording"},
};

static void is_refused(void **state)
{
    const struct bad *b = *state;
    struct vt_err err = {0};
    struct vt_steps s;

    assert_int_equal(read_both(run, b->stats, &s, &err), VT_EINPUT);
    assert_string_equal(err.msg, b->message);
}

int main(void)
{
    struct CMUnitTest tests[1 + VT_COUNT(bads)] = {
        cmocka_unit_test(every_line_with_work_is_a_step)};

    for (size_t i = 0; i < VT_COUNT(bads); i++)
        tests[1 + i] = (struct CMUnitTest){
            .name = bads[i].name,
            .test_func = is_refused,
            .initial_state = &bads[i],
        };
    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
