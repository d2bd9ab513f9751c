/* model.h - latency models behind core.h's vt_latency_ops, profiles, the registry. */
#ifndef VT_MODEL_H
#define VT_MODEL_H

#include "base/base.h"
#include "core/core.h"
#include "trace/trace.h"

/* A kind of model: how to open one from its parameters. To add one: write
 * latency_<name>.c with a struct like this, add a row to the table in registry.c,
 * and a case to tests/model/. */
struct vt_model_kind {
    const char *name;
    const char *help;    /* one line */
    const char *example; /* an inline spec that works */
    /* params is a map (messages about it say "line N: ..." where a line is known).
     * The caller ends *out with vt_latency_close(). */
    int (*open)(struct vt_latency **out, const struct vt_node *params,
                struct vt_err *err);
};

/* In the order of help and reports. Static. */
const struct vt_model_kind *const *vt_model_kinds(size_t *n);
const struct vt_model_kind *vt_model_find(const char *name); /* NULL: unknown */

/* "kind:key=value,key=v0,v1,v2": what follows --latency. */
int vt_model_open_inline(struct vt_latency **out, const char *text,
                         struct vt_err *err) VT_MUST_CHECK;
void vt_latency_close(struct vt_latency *m); /* NULL is fine */

/* What stands between clients and an engine, and adds to what clients see: a request's
 * way in, a step's message on its way out to where a recorder sits, and from there to
 * the clients. Microseconds. */
struct vt_front {
    const char *name;
    double in_us, in_ktoken_us; /* a request; 1,000 tokens of its prompt */
    /* Of in_us what others wait for: a thread reads requests and passes them on. 0:
     * nobody waits. */
    double read_us, pass_us;
    double tap_us, tap_row_us; /* a step's result to its message; each request in it */
    double out_us, out_row_us; /* that message to the client, likewise */
    /* A closed-loop client's pause; for each one that the same step let go before. */
    double client_us, next_us;
    double noise; /* standard deviation of the ways' logarithm */
};
extern const char *const vt_front_names[];              /* end with NULL */
const struct vt_front *vt_front_find(const char *name); /* NULL: unknown */
#define VT_DEFAULT_FRONT "python"                       /* which `vllm serve` starts */

/* Engine limits + latency model + provenance. */
struct vt_profile {
    struct vt_arena arena;
    const char *name, *description; /* description may be NULL */
    const char *forced;             /* why it is not to be trusted; NULL: it is */
    const struct vt_node *engine;   /* limits it states; NULL: none */
    const struct vt_node *root;     /* the whole file */
    struct vt_latency *model;       /* owned */
    struct vt_front frontend;       /* name NULL: it states none */
    /* Whose times the model's are; unstated: the engine's. Of a client's the frontend's
     * ways are part, and of the frontend only the client's pause is left, which the
     * model has, too: whoever simulates it by the engine's clock gets the same. */
    enum vt_clock clock;
};

/* Was it fitted on this very capture? Captures are known by the name of their file, up
 * to its first dot, and by their model and GPU where both sides state them. */
bool vt_profile_saw(const struct vt_profile *p, const char *path,
                    const struct vt_meta *meta);
/* A built-in name, or else a path. */
int vt_profile_open(struct vt_profile *p, const char *name_or_path,
                    struct vt_err *err) VT_MUST_CHECK;
/* The same from text in memory; name is for messages. */
int vt_profile_parse(struct vt_profile *p, const char *name, const char *text,
                     size_t len, struct vt_err *err) VT_MUST_CHECK;
void vt_profile_close(struct vt_profile *p);
/* The release of vLLM that it was measured with, or the nearest that is known; 0: not
 * stated. */
uint32_t vt_profile_release(const struct vt_profile *p);
/* Sets the limits that the profile states, and its release, and leaves the others. */
int vt_profile_limits(const struct vt_profile *p, struct vt_engine_config *c,
                      struct vt_err *err) VT_MUST_CHECK;
/* Takes over the limits and the release that a trace states. */
void vt_engine_config_take(struct vt_engine_config *c, const struct vt_meta *m);
/* Sets what the engine of a measured run was warmed for: as its trace says; else a
 * closed loop is a benchmark's, whose engine has computed little before, and anything
 * else may be of one that has served for long. */
void vt_engine_config_replay(struct vt_engine_config *c, const struct vt_workload *w);

/* All built-in profiles: those fitted for vtwin, then the rows of BLIS's table of
 * alpha/beta coefficients. Strings live in the arena. */
struct vt_profile_entry {
    const char *name, *description;
    bool blackbox;
};
int vt_profile_list(struct vt_arena *a, struct vt_profile_entry **out, size_t *n,
                    struct vt_err *err) VT_MUST_CHECK;
/* Adds a built-in profile's JSON to *text; *found is false if there is none. */
int vt_profile_text(const char *name, struct vt_buf *text, bool *found,
                    struct vt_err *err) VT_MUST_CHECK;

/* Files compiled in, sorted by name: profiles and constants (*.json), workloads
 * (*.yaml) and tables (*.csv, *.jsonl). */
const struct vt_builtin *vt_builtins(size_t *n);
const struct vt_builtin *vt_builtin_find(const char *name); /* NULL: none */
/* The tree of a JSON file that must be among them; messages name it. */
int vt_builtin_tree(struct vt_arena *a, const char *name, const struct vt_node **root,
                    struct vt_err *err) VT_MUST_CHECK;
