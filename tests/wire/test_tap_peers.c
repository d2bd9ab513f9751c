/* Engines and frontends that come, go, come back, or are refused. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "huge.h"
#include "tap_harness.h"

/* ---- peers that come and go ------------------------------------------- */

static void add_request(struct vt_frontend *f, const char *id)
{
    static const uint32_t prompt[] = {1, 2, 3};
    struct vt_frontend_request r = {
        .id = id, .prompt = prompt, .n_prompt = 3, .max_tokens = 5};

    ok(vt_frontend_add(f, 0, 0, &r, &problem));
}

static void give_token(struct scripted *s, const char *id, int finish)
{
    static const uint32_t token = 77;
    struct wire_output o = {
        .id = text(id), .token = &token, .n_tokens = 1, .finish = finish};
    struct wire_outputs w = {
        .output = &o, .n_outputs = 1, .wave_complete = -1, .start_wave = -1};

    ok(scripted_outputs(s, 0, vt_wire_line_find("0.26"), &w, &problem));
}

/* One request from end to end, one that stays in flight. */
static void serve_one(struct vt_frontend *f, struct scripted *s, const char *id,
                      const char *left)
{
    add_request(f, id);
    take_one(s, 0);
    give_token(s, id, WIRE_STOP);
    assert_string_equal(next_message(f)->output[0].id, id);
    add_request(f, left);
    take_one(s, 0);
    give_token(s, left, WIRE_UNFINISHED);
    assert_string_equal(next_message(f)->output[0].id, left);
}

static void assert_record(const struct vt_records *r, const char *id,
                          const char *finish)
{
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->rec[i].id, id) != 0)
            continue;
        assert_string_equal(r->rec[i].finish_reason, finish);
        assert_int_equal(r->rec[i].output_tokens, 1);
        return;
    }
    fail_msg("no record of '%s'", id);
}

static void an_engine_may_start_again(void **state)
{
    struct vt_records r;
    struct vt_frontend *f;
    struct scripted s;
    char address[SOCK_ADDRESS];
    struct harness h;

    (void)state;
    harness_init(&h);
    open_frontend(&f, "tcp://127.0.0.1:*", 1, 1, false);
    tap_start(&h, vt_frontend_address(f), address);
    connect_all(f, &s, 1, address);
    serve_one(f, &s, "a", "b");
    scripted_close(&s);
    wait_told(&h, "engine 0 is gone", NULL);
    connect_all(f, &s, 1, address);
    serve_one(f, &s, "c", "d");
    scripted_close(&s);
    connect_all(f, &s, 1, address); /* sooner than it is missed */
    serve_one(f, &s, "a", "e");     /* an id for the second time */
    assert_int_equal(tap_stop(&h), VT_OK);
    assert_int_equal(h.sum.requests, 6);
    assert_int_equal(h.sum.aborted, 3);
    ok(vt_records_load(&r, h.trace, &problem));
    assert_int_equal(r.n, 6);
    assert_record(&r, "a", "stop");
    assert_record(&r, "b", "abort");
    assert_record(&r, "c", "stop");
    assert_record(&r, "d", "abort");
    assert_record(&r, "a#4", "stop");
    assert_record(&r, "e", "abort");
    vt_records_free(&r);
    scripted_close(&s);
    vt_frontend_close(f);
    harness_free(&h);
}

/* Its engines see their connections close, and may say hello to the next one. */
static void a_frontend_may_start_again(void **state)
{
    char address[SOCK_ADDRESS], handshake[SOCK_ADDRESS];
    struct vt_records r;
    struct vt_frontend *f;
    struct scripted s;
    struct harness h;

    (void)state;
    harness_init(&h);
    open_frontend(&f, "tcp://127.0.0.1:*", 1, 1, false);
    snprintf(handshake, sizeof(handshake), "%s", vt_frontend_address(f));
    tap_start(&h, handshake, address);
    connect_all(f, &s, 1, address);
    serve_one(f, &s, "a", "b");
    vt_frontend_close(f);
    wait_told(&h, "the frontend is gone", NULL);
    scripted_close(&s);
    open_frontend(&f, handshake, 2, 1, false); /* with more clients, why not */
    connect_all(f, &s, 1, address);
    serve_one(f, &s, "c", "d");
    assert_int_equal(tap_stop(&h), VT_OK);
    ok(vt_records_load(&r, h.trace, &problem));
    assert_int_equal(r.n, 4);
    assert_record(&r, "b", "abort");
    assert_record(&r, "c", "stop");
    vt_records_free(&r);
    scripted_close(&s);
    vt_frontend_close(f);
    harness_free(&h);
}

