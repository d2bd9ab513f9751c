/* trace.h - what is asked of an engine and what happened to it, and every file
 * format of either.
 *
 * A workload is the list of requests to serve, whatever it was read from: a
 * generator spec (workload.yaml), a recorded trace (trace.jsonl, Azure, Mooncake)
 * or a request list (CSV). Readers recognise their format by its first line. */
#ifndef VT_TRACE_H
#define VT_TRACE_H

#include "base/base.h"

/* ---- files that were cut ---------------------------------------------- */

/* A recorder that was killed, or a full disk, leaves a file that ends in the middle of
 * a line or of its gzip stream. All readers of this room refuse it, unless somebody
 * wants to be told: then they take the lines before, if there are any, and `tell` gets
 * a line that says so. One setting for a thread, to be made before files are read;
 * NULL, as it is at first: refuse. */
void vt_take_cut_files(void (*tell)(void *user, const char *line), void *user);

/* ---- requests --------------------------------------------------------- */

uint64_t vt_content_named(const char *name, size_t len); /* of a segment's name */
uint64_t vt_content_output(const char *id, size_t len);  /* of request id's output: same
                                                          * as the name "out:ID" */

#define VT_NO_TURN UINT32_MAX

struct vt_work { /* one request */
    const char *id;
    const char *lora; /* the adapter that it asks for; NULL: none */
    vt_ns arrival_ns; /* recorded or generated; generated sessions: of the first turn */
    vt_ns think_ns;   /* after the previous turn's end */
    uint32_t prompt_tokens;
    uint32_t output_tokens; /* how many it will produce */
    uint32_t max_tokens;    /* what the engine is told; above output_tokens when the
                             * request ended by itself (finish_reason stop) */
    /* Into vt_workload.segment; they sum to prompt_tokens. Turns of a generated
     * session overlap: each prompt begins with the one before. */
    uint32_t first_segment, n_segments;
    uint64_t output_content;
    uint32_t session; /* index; VT_NO_TURN: none */
    uint32_t turn;
    /* Index of the session's next request; VT_NO_TURN: none. Where sessions are trees
     * (vt_workload.forked): the first of those that wait for this one to end, which are
     * linked by `beside`; each waits for `n_before` requests, and thinks when the last
     * of them has ended. */
    uint32_t next_turn, beside;
    uint32_t n_before;
    bool first_turn; /* true also for requests without a session; one of a session */
    int32_t priority;
    uint32_t line; /* of the file it was read from; 0: generated */
};

/* What a measured trace says of one request; parallel to vt_workload.req. */
struct vt_measured {
    vt_ns ttft_ns;
    vt_ns e2e_ns;     /* ttft + sum of gaps */
    size_t first_gap; /* into vt_workload.gap */
    uint32_t n_gaps;  /* output chunks after the first */
    uint32_t cached_tokens;
    vt_ns queue_ns; /* arrival to first scheduled; -1: not known */
};

/* How arrivals are made from the list. */
enum vt_arrivals {
    VT_ARRIVALS_RECORDED, /* at arrival_ns */
    VT_ARRIVALS_CLOSED,   /* `concurrency` in flight, in list order */
    VT_ARRIVALS_SESSION,  /* a turn starts when its predecessor ends, plus think time */
};

/* Whose clock took a trace's times: requests arrive and tokens leave at the engine, at
 * a recorder between frontend and engine, or at a client of the frontend. */
enum vt_clock {
    VT_CLOCK_UNSTATED,
    VT_CLOCK_ENGINE,
    VT_CLOCK_TAP,
    VT_CLOCK_CLIENT,
};
extern const char *const vt_clock_names[];  /* from VT_CLOCK_ENGINE on; end with NULL */
const char *vt_clock_name(enum vt_clock c); /* "unstated", or one of those */
enum vt_clock vt_clock_find(const char *name); /* unstated: none of those */

