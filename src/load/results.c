/* results.c - results of benchmarks, read back: the JSON of `vllm bench serve` and of
 * ours. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "load/load.h"

static const size_t MAX_BYTES = (size_t)1 << 30;
enum { MAX_RESULTS = 10000, MAX_KEY = 128 };

static int add_result(struct vt_results *r, const char *name,
                      const struct vt_node *root, struct vt_err *err)
{
    int rc;

    if (root->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "%s: not the result of a benchmark", name);
    if (r->n >= MAX_RESULTS)
        return vt_fail(err, VT_EINPUT, "more than %d results", MAX_RESULTS);
    rc = vt_grow(&r->result, &r->cap, r->n + 1, sizeof(*r->result), err);
    if (rc != VT_OK)
        return rc;
    name = vt_arena_copy(&r->arena, name, strlen(name));
    if (!name)
        return vt_nomem(err);
    r->result[r->n++] =
        (struct vt_result){.name = name, .root = root, .side = r->n_sides++};
    return VT_OK;
}

static int add_numbered(struct vt_results *r, const char *name, uint32_t number,
                        const struct vt_node *root, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    vt_buf_printf(&b, "%s:%u", name, number);
    rc = b.failed ? vt_nomem(err) : add_result(r, b.data, root, err);
    vt_buf_free(&b);
    return rc;
}

static bool is_blank(const char *line, size_t len)
{
    return strspn(line, " \t\r\n") == len;
}

/* A line each, as --append-result writes them. */
static int add_lines(struct vt_results *r, const char *name, const char *text,
                     size_t len, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_from(&lines, name, text, len, err);

    if (rc != VT_OK)
        return rc;
    for (;;) {
        const struct vt_node *root;
        char *line;
        size_t n;

        rc = vt_lines_next(lines, &line, &n, NULL, err);
        if (rc != VT_OK || !line)
            break;
        if (is_blank(line, n))
            continue;
        rc = vt_within(
            err, vt_json_parse(&r->arena, line, n, vt_lines_number(lines), &root, err),
            "%s", name);
        if (rc == VT_OK)
            rc = add_numbered(r, name, vt_lines_number(lines), root, err);
        if (rc != VT_OK)
            break;
    }
    vt_lines_close(lines);
    return rc;
}

static int read_json(struct vt_results *r, const char *name, const char *text,
                     size_t len, struct vt_err *err)
{
    const char *end = memchr(text, '\n', len);
    struct vt_arena scratch = {0};
    const struct vt_node *root;
    struct vt_err ignored;
    int rc;

    /* One line of several: a newline with more behind it, and whole values on each. */
    if (end && !is_blank(end + 1, len - (size_t)(end + 1 - text))) {
        rc = vt_json_parse(&scratch, text, (size_t)(end - text), 1, &root, &ignored);
        vt_arena_free(&scratch);
        if (rc == VT_OK)
            return add_lines(r, name, text, len, err);
    }
    rc = vt_within(err, vt_json_parse(&r->arena, text, len, 1, &root, err), "%s", name);
    if (rc != VT_OK)
        return rc;
    if (root->kind != VT_LIST)
        return add_result(r, name, root, err);
    if (root->n == 0)
        return vt_fail(err, VT_EINPUT, "%s: there are no results", name);
    for (uint32_t i = 0; i < root->n && rc == VT_OK; i++)
        rc = add_numbered(r, name, i + 1, &root->u.item[i], err);
    return rc;
}

/* ---- Python's JSON --------------------------------------------------- */

/* The same text with null for numbers that only Python writes, as for a burstiness of
 * inf. */
static void without_odd_numbers(struct vt_buf *out, const char *text, size_t len)
{
    static const char *const known[] = {"NaN", "Infinity", "-Infinity"};
    size_t from = 0;

    for (size_t at = 0; at < len; at++) {
        if (text[at] == '"')
            for (at++; at < len && text[at] != '"'; at++)
                at += text[at] == '\\';
        for (size_t i = 0; i < VT_COUNT(known); i++) {
            size_t n = strlen(known[i]);

            if (at >= len || len - at < n || memcmp(text + at, known[i], n) != 0)
                continue;
            vt_buf_add(out, text + from, at - from);
            vt_buf_str(out, "null");
            from = at + n;
            at = from - 1;
            break;
        }
    }
    vt_buf_add(out, text + from, len - from);
}

