/* export.h - spans and events to an OpenTelemetry collector, as OTLP over HTTP (JSON)
 * or gRPC. A thread of its own sends them in batches: noting never waits, and what a
 * slow collector does not take is dropped and counted. */
#ifndef VT_EXPORT_H
#define VT_EXPORT_H

#include "core/core.h"

enum export_protocol { EXPORT_BY_PORT, EXPORT_GRPC, EXPORT_HTTP };
extern const char *const export_protocols[]; /* names; end with NULL */

struct export_config {    /* copied, but for model and engine */
    const char *endpoint; /* "http://127.0.0.1:4318/v1/traces"; or "file:PATH": one
                           * export request a line, as a collector's file exporter */
    enum export_protocol protocol; /* by port: 4317 without a path is gRPC's */
    const char *model;
    const char *headers;            /* "K=V,K=V"; NULL: none */
    bool journey, steps;            /* the events too, which `vtwin fit` joins */
    double journey_rate, step_rate; /* share that is told: 0 to 1 */
    double rich_rate; /* of the steps that are told: with each request's part in them */
    bool core_only;   /* the frontend's spans are another's to tell */
    uint32_t batch;   /* spans of one export; 0: 512 */
    uint32_t period_ms;                    /* at least so often; 0: 1000 */
    const struct vt_engine_config *engine; /* for sizes of blocks and caches; NULL */
    double time_scale; /* of the engines' time against the wall clock; 0: 1 */
};
/* The part of it that flags state; docs/serve.md says what they mean. */
struct vt_otlp_export {
    const char *endpoint, *headers; /* NULL: nothing is exported */
    enum export_protocol protocol;
    bool journey, steps;
    double journey_rate, step_rate, rich_rate;
};
struct export; /* opaque */
/* VT_EINPUT: no such kind of endpoint, or the file cannot be opened. That a collector
 * does not answer is no error: it may come later. */
int export_open(struct export **out, const struct export_config *c,
                struct vt_err *err) VT_MUST_CHECK;
/* Sends what is left, for at most timeout_ms; NULL is fine. */
void export_close(struct export *x, uint32_t timeout_ms);

enum export_stage { /* of a request's journey, as the fork names them */
                    EXPORT_QUEUED,
                    EXPORT_SCHEDULED,
                    EXPORT_FIRST_TOKEN,
                    EXPORT_PREEMPTED,
                    EXPORT_FINISHED,
                    EXPORT_STAGES
};
struct export_event {
    enum export_stage stage;
    double unix_s; /* of tokens: when the step's result came, not when they were sent */
    uint64_t step; /* vt_step.number, of tokens their step's; 0: may be not told */
    uint32_t prompt_done, output_done;
};
struct export_request {                    /* copied */
    const char *id, *traceparent, *finish; /* traceparent NULL: a trace of its own */
    uint64_t tag;    /* as in steps, which are joined by it; 0: not told */
    uint32_t engine; /* that it ran on */
    double arrival_s, queued_s, scheduled_s, first_s, last_s; /* unix */
    uint32_t prompt_tokens, cached_tokens, output_tokens, max_tokens, n;
    double temperature, top_p;
    const struct export_event *event; /* what is missing is made from the times above */
    uint32_t n_events;
};
/* Of a client's trace that is not sampled nothing is told. */
void export_request(struct export *x, const struct export_request *r);
/* One step; zero_unix_s is the unix time at time 0 of the engines. */
void export_step(struct export *x, uint32_t engine, const struct vt_step *s,
                 double zero_unix_s, const struct vt_sched *sched);

struct export_stats {       /* requests and steps: */
    uint64_t sent, dropped; /* taken by the collector; lost */
    uint64_t failed;        /* tries that failed, of which some were repeated */
};
struct export_stats export_stats(const struct export *x);

#endif
