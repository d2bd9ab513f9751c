/* Which command lines a query makes, and which it must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "explore/parts.h"

static bool takes(void *user, const char *command, const char *flag)
{
    (void)user;
    if (strcmp(command, "workload") == 0)
        return strcmp(flag, "workload") == 0 || strcmp(flag, "trace") == 0;
    return true;
}

static const struct vt_explore_flag start[] = {
    {NULL, "Qwen/Qwen3-8B"}, /* the page may change these */
    {"gpu", "H200"},
    {"trace", "my trace.jsonl"}, /* and not this */
};
static const struct vt_explore x = {
    .start = start, .n_start = VT_COUNT(start), .takes = takes};

static struct row {
    const char *path, *query;
    const char *want; /* the command line, or "! " and a part of the message */
} rows[] = {
    {"/api/v1/capacity", "", "vtwin capacity --trace 'my trace.jsonl' --json"},
    {"/api/v1/capacity", "model=llama-3.1-8b&gpu=H100&instances=2",
     "vtwin capacity --trace 'my trace.jsonl' llama-3.1-8b --gpu H100 --instances 2 "
     "--json"},
    {"/api/v1/preview", "slo=ttft-p99%3D500ms%2Ctpot-p99%3D50ms",
     "vtwin capacity --trace 'my trace.jsonl' --slo ttft-p99=500ms,tpot-p99=50ms "
     "--sketch --json"},
    {"/api/v1/point", "request-rate=2.5&enable-prefix-caching=off",
     "vtwin simulate --trace 'my trace.jsonl' --request-rate 2.5 "
     "--no-enable-prefix-caching --charts --json"},
    {"/api/v1/point", "enforce-eager=on&enable-prefix-caching=on",
     "vtwin simulate --trace 'my trace.jsonl' --enforce-eager --enable-prefix-caching "
     "--charts --json"},
    {"/api/v1/point", "seeds=1&seed=2",
     "vtwin simulate --trace 'my trace.jsonl' --seed 2 --charts --json"},
    {"/api/v1/point", "enforce-eager=off",
     "vtwin simulate --trace 'my trace.jsonl' --charts --json"},
    /* What a command does not take is not for it. */
    {"/api/v1/workload.yaml", "gpu=H100&workload=chat",
     "vtwin workload show --trace 'my trace.jsonl' --workload chat"},
    /* Nothing that names a file, a server or another flag. */
    {"/api/v1/capacity", "model=/etc/passwd", "! none that a page may ask for"},
    {"/api/v1/capacity", "workload=../secret.yaml", "! none that a page may ask for"},
    {"/api/v1/capacity", "gpu=--out", "! none that a page may ask for"},
    {"/api/v1/capacity", "seeds=--target", "! none that a page may ask for"},
    {"/api/v1/capacity", "routing=a/b", "! none that a page may ask for"},
    {"/api/v1/capacity", "slo=x%00--out", "! could be read"},
    {"/api/v1/capacity", "enable-prefix-caching=maybe", "! none that a page may"},
    {"/api/v1/capacity", "trace=other.jsonl", "! unknown flag 'trace'"},
    {"/api/v1/capacity", "target=http://x", "! unknown flag 'target'"},
    {"/api/v1/capacity", "out=x", "! unknown flag 'out'"},
    {"/api/v1/capacity", "profiles=x", "! unknown flag 'profiles'"},
    {"/api/v1/capacity", "gpus=H100", "! did you mean 'gpu'"},
    {"/api/v1/capacity", "gpu", "! "},
    {"/api/v1/capacity", "=1", "! "},
    {"/api/v1/capacity", "&", "! "},
};

static void makes(void **state)
{
    const struct row *r = *state;
    const struct question *q = question_find(r->path);
    struct argv_words w;
    struct vt_buf text = {0};
    struct vt_err err = {0};
    int rc;

    assert_non_null(q);
    rc = question_argv(&w, &x, q, r->query, &err);
    if (r->want[0] == '!') {
        assert_int_equal(rc, VT_EINPUT);
        assert_non_null(strstr(err.msg, r->want + 2));
    } else {
        assert_int_equal(rc, VT_OK);
        argv_text(&text, &w);
        assert_string_equal(text.data, r->want);
        assert_null(w.word[w.n]);
    }
    vt_buf_free(&text);
    argv_free(&w);
}

static void begins(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *root = NULL, *part;
    struct vt_buf b = {0};
    struct vt_err err = {0};
    const char *text = NULL;

    (void)state;
    assert_int_equal(question_start(&b, &x, &err), VT_OK);
    assert_int_equal(vt_json_parse(&arena, b.data, b.len, 1, &root, &err), VT_OK);
    part = vt_get(root, "state");
    assert_int_equal(vt_get_str(part, "model", VT_REQUIRED, &text, &err), VT_OK);
    assert_string_equal(text, "Qwen/Qwen3-8B");
    part = vt_get(root, "fixed");
    assert_int_equal(part->n, 1);
    assert_int_equal(vt_get_str(&part->u.item[0], "flag", VT_REQUIRED, &text, &err),
                     VT_OK);
    assert_string_equal(text, "trace");
    assert_true(vt_get(root, "models")->n > 50 && vt_get(root, "gpus")->n > 10);
    assert_true(vt_get(root, "workloads")->n > 5);
    vt_arena_free(&arena);
    vt_buf_free(&b);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows) + 1];

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].query, .test_func = makes, .initial_state = &rows[i]};
    tests[VT_COUNT(rows)] = (struct CMUnitTest)cmocka_unit_test(begins);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
