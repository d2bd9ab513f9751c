/* core.h - the twin of one engine: requests, KV blocks, vLLM's scheduler, and the
 * pipeline of steps that a host and a GPU make of its decisions.
 *
 * The core never reads a clock, sleeps or opens a file. A driver says what time it
 * is; the core says when it next wants to be called. Nothing here is thread-safe:
 * one scheduler or engine belongs to one thread at a time.
 *
 * Two layers, both public. `vt_sched` decides what each step computes and knows no
 * time; it repeats the V1 scheduler of vLLM 0.26 to 0.32 step for step (any KV groups;
 * of connectors the OffloadingConnector and NixlConnector; no multimodal, PP = 1).
 * `vt_engine` puts it on a time axis with a latency model. */
#ifndef VT_CORE_H
#define VT_CORE_H

#include "base/base.h"

/* ---- KV groups -------------------------------------------------------- */

/* Layers that need the same tokens share a block table: a group. All groups take their
 * blocks from one pool, so every block has the same bytes. */
enum vt_attention {
    VT_ATTENTION_FULL,
    VT_ATTENTION_MLA,     /* full, over one latent vector for all heads */
    VT_ATTENTION_SLIDING, /* the last `window` tokens, the one computed included */
    VT_ATTENTION_CHUNKED, /* those since the last multiple of `window` */
    VT_ATTENTION_MAMBA    /* one state instead of tokens */
};
const char *vt_attention_name(enum vt_attention a); /* as KV events spell it */

/* Which states of a Mamba group are kept: the running one, or those at block ends too,
 * at which a prefix can be hit. */
enum vt_mamba_mode { VT_MAMBA_NONE, VT_MAMBA_ALIGN };

struct vt_kv_layer { /* n equal layers that follow each other */
    enum vt_attention type;
    uint32_t n;
    uint32_t window;
    uint64_t bytes; /* of one token; VT_ATTENTION_MAMBA: of the state */
    /* A state can be saved in the middle of a piece of a prompt, not only at its end:
     * Mamba 2, since 0.32. */
    bool saves_inside;
};

enum { VT_KV_GROUPS = 32 };

struct vt_kv_group {
    uint8_t type; /* enum vt_attention */
    uint32_t block_size;
    uint32_t window;
    uint32_t layers;
    uint64_t page_bytes; /* a block of one layer */
    uint64_t unit_bytes; /* what of it is one token's, or the state */
    bool saves_inside;   /* as its layers' */
};

/* ---- configuration ---------------------------------------------------- */

enum vt_policy { VT_FCFS, VT_PRIORITY };

/* Whose rules a run follows. BLIS: that simulator's batch formation, KV accounting,
 * restart-from-zero preemption and microsecond ticks, for differential tests. */
enum vt_compat { VT_COMPAT_VLLM, VT_COMPAT_BLIS };

enum { VT_SPEC_POSITIONS = 16 };

/* Which content of the host's memory is given up first. */
enum vt_evict { VT_EVICT_LRU, VT_EVICT_ARC };

/* vLLM's OffloadingConnector: a second tier of KV blocks in the host's memory. Names as
 * in its kv_connector_extra_config. */
struct vt_offload {
    double cpu_bytes_to_use;   /* of all GPUs of an engine; 0: not asked for */
    uint32_t num_cpu_blocks;   /* chunks that fit; 0: there is no such tier */
    uint32_t blocks_per_chunk; /* GPU blocks that are moved and found as one; 0: 1 */
    uint32_t store_threshold;  /* below 2: all is stored; else what is met so often */
    uint32_t max_tracker_size; /* of how much that is counted; 0: 64,000 */
    enum vt_evict eviction_policy;
    bool offload_generated;         /* not offload_prompt_only */
    bool self_describing_kv_events; /* they tell tokens */
    /* What an engine makes times of. GB/s of 1e9 bytes over the link of one GPU, each
     * way alone, which keeps the share `duplex` (0: all) while the other way is busy; a
     * job takes so long before its first byte. 0 GB/s: no time. */
    double load_gbs, store_gbs, setup_us, duplex;
    /* The host hands a job over before it launches the step: for each, and for each of
     * its blocks. */
    double host_us, host_block_us;
    uint64_t block_bytes; /* of a block, on one GPU */
};

/* vLLM's NixlConnector: one engine computes prompts, and others pull their KV blocks.
 */
struct vt_remote {
    bool on;
    bool pulls;      /* kv_role: it takes blocks of others, not only gives them */
    bool recomputes; /* kv_load_failure_policy: prompts whose pull fails; else they fail
                      */
    /* Blocks of a prompt that nobody has pulled are given up after so long; a decoder
     * that waits with it renews that: kv_lease_duration. 0: never. */
    double lease_s;
    /* What an engine makes times of. GB/s of 1e9 bytes over the link of one GPU, which
     * pulls under way share or each have alone; a pull takes so long before its first
     * byte. 0 GB/s: no time. */
    double gbs, setup_us;
    bool shares;
    uint64_t block_bytes; /* of a block, on one GPU */
    uint32_t block_parts; /* pieces of memory that it lies in there; 0: not known */
};

