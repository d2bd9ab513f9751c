/* Several clients of one frontend, and several engines with a coordinator. */
#include "play_raw.h"

/* ---- clients ---------------------------------------------------------- */

static void ask_from(struct stage *s, uint32_t client, uint32_t engine, const char *id,
                     uint32_t max_tokens)
{
    struct vt_frontend_request r = {
        .id = id,
        .prompt = prompt_of(1, 8),
        .n_prompt = 8,
        .max_tokens = max_tokens,
    };

    add(s, client, engine, &r);
}

/* What a client has asked before this has arrived after it. */
static void has_arrived(struct stage *s, uint32_t client)
{
    struct vt_err err = {0};

    assert_int_equal(
        vt_frontend_call(s->f, client, 0, 1, "is_sleeping", (struct vt_bytes){0}, &err),
        VT_OK);
    while (!next(s)->has_utility)
        ;
}

static void answers_go_to_the_client_that_asked(void **state)
{
    struct stage *s = *state;
    struct {
        double at;
        uint32_t n_stats;
    } step[32];
    size_t n = 0;

    s->model = "linear:base=2000";
    s->fc.n_clients = 3;
    stage_open(s);
    hold_all(s);
    ask_from(s, 2, 0, "c2", 6);
    has_arrived(s, 2);
    ask_from(s, 0, 0, "c0", 6);
    has_arrived(s, 0);
    ask_from(s, 1, 0, "c1", 6);
    has_arrived(s, 1);
    ask_from(s, 2, 0, "c2 too", 6);
    has_arrived(s, 2);
    let_go(s);
    while (s->h.finished < 4) {
        const struct vt_frontend_message *m = next(s);
        size_t i = 0;

        if (m->n_outputs == 0)
            continue;
        assert_int_equal(m->n_outputs, m->client == 2 ? 2 : 1);
        while (i < n && step[i].at != m->timestamp) /* all of a step are told one */
            i++;
        assert_true(i < VT_COUNT(step));
        if (i == n) {
            step[n].at = m->timestamp;
            step[n++].n_stats = 0;
        }
        step[i].n_stats += m->has_stats;
    }
    assert_int_equal(n, 6);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(step[i].n_stats, 1);
    assert_int_equal(told_of(&s->h, "c0")->client, 0);
    assert_int_equal(told_of(&s->h, "c1")->client, 1);
    assert_int_equal(told_of(&s->h, "c2")->client, 2);
    assert_int_equal(told_of(&s->h, "c2 too")->client, 2);
}

static void calls_are_answered_to_who_called(void **state)
{
    struct stage *s = *state;
    const struct vt_frontend_message *m;
    struct vt_err err = {0};

    s->fc.n_clients = 2;
    stage_open(s);
    assert_int_equal(
        vt_frontend_call(s->f, 1, 0, 5, "is_sleeping", (struct vt_bytes){0}, &err),
        VT_OK);
    m = next(s);
    assert_true(m->has_utility && m->call_id == 5);
    assert_int_equal(m->client, 1);
}

/* What cannot be read far enough to say whose it is came through somebody's socket. */
static void a_bad_request_is_answered_where_it_came_from(void **state)
{
    static const uint8_t bad[] = {0x92, 0xa1, 'b', 0xa1, '?'};
    struct stage *s = *state;
    struct vt_buf b = {0};
    uint32_t token[] = {1, 2};
    struct wire_request w = {
        .n_fields = WIRE_REQUEST_FIELDS,
        .id = raw_text("whose"),
        .prompt = token,
        .n_prompt = 2,
        .data_parallel_rank = -1,
        .client_index = 7, /* there is none */
        .sampling = {(const uint8_t *)"\x80", 1},
    };

    s->fc.n_clients = 2;
    stage_open(s);
    send_typed(s, 1, WIRE_ADD, bad, sizeof(bad));
    wire_request_write(&b, &w);
    send_typed(s, 1, WIRE_ADD, b.data, b.len);
    vt_buf_free(&b);
    hear_finished(s, 2);
    assert_string_equal(told_of(&s->h, "b")->finish, "error");
    assert_int_equal(told_of(&s->h, "b")->client, 1);
    assert_string_equal(told_of(&s->h, "whose")->finish, "error");
    assert_int_equal(told_of(&s->h, "whose")->client, 1);
}

/* ---- bare sockets ----------------------------------------------------- */

static struct raw raw;