/* Engine limits that a trace's meta line states; 0 or negative: not stated. */
struct vt_meta {
    const char *model, *gpu, *vllm_version; /* NULL: not stated, as below */
    const char *workload_name, *workload_kind;
    const char *kv_cache_dtype;
    enum vt_clock clock; /* stated, or known from the source */
    bool simulated;      /* vtwin wrote it: nothing in it was measured */
    uint32_t tp;
    uint32_t num_gpu_blocks, block_size, max_num_seqs, max_num_batched_tokens,
        max_model_len;
    uint32_t num_speculative_tokens; /* drafts; 0: none */
    uint32_t warmed_for; /* requests, as vt_engine_config has it; 0: not stated */
    int async_scheduling, enable_prefix_caching; /* -1: not stated */
    const char *config_hash, *engine_config;     /* written by recorders, not read */
};

/* What is put over an input's own; 0: as it says. Of a file of requests only rate,
 * requests (the first so many) and concurrency: its gaps keep their shape. */
struct vt_traffic {
    double rate; /* requests per second, all turns of sessions counted; INFINITY: all at
                  * once, or as soon as `concurrency` allows */
    double burstiness;                     /* gaps' gamma shape; INFINITY: even gaps */
    uint32_t requests;                     /* in place of a duration, too */
    uint32_t concurrency;                  /* at most so many in flight */
    uint32_t prompt_tokens, output_tokens; /* of each */
};

struct vt_input { /* what a workload is read from; all borrowed */
    enum vt_input_kind { VT_INPUT_TRACE, VT_INPUT_REQUESTS, VT_INPUT_SPEC } kind;
    const char *name;
    const char *text; /* of a spec in memory; NULL: the file's */
    size_t len;
    int64_t seed; /* of a spec: overrides its own when >= 0 */
    struct vt_traffic over;
    /* Of a spec: 0, or how many requests it is to make at least. One stage makes just
     * so many, whatever spec and traffic say; several come round again. */
    size_t go_on;
};

struct vt_workload {
    struct vt_arena arena; /* owns every other string */
    struct vt_arena names; /* owns ids and adapters' names */
    struct vt_work *req; /* sorted by (arrival_ns, order in the file); NULL: streamed */
    size_t n, cap;
    struct vt_segment *segment;
    size_t n_segments, cap_segments;
    struct vt_measured *measured; /* n of them, or NULL if the file has no timings */
    vt_ns *gap;                   /* all measured gaps; cells after a chunk */
    uint32_t *gap_tokens;         /* tokens of that chunk; NULL if all are 1 */
    size_t n_gaps;
    size_t n_by_mean; /* requests of which the first and the last token are known, and
                       * of the gaps in between only the mean: all are given that */
    size_t n_undated; /* requests whose arrival is not stated: it is 0 here */
    /* Further requests of the file, which failed or were aborted before a token came:
     * what they kept busy is not known. */
    size_t n_unanswered;
    struct vt_meta meta;
    enum vt_arrivals arrivals; /* the default for this input */
    bool forked;               /* sessions are trees, not only chains */
    uint32_t concurrency;      /* requests or sessions in flight; 0: no limit */
    /* Clients with recorded arrivals send at most so many and keep the rest until one
     * has ended; 0: they keep none. */
    uint32_t held_to;
    uint64_t seed;
    const char *source;    /* path or built-in name, for messages and summaries */
    struct vt_input input; /* what it was read from */
    /* Of a streamed one: the longest prompt, and the longest with all its output. */
    uint32_t most_prompt_tokens;
    uint64_t most_tokens;
    vt_ns
        least_think_ns; /* and of all turns but first ones; VT_NEVER: there are none */
    size_t n_sessions;
    struct vt_stretch { /* and how its arrivals are to be put over the file's own */
        bool on;
        vt_ns from; /* the first one's, which stays */
        double times;
    } stretch;
    /* Of stages that came round again: requests of one round, in the mean; 0: it has
     * none. */
    size_t round;
};

void vt_workload_free(struct vt_workload *w); /* frees contents, not w */

struct vt_token { /* one output chunk that was measured */
    vt_ns at;     /* when it came */
    uint32_t request;
    uint32_t index; /* of its last token among the request's output */
    uint32_t chunk; /* tokens in it */
};
/* All of them by time, and by request where times are equal. The workload has been
 * measured; *out is the caller's to free. */
