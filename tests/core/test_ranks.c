/* Engines in lockstep on one time axis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/core.h"
#include "engine_testing.h"

/* A prompt token costs 1 us, a decode 10 us, a pass 100 us; the host takes no time. */
static void toy_step(const struct vt_latency *m, const struct vt_step_shape *s,
                     struct vt_step_cost *cost)
{
    (void)m;
    cost->gpu_us = 100 + s->plan->prefill_tokens + 10.0 * s->plan->n_decodes;
}

static const struct vt_latency_ops toy_ops = {.name = "toy", .step = toy_step};
static const struct vt_latency toy = {.ops = &toy_ops};

/* ---- a few ranks and a driver ------------------------------------------ */

enum { MOST = 4, TAGS = 16, TOKENS = 64 };

struct site {
    struct vt_ranks *ranks; /* NULL: independent */
    struct vt_engine *engine[MOST];
    uint32_t n;
    double token_us[TAGS][TOKENS]; /* when each token came; 0: not yet */
    vt_ns now;
};

static struct vt_engine_config config_of(uint32_t vllm, bool async)
{
    struct vt_engine_config c;

    vt_engine_config_init(&c);
    c.vllm = vllm;
    c.async_scheduling = async;
    c.num_gpu_blocks = 100;
    c.max_model_len = 1024;
    return c;
}

static void open_site_with(struct site *s, uint32_t n, const struct vt_latency *m,
                           const struct vt_engine_config *c, bool lockstep)
{
    *s = (struct site){.n = n};
    if (lockstep)
        assert_int_equal(vt_ranks_new(&s->ranks, n, NULL), VT_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(vt_engine_new(&s->engine[i], c, m, NULL), VT_OK);
        if (lockstep)
            assert_int_equal(vt_ranks_join(s->ranks, i, s->engine[i], NULL), VT_OK);
    }
}

static void open_site(struct site *s, uint32_t n, const struct vt_engine_config *c,
                      bool lockstep)
{
    open_site_with(s, n, &toy, c, lockstep);
}

static void close_site(struct site *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        vt_engine_free(s->engine[i]);
    vt_ranks_free(s->ranks);
}

static void add(struct site *s, uint32_t rank, double us, uint64_t tag, uint32_t prompt,
                uint32_t output)
{
    add_request(s->engine[rank], vt_ns_from_us(us), tag, prompt, output);
}

/* The one that is due first; n: none. */
static uint32_t first_due(const struct site *s, vt_ns *due)
{
    uint32_t first = s->n;

    *due = VT_NEVER;
    for (uint32_t i = 0; i < s->n; i++)
        if (vt_engine_due(s->engine[i]) < *due) {
            first = i;
            *due = vt_engine_due(s->engine[i]);
        }
    return first;
}

/* What is due up to that time; false: something is due later. */
static bool run_until(struct site *s, vt_ns until)
{
    for (;;) {
        const struct vt_step *done;
        vt_ns due;
        uint32_t i = first_due(s, &due);

        if (i == s->n || due > until)
            return i == s->n;
        assert_true(due >= s->now);
        s->now = due;
        assert_int_equal(vt_engine_step(s->engine[i], due, &done, NULL), VT_OK);
        for (uint32_t k = 0; done != NULL && k < done->n_rows; k++)
            s->token_us[done->row[k].tag][done->row[k].first_index] =
                (double)done->row[k].at / VT_US;
    }
}

static void run_dry(struct site *s)
{
    assert_true(run_until(s, 10 * VT_SEC));
}

/* ---- times ------------------------------------------------------------ */

static void a_pass_takes_as_long_as_that_of_the_slowest_rank(void **state)
{
    struct vt_engine_config c = config_of(32, *(bool *)*state);
    struct site s;

    open_site(&s, 2, &c, true);
    add(&s, 0, 0, 1, 50, 3);
    add(&s, 1, 0, 2, 400, 3);
    run_dry(&s);
    for (uint64_t tag = 1; tag <= 2; tag++) {
        assert_float_equal(s.token_us[tag][0], 500, 1e-9);
        assert_float_equal(s.token_us[tag][1], 610, 1e-9);
        assert_float_equal(s.token_us[tag][2], 720, 1e-9);
    }
    /* Of the first pass's 500 us the first rank had nothing to do for 350. */
    assert_int_equal(vt_ranks_totals(s.ranks).waited_ns, 350 * VT_US);
    close_site(&s);

    open_site(&s, 2, &c, false);
    add(&s, 0, 0, 1, 50, 3);
    add(&s, 1, 0, 2, 400, 3);
    run_dry(&s);
    assert_float_equal(s.token_us[1][0], 150, 1e-9);
    assert_float_equal(s.token_us[2][0], 500, 1e-9);
    close_site(&s);
}

