/* What a recorder writes: the trace, the log of messages, the scheduler's statistics.
 */
#include "tap_harness.h"

#include <math.h>

#include "wire/tap/wirelog.h"

/* ---- a session -------------------------------------------------------- */

struct session {
    struct harness h;
    struct vt_frontend *f;
    struct scripted s;
};

static void session_start(struct session *t)
{
    struct vt_frontend_config c = {.handshake = "tcp://127.0.0.1:*",
                                   .line = vt_wire_line_find("0.27")};
    char address[SOCK_ADDRESS];

    ok(vt_frontend_open(&t->f, &c, &problem));
    tap_start(&t->h, vt_frontend_address(t->f), address);
    connect_all(t->f, &t->s, 1, address);
}

static void session_stop(struct session *t)
{
    assert_int_equal(tap_stop(&t->h), VT_OK);
    scripted_close(&t->s);
    vt_frontend_close(t->f);
}

static uint32_t prompt_of[64];

static void add(struct session *t, struct vt_frontend_request r)
{
    for (uint32_t i = 0; i < VT_COUNT(prompt_of); i++)
        prompt_of[i] = 100 + i;
    r.prompt = prompt_of;
    ok(vt_frontend_add(t->f, 0, 0, &r, &problem));
    take_one(&t->s, 0);
}

static void add_plain(struct session *t, const char *id, uint32_t prompt)
{
    add(t, (struct vt_frontend_request){
               .id = id, .n_prompt = prompt, .max_tokens = 50, .temperature = 1});
}

/* One message of the engine, all the way to the frontend. */
static void step(struct session *t, struct wire_output *o, uint32_t n,
                 const struct wire_stats *stats)
{
    struct wire_outputs w = {.output = o,
                             .n_outputs = n,
                             .timestamp = 12.5,
                             .has_stats = stats != NULL,
                             .wave_complete = -1,
                             .start_wave = -1};

    if (stats)
        w.stats = *stats;
    ok(scripted_outputs(&t->s, 0, vt_wire_line_find("0.27"), &w, &problem));
    assert_null(next_message(t->f)->bad);
}

static const uint32_t tokens[] = {7, 8, 9};

static struct wire_output out(const char *id, uint32_t n_tokens, int finish)
{
    return (struct wire_output){
        .id = text(id), .token = tokens, .n_tokens = n_tokens, .finish = finish};
}

/* ---- reading back ----------------------------------------------------- */

struct file {
    struct vt_arena arena;
    const struct vt_node *line[128];
    size_t n;
};

static void file_read(struct file *f, const char *path)
{
    struct vt_lines *lines;
    size_t len;
    char *line;

    *f = (struct file){0};
    ok(vt_lines_open(&lines, path, &problem));
    for (;;) {
        ok(vt_lines_next(lines, &line, &len, NULL, &problem));
        if (!line)
            break;
        assert_true(f->n < VT_COUNT(f->line));
        line = vt_arena_copy(&f->arena, line, len);
        ok(vt_json_parse(&f->arena, line, len, 1, &f->line[f->n++], &problem));
    }
    vt_lines_close(lines);
}

/* The value at "a.b", of the line with this id. */
static const struct vt_node *at(const struct vt_node *map, const char *path)
{
    char key[64];
    size_t len;

    while (*path) {
        len = strcspn(path, ".");
        snprintf(key, sizeof(key), "%.*s", (int)len, path);
        map = vt_get(map, key);
        if (!map)
            return NULL;
        path += len + (path[len] == '.');
    }
    return map;
}

static const struct vt_node *row_of(const struct file *f, const char *id)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct vt_node *got = vt_get(f->line[i], "id");

        if (got && strcmp(got->u.str, id) == 0)
            return f->line[i];
    }
    fail_msg("no line of '%s'", id);
    return NULL;
}

/* As short text: numbers, "text", [lists]. */
static void show(struct vt_buf *b, const struct vt_node *n)
{
    switch (n ? n->kind : (uint8_t)VT_NULL) {
    case VT_INT:
        vt_buf_i64(b, n->u.integer);
        break;
    case VT_REAL:
        vt_buf_f64(b, n->u.real);
        break;
    case VT_BOOL:
        vt_buf_str(b, n->u.boolean ? "true" : "false");
        break;
    case VT_STR:
        vt_buf_str(b, n->u.str);
        break;
    case VT_LIST:
    case VT_MAP:
        vt_buf_char(b, '[');
        for (uint32_t i = 0; i < n->n; i++) {
            if (i > 0)
                vt_buf_char(b, ' ');
            show(b, &n->u.item[i]);
        }
        vt_buf_char(b, ']');
        break;
    default:
        vt_buf_str(b, "-");
    }
}