/* Releases of vLLM whose scheduler is known, by the number behind "0.". */
enum { VT_VLLM_OLDEST = 26, VT_VLLM_NEWEST = 32 };
/* From a text such as "0.26", "v0.32.0" or "0.32.1+cu129". VT_EINPUT: none of these. */
int vt_vllm_release(const char *text, uint32_t *release,
                    struct vt_err *err) VT_MUST_CHECK;
/* The known one that is nearest to what a recording or profile states, which may be of
 * any age; 0: the text (NULL too) names no release. */
uint32_t vt_vllm_nearest(const char *text);

/* Of prefix_cache_retention_interval: as the release does it, or every block. */
#define VT_RETENTION_DEFAULT (UINT32_MAX - 1)
#define VT_RETENTION_DENSE   UINT32_MAX

struct vt_engine_config { /* names as vLLM's */
    uint32_t vllm;        /* whose release's rules: 26 is 0.26 */
    uint32_t max_num_seqs;
    uint32_t max_num_batched_tokens;   /* token budget of a step */
    uint32_t max_num_scheduled_tokens; /* a smaller budget; 0: that one */
    uint32_t max_model_len;
    uint32_t block_size;
    uint32_t num_gpu_blocks; /* block 0 is vLLM's null block and never handed out */
    /* 0 of them: one with full attention. block_size holds for prompts' pieces then. */
    struct vt_kv_group kv_group[VT_KV_GROUPS];
    uint32_t n_kv_groups;
    enum vt_mamba_mode mamba_cache_mode;
    /* Blocks of windows and states that stay findable: at prompts' ends (0), also every
     * so many tokens, or VT_RETENTION_*. */
    uint32_t prefix_cache_retention_interval;
    uint32_t max_num_active_seqs; /* fewer requests than max_num_seqs; 0: those. 0.31 */
    uint32_t max_loras;           /* adapters in one step; 0: any number */
    uint32_t long_prefill_token_threshold; /* 0: off */
    bool long_prefill_token_threshold_adaptive;
    uint32_t num_spec_tokens; /* drafts per request and step; 0: off */
    double spec_acceptance;   /* chance that a draft is accepted, given all
                               * before it were; used by the engine only */
    /* The same for each place of a draft, where they differ; the last one holds for
     * all behind it. 0 of them: spec_acceptance. */
    double spec_position[VT_SPEC_POSITIONS];
    uint32_t n_spec_positions;
    double spec_draft_us; /* GPU time of one pass of the draft model; a step that ends
                           * with tokens makes num_spec_tokens of them */
    double watermark;     /* share of blocks kept free on admission while others run */
    /* Of ranks in lockstep: new prefills in every n-th pass of a wave only, 1: in any;
     * passes between two agreements to go on, 0: as many as the release has. */
    uint32_t prefill_schedule_interval, dp_sync_interval;
    enum vt_policy policy;
    enum vt_compat compat;
    bool enable_prefix_caching;
    bool enable_chunked_prefill;
    bool scheduler_reserve_full_isl; /* admit only if the whole prompt fits */
    bool async_scheduling;
    bool use_eagle; /* drafts need look-ahead slots; a hit drops its last block */
    bool kv_events; /* collect block events */
    struct vt_offload offload;
    struct vt_remote remote;
    /* Requests in the largest full step (one that uses up the token budget) that the
     * engine has computed before its first request: beyond it, full steps are new to it
     * (vt_latency.holds_new). 0: it has computed them all, as one that has served for
     * long. */
    uint32_t warmed_for;
    uint64_t seed;
};

/* vLLM's defaults for an H100-class server, and 32,768 blocks, which vLLM would
 * measure. */
void vt_engine_config_init(struct vt_engine_config *c);
int vt_engine_config_check(const struct vt_engine_config *c,
                           struct vt_err *err) VT_MUST_CHECK;

/* The groups that vLLM forms of a model's layers, put into *c, whose block_size,
 * max_model_len and mamba_cache_mode must be final. *block_bytes: what one block takes
 * of a GPU's memory. hybrid false: windows are not used, as
 * --disable-hybrid-kv-cache-manager has it. VT_EINPUT: vLLM would not start. */
int vt_kv_groups_form(struct vt_engine_config *c, const struct vt_kv_layer *layer,
                      uint32_t n_layers, bool hybrid, uint64_t *block_bytes,
                      struct vt_err *err) VT_MUST_CHECK;
/* Tokens between two places at which blocks of all groups end; 0: they never do. */
uint32_t vt_scheduler_block_size(const struct vt_engine_config *c);
/* Such as "5 x sliding_window 1024, full_attention"; "" where there is one group. */
void vt_kv_groups_text(const struct vt_engine_config *c, char *out, size_t size);
/* Tokens between two places at which a prompt's prefix has a key. */
uint32_t vt_hash_block_size(const struct vt_engine_config *c);
/* The most blocks that a request of so many tokens holds at once. */
uint64_t vt_blocks_of_request(const struct vt_engine_config *c, uint64_t tokens);
/* The longest that max_model_len can be for the pool to hold one such request; 0: none.
 */
