/* test_many.c - many connections, too many of them, the end of all, and waiting. */
#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "net/server/server.h"
#include "net_testing.h"

#define GET "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

/* ---- many ------------------------------------------------------------ */

/* Connects without waiting for anybody; -1: no more descriptors. */
static int knock(const struct stage *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(net_port(s->n))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void raise_descriptors(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
}

/* Connects and asks; the connections stay. */
static size_t ask_by_many(struct stage *s, int *fd, size_t n)
{
    size_t i = 0;

    for (; i < n && (fd[i] = knock(s)) >= 0; i++) {
        assert_int_equal(send(fd[i], GET, strlen(GET), 0), (ssize_t)strlen(GET));
        if (i % 32 == 31)
            turn(s);
    }
    return i;
}

static void idle_connections_cost_little(void **state)
{
    enum { MANY = 2000 };
    static int fd[MANY];
    struct stage *s = *state;
    struct mallinfo2 before, after;
    struct vt_buf heard;
    size_t n;

    raise_descriptors();
    stage_open(s);
    n = ask_by_many(s, fd, 64); /* what is kept for reuse is there by then */
    TURN_UNTIL(s, s->n_requests == n);
    before = mallinfo2();
    n += ask_by_many(s, fd + n, MANY - n);
    assert_true(n > 400); /* where 1024 descriptors are all there are */
    TURN_UNTIL(s, s->n_requests == n);
    turn(s);
    after = mallinfo2();
    assert_int_equal(net_stats(s->n).open, n);
    assert_true((after.uordblks - before.uordblks) / (n - 64) < 700);
    say(s, fd[n / 2], GET);
    heard = hear(s, fd[n / 2], "200 OK", 2);
    vt_buf_free(&heard);
    for (size_t i = 0; i < n; i++)
        close(fd[i]);
    TURN_UNTIL(s, net_stats(s->n).open == 0);
    assert_int_equal(s->n_gone, 0);
}

static void one_too_many_is_told_so(void **state)
{
    struct stage *s = *state;
    struct vt_buf heard;
    int fd[3];

    s->c.max_connections = 2;
    stage_open(s);
    for (int i = 0; i < 3; i++) {
        fd[i] = client_open(s);
        say(s, fd[i], GET);
        turn(s);
    }
    heard = hear_out(s, fd[2]);
    assert_int_equal(count(&heard, "HTTP/1.1 503 Service Unavailable\r\n"), 1);
    assert_int_equal(s->refused, 503);
    vt_buf_free(&heard);
    client_close(s, fd[2]);
    client_close(s, fd[0]);
    TURN_UNTIL(s, net_stats(s->n).open == 1);
    fd[0] = client_open(s);
    say(s, fd[0], GET);
    heard = hear(s, fd[0], "200 OK", 1);
    vt_buf_free(&heard);
}

static void without_descriptors_the_others_go_on(void **state)
{
    struct stage *s = *state;
    struct rlimit old, low;
    struct vt_buf heard;
    int fd, late;

    stage_open(s);
    fd = client_open(s);
    say(s, fd, GET);
    heard = hear(s, fd, "200 OK", 1);
    vt_buf_free(&heard);
    late = client_open(s);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = (rlim_t)late + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    heard = hear_out(s, late);
    vt_buf_free(&heard);
    say(s, fd, GET);
    heard = hear(s, fd, "200 OK", 1);
    vt_buf_free(&heard);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(s->refused, 503);
}

/* ---- the end --------------------------------------------------------- */

static void a_drain_lets_requests_under_way_end(void **state)
{
    struct stage *s = *state;
    struct vt_buf heard;
    int idle, due, half;

    stage_open(s);
    idle = client_open(s);
    due = client_open(s);
    half = client_open(s);
    say(s, due, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    say(s, half, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na");
    TURN_UNTIL(s, s->n_due == 1 && net_stats(s->n).open == 3);
    turn(s);
    net_drain(s->n);
    heard = hear_out(s, idle);
    assert_int_equal(heard.len, 0);
    vt_buf_free(&heard);
    assert_int_equal(knock(s), -1);
    say(s, half, "b");
    heard = hear_out(s, half);
    assert_int_equal(count(&heard, "connection: close\r\n\r\nab"), 1);
    vt_buf_free(&heard);
    reply_text(s->due[0], 200, "done", 4);
    heard = hear_out(s, due);
    assert_int_equal(count(&heard, "connection: close\r\n\r\ndone"), 1);
    vt_buf_free(&heard);
    TURN_UNTIL(s, net_stats(s->n).open == 0);
    assert_int_equal(s->n_gone, 0);
}

static void a_close_with_everything_under_way_leaves_nothing(void **state)
{
    static const char *const said[] = {
        "",
        "GET",
        GET,
        ("GET /later HTTP/1.1\r\nHost: x\r\n\r\n" GET),
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na",
        "blah\r\n\r\n",
        "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"};
    struct stage *s = *state;

    stage_open(s);
    for (size_t i = 0; i < VT_COUNT(said); i++)
        say(s, client_open(s), said[i]);
    TURN_UNTIL(s, net_stats(s->n).open == VT_COUNT(said) && s->n_requests == 3);
    net_close(s->n);
    s->n = NULL;
    assert_int_equal(s->n_gone, 0);
}

/* ---- waiting --------------------------------------------------------- */

static void note_ready(void *user)
{
    uint64_t *seen = user, n = 0;
    int fd = (int)seen[1];

    assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
    seen[0] += n;
}

static void a_watched_descriptor_ends_the_wait(void **state)
{
    struct stage *s = *state;
    int fd = eventfd(0, EFD_NONBLOCK);
    uint64_t seen[2] = {0, (uint64_t)fd}, one = 1;
    struct vt_err err;

    stage_open(s);
    assert_int_equal(net_watch(s->n, fd, note_ready, seen, &err), VT_OK);
    turn(s);
    assert_int_equal(seen[0], 0);
    assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
    assert_int_equal(net_wait(s->n, VT_NEVER, false, &err), VT_OK);
    assert_int_equal(seen[0], 1);
    net_close(s->n);
    s->n = NULL;
    close(fd);
}

static void a_wait_ends_when_it_is_time(void **state)
{
    struct stage *s = *state;
    struct vt_err err;

    stage_open(s);
    for (int i = 0; i < 4; i++) {
        vt_ns until = vt_wall_ns() + (i % 2 ? 2 * VT_MS : -VT_MS);

        assert_int_equal(net_wait(s->n, until, i < 2, &err), VT_OK);
        assert_true(vt_wall_ns() >= until);
    }
}

/* ---- addresses ------------------------------------------------------- */

static void a_server_is_where_it_is_told_to_be(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "0.0.0.0", "", NULL};
    struct stage *s = *state;

    for (size_t i = 0; i < VT_COUNT(hosts); i++) {
        struct vt_buf heard;
        int fd;

        s->c.host = hosts[i];
        stage_open(s);
        fd = client_open(s);
        say(s, fd, GET);
        heard = hear(s, fd, "200 OK", 1);
        vt_buf_free(&heard);
        client_close(s, fd);
        net_close(s->n);
        s->n = NULL;
    }
}

static void a_place_that_is_taken_or_not_there_is_named(void **state)
{
    struct stage *s = *state;
    struct net_handler h = {.request = on_request};
    struct net *second = NULL;
    struct net_config c;
    struct vt_err err;

    stage_open(s);
    c = s->c;
    c.port = net_port(s->n);
    assert_int_equal(net_open(&second, &c, &h, &err), VT_EINPUT);
    assert_null(second);
    assert_non_null(strstr(err.msg, "cannot listen on 127.0.0.1 port "));
    c.host = "no such host";
    assert_int_equal(net_open(&second, &c, &h, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "cannot listen on 'no such host'"));
    c.host = "192.0.2.1"; /* nobody's */
    c.port = 0;
    assert_int_equal(net_open(&second, &c, &h, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "192.0.2.1"));
}

int main(void)
{
#define STAGED(f) cmocka_unit_test_setup_teardown(f, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        STAGED(idle_connections_cost_little),
        STAGED(one_too_many_is_told_so),
        STAGED(without_descriptors_the_others_go_on),
        STAGED(a_drain_lets_requests_under_way_end),
        STAGED(a_close_with_everything_under_way_leaves_nothing),
        STAGED(a_watched_descriptor_ends_the_wait),
        STAGED(a_wait_ends_when_it_is_time),
        STAGED(a_server_is_where_it_is_told_to_be),
        STAGED(a_place_that_is_taken_or_not_there_is_named),
    };

    return cmocka_run_group_tests_name("net_many", tests, NULL, NULL);
}