/* Is it a profile, which a name without ".json" asks for? */
bool vt_builtin_is_profile(const struct vt_builtin *f);

/* ---- what is served: config.json -------------------------------------- */

/* Layers of one sort. */
struct vt_arch_layers {
    enum vt_attention type;
    uint32_t n;
    uint32_t window;
    /* Of a token's keys and values; MLA: one vector of k_dim. A state has none. */
    uint32_t kv_heads, k_dim, v_dim;
    /* Sparse attention: bytes of a token's key that its indexer looks at, in any number
     * format; and of k_dim what keeps 16 bits where the rest has 8. */
    uint32_t index_bytes, wide_dim;
};

/* What a Mamba-like layer keeps of all tokens before: the last rows that its
 * convolution looks at, and a matrix for each head. */
struct vt_arch_state {
    uint32_t rows;           /* of the convolution, */
    double width;            /* and how wide they are, */
    uint32_t groups;         /* without what belongs to groups of heads: */
    double group_width;      /* each of them is whole on a GPU */
    double elements;         /* of the matrices */
    double row_bytes, bytes; /* an element of a row, of a matrix */
    double params;           /* weights of such a layer, without feed-forward */
    bool checkpoints_all;    /* 0.26 and 0.27 would keep every block's state */
    bool saves_inside;       /* as vt_kv_layer's */
};

enum { VT_ARCH_SORTS = 8 };

/* A transformer's sizes, from the config.json that Hugging Face keeps beside its
 * weights. Vision towers are left out. */
struct vt_arch {
    char type[32];  /* model_type */
    char quant[24]; /* quant_method; "": none */
    uint32_t layers, hidden, heads, kv_heads, head_dim, vocab;
    uint32_t max_len;                     /* 0: not stated */
    uint32_t ffn;                         /* intermediate_size */
    uint32_t dense_ffn;                   /* of a layer without experts */
    uint32_t experts;                     /* of a layer; 0: a dense model */
    uint32_t experts_per_token;           /* 1 in a dense model */
    uint32_t expert_ffn, shared_ffn;      /* of one expert, of the shared ones */
    uint32_t moe_layers;                  /* layers with experts */
    uint32_t moe_interleave, first_dense; /* as the file states them; 0: not */
    uint32_t kv_lora_rank;                /* latent attention (MLA); 0: none */
    uint32_t q_lora_rank, rope_dim, nope_dim, v_dim; /* its other sizes */
    /* Sparse attention: an indexer's heads look at all tokens, and the others at so
     * many of them; 0: none. */
    uint32_t index_topk, index_heads, index_dim;
    bool tied;               /* input and output embeddings are one matrix */
    bool gated;              /* three matrices to a feed-forward layer, not two */
    bool gated_attention;    /* a gate as wide as the queries beside them */
    bool shared_stated;      /* shared_ffn is in the file, not known from its type */
    bool quant_experts_only; /* other matrices keep dtype_bytes */
    bool wider_window;       /* from 0.29 on vLLM counts a token more */
    double dtype_bytes;      /* activations and what is not quantised */
    double weight_bytes;     /* an element of a quantised matrix, */
    double scale_bytes;      /* and its share of the group's scale and zero */
    bool block_scales;       /* FP8 with a scale for each block of a matrix */
    double kv_bytes;         /* an element of the KV cache, as the file wants it */
    double rope_rows;     /* positions that rotary embeddings are tabled for, all tables
                           * together */
    uint32_t bare_layers; /* without feed-forward */
    /* By the order in which the first of each comes. Layers that use another's KV cache
     * are of none. */
    struct vt_arch_layers sort[VT_ARCH_SORTS];
    uint32_t n_sorts;
    struct vt_arch_state state; /* of those with a state */
    char puzzle[96]; /* why it is not known what its layers keep; "": it is */
};

/* A known name ("llama-3.1-8b-instruct", in any case, with or without organisation), or
 * else the path of a config.json or of a directory with one. "NAME (fp8)": quantised.
 * VT_EINPUT of what is neither names the nearest known ones. */
int vt_arch_load(struct vt_arch *a, const char *name_or_path,
                 struct vt_err *err) VT_MUST_CHECK;
/* Models known by name, in the order of profiles/model-shapes.jsonl: one call for each
 * name, until rc is not VT_OK. `name` is good for that call only. */
int vt_arch_each_known(int (*each)(void *user, const char *name,
                                   const struct vt_arch *a, struct vt_err *err),
                       void *user, struct vt_err *err) VT_MUST_CHECK;
bool vt_arch_is_known(const char *name);
int vt_arch_read(struct vt_arch *a, const struct vt_node *config,
                 struct vt_err *err) VT_MUST_CHECK;
double vt_arch_params(const struct vt_arch *a);
/* Elements of its matrices on each of tp GPUs, by what is done with them. */
struct vt_arch_elements {
    double plain;     /* embeddings, norms, routers: never quantised */
    double head;      /* of those: the output embedding */
    double attention; /* projections */
    double dense;     /* feed-forward without experts, and shared experts */
    double experts;
};
struct vt_arch_elements vt_arch_elements(const struct vt_arch *a, uint32_t tp);
/* Of dp data-parallel engines those that share its experts out: all of a mixture's;
 * 1: there is nothing to share. */