static int raw_setup(void **state)
{
    raw = (struct raw){0};
    return stage_setup(state);
}

static int raw_teardown(void **state)
{
    stage_stop(*state);
    raw_close(&raw);
    return stage_teardown(state);
}

#define RAW_TEST(f) cmocka_unit_test_setup_teardown(f, raw_setup, raw_teardown)

static void start_raw(struct stage *s, bool coordinator)
{
    raw_open(&raw, "ipc://*", coordinator);
    (void)snprintf(s->handshake, sizeof(s->handshake), "%s", raw.handshake_at);
    start_play(s);
}

static void requests_of_a_client_that_vanishes_are_aborted(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};
    struct wire_outputs o;
    vt_ns deadline;

    s->model = "linear:base=5000";
    start_raw(s, false);
    raw_hear(&raw, "HELLO", 0);
    raw_init(&raw, 0);
    raw_registered(&raw);
    raw_ask(&raw, 0, 0, "stays", 4000);
    raw_ask(&raw, 1, 0, "goes", 4000);
    raw_ask(&raw, 1, 0, "goes too", 4000);
    do
        o = raw_next(&raw, 0, &a);
    while (!o.has_stats || o.stats.running < 3);
    raw_lose(&raw, 1);
    deadline = wall_ns() + 5 * VT_SEC;
    do
        o = raw_next(&raw, 0, &a);
    while ((!o.has_stats || o.stats.running > 1) && wall_ns() < deadline);
    assert_int_equal(o.stats.running, 1);
    o = raw_next(&raw, 0, &a); /* and the other goes on */
    assert_int_equal(o.n_outputs, 1);
    vt_arena_free(&a);
    stage_stop(s);
    assert_int_equal(s->sum.aborted, 3); /* the last one by the stop */
    assert_true(s->stop_ns < VT_SEC);    /* who is gone is not waited for */
}

static void an_engines_identity_is_its_rank(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};
    struct wire_ready r;
    struct wire_outputs o;
    struct vt_err err = {0};

    s->c.first_rank = 300;
    start_raw(s, false);
    raw_hear(&raw, "HELLO", 300);
    raw_init(&raw, 300);
    assert_true(raw_recv(&raw, raw.client[0].input, WAIT_MS));
    assert_int_equal(
        wire_ready_read(&r, &a, raw_payload(&raw).at, raw_payload(&raw).len, &err),
        VT_OK);
    assert_int_equal(r.data_parallel_rank, 300);
    raw_hear(&raw, "READY", 300);
    raw_ask(&raw, 0, 300, "a", 1);
    o = raw_next(&raw, 0, &a);
    assert_int_equal(o.engine_index, 300);
    vt_arena_free(&a);
}

/* READY is said when the coordinator has let the engine in, not before. */
static void the_coordinator_holds_the_gate(void **state)
{
    struct stage *s = *state;
    uint32_t lines;

    start_raw(s, true);
    raw_hear(&raw, "HELLO", 0);
    raw_init(&raw, 0);
    raw_registered(&raw);
    assert_true(raw_recv(&raw, raw.waves, WAIT_MS));
    assert_memory_equal(raw_payload(&raw).at, "\x01", 1); /* it has subscribed */
    assert_false(raw_recv(&raw, raw.handshake, 80));
    raw_put(raw.waves, "READY", 5, false);
    raw_hear(&raw, "READY", 0);
    wait_for_log(s, "is registered");
    lines = stage_lines(s);
    raw_put(raw.waves, "READY", 5, false); /* for somebody else */
    raw_put(raw.waves, "what?", 5, false);
    assert_false(raw_recv(&raw, raw.handshake, 80));
    assert_int_equal(stage_lines(s), lines);
}

/* A frontend that dies before it lets the engine in: the next one gets it. */
static void an_engine_at_the_gate_finds_the_next_frontend(void **state)
{
    struct stage *s = *state;
    char at[SOCK_ADDRESS];

    (void)snprintf(at, sizeof(at), "ipc://%s/handshake", s->dir);
    raw_open(&raw, at, true);
    (void)snprintf(s->handshake, sizeof(s->handshake), "%s", at);
    start_play(s);
    raw_hear(&raw, "HELLO", 0);
    raw_init(&raw, 0);
    raw_registered(&raw);
    raw_close(&raw);
    raw_open(&raw, at, false);
    raw_hear(&raw, "HELLO", 0);
    raw_init(&raw, 0);
    raw_registered(&raw);
    raw_hear(&raw, "READY", 0);
}

