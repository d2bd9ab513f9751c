/* load.h - load generation and honest measurement: what to send, sending it when it is
 * due, and what came of it.
 *
 * Times are nanoseconds since the start of the run, on CLOCK_MONOTONIC. Every planned
 * time is absolute; what was planned and what was done are both kept, so that a client
 * that falls behind shows in its own figures and not in the server's. */
#ifndef VT_LOAD_H
#define VT_LOAD_H

#include "base/base.h"
#include "net/net.h"
#include "text/text.h"
#include "trace/trace.h"

/* ---- what to send ------------------------------------------------------ */

struct vt_load_turn { /* one request; borrowed from the plan's arena */
    const char *text; /* NULL: token ids are sent */
    size_t text_len;
    const uint32_t *id;
    uint32_t n_ids;
    uint32_t prompt_tokens; /* as the dataset counts them; 0: unknown */
    uint32_t output_tokens; /* to ask for; 0: no limit is stated */
    vt_ns think_ns;         /* pause after the reply before */
};

struct vt_load_session { /* requests that follow each other; most have one */
    vt_ns at;            /* of the first one, if arrivals are in the plan */
    const char *id;      /* NULL: its number */
    const char *system;  /* NULL: none */
    const struct vt_load_turn *turn;
    uint32_t n_turns;
    /* Of trees, else 0. Numbers of sessions count from 1: the first of those that wait
     * for this one to end, linked by `beside`; the one that its tree began with. It
     * begins, after its first turn's think time, when `n_before` others have ended,
     * well or not. */
    uint32_t next, beside, root, n_before;
};

struct vt_load_plan { /* zero-initialise to start */
    struct vt_arena arena;
    struct vt_load_session *session; /* heap */
    size_t n, cap;
    size_t n_turns;  /* of all */
    bool timed;      /* sessions say when they begin */
    bool ignore_eos; /* output is to have exactly the length asked for */
};
void vt_load_plan_free(struct vt_load_plan *p); /* frees contents, not p */
size_t
vt_load_plan_starts(const struct vt_load_plan *p); /* sessions that wait for none;
                                                    * they stand before others */

/* ---- arrivals ---------------------------------------------------------- */

enum vt_ramp { VT_RAMP_NONE, VT_RAMP_LINEAR, VT_RAMP_EXPONENTIAL };
struct vt_load_arrivals {
    double rate;       /* per second; INFINITY: all at once */
    double burstiness; /* gamma's shape; 1: Poisson; INFINITY: even */
    enum vt_ramp ramp; /* from ramp_start to ramp_end per second, in place of rate */
    double ramp_start, ramp_end;
    uint64_t seed;
};
/* Send times of n requests, ascending; the last is exactly n / rate, as vLLM's are. */
int vt_load_arrivals_make(const struct vt_load_arrivals *a, vt_ns *at, size_t n,
                          struct vt_err *err) VT_MUST_CHECK;
double vt_load_rate_at(const struct vt_load_arrivals *a, size_t i, size_t n);

/* ---- what came of it --------------------------------------------------- */

enum vt_load_failure {
    VT_LOAD_FINE,
    VT_LOAD_CONNECT,   /* no connection */
    VT_LOAD_TLS,       /* no handshake, or no trust in the certificate */
    VT_LOAD_CLOSED,    /* the connection ended before the response did */
    VT_LOAD_TIMEOUT,   /* it took longer than the config allows */
    VT_LOAD_STATUS,    /* a status other than 200 */
    VT_LOAD_MALFORMED, /* what came is no HTTP, or an event is no JSON */
    VT_LOAD_TOLD,      /* an event told of an error */
    VT_LOAD_EMPTY,     /* a response without a choice */
    VT_LOAD_STOPPED,   /* the run was stopped before the end of the response */
    VT_LOAD_FAILURES   /* how many there are */
};
const char *vt_load_failure_name(enum vt_load_failure f);

