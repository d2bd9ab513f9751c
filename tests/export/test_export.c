/* What the exporter writes is what `vtwin fit --otlp` reads, and it gets through to a
 * collector that is not always there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "export/export.h"
#include "live/live.h"
#include "trace/trace.h"

/* ---- a run ----------------------------------------------------------- */

enum { REQUESTS = 12 };

struct request { /* what truly happened; engine time */
    char id[32];
    struct vt_request ask;
    struct vt_segment segment;
    uint32_t cached, output;
    vt_ns queued, scheduled, first, last;
    uint64_t first_step, last_step, scheduled_step;
};

struct run {
    struct request request[REQUESTS];
    struct vt_engine_config config;
    double zero_unix_s;
    size_t n_steps;
    uint64_t n_decodes, n_prefills;
};

static void cost(const struct vt_latency *m, const struct vt_step_shape *s,
                 struct vt_step_cost *c)
{
    (void)m;
    c->sched_us = 40;
    c->launch_us = 100;
    c->gpu_us = 5000 + 20.0 * s->plan->n;
    c->done_us = 30;
}

static const struct vt_latency_ops ops = {.name = "test", .step = cost};

static double unix_s(const struct run *r, vt_ns at)
{
    return r->zero_unix_s + (double)at / 1e9;
}

static void tell(struct export *x, const struct run *r, const struct request *q)
{
    struct export_event event[] = {
        {EXPORT_QUEUED, unix_s(r, q->queued), 0, 0, 0},
        {EXPORT_SCHEDULED, unix_s(r, q->scheduled), q->scheduled_step, 0, 0},
        {EXPORT_FIRST_TOKEN, unix_s(r, q->first), q->first_step, 0, 1},
        {EXPORT_FINISHED, unix_s(r, q->last), q->last_step, 0, q->output},
    };
    struct export_request e = {.id = q->id,
                               .tag = q->ask.tag,
                               .finish = "length",
                               .arrival_s = unix_s(r, q->queued),
                               .queued_s = unix_s(r, q->queued),
                               .scheduled_s = unix_s(r, q->scheduled),
                               .first_s = unix_s(r, q->first),
                               .last_s = unix_s(r, q->last),
                               .prompt_tokens = q->ask.prompt_tokens,
                               .cached_tokens = q->cached,
                               .output_tokens = q->output,
                               .max_tokens = q->ask.max_tokens,
                               .n = 1,
                               .temperature = 0.5,
                               .top_p = 1,
                               .event = event,
                               .n_events = VT_COUNT(event)};

    export_request(x, &e);
}

static struct request *by_tag(struct run *r, uint64_t tag)
{
    assert_in_range(tag, 1, REQUESTS);
    return &r->request[tag - 1];
}

static void note_step(struct run *r, struct export *x, const struct vt_step *s)
{
    for (uint32_t i = 0; i < s->plan->n; i++) {
        struct request *q = by_tag(r, s->plan->item[i].tag);

        if (q->scheduled < 0) {
            q->scheduled = s->sched_ns;
            q->scheduled_step = s->number;
        }
    }
    for (uint32_t i = 0; i < s->n_first; i++)
        by_tag(r, s->first[i].tag)->cached = s->first[i].cached_tokens;
    for (uint32_t i = 0; i < s->n_rows; i++) {
        struct request *q = by_tag(r, s->row[i].tag);

        if (s->row[i].first) {
            q->first = s->row[i].at;
            q->first_step = s->number;
        }
        q->output += s->row[i].new_tokens;
        q->last = s->row[i].at;
        q->last_step = s->number;
        if (s->row[i].finish)
            tell(x, r, q);
    }
}

