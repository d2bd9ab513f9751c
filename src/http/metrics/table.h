/* table.h - what the files of /metrics share; private to http. */
#ifndef VT_HTTP_METRICS_TABLE_H
#define VT_HTTP_METRICS_TABLE_H

#include "http/metrics/metrics.h"

/* ---- values ------------------------------------------------------------- */

/* Bounds are padded with infinity to this, a power of two, so that a search by halves
 * has no branches. */
enum { METRICS_BOUNDS = 32 };

struct metrics_hist {
    const double *bound; /* METRICS_BOUNDS of them */
    double sum;
    uint64_t bucket[METRICS_BOUNDS + 1]; /* not cumulated */
};

static inline void metrics_observe(struct metrics_hist *h, double v)
{
    uint32_t k = 0; /* bounds below v */

    for (uint32_t half = METRICS_BOUNDS / 2; half > 0; half /= 2)
        k += v > h->bound[k + half - 1] ? half : 0;
    k += v > h->bound[k];
    h->bucket[k]++;
    h->sum += v;
}

enum metrics_scalar { /* gauges and counters of an engine */
                      M_DRAFTS,
                      M_DRAFT_TOKENS,
                      M_ACCEPTED,
                      M_FLOPS,
                      M_READ_BYTES,
                      M_WRITE_BYTES,
                      M_RUNNING,
                      M_WAITING,
                      M_WAITING_CAPACITY, /* in the order of the label's values, here
                                             and below */
                      M_WAITING_DEFERRED,
                      M_AWAKE,
                      M_WEIGHTS_OFFLOADED,
                      M_DISCARD_ALL,
                      M_KV_USAGE,
                      M_CACHE_QUERIES,
                      M_CACHE_HITS,
                      M_EXTERNAL_QUERIES,
                      M_EXTERNAL_HITS,
                      M_MM_QUERIES,
                      M_MM_HITS,
                      M_PREEMPTIONS,
                      M_PROMPT,
                      M_PROMPT_COMPUTED,
                      M_PROMPT_CACHE_HIT,
                      M_PROMPT_EXTERNAL,
                      M_PROMPT_CACHED,
                      M_CACHED_DEVICE,
                      M_CACHED_HOST,
                      M_CACHED_P2P,
                      M_CACHED_DISK,
                      M_CACHED_OTHER,
                      M_GENERATION,
                      M_FINISH, /* enum metrics_finish follows */
                      M_REJECTED_REQUESTS = M_FINISH + METRICS_REPETITION + 1,
                      M_REJECTED_TOKENS,
                      M_LOAD_BYTES, /* of transfers with the host's memory */
                      M_STORE_BYTES,
                      M_LOAD_TIME,
                      M_STORE_TIME,
                      M_HOST_USAGE,
                      M_HOST_WRITE_USAGE,
                      M_HOST_READ_USAGE,
                      M_NO_ROOM,
                      M_STORES_SKIPPED,
                      M_PULLS_FAILED,
                      M_NOTES_FAILED, /* none does */
                      M_PREFILLS_EXPIRED,
                      M_TOLD_LATE,
                      M_FETCHES_WAITING,
                      M_FETCHES_MOVING,
                      M_FETCHES_DONE,
                      M_SCALARS
};

enum metrics_histogram {
    H_PROMPT,
    H_GENERATION,
    H_ITERATION,
    H_MAX_GENERATION,
    H_N,
    H_MAX_TOKENS,
    H_TTFT,
    H_ITL,
    H_TPOT,
    H_E2E,
    H_QUEUE,
    H_INFERENCE,
    H_PREFILL,
    H_DECODE,
    H_PREEMPTIONS,
    H_COMPUTED,
    H_LOAD_SIZE,
    H_STORE_SIZE,
    H_LOOKUP,
    H_ASKED,
    H_PULL_TIME,
    H_PULL_POST,
    H_PULL_BYTES,
    H_PULL_PARTS,
    H_HISTOGRAMS
};

struct metrics_engine {
    double scalar[M_SCALARS];
    struct metrics_hist hist[H_HISTOGRAMS];
    double *accepted; /* drafts by position; num_spec_tokens of them */
};

/* ---- families ----------------------------------------------------------- */

enum metrics_kind { METRICS_GAUGE, METRICS_COUNTER, METRICS_HISTOGRAM };
enum metrics_when {
    METRICS_ALWAYS,
    METRICS_SINCE_032,
    METRICS_WITH_DRAFTS,
    METRICS_WITH_OFFLOAD,
    METRICS_WITH_THRESHOLD,
    METRICS_WITH_PULLS,
    METRICS_PULLS_032,
    METRICS_FETCHES_032
};

