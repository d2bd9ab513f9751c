/* names.c - finding names among an array's members by hash. */
#include "trace/internal.h"

struct trace_name_cell {
    uint32_t hash;
    uint32_t index_plus_1; /* 0: empty */
};

static const char *name_at(struct trace_names names, uint32_t i)
{
    const char *name;

    memcpy(&name, (const char *)names.base + i * names.stride, sizeof(name));
    return name;
}

static struct trace_name_cell *set_probe(const struct trace_name_set *s,
                                         struct trace_names names, const char *text,
                                         size_t len, uint32_t hash)
{
    for (size_t i = hash & (s->n_cells - 1);; i = (i + 1) & (s->n_cells - 1)) {
        struct trace_name_cell *cell = &s->cell[i];
        const char *name;

        if (cell->index_plus_1 == 0)
            return cell;
        if (cell->hash != hash)
            continue;
        name = name_at(names, cell->index_plus_1 - 1);
        if (strncmp(name, text, len) == 0 && name[len] == '\0')
            return cell;
    }
}

static int set_reserve(struct trace_name_set *s, struct vt_err *err)
{
    size_t n_cells = s->n_cells ? s->n_cells * 2 : 64;
    struct trace_name_cell *cell;

    if (s->n * 2 < s->n_cells)
        return VT_OK;
    cell = calloc(n_cells, sizeof(*cell));
    if (!cell)
        return vt_nomem(err);
    for (size_t i = 0; i < s->n_cells; i++) {
        size_t to = s->cell[i].hash & (n_cells - 1);

        if (s->cell[i].index_plus_1 == 0)
            continue;
        while (cell[to].index_plus_1 != 0)
            to = (to + 1) & (n_cells - 1);
        cell[to] = s->cell[i];
    }
    free(s->cell);
    s->cell = cell;
    s->n_cells = n_cells;
    return VT_OK;
}

int trace_names_claim(struct trace_name_set *s, struct trace_names names,
                      const char *text, size_t len, uint32_t *index, bool *is_new,
                      struct vt_err *err)
{
    uint32_t hash = (uint32_t)vt_hash_bytes(text, len, 0);
    struct trace_name_cell *cell;
    int rc = set_reserve(s, err);

    if (rc != VT_OK)
        return rc;
    cell = set_probe(s, names, text, len, hash);
    *is_new = cell->index_plus_1 == 0;
    if (*is_new) {
        *cell = (struct trace_name_cell){hash, *index + 1};
        s->n++;
    }
    *index = cell->index_plus_1 - 1;
    return VT_OK;
}
