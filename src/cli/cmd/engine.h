/* engine.h - the flags of every command with an engine of its own, and what they make:
 * its settings and what its steps cost; private to cmd. */
#ifndef VT_CLI_ENGINE_H
#define VT_CLI_ENGINE_H

#include "cli/cli.h"
#include "tune/tune.h"

/* A command includes model_rows (what steps cost, on what they run) and engine_rows
 * (every setting that has vLLM's name). */
struct engine_options {
    struct vt_engine_config config; /* must be first: fields that were given hold */
    struct engine_acceptance {
        double position[VT_SPEC_POSITIONS], all;
        uint32_t n_positions;
        bool given; /* or the command has a standard for it */
    } acceptance;
    struct engine_release {
        const char *text; /* as given; NULL: not given */
        uint32_t vllm;
    } release;
    int method; /* of speculation; 1: without look-ahead slots */
    double gpu_memory_utilization;
    uint32_t tp, pp, dp;
    bool enforce_eager;
    struct vt_graphs graphs;     /* as --compilation-config states them */
    uint32_t largest_graph;      /* 0: not given */
    struct opt_list graph_sizes; /* likewise */
    uint32_t partial_prefills, long_partial_prefills; /* of 0.26; 1 */
    bool ep;
    int kv_dtype;        /* of engine_kv_dtypes */
    bool disable_hybrid; /* if given */
    int mamba_mode;      /* -1: not given */
    struct engine_retention {
        uint32_t every; /* tokens, or VT_RETENTION_DENSE */
        bool given;
    } retention;
    struct engine_offload {
        struct vt_offload is; /* what --kv-transfer-config says of it */
        bool connector;       /* and whether it asks for it, */
        bool other;           /* or for another connector */
        double size_gib, gbs, setup_us;
        int backend; /* 0: native */
        bool nixl;   /* --kv-transfer-config asks for prefills elsewhere: */
        struct vt_remote remote;
        char engine_id[96]; /* "": one is made up */
        double link_gbs, base_us, token_bytes;
        int link; /* 0: network, 1: NVLink */
        bool contention;
    } offload;
    const char *profile;         /* name or file */
    const char *latency, *model; /* an inline model; what is served, or what `latency`
                                  * is now */
    const char *quantization, *dtype; /* of the weights; NULL: as config.json says */
    int basis;                        /* enum vt_basis_kind */
    const char *profiles;             /* a directory of the user's; NULL: none */
    double host_speed;                /* of the hosts that estimates are made from */
    const char *host_from;            /* or of these captures; NULL: that */
    const char *hf_config, *gpu, *hw; /* the model's sizes, what it runs on */
    struct cli_files files;           /* of a model that is learnt, of a workload */
};
extern const struct opt_row model_rows[], engine_rows[];
/* How data-parallel engines of a mixture of experts go together, for commands that
 * simulate them. */
extern const struct opt_row lockstep_rows[];
opt_reader engine_read_graphs, engine_read_acceptance, engine_read_release,
    engine_read_retention, engine_read_transfer;
/* For a command's list of blocks. */
#define ENGINE_BLOCKS(type, member)                                            \
    OPT_BLOCK(model_rows, type, member), OPT_BLOCK(engine_rows, type, member), \
        OPT_BLOCK(cli_files_rows, type, member.files)

extern const char *const engine_kv_dtypes[];
double engine_kv_bytes(int dtype); /* of an element; 0: as the model says */

struct engine_job {
    struct vt_profile profile;
    bool has_profile;
    struct vt_latency *inline_model; /* of --model; NULL: the profile's */
    uint32_t inline_tp;              /* GPUs that it names; 0: none */
    const struct vt_latency *model;  /* the one to use */
    const char *timed_by;            /* the profile's name, or the text of --model */
    char label[160];                 /* of a profile that was written by force, or of
                                      * model and GPU */
    struct vt_choice choice;         /* what was chosen for model and GPU */
    double host_speed;               /* that estimates go by */
    const char *model_name;          /* that the profile is of; NULL: not stated */
    const char *asked;               /* the model that flags name; NULL: none */
    struct vt_graphs graphs;         /* that flags ask for */
    struct vt_engine_config config;  /* not yet checked */
    char vllm_version[32];           /* of its release, with all three numbers */
    struct vt_arch arch;
    struct vt_gpu gpu;
    bool has_arch, has_sizes;      /* arch is known; and gpu too */
    bool described;                /* by model and GPU, not by a profile */
    enum vt_basis_kind basis;      /* UNKNOWN: by an inline model */
    struct vt_basis trust;         /* how far its times are to be trusted */
    struct vt_deployment deployed; /* owns a model scaled to other GPUs */
    /* As it was sized; gpu_memory_utilization 0: its pool was stated, not computed. */
    struct vt_setting setting;
};

