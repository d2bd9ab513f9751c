/* Settings become engines; searches find the best of them, whoever runs the trials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tune/tune_search.h"

#define WORKLOAD "default-workload"

static struct vt_profile profile;
static struct vt_arch arch;
static struct vt_gpu gpu;

static int open_profile(void **state)
{
    struct vt_err err;

    (void)state;
    return vt_profile_open(&profile, VT_DEFAULT_PROFILE, &err) ||
           vt_arch_load(&arch, "Qwen/Qwen3-8B", &err) ||
           vt_gpu_find(&gpu, "H200", NULL, &err);
}

static int close_profile(void **state)
{
    (void)state;
    vt_profile_close(&profile);
    return 0;
}

static void axis(struct vt_tune_space *s, int which, const double *v, uint32_t n)
{
    memcpy(s->value[which], v, n * sizeof(*v));
    s->n[which] = n;
}

static struct vt_tune_spec spec_for_test(void)
{
    static const double seqs[] = {4, 16, 64, 256}, batched[] = {256, 1024, 8192};
    static const double util[] = {0.2, 0.9};
    struct vt_tune_spec s = {
        .workload = WORKLOAD,
        .requests = 60,
        .seed = 1,
        .seeds = 1,
        .workers = 1,
        .slo = {.e2e_p99 = 3000},
    };

    vt_engine_config_init(&s.site.engine);
    s.site.engine.max_model_len = 8192;
    s.site.engine.num_gpu_blocks = 20000;
    s.site.profile = &profile;
    s.site.kv.arch = &arch;
    s.site.gpu = &gpu;
    for (int i = 0; i < VT_TUNE_AXES; i++)
        s.space.n[i] = 1;
    axis(&s.space, 0, seqs, VT_COUNT(seqs));
    axis(&s.space, 1, batched, VT_COUNT(batched));
    axis(&s.space, 2, util, VT_COUNT(util));
    s.space.value[3][0] = s.space.value[4][0] = s.space.value[7][0] = 1;
    s.space.routing[0] = "round-robin";
    return s;
}

static void last_axis_runs_fastest(void **state)
{
    struct vt_tune_spec s = spec_for_test();

    (void)state;
    assert_int_equal(vt_tune_space_size(&s.space), 24);
    assert_int_equal(vt_tune_space_at(&s.space, 0).max_num_seqs, 4);
    assert_true(vt_tune_space_at(&s.space, 1).gpu_memory_utilization > 0.5);
    assert_int_equal(vt_tune_space_at(&s.space, 2).max_num_batched_tokens, 1024);
    assert_int_equal(vt_tune_space_at(&s.space, 23).max_num_seqs, 256);
}

static void more_memory_gives_more_blocks_and_two_gpus_a_faster_step(void **state)
{
    struct vt_tune_spec s = spec_for_test();
    struct vt_setting one = vt_tune_space_at(&s.space, 0), two = one;
    struct vt_deployment a, b;
    struct vt_err err;

    (void)state;
    two.gpu_memory_utilization = 0.9;
    two.tp = 2;
    assert_int_equal(vt_deploy(&a, &s.site, &one, &err), VT_OK);
    assert_int_equal(vt_deploy(&b, &s.site, &two, &err), VT_OK);
    assert_true(b.engine.num_gpu_blocks > 2 * a.engine.num_gpu_blocks);
    assert_null(a.scaled);
    assert_non_null(b.scaled);
    vt_undeploy(&a);
    vt_undeploy(&b);
}

/* The same way as for simulate: what the law says that the GPUs differ by. */
static void a_profile_is_carried_over_to_each_settings_gpus(void **state)
{
    struct vt_tune_spec s = spec_for_test();
    struct vt_setting setting = vt_tune_space_at(&s.space, 0);
    struct vt_gpu h100;
    struct vt_deployment d;
    struct vt_estimate want;
    struct vt_source from;
    struct vt_err err = {0};

    (void)state;
    setting.gpu_memory_utilization = 0.9;
    assert_int_equal(vt_gpu_find(&h100, "H100", NULL, &err), VT_OK);
    s.site.gpu = &h100;
    for (setting.tp = 1; setting.tp <= 4; setting.tp *= 2) {
        struct vt_estimate_query q = {.arch = &arch, .gpu = &h100, .tp = setting.tp};

        assert_int_equal(vt_source_of(&from, &profile, &q, &err), VT_OK);
        assert_int_equal(vt_estimate_from(&want, &from, &q, &err), VT_OK);
        if (vt_deploy(&d, &s.site, &setting, &err) != VT_OK)
            fail_msg("%s", err.msg);
        assert_non_null(d.scaled);
        assert_float_equal(d.params.base, want.params.base, 1e-9);
        assert_float_equal(d.params.eager_token, want.params.eager_token, 1e-9);
        vt_undeploy(&d);
    }
}

static void
a_setting_that_vllm_would_not_start_with_is_told_and_others_go_on(void **state)
{
    static const double util[] = {0.05, 0.9};
    struct vt_tune_spec s = spec_for_test();
    struct vt_tune_result r;
    struct vt_err err;

    (void)state;
    s.space.n[0] = s.space.n[1] = 1;
    axis(&s.space, 2, util, 2);
    assert_int_equal(vt_tune(&r, &s, &err), VT_OK);
    assert_non_null(strstr(r.tuned[0].problem, "no room for a KV cache"));
    assert_int_equal(r.best, 1);
    vt_tune_result_free(&r);
}

