/* How an engine comes and goes: frontends that are started again, engines that are,
 * stopping, dying, and failing on purpose. */
#include "play_raw.h"

static void at_ipc(struct stage *s)
{
    static char at[64];

    (void)snprintf(at, sizeof(at), "ipc://%s/handshake", s->dir);
    s->fc.handshake = at;
    (void)snprintf(s->handshake, sizeof(s->handshake), "%s", at);
}

/* ---- frontends -------------------------------------------------------- */

static void an_engine_may_be_there_first(void **state)
{
    struct stage *s = *state;

    at_ipc(s);
    start_play(s);
    wait_for_log(s, "waiting for a frontend");
    pause_ms(50);
    open_front(s);
    accept_engines(s);
    ask(s, "a", 8, 2);
    hear_finished(s, 1);
}

static void a_frontend_that_starts_again_gets_the_engine_back(void **state)
{
    struct stage *s = *state;

    at_ipc(s);
    s->model = "linear:base=2000";
    stage_open(s);
    for (int i = 0; i < 3; i++) {
        ask(s, "goes on", 40, 1000);
        ask(s, "ends", 40, 2);
        while (told_of(&s->h, "ends") == NULL ||
               told_of(&s->h, "ends")->finish[0] == '\0')
            (void)next(s);
        vt_frontend_close(s->f);
        s->f = NULL;
        heard_free(&s->h);
        open_front(s);
        accept_engines(s);
        hear_rest(s, 30); /* nothing of the old ones comes to the new */
        assert_int_equal(s->h.n, 0);
    }
    stage_stop(s);
    assert_int_equal(s->sum.requests, 6);
    assert_int_equal(s->sum.finished, 3);
    assert_int_equal(s->sum.aborted, 3);
}

/* Tokens that were on their way to the old one when it went. */
static void what_has_not_left_does_not_reach_the_next(void **state)
{
    struct stage *s = *state;

    at_ipc(s);
    s->model = "knob:time_to_first_token=400,inter_token_latency=1";
    stage_open(s);
    ask(s, "old", 8, 5);
    pause_ms(50); /* computed, and due later */
    vt_frontend_close(s->f);
    s->f = NULL;
    open_front(s);
    accept_engines(s);
    hear_rest(s, 500);
    assert_int_equal(s->h.n, 0);
}

/* The next frontend is of another version. */
static void the_line_is_inferred_anew(void **state)
{
    static const char *const lines[] = {"0.31", "0.26", "0.28"};
    struct stage *s = *state;

    at_ipc(s);
    s->fc.line = vt_wire_line_find(lines[0]);
    stage_open(s);
    for (size_t i = 0; i < VT_COUNT(lines); i++) {
        const struct vt_frontend_message *m;
        struct mp_in in;

        if (i > 0) {
            vt_frontend_close(s->f);
            s->f = NULL;
            s->fc.line = vt_wire_line_find(lines[i]);
            open_front(s);
            accept_engines(s);
        }
        heard_free(&s->h);
        ask(s, "a", 8, 1);
        m = next(s);
        mp_in_init(&in, m->frame[0].at, m->frame[0].len);
        assert_int_equal(mp_array(&in), s->fc.line->outputs_fields);
        mp_skip(&in);
        assert_int_equal(mp_array(&in), 1);
        assert_int_equal(mp_array(&in), s->fc.line->output_fields);
    }
}

/* ---- engines ---------------------------------------------------------- */

static void a_session_whose_frontend_is_gone_gives_way_to_the_next(void **state)
{
    struct stage *s = *state;
    static char path[64]; /* the stage keeps it */

    (void)snprintf(path, sizeof(path), "%s/session", s->dir);
    s->c.session_file = path;
    at_ipc(s);
    stage_open(s);
    stage_end(s);
    start_play(s);
    pause_ms(30);
    open_front(s);
    accept_engines(s);
    ask(s, "a", 8, 2);
    hear_finished(s, 1);
}