static void assert_field(const struct vt_node *map, const char *path, const char *want)
{
    struct vt_buf b = {0};

    show(&b, at(map, path));
    if (strcmp(b.data, want) != 0)
        fail_msg("%s is %s, not %s", path, b.data, want);
    vt_buf_free(&b);
}

/* ---- one request in full ---------------------------------------------- */

static void serve_in_full(struct session *t)
{
    static const struct wire_event come[] = {{WIRE_QUEUED, 10.0},
                                             {WIRE_SCHEDULED, 10.25}};
    static const struct wire_event gone[] = {{WIRE_PREEMPTED, 11}, {9, 11.5}};
    static const uint8_t stop_token[] = {77};
    struct wire_stats stats = {.running = 5, .waiting = 2, .kv_usage = 0.5};
    struct wire_output o = out("full", 1, WIRE_UNFINISHED);

    add(t, (struct vt_frontend_request){.id = "full",
                                        .external_id = "outside",
                                        .n_prompt = 37,
                                        .arrival_time = 1700000000.5,
                                        .priority = -3,
                                        .lora = "adapter",
                                        .cache_salt = "secret",
                                        .max_tokens = 9,
                                        .temperature = 0.5});
    o.has_prefill = true;
    o.prefill = (struct wire_prefill){
        .prompt = 37, .cached = 20, .local_cached = 16, .external_cached = 4};
    o.event = come;
    o.n_events = 2;
    step(t, &o, 1, &stats);
    o = out("full", 2, WIRE_UNFINISHED);
    o.event = gone;
    o.n_events = 2;
    step(t, &o, 1, NULL);
    o = out("full", 1, WIRE_STOP);
    o.stop_reason = (struct mp_span){stop_token, 1};
    step(t, &o, 1, &stats);
}

static void assert_standard(const struct vt_record *r)
{
    assert_int_equal(r->prompt_tokens, 37);
    assert_int_equal(r->cached_tokens, 20);
    assert_int_equal(r->output_tokens, 4);
    assert_int_equal(r->max_tokens, 9);
    assert_int_equal(r->priority, -3);
    assert_int_equal(r->concurrency, 1);
    assert_int_equal(r->n_gaps, 2);
    assert_int_equal(r->gap_tokens[0], 2);
    assert_int_equal(r->gap_tokens[1], 1);
    assert_int_equal(r->gap_running[0], 1); /* no stats: what is in flight */
    assert_int_equal(r->gap_running[1], 5);
    assert_int_equal(r->n_block_hashes, 2);
    assert_true(r->block_hash[0] == UINT64_C(1908902156111316972));
    assert_true(r->block_hash[1] == UINT64_C(13195783397694475971));
    assert_string_equal(r->finish_reason, "stop");
    assert_true(r->ttft_ns > 0 && r->gap[0] > 0 && r->arrival_ns >= 0);
    assert_int_equal(r->token_id[1], 7);
    assert_int_equal(r->token_id[2], 8);
}

static void a_request_is_recorded_in_full(void **state)
{
    static const struct {
        const char *path, *want;
    } fields[] = {
        {"external_id", "outside"},
        {"arrival_time", "1700000000.5"},
        {"client_index", "0"},
        {"engine_index", "0"},
        {"sampling.temperature", "0.5"},
        {"sampling.max_tokens", "9"},
        {"lora", "adapter"},
        {"cache_salt", "true"},
        {"stop_reason", "77"},
        {"queue_ms", "250"},
        {"preemptions", "1"},
        {"events", "[[QUEUED 10] [SCHEDULED 10.25] [PREEMPTED 11] [9 11.5]]"},
        {"first_ts", "12.5"},
        {"output_token_ids", "[7 7 8 7]"},
        {"aborted_by", "-"},
    };
    struct vt_records r;
    struct session t;
    struct file f;
    double start;

    (void)state;
    harness_init(&t.h);
    t.h.config.record_tokens = true;
    session_start(&t);
    serve_in_full(&t);
    session_stop(&t);
    ok(vt_records_load(&r, t.h.trace, &problem));
    assert_int_equal(r.n, 1);
    assert_standard(&r.rec[0]);
    vt_records_free(&r);
    file_read(&f, t.h.trace);
    for (size_t i = 0; i < VT_COUNT(fields); i++)
        assert_field(row_of(&f, "full"), fields[i].path, fields[i].want);
    start = at(row_of(&f, "full"), "start_unix")->u.real;
    assert_true(fabs(start - (double)time(NULL)) < 60);
    vt_arena_free(&f.arena);
    harness_free(&t.h);
}

