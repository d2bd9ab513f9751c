/* check.c - what a golden says of itself: that it can be read, which line of vLLM made
 * it, with which configuration, and how its engine registered. */
#include <ctype.h>

#include "conform/golden.h"
#include "wire/wire.h"

/* ---- contents --------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_ready(struct golden_file *f, const char *hex, struct vt_err *err)
{
    size_t n = strlen(hex);

    f->ready_bad = n == 0 || n % 2 != 0;
    f->ready = vt_arena_alloc(&f->arena, n / 2 + 1);
    if (!f->ready)
        return vt_nomem(err);
    for (size_t i = 0; i + 1 < n && !f->ready_bad; i += 2) {
        int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);

        f->ready_bad = high < 0 || low < 0;
        f->ready[f->ready_len++] = (uint8_t)(high << 4 | low);
    }
    return VT_OK;
}

static int read_meta(struct golden_file *f, struct vt_err *err)
{
    const char *json = f->records.meta_json, *hex = NULL;
    const struct vt_node *meta;
    int rc;

    if (!json)
        return VT_OK;
    if ((rc = vt_json_parse(&f->arena, json, strlen(json), 1, &meta, err)) ||
        (rc = vt_get_str(meta, "vllm_version", VT_OPTIONAL, &f->vllm_version, err)) ||
        (rc = vt_get_str(meta, "config_hash", VT_OPTIONAL, &f->config_hash, err)) ||
        (rc = vt_get_str(meta, "ready_response_hex", VT_OPTIONAL, &hex, err)))
        return rc;
    return hex ? read_ready(f, hex, err) : VT_OK;
}

int golden_load(struct golden_file *f, const char *path, struct vt_err *err)
{
    int rc;

    *f = (struct golden_file){.path = path};
    rc = vt_records_load(&f->records, path, err);
    if (rc != VT_OK)
        return rc;
    rc = vt_within(err, read_meta(f, err), "%s: meta", path);
    if (rc != VT_OK)
        golden_free(f);
    return rc;
}

void golden_free(struct golden_file *f)
{
    vt_records_free(&f->records);
    vt_arena_free(&f->arena);
}

/* ---- rows ------------------------------------------------------------- */

int judge_row(struct judge *j, const char *check, enum vt_check_result result,
              struct vt_err *err, const char *fmt, ...)
{
    struct vt_conform *c = j->conform;
    struct vt_conform_row row = {.golden = j->golden, .check = check, .result = result};
    char text[600];
    va_list args;
    int rc = vt_grow(&c->row, &c->cap, c->n_rows + 1, sizeof(*c->row), err);

    if (rc != VT_OK)
        return rc;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    /* Ids and versions come from a file; a row stays one line. */
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    row.text = vt_arena_copy(&c->arena, text, strlen(text));
    if (!row.text)
        return vt_nomem(err);
    row.excused =
        result == VT_CHECK_FAILED && !row.golden->validated && !j->config->strict;
    c->n_ok += result == VT_CHECK_OK;
    c->n_skipped += result == VT_CHECK_SKIPPED;
    c->n_excused += row.excused;
    c->n_failed += result == VT_CHECK_FAILED && !row.excused;
    c->row[c->n_rows++] = row;
    return VT_OK;
}

int judge_failure(struct judge *j, const char *check, int rc, const struct vt_err *why,
                  struct vt_err *err)
{
    if (rc == VT_ENOMEM)
        return vt_nomem(err);
    return judge_row(j, check, VT_CHECK_FAILED, err, "%s", why->msg);
}

/* ---- line ------------------------------------------------------------- */

/* "v0.26.1rc2+g12" gives "0.26"; false where there is no such number. */
static bool major_minor(const char *version, char *out, size_t size)
{
    const char *p = version + (*version == 'v'), *start = p;

    while (isdigit((unsigned char)*p))
        p++;
    if (p == start || *p != '.' || !isdigit((unsigned char)p[1]))
        return false;
    p++;
    while (isdigit((unsigned char)*p))
        p++;
    if ((size_t)(p - start) >= size)
        return false;
    memcpy(out, start, (size_t)(p - start));
    out[p - start] = '\0';
    return true;
}

int check_line(struct judge *j, const struct golden_file *f, struct vt_err *err)
{
    const struct vt_golden *g = j->golden;
    char on[32];

    if (!f->vllm_version)
        return judge_row(j, "line", VT_CHECK_FAILED, err, "meta has no vllm_version");
    if (strcmp(g->line, VT_NIGHTLY) == 0)
        return judge_row(j, "line", VT_CHECK_OK, err, "%s", f->vllm_version);
    if (!major_minor(f->vllm_version, on, sizeof(on)))
        return judge_row(j, "line", VT_CHECK_FAILED, err, "'%s' is no version",
                         f->vllm_version);
    if (strcmp(on, g->line) != 0)
        return judge_row(j, "line", VT_CHECK_FAILED, err, "%s is not on line %s",
                         f->vllm_version, g->line);
    return judge_row(j, "line", VT_CHECK_OK, err, "%s", f->vllm_version);
}

/* ---- provenance ------------------------------------------------------- */

int check_provenance(struct judge *j, const struct golden_file *f, struct vt_err *err)
{
    const char *want = j->golden->config_hash, *expect = j->config->expect_config_hash;

    if (!f->config_hash)
        return judge_row(j, "provenance", VT_CHECK_FAILED, err,
                         "meta has no config_hash");
    if (strcmp(f->config_hash, want) != 0)
        return judge_row(j, "provenance", VT_CHECK_FAILED, err,
                         "config_hash is %.12s..., the manifest says %.12s...",
                         f->config_hash, want);
    if (expect && strcmp(f->config_hash, expect) != 0)
        return judge_row(j, "provenance", VT_CHECK_FAILED, err,
                         "config_hash is %.12s..., expected was %.12s...",
                         f->config_hash, expect);
    return judge_row(j, "provenance", VT_CHECK_OK, err, "config_hash %.12s...",
                     f->config_hash);
}

/* ---- schema ----------------------------------------------------------- */

int check_schema(struct judge *j, const struct golden_file *f, struct vt_err *err)
{
    const struct vt_golden *g = j->golden;
    struct vt_err why = {0};
    int rc;

    if (!f->ready)
        return judge_row(j, "schema",
                         g->role == VT_GOLDEN_SCHEMA ? VT_CHECK_FAILED
                                                     : VT_CHECK_SKIPPED,
                         err, "meta has no ready_response_hex");
    if (f->ready_bad)
        return judge_row(j, "schema", VT_CHECK_FAILED, err,
                         "ready_response_hex is not lower-case hex");
    rc = vt_wire_ready_check(vt_wire_line_find(g->line), f->ready, f->ready_len, &why);
    if (rc != VT_OK)
        return judge_failure(j, "schema", rc, &why, err);
    return judge_row(j, "schema", VT_CHECK_OK, err, "registration of %zu bytes",
                     f->ready_len);
}
