/* Threads that share pieces of work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

enum { MOST = 1000, MEMBERS = 5 };

struct job {
    uint32_t times[MOST];
    uint32_t last[MEMBERS]; /* 1 + the item that each had last */

    bool fell[MEMBERS];
};

static void work(void *user, uint32_t member, uint32_t item)
{
    struct job *j = user;

    j->times[item]++;
    j->fell[member] |= item < j->last[member];
    j->last[member] = item + 1;
}

/* Each item once, by whomever, and all of it seen by the caller. */
static void test_every_item_once(void **state)
{
    static const uint32_t items[] = {0, 1, 4, MOST, 3, MOST};

    (void)state;
    for (uint32_t n = 1; n <= MEMBERS; n++) {
        struct job j = {0};
        struct vt_err err = {0};
        struct vt_crew *c;
        uint64_t want = 0, sum = 0;

        assert_int_equal(vt_crew_new(&c, n, &err), VT_OK);
        for (uint32_t piece = 0; piece < 60; piece++) {
            uint32_t k = items[piece % VT_COUNT(items)];

            memset(j.last, 0, sizeof(j.last));
            vt_crew_run(c, k, piece % 7 == 3, work, &j);
            want += k;
        }
        for (uint32_t i = 0; i < MOST; i++)
            sum += j.times[i];
        assert_int_equal(sum, want);
        for (uint32_t i = 0; i < MEMBERS; i++)
            assert_false(j.fell[i]);
        vt_crew_free(c);
    }
    vt_crew_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
