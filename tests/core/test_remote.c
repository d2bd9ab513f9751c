/* Prefills on one engine, decodes on another: pulls on the time axis, blocks that are
 * reserved and kept meanwhile, leases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/pull.h"
#include "toy_model.h"

enum { BS = 16, PROMPT = 10 * BS, TAG = 7 };

/* A block takes 10 us, and a pull 5 before that. */
static struct vt_engine *open_engine(bool async, uint32_t vllm)
{
    struct vt_engine_config c;
    struct vt_engine *e;

    vt_engine_config_init(&c);
    c.async_scheduling = async;
    c.vllm = vllm;
    c.num_gpu_blocks = 41;
    c.max_model_len = 40 * BS;
    c.remote = (struct vt_remote){.on = true,
                                  .pulls = true,
                                  .lease_s = 1,
                                  .gbs = 1,
                                  .setup_us = 5,
                                  .block_bytes = 10000};
    assert_int_equal(vt_engine_new(&e, &c, &toy, NULL), VT_OK);
    return e;
}

static void add_as(struct vt_engine *e, vt_ns now, uint64_t tag, enum vt_apart apart,
                   uint32_t max_tokens, bool unsure)
{
    struct vt_segment seg = {.content = 1, .tokens = PROMPT};
    struct vt_request r = {.tag = tag,
                           .unsure = unsure,
                           .prompt_tokens = PROMPT,
                           .max_tokens = max_tokens,
                           .eos_at = VT_NO_STOP,
                           .stop_at = VT_NO_STOP,
                           .arrival = now,
                           .segment = &seg,
                           .n_segments = 1,
                           .output_content = 5000 + tag,
                           .apart = (uint8_t)apart};

    assert_int_equal(vt_engine_add(e, now, &r, NULL), VT_OK);
}

static void add(struct vt_engine *e, vt_ns now, uint64_t tag, enum vt_apart apart,
                uint32_t max_tokens)
{
    add_as(e, now, tag, apart, max_tokens, false);
}

struct seen {
    vt_ns first_ns;
    uint32_t failed; /* rows */
    uint32_t rows, expired, n_pulled;
    struct vt_kv_pulled pulled;
};

static struct seen run(struct vt_engine *e, vt_ns until)
{
    struct seen x = {0};
    vt_ns at;

    while ((at = vt_engine_due(e)) <= until) {
        const struct vt_step *s;

        assert_int_equal(vt_engine_step(e, at, &s, NULL), VT_OK);
        if (!s)
            continue;
        if (s->n_rows > 0 && x.rows == 0)
            x.first_ns = s->row[0].at;
        x.rows += s->n_rows;
        for (uint32_t i = 0; i < s->n_rows; i++)
            x.failed += s->row[i].finish == VT_FAILED;
        x.expired += s->remote->expired;
        x.n_pulled += s->remote->n_pulled;
        if (s->remote->n_pulled > 0)
            x.pulled = s->remote->pulled[0];
    }
    return x;
}

static uint32_t used(struct vt_engine *e)
{
    return 40 - vt_sched_free_blocks(vt_engine_sched(e));
}

static const struct {
    bool async;
    uint32_t vllm;
} scenes[] = {{false, 26}, {true, 26}, {false, 32}, {true, 32}};

static void a_prompt_goes_from_one_to_the_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(scenes); i++) {
        struct vt_engine *p = open_engine(scenes[i].async, scenes[i].vllm);
        struct vt_engine *d = open_engine(scenes[i].async, scenes[i].vllm);
        struct vt_engine_totals t;
        struct seen x;

        add(p, 0, TAG, VT_PREFILL_ONLY, 1);
        x = run(p, VT_MS);
        assert_int_equal(x.first_ns, 260 * VT_US);
        assert_int_equal(used(p), 10);
        assert_true(vt_sched_keeps(vt_engine_sched(p), TAG));

        add(d, VT_MS, TAG, VT_DECODE_ONLY, 3);
        x = run(d, VT_MS + 50 * VT_US);
        assert_int_equal(x.rows, 0);
        assert_int_equal(used(d), 10); /* reserved while they are filled */
        assert_int_equal(vt_sched_fetches(vt_engine_sched(d)).pulling, 1);
        x = run(d, 2 * VT_MS);
        assert_int_equal(x.n_pulled, 1);
        assert_int_equal(x.pulled.bytes, 100000);
        assert_int_equal(x.pulled.ended_ns - x.pulled.begun_ns, 105 * VT_US);
        /* The last token of the prompt is computed again. */
        assert_int_equal(x.first_ns, VT_MS + (105 + 101) * VT_US);
        assert_int_equal(x.rows, 3);
        assert_int_equal(used(d), 0);
        t = vt_engine_totals(d);
        assert_int_equal(t.remote.tokens, PROMPT);
        assert_int_equal(t.cache_hits, 0);

        assert_int_equal(vt_engine_gave(p, 2 * VT_MS, TAG), VT_OK);
        assert_int_equal(vt_engine_gave(p, 2 * VT_MS, TAG), VT_ECHECK);
        (void)run(p, 2 * VT_MS);
        assert_int_equal(used(p), 0);
        assert_int_equal(vt_engine_totals(p).remote.gave, 1);
        vt_engine_free(p);
        vt_engine_free(d);
    }
}

