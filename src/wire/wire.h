/* wire.h - vLLM's engine-core protocol: an engine behind a real frontend, a recorder
 * between frontend and engine, and a frontend of our own for tests and benchmarks.
 *
 * Messages are MessagePack over ZeroMQ. Their layout differs by line of vLLM ("0.26"):
 * the frontend never tells its version, so an engine is told, or guesses from the
 * length of the first request. */
#ifndef VT_WIRE_H
#define VT_WIRE_H

#include "base/base.h"
#include "core/core.h"
#include "export/export.h"
#include "kvevents/kvevents.h"
#include "model/model.h"
#include "text/text.h"
#include "trace/trace.h"

/* ---- lines of vLLM ---------------------------------------------------- */

struct vt_wire_line {
    const char *name;        /* "0.26" */
    uint32_t minor;          /* 26 */
    uint32_t request_fields; /* of EngineCoreRequest */
    uint32_t output_fields;  /* of EngineCoreOutput */
    uint32_t outputs_fields; /* of EngineCoreOutputs */
    uint32_t prefill_at;     /* index of prefill_stats in EngineCoreOutput */
    bool past;               /* out of the window: still spoken, no longer tested */
};

const struct vt_wire_line *const *vt_wire_lines(size_t *n); /* oldest first; static */
const struct vt_wire_line *
vt_wire_line_find(const char *name); /* "0.26", "v0.26.1"; NULL */
/* The oldest line whose requests are so long, 0.26 for those that share its length:
 * what it writes is understood by all of that length. */
const struct vt_wire_line *vt_wire_line_of_request(uint32_t n_fields);
/* Whose scheduler it most likely is where a line was guessed: 32 for the newest line in
 * the window with requests of the same length. */
uint32_t vt_wire_release(const struct vt_wire_line *line);

/* ---- provenance ------------------------------------------------------- */

/* config-fingerprint-v3: lower-case hex of SHA-256 over the three strings. NULL counts
 * as empty. */
void vt_config_hash(char out[65], const char *gpu, const char *vllm_tag,
                    const char *engine_config);

/* Whether a recorded registration (EngineCoreReadyResponse) has every key that
 * frontends of the line require (NULL: that all lines do), all of their types, and none
 * that play's own registration lacks. VT_ECHECK says what is wrong. */
int vt_wire_ready_check(const struct vt_wire_line *line, const void *bytes, size_t len,
                        struct vt_err *err) VT_MUST_CHECK;

/* ---- an engine behind a real frontend --------------------------------- */

/* How a request finds its record. INDEX: the number at the end of its external id names
 * the record. PREFIX: the record whose prompt shares most leading blocks; of those the
 * first one not served yet, in order of arrival. ID: equal ids, with what frontends put
 * around them taken off. */
enum vt_replay_match { VT_MATCH_INDEX, VT_MATCH_PREFIX, VT_MATCH_ID };

struct vt_play_config {              /* all borrowed until vt_play() returns */
    const char *handshake;           /* where the frontend waits for engines */
    uint32_t n_engines;              /* data-parallel ranks in this process, */
    uint32_t first_rank;             /* of which this is the first */
    const struct vt_wire_line *line; /* NULL: by the first request */
    bool follow_line; /* schedule as the line that requests are of; else as `engine` */
    const char *session_file; /* NULL, or where the frontend's addresses are kept: an
                               * engine that is started again goes on from there */
    bool headless;            /* what HELLO says */
    const char *parallel_config_hash; /* what READY says; NULL: nothing */

    struct vt_engine_config engine;
    struct vt_side side; /* with engine.remote.on */
    const struct vt_latency *model;
    double time_scale; /* 2: twice as fast as the model says */
    uint64_t seed;

    const char *dtype, *vllm_version, *instance_id; /* of the registration */
    uint32_t tensor_parallel_size, max_loras;
    bool waves;     /* take part in waves, as ranks of a mixture of experts do */
    bool log_stats; /* scheduler_stats and events */
    bool iteration_details;

    uint32_t vocab_size;
    const uint32_t *skip_token; /* ids that random output never holds */
    uint32_t n_skip_tokens;
    const char *replay_tokens; /* trace with output_token_ids, or a dataset; NULL */
    const char *replay_steps; /* trace whose times and chunk sizes are followed; NULL */
    const char *lengths_from; /* trace whose output lengths are drawn; NULL */
    enum vt_replay_match match;
    vt_dataset_encode *encode; /* for datasets of text; NULL: no tokenizer */
    void *encode_user;