struct vt_load_record { /* one request; owned by the records */
    uint32_t session, turn;
    vt_ns planned; /* when it should have left; of later turns: reply and think time */
    vt_ns begun;   /* when it was its turn: a place under max_concurrency was free */
    vt_ns sent;    /* its last byte was handed to the kernel; 0: never */
    vt_ns first;   /* first event with a choice; 0: none came */
    vt_ns first_text; /* first event with text, which a chat's role chunk has not; 0 */
    vt_ns last;       /* last event with a choice */
    vt_ns last_event; /* last one of all but [DONE]: the usage, mostly */
    vt_ns ended;      /* the response was whole, or failed */
    const vt_ns *stamp; /* of every event with a choice, ascending */
    uint32_t n_stamps;
    uint32_t prompt_tokens, output_tokens, cached_tokens;
    uint32_t asked_tokens;  /* output */
    bool counted_by_server; /* token counts come from its usage */
    bool ok;
    enum vt_load_failure failure; /* FINE where ok */
    int status;                   /* of HTTP; 0: none came */
    const char *error;            /* the reason phrase of a status; NULL: none */
    const char *detail; /* how the response's body begins; NULL: nothing to say */
    const char *text;   /* generated; NULL: not kept */
    size_t text_len;
    const char *finish; /* "stop", "length", ...; NULL: unknown */
    const char *request_id;
};

struct vt_load_records { /* zero-initialise to start */
    struct vt_arena arena;
    struct vt_load_record *record; /* heap; in the order of begun */
    size_t n, cap;
    vt_ns end;           /* of the run */
    double start_unix_s; /* of time 0 */
    bool interrupted;
    /* The generator's own doings. */
    vt_ns lag_p50, lag_p99, lag_max; /* sent later than it was its turn */
    uint32_t stalls;                 /* its loop stood still for longer than 5 ms */
    vt_ns stalled;                   /* in all */
    uint32_t peak_concurrency;
    uint32_t connections; /* made in all */
    vt_ns *probe;         /* heap: latencies of probes that were answered */
    size_t n_probes, cap_probes, probes_failed;
};
void vt_load_records_free(struct vt_load_records *r);

/* ---- asking ------------------------------------------------------------ */

enum vt_load_backend { VT_LOAD_COMPLETIONS, VT_LOAD_CHAT };

struct vt_load_progress {
    vt_ns now;
    size_t planned, begun, done, failed; /* requests */
    uint64_t tokens;                     /* events with a choice */
    uint32_t in_flight, waiting;
};

struct vt_load_config {   /* all borrowed; zero means "as vLLM does" where it can */
    const char *base_url; /* "http://127.0.0.1:8000"; https needs no more */
    const char *endpoint; /* NULL: the backend's own */
    bool insecure;        /* any certificate will do */
    const char *ca_file;  /* PEM; NULL: the system's */
    const char *api_key;  /* NULL: none */
    const struct net_header *header;
    size_t n_headers;
    enum vt_load_backend backend;
    const char *model;
    const char *const *lora; /* names to use in place of model */
    size_t n_lora;
    bool lora_in_turn;        /* else at random */
    const char *extra_body;   /* a JSON object: members to add or to put in place */
    int32_t logprobs;         /* below 0: not asked for */
    bool ignore_eos;          /* also if the plan says so */
    bool session_header;      /* X-Session-ID */
    const char *id_prefix;    /* of x-request-id; NULL: no such header */
    uint32_t max_concurrency; /* requests in flight; 0: no limit */
    uint32_t max_sessions;    /* sessions begun and not ended; 0: no limit */
    vt_ns timeout_ns;         /* of one request; 0: six hours */
    bool keep_texts;
    const struct vt_tokenizer
        *tokenizer;    /* counts what the server does not; may be NULL */
    double probe_rate; /* one-token requests beside the others, per second; 0: none */
    uint64_t seed;
    bool (*stopped)(void *user); /* asked about ten times a second; NULL: never */
    void (*progress)(void *user, const struct vt_load_progress *p); /* as often; NULL */
    vt_ns tick_ns; /* how often; 0: ten times a second */
    void *user;
};

/* Sends the plan and writes down what came of it. at: when each session begins; NULL:
 * as the plan says, or all at once. *out is to be zeroed; it holds what there is also
 * when this fails or was stopped. Requests that fail do not make the run fail. */
int vt_load_run(struct vt_load_records *out, const struct vt_load_plan *plan,
                const vt_ns *at, const struct vt_load_config *c,
                struct vt_err *err) VT_MUST_CHECK;

/* Whether base_url can be understood. */
int vt_load_url_check(const char *url, struct vt_err *err) VT_MUST_CHECK;

/* One request of another kind, waited for at most timeout_ns: /v1/models, /metrics.
 * body: NULL is a GET. VT_EIO if there was no response. The reply's memory is the
 * caller's. */
