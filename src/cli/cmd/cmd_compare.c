/* cmd_compare.c - vtwin compare: results of simulations, benchmarks and searches side
 * by side. */
#include "cli/cmd/compare.h"
#include "cli/cmd/pages.h"

#define OPT_T struct compare_options
const struct opt_row compare_rows[] = {
    OPT_TEXT(judged.metrics, "metrics", "LIST", NULL, "what is judged",
             .shown = "throughput, failures, mean, median and p99 latencies"),
    OPT_F64(judged.tolerance, "tolerance", "PERCENT", 0, 1e9, NULL,
            "how much worse may be", .shown = "none is judged"),
    OPT_FLAG(json, "json", "print JSON"),
    {0},
};
const struct opt_row compare_page_rows[] = {PAGES_ROW(report, .shown = "none"), {0}};
static const struct opt_block blocks[] = {
    OPT_ROWS(compare_rows), OPT_ROWS(compare_page_rows), {0}};

static int write_page(const struct opt_args *a, const struct compare_options *o,
                      size_t first, const struct vt_results *r,
                      const struct vt_result_judgement *j, struct vt_err *err)
{
    struct vt_buf json = {0};
    size_t worse;
    int rc = vt_results_json(&json, r, j, &worse, err);

    if (rc == VT_OK)
        rc = json.failed ? vt_nomem(err)
                         : compare_page(a, a->operand + first, a->n_operands - first,
                                        &json, o->report, err);
    vt_buf_free(&json);
    return rc;
}

int compare_run(const struct opt_args *a, const struct compare_options *o, size_t first,
                struct vt_err *err)
{
    struct vt_result_judgement j = o->judged;
    struct vt_results r = {0};
    struct vt_buf b = {0};
    size_t worse = 0;
    int rc = VT_OK;

    if (!opt_given(a, &o->judged.tolerance))
        j.tolerance = -1;
    if (a->n_operands <= first)
        return vt_fail(err, VT_EINPUT, "compare what? vtwin compare A B");
    for (size_t i = first; i < a->n_operands && rc == VT_OK; i++)
        rc = vt_results_load(&r, a->operand[i], err);
    if (rc == VT_OK)
        rc = o->json ? vt_results_json(&b, &r, &j, &worse, err)
                     : vt_results_table(&b, &r, &j, &worse, err);
    rc = cli_print_end(&b, rc, err);
    if (rc == VT_OK && o->report)
        rc = write_page(a, o, first, &r, &j, err);
    vt_results_free(&r);
    if (rc == VT_OK && worse > 0)
        return vt_fail(err, VT_ECHECK, "worse by more than %g %% in %zu metric%s",
                       j.tolerance, worse, worse > 1 ? "s" : "");
    return rc;
}

static int compare(const struct opt_args *a, struct vt_err *err)
{
    return compare_run(a, a->options, 0, err);
}

static const char *const examples[] = {
    "./run compare tests/cases/bench/result.json tests/cases/bench/result-chat.json",
    NULL,
};

const struct opt_command cmd_compare = {
    .name = "compare",
    .summary = "results side by side: settings that differ, and what came of them",
    .usage = "A B ... [--metrics LIST] [--tolerance PERCENT] [--json]",
    .about =
        "A and B are results of simulate (a folder of --out, or what --json prints),\n"
        "of bench serve (--save-result) or of capacity (--json). A folder of several "
        "is\n"
        "one side: its runs tell what other seeds make of the same, and a difference\n"
        "that is not above that is called noise. Exit 1 if something is worse by more\n"
        "than the tolerance.",
    .blocks = blocks,
    .size = sizeof(struct compare_options),
    .most = UINT32_MAX,
    .examples = examples,
    .run = compare,
};
