/* bpe.c - byte-pair encoding: of all neighbours in a word the pair of lowest rank is
 * merged, the leftmost first, until none is left that can be.
 *
 * Short words are scanned for the next pair; long ones keep their pairs in a heap, so
 * that a hundred thousand letters without a space take no more than n log n. */
#include <assert.h>

#include "text/tokenizer.h"

enum { SHORT = 32 };

static uint64_t pair_of(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/* ---- opening ---------------------------------------------------------- */

int bpe_open(struct bpe *b, const struct vocab *v, struct vt_err *err)
{
    b->unknown = NO_ID;
    for (int i = 0; i < 256; i++) {
        char byte = (char)i, spelt[4];

        b->byte_id[i] = vocab_find_bytes(v, &byte, 1, spelt);
    }
    b->cache = calloc(CACHE_SLOTS, sizeof(*b->cache));
    return b->cache ? VT_OK : vt_nomem(err);
}

int bpe_add_merge(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank,
                  uint32_t id, struct vt_err *err)
{
    uint64_t *place = vt_map_put(&b->merge, pair_of(left, right));

    if (!place)
        return vt_nomem(err);
    *place = pair_of(rank, id);
    return VT_OK;
}

void bpe_close(struct bpe *b)
{
    for (size_t i = 0; b->cache && i < CACHE_SLOTS; i++)
        free(atomic_load_explicit(&b->cache[i], memory_order_relaxed));
    free(b->cache);
    vt_map_free(&b->merge);
}

/* ---- the symbols of a word -------------------------------------------- */

/* One symbol a byte, those without a token being unknown or nothing; returns how many.
 */
static size_t add_symbols(const struct bpe *b, const char *bytes, size_t n,
                          struct symbol *symbol)
{
    size_t count = 0;
    bool unknown = false;

    for (size_t i = 0; i < n; i++) {
        uint32_t id = b->byte_id[(unsigned char)bytes[i]];

        if (id == NO_ID) {
            if (b->unknown == NO_ID || (unknown && b->fuse_unknown))
                continue;
            unknown = true;
            symbol[count++].id = b->unknown;
            continue;
        }
        unknown = false;
        symbol[count++].id = id;
    }
    return count;
}

static void find_merge(const struct bpe *b, struct symbol *left,
                       const struct symbol *right)
{
    const uint64_t *merge = vt_map_get(&b->merge, pair_of(left->id, right->id));

    left->rank = merge ? (uint32_t)(*merge >> 32) : NO_ID;
    left->merged = merge ? (uint32_t)*merge : 0;
}

/* ---- short words ------------------------------------------------------ */

static size_t merge_short(const struct bpe *b, struct symbol *symbol, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        find_merge(b, &symbol[i], &symbol[i + 1]);
    while (n > 1) {
        size_t at = 0;

        for (size_t i = 1; i + 1 < n; i++)
            if (symbol[i].rank < symbol[at].rank)
                at = i;
        if (symbol[at].rank == NO_ID)
            break;
        symbol[at].id = symbol[at].merged;
        n--;
        memmove(&symbol[at + 1], &symbol[at + 2], (n - at - 1) * sizeof(*symbol));
        if (at + 1 < n)
            find_merge(b, &symbol[at], &symbol[at + 1]);
        if (at > 0)
            find_merge(b, &symbol[at - 1], &symbol[at]);
    }
    return n;
}

/* ---- long words ------------------------------------------------------- */

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t x = heap[i];

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= x)
            break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

/* Symbol `at` has a new right neighbour or is new itself. */
static int queue_merge(const struct bpe *b, struct bpe_room *room, uint32_t at,
                       struct vt_err *err)
{
    struct symbol *s = &room->symbol[at];
    size_t i = room->n_heap;
    int rc;

    s->rank = NO_ID;
    if (s->behind == NO_ID)
        return VT_OK;
    find_merge(b, s, &room->symbol[s->behind]);
    if (s->rank == NO_ID)
        return VT_OK;
    rc = vt_grow(&room->heap, &room->cap_heap, i + 1, sizeof(*room->heap), err);
    if (rc != VT_OK)
        return rc;
    room->n_heap++;
    for (; i > 0 && room->heap[(i - 1) / 2] > pair_of(s->rank, at); i = (i - 1) / 2)
        room->heap[i] = room->heap[(i - 1) / 2];
    room->heap[i] = pair_of(s->rank, at);
    return VT_OK;
}

static int merge_long(const struct bpe *b, struct bpe_room *room, size_t *n,
                      struct vt_err *err)
{
    size_t left = 0;
    int rc = vt_grow(&room->heap, &room->cap_heap, *n, sizeof(*room->heap), err);

