/* libvtwin through its public headers alone, as another program would use it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include <vtwin/ask.h>
#include <vtwin/sim.h>

static struct vtwin_model *open_model(const char *name)
{
    struct vtwin_error err = {VTWIN_INIT(err)};
    struct vtwin_model *m = NULL;

    if (vtwin_model_open(&m, name, &err) != VTWIN_OK)
        fail_msg("%s", err.message);
    return m;
}

static void the_headers_state_the_librarys_version(void **state)
{
    char text[32];

    (void)state;
    snprintf(text, sizeof(text), "%d.%d.%d", VTWIN_VERSION_MAJOR, VTWIN_VERSION_MINOR,
             VTWIN_VERSION_PATCH);
    assert_string_equal(vtwin_version(), text);
}

/* ---- sizes of structs --------------------------------------------------------- */

static void an_older_caller_is_understood(void **state)
{
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    struct vtwin_error err = {VTWIN_INIT(err)};
    struct vtwin_engine *e = NULL;
    struct vtwin_request r = {
        .size = offsetof(struct vtwin_request, priority),
        .id = 1,
        .prompt_tokens = 10,
        .output_tokens = 2,
        .priority = 99, /* behind the older struct's end: not read */
        .prefix_tokens = 7,
    };

    (void)state;
    assert_int_equal(vtwin_engine_new(&e, m, NULL, &err), VTWIN_OK);
    assert_int_equal(vtwin_engine_add(e, 0, &r, &err), VTWIN_OK);
    vtwin_engine_free(e);
    vtwin_model_free(m);
}

static void a_newer_caller_is_told_what_is_missing(void **state)
{
    struct vtwin_error err = {VTWIN_INIT(err)};
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    struct {
        struct vtwin_sim_options o;
        uint64_t what_comes_next;
    } newer = {.o = {.size = sizeof(newer)}};
    struct vtwin_summary s = {VTWIN_INIT(s)};

    (void)state;
    newer.what_comes_next = 1;
    assert_int_equal(vtwin_simulate(m, &newer.o, &s, &err), VTWIN_EINPUT);
    assert_non_null(strstr(err.message, "vtwin_sim_options asks for what libvtwin"));
    newer.what_comes_next = 0; /* not used: nothing is missing */
    assert_int_equal(vtwin_simulate(m, &newer.o, &s, &err), VTWIN_OK);
    vtwin_model_free(m);
}

static void a_struct_without_size_is_refused(void **state)
{
    struct vtwin_error err = {VTWIN_INIT(err)};
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    struct vtwin_sim_options o = {0};
    struct vtwin_summary s = {VTWIN_INIT(s)};

    (void)state;
    assert_int_equal(vtwin_simulate(m, &o, &s, &err), VTWIN_EINPUT);
    assert_non_null(strstr(err.message, "VTWIN_INIT"));
    vtwin_model_free(m);
}

static void a_small_struct_is_not_written_past_its_end(void **state)
{
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    struct vtwin_sim_options o = {VTWIN_INIT(o), .seed = 1};
    struct vtwin_summary s;

    (void)state;
    memset(&s, 0x5a, sizeof(s));
    s.size = offsetof(struct vtwin_summary, steps);
    assert_int_equal(vtwin_simulate(m, &o, &s, NULL), VTWIN_OK);
    assert_int_equal(s.requests, 468);
    assert_int_equal(s.steps, UINT64_C(0x5a5a5a5a5a5a5a5a));
    vtwin_model_free(m);
}

/* ---- models -------------------------------------------------------------------- */

static void an_unknown_profile_says_its_name(void **state)
{
    struct vtwin_error err = {VTWIN_INIT(err)};
    struct vtwin_model *m = NULL;

    (void)state;
    assert_int_equal(vtwin_model_open(&m, "no-such-profile", &err), VTWIN_EINPUT);
    assert_null(m);
    assert_int_equal(err.code, VTWIN_EINPUT);
    assert_non_null(strstr(err.message, "no-such-profile"));
    assert_int_equal(vtwin_model_open(&m, "no-such-profile", NULL), VTWIN_EINPUT);
}

static double one_ms_a_token(void *user, const struct vtwin_step *s)
{
    ++*(uint64_t *)user;
    return 1000.0 * (s->decode_tokens + s->prefill_tokens);
}

struct seen {
    uint32_t tokens;
    int64_t last_ns;
    int finish;
};

static void note_output(void *user, const struct vtwin_output *o)
{
    struct seen *seen = user;

    seen[o->id].tokens += o->new_tokens;
    seen[o->id].last_ns = o->at_ns;
    seen[o->id].finish = o->finish;
}