    double failure_rate;
    const char *failure_types; /* "error,length"; NULL: error */
    uint32_t fail_first;
    bool fail_first_by_id;
    uint64_t die_after; /* requests until the engine dies; 0: it does not */

    struct vt_kv_wanted kv;

    const char *step_stats_out; /* NULL: none */
    struct vt_otlp_export otlp;
    double shutdown_timeout_s; /* how long requests may go on after a stop */
    bool log_requests;

    void *user;
    void (*log)(void *user, const char *line); /* from any thread */
    bool (*stopped)(void *user);               /* asked at least ten times a second */
};

struct vt_play_summary {
    uint64_t requests, finished, aborted, failed;
    uint64_t tokens, steps, messages;
    uint64_t matched; /* requests that were served from a recording */
    double late_p50_us, late_p99_us, late_max_us; /* messages behind their deadlines */
    struct vt_extent extent; /* how far steps went; the model is known up to its own */
};

/* Serves until told to stop. VT_EIO after a fatal error, which frontends are told. */
int vt_play(const struct vt_play_config *c, struct vt_play_summary *out,
            struct vt_err *err) VT_MUST_CHECK;

/* ---- a recorder ------------------------------------------------------- */

/* Stands between frontend and engines: to engines it is the frontend, to the frontend
 * it is the engines. Messages are forwarded first, frame by frame as they came, and
 * decoded afterwards by another thread, which never holds up the first. What it writes:
 * docs/record.md. */
struct vt_tap_config {          /* all borrowed until vt_tap() returns */
    const char *frontend;       /* where the frontend waits for engines */
    const char *engines;        /* where to wait for engines, as it would */
    const char *input, *output; /* offered to engines; of client i: the port + i */
    const char *trace_out;      /* trace.jsonl[.gz]; NULL: none, as below */
    const char *wire_out;       /* all messages, bytes and meaning */
    const char *step_stats_out; /* scheduler_stats */
    bool overwrite;             /* files that exist */
    bool append;                /* to files that exist: the same engine's recording */
    bool durable;               /* a request's last message follows its line */
    bool record_tokens;         /* ids of output tokens */
    const char *model, *gpu;    /* what the trace's meta line says; NULL: nothing */
    uint32_t tp, max_num_seqs;  /* 0: as the engine registers */
    uint32_t block_size;        /* of block_hashes; 0: as the engine registers */
    const char *engine_config;  /* NULL: "" */
    const char *config_hash;    /* NULL: made of gpu, version and engine_config */
    const char *vllm_version;   /* that the engine must have; NULL: any */
    size_t max_backlog_bytes;   /* messages waiting to be decoded; 0: 1 GiB */

    void *user;
    void (*log)(void *user, const char *line); /* from any thread, one at a time */
    bool (*stopped)(void *user);               /* asked at least ten times a second */
};

struct vt_tap_summary {
    uint64_t messages;    /* forwarded */
    uint64_t requests;    /* rows of the trace */
    uint64_t aborted;     /* of those: ended from outside or unfinished */
    uint64_t undecodable; /* messages, forwarded all the same */
    uint64_t not_decoded; /* messages that were left out because too many waited */
    uint64_t incomplete;  /* requests left out because of those */
    uint64_t unroutable;  /* messages from or to an engine that is not there */
};

/* Records until told to stop. VT_EINPUT: nothing was written (an address or a file
 * cannot be used, or the engine has another version). VT_EIO: files are incomplete. */
int vt_tap(const struct vt_tap_config *c, struct vt_tap_summary *out,
           struct vt_err *err) VT_MUST_CHECK;

/* ---- a frontend of our own -------------------------------------------- */

/* As much of a frontend as tests and benchmarks need. Belongs to one thread. */
struct vt_frontend; /* opaque */

struct vt_bytes {
    const void *at;
    size_t len;
};

struct vt_frontend_config {
    const char *handshake;           /* where to wait for engines */
    const char *data;                /* where to take input and output; NULL:
                                      * "tcp://127.0.0.1:*" */
    uint32_t n_clients;              /* 0: 1 */
    uint32_t n_engines;              /* 0: 1 */
    bool coordinator;                /* there is one, in this process */
    struct vt_bytes parallel_config; /* MessagePack for INIT; at NULL: {} */
    const struct vt_wire_line *line; /* how long requests are; NULL: the newest */
};

/* Copies what it needs. */
int vt_frontend_open(struct vt_frontend **out, const struct vt_frontend_config *c,
                     struct vt_err *err) VT_MUST_CHECK;
void vt_frontend_close(struct vt_frontend *f);                /* NULL is fine */
const char *vt_frontend_address(const struct vt_frontend *f); /* of the handshake */