uint32_t vt_longest_request(const struct vt_engine_config *c);
/* After groups were formed: those with one state for a whole request follow. */
void vt_set_max_model_len(struct vt_engine_config *c, uint32_t tokens);

struct vt_kv_facts {     /* what an engine tells of its KV cache; 0: there is no such */
    uint32_t block_size; /* the smallest of all groups */
    uint32_t whole_block_size; /* of those that need every token, if it is one size */
    uint32_t state_block_size; /* of Mamba's */
    uint32_t window;           /* where every layer has the same */
    double max_concurrency;    /* requests of max_model_len that fit */
    uint64_t tokens;           /* of so many */
};
struct vt_kv_facts vt_kv_facts(const struct vt_engine_config *c);

/* ---- requests --------------------------------------------------------- */

#define VT_NO_STOP UINT32_MAX

/* What a request's kv_transfer_params ask for. Without vt_remote.on: nothing. */
enum vt_apart {
    VT_TOGETHER,
    VT_PREFILL_ONLY, /* do_remote_decode: blocks are kept at its end, to be pulled */
    VT_DECODE_ONLY   /* do_remote_prefill: the prompt's blocks are pulled */
};

struct vt_request { /* what is asked; everything is copied */
    uint64_t tag;   /* the caller's name for it, in every row about it */
    uint32_t prompt_tokens;
    uint32_t max_tokens;
    uint32_t min_tokens;
    uint32_t eos_at;  /* index of the output token that ends it; VT_NO_STOP: none */
    uint32_t stop_at; /* the same by a stop token of the request's own */
    int32_t priority; /* lower goes first, as in vLLM */
    int64_t arrival;  /* orders requests of equal priority; then the id does, as text */
    /* NULL (then the tag orders them), or borrowed until it ends. Only asked by
     * priority. */
    const char *id;
    const struct vt_segment *segment; /* the prompt's content */
    uint32_t n_segments;
    uint64_t output_content; /* content of the tokens it will produce */
    uint64_t salt;           /* keeps prefixes apart; 0: none */
    uint32_t lora;   /* adapter that it needs, with prefixes of its own; 0: none */
    bool skip_cache; /* never reads the prefix cache */
    uint8_t apart;   /* enum vt_apart */
    bool unsure;     /* VT_DECODE_ONLY: its pull waits for vt_engine_reached() */
    /* Leading prompt tokens whose KV another engine computed and sent along; fewer than
     * the prompt. Lost when it is preempted. Not with BLIS's rules. */
    uint32_t given_tokens;
    /* NULL, or what gives block j its key in place of segments, output_content and
     * salt, where the tokens themselves are known: equal keys mean equal tokens up to
     * the block's end. `parent` is the key of the block before, 0 at the first. Asked
     * once for each block, in order, when its tokens exist; `tokens` must outlive the
     * request. */
    uint64_t (*block_key)(void *tokens, uint32_t j, uint64_t parent);
    void *tokens;
};

/* VT_EINPUT if an engine with this configuration could never finish the request; the
 * message does not name it. */
int vt_request_check(const struct vt_engine_config *c, const struct vt_request *r,
                     struct vt_err *err) VT_MUST_CHECK;

/* ---- block hashes as vLLM publishes them ------------------------------- */

enum { VT_HASH_BYTES = 32 };

struct vt_mm_item { /* an image or the like in a prompt; borrowed */
    const char *id;
    uint32_t offset, length; /* of the tokens that it takes */
};

/* vLLM's hashes of a request's blocks, each of which holds those before it. */
struct vt_chain {             /* zero-initialise to start */
    const uint8_t *none_hash; /* borrowed, as all texts; NULL: hashes are not wanted */
    uint32_t vllm;            /* whose release's form of what is hashed: 26 is 0.26 */
    const char *lora, *lora_path, *salt; /* NULL: none */
    const struct vt_mm_item *mm;         /* by offset; they do not overlap */
    uint32_t n_mm;
    const char *embedded; /* stands for prompts that are not tokens; NULL: it is */
    uint8_t (*hash)[VT_HASH_BYTES]; /* heap */
    size_t n, cap;
};
/* The next block. All of a chain have as many tokens. */
int vt_chain_add(struct vt_chain *c, const uint32_t *token, uint32_t n_tokens,
                 struct vt_err *err) VT_MUST_CHECK;
void vt_chain_free(struct vt_chain *c); /* frees contents, not c */
/* Those of the items that lie at least partly in [first, end): from *from on. */
uint32_t vt_mm_within(const struct vt_mm_item *mm, uint32_t n, uint64_t first,
                      uint64_t end, uint32_t *from);