static void a_model_of_ones_own_times_the_engine(void **state)
{
    struct vtwin_request r = {VTWIN_INIT(r), .id = 1, .prompt_tokens = 10,
                              .output_tokens = 3};
    struct vtwin_engine_options o;
    struct vtwin_model *m = NULL;
    struct vtwin_engine *e = NULL;
    struct seen seen[2] = {0};
    uint64_t asked = 0;

    (void)state;
    assert_int_equal(vtwin_model_custom(&m, one_ms_a_token, &asked, NULL), VTWIN_OK);
    assert_int_equal(vtwin_engine_options_init(&o, m, NULL), VTWIN_OK);
    o.async_scheduling = false;
    assert_int_equal(vtwin_engine_new(&e, m, &o, NULL), VTWIN_OK);
    assert_int_equal(vtwin_engine_add(e, 0, &r, NULL), VTWIN_OK);
    while (vtwin_engine_due(e) != VTWIN_NEVER)
        assert_int_equal(
            vtwin_engine_step(e, vtwin_engine_due(e), note_output, seen, NULL),
            VTWIN_OK);
    assert_int_equal(asked, 3);
    assert_int_equal(seen[1].tokens, 3);
    assert_int_equal(seen[1].finish, VTWIN_LENGTH);
    assert_int_equal(seen[1].last_ns, 12 * 1000 * 1000); /* ten, one, one */
    vtwin_engine_free(e);
    vtwin_model_free(m);
}

/* ---- engines -------------------------------------------------------------------- */

static void an_engine_has_a_release(void **state)
{
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    struct vtwin_engine_options o;
    struct vtwin_engine *e = NULL;
    struct vtwin_error err = {VTWIN_INIT(err)};

    (void)state;
    assert_int_equal(vtwin_engine_options_init(&o, m, NULL), VTWIN_OK);
    assert_int_equal(o.vllm, 26); /* the profile's */
    assert_int_equal(vtwin_engine_options_init(&o, NULL, NULL), VTWIN_OK);
    assert_int_equal(o.vllm, 32);
    o.vllm = 33;
    assert_int_not_equal(vtwin_engine_new(&e, m, &o, &err), VTWIN_OK);
    assert_non_null(strstr(err.message, "vllm-version"));
    /* One that was built before there was a choice. */
    o.size = offsetof(struct vtwin_engine_options, vllm);
    assert_int_equal(vtwin_engine_new(&e, m, &o, NULL), VTWIN_OK);
    vtwin_engine_free(e);
    vtwin_model_free(m);
}

static void requests_with_one_prefix_share_its_blocks(void **state)
{
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    struct vtwin_engine_state s = {VTWIN_INIT(s)};
    struct vtwin_engine *e = NULL;
    struct seen seen[3] = {0};

    (void)state;
    assert_int_equal(vtwin_engine_new(&e, m, NULL, NULL), VTWIN_OK);
    for (uint64_t id = 1; id <= 2; id++) {
        struct vtwin_request r = {VTWIN_INIT(r),        .id = id,
                                  .prompt_tokens = 100, .output_tokens = 2,
                                  .prefix_id = 5,       .prefix_tokens = 64};
        int64_t now = seen[1].last_ns;

        assert_int_equal(vtwin_engine_add(e, now, &r, NULL), VTWIN_OK);
        while (vtwin_engine_due(e) != VTWIN_NEVER)
            assert_int_equal(
                vtwin_engine_step(e, vtwin_engine_due(e), note_output, seen, NULL),
                VTWIN_OK);
    }
    vtwin_engine_state(e, seen[2].last_ns, &s);
    assert_int_equal(s.cache_queries, 200);
    assert_int_equal(s.cache_hits, 64);
    assert_int_equal(s.running + s.waiting, 0);
    vtwin_engine_free(e);
    vtwin_model_free(m);
}

static void a_request_that_can_never_fit_is_refused(void **state)
{
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    struct vtwin_error err = {VTWIN_INIT(err)};
    struct vtwin_request r = {VTWIN_INIT(r), .id = 17, .prompt_tokens = 10000000,
                              .output_tokens = 1};
    struct vtwin_engine *e = NULL;

    (void)state;
    assert_int_equal(vtwin_engine_new(&e, m, NULL, NULL), VTWIN_OK);
    assert_int_equal(vtwin_engine_add(e, 0, &r, &err), VTWIN_EINPUT);
    assert_non_null(strstr(err.message, "request 17"));
    assert_false(vtwin_engine_abort(e, 0, 17));
    vtwin_engine_free(e);
    vtwin_model_free(m);
}

/* ---- workloads ------------------------------------------------------------------- */

static void count_served(void *user, const struct vtwin_served *s)
{
    assert_true(s->e2e_ms >= s->ttft_ms);
    ++*(uint64_t *)user;
}