static void make_requests(struct run *r)
{
    for (uint32_t i = 0; i < REQUESTS; i++) {
        struct request *q = &r->request[i];

        snprintf(q->id, sizeof(q->id), "cmpl-%u", i);
        /* Two thirds share their first 64 tokens; some come after an idle time. */
        q->segment =
            (struct vt_segment){.content = i % 3 ? 7 : 100 + i, .tokens = 65 + 10 * i};
        q->ask = (struct vt_request){.tag = i + 1,
                                     .prompt_tokens = 65 + 10 * i,
                                     .max_tokens = 1 + 3 * i,
                                     .eos_at = VT_NO_STOP,
                                     .stop_at = VT_NO_STOP,
                                     .segment = &q->segment,
                                     .n_segments = 1,
                                     .output_content = 1000 + i};
        q->queued = (i < 6 ? 3 : 400) * VT_MS + i * 2 * VT_MS;
        q->scheduled = -1;
    }
}

/* Runs the engine over time axis `r` and tells the exporter. */
static void drive(struct run *r, struct export *x)
{
    struct vt_latency model = {.ops = &ops};
    struct vt_engine *e;
    struct vt_err err;
    uint32_t next = 0;

    assert_int_equal(vt_engine_new(&e, &r->config, &model, &err), VT_OK);
    for (;;) {
        vt_ns due = vt_engine_due(e);
        vt_ns add = next < REQUESTS ? r->request[next].queued : VT_NEVER;
        const struct vt_step *done;

        if (due == VT_NEVER && add == VT_NEVER)
            break;
        if (add <= due) {
            assert_int_equal(vt_engine_add(e, add, &r->request[next++].ask, &err),
                             VT_OK);
            continue;
        }
        assert_int_equal(vt_engine_step(e, due, &done, &err), VT_OK);
        if (!done)
            continue;
        r->n_steps += done->plan->n > 0;
        r->n_decodes += done->plan->n_decodes;
        r->n_prefills += done->plan->n_prefills;
        export_step(x, 0, done, r->zero_unix_s, vt_engine_sched(e));
        note_step(r, x, done);
    }
    vt_engine_free(e);
}

