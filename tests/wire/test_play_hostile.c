/* Peers that say what makes no sense, too much, or nothing: the engine goes on, others
 * are served in time, and the log stays short. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "huge.h"
#include "play_raw.h"

#include <math.h>

#include "../sanitized.h"

enum { MB = 1 << 20 };

/* ---- a valid request, and what is done to it -------------------------- */

static void put_request(struct vt_buf *b, const char *id)
{
    static uint32_t token[] = {1, 2, 3, 4};
    struct wire_request w = {
        .n_fields = WIRE_REQUEST_FIELDS,
        .id = raw_text(id),
        .prompt = token,
        .n_prompt = 4,
        .arrival_time = 1,
        .data_parallel_rank = -1,
        .sampling = {(const uint8_t *)"\x80", 1},
    };

    vt_buf_clear(b);
    wire_request_write(b, &w);
    assert_false(b->failed);
}

/* Element i of the array in `in` is exchanged for other bytes. */
static void exchange(struct vt_buf *out, const struct vt_buf *in, uint32_t i,
                     const void *bytes, size_t len)
{
    struct mp_in at;
    uint32_t n;

    mp_in_init(&at, in->data, in->len);
    n = mp_array(&at);
    vt_buf_clear(out);
    mp_put_array(out, n);
    for (uint32_t k = 0; k < n; k++) {
        struct mp_span value = mp_raw(&at);

        if (k == i)
            vt_buf_add(out, bytes, len);
        else
            vt_buf_add(out, value.at, value.len);
    }
    assert_false(out->failed);
}

