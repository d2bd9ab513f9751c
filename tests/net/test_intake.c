/* test_intake.c - the same bytes are the same requests, however they are cut; what
 * two readers could understand differently is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/server/intake.h"

#define GET  "GET / HTTP/1.1\r\nHost: x\r\n"
#define POST "POST /p HTTP/1.1\r\nHost: x\r\n"

/* What is heard is written as "METHOD path?query(body)", then "+" for what follows; at
 * the end "400" or the like, or "..." where more is needed. A NUL is written as @. */
static struct row {
    const char *name, *said, *heard;
} rows[] = {
    {"a plain request", "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "GET /health()+"},
    {"no header field but the host", GET "\r\n", "GET /()+"},
    {"no host", "GET / HTTP/1.1\r\nAccept: x\r\n\r\n", "400"},
    {"no host, but in the target", "GET http://h/ HTTP/1.1\r\n\r\n", "400"},
    {"an empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET /()+"},
    {"a query", "GET /a/b?c=d&e=%20 HTTP/1.1\r\nHost: x\r\n\r\n",
     "GET /a/b?c=d&e=%20()+"},
    {"an empty query", "GET /a? HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a()+"},
    {"a query with a question mark", "GET /a?b?c HTTP/1.1\r\nHost: x\r\n\r\n",
     "GET /a?b?c()+"},
    {"an encoded path", "GET /a%20b%2Fc%zz%4 HTTP/1.1\r\nHost: x\r\n\r\n",
     "GET /a b/c%zz%4()+"},
    {"an encoded NUL", "GET /health%00x HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"an absolute target", "GET http://h:1/a?b HTTP/1.1\r\nHost: x\r\n\r\n",
     "GET /a?b()+"},
    {"an absolute target without a path", "GET HTTPS://h HTTP/1.1\r\nHost: x\r\n\r\n",
     "GET /()+"},
    {"a query right behind the host", "GET http://h?q HTTP/1.1\r\nHost: x\r\n\r\n",
     "GET /?q()+"},
    {"an absolute target without a host", "GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n",
     "400"},
    {"the server itself", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS *()+"},
    {"an authority", "CONNECT h:443 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"a relative target", "GET a HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"a fragment", "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"bytes beyond ASCII in a target", "GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n",
     "400"},
    {"an old version, which needs no host", "GET / HTTP/1.0\r\n\r\n", "GET /()+"},
    {"no version", "GET /\r\n\r\n", "400"},
    {"a version to come", "GET / HTTP/2.0\r\n\r\n", "505"},
    {"HTTP/2 by itself", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
    {"a minor version to come", "GET / HTTP/1.2\r\n\r\n", "505"},
    {"a version that is none", "GET / HTTP/1.1x\r\n\r\n", "400"},
    {"a version in lower case", "GET / http/1.1\r\n\r\n", "400"},
    {"two spaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"a space behind the version", "GET / HTTP/1.1 \r\n\r\n", "400"},
    {"a tab for a space", "GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"a method that is no token", "G(T / HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"a space first", " GET / HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"empty lines first", "\r\n\r\n" GET "\r\n", "GET /()+"},
    {"a bare CR first", "\rGET / HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"the beginning of TLS", "\x16\x03\x01", "400"},
    {"half a head", GET, "..."},
    {"nothing", "", "..."},

    {"a body", POST "Content-Length: 3\r\n\r\nabc", "POST /p(abc)+"},
    {"an empty body", POST "Content-Length: 0\r\n\r\n", "POST /p()+"},
    {"half a body", POST "Content-Length: 4\r\n\r\nabc", "..."},
    {"one request after another",
     POST "Content-Length: 3\r\n\r\nabc" GET "\r\n" POST "Content-Length: 1\r\n\r\nd",
     "POST /p(abc)+GET /()+POST /p(d)+"},
    {"a line end too many behind a body",
     POST "Content-Length: 1\r\n\r\na\r\n" GET "\r\n", "POST /p(a)+GET /()+"},
    {"a request and something else", GET "\r\nblah\n\n", "GET /()+400"},
    {"names in any case", POST "cOnTeNt-LeNgTh:2\r\n\r\nab", "POST /p(ab)+"},
    {"space around a value", POST "Content-Length: \t 2 \t\r\n\r\nab", "POST /p(ab)+"},
    {"as large as a body may be", POST "Content-Length: 64\r\n\r\n", "..."},
    {"a body too large", POST "Content-Length: 65\r\n\r\n", "413"},
    {"a body beyond all numbers",
     POST "Content-Length: 99999999999999999999999\r\n\r\n", "400"},

    {"two lengths", POST "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
    {"the same length twice", POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
     "400"},
    {"a list of lengths", POST "Content-Length: 1, 1\r\n\r\na", "400"},
    {"a signed length", POST "Content-Length: +1\r\n\r\na", "400"},
    {"a negative length", POST "Content-Length: -1\r\n\r\na", "400"},
    {"a length in hexadecimal", POST "Content-Length: 0x1\r\n\r\na", "400"},
    {"no length", POST "Content-Length:\r\n\r\na", "400"},
    {"a length and chunks",
     POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
    {"chunks and a length",
     POST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n", "400"},
    {"chunked twice",
     POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
    {"another coding", POST "Transfer-Encoding: gzip, chunked\r\n\r\n", "501"},
    {"no coding", POST "Transfer-Encoding: identity\r\n\r\n", "501"},
    {"a name that is nearly it", POST "Transfer-Encoding : chunked\r\n\r\n", "400"},
    {"chunks from an old client",
     "POST /p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
    {"two hosts", GET "Host: b\r\n\r\n", "400"},
    {"a folded field", GET "A: b\r\n c\r\n\r\n", "400"},
    {"a first field that is folded", GET " A: b\r\n\r\n", "400"},
    {"a field without a colon", GET "Abc\r\n\r\n", "400"},
    {"a field without a name", GET ": b\r\n\r\n", "400"},
    {"lines that end in LF", "GET / HTTP/1.1\nHost: x\n\n", "400"},
    {"a field that ends in LF", GET "A: b\n\r\n", "400"},
    {"a CR in a value", GET "A: b\rc\r\n\r\n", "400"},
    {"a control character in a value", GET "A: b\x01\r\n\r\n", "400"},
    {"a DEL in a value", GET "A: b\x7f\r\n\r\n", "400"},
    {"a tab in a value", GET "A: b\tc\r\n\r\n", "GET /()+"},
    {"bytes beyond ASCII in a value", GET "A: \xc3\xa4\r\n\r\n", "GET /()+"},
    {"a NUL in a value", GET "A: b@c\r\n\r\n", "400"},
    {"a NUL in a name", GET "A@: b\r\n\r\n", "400"},
    {"a NUL in a target", "GET /@ HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"a NUL in a body", POST "Content-Length: 3\r\n\r\na@b", "POST /p(a@b)+"},

#define CHUNKED POST "Transfer-Encoding: Chunked\r\n\r\n"
    {"chunks", CHUNKED "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", "POST /p(abcd)+"},
    {"chunks and a request", CHUNKED "3\r\nabc\r\n0\r\n\r\n" GET "\r\n",
     "POST /p(abc)+GET /()+"},
    {"no chunk", CHUNKED "0\r\n\r\n", "POST /p()+"},
    {"a size in capitals", CHUNKED "A\r\n0123456789\r\n0\r\n\r\n",
     "POST /p(0123456789)+"},
    {"extensions", CHUNKED "1;a=\"b;c\"\r\nx\r\n0;d\r\n\r\n", "POST /p(x)+"},
    {"trailers", CHUNKED "1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n" GET "\r\n",
     "POST /p(x)+GET /()+"},
    {"zeros before a size", CHUNKED "0001\r\nx\r\n000\r\n\r\n", "POST /p(x)+"},
    {"a size without digits", CHUNKED "\r\nx\r\n", "400"},
    {"a size that is none", CHUNKED "g\r\n", "400"},
    {"a signed size", CHUNKED "-1\r\n", "400"},
    {"a size with a prefix", CHUNKED "0x1\r\nx\r\n", "400"},
    {"a space behind a size", CHUNKED "1 \r\nx\r\n", "400"},
    {"a size beyond all numbers", CHUNKED "00000000000000001\r\n", "400"},
    {"a chunk too large", CHUNKED "41\r\n", "413"},
    {"chunks too large together",
     CHUNKED "40\r\n0123456789012345678901234567890123456789012345678901234567890123"
             "\r\n1\r\nx\r\n",
     "413"},
    {"a chunk that goes on", CHUNKED "1\r\nxy\r\n", "400"},
    {"a size that ends in LF", CHUNKED "1\nx\r\n", "400"},
    {"a chunk that ends in LF", CHUNKED "1\r\nx\n", "400"},
    {"an extension that ends in LF", CHUNKED "1;a\nx\r\n", "400"},
    {"a folded trailer", CHUNKED "0\r\nA: b\r\n c\r\n\r\n", "400"},
    {"a trailer that ends in LF", CHUNKED "0\r\nA: b\n\r\n", "400"},
    {"trailers without end",
     CHUNKED
     "0\r\n"
     "A: 01234567890123456789012345678901234567890123456789012345678901234567890123\r\n"
     "B: 01234567890123456789012345678901234567890123456789012345678901234567890123\r\n"
     "C: 0123456789012345678901234567890123456789012345678901234567890123456789012",
     "431"},
    {"half a chunk", CHUNKED "3\r\nab", "..."},

    {"a target too long",
     "GET /0123456789012345678901234567890123456789012345678901234567890123456789012345"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890"
     "0123456789012345678901234567890123456789012345678901234567890123456789",
     "414"},
    {"fields too large",
     GET
     "A: 012345678901234567890123456789012345678901234567890123456789012345678901234567"
     "012345678901234567890123456789012345678901234567890123456789012345678901234567890"
     "0123456789012345678901234567890123456789012345678901234567890123456789",
     "431"},
    {"many fields of nothing",
     GET
     "A:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\n"
     "A:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\n"
     "A:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\n"
     "A:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\n\r\n",
     "431"},
};

struct ear { /* a connection without a socket */
    struct net_intake in;
    struct net_limits limits;
    struct net_head head;
    struct vt_buf heard;
    bool over;
};

static void note_request(struct ear *e, const struct net_request *r)
{
    vt_buf_printf(&e->heard, "%s %s%s%s(", r->method, r->path, r->query[0] ? "?" : "",
                  r->query);
    for (size_t i = 0; i < r->body_len; i++)
        vt_buf_char(&e->heard, r->body[i] ? r->body[i] : '@');
    vt_buf_str(&e->heard, ")+");
    assert_int_equal(r->body[r->body_len], '\0');
}

/* As a connection does it: what is held, and the piece behind it. */
static void feed(struct ear *e, const char *piece, size_t len)
{
    size_t held = e->in.n_held, n = held + len, room;
    char *text = malloc(n + 1), *at = text, *to;
    struct net_request r;

    assert_non_null(text);
    if (held > 0)
        memcpy(text, e->in.held, held);
    memcpy(text + held, piece, len);
    while (n > 0 && !e->over) {
        size_t used = 0;
        int status = 0;
        enum net_step step;

        to = len % 2 ? net_intake_room(&e->in, &e->limits, &room) : NULL;
        if (to) {
            used = n < room ? n : room;
            memcpy(to, at, used);
            step = net_intake_took(&e->in, used, &e->head, &r);
        } else {
            step = net_intake_read(&e->in, &e->limits, at, n, &used, &e->head, &r,
                                   &status);
        }
        at += used;
        n -= used;
        if (step == NET_REFUSE) {
            vt_buf_printf(&e->heard, "%d", status);
            e->over = true;
        } else if (step == NET_REQUEST) {
            note_request(e, &r);
            net_intake_done(&e->in, &e->limits, &e->head);
        } else if (!e->in.partial) {
            break;
        }
    }
    assert_int_equal(net_intake_hold(&e->in, at, e->over ? 0 : n), VT_OK);
    free(text);
}

static void ear_open(struct ear *e)
{
    memset(e, 0, sizeof(*e));
    e->limits = (struct net_limits){
        .max_header_bytes = 200, .max_body_bytes = 64, .max_held_bytes = 1 << 20};
}

static void ear_close(struct ear *e, const char *want)
{
    if (!e->over && (e->in.n_held > 0 || e->in.partial || e->heard.len == 0))
        vt_buf_str(&e->heard, "...");
    assert_string_equal(e->heard.data, want);
    net_intake_free(&e->in, &e->limits);
    assert_int_equal(e->limits.held_bytes, 0);
    vt_buf_free(&e->heard);
}

static void is_heard_however_it_is_cut(void **state)
{
    const struct row *r = *state;
    size_t len = strlen(r->said);
    char said[1024];
    struct ear e;

    assert_true(len < sizeof(said));
    for (size_t i = 0; i < len; i++)
        said[i] = r->said[i] == '@' ? '\0' : r->said[i];

    for (size_t cut = 0; cut <= len; cut++) {
        ear_open(&e);
        feed(&e, said, cut);
        feed(&e, said + cut, len - cut);
        ear_close(&e, r->heard);
    }
    for (size_t step = 1; step <= 3; step++) {
        ear_open(&e);
        for (size_t i = 0; i < len; i += step)
            feed(&e, said + i, len - i < step ? len - i : step);
        ear_close(&e, r->heard);
    }
}

static void bodies_together_have_a_limit(void **state)
{
    static const char head[] = POST "Content-Length: 64\r\n\r\n";
    struct ear a, b;

    (void)state;
    ear_open(&a);
    ear_open(&b);
    a.limits.max_held_bytes = b.limits.max_held_bytes = 100;
    feed(&a, head, sizeof(head) - 1);
    feed(&a, "x", 1);
    b.limits.held_bytes = a.limits.held_bytes;
    assert_int_equal(b.limits.held_bytes, 65);
    feed(&b, head, sizeof(head) - 1);
    feed(&b, "x", 1);
    b.limits.held_bytes -= a.limits.held_bytes;
    ear_close(&b, "503");
    ear_close(&a, "...");
}

static void a_body_can_be_taken(void **state)
{
    static const char *const pieces[][2] = {
        {POST "Content-Length: 3\r\n\r\nabc", ""},
        {POST "Content-Length: 3\r\n\r\na", "bc"},
        {CHUNKED "3\r\nab", "c\r\n0\r\n\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(pieces); i++) {
        char text[128];
        struct net_request r;
        size_t used = 0;
        int status;
        char *body;
        struct ear e;

        ear_open(&e);
        for (size_t k = 0; k < 2 && (k == 0 || pieces[i][1][0]); k++) {
            snprintf(text, sizeof(text), "%s", pieces[i][k]);
            net_intake_read(&e.in, &e.limits, text, strlen(text), &used, &e.head, &r,
                            &status);
        }
        body = net_intake_take_body(&e.in, &e.limits, &r);
        assert_string_equal(body, "abc");
        net_intake_done(&e.in, &e.limits, &e.head);
        free(body);
        assert_int_equal(e.limits.held_bytes, 0);
        net_intake_free(&e.in, &e.limits);
    }
}

static void a_query_is_looked_into(void **state)
{
    static const struct {
        const char *query, *key, *value;
    } cases[] = {
        {"tags=kv_cache", "tags", "kv_cache"},
        {"a=1&level=2", "level", "2"},
        {"a=1&level=2", "lev", NULL},
        {"level=1&level=2", "level", "1"},
        {"x", "x", ""},
        {"x=", "x", ""},
        {"", "x", NULL},
        {"a%62=c+d%2b%26", "ab", "c d+&"},
        {"&&x=1", "x", "1"},
        {"x=0123456789012345", "x", NULL},
        {"x=%00", "x", NULL},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(cases); i++) {
        char out[16];
        bool found = net_query_value(cases[i].query, cases[i].key, out, sizeof(out));

        assert_int_equal(found, cases[i].value != NULL);
        if (found)
            assert_string_equal(out, cases[i].value);
    }
}

static void a_large_body_that_nobody_takes_is_freed_bit_by_bit(void **state)
{
    enum { MB = 1 << 20, SAID = 5 * MB };
    char text[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\nx";
    struct net_limits l = {
        .max_header_bytes = 200, .max_body_bytes = 8 * MB, .max_held_bytes = 16 * MB};
    struct net_intake in = {0};
    struct net_request r;
    struct net_head h;
    size_t used, held;
    int status;
    char *part = calloc(1, SAID);

    (void)state;
    assert_non_null(part);
    assert_int_equal(
        net_intake_read(&in, &l, text, sizeof(text) - 1, &used, &h, &r, &status),
        NET_MORE);
    assert_int_equal(net_intake_read(&in, &l, part, SAID, &used, &h, &r, &status),
                     NET_MORE);
    held = l.held_bytes;
    assert_true(held >= SAID);
    net_intake_free(&in, &l); /* its peer has gone */
    assert_int_equal(l.held_bytes, held);
    assert_true(net_intake_sweep(&l, MB));
    assert_int_equal(l.held_bytes, held - MB);
    while (net_intake_sweep(&l, MB))
        ;
    assert_int_equal(l.held_bytes, 0);
    assert_false(net_intake_sweep(&l, MB));
    free(part);
}

int main(void)
{
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    struct CMUnitTest tests[N + 4] = {
        cmocka_unit_test(a_large_body_that_nobody_takes_is_freed_bit_by_bit),
        cmocka_unit_test(bodies_together_have_a_limit),
        cmocka_unit_test(a_body_can_be_taken),
        cmocka_unit_test(a_query_is_looked_into),
    };

    for (size_t i = 0; i < N; i++)
        tests[i + 4] = (struct CMUnitTest){
            .name = rows[i].name,
            .test_func = is_heard_however_it_is_cut,
            .initial_state = &rows[i],
        };
    return cmocka_run_group_tests_name("net_intake", tests, NULL, NULL);
}
