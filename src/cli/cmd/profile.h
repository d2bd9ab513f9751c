/* profile.h - what vtwin profile's subcommands share; private to cmd. */
#ifndef VT_CLI_PROFILE_H
#define VT_CLI_PROFILE_H

#include "cli/cmd/engine.h"

struct profile_options {
    bool json, all;
    const char *out, *draft;
    enum vt_compat compat;
    struct engine_options engine;
};

opt_run profile_make;

#endif
