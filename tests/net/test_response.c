/* Responses cut at any byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/client/client.h"

#define SSE "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"

static struct row {
    const char *name, *bytes;
    enum net_part part;
    int status;
    bool keep_alive, closed; /* the peer closes behind it */
    size_t left;             /* bytes that are not its own */
    const char *data;        /* of all data lines, a | behind each */
    const char *body;
} rows[] = {
    {"a chunked stream",
     SSE "transfer-encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\nE\r\ndata: "
         "[DONE]\n\n\r\n0\r\n\r\n",
     NET_PART_WHOLE, 200, true, false, 0, "a|[DONE]|", ""},
    {"chunks that do not fit the events, with an extension and trailers",
     SSE "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\ndat\r\n1\r\na\r\n7\r\n: "
         "a\r\n\r\n\r\n0\r\nX: y\r\n\r\n",
     NET_PART_WHOLE, 200, true, false, 0, "a|", ""},
    {"comments and other fields are passed over",
     SSE "content-length: 35\r\n\r\n: ping\r\nevent: x\r\nid: 1\r\ndata:a\r\n\r\n",
     NET_PART_WHOLE, 200, true, false, 0, "a|", ""},
    {"until the connection ends, without a last line end", SSE "\r\ndata: a\n\ndata: b",
     NET_PART_WHOLE, 200, false, true, 0, "a|b|", ""},
    {"cut off in a chunk", SSE "transfer-encoding: chunked\r\n\r\nff\r\ndata: a\n\n",
     NET_PART_CHUNKS, 200, false, true, 0, "a|", ""},
    {"an error with a body",
     "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
     NET_PART_WHOLE, 400, false, false, 0, "", "{}"},
    {"an error that calls itself a stream is not read as one",
     "HTTP/1.1 500 x\r\ncontent-type: text/event-stream\r\nContent-Length: "
     "9\r\n\r\ndata: a\n\n",
     NET_PART_WHOLE, 500, true, false, 0, "", "data: a\n\n"},
    {"no body at all", "HTTP/1.1 204 No Content\r\n\r\n", NET_PART_WHOLE, 204, true,
     false, 0, "", ""},
    {"a sign of life before it",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
     NET_PART_WHOLE, 200, true, false, 0, "", ""},
    {"HTTP/1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", NET_PART_WHOLE,
     200, false, false, 0, "", "x"},
    {"line ends without a return", "HTTP/1.1 200 OK\nContent-Length: 1\n\nx",
     NET_PART_WHOLE, 200, true, false, 0, "", "x"},
    {"what follows is left", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxyz",
     NET_PART_WHOLE, 200, true, false, 2, "", "x"},
    {"no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", NET_PART_BROKEN, 0, false, false, 0, "", ""},
    {"a status that is none", "HTTP/1.1 2x0 OK\r\n\r\n", NET_PART_BROKEN, 0, false,
     false, 0, "", ""},
    {"two lengths",
     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
     NET_PART_BROKEN, 200, false, false, 0, "", ""},
    {"a chunk's size that is none", SSE "transfer-encoding: chunked\r\n\r\nzz\r\n",
     NET_PART_BROKEN, 200, false, false, 0, "", ""},
    {"a chunk's size beyond counting",
     SSE "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n", NET_PART_BROKEN,
     200, false, false, 0, "", ""},
    {"a chunk without an end", SSE "transfer-encoding: chunked\r\n\r\n1\r\nxyz\r\n",
     NET_PART_BROKEN, 200, false, false, 0, "", ""},
    {"a header without a colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", NET_PART_BROKEN,
     200, false, false, 0, "", ""},
};

static void on_data(void *user, const char *p, size_t len)
{
    vt_buf_add(user, p, len);
    vt_buf_char(user, '|');
}

static size_t feed(struct net_response *r, const char *p, size_t n)
{
    char *copy = malloc(n > 0 ? n : 1);
    size_t used;

    assert_non_null(copy);
    memcpy(copy, p, n);
    used = net_response_feed(r, copy, n);
    assert_true(used <= n);
    free(copy);
    return used;
}

static void expect(const struct row *w, size_t first, size_t second)
{
    size_t len = strlen(w->bytes), used = 0;
    struct vt_buf data = {0};
    struct net_response r = {.max_body = 100, .sse = {.data = on_data, .user = &data}};
    size_t cut[] = {0, first, second, len};

    net_response_reset(&r);
    for (int i = 0; i < 3; i++)
        used += feed(&r, w->bytes + cut[i], cut[i + 1] - cut[i]);
    if (w->closed)
        net_response_close(&r);
    assert_int_equal(r.part, w->part);
    if (w->part != NET_PART_BROKEN) {
        assert_int_equal(used, len - w->left);
        assert_int_equal(r.status, w->status);
        assert_int_equal(r.keep_alive, w->keep_alive);
        assert_string_equal(data.data ? data.data : "", w->data);
        assert_string_equal(r.body.data ? r.body.data : "", w->body);
    }
    net_response_free(&r);
    vt_buf_free(&data);
}

static void cut_at_any_two_places(void **state)
{
    const struct row *w = *state;
    size_t len = strlen(w->bytes);

    for (size_t i = 0; i <= len; i++)
        for (size_t k = i; k <= len; k++)
            expect(w, i, k);
}

static void a_head_is_bounded(void **state)
{
    static const char line[] = "X-Filler: 0123456789012345678901234567890123456789\r\n";
    struct net_response r = {0};

    (void)state;
    net_response_reset(&r);
    (void)feed(&r, "HTTP/1.1 200 OK\r\n", 17);
    for (int i = 0; i < 2000 && r.part != NET_PART_BROKEN; i++)
        (void)feed(&r, line, sizeof(line) - 1);
    assert_int_equal(r.part, NET_PART_BROKEN);
    net_response_free(&r);
}

static void a_body_is_bounded(void **state)
{
    struct net_response r = {.max_body = 3};

    (void)state;
    net_response_reset(&r);
    (void)feed(&r, "HTTP/1.1 400 x\r\nContent-Length: 6\r\n\r\nabcdef", 43);
    assert_int_equal(r.part, NET_PART_WHOLE);
    assert_string_equal(r.body.data, "abc");
    net_response_free(&r);
}

int main(void)
{
    enum { N = VT_COUNT(rows) };
    struct CMUnitTest tests[N + 2];

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = cut_at_any_two_places,
                                       .initial_state = &rows[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(a_head_is_bounded);
    tests[N + 1] = (struct CMUnitTest)cmocka_unit_test(a_body_is_bounded);
    return cmocka_run_group_tests_name("response", tests, NULL, NULL);
}