static void a_damaged_session_is_no_session(void **state)
{
    static const char *const texts[] = {"", "garbage", "\x80", "\xc1\xc1"};
    struct stage *s = *state;
    static char path[64]; /* the stage keeps it */

    (void)snprintf(path, sizeof(path), "%s/session", s->dir);
    s->c.session_file = path;
    for (size_t i = 0; i < VT_COUNT(texts); i++) {
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fputs(texts[i], f);
        fclose(f);
        stage_open(s);
        stage_end(s);
        assert_int_equal(s->rc, VT_OK);
    }
}

/* It can be read, but leads nowhere. */
static void a_session_without_an_address_is_none(void **state)
{
    struct mp_span nowhere = raw_text("nowhere://at.all");
    struct wire_init w = {.input = &nowhere, .output = &nowhere, .n_clients = 1};
    struct stage *s = *state;
    struct vt_buf b = {0};
    static char path[64]; /* the stage keeps it */
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/session", s->dir);
    s->c.session_file = path;
    wire_init_write(&b, &w);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
    fclose(f);
    vt_buf_free(&b);
    stage_open(s);
    assert_true(stage_logged(s, "/session: cannot connect to nowhere://at.all"));
    ask(s, "a", 8, 2);
    hear_finished(s, 1);
}

/* ---- INIT ------------------------------------------------------------- */

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

/* With no handshake: where it was registered, it registers again. */
static void an_engine_that_starts_again_goes_on_with_its_frontend(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};
    struct wire_outputs o;
    static char path[64]; /* the stage keeps it */

    (void)snprintf(path, sizeof(path), "%s/session", s->dir);
    s->c.session_file = path;
    raw_open(&raw, "ipc://*", false);
    (void)snprintf(s->handshake, sizeof(s->handshake), "%s", raw.handshake_at);
    start_play(s);
    raw_hear(&raw, "HELLO", 0);
    raw_init(&raw, 0);
    for (int i = 0; i < 3; i++) {
        if (i > 0) {
            stage_stop(s);
            clear_log(s);
            start_play(s);
            wait_for_log(s, "the frontend is where it was: going on");
        }
        raw_registered(&raw);
        raw_ask(&raw, 1, 0, "a", 1);
        o = raw_next(&raw, 1, &a);
        assert_int_equal(o.n_outputs, 1);
        while (raw_recv(&raw, raw.client[0].output, 20))
            ; /* statistics */
    }
    vt_arena_free(&a);
}

/* n clients at the same address. */
static void put_init(struct vt_buf *b, const char *address, uint32_t n)
{
    struct mp_span *list = calloc(n, sizeof(*list));
    struct wire_init w = {.input = list, .output = list, .n_clients = n};

    assert_non_null(list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = raw_text(address);
    wire_init_write(b, &w);
    free(list);
}

static void an_init_that_makes_no_sense_is_told_of(void **state)
{
    static const struct {
        const char *address;
        uint32_t n;
    } rows[] = {
        {"tcp://127.0.0.1", 1},
        {"nowhere://at.all", 1},
        {"", 1},
        {"tcp://127.0.0.1:1", 5000}, /* more than there can be */
    };
    struct stage *s = *state;
    struct vt_arena a = {0};
    struct wire_outputs o;

    raw_open(&raw, "ipc://*", false);
    (void)snprintf(s->handshake, sizeof(s->handshake), "%s", raw.handshake_at);
    start_play(s);
    raw_hear(&raw, "HELLO", 0);
    raw_send_bytes(&raw, 0, "", 0);
    raw_send_bytes(&raw, 0, "garbage", 7);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_buf b = {0};

        put_init(&b, rows[i].address, rows[i].n);
        raw_send_bytes(&raw, 0, b.data, b.len);
        vt_buf_free(&b);
    }
    raw_init(&raw, 0);
    raw_registered(&raw);
    raw_hear(&raw, "READY", 0);
    assert_true(stage_logged(s, "INIT from the frontend"));
    raw_ask(&raw, 1, 0, "a", 1);
    o = raw_next(&raw, 1, &a);
    assert_int_equal(o.n_outputs, 1);
    vt_arena_free(&a);
}

/* ---- stopping --------------------------------------------------------- */