/* What vLLM's chains begin with. seed: PYTHONHASHSEED; NULL: what 0.29 and later take
 * without it. */
void vt_hash_none(const char *seed, uint8_t out[VT_HASH_BYTES]);
/* What events tell of a hash: its last 64 bits. */
uint64_t vt_hash_short(const uint8_t hash[VT_HASH_BYTES]);

/* ---- the scheduler ---------------------------------------------------- */

enum vt_finish {
    VT_RUNNING_ON,
    VT_STOPPED_EOS,
    VT_STOPPED_TOKEN,
    VT_LENGTH,
    VT_ABORTED,
    VT_FAILED /* its prompt's blocks did not come, and are not computed here */
};

enum vt_origin { VT_WAS_RUNNING, VT_NEW, VT_RESUMED };

struct vt_item { /* one request's part in a step */
    uint64_t tag;
    uint32_t slot;
    uint32_t tokens;   /* scheduled now, drafts included */
    uint32_t computed; /* tokens in its KV cache before the step */
    uint32_t known;    /* tokens it has to compute in all: prompt, or on recompute
                        * prompt and what it had produced */
    uint32_t prompt_tokens;
    uint32_t gen;   /* tells a reused slot from the request that was scheduled */
    uint16_t spec;  /* drafts among `tokens` */
    uint8_t origin; /* enum vt_origin */
    bool prefill;   /* computes more than the next token, or part of its prompt */
    bool samples;   /* the step ends with a token for it */
    bool churn;     /* it was admitted within a second after one with more than 4096
                     * tokens to compute; set where the model asks for it */
};

struct vt_kv_job { /* a transfer between GPU and host, good as its plan's moves are */
    uint64_t id, tag;
    const uint32_t *gpu, *cpu; /* blocks there, chunks here */
    uint32_t n_gpu, n_cpu;
    const uint32_t *per_group, *first; /* how many of the GPU's, from which place on */
    bool store;                        /* to the host */
};

/* What a step moves between the tiers: loads at once, stores when the next step
 * begins. Flushed jobs must be over before this step computes. Good until the next
 * vt_sched_update(). */
struct vt_kv_moves {
    const struct vt_kv_job *load, *store;
    uint32_t n_load, n_store;
    const uint64_t *flush; /* jobs */
    uint32_t n_flush;
    const uint32_t *evicted; /* chunks whose content was given up */
    uint32_t n_evicted;
    uint32_t no_room; /* stores for which there was none */
};

struct vt_host_state {    /* of the second tier */
    double used, written; /* shares of chunks that transfers hold, of them stores */
    uint64_t no_room;     /* stores in all for which there was none */
    /* Since it was last asked: lookups, chunks that were not met often enough to be
     * stored, and how many chunks each store asked for, good until it is asked again.
     */
    uint32_t lookups, skipped, n_asked;
    const uint32_t *asked;
};

struct vt_kv_moved { /* a job that is over */
    uint64_t id, tag;
    uint64_t bytes; /* on one GPU */
    uint32_t chunks;
    bool store;
    vt_ns asked_ns, given_ns, begun_ns, ended_ns; /* planned; handed over; its turn */
};

struct vt_kv_pull { /* of a prompt, from the engine that computed it */
    uint64_t tag;
    uint32_t blocks; /* 0: all were here; the other one need not keep them */
    bool unsure;     /* it waits until it is known that the other one is there */
};

struct vt_kv_pulled { /* a pull that is over */
    uint64_t tag;
    uint64_t bytes; /* on one GPU */
    uint32_t blocks;
    bool failed;
    vt_ns asked_ns, begun_ns, ended_ns; /* planned; handed over; all there */
};

/* One decision. Owned by the scheduler; good until the second next
 * vt_sched_schedule(), because two steps may be in flight. */
struct vt_step_plan {
    struct vt_item *item; /* in vLLM's order */
    uint32_t n;
    uint32_t n_decodes, n_prefills;
    uint32_t decode_tokens, prefill_tokens;
    uint64_t decode_ctx; /* sum of `computed` over the decoding requests */
    uint32_t waiting;    /* before scheduling */
    uint32_t running;    /* after scheduling */
    uint64_t *preempted; /* tags, in the order of preemption */
    uint32_t n_preempted;
    uint64_t *finished; /* tags of requests that ended since the last plan */
    uint32_t n_finished;
    double kv_usage;                 /* after scheduling */
    const struct vt_kv_moves *moves; /* NULL: there is no second tier */
    struct vt_kv_pull *pull;         /* that begin with the step */
    uint32_t n_pulls;
};

struct vt_row { /* output of one request in one step */
    uint64_t tag;
    vt_ns at; /* when it leaves; set by the engine, not by the scheduler */
    uint32_t slot;
    uint32_t first_index; /* of the new tokens among its output */
    uint32_t new_tokens;
    uint8_t finish; /* enum vt_finish */
    bool first;     /* carries its first token */
};

