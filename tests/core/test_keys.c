/* What a router asks of an engine: load and cached blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/core.h"

static void plain_step(const struct vt_latency *m, const struct vt_step_shape *s,
                       struct vt_step_cost *cost)
{
    (void)m;
    cost->gpu_us = 100 + s->plan->prefill_tokens;
}

static const struct vt_latency_ops plain_ops = {.name = "plain", .step = plain_step};
static const struct vt_latency plain = {.ops = &plain_ops};

static struct vt_request request(uint64_t tag, struct vt_segment *seg, uint32_t n)
{
    struct vt_request r = {
        .tag = tag,
        .max_tokens = 20,
        .eos_at = VT_NO_STOP,
        .stop_at = VT_NO_STOP,
        .segment = seg,
        .n_segments = n,
        .output_content = 900 + tag,
    };

    for (uint32_t i = 0; i < n; i++)
        r.prompt_tokens += seg[i].tokens;
    return r;
}

static void run_until_idle(struct vt_engine *e)
{
    const struct vt_step *done;

    while (vt_engine_due(e) != VT_NEVER)
        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, NULL), VT_OK);
}

static uint32_t cached(struct vt_engine *e, struct vt_keys *k,
                       const struct vt_request *r)
{
    uint32_t n;
    const uint64_t *key = vt_keys_of(k, r, &n);

    assert_non_null(key);
    assert_int_equal(n, r->prompt_tokens / 16);
    return vt_engine_cached_blocks(e, key, n);
}

static void leading_blocks_are_counted(void **state)
{
    struct vt_segment a[] = {{.content = 1, .tokens = 100},
                             {.content = 2, .tokens = 60}};
    struct vt_segment b[] = {{.content = 1, .tokens = 100},
                             {.content = 3, .tokens = 60}};
    struct vt_segment c[] = {{.content = 4, .tokens = 100},
                             {.content = 2, .tokens = 60}};
    struct vt_segment d[] = {{.content = 1, .tokens = 9}};
    static const enum vt_compat compat[] = {VT_COMPAT_VLLM, VT_COMPAT_BLIS};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(compat); i++) {
        struct vt_request ra = request(1, a, 2), rb = request(2, b, 2),
                          rc = request(3, c, 2), rd = request(4, d, 1);
        struct vt_engine_config cfg;
        struct vt_engine *e;
        struct vt_keys *k;

        vt_engine_config_init(&cfg);
        cfg.num_gpu_blocks = 100;
        cfg.max_model_len = 1024;
        cfg.compat = compat[i];
        assert_int_equal(vt_engine_new(&e, &cfg, &plain, NULL), VT_OK);
        assert_int_equal(vt_keys_new(&k, cfg.block_size, NULL), VT_OK);
        assert_int_equal(cached(e, k, &ra), 0);
        assert_int_equal(vt_engine_add(e, 0, &ra, NULL), VT_OK);
        assert_int_equal(vt_engine_state(e, 0).waiting, 1);
        assert_int_equal(vt_engine_state(e, 0).running, 0);
        run_until_idle(e);
        assert_int_equal(vt_engine_state(e, VT_SEC).waiting, 0);
        assert_int_equal(cached(e, k, &ra), 10);
        assert_int_equal(cached(e, k, &rb), 6); /* 100 tokens are six whole blocks */
        assert_int_equal(cached(e, k, &rc), 0);
        assert_int_equal(cached(e, k, &rd), 0);
        vt_keys_free(k);
        vt_engine_free(e);
    }
}

/* Keys stand for 16 tokens, blocks of the group that counts hold two of them. */
static void blocks_of_several_keys_are_counted_whole(void **state)
{
    struct vt_segment a[] = {{.content = 1, .tokens = 176}};
    struct vt_segment b[] = {{.content = 1, .tokens = 112},
                             {.content = 3, .tokens = 64}};
    struct vt_request ra = request(1, a, 1), rb = request(2, b, 2);
    uint32_t group, n_keys, n;
    struct vt_engine_config cfg;
    const uint64_t *key;
    struct vt_engine *e;
    struct vt_keys *k;

    (void)state;
    vt_engine_config_init(&cfg);
    cfg.num_gpu_blocks = 100;
    cfg.max_model_len = 1024;
    cfg.n_kv_groups = 2;
    cfg.kv_group[0] = (struct vt_kv_group){VT_ATTENTION_SLIDING, 16, 64, 1, 1024};
    cfg.kv_group[1] = (struct vt_kv_group){VT_ATTENTION_FULL, 32, 0, 1, 1024};
    ra.max_tokens = rb.max_tokens = 1;
    assert_int_equal(vt_engine_new(&e, &cfg, &plain, NULL), VT_OK);
    assert_int_equal(vt_keys_new(&k, vt_hash_block_size(&cfg), NULL), VT_OK);
    assert_int_equal(vt_engine_key_units(e, &group), 2);
    assert_int_equal(group, 1);
    assert_int_equal(vt_engine_add(e, 0, &ra, NULL), VT_OK);
    run_until_idle(e);
    assert_int_equal(cached(e, k, &ra), 10); /* of 11: five blocks */
    assert_int_equal(cached(e, k, &rb), 6);  /* of 7 */
    key = vt_keys_of(k, &ra, &n_keys);
    for (n = 0; n < n_keys; n++)
        assert_int_equal(vt_engine_blocks_of(e, key[n]), n < 10 && n % 2 == 1);
    vt_keys_free(k);
    vt_engine_free(e);
}

/* Its KV came along: blocks are taken for all of the prompt, one token is computed. */
static void given_tokens_are_not_computed(void **state)
{
    struct vt_segment a[] = {{.content = 1, .tokens = 160}};
    struct vt_request r = request(1, a, 1);
    struct vt_engine_config cfg;
    const struct vt_step *done;
    struct vt_engine *e;

    (void)state;
    vt_engine_config_init(&cfg);
    cfg.num_gpu_blocks = 100;
    cfg.max_model_len = 1024;
    cfg.async_scheduling = false;
    assert_int_equal(vt_engine_new(&e, &cfg, &plain, NULL), VT_OK);
    r.given_tokens = 160;
    assert_int_equal(vt_engine_add(e, 0, &r, NULL), VT_EINPUT);
    r.given_tokens = 159;
    assert_int_equal(vt_engine_add(e, 0, &r, NULL), VT_OK);
    assert_int_equal(vt_engine_step(e, 0, &done, NULL), VT_OK);
    assert_int_equal(vt_sched_free_blocks(vt_engine_sched(e)), 99 - 10);
    assert_int_equal(vt_engine_step(e, VT_SEC, &done, NULL), VT_OK);
    assert_non_null(done);
    assert_int_equal(done->plan->prefill_tokens, 1);
    assert_int_equal(done->out_ns, 101 * VT_US);
    assert_int_equal(done->n_rows, 1);
    assert_true(done->row[0].first);
    vt_engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leading_blocks_are_counted),
        cmocka_unit_test(blocks_of_several_keys_are_counted_whole),
        cmocka_unit_test(given_tokens_are_not_computed),
    };

    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