static void a_stop_aborts_what_runs(void **state)
{
    struct stage *s = *state;

    s->model = "linear:base=2000";
    stage_open(s);
    ask(s, "a", 8, 1000);
    ask(s, "b", 8, 1000);
    hear_chunks(s, "b", 2);
    stage_stop(s);
    assert_int_equal(s->rc, VT_OK);
    assert_true(s->stop_ns < VT_SEC);
    hear_finished(s, 2);
    assert_string_equal(told_of(&s->h, "a")->finish, "abort");
    assert_string_equal(told_of(&s->h, "b")->finish, "abort");
    assert_int_equal(s->sum.aborted, 2);
}

/* With a timeout what runs may end, and what comes is refused. */
static void a_stop_with_a_timeout_lets_requests_end(void **state)
{
    struct stage *s = *state;
    const struct vt_frontend_message *m;
    struct vt_err err = {0};

    s->model = "linear:base=2000";
    s->c.shutdown_timeout_s = 20;
    stage_open(s);
    ask(s, "a", 8, 300);
    hear_chunks(s, "a", 2);
    atomic_store(&s->stop, true);
    wait_for_log(s, "stopping: 1 requests may go on for 20 s");
    ask(s, "refused", 8, 2);
    assert_int_equal(
        vt_frontend_call(s->f, 0, 0, 3, "is_sleeping", (struct vt_bytes){0}, &err),
        VT_OK);
    do
        m = next(s);
    while (!m->has_utility);
    assert_string_equal(m->failure, "Server shutting down");
    hear_finished(s, 2);
    assert_string_equal(told_of(&s->h, "refused")->finish, "abort");
    assert_string_equal(told_of(&s->h, "a")->finish, "length");
    assert_int_equal(told_of(&s->h, "a")->n_tokens, 300);
    stage_stop(s);
    assert_int_equal(s->rc, VT_OK);
    assert_true(s->stop_ns < 2 * VT_SEC); /* not the whole timeout */
}

static void a_timeout_that_is_over_aborts_the_rest(void **state)
{
    struct stage *s = *state;

    s->model = "linear:base=2000";
    s->c.shutdown_timeout_s = 0.15;
    s->c.time_scale = 0.5; /* the timeout is of the wall clock */
    stage_open(s);
    ask(s, "a", 8, 1000);
    hear_chunks(s, "a", 2);
    stage_stop(s);
    assert_true(s->stop_ns > 140 * VT_MS && s->stop_ns < 2 * VT_SEC);
    hear_finished(s, 1);
    assert_string_equal(told_of(&s->h, "a")->finish, "abort");
    assert_true(told_of(&s->h, "a")->n_tokens > 2);
}

static void stopping_does_not_wait_for_who_is_not_there(void **state)
{
    struct stage *s = *state;

    /* Nobody ever was. */
    at_ipc(s);
    start_play(s);
    wait_for_log(s, "waiting for a frontend");
    stage_stop(s);
    assert_int_equal(s->rc, VT_OK);
    assert_true(s->stop_ns < VT_SEC);

    /* A frontend is gone with its requests. */
    s->model = "linear:base=2000";
    stage_open(s);
    ask(s, "a", 8, 1000);
    hear_chunks(s, "a", 2);
    vt_frontend_close(s->f);
    s->f = NULL;
    pause_ms(150);
    stage_stop(s);
    assert_int_equal(s->rc, VT_OK);
    assert_true(s->stop_ns < VT_SEC);
}

/* ---- dying and failing ------------------------------------------------ */

static void an_engine_dies_and_says_so(void **state)
{
    struct stage *s = *state;
    const struct vt_frontend_message *m;
    uint32_t dead = 0;

    s->dies = true;
    s->c.die_after = 3;
    s->fc.n_clients = 2;
    s->model = "linear:base=2000";
    stage_open(s);
    ask(s, "a", 8, 1000);
    ask(s, "b", 8, 1000);
    hear_chunks(s, "b", 2);
    ask(s, "c", 8, 1000);
    while (dead < 2) {
        m = next(s);
        if (m->dead) {
            assert_int_equal(m->n_frames, 1);
            assert_memory_equal(m->frame[0].at, "ENGINE_CORE_DEAD", 16);
            dead++;
        }
    }
    stage_join(s); /* by itself */
    assert_int_equal(s->rc, VT_EIO);
    assert_non_null(strstr(s->err.msg, "request 3"));
}

