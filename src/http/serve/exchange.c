/* exchange.c - requests under way: a pool of exchanges, and choices by tag. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/serve/serve.h"

enum {
    POOL = 256,            /* exchanges kept for the next requests */
    KEEP_BYTES = 64 << 10, /* of a pooled one's arena */
};

/* ---- exchanges ------------------------------------------------------- */

struct exchange *exchange_new(struct server *s, struct net_conn *conn)
{
    struct exchange *x = s->spare;

    if (x) {
        s->spare = x->spare;
        s->n_spare--;
    } else {
        x = calloc(1, sizeof(*x));
    }
    if (!x)
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

    if (kept)
        *kept = *e;
    x->error = kept ? kept : &no_memory;
}

static void destroy_exchange(struct exchange *x)
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
        vt_chain_free(&x->choice[i].blocks.chain);
    free(x->owned);
    assert(s->n_exchanges > 0 && x->n_open == 0);
    s->n_exchanges--;
    if (s->n_spare >= POOL || x->r.arena.used_bytes > KEEP_BYTES) {
        destroy_exchange(x);
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
    while (s->spare) {
        struct exchange *x = s->spare;

        s->spare = x->spare;
        destroy_exchange(x);
    }
}
