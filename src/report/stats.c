/* stats.c - counted samples, their means and quantiles.
 *
 * A long run has hundreds of millions of gaps, but its steps take few different times:
 * so samples are counted, not kept. Fresh ones are sorted by the tens of thousands into
 * a run of (difference to the value before, count); runs of like length are merged into
 * one, so that each sample is merged a few times only. In the end one run holds all,
 * and a walk along it meets the quantiles. */
#include <assert.h>

#include "report/stats.h"

enum {
    MAX_FRESH = 1 << 15, /* 512 KB */
    DIGIT_BITS = 11,
    BUCKETS = 1 << DIGIT_BITS,
    FEW = 100, /* not worth buckets */
    N_QUANTILES = 4,
    /* A byte with 6 bits of the difference, 9 with 7 of the rest, 10 of a count. */
    MAX_CELL_BYTES = 20,
    HAS_COUNT = 64,
    GOES_ON = 128,
};

static const unsigned percent[N_QUANTILES] = {50, 90, 95, 99};

__extension__ typedef __int128 wide; /* a sum of int64 cannot overflow it */

/* ---- fresh samples ------------------------------------------------------ */

static void sort_few(struct vt_cell *cell, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct vt_cell c = cell[i];
        size_t k = i;

        for (; k > 0 && cell[k - 1].v > c.v; k--)
            cell[k] = cell[k - 1];
        cell[k] = c;
    }
}

/* By value; `room` has space for as many. The result is in either. */
static struct vt_cell *sort_cells(struct vt_cell *cell, struct vt_cell *room, size_t n)
{
    vt_ns min = cell[0].v, max = min;
    uint64_t range;

    if (n <= FEW) {
        sort_few(cell, n);
        return cell;
    }
    for (size_t i = 1; i < n; i++) {
        min = cell[i].v < min ? cell[i].v : min;
        max = cell[i].v > max ? cell[i].v : max;
    }
    range = (uint64_t)max - (uint64_t)min;
    for (unsigned shift = 0; shift < 64 && range >> shift; shift += DIGIT_BITS) {
        struct vt_cell *from = cell;
        uint32_t at[BUCKETS] = {0}, sum = 0;

        for (size_t i = 0; i < n; i++)
            at[((uint64_t)from[i].v - (uint64_t)min) >> shift & (BUCKETS - 1)]++;
        for (size_t d = 0; d < BUCKETS; d++) {
            uint32_t here = at[d];

            at[d] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++)
            room[at[((uint64_t)from[i].v - (uint64_t)min) >> shift & (BUCKETS - 1)]++] =
                from[i];
        cell = room;
        room = from;
    }
    return cell;
}

/* ---- runs --------------------------------------------------------------- */

struct run_writer {
    uint8_t *at;
    vt_ns last;
};

static uint8_t *put_varint(uint8_t *at, uint64_t v)
{
    for (; v >= GOES_ON; v >>= 7)
        *at++ = (uint8_t)(v | GOES_ON);
    *at++ = (uint8_t)v;
    return at;
}

/* Counts that came to nothing leave nothing. */
static void put_cell(struct run_writer *w, const struct vt_cell *c)
{
    uint64_t delta = (uint64_t)c->v - (uint64_t)w->last;

    if (c->count == 0)
        return;
    *w->at++ = (uint8_t)((delta & 63) | (c->count != 1 ? HAS_COUNT : 0) |
                         (delta >> 6 ? GOES_ON : 0));
    if (delta >> 6)
        w->at = put_varint(w->at, delta >> 6);
    if (c->count != 1) /* the sign goes to the lowest bit */
        w->at = put_varint(w->at,
                           (uint64_t)c->count << 1 ^ (c->count < 0 ? UINT64_MAX : 0));
    w->last = c->v;
}

struct run_reader {
    const uint8_t *at, *end;
    struct vt_cell cell; /* in hand */
};

static uint64_t take_varint(struct run_reader *r)
{
    uint64_t v = 0;

    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *r->at++;

        v |= (uint64_t)(byte & 127) << shift;
        if (!(byte & GOES_ON))
            return v;
    }
}

