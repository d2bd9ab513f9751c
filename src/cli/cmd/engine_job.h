/* engine_job.h - flags that every command with an engine of its own has: what it costs,
 * and how it is set; private to cli. */
#ifndef VT_CLI_ENGINE_JOB_H
#define VT_CLI_ENGINE_JOB_H

#include "cli/cli.h"
#include "model/model.h"

/* In the order of their enums. */
extern const char *const cli_policies[], *const cli_methods[];

/* Rows of a command's table. */
#define CLI_MODEL_OPTIONS                                        \
    {"profile",                                                  \
     CLI_VALUE,                                                  \
     "NAME|FILE",                                                \
     VT_DEFAULT_PROFILE,                                         \
     "limits and times; see vtwin profile list",                 \
     NULL},                                                      \
    {                                                            \
        "model", CLI_VALUE, "SPEC", NULL,                        \
            "a latency model inline; see vtwin model list", NULL \
    }

#define CLI_ENGINE_OPTIONS                                                              \
    {"max-num-seqs", CLI_VALUE, "N", "1024", "requests running at once", NULL},         \
        {"max-num-batched-tokens", CLI_VALUE, "N", "8192",                              \
         "token budget of a step", NULL},                                               \
        {"max-model-len", CLI_VALUE, "N", "32768", "prompt and output together", NULL}, \
        {"block-size", CLI_VALUE, "N", "16", "tokens in a KV block", NULL},             \
        {"num-gpu-blocks",        CLI_VALUE, "N", "the profile's",                      \
         "KV blocks in the pool", NULL},                                                \
        {"enable-prefix-caching",          CLI_SWITCH, NULL, "on",                      \
         "reuse blocks of equal prefixes", NULL},                                       \
        {"enable-chunked-prefill",   CLI_SWITCH, NULL, "on",                            \
         "split prompts over steps", NULL},                                             \
        {"long-prefill-token-threshold",                                                \
         CLI_VALUE,                                                                     \
         "N",                                                                           \
         "0: off",                                                                      \
         "most prompt tokens per request and step",                                     \
         NULL},                                                                         \
        {"scheduling-policy", CLI_VALUE, "P", "fcfs", "who goes first", cli_policies},  \
        {"async-scheduling",                                                            \
         CLI_SWITCH,                                                                    \
         NULL,                                                                          \
         "on",                                                                          \
         "schedule ahead of the last step's result",                                    \
         NULL},                                                                         \
        {"num-speculative-tokens",      CLI_VALUE, "N", "0: off",                       \
         "drafts per request and step", NULL},                                          \
        {"speculative-acceptance",                                                      \
         CLI_VALUE,                                                                     \
         "P[,P]",                                                                       \
         "0",                                                                           \
         "chance of each draft, or a share for each place",                             \
         NULL},                                                                         \
        {"speculative-draft-us",                                                        \
         CLI_VALUE,                                                                     \
         "US",                                                                          \
         "0",                                                                           \
         "GPU time of one pass of the draft model",                                     \
         NULL},                                                                         \
        {"speculative-method",           CLI_VALUE,  "M", "eagle",                      \
         "eagle needs look-ahead slots", cli_methods},                                  \
    {                                                                                   \
        "watermark", CLI_VALUE, "P", "0", "share of blocks kept free on admission",     \
            NULL                                                                        \
    }

#define CLI_KV_EVENT_OPTIONS                                                        \
    {"enable-kv-cache-events", CLI_FLAG, NULL, NULL, "publish block events", NULL}, \
        {"kv-events-endpoint", CLI_VALUE, "ADDR", "tcp://*:5557", "where", NULL},   \
        {"kv-events-replay-endpoint",       CLI_VALUE, "ADDR", NULL,                \
         "where old ones can be asked for", NULL},                                  \
        {"kv-events-topic", CLI_VALUE, "T", "empty", "under which topic", NULL},    \
    {                                                                               \
        "block-hash-seed", CLI_VALUE, "S", "vllm-none-hash",                        \
            "PYTHONHASHSEED of the engine", NULL                                    \
    }

struct engine_job {
    struct vt_profile profile;
    bool has_profile;
    struct vt_latency *inline_model; /* of --model; NULL: the profile's */
    const struct vt_latency *model;  /* the one to use */
    const char *timed_by;            /* the profile's name, or the text of --model */
    struct vt_engine_config config;  /* not yet checked */
};

/* Bad numbers are told before anything large is read. */
int engine_job_check(const struct cli_args *a, struct vt_err *err) VT_MUST_CHECK;
/* A flag beats the trace (meta; NULL: none), that the profile, that vLLM. End *j with
 * engine_job_close() whatever happens. */
int engine_job_open(struct engine_job *j, const struct cli_args *a,
                    const struct vt_meta *meta, struct vt_err *err) VT_MUST_CHECK;
/* The same with another profile than --profile says. */
int engine_job_open_as(struct engine_job *j, const struct cli_args *a,
                       const char *profile, const struct vt_meta *meta,
                       struct vt_err *err) VT_MUST_CHECK;
void engine_job_close(struct engine_job *j);
/* vLLM does not start with a pool that cannot hold one request of the greatest length:
 * each that asks for all there is would fail. max_model_len shrinks, or was asked for.
 */
int engine_fit_pool(struct vt_engine_config *e, bool asked,
                    struct vt_err *err) VT_MUST_CHECK;

#endif
