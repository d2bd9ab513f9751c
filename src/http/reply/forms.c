/* forms.c - how much work drawing may be, and what need not be looked for twice. */
#include "http/reply/parts.h"

#include <string.h>

enum {
    FEW = 16,         /* children that are looked through one by one */
    NAME_CHUNK = 64,  /* bytes of a name that are compared in the time of a node */
    INDEXED_WORK = 8, /* for a child's place in the table */
};

void reply_forms_limit(struct reply_forms *f, enum reply_effort effort)
{
    uint64_t all = REPLY_REQUEST_WORK, own = f->before + REPLY_CHOICE_WORK;

    if (effort == REPLY_SIMPLE) {
        all += REPLY_SIMPLE_WORK;
        own += REPLY_CHOICE_WORK;
    }
    f->limit = own < all ? own : all;
}

void reply_forms_free(struct reply_forms *f)
{
    vt_arena_free(&f->arena);
    vt_map_free(&f->expressions);
    vt_map_free(&f->known);
    vt_map_free(&f->names);
}

/* ---- children by name ------------------------------------------------ */

struct sought {
    const struct vt_node *parent;
    const char *name;
};

/* A map's child is known by its key, a list's by what it says. NULL: by nothing. */
static const char *name_of(const struct vt_node *parent, const struct vt_node *child)
{
    if (parent->kind == VT_MAP)
        return child->key;
    return child->kind == VT_STR ? child->u.str : NULL;
}

static bool is_sought(const void *sought, uint64_t value)
{
    const struct sought *s = sought;
    const struct vt_node *child = (const struct vt_node *)(uintptr_t)value;

    return child >= s->parent->u.item && child < s->parent->u.item + s->parent->n &&
           strcmp(name_of(s->parent, child), s->name) == 0;
}

static uint64_t *find_place(struct reply_forms *f, const struct sought *s,
                            uint64_t *hash)
{
    *hash = vt_hash_bytes(s->name, strlen(s->name), (uintptr_t)s->parent);
    return vt_map_find(&f->names, *hash, is_sought, s);
}

/* Puts all children into the table, each name's first; false: no work or memory. */
static bool index_children(struct reply_forms *f, const struct vt_node *parent)
{
    uint64_t *done;

    if (vt_map_get(&f->known, (uintptr_t)parent))
        return true;
    for (uint32_t i = 0; i < parent->n; i++) {
        const struct vt_node *child = &parent->u.item[i];
        struct sought s = {parent, name_of(parent, child)};
        uint64_t hash, *place;

        if (!s.name)
            continue;
        if (!reply_spend(f, INDEXED_WORK + strlen(s.name) / NAME_CHUNK))
            return false;
        if (find_place(f, &s, &hash))
            continue;
        place = vt_map_add(&f->names, hash);
        if (!place) {
            f->no_memory = true;
            return false;
        }
        *place = (uintptr_t)child;
    }
    done = vt_map_put(&f->known, (uintptr_t)parent);
    f->no_memory |= !done;
    return done != NULL;
}

const struct vt_node *reply_forms_child(struct reply_forms *f,
                                        const struct vt_node *parent, const char *name)
{
    struct sought s = {parent, name};
    uint64_t hash, *place;
    size_t chunks = 1 + strlen(name) / NAME_CHUNK;

    if (!parent || (parent->kind != VT_MAP && parent->kind != VT_LIST))
        return NULL;
    if (parent->n > FEW) {
        if (!reply_spend(f, 2 * chunks) || !index_children(f, parent))
            return NULL;
        place = find_place(f, &s, &hash);
        return place ? (const struct vt_node *)(uintptr_t)*place : NULL;
    }
    if (!reply_spend(f, 1 + parent->n * chunks))
        return NULL;
    for (uint32_t i = 0; i < parent->n; i++) {
        const char *own = name_of(parent, &parent->u.item[i]);

        if (own && strcmp(own, name) == 0)
            return &parent->u.item[i];
    }
    return NULL;
}

const struct vt_node *reply_forms_get(struct reply_forms *f, const struct vt_node *map,
                                      const char *keyword)
{
    return map && map->kind == VT_MAP ? reply_forms_child(f, map, keyword) : NULL;
}