/* A flag beats the trace (meta; NULL: none), that the profile (`profile`, or --profile
 * if it is NULL), that vLLM. So it is with the release whose scheduler is followed; in
 * the end that is the newest one. The KV cache and the model are those for the memory,
 * number format and GPUs per engine that were asked for; tp 0: as the profile says. End
 * *j with engine_close() whatever happens. */
int engine_open(struct engine_job *j, const struct opt_args *a,
                const struct engine_options *o, const char *profile,
                const struct vt_meta *meta, uint32_t tp,
                struct vt_err *err) VT_MUST_CHECK;
/* The CUDA graphs that flags ask for (engine_graphs.c). */
enum { ENGINE_GRAPH_TOKENS = 1000000 };
int engine_find_graphs(struct vt_graphs *g, const struct opt_args *a,
                       const struct engine_options *o,
                       struct vt_err *err) VT_MUST_CHECK;
bool engine_asks_graphs(const struct engine_job *j); /* for any but vLLM's */
/* What flags say of the host's share of the KV cache, put into j->config; and its size
 * there, when a block's is known (engine_offload.c). */
int engine_ask_offload(struct engine_job *j, const struct opt_args *a,
                       const struct engine_options *o,
                       struct vt_err *err) VT_MUST_CHECK;
void engine_count_parts(struct engine_job *j); /* remote.block_parts, by its model */
/* What flags say of the link to the host takes the place of what is there. */
void engine_set_link(struct vt_offload *link, const struct opt_args *a,
                     const struct engine_options *o);
/* Prefills elsewhere, over the link that flags state, or that the engine's GPU has.
 * What was assumed of it is told in `about` (may be NULL; "": nothing was). */
int engine_link(struct vt_remote *r, const struct engine_job *j,
                const struct opt_args *a, const struct engine_options *o,
                char about[96], struct vt_err *err) VT_MUST_CHECK;
int engine_settle_offload(struct engine_job *j, const struct engine_options *o,
                          uint64_t block_bytes, uint32_t tp,
                          struct vt_err *err) VT_MUST_CHECK;
/* What flags say of model and GPU (engine_model.c). The model that is asked for, by
 * operand, --hf-config or --model; NULL: none is. A directory that serve or play take
 * their tokenizer from is none where a profile or inline model times it, and no GPU is
 * asked for. */
const char *engine_asked_model(const struct opt_args *a,
                               const struct engine_options *o);
/* --latency, or --model where that is no model's name. */
const char *engine_inline_model(const struct engine_options *o);
/* Sets arch, gpu and basis, and the profile that times it: *profile NULL: none does. */
int engine_choose(struct engine_job *j, const struct opt_args *a,
                  const struct engine_options *o, const char **profile,
                  struct vt_err *err) VT_MUST_CHECK;
/* An inline model may name model and GPU, too: then the pool is theirs. */
int engine_inline_sizes(struct engine_job *j, const struct engine_options *o,
                        const char *spec, struct vt_err *err) VT_MUST_CHECK;
/* What an estimate is asked of the engine; borrows *j. */
struct vt_estimate_query engine_estimate(const struct engine_job *j,
                                         const struct engine_options *o);
/* Sets j->trust: how far a setting's times are to be trusted. */
int engine_trust(struct engine_job *j, const struct vt_site *site,
                 const struct vt_setting *s, struct vt_err *err) VT_MUST_CHECK;
/* One more thing that it was not measured with, where it is known what it was. */
void VT_PRINTF(2, 3) engine_note(struct engine_job *j, const char *fmt, ...);
/* Puts into the site what its settings are timed by. Borrows *q: engine_estimate(). */
void engine_time_site(struct vt_site *site, const struct engine_job *j,
                      const struct engine_options *o, struct vt_estimate_query *q);
/* "qwen3-8b-h200, chat; simulated, basis measured, E2E within 6 %": what stands under a
 * picture's heading. */
void engine_caption(char *out, size_t size, const struct engine_job *j,
                    const char *workload);