static void what_is_here_is_not_pulled(void **state)
{
    struct vt_engine *d = open_engine(false, 32);
    struct seen x;

    (void)state;
    add(d, 0, 1, VT_TOGETHER, 2);
    (void)run(d, VT_MS);
    add(d, VT_MS, TAG, VT_DECODE_ONLY, 1);
    x = run(d, 2 * VT_MS);
    assert_int_equal(x.n_pulled, 1); /* a whole block less than the prompt is found */
    assert_int_equal(x.pulled.blocks, 1);
    vt_engine_free(d);
}

static void an_abort_waits_for_its_pull(void **state)
{
    struct vt_engine *d = open_engine(true, 32);

    (void)state;
    add(d, 0, TAG, VT_DECODE_ONLY, 3);
    (void)run(d, 50 * VT_US);
    assert_int_equal(vt_engine_abort(d, 50 * VT_US, TAG), VT_OK);
    (void)run(d, 60 * VT_US);
    assert_int_equal(used(d), 10);
    (void)run(d, VT_MS);
    assert_int_equal(used(d), 0);
    vt_engine_free(d);
}

static struct vt_engine *open_decoder(bool recomputes, bool async)
{
    struct vt_engine *e;
    struct vt_engine_config c;

    vt_engine_config_init(&c);
    c.async_scheduling = async;
    c.num_gpu_blocks = 41;
    c.max_model_len = 40 * BS;
    c.remote = (struct vt_remote){.on = true,
                                  .pulls = true,
                                  .recomputes = recomputes,
                                  .gbs = 1,
                                  .setup_us = 5,
                                  .block_bytes = 10000};
    assert_int_equal(vt_engine_new(&e, &c, &toy, NULL), VT_OK);
    return e;
}

/* early: the word comes before the request is scheduled. */
static void a_pull_waits_for_word_of_the_other(void **state)
{
    static const struct {
        const char *what;
        bool there, recomputes, early, async;
        uint32_t rows, failed, n_pulled;
    } row[] = {
        {"it is there", true, false, false, false, 3, 0, 1},
        {"it is there, which was known", true, false, true, true, 3, 0, 1},
        {"it is gone", false, false, false, true, 1, 1, 1},
        {"it is gone, which was known", false, false, true, false, 1, 1, 1},
        {"its part is computed here", false, true, false, false, 3, 0, 1},
        {"the same, one step ahead", false, true, true, true, 3, 0, 1},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_engine *d = open_decoder(row[i].recomputes, row[i].async);
        vt_ns word = row[i].early ? 0 : 10 * VT_MS;
        struct seen x = {0};

        add_as(d, 0, TAG, VT_DECODE_ONLY, 3, true);
        if (!row[i].early) {
            x = run(d, 9 * VT_MS);
            assert_int_equal(x.rows + x.n_pulled, 0);
            assert_int_equal(used(d), 10);
            assert_int_equal(vt_sched_fetches(vt_engine_sched(d)).pulling, 1);
        }
        assert_int_equal(vt_engine_reached(d, word, TAG, row[i].there, NULL), VT_OK);
        x = run(d, 20 * VT_MS);
        if (x.rows != row[i].rows || x.failed != row[i].failed ||
            x.n_pulled != row[i].n_pulled || x.pulled.failed == row[i].there)
            fail_msg("%s: %u rows, %u failed, %u pulls", row[i].what, x.rows, x.failed,
                     x.n_pulled);
        if (row[i].there)
            assert_int_equal(x.pulled.ended_ns - x.pulled.begun_ns, 105 * VT_US);
        assert_int_equal(used(d), 0);
        assert_int_equal(vt_engine_totals(d).remote.failed, !row[i].there);
        vt_engine_free(d);
    }
}

