/* The second KV tier on the time axis: what is found there, when it is loaded, and how
 * transfers share a link. What the scheduler decides is held by recorded runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/offload/tracker.h"
#include "core/transfer.h"
#include "toy_model.h"

enum { BS = 16 };

/* A GPU of 12 usable blocks, and a host for many; a block takes 10 us each way. */
static struct vt_engine_config tiered(bool async)
{
    struct vt_engine_config c;

    vt_engine_config_init(&c);
    c.async_scheduling = async;
    c.num_gpu_blocks = 13;
    c.max_model_len = 12 * BS;
    c.offload = (struct vt_offload){
        .num_cpu_blocks = 100, .load_gbs = 1, .store_gbs = 1, .block_bytes = 10000};
    return c;
}

static void add(struct vt_engine *e, vt_ns now, uint64_t tag, uint64_t content,
                uint32_t prompt)
{
    struct vt_segment seg = {.content = content, .tokens = prompt};
    struct vt_request r = {.tag = tag,
                           .prompt_tokens = prompt,
                           .max_tokens = 2,
                           .eos_at = VT_NO_STOP,
                           .stop_at = VT_NO_STOP,
                           .arrival = now,
                           .segment = &seg,
                           .n_segments = 1,
                           .output_content = 5000 + tag};

    assert_int_equal(vt_engine_add(e, now, &r, NULL), VT_OK);
}

struct seen {
    vt_ns first_ns; /* of the request that is watched */
    uint32_t rows, loads, stores;
    struct vt_kv_moved load;
};

/* Runs until nothing is due; a driver that comes `late` changes nothing. */
static struct seen run(struct vt_engine *e, uint64_t tag, vt_ns late)
{
    struct seen s = {0};
    vt_ns due;

    while ((due = vt_engine_due(e)) != VT_NEVER) {
        const struct vt_step *done;

        assert_int_equal(vt_engine_step(e, due + late, &done, NULL), VT_OK);
        for (uint32_t i = 0; done && i < done->n_rows; i++) {
            s.rows++;
            if (done->row[i].tag == tag && done->row[i].first)
                s.first_ns = done->row[i].at;
        }
        for (uint32_t i = 0; done && i < done->offload->n_moved; i++) {
            const struct vt_kv_moved *m = &done->offload->moved[i];

            *(m->store ? &s.stores : &s.loads) += 1;
            if (!m->store)
                s.load = *m;
        }
    }
    return s;
}

/* One prompt, then others that take its blocks, then the same again. */
static struct seen come_back(bool async, vt_ns late, struct vt_offload_totals *t)
{
    struct vt_engine_config c = tiered(async);
    struct vt_engine *e;
    struct seen s;

    assert_int_equal(vt_engine_new(&e, &c, &toy, NULL), VT_OK);
    add(e, 0, 1, 77, 8 * BS);
    (void)run(e, 1, late);
    add(e, 10 * VT_MS, 2, 88, 8 * BS);
    add(e, 10 * VT_MS, 3, 99, 8 * BS);
    (void)run(e, 2, late);
    add(e, 20 * VT_MS, 4, 77, 8 * BS);
    s = run(e, 4, late);
    *t = vt_engine_totals(e).offload;
    vt_engine_free(e);
    return s;
}

static void what_went_is_loaded_instead_of_computed(void **state)
{
    bool async = *(const bool *)*state;
    struct vt_offload_totals t, again;
    struct seen s = come_back(async, 0, &t), late = come_back(async, 3 * VT_MS, &again);

    assert_int_equal(s.loads, 1);
    assert_int_equal(t.found, 8 * BS);
    assert_int_equal(t.loaded_chunks, 8);
    assert_int_equal(s.load.bytes, 80000);
    assert_int_equal(s.load.ended_ns - s.load.begun_ns, 80 * VT_US);
    /* 80 us of transfer and a step of one token. */
    assert_int_equal(s.first_ns, 20 * VT_MS + 80 * VT_US + 101 * VT_US);
    assert_int_equal(late.first_ns, s.first_ns);
    assert_memory_equal(&t, &again, sizeof(t));
}