/* ---- the meta line ---------------------------------------------------- */

static void the_meta_line_says_what_ran(void **state)
{
    struct vt_buf hex = {0}, reg = {0};
    const struct vt_node *meta;
    struct session t;
    struct file f;

    (void)state;
    harness_init(&t.h);
    t.h.config.model = "Qwen/Qwen3-8B";
    t.h.config.gpu = "H200";
    t.h.config.max_num_seqs = 33;
    t.h.config.engine_config = "";
    t.h.config.vllm_version = "v0.26.0";
    session_start(&t);
    add_plain(&t, "a", 3);
    session_stop(&t);
    file_read(&f, t.h.trace);
    meta = vt_get(f.line[0], "meta");
    assert_field(meta, "source", "tap");
    assert_field(meta, "model", "Qwen/Qwen3-8B");
    assert_field(meta, "tp", "2");
    assert_field(meta, "max_num_seqs", "33");
    assert_field(meta, "max_num_batched_tokens", "2048");
    assert_field(meta, "num_gpu_blocks", "1000");
    assert_field(meta, "max_model_len", "4096");
    assert_field(meta, "block_size", "16");
    assert_field(meta, "vllm_version", "0.26.0");
    assert_field(meta, "engines", "1");
    registration(&reg, "0.26.0", 0);
    for (size_t i = 0; i < reg.len; i++)
        vt_buf_printf(&hex, "%02x", (uint8_t)reg.data[i]);
    assert_field(meta, "ready_response_hex", hex.data);
    {
        char hash[65];

        vt_config_hash(hash, "H200", "v0.26.0", "");
        assert_field(meta, "config_hash", hash);
    }
    vt_buf_free(&hex);
    vt_buf_free(&reg);
    vt_arena_free(&f.arena);
    harness_free(&t.h);
}

/* ---- how requests end ------------------------------------------------- */

static void requests_end_in_many_ways(void **state)
{
    static const struct {
        const char *id, *finish, *by, *tokens;
    } rows[] = {
        {"length", "length", "-", "1"},      {"error", "error", "-", "0"},
        {"engine", "abort", "engine", "1"},  {"client", "abort", "frontend", "1"},
        {"early", "abort", "frontend", "0"}, {"twice", "abort", "frontend", "0"},
        {"left", "abort", "tap", "2"},       {"pooled", "stop", "-", "0"},
    };
    static const char *const gone[] = {"client", "early", "nobody"};
    struct wire_output o[6];
    struct vt_records r;
    struct session t;
    struct file f;

    (void)state;
    harness_init(&t.h);
    session_start(&t);
    for (size_t i = 0; i < VT_COUNT(rows); i++)
        add_plain(&t, rows[i].id, 3);
    add_plain(&t, "twice", 4); /* the first one of that name is forgotten */
    o[0] = out("length", 1, WIRE_LENGTH);
    o[1] = out("error", 0, WIRE_ERROR);
    o[2] = out("engine", 1, WIRE_ABORTED);
    o[3] = out("client", 1, WIRE_UNFINISHED);
    o[4] = out("left", 2, WIRE_UNFINISHED);
    o[5] = out("pooled", 0, WIRE_STOP);
    step(&t, o, 6, NULL);
    ok(vt_frontend_abort(t.f, 0, 0, gone, 3, &problem));
    take_one(&t.s, 0);
    o[0] = out("client", 1, WIRE_LENGTH); /* too late */
    step(&t, o, 1, NULL);
    session_stop(&t);
    file_read(&f, t.h.trace);
    assert_int_equal(f.n, 1 + VT_COUNT(rows) + 1);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        assert_field(row_of(&f, rows[i].id), "finish_reason", rows[i].finish);
        assert_field(row_of(&f, rows[i].id), "aborted_by", rows[i].by);
        assert_field(row_of(&f, rows[i].id), "output_tokens", rows[i].tokens);
    }
    assert_field(row_of(&f, "twice"), "prompt_tokens", "3");
    assert_int_equal(t.h.sum.requests, 9);
    assert_int_equal(t.h.sum.aborted, 6);
    ok(vt_records_load(&r, t.h.trace, &problem));
    assert_int_equal(r.n, 4); /* those with tokens */
    assert_int_equal(r.n_skipped, 5);
    vt_records_free(&r);
    vt_arena_free(&f.arena);
    harness_free(&t.h);
}

