/* The step pipeline on its time axis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <time.h>

#include <cmocka.h>

#include "core/sched/sched.h"
#include "engine_testing.h"

/* ---- a model with round numbers --------------------------------------- */

/* A prompt token costs 1 us, a decode 10 us, a step 100 us. Steps of more than 64
 * tokens are launched kernel by kernel, which takes the host 500 us. */
static void toy_step(const struct vt_latency *m, const struct vt_step_shape *s,
                     struct vt_step_cost *cost)
{
    uint32_t tokens = s->plan->prefill_tokens + s->plan->decode_tokens;

    (void)m;
    cost->gpu_us = 100 + s->plan->prefill_tokens + 10.0 * s->plan->n_decodes;
    cost->launch_us = tokens > 64 ? 500 : 0;
    cost->tail_us = tokens > 64 ? 5 : 0;
}

static const struct vt_latency_ops toy_ops = {.name = "toy", .step = toy_step};
static const struct vt_latency toy = {.ops = &toy_ops};

static struct vt_engine *open_engine_with(const struct vt_latency *m, bool async)
{
    struct vt_engine_config c;
    struct vt_engine *e;

    vt_engine_config_init(&c);
    c.async_scheduling = async;
    c.num_gpu_blocks = 100;
    c.max_model_len = 1024;
    assert_int_equal(vt_engine_new(&e, &c, m, NULL), VT_OK);
    return e;
}

static struct vt_engine *open_engine(bool async)
{
    return open_engine_with(&toy, async);
}

/* Runs until `tag` has its k-th token (from 0) and returns when that was, in us. */
static double token_us(struct vt_engine *e, uint64_t tag, uint32_t k)
{
    for (;;) {
        vt_ns due = vt_engine_due(e);
        const struct vt_step *done;

        assert_true(due != VT_NEVER);
        assert_int_equal(vt_engine_step(e, due, &done, NULL), VT_OK);
        for (uint32_t i = 0; done != NULL && i < done->n_rows; i++)
            if (done->row[i].tag == tag && done->row[i].first_index == k)
                return (double)done->row[i].at / VT_US;
    }
}

static void a_lone_request_decodes_back_to_back(void **state)
{
    struct vt_engine *e = open_engine(*(bool *)*state);

    add_request(e, 0, 1, 50, 4);
    assert_float_equal(token_us(e, 1, 0), 150, 1e-9);
    assert_float_equal(token_us(e, 1, 1), 260, 1e-9);
    assert_float_equal(token_us(e, 1, 2), 370, 1e-9);
    assert_float_equal(token_us(e, 1, 3), 480, 1e-9);
    while (vt_engine_due(e) != VT_NEVER) {
        const struct vt_step *done;

        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, NULL), VT_OK);
    }
    assert_int_equal(vt_sched_free_blocks(vt_engine_sched(e)), 99);
    vt_engine_free(e);
}

static void synchronous_scheduling_lets_an_arrival_join_the_next_step(void **state)
{
    struct vt_engine *e = open_engine(false);

    (void)state;
    add_request(e, 0, 1, 50, 10);
    assert_float_equal(token_us(e, 1, 0), 150, 1e-9);
    /* step 1 runs from 150 to 260 */
    (void)token_us(e, 1, 1);
    add_request(e, 255 * VT_US, 2, 20, 2);
    /* scheduled at 260 with one decode: 100 + 20 + 10 */
    assert_float_equal(token_us(e, 2, 0), 390, 1e-9);
    vt_engine_free(e);
}

static void asynchronous_scheduling_makes_it_wait_one_step_more(void **state)
{
    struct vt_engine *e = open_engine(true);

    (void)state;
    add_request(e, 0, 1, 50, 10);
    assert_float_equal(token_us(e, 1, 0), 150, 1e-9);
    /* At 150 the step of 150..260 was already in flight and 260..370 is scheduled. */
    add_request(e, 155 * VT_US, 2, 20, 2);
    /* so it is scheduled at 260 and runs from 370 */
    assert_float_equal(token_us(e, 2, 0), 500, 1e-9);
    vt_engine_free(e);
}

