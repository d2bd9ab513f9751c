/* http.h - an OpenAI-compatible server without a GPU: vLLM's HTTP surface in front of
 * the twin of its engine, under the wall clock. */
#ifndef VT_HTTP_H
#define VT_HTTP_H

#include "core/core.h"
#include "export/export.h"
#include "kvevents/kvevents.h"
#include "text/text.h"

enum vt_answers { VT_ANSWER_RANDOM, VT_ANSWER_ECHO, VT_ANSWER_DATASET };

struct vt_serve_lora {
    const char *name, *path;
};

struct vt_serve_config { /* all borrowed until vt_serve() returns */
    /* the engines */
    struct vt_engine_config engine;
    const struct vt_latency *model;
    uint32_t n_engines; /* data-parallel ranks */
    double time_scale;  /* so many times as fast as the wall clock */
    uint64_t seed;
    struct vt_side side;  /* with engine.remote.on */
    const char *timed_by; /* profile, for /server_info */
    const char *about;    /* JSON of what else it says there of vtwin; NULL: nothing */

    /* the model */
    const struct vt_tokenizer *tokenizer;
    const char *const *name; /* served names, at least one */
    uint32_t n_names;
    const char *root;         /* of its card */
    const char *vllm_version; /* of engine.vllm; 0.32 answers otherwise than before */
    const struct vt_serve_lora *lora;
    uint32_t n_loras, max_loras;
    bool fixed_loras; /* none may be loaded or unloaded while it runs */
    uint32_t embedding_dimensions;
    double gpu_memory_utilization; /* for cache_config_info */

    /* the server */
    const char *host;
    uint16_t port;
    const char *certfile, *keyfile; /* NULL: no TLS */
    const char *const *api_key;
    uint32_t n_api_keys;
    size_t max_body_bytes;
    size_t max_waiting_bytes; /* of requests that wait to be read; beyond: 503 */
    uint32_t max_connections;
    uint32_t max_choices; /* prompts * n of a request; beyond: 400 */
    /* Choices that may be there at once, and prompt tokens of those that have no token
     * yet; beyond: 503. Without the switch: any number. */
    bool limit_queued_reqs, limit_queued_tokens;
    uint32_t max_num_queued_reqs;
    uint64_t max_num_queued_tokens;
    vt_ns idle_timeout_ns;
    double shutdown_timeout_s; /* requests may go on for so long */
    bool dev_mode;             /* the routes of VLLM_SERVER_DEV_MODE */
    bool scale_out;            /* 0.32 renders prompts */
    bool request_id_headers, force_usage, prompt_details, log_requests;

    /* what it says */
    enum vt_answers answers;  /* to requests that no tool or schema binds */
    const char *dataset;      /* JSONL and what else vt_dataset reads; NULL: none */
    const char *lengths_from; /* trace whose output lengths are drawn; NULL: about 200
                               * tokens, log-normal */
    double tool_rate;         /* chance that "auto" calls a tool */

    /* what fails */
    double failure_rate;
    const char *failure_kinds; /* separated by commas; NULL: all that answer an error */
    uint32_t fail_first;

    /* what it tells others */
    struct vt_kv_wanted kv;
    struct vt_otlp_export otlp;

    /* Once it listens. The URL has no path. */
    void (*ready)(void *user, const char *url);
    bool (*stopped)(void *user); /* asked ten times a second: no more requests */
    void (*log)(void *user, const char *line); /* NULL: silence */
    void *user;
};

struct vt_serve_summary {
    uint64_t requests, finished, aborted, refused, failed, tokens, steps, connections;
    double late_p50_us, late_p99_us, late_max_us; /* of tokens */
    struct vt_extent extent; /* how far steps went; the model is known up to its own */
};

/* Serves until stopped() and all requests are done, or their time is up. */
int vt_serve(const struct vt_serve_config *c, struct vt_serve_summary *out,
             struct vt_err *err) VT_MUST_CHECK;

#endif
