/* otlp.h - what the files that read OpenTelemetry spans share; private to trace.
 *
 * Reading goes line by line and only collects: each span is read whole or, if it is
 * malformed, not at all. vt_otlp_finish() then joins what was collected, one engine
 * process at a time. Times are nanoseconds of whatever clock the span names and lie in
 * [0, OTLP_MAX_NS], so that differences and sums of three never overflow. */
#ifndef VT_TRACE_OTLP_H
#define VT_TRACE_OTLP_H

#include "trace/internal.h"

#define OTLP_MAX_NS INT64_C(3000000000000000000) /* the year 2065 */
/* So that a short span cannot ask for much memory. */
#define OTLP_MAX_OUTPUT   1000000 /* tokens of one request */
#define OTLP_MAX_PREFILLS 65536   /* requests of one step */

/* ---- what was read ---------------------------------------------------- */

struct otlp_key { /* a span's */
    uint64_t trace[2], span;
};

struct otlp_step { /* step.BATCH_SUMMARY */
    uint64_t id;
    size_t order;           /* of reading, here and below */
    vt_ns start_ns, end_ns; /* of schedule(); -1: not stated */
    double duration_us;     /* -1: not stated */
    uint32_t prefills, decodes, prefill_tokens, running, waiting;
    uint32_t tokens;              /* scheduled; 0: not stated */
    uint32_t blocks, free_blocks; /* without the null block */
    double kv_usage;
    /* Found by otlp_link(). */
    size_t first_snap;
    uint32_t n_snaps;
    vt_ns out_ns; /* VT_NEVER: not known */
};

struct otlp_snap { /* step.REQUEST_SNAPSHOT */
    uint64_t step;
    size_t order;
    uint32_t request; /* of the engine */
    uint32_t prompt, computed, output, scheduled;
    uint32_t effective, blocks; /* UINT32_MAX: not stated */
};

enum otlp_event { OTLP_SCHEDULED, OTLP_FIRST_TOKEN, OTLP_PREEMPTED, OTLP_FINISHED };

struct otlp_mark { /* a journey event that names a step */
    uint64_t step;
    size_t order;
    vt_ns at_ns;
    uint32_t request;
    uint8_t event;  /* enum otlp_event */
    bool is_result; /* came with a step's result */
};

struct otlp_request { /* of one engine; known to it or only to its snapshots */
    const char *id;
    bool known;
    struct otlp_key parent;
    vt_ns queued_ns, scheduled_ns, first_token_ns, finished_ns; /* VT_NEVER: not seen */
    vt_ns to_unix_ns; /* add to get wall-clock time */
    uint32_t prompt, output, max_tokens, preemptions;
    const char *finish; /* NULL: not stated */
    uint32_t line;
    /* Found by otlp_link(). */
    uint32_t effective; /* prompt tokens that were not cached; UINT32_MAX: not known */
    size_t seen_in;     /* the step with its newest snapshot, plus 1 */
    uint64_t base;      /* its context in a step is base plus the step's id, mod 2^64 */
    bool decodes, started;
};

extern const struct otlp_request otlp_unseen; /* nothing is known of it */

struct otlp_engine { /* one process, by its service.instance.id */
    const char *name;
    struct otlp_step *step;
    size_t n_steps, cap_steps;
    struct otlp_snap *snap;
    size_t n_snaps, cap_snaps;
    struct otlp_mark *mark;
    size_t n_marks, cap_marks;
    struct otlp_request *request;
    size_t n_requests, cap_requests;
    struct vt_names ids;
    uint64_t range_first, range_last; /* step ids that spans say they cover */
    bool has_range;
    /* Found by otlp_link(). */
    unsigned depth;      /* steps in flight at once: 1 or 2 */
    bool saw_depth;      /* the events tell */
    bool rests;          /* writes a step without requests when it has none left */
    uint32_t block_size; /* 0: not known */
};

struct otlp_front { /* llm_request of vllm.api: a request as the API server saw it */
    struct otlp_key key;
    vt_ns start_unix_ns;
    vt_ns arrived_ns, handoff_ns, departed_ns; /* VT_NEVER: not seen */
    vt_ns to_unix_ns;
};

struct otlp_call { /* llm_request of upstream vLLM */
    const char *id;
    vt_ns start_ns; /* wall clock */
    double ttft_s, e2e_s;
    double queue_s, prefill_s; /* -1: not stated */
    uint32_t prompt, output, max_tokens;
    uint32_t line;
};

