/* test_client.c - requests that are waited for, and the addresses they go to. */
#include "serving.h"

#include "live/live.h"

#define OK(body) "HTTP/1.1 200 OK\r\nContent-Length: " body

/* ---- addresses --------------------------------------------------------------- */

static struct url_row {
    const char *url, *host, *port, *path;
    size_t base_len;
    bool tls;
    const char *wrong; /* part of the message */
} urls[] = {
    {"http://a", "a", "80", "", 0, false, NULL},
    {"https://a.b:8443/", "a.b", "8443", "/", 0, true, NULL},
    {"http://[::1]:80/v1//?x=y#z", "::1", "80", "/v1//?x=y", 3, false, NULL},
    {"https://[::1]", "::1", "443", "", 0, true, NULL},
    {"http://h?q", "h", "80", "?q", 0, false, NULL},
    {"ftp://a", NULL, NULL, NULL, 0, false, "no http:// or https://"},
    {"http://", NULL, NULL, NULL, 0, false, "names no host"},
    {"http://:80", NULL, NULL, NULL, 0, false, "names no host"},
    {"http://a:0", NULL, NULL, NULL, 0, false, "port"},
    {"http://a:65536", NULL, NULL, NULL, 0, false, "port"},
    {"http://a:", NULL, NULL, NULL, 0, false, "port"},
    {"http://u@a", NULL, NULL, NULL, 0, false, "user name"},
    {"http://[::1", NULL, NULL, NULL, 0, false, "not closed"},
    {"http://a/b c", NULL, NULL, NULL, 0, false, "blank"},
    {"http://a/b\r\nX: y", NULL, NULL, NULL, 0, false, "blank"},
};

static void a_url_is_taken_apart(void **state)
{
    const struct url_row *w = *state;
    struct vt_err err = {0};
    struct net_url u;
    int rc = net_url_parse(&u, w->url, &err);

    if (w->wrong) {
        assert_int_equal(rc, VT_EINPUT);
        if (!strstr(err.msg, w->wrong))
            fail_msg("%s", err.msg);
        return;
    }
    assert_int_equal(rc, VT_OK);
    assert_string_equal(u.host, w->host);
    assert_string_equal(u.port, w->port);
    assert_string_equal(u.path, w->path);
    assert_int_equal(u.base_len, w->base_len);
    assert_int_equal(u.tls, w->tls);
}

/* ---- asking ------------------------------------------------------------------ */

struct stand { /* a server with these answers, and a client of it */
    struct serving s;
    struct net_client n;
    char url[64];
    struct vt_buf reply;
    struct vt_err err;
    int status;
};

static struct stand *stand_open(const struct script *script, size_t n, const char *path)
{
    struct stand *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    serving_start(&t->s, script, n);
    snprintf(t->url, sizeof(t->url), "http://127.0.0.1:%u%s", t->s.port, path);
    assert_int_equal(net_client_open(&t->n, t->url, NULL, &t->err), VT_OK);
    return t;
}

static int ask(struct stand *t, const struct net_ask *a)
{
    vt_buf_clear(&t->reply);
    return net_ask(&t->n, a, &t->status, &t->reply, &t->err);
}

static void stand_close(struct stand *t)
{
    net_client_close(&t->n);
    serving_stop(&t->s);
    vt_buf_free(&t->reply);
    free(t);
}

static void a_connection_serves_again(void **state)
{
    static const struct script script[] = {
        {.bytes = OK("2\r\n\r\nab"), .piece = 3},
        {.bytes = OK("1\r\n\r\nc"), .close_after = true},
        {.bytes = "HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nd"},
    };
    static const struct net_header header[] = {{"X-A", "b"}};
    struct stand *t = stand_open(script, 3, "/base/?q=1");
    const struct net_ask plain = {.timeout_ns = 5 * VT_SEC},
                         put = {.method = "PUT",
                                .path = "/x",
                                .header = header,
                                .n_headers = 1,
                                .body = "body",
                                .body_len = 4,
                                .timeout_ns = 5 * VT_SEC};

    (void)state;
    assert_int_equal(ask(t, &plain), VT_OK);
    assert_int_equal(t->status, 200);
    assert_string_equal(t->reply.data, "ab");
    assert_int_equal(ask(t, &put), VT_OK);
    assert_string_equal(t->reply.data, "c");
    assert_int_equal(t->n.connections, 1);
    assert_int_equal(ask(t, &plain), VT_OK); /* though the server has closed it */
    assert_int_equal(t->status, 404);
    assert_string_equal(t->reply.data, "d");
    assert_int_equal(t->n.connections, 2);
    serving_look(&t->s);
    assert_int_equal(strncmp(t->s.request[0], "GET /base/?q=1 HTTP/1.1\r\n", 25), 0);
    assert_int_equal(strncmp(t->s.request[1], "PUT /base/x HTTP/1.1\r\n", 22), 0);
    assert_non_null(strstr(t->s.request[1], "\r\nX-A: b\r\n"));
    assert_non_null(strstr(t->s.request[1], "\r\nContent-Length: 4\r\n\r\nbody"));
    stand_close(t);
}

