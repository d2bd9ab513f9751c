/* When ranks in lockstep make passes and when they rest, release by release. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/wave.h"

static struct wave wave_of(uint32_t vllm, uint32_t interval)
{
    struct vt_engine_config c;
    struct wave w;

    vt_engine_config_init(&c);
    c.vllm = vllm;
    c.dp_sync_interval = interval;
    wave_init(&w, &c);
    return w;
}

/* ---- agreements ------------------------------------------------------- */

static struct agreements {
    const char *name;
    uint32_t vllm, interval;
    uint32_t at[4]; /* the first passes of a wave that end with one */
} agreements[] = {
    {"0.26 agrees at every 32nd pass", 26, 0, {32, 64, 96, 128}},
    {"0.29 agrees at every 32nd pass", 29, 0, {32, 64, 96, 128}},
    {"0.29 has no interval to set", 29, 4, {32, 64, 96, 128}},
    {"0.30 agrees at the first and every 16th pass", 30, 0, {1, 16, 32, 48}},
    {"0.32 agrees at the first and every 16th pass", 32, 0, {1, 16, 32, 48}},
    {"an interval of 5 counts from the wave's start", 32, 5, {1, 5, 10, 15}},
    {"an interval of 1 agrees at every pass", 31, 1, {1, 2, 3, 4}},
};

static void agrees_at(void **state)
{
    const struct agreements *r = *state;
    struct wave w = wave_of(r->vllm, r->interval);
    uint32_t n = 0;

    for (uint32_t pass = 1; pass <= r->at[3]; pass++) {
        bool wanted = pass == r->at[n];

        assert_int_equal(wave_pass(&w), wanted);
        assert_true(w.running);
        n += wanted;
    }
    assert_int_equal(n, 4);
}

/* ---- what an agreement says ------------------------------------------- */

static struct votes {
    const char *name;
    struct wave_votes v;
    bool running, deaf, pausing; /* of a rank that voted to pause, if any did */
} votes[] = {
    {"a wave goes on while one rank has requests", {4, 1, 0}, true, false, false},
    {"a wave ends when no rank has any", {4, 0, 0}, false, false, false},
    {"one rank that wants to pause keeps all going", {4, 0, 1}, true, false, true},
    {"three of four that want to keep all going", {4, 0, 3}, true, false, true},
    {"all want to pause: the wave ends", {4, 0, 4}, false, true, false},
    {"all want to, but requests still run", {4, 2, 4}, true, true, false},
};

static void agreement_says(void **state)
{
    const struct votes *r = *state;
    struct wave w = wave_of(32, 0);

    (void)wave_pass(&w);
    w.pausing = r->v.pausing > 0;
    wave_agree(&w, &r->v);
    assert_int_equal(w.running, r->running);
    assert_int_equal(w.deaf, r->deaf);
    assert_int_equal(w.pausing, r->pausing);
    assert_int_equal(w.pass, r->running ? 1 : 0);
    assert_int_equal(w.number, r->running ? 0 : 1);
}

/* ---- dummies ---------------------------------------------------------- */

static struct dummies {
    const char *name;
    bool running, unfinished, wanted;
} dummies[] = {
    {"at rest there are no dummy passes", false, false, false},
    {"a rank without requests makes them while a wave lasts", true, false, true},
    {"so does one whose requests could not be scheduled", true, true, true},
    {"and one that does not know of a wave yet", false, true, true},
};

static void needs_dummy(void **state)
{
    const struct dummies *r = *state;
    struct wave w = wave_of(26, 0);

    w.running = r->running;
    assert_int_equal(wave_needs_dummy(&w, r->unfinished), r->wanted);
}

/* ---- starts, throttling, pauses --------------------------------------- */

static void prefills_are_held_back_but_in_every_nth_pass_of_a_wave(void **state)
{
    const struct wave_votes none = {2, 0, 0};
    struct wave w = wave_of(32, 5);

    (void)state;
    for (uint32_t pass = 0; pass < 5; pass++) {
        assert_false(wave_throttles(&w, 1));
        assert_int_equal(wave_throttles(&w, 3), pass % 3 != 0);
        (void)wave_pass(&w);
    }
    assert_true(wave_throttles(&w, 3));
    wave_agree(&w, &none); /* a fresh wave admits at once */
    assert_false(wave_throttles(&w, 3));
}

static void a_start_of_an_older_wave_is_ignored(void **state)
{
    struct wave w = wave_of(26, 0);

    (void)state;
    w.number = 3;
    wave_start(&w, 2);
    assert_false(w.running);
    wave_start(&w, 4);
    assert_true(w.running);
    assert_int_equal(w.number, 4);
}

static void a_pause_takes_all_ranks_and_is_over_when_resumed(void **state)
{
    const struct wave_votes all = {2, 0, 2};
    struct wave w = wave_of(32, 0);

    (void)state;
    wave_pause(&w);
    assert_true(w.running); /* even at rest: the others must learn of it */
    assert_false(wave_resume(&w));
    assert_true(wave_pass(&w)); /* 0.30 and later: one dummy is enough */
    wave_agree(&w, &all);
    wave_start(&w, w.number);
    assert_false(w.running);
    assert_true(wave_resume(&w));
    wave_start(&w, w.number);
    assert_true(w.running);
}

#define ROWS(rows, test)                                                              \
    for (size_t i = 0; i < VT_COUNT(rows); i++)                                       \
        tests[n++] = (struct CMUnitTest)                                              \
        {                                                                             \
            .name = (rows)[i].name, .test_func = (test), .initial_state = &(rows)[i], \
        }

int main(void)
{
    const struct CMUnitTest single[] = {
        cmocka_unit_test(prefills_are_held_back_but_in_every_nth_pass_of_a_wave),
        cmocka_unit_test(a_start_of_an_older_wave_is_ignored),
        cmocka_unit_test(a_pause_takes_all_ranks_and_is_over_when_resumed),
    };
    struct CMUnitTest tests[VT_COUNT(agreements) + VT_COUNT(votes) + VT_COUNT(dummies) +
                            VT_COUNT(single)];
    size_t n = 0;

    ROWS(agreements, agrees_at);
    ROWS(votes, agreement_says);
    ROWS(dummies, needs_dummy);
    for (size_t i = 0; i < VT_COUNT(single); i++)
        tests[n++] = single[i];
    return cmocka_run_group_tests_name("wave", tests, NULL, NULL);
}