static void a_rank_at_rest_wakes_up_as_an_engine_alone_does(void **state)
{
    static const struct vt_latency sleepy = {.ops = &toy_ops, .wake_us = 30};
    struct vt_engine_config c = config_of(32, true);

    (void)state;
    for (int lockstep = 0; lockstep < 2; lockstep++) {
        struct site s;

        open_site_with(&s, 2, &sleepy, &c, lockstep);
        add(&s, 0, 1000, 1, 50, 1);
        add(&s, 0, 1020, 2, 50, 1); /* while it wakes up */
        run_dry(&s);
        assert_float_equal(s.token_us[1][0], 1230, 1e-9);
        assert_float_equal(s.token_us[2][0], 1230, 1e-9);
        close_site(&s);
    }
}

static void a_pass_starts_when_the_last_rank_has_come(void **state)
{
    struct vt_engine_config c = config_of(29, false);
    struct site s;

    (void)state;
    open_site(&s, 2, &c, true);
    add(&s, 0, 0, 1, 50, 5);
    /* At 0 the other rank comes to the pass with nothing. It waits for no result, so it
     * comes to the next one at 0 as well: of 150 to 260. This request joins the pass
     * from 260 on, which is 100 + 300 long. */
    add(&s, 1, 20, 2, 300, 2);
    run_dry(&s);
    assert_float_equal(s.token_us[1][0], 150, 1e-9);
    assert_float_equal(s.token_us[1][1], 260, 1e-9);
    assert_float_equal(s.token_us[1][2], 660, 1e-9);
    assert_float_equal(s.token_us[2][0], 660, 1e-9);
    assert_float_equal(s.token_us[2][1], 770, 1e-9);
    close_site(&s);
}

static void one_rank_alone_is_an_engine(void **state)
{
    bool async = *(bool *)*state;
    struct vt_engine_config c = config_of(32, async);
    struct site alone, ranks;

    open_site(&alone, 1, &c, false);
    open_site(&ranks, 1, &c, true);
    for (uint64_t tag = 1; tag < 10; tag++) {
        double us = (double)(tag * tag) * 60;

        add(&alone, 0, us, tag, 20 * (uint32_t)tag, 10);
        add(&ranks, 0, us, tag, 20 * (uint32_t)tag, 10);
    }
    run_dry(&alone);
    run_dry(&ranks);
    assert_memory_equal(alone.token_us, ranks.token_us, sizeof(alone.token_us));
    assert_true(alone.token_us[9][9] > 0);
    close_site(&alone);
    close_site(&ranks);
}

/* ---- waves ------------------------------------------------------------ */

static struct ends {
    const char *name;
    uint32_t vllm, interval;
    bool async;
    uint32_t tokens, passes;
} ends[] = {
    {"0.26: a wave lasts 32 passes", 26, 0, true, 3, 32},
    {"0.29: or 64", 29, 0, true, 40, 64},
    {"0.30: or 16", 30, 0, true, 3, 16},
    {"0.32: one token, known with the first pass", 32, 0, false, 1, 1},
    {"0.29: which is too early to agree", 29, 0, false, 1, 32},
    {"0.32: known after the first pass with async scheduling", 32, 0, true, 1, 16},
    {"an agreement in the pass of the last token", 32, 3, false, 3, 3},
    {"the same pass with async scheduling is one too early", 32, 3, true, 3, 6},
    {"an agreement one pass later", 32, 4, true, 3, 4},
};