static bool next_cell(struct run_reader *r)
{
    uint64_t delta, count;
    uint8_t head;

    if (r->at == r->end)
        return false;
    head = *r->at++;
    delta = head & 63;
    if (head & GOES_ON)
        delta |= take_varint(r) << 6;
    r->cell.v = (vt_ns)((uint64_t)r->cell.v + delta);
    r->cell.count = 1;
    if (head & HAS_COUNT) {
        count = take_varint(r);
        r->cell.count = (int64_t)(count >> 1 ^ (count & 1 ? UINT64_MAX : 0));
    }
    return true;
}

static struct run_reader read_run(const struct vt_cell_run *run)
{
    return (struct run_reader){.at = run->bytes,
                               .end = run->bytes ? run->bytes + run->len : NULL};
}

/* Ends a run whose bytes are its own; gives back what it does not need. */
static void seal_run(struct vt_cell_run *run, const struct run_writer *w)
{
    uint8_t *smaller;

    run->len = (size_t)(w->at - run->bytes);
    smaller = run->len > 0 ? realloc(run->bytes, run->len) : NULL;
    if (smaller)
        run->bytes = smaller;
}

/* Both become one, in place of the first. */
static int merge_last_two(struct vt_cells *c, struct vt_err *err)
{
    struct vt_cell_run *to = &c->run[c->n_runs - 2], *from = to + 1, merged;
    struct run_reader a = read_run(to), b = read_run(from);
    bool has_a = next_cell(&a), has_b = next_cell(&b);
    struct run_writer w;

    /* No longer than both, since differences do not grow and a cell that goes leaves
     * more than another takes on; but for the first one, which is told from 0. */
    merged.bytes = malloc(to->len + from->len + MAX_CELL_BYTES);
    if (!merged.bytes)
        return vt_nomem(err);
    w = (struct run_writer){.at = merged.bytes};
    while (has_a || has_b) {
        if (has_a && has_b && a.cell.v == b.cell.v) {
            a.cell.count += b.cell.count;
            has_b = next_cell(&b);
        } else if (!has_b || (has_a && a.cell.v < b.cell.v)) {
            put_cell(&w, &a.cell);
            has_a = next_cell(&a);
        } else {
            put_cell(&w, &b.cell);
            has_b = next_cell(&b);
        }
    }
    assert((size_t)(w.at - merged.bytes) <= to->len + from->len + MAX_CELL_BYTES);
    seal_run(&merged, &w);
    free(to->bytes);
    free(from->bytes);
    *to = merged;
    c->n_runs--;
    return VT_OK;
}

/* Makes a run of the fresh samples. */
static int settle_fresh(struct vt_cells *c, struct vt_err *err)
{
    struct vt_cell_run *run = &c->run[c->n_runs];
    size_t n = c->n_fresh;
    struct vt_cell *room, *cell;
    struct run_writer w;
    int rc = VT_OK;

    if (n == 0)
        return VT_OK;
    assert(c->n_runs < VT_COUNT(c->run));
    room = malloc(n * sizeof(*room));
    run->bytes = malloc(n * MAX_CELL_BYTES);
    if (!room || !run->bytes) {
        free(room);
        free(run->bytes);
        return vt_nomem(err);
    }
    cell = sort_cells(c->fresh, room, n);
    w = (struct run_writer){.at = run->bytes};
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && cell[i].v == cell[i + 1].v)
            cell[i + 1].count += cell[i].count;
        else
            put_cell(&w, &cell[i]);
    }
    free(room);
    seal_run(run, &w);
    c->n_fresh = 0;
    c->n_runs++;
    while (rc == VT_OK && c->n_runs > 1 &&
           c->run[c->n_runs - 2].len <= 2 * c->run[c->n_runs - 1].len)
        rc = merge_last_two(c, err);
    return rc;
}

int vt_cells_add(struct vt_cells *c, vt_ns v, int64_t count, struct vt_err *err)
{
    int rc;

    if (c->n_fresh > 0 && c->fresh[c->n_fresh - 1].v == v) {
        c->fresh[c->n_fresh - 1].count += count;
        return VT_OK;
    }
    if ((c->n_fresh == MAX_FRESH && (rc = settle_fresh(c, err))) ||
        (rc =
             vt_grow(&c->fresh, &c->cap_fresh, c->n_fresh + 1, sizeof(*c->fresh), err)))
        return rc;
    c->fresh[c->n_fresh++] = (struct vt_cell){v, count};
    return VT_OK;
}

