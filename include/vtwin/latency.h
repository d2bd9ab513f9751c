/* latency.h - what the steps of an engine cost: measured profiles, or a model of your
 * own. */
#ifndef VTWIN_LATENCY_H
#define VTWIN_LATENCY_H

#include <vtwin/vtwin.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vtwin_model; /* opaque */

/* A built-in profile ("qwen3-8b-h200"), the path of a profile.json, or a model with its
 * parameters as `vtwin simulate --model` takes them ("roofline:..."). */
VTWIN_API int vtwin_model_open(struct vtwin_model **out, const char *name,
                               struct vtwin_error *err);

/* One step of an engine, as a model sees it. */
struct vtwin_step {
    size_t size;
    uint64_t number;
    uint32_t decodes, prefills;             /* requests */
    uint32_t decode_tokens, prefill_tokens; /* computed in this step */
    uint64_t decode_context_tokens;         /* KV cache read by the decoding requests */
    uint32_t running, waiting;              /* requests, after and before scheduling */
};

/* A model of your own: how long a step takes, in microseconds. Equal steps must take
 * equal times. `user` must outlive the model. */
VTWIN_API int vtwin_model_custom(struct vtwin_model **out,
                                 double (*step_us)(void *user,
                                                   const struct vtwin_step *step),
                                 void *user, struct vtwin_error *err);
VTWIN_API void vtwin_model_free(struct vtwin_model *m);

/* How far a model was measured: the most that single steps held. 0: not known. Beyond
 * it a prediction is a guess. x->size is set before. */
struct vtwin_extent {
    size_t size;
    uint32_t step_tokens, running;
    uint64_t context_tokens;
};
VTWIN_API void vtwin_model_extent(const struct vtwin_model *m, struct vtwin_extent *x);

#ifdef __cplusplus
}
#endif

#endif
