/* Sums of scorers without a look at every candidate, against one with: the same choices
 * over made-up fleets. And the index that such choices start from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/fleet/parts.h"

enum { MOST = 40, SESSIONS = 30, DECISIONS = 1500 };

static const char *const routings[] = {
    "weighted",
    "precise-prefix-cache",
    "prefix-affinity",
    "session-affinity:2,queue-depth:1",
    "queue-depth",
    "kv-utilization:1,precise-prefix-cache:3,session-affinity:1,prefix-affinity:2",
    "load-aware:1,prefix-affinity:1",
    "running-requests:1,session-affinity:1,precise-prefix-cache:1",
    "vllm-dp:1,kv-utilization:0.3,precise-prefix-cache:0.7",
};

struct world {
    struct vt_rng rng;
    uint32_t n; /* instances */
    struct seen seen[MOST];
    uint32_t candidate[MOST], place[MOST], hit[MOST];
    uint64_t key[8];
    struct ask a;
};

static uint32_t below(struct world *w, uint32_t n)
{
    return (uint32_t)vt_rng_below(&w->rng, n);
}

/* Few different values, so that many are equal. */
static void look_anew(struct world *w)
{
    w->a.look++;
    for (uint32_t i = 0; i < w->n; i++) {
        w->seen[i].waiting = below(w, 3);
        w->seen[i].running = below(w, 4);
        w->seen[i].kv_usage = below(w, 5) / 4.0;
    }
}

static void choose_candidates(struct world *w)
{
    w->a.look++;
    w->a.n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        bool serves = below(w, 5) > 0 || (i + 1 == w->n && w->a.n == 0);

        w->place[i] = serves ? w->a.n : NO_PLACE;
        if (serves)
            w->candidate[w->a.n++] = i;
    }
}

/* What two prompts have in common they have from the first block on. */
static void make_prompt(struct world *w)
{
    uint64_t key = 1 + below(w, 6);

    w->a.n_keys = below(w, 9);
    for (uint32_t i = 0; i < w->a.n_keys; i++) {
        w->key[i] = key;
        key = key * 64 + below(w, 2) + 7;
    }
    w->a.session = below(w, 3) > 0 ? below(w, SESSIONS) : VT_NO_TURN;
    w->a.pool = below(w, 4) == 0 ? POOL_DECODE : POOL_MAIN;
    w->a.n_hits = 0;
    for (uint32_t i = 0; i < w->n; i++)
        w->seen[i].cached = 0;
    for (uint32_t k = 0, most = below(w, 4); k < w->a.n; k++) {
        uint32_t cached = below(w, 4) < most ? below(w, 4) : 0;

        w->seen[w->candidate[k]].cached = cached;
        if (cached > 0)
            w->hit[w->a.n_hits++] = k;
    }
}

static struct router *open_router(const char *routing, uint32_t n, bool one_by_one)
{
    struct router_config c = {.routing = routing,
                              .n_instances = n,
                              .n_sessions = SESSIONS,
                              .seed = n,
                              .one_by_one = one_by_one};
    struct router *r;
    struct vt_err err = {0};

    if (router_new(&r, &c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return r;
}

static void compare(const char *routing, uint32_t n, uint64_t seed)
{
    struct world w = {.n = n};
    struct router *quick = open_router(routing, n, false);
    struct router *plain = open_router(routing, n, true);

    vt_rng_init(&w.rng, seed, "test");
    w.a = (struct ask){.seen = w.seen,
                       .candidate = w.candidate,
                       .place = w.place,
                       .hit = w.hit,
                       .key = w.key};
    look_anew(&w);
    choose_candidates(&w);
    for (int i = 0; i < DECISIONS; i++) {
        uint32_t one, other;

        if (below(&w, 20) == 0)
            look_anew(&w);
        if (below(&w, 50) == 0)
            choose_candidates(&w);
        if (below(&w, 200) == 0) {
            one = below(&w, n);
            router_forget(quick, one);
            router_forget(plain, one);
        }
        make_prompt(&w);
        assert_int_equal(router_pick(quick, &w.a, &one, NULL), VT_OK);
        assert_int_equal(router_pick(plain, &w.a, &other, NULL), VT_OK);
        if (one != other)
            fail_msg("%s, %u instances, decision %d: %u, but one by one %u", routing, n,
                     i, one, other);
    }
    router_free(quick);
    router_free(plain);
}

static void the_same_is_chosen(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, MOST};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(routings); i++)
        for (size_t k = 0; k < VT_COUNT(sizes); k++)
            compare(routings[i], sizes[k], 10 * i + k);
}

/* ---- who has a prompt's beginning ---------------------------------------- */

/* Against counts of blocks that come and go in several caches: who had one is named,
 * and who has long had none is not. */
static void the_index_names_who_had_it(void **state)
{
    enum { CACHES = 9, KEYS = 12, DELAY = 40, EVENTS = 6000 };
    struct holders h = {0};
    struct key_view v[CACHES] = {{0}};
    uint32_t now[CACHES][KEYS] = {{0}};
    vt_ns had[CACHES][KEYS] = {{0}}; /* when there was one last */
    struct vt_rng rng;

    (void)state;
    vt_rng_init(&rng, 3, "test");
    for (uint32_t c = 0; c < CACHES; c++)
        v[c] = (struct key_view){.delay = DELAY, .units = 2};
    for (vt_ns at = 1; at <= EVENTS; at++) {
        uint32_t c = (uint32_t)vt_rng_below(&rng, CACHES);
        uint32_t k = (uint32_t)vt_rng_below(&rng, KEYS), n = 0, named = 0;
        bool store = now[c][k] == 0 || vt_rng_below(&rng, 5) < 2;
        bool part = vt_rng_below(&rng, 3) == 0;
        struct vt_kv_event e = {.key = k + 1,
                                .kind = store ? VT_KV_STORED : VT_KV_REMOVED,
                                .part = part,
                                .index = part ? 1 : 0};
        const struct holder *x;

        now[c][k] += store ? 1 : UINT32_MAX;
        had[c][k] = at;
        assert_true(key_view_tell(&v[c], at, &e, 1));
        e = (struct vt_kv_event){.key = 100 + k, .kind = VT_KV_STORED, .index = 3};
        assert_true(key_view_tell(&v[c], at, &e, 1)); /* no prompt's first */
        assert_true(holders_hear(&h, &v[c], c));
        holders_expire(&h, at - DELAY);
        x = holders_of(&h, k + 1, &n);
        for (c = 0; c < CACHES; c++) {
            bool is_named = named < n && x[named].instance == c;

            assert_int_equal(is_named, now[c][k] > 0 ||
                                           (had[c][k] > 0 && had[c][k] + DELAY > at));
            named += is_named;
        }
        assert_int_equal(named, n); /* ascending, and nobody else */
        (void)holders_of(&h, 100 + k, &n);
        assert_int_equal(n, 0);
    }
    holders_forget(&h, 4);
    for (uint64_t k = 1; k <= KEYS; k++) {
        uint32_t n;
        const struct holder *x = holders_of(&h, k, &n);

        for (uint32_t i = 0; i < n; i++)
            assert_int_not_equal(x[i].instance, 4);
    }
    for (uint32_t c = 0; c < CACHES; c++)
        key_view_free(&v[c]);
    holders_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_chosen),
        cmocka_unit_test(the_index_names_who_had_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
