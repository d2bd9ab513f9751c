/* clock_table.c - live requests by tag and by id. */
#include "wire/play/clock.h"

#include <string.h>

enum { PLACE_BITS = 20, MAX_REQUESTS = 1 << PLACE_BITS };

void table_free(struct table *t)
{
    for (size_t i = 0; i < t->n_slots; i++)
        play_request_free(t->slot[i]);
    free(t->slot);
    free(t->spare);
    free(t->cell);
    *t = (struct table){0};
}

static uint32_t home(const struct table *t, uint32_t engine, const void *id, size_t len)
{
    return (uint32_t)vt_hash_bytes(id, len, engine) & t->mask;
}

static uint32_t home_of(const struct table *t, uint32_t place)
{
    const struct play_request *r = t->slot[place];

    return home(t, r->engine, r->id, r->id_len);
}

/* The cell that holds the id, or the empty one where it would go. */
static uint32_t probe(const struct table *t, uint32_t engine, const void *id,
                      size_t len)
{
    uint32_t at = home(t, engine, id, len);

    for (; t->cell[at] != 0; at = (at + 1) & t->mask) {
        const struct play_request *r = t->slot[t->cell[at] - 1];

        if (r->engine == engine && r->id_len == len && memcmp(r->id, id, len) == 0)
            break;
    }
    return at;
}

/* Twice as many cells as requests at least. */
static int make_cells(struct table *t, struct vt_err *err)
{
    uint32_t size = t->mask + 1, *old = t->cell;

    if (old != NULL && 2 * (t->n + 1) <= size)
        return VT_OK;
    size = old != NULL ? 2 * size : 64;
    t->cell = calloc(size, sizeof(*t->cell));
    if (t->cell == NULL) {
        t->cell = old;
        return vt_nomem(err);
    }
    t->mask = size - 1;
    for (uint32_t i = 0; i < t->n_slots; i++) {
        const struct play_request *r = t->slot[i];

        if (r != NULL)
            t->cell[probe(t, r->engine, r->id, r->id_len)] = i + 1;
    }
    free(old);
    return VT_OK;
}

static int take_place(struct table *t, uint32_t *place, struct vt_err *err)
{
    int rc;

    if (t->n_spare > 0) {
        *place = t->spare[--t->n_spare];
        return VT_OK;
    }
    if (t->n_slots == MAX_REQUESTS)
        return vt_fail(err, VT_EINPUT, "there are %d requests already", MAX_REQUESTS);
    rc = vt_grow(&t->slot, &t->cap_slots, t->n_slots + 1, sizeof(struct play_request *),
                 err);
    if (rc == VT_OK) /* so that removing never needs memory */
        rc = vt_grow(&t->spare, &t->cap_spare, t->n_slots + 1, sizeof(*t->spare), err);
    if (rc == VT_OK)
        *place = (uint32_t)t->n_slots++;
    return rc;
}

int table_add(struct table *t, struct play_request *r, struct vt_err *err)
{
    uint32_t place = 0, at;
    int rc = make_cells(t, err);

    if (rc != VT_OK)
        return rc;
    at = probe(t, r->engine, r->id, r->id_len);
    if (t->cell[at] != 0)
        return vt_fail(err, VT_EINPUT, "its id is in use");
    rc = take_place(t, &place, err);
    if (rc != VT_OK)
        return rc;
    r->tag = t->next++ << PLACE_BITS | place;
    t->slot[place] = r;
    t->cell[at] = place + 1;
    t->n++;
    return VT_OK;
}

/* Closes the hole so that no probe stops short: what follows moves up unless it stands
 * between the hole and its home. */
static void close_hole(struct table *t, uint32_t hole)
{
    uint32_t at = hole;

    for (;;) {
        uint32_t from;

        at = (at + 1) & t->mask;
        if (t->cell[at] == 0)
            break;
        from = home_of(t, t->cell[at] - 1);
        if (((at - from) & t->mask) >= ((at - hole) & t->mask)) {
            t->cell[hole] = t->cell[at];
            hole = at;
        }
    }
    t->cell[hole] = 0;
}

void table_remove(struct table *t, struct play_request *r)
{
    uint32_t place = r->tag & (MAX_REQUESTS - 1);
    uint32_t at = probe(t, r->engine, r->id, r->id_len);

    close_hole(t, at);
    t->slot[place] = NULL;
    t->spare[t->n_spare++] = place;
    t->n--;
}

struct play_request *table_tagged(const struct table *t, uint64_t tag)
{
    struct play_request *r = t->slot[tag & (MAX_REQUESTS - 1)];

    return r != NULL && r->tag == tag ? r : NULL;
}

struct play_request *table_find(const struct table *t, uint32_t engine,
                                struct mp_span id)
{
    uint32_t at;

    if (t->n == 0)
        return NULL;
    at = probe(t, engine, id.at, id.len);
    return t->cell[at] != 0 ? t->slot[t->cell[at] - 1] : NULL;
}
