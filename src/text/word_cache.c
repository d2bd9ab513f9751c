/* word_cache.c - words seen before.
 *
 * Texts repeat their words, so most are found here. A slot is set once and its word
 * stays until the tokenizer is closed: readers need no lock, and the memory is bounded
 * by the number of slots. Where a neighbourhood is full, nothing more is kept. */
#include "text/tokenizer.h"

enum { NEIGHBOURS = 8 };

/* Like FNV, eight bytes at a time. */
uint64_t word_hash(const char *bytes, size_t n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ n, part = 0;

    for (; n >= 8; n -= 8, bytes += 8) {
        memcpy(&part, bytes, 8);
        hash = (hash ^ part) * UINT64_C(0x9fb21c651e98df25);
        hash ^= hash >> 32;
    }
    part = 0;
    memcpy(&part, bytes, n);
    hash = (hash ^ part) * UINT64_C(0x9fb21c651e98df25);
    hash ^= hash >> 29;
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

static size_t slot(uint64_t hash, size_t i)
{
    return ((hash >> 48) + i) % CACHE_SLOTS;
}

const struct word *word_find(const struct bpe *b, const char *bytes, size_t n,
                             uint64_t hash)
{
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        const struct word *w =
            atomic_load_explicit(&b->cache[slot(hash, i)], memory_order_acquire);

        if (!w)
            return NULL;
        if (w->hash == hash && w->n_bytes == n &&
            memcmp(w->id + w->n_ids, bytes, n) == 0)
            return w;
    }
    return NULL;
}

/* Two threads may keep the same word twice; that only costs a slot. */
void word_keep(const struct bpe *b, const char *bytes, size_t n, uint64_t hash,
               const uint32_t *id, size_t n_ids)
{
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        _Atomic(struct word *) *place = &b->cache[slot(hash, i)];
        struct word *none = NULL, *w;

        if (atomic_load_explicit(place, memory_order_relaxed))
            continue;
        w = malloc(sizeof(*w) + n_ids * sizeof(*id) + n);
        if (!w)
            return;
        w->hash = hash;
        w->n_bytes = (uint16_t)n;
        w->n_ids = (uint16_t)n_ids;
        memcpy(w->id, id, n_ids * sizeof(*id));
        memcpy(w->id + n_ids, bytes, n);
        if (!atomic_compare_exchange_strong_explicit(
                place, &none, w, memory_order_release, memory_order_relaxed))
            free(w);
        return;
    }
}
