/* The wall clock's side of drivers: axes, waiting, queues between threads, lateness. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "live/live.h"

/* ---- axes --------------------------------------------------------------- */

static void test_an_axis_maps_times_there_and_back(void **state)
{
    static const double scales[] = {1, 0.5, 4, 1e-3, 1e6};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(scales); i++) {
        struct vt_axis x = {.zero_ns = 5 * VT_SEC, .scale = scales[i]};

        assert_int_equal(vt_axis_wall(&x, 0), 5 * VT_SEC);
        assert_int_equal(vt_axis_wall(&x, (vt_ns)(scales[i] * 1e9)), 6 * VT_SEC);
        assert_int_equal(vt_axis_wall(&x, VT_NEVER), VT_NEVER);
    }
}

static void test_time_passes_as_fast_as_the_axis_says(void **state)
{
    struct vt_axis x = {.zero_ns = vt_wall_ns() - VT_SEC, .scale = 10};
    vt_ns now = vt_axis_now(&x);

    (void)state;
    assert_in_range(now, 10 * VT_SEC, 1000 * VT_SEC);
    assert_true(vt_axis_now(&x) >= now);
}

static void test_the_two_clocks_agree_on_the_length_of_a_wait(void **state)
{
    vt_ns wall = vt_wall_ns(), unix_ns = vt_unix_ns();

    (void)state;
    (void)vt_wait_fd(-1, wall + 2 * VT_MS);
    assert_true(vt_wall_ns() - wall >= 2 * VT_MS);
    assert_true(vt_unix_ns() > unix_ns);
    assert_true(vt_unix_s() > 1.7e9);
}

/* ---- waiting --------------------------------------------------------- */

static void test_a_wait_ends_when_something_is_put(void **state)
{
    struct vt_inbox b;
    struct vt_inbox_item item;

    (void)state;
    assert_int_equal(vt_inbox_open(&b, NULL), VT_OK);
    assert_false(vt_wait_fd(b.fd, vt_wall_ns() - VT_SEC)); /* long past: no sleep */
    assert_false(vt_wait_fd(b.fd, vt_wall_ns() + VT_MS));
    vt_inbox_put(&b, &item);
    assert_true(vt_wait_fd(b.fd, VT_NEVER));
    vt_inbox_calm(&b);
    assert_true(vt_inbox_waits(&b));
    assert_ptr_equal(vt_inbox_take(&b), &item);
    assert_null(item.next);
    assert_false(vt_inbox_waits(&b));
    assert_false(vt_wait_fd(b.fd, vt_wall_ns() + VT_MS));
    vt_inbox_close(&b);
}

/* ---- queues ---------------------------------------------------------- */

enum { WRITERS = 4, EACH = 20000 };

struct numbered {
    struct vt_inbox_item item; /* first */
    uint32_t writer, number;
};

struct writer {
    struct vt_inbox *to;
    uint32_t index;
    struct numbered *out;
};

static void *write_all(void *arg)
{
    struct writer *w = arg;

    for (uint32_t i = 0; i < EACH; i++) {
        w->out[i] = (struct numbered){.writer = w->index, .number = i};
        vt_inbox_put(w->to, &w->out[i].item);
    }
    return NULL;
}

static void test_nothing_is_lost_or_overtaken_between_threads(void **state)
{
    struct numbered *all = calloc(WRITERS * EACH, sizeof(*all));
    struct writer writer[WRITERS];
    pthread_t thread[WRITERS];
    uint32_t next[WRITERS] = {0}, got = 0;
    struct vt_inbox b;

    (void)state;
    assert_non_null(all);
    assert_int_equal(vt_inbox_open(&b, NULL), VT_OK);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writer[i] = (struct writer){&b, i, all + (size_t)i * EACH};
        assert_int_equal(pthread_create(&thread[i], NULL, write_all, &writer[i]), 0);
    }
    while (got < WRITERS * EACH) {
        struct vt_inbox_item *at;

        if (vt_wait_fd(b.fd, VT_NEVER))
            vt_inbox_calm(&b);
        for (at = vt_inbox_take(&b); at != NULL; at = at->next, got++) {
            const struct numbered *n = (const struct numbered *)at;

            assert_int_equal(n->number, next[n->writer]);
            next[n->writer]++;
        }
    }
    for (uint32_t i = 0; i < WRITERS; i++)
        pthread_join(thread[i], NULL);
    assert_null(vt_inbox_take(&b));
    vt_inbox_close(&b);
    free(all);
}

/* ---- lateness -------------------------------------------------------- */

static void test_quantiles_of_lateness_are_within_a_sixteenth(void **state)
{
    struct vt_late *l = calloc(1, sizeof(*l));

    (void)state;
    assert_non_null(l);
    assert_int_equal(vt_late_at(l, 0.5), 0);
    for (vt_ns i = 1; i <= 100000; i++)
        vt_late_add(l, i * 100);
    for (double share = 0.1; share < 1; share += 0.1) {
        double want = share * 1e7, got = (double)vt_late_at(l, share);

        assert_true(got >= want * 0.999 && got <= want * (1 + 1.0 / 16) + 200);
    }
    assert_int_equal(l->max, 10000000);
    vt_late_add(l, -5); /* early counts as in time */
    assert_int_equal(vt_late_at(l, 0), 0);
    free(l);
}

/* Messages every 10 ms of made-up time, of which `late` in ten are 80 ms late. */
static const struct slow_row {
    const char *name;
    int late, ms, said;
} slow_rows[] = {
    {"in time", 0, 5000, 0},
    {"fewer than half of them late", 4, 5000, 0},
    {"most of them late for less than a second", 9, 990, 0},
    {"most of them late for a second", 9, 1000, 1},
    {"it is said once", 9, 55000, 1},
    {"and again after a minute", 9, 70000, 2},
};

static void test_who_is_too_slow_says_so_now_and_then(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(slow_rows); i++) {
        const struct slow_row *r = &slow_rows[i];
        struct vt_slow s = {0};
        int said = 0;

        for (int ms = 0; ms <= r->ms; ms += 10)
            said += vt_slow_note(&s, VT_SEC + ms * VT_MS,
                                 ms / 10 % 10 < r->late ? 80 * VT_MS : VT_MS);
        if (said != r->said)
            fail_msg("%s: said %d times", r->name, said);
    }
}

static void test_a_stall_is_told_with_its_worst(void **state)
{
    struct vt_slow s = {0};
    char text[160];

    (void)state;
    assert_false(vt_slow_note(&s, VT_SEC, 0));
    assert_false(vt_slow_note(&s, VT_SEC + 500 * VT_MS, 51 * VT_MS));
    assert_true(vt_slow_note(&s, 5 * VT_SEC, 2 * VT_SEC));
    vt_slow_text(&s, text);
    assert_string_equal(text,
                        "this machine is too slow for the timing: of 3 messages in "
                        "4.0 s 2 left more than 50 ms late, the worst by 2000 ms");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_axis_maps_times_there_and_back),
        cmocka_unit_test(test_time_passes_as_fast_as_the_axis_says),
        cmocka_unit_test(test_the_two_clocks_agree_on_the_length_of_a_wait),
        cmocka_unit_test(test_a_wait_ends_when_something_is_put),
        cmocka_unit_test(test_nothing_is_lost_or_overtaken_between_threads),
        cmocka_unit_test(test_quantiles_of_lateness_are_within_a_sixteenth),
        cmocka_unit_test(test_who_is_too_slow_says_so_now_and_then),
        cmocka_unit_test(test_a_stall_is_told_with_its_worst),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