static void smart_finds_what_the_grid_finds_with_fewer_trials(void **state)
{
    static const double limits[] = {1500, 3000, 8000};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(limits); i++) {
        struct vt_tune_spec s = spec_for_test();
        struct vt_tune_result grid, smart;
        struct vt_err err;

        s.slo.e2e_p99 = limits[i];
        assert_int_equal(vt_tune(&grid, &s, &err), VT_OK);
        s.search = VT_TUNE_SMART;
        assert_int_equal(vt_tune(&smart, &s, &err), VT_OK);
        assert_int_equal(grid.trials, 24);
        assert_true(smart.trials < grid.trials);
        assert_int_equal(smart.best, grid.best);
        vt_tune_result_free(&grid);
        vt_tune_result_free(&smart);
    }
}

static void workers_do_not_change_the_result(void **state)
{
    struct vt_tune_spec s = spec_for_test();
    struct vt_tune_result one, four;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_tune(&one, &s, &err), VT_OK);
    s.workers = 4;
    assert_int_equal(vt_tune(&four, &s, &err), VT_OK);
    assert_memory_equal(one.tuned, four.tuned, one.n * sizeof(*one.tuned));
    assert_int_equal(one.best, four.best);
    vt_tune_result_free(&one);
    vt_tune_result_free(&four);
}

static void settings_tell_how_far_they_went_and_what_is_known(void **state)
{
    struct vt_tune_spec s = spec_for_test();
    struct vt_tune_result r;
    struct vt_err err;

    (void)state;
    s.workers = 3;
    assert_int_equal(vt_tune(&r, &s, &err), VT_OK);
    for (size_t i = 0; i < r.n; i++) {
        const struct vt_tuned *t = &r.tuned[i];

        if (!t->meets)
            continue;
        assert_true(t->at.extent.running > 0 && t->at.extent.step_tokens > 0);
        assert_true(t->at.extent.running <= vt_tune_space_at(&s.space, i).max_num_seqs);
        assert_true(t->known.running > 0 && t->known.context > 0);
    }
    assert_true(r.best < r.n);
    vt_tune_result_free(&r);
}

static void data_parallel_engines_of_a_mixture_go_in_lockstep(void **state)
{
    struct vt_tune_spec s = spec_for_test();
    struct vt_setting setting = vt_tune_space_at(&s.space, 0);
    struct vt_deployment d;
    struct vt_err err;

    (void)state;
    setting.dp = 4;
    for (int lockstep = 0; lockstep < 2; lockstep++) {
        s.site.lockstep = lockstep;
        assert_int_equal(vt_deploy(&d, &s.site, &setting, &err), VT_OK);
        assert_int_equal(d.fleet.instances, 4);
        assert_int_equal(d.fleet.ranks, lockstep ? 4 : 1);
        vt_undeploy(&d);
    }
}

/* Stopping early may cost nothing but time. */
static void a_hopeless_run_ends_early_with_the_same_verdict(void **state)
{
    static const double rates[] = {1, 4, 16, 64, 256};
    struct vt_tune_spec s = spec_for_test();
    struct vt_setting setting = vt_tune_space_at(&s.space, 7);
    struct vt_trial t = {.workload = WORKLOAD, .requests = 60, .seed = 1};
    struct vt_deployment d;
    struct vt_err err;
    int hopeless = 0;

    (void)state;
    assert_int_equal(vt_deploy(&d, &s.site, &setting, &err), VT_OK);
    assert_int_equal(vt_trials_new(&t.kept, &err), VT_OK);
    t.engine = d.engine;
    t.model = d.model;
    for (size_t i = 0; i < VT_COUNT(rates); i++) {
        struct search_outcome whole, early;

        t.rate = rates[i];
        assert_int_equal(search_simulate(&whole, &t, &s.slo, false, &err), VT_OK);
        assert_int_equal(search_simulate(&early, &t, &s.slo, true, &err), VT_OK);
        assert_int_equal(whole.broken == NULL, early.broken == NULL);
        hopeless += early.hopeless;
    }
    assert_true(hopeless > 0);
    vt_trials_free(t.kept);
    vt_undeploy(&d);
}

static void capacity_prefers_the_wider_margin_at_equal_rates(void **state)
{
    struct vt_tune_spec s = spec_for_test();
    struct vt_tuned two[2] = {
        {.tried = true, .meets = true, .rate = 2, .at.tpot.p99 = 50},
        {.tried = true, .meets = true, .rate = 2, .at.tpot.p99 = 40},
    };
    struct vt_tune_result r = {.tuned = two, .n = 2};

    (void)state;
    s.goal = VT_TUNE_CAPACITY;
    s.slo = (struct vt_slo){.tpot_p99 = 60};
    assert_true(vt_tune_better(&s, &r, 1, 0));
    two[0].rate = 3;
    assert_true(vt_tune_better(&s, &r, 0, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_axis_runs_fastest),
        cmocka_unit_test(more_memory_gives_more_blocks_and_two_gpus_a_faster_step),
        cmocka_unit_test(a_profile_is_carried_over_to_each_settings_gpus),
        cmocka_unit_test(
            a_setting_that_vllm_would_not_start_with_is_told_and_others_go_on),
        cmocka_unit_test(smart_finds_what_the_grid_finds_with_fewer_trials),
        cmocka_unit_test(workers_do_not_change_the_result),
        cmocka_unit_test(settings_tell_how_far_they_went_and_what_is_known),
        cmocka_unit_test(data_parallel_engines_of_a_mixture_go_in_lockstep),
        cmocka_unit_test(a_hopeless_run_ends_early_with_the_same_verdict),
        cmocka_unit_test(capacity_prefers_the_wider_margin_at_equal_rates),
    };

    return cmocka_run_group_tests_name("search", tests, open_profile, close_profile);
}