/* Whether there is something to say: not of a model that is given inline. */
bool engine_tells_trust(const struct engine_job *j);
/* What of it is outside, for vt_outside_json(). */
struct vt_notes engine_notes(const struct engine_job *j);
/* The `vllm serve` line of a setting, for the model that was asked about; engine: as
 * deployed. */
void engine_recommend(struct vt_buf *b, const struct engine_job *j,
                      const struct engine_options *o, const struct vt_site *site,
                      const struct vt_engine_config *engine,
                      const struct vt_setting *s);
/* vLLM's standards for the model and its GPU. */
void engine_standards(struct engine_job *j, struct vt_engine_config *c);
/* What vLLM makes of limits that were given, and of those that were not. */
int engine_settle_limits(struct engine_job *j, const struct opt_args *a,
                         const struct engine_options *o,
                         struct vt_err *err) VT_MUST_CHECK;
/* The same with settings and model as they are stated. */
int engine_read(struct engine_job *j, const struct opt_args *a,
                const struct engine_options *o, const char *profile,
                const struct vt_meta *meta, struct vt_err *err) VT_MUST_CHECK;
/* The model's sizes, by --hf-config or by what the profile says; has_arch may stay
 * false. Then how its layers share the KV cache, for the engine's settings and flags.
 */
int engine_find_arch(struct engine_job *j, const struct engine_options *o,
                     struct vt_err *err) VT_MUST_CHECK;
int engine_kv_wish(struct vt_kv_wish *w, struct engine_job *j, const struct opt_args *a,
                   const struct engine_options *o, struct vt_err *err) VT_MUST_CHECK;
/* Prompts in parts were limited by two flags that only one release had, and which it
 * then refused. */
int engine_check_prefills(const struct opt_args *a, const struct engine_options *o,
                          uint32_t vllm, struct vt_err *err) VT_MUST_CHECK;
/* The model's sizes and the GPU, by flags or by what the profile says. `must`: not to
 * know them is an error. */
int engine_find_sizes(struct engine_job *j, const struct engine_options *o, bool must,
                      struct vt_err *err) VT_MUST_CHECK;
/* Whether data-parallel engines are ranks in lockstep, as vLLM's are of a mixture of
 * experts. *why: for people, where the model does not tell, or NULL. VT_EINPUT: expert
 * parallelism of a model without experts. */
int engine_lockstep(const struct engine_job *j, const struct opt_args *a,
                    const struct engine_options *o, bool *lockstep, const char **why,
                    struct vt_err *err) VT_MUST_CHECK;
/* --prefill-schedule-interval is for ranks in lockstep, of which there are none. */
#define ENGINE_ALONE "in vLLM only data-parallel ranks of a mixture of experts heed it"
void engine_warn_interval(const struct engine_options *o, const char *why);
/* A line on stderr that says which it was, if not the model did (why NULL). */
void engine_tell_ranks(bool lockstep, const char *why);
/* GPUs per engine that the profile was measured with. */
int engine_profile_tp(const struct engine_job *j, uint32_t *tp,
                      struct vt_err *err) VT_MUST_CHECK;
/* The layers are those of a model that is served, unless --hf-config says otherwise;
 * its pool stays as it is. VT_EINPUT: what they keep is not known; nothing changes. */
int engine_take_layers(struct engine_job *j, const struct opt_args *a,
                       const struct engine_options *o, const struct vt_arch *arch,
                       uint32_t tp, struct vt_err *err) VT_MUST_CHECK;
void engine_close(struct engine_job *j);
/* What it serves, or, if nobody knows, what times it. */
const char *engine_name(const struct engine_job *j);
/* The settings that flags state, put over *c. */
void engine_apply(struct vt_engine_config *c, const struct opt_args *a,
                  const struct engine_options *o);
/* vLLM does not start with a pool that cannot hold one request of the greatest length:
 * each that asks for all there is would fail. max_model_len shrinks, or was asked for.
 */
int engine_fit_pool(struct vt_engine_config *e, bool asked,
                    struct vt_err *err) VT_MUST_CHECK;

/* A line on stderr if the profile is not to be trusted; of one that another room opens,
 * by its name. */
void engine_warn_forced(const struct vt_profile *p);
void engine_warn_profile(const char *name);
/* A line on stderr for each way in which a run went beyond what its model was made
 * from; whose: "" or "NAME: ". */
void engine_warn_extent(const struct vt_extent *run, const struct vt_extent *known,
                        const char *whose);

#endif
