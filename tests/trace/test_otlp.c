/* OpenTelemetry files: what real ones become, and what is done about bad ones. */
#include "fixture.h"

#include <inttypes.h>

#include "trace/otlp/otlp.h"

/* ---- reading ---------------------------------------------------------- */

static struct vt_otlp *start(enum vt_step_time step_time)
{
    struct vt_otlp_options options = {.step_time = step_time};
    struct vt_otlp *o;

    assert_int_equal(vt_otlp_new(&o, &options, NULL), VT_OK);
    return o;
}

static int add_text(struct vt_otlp *o, const char *text, size_t len, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_from(&lines, "t", text, len, err);

    if (rc != VT_OK)
        return rc;
    rc = otlp_add_lines(o, lines, err);
    vt_lines_close(lines);
    return rc;
}

static void must(int rc, const struct vt_err *err)
{
    if (rc != VT_OK)
        print_error("%s\n", err->msg);
    assert_int_equal(rc, VT_OK);
}

static struct vt_otlp *load(enum vt_step_time step_time, const char *path)
{
    struct vt_otlp *o = start(step_time);
    struct vt_err err = {0};

    must(vt_otlp_add_file(o, path, &err), &err);
    must(vt_otlp_finish(o, &err), &err);
    return o;
}

/* Frees the text's memory. */
static struct vt_otlp *read_text(enum vt_step_time step_time, struct vt_buf *b)
{
    struct vt_otlp *o = start(step_time);
    struct vt_err err = {0};

    must(add_text(o, b->data, b->len, &err), &err);
    must(vt_otlp_finish(o, &err), &err);
    vt_buf_free(b);
    return o;
}

static const struct vt_step_line *find_step(const struct vt_steps *s, uint64_t id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->step[i].step == id)
            return &s->step[i];
    return NULL;
}

static size_t find_request(const struct vt_workload *w, const char *id)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->req[i].id, id) == 0)
            return i;
    fail();
    return 0;
}

/* ---- real files ------------------------------------------------------- */

static const struct expected {
    const char *path;
    size_t counter; /* offset into the stats */
    uint64_t want;
} expected[] = {
#define WANT(file, member, want) \
    {DATA(file), offsetof(struct vt_otlp_stats, member), want}
    WANT("otlp-close10.jsonl.gz", lines, 4),
    WANT("otlp-close10.jsonl.gz", api_spans, 10),
    WANT("otlp-close10.jsonl.gz", core_spans, 11),
    WANT("otlp-close10.jsonl.gz", step_spans, 13),
    WANT("otlp-close10.jsonl.gz", call_spans, 0),
    WANT("otlp-close10.jsonl.gz", other_spans, 42),
    WANT("otlp-close10.jsonl.gz", malformed, 0),
    WANT("otlp-close10.jsonl.gz", repeated, 0),
    WANT("otlp-close10.jsonl.gz", dropped_events, 0),
    WANT("otlp-close10.jsonl.gz", journeys, 11),
    WANT("otlp-close10.jsonl.gz", joined, 11),
    WANT("otlp-close10.jsonl.gz", untimed, 0),
    WANT("otlp-close10.jsonl.gz", steps, 130),
    WANT("otlp-close10.jsonl.gz", snapshots, 125),
    WANT("otlp-close10.jsonl.gz", idle_steps, 9),
    WANT("otlp-close10.jsonl.gz", missing_steps, 0),
    WANT("otlp-close10.jsonl.gz", holes, 0),
    WANT("otlp-close10.jsonl.gz", open_steps, 1), /* the last one */
    WANT("otlp-close100.jsonl.gz", api_spans, 23),
    WANT("otlp-close100.jsonl.gz", core_spans, 24),
    WANT("otlp-close100.jsonl.gz", step_spans, 5),
    WANT("otlp-close100.jsonl.gz", dropped_events, 1290),
    WANT("otlp-close100.jsonl.gz", joined, 24),
    WANT("otlp-close100.jsonl.gz", steps, 181),
    WANT("otlp-close100.jsonl.gz", snapshots, 424),
    WANT("otlp-close100.jsonl.gz", lone_snapshots, 1),
    WANT("otlp-close100.jsonl.gz", missing_steps, 266),
    WANT("otlp-close100.jsonl.gz", holes, 4),
    WANT("otlp-close100.jsonl.gz", idle_steps, 1),
    WANT("otlp-close100.jsonl.gz", open_steps, 2),
    WANT("otlp-upstream-0.26.0.jsonl.gz", call_spans, 17),
    WANT("otlp-upstream-0.26.0.jsonl.gz", other_spans, 12),
    WANT("otlp-upstream-0.26.0.jsonl.gz", journeys, 0),
    WANT("otlp-upstream-0.26.0.jsonl.gz", malformed, 0),
};

static void counts_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(expected); i++) {
        struct vt_otlp *o = load(VT_STEP_INTERVAL, expected[i].path);
        uint64_t got;

        memcpy(&got, (const char *)vt_otlp_stats(o) + expected[i].counter, sizeof(got));
        if (got != expected[i].want)
            print_error("row %zu\n", i);
        assert_int_equal(got, expected[i].want);
        vt_otlp_free(o);
    }
}

