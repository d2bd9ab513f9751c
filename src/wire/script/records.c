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

/* Of a prompt's blocks; each hash is over all before it. */
static struct script_sequence chain_of(const uint64_t *hash, size_t n)
{
    return (struct script_sequence){hash, n, sizeof(*hash)};
}

static int sort_chains(struct script_records *m, struct vt_err *err)
{
    const struct vt_records *f = m->file;
    struct script_sorted *s = &m->chains;
    int rc = script_sorted_init(s, f->n, err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < f->n; i++)
        if (m->usable[i] && f->rec[i].n_block_hashes > 0)
            s->entry[s->n++] = (struct script_entry){
                chain_of(f->rec[i].block_hash, f->rec[i].n_block_hashes), (uint32_t)i};
    if (s->n == 0)
        return vt_fail(err, VT_EINPUT,
                       "%s: no record has block_hashes, so none can be found by prefix",
                       f->source);
    return script_sorted_sort(s, err);
}

static int hash_prompt(struct script_records *m, const struct wire_request *r,
                       struct script_sequence *out, struct vt_err *err)
{
    uint32_t n = r->prompt ? r->n_prompt / m->block_size : 0;
    int rc = vt_grow(&m->hash, &m->cap_hash, n, sizeof(*m->hash), err);

    if (rc == VT_OK)
        wire_block_hashes(m->hash, r->prompt, n, m->block_size);
    *out = chain_of(m->hash, n);
    return rc;
}

/* Of those that share most blocks: equal prompts first; then any that goes on from the
 * shared blocks; then, all served, the first one again. */
static uint32_t find_by_prefix(const struct script_sorted *s, struct script_sequence c)
{
    size_t at = script_sorted_end(s, c, SCRIPT_BEFORE), depth = 0, n, lo, hi, same;
    struct script_sequence shared;
    uint32_t rec;

    if (at < s->n)
        depth = script_common(s->entry[at].sequence, c);
    if (at > 0) {
        n = script_common(s->entry[at - 1].sequence, c);
        depth = n > depth ? n : depth;
    }
    if (depth == 0)
        return SCRIPT_NONE;
    shared = chain_of(c.at, depth);
    lo = script_sorted_end(s, shared, SCRIPT_BEFORE);
    hi = script_sorted_end(s, shared, SCRIPT_GOING_ON);
    same = depth == c.n ? script_sorted_end(s, shared, SCRIPT_EQUAL) : lo;
    rec = script_sorted_first(s, lo, same, false);
    if (rec == SCRIPT_NONE)
        rec = script_sorted_first(s, lo, hi, false);
    if (rec == SCRIPT_NONE)
        rec = script_sorted_first(s, lo, same > lo ? same : hi, true);
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

static int init_records(struct script_records *m, bool need_tokens, struct vt_err *err)
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
    return m->match == VT_MATCH_INDEX    ? number_records(m, err)
           : m->match == VT_MATCH_PREFIX ? sort_chains(m, err)
                                         : list_names(m, err);
}

int script_records_init(struct script_records *m, const struct vt_records *file,
                        enum vt_replay_match match, bool need_tokens,
                        uint32_t block_size, struct vt_err *err)
{
    int rc;

    *m = (struct script_records){.file = file, .match = match};
    m->block_size = file->meta.block_size > 0 ? file->meta.block_size : block_size;
    rc = init_records(m, need_tokens, err);
    if (rc != VT_OK)
        script_records_free(m);
    return rc;
}

void script_records_free(struct script_records *m)
{
    script_sorted_free(&m->chains);
    free(m->usable);
    free(m->served);
    free(m->order);
    free(m->hash);
    free(m->entry);
    *m = (struct script_records){0};
}

int script_records_match(struct script_records *m, const struct wire_request *r,
                         const struct script_name *name, uint64_t arrival,
                         const struct vt_record **out, bool *again, struct vt_err *err)
{
    struct script_sequence c;
    uint32_t rec;
    int rc;

    *out = NULL;
    *again = false;
    if (m->match == VT_MATCH_ID) {
        rec = find_by_name(m, name);
    } else if (m->match == VT_MATCH_INDEX) {
        rec = script_index_of(name, arrival, m->n_order);
        rec = rec == SCRIPT_NONE ? SCRIPT_NONE : m->order[rec];
    } else {
        rc = hash_prompt(m, r, &c, err);
        if (rc != VT_OK)
            return rc;
        rec = find_by_prefix(&m->chains, c);
    }
    if (rec == SCRIPT_NONE || !m->usable[rec])
        return VT_OK;
    *out = &m->file->rec[rec];
    *again = m->served[rec];
    if (m->match == VT_MATCH_PREFIX && !m->served[rec])
        script_sorted_serve(&m->chains, rec);
    m->served[rec] = true;
    return VT_OK;
}
