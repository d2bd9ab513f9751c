/* exchange.c - requests under way: a pool of exchanges, and choices by tag. */
#include <stdlib.h>
#include <string.h>

#include "http/serve/serve.h"

enum {
    POOL = 256,            /* exchanges kept for the next requests */
    KEEP_BYTES = 64 << 10, /* of a pooled one's arena */
    SLOT_BITS = 20,
};

/* ---- exchanges ------------------------------------------------------- */

struct exchange *exchange_new(struct server *s, struct net_conn *conn)
{
    struct exchange *x = s->spare;

    if (x != NULL) {
        s->spare = x->spare;
        s->n_spare--;
    } else {
        x = calloc(1, sizeof(*x));
    }
    if (x == NULL)
        return NULL;
    x->s = s;
    x->conn = conn;
    s->n_exchanges++;
    return x;
}

void exchange_error(struct exchange *x, const struct api_error *e)
{
    static const struct api_error no_memory = {
        .status = 500, .type = "InternalServerError", .message = "out of memory"};
    struct api_error *kept = vt_arena_alloc(&x->copies, sizeof(*kept));

    if (kept != NULL)
        *kept = *e;
    x->error = kept != NULL ? kept : &no_memory;
}

static void destroy(struct exchange *x)
{
    vt_arena_free(&x->r.arena);
    vt_arena_free(&x->copies);
    vt_buf_free(&x->answer);
    free(x);
}

void exchange_free(struct exchange *x)
{
    struct server *s = x->s;
    struct vt_arena arena, copies;
    struct vt_buf answer;

    for (uint32_t i = 0; i < x->n_choices; i++)
        vt_chain_free(&x->choice[i].chain);
    free(x->owned);
    s->n_exchanges--;
    if (s->n_spare >= POOL || x->r.arena.used_bytes > KEEP_BYTES) {
        destroy(x);
        return;
    }
    arena = x->r.arena;
    copies = x->copies;
    answer = x->answer;
    vt_arena_reset(&arena);
    vt_arena_reset(&copies);
    vt_buf_clear(&answer);
    *x = (struct exchange){.r = {.arena = arena}, .copies = copies, .answer = answer};
    x->spare = s->spare;
    s->spare = x;
    s->n_spare++;
}

void exchange_pool_free(struct server *s)
{
    while (s->spare != NULL) {
        struct exchange *x = s->spare;

        s->spare = x->spare;
        destroy(x);
    }
}

/* ---- choices --------------------------------------------------------- */

int choice_table_add(struct choice_table *t, struct choice *c, struct vt_err *err)
{
    uint32_t slot;
    int rc = VT_OK;

    if (t->n_spare > 0) {
        slot = t->spare[--t->n_spare];
    } else {
        if (t->n_slots >> SLOT_BITS != 0)
            return vt_fail(err, VT_EINPUT, "too many requests at once");
        rc = vt_grow(&t->slot, &t->cap_slots, t->n_slots + 1, sizeof(*t->slot), err);
        if (rc == VT_OK) /* so that giving back cannot fail */
            rc = vt_grow(&t->spare, &t->cap_spare, t->n_slots + 1, sizeof(*t->spare),
                         err);
        if (rc != VT_OK)
            return rc;
        slot = (uint32_t)t->n_slots++;
    }
    c->tag = ++t->next << SLOT_BITS | slot;
    t->slot[slot] = c;
    t->n++;
    return VT_OK;
}

void choice_table_remove(struct choice_table *t, struct choice *c)
{
    uint32_t slot = (uint32_t)(c->tag & ((UINT64_C(1) << SLOT_BITS) - 1));

    if (c->tag == 0)
        return;
    t->slot[slot] = NULL;
    t->spare[t->n_spare++] = slot;
    t->n--;
    c->tag = 0;
}

struct choice *choice_table_find(const struct choice_table *t, uint64_t tag)
{
    size_t slot = (size_t)(tag & ((UINT64_C(1) << SLOT_BITS) - 1));
    struct choice *c = slot < t->n_slots ? t->slot[slot] : NULL;

    return c != NULL && c->tag == tag ? c : NULL;
}

void choice_table_free(struct choice_table *t)
{
    free(t->slot);
    free(t->spare);
}
