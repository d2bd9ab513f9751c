/* internal.h - what the readers of this room share. Not for other rooms.
 *
 * Every reader works the same way: trace_build_init(), then for each row one
 * trace_build_add() and its segments and timings, then trace_build_finish(). Until
 * that returns VT_OK the workload is half made; trace_build_fail() ends it. */
#ifndef VT_TRACE_INTERNAL_H
#define VT_TRACE_INTERNAL_H

#include "trace/trace.h"

#define TRACE_MAX_REQUESTS 10000000   /* of one workload */
#define TRACE_MAX_GAPS     1000000000 /* of one workload: 8 GB */
#define TRACE_MAX_SEGMENTS UINT32_C(200000000)
#define TRACE_MAX_TOKENS   INT32_MAX /* of one prompt or output */
#define TRACE_MAX_MS       1e12      /* of one arrival or duration: 31 years */

/* ---- lines ------------------------------------------------------------ */

/* The current line of a text file. The first line is read before a format is
 * chosen, so readers start with one in hand. */
struct trace_reader {
    struct vt_lines *lines; /* borrowed */
    const char *name;       /* for messages */
    char *line;             /* NULL at the end of the file */
    size_t len;
    uint32_t number;
    bool complete;           /* the line ended with a newline */
    size_t n_rows;           /* read by trace_reader_rows() before this one */
    struct trace_build *to;  /* rows are read until it has enough; NULL: all */
    struct vt_arena scratch; /* of the row in hand */
    size_t
        *nulls; /* rows are of a report, vt_json_parse_report(); NULL: they are not */
};

/* Moves to the next line that is not blank. */
int trace_reader_next(struct trace_reader *r, struct vt_err *err) VT_MUST_CHECK;

/* The line in hand as one JSON value, or object, in r->scratch, which is reset first
 * and for the caller to free. Messages start with "line N: ". */
int trace_reader_value(struct trace_reader *r, const struct vt_node **out,
                       struct vt_err *err) VT_MUST_CHECK;
int trace_reader_json(struct trace_reader *r, const struct vt_node **out,
                      struct vt_err *err) VT_MUST_CHECK;
/* Reads from the line in hand to the end, or until r->to has enough; the next call goes
 * on. Messages of `read` begin with the line, and get the file's name before it. */
typedef int trace_row_reader(void *user, struct trace_reader *r,
                             const struct vt_node *row, struct vt_err *err);
int trace_reader_rows(struct trace_reader *r, trace_row_reader *read, void *user,
                      struct vt_err *err) VT_MUST_CHECK;
/* The same for lines that are no JSON, from the one after the line in hand. Messages
 * get the file's name and the line before them. */
typedef int trace_line_reader(void *user, struct trace_reader *r, struct vt_err *err);
int trace_reader_lines(struct trace_reader *r, trace_line_reader *read, void *user,
                       struct vt_err *err) VT_MUST_CHECK;

/* Opens the file, lets `read` have its lines and closes it: all that a reader of files
 * does beside one over lines in memory. */
typedef int trace_file_reader(void *to, struct vt_lines *lines, struct vt_err *err);
int trace_load(void *to, const char *path, trace_file_reader *read,
               struct vt_err *err) VT_MUST_CHECK;

/* ---- order ------------------------------------------------------------ */

struct trace_place {
    vt_ns at;
    size_t index; /* decides between equals */
};
void trace_sort_places(struct trace_place *p, size_t n);
/* Puts an array's cells in that order, in new memory. */
int trace_reorder(void *array_ptr, const struct trace_place *order, size_t n,
                  size_t cell, struct vt_err *err) VT_MUST_CHECK;

/* ---- building a workload ---------------------------------------------- */

