/* result.h - pieces of a result's JSON and table; private to load. */
#ifndef VT_LOAD_RESULT_H
#define VT_LOAD_RESULT_H

#include "load/load.h"

/* A member's key, after a comma where one is due. */
void load_key(struct vt_buf *b, const char *key);
void load_put_f64(struct vt_buf *b, const char *key, double v);
void load_put_u64(struct vt_buf *b, const char *key, uint64_t v);
void load_put_str(struct vt_buf *b, const char *key, const char *v); /* NULL: null */

void load_title(struct vt_buf *b, const char *title, char fill);
void load_row(struct vt_buf *b, const char *label, double v);
void load_row_n(struct vt_buf *b, const char *label, uint64_t n);

/* , "steady_state": {...}, if there is one; and , "vtwin": {...} */
void load_steady_json(struct vt_buf *b, const struct vt_load_steady *s, size_t total,
                      const struct vt_load_asks *a);
void load_own_json(struct vt_buf *b, const struct vt_load_summary *s,
                   const struct vt_load_records *r);

#endif
