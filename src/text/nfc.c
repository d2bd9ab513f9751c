/* nfc.c - canonical composition (UAX 15), over tables of our own.
 *
 * Nearly all text is NFC as it stands. So only the neighbourhood of characters that may
 * change is taken apart: from the one before the first of them to the next one that is
 * sure to start anew. Everything else is copied. */
#include <assert.h>

#include "text/unicode.h"

enum {
    L_BASE = 0x1100,
    V_BASE = 0x1161,
    T_BASE = 0x11a7,
    S_BASE = 0xac00,
    L_COUNT = 19,
    V_COUNT = 21,
    T_COUNT = 28,
    S_COUNT = L_COUNT * V_COUNT * T_COUNT,
    FEW = 32,
};

/* Characters taken apart: the combining class above, the code point in 24 bits. */
struct segment {
    uint32_t *cell, *other; /* other: room for sorting */
    size_t n, cap, cap_other;
};

static uint32_t code_of(uint32_t cell)
{
    return cell & 0xffffff;
}

static uint32_t class_of(uint32_t cell)
{
    return cell >> 24;
}

/* How many of n ascending numbers, one every `stride` bytes, are at most c. */
static size_t count_up_to(const uint32_t *number, size_t n, size_t stride, uint32_t c)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        uint32_t at;

        memcpy(&at, (const char *)number + mid * stride, sizeof(at));
        if (c < at)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static const struct uni_range *find_range(const struct uni_range *table, size_t n,
                                          uint32_t c)
{
    size_t i = count_up_to(&table->first, n, sizeof(*table), c);

    return i > 0 && c <= table[i - 1].last ? &table[i - 1] : NULL;
}

