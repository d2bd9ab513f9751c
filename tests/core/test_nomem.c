/* An engine that has no memory for a request refuses it and goes on as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/core.h"

#include "../failing_malloc.h"

#if REPLACES_MALLOC

static void flat_step(const struct vt_latency *m, const struct vt_step_shape *s,
                      struct vt_step_cost *cost)
{
    (void)m;
    (void)s;
    cost->gpu_us = 100;
}

static const struct vt_latency_ops flat_ops = {.name = "flat", .step = flat_step};
static const struct vt_latency flat = {.ops = &flat_ops};

static int ask(struct vt_engine *e, uint64_t tag, uint32_t n_segments)
{
    static struct vt_segment seg[200];
    struct vt_request r = {.tag = tag,
                           .prompt_tokens = n_segments,
                           .max_tokens = 3,
                           .eos_at = VT_NO_STOP,
                           .stop_at = VT_NO_STOP,
                           .segment = seg,
                           .n_segments = n_segments};

    for (uint32_t i = 0; i < n_segments; i++)
        seg[i] = (struct vt_segment){.content = tag * 1000 + i, .tokens = 1};
    return vt_engine_add(e, 0, &r, NULL);
}

/* Runs to the end; returns the slot of the last row. */
static uint32_t finish(struct vt_engine *e)
{
    uint32_t slot = UINT32_MAX;

    while (vt_engine_due(e) != VT_NEVER) {
        const struct vt_step *done;

        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, NULL), VT_OK);
        if (done && done->n_rows > 0)
            slot = done->row[done->n_rows - 1].slot;
    }
    return slot;
}

static void a_refused_request_keeps_no_slot(void **state)
{
    enum vt_compat compat = *(enum vt_compat *)*state;
    struct vt_engine_config c;
    struct vt_engine *e;

    vt_engine_config_init(&c);
    c.compat = compat;
    c.num_gpu_blocks = 100;
    c.max_model_len = 512;
    assert_int_equal(vt_engine_new(&e, &c, &flat, NULL), VT_OK);
    assert_int_equal(ask(e, 1, 2), VT_OK);
    assert_int_equal(finish(e), 0);
    fail_at = calls + 1; /* the longer list of segments */
    for_good = true;
    assert_int_equal(ask(e, 2, 200), VT_ENOMEM);
    fail_at = 0;
    assert_int_equal(ask(e, 2, 200), VT_OK);
    assert_int_equal(finish(e), 0);
    vt_engine_free(e);
}

int main(void)
{
    static enum vt_compat vllm = VT_COMPAT_VLLM, blis = VT_COMPAT_BLIS;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_refused_request_keeps_no_slot, &vllm),
        cmocka_unit_test_prestate(a_refused_request_keeps_no_slot, &blis),
    };

    return cmocka_run_group_tests_name("nomem", tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