/* ---- the way into the queue -------------------------------------------- */

static double ten_us(const struct vt_latency *m, uint32_t prompt_tokens)
{
    (void)m;
    (void)prompt_tokens;
    return 10;
}

static const struct vt_latency_ops way_ops = {
    .name = "way", .step = toy_step, .arrival_us = ten_us};

static const struct way_row {
    const char *name;
    struct vt_latency m;
    double came[3];     /* requests of 20 tokens, us */
    double first_at[3]; /* their first tokens: of 1, 2 or 3 together, 120 to 160 us */
} way_rows[] = {
    {"the first goes alone", {.ops = &way_ops}, {0, 1, 2}, {130, 270, 270}},
    {"an engine at rest wakes up and takes those who have come",
     {.ops = &way_ops, .wake_us = 30},
     {0, 20, 31},
     {180, 180, 300}},
    {"one input thread takes one after the other",
     {.ops = &way_ops, .intake_us = 20, .wake_us = 30},
     {0, 0, 0},
     {200, 200, 320}},
    {"and longer for long prompts",
     {.ops = &way_ops, .intake_us = 20, .intake_ktoken_us = 1000, .wake_us = 30},
     {0, 0, 0},
     {200, 340, 340}},
};

static void requests_come_into_the_queue_one_by_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(way_rows); i++) {
        const struct way_row *r = &way_rows[i];
        struct vt_engine *e = open_engine_with(&r->m, true);
        double at = 0;

        for (uint64_t k = 0; k < 3; k++)
            add_request(e, (vt_ns)(r->came[k] * VT_US), k, 20, 1);
        for (uint64_t k = 0; k < 3; k++) {
            if (k == 0 || r->first_at[k] > at) /* else it came with the one before */
                at = token_us(e, k, 0);
            if (fabs(at - r->first_at[k]) > 1e-9)
                fail_msg("%s: %g, not %g", r->name, at, r->first_at[k]);
        }
        vt_engine_free(e);
    }
}

static void a_request_that_ends_takes_the_host_longer(void **state)
{
    static const struct vt_latency m = {.ops = &toy_ops, .end_us = 40};
    struct vt_engine *e = open_engine_with(&m, true);

    (void)state;
    add_request(e, 0, 1, 20, 2);
    assert_float_equal(token_us(e, 1, 0), 120, 1e-9);
    assert_float_equal(token_us(e, 1, 1), 270, 1e-9);
    vt_engine_free(e);
}

static void a_loop_that_had_nothing_to_schedule_takes_a_nap(void **state)
{
    static const struct vt_latency m = {.ops = &toy_ops, .wake_us = 30, .nap_us = 200};
    static const double came[] = {150, 359, 361}, first[] = {480, 480, 511};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(came); i++) {
        struct vt_engine *e = open_engine_with(&m, true);

        add_request(e, 10 * VT_US, 1, 20, 1);
        assert_float_equal(token_us(e, 1, 0), 160, 1e-9);
        /* While its only request was under way there was nothing else to schedule:
         * asleep until 360, or at rest from then on. */
        add_request(e, (vt_ns)(came[i] * VT_US), 2, 20, 1);
        assert_float_equal(token_us(e, 2, 0), first[i], 1e-9);
        vt_engine_free(e);
    }
}

static void a_long_launch_delays_the_result_of_the_step_before_it(void **state)
{
    struct vt_engine *e = open_engine(true);

    (void)state;
    add_request(e, 0, 1, 50, 10);
    assert_float_equal(token_us(e, 1, 1), 260, 1e-9);
    /* Scheduled at 370 while the step of 370..480 is in flight. The launch returns at
     * 870; only then is the result of 480 read. The GPU would be done at 480 + 410,
     * after the launch's tail. */
    add_request(e, 300 * VT_US, 2, 300, 2);
    assert_float_equal(token_us(e, 1, 2), 370, 1e-9);
    assert_float_equal(token_us(e, 1, 3), 870, 1e-9);
    assert_float_equal(token_us(e, 2, 0), 890, 1e-9);
    vt_engine_free(e);
}