struct vt_load_call {
    const char *path;
    const char *body;
    size_t body_len;
    vt_ns timeout_ns;
};
int vt_load_call(const struct vt_load_config *c, const struct vt_load_call *call,
                 int *status, struct vt_buf *reply, struct vt_err *err) VT_MUST_CHECK;

/* The first model that a server lists; texts are in the arena. */
struct vt_load_model {
    const char *id, *root;  /* root: what it is a name of; the id if that is not told */
    uint32_t max_model_len; /* 0: not told */
};
int vt_load_find_model(const struct vt_load_config *c, struct vt_arena *arena,
                       struct vt_load_model *out, struct vt_err *err) VT_MUST_CHECK;

/* ---- what it amounts to ------------------------------------------------ */

enum { VT_LOAD_PERCENTILES = 16, VT_LOAD_POSITIONS = 16 };

struct vt_load_asks {             /* what to work out */
    enum vt_load_backend backend; /* a chat's latency ends with its usage, as vLLM's */
    double percentile[VT_LOAD_PERCENTILES]; /* 0 to 100 */
    size_t n_percentiles;
    double slo_ttft_ms, slo_tpot_ms, slo_e2el_ms; /* below 0: not asked for */
    uint32_t
        steady_concurrency; /* max_concurrency of a run at full speed; 0: no window */
};
/* Nothing asked for but P99. */
void vt_load_asks_init(struct vt_load_asks *a);

struct vt_load_dist { /* of some latency, in ms; all 0 if n is */
    size_t n;
    double mean, median, std, min, max;
    double p50, p90, p99;          /* always */
    double p[VT_LOAD_PERCENTILES]; /* as asked for */
};

/* The part of a run in which at least 95 % of the places were taken. */
struct vt_load_steady {
    bool found;
    bool is_short; /* below 10 s or a tenth of the run: not to be relied on */
    double start_s, end_s, duration_s;
    uint32_t target, threshold, observed_peak;
    size_t started, completed; /* requests within */
    uint64_t input_tokens;     /* of those that started */
    uint64_t tokens;           /* that came */
    double request_throughput, input_throughput, output_throughput;
    struct vt_load_dist ttft, tpot; /* of requests that started within */
};

/* One sample of a server's /metrics, which has the texts. */
struct vt_load_sample {
    const char *name, *labels; /* labels: what stands in braces */
    size_t name_len, labels_len;
    double value;
};
/* Takes the next one from *at on; false: there is none. Other lines are skipped. */
bool vt_load_sample_next(const char **at, const char *end, struct vt_load_sample *s);
bool vt_load_sample_is(const struct vt_load_sample *s, const char *name);
/* A label's value as it stands, without its quotes, cut to `size`; "": there is none.
 */
void vt_load_sample_label(const struct vt_load_sample *s, const char *key, char *out,
                          size_t size);

/* Counters of speculative decoding on a server's /metrics. */
struct vt_load_spec {
    bool on; /* the server has them */
    uint64_t drafts, draft_tokens, accepted_tokens;
    uint64_t position[VT_LOAD_POSITIONS]; /* accepted at each */
    size_t n_positions;
};
void vt_load_spec_read(struct vt_load_spec *s, const char *metrics, size_t len);
/* What was added from one reading to the next; on: there were drafts between. */
void vt_load_spec_minus(struct vt_load_spec *s, const struct vt_load_spec *before);

struct vt_load_summary {
    /* As `vllm bench serve` defines them. */
    double duration_s;
    size_t completed, failed;
    uint64_t total_input, total_output;
    double request_throughput, request_goodput, output_throughput, total_throughput;
    double max_output_per_s;
    uint32_t max_concurrent;
    struct vt_load_dist ttft, tpot, itl, e2el;
    size_t probe_completed, probe_failed;
    double probe_median_ms, probe_p99_ms, probe_max_ms;
    struct vt_load_spec spec; /* for the caller to fill */
    /* Ours. */
    size_t unfinished; /* cut off by a stop; neither completed nor failed */
    size_t failures[VT_LOAD_FAILURES];
    const char *first_error;          /* NULL: none; borrowed from the records */
    struct vt_load_dist ttft_planned; /* with what it waited in the client */
    struct vt_load_dist ttft_sent;    /* without */
    struct vt_load_dist ttft_text;    /* from sent to the first text */
    struct vt_load_dist e2el_planned;
    struct vt_load_dist waited; /* in the client for a place */
    uint64_t cached_tokens;
    uint32_t peak_concurrency; /* at one moment */
    struct vt_load_steady steady;
};
int vt_load_summarize(struct vt_load_summary *s, const struct vt_load_records *r,
                      const struct vt_load_asks *a, struct vt_err *err) VT_MUST_CHECK;