static void a_step_lasts_until_the_next_one_starts(void **state)
{
    struct vt_otlp *o = load(VT_STEP_INTERVAL, DATA("otlp-close10.jsonl.gz"));
    const struct vt_otlp_capture *c = vt_otlp_capture(o, 0);
    const struct vt_step_line *s = &c->steps.step[0];

    (void)state;
    assert_int_equal(vt_otlp_captures(o), 1);
    assert_string_equal(c->name, "91b3c858-2647-465d-b63d-a1b8ae914643");
    assert_int_equal(c->steps.n, 120);
    assert_int_equal(s[0].step, 1);
    /* 4370272753514 and 4370292074677 less the first arrival, 4370.265867508 s. */
    assert_int_equal(s[0].sched_ns, 6886006);
    assert_int_equal(s[0].sched_end_ns, 7114890);
    assert_int_equal(s[0].out_ns, 26207169);
    assert_int_equal(s[0].done_ns, s[0].out_ns);
    assert_int_equal(s[1].sched_ns, s[0].out_ns);
    assert_int_equal(s[0].n_prefill, 1);
    assert_string_equal(s[0].prefill[0].id, "cmpl-84d8c910ad1c9da6-0-b863b8a4");
    assert_int_equal(s[0].prefill[0].tokens, 2);
    assert_int_equal(s[0].waiting, 1);
    assert_int_equal(s[0].running, 1);
    assert_int_equal(s[1].decodes, 1);
    assert_int_equal(s[1].decode_ctx, 2);
    assert_int_equal(s[1].waiting, 0);
    vt_otlp_free(o);
}

static void an_idle_gap_is_no_step(void **state)
{
    struct vt_otlp *o = load(VT_STEP_INTERVAL, DATA("otlp-close10.jsonl.gz"));
    const struct vt_steps *s = &vt_otlp_capture(o, 0)->steps;

    (void)state;
    assert_null(find_step(s, 9)); /* nothing was left to do */
    assert_int_equal(find_step(s, 8)->out_ns, 82475181);
    assert_int_equal(find_step(s, 10)->sched_ns, 419651106);
    for (size_t i = 0; i < s->n; i++)
        assert_true(s->step[i].out_ns - s->step[i].sched_ns < 60 * VT_MS);
    vt_otlp_free(o);
}

static void steps_beside_a_hole_do_not_bridge_it(void **state)
{
    struct vt_otlp *o = load(VT_STEP_INTERVAL, DATA("otlp-close100.jsonl.gz"));
    const struct vt_steps *s = &vt_otlp_capture(o, 0)->steps;

    (void)state;
    assert_int_equal(s->n, 178);
    /* 101 to 177 are missing: 100 has no end, and 99 ends where 100 began. */
    assert_null(find_step(s, 100));
    assert_int_equal(find_step(s, 99)->out_ns, 6678307995);
    assert_int_equal(find_step(s, 178)->sched_ns, 7675762479);
    /* 201 to 276 are missing, but 200 gave a first token. */
    assert_int_equal(find_step(s, 200)->out_ns, 7955878635);
    for (size_t i = 0; i < s->n; i++) {
        assert_true(s->step[i].out_ns > s->step[i].sched_ns);
        assert_true(s->step[i].out_ns - s->step[i].sched_ns < 60 * VT_MS);
        assert_true(i == 0 || s->step[i].sched_ns >= s->step[i - 1].out_ns);
        if (i > 0 && s->step[i].step != s->step[i - 1].step + 1)
            assert_true(s->step[i].sched_ns > s->step[i - 1].out_ns);
    }
    vt_otlp_free(o);
}

static void what_is_computed_again_is_prefill(void **state)
{
    struct vt_otlp *o = load(VT_STEP_INTERVAL, DATA("otlp-close100.jsonl.gz"));
    const struct vt_step_line *s =
        find_step(&vt_otlp_capture(o, 0)->steps, 285); /* "5 decodes, 128 tokens" */

    (void)state;
    assert_int_equal(s->decodes, 3);
    assert_int_equal(s->decode_ctx, 500);
    assert_int_equal(s->n_prefill, 2);
    assert_int_equal(s->prefill[0].computed, 48);
    assert_int_equal(s->prefill[0].tokens, 109);
    assert_int_equal(s->prefill[0].prompt_tokens, 157);
    assert_int_equal(s->prefill[1].tokens, 16);
    vt_otlp_free(o);
}

static void durations_put_steps_end_to_end(void **state)
{
    struct vt_otlp *o = load(VT_STEP_DURATION, DATA("otlp-close10.jsonl.gz"));
    const struct vt_steps *s = &vt_otlp_capture(o, 0)->steps;

    (void)state;
    assert_int_equal(s->n, 121); /* the last one, too, has an end */
    assert_int_equal(s->step[0].sched_ns, 6886006);
    assert_int_equal(s->step[0].out_ns, 6886006 + 228000);
    assert_int_equal(s->step[1].sched_ns, s->step[0].out_ns);
    assert_int_equal(s->step[1].out_ns - s->step[1].sched_ns, 139000);
    assert_int_equal(find_step(s, 10)->sched_ns, 419651106); /* after idle: as it was */
    vt_otlp_free(o);
}

