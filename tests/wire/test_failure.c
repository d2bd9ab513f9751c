/* Requests that fail on purpose: how many, which, and how. */
#include "codec_testing.h"

#include "wire/play/failure.h"

static struct failure *opened(struct vt_play_config c)
{
    struct failure *f;

    assert_int_equal(failure_open(&f, &c, NULL), VT_OK);
    return f;
}

static int next_of(struct failure *f, const char *id)
{
    struct mp_span span = {(const uint8_t *)id, id ? strlen(id) : 0};

    return failure_next(f, &span);
}

/* ---- lists of kinds --------------------------------------------------- */

static struct list {
    const char *text;
    uint32_t kinds; /* 0: refused with */
    const char *message;
} lists[] = {
    {"error", 1 << WIRE_ERROR, NULL},
    {"abort,length", 1 << WIRE_ABORTED | 1 << WIRE_LENGTH, NULL},
    {"repetition,error,length,abort,error",
     1 << WIRE_REPETITION | 1 << WIRE_ERROR | 1 << WIRE_LENGTH | 1 << WIRE_ABORTED,
     NULL},
    {"", 0, "there is an empty name in ''"},
    {"error,,length", 0, "there is an empty name in 'error,,length'"},
    {"error,", 0, "there is an empty name in 'error,'"},
    {"stop", 0,
     "'stop' is no kind of failure: error, length, repetition and abort are"},
    {"error,errors", 0,
     "'errors' is no kind of failure: error, length, repetition and abort are"},
};

static void lists_are_read_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(lists); i++) {
        uint32_t kinds;
        struct vt_err err = {0};
        int rc = failure_kinds_parse(lists[i].text, &kinds, &err);

        assert_int_equal(rc, lists[i].message ? VT_EINPUT : VT_OK);
        if (lists[i].message)
            assert_string_equal(err.msg, lists[i].message);
        else
            assert_int_equal(kinds, lists[i].kinds);
    }
}

/* ---- rates ------------------------------------------------------------ */

static void nothing_fails_unasked(void **state)
{
    struct failure *f = opened((struct vt_play_config){0});

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(failure_next(f, NULL), -1);
    failure_close(f);
}

static void the_rate_holds_and_kinds_share_it(void **state)
{
    const struct vt_play_config c = {
        .failure_rate = 0.25, .failure_types = "error,repetition", .seed = 7};
    struct failure *f = opened(c), *same = opened(c);
    int n[6] = {0};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        int end = failure_next(f, NULL);

        assert_int_equal(failure_next(same, NULL), end);
        n[end + 1]++;
    }
    assert_in_range(n[1 + WIRE_ERROR], 2300, 2700);
    assert_in_range(n[1 + WIRE_REPETITION], 2300, 2700);
    assert_int_equal(n[0] + n[1 + WIRE_ERROR] + n[1 + WIRE_REPETITION], 20000);
    failure_close(f);
    failure_close(same);
}

static void another_seed_fails_others(void **state)
{
    struct failure *a = opened((struct vt_play_config){.failure_rate = 0.5, .seed = 1});
    struct failure *b = opened((struct vt_play_config){.failure_rate = 0.5, .seed = 2});
    int differ = 0;

    (void)state;
    for (int i = 0; i < 1000; i++)
        differ += failure_next(a, NULL) != failure_next(b, NULL);
    assert_in_range(differ, 400, 600);
    failure_close(a);
    failure_close(b);
}

static void all_fail_at_rate_one(void **state)
{
    struct failure *f =
        opened((struct vt_play_config){.failure_rate = 1, .failure_types = "length"});

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(failure_next(f, NULL), WIRE_LENGTH);
    failure_close(f);
}

static void a_rate_beyond_one_is_refused(void **state)
{
    static const double bad[] = {-0.1, 1.5, 0.0 / 0.0};
    struct failure *f;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct vt_play_config c = {.failure_rate = bad[i]};
        struct vt_err err;

        assert_int_equal(failure_open(&f, &c, &err), VT_EINPUT);
        assert_null(f);
        assert_string_equal(err.msg, "a failure rate must be from 0 to 1");
    }
}

/* ---- the first ones --------------------------------------------------- */

static void the_first_three_fail_then_none(void **state)
{
    struct failure *f = opened((struct vt_play_config){.fail_first = 3});

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(next_of(f, "x"), i < 3 ? WIRE_ERROR : -1);
    failure_close(f);
}

static void a_retry_with_its_id_succeeds(void **state)
{
    struct failure *f =
        opened((struct vt_play_config){.fail_first = 2, .fail_first_by_id = true});

    (void)state;
    assert_int_equal(next_of(f, "a"), WIRE_ERROR);
    assert_int_equal(next_of(f, "b"), WIRE_ERROR);
    assert_int_equal(next_of(f, "a"), WIRE_ERROR);
    assert_int_equal(next_of(f, "a"), -1);
    assert_int_equal(next_of(f, "b"), WIRE_ERROR);
    assert_int_equal(next_of(f, "b"), -1);
    assert_int_equal(next_of(f, "a"), -1);
    assert_int_equal(next_of(f, NULL), WIRE_ERROR);
    assert_int_equal(next_of(f, NULL), WIRE_ERROR);
    assert_int_equal(failure_next(f, NULL), WIRE_ERROR);
    failure_close(f);
}

static void ids_are_remembered_by_the_thousand(void **state)
{
    struct failure *f =
        opened((struct vt_play_config){.fail_first = 1, .fail_first_by_id = true});
    char id[32];

    (void)state;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 20000; i++) {
            snprintf(id, sizeof(id), "cmpl-%d", i);
            assert_int_equal(next_of(f, id), round == 0 ? WIRE_ERROR : -1);
        }
    failure_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_or_refused),
        cmocka_unit_test(nothing_fails_unasked),
        cmocka_unit_test(the_rate_holds_and_kinds_share_it),
        cmocka_unit_test(another_seed_fails_others),
        cmocka_unit_test(all_fail_at_rate_one),
        cmocka_unit_test(a_rate_beyond_one_is_refused),
        cmocka_unit_test(the_first_three_fail_then_none),
        cmocka_unit_test(a_retry_with_its_id_succeeds),
        cmocka_unit_test(ids_are_remembered_by_the_thousand),
    };

    return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
