/* test_server.c - what a peer hears for what it says, on plain sockets. */
#include "net_testing.h"

#define DATE                          \
    "date: #########################" \
    " GMT\r\nserver: uvicorn\r\n"
#define OK "HTTP/1.1 200 OK\r\n" DATE
#define BAD                                                             \
    "HTTP/1.1 400 Bad Request\r\n" DATE                                 \
    "content-type: text/plain; charset=utf-8\r\ncontent-length: 30\r\n" \
    "connection: close\r\n\r\nInvalid HTTP request received."
#define LAST "Connection: close\r\n\r\n"

static struct row { /* all that is heard until the server closes */
    const char *name, *said, *heard;
} rows[] = {
    {"an answer, in uvicorn's words", "GET / HTTP/1.1\r\nHost: x\r\n" LAST,
     OK "content-length: 0\r\ncontent-type: application/json\r\nvary: Origin\r\n"
        "connection: close\r\n\r\n"},
    {"an old client's connection ends with the answer",
     "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi",
     OK "content-length: 2\r\ncontent-type: application/json\r\nvary: Origin\r\n"
        "connection: close\r\n\r\nhi"},
    {"another origin is welcome",
     "GET / HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n" LAST,
     OK "content-length: 0\r\ncontent-type: application/json\r\n"
        "access-control-allow-origin: *\r\nvary: Origin\r\nconnection: close\r\n\r\n"},
    {"HEAD is answered without the body",
     "HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n" LAST "hi",
     OK "content-length: 2\r\ncontent-type: application/json\r\nvary: Origin\r\n"
        "connection: close\r\n\r\n"},
    {"one request after another",
     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\naPOST / HTTP/1.1\r\nHost: "
     "x\r\n"
     "Content-Length: 1\r\n" LAST "b",
     OK
     "content-length: 1\r\ncontent-type: application/json\r\nvary: Origin\r\n\r\na" OK
     "content-length: 1\r\ncontent-type: application/json\r\nvary: Origin\r\n"
     "connection: close\r\n\r\nb"},
    {"a chunked body",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" LAST
     "2\r\nhi\r\n1;x\r\n!\r\n0\r\nA: b\r\n\r\n",
     OK "content-length: 3\r\ncontent-type: application/json\r\nvary: Origin\r\n"
        "connection: close\r\n\r\nhi!"},
    {"what is not HTTP is refused", "blah\r\n\r\n", BAD},
    {"a refusal comes behind an answer",
     "GET / HTTP/1.1\r\nHost: x\r\n\r\nblah\r\n\r\n",
     OK
     "content-length: 0\r\ncontent-type: application/json\r\nvary: Origin\r\n\r\n" BAD},
    {"TLS on a plain port", "\x16\x03\x01\x02", BAD},
    {"a body that is too large",
     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\nabc",
     "HTTP/1.1 413 Request Entity Too Large\r\n" DATE
     "content-type: text/plain; charset=utf-8\r\ncontent-length: 24\r\n"
     "connection: close\r\n\r\nRequest Entity Too Large"},
    {"a coding that is not understood",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
     "HTTP/1.1 501 Not Implemented\r\n" DATE
     "content-type: text/plain; charset=utf-8\r\ncontent-length: 15\r\n"
     "connection: close\r\n\r\nNot Implemented"},
    {"a browser asks before it asks",
     "OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n"
     "Access-Control-Request-Method: POST\r\n"
     "Access-Control-Request-Headers: x-a, x-b\r\n" LAST,
     OK "vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers, "
        "Access-Control-Request-Private-Network\r\n"
        "access-control-allow-origin: *\r\n"
        "access-control-allow-methods: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, "
        "QUERY\r\naccess-control-max-age: 600\r\n"
        "access-control-allow-headers: x-a, x-b\r\n"
        "content-length: 2\r\ncontent-type: text/plain; charset=utf-8\r\n"
        "connection: close\r\n\r\nOK"},
    {"a browser asks for what is not done",
     "OPTIONS / HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n"
     "Access-Control-Request-Method: TRACE\r\n" LAST,
     "HTTP/1.1 400 Bad Request\r\n" DATE
     "vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers, "
     "Access-Control-Request-Private-Network\r\naccess-control-allow-origin: *\r\n"
     "access-control-allow-methods: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, "
     "QUERY\r\naccess-control-max-age: 600\r\n"
     "content-length: 22\r\ncontent-type: text/plain; charset=utf-8\r\n"
     "connection: close\r\n\r\nDisallowed CORS method"},
    {"OPTIONS without an origin is a request like others",
     "OPTIONS / HTTP/1.1\r\nHost: x\r\nAccess-Control-Request-Method: POST\r\n" LAST,
     OK "content-length: 0\r\ncontent-type: application/json\r\nvary: Origin\r\n"
        "connection: close\r\n\r\n"},
};

