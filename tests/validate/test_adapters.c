/* Simulators one by one: what each can predict, and what it is asked. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "validate/adapters/adapter.h"
#include "validate/adapters/go_rand.h"

static void assert_near(double a, double b, double off)
{
    if (!(fabs(a - b) <= off))
        fail_msg("%.12g is not %.12g", a, b);
}

/* Experiment 16 of the published ones: its profile, and two stages. */
static struct vt_stage_plan plan[] = {{8, 2.5, 20}, {20, 1.5, 30}};

static struct vt_experiment experiment(void)
{
    return (struct vt_experiment){.folder = "16-llama",
                                  .model = "meta-llama/Llama-3.1-8B-Instruct",
                                  .workload = "general",
                                  .hardware = "H100",
                                  .precision = "FP16",
                                  .id = 16,
                                  .tp = 1,
                                  .max_model_len = 4096,
                                  .max_num_batched_tokens = 2048,
                                  .max_num_seqs = 128,
                                  .gpu_mem_util = 0.9,
                                  .total_kv_blocks = 7463,
                                  .plan = plan,
                                  .n_plan = 2,
                                  .prefix = {.stated = true,
                                             .question_len = 447,
                                             .system_prompt_len = 100,
                                             .output_len = 248,
                                             .num_unique_system_prompts = 9,
                                             .num_users_per_system_prompt = 5}};
}

/* The adapter of that name, run; fails the test if it cannot. */
static void predict(struct gather *g, const char *name, struct vt_experiment *e,
                    const struct vt_harness_config *c)
{
    const char *const one[] = {name, NULL};
    struct vt_experiments all = {.e = e, .n = 1};
    struct vt_harness_config with = c ? *c : (struct vt_harness_config){0};
    struct adapter_job j = {.e = e, .all = &all, .c = &with};
    struct vt_arena arena = {0};
    const struct adapter *a;
    struct vt_err err = {0};
    size_t n;
    int rc;

    with.adapters = one;
    with.scratch = "/tmp";
    assert_int_equal(adapters_choose(&arena, &with, &a, &n, &err), VT_OK);
    assert_int_equal(n, 1);
    j.a = a;
    rc = a->can_run(&j, &err);
    if (rc == VT_OK)
        rc = gather_open(g, e, &err);
    if (rc == VT_OK)
        rc = a->run(&j, g, &err);
    if (rc != VT_OK)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, VT_OK);
    vt_arena_free(&arena);
}

/* ---- the estimate ---------------------------------------------------- */

static void estimate_is_the_published_one(void **state)
{
    struct vt_experiment e = experiment();
    struct gather g;

    (void)state;
    predict(&g, "llm-optimizer-estimate", &e, NULL);
    assert_near(g.stage[0].ms[3], 113.63453, 1e-5);
    assert_near(g.stage[0].ms[6], 3.346805857, 1e-9);
    assert_near(g.stage[0].ms[0], 113.63453190741 + 248 * 3.346805857189, 1e-6);
    assert_true(isnan(g.stage[0].ms[1]) && isnan(g.summary.ms[8]));
    assert_near(g.summary.ms[3], (20 * g.stage[0].ms[3] + 30 * g.stage[1].ms[3]) / 50,
                1e-9);
    gather_close(&g);
}

static void throughput_is_matched(void **state)
{
    static const struct estimate_point p[] = {{1, 10, 1, 100},
                                              {4, 20, 2, 200},
                                              {9, 30, 3, 300},
                                              {10, 40, 4, 400},
                                              {50, INFINITY, 5, 500}};
    static const struct {
        double rate;
        size_t n;
        double ttft; /* 0: refused */
    } row[] = {
        {10, 5, 30}, /* 9 is near enough; 10 is not asked any more */
        {4, 5, 20},  {6, 5, 20}, {1000, 5, 40}, /* infinite ones do not count */
        {10, 0, 0},  {0, 5, 0},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_stage_plan one = {row[i].rate, 1, 10};
        struct vt_experiment e = {.plan = &one, .n_plan = 1};
        struct vt_err err = {0};
        struct gather g;
        int rc;

        assert_int_equal(gather_open(&g, &e, &err), VT_OK);
        rc = estimate_match(&g, &e, p, row[i].n, &err);
        assert_int_equal(rc, row[i].ttft > 0 ? VT_OK : VT_EINPUT);
        if (rc == VT_OK)
            assert_near(g.stage[0].ms[3], row[i].ttft, 0);
        gather_close(&g);
    }
}

/* ---- workloads ------------------------------------------------------- */

