/* summary.h - private to load. */
#ifndef VT_LOAD_SUMMARY_H
#define VT_LOAD_SUMMARY_H

#include "load/load.h"

double load_tpot_s(const struct vt_load_record *r, enum vt_load_backend b);
/* v has room for one number of each record. */
void load_steady(struct vt_load_steady *s, const struct vt_load_records *r,
                 const struct vt_load_asks *a, double *v);

#endif
