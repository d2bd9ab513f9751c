/* cmd_inspect_seeds.c - vtwin inspect seeds: do several captures of one load agree? */
#include "cli/cmd/inspect.h"

struct run {
    struct cli_report report;
    struct vt_records records;
    struct vt_view view;
};

static int run_open(struct run *r, const char *operand, struct vt_err *err)
{
    const char *path = cli_report_trace(operand, &r->report);
    int rc = vt_records_load(&r->records, path, err);

    if (rc == VT_OK)
        rc = vt_view_records(&r->view, &r->records, err);
    if (rc == VT_OK && r->view.n == 0)
        rc = vt_fail(err, VT_EINPUT, "%s: there are no requests in it", path);
    r->view.label = operand;
    return rc;
}

static double median_prompt(const struct run *r, double *tokens)
{
    for (size_t i = 0; i < r->view.n; i++)
        tokens[i] = r->view.req[i].prompt_tokens;
    vt_sort_f64(tokens, r->view.n);
    return vt_quantile(tokens, r->view.n, 50);
}

/* Seeds draw other prompts, but not others than the load has. */
static int check_same(const struct run *a, const struct run *b, struct vt_err *err)
{
    static const double LIKE = 1.5;
    size_t most = a->view.n > b->view.n ? a->view.n : b->view.n;
    double *tokens = malloc(most * sizeof(*tokens)), x, y;
    const char *ma = a->records.meta.model, *mb = b->records.meta.model;

    if (!tokens)
        return vt_nomem(err);
    x = median_prompt(a, tokens);
    y = median_prompt(b, tokens);
    free(tokens);
    if (ma && mb && strcmp(ma, mb) != 0)
        return vt_fail(err, VT_EINPUT, "%s is of %s, %s of %s: not the same load",
                       a->view.label, ma, b->view.label, mb);
    if (x > LIKE * y || y > LIKE * x)
        return vt_fail(
            err, VT_EINPUT,
            "prompts of %s have %.0f tokens in the middle, those of %s %.0f: "
            "not the same load",
            a->view.label, x, b->view.label, y);
    return VT_OK;
}

int inspect_seeds(const struct opt_args *a, struct vt_err *err)
{
    const struct inspect_options *o = a->options;
    size_t n = a->n_operands - 1;
    struct run *run = calloc(n, sizeof(*run));
    struct vt_seeds x = {.seed = calloc(n, sizeof(*x.seed)), .n = n};
    struct vt_buf b = {0};
    int rc = run && x.seed ? VT_OK : vt_nomem(err);

    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        rc = run_open(&run[i], a->operand[i + 1], err);
        if (rc == VT_OK && i > 0)
            rc = check_same(&run[0], &run[i], err);
        x.seed[i].view = &run[i].view;
    }
    if (rc == VT_OK)
        rc = vt_seeds_judge(&x, err);
    if (rc == VT_OK && o->json)
        vt_seeds_json(&b, &x);
    else if (rc == VT_OK)
        vt_seeds_table(&b, &x);
    rc = cli_print_end(&b, rc, err);
    if (rc == VT_OK && (x.n_odd > 0 || !x.agree))
        rc = vt_fail(err, VT_ECHECK, "captures of one load disagree");
    for (size_t i = 0; run && i < n; i++) {
        vt_view_free(&run[i].view);
        vt_records_free(&run[i].records);
    }
    free(run);
    free(x.seed);
    return rc;
}