struct otlp_kv {
    enum vt_otlp_kv_event kind;
    uint64_t step;
    bool has_step;
    size_t engine; /* SIZE_MAX: a batch does not say */
    uint32_t blocks;
    bool to_gpu;
    uint64_t transfer;
    vt_ns unix_ns;
};

struct vt_otlp {
    struct vt_otlp_options options;
    struct vt_arena arena;
    struct vt_otlp_stats stats;
    const char *source; /* the first file */
    const char *model;  /* NULL: not stated */
    struct otlp_engine *engine;
    size_t n_engines, cap_engines;
    struct vt_names engine_names;
    struct otlp_front *front;
    size_t n_fronts, cap_fronts;
    struct otlp_call *call;
    size_t n_calls, cap_calls;
    struct otlp_kv *kv;
    size_t n_kv, cap_kv;
    const char **span; /* names of the spans read */
    size_t n_spans, cap_spans;
    struct vt_names span_names;
    struct vt_otlp_capture *capture;
    size_t n_captures, cap_captures;
    size_t useful; /* spans and batches of KV events read so far */
};

/* ---- attributes ------------------------------------------------------- */

enum otlp_type {
    OTLP_U32, /* at most INT32_MAX */
    OTLP_U64, /* at most INT64_MAX */
    OTLP_NS,
    OTLP_F64, /* from 0 to 1e15 */
    OTLP_STR, /* not empty; of the line in hand */
};

struct otlp_field {
    const char *key;
    enum otlp_type type;
    enum vt_need need;
    size_t offset; /* of the member it goes to */
};

/* Reads attributes into members of *out; absent ones leave theirs as it was. */
int otlp_read(const struct vt_node *attributes, const struct otlp_field *fields,
              size_t n, void *out, struct vt_err *err) VT_MUST_CHECK;

/* Members of spans and events. 64-bit integers may be strings. */
int otlp_get_ns(const struct vt_node *map, const char *key, vt_ns *out,
                struct vt_err *err) VT_MUST_CHECK;
int otlp_get_hex(const struct vt_node *map, const char *key, uint64_t *words, size_t n,
                 struct vt_err *err) VT_MUST_CHECK;
