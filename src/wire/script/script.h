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

/* How a request finds its record. INDEX: the number at the end of its external id names
 * the record. PREFIX: the record whose prompt shares most leading blocks; of those the
 * first one not served yet, in order of arrival. ID: equal ids, with what frontends put
 * around them taken off. */
enum script_match { SCRIPT_BY_INDEX, SCRIPT_BY_PREFIX, SCRIPT_BY_ID };
int script_match_parse(const char *name); /* index, prefix, id; -1 when unknown */

struct script_config { /* all borrowed while opening only */
    uint64_t seed;
    uint32_t block_size; /* behind block_hashes where the trace's meta names none */
    uint32_t vocab_size;
    const uint32_t *skip; /* ids that random output never holds: special tokens */
    uint32_t n_skip;
    const char *replay_tokens; /* trace with output_token_ids, or a dataset; NULL */
    const char *replay_steps; /* trace whose times and chunk sizes are followed; NULL */
    const char *lengths_from; /* trace whose output lengths are drawn; NULL */
    enum script_match match;
    vt_dataset_encode *encode; /* for datasets of text; NULL: no tokenizer */
    void *encode_user;
};

struct script_source; /* opaque */

/* The caller owns *out. Messages start with the path of the file at fault. */
int script_source_open(struct script_source **out, const struct script_config *c,
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
