/* Trials at a live server: the command that starts it, and what its answers amount to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tune/target.h"

static const struct vt_setting setting = {
    .max_num_seqs = 128,
    .max_num_batched_tokens = 8192,
    .gpu_memory_utilization = 0.95,
    .tp = 2,
    .dp = 1,
    .spec_tokens = 3,
};

static void command_is_filled_in(void **state)
{
    static const struct {
        const char *text, *want; /* NULL: refused */
    } rows[] = {
        {"serve {max_num_seqs} {max_num_batched_tokens}", "serve 128 8192"},
        {"u={gpu_memory_utilization};x", "u=0.95;x"},
        {"{tensor_parallel_size}{data_parallel_size}{num_speculative_tokens}", "213"},
        {"f() { echo ${HOME}; }; f {max_num_seqs}", "f() { echo ${HOME}; }; f 128"},
        {"{{max_num_seqs}}", "{128}"},
        {"serve", NULL},
        {"serve {max_num_seqz}", NULL},
        {"serve {max_num_seqs", NULL},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_buf b = {0};
        struct vt_err err;
        int rc = target_command(&b, rows[i].text, &setting, &err);

        assert_int_equal(rc, rows[i].want ? VT_OK : VT_EINPUT);
        if (rows[i].want)
            assert_string_equal(b.data, rows[i].want);
        vt_buf_free(&b);
    }
}

static void late_ones_break_limits(void **state)
{
    const struct vt_slo slo = {.ttft_p99 = 100, .tpot_p99 = 20};
    const vt_ns stamp[] = {50 * VT_MS, 60 * VT_MS, 70 * VT_MS};
    const struct vt_load_record fine = {.first = 50 * VT_MS,
                                        .last = 70 * VT_MS,
                                        .stamp = stamp,
                                        .n_stamps = 3,
                                        .prompt_tokens = 10,
                                        .cached_tokens = 5,
                                        .output_tokens = 3,
                                        .ok = true};
    struct vt_load_record r[2] = {fine, fine};
    const struct vt_load_records all = {.record = r, .n = 2, .end = VT_SEC};
    struct vt_summary s;
    struct vt_err err;
    uint64_t good;

    (void)state;
    assert_int_equal(target_summary(&s, &all, false, &slo, &good, &err), VT_OK);
    assert_int_equal(good, 2);
    assert_null(vt_slo_broken(&slo, &s, NULL));
    assert_true(s.prefix_hit_rate > 0.49 && s.prefix_hit_rate < 0.51);
    assert_true(s.itl.p50 > 9.99 && s.itl.p50 < 10.01);

    /* Kept for 45 ms by the client, which counts from when it was due only. */
    r[1].planned = -60 * VT_MS;
    r[1].begun = -15 * VT_MS;
    assert_int_equal(target_summary(&s, &all, false, &slo, &good, &err), VT_OK);
    assert_int_equal(good, 1);
    assert_int_equal(target_summary(&s, &all, true, &slo, &good, &err), VT_OK);
    assert_int_equal(good, 2);

    r[1] = fine;
    r[1].ok = false; /* cut off between tokens */
    r[1].failure = VT_LOAD_STOPPED;
    assert_int_equal(target_summary(&s, &all, false, &slo, &good, &err), VT_OK);
    assert_int_equal(good, 1);
    assert_string_equal(vt_slo_broken(&slo, &s, NULL), "TPOT p99");

    r[1] = (struct vt_load_record){.failure = VT_LOAD_STATUS, .status = 503};
    assert_int_equal(target_summary(&s, &all, false, &slo, &good, &err), VT_OK);
    assert_string_equal(vt_slo_broken(&slo, &s, NULL), "TTFT p99");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_is_filled_in),
        cmocka_unit_test(late_ones_break_limits),
    };

    return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
