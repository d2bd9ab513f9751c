/* A step model on other GPUs than it was fitted on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"

static const struct vt_step_scaling halved = {
    .share = 0.5, .context = 0.25, .step_us = 500, .token_us = 2};

static void fill(struct vt_step_params *p)
{
    vt_step_params_init(p);
    p->base = 6000;
    p->expert = 4000;
    p->experts = 8;
    p->experts_per_token = 2;
    p->context_ktoken = 40;
    p->graph_token = 24;
    p->mixed = 1500;
    p->mixed_token = 16;
    p->eager = 1000;
    p->eager_token = 30;
    p->prefill = 50;
    p->depth_mtoken = 800;
    p->host_sched = 200;
    p->host_launch_eager = 21000;
}

static void what_gpus_share_is_divided_and_what_the_host_takes_stays(void **state)
{
    struct vt_step_params p;

    (void)state;
    fill(&p);
    vt_step_scale(&p, &halved);
    assert_float_equal(p.base, 3000 + 500, 1e-9);
    assert_float_equal(p.expert, 2000, 1e-9);
    assert_float_equal(p.context_ktoken, 10, 1e-9);
    assert_float_equal(p.graph_token, 12 + 2, 1e-9);
    assert_float_equal(p.mixed, 750, 1e-9);
    assert_float_equal(p.mixed_token, 8 + 2, 1e-9);
    assert_float_equal(p.eager, 500, 1e-9);
    assert_float_equal(p.eager_token, 15 + 2, 1e-9);
    assert_float_equal(p.prefill, 25, 1e-9);
    assert_float_equal(p.depth_mtoken, 400, 1e-9);
    assert_float_equal(p.host_sched, 200, 1e-9);
    assert_float_equal(p.host_launch_eager, 21000, 1e-9);
}

/* Whatever way a step is launched, it is half as long, and the GPUs talk once. */
static void every_mode_pays_the_all_reduce_once(void **state)
{
    struct vt_step_params one, two;

    (void)state;
    fill(&one);
    fill(&two);
    vt_step_scale(&two, &halved);
    for (enum vt_step_mode mode = VT_STEP_GRAPH; mode <= VT_STEP_EAGER; mode++) {
        struct vt_step_features f = {.mode = mode,
                                     .tokens = 64,
                                     .depth_m = mode == VT_STEP_GRAPH ? 0 : 0.5,
                                     .prefills = mode == VT_STEP_GRAPH ? 0 : 3};
        struct vt_step_cost a = {0}, b = {0};

        vt_step_cost(&one, &f, &a);
        vt_step_cost(&two, &f, &b);
        assert_float_equal(b.gpu_us, a.gpu_us / 2 + 500 + 64 * 2, 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_gpus_share_is_divided_and_what_the_host_takes_stays),
        cmocka_unit_test(every_mode_pays_the_all_reduce_once),
    };

    return cmocka_run_group_tests_name("step_scale", tests, NULL, NULL);
}