uint32_t vt_arch_ranks(const struct vt_arch *a, uint32_t dp);
/* Bytes of an element of projections and dense layers, of experts. */
double vt_arch_dense_bytes(const struct vt_arch *a);
double vt_arch_expert_bytes(const struct vt_arch *a);
double vt_arch_active_params(const struct vt_arch *a); /* that one token meets */
/* Which CUDA graphs are made for it. */
enum { VT_MOST_GRAPHS = 512 };
struct vt_graphs {
    bool none;     /* --enforce-eager */
    uint32_t most; /* tokens of the largest; 0: as vLLM decides */
    /* A step is padded to the next of these; n 0: 1, 2, 4, then every 8th, from 256 on
     * every 16th. */
    uint32_t n, size[VT_MOST_GRAPHS]; /* rising */
};
/* Sorts sizes as they were given, and drops those that are there twice. VT_EINPUT:
 * `most` is another than the largest. */
int vt_graphs_settle(struct vt_graphs *g, struct vt_err *err) VT_MUST_CHECK;
/* How many of them steps of up to `tokens` find; graphs NULL: vLLM's. */
uint32_t vt_graphs_up_to(const struct vt_graphs *g, uint32_t tokens);
/* Tokens of the largest CUDA graph that vLLM would make if nothing else limits it. */
double vt_arch_graph_limit(const struct vt_arch *a);
struct vt_gpu;
/* Tokens of the largest graph that vLLM makes on it, unless it is told otherwise. */
double vt_gpu_graph_limit(const struct vt_gpu *gpu, uint32_t vllm);
/* An EAGLE-3 head for it: one dense layer and a small vocabulary, not quantised. */
struct vt_arch vt_arch_eagle3(const struct vt_arch *a);
/* The same layers in the same number formats: what is measured of one holds for the
 * other. */
bool vt_arch_same(const struct vt_arch *a, const struct vt_arch *b);
/* Of one family: the same architecture, whatever its sizes and formats. */
bool vt_arch_related(const struct vt_arch *a, const struct vt_arch *b);
/* As vLLM's --quantization and --dtype change it; NULL or "auto": not at all.
 * VT_EINPUT: vLLM would not load it so. */
int vt_arch_quantize(struct vt_arch *a, const char *method,
                     struct vt_err *err) VT_MUST_CHECK;
int vt_arch_set_dtype(struct vt_arch *a, const char *dtype,
                      struct vt_err *err) VT_MUST_CHECK;
/* VT_EINPUT: the heads can't be shared out among so many GPUs. */
int vt_arch_check_tp(const struct vt_arch *a, uint32_t tp,
                     struct vt_err *err) VT_MUST_CHECK;
/* On each of tp GPUs: the weights; the KV cache of a token with elements so large. */
double vt_arch_weight_bytes(const struct vt_arch *a, uint32_t tp);
double vt_arch_kv_bytes(const struct vt_arch *a, uint32_t tp, double element_bytes);
/* Bytes of an element of the KV cache: those that are stated, or, 0, the file's. */
double vt_arch_kv_element(const struct vt_arch *a, double stated);
/* By vLLM's name of it: "fp8_e4m3"; 0: NULL, "auto", as the model's file wants it. */
double vt_kv_dtype_bytes(const char *dtype);
/* Of activations, and of weights that are not quantised, once they are loaded. */
double vt_arch_plain_bytes(const struct vt_arch *a);
/* Layers that keep a state in place of keys and values; what they keep of one request
 * on each of tp GPUs. */
uint32_t vt_arch_state_layers(const struct vt_arch *a);
double vt_arch_state_bytes(const struct vt_arch *a, uint32_t tp);
/* How attention reads that cache. */
struct vt_arch_reads {
    uint32_t kv_heads;   /* that a GPU's layers share their reading by */
    uint32_t window;     /* of sliding attention, tokens; 0: none */
    double window_share; /* of a token's bytes, in layers with it */
};
struct vt_arch_reads vt_arch_reads(const struct vt_arch *a, uint32_t tp);
/* What the layers keep on each of tp GPUs, as a release of vLLM reads it; room for
 * VT_ARCH_SORTS. VT_EINPUT: it is not known. */
int vt_arch_kv_layers(const struct vt_arch *a, uint32_t tp, double element_bytes,
                      uint32_t vllm, struct vt_kv_layer *layer, uint32_t *n,
                      struct vt_err *err) VT_MUST_CHECK;

/* ---- what it runs on -------------------------------------------------- */

struct vt_gpu {
    char name[32];
    double memory_gb;               /* on the data sheet */
    double usable_gib;              /* as the driver reports it to an empty process */
    double blis_gib;                /* as BLIS counts it */
    double bandwidth_tbs;           /* of its memory */
    double fp16_tflops, fp8_tflops; /* dense peaks; fp8 0: none */
    double link_gbs;                /* to its peers, both ways together; 0: PCIe */
    double mfu_prefill, mfu_decode; /* share of the peak that BLIS's roofline takes */
    double int8_tflops, fp4_tflops; /* dense peaks; fp4 0: none */
    double pcie_gbs;                /* both ways together */
    uint32_t link_gpus;             /* so many are joined by the link; 0: none are */
    uint32_t capability;            /* CUDA's, 90 is 9.0: who shares it runs the same
                                     * kernels; 0: not known, or no CUDA */
};

/* By name or a common alias, in any case. hw_file: NULL, or a JSON object of GPUs by
 * name as BLIS's hardware_config.json, which overrides and adds. */
int vt_gpu_find(struct vt_gpu *g, const char *name, const char *hw_file,
                struct vt_err *err) VT_MUST_CHECK;
