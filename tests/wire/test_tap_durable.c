/* A durable recording: what ends a request leaves when that request's line is written.
 * The trace goes into a pipe that is full, so that the test says when that is. */
#include "tap_harness.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { SHORT_MS = 50 }; /* long enough for what should not come, to come */

struct session {
    struct harness h;
    struct vt_frontend *f;
    struct scripted s;
    int pipe;
    size_t filled;
};

/* Writing blocks from now on. */
static void fill_pipe(struct session *t)
{
    char zeros[4096] = {0};
    ssize_t n;

    while ((n = write(t->pipe, zeros, sizeof(zeros))) > 0)
        t->filled += (size_t)n;
    while ((n = write(t->pipe, zeros, 1)) > 0)
        t->filled += (size_t)n;
}

/* What was written behind what filled it, with an end. */
static void drain_pipe(struct session *t, char *text, size_t size)
{
    char c;
    size_t n = 0;

    while (t->filled > 0)
        if (read(t->pipe, &c, 1) == 1)
            t->filled--;
    while (n + 1 < size && (n == 0 || text[n - 1] != '\n'))
        if (read(t->pipe, &c, 1) == 1)
            text[n++] = c;
        else
            nap();
    text[n] = '\0';
}

static void session_start(struct session *t, uint32_t clients, size_t backlog)
{
    char address[SOCK_ADDRESS];

    *t = (struct session){0};
    harness_init(&t->h);
    assert_int_equal(mkfifo(t->h.trace, 0600), 0);
    t->pipe = open(t->h.trace, O_RDWR | O_NONBLOCK);
    assert_true(t->pipe >= 0);
    t->h.config.wire_out = t->h.config.step_stats_out = NULL;
    t->h.config.durable = true;
    t->h.config.max_backlog_bytes = backlog;
    open_frontend(&t->f, "tcp://127.0.0.1:*", clients, 1, false);
    tap_start(&t->h, vt_frontend_address(t->f), address);
    connect_all(t->f, &t->s, 1, address);
}

static void session_stop(struct session *t)
{
    assert_int_equal(tap_stop(&t->h), VT_OK);
    scripted_close(&t->s);
    vt_frontend_close(t->f);
    close(t->pipe);
    harness_free(&t->h);
}

static void add(struct session *t, uint32_t client, const char *id)
{
    static const uint32_t prompt[] = {1, 2, 3};
    struct vt_frontend_request r = {
        .id = id, .prompt = prompt, .n_prompt = 3, .max_tokens = 50};

    ok(vt_frontend_add(t->f, client, 0, &r, &problem));
    take_one(&t->s, client);
}

/* The engine says one token of a request. */
static void say(struct session *t, uint32_t client, const char *id, int finish)
{
    static const uint32_t token = 7;
    struct wire_output o = {
        .id = text(id), .token = &token, .n_tokens = 1, .finish = finish};
    struct wire_outputs w = {.output = &o,
                             .n_outputs = 1,
                             .timestamp = 1,
                             .wave_complete = -1,
                             .start_wave = -1};

    ok(scripted_outputs(&t->s, client, vt_wire_line_find("0.26"), &w, &problem));
}

static void assert_heard(struct session *t, uint32_t client, const char *id, bool ends)
{
    const struct vt_frontend_message *m = next_message(t->f);

    assert_null(m->bad);
    assert_int_equal(m->client, client);
    assert_int_equal(m->n_outputs, 1);
    assert_string_equal(m->output[0].id, id);
    assert_int_equal(m->output[0].finish_reason != NULL, ends);
}

static void assert_silence(struct session *t)
{
    const struct vt_frontend_message *m;

    ok(vt_frontend_next(t->f, SHORT_MS, &m, &problem));
    assert_null(m);
}

/* ---- tests -------------------------------------------------------------- */

static void a_last_message_waits_for_its_line(void **state)
{
    struct session t;
    char line[4096];

    (void)state;
    session_start(&t, 1, 0);
    add(&t, 0, "a");
    say(&t, 0, "a", WIRE_UNFINISHED);
    assert_heard(&t, 0, "a", false);
    drain_pipe(&t, line, sizeof(line)); /* the meta line */
    fill_pipe(&t);
    say(&t, 0, "a", WIRE_STOP);
    assert_silence(&t);
    drain_pipe(&t, line, sizeof(line));
    assert_memory_equal(line, "{\"id\":\"a\"", 9);
    assert_heard(&t, 0, "a", true);
    session_stop(&t);
    assert_int_equal(t.h.sum.requests, 1);
}

static void what_follows_keeps_its_place(void **state)
{
    struct session t;
    char line[4096];

    (void)state;
    session_start(&t, 2, 0);
    add(&t, 0, "a");
    add(&t, 0, "b");
    add(&t, 1, "c");
    drain_pipe(&t, line, sizeof(line));
    fill_pipe(&t);
    say(&t, 0, "a", WIRE_LENGTH);
    say(&t, 0, "b", WIRE_UNFINISHED);
    say(&t, 1, "c", WIRE_UNFINISHED); /* another client does not wait for it */
    assert_heard(&t, 1, "c", false);
    assert_silence(&t);
    drain_pipe(&t, line, sizeof(line));
    assert_heard(&t, 0, "a", true);
    assert_heard(&t, 0, "b", false);
    say(&t, 0, "b", WIRE_STOP);
    assert_heard(&t, 0, "b", true);
    say(&t, 0, "stranger", WIRE_STOP); /* there is no line to wait for */
    assert_heard(&t, 0, "stranger", true);
    session_stop(&t);
}

/* Told to stop in the meantime, the recorder ends when all is written and sent. */
static void what_is_held_leaves_before_the_end(void **state)
{
    struct session t;
    char line[4096];

    (void)state;
    session_start(&t, 1, 0);
    add(&t, 0, "a");
    drain_pipe(&t, line, sizeof(line));
    fill_pipe(&t);
    say(&t, 0, "a", WIRE_STOP);
    assert_silence(&t);
    atomic_store(&t.h.stop, true);
    drain_pipe(&t, line, sizeof(line));
    assert_heard(&t, 0, "a", true);
    session_stop(&t);
}

/* Where other recordings leave messages out, this one makes the sender wait. */
static void a_full_backlog_leaves_nothing_out(void **state)
{
    struct session t;
    char id[16];

    (void)state;
    session_start(&t, 1, 1);
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof(id), "%d", i);
        add(&t, 0, id);
        say(&t, 0, id, WIRE_STOP);
        assert_heard(&t, 0, id, true);
    }
    session_stop(&t);
    assert_int_equal(t.h.sum.requests, 50);
    assert_int_equal(t.h.sum.incomplete, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_last_message_waits_for_its_line),
        cmocka_unit_test(what_follows_keeps_its_place),
        cmocka_unit_test(what_is_held_leaves_before_the_end),
        cmocka_unit_test(a_full_backlog_leaves_nothing_out),
    };

    return cmocka_run_group_tests_name("tap_durable", tests, NULL, NULL);
}