/* ---- ranks ------------------------------------------------------------ */

static void open_ranks(struct stage *s, bool waves)
{
    s->c.n_engines = s->fc.n_engines = 2;
    s->c.waves = waves;
    s->fc.coordinator = true;
    stage_open(s);
}

static void ranks_serve_apart(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};
    struct wire_ready r;
    struct vt_err err = {0};
    const struct vt_frontend_engine *e;

    open_ranks(s, false);
    for (uint32_t i = 0; i < 2; i++) {
        char name[16];

        e = vt_frontend_engine(s->f, i);
        assert_int_equal(
            wire_ready_read(&r, &a, e->registration.at, e->registration.len, &err),
            VT_OK);
        (void)snprintf(name, sizeof(name), "twin-%u", i);
        assert_string_equal(r.instance_id, name);
        assert_int_equal(r.data_parallel_rank, i);
        assert_int_equal(r.data_parallel_size, 1); /* dense ranks know no other */
    }
    vt_arena_free(&a);
    ask_from(s, 0, 1, "b", 3);
    ask_from(s, 0, 0, "a", 3);
    hear_finished(s, 2);
    assert_int_equal(told_of(&s->h, "a")->engine, 0);
    assert_int_equal(told_of(&s->h, "b")->engine, 1);
    /* Each has blocks of its own. */
    ask_from(s, 0, 1, "b2", 3);
    hear_finished(s, 3);
    assert_int_equal(told_of(&s->h, "b2")->cached, 0);
}

/* Frontends of several ranks count by the list of those that have ended. */
static void ranks_list_what_has_ended(void **state)
{
    struct stage *s = *state;
    const struct vt_frontend_message *m;
    struct vt_arena a = {0};
    struct vt_err err = {0};
    struct wire_outputs o;
    const char *id = "gone";
    bool ended = false, gone = false;

    s->model = "linear:base=2000";
    open_ranks(s, false);
    ask_from(s, 0, 0, "gone", 4000);
    hear_chunks(s, "gone", 2);
    ask_from(s, 0, 0, "ends", 5);
    assert_int_equal(vt_frontend_abort(s->f, 0, 0, &id, 1, &err), VT_OK);
    while (!ended || !gone) {
        m = next(s);
        if (m->client == VT_FRONTEND_COORDINATOR)
            continue;
        vt_arena_reset(&a);
        assert_int_equal(
            wire_outputs_read(&o, &a, m->frame[0].at, m->frame[0].len, 0, &err), VT_OK);
        for (uint32_t i = 0; i < o.n_finished; i++) {
            ended |= mp_span_is(o.finished[i], "ends");
            gone |= mp_span_is(o.finished[i], "gone");
        }
    }
    assert_string_equal(told_of(&s->h, "gone")->finish, "");
    vt_arena_free(&a);
}

/* The coordinator is told when a rank's load has changed, and of nothing else. */
static void the_coordinator_is_told_the_load(void **state)
{
    struct stage *s = *state;
    const struct vt_frontend_message *m;
    uint32_t running[2] = {0}, most[2] = {0}, told = 0;

    s->model = "linear:base=2000";
    open_ranks(s, false);
    ask_from(s, 0, 0, "a", 5);
    ask_from(s, 0, 1, "b", 20);
    ask_from(s, 0, 1, "c", 20);
    while ((m = next_within(s, s->h.finished < 3 ? WAIT_MS : 60)) != NULL) {
        if (m->client != VT_FRONTEND_COORDINATOR)
            continue;
        assert_true(m->has_stats && m->n_outputs == 0);
        told++;
        running[m->engine] = m->running;
        if (m->running > most[m->engine])
            most[m->engine] = m->running;
    }
    assert_true(most[0] == 1 && most[1] == 2);
    assert_true(running[0] == 0 && running[1] == 0);
    assert_true(told <= 12);
}

/* ---- waves ------------------------------------------------------------ */