static void profiles_become_requests(void **state)
{
    struct vt_experiment e = experiment();
    struct adapter_work w;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        adapter_work_open(&w, &e, VT_WORKLOAD_PROFILE, ARRIVALS_OPEN, &err), VT_OK);
    assert_int_equal(w.w.n, 50);
    assert_int_equal(w.w.req[0].arrival_ns, 0);
    for (size_t i = 1; i < w.w.n; i++)
        assert_true(w.w.req[i].arrival_ns >= w.w.req[i - 1].arrival_ns);
    assert_true(w.w.req[19].arrival_ns < 2500 * VT_MS);
    assert_int_equal(w.w.req[20].arrival_ns, 2500 * VT_MS); /* not 2 s */
    assert_int_equal(w.stage[19], 0);
    assert_int_equal(w.stage[20], 1);
    assert_int_equal(w.w.req[0].prompt_tokens, 547);
    assert_int_equal(w.w.req[0].n_segments, 2);
    assert_true(w.w.segment[0].content == w.w.segment[18].content); /* 9 groups */
    assert_true(w.w.segment[0].content != w.w.segment[2].content);
    assert_int_equal(w.longest, 547 + 248);
    adapter_work_close(&w);
    e.prefix.stated = false;
    assert_int_equal(adapter_work_check(&e, VT_WORKLOAD_PROFILE, &err), VT_EINPUT);
    assert_int_equal(adapter_work_check(&e, VT_WORKLOAD_TRACE, &err), VT_EINPUT);
}

/* Numbers of Go 1.26's math/rand: two Int63(), 1000 times Intn(128000), the sum of
 * 100000 ExpFloat64(), and one Int63() more. */
static void numbers_are_those_of_go(void **state)
{
    static const struct {
        int64_t seed, first, second;
        double sum;
        int64_t last;
    } row[] = {
        {INT64_C(42), INT64_C(3440579354231278675), INT64_C(608747136543856411),
         100093.95629329591, INT64_C(8559674337878482775)},
        {INT64_C(0), INT64_C(8717895732742165505), INT64_C(2259404117704393152),
         99930.885924311166, INT64_C(1164930509438864906)},
        {INT64_C(-7), INT64_C(747107023976529931), INT64_C(7084732931963018726),
         99472.591182574135, INT64_C(7401607781675678224)},
        {INT64_C(1234567890123456789), INT64_C(7757921932427070452),
         INT64_C(6263496313655974442), 100091.64351015058, INT64_C(545259587945994403)},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct go_rand r;
        double sum = 0;

        go_rand_seed(&r, row[i].seed);
        assert_true(go_rand_int63(&r) == row[i].first);
        assert_true(go_rand_int63(&r) == row[i].second);
        go_rand_pass(&r, 128000, 1000);
        for (int k = 0; k < 100000; k++)
            sum += go_rand_exp(&r);
        assert_near(sum, row[i].sum, 0);
        assert_true(go_rand_int63(&r) == row[i].last);
    }
    assert_true(go_rand_part(42, "workload-gen") == INT64_C(7079132663427089781));
}

/* Sessions are chains of turns; what BLIS refuses is refused. */
static void chats_are_closed_loops(void **state)
{
    struct vt_stage_plan stage[] = {{8, 10, 80}, {10, 10, 100}};
    struct vt_experiment e = experiment();
    struct adapter_work w;
    struct vt_err err = {0};
    size_t sessions = 0, turns = 0;

    (void)state;
    e.plan = stage;
    e.n_plan = 2;
    e.prefix.enable_multi_turn_chat = true;
    assert_int_equal(
        adapter_work_open(&w, &e, VT_WORKLOAD_PROFILE, ARRIVALS_BLIS, &err), VT_OK);
    assert_int_equal(w.w.arrivals, VT_ARRIVALS_SESSION);
    for (size_t i = 0; i < w.w.n; i++) {
        sessions += w.w.req[i].first_turn;
        turns += w.w.req[i].next_turn != VT_NO_TURN;
    }
    assert_true(sessions > 45 && sessions <= 90); /* those that start in their stage */
    assert_int_equal(w.w.n, sessions + turns);
    adapter_work_close(&w);
    assert_int_equal(
        adapter_work_open(&w, &e, VT_WORKLOAD_PROFILE, ARRIVALS_EARLY, &err), VT_OK);
    assert_int_equal(w.w.n, 180);
    assert_int_equal(w.w.arrivals, VT_ARRIVALS_RECORDED);
    for (size_t i = 0; i < w.w.n; i++)
        assert_int_equal(w.w.req[i].prompt_tokens % (447 + 248),
                         447); /* history grows */
    adapter_work_close(&w);
    stage[1].rate = 1;
    assert_int_equal(
        adapter_work_open(&w, &e, VT_WORKLOAD_PROFILE, ARRIVALS_BLIS, &err), VT_EINPUT);
    adapter_work_close(&w);
    e.prefix.enable_multi_turn_chat = false;
    assert_int_equal(
        adapter_work_open(&w, &e, VT_WORKLOAD_PROFILE, ARRIVALS_EARLY, &err),
        VT_EINPUT);
    adapter_work_close(&w);
}

