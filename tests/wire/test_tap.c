/* What passes through a recorder arrives as it was sent, whoever sends what. Peers that
 * come and go: test_tap_peers.c. What is written about it: test_tap_trace.c. */
#include "tap_harness.h"

#include "wire/tap/tap.h"

/* ---- two clients, two engines, a coordinator -------------------------- */

static void assert_init(const struct vt_frontend *f, const struct scripted *s)
{
    struct vt_arena a = {0};
    struct wire_init got, sent;

    ok(wire_init_read(&got, &a, s->init.data, s->init.len, &problem));
    ok(wire_init_read(&sent, &a, f->init.data, f->init.len, &problem));
    assert_int_equal(got.n_clients, sent.n_clients);
    for (uint32_t i = 0; i < got.n_clients; i++) {
        assert_false(mp_span_is(got.input[i], f->client[i].input_address));
        assert_false(mp_span_is(got.output[i], f->client[i].output_address));
    }
    assert_true(mp_span_is(got.coordinator_input, f->waves_address));
    assert_true(mp_span_is(got.coordinator_output, f->reports_address));
    assert_null(got.stats_address.at);
    assert_int_equal(got.parallel_config.len, sent.parallel_config.len);
    assert_memory_equal(got.parallel_config.at, sent.parallel_config.at,
                        got.parallel_config.len);
    vt_arena_free(&a);
}

static void assert_frames(const struct sock_msg *got, const struct vt_bytes *want,
                          size_t n)
{
    assert_int_equal(got->n, n);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const void *bytes = sock_data(got, i, &len);

        assert_int_equal(len, want[i].len);
        if (len > 0)
            assert_memory_equal(bytes, want[i].at, len);
    }
}

/* Each client to each engine and back: type, payload and buffers of all sizes. */
static void talk_all_ways(struct vt_frontend *f, struct scripted *engine)
{
    static char big[100000], small[10];
    char payload[32];
    struct vt_bytes down[] = {
        {"\x00", 1}, {payload, 0}, {big, sizeof(big)}, {small, 0}, {small, 10}};

    memset(big, 'b', sizeof(big));
    for (uint32_t c = 0; c < 2; c++) {
        for (uint32_t i = 0; i < 2; i++) {
            const struct vt_frontend_message *m;

            snprintf(payload, sizeof(payload), "client %u to engine %u", c, i);
            down[1].len = strlen(payload);
            ok(vt_frontend_send(f, c, i, down, VT_COUNT(down), &problem));
            take_one(&engine[i], c);
            assert_frames(&engine[i].in, down, VT_COUNT(down));
            ok(scripted_put(&engine[i], c, down + 1, 4, &problem));
            m = next_message(f);
            assert_int_equal(m->client, c);
            assert_int_equal(m->n_frames, 4);
            for (size_t k = 0; k < 4; k++) {
                assert_int_equal(m->frame[k].len, down[k + 1].len);
                assert_memory_equal(m->frame[k].at, down[k + 1].at, down[k + 1].len);
            }
        }
    }
}

static void everything_passes_as_it_is(void **state)
{
    struct vt_frontend *f;
    struct scripted engine[2];
    struct vt_buf b = {0};
    char address[SOCK_ADDRESS];
    struct harness h;

    (void)state;
    harness_init(&h);
    open_frontend(&f, "tcp://127.0.0.1:*", 2, 2, true);
    tap_start(&h, vt_frontend_address(f), address);
    connect_all(f, engine, 2, address);
    for (uint32_t i = 0; i < 2; i++) {
        const struct vt_frontend_engine *said = vt_frontend_engine(f, i);
        struct vt_bytes want = registration(&b, "0.26.0", i);

        assert_init(f, &engine[i]);
        assert_true(said->headless);
        assert_false(said->local);
        assert_string_equal(said->config_hash, i == 0 ? "hash-of-0" : "hash-of-1");
        assert_int_equal(said->registration.len, want.len);
        assert_memory_equal(said->registration.at, want.at, want.len);
        assert_string_equal(said->vllm_version, "0.26.0");
    }
    talk_all_ways(f, engine);
    assert_int_equal(tap_stop(&h), VT_OK);
    assert_int_equal(h.sum.messages, 4 + 2 + 4 + 8); /* HELLO.. INIT, register, talk */
    assert_int_equal(h.sum.undecodable, 8);
    assert_int_equal(h.sum.unroutable, 0);
    for (uint32_t i = 0; i < 2; i++)
        scripted_close(&engine[i]);
    vt_frontend_close(f);
    vt_buf_free(&b);
    harness_free(&h);
}

