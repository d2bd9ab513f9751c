/* records.c - which record of a trace a request is served from. */
#include "wire/script/parts.h"

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

static int sort_chains(struct script_records *m, struct vt_err *err)
{
    struct sortable *s = malloc(m->file->n * sizeof(*s));
    int rc = VT_OK;

    m->chain = malloc(m->file->n * sizeof(*m->chain));
    m->place = malloc(m->file->n * sizeof(*m->place));
    if (!s || !m->chain || !m->place) {
        free(s);
        return vt_nomem(err);
    }
    for (size_t i = 0; i < m->file->n; i++)
        if (m->usable[i] && m->file->rec[i].n_block_hashes > 0)
            s[m->n_chain++] =
                (struct sortable){chain_of(&m->file->rec[i]), (uint32_t)i};
    if (m->n_chain == 0)
        rc = vt_fail(err, VT_EINPUT,
                     "%s: no record has block_hashes, so none can be found by prefix",
                     m->file->source);
    qsort(s, m->n_chain, sizeof(*s), by_chain);
    for (size_t i = 0; i < m->n_chain; i++) {
        m->chain[i] = s[i].rec;
        m->place[s[i].rec] = (uint32_t)i;
    }
    free(s);
    if (rc == VT_OK)
        rc = script_pick_init(&m->fresh, m->chain, m->n_chain, err);
    return rc == VT_OK ? script_pick_init(&m->all, m->chain, m->n_chain, err) : rc;
}

static int hash_prompt(struct script_records *m, const struct wire_request *r,
                       struct chain *out, struct vt_err *err)
{
    uint32_t n = r->prompt ? r->n_prompt / m->block_size : 0;
    int rc = vt_grow(&m->hash, &m->cap_hash, n, sizeof(*m->hash), err);

