/* Records written as trace.jsonl, read back by those who use it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "make_records.h"
#include "trace/trace.h"

#define TINY VT_TEST_DIR "/cases/tiny-qwen3"

struct place {
    char dir[64], path[96];
};

static void place_open(struct place *p, const char *name)
{
    *p = (struct place){.dir = "/tmp/vtwin-trace-out-XXXXXX"};
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof(p->path), "%s/%s", p->dir, name);
}

static void place_close(const struct place *p)
{
    unlink(p->path);
    rmdir(p->dir);
}

static void write_and_load(const struct vt_load_records *r,
                           const struct vt_load_origin *o, size_t want_left_out,
                           struct vt_records *out)
{
    struct vt_err err = {0};
    struct place p;
    size_t left_out;

    place_open(&p, "run.trace.jsonl.gz");
    assert_int_equal(vt_load_write_trace(r, o, p.path, &left_out, &err), VT_OK);
    assert_int_equal(left_out, want_left_out);
    if (vt_records_load(out, p.path, &err) != VT_OK)
        fail_msg("%s", err.msg);
    place_close(&p);
}

static void times_and_counts_come_back(void **state)
{
    const struct made m = {.begun = 10,
                           .ttft = 30,
                           .gap = 5,
                           .events = 4,
                           .prompt = 100,
                           .output = 4,
                           .cached = 16};
    const struct vt_load_origin o = {.model = "m", .name = "n", .rate = 4};
    struct vt_load_records r = {0};
    struct vt_records got;

    (void)state;
    add_made(&r, &m);
    write_and_load(&r, &o, 0, &got);
    assert_int_equal(got.n, 1);
    assert_string_equal(got.meta.model, "m");
    assert_int_equal(got.rec[0].arrival_ns, 11 * VT_MS);
    assert_int_equal(got.rec[0].ttft_ns, 30 * VT_MS);
    assert_int_equal(got.rec[0].n_gaps, 3);
    assert_int_equal(got.rec[0].gap[2], 5 * VT_MS);
    assert_null(got.rec[0].gap_tokens);
    assert_int_equal(got.rec[0].prompt_tokens, 100);
    assert_int_equal(got.rec[0].cached_tokens, 16);
    assert_int_equal(got.rec[0].output_tokens, 4);
    assert_string_equal(got.rec[0].finish_reason, "length");
    assert_null(got.rec[0].session);
    vt_records_free(&got);
    vt_load_records_free(&r);
}

static void what_failed_or_said_nothing_is_left_out(void **state)
{
    const struct made m[] = {
        {.begun = 0, .ttft = 3, .gap = 1, .events = 2, .prompt = 9, .output = 2},
        {.begun = 1, .prompt = 9, .fails = true},
        {.begun = 2, .ttft = 3, .gap = 1, .events = 2, .prompt = 9, .output = 0},
    };
    const struct vt_load_origin o = {.rate = INFINITY, .max_concurrency = 2};
    struct vt_load_records r = {0};
    struct vt_records got;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(m); i++)
        add_made(&r, &m[i]);
    write_and_load(&r, &o, 2, &got);
    assert_int_equal(got.n, 1);
    vt_records_free(&got);
    vt_load_records_free(&r);
}

/* Events are not tokens: what each of these leaves is told by its name. */
static struct events {
    const char *name;
    enum vt_load_backend backend;
    uint32_t events, output; /* one event every 10 ms from 20 ms on */
    uint32_t n_gaps;
    bool by_mean;
    vt_ns ttft, gap0;
    uint32_t tokens0; /* of the first gap; 0: not stated */
} events[] = {
    {"a token each", VT_LOAD_COMPLETIONS, 5, 5, 4, false, 20 * VT_MS, 10 * VT_MS, 0},
    {"a chat's role is no token", VT_LOAD_CHAT, 6, 5, 4, false, 30 * VT_MS, 10 * VT_MS,
     0},
    {"an end without text is no token", VT_LOAD_COMPLETIONS, 6, 5, 4, false, 20 * VT_MS,
     10 * VT_MS, 0},
    {"neither is", VT_LOAD_CHAT, 7, 5, 4, false, 30 * VT_MS, 10 * VT_MS, 0},
    {"two tokens an event", VT_LOAD_COMPLETIONS, 4, 8, 3, false, 20 * VT_MS, 10 * VT_MS,
     2},
    {"more events than tokens", VT_LOAD_COMPLETIONS, 9, 5, 4, true, 20 * VT_MS,
     20 * VT_MS, 0},
    {"one token", VT_LOAD_COMPLETIONS, 1, 1, 0, false, 20 * VT_MS, 0, 0},
};