/* A token costs 10 us; nothing takes the host any time. */
static void slow_step(const struct vt_latency *m, const struct vt_step_shape *s,
                      struct vt_step_cost *cost)
{
    (void)m;
    cost->gpu_us = 10.0 * (s->plan->prefill_tokens + s->plan->decode_tokens);
}

/* Prompts of 50 tokens within a budget of 100: steps of 2 requests, of 4 (two that
 * decode, one and a piece), of 5 and so on, 1000 us each. */
static const struct new_row {
    const char *name;
    bool holds_new;
    uint32_t warmed_for;
    uint32_t n;      /* requests */
    double first[6]; /* when the first token of requests 0, 2, 3, .. comes, us */
} new_rows[] = {
    {"an engine that has served for long", true, 0, 6, {1000, 2000, 3000}},
    {"another model", false, 1, 6, {1000, 2000, 3000}},
    {"all is new: each result waits for the next step", true, 1, 6, {2000, 3000, 3000}},
    {"two requests were there before", true, 2, 6, {2000, 3000, 3000}},
    {"and four", true, 4, 6, {1000, 3000, 3000}},
    {"the budget is not used up", true, 2, 3, {1000, 1520}},
};

static void a_full_step_of_more_requests_than_ever_holds_the_host(void **state)
{
    static const struct vt_latency_ops slow_ops = {.name = "slow", .step = slow_step};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(new_rows); i++) {
        const struct new_row *r = &new_rows[i];
        struct vt_latency m = {.ops = &slow_ops, .holds_new = r->holds_new};
        struct vt_engine_config c;
        struct vt_engine *e;

        vt_engine_config_init(&c);
        c.num_gpu_blocks = 100;
        c.max_model_len = 1024;
        c.max_num_batched_tokens = 100;
        c.warmed_for = r->warmed_for;
        assert_int_equal(vt_engine_new(&e, &c, &m, NULL), VT_OK);
        for (uint64_t k = 0; k < r->n; k++)
            add_request(e, 0, k, 50, 20);
        for (uint64_t k = 0; k < 6 && r->first[k] > 0; k++) {
            double at = token_us(e, k == 0 ? 0 : k + 1, 0);

            if (fabs(at - r->first[k]) > 1e-9)
                fail_msg("%s: %g, not %g", r->name, at, r->first[k]);
        }
        vt_engine_free(e);
    }
}

static void a_step_ends_no_sooner_than_its_launch_lets_it(void **state)
{
    struct vt_engine *e = open_engine(true);

    (void)state;
    add_request(e, 0, 1, 50, 10);
    assert_float_equal(token_us(e, 1, 1), 260, 1e-9);
    add_request(e, 300 * VT_US, 2, 70, 2); /* 180 us of work from 480 on */
    assert_float_equal(token_us(e, 1, 3), 870, 1e-9);
    assert_float_equal(token_us(e, 2, 0), 875, 1e-9);
    vt_engine_free(e);
}

static void an_aborted_request_frees_its_blocks_and_says_nothing_more(void **state)
{
    struct vt_engine *e = open_engine(*(bool *)*state);
    const struct vt_step *done;

    add_request(e, 0, 1, 50, 100);
    add_request(e, 0, 2, 50, 3);
    (void)token_us(e, 1, 0);
    assert_int_equal(vt_engine_abort(e, 0, 1), VT_OK);
    assert_int_equal(vt_engine_abort(e, 0, 1), VT_ECHECK);
    while (vt_engine_due(e) != VT_NEVER) {
        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, NULL), VT_OK);
        for (uint32_t i = 0; done != NULL && i < done->n_rows; i++)
            assert_int_equal(done->row[i].tag, 2);
    }
    assert_int_equal(vt_sched_free_blocks(vt_engine_sched(e)), 99);
    vt_engine_free(e);
}

static void a_request_aborted_before_it_is_schedulable_never_runs(void **state)
{
    struct vt_engine *e = open_engine(true);
    const struct vt_step *done;

    (void)state;
    add_request(e, 50, 1, 50, 100);
    assert_int_equal(vt_engine_abort(e, 0, 1), VT_OK);
    while (vt_engine_due(e) != VT_NEVER) {
        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, NULL), VT_OK);
        assert_true(done == NULL || done->n_rows == 0);
    }
    vt_engine_free(e);
}

