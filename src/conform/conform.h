/* conform.h - conformance goldens: recordings of real engines that are checked and
 * served again.
 *
 * Nothing here prints or reads the environment: whoever calls passes what it found
 * there. Replays start `vtwin play` as a child process and stop it again. */
#ifndef VT_CONFORM_H
#define VT_CONFORM_H

#include "base/base.h"
#include "trace/trace.h"

/* ---- what there is to check ------------------------------------------- */

enum vt_golden_role {
    VT_GOLDEN_SCHEMA,   /* its registration is what its line requires and play writes */
    VT_GOLDEN_FIDELITY, /* and its tokens and times come back when it is replayed */
};

struct vt_tolerance { /* of replayed times, absolute errors; negative: not stated */
    double p50_ms, p99_ms;
};

/* Strings of a manifest belong to it; NULL: not stated. */
struct vt_golden {
    const char *name;               /* of its file, without ending */
    const char *line;               /* "0.26", or "nightly" */
    const char *path, *bucket_path; /* one of them, or both */
    const char *sha256, *config_hash, *workload;
    const struct vt_golden_model *model; /* NULL: meta and the records must do */
    enum vt_golden_role role;
    struct vt_tolerance tolerance;
    bool validated; /* failures fail the run: compat.toml's fidelity_validated */
};

struct vt_golden_line { /* a row of compat.toml */
    const char *line, *tag, *protocol_rev;
    const char *patch_repo, *patch_rev; /* both or neither */
    bool fidelity_validated, is_default;
};

struct vt_golden_model { /* a row of models.toml */
    const char *name;
    const char *directory; /* as a frontend takes it; NULL: give --model-dir */
    uint32_t vocab_size, max_model_len;
};

struct vt_manifest {
    struct vt_arena arena;
    const char *directory; /* that manifest.toml is in */
    struct vt_golden *golden;
    size_t n_goldens;
    struct vt_golden_line *line;
    size_t n_lines;
    struct vt_golden_model *model;
    size_t n_models;
};

#define VT_NIGHTLY "nightly" /* the line that any version of vLLM is on */

/* Reads manifest.toml, and compat.toml and models.toml beside it. On failure nothing
 * is left to free and the message starts with the file and the line. */
int vt_manifest_load(struct vt_manifest *m, const char *path,
                     struct vt_err *err) VT_MUST_CHECK;
void vt_manifest_free(struct vt_manifest *m); /* frees contents, not m */

extern const char *const
    vt_golden_roles[]; /* in the order of their enum; ends with NULL */

/* ---- S3 --------------------------------------------------------------- */

struct vt_s3 { /* all borrowed; NULL or "": not given */
    const char *access_key, *secret_key,
        *session_token;   /* no keys: unsigned requests */
    const char *region;   /* us-east-1 if not given */
    const char *endpoint; /* "http://127.0.0.1:9000", addressed by path; else AWS */
};

/* Reads s3://bucket/key into `path`, which appears whole or not at all. At most
 * max_bytes. VT_EIO: not reached or refused, with S3's own error code. */
int vt_s3_fetch(const struct vt_s3 *s3, const char *uri, const char *path,
                uint64_t max_bytes, struct vt_err *err) VT_MUST_CHECK;

/* ---- conform ---------------------------------------------------------- */

struct vt_conform_config {          /* all borrowed; NULL: not given */
    const char *goldens;            /* where files are; else beside the manifest */
    const char *bucket;             /* "s3://bucket/prefix" or "bucket" */
    const char *cache;              /* keeps downloads; else they are thrown away */
    const char *line;               /* only goldens of this line */
    int role;                       /* only of this role; -1: both */
    const char *expect_config_hash; /* that every golden must have */
    const char *vtwin;              /* the program to start as `vtwin play` */
    char *const *environment;       /* of the programs that are started */
    const char *frontend;           /* vllm-rs or vllm; else our own frontend */
    const char *model_dir;          /* instead of those of models.toml */
    struct vt_tolerance tolerance;  /* instead of the manifest's */
    bool strict;                    /* lines not validated and missing files fail too */
    struct vt_s3 s3;
    /* Called before each golden and asked between requests whether to stop. */
    void (*begins)(void *user, const struct vt_golden *g);
    bool (*stopped)(void *user);
    void *user;
};

enum vt_check_result { VT_CHECK_OK, VT_CHECK_FAILED, VT_CHECK_SKIPPED };

struct vt_conform_row {
    const struct vt_golden *golden;
    const char *check; /* "integrity", "line", "provenance", "schema", "tokens", ... */
    enum vt_check_result result;
    bool excused; /* failed, on a line that is not validated */
    const char *text;
};

struct vt_conform {
    struct vt_arena arena;
    struct vt_conform_row *row;
    size_t n_rows, cap;
    size_t n_goldens; /* looked at */
    size_t n_ok, n_failed, n_excused, n_skipped;
};

/* Checks all goldens asked for; a check that fails is a row, not an error. VT_EINPUT:
 * what was asked makes no sense. VT_EIO: stopped. */
int vt_conform_run(struct vt_conform *c, const struct vt_manifest *m,
                   const struct vt_conform_config *config,
                   struct vt_err *err) VT_MUST_CHECK;
void vt_conform_free(struct vt_conform *c); /* frees contents, not c */

void vt_conform_table(struct vt_buf *b, const struct vt_conform *c);
void vt_conform_json(struct vt_buf *b, const struct vt_conform *c);
void vt_manifest_table(struct vt_buf *b, const struct vt_manifest *m);
void vt_manifest_json(struct vt_buf *b, const struct vt_manifest *m);

#endif
