/* compare.h - results side by side, for `vtwin compare` and `bench compare`; private to
 * cmd. */
#ifndef VT_CLI_COMPARE_H
#define VT_CLI_COMPARE_H

#include "cli/cli.h"
#include "load/load.h"

struct compare_options {
    struct vt_result_judgement judged;
    const char *report;
    bool json;
};
extern const struct opt_row compare_rows[];
extern const struct opt_row compare_page_rows[]; /* --report, also of benchmarks */
/* Their page (compare_page.c), from what --json prints; folders of simulations are
 * drawn over each other. operand: what the results were loaded from. */
int compare_page(const struct opt_args *a, const char *const *operand, size_t n,
                 const struct vt_buf *json, const char *path,
                 struct vt_err *err) VT_MUST_CHECK;
/* The results that operands from `first` on name. VT_ECHECK: one is worse. */
int compare_run(const struct opt_args *a, const struct compare_options *o, size_t first,
                struct vt_err *err) VT_MUST_CHECK;

#endif
