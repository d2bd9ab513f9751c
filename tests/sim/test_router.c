/* Whom a router chooses, on states made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"
#include "sim/fleet/parts.h"

enum { N = 4 };

static const uint32_t all[N] = {0, 1, 2, 3};

static struct router *open_balancer(const char *routing, uint32_t vllm, bool lockstep)
{
    struct router_config c = {.routing = routing,
                              .n_instances = N,
                              .n_sessions = 8,
                              .seed = 1,
                              .vllm = vllm,
                              .lockstep = lockstep};
    struct router *r;
    struct vt_err err = {0};

    if (router_new(&r, &c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return r;
}

static struct router *open_router(const char *routing)
{
    return open_balancer(routing, VT_VLLM_NEWEST, false);
}

/* Fills in what follows from the rest. */
static uint32_t pick(struct router *r, struct ask a)
{
    static uint64_t look;
    uint32_t place[N] = {NO_PLACE, NO_PLACE, NO_PLACE, NO_PLACE}, hit[N], i;

    for (uint32_t k = 0; k < a.n; k++) {
        place[a.candidate[k]] = k;
        if (a.seen[a.candidate[k]].cached > 0)
            hit[a.n_hits++] = k;
    }
    a.place = place;
    a.hit = hit;
    a.look = look++;
    assert_int_equal(router_pick(r, &a, &i, NULL), VT_OK);
    return i;
}

/* ---- one decision ------------------------------------------------------ */