void vt_cells_free(struct vt_cells *c)
{
    for (size_t i = 0; i < c->n_runs; i++)
        free(c->run[i].bytes);
    free(c->fresh);
    *c = (struct vt_cells){0};
}

/* ---- statistics --------------------------------------------------------- */

/* The next sample that is there: taken back more often than added is not. */
static bool next_sample(struct run_reader *r)
{
    while (next_cell(r))
        if (r->cell.count > 0)
            return true;
    return false;
}

/* The sample of a rank, counted from 0 in ascending order. *r is at the cell before
 * which there are *below samples, and ranks are asked for in that order. */
static vt_ns sample_at(struct run_reader *r, uint64_t *below, uint64_t rank)
{
    while (rank >= *below + (uint64_t)r->cell.count) {
        bool more;

        *below += (uint64_t)r->cell.count;
        more = next_sample(r);
        assert(more); /* a sample that was counted is there */
        (void)more;
    }
    return r->cell.v;
}

/* Makes all samples one run. */
static int settle_all(struct vt_cells *c, struct vt_err *err)
{
    int rc = settle_fresh(c, err);

    while (rc == VT_OK && c->n_runs > 1)
        rc = merge_last_two(c, err);
    return rc;
}

int vt_cells_join(struct vt_cells *c, struct vt_cells *from, struct vt_err *err)
{
    int rc = settle_all(c, err);

    if (rc || (rc = settle_all(from, err)) || from->n_runs == 0)
        return rc;
    c->run[c->n_runs++] = from->run[0];
    from->n_runs = 0;
    return settle_all(c, err);
}

int vt_cells_quantiles(struct vt_cells *c, const double *percentile, size_t n,
                       double *out, uint64_t *samples, struct vt_err *err)
{
    const struct vt_cell_run none = {0};
    struct run_reader r;
    uint64_t below = 0;
    int rc = settle_all(c, err);

    *samples = 0;
    if (rc != VT_OK)
        return rc;
    for (r = read_run(c->n_runs > 0 ? c->run : &none); next_sample(&r);)
        *samples += (uint64_t)r.cell.count;
    if (*samples == 0)
        return VT_OK;
    r = read_run(c->run);
    (void)next_sample(&r);
    for (size_t i = 0; i < n; i++) {
        uint64_t rank = (uint64_t)(percentile[i] / 100 * (double)(*samples - 1));

        out[i] = (double)sample_at(&r, &below, rank) / 1e6;
    }
    return VT_OK;
}

int vt_cells_stat(struct vt_cells *c, struct vt_stat *out, struct vt_err *err)
{
    double *const value[N_QUANTILES] = {&out->p50, &out->p90, &out->p95, &out->p99};
    const struct vt_cell_run none = {0};
    struct run_reader r;
    uint64_t below = 0;
    wide sum = 0, by;
    int rc = settle_all(c, err);

    *out = (struct vt_stat){0};
    if (rc != VT_OK)
        return rc;
    for (r = read_run(c->n_runs > 0 ? c->run : &none); next_sample(&r);) {
        sum += (wide)r.cell.v * r.cell.count;
        out->n += (uint64_t)r.cell.count;
    }
    if (out->n == 0) /* also when every sample was taken back */
        return VT_OK;
    by = 2 * (wide)out->n;
    sum = 2 * sum + (wide)out->n;
    out->mean = (double)(vt_ns)(sum / by - (sum % by < 0)) / 1e6;
    r = read_run(c->run);
    (void)next_sample(&r);
    /* p/100 * (n-1) in hundredths is a whole number, so interpolation is exact. */
    for (size_t i = 0; i < N_QUANTILES; i++) {
        uint64_t at = percent[i] * (out->n - 1) / 100;
        uint64_t hundredths = percent[i] * (out->n - 1) % 100;
        struct run_reader after;
        uint64_t below_after;
        vt_ns lo = sample_at(&r, &below, at), hi;

        /* Neighbouring quantiles of small samples overlap: r stays where it is. */
        after = r;
        below_after = below;
        hi = sample_at(&after, &below_after, at + 1 < out->n ? at + 1 : at);
        *value[i] = (double)(vt_ns)((wide)lo +
                                    (((wide)hi - lo) * (wide)hundredths + 50) / 100) /
                    1e6;
    }
    return VT_OK;
}