/* It has no less than the other of what data sheets name. */
bool vt_gpu_dominates(const struct vt_gpu *g, const struct vt_gpu *other);
/* The built-in ones, one after the other: start with *at = 0. */
bool vt_gpu_next(size_t *at, struct vt_gpu *out);
/* Whether the GPU multiplies projections and dense layers in 8 bits. */
bool vt_arch_fp8_kernels(const struct vt_arch *a, const struct vt_gpu *gpu);
/* What `vllm serve` takes for max_num_seqs and max_num_batched_tokens on such a GPU,
 * by c's release. */
void vt_gpu_limits(const struct vt_gpu *g, struct vt_engine_config *c);

/* ---- how its layers share the KV cache --------------------------------- */

enum vt_hybrid { VT_HYBRID_AUTO, VT_HYBRID_ON, VT_HYBRID_OFF };
enum vt_mamba_wish {
    VT_MAMBA_AUTO,
    VT_MAMBA_ASK_NONE,
    VT_MAMBA_ASK_ALIGN,
    VT_MAMBA_ASK_ALL
};

/* What decides it beside the engine's settings. All zero but arch: as vLLM does. */
struct vt_kv_wish {
    const struct vt_arch *arch;
    const struct vt_arch *draft; /* a draft model's, whose layers come along; or NULL */
    uint32_t tp, pp;             /* 0: 1 */
    double element_bytes;        /* of the cache; 0: as the model's file wants it */
    enum vt_hybrid hybrid;       /* --disable-hybrid-kv-cache-manager: OFF */
    enum vt_mamba_wish mamba;    /* --mamba-cache-mode */
    bool caching_stated;         /* enable_prefix_caching is not just the standard */
};

/* Puts the groups into *c, for its release, block_size and max_model_len, and what a
 * model with states changes of other settings. A model whose layers all keep every
 * token has none: n_kv_groups is 0. *block_bytes: of one block, on each GPU. VT_EINPUT:
 * vLLM would not start so, or it is not known what it would do. */
int vt_kv_groups(struct vt_engine_config *c, const struct vt_kv_wish *w,
                 uint64_t *block_bytes, struct vt_err *err) VT_MUST_CHECK;

/* Groups that a profile states, of a model that nobody knows, for blocks of
 * c->block_size: all grow or shrink alike. VT_EINPUT: they can't, or one holds
 * states. */
int vt_kv_groups_resize(struct vt_engine_config *c, struct vt_err *err) VT_MUST_CHECK;

/* ---- the host's share of it (offload.c) --------------------------------- */

/* Sizes c->offload, where it is asked for, and says how fast its link is, where that is
 * not stated. gpu NULL: one on PCIe 5. block_bytes: as vt_kv_groups() has it; 0: not
 * known yet, so that it stays without a size, which no engine starts with. layers: of
 * the model; 0: not known. gpus: of an engine. VT_EINPUT: not a chunk fits. */
int vt_offload_settle(struct vt_engine_config *c, const struct vt_gpu *gpu,
                      uint64_t block_bytes, uint32_t layers, uint32_t gpus,
                      struct vt_err *err) VT_MUST_CHECK;

/* GB/s of 1e9 bytes from one GPU to another's: over the network of nodes as they are
 * built with it (NULL: not known), or over its NVLink; 0: it has none. */
double vt_remote_gbs(const struct vt_gpu *gpu, bool nvlink);

/* ---- how much KV cache that leaves ------------------------------------ */

struct vt_kv_query {
    struct vt_kv_wish kv;
    const struct vt_gpu *gpu;
    uint32_t dp; /* ranks that share a mixture's experts out */
    double gpu_memory_utilization;
    const struct vt_graphs *graphs; /* NULL: as vLLM decides */
    double sampler_bytes;           /* for each logit while sampling; 0: as vLLM 0.26 */
    enum vt_compat compat;          /* whose accounting */
    struct vt_engine_config engine;
};

/* One GPU's memory in GiB (BLIS: all GPUs of an instance). */
struct vt_kv_capacity {
    double total, budget;
    double weights, activations, context, graphs; /* taken from the budget */
    double graphs_outside;                        /* captured beside it */
    double cache;
    double token_bytes; /* of all layers together, on each GPU */
    uint64_t block_bytes;
    uint64_t tokens;
    struct vt_engine_config engine; /* the query's, with groups and num_gpu_blocks */
};

void vt_kv_query_init(struct vt_kv_query *q); /* one GPU, 0.9, 256 requests */
/* VT_EINPUT: it does not fit, with what would make it fit, or can't be shared out. */
int vt_kv_capacity(const struct vt_kv_query *q, struct vt_kv_capacity *out,
                   struct vt_err *err) VT_MUST_CHECK;
/* Adds which changes of the query, one at a time, would hold a request of so many
 * tokens: "--tensor-parallel-size 2 or --kv-cache-dtype fp8". Nothing: none would. */
enum { VT_KV_ADVICE = 160 };
void vt_kv_advice(char out[VT_KV_ADVICE], const struct vt_kv_query *q, uint32_t tokens);

/* ---- terms of regressions ----------------------------------------------- */

/* What latencies are regressed on: of a step, of a request when it is queued, of the
 * engine (its model and its GPUs; these do not change). Names are those of
 * docs/otlp.md.
 */
