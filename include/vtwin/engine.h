/* engine.h - one engine that is told the time: it schedules as vLLM does and says when
 * each token leaves. Reach its due times by jumping there or by sleeping until then. */
#ifndef VTWIN_ENGINE_H
#define VTWIN_ENGINE_H

#include <vtwin/vtwin.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vtwin_model;

/* Names and meanings are those of vLLM's flags. */
struct vtwin_engine_options {
    size_t size;
    uint32_t max_num_seqs;
    uint32_t max_num_batched_tokens;
    uint32_t max_model_len;
    uint32_t block_size;
    uint32_t num_gpu_blocks;
    uint32_t long_prefill_token_threshold; /* 0: off */
    uint32_t num_speculative_tokens;       /* 0: off */
    double speculative_acceptance; /* chance of each draft, given those before */
    double draft_us;               /* GPU time of one pass of the draft model */
    bool enable_prefix_caching;
    bool enable_chunked_prefill;
    bool async_scheduling;
    bool by_priority; /* --scheduling-policy priority */
    uint64_t seed;
    /* Whose scheduler: 26 is vLLM 0.26, up to 32. The profile's, or the newest. */
    uint32_t vllm;
};
/* vLLM's defaults, and over them what the model's profile was measured with. Sets
 * o->size too. m may be NULL. */
VTWIN_API int vtwin_engine_options_init(struct vtwin_engine_options *o,
                                        const struct vtwin_model *m,
                                        struct vtwin_error *err);

struct vtwin_request {
    size_t size;
    uint64_t id; /* yours; unique among those in the engine */
    uint32_t prompt_tokens;
    uint32_t output_tokens; /* how many it produces */
    int32_t priority;       /* lower goes first, with by_priority */
    /* Requests with equal prefix_id have the first prefix_tokens of their prompts in
     * common. 0: nothing. */
    uint64_t prefix_id;
    uint32_t prefix_tokens;
};

enum vtwin_finish {
    VTWIN_NOT_FINISHED,
    VTWIN_STOPPED,
    VTWIN_LENGTH,
    VTWIN_ABORTED,
};

/* What left the engine for one request. */
struct vtwin_output {
    size_t size;
    uint64_t id;
    int64_t at_ns;
    uint32_t first_index, new_tokens; /* among the request's output */
    int finish;                       /* enum vtwin_finish */
};

struct vtwin_engine; /* opaque */

#define VTWIN_NEVER INT64_MAX

/* Copies *o; NULL: as vtwin_engine_options_init(). Borrows the model. */
VTWIN_API int vtwin_engine_new(struct vtwin_engine **out, const struct vtwin_model *m,
                               const struct vtwin_engine_options *o,
                               struct vtwin_error *err);
VTWIN_API void vtwin_engine_free(struct vtwin_engine *e);

/* Times are nanoseconds since a zero of your own and never go back. */
VTWIN_API int vtwin_engine_add(struct vtwin_engine *e, int64_t now_ns,
                               const struct vtwin_request *r, struct vtwin_error *err);
VTWIN_API bool vtwin_engine_abort(struct vtwin_engine *e, int64_t now_ns, uint64_t id);
/* When to call vtwin_engine_step() next; VTWIN_NEVER: not before something is added. */
VTWIN_API int64_t vtwin_engine_due(const struct vtwin_engine *e);
/* Does the one thing that is due, at its due time however late it is called, and hands
 * out what left the engine by it. */
VTWIN_API int vtwin_engine_step(struct vtwin_engine *e, int64_t now_ns,
                                void (*output)(void *user,
                                               const struct vtwin_output *o),
                                void *user, struct vtwin_error *err);
/* What the last vtwin_engine_step() handed out, also to nobody (output NULL): *n of
 * them, each `size` bytes after the one before. The engine's, good until it is called
 * again. */
VTWIN_API const struct vtwin_output *vtwin_engine_outputs(const struct vtwin_engine *e,
                                                          size_t *n);

struct vtwin_engine_state {
    size_t size;
    uint32_t waiting, running; /* requests */
    double kv_usage, kv_usage_peak;
    uint64_t steps, preemptions;
    uint64_t cache_queries, cache_hits; /* prompt tokens */
    uint32_t most_step_tokens,
        most_running; /* of one step: compare with vtwin_extent */
    uint64_t most_context_tokens;
};
/* s->size is set before. */
VTWIN_API void vtwin_engine_state(const struct vtwin_engine *e, int64_t now_ns,
                                  struct vtwin_engine_state *s);

#ifdef __cplusplus
}
#endif

#endif
