/* ids.c - sets of token ids, and runs of ids without a gap: so that a uniform
 * draw over any set is one multiplication and a short search. */
#include "wire/script/parts.h"

int script_ids_add(struct script_ids *l, const uint32_t *id, size_t n,
                   struct vt_err *err)
{
    int rc = vt_grow(&l->id, &l->cap, l->n + n, sizeof(*l->id), err);

    if (rc == VT_OK && n > 0) {
        memcpy(&l->id[l->n], id, n * sizeof(*id));
        l->n += n;
    }
    return rc;
}

int script_by_id(const void *pa, const void *pb)
{
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    return a < b ? -1 : a > b;
}

void script_ids_sort(struct script_ids *l)
{
    size_t n = 0;

    if (l->n == 0)
        return;
    qsort(l->id, l->n, sizeof(*l->id), script_by_id);
    for (size_t i = 0; i < l->n; i++)
        if (i == 0 || l->id[i] != l->id[i - 1])
            l->id[n++] = l->id[i];
    l->n = n;
}

bool script_ids_hold(const struct script_ids *l, uint32_t id)
{
    size_t lo = 0, hi = l->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (l->id[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < l->n && l->id[lo] == id;
}

/* ---- runs ------------------------------------------------------------- */

size_t script_runs_bytes(size_t n_ids)
{
    return (n_ids + 1) * sizeof(struct script_run);
}

static void add_run(struct script_runs *r, uint32_t first, uint32_t end)
{
    if (first >= end)
        return;
    r->run[r->n_runs++] = (struct script_run){first, r->n_ids};
    r->n_ids += end - first;
}

void script_runs_of(struct script_runs *runs, const struct script_ids *l)
{
    runs->n_runs = runs->n_ids = 0;
    for (size_t i = 0, from = 0; i < l->n; i++)
        if (i + 1 == l->n || l->id[i + 1] != l->id[i] + 1) {
            add_run(runs, l->id[from], l->id[i] + 1);
            from = i + 1;
        }
}

void script_runs_without(struct script_runs *runs, const struct script_ids *l,
                         uint32_t vocab_size)
{
    uint32_t from = 0;

    runs->n_runs = runs->n_ids = 0;
    for (size_t i = 0; i < l->n && l->id[i] < vocab_size; i++) {
        add_run(runs, from, l->id[i]);
        from = l->id[i] + 1;
    }
    add_run(runs, from, vocab_size);
}

/* ---- draws ------------------------------------------------------------ */

uint32_t script_token(const struct script *s, uint32_t i)
{
    const struct script_run *run = s->run;
    uint32_t rank;

    if (i < s->n_token)
        return s->token[i];
    if (i == s->last_at)
        return s->last_token;
    rank = (uint32_t)((vt_hash2(s->key, i) >> 32) * s->n_ids >> 32);
    for (uint32_t n = s->n_runs; n > 1;) { /* the last that begins at or before it */
        uint32_t half = n / 2;

        run = run[half].rank <= rank ? run + half : run;
        n -= half;
    }
    return run->first + (rank - run->rank);
}
