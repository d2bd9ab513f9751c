/* script.h - what one request will produce: its tokens, where it ends and why, and the
 * recorded times to follow; private to wire.
 *
 * A source is opened once per process. Matching happens on one thread; a script made by
 * it is read-only afterwards and may be read by another thread, which may also end it.
 */
#ifndef VT_WIRE_SCRIPT_H
#define VT_WIRE_SCRIPT_H

#include "core/core.h"
#include "text/text.h"
#include "wire/codec/codec.h"

struct script_source; /* opaque */

/* Of the config it takes the seed, the tokens to draw from and the files to replay;
 * borrowed while opening only. The caller owns *out. Messages start with the path of
 * the file at fault. */
int script_source_open(struct script_source **out, const struct vt_play_config *c,
                       struct vt_err *err) VT_MUST_CHECK;
void script_source_close(struct script_source *s); /* NULL is fine; ends no script */

struct script_source_stats {
    size_t records; /* that can be served */
    uint64_t requests, matched;
    uint64_t repeated; /* of those matched: their record had been served before */
};
struct script_source_stats script_source_stats(const struct script_source *s);

struct script_run { /* ids in a row that random output may hold */
    uint32_t first; /* id */
    uint32_t rank;  /* how many ids the runs before it hold */
};

struct script {
    const uint32_t *token; /* recorded or forced; beyond them output is random */
    uint32_t n_token;
    uint64_t key;
    const struct script_run *run;
    uint32_t n_runs;
    uint32_t n_ids;      /* in all runs */
    uint32_t last_at;    /* index of the EOS of a drawn length; VT_NO_STOP */
    uint32_t last_token; /* the token there */
    uint32_t max_tokens; /* at least 1; these four as struct vt_request has them */
    uint32_t min_tokens;
    uint32_t eos_at, stop_at; /* VT_NO_STOP: none */
    uint32_t stop_token;      /* the id at stop_at: the stop_reason to tell */
    /* What a recorded request ended with (enum wire_finish), to be told when output
     * reaches max_tokens; -1: by rule, which is "length" there. */
    int finish;
    const struct vt_record *steps; /* of the source; NULL: time is the model's */
    void *own;                     /* memory of its own; script_end() frees it */
};

/* Nothing in *out points into r or p. max_model_len bounds prompt and output. On
 * failure (memory only) there is nothing to end. */
int script_begin(struct script_source *s, const struct wire_request *r,
                 const struct wire_sampling *p, uint32_t max_model_len,
                 struct script *out, struct vt_err *err) VT_MUST_CHECK;
void script_end(struct script *s); /* a zeroed one is fine; any thread */

/* Pure: the id of output token i, whatever was asked before. */
uint32_t script_token(const struct script *s, uint32_t i);

#endif