/* In an order of its own, so that none is next to the one before. */
static void abort_all(struct vt_engine *e, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(vt_engine_abort(e, 0, 1 + i * 7919 % n), VT_OK);
    assert_int_equal(vt_engine_abort(e, 0, 1), VT_ECHECK);
}

static void run_dry(struct vt_engine *e)
{
    const struct vt_step *done;

    while (vt_engine_due(e) != VT_NEVER)
        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, NULL), VT_OK);
}

/* Were each one sought among all, this would take a minute. */
static void many_are_aborted_as_quickly_as_they_came(void **state)
{
    enum { N = 200000 };
    struct vt_engine *e = open_engine(true);
    clock_t began = clock();
    bool queued = *(bool *)*state; /* else they are still arriving */

    for (uint64_t tag = 1; tag <= N; tag++)
        add_request(e, queued ? 0 : VT_SEC, tag, 5, 3);
    if (queued)
        (void)token_us(e, 1, 0);
    abort_all(e, N);
    run_dry(e);
    assert_true(clock() - began < 10 * CLOCKS_PER_SEC);
    assert_int_equal(vt_sched_free_blocks(vt_engine_sched(e)), 99);
    vt_engine_free(e);
}

static void tables_shrink_when_a_crowd_has_gone(void **state)
{
    enum { N = 20000 };
    struct vt_engine *e = open_engine(true);
    struct vt_sched *s = vt_engine_sched(e);

    (void)state;
    add_request(e, 0, N + 1, 5, 900); /* one that stays */
    (void)token_us(e, N + 1, 0);
    for (uint64_t tag = 1; tag <= N; tag++)
        add_request(e, 0, tag, 5, 900);
    (void)token_us(e, N + 1, 10);
    assert_true(s->cap_slots >= N && s->by_tag.mask >= N);
    abort_all(e, N);
    (void)token_us(e, N + 1, 20); /* while two steps with aborted ones are in flight */
    assert_true(s->cap_slots <= 4096 && s->seats.n <= 1024);
    assert_true(s->by_tag.mask < 4096);
    assert_int_equal(s->seats.n_taken, 1);
    /* It goes on, and others come again. */
    for (uint64_t tag = 1; tag <= 3000; tag++)
        add_request(e, 0, tag, 5, 2);
    (void)token_us(e, 3000, 1);
    run_dry(e);
    assert_int_equal(vt_sched_free_blocks(s), 99);
    vt_engine_free(e);
}

static void an_arrival_that_was_aborted_makes_no_step(void **state)
{
    struct vt_engine *e = open_engine(true);

    (void)state;
    add_request(e, 10 * VT_US, 1, 5, 3);
    add_request(e, 20 * VT_US, 2, 5, 3);
    add_request(e, 30 * VT_US, 3, 5, 3);
    assert_int_equal(vt_engine_state(e, VT_MS).waiting, 3);
    assert_int_equal(vt_engine_abort(e, 0, 2), VT_OK);
    assert_int_equal(vt_engine_state(e, VT_MS).waiting, 2);
    assert_int_equal(vt_engine_abort(e, 0, 1), VT_OK);
    assert_int_equal(vt_engine_state(e, VT_MS).waiting, 1);
    add_request(e, 40 * VT_US, 4, 5, 3); /* into a place that has become free */
    assert_int_equal(vt_engine_abort(e, 0, 3), VT_OK);
    assert_int_equal(vt_engine_abort(e, 0, 4), VT_OK);
    assert_int_equal(vt_engine_state(e, VT_MS).waiting, 0);
    run_dry(e);
    assert_int_equal(vt_engine_totals(e).steps, 0);
    vt_engine_free(e);
}