static void wave_ends(void **state)
{
    const struct ends *r = *state;
    struct vt_engine_config c = config_of(r->vllm, r->async);
    struct vt_ranks_totals t;
    struct site s;

    c.dp_sync_interval = r->interval;
    open_site(&s, 3, &c, true);
    add(&s, 1, 70, 1, 50, r->tokens);
    run_dry(&s);
    t = vt_ranks_totals(s.ranks);
    assert_int_equal(t.waves, 1);
    assert_int_equal(t.passes, r->passes);
    assert_int_equal(t.dummies, 3 * r->passes - r->tokens);
    assert_int_equal(t.rank_ns, 3 * (t.passes * 110 + 40) * VT_US);
    assert_float_equal(s.token_us[1][0], 70 + 150, 1e-9);
    close_site(&s);
}

static void after_a_wave_all_rest_until_a_request_starts_the_next(void **state)
{
    struct vt_engine_config c = config_of(32, true);
    struct site s;

    (void)state;
    open_site(&s, 2, &c, true);
    add(&s, 0, 0, 1, 50, 2);
    run_dry(&s);
    assert_int_equal(vt_ranks_totals(s.ranks).passes, 16);
    add(&s, 1, 1e5, 2, 50, 2);
    run_dry(&s);
    assert_int_equal(vt_ranks_totals(s.ranks).waves, 2);
    assert_int_equal(vt_ranks_totals(s.ranks).passes, 32); /* it counts from 0 again */
    assert_float_equal(s.token_us[2][0], 1e5 + 150, 1e-9);
    close_site(&s);
}

static void a_request_that_comes_as_a_wave_runs_out_keeps_it_going(void **state)
{
    struct vt_engine_config c = config_of(32, true);
    struct site s;

    (void)state;
    open_site(&s, 2, &c, true);
    add(&s, 0, 0, 1, 50, 2);
    assert_false(run_until(&s, 1000 * VT_US)); /* dummies on both */
    add(&s, 1, 1000, 2, 50, 2);
    run_dry(&s);
    assert_int_equal(vt_ranks_totals(s.ranks).waves, 1);
    assert_int_equal(vt_ranks_totals(s.ranks).passes, 16);
    assert_true(s.token_us[2][1] > 1000);
    close_site(&s);
}

/* ---- prefills held back ------------------------------------------------ */

static struct interval {
    const char *name;
    uint32_t every;
    bool lockstep;
    double first_us; /* of a request that comes in the second pass */
} intervals[] = {
    /* Passes of 150, then 110 us; at 255 the third one, from 260 on, is decided next.
     */
    {"prefills join any pass", 1, true, 390},
    {"prefills wait for a pass whose number is a multiple", 4, true, 610},
    {"an engine alone holds none back", 4, false, 390},
};

static void prefills_wait(void **state)
{
    const struct interval *r = *state;
    struct vt_engine_config c = config_of(32, false);
    struct site s;

    c.prefill_schedule_interval = r->every;
    open_site(&s, 2, &c, r->lockstep);
    add(&s, 0, 0, 1, 50, 10);
    assert_false(run_until(&s, 255 * VT_US));
    add(&s, 0, 255, 2, 20, 2);
    run_dry(&s);
    assert_float_equal(s.token_us[1][0], 150, 1e-9); /* a fresh wave admits at once */
    assert_float_equal(s.token_us[2][0], r->first_us, 1e-9);
    close_site(&s);
}

/* ---- pauses ----------------------------------------------------------- */

static void pause_rank(struct site *s, uint32_t i, enum vt_pause p, int want)
{
    assert_int_equal(vt_engine_pause(s->engine[i], s->now, p), want);
}

static struct pauses {
    const char *name;
    uint32_t vllm, passes;
} pauses[] = {
    {"0.29: ranks at rest pause after 32 dummies", 29, 32},
    {"0.30: ranks at rest pause after one dummy", 30, 1},
};

static void pause_at_rest(void **state)
{
    const struct pauses *r = *state;
    struct vt_engine_config c = config_of(r->vllm, true);
    struct site s;

    open_site(&s, 2, &c, true);
    pause_rank(&s, 0, VT_PAUSE_ALL, VT_OK);
    run_dry(&s); /* it waits for the other one */
    assert_int_equal(vt_ranks_totals(s.ranks).passes, 0);
    pause_rank(&s, 0, VT_RUN, VT_ECHECK);
    pause_rank(&s, 1, VT_PAUSE_ALL, VT_OK);
    run_dry(&s);
    assert_int_equal(vt_ranks_totals(s.ranks).passes, r->passes);
    close_site(&s);
}

