/* Which profile, and whose errors: what an engine's steps are timed by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/model.h"

/* ---- built-in profiles ------------------------------------------------- */

static struct row {
    const char *name;
    const char *model, *gpu;
    uint32_t tp;
    double kv_bytes;
    bool eager;
    enum vt_basis_kind wish, want;
    const char *from; /* NULL: an estimate has none */
} rows[] = {
    {.name = "what was measured so is taken as it is",
     .model = "qwen3-8b",
     .gpu = "H200",
     .want = VT_MEASURED,
     .from = "qwen3-8b-h200"},
    {.name = "a name with its format in brackets is that model",
     .model = "llama-70b-fp8",
     .gpu = "H200",
     .want = VT_MEASURED,
     .from = "llama-70b-fp8-h200"},
    {.name = "the element that the model has anyway changes nothing",
     .model = "qwen3-8b",
     .gpu = "H200",
     .kv_bytes = 2,
     .want = VT_MEASURED,
     .from = "qwen3-8b-h200"},
    {.name = "more GPUs: carried over",
     .model = "qwen3-8b",
     .gpu = "H200",
     .tp = 2,
     .want = VT_TRANSFERRED,
     .from = "qwen3-8b-h200"},
    {.name = "another GPU: carried over",
     .model = "qwen3-30b-a3b",
     .gpu = "H100",
     .tp = 2,
     .want = VT_TRANSFERRED,
     .from = "qwen3-30b-a3b-h200"},
    {.name = "a relative's errors are larger than the law's, so the law is taken",
     .model = "qwen3-14b",
     .gpu = "H200",
     .want = VT_ESTIMATED},
    {.name = "a relative is carried over by wish",
     .model = "qwen3-14b",
     .gpu = "H200",
     .wish = VT_TRANSFERRED,
     .want = VT_TRANSFERRED,
     .from = "qwen3-8b-h200"},
    {.name = "no relative of a mixture was ever judged, so none is carried over",
     .model = "Qwen/Qwen3-235B-A22B",
     .gpu = "H200",
     .tp = 4,
     .wish = VT_TRANSFERRED,
     .want = VT_BASIS_UNKNOWN},
    {.name = "a relative on another GPU is too far",
     .model = "qwen3-14b",
     .gpu = "H100",
     .wish = VT_TRANSFERRED,
     .want = VT_BASIS_UNKNOWN},
    {.name = "without graphs nothing was measured",
     .model = "qwen3-8b",
     .gpu = "H200",
     .eager = true,
     .wish = VT_MEASURED,
     .want = VT_BASIS_UNKNOWN},
    {.name = "estimated by wish",
     .model = "qwen3-8b",
     .gpu = "H200",
     .wish = VT_ESTIMATED,
     .want = VT_ESTIMATED},
};