/* An abort while its blocks are being filled: they come back when the load is over. */
static void blocks_of_an_aborted_load_come_back(void **state)
{
    struct vt_engine_config c = tiered(false);
    struct vt_engine *e;
    const struct vt_step *done;

    (void)state;
    assert_int_equal(vt_engine_new(&e, &c, &toy, NULL), VT_OK);
    add(e, 0, 1, 77, 8 * BS);
    (void)run(e, 1, 0);
    add(e, 10 * VT_MS, 2, 88, 8 * BS);
    add(e, 10 * VT_MS, 3, 99, 8 * BS);
    (void)run(e, 2, 0);
    add(e, 20 * VT_MS, 4, 77, 8 * BS);
    while (vt_engine_due(e) <= 20 * VT_MS)
        assert_int_equal(vt_engine_step(e, 20 * VT_MS, &done, NULL), VT_OK);
    assert_int_equal(vt_sched_free_blocks(vt_engine_sched(e)), 4);
    assert_int_equal(vt_engine_abort(e, 20 * VT_MS + 1, 4), VT_OK);
    assert_int_equal(vt_sched_free_blocks(vt_engine_sched(e)), 4);
    add(e, 30 * VT_MS, 5, 111, 8 * BS);
    assert_int_equal(run(e, 5, 0).rows, 2);
    assert_int_equal(vt_sched_free_blocks(vt_engine_sched(e)), 12);
    vt_engine_free(e);
}

/* ---- the link ---------------------------------------------------------- */

static struct vt_kv_job job(uint64_t id, uint32_t blocks, bool store)
{
    return (struct vt_kv_job){
        .id = id, .n_gpu = blocks, .n_cpu = blocks, .store = store};
}

static vt_ns end_of(struct transfers *t, uint64_t id)
{
    uint32_t n;

    assert_int_equal(transfers_until(t, VT_SEC, &n, NULL), VT_OK);
    for (uint32_t i = 0; i < n; i++)
        if (t->done[i].id == id)
            return t->done[i].ended_ns;
    return -1;
}

static void lanes_are_serial_and_share_the_link(void **state)
{
    static const struct {
        const char *what;
        double duplex, setup_us;
        bool other_stores;
        vt_ns first_us, second_us;
    } row[] = {
        {"two loads follow each other", 1, 0, false, 100, 200},
        {"a store beside a load takes nothing of a full link", 1, 0, true, 100, 100},
        /* half speed while both run, so the two end together */
        {"both ways at half speed", 0.5, 0, true, 200, 200},
        {"each job has its setup", 1, 7, false, 107, 214},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_offload o = {.load_gbs = 1,
                               .store_gbs = 1,
                               .setup_us = row[i].setup_us,
                               .duplex = row[i].duplex,
                               .block_bytes = 10000};
        struct vt_kv_job jobs[] = {job(1, 10, false), job(2, 10, false)};
        struct vt_kv_job store = job(2, 10, true);
        struct vt_kv_moves m = {.load = jobs,
                                .n_load = row[i].other_stores ? 1 : 2,
                                .store = &store,
                                .n_store = row[i].other_stores};
        struct vt_kv_moves none = {0};
        struct transfers t;
        vt_ns flushed;

        transfers_init(&t, &o);
        /* Stores begin with the step after their plan's: both steps are at 0. */
        m.n_load = 0;
        assert_int_equal(transfers_launch(&t, &m, 0, NULL), VT_OK);
        assert_int_equal(transfers_begin(&t, &none, 0, &flushed, NULL), VT_OK);
        m.n_load = row[i].other_stores ? 1 : 2;
        m.n_store = 0;
        assert_int_equal(transfers_launch(&t, &m, 0, NULL), VT_OK);
        if (end_of(&t, 1) != row[i].first_us * VT_US ||
            end_of(&t, 2) != row[i].second_us * VT_US)
            fail_msg("%s: %lld and %lld", row[i].what, (long long)end_of(&t, 1),
                     (long long)end_of(&t, 2));
        transfers_free(&t);
    }
}