static void journeys_become_timed_requests(void **state)
{
    struct vt_otlp *o = load(VT_STEP_INTERVAL, DATA("otlp-close10.jsonl.gz"));
    const struct vt_otlp_capture *c = vt_otlp_capture(o, 0);
    const struct vt_workload *w = &c->work;
    size_t i = find_request(w, "chatcmpl-90bb2db2bc0e4f0a-bfdd61a8");
    const struct vt_measured *m = &w->measured[i];

    (void)state;
    assert_int_equal(w->n, 11);
    assert_int_equal(w->arrivals, VT_ARRIVALS_RECORDED);
    assert_int_equal(w->req[0].arrival_ns, 0);
    assert_int_equal(w->req[i].arrival_ns, 4371068256506 - 4370265867508);
    assert_int_equal(w->req[i].prompt_tokens, 29);
    assert_int_equal(w->req[i].output_tokens, 8);
    assert_int_equal(w->req[i].max_tokens, 8);
    assert_int_equal(m->cached_tokens, 16);
    assert_int_equal(m->ttft_ns, 4371124926936 - 4371068256506);
    assert_int_equal(m->e2e_ns, 4371172725073 - 4371068256506);
    assert_int_equal(m->n_gaps, 7);
    /* FIRST_TOKEN to the end of step 20, then steps 21 and 22. */
    assert_int_equal(w->gap[m->first_gap], 4371132751987 - 4371124926936);
    assert_int_equal(w->gap[m->first_gap + 1], 4371140576517 - 4371132751987);
    assert_int_equal(w->gap[m->first_gap + 2], 4371146372770 - 4371140576517);
    assert_string_equal(w->meta.model, "tiny");
    assert_int_equal(w->meta.num_gpu_blocks, 48);
    assert_int_equal(w->meta.block_size, 16);
    assert_int_equal(w->meta.async_scheduling, 0);
    i = find_request(w, "cmpl-8154f5d0ffdca75f-0-95f10e70"); /* stopped by itself */
    assert_int_equal(w->req[i].output_tokens, 2);
    assert_int_equal(w->req[i].max_tokens, 32);
    vt_otlp_free(o);
}

static void a_journey_tells_the_wait_in_the_queue(void **state)
{
    struct vt_otlp *o = load(VT_STEP_INTERVAL, DATA("otlp-close100.jsonl.gz"));
    const struct vt_otlp_capture *c = vt_otlp_capture(o, 0);
    const struct vt_journey *j = NULL;

    (void)state;
    assert_int_equal(c->n_journeys, 24);
    for (size_t i = 0; i < c->n_journeys; i++) {
        if (strcmp(c->journey[i].id, "chatcmpl-867099d6acea151f-b5197544") == 0)
            j = &c->journey[i];
        assert_true(i == 0 || c->journey[i].arrived_ns >= c->journey[i - 1].arrived_ns);
    }
    assert_non_null(j);
    assert_true(j->arrived_ns < j->handoff_ns && j->handoff_ns < j->queued_ns);
    assert_true(j->queued_ns < j->scheduled_ns);
    assert_true(j->scheduled_ns < j->first_token_ns);
    assert_true(j->first_token_ns < j->finished_ns && j->finished_ns < j->departed_ns);
    assert_int_equal(j->departed_ns - j->arrived_ns, 3910531615613 - 3908051217212);
    assert_int_equal(j->prompt_tokens, 89);
    assert_string_equal(j->finish, "length");
    vt_otlp_free(o);
}

static void tokens_of_missing_steps_share_their_time(void **state)
{
    struct vt_otlp *o = load(VT_STEP_INTERVAL, DATA("otlp-close100.jsonl.gz"));
    const struct vt_otlp_capture *c = vt_otlp_capture(o, 0);

    (void)state;
    assert_int_equal(c->work.n_gaps, 1413);
    assert_int_equal(c->shared_gaps, 1024);
    for (size_t i = 0; i < c->work.n; i++) {
        const struct vt_measured *m = &c->work.measured[i];
        vt_ns sum = m->ttft_ns;

        assert_int_equal(m->n_gaps, c->work.req[i].output_tokens - 1);
        for (uint32_t k = 0; k < m->n_gaps; k++) {
            assert_true(c->work.gap[m->first_gap + k] >= 0);
            sum += c->work.gap[m->first_gap + k];
        }
        assert_int_equal(sum, m->e2e_ns);
    }
    vt_otlp_free(o);
}

static void upstream_spans_become_requests_with_even_gaps(void **state)
{
    struct vt_otlp *o = load(VT_STEP_INTERVAL, DATA("otlp-upstream-0.26.0.jsonl.gz"));
    const struct vt_otlp_capture *c = vt_otlp_capture(o, 0);
    const struct vt_workload *w = &c->work;

    (void)state;
    assert_int_equal(vt_otlp_captures(o), 1);
    assert_int_equal(c->steps.n, 0);
    assert_int_equal(w->n, 17);
    assert_int_equal(w->n_by_mean, 15); /* two have no more than two tokens */
    assert_int_equal(w->req[1].arrival_ns, 1794713368081035008 - 1794713367559164928);
    assert_int_equal(w->req[0].prompt_tokens, 2);
    assert_int_equal(w->req[0].output_tokens, 8);
    assert_int_equal(w->measured[0].ttft_ns, 81614733);
    assert_int_equal(w->measured[0].e2e_ns, 161725283);
    assert_int_equal(w->measured[0].n_gaps, 7);
    assert_int_equal(w->gap[0], 11444365);
    assert_int_equal(w->gap[6], 11444364);
    /* Two answers to one request. */
    assert_string_equal(w->req[4].id, "cmpl-bad859d2f005f2ac-0");
    assert_string_equal(w->req[5].id, "cmpl-bad859d2f005f2ac-0#2");
    assert_int_equal(c->n_journeys, 17);
    assert_int_equal(c->journey[0].scheduled_ns - c->journey[0].queued_ns, 39815);
    vt_otlp_free(o);
}

