/* cmd_bench_compare.c - vtwin bench compare: vtwin compare by its older name. */
#include "cli/cmd/bench.h"

int bench_compare(const struct opt_args *a, struct vt_err *err)
{
    const struct bench_options *o = a->options;

    return compare_run(a, &o->compare, 1, err);
}