/* A frontend that dies before it answers: the next one hears the hello as well. */
static void a_hello_outlives_a_frontend(void **state)
{
    struct sock_options o = {.type = ZMQ_ROUTER};
    char address[SOCK_ADDRESS], handshake[SOCK_ADDRESS];
    struct engine_thread t = {.version = "0.26.0"};
    struct sock_msg m = {0};
    struct vt_frontend *f;
    struct scripted s;
    struct harness h;
    void *ctx, *sock;

    (void)state;
    harness_init(&h);
    ok(sock_ctx(&ctx, &problem));
    ok(sock_open(&sock, ctx, &o, &problem));
    ok(sock_bind(sock, "tcp://127.0.0.1:*", &problem));
    ok(sock_endpoint(sock, handshake, &problem));
    tap_start(&h, handshake, address);
    t.e = &s;
    t.address = address;
    assert_int_equal(pthread_create(&t.thread, NULL, join_frontend, &t), 0);
    assert_true(sock_wait(sock, WAIT_MS));
    ok(sock_recv(sock, &m, &problem));
    assert_int_equal(m.n, 2);
    sock_msg_free(&m);
    sock_close(sock);
    zmq_ctx_term(ctx);
    open_frontend(&f, handshake, 1, 1, false);
    ok(vt_frontend_accept(f, WAIT_MS, &problem));
    pthread_join(t.thread, NULL);
    assert_int_equal(t.rc, VT_OK);
    assert_int_equal(tap_stop(&h), VT_OK);
    scripted_close(&s);
    vt_frontend_close(f);
    harness_free(&h);
}

static void answer(void *router, const void *bytes, size_t len)
{
    struct sock_msg m = {0};

    assert_true(sock_wait(router, WAIT_MS));
    ok(sock_recv(router, &m, &problem));
    assert_int_equal(m.n, 2);
    ok(sock_put(router, "\0\0", 2, true, &problem));
    ok(sock_put(router, bytes, len, false, &problem));
    sock_msg_free(&m);
}

/* A frontend whose answers make no sense: the engine gets what cannot be read as it is,
 * and an address that nobody can connect to harms nobody else. */
static void answers_without_sense_are_survived(void **state)
{
    struct mp_span bad[] = {{(const uint8_t *)"tcp://nowhere", 13}};
    struct wire_init init = {.input = bad, .output = bad, .n_clients = 1};
    struct sock_options o = {.type = ZMQ_ROUTER};
    char address[SOCK_ADDRESS], handshake[SOCK_ADDRESS];
    struct vt_buf b = {0};
    struct scripted s;
    struct harness h;
    void *ctx, *sock;
    size_t len;

    (void)state;
    harness_init(&h);
    ok(sock_ctx(&ctx, &problem));
    ok(sock_open(&sock, ctx, &o, &problem));
    ok(sock_bind(sock, "tcp://127.0.0.1:*", &problem));
    ok(sock_endpoint(sock, handshake, &problem));
    tap_start(&h, handshake, address);
    ok(scripted_open(&s, 0, address, &problem));
    answer(sock, "\xc1", 1);
    assert_true(sock_wait(s.handshake, WAIT_MS));
    ok(sock_recv(s.handshake, &s.in, &problem));
    assert_memory_equal(sock_data(&s.in, 0, &len), "\xc1", 1);
    wait_told(&h, "passed on as it is", NULL);
    ok(scripted_say(&s, "HELLO", NULL, &problem));
    wire_init_write(&b, &init);
    answer(sock, b.data, b.len);
    wait_told(&h, "engine 0 is left alone: cannot connect to tcp://nowhere", NULL);
    ok(scripted_say(&s, "HELLO", NULL, &problem));
    answer(sock, b.data, b.len);
    scripted_close(&s);
    sock_close(sock);
    zmq_ctx_term(ctx);
    assert_int_equal(tap_stop(&h), VT_OK);
    vt_buf_free(&b);
    harness_free(&h);
}

/* ---- what is refused -------------------------------------------------- */

static struct version_row {
    const char *name;
    const char *want, *has;
    bool refused;
} version_rows[] = {
    {"the same", "v0.26.0", "0.26.0", false},
    {"the same line", "0.26", "0.26.7.dev3+gabc", false},
    {"another line", "v0.26.0", "0.27.1", true},
    {"a longer number", "0.2", "0.26.0", true},
    {"no version to compare", "nightly", "0.26.0", false},
    {"an engine without one", "0.26", "", false},
};

