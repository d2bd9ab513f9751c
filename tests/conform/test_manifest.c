#include "place.h"
#include "wire/wire.h"

#define GOLDEN                                                                     \
    "[[golden]]\nline = \"0.26\"\npath = \"a-0.26.jsonl.gz\"\nrole = \"schema\"\n" \
    "workload = \"w\"\nsha256 = \"" HASH "\"\nconfig_hash = \"" HASH "\"\n"

static struct row {
    const char *name;
    const char *manifest, *compat, *models; /* NULL: the usual one */
    const char *want;                       /* end of the message; NULL: it is good */
} rows[] = {
    {"no goldens", "", NULL, NULL, NULL},
    {"one golden", GOLDEN, NULL, NULL, NULL},
    {"a golden of the nightly line",
     "[[golden]]\nline = \"nightly\"\nbucket_path = \"x.gz\"\nrole = \"fidelity\"\n"
     "workload = \"w\"\nsha256 = \"" HASH "\"\nconfig_hash = \"" HASH "\"\n",
     NULL, NULL, NULL},
    {"patches come together", GOLDEN,
     COMPAT "[[vllm]]\nline = \"0.27\"\ntag = \"v0.27.1\"\npatch_repo = \"r\"\n"
            "patch_rev = \"1\"\nfidelity_validated = false\n",
     NULL, NULL},

    {"not a list", "golden = 1", NULL, NULL,
     "manifest.toml: line 1: 'golden' is not a list of tables"},
    {"unknown key", GOLDEN "sha = 1", NULL, NULL,
     "manifest.toml: line 8: unknown field 'sha'"},
    {"other tables", "[[goldens]]\n", NULL, NULL,
     "manifest.toml: line 1: unknown field 'goldens' (did you mean 'golden'?)"},
    {"no role",
     "[[golden]]\nline = \"0.26\"\npath = \"x\"\nworkload = \"w\"\n"
     "sha256 = \"" HASH "\"\nconfig_hash = \"" HASH "\"\n",
     NULL, NULL, "manifest.toml: line 1: field 'role' is missing"},
    {"a role that is none",
     GOLDEN "[[golden]]\nline = \"0.26\"\npath = \"x\"\n"
            "workload = \"w\"\nsha256 = \"" HASH "\"\n"
            "config_hash = \"" HASH "\"\nrole = \"both\"\n",
     NULL, NULL, "manifest.toml: line 8: role 'both' is neither schema nor fidelity"},
    {"no file",
     "[[golden]]\nline = \"0.26\"\nworkload = \"w\"\nrole = \"schema\"\n"
     "sha256 = \"" HASH "\"\nconfig_hash = \"" HASH "\"\n",
     NULL, NULL, "manifest.toml: line 1: neither path nor bucket_path"},
    {"half a digest",
     "[[golden]]\nline = \"0.26\"\nworkload = \"w\"\npath = \"x\"\n"
     "role = \"schema\"\nsha256 = \"00\"\nconfig_hash = \"\"\n",
     NULL, NULL, "manifest.toml: line 1: sha256 is not 64 digits of lower-case hex"},
    {"a line that is not in compat.toml",
     "[[golden]]\nline = \"0.27\"\npath = \"x\"\nworkload = \"w\"\nrole = \"schema\"\n"
     "sha256 = \"" HASH "\"\nconfig_hash = \"" HASH "\"\n",
     NULL, NULL, "manifest.toml: line 1: line '0.27' is not in compat.toml"},
    {"a model that is not in models.toml", GOLDEN "model = \"n\"\n", NULL, NULL,
     "manifest.toml: line 1: model 'n' is not in models.toml"},
    {"half a tolerance", GOLDEN "tolerance = { p50_ms = 1 }\n", NULL, NULL,
     "manifest.toml: line 8: field 'p99_ms' is missing"},
    {"a tolerance below zero", GOLDEN "tolerance = { p50_ms = -1, p99_ms = 1 }\n", NULL,
     NULL, "manifest.toml: line 8: field 'p50_ms' must be from 0 to 1000000, not -1"},
    {"no TOML", "golden = [", NULL, NULL, "manifest.toml: line 1: expected a value"},

    {"no lines", "", "", NULL, "compat.toml: no [[vllm]]"},
    {"no default", "",
     "[[vllm]]\nline = \"0.26\"\ntag = \"v0.26.0\"\nfidelity_validated = true\n", NULL,
     "compat.toml: 0 lines are the default, not one"},
    {"two defaults", "",
     COMPAT "[[vllm]]\nline = \"0.27\"\ntag = \"v0.27.1\"\ndefault = true\n"
            "fidelity_validated = false\n",
     NULL, "compat.toml: 2 lines are the default, not one"},
    {"a line twice", "", COMPAT COMPAT, NULL,
     "compat.toml: line 14: line 0.26 appears twice"},
    {"a line of the future", "",
     COMPAT "[[vllm]]\nline = \"9.9\"\ntag = \"v9.9.0\"\nfidelity_validated = false\n",
     NULL, "compat.toml: line 14: vtwin does not know vLLM's line '9.9'"},
    {"a tag of another line", "",
     COMPAT
     "[[vllm]]\nline = \"0.27\"\ntag = \"v0.26.0\"\nfidelity_validated = false\n",
     NULL, "compat.toml: line 14: tag 'v0.26.0' is not on line 0.27"},
    {"half a patch", "",
     COMPAT "[[vllm]]\nline = \"0.27\"\ntag = \"v0.27.1\"\npatch_repo = \"r\"\n"
            "fidelity_validated = false\n",
     NULL, "compat.toml: line 14: patch_repo and patch_rev come together"},

    {"a model twice", "", NULL, MODELS MODELS,
     "models.toml: line 6: model 'm' appears twice"},
    {"a model without a vocabulary", "", NULL,
     "[[model]]\nname = \"m\"\nmax_model_len = 1\n",
     "models.toml: line 1: field 'vocab_size' is missing"},
};

