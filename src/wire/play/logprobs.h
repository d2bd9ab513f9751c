/* logprobs.h - made-up log probabilities in the shape that vLLM gives them; private to
 * wire.
 *
 * No model stands behind them, so their values say nothing; but each row is a plausible
 * one: the sampled token first, then the best, falling, their probabilities below 1 in
 * sum, and the same for the same key and place. */
#ifndef VT_WIRE_PLAY_LOGPROBS_H
#define VT_WIRE_PLAY_LOGPROBS_H

#include "base/base.h"

enum { LOGPROBS_MAX_CELLS = 1 << 26 }; /* of one table: rows times columns */

/* Buffers that follow a message as frames of their own. The caller owns them; zeroed to
 * start. frame[i] has index i + 1 within the message. */
struct logprobs_aux {
    struct vt_buf *frame;
    size_t n, cap;
};
void logprobs_aux_clear(struct logprobs_aux *a); /* keeps the memory */
void logprobs_aux_free(struct logprobs_aux *a);

struct logprobs_ask {
    int32_t k; /* how many beside the sampled token; -1: the whole vocabulary */
    uint32_t vocab_size;
    uint64_t key;           /* script.key */
    bool greedy;            /* the sampled token is always the best */
    uint32_t prompt_fields; /* of the tuple of a prompt: 5 from 0.29 on; 4 at least */
};

/* Appends one value, new_logprobs: arrays for output tokens first_index and following.
 * VT_EINPUT: a whole vocabulary for so many tokens would be too large; b and aux are
 * then as before. */
int logprobs_put(struct vt_buf *b, struct logprobs_aux *aux,
                 const struct logprobs_ask *ask, const uint32_t *token,
                 uint32_t n_tokens, uint32_t first_index,
                 struct vt_err *err) VT_MUST_CHECK;

/* Appends one value, new_prompt_logprobs_tensors: rows for all tokens of the prompt but
 * the first: none for a prompt of one token. To be sent with the first output. */
int logprobs_put_prompt(struct vt_buf *b, struct logprobs_aux *aux,
                        const struct logprobs_ask *ask, const uint32_t *prompt,
                        uint32_t n_prompt, struct vt_err *err) VT_MUST_CHECK;

#endif