static struct row {
    const char *name, *routing;
    struct seen seen[N]; /* waiting, running, kv_usage, in_flight, cached */
    unsigned may;        /* a bit for each instance that may be chosen */
} rows[] = {
    {"least-loaded adds up queue, batch and flight",
     "least-loaded",
     {{2, 2, 0, 2, 0}, {0, 3, 0, 2, 0}, {5, 0, 0, 5, 0}, {0, 9, 0, 0, 0}},
     1u << 1},
    {"least-loaded draws among equals",
     "least-loaded",
     {{1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {0, 0, 0, 1, 0}, {3, 0, 0, 0, 0}},
     7},
    {"always-busiest is its opposite",
     "always-busiest",
     {{2, 2, 0, 2, 0}, {0, 3, 0, 2, 0}, {5, 0, 0, 5, 0}, {0, 9, 0, 0, 0}},
     1u << 2},
    {"queue-depth looks at the queue only",
     "queue-depth",
     {{3, 0, 0, 0, 0}, {1, 99, 1, 99, 0}, {2, 0, 0, 0, 0}, {9, 0, 0, 0, 0}},
     1u << 1},
    {"queue-depth: all are as good when equal",
     "queue-depth",
     {{3, 0, 0, 0, 0}, {3, 9, 0, 0, 0}, {3, 0, 1, 0, 0}, {3, 0, 0, 7, 0}},
     15},
    {"running-requests looks at the batch only",
     "running-requests",
     {{0, 3, 0, 0, 0}, {9, 1, 1, 9, 0}, {0, 2, 0, 0, 0}, {0, 4, 0, 0, 0}},
     1u << 1},
    {"kv-utilization takes the emptiest",
     "kv-utilization",
     {{0, 0, 0.5, 0, 0}, {0, 0, 0.4, 0, 0}, {0, 0, 0.3, 0, 0}, {0, 0, 0.9, 0, 0}},
     1u << 2},
    {"load-balance",
     "load-balance",
     {{.waiting = 1}, {.waiting = 1}, {.waiting = 1}, {.waiting = 0}},
     1u << 3},
    {"active-requests counts what was sent",
     "active-requests",
     {{0, 0, 0, 2, 0}, {9, 9, 0, 1, 0}, {0, 0, 0, 3, 0}, {0, 0, 0, 4, 0}},
     1u << 1},
    {"load-aware is blind beyond 128",
     "load-aware",
     {{.waiting = 128}, {.waiting = 500}, {.waiting = 300}, {.waiting = 129}},
     15},
    {"precise-prefix-cache takes the longest match",
     "precise-prefix-cache",
     {{0, 0, 0, 0, 3}, {9, 9, 1, 9, 7}, {0, 0, 0, 0, 6}, {0, 0, 0, 0, 0}},
     1u << 1},
    /* 0: 2/3 * 1 + 1/3 * 0; 1: 2/3 * 0.5 + 1/3 * 1 ties; 2: 2/3 * 0 + 1/3 * 1. */
    {"a weighted sum ties where it should",
     "precise-prefix-cache:2,queue-depth:1",
     {{10, 0, 0, 0, 8}, {0, 0, 0, 0, 4}, {0, 0, 0, 0, 0}, {10, 0, 0, 0, 0}},
     3},
    /* Halves: 0: 1 + 0, 1: 0.5 + 1, so the queue decides. */
    {"weights decide",
     "precise-prefix-cache:1,queue-depth:1",
     {{10, 0, 0, 0, 8}, {0, 0, 0, 0, 4}, {0, 0, 0, 0, 0}, {10, 0, 0, 0, 0}},
     2},
    /* 2 * cached, queue and 1 - KV use: 0: 2 + 0 + 0.1, 1: 1 + 1 + 0.5. */
    {"weighted is BLIS's default sum",
     "weighted",
     {{4, 0, 0.9, 0, 8}, {0, 0, 0.5, 0, 4}, {0, 0, 0.5, 0, 0}, {4, 0, 0.9, 0, 0}},
     2},
    {"no-hit-lru has no say when somebody has it",
     "no-hit-lru",
     {{0}, {0, 0, 0, 0, 1}, {0}, {0}},
     15},
};

static void decides(void **state)
{
    const struct row *row = *state;
    struct router *r = open_router(row->routing);
    unsigned chosen = 0;

    for (int i = 0; i < 200; i++) {
        struct seen seen[N];

        memcpy(seen, row->seen, sizeof(seen));
        chosen |= 1u << pick(r, (struct ask){.seen = seen,
                                             .candidate = all,
                                             .n = N,
                                             .session = VT_NO_TURN});
    }
    assert_int_equal(chosen, row->may);
    router_free(r);
}

/* ---- vLLM's own balancer, by release ------------------------------------- */

static struct balancer {
    const char *name;
    uint32_t vllm;
    bool lockstep;
    struct seen seen[N]; /* as above */
    unsigned may;
} balancers[] = {
    {"0.26: a waiting one weighs four running",
     26,
     true,
     {{1, 0, 0, 0, 0}, {0, 3, 0, 9, 0}, {2, 0, 0, 0, 0}, {0, 4, 0, 0, 0}},
     1u << 1},
    {"0.26: equals take turns",
     26,
     true,
     {{1, 1, 0, 0, 0}, {0, 4, 0, 0, 0}, {1, 0, 0, 0, 0}, {0, 4, 0, 0, 0}},
     14},
    {"0.26 knows nothing of independent engines",
     26,
     false,
     {{9, 9, 1, 9, 0}, {0, 0, 0, 0, 0}, {5, 0, 0, 0, 0}, {0, 4, 0, 0, 0}},
     15},
    {"0.27 adds up queue and batch",
     27,
     true,
     {{1, 1, 0, 0, 0}, {0, 3, 0, 0, 0}, {2, 1, 0, 0, 0}, {0, 4, 0, 0, 0}},
     1u << 0},
    {"0.27 knows what it has sent",
     27,
     false,
     {{0, 1, 0, 4, 0}, {0, 3, 0, 3, 0}, {0, 0, 0, 5, 0}, {0, 4, 0, 0, 0}},
     1u << 1},
    {"0.32: a queue weighs more above half of the KV cache",
     32,
     true,
     /* 1 + 6 * 0.4 = 3.4, 3, 2 + 2 * 6 * 0.1 = 3.2, 4 */
     {{1, 0, 0.9, 0, 0}, {3, 0, 0.5, 0, 0}, {2, 0, 0.6, 0, 0}, {0, 4, 1, 0, 0}},
     1u << 1},
};

static void balances(void **state)
{
    const struct balancer *row = *state;
    struct router *r = open_balancer("vllm-dp", row->vllm, row->lockstep);
    unsigned chosen = 0;

    for (int i = 0; i < 2 * N; i++) {
        struct seen seen[N];

        memcpy(seen, row->seen, sizeof(seen));
        chosen |= 1u << pick(r, (struct ask){.seen = seen,
                                             .candidate = all,
                                             .n = N,
                                             .session = VT_NO_TURN});
    }
    assert_int_equal(chosen, row->may);
    router_free(r);
}

/* ---- decisions that follow each other ---------------------------------- */

static void round_robin_goes_round_the_candidates(void **state)
{
    static const uint32_t some[] = {1, 3};
    struct router *r = open_router("round-robin");
    struct seen seen[N] = {{0}};
    struct ask a = {.seen = seen, .candidate = all, .n = N, .session = VT_NO_TURN};

    (void)state;
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(pick(r, a), i % N);
    a.pool = POOL_DECODE; /* each pool has a round of its own */
    a.candidate = some;
    a.n = 2;
    assert_int_equal(pick(r, a), 1);
    assert_int_equal(pick(r, a), 3);
    assert_int_equal(pick(r, a), 1);
    router_free(r);
}

static void random_is_even_and_repeats_with_its_seed(void **state)
{
    struct router *r = open_router("random"), *again = open_router("random");
    struct seen seen[N] = {{0}};
    struct ask a = {.seen = seen, .candidate = all, .n = N, .session = VT_NO_TURN};
    uint32_t count[N] = {0};

    (void)state;
    for (uint32_t i = 0; i < 4000; i++) {
        uint32_t k = pick(r, a);

        assert_int_equal(k, pick(again, a));
        count[k]++;
    }
    for (uint32_t i = 0; i < N; i++)
        assert_in_range(count[i], 850, 1150);
    router_free(r);
    router_free(again);
}

/* The busiest loses against any other: it is never chosen. The idlest wins whenever it
 * is one of the two: 1 - C(3,2) / C(4,2) = half of the time. */
static void power_of_two_takes_the_better_of_two(void **state)
{
    struct router *r = open_router("power-of-two");
    struct seen seen[N] = {
        {.waiting = 3}, {.waiting = 2}, {.waiting = 1}, {.waiting = 0}};
    struct ask a = {.seen = seen, .candidate = all, .n = N, .session = VT_NO_TURN};
    uint32_t count[N] = {0};

    (void)state;
    for (uint32_t i = 0; i < 4000; i++)
        count[pick(r, a)]++;
    assert_int_equal(count[0], 0);
    assert_in_range(count[1], 550, 780);   /* a sixth */
    assert_in_range(count[2], 1200, 1470); /* a third */
    assert_in_range(count[3], 1880, 2120);
    router_free(r);
}

static void vllm_dp_counts_what_it_sent_as_waiting(void **state)
{
    struct router *r = open_balancer("vllm-dp", 26, true);
    struct seen seen[N] = {
        {0, 9, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 5, 0, 0, 0}, {.waiting = 9}};
    struct ask a = {.seen = seen, .candidate = all, .n = N, .session = VT_NO_TURN};
    static const uint32_t want[] = {1, 1, 2, 1, 0, 2};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(want); i++)
        assert_int_equal(pick(r, a), want[i]);
    router_free(r);
}

