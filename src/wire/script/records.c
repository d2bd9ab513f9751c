/* records.c - which record of a trace a request is served from. */
#include "wire/script/parts.h"

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* ---- by number -------------------------------------------------------- */

uint32_t script_index_of(const struct script_name *name, uint64_t arrival, size_t n)
{
    uint64_t number = name->made_up ? arrival : name->number;

    if (!name->made_up && !name->has_number)
        return SCRIPT_NONE;
    return number < n ? (uint32_t)number : SCRIPT_NONE;
}

/* Those that arrived at a known time, in that order; where no time is known, all. */
static int number_records(struct script_records *m, struct vt_err *err)
{
    const struct vt_records *f = m->file;
    bool timed = false;

    m->order = malloc(f->n * sizeof(*m->order));
    if (!m->order)
        return vt_nomem(err);
    for (size_t i = 0; i < f->n; i++)
        timed |= f->rec[i].arrival_ns >= 0;
    for (size_t i = 0; i < f->n; i++)
        if (!timed || f->rec[i].arrival_ns >= 0)
            m->order[m->n_order++] = (uint32_t)i;
    return VT_OK;
}

/* ---- by prefix -------------------------------------------------------- */

struct chain { /* hashes of a prompt's blocks, each over all before it */
    const uint64_t *hash;
    size_t n;
};

static size_t common(struct chain a, struct chain b)
{
    size_t n = a.n < b.n ? a.n : b.n, i = 0;

    while (i < n && a.hash[i] == b.hash[i])
        i++;
    return i;
}

/* As words are ordered: a beginning comes before what goes on. */
static int compare(struct chain a, struct chain b)
{
    size_t i = common(a, b);

    if (i == a.n || i == b.n)
        return a.n < b.n ? -1 : a.n > b.n;
    return a.hash[i] < b.hash[i] ? -1 : 1;
}

static struct chain chain_of(const struct vt_record *r)
{
    return (struct chain){r->block_hash, r->n_block_hashes};
}

static struct chain chain_at(const struct script_records *m, size_t place)
{
    return chain_of(&m->file->rec[m->chain[place]]);
}

struct sortable {
    struct chain chain;
    uint32_t rec;
};

static int by_chain(const void *pa, const void *pb)
{
    const struct sortable *a = pa, *b = pb;
    int order = compare(a->chain, b->chain);

    return order != 0 ? order : a->rec < b->rec ? -1 : 1;
}

static int fill_chain(struct script_records *m, struct sortable *s, struct vt_err *err)
{
    int rc;

    for (size_t i = 0; i < m->file->n; i++)
        if (m->usable[i] && m->file->rec[i].n_block_hashes > 0)
            s[m->n_chain++] =
                (struct sortable){chain_of(&m->file->rec[i]), (uint32_t)i};
    if (m->n_chain == 0)
        return vt_fail(err, VT_EINPUT,
                       "%s: no record has block_hashes, so none can be found by prefix",
                       m->file->source);
    qsort(s, m->n_chain, sizeof(*s), by_chain);
    for (size_t i = 0; i < m->n_chain; i++) {
        m->chain[i] = s[i].rec;
        m->place[s[i].rec] = (uint32_t)i;
    }
    rc = script_pick_init(&m->fresh, m->chain, m->n_chain, err);
    return rc == VT_OK ? script_pick_init(&m->all, m->chain, m->n_chain, err) : rc;
}

static int sort_chains(struct script_records *m, struct vt_err *err)
{
    struct sortable *s = malloc(m->file->n * sizeof(*s));
    int rc;

    m->chain = malloc(m->file->n * sizeof(*m->chain));
    m->place = malloc(m->file->n * sizeof(*m->place));
    rc = s && m->chain && m->place ? fill_chain(m, s, err) : vt_nomem(err);
    free(s);
    return rc;
}

/* vllm-vcr's hash of each full block: FNV-1a over the hash before it and the tokens. */
static int hash_prompt(struct script_records *m, const struct wire_request *r,
                       struct chain *out, struct vt_err *err)
{
    size_t n = r->prompt ? r->n_prompt / m->block_size : 0;
    int rc = vt_grow(&m->hash, &m->cap_hash, n, sizeof(*m->hash), err);
    uint64_t before = FNV_BASIS;

    for (size_t i = 0; rc == VT_OK && i < n; i++) {
        const uint32_t *token = &r->prompt[i * m->block_size];
        uint64_t h = FNV_BASIS;

        for (int k = 0; k < 64; k += 8)
            h = (h ^ (before >> k & 0xff)) * FNV_PRIME;
        for (uint32_t t = 0; t < m->block_size; t++)
            for (int k = 0; k < 32; k += 8)
                h = (h ^ (token[t] >> k & 0xff)) * FNV_PRIME;
        m->hash[i] = before = h;
    }
    *out = (struct chain){m->hash, n};
    return rc;
}

enum side { BEFORE, EQUAL, GOING_ON };

