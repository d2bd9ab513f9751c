/* request.c - requests in flight, found by their ids. */
#include "wire/tap/tap.h"

/* ---- the table -------------------------------------------------------- */

static bool is_sought(const void *sought, uint64_t value)
{
    const struct mp_span *id = sought;
    const struct tap_request *q = (const struct tap_request *)(uintptr_t)value;

    return q->id.len == id->len &&
           (id->len == 0 || memcmp(q->id.data, id->at, id->len) == 0);
}

struct tap_request *tap_requests_find(const struct tap_requests *t, struct mp_span id)
{
    const uint64_t *place =
        vt_map_find(&t->map, vt_hash_bytes(id.at, id.len, 0), is_sought, &id);

    return place ? (struct tap_request *)(uintptr_t)*place : NULL;
}

/* One that was used before, with its memory, or a new one. */
static struct tap_request *take_unused(struct tap_requests *t)
{
    struct tap_request *q = t->unused;

    if (!q)
        return calloc(1, sizeof(*q));
    t->unused = q->next;
    *q = (struct tap_request){
        .id = q->id,
        .gaps = q->gaps,
        .token = q->token,
        .cap_tokens = q->cap_tokens,
        .block_hash = q->block_hash,
        .cap_blocks = q->cap_blocks,
        .asked = q->asked,
        .events = q->events,
    };
    q->gaps.n = 0;
    vt_buf_clear(&q->id);
    vt_buf_clear(&q->asked);
    vt_buf_clear(&q->events);
    return q;
}

struct tap_request *tap_requests_add(struct tap_requests *t, struct mp_span id)
{
    struct tap_request *q = take_unused(t);
    uint64_t *place;

    if (!q)
        return NULL;
    q->hash = vt_hash_bytes(id.at, id.len, 0);
    place = vt_map_add(&t->map, q->hash);
    if (!place) {
        q->next = t->unused;
        t->unused = q;
        return NULL;
    }
    *place = (uintptr_t)q;
    vt_buf_str(&q->id, "");
    vt_buf_add(&q->id, id.at, id.len);
    q->gaps.all_ones = true;
    q->before = t->newest;
    *(t->newest ? &t->newest->next : &t->oldest) = q;
    t->newest = q;
    return q;
}

/* Its id may have been made unique meanwhile. */
static bool is_itself(const void *request, uint64_t value)
{
    return value == (uintptr_t)request;
}

void tap_requests_remove(struct tap_requests *t, struct tap_request *q)
{
    vt_map_drop(&t->map, vt_map_find(&t->map, q->hash, is_itself, q));
    *(q->before ? &q->before->next : &t->oldest) = q->next;
    *(q->next ? &q->next->before : &t->newest) = q->before;
    q->next = t->unused;
    t->unused = q;
}

void tap_requests_free(struct tap_requests *t)
{
    while (t->oldest)
        tap_requests_remove(t, t->oldest);
    while (t->unused) {
        struct tap_request *q = t->unused;

        t->unused = q->next;
        vt_buf_free(&q->id);
        vt_buf_free(&q->asked);
        vt_buf_free(&q->events);
        free(q->gaps.gap);
        free(q->gaps.tokens);
        free(q->gaps.running);
        free(q->gaps.prefill);
        free(q->token);
        free(q->block_hash);
        free(q);
    }
    vt_map_free(&t->map);
}

/* ---- one request ------------------------------------------------------ */

int tap_request_token(struct tap_request *q, const uint32_t *token, uint32_t n,
                      struct vt_err *err)
{
    int rc =
        vt_grow(&q->token, &q->cap_tokens, q->n_tokens + n, sizeof(*q->token), err);

    if (rc != VT_OK)
        return rc;
    memcpy(q->token + q->n_tokens, token, n * sizeof(*token));
    q->n_tokens += n;
    return VT_OK;
}

int tap_request_gap(struct tap_request *q, vt_ns gap, uint32_t tokens, uint32_t running,
                    uint32_t prefill, struct vt_err *err)
{
    struct tap_gaps *g = &q->gaps;
    size_t need = (size_t)g->n + 1;
    int rc;

    if ((rc = vt_grow(&g->gap, &g->cap[0], need, sizeof(*g->gap), err)) ||
        (rc = vt_grow(&g->tokens, &g->cap[1], need, sizeof(*g->tokens), err)) ||
        (rc = vt_grow(&g->running, &g->cap[2], need, sizeof(*g->running), err)) ||
        (rc = vt_grow(&g->prefill, &g->cap[3], need, sizeof(*g->prefill), err)))
        return rc;
    g->gap[g->n] = gap;
    g->tokens[g->n] = tokens;
    g->running[g->n] = running;
    g->prefill[g->n] = prefill;
    g->all_ones = g->all_ones && tokens == 1;
    g->n++;
    return VT_OK;
}

int tap_request_blocks(struct tap_request *q, const uint32_t *prompt, uint32_t n,
                       uint32_t block_size, struct vt_err *err)
{
    uint32_t blocks = block_size > 0 ? n / block_size : 0;
    int rc =
        vt_grow(&q->block_hash, &q->cap_blocks, blocks, sizeof(*q->block_hash), err);

    if (rc != VT_OK)
        return rc;
    q->n_blocks = blocks;
    wire_block_hashes(q->block_hash, prompt, blocks, block_size);
    return VT_OK;
}
