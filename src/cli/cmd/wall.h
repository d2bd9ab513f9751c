/* wall.h - what play and serve share: engines under the wall clock, and the directory
 * of the model that they stand in for; private to cmd. */
#ifndef VT_CLI_WALL_H
#define VT_CLI_WALL_H

#include "cli/cmd/engine.h"
#include "cli/cmd/vllm.h"
#include "export/export.h"
#include "kvevents/kvevents.h"
#include "text/text.h"

/* ---- a model directory (model_dir.c) ----------------------------------- */

/* What it tells an engine. Zero-initialise to start. */
struct model_dir {
    struct vt_tokenizer *tokenizer; /* NULL: no directory was given */
    struct vt_ids skip;             /* ids that random output never holds */
    uint32_t vocab_size;
    struct vt_arch arch; /* zero: there is no config.json */
    bool has_arch;
};

int model_dir_open(struct model_dir *m, const char *dir,
                   struct vt_err *err) VT_MUST_CHECK;
void model_dir_close(struct model_dir *m);
/* Face of vt_play_config.encode; user is the model. */
int model_dir_encode(void *user, const char *text, size_t len, uint32_t **ids,
                     size_t *n, struct vt_err *err);

/* ---- flags -------------------------------------------------------------- */

struct wall_options {
    double time_scale;
    int64_t seed;
    double failure_rate;
    uint32_t fail_first;
    struct vt_kv_wanted kv;
    struct vt_otlp_export otlp;
    bool log_requests, json, quiet, verbose;
    struct engine_options engine;
};
extern const struct opt_row wall_rows[];
#define WALL_BLOCKS(type, member) \
    ENGINE_BLOCKS(type, member.engine), OPT_BLOCK(wall_rows, type, member)

struct wall_job {
    struct engine_job engine;
    struct model_dir dir;
    struct vt_side side; /* where engines that decode ask for what is prefilled here */
    char engine_id[96];
};

/* Reads MODEL_DIR, if it is given, and makes the engine ready. tp: GPUs per engine that
 * its times are for; 0: the profile's. End *j with wall_close() whatever happens. */
int wall_open(struct wall_job *j, const struct opt_args *a,
              const struct wall_options *o, uint32_t tp,
              struct vt_err *err) VT_MUST_CHECK;
void wall_close(struct wall_job *j);

/* ---- the end ------------------------------------------------------------ */

struct wall_count {
    const char *name;
    uint64_t v;
};
struct wall_end {     /* what was done */
    const char *said; /* for people */
    const struct wall_count *count;
    size_t n;
    double late_p50_us, late_p99_us, late_max_us;
    struct vt_extent extent; /* how far steps went */
};
/* For the summaries of both: their members that have the same names. */
#define WALL_END(s, text, list)                          \
    (&(struct wall_end){.said = text,                    \
                        .count = list,                   \
                        .n = VT_COUNT(list),             \
                        .late_p50_us = (s)->late_p50_us, \
                        .late_p99_us = (s)->late_p99_us, \
                        .late_max_us = (s)->late_max_us, \
                        .extent = (s)->extent})
/* A line on stderr, and JSON if it is asked for. */
int wall_report(const struct wall_options *o, const struct vt_latency *model,
                const struct wall_end *e, struct vt_err *err) VT_MUST_CHECK;

#endif