static void files_of_one_run_are_joined(void **state)
{
    struct vt_otlp *o = start(VT_STEP_INTERVAL);
    struct vt_err err = {0};

    (void)state;
    must(vt_otlp_add_file(o, DATA("otlp-close10.jsonl.gz"), &err), &err);
    must(vt_otlp_add_file(o, DATA("otlp-close100.jsonl.gz"), &err), &err);
    must(vt_otlp_add_file(o, DATA("otlp-upstream-0.26.0.jsonl.gz"), &err), &err);
    must(vt_otlp_add_file(o, DATA("otlp-close10.jsonl.gz"), &err), &err); /* again */
    must(vt_otlp_finish(o, &err), &err);
    assert_int_equal(vt_otlp_captures(o), 3);
    assert_int_equal(vt_otlp_capture(o, 0)->steps.n, 120);
    assert_int_equal(vt_otlp_capture(o, 1)->steps.n, 178);
    assert_int_equal(vt_otlp_capture(o, 2)->work.n, 17);
    assert_int_equal(vt_otlp_stats(o)->repeated, 10 + 11 + 13);
    vt_otlp_free(o);
}

/* ---- spans made here -------------------------------------------------- */

static void put_attr(struct vt_buf *b, const char *key, int64_t v)
{
    vt_buf_printf(b, "%s{\"key\":\"%s\",\"value\":{\"intValue\":\"%" PRId64 "\"}}",
                  b->data[b->len - 1] == '[' ? "" : ",", key, v);
}

static void put_text(struct vt_buf *b, const char *key, const char *v)
{
    vt_buf_printf(b, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":\"%s\"}}",
                  b->data[b->len - 1] == '[' ? "" : ",", key, v);
}

static void begin_span(struct vt_buf *b, const char *scope, const char *name, int id)
{
    vt_buf_printf(b,
                  "{\"resourceSpans\":[{\"scopeSpans\":[{\"scope\":{\"name\":\"%s\"},"
                  "\"spans\":[{\"traceId\":\"%032d\",\"spanId\":\"%016d\","
                  "\"parentSpanId\":\"%016d\",\"name\":\"%s\","
                  "\"startTimeUnixNano\":1000000000000,\"attributes\":[",
                  scope, 7, id, id + 1, name);
}

static void begin_events(struct vt_buf *b)
{
    vt_buf_str(b, "],\"events\":[");
}

static void end_span(struct vt_buf *b)
{
    vt_buf_str(b, "]}]}]}]}\n");
}

static void begin_event(struct vt_buf *b, const char *name, int64_t unix_ns)
{
    vt_buf_printf(
        b, "%s{\"name\":\"%s\",\"timeUnixNano\":\"%" PRId64 "\",\"attributes\":[",
        b->data[b->len - 1] == '[' ? "" : ",", name, unix_ns);
}

static void put_step(struct vt_buf *b, int64_t id, vt_ns at, int prefills, int decodes)
{
    begin_event(b, "step.BATCH_SUMMARY", 1000000000000 + at);
    put_attr(b, "step.id", id);
    put_attr(b, "step.ts_start_ns", at);
    put_attr(b, "step.duration_us", 5);
    put_attr(b, "queue.running_depth", prefills + decodes);
    put_attr(b, "batch.num_prefill_reqs", prefills);
    put_attr(b, "batch.num_decode_reqs", decodes);
    put_attr(b, "batch.prefill_tokens", prefills * 100);
    put_attr(b, "batch.decode_tokens", decodes);
    put_attr(b, "kv.blocks_total_gpu", 100);
    put_attr(b, "kv.blocks_free_gpu", 80);
    vt_buf_str(b, "]}");
}

static void put_snap(struct vt_buf *b, int64_t step, const char *id, int prompt,
                     int computed, int output, int scheduled)
{
    begin_event(b, "step.REQUEST_SNAPSHOT", 1);
    put_attr(b, "step.id", step);
    put_text(b, "request.id", id);
    put_attr(b, "request.num_prompt_tokens", prompt);
    put_attr(b, "request.num_computed_tokens", computed);
    put_attr(b, "request.num_output_tokens", output);
    put_attr(b, "request.scheduled_tokens_this_step", scheduled);
    vt_buf_str(b, "]}");
}

static void put_journey(struct vt_buf *b, const char *name, vt_ns at, int64_t step,
                        int done)
{
    begin_event(b, name, 1000000000000 + at);
    put_attr(b, "ts.monotonic_ns", at);
    put_attr(b, "scheduler.step", step);
    put_attr(b, "prefill.total_tokens", 100);
    put_attr(b, "decode.done_tokens", done);
    put_attr(b, "decode.max_tokens", 50);
    vt_buf_str(b, "]}");
}

