/* HTTP/2 of the gRPC client, without a socket: header fields, flow control, what peers
 * may say in between. The real ones are in e2e/serve/test_grpc.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/client/h2.h"

/* ---- header fields ------------------------------------------------------------ */

struct told {
    char text[256];
};

static void tell(void *user, const char *name, const char *value)
{
    struct told *t = user;
    size_t n = strlen(t->text);

    (void)snprintf(t->text + n, sizeof(t->text) - n, "%s=%s;", name, value);
}

static const struct block {
    const char *name;
    const char *bytes;
    size_t len;
    const char *want; /* NULL: refused */
} blocks[] = {
    {"status by its index", "\x88", 1, ":status=200;"},
    {"status by its name",
     "\x08\x03"
     "503",
     5, ":status=503;"},
    {"a literal, not indexed",
     "\x00\x0bgrpc-status\x01"
     "0",
     15, "grpc-status=0;"},
    {"a literal that may be indexed",
     "\x40\x0bgrpc-status\x01"
     "7",
     15, "grpc-status=7;"},
    {"a table of no size, and a field that does not matter", "\x20\x5f\x01x\x88", 5,
     ":status=200;"},
    /* RFC 7541, C.4.1 and C.6.1: www.example.com, 302. */
    {"Huffman",
     "\x00\x0bgrpc-status\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", 26,
     "grpc-status=www.example.com;"},
    {"a Huffman status", "\x48\x82\x64\x02", 4, ":status=302;"},
    {"Huffman with a wrong end", "\x48\x81\x00", 3, NULL},
    {"a field of a table that we do not have", "\xbe", 1, NULL},
    {"a table that we allow none", "\x3f\xe1\x1f", 3, NULL},
    {"a text that is cut", "\x00\x0bgrpc", 6, NULL},
    {"a number without end", "\x00\x7f\xff\xff\xff\xff\xff", 7, NULL},
};

static void fields_are_read(void **state)
{
    const struct block *b = *state;
    struct told t = {""};
    bool good = h2_fields_get(b->bytes, b->len, tell, &t);

    assert_int_equal(good, b->want != NULL);
    if (b->want)
        assert_string_equal(t.text, b->want);
}

static void what_is_written_is_read(void **state)
{
    struct vt_buf b = {0};
    struct told t = {""};
    char longer[200];

    (void)state;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    h2_field_put(&b, "X-Key", "value");
    h2_field_put(&b, "y", longer);
    assert_true(h2_fields_get(b.data, b.len, tell, &t));
    assert_memory_equal(t.text, "x-key=value;y=xxx", 17);
    assert_int_equal(strlen(t.text), 12 + 2 + 199 + 1);
    vt_buf_free(&b);
}

/* ---- calls --------------------------------------------------------------------- */

enum { DATA, HEADERS, RST_STREAM = 3, SETTINGS, PING = 6, GOAWAY, WINDOW_UPDATE };

static void feed(struct h2 *h, int type, int flags, uint32_t stream, const char *body,
                 size_t len)
{
    char frame[64] = {0};

    assert_true(len <= sizeof(frame) - 9);
    frame[2] = (char)len;
    frame[3] = (char)type;
    frame[4] = (char)flags;
    frame[8] = (char)stream;
    memcpy(frame + 9, body, len);
    for (size_t i = 0; i < 9 + len; i++) /* cut anywhere */
        h2_feed(h, frame + i, 1);
}

struct seen { /* of what was sent */
    size_t data, acks, pings;
    bool ended;
};

static struct seen look(const struct h2 *h, size_t from)
{
    struct seen s = {0};
    const uint8_t *p = (const uint8_t *)h->out.data;

    for (size_t at = from; at + 9 <= h->out.len;) {
        size_t len = (size_t)p[at] << 16 | (size_t)p[at + 1] << 8 | p[at + 2];

        if (p[at + 3] == DATA) {
            s.data += len;
            s.ended |= p[at + 4] & 1;
        }
        s.acks += p[at + 3] == SETTINGS && (p[at + 4] & 1);
        s.pings += p[at + 3] == PING && (p[at + 4] & 1);
        at += 9 + len;
    }
    return s;
}

enum { PREFACE = 24, BODY = 100000 };

static struct h2 begun(size_t len)
{
    static char body[BODY];
    struct net_url url;
    struct net_grpc_call c = {.path = "/a.B/C", .body = body, .len = len};
    struct h2 h = {0};
    struct vt_err err;

