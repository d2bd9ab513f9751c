/* Free-list order, content lookup and counts of the block pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/kv/kv.h"

enum { N = 8 };

static struct pool fresh_pool(void)
{
    struct pool p;

    assert_int_equal(pool_init(&p, N, 1, true, false, NULL), VT_OK);
    return p;
}

static void unused_blocks_come_in_order(void **state)
{
    struct pool p = fresh_pool();

    (void)state;
    assert_int_equal(p.n_free, N - 1);
    for (uint32_t i = 1; i < N; i++)
        assert_int_equal(pool_take(&p), i);
    assert_int_equal(p.n_free, 0);
    pool_free(&p);
}

static void blocks_without_content_are_taken_first_last_block_leading(void **state)
{
    struct pool p = fresh_pool();
    uint32_t b[] = {pool_take(&p), pool_take(&p), pool_take(&p)};

    (void)state;
    pool_give(&p, b, 3, 0);
    assert_int_equal(pool_take(&p), 3);
    assert_int_equal(pool_take(&p), 2);
    assert_int_equal(pool_take(&p), 1);
    assert_int_equal(pool_take(&p), 4);
    pool_free(&p);
}

static void blocks_with_content_are_taken_last_and_found_until_then(void **state)
{
    struct pool p = fresh_pool();
    uint32_t b[] = {pool_take(&p), pool_take(&p), pool_take(&p)};

    (void)state;
    pool_register(&p, b[0], 100, 0);
    pool_register(&p, b[1], 200, 0);
    pool_give(&p, b, 3, 2);
    assert_int_equal(pool_take(&p), 3); /* no content: front */
    for (uint32_t i = 4; i < N; i++)
        assert_int_equal(pool_take(&p), i);
    assert_int_equal(pool_lookup(&p, 200, 0), 2);
    assert_int_equal(pool_take(&p), 2); /* freed before block 1 */
    assert_int_equal(pool_lookup(&p, 200, 0), 0);
    assert_int_equal(pool_lookup(&p, 100, 0), 1);
    pool_touch(&p, 1);
    assert_int_equal(p.n_free, 0);
    pool_free(&p);
}

static void of_equal_content_the_oldest_is_found(void **state)
{
    struct pool p = fresh_pool();
    uint32_t b[] = {pool_take(&p), pool_take(&p), pool_take(&p)};

    (void)state;
    for (int i = 0; i < 3; i++)
        pool_register(&p, b[i], 77, 0);
    assert_int_equal(pool_lookup(&p, 77, 0), 1);
    pool_give(&p, &b[0], 1, 1);
    for (uint32_t i = 4; i < N; i++)
        (void)pool_take(&p);
    assert_int_equal(pool_take(&p), 1); /* block 1 loses its content */
    assert_int_equal(pool_lookup(&p, 77, 0), 2);
    pool_free(&p);
}

/* Against a plain model: every key maps to the blocks that hold it. */
static void a_long_random_life_keeps_table_and_counts_right(void **state)
{
    enum { BLOCKS = 64, KEYS = 40, ROUNDS = 20000 };
    struct pool p;
    struct vt_rng r;
    uint64_t key_of[BLOCKS] = {0};
    bool held[BLOCKS] = {false};

    (void)state;
    vt_rng_init(&r, 7, "pool");
    assert_int_equal(pool_init(&p, BLOCKS, 1, true, false, NULL), VT_OK);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t b = 1 + (uint32_t)vt_rng_below(&r, BLOCKS - 1), n_held = 0;

        if (p.n_free > 0 && vt_rng_below(&r, 2) == 0) {
            b = pool_take(&p);
            assert_false(held[b]);
            held[b] = true;
            key_of[b] = 0;
            if (vt_rng_below(&r, 4) > 0) {
                /* few home cells, so that probe sequences are long */
                key_of[b] =
                    1 + vt_rng_below(&r, KEYS) % 4 + (vt_rng_below(&r, KEYS) << 40);
                pool_register(&p, b, key_of[b], 0);
            }
        } else if (held[b]) {
            pool_give(&p, &b, 1, key_of[b] != 0);
            held[b] = false;
        }
        for (uint32_t k = 1; k < BLOCKS; k++) {
            uint32_t found = key_of[k] != 0 ? pool_lookup(&p, key_of[k], 0) : 0;

            n_held += held[k];
            if (key_of[k] != 0)
                assert_true(found != 0 && key_of[found] == key_of[k]);
        }
        assert_int_equal(p.n_free, BLOCKS - 1 - n_held);
    }
    pool_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_blocks_come_in_order),
        cmocka_unit_test(blocks_without_content_are_taken_first_last_block_leading),
        cmocka_unit_test(blocks_with_content_are_taken_last_and_found_until_then),
        cmocka_unit_test(of_equal_content_the_oldest_is_found),
        cmocka_unit_test(a_long_random_life_keeps_table_and_counts_right),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
