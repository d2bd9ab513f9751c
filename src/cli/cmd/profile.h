/* profile.h - the parts of `vtwin profile`; private to cmd. */
#ifndef VT_CLI_PROFILE_H
#define VT_CLI_PROFILE_H

#include "cli/cmd/engine.h"

struct profile_options {
    bool json, all;
    const char *hf_config, *gpu, *hw;
    struct vt_kv_query q; /* what flags say of it */
    int kv_dtype;
};

int profile_kv_capacity(const struct opt_args *a, struct vt_err *err);

#endif