static void is_answered(void **state)
{
    const struct row *r = *state;
    void *own = NULL;
    struct stage *s;
    size_t len = strlen(r->said);

    assert_int_equal(stage_setup(&own), 0);
    s = own;
    stage_open(s);
    for (size_t cut = 1; cut <= len; cut += cut < len && len - cut < 7 ? 1 : 7) {
        int fd = client_open(s);
        struct vt_buf heard;

        say_bytes(s, fd, r->said, cut);
        turn(s);
        say_bytes(s, fd, r->said + cut, len - cut);
        heard = hear_out(s, fd);
        forget_date(&heard);
        assert_string_equal(heard.data, r->heard);
        vt_buf_free(&heard);
        client_close(s, fd);
    }
    stage_teardown(&own);
}

/* ---- answers that take their time ------------------------------------ */

static void a_stream_is_chunks(void **state)
{
    struct stage *s = *state;
    struct net_header more = {"x-request-id", "a"};
    struct net_reply r = {.status = 200,
                          .type = "text/event-stream; charset=utf-8",
                          .header = &more,
                          .n_headers = 1};
    struct vt_buf heard;
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd,
        "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /after HTTP/1.1\r\nHost: x\r\n\r\n");
    TURN_UNTIL(s, s->n_due == 1);
    net_stream(s->due[0], &r);
    net_put(s->due[0], "data: 1\n\n", 9);
    net_put(s->due[0], "", 0);
    net_put(s->due[0], "0123456789abcdefg", 17);
    assert_int_equal(s->n_requests, 1); /* the next one waits for the end */
    net_end(s->due[0]);
    s->n_due = 0;
    heard = hear(s, fd, "\r\n\r\n", 3);
    forget_date(&heard);
    assert_string_equal(heard.data,
                        OK "x-request-id: a\r\n"
                           "content-type: text/event-stream; charset=utf-8\r\n"
                           "vary: Origin\r\ntransfer-encoding: chunked\r\n\r\n"
                           "9\r\ndata: 1\n\n\r\n11\r\n0123456789abcdefg\r\n0\r\n\r\n" OK
                           "content-length: 0\r\ncontent-type: application/json\r\n"
                           "vary: Origin\r\n\r\n");
    vt_buf_free(&heard);
}

static void an_old_client_gets_a_stream_without_chunks(void **state)
{
    struct stage *s = *state;
    struct net_reply r = {.status = 200, .bare = true};
    struct vt_buf heard;
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd, "GET /later HTTP/1.0\r\n\r\n");
    TURN_UNTIL(s, s->n_due == 1);
    net_stream(s->due[0], &r);
    net_put(s->due[0], "abc", 3);
    net_end(s->due[0]);
    s->n_due = 0;
    heard = hear_out(s, fd);
    forget_date(&heard);
    assert_string_equal(heard.data, OK "connection: close\r\n\r\nabc");
    vt_buf_free(&heard);
}

static void what_is_put_together_leaves_together(void **state)
{
    struct stage *s = *state;
    struct net_reply r = {.status = 200};
    uint64_t before;
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    TURN_UNTIL(s, s->n_due == 1);
    before = net_stats(s->n).sends;
    net_stream(s->due[0], &r);
    for (int i = 0; i < 1000; i++)
        net_put(s->due[0], "0123456789", 10);
    net_flush(s->n);
    assert_int_equal(net_stats(s->n).sends, before + 1);
}