/* An engine of a mixture of experts: it waits for the coordinator before it is ready.
 */
struct coordinated {
    struct engine_thread t;
    void *waves, *reports;
};

static int meet_coordinator(struct coordinated *c, struct vt_err *err)
{
    struct sock_options sub = {.type = ZMQ_SUB}, push = {.type = ZMQ_PUSH};
    struct vt_arena a = {0};
    struct wire_init w;
    char address[2][SOCK_ADDRESS];
    int rc = wire_init_read(&w, &a, c->t.e->init.data, c->t.e->init.len, err);

    if (rc != VT_OK)
        return rc;
    snprintf(address[0], SOCK_ADDRESS, "%.*s", (int)w.coordinator_input.len,
             (const char *)w.coordinator_input.at);
    snprintf(address[1], SOCK_ADDRESS, "%.*s", (int)w.coordinator_output.len,
             (const char *)w.coordinator_output.at);
    vt_arena_free(&a);
    if ((rc = sock_open(&c->waves, c->t.e->ctx, &sub, err)) ||
        (rc = sock_open(&c->reports, c->t.e->ctx, &push, err)) ||
        (rc = sock_connect(c->reports, address[1], err)))
        return rc;
    zmq_setsockopt(c->waves, ZMQ_SUBSCRIBE, "", 0);
    rc = sock_connect(c->waves, address[0], err);
    if (rc == VT_OK && !sock_wait(c->waves, WAIT_MS))
        rc = vt_fail(err, VT_EIO, "the coordinator says nothing");
    return rc == VT_OK ? sock_recv(c->waves, &c->t.e->in, err) : rc;
}

static void *join_coordinated(void *arg)
{
    struct coordinated *c = arg;
    struct scripted *s = c->t.e;
    struct vt_err *err = &c->t.err;
    struct vt_buf b = {0};
    struct vt_bytes r;

    c->t.rc = scripted_open(s, c->t.index, c->t.address, err);
    if (c->t.rc == VT_OK && !sock_wait(s->handshake, WAIT_MS))
        c->t.rc = vt_fail(err, VT_EIO, "no INIT");
    if (c->t.rc == VT_OK)
        c->t.rc = sock_recv(s->handshake, &s->in, err);
    if (c->t.rc == VT_OK)
        c->t.rc = scripted_take_init(s, err);
    r = registration(&b, "0.26.0", c->t.index);
    if (c->t.rc == VT_OK)
        c->t.rc = sock_put(s->input[0], r.at, r.len, false, err);
    if (c->t.rc == VT_OK)
        c->t.rc = meet_coordinator(c, err);
    if (c->t.rc == VT_OK)
        c->t.rc = scripted_say(s, "READY", NULL, err);
    vt_buf_free(&b);
    return NULL;
}

static void a_coordinator_and_engines_talk_directly(void **state)
{
    struct wire_outputs done = {.wave_complete = 3, .start_wave = -1};
    const struct vt_frontend_message *m;
    struct coordinated c[2] = {0};
    struct scripted engine[2];
    struct vt_frontend *f;
    char address[SOCK_ADDRESS];
    struct vt_buf b = {0};
    struct harness h;
    size_t len;

    (void)state;
    harness_init(&h);
    open_frontend(&f, "tcp://127.0.0.1:*", 1, 2, true);
    tap_start(&h, vt_frontend_address(f), address);
    for (uint32_t i = 0; i < 2; i++) {
        c[i].t = (struct engine_thread){
            .e = &engine[i], .index = i, .address = address, .version = "0.26.0"};
        assert_int_equal(pthread_create(&c[i].t.thread, NULL, join_coordinated, &c[i]),
                         0);
    }
    ok(vt_frontend_accept(f, WAIT_MS, &problem));
    ok(vt_frontend_wave(f, 3, 1, &problem));
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(c[i].t.thread, NULL);
        if (c[i].t.rc != VT_OK)
            fail_msg("engine %u: %s", i, c[i].t.err.msg);
        assert_memory_equal(sock_data(&engine[i].in, 0, &len), "READY", 5);
        assert_true(sock_wait(c[i].waves, WAIT_MS));
        ok(sock_recv(c[i].waves, &engine[i].in, &problem));
        assert_int_equal(engine[i].in.n, 2);
        assert_memory_equal(sock_data(&engine[i].in, 1, &len), "\x92\x03\x01", 3);
    }
    wire_outputs_write(&b, vt_wire_line_find("0.26"), &done);
    ok(sock_put(c[1].reports, b.data, b.len, false, &problem));
    m = next_message(f);
    assert_true(m->client == VT_FRONTEND_COORDINATOR);
    assert_int_equal(m->wave_complete, 3);
    assert_int_equal(tap_stop(&h), VT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        sock_close(c[i].waves);
        sock_close(c[i].reports);
        scripted_close(&engine[i]);
    }
    vt_frontend_close(f);
    vt_buf_free(&b);
    harness_free(&h);
}