int vt_workload_tokens(const struct vt_workload *w, struct vt_token **out, size_t *n,
                       struct vt_err *err) VT_MUST_CHECK;

/* ---- long workloads --------------------------------------------------- */

#define VT_WHOLE SIZE_MAX
#define VT_SHORT ((size_t)1 << 17) /* requests: 15 MB, more or less */

/* Reads any input into a zeroed *w. One of more than `most` requests is streamed if it
 * can be: its requests come in order of arrival, sessions are a spec's, and its
 * file can be read twice. It is looked through once, so that its errors are told and n
 * is known, but keeps no request: vt_stream_next() reads them again. Measured times are
 * kept only of a whole one. */
int vt_workload_read(struct vt_workload *w, const struct vt_input *in, size_t most,
                     struct vt_err *err) VT_MUST_CHECK;
static inline bool vt_workload_streamed(const struct vt_workload *w)
{
    return !w->req && w->n > 0;
}

struct vt_stream; /* opaque: a way through a streamed workload */

/* Borrows the workload. The caller owns *out. */
int vt_stream_open(struct vt_stream **out, const struct vt_workload *w,
                   struct vt_err *err) VT_MUST_CHECK;
/* The next requests, at most so many, in place of those that *piece has; it starts
 * zeroed and is the caller's to free. At the end it has none. Sessions are kept whole,
 * so it may have more. VT_EIO: the input is not what it was. */
int vt_stream_next(struct vt_stream *s, struct vt_workload *piece, size_t most,
                   struct vt_err *err) VT_MUST_CHECK;
void vt_stream_close(struct vt_stream *s); /* NULL is fine */

/* Each reads one kind of file into a zeroed *w. On failure nothing is left to free
 * and the message starts with the path and, where there is one, the line. */
int vt_trace_load(struct vt_workload *w, const char *path,
                  struct vt_err *err) VT_MUST_CHECK;
int vt_requests_load(struct vt_workload *w, const char *path,
                     struct vt_err *err) VT_MUST_CHECK;
/* seed: overrides the file's when >= 0. */
int vt_workload_generate(struct vt_workload *w, const char *path, int64_t seed,
                         struct vt_err *err) VT_MUST_CHECK;
/* The same from text in memory (the built-in workload); name is for messages and
 * relative paths in it are refused. */
int vt_workload_generate_text(struct vt_workload *w, const char *name, const char *text,
                              size_t len, int64_t seed,
                              struct vt_err *err) VT_MUST_CHECK;

/* A spec with what its input puts over it: a workload.yaml that makes the same requests
 * by itself. VT_EINPUT: no such file could say it. */
int vt_workload_spec_write(struct vt_buf *b, const struct vt_input *in,
                           struct vt_err *err) VT_MUST_CHECK;

/* ---- results ---------------------------------------------------------- */

/* One served request, as trace.jsonl states it. Pointers are borrowed. */
struct vt_served {
    const struct vt_workload *workload; /* or the piece of it that has the request */
    const struct vt_work *req;
    size_t index;     /* of the request in the workload's order */
    vt_ns arrival_ns; /* when it really arrived */
    vt_ns ttft_ns;
    const vt_ns *gap;                          /* n_gaps */
    const uint32_t *gap_tokens;                /* n_gaps, or NULL if all are 1 */
    const uint32_t *gap_running, *gap_prefill; /* itl_ctx, both or neither */
    uint32_t n_gaps;
    uint32_t output_tokens;
    uint32_t cached_tokens;
    uint32_t concurrency; /* in flight at arrival, itself included */
    uint32_t preemptions;
    vt_ns queue_ns; /* arrival to first scheduled */
    const char *finish_reason;
    const uint32_t *instance; /* engine of a fleet that ended it; NULL: no fleet */
};

/* Append one line (with its newline) to the buffer. w may be NULL. */
void vt_trace_write_meta(struct vt_buf *b, const struct vt_workload *w,
                         const struct vt_meta *m, const char *source);