/* ---- simulators in this program -------------------------------------- */

static void every_blis_model_predicts(void **state)
{
    static const char *const name[] = {"blis-blackbox", "blis-roofline",
                                       "blis-crossmodel", "blis-trained-roofline",
                                       "blis-trained-physics"};
    struct vt_experiment e = experiment();

    (void)state;
    for (size_t i = 0; i < VT_COUNT(name); i++) {
        struct gather g, again;

        predict(&g, name[i], &e, NULL);
        assert_int_equal(g.n_stages, 2);
        assert_true(g.stage[0].requests > 0 && g.stage[1].requests > 0);
        assert_int_equal(g.summary.requests, g.stage[0].requests + g.stage[1].requests);
        for (int m = 0; m < VT_ERROR_METRICS; m++)
            assert_true(g.summary.ms[m] > 0);
        assert_true(g.summary.ms[1] <= g.summary.ms[2]);
        predict(&again, name[i], &e, NULL);
        assert_memory_equal(g.summary.ms, again.summary.ms, sizeof(g.summary.ms));
        gather_close(&g);
        gather_close(&again);
    }
}

static void replicas_share_the_load(void **state)
{
    struct vt_stage_plan busy = {200, 1, 200};
    struct vt_experiment e = experiment();
    struct gather one, four;

    (void)state;
    e.plan = &busy;
    e.n_plan = 1;
    predict(&one, "blis-trained-physics", &e, NULL);
    e.dp = 4;
    predict(&four, "blis-trained-physics", &e, NULL);
    assert_int_equal(four.summary.requests, 200);
    assert_true(four.summary.ms[0] < 0.8 * one.summary.ms[0]);
    gather_close(&one);
    gather_close(&four);
}

/* ---- what cannot be -------------------------------------------------- */

static void reasons_are_given(void **state)
{
    static const struct {
        const char *adapter, *model, *hardware, *precision, *why;
    } row[] = {
        {"vtwin-step", "a/b", "H100", "FP16", "no config.json of a/b"},
        {"vtwin-step", "Qwen/Qwen3-8B", "abacus", "FP16", "abacus"},
        {"vtwin-knob", "a/b", "H100", "FP16", "no other experiment"},
        {"blis-blackbox", "a/b", "H100", "FP16", "no coefficients for a/b"},
        {"blis-roofline", "a/b", "H100", "FP16", "no config.json of a/b"},
        {"llm-optimizer-estimate", "Qwen/Qwen3-8B", "A100-80GB", "FP8", "no FP8"},
        {"llm-optimizer-estimate", "Qwen/Qwen3-8B", "abacus", "FP16", "abacus"},
        {"blis-binary-roofline", "Qwen/Qwen3-8B", "H100", "FP16", "--blis-binary"},
        {"vidur", "Qwen/Qwen3-8B", "H100", "FP16", "--vidur-dir"},
        {"llmservingsim", "Qwen/Qwen3-8B", "H100", "FP16", "--llmservingsim-dir"},
        {"aiconfigurator-estimate", "Qwen/Qwen3-8B", "H100", "FP16", "aiconfigurator"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        const char *const one[] = {row[i].adapter, NULL};
        struct vt_harness_config c = {.adapters = one, .scratch = "/tmp"};
        struct vt_experiment e = experiment();
        struct vt_experiments all = {.e = &e, .n = 1};
        struct adapter_job j = {.e = &e, .all = &all, .c = &c};
        struct vt_arena arena = {0};
        const struct adapter *a;
        struct vt_err err = {0};
        size_t n;

        e.model = row[i].model;
        e.hardware = row[i].hardware;
        e.precision = row[i].precision;
        assert_int_equal(adapters_choose(&arena, &c, &a, &n, &err), VT_OK);
        j.a = a;
        assert_int_equal(a->can_run(&j, &err), VT_EINPUT);
        if (!strstr(err.msg, row[i].why))
            fail_msg("%s: %s", row[i].adapter, err.msg);
        vt_arena_free(&arena);
    }
}

static void profiles_are_found_by_model_and_gpu(void **state)
{
    struct vt_experiment e = experiment();
    struct gather g;

    (void)state;
    e.hardware = "H200";
    e.model =
        "meta-llama/Llama-3.1-70B-Instruct"; /* of the same shape as its profile */
    e.precision = "FP8";
    e.total_kv_blocks = 11392;
    predict(&g, "vtwin-step", &e, NULL);
    assert_true(g.summary.ms[6] > 15 && g.summary.ms[6] < 100);
    assert_int_equal(g.basis.kind, VT_MEASURED);
    gather_close(&g);
}

/* What nobody measured is estimated, and says so: more GPUs, other numbers and other
 * GPUs make other times. */
static void what_has_no_profile_is_estimated(void **state)
{
    static const struct {
        const char *model, *hardware, *precision;
        uint32_t tp;
    } row[] = {
        /* each faster than the one before */
        {"meta-llama/Llama-3.1-8B-Instruct", "A100-80GB", "FP16", 1},
        {"meta-llama/Llama-3.1-8B-Instruct", "H100", "FP16", 1},
        {"meta-llama/Llama-3.1-8B-Instruct", "H100", "FP8", 1},
        {"meta-llama/Llama-3.1-8B-Instruct", "H100", "FP8", 2},
    };
    double before = INFINITY;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_experiment e = experiment();
        struct gather g;

        e.model = row[i].model;
        e.hardware = row[i].hardware;
        e.precision = row[i].precision;
        e.tp = row[i].tp;
        predict(&g, "vtwin-step", &e, NULL);
        assert_int_equal(g.basis.kind, VT_ESTIMATED);
        assert_true(g.basis.has_expected && g.basis.expected[VT_TRUST_ITL] > 0);
        if (!(g.summary.ms[6] > 2 && g.summary.ms[6] < before))
            fail_msg("row %zu: ITL %g after %g", i, g.summary.ms[6], before);
        before = g.summary.ms[6];
        gather_close(&g);
    }
}