static const struct {
    const char *name, *bytes;
    size_t len;
} values[] = {
    {"nil", "\xc0", 1},
    {"true", "\xc3", 1},
    {"minus one", "\xff", 1},
    {"2^64 - 1", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9},
    {"-2^63", "\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9},
    {"1.5", "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 9},
    {"NaN", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", 9},
    {"infinity", "\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", 9},
    {"a text", "\xa2ha", 3},
    {"a text that is no UTF-8", "\xa2\xff\xfe", 3},
    {"bytes", "\xc4\x02ha", 4},
    {"[]", "\x90", 1},
    {"[1]", "\x91\x01", 2},
    {"[nil]", "\x91\xc0", 2},
    {"[{}]", "\x91\x80", 2},
    {"[[[[1]]]]", "\x91\x91\x91\x91\x01", 5},
    {"{}", "\x80", 1},
    {"{1: 2}", "\x81\x01\x02", 3},
    {"{max_tokens: -1}", "\x81\xaamax_tokens\xff", 13},
    {"{max_tokens: 0}", "\x81\xaamax_tokens\x00", 13},
    {"{n: []}", "\x81\xa1n\x90", 4},
    {"an ext", "\xd4\x01\x00", 3},
    {"a length beyond the end", "\xdd\xff\xff\xff\xff", 5},
    {"a text beyond the end", "\xdb\xff\xff\xff\xff", 5},
    {"a byte that is nothing", "\xc1", 1},
    {"nothing", "", 0},
};

/* ---- what must hold afterwards ---------------------------------------- */

static void assert_alive(struct stage *s)
{
    ask(s, "alive", 8, 3);
    while (told_of(&s->h, "alive") == NULL ||
           told_of(&s->h, "alive")->finish[0] == '\0')
        (void)next(s);
    assert_int_equal(told_of(&s->h, "alive")->n_tokens, 3);
}

/* A few lines for the first ones, then ever fewer. */
static void assert_short_log(struct stage *s)
{
    assert_true(stage_lines(s) < 60);
}

/* ---- requests --------------------------------------------------------- */

/* Whatever stands at a place of a request: if its id can be read it has one end. */
static void wrong_types_at_every_place(void **state)
{
    struct stage *s = *state;
    struct vt_buf good = {0}, bad = {0};
    uint32_t sent = 0;
    char id[32];

    stage_open(s);
    for (uint32_t i = 1; i < WIRE_REQUEST_FIELDS; i++)
        for (size_t k = 0; k < VT_COUNT(values); k++) {
            (void)snprintf(id, sizeof(id), "%u %zu", i, k);
            put_request(&good, id);
            exchange(&bad, &good, i, values[k].bytes, values[k].len);
            send_typed(s, 0, WIRE_ADD, bad.data, bad.len);
            sent++;
        }
    hear_finished(s, sent);
    assert_int_equal(s->h.n, sent);
    for (size_t i = 0; i < s->h.n; i++)
        assert_true(strcmp(s->h.told[i].finish, "error") == 0 ||
                    strcmp(s->h.told[i].finish, "length") == 0 ||
                    strcmp(s->h.told[i].finish, "abort") == 0); /* abort_immediately */
    for (size_t k = 0; k < VT_COUNT(values); k++) {             /* in place of the id */
        put_request(&good, "x");
        exchange(&bad, &good, 0, values[k].bytes, values[k].len);
        send_typed(s, 0, WIRE_ADD, bad.data, bad.len);
    }
    assert_alive(s);
    assert_short_log(s);
    vt_buf_free(&good);
    vt_buf_free(&bad);
}

/* Cut off anywhere, and with something behind its end. */
static void requests_cut_short_are_errors(void **state)
{
    struct stage *s = *state;
    struct vt_buf b = {0};
    uint32_t sent = 0;
    char id[32];

    stage_open(s);
    put_request(&b, "c000");
    /* An array of more elements than bytes that are left has none that can be read. */
    for (size_t len = 3 + WIRE_REQUEST_FIELDS; len < b.len; len++) {
        (void)snprintf(id, sizeof(id), "c%03zu", len);
        put_request(&b, id);
        send_typed(s, 0, WIRE_ADD, b.data, len);
        sent++;
    }
    hear_finished(s, sent);
    for (size_t i = 0; i < s->h.n; i++)
        assert_string_equal(s->h.told[i].finish, "error");
    for (size_t len = 0; len < 3 + WIRE_REQUEST_FIELDS; len++)
        send_typed(s, 0, WIRE_ADD, b.data, len);
    put_request(&b, "long");
    mp_put_nil(&b);
    send_typed(s, 0, WIRE_ADD, b.data, b.len);
    assert_alive(s);
    assert_short_log(s);
    vt_buf_free(&b);
}

static void arrays_longer_than_any_line_are_read(void **state)
{
    struct stage *s = *state;
    struct vt_buf b = {0}, more = {0};

    stage_open(s);
    put_request(&b, "long");
    vt_buf_add(&more, "\xdd\x00\x01\x00\x00", 5); /* 65,536 */
    vt_buf_add(&more, b.data + 3, b.len - 3);
    for (uint32_t i = WIRE_REQUEST_FIELDS; i < 65536; i++)
        mp_put_nil(&more);
    send_typed(s, 0, WIRE_ADD, more.data, more.len);
    hear_finished(s, 1);
    assert_string_equal(told_of(&s->h, "long")->finish, "length");
    assert_alive(s);
    vt_buf_free(&b);
    vt_buf_free(&more);
}

/* The second one's end would be taken for the first one's. */
static void an_id_that_is_in_use_changes_nothing(void **state)
{
    struct stage *s = *state;

    stage_open(s);
    hold_all(s);
    ask(s, "same", 8, 40);
    for (int i = 0; i < 1000; i++)
        ask(s, "same", 8, 2);
    let_go(s);
    hear_finished(s, 1);
    assert_int_equal(told_of(&s->h, "same")->n_tokens, 40);
    hear_rest(s, 30);
    assert_alive(s);
    assert_short_log(s);
    stage_stop(s);
    assert_int_equal(s->sum.finished, 2);
}

static void names_that_are_too_long_are_refused(void **state)
{
    struct stage *s = *state;
    char *name = malloc(MB + 1);
    struct vt_frontend_request r = {
        .id = "salted",
        .prompt = prompt_of(1, 8),
        .n_prompt = 8,
        .max_tokens = 2,
        .cache_salt = name,
    };

    assert_non_null(name);
    memset(name, 'x', MB);
    name[MB] = '\0';
    stage_open(s);
    add(s, 0, 0, &r);
    r.id = name; /* its end is not worth a message of that size */
    add(s, 0, 0, &r);
    r.id = "lora";
    r.cache_salt = NULL;
    r.lora = name;
    add(s, 0, 0, &r);
    hear_finished(s, 2);
    assert_string_equal(told_of(&s->h, "salted")->finish, "error");
    assert_string_equal(told_of(&s->h, "lora")->finish, "error");
    assert_alive(s);
    free(name);
}

/* ---- other messages --------------------------------------------------- */

static void frames_that_are_no_message(void **state)
{
    static const uint8_t many[9] = {0};
    struct stage *s = *state;
    struct vt_bytes frame[8];

    stage_open(s);
    for (uint32_t len = 0; len < 3; len++) { /* types of 0, 1 and 2 bytes, alone */
        frame[0] = (struct vt_bytes){many, len};
        send_frames(s, 0, frame, 1);
    }
    for (uint32_t len = 0; len < 9; len += 2) {
        frame[0] = (struct vt_bytes){many, len};
        frame[1] = (struct vt_bytes){many, 0};
        send_frames(s, 0, frame, 2);
    }
    for (int type = 0; type < 256; type++) { /* 2 comes from the coordinator only */
        send_typed(s, 0, type, "", 0);
        send_typed(s, 0, type, "\x90", 1);
        send_typed(s, 0, type, "\xc0", 1);
    }
    for (size_t i = 0; i < VT_COUNT(frame); i++)
        frame[i] = (struct vt_bytes){many, 1};
    send_frames(s, 0, frame, VT_COUNT(frame));
    assert_alive(s);
    assert_int_equal(s->h.n, 1);
    assert_short_log(s);
}

static void aborts_and_calls_of_any_shape(void **state)
{
    struct stage *s = *state;
    struct vt_buf call = {0}, bad = {0};

    stage_open(s);
    for (size_t k = 0; k < VT_COUNT(values); k++) {
        send_typed(s, 0, WIRE_ABORT, values[k].bytes, values[k].len);
        send_typed(s, 0, WIRE_UTILITY, values[k].bytes, values[k].len);
    }
    mp_put_array(&call, 4);
    mp_put_u64(&call, 0);
    mp_put_u64(&call, 1);
    mp_put_str(&call, "pause_scheduler");
    mp_put_array(&call, 0);
    for (uint32_t i = 0; i < 3; i++) /* args nil would pause it */
        for (size_t k = 0; k < VT_COUNT(values); k++) {
            exchange(&bad, &call, i, values[k].bytes, values[k].len);
            if (i == 1 && strstr("minus one 2^64 - 1 -2^63", values[k].name) != NULL)
                continue;
            send_typed(s, 0, WIRE_UTILITY, bad.data, bad.len);
        }
    for (size_t len = 0; len < call.len; len++)
        send_typed(s, 0, WIRE_UTILITY, call.data, len);
    assert_alive(s);
    assert_short_log(s);
    vt_buf_free(&call);
    vt_buf_free(&bad);
}

/* Every argument of every call may be anything. */
static void calls_with_any_arguments(void **state)
{
    static const char *const methods[] = {
        "reset_prefix_cache",
        "profile",
        "sleep",
        "wake_up",
        "pause_scheduler",
        "add_lora",
        "remove_lora",
        "pin_lora",
        "collective_rpc",
        "set_weight_version",
        "list_loras",
    };
    struct stage *s = *state;
    struct vt_buf args = {0};

    stage_open(s);
    for (size_t m = 0; m < VT_COUNT(methods); m++)
        for (size_t k = 0; k + 4 < VT_COUNT(values); k++) { /* but what breaks it all */
            vt_buf_clear(&args);
            mp_put_array(&args, 2);
            vt_buf_add(&args, values[k].bytes, values[k].len);
            vt_buf_add(&args, values[k].bytes, values[k].len);
            (void)call_json(s, methods[m], &args);
            assert_call(s, "wake_up", NULL, call_json(s, "wake_up", NULL));
        }
    assert_alive(s);
    assert_short_log(s);
    vt_buf_free(&args);
}

static void a_hundred_thousand_aborts(void **state)
{
    struct stage *s = *state;
    struct vt_buf b = {0};
    char id[32];

    s->model = "linear:base=500";
    stage_open(s);
    ask(s, "goes on", 8, 40);
    mp_put_array(&b, 100000);
    for (uint32_t i = 0; i < 100000; i++) {
        (void)snprintf(id, sizeof(id), "nobody-%u", i);
        mp_put_str(&b, id);
    }
    send_typed(s, 0, WIRE_ABORT, b.data, b.len);
    for (uint32_t i = 0; i < 5000; i++)
        send_typed(s, 0, WIRE_ABORT, "\x91\xa6nobody", 8);
    hear_finished(s, 1);
    assert_int_equal(told_of(&s->h, "goes on")->n_tokens, 40);
    assert_alive(s);
    assert_short_log(s);
    vt_buf_free(&b);
}

static void a_thousand_calls_of_nothing(void **state)
{
    struct stage *s = *state;
    struct vt_err err = {0};
    uint32_t answers = 0;

    stage_open(s);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(
            vt_frontend_call(s->f, 0, 0, i, "fl\ny", (struct vt_bytes){0}, &err),
            VT_OK);
    while (answers < 1000) {
        const struct vt_frontend_message *m = next(s);

        assert_true(m->has_utility && m->call_id == answers);
        assert_non_null(m->failure);
        answers++;
    }
    assert_short_log(s);
    assert_true(stage_logged(s, "utility fl?y")); /* a line is a line */
}

/* ---- 64 MB ------------------------------------------------------------ */

static size_t resident_mb(void)
{
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &size, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / MB;
}

/* n tokens of five bytes each. */
static void put_huge_prompt(struct vt_buf *b, uint32_t n)
{
    struct vt_buf good = {0}, prompt = {0};
    uint8_t head[] = {0xdd, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                      (uint8_t)n};

    put_request(&good, "huge");
    vt_buf_add(&prompt, head, sizeof(head));
    assert_int_equal(
        vt_grow(&prompt.data, &prompt.cap, prompt.len + 5 * (size_t)n + 1, 1, NULL),
        VT_OK);
    for (uint32_t i = 0; i < n; i++, prompt.len += 5)
        memcpy(prompt.data + prompt.len, "\xce\x00\x01\x86\xa0", 5);
    exchange(b, &good, 1, prompt.data, prompt.len);
    vt_buf_free(&good);
    vt_buf_free(&prompt);
}

/* While one client sends them, another one's tokens come on time. */
static void frames_of_64_mb_disturb_nobody(void **state)
{
    static const struct {
        int type;
        uint8_t fill;
        bool array; /* of nearly as many elements as bytes */
    } rows[] = {
        {WIRE_ADD, 0x91, false}, /* a very deep one */
        {WIRE_ABORT, 0xa0, true},
        {WIRE_UTILITY, 0xc1, true},
    };
    struct stage *s = *state;
    struct vt_buf huge = {0};
    size_t before, after;
    uint8_t *bytes;
    const struct told *t;

    s->model = "linear:base=2000";
    s->fc.n_clients = 2;
    stage_open(s);
    before = resident_mb();
    ask(s, "steady", 8, 400);
    hear_chunks(s, "steady", 2);
    put_huge_prompt(&huge, 64 * MB / 5);
    send_typed(s, 1, WIRE_ADD, huge.data, huge.len);
    vt_buf_free(&huge);
    bytes = malloc(64 * MB);
    assert_non_null(bytes);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        memset(bytes, rows[i].fill, 64 * MB);
        if (rows[i].array)
            memcpy(bytes, "\xdd\x03\xff\xff\x00", 5);
        send_typed(s, 1, rows[i].type, bytes, 64 * MB);
    }
    free(bytes);
    hear_finished(s, 2);
    t = told_of(&s->h, "steady");
    assert_int_equal(t->n_tokens, 400);
    for (size_t i = 1; i < t->n_chunks; i++)
        assert_true(fabs(t->chunk[i].at - t->chunk[i - 1].at - 0.002) < 1e-6);
    assert_string_equal(told_of(&s->h, "huge")->finish, "error");
    assert_int_equal(told_of(&s->h, "huge")->client, 1);
    assert_alive(s);
    assert_short_log(s);
    after = resident_mb();
    stage_stop(s);
    print_message("  late by %.0f us, p99 %.0f us, at most %.0f us; %zu MB more\n",
                  s->sum.late_p50_us, s->sum.late_p99_us, s->sum.late_max_us,
                  after > before ? after - before : 0);
    /* Reading one of them takes as long as hundreds of steps. */
    assert_true(s->sum.late_max_us < 400000);
    if (!SANITIZED)
        assert_true(after < before + 150);
}

/* ---- who does not read ------------------------------------------------ */

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

/* A frontend whose INIT has 300 MB: it is hung up on, and asked once more. */
static void a_handshake_of_300_mb_is_not_taken(void **state)
{
    struct stage *s = *state;
    struct vt_err err = {0};
    void *monitor;

    raw_open(&raw, "ipc://*", false);
    assert_int_equal(sock_monitor_open(&monitor, raw.ctx, raw.handshake,
                                       ZMQ_EVENT_DISCONNECTED, &err),
                     VT_OK);
    (void)snprintf(s->handshake, sizeof(s->handshake), "%s", raw.handshake_at);
    start_play(s);
    raw_hear(&raw, "HELLO", 0);
    raw_put(raw.handshake, "\0\0", 2, true);
    huge_is_refused(raw.handshake, monitor);
    raw_hear(&raw, "HELLO", 0);
    raw_init(&raw, 0);
    raw_registered(&raw);
    zmq_socket_monitor(raw.handshake, NULL, 0);
    sock_close(monitor);
    assert_short_log(s);
}

/* A hundred requests of a client that reads nothing run to their ends, another one's
 * tokens come meanwhile, and nothing is lost. */
static void a_client_that_does_not_read_holds_up_nobody(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};
    struct wire_outputs o;
    uint32_t ended = 0, tokens = 0;
    char id[32];

    s->model = "linear:base=1000";
    raw_open(&raw, "ipc://*", false);
    (void)snprintf(s->handshake, sizeof(s->handshake), "%s", raw.handshake_at);
    start_play(s);
    raw_hear(&raw, "HELLO", 0);
    raw_init(&raw, 0);
    raw_registered(&raw);
    raw_ask(&raw, 0, 0, "reads", 200);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(id, sizeof(id), "deaf-%d", i);
        raw_ask(&raw, 1, 0, id, 100);
    }
    do {
        o = raw_next(&raw, 0, &a);
        for (uint32_t i = 0; i < o.n_outputs; i++)
            ended += o.output[i].finish >= 0;
    } while (ended == 0);
    ended = 0;
    while (ended < 100) {
        o = raw_next(&raw, 1, &a);
        for (uint32_t i = 0; i < o.n_outputs; i++) {
            ended += o.output[i].finish >= 0;
            tokens += o.output[i].n_tokens;
        }
    }
    assert_int_equal(tokens, 100 * 100);
    vt_arena_free(&a);
    stage_stop(s);
    assert_int_equal(s->sum.finished, 101);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(wrong_types_at_every_place),
        PLAY_TEST(requests_cut_short_are_errors),
        PLAY_TEST(arrays_longer_than_any_line_are_read),
        PLAY_TEST(an_id_that_is_in_use_changes_nothing),
        PLAY_TEST(names_that_are_too_long_are_refused),
        PLAY_TEST(frames_that_are_no_message),
        PLAY_TEST(aborts_and_calls_of_any_shape),
        PLAY_TEST(calls_with_any_arguments),
        PLAY_TEST(a_hundred_thousand_aborts),
        PLAY_TEST(a_thousand_calls_of_nothing),
        PLAY_TEST(frames_of_64_mb_disturb_nobody),
        cmocka_unit_test_setup_teardown(a_handshake_of_300_mb_is_not_taken, raw_setup,
                                        raw_teardown),
        cmocka_unit_test_setup_teardown(a_client_that_does_not_read_holds_up_nobody,
                                        raw_setup, raw_teardown),
    };

    return cmocka_run_group_tests_name("play_hostile", tests, NULL, NULL);
}