void vt_trace_write(struct vt_buf *b, const struct vt_served *s);
/* The meta line in the order of recorders. more: further members as JSON text, each
 * after a comma; NULL: none. */
void vt_capture_write_meta(struct vt_buf *b, const struct vt_meta *m,
                           const char *source, const char *more);

/* One engine step, as steps.jsonl states it. Pointers are borrowed. */
struct vt_step_prefill {
    const char *id;
    uint32_t computed, tokens, prompt_tokens;
};
struct vt_step_line {
    uint64_t step;
    vt_ns sched_ns, sched_end_ns, out_ns, done_ns;
    uint32_t decodes;
    uint64_t decode_ctx;
    const struct vt_step_prefill *prefill;
    uint32_t n_prefill;
    uint32_t waiting, running;
    double kv_usage;
    const char *const *preempted; /* ids */
    uint32_t n_preempted;
    const uint32_t *instance; /* of a fleet; NULL: none, or read back */
};
void vt_steps_write(struct vt_buf *b, const struct vt_step_line *s);

/* ---- steps read back -------------------------------------------------- */

/* A step log. Lines keep the file's order; everything they point to is in the
 * arena. */
struct vt_steps {
    struct vt_arena arena;
    struct vt_step_line *step;
    size_t n, cap;
    size_t n_prefill, n_preempted; /* over all steps */
    bool only_out;      /* only when results came was seen; the rest is worked out */
    const char *source; /* path, for messages and summaries */
};

/* Reads steps.jsonl, plain or gzip, into *s. `step`, `sched_ms` and `out_ms` must be
 * there; other times default to their neighbour before them, counts to 0. Fields that
 * are not known are skipped. On failure nothing is left to free and the message starts
 * with the path and the line. */
int vt_steps_load(struct vt_steps *s, const char *path,
                  struct vt_err *err) VT_MUST_CHECK;
/* The same from what `vtwin record --step-stats-out` wrote, together with the trace of
 * the same recording. VT_EINPUT if it is of another one. */
int vt_steps_from_stats(struct vt_steps *s, const char *path,
                        const struct vt_workload *w, struct vt_err *err) VT_MUST_CHECK;
void vt_steps_free(struct vt_steps *s); /* frees contents, not s */

/* ---- traces as they were recorded ------------------------------------- */

/* A workload says what to serve and forgets the rest. Records keep what a trace says of
 * each request: for statistics, for models that learn from it, and for conversion. */
struct vt_record_segment {
    const char *name;
    uint32_t tokens, offset;
};

struct vt_record {
    const char *id;
    vt_ns arrival_ns; /* -1: not stated */
    vt_ns ttft_ns;    /* -1: not measured, and then there are no gaps */
    uint32_t prompt_tokens, cached_tokens, output_tokens;
    uint32_t concurrency; /* in flight at arrival, itself included; 0: not stated */
    uint32_t max_tokens;  /* 0: not stated */
    uint32_t n_gaps;      /* output chunks after the first */
    bool by_mean;         /* gap[0] is the mean of all, and what is parallel is NULL */
    const vt_ns *gap;
    const uint32_t *gap_tokens;                /* NULL: all are 1 */
    const uint32_t *gap_running, *gap_prefill; /* itl_ctx; NULL: not recorded */
    const struct vt_record_segment *segment;   /* NULL: nothing is known of it */
    const struct vt_segment *run;              /* or the same without names */
    uint32_t n_segments;                       /* of either */
    const uint64_t *block_hash;
    uint32_t n_block_hashes;
    const uint32_t *token_id; /* output_tokens of them; NULL: not recorded */
    const char *session;      /* NULL: none */
    uint32_t turn;
    vt_ns think_ns;
    int32_t priority;
    const char *lora;          /* its adapter's name; NULL: none */
    const char *finish_reason; /* NULL: not stated */
    uint32_t line;             /* of the file; 0: unknown */
    uint32_t part;             /* of vt_records.part: the load that it belongs to */
    /* What only vt_lifecycle_load() says. */
    vt_ns e2e_ns;        /* by the client; -1: not stated */
    const char *failure; /* NULL: it did not fail */
    uint32_t stage;      /* UINT32_MAX: not stated */
    bool counted; /* output_tokens by the server, or what it was made to give; else by
                   * what a client made of the text */
    /* What only the twin's own rows say; not read back. */
    uint32_t preemptions;
    vt_ns queue_ns;           /* arrival to first scheduled */
    const uint32_t *instance; /* of a fleet; NULL: none */
};