/* Of v, which it sorts. */
void vt_load_dist_of(struct vt_load_dist *d, double *v, size_t n,
                     const struct vt_load_asks *a);
/* As vLLM measures one request: seconds. */
double vt_load_ttft_s(const struct vt_load_record *r);

/* ---- telling of it ----------------------------------------------------- */

struct vt_load_pair {
    const char *key, *value;
};

struct vt_load_about { /* what a result says of its run; all borrowed */
    const char *date, *backend, *label, *model, *tokenizer; /* NULL: null */
    size_t num_prompts;
    const struct vt_load_pair *metadata;
    size_t n_metadata;
    double rate, burstiness;  /* INFINITY: "inf" */
    uint32_t max_concurrency; /* 0: null */
    enum vt_ramp ramp;
    uint32_t ramp_start, ramp_end;
    const char *ramp_events; /* JSON; NULL: none */
    const char *metrics;     /* which: "ttft,tpot,itl" */
    bool detailed, goodput;
    const char *more; /* further members as JSON text, each after ", "; NULL: none */
};
/* The object of --save-result, on one line without an end: vLLM's members in its order,
 * then "steady_state" if there is one, and "vtwin". */
void vt_load_result_json(struct vt_buf *b, const struct vt_load_about *about,
                         const struct vt_load_asks *asks,
                         const struct vt_load_summary *s,
                         const struct vt_load_records *r);
/* vLLM's table, line for line; and ours, to be put after it. */
void vt_load_result_table(struct vt_buf *b, const struct vt_load_about *about,
                          const struct vt_load_asks *asks,
                          const struct vt_load_summary *s);
void vt_load_own_table(struct vt_buf *b, const struct vt_load_summary *s,
                       const struct vt_load_records *r);

/* ---- datasets ---------------------------------------------------------- */

struct vt_load_lens { /* mean lengths and how far they spread */
    uint32_t input, output;
    double input_ratio, output_ratio; /* [L (1 - r), L (1 + r)] */
    uint32_t prefix;                  /* tokens that all begin with */
};

struct vt_load_data { /* which requests to make; all borrowed */
    const char *name; /* random, sharegpt, prefix_repetition, custom, timed_trace,
                         trace */
    const char *path; /* NULL: none */
    size_t n;         /* requests wanted; 0: all the file has */
    uint64_t seed;
    const struct vt_tokenizer *tokenizer; /* NULL: prompts are ids of id_range, or */
    double bytes_per_token;               /* texts of a file are counted by this */
    struct { /* with token_ids: the ids to choose from; below == 0: the tokenizer's */
        uint32_t from, below;
    } id_range;
    struct vt_load_lens random;
    int64_t output_len; /* sharegpt, custom: for all; 0: as the data says; custom: -1 */
    uint32_t prefixes, prefix_len, suffix_len, repetition_output_len;
    bool no_oversample, no_shuffle,
        as_chat;           /* as_chat: custom, put into the template */
    uint32_t chunk_tokens; /* timed_trace: tokens of a hash id */
    double sec_multiplier;
    const char *label_timestamp, *label_input, *label_output, *label_hashes;
    bool token_ids; /* send ids, not text */
    double speed;   /* trace: arrivals come that many times as fast; 0: as recorded */
};
void vt_load_data_init(struct vt_load_data *d); /* vLLM's defaults */
/* Makes *out, which is to be zeroed; nothing is left to free on failure. */
int vt_load_data_make(struct vt_load_plan *out, const struct vt_load_data *d,
                      struct vt_err *err) VT_MUST_CHECK;
extern const char *const vt_load_data_names[]; /* ends with NULL */
/* Appends a workload.yaml of requests with the same lengths, and with the same in
 * common where they are made up, for those who need no text: random, prefix_repetition,
 * sharegpt, custom. Arrivals are one a second. */