/* The character's place among the pairs; uni_n_pairs: it is none. */
static uint32_t find_pair(uint32_t c)
{
    size_t lo = 0, hi = uni_n_pairs;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        uint32_t whole = uni_pairs[uni_by_whole[mid]].whole;

        if (whole == c)
            return uni_by_whole[mid];
        if (whole < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return (uint32_t)uni_n_pairs;
}

static int push_one(struct segment *s, uint32_t c, struct vt_err *err)
{
    const struct uni_range *class = find_range(uni_classes, uni_n_classes, c);
    int rc = vt_grow(&s->cell, &s->cap, s->n + 1, sizeof(*s->cell), err);

    if (rc == VT_OK)
        s->cell[s->n++] = (class ? class->value : 0) << 24 | c;
    return rc;
}

/* The tables nest a handful of levels at most. */
static int push_decomposed(struct segment *s, uint32_t c, struct vt_err *err)
{
    const struct uni_range *single;
    uint32_t pair;
    size_t k;
    int rc;

    if (c >= S_BASE && c < S_BASE + S_COUNT) { /* Hangul, by rule */
        uint32_t i = c - S_BASE, tail = i % T_COUNT;

        if ((rc = push_one(s, L_BASE + i / (V_COUNT * T_COUNT), err)) ||
            (rc = push_one(s, V_BASE + i % (V_COUNT * T_COUNT) / T_COUNT, err)) ||
            tail == 0)
            return rc;
        return push_one(s, T_BASE + tail, err);
    }
    if (c < 0xc0)
        return push_one(s, c, err);
    single = find_range(uni_single_runs, uni_n_single_runs, c);
    if (single)
        return push_decomposed(s, uni_singles[single->value + c - single->first], err);
    pair = find_pair(c);
    if (pair == uni_n_pairs)
        return push_one(s, c, err);
    k = count_up_to(&uni_seconds->from, uni_n_seconds, sizeof(*uni_seconds), pair);
    rc = push_decomposed(s, uni_pairs[pair].first, err);
    return rc == VT_OK ? push_decomposed(s, uni_seconds[k - 1].c, err) : rc;
}

/* By counting: no number of marks on one letter makes it slow. */
static int sort_many(struct segment *s, uint32_t *cell, size_t n, struct vt_err *err)
{
    size_t at[257] = {0};
    int rc = vt_grow(&s->other, &s->cap_other, n, sizeof(*s->other), err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < n; i++)
        at[class_of(cell[i]) + 1]++;
    for (size_t i = 1; i < 257; i++)
        at[i] += at[i - 1];
    for (size_t i = 0; i < n; i++)
        s->other[at[class_of(cell[i])]++] = cell[i];
    memcpy(cell, s->other, n * sizeof(*cell));
    return VT_OK;
}

/* Puts the marks between two starters into canonical order. */
static int reorder(struct segment *s, struct vt_err *err)
{
    size_t i = 0;

    while (i < s->n) {
        size_t from = i;
        int rc = VT_OK;

        while (i < s->n && class_of(s->cell[i]) > 0)
            i++;
        if (i - from > FEW && (rc = sort_many(s, s->cell + from, i - from, err)))
            return rc;
        for (size_t k = from + 1; k < i && i - from <= FEW; k++) {
            uint32_t x = s->cell[k];
            size_t to = k;

            for (; to > from && class_of(s->cell[to - 1]) > class_of(x); to--)
                s->cell[to] = s->cell[to - 1];
            s->cell[to] = x;
        }
        i += i == from;
    }
    return VT_OK;
}

/* The two together, or 0. */
static uint32_t composed(uint32_t a, uint32_t b)
{
    const struct uni_second *s;
    const struct uni_pair *pair;
    size_t k;

    if (a - L_BASE < L_COUNT && b - V_BASE < V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a - S_BASE < S_COUNT && (a - S_BASE) % T_COUNT == 0 &&
        b - T_BASE - 1 < T_COUNT - 1)
        return a + (b - T_BASE);
    k = count_up_to(&uni_seconds->c, uni_n_seconds, sizeof(*s), b);
    if (k == 0 || uni_seconds[k - 1].c != b)
        return 0;
    s = &uni_seconds[k - 1];
    pair = &uni_pairs[s->from];
    k = count_up_to(&pair->first, s[1].from - s->from, sizeof(*pair), a);
    if (k == 0 || pair[k - 1].first != a ||
        uni_flags(pair[k - 1].whole) & UNI_NORMALIZES)
        return 0;
    return pair[k - 1].whole;
}

/* A mark joins the starter before it unless one of the same or a higher class stands
 * between them. */
static void compose(struct segment *s)
{
    size_t starter = SIZE_MAX, n = 0;

    for (size_t i = 0; i < s->n; i++) {
        uint32_t cell = s->cell[i], whole = 0;

        if (starter != SIZE_MAX &&
            (n - 1 == starter || class_of(s->cell[n - 1]) < class_of(cell)))
            whole = composed(code_of(s->cell[starter]), code_of(cell));
        if (whole) {
            s->cell[starter] = whole; /* what composes is always a starter */
            continue;
        }
        if (class_of(cell) == 0)
            starter = n;
        s->cell[n++] = cell;
    }
    s->n = n;
}

static int add_segment(struct segment *s, const char *text, size_t len,
                       struct vt_buf *out, struct vt_err *err)
{
    int rc = VT_OK;

    s->n = 0;
    for (size_t i = 0; i < len && rc == VT_OK;) {
        uint32_t c;

        i += vt_utf8_get(text + i, &c);
        rc = push_decomposed(s, c, err);
    }
    if (rc || (rc = reorder(s, err)))
        return rc;
    compose(s);
    assert(s->n > 0 || len == 0);
    for (size_t i = 0; i < s->n; i++) {
        char bytes[4];

        vt_buf_add(out, bytes, vt_utf8_put(bytes, code_of(s->cell[i])));
    }
    return VT_OK;
}

static bool is_settled(const char *p, size_t *len)
{
    uint32_t c;

    *len = vt_utf8_get(p, &c);
    return !(uni_flags(c) & UNI_NORMALIZES);
}

int uni_nfc(const char *text, size_t len, struct vt_buf *out, struct vt_err *err)
{
    const char *p = text, *end = text + len, *copied = text;
    struct segment s = {0};
    size_t n;
    int rc = VT_OK;

    while (p < end && rc == VT_OK) {
        const char *from;

        if (is_settled(p, &n)) {
            p += n;
            continue;
        }
        from = p > copied ? uni_before(p) : p;
        vt_buf_add(out, copied, (size_t)(from - copied));
        while (p < end && !is_settled(p, &n))
            p += n;
        rc = add_segment(&s, from, (size_t)(p - from), out, err);
        copied = p;
    }
    vt_buf_add(out, copied, (size_t)(end - copied));
    free(s.cell);
    free(s.other);
    return rc == VT_OK && out->failed ? vt_nomem(err) : rc;
}
