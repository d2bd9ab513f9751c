/* decimal.c - decimal text to 64-bit integers and correctly rounded doubles.
 *
 * Traces hold millions of numbers of up to 17 digits with a point somewhere inside.
 * Those are done exactly in integers; the rare rest goes to strtod. */
#include "base/decimal.h"

#include "base/base.h"

__extension__ typedef unsigned __int128 u128;

enum {
    MAX_TEXT = 1000,  /* longer numbers are refused rather than copied */
    EXACT_DIGITS = 19 /* always fit a uint64 */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *scan_digits(const char *p, const char *end, uint64_t *value)
{
    uint64_t v = *value;

    for (; p < end && is_digit(*p); p++)
        v = v * 10 + (uint64_t)(*p - '0');
    *value = v;
    return p;
}

static const char *scan_exponent(const char *p, const char *end, int64_t *exp10)
{
    bool negative = false;
    int64_t e = 0;

    if (p < end && (*p == '+' || *p == '-'))
        negative = *p++ == '-';
    if (p == end || !is_digit(*p))
        return NULL;
    for (; p < end && is_digit(*p); p++)
        if (e < 100000) /* beyond any double; saturates */
            e = e * 10 + (*p - '0');
    *exp10 = negative ? -e : e;
    return p;
}

static size_t leading_zeros(const struct vt_decimal *d)
{
    const char *p = d->text + d->sign;
    size_t n = 0;

    for (; n < d->n_int + d->n_frac && (*p == '0' || *p == '.'); p++)
        n += *p == '0';
    return n;
}

const char *vt_decimal_scan(const char *p, const char *end, struct vt_decimal *d)
{
    const char *start = p, *from;

    *d = (struct vt_decimal){.text = p};
    if (p < end && (*p == '-' || *p == '+')) {
        d->sign = true;
        d->negative = *p++ == '-';
    }
    from = p;
    p = scan_digits(p, end, &d->digits);
    d->n_int = (size_t)(p - from);
    if (p < end && *p == '.') {
        d->point = true;
        from = ++p;
        p = scan_digits(p, end, &d->digits);
        d->n_frac = (size_t)(p - from);
    }
    if (d->n_int + d->n_frac == 0)
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        d->exponent = true;
        p = scan_exponent(p + 1, end, &d->exp10);
        if (!p)
            return NULL;
    }
    d->exp10 -= (int64_t)d->n_frac;
    d->len = (size_t)(p - start);
    d->exact = d->n_int + d->n_frac <= EXACT_DIGITS ||
               d->n_int + d->n_frac - leading_zeros(d) <= EXACT_DIGITS;
    return p;
}

bool vt_decimal_u64(const struct vt_decimal *d, uint64_t *out)
{
    const char *p = d->text + d->sign, *end = d->text + d->len;
    uint64_t v = 0;

    if (d->exact) {
        *out = d->digits;
        return true;
    }
    for (; p < end; p++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    *out = v;
    return true;
}

/* a / b * 2^e rounded once. With both scaled to 64 bits the quotient has 63 or 64 bits,
 * ten more than a double keeps; or-ing the remainder in breaks ties the right way. */
static double ratio(uint64_t a, uint64_t b, int e)
{
    int up_a = __builtin_clzll(a), up_b = __builtin_clzll(b);
    u128 top = (u128)(a << up_a) << 63;
    uint64_t q = (uint64_t)(top / (b << up_b)), bits;
    double power_of_two;

    q |= top % (b << up_b) != 0;
    bits = (uint64_t)(1023 + up_b - up_a - 63 + e) << 52;
    memcpy(&power_of_two, &bits, sizeof(bits));
    return (double)q * power_of_two;
}

/* 10^0 to 10^22, the last that is exact */
static const double ten_f64[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
/* 5^n is five_ones[n % 8] * five_eights[n / 8], up to 5^27, the last below 2^64. */
static const uint64_t five_ones[] = {1, 5, 25, 125, 625, 3125, 15625, 78125};
static const uint64_t five_eights[] = {1, 390625, 152587890625, 59604644775390625};

static bool from_integers(const struct vt_decimal *d, double *out)
{
    if (!d->exact)
        return false;
    /* Both factors are exact doubles, so the one operation rounds correctly. */
    if (d->digits <= UINT64_C(1) << 53 && d->exp10 >= -22 && d->exp10 <= 22) {
        double v = (double)d->digits;

        *out = d->exp10 < 0 ? v / ten_f64[-d->exp10] : v * ten_f64[d->exp10];
        return true;
    }
    if (d->exp10 > 0 || d->exp10 < -27 || d->digits == 0)
        return false;
    *out = ratio(d->digits, five_ones[-d->exp10 % 8] * five_eights[-d->exp10 / 8],
                 (int)d->exp10);
    return true;
}

bool vt_decimal_f64(const struct vt_decimal *d, double *out)
{
    char copy[MAX_TEXT + 1];
    double v;

    if (d->len > MAX_TEXT)
        return false;
    if (from_integers(d, &v)) {
        *out = d->negative ? -v : v;
        return true;
    }
    memcpy(copy, d->text, d->len);
    copy[d->len] = '\0';
    v = strtod(copy, NULL);
    if (v - v != 0) /* infinite */
        return false;
    *out = v;
    return true;
}