/* Shakes hands with all engines; VT_EIO when that takes longer. Once more: with new
 * ones in their place. */
int vt_frontend_accept(struct vt_frontend *f, int timeout_ms,
                       struct vt_err *err) VT_MUST_CHECK;

struct vt_frontend_engine { /* what it said; owned by the frontend */
    bool local, headless;
    const char *config_hash; /* parallel_config_hash of its READY; NULL: none */
    struct vt_bytes registration;
    char vllm_version[64]; /* of its registration; "": none */
};
const struct vt_frontend_engine *vt_frontend_engine(const struct vt_frontend *f,
                                                    uint32_t engine);

/* What is zero or NULL is not said, so that the engine's default holds. */
struct vt_frontend_request {
    const char *id, *external_id;
    const uint32_t *prompt; /* token ids */
    uint32_t n_prompt;
    double arrival_time; /* unix seconds; 0: now */
    int32_t priority;
    const char *lora;
    uint32_t lora_id; /* 0: 1 */
    const char *cache_salt;

    uint32_t max_tokens, min_tokens; /* sampling */
    bool ignore_eos;
    double temperature; /* negative: not said, but 0 is */
    bool has_seed;
    int64_t seed;
    int64_t eos_token_id; /* 0: none */
    const uint32_t *stop_token_ids;
    uint32_t n_stop_token_ids;
    bool has_logprobs;
    int32_t logprobs;
    struct vt_bytes sampling; /* MessagePack, instead of all this */

    const struct vt_bytes *aux; /* buffers that follow */
    size_t n_aux;
};

int vt_frontend_add(struct vt_frontend *f, uint32_t client, uint32_t engine,
                    const struct vt_frontend_request *r,
                    struct vt_err *err) VT_MUST_CHECK;
int vt_frontend_abort(struct vt_frontend *f, uint32_t client, uint32_t engine,
                      const char *const *id, uint32_t n,
                      struct vt_err *err) VT_MUST_CHECK;
/* args: a MessagePack array; at NULL: an empty one. */
int vt_frontend_call(struct vt_frontend *f, uint32_t client, uint32_t engine,
                     uint64_t call_id, const char *method, struct vt_bytes args,
                     struct vt_err *err) VT_MUST_CHECK;
/* Any frames, as they are. */
int vt_frontend_send(struct vt_frontend *f, uint32_t client, uint32_t engine,
                     const struct vt_bytes *frame, size_t n,
                     struct vt_err *err) VT_MUST_CHECK;
/* START_DP_WAVE by the coordinator; exclude is -1 for none. */
int vt_frontend_wave(struct vt_frontend *f, int64_t wave, int64_t exclude,
                     struct vt_err *err) VT_MUST_CHECK;

struct vt_frontend_output { /* of one request */
    const char *id;
    const uint32_t *token;
    uint32_t n_tokens;
    const char *finish_reason;   /* as trace.jsonl has it; NULL: it goes on */
    struct vt_bytes stop_reason; /* MessagePack; at NULL: none */
    uint32_t cached_tokens;      /* of its prompt, if has_prefill */
    bool has_prefill, has_logprobs;
    double queued, scheduled; /* events: engine seconds; 0: not in this output */
    uint32_t preemptions;
};

#define VT_FRONTEND_COORDINATOR UINT32_MAX

struct vt_frontend_message { /* one of an engine's; good until the next call */
    vt_ns at;                /* CLOCK_MONOTONIC */
    uint32_t client;         /* VT_FRONTEND_COORDINATOR: to that */
    uint32_t engine;
    double timestamp; /* the engine's */
    const struct vt_frontend_output *output;
    uint32_t n_outputs;
    bool has_stats;
    uint32_t running, waiting;
    double kv_usage;
    uint64_t queries, hits; /* of the prefix cache, in tokens since the last report */
    bool has_utility;
    uint64_t call_id;
    const char *failure;               /* NULL: it went well */
    struct vt_bytes result;            /* MessagePack of [type, value]; at NULL: none */
    int64_t wave_complete, start_wave; /* -1: none */
    bool dead;                         /* ENGINE_CORE_DEAD: nothing else is set */
    const char *bad;                   /* why it cannot be decoded; NULL: it was */
    const struct vt_bytes *frame;      /* as they came */
    size_t n_frames;
};

/* The next message of any engine to any client. *out is NULL when none came in time or
 * a signal did; -1 waits for ever. */
int vt_frontend_next(struct vt_frontend *f, int timeout_ms,
                     const struct vt_frontend_message **out,
                     struct vt_err *err) VT_MUST_CHECK;

#endif