/* The first place behind all chains that come before c; or also behind those that are
 * equal; or also behind those that go on from it. */
static size_t bound(const struct script_records *m, struct chain c, enum side side)
{
    size_t lo = 0, hi = m->n_chain;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        struct chain at = chain_at(m, mid);
        int order = compare(at, c);

        if (order < 0 || (side >= EQUAL && order == 0) ||
            (side == GOING_ON && common(at, c) == c.n))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Equal prompts first; then any that goes on from the shared blocks; then, all served,
 * the first one again. */
static uint32_t first_of(const struct script_records *m, struct chain shared,
                         bool whole)
{
    size_t lo = bound(m, shared, BEFORE), hi = bound(m, shared, GOING_ON);
    size_t same = whole ? bound(m, shared, EQUAL) : lo;
    uint32_t rec = script_pick_first(&m->fresh, lo, same);

    if (rec == SCRIPT_NONE)
        rec = script_pick_first(&m->fresh, lo, hi);
    if (rec == SCRIPT_NONE)
        rec = script_pick_first(&m->all, lo, same > lo ? same : hi);
    return rec;
}

static uint32_t find_by_prefix(const struct script_records *m, struct chain c)
{
    size_t at = bound(m, c, BEFORE), depth = 0, n;

    if (at < m->n_chain)
        depth = common(chain_at(m, at), c);
    if (at > 0) {
        n = common(chain_at(m, at - 1), c);
        depth = n > depth ? n : depth;
    }
    if (depth == 0)
        return SCRIPT_NONE;
    return first_of(m, (struct chain){c.hash, depth}, depth == c.n);
}

/* ---- all of it -------------------------------------------------------- */

static int count_usable(struct script_records *m, bool need_tokens, struct vt_err *err)
{
    for (size_t i = 0; i < m->file->n; i++) {
        const struct vt_record *r = &m->file->rec[i];

        m->usable[i] = need_tokens ? r->token_id != NULL : r->ttft_ns >= 0;
        m->n_usable += m->usable[i];
    }
    if (m->n_usable > 0)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "%s: no record has %s", m->file->source,
                   need_tokens ? "output_token_ids" : "times");
}

int script_records_init(struct script_records *m, const struct vt_records *file,
                        enum script_match match, bool need_tokens, uint32_t block_size,
                        struct vt_err *err)
{
    int rc;

    *m = (struct script_records){.file = file, .match = match};
    m->block_size = file->meta.block_size > 0 ? file->meta.block_size : block_size;
    m->usable = calloc(file->n, sizeof(*m->usable));
    m->served = calloc(file->n, sizeof(*m->served));
    rc = m->usable && m->served ? count_usable(m, need_tokens, err) : vt_nomem(err);
    if (rc == VT_OK && match == SCRIPT_BY_INDEX)
        rc = number_records(m, err);
    if (rc == VT_OK && match == SCRIPT_BY_PREFIX)
        rc = sort_chains(m, err);
    if (rc == VT_OK && match == SCRIPT_BY_ID)
        rc = script_entries_init(m, err);
    if (rc != VT_OK)
        script_records_free(m);
    return rc;
}

void script_records_free(struct script_records *m)
{
    script_pick_free(&m->fresh);
    script_pick_free(&m->all);
    free(m->usable);
    free(m->served);
    free(m->order);
    free(m->chain);
    free(m->place);
    free(m->hash);
    free(m->entry);
    *m = (struct script_records){0};
}

static int find(struct script_records *m, const struct wire_request *r,
                const struct script_name *name, uint64_t arrival, uint32_t *rec,
                struct vt_err *err)
{
    struct chain c;
    int rc;

    if (m->match == SCRIPT_BY_ID) {
        *rec = script_entries_find(m, name);
        return VT_OK;
    }
    if (m->match == SCRIPT_BY_INDEX) {
        *rec = script_index_of(name, arrival, m->n_order);
        *rec = *rec == SCRIPT_NONE ? SCRIPT_NONE : m->order[*rec];
        return VT_OK;
    }
    rc = hash_prompt(m, r, &c, err);
    *rec = rc == VT_OK ? find_by_prefix(m, c) : SCRIPT_NONE;
    return rc;
}

int script_records_match(struct script_records *m, const struct wire_request *r,
                         const struct script_name *name, uint64_t arrival,
                         const struct vt_record **out, bool *again, struct vt_err *err)
{
    uint32_t rec;
    int rc = find(m, r, name, arrival, &rec, err);

    *out = NULL;
    *again = false;
    if (rc != VT_OK || rec == SCRIPT_NONE || !m->usable[rec])
        return rc;
    *out = &m->file->rec[rec];
    *again = m->served[rec];
    if (m->match == SCRIPT_BY_PREFIX && !m->served[rec])
        script_pick_remove(&m->fresh, m->place[rec]);
    m->served[rec] = true;
    return VT_OK;
}