struct metrics_family {
    const char *name; /* without _total */
    const char *help;
    enum metrics_kind kind;
    enum metrics_when when;
    int first;          /* enum metrics_scalar or metrics_histogram */
    const char *label;  /* besides engine and model_name; NULL: none */
    const char *values; /* of that label, separated by spaces, or "" for positions */
    bool once;          /* not for each engine, and without its label */
};
extern const struct metrics_family metrics_family[];
extern const size_t metrics_n_families;

struct metrics_info { /* a label of cache_config_info */
    const char *label, *value;
    enum api_lines lines;
};
extern const struct metrics_info metrics_info[];
extern const size_t metrics_n_infos;

/* Upper ends of the buckets; ends with 0. NULL: 1, 2, 5, 10, ... up to max_model_len.
 */
extern const double *const metrics_bounds[H_HISTOGRAMS];
extern const double metrics_bounds_highr[], metrics_bounds_http[],
    metrics_bounds_late[];
/* Pads a list that ends with 0. */
void metrics_pad(double out[METRICS_BOUNDS], const double *list);

/* ---- text --------------------------------------------------------------- */

/* As prometheus_client writes one: exponents from a million. */
void metrics_put(struct vt_buf *b, double v);
void metrics_put_label(struct vt_buf *b, const char *value); /* quoted, escaped */
/* The line's name, or what is left of it, and its value. */
static inline void metrics_put_line(struct vt_buf *b, const char *name,
                                    const char *suffix, double v)
{
    vt_buf_printf(b, "%s%s ", name, suffix);
    metrics_put(b, v);
    vt_buf_char(b, '\n');
}
/* A whole family without labels. */
void metrics_put_histogram(struct vt_buf *b, const char *name, const char *help,
                           const struct metrics_hist *h, double created);
/* Lines HELP and TYPE. */
void metrics_put_head(struct vt_buf *b, const char *name, const char *suffix,
                      const char *help, const char *type);

double metrics_boot_time(void); /* unix time of the machine's start; 0: not known */
void metrics_put_process(struct vt_buf *b, double boot_s);

/* ---- HTTP --------------------------------------------------------------- */

struct metrics_http_row { /* handler, method and status, or fewer of them */
    char *handler;        /* owned */
    const char *method;   /* static; NULL: none */
    char status;          /* '2' of 2xx; 0: none */
    double n, sum, created;
    uint64_t bucket[4];
};
struct metrics_http_rows { /* in the order of their first exchange */
    struct metrics_http_row *row;
    size_t n, cap;
};
enum metrics_http_list {
    HTTP_REQUESTS,
    HTTP_SIZE_IN,
    HTTP_SIZE_OUT,
    HTTP_SECONDS,
    HTTP_LISTS
};
struct metrics_web {
    struct metrics_http_rows rows[HTTP_LISTS];
    struct metrics_hist highr;
    double highr_bound[METRICS_BOUNDS];
};
void metrics_web_close(struct metrics_web *w);
void metrics_web_put(const struct metrics_web *w, double created, struct vt_buf *b);

/* ---- the whole ---------------------------------------------------------- */

struct metrics_lora {        /* a pair of lists, and when it last held */
    char *running, *waiting; /* owned */
    double unix_s;
};
enum { METRICS_LORAS = 64 }; /* pairs; the oldest makes room */

enum metrics_hole_kind { METRICS_VALUE, METRICS_FIRST, METRICS_NEXT, METRICS_COUNT };

/* Text is made once; what changes goes into holes. */
struct metrics_hole {
    size_t at; /* offset in the text */
    enum metrics_hole_kind kind;
    const void *value; /* double; bucket of a histogram: first, or to be added */
};

struct metrics {
    struct vt_serve_config config;
    enum api_line line;
    struct metrics_engine *engine;
    double bound[H_HISTOGRAMS][METRICS_BOUNDS];
    double *accepted;
    struct vt_buf text;
    struct metrics_hole *hole;
    size_t n_holes, cap_holes;
    size_t lora_at; /* offset: where LoRA's lines go, behind all holes */
    struct metrics_lora lora[METRICS_LORAS];
    uint32_t n_loras, lora_now; /* how many; which holds */
    struct metrics_web web;
    struct metrics_hist late;
    double late_bound[METRICS_BOUNDS];
    double created, boot_s;
};

/* Makes the text of what all families but HTTP's and the process's tell. */
int metrics_prepare(struct metrics *m, struct vt_err *err) VT_MUST_CHECK;

#endif