static void an_engine_that_was_paused_goes_on_from_the_time_of_resuming(void **state)
{
    struct vt_engine *e = open_engine(*(bool *)*state);
    const struct vt_step *done;

    add_request(e, 0, 1, 50, 100);
    (void)token_us(e, 1, 0);
    assert_int_equal(vt_engine_pause(e, VT_MS, VT_PAUSE_ALL), VT_OK);
    while (vt_engine_due(e) != VT_NEVER)
        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, NULL), VT_OK);
    assert_int_equal(vt_engine_pause(e, VT_SEC, VT_RUN), VT_OK);
    assert_true(vt_engine_due(e) >= VT_SEC);
    assert_true(token_us(e, 1, 5) > 1e6);
    vt_engine_free(e);
}

static void what_blis_has_no_rule_for_is_an_error(void **state)
{
    struct vt_engine_config c;
    struct vt_engine *e;
    const uint64_t *tags;
    uint32_t n;

    (void)state;
    vt_engine_config_init(&c);
    c.compat = VT_COMPAT_BLIS;
    assert_int_equal(vt_engine_new(&e, &c, &toy, NULL), VT_OK);
    add_request(e, 0, 1, 50, 4);
    assert_int_equal(vt_engine_abort(e, 0, 1), VT_OK);
    assert_int_equal(vt_engine_abort(e, 0, 1), VT_ECHECK);
    assert_int_equal(vt_engine_due(e), VT_NEVER);
    assert_int_equal(vt_engine_pause(e, 0, VT_PAUSE_ALL), VT_EINPUT);
    assert_int_equal(vt_engine_clear_cache(e, 0, true, &tags, &n), VT_EINPUT);
    assert_null(vt_engine_sched(e));
    vt_engine_free(e);
}

static void a_reset_of_the_cache_preempts_only_if_told_to(void **state)
{
    struct vt_engine *e = open_engine(false);
    const uint64_t *tags;
    uint32_t n;

    (void)state;
    add_request(e, 0, 7, 50, 100);
    (void)token_us(e, 7, 3);
    assert_int_equal(vt_engine_clear_cache(e, VT_MS, false, &tags, &n), VT_ECHECK);
    assert_int_equal(n, 0);
    assert_int_equal(vt_engine_clear_cache(e, VT_MS, true, &tags, &n), VT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(tags[0], 7);
    (void)token_us(e, 7, 99);
    vt_engine_free(e);
}

/* ---- tokens that are really there ------------------------------------- */

struct text { /* a prompt's tokens, then the output's */
    uint32_t token[64];
};

static uint64_t key_of_text(void *tokens, uint32_t j, uint64_t parent)
{
    struct text *t = tokens;

    return vt_hash_bytes(t->token + 16 * j, 16 * sizeof(uint32_t), parent);
}

static void add_text(struct vt_engine *e, uint64_t tag, struct text *t, uint32_t prompt,
                     uint32_t output)
{
    struct vt_request r = {
        .tag = tag,
        .prompt_tokens = prompt,
        .max_tokens = output,
        .eos_at = VT_NO_STOP,
        .stop_at = VT_NO_STOP,
        .block_key = key_of_text,
        .tokens = t,
    };

    assert_int_equal(vt_engine_add(e, 0, &r, NULL), VT_OK);
}

static uint32_t cached_of(struct vt_engine *e, uint64_t tag)
{
    const struct vt_step *done;

    for (;;) {
        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, NULL), VT_OK);
        for (uint32_t i = 0; done != NULL && i < done->n_first; i++)
            if (done->first[i].tag == tag)
                return done->first[i].cached_tokens;
    }
}

static void a_prompt_hits_what_another_request_has_put_out(void **state)
{
    struct vt_engine *e = open_engine(false);
    struct text first, other;

    (void)state;
    for (uint32_t i = 0; i < 64; i++)
        other.token[i] = first.token[i] = 3 * i;
    other.token[50]++;
    add_text(e, 1, &first, 20, 44);
    (void)token_us(e, 1, 43);
    add_text(e, 2, &first, 60, 1);
    assert_int_equal(cached_of(e, 2), 48);
    add_text(e, 3, &other, 64, 1);
    assert_int_equal(cached_of(e, 3), 48);
    first.token[3]++;
    add_text(e, 4, &first, 60, 1);
    assert_int_equal(cached_of(e, 4), 0);
    vt_engine_free(e);
}

/* ---- one core, two clocks --------------------------------------------- */

