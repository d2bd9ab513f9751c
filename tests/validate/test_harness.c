/* All adapters on all experiments: the same bytes however many workers, and one that
 * fails stops nobody. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "validate/validate.h"

static const struct vt_truth_options options = {.dp_too = true};

static void load(struct vt_experiments *x)
{
    struct vt_err err = {0};
    int rc =
        vt_experiments_load(x, VT_TEST_DIR "/cases/validate/truth", &options, &err);

    if (rc != VT_OK)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, VT_OK);
    assert_int_equal(x->n, 2);
}

static void run(struct vt_harness *h, const struct vt_experiments *x,
                struct vt_harness_config c)
{
    struct vt_err err = {0};
    int rc;

    c.scratch = "/tmp";
    rc = vt_harness_run(h, x, &c, &err);
    if (rc != VT_OK)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, VT_OK);
}

static void workers_do_not_matter(void **state)
{
    struct vt_buf one = {0}, three = {0};
    struct vt_experiments x;
    struct vt_harness h;

    (void)state;
    load(&x);
    run(&h, &x, (struct vt_harness_config){.workers = 1});
    vt_harness_errors_csv(&one, &h);
    vt_harness_free(&h);
    run(&h, &x, (struct vt_harness_config){.workers = 3});
    vt_harness_errors_csv(&three, &h);
    assert_int_equal(h.n_runs, 18);
    assert_int_equal(h.n_ok, 16); /* BLIS has no coefficients for the model */
    assert_int_equal(h.n_skipped, 2);
    assert_string_equal(h.run[0].simulator, "vtwin-step");
    assert_string_equal(h.run[9].simulator, "vtwin-step");
    assert_ptr_equal(h.run[9].experiment, &x.e[1]);
    assert_string_equal(one.data, three.data);
    vt_harness_free(&h);
    vt_buf_free(&one);
    vt_buf_free(&three);
    vt_experiments_free(&x);
}

/* The fitted profile is close even to a capture's first seconds. */
static void the_fitted_profile_is_near_the_measurement(void **state)
{
    static const char *const adapters[] = {"vtwin-step", NULL};
    struct vt_experiments x;
    struct vt_harness h;
    size_t seen = 0;

    (void)state;
    load(&x);
    run(&h, &x, (struct vt_harness_config){.adapters = adapters, .workers = 1});
    for (size_t i = 0; i < h.n_errors; i++)
        if (h.error[i].stage_index < 0 && h.error[i].metric == 0) {
            assert_true(h.error[i].mape < 25);
            seen++;
        }
    assert_int_equal(seen, 2);
    vt_harness_free(&h);
    vt_experiments_free(&x);
}

static void runs_tell_how_far_they_went_and_what_is_known(void **state)
{
    static const char *const adapters[] = {"vtwin-step", NULL};
    struct vt_experiments x;
    struct vt_harness h;

    (void)state;
    load(&x);
    run(&h, &x, (struct vt_harness_config){.adapters = adapters, .workers = 2});
    for (size_t i = 0; i < h.n_runs; i++) {
        assert_int_equal(h.run[i].outcome, VT_ADAPTER_OK);
        assert_true(h.run[i].extent.running > 0);
        assert_true(h.run[i].extent.step_tokens > 0);
        assert_true(h.run[i].known.running > 0);
    }
    vt_harness_free(&h);
    vt_experiments_free(&x);
}

static void knobs_come_from_the_other_experiment(void **state)
{
    static const char *const adapters[] = {"vtwin-knob", NULL};
    struct vt_experiments x;
    struct vt_harness h;

    (void)state;
    load(&x);
    run(&h, &x, (struct vt_harness_config){.adapters = adapters, .workers = 1});
    for (size_t i = 0; i < h.n_errors; i++) {
        const struct vt_error_record *r = &h.error[i];
        const struct vt_experiment *other =
            r->experiment == &x.e[0] ? &x.e[1] : &x.e[0];

        if (r->stage_index < 0 && r->metric == 6)
            assert_true(fabs(r->predicted - other->summary.ms[6]) <
                        0.05 * r->predicted);
    }
    vt_harness_free(&h);
    vt_experiments_free(&x);
}

static char said[4096];

static void hear(void *user, const char *line)
{
    size_t n = strlen(said);

    (void)user;
    snprintf(said + n, sizeof(said) - n, "%s\n", line);
}

static void failures_stop_nobody(void **state)
{
    static const char *const commands[] = {
        "broken=echo no luck >&2; false {requests.csv} {out.csv}",
        "empty=echo id,e2e_ms,ttft_ms >{out.csv}; : {requests.csv}", NULL};
    static const char *const adapters[] = {"broken", "empty", "llm-optimizer-estimate",
                                           NULL};
    struct vt_experiments x;
    struct vt_harness h;
    struct vt_buf b = {0};

    (void)state;
    load(&x);
    said[0] = '\0';
    run(&h, &x,
        (struct vt_harness_config){
            .adapters = adapters, .commands = commands, .workers = 2, .tell = hear});
    assert_int_equal(h.n_ok, 2);
    assert_int_equal(h.n_failed, 4);
    assert_non_null(strstr(said, "FAIL: broken"));
    assert_non_null(strstr(said, "status 1: no luck"));
    assert_non_null(strstr(said, "no request came to its end"));
    vt_harness_runtime_csv(&b, &h);
    assert_null(strstr(b.data, "broken"));
    vt_harness_free(&h);
    vt_buf_free(&b);
    vt_experiments_free(&x);
}

static void unknown_adapters_are_refused(void **state)
{
    static const char *const adapters[] = {"blis-rofline", NULL};
    struct vt_harness_config c = {.adapters = adapters};
    struct vt_experiments none = {0};
    struct vt_err err = {0};
    struct vt_harness h;

    (void)state;
    assert_int_equal(vt_harness_run(&h, &none, &c, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "did you mean 'blis-roofline'?"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_do_not_matter),
        cmocka_unit_test(the_fitted_profile_is_near_the_measurement),
        cmocka_unit_test(runs_tell_how_far_they_went_and_what_is_known),
        cmocka_unit_test(knobs_come_from_the_other_experiment),
        cmocka_unit_test(failures_stop_nobody),
        cmocka_unit_test(unknown_adapters_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