    room->n_heap = 0;
    for (size_t i = 0; rc == VT_OK && i < *n; i++) {
        struct symbol *s = &room->symbol[i];

        s->before = i > 0 ? (uint32_t)i - 1 : NO_ID;
        s->behind = i + 1 < *n ? (uint32_t)i + 1 : NO_ID;
        s->rank = NO_ID;
        if (i + 1 < *n)
            find_merge(b, s, s + 1);
        if (s->rank != NO_ID)
            room->heap[room->n_heap++] = pair_of(s->rank, (uint32_t)i);
    }
    for (size_t i = room->n_heap / 2; rc == VT_OK && i-- > 0;)
        sift_down(room->heap, room->n_heap, i);
    while (rc == VT_OK && room->n_heap > 0) {
        uint64_t top = room->heap[0];
        uint32_t at = (uint32_t)top;
        struct symbol *first = &room->symbol[at], *right;

        room->heap[0] = room->heap[--room->n_heap];
        if (room->n_heap > 0)
            sift_down(room->heap, room->n_heap, 0);
        /* Pairs that are no more stay in the heap until their turn. */
        if (first->rank != top >> 32)
            continue;
        right = &room->symbol[first->behind];
        assert(first->behind != NO_ID && right->id != NO_ID && right->before == at);
        first->id = first->merged;
        first->behind = right->behind;
        if (right->behind != NO_ID)
            room->symbol[right->behind].before = at;
        right->id = right->rank = NO_ID; /* gone */
        rc = queue_merge(b, room, at, err);
        if (rc == VT_OK && first->before != NO_ID)
            rc = queue_merge(b, room, first->before, err);
    }
    for (size_t i = 0; rc == VT_OK && i < *n; i++)
        if (room->symbol[i].id != NO_ID)
            room->symbol[left++].id = room->symbol[i].id;
    *n = left;
    return rc;
}

/* ---- words ------------------------------------------------------------ */

/* What is no token at all, not even as a byte, is passed over. */
static int add_longest(const struct vocab *v, struct bpe_room *room, const char *bytes,
                       size_t n, struct vt_ids *ids, struct vt_err *err)
{
    size_t max = n < v->longest ? n : v->longest;
    int rc = vt_grow(&room->spelt, &room->cap_spelt, 2 * max, 1, err);

    while (n > 0 && rc == VT_OK) {
        size_t len = n < max ? n : max;
        uint32_t id;

        while ((id = vocab_find_bytes(v, bytes, len, room->spelt)) == NO_ID && len > 1)
            len--;
        if (id != NO_ID)
            rc = ids_add(ids, &id, 1, err);
        bytes += len;
        n -= len;
    }
    return rc;
}

static int encode_word(const struct bpe *b, const struct vocab *v,
                       struct bpe_room *room, const char *bytes, size_t n,
                       struct vt_ids *ids, struct vt_err *err)
{
    size_t count;
    int rc;

    if (b->whole_words && n <= v->longest) { /* "ignore_merges" */
        uint32_t whole;

        if ((rc = vt_grow(&room->spelt, &room->cap_spelt, 2 * n, 1, err)))
            return rc;
        whole = vocab_find_bytes(v, bytes, n, room->spelt);
        if (whole != NO_ID)
            return ids_add(ids, &whole, 1, err);
    }
    if (b->longest_first)
        return add_longest(v, room, bytes, n, ids, err);
    rc = vt_grow(&room->symbol, &room->cap_symbols, n, sizeof(*room->symbol), err);
    if (rc != VT_OK)
        return rc;
    count = add_symbols(b, bytes, n, room->symbol);
    if (n <= SHORT)
        count = merge_short(b, room->symbol, count);
    else if ((rc = merge_long(b, room, &count, err)))
        return rc;
    rc = vt_grow(&ids->id, &ids->cap, ids->n + count, sizeof(*ids->id), err);
    for (size_t i = 0; rc == VT_OK && i < count; i++)
        ids->id[ids->n++] = room->symbol[i].id;
    return rc;
}

int bpe_word(const struct bpe *b, const struct vocab *v, struct bpe_room *room,
             const char *bytes, size_t n, struct vt_ids *ids, struct vt_err *err)
{
    size_t from = ids->n;
    const struct word *known;
    uint64_t hash;
    int rc;

    if (n > CACHE_WORD_BYTES)
        return encode_word(b, v, room, bytes, n, ids, err);
    hash = word_hash(bytes, n);
    known = word_find(b, bytes, n, hash);
    if (known)
        return ids_add(ids, known->id, known->n_ids, err);
    rc = encode_word(b, v, room, bytes, n, ids, err);
    if (rc == VT_OK && ids->n > from)
        word_keep(b, bytes, n, hash, ids->id + from, ids->n - from);
    return rc;
}

void bpe_room_free(struct bpe_room *room)
{
    free(room->symbol);
    free(room->heap);
    free(room->spelt);
}