static void events_become_tokens(void **state)
{
    const struct events *e = *state;
    const struct made m = {
        .ttft = 20, .gap = 10, .events = e->events, .prompt = 50, .output = e->output};
    const struct vt_load_origin o = {.rate = 1, .backend = e->backend};
    struct vt_load_records r = {0};
    struct vt_records got;

    add_made(&r, &m);
    write_and_load(&r, &o, 0, &got);
    assert_int_equal(got.rec[0].ttft_ns, e->ttft);
    assert_int_equal(got.rec[0].n_gaps, e->n_gaps);
    assert_int_equal(got.rec[0].by_mean, e->by_mean);
    if (e->n_gaps > 0)
        assert_int_equal(got.rec[0].gap[0], e->gap0);
    assert_int_equal(got.rec[0].gap_tokens ? got.rec[0].gap_tokens[0] : 0, e->tokens0);
    vt_records_free(&got);
    vt_load_records_free(&r);
}

/* Two conversations of two turns that begin with the same system prompt. */
static void conversations_repeat_what_was_said(void **state)
{
    const struct made m[] = {
        {.session = 0,
         .begun = 0,
         .ttft = 3,
         .gap = 1,
         .events = 4,
         .prompt = 40,
         .output = 4},
        {.session = 1,
         .begun = 1,
         .ttft = 3,
         .gap = 1,
         .events = 4,
         .prompt = 50,
         .output = 4},
        {.session = 0,
         .turn = 1,
         .begun = 207,
         .ttft = 3,
         .gap = 1,
         .events = 2,
         .prompt = 60,
         .output = 2},
        {.session = 1, .turn = 1, .begun = 500, .fails = true},
    };
    const struct vt_load_turn turn[2] = {{.text = "x", .text_len = 1},
                                         {.text = "y", .text_len = 1}};
    struct vt_load_session session[2] = {
        {.id = "red", .system = "You are a ship.", .turn = turn, .n_turns = 2},
        {.id = "blue", .system = "You are a ship.", .turn = turn, .n_turns = 2}};
    const struct vt_load_plan plan = {.session = session, .n = 2};
    struct vt_load_origin o = {.rate = 1, .plan = &plan};
    struct vt_load_records r = {0};
    struct vt_tokenizer *t;
    struct vt_records got;
    struct vt_err err = {0};
    uint32_t system;

    (void)state;
    assert_int_equal(vt_tokenizer_open(&t, TINY, &err), VT_OK);
    o.tokenizer = t;
    for (size_t i = 0; i < VT_COUNT(m); i++)
        add_made(&r, &m[i]);
    write_and_load(&r, &o, 1, &got);
    assert_int_equal(got.n, 3);
    assert_string_equal(got.rec[0].session, "red");
    assert_int_equal(got.rec[2].turn, 1);
    assert_int_equal(got.rec[2].think_ns, 207 * VT_MS - 7 * VT_MS);
    system = got.rec[0].segment[0].tokens;
    assert_string_equal(got.rec[0].segment[0].name, got.rec[1].segment[0].name);
    assert_true(system > 0 && got.rec[1].segment[0].tokens == system);
    /* Turn two: system, question, answer, question. */
    assert_int_equal(got.rec[2].n_segments, 4);
    assert_int_equal(got.rec[2].segment[1].tokens, 40 - system);
    assert_int_equal(got.rec[2].segment[2].tokens, 4);
    assert_string_equal(got.rec[2].segment[2].name, "out:request-0");
    assert_int_equal(got.rec[2].segment[3].tokens, 16);
    vt_records_free(&got);
    vt_load_records_free(&r);
    vt_tokenizer_close(t);
}

static void equal_beginnings_have_equal_hashes(void **state)
{
    const uint32_t a[48] = {1, 2, 3}, b[48] = {[20] = 7, [0] = 1, [1] = 2, [2] = 3};
    const struct vt_load_turn turn[2] = {{.id = a, .n_ids = 48},
                                         {.id = b, .n_ids = 48}};
    struct vt_load_session session[2] = {{.turn = &turn[0], .n_turns = 1},
                                         {.turn = &turn[1], .n_turns = 1}};
    const struct vt_load_plan plan = {.session = session, .n = 2};
    const struct made m[] = {
        {.session = 0, .begun = 0, .ttft = 3, .events = 1, .prompt = 48, .output = 1},
        {.session = 1, .begun = 1, .ttft = 3, .events = 1, .prompt = 40, .output = 1},
    };
    struct vt_load_origin o = {.rate = 1, .plan = &plan};
    struct vt_load_records r = {0};
    struct vt_tokenizer *t;
    struct vt_records got;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_tokenizer_open(&t, TINY, &err), VT_OK);
    o.tokenizer = t;
    for (size_t i = 0; i < VT_COUNT(m); i++)
        add_made(&r, &m[i]);
    write_and_load(&r, &o, 0, &got);
    assert_int_equal(got.rec[0].n_block_hashes, 3);
    assert_int_equal(got.rec[1].n_block_hashes, 2); /* as many as the server counts */
    assert_true(got.rec[0].block_hash[0] == got.rec[1].block_hash[0]);
    assert_true(got.rec[0].block_hash[1] != got.rec[1].block_hash[1]);
    vt_records_free(&got);
    vt_load_records_free(&r);
    vt_tokenizer_close(t);
}