static void other_versions_are_refused(void **state)
{
    const struct version_row *row = *state;
    struct engine_thread t = {.version = row->has};
    struct vt_frontend *f;
    struct scripted s;
    char address[SOCK_ADDRESS];
    struct harness h;

    harness_init(&h);
    h.config.vllm_version = row->want;
    open_frontend(&f, "tcp://127.0.0.1:*", 1, 1, false);
    tap_start(&h, vt_frontend_address(f), address);
    t.e = &s;
    t.address = address;
    assert_int_equal(pthread_create(&t.thread, NULL, join_frontend, &t), 0);
    if (row->refused) {
        assert_int_equal(vt_frontend_accept(f, 300, &t.err), VT_EIO);
        pthread_join(h.thread, NULL);
        h.running = false;
        assert_int_equal(h.rc, VT_EINPUT);
        assert_non_null(strstr(h.err.msg, row->has));
        assert_int_not_equal(access(h.trace, F_OK), 0);
        assert_int_not_equal(access(h.wire, F_OK), 0);
    } else {
        ok(vt_frontend_accept(f, WAIT_MS, &problem));
        assert_int_equal(tap_stop(&h), VT_OK);
    }
    pthread_join(t.thread, NULL);
    scripted_close(&s);
    vt_frontend_close(f);
    harness_free(&h);
}

/* Whoever can reach the port where engines say hello. */
static void a_stranger_cannot_make_it_hold_300_mb(void **state)
{
    struct sock_options o = {.type = ZMQ_DEALER};
    void *ctx, *sock, *monitor;
    char address[SOCK_ADDRESS];
    struct vt_frontend *f;
    struct scripted s;
    struct harness h;

    (void)state;
    harness_init(&h);
    open_frontend(&f, "tcp://127.0.0.1:*", 1, 1, false);
    tap_start(&h, vt_frontend_address(f), address);
    ok(sock_ctx(&ctx, &problem));
    ok(sock_open(&sock, ctx, &o, &problem));
    ok(sock_monitor_open(&monitor, ctx, sock, ZMQ_EVENT_DISCONNECTED, &problem));
    ok(sock_connect(sock, address, &problem));
    huge_is_refused(sock, monitor);
    sock_close_monitored(sock, monitor);
    zmq_ctx_term(ctx);
    connect_all(f, &s, 1, address); /* others are served as before */
    serve_one(f, &s, "a", "b");
    assert_int_equal(tap_stop(&h), VT_OK);
    scripted_close(&s);
    vt_frontend_close(f);
    harness_free(&h);
}

static void files_are_not_overwritten(void **state)
{
    struct harness h;
    FILE *file;

    (void)state;
    harness_init(&h);
    h.config.frontend = "tcp://127.0.0.1:1";
    file = fopen(h.trace, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(vt_tap(&h.config, &h.sum, &h.err), VT_EINPUT);
    assert_non_null(strstr(h.err.msg, "t.jsonl is there already"));
    h.config.overwrite = true;
    h.config.wire_out = h.trace;
    assert_int_equal(vt_tap(&h.config, &h.sum, &h.err), VT_EINPUT);
    assert_non_null(strstr(h.err.msg, "written twice"));
    h.config.wire_out = "/nowhere/at/all";
    assert_int_equal(vt_tap(&h.config, &h.sum, &h.err), VT_EINPUT);
    h.config.trace_out = h.config.wire_out = NULL;
    assert_int_equal(vt_tap(&h.config, &h.sum, &h.err), VT_EINPUT);
    h.config.trace_out = h.trace;
    h.config.engines = "tcp://nonsense";
    assert_int_equal(vt_tap(&h.config, &h.sum, &h.err), VT_EINPUT);
    harness_free(&h);
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(an_engine_may_start_again),
        cmocka_unit_test(a_frontend_may_start_again),
        cmocka_unit_test(a_hello_outlives_a_frontend),
        cmocka_unit_test(answers_without_sense_are_survived),
        cmocka_unit_test(a_stranger_cannot_make_it_hold_300_mb),
        cmocka_unit_test(files_are_not_overwritten),
    };
    struct CMUnitTest tests[VT_COUNT(version_rows) + VT_COUNT(more)];

    for (size_t i = 0; i < VT_COUNT(version_rows); i++)
        tests[i] = (struct CMUnitTest){.name = version_rows[i].name,
                                       .test_func = other_versions_are_refused,
                                       .initial_state = &version_rows[i]};
    memcpy(tests + VT_COUNT(version_rows), more, sizeof(more));
    return cmocka_run_group_tests_name("tap_peers", tests, NULL, NULL);
}
