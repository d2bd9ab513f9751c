/* Every allocation of every reader and writer is made to fail in turn, once and for
 * good. The only outcomes allowed are success and VT_ENOMEM, and nothing may leak.
 *
 * This program replaces malloc, which sanitizers do too; under those it does nothing.
 */
#include "testing.h"

#include <unistd.h>

#include "../failing_malloc.h"

#if REPLACES_MALLOC

static char dir[] = "/tmp/vt_test_nomem.XXXXXX";
static char path[64], path_gz[64];

/* 300 keys, so that the large way of checking them runs too. */
static char text[8192];
static size_t text_len;

static int read_json(struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    int rc = vt_json_parse(&arena, text, text_len, 1, &root, err);

    vt_arena_free(&arena);
    return rc;
}

static int read_yaml(struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    int rc = vt_yaml_parse(&arena, text, text_len, &root, err);

    vt_arena_free(&arena);
    return rc;
}

static int read_toml(struct vt_err *err)
{
    static const char toml[] = "a = \"x\\n\"\n[b.c]\nd.e = [1, {f = '''g'''}]\n"
                               "[[h]]\ni = 1.5\n[[h]]\n\"j k\" = true\n";
    struct vt_arena arena = {0};
    const struct vt_node *root;
    int rc = vt_toml_parse(&arena, toml, strlen(toml), &root, err);

    vt_arena_free(&arena);
    return rc;
}

static int load_tree(struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    int rc = vt_tree_load(&arena, path_gz, &root, err);

    vt_arena_free(&arena);
    return rc;
}

static int read_lines(struct vt_err *err)
{
    struct vt_lines *l;
    char *line = text;
    size_t len;
    int rc = vt_lines_open(&l, path_gz, err);

    while (rc == VT_OK && line)
        rc = vt_lines_next(l, &line, &len, NULL, err);
    vt_lines_close(l);
    return rc;
}

static int write_to(const char *name, struct vt_err *err)
{
    struct vt_out *o;
    int rc = vt_out_open(&o, name, err);

    if (rc != VT_OK)
        return rc;
    rc = vt_out_write(o, text, text_len, err);
    if (rc == VT_OK)
        return vt_out_commit(o, err);
    vt_out_abandon(o);
    return rc;
}

static int write_plain(struct vt_err *err)
{
    return write_to(path, err);
}

static int write_gzip(struct vt_err *err)
{
    return write_to(path_gz, err);
}

static int make_dirs(struct vt_err *err)
{
    char *first = NULL;
    int rc = vt_make_dirs(dir, &first, err);

    free(first);
    return rc;
}

static int fill_map(struct vt_err *err)
{
    struct vt_map m = {0};
    int rc = VT_OK;

    for (uint64_t i = 0; i < 200 && rc == VT_OK; i++)
        rc = vt_map_put(&m, i) ? VT_OK : vt_nomem(err);
    vt_map_free(&m);
    return rc;
}

static int claim_names(struct vt_err *err)
{
    static const char *const name[] = {"a", "b"};
    struct vt_names names = {0};
    int rc = VT_OK;
    bool is_new;

    for (uint32_t i = 0; i < 2 && rc == VT_OK; i++) {
        uint32_t index = i;

        rc = vt_names_claim(&names, name, sizeof(name[0]), name[i], 1, &index, &is_new,
                            err);
    }
    vt_names_free(&names);
    return rc;
}

static int run_program(struct vt_err *err)
{
    struct vt_proc p = {.in_path = true};
    int rc;

    vt_proc_arg(&p, "true");
    vt_proc_arg_printf(&p, "%s", "x");
    rc = vt_proc_run(&p, 0, err);
    vt_proc_stop(&p);
    return rc;
}

static int write_json(struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_jw w;
    int rc;

    vt_jw_init(&w, &b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    for (int i = 0; i < 100; i++)
        vt_jw_str(&w, "key", "text");
    vt_jw_end(&w);
    rc = b.failed ? vt_nomem(err) : VT_OK;
    vt_buf_free(&b);
    return rc;
}

/* Has a slower way that needs no memory. */
static int sort_numbers(struct vt_err *err)
{
    static double v[1000];

    (void)err;
    for (size_t i = 0; i < VT_COUNT(v); i++)
        v[i] = (double)((i * 7919) % 1000);
    vt_sort_f64(v, VT_COUNT(v));
    for (size_t i = 0; i < VT_COUNT(v); i++)
        assert_true(v[i] == (double)i);
    return VT_OK;
}

static struct row {
    const char *name;
    int (*run)(struct vt_err *err);
} rows[] = {
    {"writing a file", write_plain}, {"writing gzip", write_gzip},
    {"reading JSON", read_json},     {"reading YAML", read_yaml},
    {"reading TOML", read_toml},     {"loading a tree", load_tree},
    {"reading lines", read_lines},   {"making directories", make_dirs},
    {"sorting", sort_numbers},       {"filling a map", fill_map},
    {"claiming names", claim_names}, {"running a program", run_program},
    {"writing JSON", write_json},
};

/* Returns how many allocations a run makes that is let through. */
static long run_with(const struct row *r, long at, bool good)
{
    struct vt_err err = {0};
    long before = live;
    int rc;

    fail_at = at;
    for_good = good;
    calls = 0;
    rc = r->run(&err);
    fail_at = 0;
    assert_int_equal(live, before);
    assert_true(rc == VT_OK || rc == VT_ENOMEM);
    if (rc == VT_ENOMEM)
        assert_non_null(strstr(err.msg, "out of memory"));
    return calls;
}

static void survives_any_failed_allocation(void **state)
{
    const struct row *r = *state;
    long n;

    run_with(r, 0, false); /* what the C library allocates once and keeps */
    n = run_with(r, 0, false);
    assert_true(n > 0);
    for (long at = 1; at <= n; at++) {
        run_with(r, at, false);
        run_with(r, at, true);
    }
}

static void make_text(void)
{
    size_t n = 0;

    for (int i = 0; i < 300; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "%c\"k%d\": [%d, \"a\\tb\"]\n", i ? ',' : '{', i, i);
    text_len = n + (size_t)snprintf(text + n, sizeof(text) - n, "}\n");
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows)];
    int failed;

    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof(path), "%s/f", dir);
    snprintf(path_gz, sizeof(path_gz), "%s/f.gz", dir);
    make_text();
    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = survives_any_failed_allocation,
                                       .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("nomem", tests, NULL, NULL);
    unlink(path);
    unlink(path_gz);
    return failed + (rmdir(dir) != 0); /* temporary files would keep it */
}

#else

int main(void)
{
    return 0;
}

#endif
