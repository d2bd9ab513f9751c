/* map.c - open addressing with linear probing; removing closes the gap, so that nothing
 * is ever marked as gone and a probe ends at the first empty cell. */
#include <assert.h>

#include "base/base.h"

enum { FIRST_BITS = 6 };

/* The cell where a key that is not there would go. */
static struct vt_map_cell *empty_cell(const struct vt_map *m, uint64_t key)
{
    size_t i = vt_map_home(m, key);

    while (m->cell[i].key != 0)
        i = (i + 1) & m->mask;
    return &m->cell[i];
}

/* Moves all keys to a table of 2^bits cells. False: out of memory, and nothing changed.
 */
static bool resize(struct vt_map *m, unsigned bits)
{
    struct vt_map old = *m;
    size_t size = (size_t)1 << bits;

    m->cell = calloc(size + 1, sizeof(*m->cell));
    if (!m->cell) {
        *m = old;
        return false;
    }
    m->mask = size - 1;
    m->shift = 64 - bits;
    if (old.cell)
        m->cell[size] = old.cell[old.mask + 1];
    for (size_t i = 0; old.cell && i <= old.mask; i++)
        if (old.cell[i].key != 0)
            *empty_cell(m, old.cell[i].key) = old.cell[i];
    free(old.cell);
    return true;
}

/* Room for one more key: at most five cells of eight are taken. */
static bool make_room(struct vt_map *m)
{
    if (m->cell && 8 * (m->n + 1) <= 5 * (m->mask + 1))
        return true;
    return resize(m, m->cell ? 65 - m->shift : FIRST_BITS);
}

void vt_map_fit(struct vt_map *m)
{
    unsigned bits = 64 - m->shift;

    if (!m->cell || m->n >= m->mask / 16 || m->mask * sizeof(*m->cell) < VT_SMALL_ARRAY)
        return;
    while (bits > FIRST_BITS && m->n < ((size_t)1 << bits) / 4)
        bits--;
    (void)resize(m, bits);
}

static uint64_t *fill_cell(struct vt_map *m, struct vt_map_cell *c, uint64_t key)
{
    *c = (struct vt_map_cell){.key = key};
    m->n++;
    return &c->value;
}

uint64_t *vt_map_put(struct vt_map *m, uint64_t key)
{
    uint64_t *there = vt_map_get(m, key);

    if (there || !make_room(m))
        return there;
    return key ? fill_cell(m, empty_cell(m, key), key)
               : fill_cell(m, &m->cell[m->mask + 1], 1);
}

void vt_map_drop(struct vt_map *m, uint64_t *place)
{
    struct vt_map_cell *c =
        (void *)((char *)place - offsetof(struct vt_map_cell, value));
    size_t gap = (size_t)(c - m->cell);

    assert(m->n > 0 && gap <= m->mask + 1 && c->key != 0);
    m->n--;
    c->key = 0;
    if (gap > m->mask)
        return;
    /* What follows the gap moves up, unless it stands between the gap and its home. */
    for (size_t i = (gap + 1) & m->mask; m->cell[i].key; i = (i + 1) & m->mask) {
        size_t home = vt_map_home(m, m->cell[i].key);

        if (((i - home) & m->mask) < ((i - gap) & m->mask))
            continue;
        m->cell[gap] = m->cell[i];
        m->cell[i].key = 0;
        gap = i;
    }
}

void vt_map_clear(struct vt_map *m)
{
    if (m->n > 0)
        memset(m->cell, 0, (m->mask + 2) * sizeof(*m->cell));
    m->n = 0;
}

void vt_map_free(struct vt_map *m)
{
    free(m->cell);
    *m = (struct vt_map){0};
}

/* ---- by hash ------------------------------------------------------------ */

static uint64_t not_zero(uint64_t hash)
{
    return hash ? hash : 1;
}

uint64_t *vt_map_find(const struct vt_map *m, uint64_t hash, vt_map_same *same,
                      const void *sought)
{
    hash = not_zero(hash);
    if (m->n == 0)
        return NULL;
    for (size_t i = vt_map_home(m, hash); m->cell[i].key; i = (i + 1) & m->mask)
        if (m->cell[i].key == hash && same(sought, m->cell[i].value))
            return &m->cell[i].value;
    return NULL;
}

uint64_t *vt_map_add(struct vt_map *m, uint64_t hash)
{
    hash = not_zero(hash);
    return make_room(m) ? fill_cell(m, empty_cell(m, hash), hash) : NULL;
}

/* ---- names -------------------------------------------------------------- */

struct sought_name {
    const char *first, *text;
    size_t stride, len;
};

static bool same_name(const void *sought, uint64_t index)
{
    const struct sought_name *s = sought;
    const char *name;

    memcpy(&name, s->first + index * s->stride, sizeof(name));
    return strncmp(name, s->text, s->len) == 0 && name[s->len] == '\0';
}

int vt_names_claim(struct vt_names *s, const void *first, size_t stride,
                   const char *text, size_t len, uint32_t *index, bool *is_new,
                   struct vt_err *err)
{
    const struct sought_name sought = {first, text, stride, len};
    uint64_t hash = vt_hash_bytes(text, len, 0);
    uint64_t *place = vt_map_find(&s->map, hash, same_name, &sought);

    *is_new = !place;
    if (place) {
        *index = (uint32_t)*place;
        return VT_OK;
    }
    place = vt_map_add(&s->map, hash);
    if (!place)
        return vt_nomem(err);
    *place = *index;
    return VT_OK;
}

void vt_names_free(struct vt_names *s)
{
    vt_map_free(&s->map);
}
