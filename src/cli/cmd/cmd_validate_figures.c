/* cmd_validate_figures.c - vtwin validate figures: pictures, a table and a page of what
 * a run of `vtwin validate` found. */
#include "cli/cmd/validate.h"

enum { MAX_EXCLUDED = 32 };

static void put_drawn(void *user, const char *name, enum vt_drawn result,
                      const char *why)
{
    if (result == VT_DRAWN_OK)
        vt_buf_printf(user, "OK: %s\n", name);
    else
        vt_buf_printf(user, "%s: %s (%s)\n",
                      result == VT_DRAWN_SKIPPED ? "SKIP" : "FAIL", name, why);
}

/* "a,b" and "a b"; *text keeps the names. */
static int split_excluded(const struct opt_list *list, char **text, const char **name,
                          size_t *n, struct vt_err *err)
{
    struct vt_buf all = {0};

    *n = 0;
    for (size_t i = 0; i < list->n; i++)
        vt_buf_printf(&all, "%s,", list->value[i]);
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

int validate_figures(const struct opt_args *a, struct vt_err *err)
{
    const struct validate_options *o = a->options;
    const char *excluded[MAX_EXCLUDED];
    struct vt_buf told = {0}, output = {0};
    struct vt_validate_figures job = {
        .results_dir = o->results_dir,
        .metadata = o->metadata,
        .exclude = excluded,
        .paper = o->paper,
        .scratch = cli_scratch(),
        .made = put_drawn,
        .user = &told,
    };
    char *text = NULL;
    size_t n_failed = 0;
    int rc = split_excluded(&o->exclude, &text, excluded, &job.n_exclude, err);

    vt_buf_printf(&output, "%s/figures", o->results_dir);
    job.output_dir = o->output_dir ? o->output_dir : output.data;
    if (rc == VT_OK)
        rc = output.failed ? vt_nomem(err) : vt_validate_figures(&job, &n_failed, err);
    rc = cli_print_end(&told, rc, err);
    vt_buf_free(&output);
    free(text);
    if (rc == VT_OK && n_failed > 0)
        return vt_fail(err, VT_EIO, "%zu could not be made", n_failed);
    return rc;
}