static void paused_ranks_go_on_when_the_last_one_is_let(void **state)
{
    struct vt_engine_config c = config_of(32, true);
    struct site s;

    (void)state;
    open_site(&s, 2, &c, true);
    add(&s, 0, 0, 1, 50, 20);
    assert_false(run_until(&s, 400 * VT_US));
    pause_rank(&s, 0, VT_PAUSE_ALL, VT_OK);
    pause_rank(&s, 1, VT_PAUSE_ALL, VT_OK);
    run_dry(&s);
    assert_true(s.token_us[1][2] > 0 && s.token_us[1][19] == 0.0);
    add(&s, 1, 5000, 2, 50, 2); /* paused: it starts nothing */
    run_dry(&s);
    assert_true(s.token_us[2][0] == 0.0);
    pause_rank(&s, 0, VT_RUN, VT_OK);
    run_dry(&s); /* the other one is still paused */
    assert_true(s.token_us[1][19] == 0.0);
    s.now = 9000 * VT_US;
    pause_rank(&s, 1, VT_RUN, VT_OK);
    run_dry(&s);
    assert_true(s.token_us[1][19] > 9000 && s.token_us[2][1] > 9000);
    close_site(&s);
}

static void aborts_and_engines_that_end_leave_nothing_behind(void **state)
{
    struct vt_engine_config c = config_of(32, true);
    struct site s;

    (void)state;
    open_site(&s, 2, &c, true);
    add(&s, 0, 0, 1, 50, 900);
    assert_false(run_until(&s, 400 * VT_US));
    assert_int_equal(vt_engine_abort(s.engine[0], 400 * VT_US, 1), VT_OK);
    run_dry(&s);
    assert_int_equal(vt_ranks_totals(s.ranks).passes, 16);
    assert_int_equal(vt_sched_free_blocks(vt_engine_sched(s.engine[0])), 99);
    vt_ranks_free(s.ranks); /* before its engines */
    s.ranks = NULL;
    close_site(&s);
}

#define ROWS(rows, test)                                                              \
    for (size_t i = 0; i < VT_COUNT(rows); i++)                                       \
        tests[n++] = (struct CMUnitTest)                                              \
        {                                                                             \
            .name = (rows)[i].name, .test_func = (test), .initial_state = &(rows)[i], \
        }

int main(void)
{
    static bool sync = false, async = true;
    const struct CMUnitTest single[] = {
        cmocka_unit_test_prestate(a_pass_takes_as_long_as_that_of_the_slowest_rank,
                                  &sync),
        cmocka_unit_test_prestate(a_pass_takes_as_long_as_that_of_the_slowest_rank,
                                  &async),
        cmocka_unit_test(a_rank_at_rest_wakes_up_as_an_engine_alone_does),
        cmocka_unit_test(a_pass_starts_when_the_last_rank_has_come),
        cmocka_unit_test_prestate(one_rank_alone_is_an_engine, &sync),
        cmocka_unit_test_prestate(one_rank_alone_is_an_engine, &async),
        cmocka_unit_test(after_a_wave_all_rest_until_a_request_starts_the_next),
        cmocka_unit_test(a_request_that_comes_as_a_wave_runs_out_keeps_it_going),
        cmocka_unit_test(paused_ranks_go_on_when_the_last_one_is_let),
        cmocka_unit_test(aborts_and_engines_that_end_leave_nothing_behind),
    };
    struct CMUnitTest tests[VT_COUNT(ends) + VT_COUNT(intervals) + VT_COUNT(pauses) +
                            VT_COUNT(single)];
    size_t n = 0;

    ROWS(ends, wave_ends);
    ROWS(intervals, prefills_wait);
    ROWS(pauses, pause_at_rest);
    for (size_t i = 0; i < VT_COUNT(single); i++)
        tests[n++] = single[i];
    return cmocka_run_group_tests_name("ranks", tests, NULL, NULL);
}