static void run_into(struct run *r, const char *path, bool async, bool journey)
{
    char endpoint[300];
    struct export_config c = {.endpoint = endpoint,
                              .model = "tiny \"quoted\"",
                              .journey = journey,
                              .steps = journey,
                              .journey_rate = 1,
                              .step_rate = 1,
                              .rich_rate = 1,
                              .batch = 7,
                              .engine = &r->config};
    struct export *x;
    struct vt_err err;

    snprintf(endpoint, sizeof(endpoint), "file:%s", path);
    vt_engine_config_init(&r->config);
    r->config.max_model_len = 2048;
    r->config.block_size = 16;
    r->config.num_gpu_blocks = 513;
    r->config.async_scheduling = async;
    r->zero_unix_s = vt_unix_s();
    make_requests(r);
    if (export_open(&x, &c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    drive(r, x);
    export_close(x, 1000);
}

static void temporary(char path[64])
{
    int fd;

    snprintf(path, 64, "/tmp/vtwin-export-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

static struct vt_otlp *load(const char *path)
{
    struct vt_otlp_options options = {VT_STEP_INTERVAL};
    struct vt_otlp *o;
    struct vt_err err;

    if (vt_otlp_new(&o, &options, &err) != VT_OK ||
        vt_otlp_add_file(o, path, &err) != VT_OK || vt_otlp_finish(o, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return o;
}

/* ---- reading it back ------------------------------------------------- */

static void assert_near(vt_ns got, vt_ns want, const char *what)
{
    if (got < want - VT_US || got > want + VT_US)
        fail_msg("%s: %lld ns, not %lld", what, (long long)got, (long long)want);
}

static vt_ns sum_of_gaps(const struct vt_workload *w, size_t i)
{
    const struct vt_measured *m = &w->measured[i];
    vt_ns sum = 0;

    for (uint32_t k = 0; k < m->n_gaps; k++)
        sum += w->gap[m->first_gap + k];
    return sum;
}

static struct request *find(struct run *r, const char *id)
{
    char name[32];

    for (size_t i = 0; i < REQUESTS; i++) {
        snprintf(name, sizeof(name), "req-%llu",
                 (unsigned long long)r->request[i].ask.tag);
        if (strcmp(name, id) == 0 || strcmp(r->request[i].id, id) == 0)
            return &r->request[i];
    }
    fail_msg("no request '%s'", id);
    return NULL;
}

static void assert_requests(struct run *r, const struct vt_workload *w)
{
    assert_int_equal(w->n, REQUESTS);
    for (size_t i = 0; i < w->n; i++) {
        const struct request *q = find(r, w->req[i].id);

        assert_int_equal(w->req[i].prompt_tokens, q->ask.prompt_tokens);
        assert_int_equal(w->req[i].output_tokens, q->ask.max_tokens);
        assert_near(w->measured[i].ttft_ns, q->first - q->queued, "TTFT");
        assert_near(sum_of_gaps(w, i), q->last - q->first, "first to last token");
        assert_near(w->req[i].arrival_ns - w->req[0].arrival_ns,
                    q->queued - r->request[0].queued, "arrival");
    }
}

static void assert_steps(const struct run *r, const struct vt_otlp_capture *c)
{
    uint64_t decodes = 0;

    assert_int_equal(c->steps.n, r->n_steps);
    for (size_t i = 0; i < c->steps.n; i++)
        decodes += c->steps.step[i].decodes;
    assert_int_equal(decodes, r->n_decodes);
    assert_int_equal(c->steps.n_prefill, r->n_prefills);
    assert_int_equal(c->work.meta.block_size, 16);
    assert_int_equal(c->work.meta.num_gpu_blocks, 513);
    assert_int_equal(c->work.meta.async_scheduling, r->config.async_scheduling);
    assert_string_equal(c->work.meta.model, "tiny \"quoted\"");
}

static void journeys_and_steps_read_back_as_they_were(void **state)
{
    (void)state;
    for (int async = 0; async < 2; async++) {
        struct run r = {.n_steps = 0};
        char path[64];
        struct vt_otlp *o;
        const struct vt_otlp_capture *c;

        temporary(path);
        run_into(&r, path, async, true);
        o = load(path);
        assert_int_equal(vt_otlp_stats(o)->malformed, 0);
        assert_int_equal(vt_otlp_stats(o)->journeys, REQUESTS);
        assert_int_equal(vt_otlp_stats(o)->joined, REQUESTS);
        assert_int_equal(vt_otlp_stats(o)->missing_steps, 0);
        assert_int_equal(vt_otlp_captures(o), 1);
        c = vt_otlp_capture(o, 0);
        assert_requests(&r, &c->work);
        assert_steps(&r, c);
        assert_int_equal(c->shared_gaps, 0);
        for (size_t i = 0; i < c->n_journeys; i++)
            assert_int_equal(c->journey[i].cached_tokens,
                             find(&r, c->journey[i].id)->cached);
        vt_otlp_free(o);
        unlink(path);
    }
}

static void without_journeys_spans_are_upstreams(void **state)
{
    struct run r = {.n_steps = 0};
    char path[64];
    struct vt_otlp *o;
    const struct vt_otlp_capture *c;

    (void)state;
    temporary(path);
    run_into(&r, path, false, false);
    o = load(path);
    assert_int_equal(vt_otlp_stats(o)->call_spans, REQUESTS);
    assert_int_equal(vt_otlp_captures(o), 1);
    c = vt_otlp_capture(o, 0);
    assert_requests(&r, &c->work);
    for (size_t i = 0; i < c->n_journeys; i++)
        assert_memory_equal(c->journey[i].id, "cmpl-", 5);
    vt_otlp_free(o);
    unlink(path);
}

/* What a server did not note, or had no room for, comes from the request's times. */
static void missing_stages_are_made_up_for(void **state)
{
    struct export_event queued = {EXPORT_QUEUED, 1.7e9 + 0.5, 0, 0, 0};

    (void)state;
    for (uint32_t n = 0; n < 2; n++) {
        char path[64], endpoint[80];
        struct export_config c = {
            .endpoint = endpoint, .journey = true, .journey_rate = 1};
        struct export_request r = {.id = "cmpl-1",
                                   .finish = "stop",
                                   .arrival_s = 1.7e9,
                                   .queued_s = 1.7e9 + 0.5,
                                   .scheduled_s = 1.7e9 + 1,
                                   .first_s = 1.7e9 + 2,
                                   .last_s = 1.7e9 + 4,
                                   .prompt_tokens = 5,
                                   .output_tokens = 3,
                                   .event = &queued,
                                   .n_events = n};
        const struct vt_journey *j;
        struct vt_otlp *o;
        struct export *x;
        struct vt_err err;

        temporary(path);
        snprintf(endpoint, sizeof(endpoint), "file:%s", path);
        assert_int_equal(export_open(&x, &c, &err), VT_OK);
        export_request(x, &r);
        export_close(x, 1000);
        o = load(path);
        assert_int_equal(vt_otlp_capture(o, 0)->work.n, 1);
        j = &vt_otlp_capture(o, 0)->journey[0];
        assert_string_equal(j->finish, "stopped");
        assert_int_equal(j->output_tokens, 3);
        vt_otlp_free(o);
        unlink(path);
    }
}

/* ---- traces ---------------------------------------------------------- */

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static const struct {
    const char *traceparent;
    bool continues, told;
} parents[] = {
    {"00-" TRACE "-" SPAN "-01", true, true},
    {"00-" TRACE "-" SPAN "-00", false, false},
    {NULL, false, true},
    {"", false, true},
    {"00-" TRACE "-" SPAN, false, true},
    {"00-00000000000000000000000000000000-" SPAN "-01", false, true},
    {"ff-" TRACE "-" SPAN "-01", false, true},
    {"00-0AF7651916cd43dd8448eb211c80319c-" SPAN "-01", false, true},
};

static void the_clients_trace_goes_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(parents); i++) {
        char path[64], endpoint[80];
        struct export_config c = {.endpoint = endpoint, .journey_rate = 1};
        struct export_request r = {.id = "cmpl-1",
                                   .traceparent = parents[i].traceparent,
                                   .arrival_s = 1.7e9,
                                   .first_s = 1.7e9 + 1,
                                   .last_s = 1.7e9 + 2,
                                   .prompt_tokens = 1,
                                   .output_tokens = 2};
        struct export *x;
        struct vt_buf text = {0};
        struct vt_err err;

        temporary(path);
        snprintf(endpoint, sizeof(endpoint), "file:%s", path);
        assert_int_equal(export_open(&x, &c, &err), VT_OK);
        export_request(x, &r);
        export_close(x, 1000);
        assert_int_equal(vt_read_file(path, 1 << 20, &text, &err), VT_OK);
        assert_int_equal(text.len > 0, parents[i].told);
        if (text.len > 0)
            assert_int_equal(strstr(text.data, "\"traceId\":\"" TRACE "\"") &&
                                 strstr(text.data, "\"parentSpanId\":\"" SPAN "\""),
                             parents[i].continues);
        vt_buf_free(&text);
        unlink(path);
    }
}

/* ---- a collector ----------------------------------------------------- */

struct collector {
    int listener;
    uint16_t port;
    int status[8]; /* of the answers, in order; then 200 */
    atomic_int asked;
    struct vt_buf body[8];
    char head[8][1024];
    pthread_t thread;
};

/* Reads one request whole; false: the peer has gone. */
static bool read_request(int fd, char *head, size_t cap, struct vt_buf *body)
{
    struct vt_buf all = {0};
    char *end = NULL, bytes[4096];
    size_t length = 0;

    while (!end || all.len < (size_t)(end - all.data) + 4 + length) {
        ssize_t n = read(fd, bytes, sizeof(bytes));

        if (n <= 0) {
            vt_buf_free(&all);
            return false;
        }
        vt_buf_add(&all, bytes, (size_t)n);
        end = strstr(all.data, "\r\n\r\n");
        if (end && strstr(all.data, "Content-Length: "))
            length = strtoul(strstr(all.data, "Content-Length: ") + 16, NULL, 10);
    }
    snprintf(head, cap, "%.*s", (int)(end - all.data), all.data);
    vt_buf_add(body, end + 4, length);
    vt_buf_free(&all);
    return true;
}

static void *collect(void *arg)
{
    struct collector *c = arg;

    for (;;) {
        int fd = accept(c->listener, NULL, NULL), i;

        if (fd < 0)
            return NULL;
        while ((i = atomic_load(&c->asked)) < 8 &&
               read_request(fd, c->head[i], sizeof(c->head[i]), &c->body[i])) {
            char answer[128];
            int n = snprintf(answer, sizeof(answer),
                             "HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\n{}",
                             c->status[i] ? c->status[i] : 200);

            atomic_fetch_add(&c->asked, 1);
            if (write(fd, answer, (size_t)n) != n)
                break;
        }
        close(fd);
    }
}

static void collector_start(struct collector *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof(a);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(c->listener, (void *)&a, sizeof(a)), 0);
    assert_int_equal(listen(c->listener, 8), 0);
    assert_int_equal(getsockname(c->listener, (void *)&a, &len), 0);
    c->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&c->thread, NULL, collect, c), 0);
}

static void collector_stop(struct collector *c)
{
    shutdown(c->listener, SHUT_RDWR);
    pthread_join(c->thread, NULL);
    close(c->listener);
    for (int i = 0; i < 8; i++)
        vt_buf_free(&c->body[i]);
}

static struct export *open_to(uint16_t port, const char *path)
{
    char endpoint[64];
    struct export_config c = {.endpoint = endpoint,
                              .headers = "X-Key=secret,X-Other=a=b",
                              .journey_rate = 1,
                              .period_ms = 10};
    struct export *x;
    struct vt_err err;

    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u%s", port, path);
    if (export_open(&x, &c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return x;
}

static void note_one(struct export *x)
{
    struct export_request r = {.id = "cmpl-1", .prompt_tokens = 3};

    export_request(x, &r);
}

static void nap(void)
{
    struct timespec t = {.tv_nsec = 2000000};

    nanosleep(&t, NULL);
}

/* Until the exporter has dealt with n; the test's own limit ends what never does. */
static struct export_stats wait_for(struct export *x, uint64_t n)
{
    struct export_stats s = export_stats(x);

    while (s.sent + s.dropped < n) {
        nap();
        s = export_stats(x);
    }
    return s;
}

static void a_collector_that_is_busy_is_asked_again(void **state)
{
    struct collector c = {.status = {503, 200, 400, 429, 200}};
    struct export *x;
    struct export_stats s;

    (void)state;
    collector_start(&c);
    x = open_to(c.port, "/v1/traces");
    note_one(x);
    s = wait_for(x, 1);
    assert_int_equal(s.sent, 1);
    assert_int_equal(s.failed, 1);
    note_one(x);
    s = wait_for(x, 2); /* what was called wrong is not sent again */
    assert_int_equal(s.dropped, 1);
    note_one(x);
    s = wait_for(x, 3);
    assert_int_equal(s.sent, 2);
    export_close(x, 1000);
    assert_int_equal(atomic_load(&c.asked), 5);
    assert_int_equal(c.body[0].len, c.body[1].len);
    assert_memory_equal(c.body[0].data, c.body[1].data, c.body[0].len);
    assert_memory_equal(c.head[0], "POST /v1/traces HTTP/1.1\r\n", 26);
    assert_non_null(strstr(c.head[0], "Content-Type: application/json"));
    assert_non_null(strstr(c.head[0], "X-Key: secret"));
    assert_non_null(strstr(c.head[0], "X-Other: a=b"));
    assert_non_null(strstr(c.body[0].data, "\"stringValue\":\"cmpl-1\""));
    assert_non_null(
        strstr(c.body[0].data,
               "\"gen_ai.usage.prompt_tokens\",\"value\":{\"intValue\":\"3\""));
    collector_stop(&c);
}

static void closing_sends_what_is_left(void **state)
{
    struct collector c = {.status = {503}};
    struct export *x;

    (void)state;
    collector_start(&c);
    x = open_to(c.port, "");
    for (int i = 0; i < 3; i++)
        note_one(x);
    export_close(x, 5000);
    assert_true(atomic_load(&c.asked) >= 2);
    assert_memory_equal(c.head[0], "POST /v1/traces HTTP/1.1\r\n", 26);
    collector_stop(&c);
}

static void closing_does_not_wait_for_a_collector_that_is_not_there(void **state)
{
    struct collector c = {.port = 0};
    struct export *x;
    vt_ns begun;

    (void)state;
    collector_start(&c);
    collector_stop(&c); /* nobody listens at its port now */
    x = open_to(c.port, "/v1/traces");
    note_one(x);
    begun = vt_wall_ns();
    export_close(x, 200);
    assert_true(vt_wall_ns() - begun < 5 * VT_SEC);
}

/* ---- bounds ---------------------------------------------------------- */

static void a_full_queue_drops_and_counts(void **state)
{
    struct vt_item *item = calloc(4096, sizeof(*item));
    struct vt_step_plan plan = {.item = item, .n = 4096};
    struct vt_step s = {.plan = &plan};
    struct export_config c = {.endpoint = "http://127.0.0.1:9/v1/traces",
                              .steps = true,
                              .step_rate = 1,
                              .rich_rate = 1,
                              .batch = 1000000,
                              .period_ms = 600000};
    struct export *x;
    struct vt_err err;

    (void)state;
    assert_int_equal(export_open(&x, &c, &err), VT_OK);
    for (int i = 0; i < 400 && export_stats(x).dropped == 0; i++)
        export_step(x, 0, &s, 1.7e9, NULL);
    assert_true(export_stats(x).dropped > 0);
    assert_int_equal(export_stats(x).sent, 0);
    export_close(x, 0);
    free(item);
}

static void shares_are_told_as_asked(void **state)
{
    char path[64], endpoint[80];
    struct export_config c = {.endpoint = endpoint,
                              .steps = true,
                              .step_rate = 0.25,
                              .rich_rate = 1,
                              .journey_rate = 1};
    struct vt_step_plan plan = {.n_decodes = 1};
    struct vt_step s = {.plan = &plan};
    struct export *x;
    struct vt_buf text = {0};
    struct vt_err err;
    size_t n = 0;

    (void)state;
    temporary(path);
    snprintf(endpoint, sizeof(endpoint), "file:%s", path);
    assert_int_equal(export_open(&x, &c, &err), VT_OK);
    for (s.number = 0; s.number < 2000; s.number++)
        export_step(x, 0, &s, 1.7e9, NULL);
    export_close(x, 1000);
    assert_int_equal(vt_read_file(path, 1 << 24, &text, &err), VT_OK);
    for (const char *p = text.data; (p = strstr(p, "BATCH_SUMMARY")); p++)
        n++;
    assert_in_range(n, 400, 600);
    vt_buf_free(&text);
    unlink(path);
}

static void endpoints_that_are_none_are_refused(void **state)
{
    static const char *const endpoint[] = {"localhost:4318", "ftp://x", "",
                                           "file:/no/such/dir/x"};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(endpoint); i++) {
        struct export_config c = {.endpoint = endpoint[i]};
        struct export *x;
        struct vt_err err;

        assert_int_equal(export_open(&x, &c, &err), VT_EINPUT);
        assert_null(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(journeys_and_steps_read_back_as_they_were),
        cmocka_unit_test(without_journeys_spans_are_upstreams),
        cmocka_unit_test(missing_stages_are_made_up_for),
        cmocka_unit_test(the_clients_trace_goes_on),
        cmocka_unit_test(a_collector_that_is_busy_is_asked_again),
        cmocka_unit_test(closing_sends_what_is_left),
        cmocka_unit_test(closing_does_not_wait_for_a_collector_that_is_not_there),
        cmocka_unit_test(a_full_queue_drops_and_counts),
        cmocka_unit_test(shares_are_told_as_asked),
        cmocka_unit_test(endpoints_that_are_none_are_refused),
    };

    return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
