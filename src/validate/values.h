/* values.h - numbers, names and paths as they come; private to validate. */
#ifndef VT_VALIDATE_VALUES_H
#define VT_VALIDATE_VALUES_H

#include "base/base.h"

/* Zero-initialise to start; the caller frees v. */
struct values {
    double *v;
    size_t n, cap;
};
int values_add(struct values *x, double v, struct vt_err *err) VT_MUST_CHECK;
/* Sorts them. NAN: none. An infinite neighbour gives an infinite quantile, not a NAN.
 */
double values_quantile(struct values *x, double percent);
double values_mean(const struct values *x); /* NAN: none */

/* Borrowed texts, sorted, each once. Zero-initialise to start; the caller frees key. */
struct keys {
    const char **key;
    size_t n, cap;
};
int keys_add(struct keys *k, const char *key, struct vt_err *err) VT_MUST_CHECK;

/* "directory/name"; NULL: out of memory. */
const char *path_in(struct vt_arena *a, const char *directory, const char *name);

#endif