enum vt_feature_id {
    VT_F_NUM_PREFILL,
    VT_F_NUM_DECODE,
    VT_F_PREFILL_TOKENS,
    VT_F_DECODE_TOKENS,
    VT_F_SCHEDULED_TOKENS,
    VT_F_PREFILL_RATIO, /* prefill over decode tokens */
    VT_F_DECODE_CONTEXT,
    VT_F_PREFILL_CONTEXT, /* tokens times what is before them, summed over prompts */
    VT_F_KV_BLOCKS,       /* in use */
    VT_F_KV_RATIO,
    VT_F_RUNNING_DEPTH,
    VT_F_QUEUE_DEPTH,
    VT_F_PROMPT_TOKENS,
    VT_F_PREFIX_HIT_RATIO,
    VT_F_SINCE_SCHED_MS, /* since the scheduler was called last */
    VT_F_BATCH_FULLNESS, /* running requests over the most that may run */
    VT_F_MODEL_SIZE,
    VT_F_SIZE_PROXY, /* hidden size times layers */
    VT_F_LAYERS,
    VT_F_IS_MOE,
    VT_F_EXPERT_SHARE,  /* of the experts, that a token meets */
    VT_F_KV_HEAD_RATIO, /* KV heads over heads: 1 is MHA */
    VT_F_KV_BYTES,
    VT_F_TP,
    VT_F_COMPUTE_TO_BANDWIDTH,
    VT_F_MEMORY_GB,
    VT_F_RELATIVE_FACTOR, /* memory bandwidth over an H100's */
    /* What the GPU's peaks allow: reading the weights that a token meets, the
     * arithmetic of a token, reading a token of KV cache. Times these, coefficients
     * hold for other models and GPUs, too. */
    VT_F_WEIGHTS_US,
    VT_F_TOKEN_US,
    VT_F_CONTEXT_US,
    VT_FEATURES
};
enum { VT_OF_STEP = 1, VT_OF_REQUEST = 2, VT_OF_ENGINE = 4 };
extern const struct vt_feature {
    const char *name, *unit;
    unsigned of;
} vt_features[VT_FEATURES];

struct vt_step_batch { /* what a step held */
    uint32_t prefills, decodes, prefill_tokens, decode_tokens, running;
    uint32_t waiting; /* before scheduling */
    double decode_context, prefill_context, kv_blocks, kv_ratio;
};
/* Each sets its own features and leaves the others. Of an engine arch and gpu may be
 * NULL: not known. */
void vt_features_of_step(double v[VT_FEATURES], const struct vt_step_batch *s);
void vt_features_of_engine(double v[VT_FEATURES], const struct vt_arch *a,
                           const struct vt_gpu *g, uint32_t tp);

enum { VT_TERM_FACTORS = 4, VT_TERM_POWER = 8, VT_TERMS = 48, VT_TERM_NAME = 128 };
struct vt_term { /* a product; without factors: 1 */
    uint8_t n;
    struct {
        uint8_t feature, power;
    } factor[VT_TERM_FACTORS];
};
/* "prefill_tokens", "num_decode^2", "decode_tokens*kv_blocks". */
int vt_term_parse(struct vt_term *t, const char *text, size_t len,
                  struct vt_err *err) VT_MUST_CHECK;
void vt_term_name(char out[VT_TERM_NAME], const struct vt_term *t);
unsigned vt_term_of(const struct vt_term *t); /* what it is known of */
double vt_term_value(const struct vt_term *t, const double v[VT_FEATURES]);

struct vt_terms { /* their sum */
    double intercept;
    struct vt_term term[VT_TERMS];
    double coefficient[VT_TERMS];
    size_t n;
};
double vt_terms_value(const struct vt_terms *s, const double v[VT_FEATURES]);

/* ---- the step model's insides, for `fit` ------------------------------ */

/* What is fitted and what is predicted go through the same two functions, so that they
 * can't drift apart. */
enum {
    VT_STEP_GRAPH_KNOTS = 10,
    VT_STEP_MIXED_KNOTS = 9,
    VT_STEP_EAGER_KNOTS = 9,
    VT_STEP_CONTEXT_KNOTS = 9,
};
/* Tokens of the largest graph that vLLM makes if no model asks for more. */
#define VT_STEP_GRAPH_LIMIT 512.0
enum vt_step_mode { VT_STEP_GRAPH, VT_STEP_MIXED, VT_STEP_EAGER };

/* Sizes at which a mode's factors stand; *n: how many. Static. */
const double *vt_step_knots(enum vt_step_mode mode, size_t *n);
/* How much longer than its bytes the KV cache takes to read, by the tiles of work that
 * decoding requests and KV heads make: what few of them leave over of a GPU's
 * processors is idle. FlashAttention 3 on an H200, five models. */
enum { VT_TILES = 9 };
extern const double vt_tiles[VT_TILES], vt_tile_factors[VT_TILES];
/* Numbers of decoding requests at which context_factor stands. */
extern const double vt_step_context_knots[VT_STEP_CONTEXT_KNOTS];

/* Named as in profiles. Microseconds where nothing else is said; docs/model.md says
 * what each is. */
