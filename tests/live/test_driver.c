/* The driver of engines under the wall clock: requests by tag, parcels, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "live/live.h"

struct heard {
    vt_ns at[8];
    uint64_t n;
};

struct parcel {
    uint64_t number;
    char *owned; /* heap; NULL: none */
};

static bool leave(void *user, void *parcel, vt_ns at)
{
    struct heard *h = user;
    struct parcel *p = parcel;

    h->at[h->n++] = at;
    return p->number % 2 == 0;
}

static void drop(void *parcel)
{
    free(((struct parcel *)parcel)->owned);
}

static struct vt_driver *opened(struct heard *h)
{
    static const struct vt_driver_ops ops = {.leave = leave, .drop = drop};
    struct vt_driver_config c = {
        .axis = {.zero_ns = vt_wall_ns(), .scale = 1},
        .parcel_bytes = sizeof(struct parcel),
        .ops = &ops,
        .user = h,
    };
    struct vt_driver *d;

    assert_int_equal(vt_driver_open(&d, &c, NULL), VT_OK);
    return d;
}

static void test_a_tag_finds_its_request_and_no_later_one(void **state)
{
    enum { N = 1000 };
    struct vt_driver *d = opened(NULL);
    int *request = calloc(N, sizeof(*request));
    uint64_t tag[N], old[N];

    (void)state;
    assert_non_null(request);
    for (int round = 0; round < 3; round++) {
        size_t at = 0, n = 0;

        for (int i = 0; i < N; i++)
            assert_int_equal(vt_driver_add(d, &request[i], &tag[i], NULL), VT_OK);
        for (int i = 0; i < N; i++) {
            assert_ptr_equal(vt_driver_find(d, tag[i]), &request[i]);
            if (round > 0)
                assert_null(vt_driver_find(d, old[i]));
            old[i] = tag[i];
        }
        assert_int_equal(vt_driver_requests(d), N);
        while (vt_driver_each(d, &at) != NULL)
            n++;
        assert_int_equal(n, N);
        assert_int_equal(at, N); /* places are used again */
        for (int i = 0; i < N; i++) {
            vt_driver_remove(d, tag[i]);
            vt_driver_remove(d, tag[i]); /* no more: nothing happens */
        }
        assert_int_equal(vt_driver_requests(d), 0);
    }
    vt_driver_close(d);
    free(request);
}

static void test_parcels_leave_in_the_order_of_their_times(void **state)
{
    static const vt_ns times[] = {30, 10, 20, 10};
    struct heard h = {0};
    struct vt_driver *d = opened(&h);

    (void)state;
    for (size_t i = 0; i < VT_COUNT(times); i++) {
        struct parcel *p = vt_driver_post(d, times[i], NULL);

        assert_non_null(p);
        p->number = i;
        if (p->owned == NULL)
            p->owned = malloc(10);
    }
    assert_int_equal(vt_driver_parcels_due(d), 10);
    assert_int_equal(vt_driver_engines_due(d), VT_NEVER);
    vt_driver_flush(d, 9);
    assert_int_equal(h.n, 0);
    vt_driver_flush(d, 20);
    assert_int_equal(h.n, 3);
    assert_int_equal(vt_driver_parcels_due(d), 30);
    assert_non_null(((struct parcel *)vt_driver_post(d, 5, NULL))->owned); /* kept */
    vt_driver_flush(d, VT_NEVER);
    assert_int_equal(h.n, 5);
    assert_int_equal(h.at[3], 5);
    assert_int_equal(h.at[4], 30);
    assert_true(vt_driver_late(d)->n < h.n); /* only those that count */
    vt_driver_close(d);
}

static void test_a_driver_ends_when_it_is_empty_or_has_waited_long_enough(void **state)
{
    struct vt_driver *d = opened(NULL);

    (void)state;
    assert_false(vt_driver_over(d, 0));
    vt_driver_drain(d, 1000);
    assert_true(vt_driver_draining(d));
    assert_true(vt_driver_over(d, 0));
    assert_false(vt_driver_over(d, 1));
    vt_driver_close(d);
    d = opened(NULL);
    vt_driver_drain(d, 0);
    vt_driver_drain(d, 1000); /* the first word counts */
    assert_true(vt_driver_over(d, 1));
    vt_driver_close(d);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tag_finds_its_request_and_no_later_one),
        cmocka_unit_test(test_parcels_leave_in_the_order_of_their_times),
        cmocka_unit_test(test_a_driver_ends_when_it_is_empty_or_has_waited_long_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
