/* budget.h - how many tokens a server's step may have (max_num_batched_tokens): a
 * stream has a token of each step, and one that computes a prompt is long. Private to
 * learn. */
#ifndef VT_LEARN_BUDGET_H
#define VT_LEARN_BUDGET_H

#include "learn/learn.h"

/* A stream, a prompt that fits into one step, a long one: which is which. */
enum { BUDGET_STREAM, BUDGET_SHORT, BUDGET_LONG, BUDGET_REQUESTS };

/* The load: prompts of so many tokens beside a stream of so many, one every apart_s. */
int budget_plan(struct vt_workload *w, double apart_s, uint32_t prompt, uint32_t least,
                uint32_t stream, struct vt_err *err) VT_MUST_CHECK;
/* What its measurement says; 0: unknown. */
int budget_find(const struct vt_workload *w, double prompt, double least,
                uint32_t *budget, struct vt_err *err) VT_MUST_CHECK;

#endif