struct seen {
    uint64_t tag;
    vt_ns at;
    uint32_t index;
};

/* A driver that looks at the clock every `period`: 0 jumps from event to event. */
static size_t drive(bool async, vt_ns period, struct seen *out, size_t max)
{
    enum { REQUESTS = 60 };
    struct vt_engine *e = open_engine(async);
    struct vt_rng r;
    vt_ns arrival[REQUESTS], now = 0;
    uint32_t prompt[REQUESTS], output[REQUESTS];
    size_t next = 0, n = 0;

    vt_rng_init(&r, 3, "drive");
    for (size_t i = 0; i < REQUESTS; i++) {
        arrival[i] =
            (i > 0 ? arrival[i - 1] : 0) + (vt_ns)vt_rng_below(&r, 400 * VT_US);
        prompt[i] = 1 + (uint32_t)vt_rng_below(&r, 150);
        output[i] = 1 + (uint32_t)vt_rng_below(&r, 30);
    }
    for (;;) {
        vt_ns due = vt_engine_due(e),
              first = next < REQUESTS ? arrival[next] : VT_NEVER;

        if (due == VT_NEVER && first == VT_NEVER)
            break;
        now = period > 0 ? now + period : first <= due ? first : due;
        for (; next < REQUESTS && arrival[next] <= now; next++)
            add_request(e, arrival[next], next, prompt[next], output[next]);
        while (vt_engine_due(e) <= now && vt_engine_due(e) != VT_NEVER) {
            const struct vt_step *done;

            assert_int_equal(vt_engine_step(e, now, &done, NULL), VT_OK);
            for (uint32_t i = 0; done != NULL && i < done->n_rows; i++) {
                assert_true(n < max);
                out[n++] = (struct seen){done->row[i].tag, done->row[i].at,
                                         done->row[i].first_index};
            }
            if (period == 0)
                break;
        }
    }
    vt_engine_free(e);
    return n;
}

static void a_late_driver_gets_the_same_rows_at_the_same_times(void **state)
{
    static struct seen jumped[4096], polled[4096];
    const vt_ns periods[] = {10 * VT_US, 333 * VT_US, 5 * VT_MS};
    bool async = *(bool *)*state;
    size_t n = drive(async, 0, jumped, VT_COUNT(jumped));

    assert_true(n > 500);
    for (size_t k = 0; k < VT_COUNT(periods); k++) {
        assert_int_equal(drive(async, periods[k], polled, VT_COUNT(polled)), n);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(polled[i].tag, jumped[i].tag);
            assert_int_equal(polled[i].at, jumped[i].at);
            assert_int_equal(polled[i].index, jumped[i].index);
        }
    }
}

/* ---- limits ----------------------------------------------------------- */

static struct refusal {
    const char *name;
    struct vt_request r;
    const char *want;
} refusals[] = {
    {"a prompt longer than the model's limit is refused",
     {.prompt_tokens = 1024, .max_tokens = 1},
     "its prompt of 1024 tokens leaves no room for output in max-model-len 1024"},
    {"an empty prompt is refused", {.max_tokens = 1}, "the prompt is empty"},
    {"a request for no output is refused",
     {.prompt_tokens = 1},
     "it asks for no output"},
};

static void is_refused(void **state)
{
    const struct refusal *x = *state;
    struct vt_engine *e = open_engine(true);
    struct vt_err err = {0};

    assert_int_equal(vt_engine_add(e, 0, &x->r, &err), VT_EINPUT);
    assert_string_equal(err.msg, x->want);
    assert_true(vt_engine_due(e) == VT_NEVER);
    vt_engine_free(e);
}

static void a_request_larger_than_the_kv_cache_is_refused(void **state)
{
    struct vt_engine_config c;
    struct vt_request r = {.prompt_tokens = 100, .max_tokens = 100};
    struct vt_err err = {0};

    (void)state;
    vt_engine_config_init(&c);
    c.num_gpu_blocks = 13; /* 12 to use: 192 tokens */
    assert_int_equal(vt_request_check(&c, &r, &err), VT_EINPUT);
    assert_string_equal(err.msg, "it needs 13 KV blocks for 200 tokens, but the engine "
                                 "has 12 (num-gpu-blocks 13)");
    r.max_tokens = 92;
    assert_int_equal(vt_request_check(&c, &r, &err), VT_OK);
}

