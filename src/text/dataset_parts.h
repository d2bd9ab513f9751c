/* dataset_parts.h - the parts of the dataset reader; private to dataset*.c. */
#ifndef VT_TEXT_DATASET_PARTS_H
#define VT_TEXT_DATASET_PARTS_H

#include "text/text.h"

struct dataset_reader {
    struct vt_dataset *d;
    vt_dataset_encode *encode;
    void *user;
    struct vt_buf text; /* scratch */
};

/* One row, a map. Messages start with "line N: ". (dataset_row.c) */
int dataset_add_row(struct dataset_reader *r, const struct vt_node *row,
                    struct vt_err *err) VT_MUST_CHECK;

/* CSV with RFC 4180's quotes; a quoted field may hold line ends. (dataset_csv.c) */
struct dataset_csv {
    const char *at, *end;
    uint32_t line;     /* of what comes next; from 1 */
    const char **name; /* of the columns, in the arena given for the header */
    uint32_t n_columns;
};
int dataset_csv_begin(struct dataset_csv *c, struct vt_arena *a, const char *text,
                      size_t len, struct vt_err *err) VT_MUST_CHECK;
/* The next row as a map of texts; *out is NULL at the end. */
int dataset_csv_next(struct dataset_csv *c, struct vt_arena *a,
                     const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;

#endif
