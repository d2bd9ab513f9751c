/* number.c - numbers to text and back, order statistics, time units. */
#include "base/base.h"

#include <float.h>
#include <math.h>

#include "base/decimal.h"

vt_ns vt_ns_from_ms(double ms)
{
    return llround(ms * 1e6);
}

vt_ns vt_ns_from_us(double us)
{
    return llround(us * 1e3);
}

/* Values that are a whole number of millionths: nearly all we print. At most 15
 * digits, so that the text is the one %.15g gives; dividing back proves that it
 * reads as v. Returns 0 if v is not such a value. */
static size_t fmt_millionths(char *out, double v)
{
    double size = fabs(v);
    uint64_t r, rest;
    char *p = out;

    if (!(size >= 1e-4 && size < 1e9))
        return 0;
    r = (uint64_t)(size * 1e6 + 0.5);
    if (r >= UINT64_C(1000000000000000) || (double)r / 1e6 != size)
        return 0;
    rest = r % 1000000;
    if (v < 0)
        *p++ = '-';
    p = vt_u64_at(p, r / 1000000);
    if (rest > 0)
        *p++ = '.';
    for (uint64_t unit = 100000; rest > 0; unit /= 10) {
        *p++ = (char)('0' + rest / unit);
        rest %= unit;
    }
    *p = '\0';
    return (size_t)(p - out);
}

size_t vt_fmt_f64(char out[32], double v)
{
    /* Subnormals may need fewer digits than 15, everything else is trimmed by %g. */
    int digits = fabs(v) < DBL_MIN ? 1 : 15;
    size_t n;

    if (!isfinite(v)) {
        memcpy(out, "null", 5);
        return 4;
    }
    n = fmt_millionths(out, v);
    if (n > 0)
        return n;
    for (; digits <= 17; digits++) {
        n = (size_t)snprintf(out, 32, "%.*g", digits, v);
        if (digits == 17 || strtod(out, NULL) == v)
            break;
    }
    return n;
}

static bool scan_whole(const char *text, size_t len, struct vt_decimal *d)
{
    return len > 0 && vt_decimal_scan(text, text + len, d) == text + len;
}

bool vt_parse_f64(const char *text, size_t len, double *out)
{
    struct vt_decimal d;

    return scan_whole(text, len, &d) && vt_decimal_f64(&d, out);
}

bool vt_parse_u64(const char *text, size_t len, uint64_t *out)
{
    struct vt_decimal d;

    return scan_whole(text, len, &d) && vt_decimal_is_int(&d) && !d.negative &&
           vt_decimal_u64(&d, out);
}

bool vt_parse_i64(const char *text, size_t len, int64_t *out)
{
    struct vt_decimal d;
    uint64_t size;

    if (!scan_whole(text, len, &d) || !vt_decimal_is_int(&d) ||
        !vt_decimal_u64(&d, &size) || size > (uint64_t)INT64_MAX + d.negative)
        return false;
    *out = d.negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

bool vt_parse_time(const char *text, size_t len, vt_ns unit, double *out)
{
    static const struct {
        const char *name;
        vt_ns ns;
    } known[] = {{"us", VT_US}, {"ms", VT_MS}, {"s", VT_SEC}}; /* "s" ends the others */
    vt_ns given = unit;

    for (size_t i = 0; i < VT_COUNT(known); i++) {
        size_t n = strlen(known[i].name);

        if (len > n && memcmp(text + len - n, known[i].name, n) == 0) {
            given = known[i].ns;
            len -= n;
            break;
        }
    }
    if (!vt_parse_f64(text, len, out))
        return false;
    *out = *out * (double)given / (double)unit;
    return true;
}

int vt_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

double vt_quantile(const double *sorted, size_t n, double p)
{
    double at, low, t, a, b;
    size_t i;

    if (n == 0)
        return 0;
    at = p / 100 * (double)(n - 1);
    if (!(at > 0))
        return sorted[0];
    if (at >= (double)(n - 1))
        return sorted[n - 1];
    low = floor(at);
    i = (size_t)low;
    t = at - low;
    a = sorted[i];
    b = sorted[i + 1];
    if (a == b) /* infinite ones too */
        return a;
    return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
}