static void many_wait_and_are_answered_in_any_order(void **state)
{
    struct stage *s = *state;
    int fd[32];

    stage_open(s);
    for (int i = 0; i < 32; i++) {
        fd[i] = client_open(s);
        say(s, fd[i], "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
        TURN_UNTIL(s, s->n_due == (size_t)i + 1);
    }
    for (int i = 31; i >= 0; i--) {
        char text[16];
        struct vt_buf heard;

        snprintf(text, sizeof(text), "<%d>", i);
        reply_text(s->due[i], 200, text, strlen(text));
        heard = hear(s, fd[i], text, 1);
        vt_buf_free(&heard);
    }
}

static void a_body_is_awaited_when_it_is_to_be_called_for(void **state)
{
    struct stage *s = *state;
    struct vt_buf heard;
    int fd;

    stage_open(s);
    fd = client_open(s);
    say(s, fd,
        "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
        "2\r\n\r\n");
    heard = hear(s, fd, "HTTP/1.1 100 Continue\r\n\r\n", 1);
    vt_buf_free(&heard);
    say(s, fd, "hi");
    heard = hear(s, fd, "hi", 1);
    assert_int_equal(count(&heard, "100 Continue"), 0);
    vt_buf_free(&heard);
    say(s, fd,
        "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
        "9999999\r\n\r\n");
    heard = hear_out(s, fd);
    assert_int_equal(count(&heard, "100 Continue"), 0);
    assert_int_equal(count(&heard, "413 Request"), 1);
    vt_buf_free(&heard);
}

static void a_large_body_comes_in_pieces_and_can_be_kept(void **state)
{
    struct stage *s = *state;
    size_t len = 1 << 20;
    char *body = malloc(len + 1);
    struct vt_buf heard;
    int fd;

    assert_non_null(body);
    for (size_t i = 0; i < len; i++)
        body[i] = (char)('a' + i % 26);
    body[len] = '\0';
    stage_open(s);
    fd = client_open(s);
    say(s, fd, "POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n");
    say_bytes(s, fd, body, len);
    say(s, fd, "POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nend");
    heard = hear(s, fd, "\r\n\r\nend", 1);
    assert_non_null(strstr(heard.data, body));
    assert_string_equal(s->taken, "end");
    vt_buf_free(&heard);
    free(body);
}

/* The value of the only X-Request-Id in what was heard; "": there is none. */
static void id_heard(const struct vt_buf *heard, char out[80])
{
    const char *at = strstr(heard->data, "x-request-id: ");

    out[0] = '\0';
    if (!at)
        return;
    assert_int_equal(count(heard, "x-request-id: "), 1);
    at += strlen("x-request-id: ");
    assert_true(strcspn(at, "\r") < 80);
    memcpy(out, at, strcspn(at, "\r"));
    out[strcspn(at, "\r")] = '\0';
}

static void every_answer_has_the_id_of_its_request(void **state)
{
    static const struct {
        const char *said, *id; /* NULL: one that is made */
    } asked[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n" LAST, "mine"},
        {"GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\xe9\xff\r\n" LAST, "a\xe9\xff"},
        {"GET / HTTP/1.1\r\nHost: x\r\n" LAST, NULL},
        {"OPTIONS / HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n"
         "Access-Control-Request-Method: POST\r\n" LAST,
         NULL},
        {"GET / HTTP/1.1\r\n" LAST, ""}, /* refused before it is a request */
    };
    struct stage *s = *state;
    char last[80] = "", id[80];

    s->c.request_ids = true;
    stage_open(s);
    for (size_t i = 0; i < VT_COUNT(asked); i++) {
        int fd = client_open(s);
        struct vt_buf heard;

        say(s, fd, asked[i].said);
        heard = hear_out(s, fd);
        id_heard(&heard, id);
        if (asked[i].id) {
            assert_string_equal(id, asked[i].id);
        } else {
            assert_int_equal(strspn(id, "0123456789abcdef"), 32);
            assert_int_equal(strlen(id), 32);
            assert_string_not_equal(id, last);
            memcpy(last, id, sizeof(last));
        }
        vt_buf_free(&heard);
        client_close(s, fd);
    }
}

int main(void)
{
    enum { N = VT_COUNT(rows) };
#define STAGED(f) cmocka_unit_test_setup_teardown(f, stage_setup, stage_teardown)
    const struct CMUnitTest staged[] = {
        STAGED(a_stream_is_chunks),
        STAGED(an_old_client_gets_a_stream_without_chunks),
        STAGED(what_is_put_together_leaves_together),
        STAGED(many_wait_and_are_answered_in_any_order),
        STAGED(a_body_is_awaited_when_it_is_to_be_called_for),
        STAGED(a_large_body_comes_in_pieces_and_can_be_kept),
        STAGED(every_answer_has_the_id_of_its_request),
    };
    struct CMUnitTest tests[VT_COUNT(staged) + N];

    memcpy(tests, staged, sizeof(staged));
    for (size_t i = 0; i < N; i++)
        tests[VT_COUNT(staged) + i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = is_answered, .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
