/* table.c - requests by engine and id, as frontends name them. */
#include "wire/play/engines.h"

#include <string.h>

struct sought {
    uint32_t engine;
    struct mp_span id;
};

static bool is_sought(const void *sought, uint64_t value)
{
    const struct sought *s = sought;
    const struct play_request *r = (const struct play_request *)(uintptr_t)value;

    return r->engine == s->engine && r->id_len == s->id.len &&
           memcmp(r->id, s->id.at, s->id.len) == 0;
}

static uint64_t *place_of(const struct id_table *t, uint32_t engine, struct mp_span id)
{
    struct sought s = {engine, id};

    return vt_map_find(&t->map, vt_hash_bytes(id.at, id.len, engine), is_sought, &s);
}

static struct mp_span id_of(const struct play_request *r)
{
    return (struct mp_span){(const uint8_t *)r->id, r->id_len};
}

int id_table_add(struct id_table *t, struct play_request *r, struct vt_err *err)
{
    uint64_t *place = place_of(t, r->engine, id_of(r));

    if (place)
        return vt_fail(err, VT_EINPUT, "its id is in use");
    place = vt_map_add(&t->map, vt_hash_bytes(r->id, r->id_len, r->engine));
    if (!place)
        return vt_nomem(err);
    *place = (uintptr_t)r;
    return VT_OK;
}

void id_table_remove(struct id_table *t, const struct play_request *r)
{
    vt_map_drop(&t->map, place_of(t, r->engine, id_of(r)));
}

struct play_request *id_table_find(const struct id_table *t, uint32_t engine,
                                   struct mp_span id)
{
    const uint64_t *place = place_of(t, engine, id);

    return place ? (struct play_request *)(uintptr_t)*place : NULL;
}
