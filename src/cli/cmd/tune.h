/* tune.h - a search's flags and its report; private to cli. */
#ifndef VT_CLI_TUNE_H
#define VT_CLI_TUNE_H

#include "cli/cli.h"
#include "model/model.h"
#include "tune/tune.h"

/* Rows of the command's table: what is searched over. */
#define TUNE_SPACE_OPTIONS                                                               \
    {"max-num-seqs",                                                                     \
     CLI_VALUE,                                                                          \
     "LIST",                                                                             \
     "64,128,256,512,1024",                                                              \
     "requests running at once",                                                         \
     NULL},                                                                              \
        {"max-num-batched-tokens", CLI_VALUE, "LIST", "8192,16384,32768",                \
         "token budget of a step", NULL},                                                \
        {"gpu-memory-utilization",                                                       \
         CLI_VALUE,                                                                      \
         "LIST",                                                                         \
         "0.9",                                                                          \
         "share of a GPU's memory; sizes the KV cache",                                  \
         NULL},                                                                          \
        {"tensor-parallel-size", CLI_VALUE,           "LIST",                            \
         "the profile's",        "GPUs of an engine", NULL},                             \
        {"data-parallel-size", CLI_VALUE, "LIST", "1", "engines behind a router", NULL}, \
        {"routing",                                                                      \
         CLI_VALUE,                                                                      \
         "LIST",                                                                         \
         "round-robin",                                                                  \
         "who gets a request; several with ';' between them",                            \
         NULL},                                                                          \
        {"num-speculative-tokens",      CLI_VALUE, "LIST", "0",                          \
         "drafts per request and step", NULL},                                           \
    {                                                                                    \
        "prefix-caching", CLI_VALUE, "LIST", "on", "on, off or both: on,off", NULL       \
    }

/* Everything that a search needs. */
struct tune_job {
    struct vt_tune_spec spec;
    struct vt_profile profile;
    bool has_profile;
    struct vt_latency *inline_model; /* NULL: the profile's */
    const char *timed_by, *model_name;
    struct vt_arch arch;
    struct vt_gpu gpu;
    struct vt_arena arena;
    double rate[256];
};
/* End *j with tune_job_close() whatever happens. */
int tune_job_open(struct tune_job *j, const struct cli_args *a,
                  struct vt_err *err) VT_MUST_CHECK;
void tune_job_close(struct tune_job *j);

/* Numbers with commas between them, each from lo to hi. */
int tune_list(const struct cli_args *a, const char *name, double lo, double hi,
              double *out, uint32_t most, uint32_t *n,
              struct vt_err *err) VT_MUST_CHECK;

int tune_report(const struct tune_job *j, const struct vt_tune_result *r,
                const struct cli_args *a, struct vt_err *err) VT_MUST_CHECK;
/* vtwin tune --plan. */
int tune_plan(const struct cli_args *a, struct vt_err *err) VT_MUST_CHECK;

#endif