/* ---- any command ----------------------------------------------------- */

static void commands_read_requests_and_write_results(void **state)
{
    static const char *const commands[] = {
        "fixed=awk -F, 'NR == 1 { print \"id,e2e_ms,ttft_ms\"; next } NR == 3 { print "
        "\"junk\"; next } { print $1 \",\" 10 * NR \",\" NR }' {requests.csv} "
        ">{out.csv}",
        NULL};
    const struct vt_harness_config c = {
        .commands = commands,
        .environment = (char *[]){(char[]){"PATH=/usr/bin:/bin"}, NULL}};
    struct vt_experiment e = experiment();
    struct gather g;

    (void)state;
    predict(&g, "fixed", &e, &c);
    assert_int_equal(g.summary.requests, 49);
    assert_int_equal(g.stage[0].requests, 19);
    assert_near(g.stage[1].ms[5], 22 + 0.99 * 29, 1e-9); /* NR of the last 30 */
    assert_near(g.stage[1].ms[6], 9 * (22 + 51) / 2.0 / 247, 1e-9);
    assert_true(isnan(g.stage[1].ms[7]));
    gather_close(&g);
}

static void bad_commands_are_refused(void **state)
{
    static const struct {
        const char *command, *why;
    } row[] = {
        {"nothing", "is not NAME=COMMAND"},
        {"=cat", "is not NAME=COMMAND"},
        {"blis-roofline=cat {requests.csv} {out.csv}", "is an adapter already"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        const char *const commands[] = {row[i].command, NULL};
        struct vt_harness_config c = {.commands = commands};
        struct vt_arena arena = {0};
        const struct adapter *a;
        struct vt_err err = {0};
        size_t n;

        assert_int_equal(adapters_choose(&arena, &c, &a, &n, &err), VT_EINPUT);
        assert_non_null(strstr(err.msg, row[i].why));
        vt_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimate_is_the_published_one),
        cmocka_unit_test(throughput_is_matched),
        cmocka_unit_test(profiles_become_requests),
        cmocka_unit_test(numbers_are_those_of_go),
        cmocka_unit_test(chats_are_closed_loops),
        cmocka_unit_test(every_blis_model_predicts),
        cmocka_unit_test(replicas_share_the_load),
        cmocka_unit_test(reasons_are_given),
        cmocka_unit_test(profiles_are_found_by_model_and_gpu),
        cmocka_unit_test(what_has_no_profile_is_estimated),
        cmocka_unit_test(commands_read_requests_and_write_results),
        cmocka_unit_test(bad_commands_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
