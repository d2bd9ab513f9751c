/* tls.c - see tls.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls.h"

/* ---- the way to the socket ------------------------------------------- */

static int socket_of(BIO *b)
{
    return (int)(intptr_t)BIO_get_data(b);
}

/* OpenSSL's own would raise SIGPIPE when a peer has gone. */
static int bio_write(BIO *b, const char *from, int len)
{
    ssize_t n = send(socket_of(b), from, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);

    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(b);
    return (int)n;
}

static int bio_read(BIO *b, char *to, int cap)
{
    ssize_t n = recv(socket_of(b), to, (size_t)cap, MSG_DONTWAIT);

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

static int open_context(struct net_tls_context *t, const SSL_METHOD *method,
                        struct vt_err *err)
{
    t->ssl = SSL_CTX_new(method);
    t->bio = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "net");
    if (!t->ssl || !t->bio)
        return vt_nomem(err);
    BIO_meth_set_write(t->bio, bio_write);
    BIO_meth_set_read(t->bio, bio_read);
    BIO_meth_set_ctrl(t->bio, bio_ctrl);
    SSL_CTX_set_min_proto_version(t->ssl, TLS1_2_VERSION);
    SSL_CTX_set_mode(t->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return VT_OK;
}

int net_tls_serve(struct net_tls_context *t, const char *certfile, const char *keyfile,
                  struct vt_err *err)
{
    int rc = open_context(t, TLS_server_method(), err);

    if (rc != VT_OK)
        return rc;
    SSL_CTX_set_options(t->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                    SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(t->ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(t->ssl, SSL_SESS_CACHE_OFF); /* tickets need none */
    SSL_CTX_set_default_passwd_cb(t->ssl, no_password);
    SSL_CTX_set_alpn_select_cb(t->ssl, choose_protocol, NULL);
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(t->ssl, certfile) != 1)
        return tls_fail(err, "certificate", certfile);
    if (SSL_CTX_use_PrivateKey_file(t->ssl, keyfile, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(t->ssl) != 1)
        return tls_fail(err, "private key", keyfile);
    return VT_OK;
}

int net_tls_trust(struct net_tls_context *t, const struct net_trust *trust,
                  struct vt_err *err)
{
    int rc = open_context(t, TLS_client_method(), err);

    t->any_peer = trust->insecure;
    if (rc != VT_OK || trust->insecure)
        return rc;
    SSL_CTX_set_verify(t->ssl, SSL_VERIFY_PEER, NULL);
    if (trust->ca_file
            ? SSL_CTX_load_verify_locations(t->ssl, trust->ca_file, NULL) != 1
            : SSL_CTX_set_default_verify_paths(t->ssl) != 1)
        return vt_fail(err, VT_EINPUT, "%s: no certificates to trust in it",
                       trust->ca_file ? trust->ca_file : "the system's store");
    return VT_OK;
}

void net_tls_close(struct net_tls_context *t)
{
    SSL_CTX_free(t->ssl);
    BIO_meth_free(t->bio);
    *t = (struct net_tls_context){0};
}

/* ---- connections ----------------------------------------------------- */

int net_tls_attach(struct net_tls *c, const struct net_tls_context *t, int fd,
                   const char *host)
{
    BIO *b = BIO_new(t->bio);
    unsigned char address[16];
    char name[256]; /* OpenSSL's macro would drop the const */

    *c = (struct net_tls){.ssl = SSL_new(t->ssl)};
    if (!c->ssl || !b) {
        BIO_free(b);
        return VT_ENOMEM;
    }
    BIO_set_data(b, (void *)(intptr_t)fd);
    BIO_set_init(b, 1);
    SSL_set_bio(c->ssl, b, b);
    if (!host) {
        SSL_set_accept_state(c->ssl);
        return VT_OK;
    }
    SSL_set_connect_state(c->ssl);
    if (inet_pton(AF_INET, host, address) == 1 ||
        inet_pton(AF_INET6, host, address) == 1)
        return t->any_peer ||
                       X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), host) == 1
                   ? VT_OK
                   : VT_ENOMEM;
    snprintf(name, sizeof(name), "%s", host);
    (void)SSL_set_tlsext_host_name(c->ssl, name);
    return t->any_peer || SSL_set1_host(c->ssl, host) == 1 ? VT_OK : VT_ENOMEM;
}

/* What became of a call of OpenSSL that did not succeed. */
static ptrdiff_t tls_outcome(struct net_tls *c, int rc)
{
    int why = SSL_get_error(c->ssl, rc);

    c->wants_write = why == SSL_ERROR_WANT_WRITE;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return NET_WAIT;
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    c->broken = true; /* nothing may be said any more */
    return NET_BROKEN;
}

ptrdiff_t net_tls_greet(struct net_tls *c)
{
    int rc;

    ERR_clear_error();
    rc = SSL_do_handshake(c->ssl);
    if (rc == 1)
        return 1;
    return tls_outcome(c, rc) == NET_WAIT ? NET_WAIT : NET_BROKEN;
}

/* The same of a call on a plain socket. */
static ptrdiff_t plain_outcome(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EWOULDBLOCK ? NET_WAIT : NET_BROKEN;
}

ptrdiff_t net_receive(struct net_tls *c, int fd, char *to, size_t cap)
{
    size_t got = 0;
    ssize_t n;
    int rc;

    if (!c->ssl) {
        do
            n = recv(fd, to, cap, MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        return plain_outcome(n);
    }
    ERR_clear_error();
    rc = SSL_read_ex(c->ssl, to, cap, &got);
    return rc == 1 ? (ptrdiff_t)got : tls_outcome(c, rc);
}

ptrdiff_t net_send(struct net_tls *c, int fd, const char *from, size_t len)
{
    size_t sent = 0;
    ssize_t n;
    int rc;

    if (!c->ssl) {
        do
            n = send(fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        return plain_outcome(n);
    }
    ERR_clear_error();
    rc = SSL_write_ex(c->ssl, from, len, &sent);
    if (rc == 1)
        return (ptrdiff_t)sent;
    return tls_outcome(c, rc) == NET_WAIT ? NET_WAIT : NET_BROKEN;
}

bool net_tls_holds(const struct net_tls *c)
{
    return c->ssl && SSL_pending(c->ssl) > 0;
}

void net_tls_detach(struct net_tls *c)
{
    if (!c->ssl)
        return;
    ERR_clear_error();
    if (!c->broken && SSL_is_init_finished(c->ssl))
        (void)SSL_shutdown(c->ssl);
    SSL_free(c->ssl);
    ERR_clear_error();
    *c = (struct net_tls){0};
}

const char *net_tls_why(const struct net_tls *c)
{
    unsigned long code = ERR_peek_error();
    long trust = SSL_get_verify_result(c->ssl);

    if (trust != X509_V_OK)
        return X509_verify_cert_error_string(trust);
    return code ? ERR_reason_error_string(code) : NULL;
}