/* Loads with their step, stores with the next: 100 us each, and 7 us a block. */
static void the_host_hands_transfers_over(void **state)
{
    const struct vt_kv_job job[] = {{.id = 1, .n_gpu = 4}, {.id = 2, .n_gpu = 10}};
    const struct vt_kv_moves both = {
        .load = job, .n_load = 1, .store = job + 1, .n_store = 1};
    const struct vt_kv_moves none = {0};
    const struct vt_offload o = {
        .host_us = 100, .host_block_us = 7, .block_bytes = 1000};
    struct transfers t;
    vt_ns flushed;

    (void)state;
    transfers_init(&t, &o);
    assert_true(transfers_host_us(&t, &both) == 128);
    assert_int_equal(transfers_launch(&t, &both, 0, NULL), VT_OK);
    assert_true(transfers_host_us(&t, &none) == 170);
    assert_int_equal(transfers_begin(&t, &none, 0, &flushed, NULL), VT_OK);
    assert_true(transfers_host_us(&t, &none) == 0);
    transfers_free(&t);
}

static void a_flushed_store_is_over_before_the_step_goes_on(void **state)
{
    struct vt_offload o = {.store_gbs = 1, .load_gbs = 1, .block_bytes = 10000};
    struct vt_kv_job store = job(9, 10, true);
    uint64_t id = 9;
    struct vt_kv_moves plan = {.store = &store, .n_store = 1};
    struct vt_kv_moves flush = {.flush = &id, .n_flush = 1};
    struct transfers t;
    vt_ns flushed;

    (void)state;
    transfers_init(&t, &o);
    assert_int_equal(transfers_launch(&t, &plan, 0, NULL), VT_OK);
    assert_int_equal(transfers_due(&t), 0); /* it waits for a step */
    assert_int_equal(transfers_begin(&t, &flush, 50 * VT_US, &flushed, NULL), VT_OK);
    assert_int_equal(flushed, 150 * VT_US);
    transfers_free(&t);
}

/* ---- what is stored at all ---------------------------------------------- */

static void counts_forget_what_was_unseen_for_longest(void **state)
{
    struct tracker t = {.most = 2};
    const uint64_t both[] = {7, 8};

    (void)state;
    tracker_look(&t, 5);
    tracker_look(&t, 5);
    tracker_look(&t, 6);
    assert_int_equal(tracker_count(&t, 5), 2);
    tracker_look(&t, 5);
    tracker_look(&t, 7); /* in place of 6 */
    assert_int_equal(tracker_count(&t, 6), 0);
    assert_int_equal(tracker_count(&t, 5), 3);
    tracker_offer(&t, both, 2); /* 8 takes 5's place, not 7's */
    assert_int_equal(tracker_count(&t, 7), 2);
    assert_int_equal(tracker_count(&t, 8), 1);
    assert_int_equal(tracker_count(&t, 5), 0);
    tracker_free(&t);
}

int main(void)
{
    static bool sync = false, async = true;
    const struct CMUnitTest tests[] = {
        {"what went is loaded instead of computed",
         what_went_is_loaded_instead_of_computed, NULL, NULL, &sync},
        {"the same with steps ahead", what_went_is_loaded_instead_of_computed, NULL,
         NULL, &async},
        cmocka_unit_test(blocks_of_an_aborted_load_come_back),
        cmocka_unit_test(lanes_are_serial_and_share_the_link),
        cmocka_unit_test(the_host_hands_transfers_over),
        cmocka_unit_test(a_flushed_store_is_over_before_the_step_goes_on),
        cmocka_unit_test(counts_forget_what_was_unseen_for_longest),
    };

    return cmocka_run_group_tests_name("offload", tests, NULL, NULL);
}