static void begin_core(struct vt_buf *b, const char *request, int id)
{
    begin_span(b, "vllm.scheduler", "llm_core", id);
    put_text(b, "gen_ai.request.id", request);
    begin_events(b);
}

static void begin_steps(struct vt_buf *b, int id)
{
    begin_span(b, "vllm.scheduler.step", "scheduler_steps_1", id);
    begin_events(b);
}

static void two_steps_in_flight_end_two_calls_later(void **state)
{
    struct vt_buf b = {0};
    struct vt_otlp *o;
    const struct vt_steps *s;

    (void)state;
    begin_steps(&b, 1);
    put_step(&b, 1, 1000, 1, 0);
    put_snap(&b, 1, "a", 100, 0, 0, 100);
    put_step(&b, 2, 1200, 1, 0); /* says prefill: no token is back yet */
    put_snap(&b, 2, "a", 100, 100, 0, 1);
    put_step(&b, 3, 9000, 0, 1);
    put_snap(&b, 3, "a", 100, 101, 1, 1);
    put_step(&b, 4, 12000, 0, 1);
    put_snap(&b, 4, "a", 100, 102, 2, 1);
    end_span(&b);
    begin_core(&b, "a", 2);
    put_journey(&b, "journey.QUEUED", 900, 0, 0);
    put_journey(&b, "journey.SCHEDULED", 1001, 1, 0);
    put_journey(&b, "journey.FIRST_TOKEN", 8900, 2, 1);
    end_span(&b);
    o = read_text(VT_STEP_INTERVAL, &b);
    s = &vt_otlp_capture(o, 0)->steps;
    assert_int_equal(vt_otlp_capture(o, 0)->work.meta.async_scheduling, 1);
    assert_int_equal(vt_otlp_stats(o)->open_steps, 2);
    assert_int_equal(vt_otlp_stats(o)->untimed, 1);
    assert_int_equal(s->n, 2);
    assert_int_equal(s->step[0].out_ns, 9000 - 900);
    assert_int_equal(s->step[1].out_ns, 12000 - 900);
    assert_true(s->step[1].sched_ns < s->step[0].out_ns);
    assert_int_equal(s->step[1].decodes, 1);
    assert_int_equal(s->step[1].decode_ctx, 100);
    vt_otlp_free(o);
}

/* Steps 1, 2 | 3, 4 of two requests that come one after the other. */
static void put_two_busy_times(struct vt_buf *b, bool with_journeys)
{
    begin_steps(b, 1);
    put_step(b, 1, 1000, 1, 0);
    put_step(b, 2, 2000, 0, 1);
    put_step(b, 3, 900000, 1, 0);
    put_step(b, 4, 901000, 0, 1);
    end_span(b);
    if (!with_journeys)
        return;
    begin_core(b, "a", 2);
    put_journey(b, "journey.QUEUED", 900, 0, 0);
    put_journey(b, "journey.SCHEDULED", 1001, 1, 0);
    put_journey(b, "journey.FIRST_TOKEN", 1900, 1, 1);
    put_journey(b, "journey.FINISHED", 2700, 2, 2);
    end_span(b);
    begin_core(b, "b", 3);
    put_journey(b, "journey.QUEUED", 899900, 2, 0);
    put_journey(b, "journey.SCHEDULED", 900001, 3, 0);
    put_journey(b, "journey.FIRST_TOKEN", 900900, 3, 1);
    put_journey(b, "journey.FINISHED", 901700, 4, 2);
    end_span(b);
}

static void without_empty_steps_idle_time_is_still_found(void **state)
{
    struct vt_buf b = {0};
    struct vt_otlp *o;
    const struct vt_steps *s;

    (void)state;
    put_two_busy_times(&b, false);
    o = read_text(VT_STEP_INTERVAL, &b);
    s = &vt_otlp_capture(o, 0)->steps;
    assert_int_equal(s->n, 2); /* 2 and 4 have no known end */
    assert_int_equal(s->step[0].step, 1);
    assert_int_equal(s->step[1].step, 3);
    assert_int_equal(vt_otlp_capture(o, 0)->work.n, 0);
    vt_otlp_free(o);
    put_two_busy_times(&b, true);
    o = read_text(VT_STEP_INTERVAL, &b);
    s = &vt_otlp_capture(o, 0)->steps;
    assert_int_equal(s->n, 4);
    assert_int_equal(s->step[1].out_ns, 2700 - 900); /* with the last token */
    assert_int_equal(s->step[3].out_ns, 901700 - 900);
    vt_otlp_free(o);
}

static void without_snapshots_journeys_name_requests_and_contexts(void **state)
{
    struct vt_buf b = {0};
    struct vt_otlp *o;
    const struct vt_steps *s;

    (void)state;
    put_two_busy_times(&b, true);
    o = read_text(VT_STEP_INTERVAL, &b);
    s = &vt_otlp_capture(o, 0)->steps;
    assert_string_equal(s->step[0].prefill[0].id, "a");
    assert_int_equal(s->step[0].prefill[0].tokens, 100);
    assert_int_equal(s->step[0].prefill[0].prompt_tokens, 100);
    assert_string_equal(s->step[2].prefill[0].id, "b");
    assert_int_equal(s->step[1].decode_ctx, 100);
    assert_int_equal(s->step[3].decode_ctx, 100);
    assert_int_equal(s->step[0].waiting, 1);
    assert_int_equal(vt_otlp_capture(o, 0)->work.meta.async_scheduling, -1);
    vt_otlp_free(o);
}

