/* oracle.h - a recorded run of vLLM's own scheduler, as a case to be replayed. */
#ifndef VT_SIM_ORACLE_H
#define VT_SIM_ORACLE_H

#include "sim/sim.h"

struct oracle_request {
    const struct vt_node
        *prompt;      /* [{"s": seed, "n": tokens} | {"out": request, "n": …}] */
    const char *salt; /* NULL: none */
    uint32_t prompt_tokens;
    uint32_t eos_at, stop_at;
    uint32_t lora; /* 0: none */
    char lora_name[16], lora_path[17];
    uint32_t slot;     /* while the scheduler knows it */
    uint32_t produced; /* output tokens so far */
    bool added;
    struct vt_chain chain; /* of each full block so far */
};

struct oracle_case {
    struct vt_arena arena;
    const struct vt_node *root, *steps, *kv_events;
    const char *name;
    bool by_group; /* format 2: every list of blocks is one for each group */
    struct vt_engine_config config;
    uint32_t interval;
    uint32_t load_steps, store_steps; /* that a transfer takes */
    uint32_t eos_token, stop_token;
    struct oracle_request *req;
    uint32_t n_req;
    unsigned char none_hash[VT_HASH_BYTES];
};

/* From the file at `path`, or from text where that is not NULL. */
int oracle_load(struct oracle_case *c, const char *path, const char *text, size_t len,
                struct vt_err *err);
void oracle_free(struct oracle_case *c);

/* The request as the scheduler wants it; segments (at least one for each prompt part)
 * go to *seg, which the caller frees. */
int oracle_request(const struct oracle_case *c, uint32_t i, struct vt_request *r,
                   struct vt_segment **seg, struct vt_err *err);

uint32_t oracle_output_token(const struct oracle_case *c, uint32_t i, uint32_t k);
uint32_t oracle_token(const struct oracle_case *c, uint32_t i, uint32_t position);
/* Low 64 bits of vLLM's sha256_cbor hash of request i's tokens up to its j-th key. */
int oracle_block_hash(struct oracle_case *c, uint32_t i, uint32_t j, uint64_t *hash,
                      struct vt_err *err);

#endif