int vt_load_data_spec(struct vt_buf *b, const struct vt_load_data *d,
                      struct vt_err *err) VT_MUST_CHECK;
/* The same of requests at hand, as the dataset "trace" has them of a file. */
int vt_load_plan_of(struct vt_load_plan *out, const struct vt_load_data *d,
                    const struct vt_workload *w, struct vt_err *err) VT_MUST_CHECK;

/* For those who make plans: adds a session; its turns are copied into the arena, what
 * they point to is not. */
int vt_load_plan_add(struct vt_load_plan *p, const struct vt_load_session *s,
                     struct vt_err *err) VT_MUST_CHECK;

/* ---- conversations ----------------------------------------------------- */

struct vt_load_range { /* even between both, which are included */
    uint32_t lo, hi;
};
enum vt_load_think { VT_THINK_EXPONENTIAL, VT_THINK_CONSTANT };

struct vt_load_multiturn {
    /* Conversations, or how to make them, as vLLM's multi-turn benchmark reads them;
     * NULL: made by what is below. */
    const char *path;
    uint64_t seed;
    enum vt_load_think think;
    double think_s; /* its mean; 0: none */
    /* 0: the default, in brackets. */
    uint32_t conversations; /* [20]; of a file: at most so many [all] */
    uint32_t turns;         /* of each [5]; of a file: at most so many [all] */
    uint32_t starters;      /* system prompts that conversations share [10] */
    struct vt_load_range starter_tokens; /* [3500:4000] */
    struct vt_load_range user_tokens;    /* of a message [20:200] */
    struct vt_load_range output_tokens;  /* to ask for [700:960] */
};
/* Fills a zeroed plan. The tokenizer may be NULL for a list of conversations: then no
 * tokens are counted and no limit is asked for. On failure nothing is left to free. */
int vt_load_multiturn(struct vt_load_plan *p, const struct vt_load_multiturn *given,
                      const struct vt_tokenizer *t, struct vt_err *err) VT_MUST_CHECK;
/* The same as a workload.yaml, as vt_load_data_spec(); without a path. */
int vt_load_multiturn_spec(struct vt_buf *b, const struct vt_load_multiturn *given,
                           struct vt_err *err) VT_MUST_CHECK;
/* "3500:4000", or one number for both. */
int vt_load_range_parse(const char *text, struct vt_load_range *out,
                        struct vt_err *err) VT_MUST_CHECK;
/* "2.5", "exponential:2.5" or "constant:2.5": seconds. */
int vt_load_think_parse(const char *text, struct vt_load_multiturn *m,
                        struct vt_err *err) VT_MUST_CHECK;

/* What turns took, by their number: a table for people, and the list that stands behind
 * "per_turn_metrics". Both append; nothing, and null, where no session has two. */
int vt_load_turns_table(struct vt_buf *b, const struct vt_load_records *r,
                        const struct vt_load_asks *a, struct vt_err *err) VT_MUST_CHECK;
int vt_load_turns_json(struct vt_buf *b, const struct vt_load_records *r,
                       const struct vt_load_asks *a, struct vt_err *err) VT_MUST_CHECK;

/* ---- records for other tools ------------------------------------------- */

struct vt_load_origin {                   /* what was measured; all borrowed */
    const char *model;                    /* NULL: unknown */
    const char *name;                     /* of the run; NULL: none */
    const struct vt_load_plan *plan;      /* NULL: nothing is known of prompts */
    const struct vt_tokenizer *tokenizer; /* for what prompts share; NULL: not told */
    const struct vt_workload *workload;   /* without sessions: what the plan was made
                                           * of by vt_load_plan_of(); NULL: of none */
    const struct vt_meta *engine; /* what is known of the server; NULL: nothing */
    enum vt_load_backend backend;
    uint32_t max_concurrency; /* 0: no limit */
    double rate;              /* asked for; INFINITY: all at once */
    uint64_t seed;
};
/* trace.jsonl, gzip if the name ends so. Requests without a token are left out and
 * counted. Arrivals are when a request was sent, as a server sees them. */
int vt_load_write_trace(const struct vt_load_records *r, const struct vt_load_origin *o,
                        const char *path, size_t *left_out,
                        struct vt_err *err) VT_MUST_CHECK;

/* inference-perf's files into a directory, which is made: summary, one for each stage,
 * and single requests. */