static void with_summaries_alone_blocks_tell_the_context(void **state)
{
    struct vt_buf b = {0};
    struct vt_otlp *o;
    const struct vt_steps *s;

    (void)state;
    begin_steps(&b, 1);
    put_step(&b, 1, 1000, 2, 3);
    put_step(&b, 2, 2000, 0, 5);
    end_span(&b);
    o = read_text(VT_STEP_INTERVAL, &b);
    s = &vt_otlp_capture(o, 0)->steps;
    assert_int_equal(s->n, 1);
    assert_int_equal(s->step[0].n_prefill, 2);
    assert_string_equal(s->step[0].prefill[0].id, "?");
    assert_int_equal(s->step[0].prefill[0].tokens, 100);
    /* 20 blocks of 16, less 200 tokens of prompts, less half a block for each of 5. */
    assert_int_equal(s->step[0].decode_ctx, 320 - 200 - 40);
    assert_int_equal(vt_otlp_capture(o, 0)->work.meta.num_gpu_blocks, 101);
    vt_otlp_free(o);
}

static void the_api_servers_clock_may_be_another_machines(void **state)
{
    struct vt_buf b = {0};
    struct vt_otlp *o;
    const struct vt_workload *w;

    (void)state;
    begin_core(&b, "a", 2);
    put_journey(&b, "journey.QUEUED", 5000, 0, 0);
    put_journey(&b, "journey.FIRST_TOKEN", 7000, 1, 1);
    put_journey(&b, "journey.FINISHED", 9000, 2, 2);
    end_span(&b);
    begin_span(&b, "vllm.api", "llm_request", 3);
    begin_events(&b);
    begin_event(&b, "api.ARRIVED", 1000000004000); /* 4000 by the engine's clock */
    vt_buf_str(&b,
               "{\"key\":\"event.ts.monotonic\",\"value\":{\"doubleValue\":777}}]}");
    begin_event(&b, "exception", 1000000009000);
    vt_buf_str(&b, "]}");
    end_span(&b);
    o = read_text(VT_STEP_INTERVAL, &b);
    w = &vt_otlp_capture(o, 0)->work;
    assert_int_equal(vt_otlp_stats(o)->joined, 1);
    assert_int_equal(w->measured[0].ttft_ns, 3000);
    assert_int_equal(w->measured[0].e2e_ns, 5000);
    vt_otlp_free(o);
}

static void kv_events_meet_steps_by_id(void **state)
{
    struct vt_buf b = {0};
    struct vt_otlp *o;
    const struct vt_otlp_capture *c;

    (void)state;
    begin_steps(&b, 1);
    put_step(&b, 7, 1000, 0, 1);
    put_step(&b, 8, 2000, 0, 1);
    begin_event(&b, "kv.CacheStoreCommitted", 1000000001500);
    put_attr(&b, "scheduler.step", 7);
    put_attr(&b, "block_count", 4);
    vt_buf_str(&b, "]}");
    end_span(&b);
    vt_buf_str(&b,
               "[1000.5,[[\"TransferInitiated\",1,\"a\",\"GPU\",\"CPU\",4,8],"
               "[\"BlockStored\",[5],null,[1,2],16,null,\"GPU\",null]],null,8]\n"
               "{\"topic\":\"kv-events\",\"decoded\":[1000.6,"
               "[[\"TransferCompleted\",1,\"a\",\"GPU\",\"CPU\",4,true,null]],0,9]}\n");
    o = read_text(VT_STEP_INTERVAL, &b);
    c = vt_otlp_capture(o, 0);
    assert_int_equal(vt_otlp_stats(o)->kv_events[VT_KV_STORE_COMMITTED], 1);
    assert_int_equal(vt_otlp_stats(o)->kv_events[VT_KV_TRANSFER_INITIATED], 1);
    assert_int_equal(vt_otlp_stats(o)->kv_events[VT_KV_TRANSFER_COMPLETED], 1);
    assert_int_equal(vt_otlp_stats(o)->kv_events[VT_KV_OTHER], 1);
    assert_int_equal(vt_otlp_stats(o)->kv_joined, 2); /* there is no step 9 */
    assert_int_equal(c->n_kv, 3);
    assert_int_equal(c->kv[0].step, 7);
    assert_int_equal(c->kv[0].blocks, 4);
    assert_int_equal(c->kv[1].kind, VT_KV_TRANSFER_INITIATED);
    assert_int_equal(c->kv[2].step, 9);
    vt_otlp_free(o);
}

/* ---- malformed spans -------------------------------------------------- */

#define HEAD "\"traceId\":\"00000000000000000000000000000001\","
#define SPAN HEAD "\"spanId\":\"0000000000000001\",\"startTimeUnixNano\":\"5\","
#define CORE "\"name\":\"llm_core\","
#define ID                                                                             \
    "\"attributes\":[{\"key\":\"gen_ai.request.id\",\"value\":{\"stringValue\":\"a\"}" \
    "}]"