int vt_results_read(struct vt_results *r, const char *name, const char *text,
                    size_t len, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    if (!strstr(text, "NaN") && !strstr(text, "Infinity"))
        return read_json(r, name, text, len, err);
    without_odd_numbers(&b, text, len);
    rc = b.failed ? vt_nomem(err) : read_json(r, name, b.data, b.len, err);
    vt_buf_free(&b);
    return rc;
}

static int load_file(struct vt_results *r, const char *path, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = vt_read_file(path, MAX_BYTES, &b, err);

    if (rc == VT_OK)
        rc = vt_results_read(r, path, b.data ? b.data : "", b.len, err);
    vt_buf_free(&b);
    return rc;
}

/* ---- folders ------------------------------------------------------------ */

static bool is_file(const char *path)
{
    return access(path, R_OK) == 0 && !vt_is_directory(path);
}

/* A run in a folder of runs: a file of its own, or a report's summary. "": none. */
static void run_path(char *out, size_t size, const char *dir, const char *name)
{
    if (name[0] != '.' && vt_is_named(name, ".json"))
        (void)snprintf(out, size, "%s/%s", dir, name);
    else
        (void)snprintf(out, size, "%s/%s/summary.json", dir, name);
    if (name[0] == '.' || !is_file(out))
        out[0] = '\0';
}

/* In the order of their names, whatever the file system says. */
static int load_runs(struct vt_results *r, const char *dir, struct vt_err *err)
{
    size_t first = r->n, side = r->n_sides;
    struct dirent **entry = NULL;
    char path[4096];
    int n = scandir(dir, &entry, NULL, alphasort), rc = VT_OK;

    if (n < 0)
        return vt_fail(err, VT_EINPUT, "%s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        run_path(path, sizeof(path), dir, entry[i]->d_name);
        if (path[0] && rc == VT_OK)
            rc = load_file(r, path, err);
        free(entry[i]);
    }
    free(entry);
    if (rc == VT_OK && r->n == first)
        rc = vt_fail(err, VT_EINPUT, "%s: no result in it: no summary.json, no .json",
                     dir);
    for (size_t i = first; i < r->n; i++)
        r->result[i].side = side;
    r->n_sides = side + 1;
    return rc;
}

int vt_results_load(struct vt_results *r, const char *path, struct vt_err *err)
{
    char summary[4096];

    if (!vt_is_directory(path))
        return load_file(r, path, err);
    (void)snprintf(summary, sizeof(summary), "%s/summary.json", path);
    return is_file(summary) ? load_file(r, summary, err) : load_runs(r, path, err);
}

void vt_results_free(struct vt_results *r)
{
    vt_arena_free(&r->arena);
    free(r->result);
    *r = (struct vt_results){0};
}

/* ---- metrics --------------------------------------------------------- */

bool vt_result_get(const struct vt_result *r, const char *metric, double *out)
{
    const struct vt_node *at = r->root;
    char key[MAX_KEY];

    for (;;) {
        /* A percentile has a dot of its own: "p99.9_ttft_ms". */
        const struct vt_node *v = vt_get(at, metric);
        size_t n = strcspn(metric, ".");

        if (v && (v->kind == VT_REAL || v->kind == VT_INT)) {
            *out = v->kind == VT_REAL ? v->u.real
                   : v->is_u64        ? (double)(uint64_t)v->u.integer
                                      : (double)v->u.integer;
            return true;
        }
        if (metric[n] == '\0' || n >= sizeof(key))
            return false;
        memcpy(key, metric, n);
        key[n] = '\0';
        at = vt_get(at, key);
        metric += n + 1;
    }
}
