/* Sessions of agents: who waits for whom, how long they think, what prompts share, and
 * what is refused. */
#include "fixture.h"

#define CALL(t, api, think)                                                   \
    "{\"t\":" t                                                               \
    ",\"type\":\"n\",\"in\":100,\"out\":5,\"hash_ids\":[1],\"api_time\":" api \
    ",\"think_time\":" think "}"
#define AGENT(t, ms, calls)                                                          \
    "{\"t\":" t ",\"type\":\"subagent\",\"duration_ms\":" ms ",\"requests\":[" calls \
    "]}"
#define SESSION(list) "{\"id\":\"s\",\"block_size\":64,\"requests\":[" list "]}\n"

/* "1<0+250 ..." for each request but the first: its turn, those it waits for, and its
 * think time in milliseconds. */
static const struct row {
    const char *name, *text, *links;
} rows[] = {
    {"one after the other",
     SESSION(CALL("0", "1", "0") "," CALL("3", "1", "2") "," CALL("4.5", "1", "0.25")),
     "1<0+2000 2<1+250"},
    {"calls that overlapped go together, and what follows waits for both",
     SESSION(CALL("0", "1", "0") "," CALL("2", "5", "1") "," CALL(
         "3", "1", "0") "," CALL("8", "1", "0.5")),
     "1<0+1000 2<0+2000 3<1,2+500"},
    {"agents together; the parent's think time holds theirs",
     SESSION(CALL("0", "1", "0") "," AGENT(
         "2", "9000",
         CALL("0", "1", "0") "," CALL(
             "2", "1", "0.75")) "," AGENT("2.5", "3000",
                                          CALL("0", "1", "0.25")) "," CALL("13", "1",
                                                                           "11")),
     "1<0+1000 2<1+750 3<0+1750 4<2,3+2000"},
    {"agents one after the other",
     SESSION(CALL("0", "1", "0") "," AGENT("1", "1000", CALL("0", "1", "0")) "," AGENT(
         "4", "1000", CALL("0", "1", "0"))),
     "1<0+0 2<1+2000"},
    {"an agent within an agent",
     SESSION(CALL("0", "1", "0") "," AGENT(
         "1", "5000",
         CALL("0", "1", "0") "," AGENT("2", "1000", CALL("0", "1", "0")) "," CALL(
             "4", "1", "2")) "," CALL("9", "1", "8")),
     "1<0+0 2<1+1000 3<2+1000 4<3+3000"},
    {"an agent that asks nothing is passed over",
     SESSION(CALL("0", "1", "0") "," AGENT("1", "1000", "") "," CALL("3", "1", "1.5")),
     "1<0+500"},
    {"a session that begins with agents has one beginning",
     SESSION(AGENT("0", "2000", CALL("0", "1", "0")) "," AGENT(
         "0", "2000", CALL("0", "1", "0")) "," CALL("3", "1", "3")),
     "1<0+0 2<1+1000"},
    {"without think times they are what lies between",
     SESSION(
         "{\"t\":1,\"type\":\"s\",\"in\":9,\"out\":0,\"hash_ids\":[],\"api_time\":2},"
         "{\"t\":4.5,\"type\":\"s\",\"in\":9,\"out\":1,\"hash_ids\":[]},"
         "{\"t\":5,\"type\":\"s\",\"in\":9,\"out\":1,\"hash_ids\":[],\"think_time\":"
         "null}"),
     "1<0+1500 2<1+500"},
};

/* In the order of turns; who waits is told by those that are waited for. */
static void put_links(struct vt_buf *b, const struct vt_workload *w)
{
    for (uint32_t turn = 1; turn < w->n; turn++) {
        const struct vt_work *q = NULL;
        uint32_t n = 0;

        for (size_t i = 0; i < w->n; i++)
            if (w->req[i].turn == turn)
                q = &w->req[i];
        assert_non_null(q);
        vt_buf_printf(b, "%s%u<", turn > 1 ? " " : "", turn);
        for (uint32_t before = 0; before < w->n; before++)
            for (size_t i = 0; i < w->n; i++) {
                uint32_t k =
                    w->req[i].turn == before ? w->req[i].next_turn : VT_NO_TURN;

                for (; k != VT_NO_TURN; k = w->req[k].beside)
                    if (&w->req[k] == q)
                        vt_buf_printf(b, "%s%u", n++ > 0 ? "," : "", before);
            }
        assert_int_equal(n, q->n_before);
        vt_buf_printf(b, "+%lld", (long long)(q->think_ns / VT_MS));
    }
    vt_buf_char(b, '\0');
}

