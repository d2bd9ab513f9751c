/* vllm.h - command lines of `vllm serve`, taken as they are; private to cmd. */
#ifndef VT_CLI_VLLM_H
#define VT_CLI_VLLM_H

#include "cli/opt/opt.h"

extern const struct opt_foreign vllm_flags[];
/* Face of opt_command.rewrite: short and underscored names, dotted ones, --config FILE,
 * and settings that vLLM takes as JSON become flags as they are written here. */
opt_rewriter vllm_rewrite;
/* The same of llm-d-inference-sim's, for vllm_rewrite(): `--compat llm-d` was there. */
opt_rewriter llmd_rewrite;
/* Whether it is a flag of that program that has no meaning of its own here. */
bool vllm_is_llmd(const char *name, size_t len);

#endif
