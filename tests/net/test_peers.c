/* test_peers.c - peers that leave, do not read, dawdle or never end. */
#include "net_testing.h"

#define LAST "Connection: close\r\n\r\n"

/* ---- who leaves ------------------------------------------------------ */

static void who_leaves_is_told_of(void **state)
{
    struct stage *s = *state;
    int fd[4];

    stage_open(s);
    for (int i = 0; i < 4; i++) {
        fd[i] = client_open(s);
        say(s, fd[i], i < 3 ? "GET /later HTTP/1.1\r\nHost: x\r\n\r\n" : "GET /lat");
    }
    TURN_UNTIL(s, s->n_due == 3);
    client_close(s, fd[0]);
    turn(s);
    assert_int_equal(s->n_gone, 1);
    shutdown(fd[1], SHUT_WR); /* half-closed, as uvicorn takes it */
    turn(s);
    assert_int_equal(s->n_gone, 2);
    client_close(s, fd[3]); /* owed nothing */
    TURN_UNTIL(s, net_stats(s->n).open == 1);
    assert_int_equal(s->n_gone, 2);
    assert_int_equal(s->n_refused, 0);
}

static void who_asks_and_closes_its_side_hears_what_is_at_hand(void **state)
{
    struct stage *s = *state;
    struct vt_buf heard;
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    shutdown(fd, SHUT_WR);
    heard = hear_out(s, fd);
    assert_int_equal(count(&heard, "\r\n\r\nhi"), 1);
    vt_buf_free(&heard);

    fd = client_open(s); /* but what is not there is not waited for */
    say(s, fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    shutdown(fd, SHUT_WR);
    TURN_UNTIL(s, s->n_gone == 1);
    assert_int_equal(s->n_requests, 2);
}

static void who_resets_is_told_of(void **state)
{
    struct stage *s = *state;
    struct linger now = {1, 0};
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    TURN_UNTIL(s, s->n_due == 1);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    client_close(s, fd);
    TURN_UNTIL(s, s->n_gone == 1);
    assert_int_equal(net_stats(s->n).open, 0);
}

static void writing_to_who_has_left_is_harmless(void **state)
{
    struct stage *s = *state;
    struct linger now = {1, 0};
    struct net_reply r = {.status = 200};
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    TURN_UNTIL(s, s->n_due == 1);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    client_close(s, fd);
    net_stream(s->due[0], &r);
    for (int i = 0; i < 3; i++) {
        net_put(s->due[0], "abc", 3);
        net_flush(s->n);
        assert_int_equal(s->n_gone, 0); /* only within net_wait() */
    }
    turn(s);
    assert_int_equal(s->n_gone, 1);
    assert_int_equal(net_stats(s->n).open, 0);
}

static void an_answer_to_who_has_left_is_the_end_of_it(void **state)
{
    struct stage *s = *state;
    struct linger now = {1, 0};
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    TURN_UNTIL(s, s->n_due == 1);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    client_close(s, fd);
    reply_text(s->due[0], 200, "here", 4);
    s->n_due = 0;
    TURN_UNTIL(s, net_stats(s->n).open == 0);
    assert_int_equal(s->n_gone, 0);
}

/* ---- who does not read ----------------------------------------------- */

static void who_does_not_read_is_closed_at_the_limit(void **state)
{
    struct stage *s = *state;
    static char chunk[65536];
    struct net_reply r = {.status = 200};
    size_t put = 0;
    int fd, other;

    stage_open(s);
    fd = client_open(s);
    other = client_open(s);
    say(s, fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    TURN_UNTIL(s, s->n_due == 1);
    net_stream(s->due[0], &r);
    while (s->n_gone == 0) {
        struct vt_buf heard;

        assert_true(put < 512 * sizeof(chunk)); /* the kernel's buffers end somewhere */
        net_put(s->due[0], chunk, sizeof(chunk));
        put += sizeof(chunk);
        assert_int_equal(s->n_gone, 0); /* not before it is waited */
        turn(s);
        say(s, other, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        heard = hear(s, other, "\r\n\r\n", 1); /* nobody else is disturbed */
        vt_buf_free(&heard);
    }
    assert_int_equal(net_stats(s->n).open, 1);
}

static void the_end_of_an_answer_is_not_kept_for_ever(void **state)
{
    struct stage *s = *state;
    static char chunk[8 << 20];
    struct net_reply r = {.status = 200};
    int fd;

    s->c.body_timeout_ns = 5 * VT_MS;
    s->c.max_unsent_bytes = 16 << 20;
    stage_open(s);
    fd = client_open(s);
    say(s, fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    TURN_UNTIL(s, s->n_due == 1);
    net_stream(s->due[0], &r);
    net_put(s->due[0], chunk, sizeof(chunk));
    net_flush(s->n);
    net_end(s->due[0]);
    s->n_due = 0;
    TURN_UNTIL(s, net_stats(s->n).open == 0);
    assert_int_equal(s->n_gone, 0);
}

static void who_reads_slowly_gets_all_of_it(void **state)
{
    struct stage *s = *state;
    struct vt_buf heard = {0};
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd,
        "GET /large HTTP/1.1\r\nHost: x\r\n\r\nGET /large HTTP/1.1\r\nHost: "
        "x\r\n" LAST);
    for (int i = 0; i < 20; i++)
        turn(s);
    assert_int_equal(s->n_requests, 1); /* the second waits until the first is out */
    heard = hear_out(s, fd);
    assert_true(heard.len > 8 << 20);
    assert_int_equal(s->n_requests, 2);
    vt_buf_free(&heard);
}

static void a_body_behind_unread_answers_is_still_read(void **state)
{
    static char body[300000];
    struct stage *s = *state;
    struct vt_buf heard;
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    say(s, fd, "POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n" LAST);
    memset(body, 'y', sizeof(body));
    for (int i = 0; i < 10; i++)
        turn(s);
    assert_int_equal(s->n_requests, 1);
    for (size_t i = 0; i < 30; i++) { /* in between, the answer is read */
        say_bytes(s, fd, body + i * 10000, 10000);
        turn(s);
    }
    heard = hear_out(s, fd);
    assert_int_equal(count(&heard, "\r\n\r\nyyy"), 1);
    vt_buf_free(&heard);
}

/* ---- who dawdles ----------------------------------------------------- */

static struct slow {
    const char *name, *said;
    vt_ns head, body, idle;
    const char *heard; /* begins with it; "": closed without a word */
} slow[] = {
    {"a silent peer is closed quietly", "", 5 * VT_MS, 0, 0, ""},
    {"half a head is not waited for", "GET / HT", 5 * VT_MS, 0, 0,
     "HTTP/1.1 408 Request Timeout\r\n"},
    {"half a body is not waited for",
     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na", 0, 5 * VT_MS, 0,
     "HTTP/1.1 408 Request Timeout\r\n"},
    {"half a chunk is not waited for",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na", 0,
     5 * VT_MS, 0, "HTTP/1.1 408 Request Timeout\r\n"},
    {"between requests a connection is closed quietly",
     "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0, 0, 5 * VT_MS, "HTTP/1.1 200 OK\r\n"},
    {"half of a second head is not waited for", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET",
     5 * VT_MS, 0, 0, "HTTP/1.1 200 OK\r\n"},
};

static void is_not_waited_for(void **state)
{
    const struct slow *r = *state;
    void *own = NULL;
    struct vt_buf heard;
    struct stage *s;
    int fd;

    assert_int_equal(stage_setup(&own), 0);
    s = own;
    s->c.header_timeout_ns = r->head;
    s->c.body_timeout_ns = r->body;
    s->c.idle_timeout_ns = r->idle;
    stage_open(s);
    fd = client_open(s);
    say(s, fd, r->said);
    heard = hear_out(s, fd);
    assert_int_equal(strncmp(heard.data, r->heard, strlen(r->heard)), 0);
    assert_int_equal(heard.len > 0, r->heard[0] != '\0');
    client_close(s, fd);
    TURN_UNTIL(s, net_stats(s->n).open == 0);
    vt_buf_free(&heard);
    stage_teardown(&own);
}

static void a_body_that_drips_is_not_waited_for(void **state)
{
    struct stage *s = *state;
    vt_ns deadline = vt_wall_ns() + 20 * VT_SEC;
    struct vt_buf heard;
    int fd;

    s->c.body_timeout_ns = 20 * VT_MS;
    stage_open(s);
    fd = client_open(s);
    say(s, fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    while (s->n_refused == 0 && vt_wall_ns() < deadline) {
        say(s, fd, "x");
        turn(s);
    }
    assert_int_equal(s->refused, 408);
    heard = hear_out(s, fd);
    assert_int_equal(count(&heard, "408 Request Timeout"), 1);
    vt_buf_free(&heard);
}

static struct flood {
    const char *name, *said;
    int status;
} floods[] = {
    {"a target without end", "GET /", 414},
    {"a field without end", "GET / HTTP/1.1\r\nHost: x\r\nA: ", 431},
    {"a chunk extension without end",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;", 400},
    {"trailers without end",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ", 431},
    {"a body above the limit",
     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n", 413},
};

/* The refusal is heard although the peer goes on and does not listen before its end. */
static void is_refused_and_heard(void **state)
{
    static char much[2 << 20];
    const struct flood *r = *state;
    void *own = NULL;
    struct vt_buf heard;
    struct stage *s;
    int fd;

    assert_int_equal(stage_setup(&own), 0);
    s = own;
    stage_open(s);
    memset(much, 'x', sizeof(much));
    fd = client_open(s);
    say(s, fd, r->said);
    say_bytes(s, fd, much, sizeof(much));
    heard = hear_out(s, fd);
    assert_true(heard.len > 12);
    assert_int_equal(strtol(heard.data + 9, NULL, 10), r->status);
    assert_int_equal(s->refused, r->status);
    vt_buf_free(&heard);
    client_close(s, fd);
    TURN_UNTIL(s, net_stats(s->n).open == 0);
    stage_teardown(&own);
}

static void a_response_that_is_due_has_no_deadline(void **state)
{
    struct stage *s = *state;
    struct vt_buf heard;
    vt_ns enough;
    int fd;

    s->c.header_timeout_ns = s->c.body_timeout_ns = s->c.idle_timeout_ns = 2 * VT_MS;
    stage_open(s);
    fd = client_open(s);
    say(s, fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    TURN_UNTIL(s, s->n_due == 1);
    enough = vt_wall_ns() + 20 * VT_MS;
    TURN_UNTIL(s, vt_wall_ns() > enough);
    assert_int_equal(s->n_gone, 0);
    reply_text(s->due[0], 200, "here", 4);
    heard = hear(s, fd, "here", 1);
    vt_buf_free(&heard);
}

int main(void)
{
    enum { N_SLOW = VT_COUNT(slow), N_FLOODS = VT_COUNT(floods) };
#define STAGED(f) cmocka_unit_test_setup_teardown(f, stage_setup, stage_teardown)
    const struct CMUnitTest staged[] = {
        STAGED(who_leaves_is_told_of),
        STAGED(who_asks_and_closes_its_side_hears_what_is_at_hand),
        STAGED(who_resets_is_told_of),
        STAGED(writing_to_who_has_left_is_harmless),
        STAGED(an_answer_to_who_has_left_is_the_end_of_it),
        STAGED(who_does_not_read_is_closed_at_the_limit),
        STAGED(the_end_of_an_answer_is_not_kept_for_ever),
        STAGED(who_reads_slowly_gets_all_of_it),
        STAGED(a_body_behind_unread_answers_is_still_read),
        STAGED(a_body_that_drips_is_not_waited_for),
        STAGED(a_response_that_is_due_has_no_deadline),
    };
    struct CMUnitTest tests[VT_COUNT(staged) + N_SLOW + N_FLOODS];
    size_t n = VT_COUNT(staged);

    memcpy(tests, staged, sizeof(staged));
    for (size_t i = 0; i < N_SLOW; i++)
        tests[n++] = (struct CMUnitTest){.name = slow[i].name,
                                         .test_func = is_not_waited_for,
                                         .initial_state = &slow[i]};
    for (size_t i = 0; i < N_FLOODS; i++)
        tests[n++] = (struct CMUnitTest){.name = floods[i].name,
                                         .test_func = is_refused_and_heard,
                                         .initial_state = &floods[i]};
    return cmocka_run_group_tests_name("net_peers", tests, NULL, NULL);
}