static void prefix_affinity_goes_where_the_prefix_went(void **state)
{
    static const uint64_t one[] = {11, 12, 13}, two[] = {21, 22, 23};
    static const uint64_t longer[] = {11, 12, 13, 14, 15, 16};
    struct router *r = open_router("prefix-affinity");
    struct seen seen[N] = {{0}};
    struct ask a = {.seen = seen, .candidate = all, .n = N, .session = VT_NO_TURN};
    uint32_t first, second;
    unsigned chosen = 0;

    (void)state;
    a.key = one;
    a.n_keys = 3;
    first = pick(r, a);
    a.key = longer; /* half of it went there */
    a.n_keys = 6;
    for (int i = 0; i < 50; i++)
        assert_int_equal(pick(r, a), first);
    a.key = two; /* nobody has it: chance decides, once */
    a.n_keys = 3;
    second = pick(r, a);
    for (int i = 0; i < 50; i++)
        assert_int_equal(pick(r, a), second);
    for (uint64_t k = 0; k < 60; k++) { /* no match by what follows another start */
        uint64_t off[] = {1000 + k, 12, 13};

        a.key = off;
        chosen |= 1u << pick(r, a);
    }
    assert_int_equal(chosen, 15);
    router_free(r);
}

static void a_router_forgets_old_keys_first(void **state)
{
    struct key_lru l = {.cap = 4};
    static const uint64_t a[] = {1, 2, 3}, b[] = {7, 8}, c[] = {1, 9};

    (void)state;
    assert_true(key_lru_note(&l, a, 3));
    assert_int_equal(key_lru_match(&l, a, 3), 3);
    assert_true(key_lru_note(&l, b, 2)); /* the last block of a goes */
    assert_int_equal(key_lru_match(&l, a, 3), 2);
    assert_int_equal(key_lru_match(&l, b, 2), 2);
    assert_true(key_lru_note(&l, c, 2)); /* 1 is newer now; 2 goes */
    assert_int_equal(key_lru_match(&l, a, 3), 1);
    assert_int_equal(key_lru_match(&l, b, 2), 2);
    key_lru_free(&l);
}