struct vt_step_params {
    double graph_limit, graph_stated;    /* tokens; 1: by the user */
    uint32_t n_graph_sizes;              /* 0: vLLM's own list */
    uint32_t graph_size[VT_MOST_GRAPHS]; /* rising, up to graph_limit */
    double experts, experts_per_token;   /* numbers of them */
    double expert_spread;                /* share of them in use */
    double window;                       /* tokens */
    double window_share;                 /* of the KV cache's bytes */
    double depth_share;        /* of prompts' look back, within it; 0: as the bytes */
    double base, mixed, eager; /* a step */
    double expert;             /* all of them */
    double context_ktoken;     /* 1,000 tokens of context */
    double graph_token, mixed_token, eager_token; /* a token */
    double row, prefill;                          /* a request, a prompt */
    double fill_row;     /* a row missing to a full tile of FP8 kernels */
    double depth_mtoken; /* 1,000,000 products of a prompt's token and its depth */
    double graph_factor[VT_STEP_GRAPH_KNOTS];
    double mixed_factor[VT_STEP_MIXED_KNOTS];
    double eager_factor[VT_STEP_EAGER_KNOTS];
    double context_factor[VT_STEP_CONTEXT_KNOTS];
    double host_arrive, host_intake, host_intake_ktoken, host_wake, host_nap;
    double host_sched, host_sched_request, host_lead;
    double host_launch_graph, host_launch_mixed, host_launch_eager, host_launch_request;
    double host_tail;
    /* Transfers to and from the host's memory, for each and for each of its blocks: a
     * fit's, for struct vt_offload; no part of the model. */
    double host_move, host_move_block;
    double host_done, host_done_request, host_done_end;
    double host_turnaround, host_turnaround_request, host_turnaround_next;
    double turnaround_noise; /* of the first two's logarithm */
    double launch_noise;     /* of the launches' logarithm */
    double seen_step_tokens, seen_running, seen_context_ktokens; /* as they are named */
};

struct vt_step_place { /* between a knot and the next */
    uint32_t knot;
    double share; /* that far */
};

struct vt_step_features { /* of one step */
    enum vt_step_mode mode;
    struct vt_step_place size, decoding;
    double tokens, missing;    /* the latter: rows to the end of the last tile */
    double context_k, depth_m; /* what attention reads, windows considered */
    double prefills, prompt_tokens, running, requests;
};

/* Where `at` lies among n rising knots, the ends included. */
struct vt_step_place vt_knots_place(const double *knot, size_t n, double at);
double vt_knots_between(const double *value, struct vt_step_place at);
/* The share of all experts that so many tokens touch, if they are sent evenly to
 * `spread` of them; 0: there are none. */
double vt_experts_touched(double experts, double per_token, double spread,
                          double tokens);

void vt_step_params_init(struct vt_step_params *p); /* no cost at all, factors of 1 */
/* Sets those that the map states and leaves the others. */
int vt_step_params_read(struct vt_step_params *p, const struct vt_node *node,
                        struct vt_err *err) VT_MUST_CHECK;
int vt_step_open(struct vt_latency **out, const struct vt_step_params *p,
                 struct vt_err *err) VT_MUST_CHECK;

/* most_decode_tokens: as vt_step_shape's. */
void vt_step_features(const struct vt_step_params *p, const struct vt_step_plan *plan,
                      uint32_t most_decode_tokens, struct vt_step_features *f);
void vt_step_cost(const struct vt_step_params *p, const struct vt_step_features *f,
                  struct vt_step_cost *cost);
/* GPU time at a mode's knots in full tiles, without context or factors; returns how
 * many there are. */
size_t vt_step_knot_costs(const struct vt_step_params *p, enum vt_step_mode mode,
                          double *cost);
/* Changes factors so that more work never takes less time. */
void vt_step_make_monotone(struct vt_step_params *p);
/* As the members of a JSON object, one on a line. What was fitted has no more than four
 * digits behind the point that mean something; what is computed is to be read back as
 * it was. */
enum vt_step_digits { VT_STEP_FITTED, VT_STEP_EXACT };
void vt_step_params_write(struct vt_buf *b, const struct vt_step_params *p,
                          const char *indent, enum vt_step_digits digits);

/* ---- engines that nobody measured -------------------------------------- */

/* How long a step takes by a model's sizes and a GPU's data sheet: a law with constants
 * that all models share, learned from captures of other models (vt_law_learn() in fit).
 * Shares are of the data sheet's peak, times are microseconds on an H200 and its
 * host. */
struct vt_law {
    double bw, bw8;         /* of bandwidth: weights of 16, 8 bits */
    double mfu, mfu8;       /* of arithmetic: 16, 8 bits */
    double half8;           /* tokens that reach half of the latter */
    double fill8;           /* a row missing to a full tile, over one that is there */
    double kv_bw, kv_bw8;   /* of bandwidth: the KV cache of 16, 8 bits */
    double attention_mfu;   /* of arithmetic: prompts' attention */
    double moe_bw, moe_mfu; /* of experts */
    double moe_narrow;      /* width of an expert that reaches half of it */
    double mx_bw, mx_mfu;   /* of MXFP4's */
    double moe_pad;         /* tokens that each expert in use is filled up to */
    double smooth;          /* how sharp the edge of memory and arithmetic is */
    double activations;     /* times that a token's activations are read or written */
    double logits;          /* likewise its logits */
    double step, layer;     /* fixed */
    double norm_layer;      /* for each norm of queries and keys, or after a block */
    double quant_layer, mla_layer; /* where there is such a thing */
    double moe_layer; /* over what the GPU's kernels of experts take: vt_gpu_reach */
    double mixed_layer, eager_layer; /* in such a step */
    double prompt_layer;             /* for each prompt */
    double row_head;                 /* a request, KV head and layer */
    double draft;                    /* a draft model's pass */
    double context_factor[VT_TILES]; /* at vt_tiles */
    double graph_factor[VT_STEP_GRAPH_KNOTS];
    double mixed_factor[VT_STEP_MIXED_KNOTS];
    double eager_factor[VT_STEP_EAGER_KNOTS];
    /* The host's; those without a word are vt_step_params' of the same name. */
    double launch_graph, launch_mixed, launch_mixed_layer;
    double launch_eager, launch_eager_layer;   /* a step, a layer of it, */
    double launch_eager_moe, launch_eager_mla; /* and more where it has such a thing */
    double launch_request, tail, lead;
    double arrive, intake, intake_ktoken, wake, nap;
    double sched, sched_request, sched_window_request; /* the last: with windows */
    double done, done_request, done_end;
    double turnaround, turnaround_request, turnaround_next;
    double turnaround_noise, launch_noise;
};

