/* convert.h - what the converters share; private to trace.
 *
 * Every converter goes through struct vt_records: a reader fills them, a writer says
 * them in its format. To add a format: write <name>.c, add a row to the table
 * in convert.c, describe it in docs/inspect.md and add a case to
 * tests/trace/test_convert.c. */
#ifndef VT_TRACE_CONVERT_H
#define VT_TRACE_CONVERT_H

#include "trace/jsonl/jsonl.h"

struct convert_format {
    const char *name;
    /* Fills *r, which comes zeroed: from a file, or from a report that is one JSON or
     * YAML tree. NULL where there is no such direction. */
    int (*read)(struct vt_records *r, const char *path, struct vt_err *err);
    int (*tree)(struct vt_records *r, const struct vt_node *root, struct vt_err *err);
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

int convert_bench_tree(struct vt_records *r, const struct vt_node *root,
                       struct vt_err *err) VT_MUST_CHECK;
int convert_lifecycle_tree(struct vt_records *r, const struct vt_node *root,
                           struct vt_err *err) VT_MUST_CHECK;
int convert_guidellm_tree(struct vt_records *r, const struct vt_node *root,
                          struct vt_err *err) VT_MUST_CHECK;
/* convert_read_tracev2() over what is in memory; itl may be NULL. */
int convert_tracev2_lines(struct vt_records *r, struct vt_lines *csv,
                          struct vt_lines *itl, struct vt_err *err) VT_MUST_CHECK;

/* Which kind of report a JSON tree is: a reader's name, or NULL. */
const char *convert_recognise_tree(const struct vt_node *root);

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
/* Moves arrivals so that the first is at 0 (those not stated stay so), and finishes. */
int convert_from_first(struct vt_records *r, struct vt_err *err) VT_MUST_CHECK;

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