#define INT(key, v) "{\"key\":\"" key "\",\"value\":{\"intValue\":" v "}}"
#define EVENT(name, attributes)     \
    "\"events\":[{\"name\":\"" name \
    "\",\"timeUnixNano\":\"5\",\"attributes\":[" attributes "]}]"

static struct malformed {
    const char *name, *scope, *span, *reason;
} malformed[] = {
    {"a span must be an object", "vllm.scheduler.step", "7",
     "span '?': field 'name' is missing"},
    {"a span must have a name", "vllm.api", "{" SPAN "\"events\":[]}",
     "span '?': field 'name' is missing"},
    {"a span must have a trace", "vllm.scheduler", "{" CORE "\"kind\":1}",
     "span 'llm_core': field 'traceId' is missing"},
    {"a span's id is hexadecimal", "vllm.scheduler",
     "{" CORE HEAD "\"spanId\":\"000000000000000x\"}",
     "span 'llm_core': field 'spanId' is not 16 hex digits"},
    {"a span must have a start", "vllm.scheduler",
     "{" CORE HEAD "\"spanId\":\"0000000000000001\"}",
     "span 'llm_core': field 'startTimeUnixNano' is missing"},
    {"a span's start is an integer", "vllm.scheduler",
     "{" CORE HEAD "\"spanId\":\"0000000000000001\",\"startTimeUnixNano\":\"soon\"}",
     "span 'llm_core': field 'startTimeUnixNano' is not an integer from 0"},
    {"events must be a list", "vllm.scheduler", "{" CORE SPAN "\"events\":7}",
     "span 'llm_core': field 'events' is not a list"},
    {"a core span must name its request", "vllm.scheduler", "{" CORE SPAN "\"kind\":1}",
     "span 'llm_core': attribute 'gen_ai.request.id' is missing"},
    {"a core span must have journey events", "vllm.scheduler", "{" CORE SPAN ID "}",
     "span 'llm_core': it has no journey event"},
    {"a journey event must have a time", "vllm.scheduler",
     "{" CORE SPAN ID "," EVENT("journey.QUEUED", "") "}",
     "span 'llm_core': event 'journey.QUEUED': attribute 'ts.monotonic_ns' is missing"},
    {"a journey event's time is an integer", "vllm.scheduler",
     "{" CORE SPAN ID "," EVENT("journey.QUEUED", INT("ts.monotonic_ns", "\"-5\"")) "}",
     "span 'llm_core': event 'journey.QUEUED': attribute 'ts.monotonic_ns' is not an "
     "integer from 0"},
    {"a finished request must tell its tokens", "vllm.scheduler",
     "{" CORE SPAN ID "," EVENT("journey.FINISHED", INT("ts.monotonic_ns", "5")) "}",
     "span 'llm_core': event 'journey.FINISHED': attribute 'decode.done_tokens' is "
     "missing"},
    {"an arrival is needed", "vllm.api",
     "{\"name\":\"llm_request\"," SPAN "\"kind\":2}",
     "span 'llm_request': it has no event 'api.ARRIVED'"},
    {"a step must have an id", "vllm.scheduler.step",
     "{\"name\":\"scheduler_steps_3\"," SPAN EVENT("step.BATCH_SUMMARY", "") "}",
     "span 'scheduler_steps_3': event 'step.BATCH_SUMMARY': attribute 'step.id' is "
     "missing"},
    {"a step's start has a limit", "vllm.scheduler.step",
     "{\"name\":\"scheduler_steps_3\"," SPAN EVENT(
         "step.BATCH_SUMMARY",
         INT("step.id", "1") "," INT("step.ts_start_ns", "18446744073709551615")) "}",
     "span 'scheduler_steps_3': event 'step.BATCH_SUMMARY': attribute "
     "'step.ts_start_ns' is out of range"},
    {"upstream's span must have latencies", "vllm.tracing.otel",
     "{\"name\":\"llm_request\"," SPAN "\"kind\":2}",
     "span 'llm_request': attribute 'gen_ai.latency.time_to_first_token' is missing"},
};

static void malformed_span_is_counted_and_named(void **state)
{
    const struct malformed *m = *state;
    struct vt_otlp *o = start(VT_STEP_INTERVAL);
    struct vt_err err = {0};
    struct vt_buf b = {0};
    char want[256];

    put_two_busy_times(&b, true);
    vt_buf_printf(&b,
                  "{\"resourceSpans\":[{\"scopeSpans\":[{\"scope\":{\"name\":\"%s\"},"
                  "\"spans\":[%s]}]}]}\n",
                  m->scope, m->span);
    must(add_text(o, b.data, b.len, &err), &err);
    must(vt_otlp_finish(o, &err), &err);
    snprintf(want, sizeof(want), "t: line 4: %s", m->reason);
    assert_int_equal(vt_otlp_stats(o)->malformed, 1);
    assert_int_equal(vt_otlp_stats(o)->n_reasons, 1);
    assert_string_equal(vt_otlp_stats(o)->reason[0], want);
    assert_int_equal(vt_otlp_capture(o, 0)->steps.n, 4);
    assert_int_equal(vt_otlp_capture(o, 0)->work.n, 2);
    vt_otlp_free(o);
    vt_buf_free(&b);
}

/* ---- bad files -------------------------------------------------------- */

