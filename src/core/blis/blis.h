/* blis.h - BLIS's batch formation and KV accounting, for differential runs.
 *
 * Known differences from vLLM, all kept on purpose: a preempted request starts over
 * and produces its output again; blocks get their content when allocated; freed
 * blocks all go to the back of the list; a prompt that is wholly cached is not
 * computed at all and does not hold its blocks. */
#ifndef VT_CORE_BLIS_H
#define VT_CORE_BLIS_H

#include "core/kv/kv.h"

struct blis;

int blis_new(struct blis **out, const struct vt_engine_config *c, struct vt_err *err);
void blis_free(struct blis *b);

int blis_prepare(struct blis *b, const struct vt_request *r, uint32_t *slot,
                 struct vt_err *err);
void blis_enqueue(struct blis *b, uint32_t slot);
bool blis_has_requests(const struct blis *b);

/* Both NULL when out of memory. The plan holds requests that compute something; the
 * update moves all running ones. */
const struct vt_plan *blis_schedule(struct blis *b);
const struct vt_update *blis_update(struct blis *b);

struct pool *blis_pool(struct blis *b);
struct vt_load blis_load(const struct blis *b);

/* Blocks found and blocks newly taken so far. */
void blis_cache_counts(const struct blis *b, uint64_t *hits, uint64_t *misses);

#endif