struct vt_load_stage { /* borrowed */
    const struct vt_load_records *records;
    const struct vt_load_origin *origin;
};
int vt_load_write_lifecycle(const struct vt_load_stage *stage, size_t n,
                            const char *dir, struct vt_err *err) VT_MUST_CHECK;

/* ---- results side by side ---------------------------------------------- */

/* One result: the JSON of `vllm bench serve` and of ours, of a simulation or of a
 * search for a capacity. */
struct vt_result {
    const char *name; /* file, and line if there are several; of a side: the folder */
    const struct vt_node *root;
    size_t side; /* results of one folder are runs of one side, which differ by seed */
};
struct vt_results { /* zero-initialise to start */
    struct vt_arena arena;
    struct vt_result *result; /* heap; side by side */
    size_t n, cap;
    size_t n_sides;
};
/* Appends every result of a file: one object, a list of them, or a line each. What
 * Python calls NaN and Infinity is null. A text ends with a NUL. Of a folder it is
 * summary.json, or one side of all .json files in it and summaries one folder below. */
int vt_results_load(struct vt_results *r, const char *path,
                    struct vt_err *err) VT_MUST_CHECK;
int vt_results_read(struct vt_results *r, const char *name, const char *text,
                    size_t len, struct vt_err *err) VT_MUST_CHECK;
void vt_results_free(struct vt_results *r);
/* A metric by its name in the JSON ("steady_state.mean_ttft_ms" goes inside); false if
 * it is not there or not a number. */
bool vt_result_get(const struct vt_result *r, const char *metric, double *out);

struct vt_result_judgement {
    const char *metrics; /* "p99_ttft_ms,request_throughput": those that are judged;
                            NULL: failures, throughput, and latencies' mean, median and
                            p99 */
    double tolerance;    /* percent; negative: none is judged */
};
/* The first result against each of the others. Both append; *worse is the number of
 * judged metrics that are worse by more than the tolerance. */
int vt_results_table(struct vt_buf *b, const struct vt_results *r,
                     const struct vt_result_judgement *j, size_t *worse,
                     struct vt_err *err) VT_MUST_CHECK;
int vt_results_json(struct vt_buf *b, const struct vt_results *r,
                    const struct vt_result_judgement *j, size_t *worse,
                    struct vt_err *err) VT_MUST_CHECK;

/* ---- sweeps ------------------------------------------------------------ */

enum vt_sweep_of { VT_SWEEP_RATE, VT_SWEEP_CONCURRENCY };

struct vt_sweep_point {
    double load; /* asked for; INFINITY: all at once */
    struct vt_load_summary s;
    double turns; /* requests of a session */
    bool saturated;
    char file[64]; /* of the result, beside the summary */
};
struct vt_sweep { /* zero-initialise to start */
    enum vt_sweep_of of;
    struct vt_sweep_point *point; /* heap; in the order of running */
    size_t n, cap;
};
void vt_sweep_free(struct vt_sweep *w);
/* Adds a run and says whether the load was more than was borne: of a rate, less than
 * 90 % of it was served and first tokens came later and later; of a concurrency, it
 * served no more (below 3 %) than the one before, and first tokens came later. */
int vt_sweep_add(struct vt_sweep *w, double load, const struct vt_load_summary *s,
                 const struct vt_load_records *r, struct vt_err *err) VT_MUST_CHECK;
/* "1,2,4.5,inf": ascending or not; the caller frees *out. */
int vt_sweep_parse(const char *text, enum vt_sweep_of of, double **out, size_t *n,
                   struct vt_err *err) VT_MUST_CHECK;
/* All append. The CSV has a head line; the JSON is a list of objects with the names of
 * results, and so can be compared. */
void vt_sweep_table(struct vt_buf *b, const struct vt_sweep *w);
void vt_sweep_csv(struct vt_buf *b, const struct vt_sweep *w);
void vt_sweep_json(struct vt_buf *b, const struct vt_sweep *sweep);
/* Its charts, for a page. */
int vt_sweep_page(struct vt_buf *b, const struct vt_sweep *w,
                  struct vt_err *err) VT_MUST_CHECK;
/* The picture, by gnuplot: .png, .svg or .pdf. */
int vt_sweep_draw(const struct vt_sweep *w, const char *title, const char *scratch,
                  const char *path, struct vt_err *err) VT_MUST_CHECK;

#endif
