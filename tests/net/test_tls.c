/* test_tls.c - the same server behind TLS, and peers that speak something else. */
#include <fcntl.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net_testing.h"

static char certfile[64], keyfile[64], otherkey[64], lockedkey[64];

/* ---- a certificate --------------------------------------------------- */

static FILE *temporary(char path[64])
{
    int fd;

    snprintf(path, 64, "/tmp/vtwin-tls-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    return fdopen(fd, "w");
}

static void write_key(char path[64], EVP_PKEY *key, const char *password)
{
    FILE *f = temporary(path);

    assert_int_equal(PEM_write_PrivateKey(f, key, password ? EVP_aes_128_cbc() : NULL,
                                          (const unsigned char *)password,
                                          password ? (int)strlen(password) : 0, NULL,
                                          NULL),
                     1);
    fclose(f);
}

static X509 *self_signed(EVP_PKEY *key)
{
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);

    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(x, name);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

static int make_files(void **state)
{
    EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");
    X509 *x = self_signed(key);
    FILE *f = temporary(certfile);

    (void)state;
    PEM_write_X509(f, x);
    fclose(f);
    write_key(keyfile, key, NULL);
    write_key(otherkey, other, NULL);
    write_key(lockedkey, key, "secret");
    X509_free(x);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(certfile);
    unlink(keyfile);
    unlink(otherkey);
    unlink(lockedkey);
    return 0;
}

static int tls_setup(void **state)
{
    struct stage *s;

    if (stage_setup(state) != 0)
        return -1;
    s = *state;
    s->c.certfile = certfile;
    s->c.keyfile = keyfile;
    return 0;
}

/* ---- a client -------------------------------------------------------- */

struct client {
    SSL_CTX *context;
    SSL *tls;
    int fd;
};

static struct client tls_client(struct stage *s, int version)
{
    static const unsigned char offer[] = "\x02h2\x08http/1.1";
    struct client c = {.context = SSL_CTX_new(TLS_client_method())};
    vt_ns deadline = vt_wall_ns() + 20 * VT_SEC;

    if (version)
        SSL_CTX_set_max_proto_version(c.context, version);
    SSL_CTX_set_alpn_protos(c.context, offer, sizeof(offer) - 1);
    c.fd = client_open(s);
    fcntl(c.fd, F_SETFL, O_NONBLOCK);
    c.tls = SSL_new(c.context);
    SSL_set_fd(c.tls, c.fd);
    while (SSL_connect(c.tls) != 1 && vt_wall_ns() < deadline)
        turn(s);
    assert_true(SSL_is_init_finished(c.tls));
    return c;
}

static void tls_client_close(struct stage *s, struct client *c)
{
    SSL_shutdown(c->tls);
    SSL_free(c->tls);
    SSL_CTX_free(c->context);
    client_close(s, c->fd);
}

static void tls_say(struct stage *s, struct client *c, const char *bytes, size_t len)
{
    size_t sent = 0;

    SSL_set_mode(c->tls, SSL_MODE_ENABLE_PARTIAL_WRITE);
    while (len > 0) {
        if (SSL_write_ex(c->tls, bytes, len, &sent) == 1) {
            bytes += sent;
            len -= sent;
        } else if (SSL_get_error(c->tls, 0) == SSL_ERROR_SSL) {
            return;
        }
        turn(s);
    }
}

/* Turns until more than `len` bytes came, `what` at their end. */
static struct vt_buf tls_hear_long(struct stage *s, struct client *c, size_t len,
                                   const char *what)
{
    vt_ns deadline = vt_wall_ns() + 20 * VT_SEC;
    struct vt_buf b = {0};
    size_t tail = strlen(what);

    while (b.len <= len || memcmp(b.data + b.len - tail, what, tail) != 0) {
        char bytes[65536];
        size_t n = 0;

        if (SSL_read_ex(c->tls, bytes, sizeof(bytes), &n) == 1)
            vt_buf_add(&b, bytes, n);
        else if (SSL_get_error(c->tls, 0) == SSL_ERROR_ZERO_RETURN ||
                 vt_wall_ns() > deadline)
            fail_msg("waited for \"%s\", heard %zu bytes: %.400s", what, b.len,
                     b.data ? b.data : "nothing");
        turn(s);
    }
    return b;
}

static struct vt_buf tls_hear(struct stage *s, struct client *c, const char *what)
{
    return tls_hear_long(s, c, strlen(what), what);
}

/* ---- tests ----------------------------------------------------------- */

static void requests_go_through(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct stage *s = *state;

    stage_open(s);
    for (size_t i = 0; i < VT_COUNT(versions); i++) {
        struct client c = tls_client(s, versions[i]);
        const unsigned char *chosen;
        struct vt_buf heard;
        unsigned len;

        assert_int_equal(SSL_version(c.tls), versions[i]);
        SSL_get0_alpn_selected(c.tls, &chosen, &len);
        assert_int_equal(len, 8);
        assert_memory_equal(chosen, "http/1.1", 8);
        for (int k = 0; k < 3; k++) {
            const char *text =
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";

            tls_say(s, &c, text, strlen(text));
            heard = tls_hear(s, &c, "\r\n\r\nhi");
            assert_int_equal(count(&heard, "HTTP/1.1 200 OK"), 1);
            vt_buf_free(&heard);
        }
        tls_client_close(s, &c);
        TURN_UNTIL(s, net_stats(s->n).open == 0);
    }
}

static void old_versions_are_not_spoken(void **state)
{
    struct stage *s = *state;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    vt_ns deadline = vt_wall_ns() + 20 * VT_SEC;
    SSL *tls;
    int fd, why = SSL_ERROR_WANT_READ;

    stage_open(s);
    SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
    SSL_CTX_set_security_level(context, 0);
    fd = client_open(s);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    tls = SSL_new(context);
    SSL_set_fd(tls, fd);
    while (why == SSL_ERROR_WANT_READ && vt_wall_ns() < deadline) {
        turn(s);
        why = SSL_get_error(tls, SSL_connect(tls));
    }
    assert_int_not_equal(why, SSL_ERROR_WANT_READ);
    assert_int_not_equal(why, SSL_ERROR_NONE);
    ERR_clear_error();
    SSL_free(tls);
    SSL_CTX_free(context);
    TURN_UNTIL(s, net_stats(s->n).open == 0);
}

static void large_things_go_both_ways(void **state)
{
    struct stage *s = *state;
    size_t len = 1 << 20;
    char *body = malloc(len + 1);
    const char *ask =
        "POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n";
    struct vt_buf heard;
    struct client c;

    assert_non_null(body);
    for (size_t i = 0; i < len; i++)
        body[i] = (char)('a' + i % 26);
    body[len] = '\0';
    stage_open(s);
    c = tls_client(s, 0);
    tls_say(s, &c, ask, strlen(ask));
    tls_say(s, &c, body, len);
    heard = tls_hear_long(s, &c, len, "abcdefghijklmnopqrstuv");
    assert_memory_equal(heard.data + heard.len - len, body, len);
    vt_buf_free(&heard);
    tls_say(s, &c, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n",
            sizeof("GET /large HTTP/1.1\r\nHost: x\r\n\r\n") - 1);
    TURN_UNTIL(s, s->n_requests == 2);
    for (int i = 0; i < 50; i++)
        turn(s); /* the reader dawdles: the writer must wait and go on */
    heard = tls_hear_long(s, &c, 4 << 20, "xxx");
    vt_buf_free(&heard);
    tls_client_close(s, &c);
    free(body);
}

static void who_leaves_is_told_of(void **state)
{
    struct stage *s = *state;
    struct client c;

    stage_open(s);
    c = tls_client(s, 0);
    tls_say(s, &c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n",
            sizeof("GET /later HTTP/1.1\r\nHost: x\r\n\r\n") - 1);
    TURN_UNTIL(s, s->n_due == 1);
    tls_client_close(s, &c);
    TURN_UNTIL(s, s->n_gone == 1);
    assert_int_equal(net_stats(s->n).open, 0);
}

static void who_speaks_something_else_is_closed(void **state)
{
    static const char *const said[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\x16\x03\x01\x02",                     /* half a greeting */
        "\x16\x03\x01\xff\xff\xff\xff\xff\xff", /* one that is none */
        "",
    };
    struct stage *s = *state;
    struct vt_buf heard;
    struct client c;

    s->c.header_timeout_ns = 50 * VT_MS;
    stage_open(s);
    c = tls_client(s, 0);
    tls_say(s, &c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n",
            sizeof("GET /later HTTP/1.1\r\nHost: x\r\n\r\n") - 1);
    TURN_UNTIL(s, s->n_due == 1);
    for (size_t i = 0; i < VT_COUNT(said); i++) {
        int fd = client_open(s);

        say(s, fd, said[i]);
        heard = hear_out(s, fd);
        assert_true(heard.len < 64); /* an alert at most */
        vt_buf_free(&heard);
        client_close(s, fd);
    }
    assert_int_equal(s->n_gone, 0); /* nobody else is disturbed */
    reply_text(s->due[0], 200, "here", 4);
    heard = tls_hear(s, &c, "here");
    vt_buf_free(&heard);
    tls_client_close(s, &c);
}

static void a_refusal_is_heard(void **state)
{
    struct stage *s = *state;
    static char much[1 << 20];
    const char *text = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n";
    struct vt_buf heard;
    struct client c;

    stage_open(s);
    c = tls_client(s, 0);
    tls_say(s, &c, text, strlen(text));
    tls_say(s, &c, much, sizeof(much));
    heard = tls_hear(s, &c, "\r\n\r\nRequest Entity Too Large");
    vt_buf_free(&heard);
    tls_client_close(s, &c);
}

static struct row {
    const char *name;
    const char *cert, *key, *want;
} rows[] = {
    {"a certificate that is not there", "/nonexistent", NULL,
     "cannot use certificate '/nonexistent': No such file"},
    {"a certificate that is none", "/dev/null", NULL,
     "cannot use certificate '/dev/null': "},
    {"a key that is not there", certfile, "/nonexistent",
     "cannot use private key '/nonexistent': No such file"},
    {"a key that is none", certfile, "/dev/null",
     "cannot use private key '/dev/null': "},
    {"another's key", certfile, otherkey, "cannot use private key '/tmp/vtwin-tls-"},
    {"a key with a password", certfile, lockedkey,
     "cannot use private key '/tmp/vtwin-tls-"},
    {"a certificate for a key", certfile, NULL,
     "cannot use private key '/tmp/vtwin-tls-"},
};

static void is_refused_with_a_reason(void **state)
{
    const struct row *r = *state;
    struct net_config c = {.host = "127.0.0.1", .certfile = r->cert, .keyfile = r->key};
    struct net_handler h = {.request = on_request};
    struct net *n = NULL;
    struct vt_err err = {0};

    assert_int_equal(net_open(&n, &c, &h, &err), VT_EINPUT);
    assert_null(n);
    if (!strstr(err.msg, r->want))
        fail_msg("%s", err.msg);
}

/* Handshakes are done beside the loop: one may be under way when its peer has gone, or
 * when the server ends. */
static void who_leaves_in_the_middle_of_a_handshake_is_forgotten(void **state)
{
    const char *ask = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    struct linger at_once = {.l_onoff = 1};
    vt_ns deadline = vt_wall_ns() + 20 * VT_SEC;
    struct stage *s = *state;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct vt_buf heard;
    struct client c;

    stage_open(s);
    for (int i = 0; i < 40; i++) {
        int fd = client_open(s);
        SSL *tls = SSL_new(context);

        fcntl(fd, F_SETFL, O_NONBLOCK);
        SSL_set_fd(tls, fd);
        (void)SSL_connect(tls); /* says hello and hears nothing */
        for (int k = 0; k < i % 4; k++)
            turn(s);
        if (i % 2)
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        SSL_free(tls);
        if (i < 36) /* the others stay as they are until the server ends */
            client_close(s, fd);
    }
    c = tls_client(s, 0);
    tls_say(s, &c, ask, strlen(ask));
    heard = tls_hear(s, &c, "\r\n\r\n");
    assert_int_equal(count(&heard, "HTTP/1.1 200 OK"), 1);
    vt_buf_free(&heard);
    while (net_stats(s->n).open > 5 && vt_wall_ns() < deadline)
        turn(s);
    assert_int_equal(net_stats(s->n).open, 5);
    tls_client_close(s, &c);
    SSL_CTX_free(context);
}

int main(void)
{
#define STAGED(f) cmocka_unit_test_setup_teardown(f, tls_setup, stage_teardown)
    const struct CMUnitTest staged[] = {
        STAGED(requests_go_through),
        STAGED(old_versions_are_not_spoken),
        STAGED(large_things_go_both_ways),
        STAGED(who_leaves_is_told_of),
        STAGED(who_speaks_something_else_is_closed),
        STAGED(a_refusal_is_heard),
        STAGED(who_leaves_in_the_middle_of_a_handshake_is_forgotten),
    };
    struct CMUnitTest tests[VT_COUNT(staged) + VT_COUNT(rows)];

    memcpy(tests, staged, sizeof(staged));
    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[VT_COUNT(staged) + i] =
            (struct CMUnitTest){.name = rows[i].name,
                                .test_func = is_refused_with_a_reason,
                                .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("net_tls", tests, make_files, remove_files);
}
