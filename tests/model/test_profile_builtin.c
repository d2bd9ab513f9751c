/* Every row of BLIS's table is a profile of its own name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"

static void every_profile_opens_by_its_name(void **state)
{
    struct vt_profile_entry *e;
    struct vt_arena arena = {0};
    struct vt_err err = {0};
    size_t n, rows = 0;

    (void)state;
    assert_int_equal(vt_profile_list(&arena, &e, &n, &err), VT_OK);
    for (size_t i = 0; i < n; i++) {
        struct vt_engine_config c;
        struct vt_profile p;

        if (vt_profile_open(&p, e[i].name, &err) != VT_OK)
            fail_msg("%s", err.msg);
        assert_string_equal(p.name, e[i].name);
        assert_string_equal(p.description, e[i].description);
        vt_engine_config_init(&c);
        assert_int_equal(vt_profile_limits(&p, &c, &err), VT_OK);
        assert_int_equal(vt_engine_config_check(&c, &err), VT_OK);
        assert_true(!e[i].blackbox || c.num_gpu_blocks != 32768); /* was calculated */
        vt_profile_close(&p);
        rows += e[i].blackbox;
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(e[i].name, e[k].name);
    }
    assert_int_equal(rows, 111);
    vt_arena_free(&arena);
}

static struct row {
    const char *name; /* as asked */
    double first_us;  /* alpha 0 */
} rows[] = {
    {"blackbox:llama-3.1-8b-instruct:h100:tp1", 10326.268121600151},
    {"blackbox:meta-llama/Llama-3.1-8B-Instruct:H100:tp1", 10326.268121600151},
    {"blackbox:llama-3.1-8b-instruct:a100-80:tp4", 51.276026503262926},
    {"blackbox:phi-4-fp8-dynamic:h100:tp1", 6933.519704638618},
    {"blackbox:phi-4-fp8-dynamic:h100:tp1:2", 4971.26446032885},
};

static void row_has_its_coefficients(void **state)
{
    const struct row *r = *state;
    struct vt_profile p;
    struct vt_err err = {0};
    const struct vt_node *alpha;

    if (vt_profile_open(&p, r->name, &err) != VT_OK)
        fail_msg("%s", err.msg);
    alpha = vt_get(vt_get(vt_get(p.root, "model"), "params"), "alpha");
    assert_non_null(alpha);
    assert_true(alpha->u.item[0].u.real == r->first_us);
    vt_profile_close(&p);
}

static void an_unknown_row_is_named(void **state)
{
    struct vt_profile p;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_profile_open(&p, "blackbox:qwen9:h100:tp1", &err), VT_EINPUT);
    assert_string_equal(err.msg, "no profile 'blackbox:qwen9:h100:tp1'; `vtwin profile "
                                 "list --all` shows the built-in ones");
}

int main(void)
{
    enum { N = VT_COUNT(rows), REST = 2 };
    struct CMUnitTest tests[N + REST] = {
        cmocka_unit_test(every_profile_opens_by_its_name),
        cmocka_unit_test(an_unknown_row_is_named),
    };

    for (size_t i = 0; i < N; i++)
        tests[REST + i] = (struct CMUnitTest){.name = rows[i].name,
                                              .test_func = row_has_its_coefficients,
                                              .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("profile_builtin", tests, NULL, NULL);
}
