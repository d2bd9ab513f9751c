/* convert.h - what the converters share; private to trace.
 *
 * Every converter goes through struct vt_records: a reader fills them, a writer says
 * them in its format. To add a format: write <name>.c, add a row to the table
 * in convert.c, describe it in docs/inspect.md and add a case to
 * tests/trace/test_convert.c. */
#ifndef VT_TRACE_CONVERT_H
#define VT_TRACE_CONVERT_H

#include "trace/jsonl/jsonl.h"

struct vt_tokenizer; /* of text.h */

struct convert_from { /* all borrowed */
    const char *path; /* where a report was read from, for what lies beside it; NULL:
                       * nowhere */
    const struct vt_tokenizer *tokenizer; /* of its prompts; NULL: none is at hand */
    bool all;                             /* as vt_lifecycle_load() has them */
};

/* A report that is one JSON or YAML tree. from: NULL if nothing is known of it. */
typedef int convert_tree(struct vt_records *r, const struct vt_node *root,
                         const struct convert_from *from, struct vt_err *err);

struct convert_format {
    const char *name;
    /* Fills *r, which comes zeroed: from a file, or from a tree. All NULL where there
     * is no such direction. */
    int (*read)(struct vt_records *r, const char *path, struct vt_err *err);
    int (*report)(struct vt_records *r, const struct convert_from *from,
                  struct vt_err *err); /* the same of one with prompts */
    convert_tree *tree;
    int (*write)(const struct vt_records *r, const char *path,
                 struct vt_converted *done, struct vt_err *err);
};

int convert_read_workload(struct vt_records *r, const char *path, struct vt_err *err);
int convert_read_requests(struct vt_records *r, const char *path, struct vt_err *err);
int convert_read_tracev2(struct vt_records *r, const char *path, struct vt_err *err);

int convert_write_trace(const struct vt_records *r, const char *path,
                        struct vt_converted *done, struct vt_err *err);
int convert_write_vcr(const struct vt_records *r, const char *path,
                      struct vt_converted *done, struct vt_err *err);
int convert_write_requests(const struct vt_records *r, const char *path,
                           struct vt_converted *done, struct vt_err *err);
int convert_write_tracev2(const struct vt_records *r, const char *path,
                          struct vt_converted *done, struct vt_err *err);
int convert_write_vidur(const struct vt_records *r, const char *path,
                        struct vt_converted *done, struct vt_err *err);
int convert_write_llmservingsim(const struct vt_records *r, const char *path,
                                struct vt_converted *done, struct vt_err *err);

convert_tree convert_bench_tree, convert_lifecycle_tree, convert_guidellm_tree;
/* AIPerf's records, one JSON object a line; and over what is in memory, with the tree
 * of inputs.json, the prompts; it may be NULL. */
int convert_read_aiperf(struct vt_records *r, const struct convert_from *from,
                        struct vt_err *err);
int convert_aiperf_lines(struct vt_records *r, struct vt_lines *lines,
                         const struct vt_node *inputs,
                         const struct vt_tokenizer *tokenizer,
                         struct vt_err *err) VT_MUST_CHECK;
/* convert_read_tracev2() over what is in memory; itl may be NULL. */
int convert_tracev2_lines(struct vt_records *r, struct vt_lines *csv,
                          struct vt_lines *itl, struct vt_err *err) VT_MUST_CHECK;

/* Which kind of report a JSON tree is: a reader's name, or NULL. Then *why may say what
 * it is instead. */
const char *convert_recognise_tree(const struct vt_node *root, const char **why);

/* ---- text ------------------------------------------------------------- */

/* Appends one line (or none, or several) for record i. */
typedef void convert_put(struct vt_buf *b, const struct vt_records *r, size_t i,
                         void *user);
/* Writes a file: `head`, then each record. */
int convert_write_file(const struct vt_records *r, const char *path, const char *head,
                       convert_put *put, void *user, struct vt_err *err) VT_MUST_CHECK;
/* Refuses records whose arrival is not stated; which: "", or ", which ... needs". */
int convert_need_arrivals(const struct vt_records *r, const char *which,
                          struct vt_err *err) VT_MUST_CHECK;

/* ---- numbers from reports --------------------------------------------- */