/* Two blocks of the prompt were here: they are not computed again. */
static void what_was_here_survives_a_failed_pull(void **state)
{
    struct vt_engine *d = open_decoder(true, false);
    struct vt_segment seg = {.content = 1, .tokens = 2 * BS + 1};
    struct vt_request r = {.tag = 1,
                           .prompt_tokens = 2 * BS + 1,
                           .max_tokens = 1,
                           .eos_at = VT_NO_STOP,
                           .stop_at = VT_NO_STOP,
                           .segment = &seg,
                           .n_segments = 1,
                           .output_content = 9};
    struct seen x;

    (void)state;
    assert_int_equal(vt_engine_add(d, 0, &r, NULL), VT_OK);
    (void)run(d, VT_MS);
    add_as(d, VT_MS, TAG, VT_DECODE_ONLY, 2, true);
    (void)run(d, 2 * VT_MS);
    assert_int_equal(used(d), 10);
    assert_int_equal(vt_engine_reached(d, 3 * VT_MS, TAG, false, NULL), VT_OK);
    x = run(d, 3 * VT_MS);
    assert_int_equal(x.n_pulled, 1);
    x = run(d, 20 * VT_MS);
    assert_int_equal(x.rows, 2);
    assert_int_equal(vt_engine_totals(d).cache_hits, 2 * BS);
    assert_int_equal(used(d), 0);
    vt_engine_free(d);
}

static void an_abort_ends_a_pull_that_waits(void **state)
{
    struct vt_engine *d = open_decoder(false, false);

    (void)state;
    add_as(d, 0, TAG, VT_DECODE_ONLY, 3, true);
    (void)run(d, VT_MS);
    assert_int_equal(vt_engine_abort(d, VT_MS, TAG), VT_OK);
    assert_int_equal(vt_engine_reached(d, 2 * VT_MS, TAG, false, NULL), VT_OK);
    (void)run(d, 3 * VT_MS);
    assert_int_equal(used(d), 0);
    vt_engine_free(d);
}

static void leases_end_unless_renewed(void **state)
{
    struct vt_engine *p = open_engine(false, 26);
    struct seen x;

    (void)state;
    add(p, 0, TAG, VT_PREFILL_ONLY, 1);
    (void)run(p, 900 * VT_MS);
    assert_int_equal(vt_engine_renew(p, 900 * VT_MS, TAG), VT_OK); /* by two thirds */
    x = run(p, 1500 * VT_MS);
    assert_int_equal(x.expired, 0);
    assert_int_equal(used(p), 10);
    x = run(p, 1600 * VT_MS);
    assert_int_equal(x.expired, 1);
    assert_int_equal(used(p), 0);
    assert_int_equal(vt_engine_renew(p, 1600 * VT_MS, TAG), VT_ECHECK);
    vt_engine_free(p);
}

static void an_aborted_prefill_keeps_nothing(void **state)
{
    struct vt_engine *p = open_engine(false, 32);

    (void)state;
    add(p, 0, TAG, VT_PREFILL_ONLY, 1);
    (void)run(p, 0);
    assert_int_equal(vt_engine_abort(p, VT_US, TAG), VT_OK);
    (void)run(p, VT_MS);
    assert_int_equal(used(p), 0);
    vt_engine_free(p);
}

/* 100 us each alone; the second begins in the middle of the first. */
static void pulls_share_a_link_if_asked(void **state)
{
    static const struct {
        bool shares;
        vt_ns end[2];
    } row[] = {{false, {100 * VT_US, 150 * VT_US}}, {true, {150 * VT_US, 200 * VT_US}}};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_remote r = {.gbs = 1, .block_bytes = 10000, .shares = row[i].shares};
        struct vt_kv_pull one = {1, 10}, two = {2, 10};
        struct vt_step_plan plan = {.pull = &one, .n_pulls = 1};
        struct pulls p;
        uint32_t n;

        pulls_init(&p, &r);
        assert_int_equal(pulls_launch(&p, &plan, 0, 0, NULL), VT_OK);
        plan.pull = &two;
        assert_int_equal(pulls_launch(&p, &plan, 0, 50 * VT_US, NULL), VT_OK);
        assert_int_equal(pulls_until(&p, VT_MS, &n, NULL), VT_OK);
        assert_int_equal(n, 2);
        for (uint32_t k = 0; k < 2; k++)
            assert_int_equal(p.done[k].ended_ns, row[i].end[k]);
        pulls_told(&p, 2);
        assert_int_equal(pulls_due(&p), VT_NEVER);
        pulls_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_goes_from_one_to_the_other),
        cmocka_unit_test(what_is_here_is_not_pulled),
        cmocka_unit_test(an_abort_waits_for_its_pull),
        cmocka_unit_test(a_pull_waits_for_word_of_the_other),
        cmocka_unit_test(what_was_here_survives_a_failed_pull),
        cmocka_unit_test(an_abort_ends_a_pull_that_waits),
        cmocka_unit_test(leases_end_unless_renewed),
        cmocka_unit_test(an_aborted_prefill_keeps_nothing),
        cmocka_unit_test(pulls_share_a_link_if_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
