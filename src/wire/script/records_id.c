/* records_id.c - records found by the name of a request. */
#include "wire/script/parts.h"

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

static int add_forms(struct script_records *m, uint32_t rec, struct vt_err *err)
{
    struct script_name name;
    int rc;

    script_name_recorded(&name, m->file->rec[rec].id);
    rc = vt_grow(&m->entry, &m->cap_entries, m->n_entries + name.n_forms,
                 sizeof(*m->entry), err);
    for (uint32_t i = 0; rc == VT_OK && i < name.n_forms; i++)
        m->entry[m->n_entries++] =
            (struct script_id_entry){hash_of(name.form[i]), i, rec, 0};
    return rc;
}

int script_entries_init(struct script_records *m, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; rc == VT_OK && i < m->file->n; i++)
        if (m->usable[i])
            rc = add_forms(m, (uint32_t)i, err);
    if (rc == VT_OK)
        qsort(m->entry, m->n_entries, sizeof(*m->entry), by_hash);
    return rc;
}

static size_t first_entry(const struct script_records *m, uint64_t hash)
{
    size_t lo = 0, hi = m->n_entries;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (m->entry[mid].hash < hash)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Several records may bear one name: the choices of n > 1, or a client's repeats. How
 * many of them are served is remembered with the first. */
static uint32_t first_fresh(struct script_records *m, uint64_t hash)
{
    size_t first = first_entry(m, hash), at;

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

uint32_t script_entries_find(struct script_records *m, const struct script_name *name)
{
    uint32_t rec = SCRIPT_NONE;

    for (uint32_t i = 0; i < name->n_forms && rec == SCRIPT_NONE; i++)
        rec = first_fresh(m, hash_of(name->form[i]));
    return rec;
}
