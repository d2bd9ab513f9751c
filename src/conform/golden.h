/* golden.h - a golden at hand, and the rows that checks of it give; private to
 * conform. */
#ifndef VT_CONFORM_GOLDEN_H
#define VT_CONFORM_GOLDEN_H

#include "conform/conform.h"
#include "trace/trace.h"

/* ---- files ------------------------------------------------------------ */

enum { GOLDEN_MAX_BYTES = 1 << 30 };

/* Lower-case hex of a file's SHA-256, as it is stored. */
int file_sha256(const char *path, char out[65], struct vt_err *err) VT_MUST_CHECK;

/* Where goldens come from. Begin with a zeroed one; end it whatever happened. */
struct store {
    const struct vt_manifest *manifest;
    const struct vt_conform_config *config;
    struct vt_arena arena; /* paths */
    /* Directory for downloads that nobody keeps; NULL: not made yet. */
    const char *temporary;
};
void store_end(struct store *s);

/* The golden's file: beside the manifest or in --goldens, else from the bucket. *path
 * is NULL when it is in neither place, and then err says where it was looked for;
 * otherwise good until store_end(). */
int store_find(struct store *s, const struct vt_golden *g, const char **path,
               struct vt_err *err) VT_MUST_CHECK;

/* ---- contents --------------------------------------------------------- */

struct golden_file {
    const char *path; /* borrowed */
    struct vt_records records;
    struct vt_arena arena;    /* of the rest */
    const char *vllm_version; /* of its meta; NULL: not stated */
    const char *config_hash;
    uint8_t *ready; /* the registration; NULL: none */
    size_t ready_len;
    bool ready_bad; /* ready_response_hex is not hex */
};
int golden_load(struct golden_file *f, const char *path,
                struct vt_err *err) VT_MUST_CHECK;
void golden_free(struct golden_file *f);

/* Whether somebody wants all this to end. */
bool conform_stopped(const struct vt_conform_config *c);

/* ---- rows ------------------------------------------------------------- */

struct judge { /* whose rows they are */
    struct vt_conform *conform;
    const struct vt_conform_config *config;
    const struct vt_golden *golden;
};

/* Appends a row; the text is copied. */
int judge_row(struct judge *j, const char *check, enum vt_check_result result,
              struct vt_err *err, const char *fmt, ...) VT_PRINTF(5, 6) VT_MUST_CHECK;

/* A check that could not be carried out with `rc`, as `why` says: a row that failed,
 * unless memory did. */
int judge_failure(struct judge *j, const char *check, int rc, const struct vt_err *why,
                  struct vt_err *err) VT_MUST_CHECK;

/* Each gives one row. */
typedef int golden_check(struct judge *j, const struct golden_file *f,
                         struct vt_err *err);
golden_check check_line, check_provenance, check_schema;
/* Replays: the first starts `vtwin play` behind a real frontend or ours and compares
 * tokens, the second behind ours and compares times. */
golden_check check_tokens, check_timing;

#endif