/* *out is NULL if absent. Messages do not name the line. */
int otlp_get_list(const struct vt_node *map, const char *key,
                  const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;
const char *otlp_get_text(const struct vt_node *map, const char *key); /* NULL: none */
/* The text behind the last dot: QUEUED of journey.QUEUED. */
const char *otlp_last_word(const char *name);
/* An event's name and its attributes (NULL: none). */
int otlp_event(const struct vt_node *event, const char **word,
               const struct vt_node **attributes, struct vt_err *err) VT_MUST_CHECK;
/* Seconds as attributes state them, from 0 to 1e9, to the nearest nanosecond. */
vt_ns otlp_ns_from_s(double s);

/* ---- spans ------------------------------------------------------------ */

struct otlp_span { /* of the line in hand */
    const char *name, *scope;
    struct otlp_key key, parent;
    vt_ns start_unix_ns;
    const struct vt_node *attributes, *events; /* NULL: none */
    size_t engine;
    uint32_t line;
};

/* One line of a file. name is the file's. Only unusable lines and lack of memory are
 * errors; malformed spans are counted. */
int otlp_read_line(struct vt_otlp *o, const struct vt_node *root, const char *name,
                   struct vt_err *err) VT_MUST_CHECK;

/* Readers of one kind of span each. VT_EINPUT: it is malformed, and nothing of it was
 * kept but names. */
int otlp_read_front(struct vt_otlp *o, const struct otlp_span *s,
                    struct vt_err *err) VT_MUST_CHECK;
int otlp_read_core(struct vt_otlp *o, const struct otlp_span *s,
                   struct vt_err *err) VT_MUST_CHECK;
int otlp_read_call(struct vt_otlp *o, const struct otlp_span *s,
                   struct vt_err *err) VT_MUST_CHECK;
int otlp_read_steps(struct vt_otlp *o, const struct otlp_span *s,
                    struct vt_err *err) VT_MUST_CHECK;
/* KV-cache events among a span's events; *n counts them. */
int otlp_read_kv(struct vt_otlp *o, const struct otlp_span *s, size_t *n,
                 struct vt_err *err) VT_MUST_CHECK;
/* [time, [event, ...], rank, step], as a subscriber to KV events writes it. */
int otlp_read_kv_batch(struct vt_otlp *o, const struct vt_node *batch,
                       struct vt_err *err) VT_MUST_CHECK;

/* The engine's request of that id, added if new. */
int otlp_find_request(struct vt_otlp *o, struct otlp_engine *e, const char *id,
                      uint32_t *out, struct vt_err *err) VT_MUST_CHECK;

/* vt_otlp_add_file() over an open reader, which stays the caller's. */
trace_file_reader otlp_add_lines;

/* ---- in place of other files -------------------------------------------- */

enum otlp_as { OTLP_AS_TRACE, OTLP_AS_STEPS };
/* Opens the file; of spans, what they tell in the words of trace.jsonl or steps.jsonl.
 * The text must outlive *out, and is the caller's to free. */
int otlp_lines_open(struct vt_lines **out, struct vt_buf *text, const char *path,
                    enum otlp_as as, struct vt_err *err) VT_MUST_CHECK;
/* trace_load() by way of it. */
int otlp_load_as(void *to, const char *path, enum otlp_as as, trace_file_reader *read,
                 struct vt_err *err) VT_MUST_CHECK;

/* ---- joining ---------------------------------------------------------- */

/* Sorts an engine's steps, snapshots and marks, links them and finds when results
 * came. */
void otlp_link(struct vt_otlp *o, struct otlp_engine *e);
/* Whether no request of the step was there before. */
bool otlp_starts_anew(const struct otlp_engine *e, const struct otlp_step *s);
/* The first of n cells, sorted by their step (which stands first in them), whose step
 * is not before this one. */
size_t otlp_first_of(const void *cells, size_t n, size_t cell, uint64_t step);
/* The marks of one step: *n of them. */
const struct otlp_mark *otlp_marks_of(const struct otlp_engine *e, uint64_t step,
                                      size_t *n);

/* Whether the request decodes in this step. The spans' own phase says DECODE of what is
 * computed again after a preemption too, and PREFILL of a first decode that was
 * scheduled before the first token was back. */
static inline bool otlp_decodes(const struct otlp_snap *s)
{
    return s->computed >= s->prompt + (s->output ? s->output - 1 : 0);
}

static inline bool otlp_is_empty(const struct otlp_step *s)
{
    return s->prefills == 0 && s->decodes == 0;
}

/* Context of decoding requests in steps without snapshots, followed from journey events
 * as steps go by in order. */
struct otlp_context {
    struct otlp_engine *e;
    size_t next; /* mark */
    uint64_t n;  /* requests that decode */
    uint64_t base;
};
uint64_t otlp_context_at(struct otlp_context *c, const struct otlp_step *s);

/* Adds the rows of an engine's steps, at times since origin. */
int otlp_make_steps(struct vt_otlp *o, struct otlp_engine *e, vt_ns origin_ns,
                    struct vt_steps *out, struct vt_err *err) VT_MUST_CHECK;

/* The scheduler's state after each step, at times since origin. */
int otlp_make_batches(struct vt_otlp *o, const struct otlp_engine *e, vt_ns origin_ns,
                      struct vt_otlp_capture *c, struct vt_err *err) VT_MUST_CHECK;

/* For otlp_arrival(): by key, then time. */
void otlp_sort_fronts(struct vt_otlp *o);
/* When a request arrived, on the engine's clock; VT_NEVER: not known. *front is what
 * the API server says of it, or NULL. */
vt_ns otlp_arrival(const struct vt_otlp *o, const struct otlp_request *r,
                   const struct otlp_front **front);

/* A time at which a request's token of that index came. */
struct otlp_token {
    uint32_t request, index;
    vt_ns at_ns;
};
/* The gaps of the request last added: n tokens from its first to its last, in order.
 * The time between two that are further apart is shared evenly; *shared counts such
 * gaps. */
int otlp_add_gaps(struct trace_build *b, const struct otlp_token *token, size_t n,
                  size_t *shared, struct vt_err *err) VT_MUST_CHECK;
/* The workload and the journeys of an engine's requests, or of all calls. */
int otlp_make_work(struct vt_otlp *o, struct otlp_engine *e, vt_ns origin_ns,
                   struct vt_otlp_capture *c, struct vt_err *err) VT_MUST_CHECK;
int otlp_make_calls(struct vt_otlp *o, struct vt_otlp_capture *c,
                    struct vt_err *err) VT_MUST_CHECK;
/* KV events of one engine, by step. Batches are its own if it is alone. */
int otlp_make_kv(struct vt_otlp *o, size_t engine, bool alone, vt_ns origin_ns,
                 struct vt_otlp_capture *c, struct vt_err *err) VT_MUST_CHECK;

#endif