struct vt_first { /* prefill statistics of a request with its first output */
    uint64_t tag;
    uint32_t prompt_tokens, cached_tokens, cache_creation_tokens;
    uint32_t external_tokens; /* of those cached: from the host's memory, or pulled */
};

struct vt_cache_stats { /* since the last vt_sched_update(); in tokens */
    bool reset;
    uint64_t requests, queries, hits;
    uint64_t preempted_requests, preempted_queries, preempted_hits;
};

struct vt_update { /* owned by the scheduler, good until its next update */
    struct vt_row *row;
    uint32_t n_rows;
    struct vt_first *first;
    uint32_t n_first;
    struct vt_cache_stats cache;
    struct vt_cache_stats external; /* the same of what the GPU did not have */
    /* Prompt tokens of the requests in `first`, and those of them that were cached;
     * BLIS: blocks asked for by any request. */
    uint64_t looked_up, found;
    uint64_t found_outside; /* of these: in the host's memory, or pulled */
};

enum vt_pause { VT_RUN, VT_PAUSE_NEW, VT_PAUSE_ALL };

enum vt_kv_kind { VT_KV_STORED, VT_KV_REMOVED, VT_KV_CLEARED };
enum vt_medium { VT_MEDIUM_GPU, VT_MEDIUM_CPU };
struct vt_kv_event { /* of one block */
    /* Stands for the block's tokens and all before them. 0 (STORED): the block was not
     * kept, but its tokens are told with its neighbours'. */
    uint64_t key;
    uint64_t tag;   /* STORED: whose block */
    uint32_t index; /* STORED: of the block within the request's table */
    uint8_t group;
    uint8_t kind;   /* enum vt_kv_kind */
    uint8_t medium; /* enum vt_medium; CPU: of a chunk, whose last key it has, */
    bool bare;      /* and whose tokens are not told */
    bool joins;     /* vLLM tells it in one message with the event before */
    bool part;      /* STORED: the part of a block up to a prompt's end; it has the size
                     * of vt_hash_block_size(), and the index counts those */
};

struct vt_kv_message { /* what is told at once of blocks that were stored */
    uint32_t n_events; /* from the first one on */
    uint32_t n_kept; /* of these: with a key; of a chunk: hashes, from first_hash on */
    uint32_t first_hash;
    enum vt_medium medium;
    bool bare; /* of a chunk: only its last hash is told */
    uint32_t block_size, first_token, n_tokens;
    uint32_t units; /* a block's hash is the ((index + 1) * units - 1)th of the chain */
    const char *kind; /* of attention */
    uint32_t window;  /* 0: none */
};
/* Of e[0], which is STORED, and those of the n that join it. */
struct vt_kv_message vt_kv_message(const struct vt_engine_config *c,
                                   const struct vt_kv_event *e, uint32_t n);

struct vt_sched; /* opaque */

/* Copies *c, which must pass vt_engine_config_check(). The caller owns *out. */
int vt_sched_new(struct vt_sched **out, const struct vt_engine_config *c,
                 struct vt_err *err) VT_MUST_CHECK;
void vt_sched_free(struct vt_sched *s); /* NULL is fine */
/* From now on the rules of that release. False, and nothing happens, while a request is
 * there. */
bool vt_sched_follow(struct vt_sched *s, uint32_t vllm);

/* VT_EINPUT: the prompt is empty or longer than max-model-len. *slot names the request
 * until its row says it finished, or it is aborted. */
int vt_sched_add(struct vt_sched *s, const struct vt_request *r, uint32_t *slot,
                 struct vt_err *err) VT_MUST_CHECK;
void vt_sched_abort(struct vt_sched *s, uint32_t slot);
bool vt_sched_has_requests(const struct vt_sched *s);
/* The same without those that ended since the last plan, which is to tell of them. */
bool vt_sched_has_unfinished(const struct vt_sched *s);
/* throttle: hold back new prefills, as vLLM's DP balancing does. NULL: no memory. */
const struct vt_step_plan *vt_sched_schedule(struct vt_sched *s, bool throttle);
/* sampled[i]: tokens the model returned for item i; NULL: one where item.samples. */
const struct vt_update *vt_sched_update(struct vt_sched *s,
                                        const struct vt_step_plan *p,
                                        const uint32_t *sampled);
/* Jobs of earlier plans that are over; told of with the next vt_sched_update(). */
int vt_sched_moved(struct vt_sched *s, const uint64_t *jobs, uint32_t n,
                   struct vt_err *err) VT_MUST_CHECK;
/* A request's pull is over: its own, which may have failed, or, where it ended here as
 * a prefill, that of others. Told of with the next vt_sched_update(). */
int vt_sched_settled(struct vt_sched *s, uint64_t tag, bool failed,
                     struct vt_err *err) VT_MUST_CHECK;
/* Whether blocks of that request, which ended as a prefill, are kept. */
bool vt_sched_keeps(const struct vt_sched *s, uint64_t tag);
void vt_sched_pause(struct vt_sched *s, enum vt_pause p);
/* False, and nothing happens, while blocks are in use. With `preempt` running
 * requests give theirs back first; their tags follow in *tags (borrowed). */
