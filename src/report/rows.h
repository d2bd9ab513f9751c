/* rows.h - which numbers a summary shows, in which order; private to report.
 *
 * Table, JSON and comparison walk the same lists, so none can forget a metric. */
#ifndef VT_REPORT_ROWS_H
#define VT_REPORT_ROWS_H

#include "report/report.h"

enum {
    VT_N_STATS = 5,
    VT_N_MEASURED = 4, /* of them, the first ones are known of measured requests too */
    VT_N_PARTS = 5,
    VT_N_SCALARS = 5,
};

extern const struct vt_stat_row {
    const char *label; /* for people */
    const char *key;   /* in JSON */
    size_t offset;     /* of a struct vt_stat in struct vt_summary */
} vt_stat_rows[VT_N_STATS];

extern const struct vt_part {
    const char *key;
    size_t offset; /* of a double in struct vt_stat */
} vt_parts[VT_N_PARTS];

/* Single numbers that are compared. */
extern const struct vt_scalar {
    const char *label, *unit;
    const char *key;
    size_t offset; /* of a double in struct vt_summary */
    double scale;  /* from the summary's unit to the table's */
} vt_scalars[VT_N_SCALARS];

static inline const struct vt_stat *vt_stat_of(const struct vt_summary *s, size_t row)
{
    return (const void *)((const char *)s + vt_stat_rows[row].offset);
}

static inline double vt_part_of(const struct vt_stat *s, size_t part)
{
    const double *v = (const void *)((const char *)s + vt_parts[part].offset);

    return *v;
}

static inline double vt_scalar_of(const struct vt_summary *s, size_t scalar)
{
    const double *v = (const void *)((const char *)s + vt_scalars[scalar].offset);

    return *v;
}

/* Of predicted against measured; NAN when that has no meaning. */
double vt_error_percent(double predicted, double measured);

#endif