/* ---- the step around a gap -------------------------------------------- */

/* {"extra_args": {"kv_transfer_params": {"do_remote_prefill": true}}} */
static const uint8_t remote[] = "\x81\xaa"
                                "extra_args\x81\xb2kv_transfer_params\x81\xb1"
                                "do_remote_prefill\xc3";

static void gaps_know_what_else_was_computed(void **state)
{
    struct wire_stats stats = {.running = 3}, detailed = stats;
    struct wire_output o[3];
    struct session t;
    struct file f;

    (void)state;
    harness_init(&t.h);
    session_start(&t);
    add_plain(&t, "a", 10);
    o[0] = out("a", 1, WIRE_UNFINISHED);
    step(&t, o, 1, &stats);
    add_plain(&t, "b", 20);
    add(&t, (struct vt_frontend_request){
                .id = "c",
                .n_prompt = 30,
                .sampling = {remote, sizeof(remote) - 1},
            });
    o[1] = out("b", 1, WIRE_UNFINISHED); /* its 20 are computed here, */
    o[2] = out("c", 1, WIRE_UNFINISHED); /* these 30 somewhere else */
    step(&t, o, 3, &stats);
    detailed.has_iteration = true;
    detailed.iteration.prefill_tokens = 512;
    step(&t, o, 3, &detailed);
    o[0] = out("a", 1, WIRE_LENGTH);
    step(&t, o, 1, NULL);
    session_stop(&t);
    file_read(&f, t.h.trace);
    assert_field(row_of(&f, "a"), "itl_ctx.prefill_tokens", "[20 512 0]");
    assert_field(row_of(&f, "a"), "itl_ctx.num_running", "[3 3 3]");
    assert_field(row_of(&f, "b"), "itl_ctx.prefill_tokens", "[512]");
    assert_field(row_of(&f, "b"), "concurrency", "2");
    vt_arena_free(&f.arena);
    file_read(&f, t.h.stats);
    assert_int_equal(f.n, 3);
    assert_field(f.line[0], "scheduler.num_running_reqs", "3");
    assert_field(f.line[2], "scheduler.iteration_details.num_ctx_tokens", "512");
    assert_true(at(f.line[0], "ts_ms") != NULL);
    vt_arena_free(&f.arena);
    harness_free(&t.h);
}

/* ---- requests that are odd -------------------------------------------- */

/* What one client sends must not make the whole file unreadable. */
static void odd_requests_leave_the_trace_readable(void **state)
{
    static const uint8_t repeated[] = "\x82\xa1x\x01\xa1x\x02"; /* one key twice */
    static const char *const ids[] = {"\xff", "\xfe", "quote\"\n", "", "\xc3\xa9"};
    struct vt_frontend_request r = {.n_prompt = 3,
                                    .sampling = {repeated, sizeof(repeated) - 1}};
    struct vt_records records;
    struct session t;

    (void)state;
    harness_init(&t.h);
    session_start(&t);
    for (size_t i = 0; i < VT_COUNT(ids); i++) {
        struct wire_output o = out(ids[i], 1, WIRE_LENGTH);

        r.id = ids[i];
        add(&t, r);
        step(&t, &o, 1, NULL);
    }
    session_stop(&t);
    ok(vt_records_load(&records, t.h.trace, &problem));
    assert_int_equal(records.n, VT_COUNT(ids));
    vt_records_free(&records);
    {
        struct vt_workload w;

        ok(vt_trace_load(&w, t.h.trace, &problem));
        vt_workload_free(&w);
    }
    harness_free(&t.h);
}