bool vt_sched_reset_cache(struct vt_sched *s, bool preempt, const uint64_t **tags,
                          uint32_t *n);

/* Views for logs, statistics and tests. Borrowed until the next call that changes
 * the scheduler. */
const uint32_t *vt_sched_running(const struct vt_sched *s, uint32_t *n); /* slots */
/* Copies at most max slots in queue order; returns how many wait. By priority the
 * order is whole only if max is at least that. */
uint32_t vt_sched_waiting(const struct vt_sched *s, uint32_t *slots, uint32_t max);
/* no_room is the engine's. */
struct vt_host_state vt_sched_host(struct vt_sched *s);
/* How many of these, at the beginning, were put aside. */
uint32_t vt_sched_apart(const struct vt_sched *s);
/* Requests whose KV blocks come from elsewhere, another engine or the host's memory:
 * not begun, under way, here but not yet scheduled. */
struct vt_fetches {
    uint32_t waiting, pulling, pulled;
};
struct vt_fetches vt_sched_fetches(const struct vt_sched *s); /* O(requests) */
/* A group's table, in which block 0 is a place without memory. Of a row's slot it is
 * there after the end of a prefill whose blocks are kept. */
const uint32_t *vt_sched_blocks(const struct vt_sched *s, uint32_t slot, uint32_t group,
                                uint32_t *n);
uint32_t vt_sched_groups(const struct vt_sched *s);
uint32_t vt_sched_computed(const struct vt_sched *s, uint32_t slot); /* its tokens */
uint64_t vt_sched_tag(const struct vt_sched *s, uint32_t slot);
uint32_t vt_sched_free_blocks(const struct vt_sched *s);
double vt_sched_kv_usage(const struct vt_sched *s);
/* O(requests) */
uint32_t vt_sched_common_prefix_blocks(const struct vt_sched *s, uint32_t group);
const struct vt_kv_event *vt_sched_kv_events(const struct vt_sched *s, uint32_t *n);
void vt_sched_kv_events_clear(struct vt_sched *s);

/* ---- the latency model's face ----------------------------------------- */

struct vt_step_shape {
    const struct vt_step_plan *plan;
    uint64_t step;               /* number of the step; keys a model's noise */
    uint32_t max_num_seqs;       /* of the engine: load factors need it */
    uint32_t kv_blocks;          /* of the engine, that requests can have */
    uint32_t most_decode_tokens; /* when all of those decode, drafts included: graphs */
    uint64_t seed;
};

/* How one step passes through host and GPU, in microseconds. The host schedules,
 * launches, and takes up the next thing to do: it reads the result of the step before
 * only after this launch, however early that was ready. The GPU starts when it is free
 * and `lead` after scheduling; it computes for `gpu`, but a launch kernel by kernel
 * feeds it no faster than the host goes, so it ends no sooner than `tail` after the
 * launch. */
struct vt_step_cost {
    double sched_us;
    double lead_us;
    double launch_us;
    double tail_us;
    double gpu_us;
    double done_us; /* result available to result handed out */
    bool held;      /* the launch does not return before the GPU is done */
};

struct vt_placement { /* of one step on the time axis */
    double sched_end, host_free, ready;
};

/* Where a step lies that is scheduled at `at` while the GPU is busy until gpu_free. All
 * are in the caller's unit, which in() makes of microseconds. The one formula of the
 * pipeline: engines run by it, and fits replay logs by it. */
static inline struct vt_placement vt_step_place(const struct vt_step_cost *c, double at,
                                                double gpu_free,
                                                double (*in)(double us))
{
    struct vt_placement p = {.sched_end = at + in(c->sched_us)};
    double start = p.sched_end + in(c->lead_us), end;

    p.host_free = p.sched_end + in(c->launch_us);
    p.ready = p.host_free + in(c->tail_us);
    end = (start > gpu_free ? start : gpu_free) + in(c->gpu_us);
    if (end > p.ready)
        p.ready = end;
    if (c->held)
        p.host_free = p.ready;
    return p;
}

struct vt_latency; /* an opened model */

struct vt_latency_ops {
    const char *name;
    /* Pure: equal shapes give equal costs. *cost comes zeroed. */
    void (*step)(const struct vt_latency *m, const struct vt_step_shape *s,
                 struct vt_step_cost *cost);
    /* Arrival to schedulable. NULL: 0. */
    double (*arrival_us)(const struct vt_latency *m, uint32_t prompt_tokens);
    /* Extra delay of a request's whole output, drawn when its prefill ends: `uncached`
     * prompt tokens were computed, n_running requests ran. NULL: 0. */
    double (*first_token_us)(const struct vt_latency *m, const struct vt_step_shape *s,
                             uint64_t tag, uint32_t prompt_tokens, uint32_t uncached);
    void (*close)(struct vt_latency *m); /* NULL: free() */
};