    assert_int_equal(net_url_parse(&url, "http://127.0.0.1:4317", &err), VT_OK);
    h2_begin(&h, &url, &c);
    return h;
}

static void a_call_ends_with_its_trailers(void **state)
{
    struct h2 h = begun(10);

    (void)state;
    assert_memory_equal(h.out.data, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PREFACE);
    assert_int_equal(look(&h, PREFACE).data, 15);
    assert_true(look(&h, PREFACE).ended);
    feed(&h, SETTINGS, 0, 0, "", 0);
    feed(&h, PING, 0, 0, "12345678", 8);
    feed(&h, HEADERS, 4, 1, "\x88", 1);
    feed(&h, DATA, 0, 1, "\0\0\0\0\0", 5);
    assert_int_equal(h.state, H2_GOING);
    feed(&h, HEADERS, 5, 1,
         "\x00\x0bgrpc-status\x01"
         "0",
         15);
    assert_int_equal(h.state, H2_DONE);
    assert_int_equal(h.http_status, 200);
    assert_int_equal(h.grpc_status, 0);
    assert_int_equal(look(&h, PREFACE).acks, 1);
    assert_int_equal(look(&h, PREFACE).pings, 1);
    h2_free(&h);
}

static void a_body_waits_for_the_windows(void **state)
{
    struct h2 h = begun(BODY);

    (void)state;
    assert_int_equal(look(&h, PREFACE).data, 65535);
    feed(&h, WINDOW_UPDATE, 0, 0, "\0\1\0\0", 4); /* the stream's is still used up */
    assert_int_equal(look(&h, PREFACE).data, 65535);
    feed(&h, SETTINGS, 0, 0, "\0\4\0\1\0\0", 6); /* first windows of 65536: one more */
    assert_int_equal(look(&h, PREFACE).data, 65536);
    feed(&h, WINDOW_UPDATE, 0, 1, "\0\1\0\0", 4);
    assert_int_equal(look(&h, PREFACE).data, BODY + 5);
    assert_true(look(&h, PREFACE).ended);
    h2_free(&h);
}

static const struct broken {
    const char *name;
    int type, flags;
    uint32_t stream;
    const char *body;
    size_t len;
} breaks[] = {
    {"a reset", RST_STREAM, 0, 1, "\0\0\0\2", 4},
    {"a peer that leaves before the call", GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8},
    {"padding longer than the frame", HEADERS, 4 | 8, 1, "\x09\x88", 2},
    {"header fields that are none", HEADERS, 4, 1, "\xff\xff\xff\xff\xff\xff", 6},
};

static void broken_calls_end(void **state)
{
    const struct broken *b = *state;
    struct h2 h = begun(10);

    feed(&h, b->type, b->flags, b->stream, b->body, b->len);
    assert_int_equal(h.state, H2_BROKEN);
    assert_true(h.message[0] != '\0');
    h2_free(&h);
}

static void a_peer_that_speaks_http_1_is_told_apart(void **state)
{
    struct h2 h = begun(10);

    (void)state;
    h2_feed(&h, "HTTP/1.1 400 Bad Request\r\n", 26);
    assert_int_equal(h.state, H2_BROKEN);
    h2_free(&h);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_call_ends_with_its_trailers),
        cmocka_unit_test(a_body_waits_for_the_windows),
        cmocka_unit_test(a_peer_that_speaks_http_1_is_told_apart),
    };
    struct CMUnitTest fields[VT_COUNT(blocks)], ends[VT_COUNT(breaks)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(blocks); i++)
        fields[i] = (struct CMUnitTest){.name = blocks[i].name,
                                        .test_func = fields_are_read,
                                        .initial_state = (void *)(uintptr_t)&blocks[i]};
    for (size_t i = 0; i < VT_COUNT(breaks); i++)
        ends[i] = (struct CMUnitTest){.name = breaks[i].name,
                                      .test_func = broken_calls_end,
                                      .initial_state = (void *)(uintptr_t)&breaks[i]};
    failed = cmocka_run_group_tests_name("fields", fields, NULL, NULL);
    failed += cmocka_run_group_tests_name("breaks", ends, NULL, NULL);
    return failed + cmocka_run_group_tests_name("calls", plain, NULL, NULL);
}