static void the_built_in_workload_is_what_the_program_says(void **state)
{
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    uint64_t served = 0;
    struct vtwin_sim_options o = {VTWIN_INIT(o), .seed = 1, .served = count_served,
                                  .user = &served};
    struct vtwin_summary s = {VTWIN_INIT(s)};

    (void)state;
    assert_int_equal(vtwin_simulate(m, &o, &s, NULL), VTWIN_OK);
    assert_int_equal(s.requests, 468); /* README's first screen */
    assert_int_equal(served, 468);
    assert_int_equal(s.steps, 9495);
    assert_true(s.ttft_ms[VTWIN_MEAN] > 37.637 && s.ttft_ms[VTWIN_MEAN] < 37.639);
    assert_false(s.outside);
    vtwin_model_free(m);
}

static void a_capacity_lies_between_what_holds_and_what_fails(void **state)
{
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    struct vtwin_sim_options sim = {VTWIN_INIT(sim), .seed = 1, .requests = 200};
    struct vtwin_capacity_options o = {VTWIN_INIT(o), .sim = &sim,  .tpot_p99_ms = 12,
                                       .seeds = 1,    .workers = 1, .once = true};
    struct vtwin_summary at = {VTWIN_INIT(at)};
    struct vtwin_capacity c = {VTWIN_INIT(c), .at = &at};

    (void)state;
    assert_int_equal(vtwin_capacity_find(m, &o, &c, NULL), VTWIN_OK);
    assert_true(c.rate > 0 && c.rate < c.failed);
    assert_true(at.tpot_ms[VTWIN_P99] <= 12);
    assert_string_equal(c.binding, "TPOT p99");
    assert_ptr_equal(c.at, &at);
    vtwin_model_free(m);
}

