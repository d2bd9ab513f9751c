/* compare.h - results side by side, for `vtwin compare` and `bench compare`; private to
 * cmd. */
#ifndef VT_CLI_COMPARE_H
#define VT_CLI_COMPARE_H

#include "cli/cli.h"
#include "load/load.h"

struct compare_options {
    struct vt_result_judgement judged;
    bool json;
};
extern const struct opt_row compare_rows[];
/* The results that operands from `first` on name. VT_ECHECK: one is worse. */
int compare_run(const struct opt_args *a, const struct compare_options *o, size_t first,
                struct vt_err *err) VT_MUST_CHECK;

#endif
