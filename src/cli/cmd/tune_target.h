/* tune_target.h - trials at a live server: flags of capacity and tune; private to cli.
 */
#ifndef VT_CLI_TUNE_TARGET_H
#define VT_CLI_TUNE_TARGET_H

#include "cli/cli.h"
#include "load/load.h"
#include "tune/tune.h"

/* Rows of a command's table. */
#define CLI_TARGET_OPTIONS                                                           \
    {                                                                                \
        "target",                                                                    \
        CLI_VALUE,                                                                   \
        "URL",                                                                       \
        NULL,                                                                        \
        "measure at a live server instead of simulating",                            \
        NULL},                                                                       \
        {"target-model",                                                             \
         CLI_VALUE,                                                                  \
         "NAME",                                                                     \
         "the first it has",                                                         \
         "what requests to it ask for",                                              \
         NULL},                                                                      \
    {                                                                                \
        "num-warmups", CLI_VALUE, "N", "1", "requests to it before the first trial", \
            NULL                                                                     \
    }
#define CLI_RESTART_OPTIONS                                                         \
    {"restart-cmd",                                                                 \
     CLI_VALUE,                                                                     \
     "COMMAND",                                                                     \
     "it stays as it is",                                                           \
     "starts it with {max_num_seqs}, {max_num_batched_tokens}, ...",                \
     NULL},                                                                         \
    {                                                                               \
        "ready-timeout", CLI_VALUE, "S", "600", "how long its start may take", NULL \
    }

struct target_job {
    bool on; /* --target is given */
    struct vt_load_config load;
    struct vt_target target;
};

/* Nothing where --target is not given. End it with target_job_close() whatever
 * happens; *t must not move between. */
int target_job_open(struct target_job *t, const struct cli_args *a,
                    const struct vt_slo *slo, struct vt_err *err) VT_MUST_CHECK;
/* The same for a search over settings, which the restart command applies; without one
 * only the load is searched. *timed_by becomes the server's address. */
int target_job_tune(struct target_job *t, const struct cli_args *a,
                    struct vt_tune_spec *spec, const char **timed_by,
                    struct vt_err *err) VT_MUST_CHECK;
/* Makes trials go there, one at a time, if it is on. */
void target_job_use(struct target_job *t, struct vt_trial *trial, uint32_t *workers);
void target_job_close(struct target_job *t);

#endif