static struct arriving {
    const char *name;
    double rate;
    uint32_t limit, turn;
    enum vt_arrivals want;
} arriving[] = {
    {"a rate is kept as recorded", 4, 0, 0, VT_ARRIVALS_RECORDED},
    {"a rate with a limit, too", 4, 8, 0, VT_ARRIVALS_RECORDED},
    {"full speed under a limit is a closed loop", INFINITY, 8, 0, VT_ARRIVALS_CLOSED},
    {"conversations wait for answers", 4, 0, 1, VT_ARRIVALS_SESSION},
};

static void arrivals_are_made_again_as_they_were(void **state)
{
    const struct arriving *a = *state;
    const struct vt_load_origin o = {.rate = a->rate, .max_concurrency = a->limit};
    struct vt_load_records r = {0};
    struct vt_workload w = {0};
    struct vt_err err = {0};
    struct place p;
    size_t left_out;

    place_open(&p, "t.jsonl");
    for (uint32_t i = 0; i <= a->turn; i++) {
        const struct made m = {.turn = i,
                               .begun = 100.0 * i,
                               .ttft = 3,
                               .gap = 1,
                               .events = 2,
                               .prompt = 9 + 20 * i,
                               .output = 2};

        add_made(&r, &m);
    }
    assert_int_equal(vt_load_write_trace(&r, &o, p.path, &left_out, &err), VT_OK);
    if (vt_trace_load(&w, p.path, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(w.arrivals, a->want);
    assert_int_equal(w.concurrency, a->want == VT_ARRIVALS_CLOSED ? 8 : 0);
    assert_non_null(w.measured);
    vt_workload_free(&w);
    vt_load_records_free(&r);
    place_close(&p);
}

/* Requests that are at hand are sent as ids, and their trace says what they share and
 * what is known of the server. */
static void what_was_drawn_is_what_the_trace_says(void **state)
{
    static const char spec[] = "name: x\nrequests: 3\n"
                               "arrival: {process: closed, concurrency: 2}\n"
                               "prompt: 10\noutput: 4\n"
                               "prefix: {groups: 1, tokens: 20}\n";
    const struct vt_meta engine = {.num_gpu_blocks = 77,
                                   .max_num_seqs = 5,
                                   .block_size = 32,
                                   .async_scheduling = 1,
                                   .enable_prefix_caching = 0};
    struct vt_load_origin o = {.engine = &engine, .rate = INFINITY};
    struct vt_load_data d = {.token_ids = true, .id_range = {100, 200}};
    struct vt_load_plan p = {0};
    struct vt_load_records r = {0};
    struct vt_workload w = {0};
    struct vt_records got;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        vt_workload_generate_text(&w, "x", spec, sizeof(spec) - 1, 1, &err), VT_OK);
    assert_int_equal(vt_load_plan_of(&p, &d, &w, &err), VT_OK);
    assert_int_equal(p.n, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct vt_load_turn *t = &p.session[i].turn[0];
        const struct made m = {
            .session = i, .ttft = 3, .gap = 1, .events = 4, .prompt = 30, .output = 4};

        assert_int_equal(t->n_ids, 30);
        for (uint32_t k = 0; k < t->n_ids; k++)
            assert_in_range(t->id[k], 100, 199);
        assert_memory_equal(t->id, p.session[0].turn[0].id, 20 * sizeof(*t->id));
        add_made(&r, &m);
    }
    o.plan = &p;
    o.workload = &w;
    write_and_load(&r, &o, 0, &got);
    assert_int_equal(got.meta.num_gpu_blocks, 77);
    assert_int_equal(got.meta.max_num_seqs, 5);
    assert_int_equal(got.meta.block_size, 32);
    assert_int_equal(got.meta.enable_prefix_caching, 0);
    assert_int_equal(got.rec[2].n_segments, 2);
    assert_string_equal(got.rec[2].segment[0].name, got.rec[0].segment[0].name);
    assert_string_not_equal(got.rec[2].segment[1].name, got.rec[0].segment[1].name);
    vt_records_free(&got);
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    vt_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest single[] = {
        cmocka_unit_test(times_and_counts_come_back),
        cmocka_unit_test(what_failed_or_said_nothing_is_left_out),
        cmocka_unit_test(conversations_repeat_what_was_said),
        cmocka_unit_test(equal_beginnings_have_equal_hashes),
        cmocka_unit_test(what_was_drawn_is_what_the_trace_says),
    };
    enum { N = VT_COUNT(single), E = VT_COUNT(events), A = VT_COUNT(arriving) };
    struct CMUnitTest tests[N + E + A];

    for (size_t i = 0; i < N; i++)
        tests[i] = single[i];
    for (size_t i = 0; i < E; i++)
        tests[N + i] = (struct CMUnitTest){.name = events[i].name,
                                           .test_func = events_become_tokens,
                                           .initial_state = &events[i]};
    for (size_t i = 0; i < A; i++)
        tests[N + E + i] =
            (struct CMUnitTest){.name = arriving[i].name,
                                .test_func = arrivals_are_made_again_as_they_were,
                                .initial_state = &arriving[i]};
    return cmocka_run_group_tests_name("trace_out", tests, NULL, NULL);
}