    if (rc == VT_OK)
        wire_block_hashes(m->hash, r->prompt, n, m->block_size);
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

/* Of those that share most blocks: equal prompts first; then any that goes on from the
 * shared blocks; then, all served, the first one again. */
static uint32_t find_by_prefix(const struct script_records *m, struct chain c)
{
    size_t at = bound(m, c, BEFORE), depth = 0, n, lo, hi, same;
    struct chain shared;
    uint32_t rec;

    if (at < m->n_chain)
        depth = common(chain_at(m, at), c);
    if (at > 0) {
        n = common(chain_at(m, at - 1), c);
        depth = n > depth ? n : depth;
    }
    if (depth == 0)
        return SCRIPT_NONE;
    shared = (struct chain){c.hash, depth};
    lo = bound(m, shared, BEFORE);
    hi = bound(m, shared, GOING_ON);
    same = depth == c.n ? bound(m, shared, EQUAL) : lo;
    rec = script_pick_first(&m->fresh, lo, same);
    if (rec == SCRIPT_NONE)
        rec = script_pick_first(&m->fresh, lo, hi);
    if (rec == SCRIPT_NONE)
        rec = script_pick_first(&m->all, lo, same > lo ? same : hi);
    return rec;
}

/* ---- by name ---------------------------------------------------------- */

static uint64_t hash_of(struct mp_span form)
{
    return vt_hash_bytes(form.at, form.len, 0);
}

static int by_hash(const void *pa, const void *pb)
{
    const struct script_id_entry *a = pa, *b = pb;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    return a->rec < b->rec ? -1 : a->rec > b->rec;
}

static int list_names(struct script_records *m, struct vt_err *err)
{
    for (uint32_t rec = 0; rec < m->file->n; rec++) {
        struct script_name name;
        int rc;

        if (!m->usable[rec])
            continue;
        script_name_recorded(&name, m->file->rec[rec].id);
        rc = vt_grow(&m->entry, &m->cap_entries, m->n_entries + name.n_forms,
                     sizeof(*m->entry), err);
        if (rc != VT_OK)
            return rc;
        for (uint32_t i = 0; i < name.n_forms; i++)
            m->entry[m->n_entries++] =
                (struct script_id_entry){hash_of(name.form[i]), i, rec, 0};
    }
    qsort(m->entry, m->n_entries, sizeof(*m->entry), by_hash);
    return VT_OK;
}

/* Several records may bear one name: the choices of n > 1, or a client's repeats. How
 * many of them are served is remembered with the first. */
static uint32_t first_fresh(struct script_records *m, uint64_t hash)
{
    size_t first = 0, end = m->n_entries, at;

    while (first < end) {
        size_t mid = first + (end - first) / 2;

        if (m->entry[mid].hash < hash)
            first = mid + 1;
        else
            end = mid;
    }
    if (first == m->n_entries || m->entry[first].hash != hash)
        return SCRIPT_NONE;
    at = first + m->entry[first].n_served;
    for (; at < m->n_entries && m->entry[at].hash == hash; at++) {
        if (!m->served[m->entry[at].rec])
            return m->entry[at].rec;
        m->entry[first].n_served++;
    }
    return m->entry[first].rec;
}

static uint32_t find_by_name(struct script_records *m, const struct script_name *name)
{
    uint32_t rec = SCRIPT_NONE;

    for (uint32_t i = 0; i < name->n_forms && rec == SCRIPT_NONE; i++)
        rec = first_fresh(m, hash_of(name->form[i]));
    return rec;
}

/* ---- all of it -------------------------------------------------------- */

static int init(struct script_records *m, bool need_tokens, struct vt_err *err)
{
    m->usable = calloc(m->file->n, sizeof(*m->usable));
    m->served = calloc(m->file->n, sizeof(*m->served));
    if (!m->usable || !m->served)
        return vt_nomem(err);
    for (size_t i = 0; i < m->file->n; i++) {
        const struct vt_record *r = &m->file->rec[i];

        m->usable[i] = need_tokens ? r->token_id != NULL : r->ttft_ns >= 0;
        m->n_usable += m->usable[i];
    }
    if (m->n_usable == 0)
        return vt_fail(err, VT_EINPUT, "%s: no record has %s", m->file->source,
                       need_tokens ? "output_token_ids" : "times");
    return m->match == SCRIPT_BY_INDEX    ? number_records(m, err)
           : m->match == SCRIPT_BY_PREFIX ? sort_chains(m, err)
                                          : list_names(m, err);
}

int script_records_init(struct script_records *m, const struct vt_records *file,
                        enum script_match match, bool need_tokens, uint32_t block_size,
                        struct vt_err *err)
{
    int rc;

    *m = (struct script_records){.file = file, .match = match};
    m->block_size = file->meta.block_size > 0 ? file->meta.block_size : block_size;
    rc = init(m, need_tokens, err);
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

int script_records_match(struct script_records *m, const struct wire_request *r,
                         const struct script_name *name, uint64_t arrival,
                         const struct vt_record **out, bool *again, struct vt_err *err)
{
    struct chain c;
    uint32_t rec;
    int rc;

    *out = NULL;
    *again = false;
    if (m->match == SCRIPT_BY_ID) {
        rec = find_by_name(m, name);
    } else if (m->match == SCRIPT_BY_INDEX) {
        rec = script_index_of(name, arrival, m->n_order);
        rec = rec == SCRIPT_NONE ? SCRIPT_NONE : m->order[rec];
    } else {
        rc = hash_prompt(m, r, &c, err);
        if (rc != VT_OK)
            return rc;
        rec = find_by_prefix(m, c);
    }
    if (rec == SCRIPT_NONE || !m->usable[rec])
        return VT_OK;
    *out = &m->file->rec[rec];
    *again = m->served[rec];
    if (m->match == SCRIPT_BY_PREFIX && !m->served[rec])
        script_pick_remove(&m->fresh, m->place[rec]);
    m->served[rec] = true;
    return VT_OK;
}