static void each_waits_for_those_before(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_workload w;
        struct vt_err err = {0};
        struct vt_buf b = {0};

        print_message("  %s\n", rows[i].name);
        assert_int_equal(fixture_from(trace_read, &w, rows[i].text, &err), VT_OK);
        assert_true(w.forked && w.arrivals == VT_ARRIVALS_SESSION);
        put_links(&b, &w);
        assert_string_equal(b.data, rows[i].links);
        vt_buf_free(&b);
        vt_workload_free(&w);
    }
}

static uint64_t first_content(const struct vt_workload *w, size_t i)
{
    return w->segment[w->req[i].first_segment].content;
}

/* Ids are a session's own, unless it says otherwise. */
static void prompts_share_within_their_scope(void **state)
{
    static const char *const scope[] = {"local", "global"};

    (void)state;
    for (int global = 0; global < 2; global++) {
        struct vt_workload w;
        struct vt_err err = {0};
        char text[600];

        snprintf(text, sizeof(text),
                 "{\"id\":\"a\",\"hash_id_scope\":\"%s\",\"requests\":[%s,%s]}\n"
                 "{\"id\":\"b\",\"hash_id_scope\":\"%s\",\"requests\":[%s]}\n",
                 scope[global], CALL("0", "1", "0"), CALL("2", "1", "1"), scope[global],
                 CALL("0", "1", "0"));
        assert_int_equal(fixture_from(trace_read, &w, text, &err), VT_OK);
        assert_int_equal(w.n, 3);
        assert_string_equal(w.req[0].id, "a:0");
        assert_string_equal(w.req[1].id, "b:0");
        assert_string_equal(w.req[2].id, "a:1");
        assert_int_equal(w.req[2].arrival_ns, 2 * VT_SEC);
        assert_int_equal(w.req[2].n_segments,
                         2); /* 64 tokens of the id, 36 of its own */
        assert_int_equal(w.segment[w.req[2].first_segment].tokens, 64);
        assert_true(first_content(&w, 0) == first_content(&w, 2));
        assert_int_equal(first_content(&w, 0) == first_content(&w, 1), global);
        vt_workload_free(&w);
    }
}

static const struct {
    const char *name, *text, *want;
} bad[] = {
    {"no list", "{\"id\":\"s\",\"requests\":[3]}\n",
     "t: line 1: field 'requests' must hold objects"},
    {"no time", SESSION("{\"in\":9,\"out\":1,\"hash_ids\":[]}"),
     "t: line 1: field 't' is missing"},
    {"more ids than tokens",
     SESSION("{\"t\":0,\"in\":64,\"out\":1,\"hash_ids\":[1,2]}"),
     "t: line 1: field 'hash_ids' has 2 ids, more than 64 tokens have"},
    {"an id that is none", SESSION("{\"t\":0,\"in\":64,\"out\":1,\"hash_ids\":[-1]}"),
     "t: line 1: field 'hash_ids' must hold integers from 0"},
    {"an agent without requests", SESSION("{\"t\":0,\"type\":\"subagent\"}"),
     "t: line 1: a subagent's field 'requests' must be a list"},
    {"a session twice", SESSION(CALL("0", "1", "0")) SESSION(CALL("0", "1", "0")),
     "t: line 2: id 's:0' is used twice"},
    {"another line", SESSION(CALL("0", "1", "0")) "{\"id\":\"x\"}\n",
     "t: line 2: not a session: no 'id' and 'requests'"},
};

static void what_is_wrong_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct vt_workload w;
        struct vt_err err = {0};

        print_message("  %s\n", bad[i].name);
        assert_int_equal(fixture_from(trace_read, &w, bad[i].text, &err), VT_EINPUT);
        assert_string_equal(err.msg, bad[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_waits_for_those_before),
        cmocka_unit_test(prompts_share_within_their_scope),
        cmocka_unit_test(what_is_wrong_is_told),
    };

    return cmocka_run_group_tests_name("weka", tests, NULL, NULL);
}