/* ---- hostile peers ---------------------------------------------------- */

static void send_text(struct vt_frontend *f, const char *type, const char *payload,
                      size_t len)
{
    struct vt_bytes frame[] = {{type, 1}, {payload, len}};

    ok(vt_frontend_send(f, 0, 0, frame, 2, &problem));
}

static void stranger(const char *address, const void *identity, size_t id_len,
                     const void *bytes, size_t len)
{
    struct sock_options o = {.type = ZMQ_DEALER,
                             .identity = identity,
                             .identity_len = id_len,
                             .linger_ms = 1000};
    void *ctx, *sock;

    ok(sock_ctx(&ctx, &problem));
    ok(sock_open(&sock, ctx, &o, &problem));
    ok(sock_connect(sock, address, &problem));
    ok(sock_put(sock, bytes, len, false, &problem));
    sock_close(sock);
    zmq_ctx_term(ctx);
}

static const struct {
    const char *bytes;
    size_t len;
} bad_outputs[] = {
    {"", 0},
    {"\xc1", 1},
    {"\x98\x00", 2},
    {"\xdd\xff\xff\xff\xff", 5},
    {"\x98\x00\x91\x92\xa1x\xdd\xff\xff\xff\xff\xc0\xcb\0\0\0\0\0\0\0\0\xc0\xc0\xc0",
     24},
    {"ENGINE_CORE_DEAD", 16},
};

static void nonsense_is_forwarded_and_counted(void **state)
{
    struct vt_frontend *f;
    struct vt_arena a = {0};
    struct wire_init init;
    struct scripted s;
    char address[SOCK_ADDRESS];
    struct harness h;

    (void)state;
    harness_init(&h);
    open_frontend(&f, "tcp://127.0.0.1:*", 1, 1, false);
    tap_start(&h, vt_frontend_address(f), address);
    stranger(address, "\x07\x00", 2, "garbage", 7);
    stranger(address, "\x08\x00", 2, "", 0);
    connect_all(f, &s, 1, address);
    ok(wire_init_read(&init, &a, s.init.data, s.init.len, &problem));
    snprintf(address, sizeof(address), "%.*s", (int)init.input[0].len,
             (const char *)init.input[0].at);
    stranger(address, "\x09\x00", 2, "x", 1);
    for (size_t i = 0; i < VT_COUNT(bad_outputs); i++) {
        struct vt_bytes frame = {bad_outputs[i].bytes, bad_outputs[i].len};
        const struct vt_frontend_message *m;

        ok(scripted_put(&s, 0, &frame, 1, &problem));
        m = next_message(f);
        assert_int_equal(m->frame[0].len, frame.len);
        assert_true(m->dead == (frame.len == 16));
        assert_true((m->bad == NULL) == m->dead);
    }
    send_text(f, "\x00", "\x95\x01", 2);
    send_text(f, "\x01", "\xc0", 1);
    send_text(f, "\x09", "?", 1);
    for (int i = 0; i < 3; i++)
        take_one(&s, 0);
    assert_int_equal(tap_stop(&h), VT_OK);
    assert_int_equal(h.sum.undecodable, VT_COUNT(bad_outputs) - 1 + 2);
    assert_int_equal(h.sum.unroutable, 3);
    assert_true(was_told(&h, "cannot be decoded", NULL));
    vt_arena_free(&a);
    scripted_close(&s);
    vt_frontend_close(f);
    harness_free(&h);
}