static void the_best_is_chosen(void **state)
{
    const struct row *r = *state;
    struct vt_choice c;
    struct vt_arch arch;
    struct vt_gpu gpu;
    struct vt_err err = {0};
    struct vt_estimate_query q = {
        .arch = &arch,
        .gpu = &gpu,
        .tp = r->tp,
        .kv_bytes = r->kv_bytes,
        .graphs = r->eager ? &(const struct vt_graphs){.none = true} : NULL};
    int rc;

    assert_int_equal(vt_arch_load(&arch, r->model, &err), VT_OK);
    assert_int_equal(vt_gpu_find(&gpu, r->gpu, NULL, &err), VT_OK);
    rc = vt_choose(&c, &q, r->wish, NULL, &err);
    if (r->want == VT_BASIS_UNKNOWN) {
        assert_int_equal(rc, VT_EINPUT);
        return;
    }
    if (rc != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(c.kind, r->want);
    assert_string_equal(c.source.name, r->from ? r->from : "");
    if (r->want == VT_TRANSFERRED)
        assert_string_equal(c.estimate.from, r->from);
}

/* ---- a user's own -------------------------------------------------------- */

static char dir[] = "/tmp/vt-choose-XXXXXX";

static const char *write_own(const char *name, const char *text)
{
    static char path[128];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return path;
}

#define OWN(engine, rest)                                                          \
    "{\"name\":\"mine\",\"engine\":{" engine                                       \
    "},\"model\":{\"kind\":\"step\",\"params\":{\"base\":4000,\"graph_token\":10," \
    "\"mixed\":500,\"mixed_token\":10,\"eager\":500,\"eager_token\":12}}" rest "}"

static struct own_row {
    const char *name, *text, *model, *gpu;
    double kv_bytes;
    enum vt_basis_kind want;
    bool mine; /* it starts from the user's */
} own_rows[] = {
    {.name = "one's own counts before a built-in one",
     .text = OWN("\"model\":\"Qwen/Qwen3-8B\",\"gpu\":\"H200\"", ""),
     .model = "qwen3-8b",
     .gpu = "H200",
     .want = VT_MEASURED,
     .mine = true},
    {.name = "one's own is measured where none of ours is",
     .text = OWN("\"model\":\"llama-3.1-8b\",\"gpu\":\"L40S\"", ""),
     .model = "llama-3.1-8b",
     .gpu = "L40S",
     .want = VT_MEASURED,
     .mine = true},
    {.name = "one's own is carried over to another GPU",
     .text = OWN("\"model\":\"llama-3.1-8b\",\"gpu\":\"L40S\"", ""),
     .model = "llama-3.1-8b",
     .gpu = "H100",
     .want = VT_TRANSFERRED,
     .mine = true},
    {.name = "an 8-bit cache was measured where the profile says so",
     .text = OWN(
         "\"model\":\"llama-3.1-8b\",\"gpu\":\"L40S\",\"kv_cache_dtype\":\"fp8\"", ""),
     .model = "llama-3.1-8b",
     .gpu = "L40S",
     .kv_bytes = 1,
     .want = VT_MEASURED,
     .mine = true},
    {.name = "what does not say its model is no source",
     .text = OWN("\"gpu\":\"L40S\"", ""),
     .model = "llama-3.1-8b",
     .gpu = "L40S",
     .want = VT_ESTIMATED},
    {.name = "what was written by force is no source",
     .text = OWN("\"model\":\"llama-3.1-8b\",\"gpu\":\"L40S\"",
                 ",\"provenance\":{\"forced\":\"bad\"}"),
     .model = "llama-3.1-8b",
     .gpu = "L40S",
     .want = VT_ESTIMATED},
    {.name = "what is no profile is an error",
     .text = "{}",
     .model = "llama-3.1-8b",
     .gpu = "L40S",
     .want = VT_BASIS_UNKNOWN},
};

static void a_users_profiles_come_first(void **state)
{
    const struct own_row *r = *state;
    const char *const own[] = {write_own("mine.json", r->text), NULL};
    struct vt_choice c;
    struct vt_arch arch;
    struct vt_gpu gpu;
    struct vt_err err = {0};
    struct vt_estimate_query q = {
        .arch = &arch, .gpu = &gpu, .tp = 1, .kv_bytes = r->kv_bytes};
    int rc;

    assert_int_equal(vt_arch_load(&arch, r->model, &err), VT_OK);
    assert_int_equal(vt_gpu_find(&gpu, r->gpu, NULL, &err), VT_OK);
    rc = vt_choose(&c, &q, VT_BASIS_UNKNOWN, own, &err);
    (void)unlink(own[0]);
    if (r->want == VT_BASIS_UNKNOWN) {
        assert_int_equal(rc, VT_EINPUT);
        assert_non_null(strstr(err.msg, "mine.json"));
        return;
    }
    if (rc != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(c.kind, r->want);
    assert_string_equal(c.source.name, r->mine ? own[0] : "");
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows) + VT_COUNT(own_rows)];
    size_t n = 0;
    int failed;

    if (!mkdtemp(dir))
        return 1;
    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[n++] = (struct CMUnitTest){.name = rows[i].name,
                                         .test_func = the_best_is_chosen,
                                         .initial_state = &rows[i]};
    for (size_t i = 0; i < VT_COUNT(own_rows); i++)
        tests[n++] = (struct CMUnitTest){.name = own_rows[i].name,
                                         .test_func = a_users_profiles_come_first,
                                         .initial_state = &own_rows[i]};
    failed = cmocka_run_group_tests_name("choose", tests, NULL, NULL);
    (void)rmdir(dir);
    return failed;
}