/* ---- the log ---------------------------------------------------------- */

static void the_log_has_every_message(void **state)
{
    static const char *const kinds[] = {
        "HELLO",
        "INIT",
        "INIT(rewritten by tap)",
        "REGISTER",
        "ADD",
        "OUTPUTS/REQ",
        "OUTPUTS/STATS",
        "UTILITY",
        "OUTPUTS/UTILITY",
        "ABORT",
        "ENGINE_CORE_DEAD",
    };
    static const struct vt_bytes dead = {"ENGINE_CORE_DEAD", 16};
    static const char *const id = "a";
    struct wire_stats stats = {.running = 1};
    struct wire_outputs w = {
        .has_utility = true, .wave_complete = -1, .start_wave = -1};
    static const uint8_t call[] = {42};
    const struct wirelog_entry *e;
    bool seen[VT_COUNT(kinds)] = {0};
    struct wirelog *log;
    struct wire_output o;
    struct session t;
    struct file f;
    uint64_t seq = 0;

    (void)state;
    harness_init(&t.h);
    session_start(&t);
    add_plain(&t, id, 3);
    o = out(id, 1, WIRE_UNFINISHED);
    step(&t, &o, 1, &stats);
    step(&t, NULL, 0, &stats);
    ok(vt_frontend_call(t.f, 0, 0, 42, "is_sleeping", (struct vt_bytes){0}, &problem));
    take_one(&t.s, 0);
    w.call_id = (struct mp_span){call, 1};
    ok(scripted_outputs(&t.s, 0, vt_wire_line_find("0.27"), &w, &problem));
    assert_int_equal(next_message(t.f)->call_id, 42);
    ok(vt_frontend_abort(t.f, 0, 0, &id, 1, &problem));
    take_one(&t.s, 0);
    ok(scripted_put(&t.s, 0, &dead, 1, &problem));
    assert_true(next_message(t.f)->dead);
    session_stop(&t);
    ok(wirelog_open(&log, t.h.wire, &problem));
    for (;; seq++) {
        ok(wirelog_next(log, &e, &problem));
        if (!e)
            break;
        assert_int_equal(e->seq, seq);
        assert_true(e->n_frames > 0 && e->t_mono_ns > 0);
        for (size_t i = 0; i < VT_COUNT(kinds); i++)
            seen[i] = seen[i] || strcmp(e->kind, kinds[i]) == 0;
        if (strcmp(e->kind, "UTILITY") == 0)
            assert_int_equal(e->frame[0].at[0], 3);
    }
    wirelog_close(log);
    assert_int_equal(seq, t.h.sum.messages + 1);
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if (!seen[i])
            fail_msg("no %s", kinds[i]);
    file_read(&f, t.h.wire);
    assert_field(f.line[0], "decoded.status", "HELLO");
    assert_field(f.line[0], "identity", "0000");
    vt_arena_free(&f.arena);
    harness_free(&t.h);
}

/* Without an engine there is nothing to trace, but a log shows how far it came. */
static void a_failed_handshake_can_be_read(void **state)
{
    char address[SOCK_ADDRESS];
    struct scripted s;
    struct harness h;
    struct file f;

    (void)state;
    harness_init(&h);
    tap_start(&h, "tcp://127.0.0.1:1", address);
    ok(scripted_open(&s, 0, address, &problem));
    wait_told(&h, "engine 0 says hello", NULL);
    assert_int_equal(tap_stop(&h), VT_OK);
    scripted_close(&s);
    assert_int_not_equal(access(h.trace, F_OK), 0);
    file_read(&f, h.wire);
    assert_int_equal(f.n, 1);
    assert_field(f.line[0], "kind", "HELLO");
    vt_arena_free(&f.arena);
    harness_free(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_recorded_in_full),
        cmocka_unit_test(the_meta_line_says_what_ran),
        cmocka_unit_test(requests_end_in_many_ways),
        cmocka_unit_test(gaps_know_what_else_was_computed),
        cmocka_unit_test(odd_requests_leave_the_trace_readable),
        cmocka_unit_test(the_log_has_every_message),
        cmocka_unit_test(a_failed_handshake_can_be_read),
    };

    return cmocka_run_group_tests_name("tap_trace", tests, NULL, NULL);
}
