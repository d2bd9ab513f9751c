/* decimal.h - decimal text to numbers, shared by the JSON, YAML and plain readers. */
#ifndef VT_DECIMAL_H
#define VT_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vt_decimal {
    const char *text;
    size_t len;
    size_t n_int, n_frac; /* digits before and after the point */
    uint64_t digits;      /* all of them as one integer, if exact */
    int64_t exp10;        /* value = digits * 10^exp10 */
    bool sign, negative;  /* sign: one was written */
    bool point, exponent;
    bool exact;
};

/* Reads the longest [+-]digits[.digits][e[+-]digits] with at least one digit at p.
 * Returns its end, or NULL if there is none. */
const char *vt_decimal_scan(const char *p, const char *end, struct vt_decimal *d);

/* A decimal without point or exponent. */
static inline bool vt_decimal_is_int(const struct vt_decimal *d)
{
    return !d->point && !d->exponent;
}

/* Without what the scanner accepts and JSON and TOML do not: ".5", "5.", "007". */
static inline bool vt_decimal_is_strict(const struct vt_decimal *d)
{
    return d->n_int > 0 && (d->n_int == 1 || d->text[d->sign] != '0') &&
           (!d->point || d->n_frac > 0);
}

/* The magnitude of an integer; false if it does not fit. */
bool vt_decimal_u64(const struct vt_decimal *d, uint64_t *out);

/* The nearest double; false if that is infinite or the text absurdly long. */
bool vt_decimal_f64(const struct vt_decimal *d, double *out);

#endif
