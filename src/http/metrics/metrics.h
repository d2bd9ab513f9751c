/* metrics.h - what /metrics tells: vLLM's names, labels, types and buckets, measured
 * values; private to http. One thread's. */
#ifndef VT_HTTP_METRICS_H
#define VT_HTTP_METRICS_H

#include "core/core.h"
#include "http/api/api.h"
#include "http/http.h"

struct metrics; /* opaque */
/* Of a server of that configuration, whose first name is the label model_name. Copies
 * it, but for the strings. */
int metrics_open(struct metrics **out, const struct vt_serve_config *c,
                 enum api_line line, struct vt_err *err) VT_MUST_CHECK;
void metrics_close(struct metrics *m); /* NULL is fine */

struct metrics_load { /* of one engine, now */
    uint32_t running, waiting;
    uint32_t waiting_deferred; /* of those waiting: not for lack of room */
    double kv_usage;
    struct vt_fetches fetches;
};
/* A step has ended: its output tokens, cache lookups, preemptions, drafts. What became
 * of prompts is told by metrics_first_token(). */
void metrics_step(struct metrics *m, uint32_t engine, const struct vt_step *s,
                  const struct metrics_load *load);
void metrics_set_load(struct metrics *m, uint32_t engine,
                      const struct metrics_load *load);
void metrics_first_token(struct metrics *m, uint32_t engine, double ttft_s,
                         uint32_t prompt_tokens, uint32_t cached_tokens,
                         uint32_t external_tokens);
/* Refused so far, by each of the two limits. */
void metrics_rejected(struct metrics *m, uint64_t by_requests, uint64_t by_tokens);
void metrics_gap(struct metrics *m, uint32_t engine, double itl_s);

enum metrics_finish {
    METRICS_STOP,
    METRICS_LENGTH,
    METRICS_ABORT,
    METRICS_ERROR,
    METRICS_REPETITION
};
struct metrics_request { /* one that is over; seconds, negative: never came to it */
    enum metrics_finish finish;
    uint32_t prompt_tokens, cached_tokens, output_tokens, max_tokens, preemptions;
    /* Of n choices each is told; all but the last to end with n == 0. most_tokens is
     * then the longest's output; 0: output_tokens. */
    uint32_t n, most_tokens;
    double e2e, queue, prefill, decode, inference;
};
void metrics_request(struct metrics *m, uint32_t engine,
                     const struct metrics_request *r);

/* The method by a name that is known; "OTHER". */
const char *metrics_method(const char *method);
/* One HTTP exchange; the handler is a route ("/v1/completions") or "none". Routes that
 * vLLM does not count are passed over. Bytes are those of Content-Length: 0 of a
 * stream. */
void metrics_http(struct metrics *m, const char *handler, const char *method,
                  int status, double seconds, size_t bytes_in, size_t bytes_out);
/* level 0: awake, 1: weights offloaded, 2: all discarded. */
void metrics_sleep(struct metrics *m, uint32_t engine, uint32_t level);
/* Names separated by commas. As vLLM, every pair stays with the time it last held. */
void metrics_loras(struct metrics *m, const char *running, const char *waiting,
                   double unix_s);

/* Tokens left, so long after the time that the engine gave them. */
void metrics_late(struct metrics *m, double seconds);

/* The prefix cache was emptied, which only happens when no block is in use. */
void metrics_cache_reset(struct metrics *m, uint32_t engine);

/* At unix_s, up to which the newest pair of LoRA lists holds. */
void metrics_write(struct metrics *m, struct vt_buf *b, double unix_s);
extern const char metrics_content_type[];

#endif
