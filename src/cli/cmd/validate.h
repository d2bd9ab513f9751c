/* validate.h - the parts of `vtwin validate`; private to cli. */
#ifndef VT_CLI_VALIDATE_H
#define VT_CLI_VALIDATE_H

#include "cli/cli.h"

/* Of `validate figures`. The command's table must have its flags: results-dir,
 * output-dir, metadata, exclude-simulators ("NAME ...") and paper. */
int validate_figures(const struct cli_args *a, struct vt_err *err) VT_MUST_CHECK;

#endif