/* A constant by its name. */
struct vt_law_term {
    const char *name;
    size_t offset;
    uint32_t n;   /* of a list; 1: a number */
    double start; /* what to expect of it, */
    double pull;  /* and how strongly; 0: it is read off, not solved for */
};
const struct vt_law_term *vt_law_terms(size_t *n);
void vt_law_init(struct vt_law *law); /* as expected */

/* What another GPU's kernels reach of its data sheet, over what an H200's reach of its
 * own (gpus.json: tools/learn_gpus). */
struct vt_gpu_reach {
    double bw, bw8, mfu16, mfu8;      /* weights: bandwidth, arithmetic */
    double int4_own_bw, int4_own_mfu; /* of 4 bits, over its own 16-bit ones */
    double kv_bw, kv_bw8, attn_mfu;   /* attention */
    double mla_bw, mla_mfu;           /* latent attention */
    double moe_bw, moe_mfu16, moe_bw8, moe_mfu8; /* experts */
    double mx_bw, mx_mfu, mx8_bw, mx8_mfu;       /* of MXFP4: with 16 bits, with 8 */
    /* What a layer's experts take however little they do, us. */
    double moe_us, moe8_us, mx_us, mx8_us;
    double share_nvfp4_bw, share_nvfp4_mfu; /* of the peaks themselves; 0: no FP4 */
    double layer;                           /* time of kernels with nothing to do */
    /* All-reduces of 2, 4, 8 GPUs: a short one's microseconds within graphs and
     * without, GB/s of long ones. */
    double allreduce_us[3], allreduce_eager_us[3], allreduce_gbs[3];
    bool measured; /* false: taken over from a relative, or nothing is known: all 1 */
};
int vt_gpu_reach(struct vt_gpu_reach *r, const char *gpu,
                 struct vt_err *err) VT_MUST_CHECK;

/* What of an engine decides. */
struct vt_estimate_query {
    const struct vt_arch *arch;
    const struct vt_arch *draft; /* NULL: none, or drafts without a model */
    uint32_t drafts;             /* passes of it in a step */
    const struct vt_gpu *gpu;
    uint32_t tp, pp, dp; /* 0: 1 */
    /* A mixture's experts are shared out over all tp x dp GPUs: whole ones, or a part
     * of each. */
    bool expert_parallel;
    const struct vt_graphs *graphs; /* NULL: as vLLM decides */
    uint32_t budget;      /* tokens of a step: no larger graph is made; 0: any */
    uint32_t most_decode; /* tokens, of requests that decode; 0: not known */
    uint32_t vllm;        /* as vt_engine_config's; 0: not known */
    double kv_bytes;      /* of an element; 0: as the model's file wants it */
    double host_speed;    /* of the hosts that the law was learned on; 0: 1 */
};

/* The step model that the law gives. reach: the GPU's. */
void vt_law_params(const struct vt_law *law, const struct vt_gpu_reach *reach,
                   const struct vt_estimate_query *q, struct vt_step_params *out);
/* One pass of q->draft, whatever the step holds. */
double vt_law_draft_us(const struct vt_law *law, const struct vt_gpu_reach *reach,
                       const struct vt_estimate_query *q);
/* A step model that was measured `there`, for what runs `here`: the law says what both
 * take, and only their ratio counts. */
void vt_step_transfer(const struct vt_step_params *measured,
                      const struct vt_step_params *there,
                      const struct vt_step_params *here, struct vt_step_params *out);
/* The constants that are built in (estimate.json: tools/learn_estimate). */
int vt_law_load(struct vt_law *law, struct vt_err *err) VT_MUST_CHECK;
/* The constants as the members of a JSON object, one on a line. */
void vt_law_write(struct vt_buf *b, const struct vt_law *law, const char *indent);

/* How far a number may be off, in percent: four of five are nearer. */
enum vt_trust {
    VT_TRUST_E2E,
    VT_TRUST_TTFT,
    VT_TRUST_TTFT_P99,
    VT_TRUST_ITL,
    VT_TRUST_ITL_P99,
    VT_TRUST_THROUGHPUT,
    VT_TRUSTS
};
extern const char *const vt_trust_names[VT_TRUSTS]; /* as in profiles */