#define SCOPE(name, spans)                                              \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"scope\":{\"name\":\"" name \
    "\"},\"spans\":[" spans "]}]}]}\n"

static struct fixture_bad bad[] = {
    {"an empty file is refused", "", "t: the file is empty"},
    {"text that is not JSON is refused", "{}\nhello\n",
     "t: line 2: expected a value, not 'h'"},
    {"a line that is cut is refused", "{}\n{\"resourceSpans\":[{\"sco",
     "t: line 2: the file ends in the middle of this line"},
    {"another kind of JSON is refused", "{\"meta\":{\"gpu\":\"H200\"}}\n",
     "t: line 1: neither OTLP spans ('resourceSpans') nor KV-cache events"},
    {"a number is refused", "7\n",
     "t: line 1: neither OTLP spans ('resourceSpans') nor KV-cache events"},
    {"resourceSpans must be a list", "{\"resourceSpans\":{}}\n",
     "t: line 1: field 'resourceSpans' is not a list"},
    {"resourceSpans must hold objects", "{\"resourceSpans\":[7]}\n",
     "t: line 1: field 'resourceSpans' must hold objects"},
    {"spans must be a list",
     "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":\"x\"}]}]}\n",
     "t: line 1: field 'spans' is not a list"},
    {"a file without a span of vLLM is refused",
     "{\"resourceMetrics\":[]}\n" SCOPE("fastapi", "{\"name\":\"GET /health\"}"),
     "t: line 2: no span of vLLM up to the end"},
    {"a file of malformed spans is refused",
     SCOPE("vllm.scheduler", "{\"name\":\"llm_core\"}"),
     "t: line 1: span 'llm_core': field 'traceId' is missing"},
    {"KV events must be in a batch", "[7]\n",
     "t: line 1: not a batch of KV-cache events"},
    {"KV events must have blocks", "[7,[[\"CacheStoreCommitted\",\"a\"]]]\n",
     "t: line 1: CacheStoreCommitted without a number of blocks"},
};

static void refuses(void **state)
{
    const struct fixture_bad *row = *state;
    struct vt_otlp *o = start(VT_STEP_INTERVAL);
    struct vt_err err = {0};

    assert_int_equal(add_text(o, row->text, strlen(row->text), &err), VT_EINPUT);
    assert_string_equal(err.msg, row->message);
    vt_otlp_free(o);
}

static void a_truncated_gzip_file_is_refused(void **state)
{
    struct vt_otlp *o = start(VT_STEP_INTERVAL);
    struct vt_err err = {0};
    char bytes[9000];
    FILE *f = fopen(DATA("otlp-close100.jsonl.gz"), "rb");

    (void)state;
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, sizeof(bytes), f), sizeof(bytes));
    fclose(f);
    assert_int_equal(add_text(o, bytes, sizeof(bytes), &err), VT_EINPUT);
    assert_string_equal(err.msg, "t: line 5: truncated gzip data");
    vt_otlp_free(o);
}

static void a_run_without_times_is_refused(void **state)
{
    static const char text[] = "[7.5,[[\"BlockRemoved\",[1],\"GPU\"]],0,null]\n";
    struct vt_otlp *o = start(VT_STEP_INTERVAL);
    struct vt_err err = {0};

    (void)state;
    must(add_text(o, text, strlen(text), &err), &err);
    assert_int_equal(vt_otlp_finish(o, &err), VT_EINPUT);
    assert_string_equal(err.msg, "t: neither a step nor a request whose time is known");
    vt_otlp_free(o);
}

int main(void)
{
    struct CMUnitTest tests[64] = {
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(a_step_lasts_until_the_next_one_starts),
        cmocka_unit_test(an_idle_gap_is_no_step),
        cmocka_unit_test(steps_beside_a_hole_do_not_bridge_it),
        cmocka_unit_test(what_is_computed_again_is_prefill),
        cmocka_unit_test(durations_put_steps_end_to_end),
        cmocka_unit_test(journeys_become_timed_requests),
        cmocka_unit_test(a_journey_tells_the_wait_in_the_queue),
        cmocka_unit_test(tokens_of_missing_steps_share_their_time),
        cmocka_unit_test(upstream_spans_become_requests_with_even_gaps),
        cmocka_unit_test(files_of_one_run_are_joined),
        cmocka_unit_test(two_steps_in_flight_end_two_calls_later),
        cmocka_unit_test(without_empty_steps_idle_time_is_still_found),
        cmocka_unit_test(without_snapshots_journeys_name_requests_and_contexts),
        cmocka_unit_test(with_summaries_alone_blocks_tell_the_context),
        cmocka_unit_test(the_api_servers_clock_may_be_another_machines),
        cmocka_unit_test(kv_events_meet_steps_by_id),
        cmocka_unit_test(a_truncated_gzip_file_is_refused),
        cmocka_unit_test(a_run_without_times_is_refused),
    };
    size_t n = 20;

    for (size_t i = 0; i < VT_COUNT(malformed); i++)
        tests[n++] = (struct CMUnitTest){
            .name = malformed[i].name,
            .test_func = malformed_span_is_counted_and_named,
            .initial_state = &malformed[i],
        };
    return fixture_run("otlp", tests, n, refuses, bad, VT_COUNT(bad));
}