static void tuning_finds_the_setting_that_bears_more(void **state)
{
    static const double seqs[] = {2, 64};
    struct vtwin_model *m = open_model("qwen3-8b-h200");
    struct vtwin_sim_options sim = {VTWIN_INIT(sim), .seed = 1, .requests = 100};
    struct vtwin_capacity_options capacity = {VTWIN_INIT(capacity), .sim = &sim,
                                              .ttft_p99_ms = 500,   .seeds = 1,
                                              .workers = 1,         .once = true};
    struct vtwin_axis axis = {VTWIN_INIT(axis), "max-num-seqs", seqs, 2};
    struct vtwin_tune_options o = {VTWIN_INIT(o), .capacity = &capacity, .axis = &axis,
                                   .n_axes = 1, .all = true};
    struct vtwin_engine_options best = {VTWIN_INIT(best)};
    struct vtwin_tuned t = {VTWIN_INIT(t), .engine = &best};
    struct vtwin_error err = {VTWIN_INIT(err)};

    (void)state;
    if (vtwin_tune(m, &o, &t, &err) != VTWIN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(best.max_num_seqs, 64);
    assert_true(t.rate > 0);
    assert_int_equal(t.trials, 2);
    axis.flag = "max-num-sequences";
    assert_int_equal(vtwin_tune(m, &o, &t, &err), VTWIN_EINPUT);
    assert_non_null(strstr(err.message, "max-num-sequences"));
    vtwin_model_free(m);
}

/* ---- questions ------------------------------------------------------------------ */

#define SMALL "--workload", "default-workload", "--num-prompts", "40"
static const char *const simulates[] = {"simulate", SMALL, "--quiet", NULL};
static const char *const breaks[] = {"simulate", SMALL, "--slo", "ttft-p99=1", NULL};
static const char *const bears[] = {"capacity", SMALL,    "--once", "--seeds",
                                    "1",        "--jobs", "1",      NULL};
static const char *const tunes[] = {
    "tune", SMALL,    "--once", "--seeds",        "1",    "--rates",
    "1,2",  "--jobs", "1",      "--max-num-seqs", "8,64", NULL};

static struct vtwin_question about(const char *const *words)
{
    struct vtwin_question q = {VTWIN_INIT(q), .words = words};

    while (words[q.n_words])
        q.n_words++;
    return q;
}

static void commands_answer_in_json(void **state)
{
    static const struct {
        const char *const *words;
        int code;
        const char *holds, *message;
    } row[] = {
        {simulates, VTWIN_OK, "\"requests\": 40", ""},
        {bears, VTWIN_OK, "\"capacity\": ", ""},
        {tunes, VTWIN_OK, "\"best\": {\"max_num_seqs\": ", ""},
        {breaks, VTWIN_ECHECK, "\"requests\": 40", "TTFT p99"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct vtwin_error err = {VTWIN_INIT(err)};
        struct vtwin_question q = about(row[i].words);
        struct vtwin_answer *a = NULL;
        size_t len;

        assert_int_equal(vtwin_ask(&a, &q, &err), row[i].code);
        assert_non_null(strstr(err.message, row[i].message));
        assert_non_null(strstr(vtwin_answer_json(a, &len), row[i].holds));
        assert_int_equal(len, strlen(vtwin_answer_json(a, NULL)));
        assert_memory_equal(vtwin_answer_json(a, NULL) + len - 2, "}\n", 3);
        vtwin_answer_free(a);
    }
}

static void bad_questions_are_told_in_one_line(void **state)
{
    static const char *const row[][3] = {
        {"serve", NULL, "'serve' can't be asked: simulate, capacity and tune can"},
        {"simulate", "--max-num-seq", "--max-num-seq"},
        {"capacity", "--jobs=0", "--jobs"},
        {NULL, NULL, "no command to ask"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct vtwin_error err = {VTWIN_INIT(err)};
        struct vtwin_question q = {VTWIN_INIT(q), .words = row[i]};
        struct vtwin_answer *a = NULL;

        q.n_words = row[i][0] ? row[i][1] ? 2 : 1 : 0;
        assert_int_equal(vtwin_ask(&a, &q, &err), VTWIN_EINPUT);
        assert_non_null(strstr(err.message, row[i][2]));
        assert_string_equal(vtwin_answer_json(a, NULL), "");
        vtwin_answer_free(a);
    }
}

static void warnings_are_notes(void **state)
{
    static const char *const words[] = {"simulate", SMALL,
                                        "--prefill-schedule-interval", "2", NULL};
    struct vtwin_question q = about(words);
    struct vtwin_answer *a = NULL;

    (void)state;
    assert_int_equal(vtwin_ask(&a, &q, NULL), VTWIN_OK);
    assert_non_null(strstr(vtwin_answer_notes(a, NULL),
                           "--prefill-schedule-interval has no effect"));
    vtwin_answer_free(a);
}

static void a_question_can_be_taken_back(void **state)
{
    static const int now = 1;
    static const char *const *const all[] = {simulates, bears, tunes};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct vtwin_error err = {VTWIN_INIT(err)};
        struct vtwin_question q = about(all[i]);
        struct vtwin_answer *a = NULL;

        q.stop = &now;
        assert_int_equal(vtwin_ask(&a, &q, &err), VTWIN_EIO);
        assert_non_null(strstr(err.message, "stopped"));
        vtwin_answer_free(a);
        /* It was of that question alone. */
        q.stop = NULL;
        assert_int_equal(vtwin_ask(&a, &q, &err), VTWIN_OK);
        vtwin_answer_free(a);
    }
}

static void *ask_in_thread(void *words)
{
    struct vtwin_question q = about(words);
    struct vtwin_answer *a = NULL;

    assert_int_equal(vtwin_ask(&a, &q, NULL), VTWIN_OK);
    return a;
}

static void threads_ask_at_once(void **state)
{
    static const char *const *const all[] = {simulates, bears, tunes};
    enum { N = 6 };
    struct vtwin_answer *alone[3];
    pthread_t thread[N];

    (void)state;
    for (size_t i = 0; i < 3; i++)
        alone[i] = ask_in_thread((void *)(uintptr_t)all[i]);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ask_in_thread,
                                        (void *)(uintptr_t)all[i % 3]),
                         0);
    for (size_t i = 0; i < N; i++) {
        void *a;

        assert_int_equal(pthread_join(thread[i], &a), 0);
        assert_string_equal(vtwin_answer_json(a, NULL),
                            vtwin_answer_json(alone[i % 3], NULL));
        vtwin_answer_free(a);
    }
    for (size_t i = 0; i < 3; i++)
        vtwin_answer_free(alone[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_headers_state_the_librarys_version),
        cmocka_unit_test(an_older_caller_is_understood),
        cmocka_unit_test(a_newer_caller_is_told_what_is_missing),
        cmocka_unit_test(a_struct_without_size_is_refused),
        cmocka_unit_test(a_small_struct_is_not_written_past_its_end),
        cmocka_unit_test(an_unknown_profile_says_its_name),
        cmocka_unit_test(a_model_of_ones_own_times_the_engine),
        cmocka_unit_test(an_engine_has_a_release),
        cmocka_unit_test(requests_with_one_prefix_share_its_blocks),
        cmocka_unit_test(a_request_that_can_never_fit_is_refused),
        cmocka_unit_test(the_built_in_workload_is_what_the_program_says),
        cmocka_unit_test(a_capacity_lies_between_what_holds_and_what_fails),
        cmocka_unit_test(tuning_finds_the_setting_that_bears_more),
        cmocka_unit_test(commands_answer_in_json),
        cmocka_unit_test(bad_questions_are_told_in_one_line),
        cmocka_unit_test(warnings_are_notes),
        cmocka_unit_test(a_question_can_be_taken_back),
        cmocka_unit_test(threads_ask_at_once),
    };

    return cmocka_run_group_tests_name("libvtwin", tests, NULL, NULL);
}
