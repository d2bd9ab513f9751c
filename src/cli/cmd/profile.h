/* profile.h - the parts of `vtwin profile`. Each adds what is to be printed to *b. */
#ifndef VT_CLI_PROFILE_H
#define VT_CLI_PROFILE_H

#include "cli/cli.h"

int profile_list(const struct cli_args *a, struct vt_buf *b, struct vt_err *err);
int profile_kv_capacity(const struct cli_args *a, struct vt_buf *b, struct vt_err *err);

#endif