static void a_session_stays_where_it_began(void **state)
{
    struct router *r = open_router("session-affinity");
    struct seen seen[N] = {
        {.waiting = 5}, {.waiting = 5}, {.waiting = 0}, {.waiting = 5}};
    struct ask a = {.seen = seen, .candidate = all, .n = N, .session = 3};
    static const uint32_t without[] = {0, 1, 3};

    (void)state;
    assert_int_equal(pick(r, a), 2);
    seen[2].waiting = 99;
    seen[0].waiting = 1;
    assert_int_equal(pick(r, a), 2);
    a.session = 4;
    assert_int_equal(pick(r, a), 0);
    a.session = 3; /* its home is gone: a new one */
    a.candidate = without;
    a.n = 3;
    assert_int_equal(pick(r, a), 0);
    a.candidate = all;
    a.n = N;
    assert_int_equal(pick(r, a), 0);
    router_free(r);
}

static void no_hit_lru_goes_round_by_age(void **state)
{
    struct router *r = open_router("no-hit-lru");
    struct seen seen[N] = {{0}};
    struct ask a = {.seen = seen, .candidate = all, .n = N, .session = VT_NO_TURN};

    (void)state;
    for (uint32_t i = 0; i < 3 * N; i++)
        assert_int_equal(pick(r, a), i % N);
    router_free(r);
}

/* ---- what caches hold, told late ---------------------------------------- */

static void events_are_seen_after_their_delay(void **state)
{
    struct key_view v = {.delay = 50};
    const struct vt_kv_event stored[] = {{.key = 1, .kind = VT_KV_STORED},
                                         {.key = 2, .kind = VT_KV_STORED},
                                         {.key = 2, .kind = VT_KV_STORED}};
    const struct vt_kv_event removed[] = {{.key = 2, .kind = VT_KV_REMOVED}};

    (void)state;
    assert_true(key_view_had(&v, 9, 1)); /* there all along */
    assert_true(key_view_tell(&v, 100, stored, 3));
    assert_true(key_view_see(&v, 149));
    assert_false(key_view_had(&v, 1, 1));
    assert_false(key_view_had(&v, 2, 2));
    assert_true(key_view_had(&v, 2, 3)); /* one of them is older */
    assert_true(key_view_see(&v, 150));
    assert_true(key_view_had(&v, 1, 1));
    assert_true(key_view_had(&v, 2, 2));
    assert_true(key_view_tell(&v, 160, removed, 1));
    assert_true(key_view_tell(&v, 170, removed, 1));
    assert_true(key_view_see(&v, 209));
    assert_true(key_view_had(&v, 2, 0)); /* both gone, but who knows */
    assert_true(key_view_see(&v, 210));
    assert_true(key_view_had(&v, 2, 0));
    assert_true(key_view_see(&v, 220));
    assert_false(key_view_had(&v, 2, 0));
    assert_int_equal(v.late.n, 0);
    key_view_free(&v);
}

static void a_view_is_of_one_group_and_of_what_is_kept(void **state)
{
    struct key_view v = {.delay = 50, .group = 1};
    const struct vt_kv_event e[] = {
        {.key = 1, .kind = VT_KV_STORED, .group = 0},
        {.key = 0, .kind = VT_KV_STORED, .group = 1}, /* told for its tokens */
        {.key = 2, .kind = VT_KV_STORED, .group = 1},
        {.key = 3, .kind = VT_KV_REMOVED, .group = 2},
        {.kind = VT_KV_CLEARED, .group = 1},
    };

    (void)state;
    assert_true(key_view_tell(&v, 100, e, VT_COUNT(e)));
    assert_true(key_view_see(&v, 120));
    assert_int_equal(v.n, 1);
    assert_false(key_view_had(&v, 2, 1));
    assert_true(key_view_had(&v, 1, 1)); /* of the group that is asked about */
    assert_false(key_view_had(&v, 3, 0));
    key_view_free(&v);
}

/* Against the events replayed one by one, with questions here and there. */
static void a_late_view_is_the_past(void **state)
{
    enum { KEYS = 20, DELAY = 37, EVENTS = 4000 };
    static uint32_t now_held[KEYS], then_held[KEYS];
    static struct vt_kv_event event[EVENTS];
    struct key_view v = {.delay = DELAY};
    struct vt_rng rng;
    size_t seen = 0;

    (void)state;
    vt_rng_init(&rng, 5, "test");
    for (size_t i = 0; i < EVENTS; i++) { /* event i happens at time i */
        uint32_t k = (uint32_t)vt_rng_below(&rng, KEYS);
        bool store = now_held[k] == 0 || vt_rng_below(&rng, 2) == 0;

        now_held[k] += store ? 1 : UINT32_MAX;
        event[i].key = k + 1;
        event[i].kind = store ? VT_KV_STORED : VT_KV_REMOVED;
        assert_true(key_view_tell(&v, (vt_ns)i, &event[i], 1));
        if (vt_rng_below(&rng, 60) != 0)
            continue;
        assert_true(key_view_see(&v, (vt_ns)i));
        for (; seen + DELAY <= i; seen++)
            then_held[event[seen].key - 1] +=
                event[seen].kind == VT_KV_STORED ? 1 : UINT32_MAX;
        for (uint32_t j = 0; j < KEYS; j++)
            assert_int_equal(key_view_had(&v, j + 1, now_held[j]), then_held[j] > 0);
    }
    key_view_free(&v);
}

