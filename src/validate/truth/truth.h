/* truth.h - parts of reading an experiment's measurements; private to validate. */
#ifndef VT_VALIDATE_TRUTH_H
#define VT_VALIDATE_TRUTH_H

#include "validate/validate.h"

enum {
    TRUTH_BLOCK_TOKENS = 16, /* of a KV block, in every experiment */
    TRUTH_MAX_STAGES = 10000,
};

/* Tells a line that starts with the experiment's folder. */
void truth_tell(const struct vt_truth_options *o, const char *folder, const char *fmt,
                ...) VT_PRINTF(3, 4);
/* A copy; NULL: out of memory. */
const char *truth_text(struct vt_arena *a, const char *text);

/* ---- log.c ---------------------------------------------------------- */

typedef int truth_lines_reader(struct vt_experiment *e, struct vt_lines *l,
                               struct vt_err *err);
/* What vllm.log says of the KV cache; and the highest number of blocks that were on the
 * CPU at a time, where lines that are not events are passed over. */
truth_lines_reader truth_read_log, truth_read_kv_events;

/* ---- files.c -------------------------------------------------------- */

typedef int truth_tree_reader(struct vt_experiment *e, const struct vt_node *root,
                              struct vt_err *err);
truth_tree_reader truth_read_config, truth_read_profile, truth_read_groups;
/* One lifecycle report. */
int truth_read_metrics(struct vt_stage_metrics *m, const struct vt_node *root,
                       struct vt_err *err) VT_MUST_CHECK;
/* The row of the manifest; all its required keys are looked for first. */
truth_tree_reader truth_read_entry;

/* ---- report.c ----------------------------------------------------------- */

/* Whether the folder is what `simulate --out` wrote. */
bool truth_is_report(const char *folder);
/* Such a one as an experiment: its requests and times for what was measured, its
 * settings for the engine's. Messages name the file. */
int truth_load_report(struct vt_experiment *e, const char *folder,
                      const struct vt_truth_options *o,
                      struct vt_err *err) VT_MUST_CHECK;

/* ---- requests.c ----------------------------------------------------- */

/* All requests of a per-request report, by start, with the stage of each. */
int truth_read_requests(struct vt_experiment *e, const char *path,
                        struct vt_err *err) VT_MUST_CHECK;
/* Metrics from requests: stages' and the summary's ITL where every token has its time;
 * all of them where requests were cut. */
int truth_refine(struct vt_experiment *e, bool all, struct vt_err *err) VT_MUST_CHECK;
/* Keeps each stage's share of `most` requests, its first ones. */
void truth_cut(struct vt_experiment *e, uint64_t most);

#endif