static void ask_in_wave(struct stage *s, uint32_t engine, const char *id, int64_t wave)
{
    struct vt_buf b = {0};
    uint8_t type = WIRE_ADD;
    uint32_t token[] = {1, 2, 3};
    struct wire_request w = {
        .n_fields = WIRE_REQUEST_FIELDS,
        .id = raw_text(id),
        .prompt = token,
        .n_prompt = 3,
        .data_parallel_rank = -1,
        .current_wave = wave,
        .sampling = {(const uint8_t *)"\x80", 1},
    };
    struct vt_bytes frame[2];
    struct vt_err err = {0};

    wire_request_write(&b, &w);
    frame[0] = (struct vt_bytes){&type, 1};
    frame[1] = (struct vt_bytes){b.data, b.len};
    assert_int_equal(vt_frontend_send(s->f, 0, engine, frame, 2, &err), VT_OK);
    vt_buf_free(&b);
}

/* The next wave message to the coordinator; false: none comes. */
static bool next_wave(struct stage *s, int ms, int64_t *complete, int64_t *start)
{
    const struct vt_frontend_message *m;

    while ((m = next_within(s, ms)) != NULL)
        if (m->client == VT_FRONTEND_COORDINATOR &&
            (m->wave_complete >= 0 || m->start_wave >= 0)) {
            *complete = m->wave_complete;
            *start = m->start_wave;
            return true;
        }
    return false;
}

static void waves_end_when_all_ranks_are_idle(void **state)
{
    struct stage *s = *state;
    int64_t complete, start;
    struct vt_err err = {0};

    s->model = "linear:base=2000";
    open_ranks(s, true);
    ask_in_wave(s, 1, "a", 0);
    assert_true(next_wave(s, WAIT_MS, &complete, &start));
    assert_int_equal(complete, 0);
    assert_int_equal(s->h.finished, 1);
    assert_false(next_wave(s, 100, &complete, &start)); /* once, by one of them */

    /* The coordinator starts the next one for the ranks that had no request. */
    assert_int_equal(vt_frontend_wave(s->f, 1, 0, &err), VT_OK);
    assert_true(next_wave(s, WAIT_MS, &complete, &start));
    assert_int_equal(complete, 1);

    /* One that is over is not started again. */
    assert_int_equal(vt_frontend_wave(s->f, 1, -1, &err), VT_OK);
    assert_false(next_wave(s, 150, &complete, &start));
}

/* A request of an old wave has crossed with its end: the coordinator has to wake the
 * other ranks. */
static void a_request_of_an_old_wave_starts_a_new_one(void **state)
{
    struct stage *s = *state;
    int64_t complete, start;

    open_ranks(s, true);
    ask_in_wave(s, 0, "a", 0);
    assert_true(next_wave(s, WAIT_MS, &complete, &start));
    assert_int_equal(complete, 0);
    ask_in_wave(s, 1, "late", 0);
    assert_true(next_wave(s, WAIT_MS, &complete, &start));
    assert_int_equal(start, 1);
    assert_true(next_wave(s, WAIT_MS, &complete, &start));
    assert_int_equal(complete, 1);
    /* One of a wave to come takes the rank along. */
    ask_in_wave(s, 1, "early", 5);
    assert_true(next_wave(s, WAIT_MS, &complete, &start));
    assert_int_equal(complete, 5);
    assert_int_equal(s->h.finished, 3);
}

static void dense_ranks_know_no_waves(void **state)
{
    struct stage *s = *state;
    int64_t complete, start;
    struct vt_err err = {0};

    open_ranks(s, false);
    ask_in_wave(s, 0, "a", 0);
    assert_int_equal(vt_frontend_wave(s->f, 1, -1, &err), VT_OK);
    assert_false(next_wave(s, 150, &complete, &start));
    assert_int_equal(s->h.finished, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(answers_go_to_the_client_that_asked),
        PLAY_TEST(calls_are_answered_to_who_called),
        PLAY_TEST(a_bad_request_is_answered_where_it_came_from),
        RAW_TEST(requests_of_a_client_that_vanishes_are_aborted),
        RAW_TEST(an_engines_identity_is_its_rank),
        RAW_TEST(the_coordinator_holds_the_gate),
        RAW_TEST(an_engine_at_the_gate_finds_the_next_frontend),
        PLAY_TEST(ranks_serve_apart),
        PLAY_TEST(ranks_list_what_has_ended),
        PLAY_TEST(the_coordinator_is_told_the_load),
        PLAY_TEST(waves_end_when_all_ranks_are_idle),
        PLAY_TEST(a_request_of_an_old_wave_starts_a_new_one),
        PLAY_TEST(dense_ranks_know_no_waves),
    };

    return cmocka_run_group_tests_name("play_ranks", tests, NULL, NULL);
}