enum { VT_MOST_OUTSIDE = 12 };
struct vt_estimate {
    struct vt_step_params params;
    char from[512];             /* the profile that it starts from; "": none */
    const char *class;          /* whose errors it is expected to have; static; NULL:
                                 * nobody judged such, and nothing is expected */
    double expected[VT_TRUSTS]; /* percent */
    /* What of it leaves what was measured, a sentence each. */
    char outside[VT_MOST_OUTSIDE][120];
    size_t n_outside;
};
/* By the constants that are built in. VT_EINPUT:
 * the model can't be shared out so, or the law does not know its kind. */
int vt_estimate(struct vt_estimate *out, const struct vt_estimate_query *q,
                struct vt_err *err) VT_MUST_CHECK;

/* GPU time of one pass of an EAGLE-3 head that drafts for the model, by the same law.
 */
int vt_estimate_draft(double *us, const struct vt_estimate_query *q,
                      struct vt_err *err) VT_MUST_CHECK;

/* A fitted step model, and what it was measured on. */
struct vt_source {
    char name[512]; /* of its profile, as vt_profile_open() takes it */
    struct vt_arch arch;
    struct vt_gpu gpu;
    uint32_t tp;
    double kv_bytes; /* of an element; 0: as the model's file wants it */
    struct vt_step_params params;
};
/* What the profile does not say, or says by a name that is not known, is as asked for
 * (NULL: is not known). VT_EINPUT: it has no step model, or it is not known of what. */
int vt_source_of(struct vt_source *s, const struct vt_profile *p,
                 const struct vt_estimate_query *asked,
                 struct vt_err *err) VT_MUST_CHECK;
struct vt_estimate_query vt_source_query(const struct vt_source *s); /* borrows *s */
/* Whether it was measured just so. */
bool vt_source_holds(const struct vt_source *s, const struct vt_estimate_query *q);
/* An estimate from what was measured, of the same model or a relative: the law says
 * only by how much they differ. */
int vt_estimate_from(struct vt_estimate *out, const struct vt_source *s,
                     const struct vt_estimate_query *q,
                     struct vt_err *err) VT_MUST_CHECK;
/* That, or the law's own, whichever was found to be off by less. */
int vt_source_best(struct vt_estimate *e, const struct vt_source *s,
                   const struct vt_estimate_query *q, struct vt_err *err) VT_MUST_CHECK;

/* Medians of errors' sizes, in percent, that a kind of latency model was found to have
 * (errors.json: bench/accuracy --zero-shot). Strings are static. */
enum { VT_MOST_KIND_ERRORS = 16 };
struct vt_kind_error {
    const char *kind; /* as vt_model_kind's name */
    const char *what; /* of which models, by which way to its numbers */
    double median[VT_TRUSTS];
};
int vt_kind_errors(struct vt_kind_error row[VT_MOST_KIND_ERRORS], size_t *n,
                   struct vt_err *err) VT_MUST_CHECK;
/* Of the models that the law was learned from, each by a law of the others: the one of
 * a class ("dense", "mixture") whose error of that metric is largest. */
struct vt_worst_model {
    char name[64];
    double median; /* of its captures' sizes, in percent */
};
int vt_worst_estimate(struct vt_worst_model *out, const char *class,
                      enum vt_trust metric, struct vt_err *err) VT_MUST_CHECK;

/* ---- how far times are to be trusted ----------------------------------- */

enum vt_basis_kind { VT_BASIS_UNKNOWN, VT_MEASURED, VT_TRANSFERRED, VT_ESTIMATED };
extern const char *const
    vt_basis_names[]; /* in that order, from "auto" on; NULL ends */

/* Where the times of an engine's steps come from. */
struct vt_basis {
    enum vt_basis_kind kind;
    char from[512]; /* of what is transferred: the profile that it starts from */
    bool has_expected;
    double expected[VT_TRUSTS]; /* percent; four of five are nearer; NAN: not known */
    char outside[VT_MOST_OUTSIDE][120];
    size_t n_outside;
    bool in_sample; /* what it is held against is what it was fitted on */
};
/* What a profile says; `fit` and `learn` write what their left-out loads amount to. */
int vt_basis_of_profile(struct vt_basis *b, const struct vt_profile *p,
                        struct vt_err *err) VT_MUST_CHECK;
void vt_basis_of_estimate(struct vt_basis *b, const struct vt_estimate *e);
/* Members "basis" and "expected_error_pct"; none where nothing is known. */
void vt_basis_members(struct vt_jw *w, const struct vt_basis *b);
/* "measured; within E2E 6 %, ..." */
void vt_basis_about(struct vt_buf *text, const struct vt_basis *b);
/* Lines for people. */
void vt_basis_table(struct vt_buf *text, const struct vt_basis *b);

/* What an engine is timed by. */
struct vt_choice {
    enum vt_basis_kind kind;     /* one of the last three */
    struct vt_source source;     /* unless it is estimated */
    struct vt_estimate estimate; /* unless it is measured */
};
/* Of profiles that were measured so, those that can be carried over (of the same model;
 * on that GPU, of a relative of it), and the law alone: what was found to be off by
 * least. q->tp 0: as measured. wish: one of them, UNKNOWN: any. own: a user's profiles,
 * which come before built-in ones; NULL, or ends with NULL. VT_EINPUT: there is none of
 * that kind, or one of `own` is no profile. */
int vt_choose(struct vt_choice *c, const struct vt_estimate_query *q,
              enum vt_basis_kind wish, const char *const *own,
              struct vt_err *err) VT_MUST_CHECK;

#define VT_DEFAULT_PROFILE  "qwen3-8b-h200"
#define VT_DEFAULT_WORKLOAD "default-workload"

#endif