/* The largest of what steps held: of a run, or of what a model was made from. */
struct vt_extent {
    uint32_t step_tokens; /* 0: not known, and so on */
    uint32_t running;
    uint64_t context; /* tokens, over all decoding requests of a step */
};
/* Makes *x hold the other as well. */
void vt_extent_join(struct vt_extent *x, const struct vt_extent *other);

struct vt_latency { /* head of every model's own struct */
    const struct vt_latency_ops *ops;
    double token_us; /* added to every output chunk and never caught up: BLIS's
                      * output-token processing */
    double post_us;  /* added once when a request ends */
    /* The way of a request into the queue, behind ops->arrival_us. One input thread
     * takes a request after the other: so long for each, and for 1,000 tokens of its
     * prompt. An engine at rest wakes up, and takes all that is ready by then. */
    double intake_us, intake_ktoken_us, wake_us;
    /* When there was nothing to schedule and the scheduler is not done with all
     * requests (it has to tell of those that ended), vLLM's loop sleeps for a
     * millisecond before it looks for new ones. */
    double nap_us;
    double end_us; /* added to a step's handling for each request that it ended */
    /* A closed-loop client's pause before its next request: a constant, a part for each
     * request in the step that ended the last one, and one for each that it ended
     * before. The first two vary: standard deviation of their logarithm. */
    double turnaround_us, turnaround_request_us, turnaround_next_us;
    double turnaround_noise;
    struct vt_extent known; /* beyond it the model extrapolates */
    bool serial;            /* one step at a time, whatever async_scheduling says */
    bool needs_churn;       /* wants vt_item.churn */
    /* A full step with more requests than any full one before needs more memory than
     * the engine has taken so far, and taking it waits for the GPU: the launch is held.
     */
    bool holds_new;
};

/* ---- the engine ------------------------------------------------------- */

struct vt_engine; /* opaque */

struct vt_step_offload {             /* what a step tells of the second tier */
    const struct vt_kv_moved *moved; /* jobs that are over */
    uint32_t n_moved;
    struct vt_host_state host;
};

struct vt_step_remote { /* and of prefills elsewhere */
    const struct vt_kv_pulled *pulled;
    uint32_t n_pulled;
    uint32_t expired;   /* prefills whose blocks nobody pulled in time */
    uint32_t told_late; /* of pulls whose prefill had been given up by then */
};

struct vt_step { /* one finished step; owned by the engine, good until its next call */
    uint64_t number;
    vt_ns sched_ns, sched_end_ns, out_ns, done_ns;
    const struct vt_step_plan *plan;
    const struct vt_row *row;
    uint32_t n_rows;
    const struct vt_first *first;
    uint32_t n_first;
    struct vt_cache_stats cache;           /* since the step before */
    struct vt_cache_stats external;        /* the same of what the GPU did not have */
    const struct vt_step_offload *offload; /* NULL: there is no second tier */
    const struct vt_step_remote *remote;   /* NULL: nothing is pulled */
    const uint32_t *sampled; /* tokens that came of item i; NULL: one each */
};

/* Copies *c. Borrows `model`, which must outlive the engine. The caller owns *out. */
int vt_engine_new(struct vt_engine **out, const struct vt_engine_config *c,
                  const struct vt_latency *model, struct vt_err *err) VT_MUST_CHECK;
void vt_engine_free(struct vt_engine *e); /* NULL is fine */

/* A request arrives; it must pass vt_request_check(). */
int vt_engine_add(struct vt_engine *e, vt_ns now, const struct vt_request *r,
                  struct vt_err *err) VT_MUST_CHECK;
/* VT_ECHECK: no such request is known any more. */
int vt_engine_abort(struct vt_engine *e, vt_ns now, uint64_t tag);
/* These two are VT_EINPUT by BLIS's rules, which know no such thing. */
/* A rank in lockstep pauses when all of them have been told to. VT_ECHECK: it can't go
 * on, because that has not happened yet. */
int vt_engine_pause(struct vt_engine *e, vt_ns now, enum vt_pause p);
/* As vt_sched_reset_cache(). VT_ECHECK: blocks are in use. */
int vt_engine_clear_cache(struct vt_engine *e, vt_ns now, bool preempt,
                          const uint64_t **tags, uint32_t *n);

/* Another engine has pulled the blocks of a prefill that ended here: they are free with
 * the next result. VT_ECHECK: none are kept (any more). */
int vt_engine_gave(struct vt_engine *e, vt_ns now, uint64_t tag);
/* Whether the engine that prefilled an `unsure` request is there: its pull begins, or
 * has failed. */
int vt_engine_reached(struct vt_engine *e, vt_ns now, uint64_t tag, bool there,
                      struct vt_err *err) VT_MUST_CHECK;
/* The same was told of one that is not kept any more. */
void vt_engine_told_late(struct vt_engine *e);
/* Another engine will pull them: they are kept for longer. VT_ECHECK as above. */
int vt_engine_renew(struct vt_engine *e, vt_ns now, uint64_t tag);