static bool count_bytes(void *user, const char *bytes, size_t len)
{
    size_t *room = user;

    (void)bytes;
    if (len > *room)
        return false;
    *room -= len;
    return true;
}

static void replies_are_bounded(void **state)
{
    static const struct script script[] = {{.bytes = OK("6\r\n\r\nabcdef")}};
    struct stand *t = stand_open(script, 1, "");
    size_t room = 6;
    struct net_ask a = {.timeout_ns = 5 * VT_SEC, .max_reply = 3};

    (void)state;
    assert_int_equal(ask(t, &a), VT_OK);
    assert_string_equal(t->reply.data, "abc");
    a.sink = count_bytes;
    a.user = &room;
    assert_int_equal(ask(t, &a), VT_OK);
    assert_int_equal(room, 0);
    assert_int_equal(t->reply.len, 0);
    room = 5;
    assert_int_equal(ask(t, &a), VT_EIO); /* the sink has ended it */
    stand_close(t);
}

static bool always(void *user)
{
    (void)user;
    return true;
}

static void nobody_is_waited_for_too_long(void **state)
{
    static const struct script silent[] = {{.bytes = NULL}};
    static const struct script slow[] = {
        {.bytes = "HTTP/1.1 200 OK\r\n\r\nbegun", .close_after = false}};
    struct stand *t = stand_open(silent, 1, "");
    struct net_ask a = {.timeout_ns = 150 * VT_MS};
    vt_ns begun = vt_wall_ns();

    (void)state;
    assert_int_equal(ask(t, &a), VT_EIO);
    assert_non_null(strstr(t->err.msg, "no response in time"));
    a = (struct net_ask){.timeout_ns = 60 * VT_SEC, .stopped = always};
    assert_int_equal(ask(t, &a), VT_EIO);
    stand_close(t);
    t = stand_open(slow, 1, "");
    a = (struct net_ask){.timeout_ns = 60 * VT_SEC, .silence_ns = 100 * VT_MS};
    assert_int_equal(ask(t, &a), VT_EIO);
    assert_non_null(strstr(t->err.msg, "nothing has come"));
    assert_true(vt_wall_ns() - begun < 30 * VT_SEC);
    stand_close(t);
}

static void what_is_no_response_is_an_error(void **state)
{
    static const struct script script[] = {
        {.bytes = "220 smtp\r\n"},
        {.bytes = OK("9\r\n\r\ncut"), .close_after = true},
    };
    struct stand *t = stand_open(script, 2, "");
    const struct net_ask a = {.timeout_ns = 5 * VT_SEC};

    (void)state;
    assert_int_equal(ask(t, &a), VT_EIO);
    assert_int_equal(ask(t, &a), VT_EIO);
    stand_close(t);
}

static void nobody_there_is_an_error(void **state)
{
    static const struct script none[] = {{.bytes = NULL}};
    struct stand *t = stand_open(none, 1, "");
    const struct net_ask a = {.timeout_ns = 5 * VT_SEC};

    (void)state;
    shutdown(t->s.listener, SHUT_RDWR);
    assert_int_equal(ask(t, &a), VT_EIO);
    assert_non_null(strstr(t->err.msg, "cannot connect to 127.0.0.1:"));
    stand_close(t);
}

int main(void)
{
    enum { N = VT_COUNT(urls) };
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test(a_connection_serves_again),
        cmocka_unit_test(replies_are_bounded),
        cmocka_unit_test(nobody_is_waited_for_too_long),
        cmocka_unit_test(what_is_no_response_is_an_error),
        cmocka_unit_test(nobody_there_is_an_error),
    };
    struct CMUnitTest tests[N];
    int failed = cmocka_run_group_tests_name("net client", fixed, NULL, NULL);

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){.name = urls[i].url,
                                       .test_func = a_url_is_taken_apart,
                                       .initial_state = &urls[i]};
    return failed + cmocka_run_group_tests_name("net urls", tests, NULL, NULL);
}
