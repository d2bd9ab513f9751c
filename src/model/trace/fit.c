/* fit.c - donors: which recorded requests lend their gaps to whom.
 *
 * A request that decodes among so many others draws its gaps from those of one recorded
 * request of like prompt and load. Gaps of steps that computed a prompt are left out:
 * the step's chunk is charged for them. */
#include "model/trace/fit.h"

uint32_t trace_prompt_bucket(uint32_t tokens)
{
    static const uint32_t edge[] = {65,   129,  257,  513,   1025,
                                    2049, 4097, 8193, 16385, 32769};
    uint32_t i = 0;

    while (i < VT_COUNT(edge) && tokens >= edge[i])
        i++;
    return i;
}

uint32_t trace_load_bucket(uint32_t running)
{
    static const uint32_t last[] = {1, 4, 6, 8, 16, 32, 64};
    uint32_t i = 0;

    if (running == 0)
        return TRACE_LOADS - 1; /* as vllm-vcr has it */
    while (i < VT_COUNT(last) && running > last[i])
        i++;
    return i;
}

double trace_chunk_cost(const struct trace_fit *f, double tokens, double depth)
{
    double end = depth + tokens;

    return f->chunk_token * tokens + f->chunk_depth * (end * end - depth * depth) / 2;
}

void trace_fit_free(struct trace_fit *f)
{
    for (int row = 0; row < TRACE_ROWS; row++)
        for (int col = 0; col < TRACE_LOADS; col++)
            free(f->cell[row][col].donor);
    vt_arena_free(&f->arena);
    memset(f, 0, sizeof(*f));
}

/* ---- donors ----------------------------------------------------------- */

/* Many of its gaps came with steps full of other requests' prompts. */
static bool is_under_churn(const struct vt_record *r)
{
    enum { LONG_TOKENS = 4096, PERCENT = 6 };
    uint64_t big = 0, all = r->n_gaps > 0 ? r->n_gaps : 1;

    if (!r->gap_prefill)
        return false;
    for (uint32_t i = 0; i < r->n_gaps; i++)
        big += r->gap_prefill[i] > LONG_TOKENS;
    return big * 100 > all * PERCENT;
}

struct own_gap {
    double ms;
    uint32_t tokens;
};

static int by_gap(const void *pa, const void *pb)
{
    const struct own_gap *a = pa, *b = pb;

    return a->ms < b->ms ? -1 : a->ms > b->ms;
}

/* The record's gaps without those of prompt steps and, where these are marked, without
 * the far longer ones of chunks that no mark shows. */
static size_t own_gaps(const struct vt_record *r, struct own_gap *out)
{
    const double far = 4.0;
    size_t n = 0;

    for (uint32_t i = 0; i < r->n_gaps; i++)
        if (!r->gap_prefill || r->gap_prefill[i] == 0)
            out[n++] = (struct own_gap){(double)r->gap[i] / 1e6,
                                        r->gap_tokens ? r->gap_tokens[i] : 1};
    qsort(out, n, sizeof(*out), by_gap);
    if (r->gap_prefill && n > 0) {
        double most = far * out[n / 2].ms;

        while (n > 0 && out[n - 1].ms > most)
            n--;
    }
    return n;
}

static int push_donor(struct trace_fit *f, struct trace_cell *c,
                      const struct own_gap *own, size_t n, double weight,
                      struct vt_err *err)
{
    struct trace_donor d = {.n = (uint32_t)n,
                            .upto = c->n > 0 ? c->donor[c->n - 1].upto : 0.0};
    int rc = vt_grow(&c->donor, &c->cap, c->n + 1, sizeof(*c->donor), err);

    if (rc != VT_OK)
        return rc;
    d.gap = vt_arena_alloc(&f->arena, n * sizeof(*d.gap));
    if (!d.gap)
        return vt_nomem(err);
    for (size_t i = 0; i < n; i++)
        d.gap[i] = own[i].ms;
    d.upto += weight;
    c->donor[c->n++] = d;
    return VT_OK;
}