/* When to call vt_engine_step() next; VT_NEVER while there is nothing to do. */
vt_ns vt_engine_due(const struct vt_engine *e);

/* Does the one thing that is due at or before `now`: schedules a step, or takes the
 * result of the oldest one, which then is *done (otherwise NULL). Acts at its due
 * time however late the call, so that delays of a driver do not add up. (By BLIS's
 * rules the result comes when the step starts, with times that are yet to come.) */
int vt_engine_step(struct vt_engine *e, vt_ns now, const struct vt_step **done,
                   struct vt_err *err) VT_MUST_CHECK;

struct vt_sched *vt_engine_sched(struct vt_engine *e); /* NULL: by BLIS's rules */

/* ---- what a router asks ----------------------------------------------- */

struct vt_engine_state {
    uint32_t waiting, running; /* requests */
    double kv_usage;
};
struct vt_engine_state vt_engine_state(const struct vt_engine *e, vt_ns now);

struct vt_keys; /* opaque: makes keys of one prompt after the other */
/* block_size: vt_hash_block_size() of the engines. */
int vt_keys_new(struct vt_keys **out, uint32_t block_size,
                struct vt_err *err) VT_MUST_CHECK;
void vt_keys_free(struct vt_keys *k); /* NULL is fine */
/* The keys of a prompt's full blocks, as engines with that block size have them.
 * Borrowed until the next call. NULL: out of memory. */
const uint64_t *vt_keys_of(struct vt_keys *k, const struct vt_request *r, uint32_t *n);
/* Of several groups a router asks about one, which needs every token where one does:
 * how many keys a block of it spans. Only the last of these finds the block. */
uint32_t vt_engine_key_units(const struct vt_engine *e, uint32_t *group);
/* How many of these leading blocks the engine's cache holds. O(n). */
uint32_t vt_engine_cached_blocks(const struct vt_engine *e, const uint64_t *key,
                                 uint32_t n);
/* How many blocks of that group have that key. */
uint32_t vt_engine_blocks_of(const struct vt_engine *e, uint64_t key);
/* As vt_sched_kv_events() and vt_sched_kv_events_clear(). */
const struct vt_kv_event *vt_engine_kv_events(const struct vt_engine *e, uint32_t *n);
void vt_engine_kv_events_clear(struct vt_engine *e);

struct vt_engine_totals {
    uint64_t steps; /* that computed something */
    uint64_t preemptions;
    uint64_t cache_queries, cache_hits; /* prompt tokens (BLIS: blocks) */
    double kv_usage_peak;
    vt_ns last_ns; /* end of the last step */
    struct vt_offload_totals {
        uint64_t found; /* of cache_hits: in the host's memory */
        uint64_t loads, stores, load_bytes, store_bytes; /* of one GPU */
        uint64_t loaded_chunks, stored_chunks, evicted_chunks, no_room;
        vt_ns load_ns, store_ns; /* under way, added up */
    } offload;
    struct vt_remote_totals {
        uint64_t pulls, bytes, tokens; /* bytes: of one GPU */
        vt_ns ns;                      /* under way, added up */
        uint64_t gave, expired;        /* prefills whose blocks were pulled, or not */
        uint64_t failed;               /* pulls */
    } remote;
    struct vt_extent extent;
};
struct vt_engine_totals vt_engine_totals(const struct vt_engine *e);
void vt_offload_totals_add(struct vt_offload_totals *to,
                           const struct vt_offload_totals *t);

/* ---- ranks in lockstep ------------------------------------------------- */

/* The data-parallel engines of one mixture of experts: each pass through the model is
 * one of all of them, and takes as long as that of the slowest. One that has nothing
 * to compute makes a dummy pass, until none has: a wave ends. Then all rest until a
 * request comes.
 * Engines that were joined are driven as others are, always the one that is due first.
 * What one of them does may change when others are due: then vt_ranks_moves() has
 * another value than before. */
struct vt_ranks; /* opaque */
int vt_ranks_new(struct vt_ranks **out, uint32_t n, struct vt_err *err) VT_MUST_CHECK;
/* NULL is fine. Its engines may end before or after it, and do nothing in between. */
void vt_ranks_free(struct vt_ranks *r);
/* The engine, which is new and borrowed, becomes rank i. All must be there before one
 * is driven. VT_EINPUT: it goes by BLIS's rules. */
int vt_ranks_join(struct vt_ranks *r, uint32_t i, struct vt_engine *e,
                  struct vt_err *err) VT_MUST_CHECK;
uint64_t vt_ranks_moves(const struct vt_ranks *r);

struct vt_ranks_totals {
    uint64_t waves, passes; /* passes: those of all ranks together count as one */
    uint64_t dummies;       /* of each rank */
    vt_ns rank_ns;          /* from each pass to the next, of all ranks added up */
    vt_ns waited_ns;        /* of that: for others that came later or took longer */
};
struct vt_ranks_totals vt_ranks_totals(const struct vt_ranks *r);

#endif
