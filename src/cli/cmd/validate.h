/* validate.h - the parts of `vtwin validate`; private to cmd. */
#ifndef VT_CLI_VALIDATE_H
#define VT_CLI_VALIDATE_H

#include "cli/cmd/engine.h"
#include "validate/validate.h"

struct validate_options {
    const char *data_dir, *output_dir, *metadata, *model_configs;
    const char *blis_binary, *vidur_dir, *llmservingsim_dir, *python, *results_dir;
    struct opt_list adapters, profiles, commands, exclude;
    uint32_t max_requests, jobs;
    enum vt_harness_workload workload;
    bool no_dp, unsafe, aiconfigurator, paper, list, json, quiet;
    struct engine_options engine;
};

opt_run validate_figures; /* of `validate figures` */

#endif