static void large_frames_pass(void **state)
{
    const size_t size = (size_t)64 << 20;
    const struct vt_frontend_message *m;
    struct vt_frontend *f;
    struct vt_bytes frame[3] = {{"\x00", 1}, {"\x90", 1}};
    struct scripted s;
    char address[SOCK_ADDRESS], *big = malloc(size);
    struct harness h;
    size_t len;

    (void)state;
    assert_non_null(big);
    memset(big, 'x', size);
    frame[2] = (struct vt_bytes){big, size};
    harness_init(&h);
    h.config.wire_out = NULL;
    open_frontend(&f, "tcp://127.0.0.1:*", 1, 1, false);
    tap_start(&h, vt_frontend_address(f), address);
    connect_all(f, &s, 1, address);
    ok(vt_frontend_send(f, 0, 0, frame, 3, &problem));
    take_one(&s, 0);
    assert_memory_equal(sock_data(&s.in, 2, &len), big, size);
    ok(scripted_put(&s, 0, frame + 1, 2, &problem));
    m = next_message(f);
    assert_int_equal(m->frame[1].len, size);
    assert_memory_equal(m->frame[1].at, big, size);
    assert_int_equal(tap_stop(&h), VT_OK);
    scripted_close(&s);
    vt_frontend_close(f);
    harness_free(&h);
    free(big);
}

/* A recorder that lags costs lines of its files, never a message. */
static void a_full_backlog_holds_up_nothing(void **state)
{
    struct vt_frontend *f;
    struct scripted s;
    char address[SOCK_ADDRESS];
    struct harness h;

    (void)state;
    harness_init(&h);
    h.config.max_backlog_bytes = 1;
    open_frontend(&f, "tcp://127.0.0.1:*", 1, 1, false);
    tap_start(&h, vt_frontend_address(f), address);
    connect_all(f, &s, 1, address);
    for (int i = 0; i < 100; i++) {
        send_text(f, "\x00", "\x90", 1);
        take_one(&s, 0);
    }
    assert_int_equal(tap_stop(&h), VT_OK);
    assert_int_equal(h.sum.messages, 4 + 100);
    assert_int_equal(h.sum.not_decoded, 4 + 1 + 100);
    assert_int_equal(h.sum.undecodable, 0);
    assert_true(was_told(&h, "too many messages wait", NULL));
    scripted_close(&s);
    vt_frontend_close(f);
    harness_free(&h);
}

/* ---- addresses -------------------------------------------------------- */

static void addresses_must_name_a_host(void **state)
{
    static const struct {
        const char *base;
        uint32_t client;
        const char *want; /* NULL: refused */
    } rows[] = {
        {"tcp://127.0.0.1:*", 3, "tcp://127.0.0.1:*"},
        {"tcp://10.0.0.1:0", 1, "tcp://10.0.0.1:*"},
        {"tcp://10.0.0.1:700", 0, "tcp://10.0.0.1:700"},
        {"tcp://10.0.0.1:700", 2, "tcp://10.0.0.1:702"},
        {"tcp://[fe80::1]:700", 1, "tcp://[fe80::1]:701"},
        {"ipc:///tmp/x", 0, "ipc:///tmp/x"},
        {"ipc:///tmp/x", 2, "ipc:///tmp/x.2"},
        {"tcp://0.0.0.0:700", 0, NULL},
        {"tcp://*:700", 0, NULL},
        {"tcp://[::]:700", 0, NULL},
        {"tcp://10.0.0.1", 0, NULL},
        {"tcp://10.0.0.1:x", 0, NULL},
        {"tcp://10.0.0.1:65535", 1, NULL},
        {"udp://10.0.0.1:1", 0, NULL},
        {"", 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        char got[SOCK_ADDRESS];
        int rc = tap_client_address(got, rows[i].base, rows[i].client, NULL);

        assert_int_equal(rc, rows[i].want ? VT_OK : VT_EINPUT);
        if (rows[i].want)
            assert_string_equal(got, rows[i].want);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_passes_as_it_is),
        cmocka_unit_test(a_coordinator_and_engines_talk_directly),
        cmocka_unit_test(nonsense_is_forwarded_and_counted),
        cmocka_unit_test(large_frames_pass),
        cmocka_unit_test(a_full_backlog_holds_up_nothing),
        cmocka_unit_test(addresses_must_name_a_host),
    };

    return cmocka_run_group_tests_name("tap", tests, NULL, NULL);
}