/* One load of a report that tells of several, one after the other. */
struct vt_record_part {
    const char *name; /* "concurrent-4"; NULL: the only one */
    enum vt_arrivals arrivals;
    uint32_t concurrency; /* of a closed loop */
    size_t n_unanswered;  /* of its requests, as vt_workload has it */
};

struct vt_records {
    struct vt_arena arena; /* owns all that records point to */
    struct vt_record *rec; /* sorted by (arrival, order in the file) */
    size_t n, cap;
    struct vt_meta meta;
    const char *meta_json; /* the meta object as it stands in the file; NULL: none */
    size_t n_nulls;        /* NaN and Infinity that were read as missing */
    size_t n_skipped;      /* requests that failed, were aborted or gave no token */
    size_t n_unanswered;   /* of these: those that ran into no end of a recording, and
                            * belong to no part */
    struct vt_record_part *part; /* NULL: one load, as it was recorded */
    uint32_t n_parts;
    const char *source;
};

/* Reads trace.jsonl, plain or gzip. On failure nothing is left to free and the message
 * starts with the path and the line. */
int vt_records_load(struct vt_records *r, const char *path,
                    struct vt_err *err) VT_MUST_CHECK;
void vt_records_free(struct vt_records *r); /* frees contents, not r */

static inline vt_ns vt_record_gap(const struct vt_record *r, uint32_t i)
{
    return r->gap[r->by_mean ? 0 : i];
}
vt_ns vt_record_decode_ns(const struct vt_record *r); /* sum of its gaps */

/* A served request as a record, but for its session. */
struct vt_record vt_record_of(const struct vt_served *s);

/* Appends one line (with its newline). more: further fields as JSON text, each after a
 * comma; NULL: none. */
void vt_record_write(struct vt_buf *b, const struct vt_record *q, const char *more);

/* ---- conversion ------------------------------------------------------- */

struct vt_tokenizer;
struct vt_convert { /* all borrowed */
    const char *in, *out;
    const char *from; /* a reader's name; NULL: by the file's beginning */
    const char *to;   /* a writer's name; NULL: by the name of `out` */
    const struct vt_tokenizer *tokenizer; /* of text.h, of the model that a report's
                                           * prompts were for; NULL: what they share is
                                           * guessed from their lengths */
};

struct vt_converted {
    const char *from, *to;
    size_t requests;
    size_t skipped; /* requests of the input that failed or gave no token */
    size_t nulls;   /* NaN and Infinity in it, read as missing */
    char note[256]; /* what the output cannot say; "" if nothing */
};

/* Reads one format and writes another. TraceV2 is two files, X.yaml and X.csv (and
 * X.itl.csv where gaps are known); either name stands for all. VT_EINPUT where the
 * output needs what the input does not have. */
int vt_convert(const struct vt_convert *c, struct vt_converted *done,
               struct vt_err *err) VT_MUST_CHECK;
extern const char *const vt_convert_readers[]; /* names; end with NULL */
extern const char *const vt_convert_writers[];

/* Which reader a file is for, by its content; NULL: none. Then *why, if it is known,
 * says what it is and what to give instead. */
int vt_convert_recognise(const char *path, const char **format, const char **why,
                         struct vt_err *err) VT_MUST_CHECK;

/* What a load generator reports, or any other input of vt_convert(), as workloads: one
 * for each load that it tells of, in order. */
