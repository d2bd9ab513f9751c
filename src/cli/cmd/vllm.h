/* vllm.h - command lines of `vllm serve`, taken as they are; private to cmd. */
#ifndef VT_CLI_VLLM_H
#define VT_CLI_VLLM_H

#include "cli/opt/opt.h"

extern const struct opt_foreign vllm_flags[];
/* Face of opt_command.rewrite: short and underscored names, dotted ones, --config FILE,
 * and settings that vLLM takes as JSON become flags as they are written here. */
opt_rewriter vllm_rewrite;

#endif
