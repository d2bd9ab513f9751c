/* What a golden says of itself. Replays need the whole program: tests/e2e/conform.sh.
 */
#include "place.h"

#define REQUEST "{\"id\":\"a\",\"prompt_tokens\":2,\"output_tokens\":1,\"ttft_ms\":1}\n"

static struct row {
    const char *name;
    const char *check, *text; /* the row to look for */
    const char *line;
    const char *meta;
    enum vt_check_result result;
    bool excused, strict;
    const char *expect; /* config hash */
} rows[] = {
    {"same version", "line", "0.26.3", "0.26", "\"vllm_version\":\"0.26.3\"",
     VT_CHECK_OK, false, false, NULL},
    {"a version with more behind it", "line", "v0.26.0rc1+g12", "0.26",
     "\"vllm_version\":\"v0.26.0rc1+g12\"", VT_CHECK_OK, false, false, NULL},
    {"another version", "line", "0.2.6 is not on line 0.26", "0.26",
     "\"vllm_version\":\"0.2.6\"", VT_CHECK_FAILED, false, false, NULL},
    {"a longer number", "line", "0.261.0 is not on line 0.26", "0.26",
     "\"vllm_version\":\"0.261.0\"", VT_CHECK_FAILED, false, false, NULL},
    {"no number", "line", "'dev' is no version", "0.26", "\"vllm_version\":\"dev\"",
     VT_CHECK_FAILED, false, false, NULL},
    {"no version", "line", "meta has no vllm_version", "0.26", "\"tp\":1",
     VT_CHECK_FAILED, false, false, NULL},
    {"nightly is any version", "line", "0.33.1.dev7", "nightly",
     "\"vllm_version\":\"0.33.1.dev7\"", VT_CHECK_OK, false, false, NULL},

    {"same configuration", "provenance", "config_hash 001122334455...", "0.26",
     "\"config_hash\":\"" HASH "\"", VT_CHECK_OK, false, false, NULL},
    {"as expected", "provenance", "config_hash 001122334455...", "0.26",
     "\"config_hash\":\"" HASH "\"", VT_CHECK_OK, false, false, HASH},
    {"not as expected", "provenance",
     "config_hash is 001122334455..., expected was ff...", "0.26",
     "\"config_hash\":\"" HASH "\"", VT_CHECK_FAILED, false, false, "ff"},
    {"another configuration", "provenance",
     "config_hash is ab..., the manifest says 001122334455...", "0.26",
     "\"config_hash\":\"ab\"", VT_CHECK_FAILED, false, false, NULL},
    {"no configuration", "provenance", "meta has no config_hash", "0.26", "\"tp\":1",
     VT_CHECK_FAILED, false, false, NULL},

    {"no registration", "schema", "meta has no ready_response_hex", "0.26", "\"tp\":1",
     VT_CHECK_FAILED, false, false, NULL},
    {"a registration that is not hex", "schema",
     "ready_response_hex is not lower-case hex", "0.26",
     "\"ready_response_hex\":\"8G\"", VT_CHECK_FAILED, false, false, NULL},
    {"half a byte", "schema", "ready_response_hex is not lower-case hex", "0.26",
     "\"ready_response_hex\":\"801\"", VT_CHECK_FAILED, false, false, NULL},
    {"an empty registration", "schema",
     "no key 'max_model_len', which line 0.26 requires", "0.26",
     "\"ready_response_hex\":\"80\"", VT_CHECK_FAILED, false, false, NULL},
    {"a key that play does not write", "schema", "play's registration has no key 'x'",
     "0.26", "\"ready_response_hex\":\"81a17801\"", VT_CHECK_FAILED, false, false,
     NULL},
    {"a key of the wrong type", "schema", "key 'max_model_len' has a wrong type",
     "0.26", "\"ready_response_hex\":\"81ad6d61785f6d6f64656c5f6c656ea131\"",
     VT_CHECK_FAILED, false, false, NULL},

    {"a line that is not validated is excused", "schema",
     "no key 'max_model_len', which line 0.32 requires", "0.32",
     "\"ready_response_hex\":\"80\"", VT_CHECK_FAILED, true, false, NULL},
    {"but not by --strict", "schema",
     "no key 'max_model_len', which line 0.32 requires", "0.32",
     "\"ready_response_hex\":\"80\"", VT_CHECK_FAILED, false, true, NULL},
};

static void put_golden(struct place *p, struct vt_buf *manifest, const char *line,
                       const char *digest)
{
    vt_buf_printf(manifest,
                  "[[golden]]\nline = \"%s\"\npath = \"g.jsonl\"\nrole = \"schema\"\n"
                  "workload = \"w\"\nsha256 = \"%s\"\nconfig_hash = \"" HASH "\"\n",
                  line, digest);
    place_put(p, "manifest.toml", manifest->data);
    place_put(p, "compat.toml", COMPAT);
    place_put(p, "models.toml", "");
}

static const struct vt_conform_row *find(const struct vt_conform *c, const char *check)
{
    for (size_t i = 0; i < c->n_rows; i++)
        if (strcmp(c->row[i].check, check) == 0)
            return &c->row[i];
    return NULL;
}