static int add_donor(struct trace_fit *f, const struct vt_record *r,
                     struct own_gap *own, struct vt_err *err)
{
    bool churn = is_under_churn(r);
    uint32_t row = trace_prompt_bucket(r->prompt_tokens) + (churn ? TRACE_PROMPTS : 0);
    struct trace_cell *c = &f->cell[row][trace_load_bucket(r->concurrency)];
    double weight = 0.0;
    size_t n;

    if (r->n_gaps == 0)
        return VT_OK;
    if (r->by_mean) {
        own[0] = (struct own_gap){(double)r->gap[0] / 1e6, 1};
        return push_donor(f, c, own, 1, r->n_gaps, err);
    }
    n = own_gaps(r, own);
    for (size_t i = 0; i < n; i++)
        weight += own[i].tokens;
    if (weight <= 0.0)
        return VT_OK;
    f->has_churn |= churn;
    return push_donor(f, c, own, n, weight, err);
}

/* ---- the nearest cell ------------------------------------------------- */

static int distance(int a, int b)
{
    return a > b ? a - b : b - a;
}

static const struct trace_cell *nearest(const struct trace_fit *f, int row, int col)
{
    const struct trace_cell *best = NULL;
    int best_far = 0, best_rows = 0;

    if (f->cell[row][col].n > 0)
        return &f->cell[row][col];
    for (int r = 0; r < TRACE_ROWS; r++)
        for (int c = 0; c < TRACE_LOADS; c++) {
            int rows = distance(r, row), far = rows + distance(c, col);

            if (f->cell[r][c].n == 0 ||
                (best && (far > best_far || (far == best_far && rows >= best_rows))))
                continue;
            best = &f->cell[r][c];
            best_far = far;
            best_rows = rows;
        }
    return best;
}

/* ---- all of it -------------------------------------------------------- */

static int list_measured(const struct vt_records *sets, size_t n_sets,
                         const struct vt_record ***out, size_t *n, struct vt_err *err)
{
    const struct vt_record **rec;
    size_t all = 0;

    for (size_t s = 0; s < n_sets; s++)
        all += sets[s].n;
    *n = 0;
    *out = rec = malloc((all + 1) * sizeof(*rec));
    if (!rec)
        return vt_nomem(err);
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n; i++)
            if (sets[s].rec[i].ttft_ns >= 0)
                rec[(*n)++] = &sets[s].rec[i];
    if (*n == 0)
        return vt_fail(err, VT_EINPUT, "the trace holds no measured times");
    return VT_OK;
}

int trace_fit_open(struct trace_fit *f, const struct vt_records *sets, size_t n_sets,
                   uint32_t budget, struct vt_err *err)
{
    const struct vt_record **rec = NULL;
    struct own_gap *own = NULL;
    size_t n, cap = 0;
    int rc;

    memset(f, 0, sizeof(*f));
    for (size_t s = 0; s < n_sets && budget == 0; s++)
        budget = sets[s].meta.max_num_batched_tokens;
    f->budget = budget > 0 ? budget : 8192;
    rc = list_measured(sets, n_sets, &rec, &n, err);
    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        rc = vt_grow(&own, &cap, (size_t)rec[i]->n_gaps + 1, sizeof(*own), err);
        if (rc == VT_OK)
            rc = add_donor(f, rec[i], own, err);
    }
    if (rc != VT_OK)
        goto out;
    for (int row = 0; row < TRACE_ROWS; row++)
        for (int col = 0; col < TRACE_LOADS; col++)
            f->near[row][col] = nearest(f, row, col);
    if (!f->near[0][0])
        rc = vt_fail(err, VT_EINPUT,
                     "the trace holds no gaps between tokens to learn from");
    else if ((rc = trace_fit_service(f, rec, n, err)) == VT_OK)
        rc = trace_fit_chunks(f, rec, n, err);
out:
    free(own);
    free(rec);
    return rc;
}