static void settings_out_of_range_are_refused_by_name(void **state)
{
    struct vt_engine_config c;
    struct vt_err err = {0};

    (void)state;
    vt_engine_config_init(&c);
    c.num_gpu_blocks = 0;
    assert_int_equal(vt_engine_config_check(&c, &err), VT_EINPUT);
    assert_string_equal(err.msg, "num-gpu-blocks is 0, must be 2 to 33554432");
    vt_engine_config_init(&c);
    c.watermark = 1.5;
    assert_int_equal(vt_engine_config_check(&c, &err), VT_EINPUT);
    assert_string_equal(err.msg, "watermark is 1.5, must be 0 to 1");
    vt_engine_config_init(&c);
    c.num_spec_tokens = 2;
    c.n_kv_groups = 1;
    c.kv_group[0] = (struct vt_kv_group){.type = VT_ATTENTION_MAMBA, .block_size = 16};
    assert_int_equal(vt_engine_config_check(&c, &err), VT_EINPUT);
    assert_string_equal(err.msg,
                        "drafts for a model whose layers have states are not modelled");
}

int main(void)
{
    static bool sync = false, async = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_lone_request_decodes_back_to_back, &sync),
        cmocka_unit_test_prestate(a_lone_request_decodes_back_to_back, &async),
        cmocka_unit_test(synchronous_scheduling_lets_an_arrival_join_the_next_step),
        cmocka_unit_test(asynchronous_scheduling_makes_it_wait_one_step_more),
        cmocka_unit_test(requests_come_into_the_queue_one_by_one),
        cmocka_unit_test(a_request_that_ends_takes_the_host_longer),
        cmocka_unit_test(a_loop_that_had_nothing_to_schedule_takes_a_nap),
        cmocka_unit_test(a_long_launch_delays_the_result_of_the_step_before_it),
        cmocka_unit_test(a_full_step_of_more_requests_than_ever_holds_the_host),
        cmocka_unit_test(a_step_ends_no_sooner_than_its_launch_lets_it),
        cmocka_unit_test_prestate(
            an_aborted_request_frees_its_blocks_and_says_nothing_more, &sync),
        cmocka_unit_test_prestate(
            an_aborted_request_frees_its_blocks_and_says_nothing_more, &async),
        cmocka_unit_test(a_request_aborted_before_it_is_schedulable_never_runs),
        cmocka_unit_test(an_arrival_that_was_aborted_makes_no_step),
        cmocka_unit_test_prestate(many_are_aborted_as_quickly_as_they_came, &sync),
        cmocka_unit_test_prestate(many_are_aborted_as_quickly_as_they_came, &async),
        cmocka_unit_test(tables_shrink_when_a_crowd_has_gone),
        cmocka_unit_test_prestate(
            an_engine_that_was_paused_goes_on_from_the_time_of_resuming, &sync),
        cmocka_unit_test_prestate(
            an_engine_that_was_paused_goes_on_from_the_time_of_resuming, &async),
        cmocka_unit_test(what_blis_has_no_rule_for_is_an_error),
        cmocka_unit_test(a_reset_of_the_cache_preempts_only_if_told_to),
        cmocka_unit_test(a_prompt_hits_what_another_request_has_put_out),
        cmocka_unit_test_prestate(a_late_driver_gets_the_same_rows_at_the_same_times,
                                  &sync),
        cmocka_unit_test_prestate(a_late_driver_gets_the_same_rows_at_the_same_times,
                                  &async),
        {refusals[0].name, is_refused, NULL, NULL, &refusals[0]},
        {refusals[1].name, is_refused, NULL, NULL, &refusals[1]},
        {refusals[2].name, is_refused, NULL, NULL, &refusals[2]},
        cmocka_unit_test(a_request_larger_than_the_kv_cache_is_refused),
        cmocka_unit_test(settings_out_of_range_are_refused_by_name),
    };

    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
