/* The link to the host, found back from transfers that the engine's own lanes made. */
#include "twin.h"

#include "core/transfer.h"
#include "fit/internal.h"

enum { MOST = 400 };

struct events {
    struct vt_otlp_kv kv[MOST];
    size_t n;
};

/* Random sizes at random times, told as spans tell them: when they were handed over and
 * when they ended. look_ns: ends are looked for that often; 0: at once. */
static void move(struct events *e, const struct vt_offload *o, size_t n, uint32_t most,
                 bool load, bool store, vt_ns look_ns)
{
    struct vt_rng rng;
    struct transfers t;
    vt_ns at = 0, flushed;
    uint32_t done;

    vt_rng_init(&rng, 7, "moves");
    transfers_init(&t, o);
    for (size_t i = 0; i < n; i++) {
        bool stores = store && (!load || i % 2);
        struct vt_kv_job job = {
            .id = i, .store = stores, .n_gpu = 1 + (uint32_t)vt_rng_below(&rng, most)};
        struct vt_kv_moves m = {
            .load = &job, .n_load = !stores, .store = &job, .n_store = stores};
        struct vt_kv_moves none = {0};

        job.n_cpu = job.n_gpu;
        at += (vt_ns)vt_rng_below(&rng, 8 * VT_MS);
        assert_int_equal(transfers_launch(&t, &m, at, NULL), VT_OK);
        assert_int_equal(transfers_begin(&t, &none, at, &flushed, NULL), VT_OK);
    }
    assert_int_equal(transfers_until(&t, at + 100000 * VT_MS, &done, NULL), VT_OK);
    assert_int_equal(done, n);
    e->n = 0;
    for (size_t i = 0; i < done; i++) {
        const struct vt_kv_moved *k = &t.done[i];
        vt_ns end =
            look_ns > 0 ? (k->ended_ns + look_ns - 1) / look_ns * look_ns : k->ended_ns;

        e->kv[e->n++] = (struct vt_otlp_kv){.kind = VT_KV_TRANSFER_COMPLETED,
                                            .at_ns = end,
                                            .took_ns = end - k->given_ns,
                                            .blocks = k->chunks,
                                            .to_gpu = !k->store};
    }
    transfers_free(&t);
}

static void find(struct vt_fit_link *l, const struct events *e, double block_bytes)
{
    struct vt_fit_shape shape = {0};
    struct vt_step_line line = {.out_ns = VT_MS, .done_ns = VT_MS, .decodes = 1};
    struct vt_steps steps = {.step = &line, .n = 1};
    struct vt_fit *f;
    struct vt_err err = {0};

    assert_int_equal(vt_fit_new(&f, &shape, &err), VT_OK);
    assert_int_equal(vt_fit_add(f, "c", &steps, NULL, &err), VT_OK);
    assert_int_equal(vt_fit_moves(f, 0, e->kv, e->n, &err), VT_OK);
    assert_int_equal(vt_fit_link(l, f, block_bytes, &err), VT_OK);
    vt_fit_free(f);
}

static void what_made_transfers_is_found_back(void **state)
{
    static const struct {
        const char *what;
        double load, store, setup_us, duplex;
        vt_ns look_ns;
        double within; /* share, of the rates */
    } row[] = {
        {"as measured", 35, 55, 200, 0.85, 0, 0.01},
        {"slow, and long before its first byte", 3, 5, 2000, 1, 0, 0.03},
        {"half as fast while both run", 20, 25, 50, 0.5, 0, 0.01},
        {"ends are seen by a step every 2 ms", 4, 4, 200, 0.85, 2 * VT_MS, 0.1},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_offload o = {.load_gbs = row[i].load,
                               .store_gbs = row[i].store,
                               .setup_us = row[i].setup_us,
                               .duplex = row[i].duplex,
                               .block_bytes = 2359296};
        struct vt_fit_link l;
        struct events e;

        move(&e, &o, 300, 100, true, true, row[i].look_ns);
        find(&l, &e, 2359296);
        if (fabs(l.gbs[0] / row[i].load - 1) > row[i].within ||
            fabs(l.gbs[1] / row[i].store - 1) > row[i].within)
            fail_msg("%s: %.2f and %.2f GB/s", row[i].what, l.gbs[0], l.gbs[1]);
        if (row[i].look_ns > 0)
            continue;
        near(row[i].what, l.setup_us, row[i].setup_us, 0.03);
        near(row[i].what, l.duplex, row[i].duplex, 0.03);
        assert_true(l.error[0] < 0.01 && l.error[1] < 0.01);
    }
}

static void what_transfers_cannot_tell_stays_unknown(void **state)
{
    static const struct {
        const char *what;
        size_t n;
        uint32_t most;
        bool load, store;
        double block_bytes;
        bool knows_load, knows_store;
    } row[] = {
        {"one way only", 40, 100, false, true, 1e6, false, true},
        {"seven of each", 14, 100, true, true, 1e6, false, false},
        {"all of one size", 200, 1, true, true, 1e6, false, false},
        {"nobody knows what a block takes", 200, 100, true, true, 0, false, false},
        {"none", 0, 1, true, true, 1e6, false, false},
    };
    struct vt_offload o = {
        .load_gbs = 30, .store_gbs = 30, .setup_us = 300, .block_bytes = 1000000};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_fit_link l;
        struct events e;

        move(&e, &o, row[i].n, row[i].most, row[i].load, row[i].store, 0);
        find(&l, &e, row[i].block_bytes);
        if ((l.gbs[0] > 0) != row[i].knows_load ||
            (l.gbs[1] > 0) != row[i].knows_store || l.n[0] + l.n[1] != row[i].n)
            fail_msg("%s: %.1f and %.1f GB/s of %zu and %zu", row[i].what, l.gbs[0],
                     l.gbs[1], l.n[0], l.n[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_made_transfers_is_found_back),
        cmocka_unit_test(what_transfers_cannot_tell_stays_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