/* Against a plain array, over many keys that come and go. */
static void a_map_of_keys_holds_what_was_put(void **state)
{
    enum { KEYS = 3000 };
    static uint32_t want[KEYS];
    struct vt_map m = {0};
    struct vt_rng rng;

    (void)state;
    vt_rng_init(&rng, 1, "test");
    for (int i = 0; i < 30000; i++) {
        uint32_t k = (uint32_t)vt_rng_below(&rng, KEYS);
        uint64_t key = (uint64_t)(k / 7 + 1) | (uint64_t)(k % 7) << 40; /* collide */
        uint64_t *v = vt_map_get(&m, key);

        if (vt_rng_below(&rng, 3) == 0) {
            if (v)
                vt_map_drop(&m, v);
            want[k] = 0;
        } else {
            v = vt_map_put(&m, key);
            assert_non_null(v);
            assert_int_equal(*v, want[k]);
            want[k] = (uint32_t)i + 1;
            *v = want[k];
        }
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        uint64_t *v = vt_map_get(&m, (uint64_t)(k / 7 + 1) | (uint64_t)(k % 7) << 40);

        assert_int_equal(v != NULL ? *v : 0, want[k]);
    }
    vt_map_free(&m);
}

/* ---- text --------------------------------------------------------------- */

static void routing_is_checked(void **state)
{
    static const struct {
        const char *text, *says; /* NULL: it is fine */
    } text[] = {
        {"round-robin", NULL},
        {"weighted", NULL},
        {"queue-depth", NULL},
        {"queue-depth:0.5,session-affinity", NULL},
        {"round-robbin", "did you mean 'round-robin'"},
        {"queue-dept:1", "did you mean 'queue-depth'"},
        {"queue-depth:0", "must be a number above 0"},
        {"queue-depth:nan", "must be a number above 0"},
        {"queue-depth:", "must be a number above 0"},
        {"queue-depth,queue-depth:2", "given twice"},
        {"queue-depth,round-robin", "unknown routing 'round-robin'"},
        {"", "unknown routing ''"},
        {"queue-depth,", "unknown routing ''"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(text); i++) {
        struct vt_err err = {0};
        int rc = vt_routing_check(text[i].text, &err);

        assert_int_equal(rc, text[i].says == NULL ? VT_OK : VT_EINPUT);
        if (text[i].says != NULL && strstr(err.msg, text[i].says) == NULL)
            fail_msg("%s: %s", text[i].text, err.msg);
    }
}

int main(void)
{
    enum { ROWS = VT_COUNT(rows), BALANCERS = VT_COUNT(balancers), OTHERS = 13 };
    struct CMUnitTest tests[OTHERS + ROWS + BALANCERS] = {
        cmocka_unit_test(round_robin_goes_round_the_candidates),
        cmocka_unit_test(random_is_even_and_repeats_with_its_seed),
        cmocka_unit_test(power_of_two_takes_the_better_of_two),
        cmocka_unit_test(vllm_dp_counts_what_it_sent_as_waiting),
        cmocka_unit_test(prefix_affinity_goes_where_the_prefix_went),
        cmocka_unit_test(a_router_forgets_old_keys_first),
        cmocka_unit_test(a_session_stays_where_it_began),
        cmocka_unit_test(no_hit_lru_goes_round_by_age),
        cmocka_unit_test(events_are_seen_after_their_delay),
        cmocka_unit_test(a_view_is_of_one_group_and_of_what_is_kept),
        cmocka_unit_test(a_late_view_is_the_past),
        cmocka_unit_test(a_map_of_keys_holds_what_was_put),
        cmocka_unit_test(routing_is_checked),
    };

    for (size_t i = 0; i < ROWS; i++)
        tests[OTHERS + i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = decides, .initial_state = &rows[i]};
    for (size_t i = 0; i < BALANCERS; i++)
        tests[OTHERS + ROWS + i] = (struct CMUnitTest){.name = balancers[i].name,
                                                       .test_func = balances,
                                                       .initial_state = &balancers[i]};
    return cmocka_run_group_tests_name("router", tests, NULL, NULL);
}
