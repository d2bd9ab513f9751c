/* cmd_validate_figures.c - vtwin validate figures: pictures, a table and a page of what
 * a run of `vtwin validate` found. */
#include "cli/cmd/validate.h"
#include "validate/validate.h"

enum { MAX_EXCLUDED = 32 };

static void tell(void *user, const char *name, enum vt_drawn result, const char *why)
{
    struct vt_buf *b = user;

    if (result == VT_DRAWN_OK)
        vt_buf_printf(b, "OK: %s\n", name);
    else if (result == VT_DRAWN_SKIPPED)
        vt_buf_printf(b, "SKIP: %s (%s)\n", name, why);
    else
        vt_buf_printf(b, "FAIL: %s (%s)\n", name, why);
}

/* "a,b" and "a b"; *text keeps the names. */
static int get_excluded(const struct cli_args *a, char **text, const char **name,
                        size_t *n, struct vt_err *err)
{
    struct vt_buf all = {0};
    const char *one;
    size_t at = 0;

    *n = 0;
    while ((one = cli_each(a, "exclude-simulators", &at)))
        vt_buf_printf(&all, "%s,", one);
    *text = all.data;
    if (all.failed)
        return vt_nomem(err);
    for (char *p = all.data; p && *p;) {
        size_t len = strcspn(p, ", ");
        char *next = p + len + (p[len] != '\0');

        p[len] = '\0';
        if (len > 0 && *n == MAX_EXCLUDED)
            return vt_fail(err, VT_EINPUT, "--exclude-simulators: more than %d",
                           MAX_EXCLUDED);
        if (len > 0)
            name[(*n)++] = p;
        p = next;
    }
    return VT_OK;
}

int validate_figures(const struct cli_args *a, struct vt_err *err)
{
    const char *scratch = getenv("TMPDIR"), *excluded[MAX_EXCLUDED];
    const char *results = cli_str_or(a, "results-dir", "results");
    struct vt_buf told = {0}, output = {0};
    char *text = NULL;
    size_t n = 0, n_failed = 0;
    int rc = get_excluded(a, &text, excluded, &n, err);

    vt_buf_printf(&output, "%s/figures", results);
    if (rc == VT_OK && output.failed)
        rc = vt_nomem(err);
    if (rc == VT_OK) {
        struct vt_validate_figures job = {
            .results_dir = results,
            .output_dir = cli_str_or(a, "output-dir", output.data),
            .metadata = cli_str(a, "metadata"),
            .exclude = excluded,
            .n_exclude = n,
            .paper = cli_has(a, "paper"),
            .scratch = scratch && *scratch ? scratch : "/tmp",
            .made = tell,
            .user = &told,
        };

        rc = vt_validate_figures(&job, &n_failed, err);
    }
    if (rc == VT_OK)
        rc = cli_print(&told, err);
    vt_buf_free(&told);
    vt_buf_free(&output);
    free(text);
    if (rc == VT_OK && n_failed > 0)
        return vt_fail(err, VT_EIO, "%zu could not be made", n_failed);
    return rc;
}