struct vt_report {
    const char *format; /* a reader's name */
    size_t skipped;     /* requests that failed, were aborted or gave no token */
    size_t nulls;       /* NaN and Infinity, read as missing */
    struct vt_report_part {
        const char *name; /* of the load; NULL: it is the only one */
        struct vt_workload work;
    } *load;
    size_t n;
    struct vt_arena arena; /* owns names */
};

/* On failure nothing is left to free, and the message starts with the path. */
int vt_report_load(struct vt_report *out, const char *path,
                   struct vt_err *err) VT_MUST_CHECK;
void vt_report_free(struct vt_report *r); /* frees contents, not r */

/* inference-perf's per-request report with all that was sent: requests that failed as
 * well, and those whose tokens nobody saw come (ttft_ns is -1). Of a failed one e2e_ns
 * is when it did, and its lengths are those that were asked for; 0: nobody knows. What
 * prompts share is by their texts, hashes or segments, whichever the report has. On
 * failure nothing is left to free, and the message starts with the path. */
int vt_lifecycle_load(struct vt_records *r, const char *path,
                      struct vt_err *err) VT_MUST_CHECK;

/* ---- checks ----------------------------------------------------------- */

/* A line-by-line look at a file, beyond the first error. */
struct vt_check {
    size_t lines, bad;
    void (*tell)(void *user, const char *message); /* each bad line; NULL: nobody */
    void *user;
};

/* VT_OK also when lines are bad: see c->bad. What only the whole file shows (an id used
 * twice, a session with a hole) is told as one more. */
int vt_check_trace(struct vt_check *c, const char *path,
                   struct vt_err *err) VT_MUST_CHECK;
/* Also whether times within a step and from step to step run forward. */
int vt_check_steps(struct vt_check *c, const char *path,
                   struct vt_err *err) VT_MUST_CHECK;

/* What a file seems to be, by its first line that is not blank. FOREIGN is a trace that
 * vt_trace_load() reads but that is not trace.jsonl. STATS: a recorder's
 * --step-stats-out. SPANS: OpenTelemetry's. */
enum vt_file {
    VT_FILE_OTHER,
    VT_FILE_TRACE,
    VT_FILE_STEPS,
    VT_FILE_FOREIGN,
    VT_FILE_STATS,
    VT_FILE_SPANS,
};
int vt_file_kind(const char *path, enum vt_file *out, struct vt_err *err) VT_MUST_CHECK;

/* ---- OpenTelemetry ---------------------------------------------------- */

/* What vLLM tells an OpenTelemetry collector, from the files that the collector's file
 * exporter writes (one JSON object a line, plain or gzip). Spans of one request or step
 * are spread over lines and files, so a reader takes all files of a run and joins them
 * at the end. What is read and what becomes of it: docs/otlp.md. */

/* How long a step took. */
enum vt_step_time {
    VT_STEP_INTERVAL, /* until the next one began, idle gaps left out */
    VT_STEP_DURATION, /* what its step.duration_us says */
};

struct vt_otlp_options {
    enum vt_step_time step_time;
    bool kv_alone; /* KV-cache events of nobody will do */
};

enum vt_otlp_kv_event {
    VT_KV_STORE_COMMITTED,
    VT_KV_TRANSFER_INITIATED,
    VT_KV_TRANSFER_COMPLETED,
    VT_KV_OTHER,
    VT_KV_EVENTS /* how many there are */
};

#define VT_OTLP_REASONS 8

struct vt_otlp_stats {
    uint64_t lines;
    uint64_t api_spans;   /* llm_request of scope vllm.api */
    uint64_t core_spans;  /* llm_core of scope vllm.scheduler */
    uint64_t step_spans;  /* of scope vllm.scheduler.step */
    uint64_t call_spans;  /* upstream's llm_request */
    uint64_t other_spans; /* of no interest */
    uint64_t repeated;    /* spans and steps that came again; the first one counts */
    uint64_t malformed;   /* spans skipped; the first few by name: */
    const char *reason[VT_OTLP_REASONS]; /* "f: line 3: span 'llm_core': ..." */
    size_t n_reasons;
    uint64_t dropped_events; /* events that the tracer says it lost */
    uint64_t journeys;       /* requests that an engine told of */
    uint64_t joined;         /* of those, with their span of vllm.api */
    uint64_t untimed;        /* requests without first token or end: left out */
    uint64_t steps;          /* that have a step.BATCH_SUMMARY */
    uint64_t snapshots, lone_snapshots; /* all, and those of steps without one */
    uint64_t idle_steps;                /* without a request: left out */
    uint64_t missing_steps, holes;      /* step ids not seen, and runs of them */
    uint64_t open_steps; /* end not known, mostly before a hole: left out */
    uint64_t kv_events[VT_KV_EVENTS];
    uint64_t kv_joined; /* of the first three kinds, with a step that was seen */
};