struct trace_build {
    struct vt_workload *w;
    size_t n;      /* requests added, in all pieces; w may be one of many (stream.c) */
    size_t enough; /* requests of w with which a reader stops */
    char *pool;    /* rest of the chunk that ids are packed into */
    size_t pool_left;
    struct vt_names ids, sessions;
    const char *last_id; /* NULL: none; of the piece before it is `before_id` */
    struct vt_buf before_id;
    uint64_t
        *id_hash; /* of all ids so far, where hash_ids says so; not for whole ones */
    size_t n_id_hashes, cap_id_hashes;
    bool hash_ids;
    bool unordered_ids; /* they ceased to ascend in a later piece, and went unchecked */
    const char **session; /* names, by index */
    size_t n_sessions, cap_sessions;
    size_t max_requests;
    uint32_t line; /* being read; 0: none */
    size_t cap_measured, cap_gaps, cap_gap_tokens;
    bool told_cut;  /* that the file was cut: a second reading need not tell it again */
    bool check_ids; /* false where ids are made here and so are unique */
    bool kept_whole;   /* turns of a session are added one after the other */
    bool untimed;      /* some request has no timings, so the file has none */
    size_t n_given_up; /* aborted ones without timings, which do not count for that: in
                        * a file that has timings they are left out */
};

/* Zeroes *w and *b. Copies the source's name. */
int trace_build_init(struct trace_build *b, struct vt_workload *w, const char *source,
                     struct vt_err *err) VT_MUST_CHECK;
static inline bool trace_build_has_enough(const struct trace_build *b)
{
    return b->w->n >= b->enough;
}
/* Appends a request with this id (copied) and defaults for the rest: no segments, no
 * session, a first turn. *out is good until the next one is added. */
int trace_build_add(struct trace_build *b, const char *id, size_t len,
                    struct vt_work **out, struct vt_err *err) VT_MUST_CHECK;
/* The same with the id "request-N". */
int trace_build_add_numbered(struct trace_build *b, size_t number, struct vt_work **out,
                             struct vt_err *err) VT_MUST_CHECK;
/* The adapter that the last one asks for; "": none. */
int trace_build_lora(struct trace_build *b, const char *name,
                     struct vt_err *err) VT_MUST_CHECK;
/* Appends to the prompt of the request last added; no tokens, no segment. */
int trace_build_segment(struct trace_build *b, uint64_t content, uint32_t offset,
                        uint32_t tokens, struct vt_err *err) VT_MUST_CHECK;
/* The same of tokens that only this request has. */
int trace_build_own(struct trace_build *b, uint32_t tokens,
                    struct vt_err *err) VT_MUST_CHECK;
/* The dense index of a named session. */
int trace_build_session(struct trace_build *b, const char *name, size_t len,
                        uint32_t *index, struct vt_err *err) VT_MUST_CHECK;
/* Timings of the request last added; then its gaps, in order. */
int trace_build_measured(struct trace_build *b, vt_ns ttft_ns, uint32_t cached_tokens,
                         struct vt_err *err) VT_MUST_CHECK;
int trace_build_gap(struct trace_build *b, vt_ns gap_ns, uint32_t tokens,
                    struct vt_err *err) VT_MUST_CHECK;
/* Sorts by arrival, links the turns of sessions, gives back spare memory and frees
 * the builder. The builder is freed on failure too, not the workload. */
int trace_build_finish(struct trace_build *b, struct vt_err *err) VT_MUST_CHECK;
/* Frees the builder and the workload, and returns rc. */
int trace_build_fail(struct trace_build *b, int rc);
/* Goes on with another piece of the workload, in *w, whose requests are dropped. */
int trace_build_piece(struct trace_build *b, struct vt_workload *w,
                      struct vt_err *err) VT_MUST_CHECK;
void trace_build_free(struct trace_build *b); /* not the workload */
void trace_free_times(struct vt_workload *w); /* measured ones and gaps */

/* ---- where requests come from ----------------------------------------- */

/* A file's rows or a generator's draws, some at a time. */
struct trace_feed {
    struct trace_build b;
    /* Appends until b has enough, or to the end: then *done. */
    int (*more)(struct trace_feed *f, bool *done, struct vt_err *err);
    void (*close)(struct trace_feed *f); /* frees it with its builder */
};
/* Takes all of them into *w, which nothing is left of on failure, and closes the feed.
 * rc: of opening it. */
int trace_feed_all(struct trace_feed **f, struct vt_workload *w, int rc,
                   struct vt_err *err) VT_MUST_CHECK;

uint64_t trace_content_own(const char *id, size_t len);       /* of one request */
uint64_t trace_content_prefix(const char *group, size_t len); /* of a prefix group */
uint64_t trace_content_block(uint64_t hash);                  /* of a hashed block */

#endif