static void run_in(struct place *p, const struct vt_conform_config *config,
                   struct vt_manifest *m, struct vt_conform *c)
{
    struct vt_err err = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/manifest.toml", p->directory);
    assert_int_equal(vt_manifest_load(m, path, &err), VT_OK);
    assert_int_equal(vt_conform_run(c, m, config, &err), VT_OK);
}

static void checks(void **state)
{
    const struct row *r = *state;
    const struct vt_conform_config config = {
        .role = -1, .expect_config_hash = r->expect, .strict = r->strict};
    const struct vt_conform_row *row;
    struct vt_buf text = {0}, manifest = {0};
    struct vt_manifest m;
    struct vt_conform c;
    struct vt_err err;
    struct place p;
    char digest[65];

    place_begin(&p);
    vt_buf_printf(&text, "{\"meta\":{%s}}\n" REQUEST, r->meta);
    assert_int_equal(file_sha256(place_put(&p, "g.jsonl", text.data), digest, &err),
                     VT_OK);
    put_golden(&p, &manifest, r->line, digest);
    run_in(&p, &config, &m, &c);
    row = find(&c, r->check);
    assert_non_null(row);
    assert_string_equal(row->text, r->text);
    assert_int_equal(row->result, r->result);
    assert_int_equal(row->excused, r->excused);
    assert_int_equal(find(&c, "integrity")->result, VT_CHECK_OK);
    assert_int_equal(c.n_ok + c.n_failed + c.n_excused + c.n_skipped, c.n_rows);
    vt_conform_free(&c);
    vt_manifest_free(&m);
    vt_buf_free(&text);
    vt_buf_free(&manifest);
    place_end(&p);
}

static void a_changed_file_is_not_looked_into(void **state)
{
    const struct vt_conform_config config = {.role = -1};
    struct vt_buf manifest = {0};
    struct vt_manifest m;
    struct vt_conform c;
    struct place p;

    (void)state;
    place_begin(&p);
    place_put(&p, "g.jsonl", REQUEST);
    put_golden(&p, &manifest, "0.26", HASH);
    run_in(&p, &config, &m, &c);
    assert_int_equal(c.n_rows, 1);
    assert_string_equal(c.row[0].check, "integrity");
    assert_int_equal(c.row[0].result, VT_CHECK_FAILED);
    assert_non_null(strstr(c.row[0].text, "the manifest says 001122334455..."));
    vt_conform_free(&c);
    vt_manifest_free(&m);
    vt_buf_free(&manifest);
    place_end(&p);
}

static void a_missing_file_is_skipped_unless_strict(void **state)
{
    struct vt_conform_config config = {.role = -1};
    struct vt_buf manifest = {0};
    struct vt_manifest m;
    struct vt_conform c;
    struct place p;

    (void)state;
    place_begin(&p);
    put_golden(&p, &manifest, "0.26", HASH);
    run_in(&p, &config, &m, &c);
    assert_int_equal(c.n_skipped, 1);
    assert_int_equal(c.n_failed, 0);
    vt_conform_free(&c);
    vt_manifest_free(&m);
    config.strict = true;
    run_in(&p, &config, &m, &c);
    assert_int_equal(c.n_failed, 1);
    vt_conform_free(&c);
    vt_manifest_free(&m);
    vt_buf_free(&manifest);
    place_end(&p);
}

static void filters_choose(void **state)
{
    struct vt_conform_config config = {.role = VT_GOLDEN_FIDELITY};
    struct vt_buf manifest = {0};
    struct vt_manifest m;
    struct vt_conform c;
    struct vt_err err = {0};
    struct place p;

    (void)state;
    place_begin(&p);
    put_golden(&p, &manifest, "0.26", HASH);
    run_in(&p, &config, &m, &c);
    assert_int_equal(c.n_goldens, 0);
    vt_conform_free(&c);
    config = (struct vt_conform_config){.role = -1, .line = "0.32"};
    assert_int_equal(vt_conform_run(&c, &m, &config, &err), VT_OK);
    assert_int_equal(c.n_goldens, 0);
    vt_conform_free(&c);
    config.line = "0.99";
    assert_int_equal(vt_conform_run(&c, &m, &config, &err), VT_EINPUT);
    assert_string_equal(err.msg, "line '0.99' is not in compat.toml, which has 0.26, "
                                 "0.32, nightly");
    vt_manifest_free(&m);
    vt_buf_free(&manifest);
    place_end(&p);
}

/* The engines that made the shipped goldens registered as their lines ask. */
static void shipped_goldens_hold_but_for_replays(void **state)
{
    const struct vt_conform_config config = {.role = -1}; /* no program to start */
    struct vt_manifest m;
    struct vt_conform c;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        vt_manifest_load(&m, VT_TEST_DIR "/../conformance/manifest.toml", &err), VT_OK);
    assert_int_equal(vt_conform_run(&c, &m, &config, &err), VT_OK);
    assert_int_equal(c.n_failed + c.n_excused, 0);
    assert_true(c.n_ok >= 5 * c.n_goldens);
    vt_conform_free(&c);
    vt_manifest_free(&m);
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(a_changed_file_is_not_looked_into),
        cmocka_unit_test(a_missing_file_is_skipped_unless_strict),
        cmocka_unit_test(filters_choose),
        cmocka_unit_test(shipped_goldens_hold_but_for_replays),
    };
    struct CMUnitTest tests[VT_COUNT(rows)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = checks, .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("conform rows", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("conform", more, NULL, NULL);
}
