/* Parts of the server that need no socket: names and faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/serve/serve.h"

/* ---- models ---------------------------------------------------------- */

static const char *const names[] = {"big", "big-alias"};
static const struct vt_serve_lora loras[] = {{"sql", "/adapters/sql"}};

static struct vt_serve_config two_names(void)
{
    return (struct vt_serve_config){
        .name = names, .n_names = 2, .root = "/big", .lora = loras, .n_loras = 1};
}

static void test_adapters_come_and_go_and_models_stay(void **state)
{
    struct vt_serve_config c = two_names();
    struct models m;
    bool lora, added;

    (void)state;
    assert_int_equal(models_open(&m, &c, NULL), VT_OK);
    assert_true(models_find(&m, "big-alias", &lora) && !lora);
    assert_true(models_find(&m, "sql", &lora) && lora);
    assert_false(models_find(&m, "other", &lora));

    assert_int_equal(models_add(&m, "law", "/l", &added, NULL), VT_OK);
    assert_true(added);
    assert_int_equal(models_add(&m, "law", "/l2", &added, NULL), VT_OK);
    assert_false(added);
    assert_string_equal(m.model[3].parent, "big");
    assert_true(models_remove(&m, "sql"));
    assert_false(models_remove(&m, "sql"));
    assert_false(models_remove(&m, "big"));
    assert_true(models_find(&m, "law", &lora) && lora);
    assert_int_equal(m.n, 3);
    models_close(&m);
}

static void test_an_adapter_may_not_take_a_models_name(void **state)
{
    static const struct vt_serve_lora bad[] = {{"big", "/x"}};
    struct vt_serve_config c = two_names();
    struct vt_err err = {0};
    struct models m;

    (void)state;
    c.lora = bad;
    assert_int_equal(models_open(&m, &c, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "'big'"));
    models_close(&m);
}

/* ---- faults ---------------------------------------------------------- */

static void test_faults_come_as_often_as_they_were_asked_for(void **state)
{
    static const struct {
        double rate;
        uint32_t first;
        uint32_t least, most; /* of 1000 */
    } cases[] = {{0, 0, 0, 0},
                 {1, 0, 1000, 1000},
                 {0.25, 0, 200, 300},
                 {0, 7, 7, 7},
                 {0.5, 100, 500, 600}};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(cases); i++) {
        struct vt_serve_config c = {.failure_rate = cases[i].rate,
                                    .fail_first = cases[i].first};
        struct faults f;
        struct api_error e;
        uint32_t n = 0;
        bool midway;

        assert_int_equal(faults_open(&f, &c, NULL), VT_OK);
        for (int k = 0; k < 1000; k++) {
            bool fails = faults_next(&f, "m", &e, &midway);

            if (k < (int)cases[i].first)
                assert_true(fails);
            if (fails)
                assert_in_range(e.status, 400, 503);
            n += fails;
        }
        assert_in_range(n, cases[i].least, cases[i].most);
    }
}

static void test_faults_are_of_the_kinds_asked_for(void **state)
{
    struct vt_serve_config c = {.failure_rate = 1,
                                .failure_kinds = "rate_limit,broken_stream"};
    struct faults f;
    struct api_error e;
    uint32_t limited = 0, broken = 0;
    bool midway;

    (void)state;
    assert_int_equal(faults_open(&f, &c, NULL), VT_OK);
    for (int i = 0; i < 200; i++) {
        assert_true(faults_next(&f, "the model", &e, &midway));
        assert_non_null(strstr(e.message, "'the model'"));
        limited += e.status == 429 && !midway;
        broken += e.status == 500 && midway;
    }
    assert_int_equal(limited + broken, 200);
    assert_true(limited > 50 && broken > 50);
}

static void test_unknown_kinds_of_faults_are_refused(void **state)
{
    static const char *const bad[] = {"", "rate", "rate_limit,", "rate_limit,x"};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct vt_serve_config c = {.failure_kinds = bad[i]};
        struct vt_err err = {0};
        struct faults f;

        assert_int_equal(faults_open(&f, &c, &err), VT_EINPUT);
        assert_non_null(strstr(err.msg, "server_error"));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adapters_come_and_go_and_models_stay),
        cmocka_unit_test(test_an_adapter_may_not_take_a_models_name),
        cmocka_unit_test(test_faults_come_as_often_as_they_were_asked_for),
        cmocka_unit_test(test_faults_are_of_the_kinds_asked_for),
        cmocka_unit_test(test_unknown_kinds_of_faults_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