/* A number in a member of a list or map, in [-1e12, 1e12]. */
bool convert_number(const struct vt_node *n, double *out);
/* A time or duration in seconds, from 0 to the year 2096. */
bool convert_seconds(const struct vt_node *n, vt_ns *out);
/* All that is known is the mean of n gaps. */
int convert_mean(struct vt_records *r, struct vt_record *q, vt_ns mean, uint32_t n,
                 struct vt_err *err) VT_MUST_CHECK;
/* The n gaps after a stream's first chunk, in the arena. Where there are more than
 * tokens (chunks may hold no token, or parts of one) their mean is all they tell. */
int convert_gaps(struct vt_records *r, struct vt_record *q, const vt_ns *gap,
                 uint32_t n, struct vt_err *err) VT_MUST_CHECK;
/* One more load of the report. concurrency > 0: a closed loop of so many. */
int convert_part(struct vt_records *r, const char *name, uint32_t concurrency,
                 struct vt_err *err) VT_MUST_CHECK;
/* Of records with a `session` and a `turn`, which may be of one request only: keeps
 * conversations, with the time between their turns, and forgets the rest. A load that
 * has some starts a turn when the one before it has ended. Before
 * convert_from_first(). */
int convert_sessions(struct vt_records *r, struct vt_err *err) VT_MUST_CHECK;
/* Reads the tree of a file in the same directory; *out is NULL if there is none. */
int convert_beside(struct vt_arena *a, const char *path, const char *name,
                   const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;
/* Requests without that time are left out like those that failed; where none has it
 * the run did not stream, VT_EINPUT. */
int convert_need_times(const struct vt_records *r, size_t without, const char *what,
                       struct vt_err *err) VT_MUST_CHECK;
/* Whether a list of gaps holds one that was not measured, null. */
bool convert_has_hole(const struct vt_node *gaps);
/* Moves arrivals so that the first is at 0 (those not stated stay so), and finishes. */
int convert_from_first(struct vt_records *r, struct vt_err *err) VT_MUST_CHECK;

/* ---- prompts ---------------------------------------------------------- */

enum convert_prompt_kind { CONVERT_TEXT, CONVERT_CHAT, CONVERT_IDS };

/* What requests were asked, as far as a report keeps it. Zero-initialise to start. */
struct convert_prompts {
    const struct vt_tokenizer *tokenizer; /* borrowed; NULL: tokens are guessed */
    struct vt_arena arena;                /* of texts */
    struct convert_prompt {
        enum convert_prompt_kind kind;
        const char *text; /* of ids: CONVERT_ID_BYTES each */
        size_t len;
        size_t record; /* index into vt_records.rec, before they are sorted */
        size_t node;   /* of the tree of texts */
    } *prompt;
    size_t n, cap;
};

enum { CONVERT_ID_BYTES = sizeof(uint32_t) };

/* Notes what a record was asked: the body of its request as a tree or as JSON in a
 * string, or the prompt itself. NULL, or a body without a prompt: nothing is known. */
int convert_prompt_add(struct convert_prompts *p, const struct vt_node *request,
                       size_t record, struct vt_err *err) VT_MUST_CHECK;
/* Gives records their segments: equal texts, and equal beginnings of at least a block,
 * become equal content. Prompts whose tokens nobody counted (0) are as long as an equal
 * one, or as their text makes likely. Before convert_from_first(), which sorts. */
int convert_prompts_share(struct convert_prompts *p, struct vt_records *r,
                          struct vt_err *err) VT_MUST_CHECK;
void convert_prompts_free(struct convert_prompts *p);
/* tokens.c: makes ids of all texts with the tokenizer that is there, chats by its
 * template. */
int convert_prompts_encode(struct convert_prompts *p, struct vt_err *err) VT_MUST_CHECK;

/* ---- prefixes --------------------------------------------------------- */

/* The first segment of a prompt that others begin with too, which is all that tables of
 * requests can say of shared content. */
struct convert_prefix {
    const char *group; /* NULL: none */
    uint32_t tokens;
};

/* One for each record; the caller frees. *lost is set if more than that is shared. */
int convert_prefixes(const struct vt_records *r, struct convert_prefix **out,
                     bool *lost, struct vt_err *err) VT_MUST_CHECK;

#endif
