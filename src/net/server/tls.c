/* tls.c - TLS on a connection, by OpenSSL and without waiting. */
#include <errno.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "net/server/server.h"

/* ---- the way to the socket ------------------------------------------- */

/* OpenSSL's own would raise SIGPIPE when a peer has gone. */
static int bio_write(BIO *b, const char *from, int len)
{
    const struct net_conn *c = BIO_get_data(b);
    ssize_t n = send(c->source.fd, from, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);

    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(b);
    return (int)n;
}

static int bio_read(BIO *b, char *to, int cap)
{
    const struct net_conn *c = BIO_get_data(b);
    ssize_t n = recv(c->source.fd, to, (size_t)cap, MSG_DONTWAIT);

    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(b);
    return (int)n;
}

static long bio_ctrl(BIO *b, int what, long number, void *thing)
{
    (void)b;
    (void)number;
    (void)thing;
    return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "net");

    if (!m)
        return NULL;
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_ctrl(m, bio_ctrl);
    return m;
}

/* ---- certificate and key --------------------------------------------- */

/* No terminal is asked for a password. */
static int no_password(char *buf, int size, int writing, void *user)
{
    (void)buf;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

static int choose_protocol(SSL *s, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned int in_len, void *user)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen = NULL;

    (void)s;
    (void)user;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* The first of OpenSSL's reasons is the one that says what is wrong. */
static int tls_fail(struct vt_err *err, const char *what, const char *path)
{
    unsigned long code = ERR_get_error();
    const char *why = ERR_reason_error_string(code);

    if (!why && ERR_SYSTEM_ERROR(code))
        why = strerror(ERR_GET_REASON(code));
    vt_fail(err, VT_EINPUT, "cannot use %s '%s': %s", what, path,
            why ? why : "not understood");
    ERR_clear_error();
    return VT_EINPUT;
}

static int load_pair(SSL_CTX *t, const char *certfile, const char *keyfile,
                     struct vt_err *err)
{
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(t, certfile) != 1)
        return tls_fail(err, "certificate", certfile);
    if (SSL_CTX_use_PrivateKey_file(t, keyfile, SSL_FILETYPE_PEM) != 1)
        return tls_fail(err, "private key", keyfile);
    if (SSL_CTX_check_private_key(t) != 1)
        return tls_fail(err, "private key", keyfile);
    return VT_OK;
}

int net_tls_open(struct net *n, const char *certfile, const char *keyfile,
                 struct vt_err *err)
{
    SSL_CTX *t = SSL_CTX_new(TLS_server_method());

    n->tls = t;
    n->bio = bio_method();
    if (!t || !n->bio)
        return vt_nomem(err);
    SSL_CTX_set_min_proto_version(t, TLS1_2_VERSION);
    SSL_CTX_set_options(t, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                               SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(t, SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(t, SSL_SESS_CACHE_OFF); /* tickets need no memory */
    SSL_CTX_set_default_passwd_cb(t, no_password);
    SSL_CTX_set_alpn_select_cb(t, choose_protocol, NULL);
    return load_pair(t, certfile, keyfile, err);
}

void net_tls_close(struct net *n)
{
    SSL_CTX_free(n->tls);
    BIO_meth_free(n->bio);
    n->tls = NULL;
    n->bio = NULL;
}

/* ---- connections ----------------------------------------------------- */

int net_tls_attach(struct net_conn *c)
{
    BIO *b = BIO_new(c->net->bio);

    c->tls = SSL_new(c->net->tls);
    if (!c->tls || !b) {
        BIO_free(b);
        return VT_ENOMEM;
    }
    BIO_set_data(b, c);
    BIO_set_init(b, 1);
    SSL_set_bio(c->tls, b, b);
    SSL_set_accept_state(c->tls);
    return VT_OK;
}

/* What became of a call that did not succeed. */
static ptrdiff_t outcome(struct net_conn *c, int rc)
{
    int why = SSL_get_error(c->tls, rc);

    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return NET_WAIT;
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    c->tls_broken = true; /* nothing may be said any more */
    ERR_clear_error();
    return NET_BROKEN;
}

ptrdiff_t net_tls_greet(struct net_conn *c)
{
    ptrdiff_t result;
    int rc;

    ERR_clear_error();
    rc = SSL_do_handshake(c->tls);
    if (rc == 1)
        return 1;
    result = outcome(c, rc);
    return result == NET_WAIT ? NET_WAIT : NET_BROKEN;
}

ptrdiff_t net_tls_receive(struct net_conn *c, char *to, size_t cap)
{
    size_t got = 0;
    int rc;

    ERR_clear_error();
    rc = SSL_read_ex(c->tls, to, cap, &got);
    return rc == 1 ? (ptrdiff_t)got : outcome(c, rc);
}

ptrdiff_t net_tls_send(struct net_conn *c, const char *from, size_t len)
{
    size_t sent = 0;
    ptrdiff_t result;
    int rc;

    ERR_clear_error();
    rc = SSL_write_ex(c->tls, from, len, &sent);
    if (rc == 1)
        return (ptrdiff_t)sent;
    result = outcome(c, rc);
    return result == NET_WAIT ? NET_WAIT : NET_BROKEN;
}

void net_tls_detach(struct net_conn *c)
{
    ERR_clear_error();
    if (!c->tls_broken && SSL_is_init_finished(c->tls))
        (void)SSL_shutdown(c->tls);
    SSL_free(c->tls);
    ERR_clear_error();
    c->tls = NULL;
}
