/* cmd_bench_compare.c - vtwin bench compare: results of benchmarks side by side. */
#include "cli/cmd/bench.h"

int bench_compare(const struct opt_args *a, struct vt_err *err)
{
    const struct bench_options *o = a->options;
    struct vt_result_judgement j = o->judged;
    struct vt_results r = {0};
    struct vt_buf b = {0};
    size_t worse = 0;
    int rc = VT_OK;

    if (!opt_given(a, &o->judged.tolerance))
        j.tolerance = -1;
    if (a->n_operands < 2)
        return vt_fail(err, VT_EINPUT, "compare what? bench compare A.json B.json");
    for (size_t i = 1; i < a->n_operands && rc == VT_OK; i++)
        rc = vt_results_load(&r, a->operand[i], err);
    if (rc == VT_OK)
        rc = o->json ? vt_results_json(&b, &r, &j, &worse, err)
                     : vt_results_table(&b, &r, &j, &worse, err);
    rc = cli_print_end(&b, rc, err);
    vt_results_free(&r);
    if (rc == VT_OK && worse > 0)
        return vt_fail(err, VT_ECHECK, "worse by more than %g %% in %zu metric%s",
                       j.tolerance, worse, worse > 1 ? "s" : "");
    return rc;
}
