/* multiturn.h - where conversations come from; private to load. */
#ifndef VT_LOAD_MULTITURN_H
#define VT_LOAD_MULTITURN_H

#include "load/load.h"

enum {
    MULTITURN_MAX_CONVERSATIONS = 1000000,
    MULTITURN_MAX_TURNS = 10000,
    MULTITURN_MAX_TOKENS = 1 << 24, /* of one message */
    MULTITURN_MAX_TEXT = 1 << 28,   /* tokens of all text files */
};

/* One conversation in the making. */
struct talk {
    struct vt_load_plan *plan;         /* borrowed */
    const struct vt_load_multiturn *m; /* borrowed */
    struct vt_rng think;
    struct vt_load_turn *turn; /* heap */
    size_t n, cap;
    uint32_t said; /* tokens so far, answers included */
};
void talk_open(struct talk *t, struct vt_load_plan *p,
               const struct vt_load_multiturn *m);
void talk_close(struct talk *t);
/* A message of the user and the length of its answer; text is of the plan's arena. */
int talk_add(struct talk *t, const char *text, size_t len, uint32_t tokens,
             uint32_t output_tokens, struct vt_err *err) VT_MUST_CHECK;
/* Adds the conversation to the plan, with a copy of its id, and empties *t, which keeps
 * its memory. */
int talk_end(struct talk *t, const char *id, const char *system,
             struct vt_err *err) VT_MUST_CHECK;

/* Puts the defaults where nothing is stated, and checks the whole. */
int multiturn_defaults(struct vt_load_multiturn *m, struct vt_err *err) VT_MUST_CHECK;

/* ---- distributions ------------------------------------------------------ */

enum dist_kind {
    DIST_CONSTANT,
    DIST_UNIFORM,
    DIST_UNIFORM_REAL,
    DIST_LOGNORMAL,
    DIST_ZIPF,
    DIST_POISSON
};
struct dist {
    enum dist_kind kind;
    double a, b;    /* value; min, max; mu, sigma; alpha */
    double average; /* lognormal: samples are scaled to it; 0: they are not */
    double max;     /* 0: none */
};
/* Reads {"distribution": "uniform", "min": 1, "max": 9}. */
int dist_read(const struct vt_node *map, struct dist *out,
              struct vt_err *err) VT_MUST_CHECK;
/* n draws, rounded to whole numbers, none below `least` or above
 * MULTITURN_MAX_TOKENS. scratch has room for n. */
void dist_sample(const struct dist *d, struct vt_rng *rng, uint32_t least,
                 double *scratch, uint32_t *out, size_t n);

/* ---- files ----------------------------------------------------------- */

/* How many tokens a text has; 0 without a tokenizer. ids is kept for its memory. */
int count_tokens(const struct vt_tokenizer *t, struct vt_ids *ids, const char *text,
                 size_t len, uint32_t *out, struct vt_err *err) VT_MUST_CHECK;
/* [{"id": ..., "messages": [...]}, ...] */
int multiturn_list(struct vt_load_plan *p, const struct vt_node *root,
                   const struct vt_load_multiturn *m, const struct vt_tokenizer *t,
                   struct vt_err *err) VT_MUST_CHECK;
/* {"filetype": "generate_conversations", ...} */
struct recipe {
    uint32_t conversations;
    const struct vt_node *text_files; /* a list of strings */
    struct dist turns, common_prefix, prefix, input, output;
};
int recipe_read(const struct vt_node *root, struct recipe *out,
                struct vt_err *err) VT_MUST_CHECK;
/* Conversations out of a text's tokens. */
int recipe_make(struct vt_load_plan *p, const struct recipe *r,
                const struct vt_ids *text, const struct vt_load_multiturn *m,
                const struct vt_tokenizer *t, struct vt_err *err) VT_MUST_CHECK;

#endif