static void requests_fail_as_they_are_told(void **state)
{
    static const struct {
        const char *types;
        double rate;
        uint32_t first;
        bool by_id;
        const char *want[4]; /* of four requests with the same external id */
    } rows[] = {
        {NULL, 0, 0, false, {"length", "length", "length", "length"}},
        {NULL, 1, 0, false, {"error", "error", "error", "error"}},
        {"repetition",
         1,
         0,
         false,
         {"repetition", "repetition", "repetition", "repetition"}},
        {"abort", 0, 2, false, {"abort", "abort", "length", "length"}},
        {NULL, 0, 1, true, {"error", "length", "length", "length"}},
    };
    struct stage *s = *state;

    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        s->c.failure_types = rows[i].types;
        s->c.failure_rate = rows[i].rate;
        s->c.fail_first = rows[i].first;
        s->c.fail_first_by_id = rows[i].by_id;
        stage_open(s);
        for (uint32_t k = 0; k < 4; k++) {
            char id[8] = {(char)('a' + k), '\0'};
            struct vt_frontend_request r = {
                .id = id,
                .external_id = "retried",
                .prompt = prompt_of(1, 8),
                .n_prompt = 8,
                .max_tokens = 2,
            };

            add(s, 0, 0, &r);
            hear_finished(s, k + 1);
            assert_string_equal(told_of(&s->h, id)->finish, rows[i].want[k]);
        }
        stage_end(s);
        heard_free(&s->h);
    }
}

static void what_cannot_be_played_is_refused(void **state)
{
    struct stage *s = *state;
    const struct vt_play_config good = s->c;
    struct vt_play_config bad[8];
    struct vt_latency *model;
    struct vt_err err = {0};
    size_t n = 0;

    assert_int_equal(vt_model_open_inline(&model, "null:", &err), VT_OK);
    s->c.model = model;
    s->c.handshake = "tcp://127.0.0.1:1";
    for (size_t i = 0; i < VT_COUNT(bad); i++)
        bad[i] = s->c;
    bad[n++].time_scale = 0;
    bad[n++].n_engines = 0;
    bad[n++].engine.block_size = 0;
    bad[n++].handshake = "nowhere";
    bad[n++].step_stats_out = "/nowhere/at/all";
    bad[n++].failure_types = "sometimes";
    bad[n++].replay_tokens = "/nowhere/at/all";
    bad[n++].vocab_size = 0;
    atomic_store(&s->stop, true);
    for (size_t i = 0; i < n; i++) {
        struct vt_play_summary sum;

        err = (struct vt_err){0};
        assert_int_equal(vt_play(&bad[i], &sum, &err), VT_EINPUT);
        assert_true(err.msg[0] != '\0');
    }
    s->c = good;
    vt_latency_close(model);
}

#define RAW_TEST(f) cmocka_unit_test_setup_teardown(f, raw_setup, raw_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(an_engine_may_be_there_first),
        PLAY_TEST(a_frontend_that_starts_again_gets_the_engine_back),
        PLAY_TEST(what_has_not_left_does_not_reach_the_next),
        PLAY_TEST(the_line_is_inferred_anew),
        RAW_TEST(an_engine_that_starts_again_goes_on_with_its_frontend),
        PLAY_TEST(a_session_whose_frontend_is_gone_gives_way_to_the_next),
        PLAY_TEST(a_damaged_session_is_no_session),
        PLAY_TEST(a_session_without_an_address_is_none),
        RAW_TEST(an_init_that_makes_no_sense_is_told_of),
        PLAY_TEST(a_stop_aborts_what_runs),
        PLAY_TEST(a_stop_with_a_timeout_lets_requests_end),
        PLAY_TEST(a_timeout_that_is_over_aborts_the_rest),
        PLAY_TEST(stopping_does_not_wait_for_who_is_not_there),
        PLAY_TEST(an_engine_dies_and_says_so),
        PLAY_TEST(requests_fail_as_they_are_told),
        PLAY_TEST(what_cannot_be_played_is_refused),
    };

    return cmocka_run_group_tests_name("play_life", tests, NULL, NULL);
}