/* A request's way through the engine. Times on the capture's axis; VT_NEVER: not
 * seen. Strings belong to the reader. */
struct vt_journey {
    const char *id;
    vt_ns arrived_ns, handoff_ns;  /* at the API server, and from it to the engine */
    vt_ns queued_ns, scheduled_ns; /* in the scheduler, first time */
    vt_ns first_token_ns, finished_ns;
    vt_ns departed_ns; /* the answer has left the API server */
    uint32_t prompt_tokens, cached_tokens, output_tokens;
    uint32_t preemptions;
    const char *finish; /* stopped, length, aborted, ...; NULL: not stated */
};

struct vt_otlp_kv {             /* one KV-cache event */
    enum vt_otlp_kv_event kind; /* of the first three */
    uint64_t step;
    vt_ns at_ns; /* VT_NEVER: not known */
    uint32_t blocks;
    bool to_gpu;       /* a transfer that loads; others store */
    uint64_t transfer; /* joins a transfer's two events; 0: not stated */
    vt_ns took_ns;     /* of a completed transfer; -1: its beginning was not seen */
};

/* What the scheduler said of its state when it had made a step, whether or not the
 * step's end is known. */
struct vt_otlp_batch {
    uint64_t step;
    vt_ns start_ns;
    uint32_t running, waiting; /* after scheduling */
    uint32_t tokens;           /* scheduled; 0: not stated, or none */
    uint32_t blocks, free_blocks;
    double kv_usage;
};

/* What one engine process told, or all of upstream's llm_request spans. Times count
 * from the first one there is. Owned by the reader. */
struct vt_otlp_capture {
    const char *name;
    /* n == 0: no steps. In the order of their ids. A step took from its sched_ns or the
     * out_ns before, whichever is later, to its out_ns. A sched_ns after the out_ns
     * before means that the engine was idle or that steps are missing in between. */
    struct vt_steps steps;
    struct vt_workload work; /* n == 0: no requests; else all have timings */
    size_t shared_gaps;      /* gaps of `work` that are even shares of a longer time */
    struct vt_journey *journey; /* sorted by arrival */
    size_t n_journeys;
    struct vt_otlp_batch *batch; /* all steps, by their ids */
    size_t n_batches;
    struct vt_otlp_kv *kv; /* those with a step, by step */
    size_t n_kv;
};

struct vt_otlp; /* opaque */
int vt_otlp_new(struct vt_otlp **out, const struct vt_otlp_options *options,
                struct vt_err *err) VT_MUST_CHECK;
void vt_otlp_free(struct vt_otlp *o); /* NULL is fine */
/* A file that is not JSON, holds nothing of vLLM's or only malformed spans, or ends in
 * the middle is an error that names it and the line. After an error nothing but
 * vt_otlp_free() may follow. */
int vt_otlp_add_file(struct vt_otlp *o, const char *path,
                     struct vt_err *err) VT_MUST_CHECK;
/* Joins what was read; no file may be added afterwards. VT_EINPUT if there is neither
 * a step nor a timed request. */
int vt_otlp_finish(struct vt_otlp *o, struct vt_err *err) VT_MUST_CHECK;
const struct vt_otlp_stats *vt_otlp_stats(const struct vt_otlp *o);
size_t vt_otlp_captures(const struct vt_otlp *o);
const struct vt_otlp_capture *vt_otlp_capture(const struct vt_otlp *o, size_t i);

#endif