static void loads(void **state)
{
    const struct row *r = *state;
    struct vt_manifest m;
    struct vt_err err = {0};
    struct place p;
    const char *path;
    int rc;

    place_begin(&p);
    path = place_put(&p, "manifest.toml", r->manifest);
    place_put(&p, "compat.toml", r->compat ? r->compat : COMPAT);
    place_put(&p, "models.toml", r->models ? r->models : MODELS);
    rc = vt_manifest_load(&m, path, &err);
    place_end(&p);
    if (!r->want) {
        assert_string_equal(err.msg, "");
        assert_int_equal(rc, VT_OK);
    } else {
        size_t n = strlen(p.directory);

        assert_int_equal(rc, VT_EINPUT);
        assert_memory_equal(err.msg, p.directory, n);
        assert_string_equal(err.msg + n + 1, r->want);
    }
    vt_manifest_free(&m);
}

static void fields_are_read(void **state)
{
    struct vt_manifest m;
    struct vt_err err = {0};
    struct place p;
    const char *path;

    (void)state;
    place_begin(&p);
    path = place_put(&p, "manifest.toml",
                     GOLDEN "model = \"m\"\nbucket_path = \"b/c.gz\"\n"
                            "tolerance = { p50_ms = 1.5, p99_ms = 3 }\n"
                            "[[golden]]\nline = \"0.32\"\nbucket_path = \"x/y.z.gz\"\n"
                            "role = \"fidelity\"\nworkload = \"w\"\nsha256 = \"" HASH
                            "\"\nconfig_hash = \"" HASH "\"\n");
    place_put(&p, "compat.toml", COMPAT);
    place_put(&p, "models.toml", MODELS);
    assert_int_equal(vt_manifest_load(&m, path, &err), VT_OK);
    place_end(&p);
    assert_string_equal(m.directory, p.directory);
    assert_int_equal(m.n_goldens, 2);
    assert_string_equal(m.golden[0].name, "a-0.26");
    assert_true(m.golden[0].validated);
    assert_string_equal(m.golden[0].model->name, "m");
    assert_int_equal(m.golden[0].model->vocab_size, 100);
    assert_true(m.golden[0].tolerance.p50_ms == 1.5);
    assert_true(m.golden[0].tolerance.p99_ms == 3);
    assert_string_equal(m.golden[1].name, "y");
    assert_false(m.golden[1].validated);
    assert_null(m.golden[1].model);
    assert_true(m.golden[1].tolerance.p50_ms < 0);
    assert_int_equal(m.golden[1].role, VT_GOLDEN_FIDELITY);
    vt_manifest_free(&m);
}

static void shipped_manifest_is_good(void **state)
{
    struct vt_manifest m;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        vt_manifest_load(&m, VT_TEST_DIR "/../conformance/manifest.toml", &err), VT_OK);
    assert_true(m.n_goldens >= 7);
    vt_manifest_free(&m);
}

/* The newest line and the three before it, and older ones while goldens stand on them.
 */
static void the_window_is_kept_by_rule(void **state)
{
    struct vt_manifest m;
    struct vt_err err = {0};
    size_t n;
    const struct vt_wire_line *const *line = vt_wire_lines(&n);

    (void)state;
    assert_int_equal(
        vt_manifest_load(&m, VT_TEST_DIR "/../conformance/manifest.toml", &err), VT_OK);
    for (size_t i = 0; i < n; i++) {
        bool wanted = line[i]->minor + 3 >= line[n - 1]->minor, there = false;

        for (size_t k = 0; k < m.n_goldens; k++)
            wanted |= strcmp(m.golden[k].line, line[i]->name) == 0;
        for (size_t k = 0; k < m.n_lines; k++)
            there |= strcmp(m.line[k].line, line[i]->name) == 0;
        print_message("  %s: %s\n", line[i]->name, wanted ? "in" : "out");
        assert_int_equal(there, wanted);
        assert_int_equal(line[i]->past, !wanted);
    }
    vt_manifest_free(&m);
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(fields_are_read),
        cmocka_unit_test(shipped_manifest_is_good),
        cmocka_unit_test(the_window_is_kept_by_rule),
    };
    struct CMUnitTest tests[VT_COUNT(rows)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = loads, .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("manifest rows", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("manifest", more, NULL, NULL);
}
