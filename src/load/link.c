/* link.c - one connection, plain or TLS, on a socket that never waits. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <unistd.h>

#include "load/client.h"

static bool open_tls(struct load_link *l, const struct load_target *t)
{
    unsigned char address[16];
    char name[sizeof(t->host)]; /* OpenSSL's macro would drop the const */
    bool is_address = inet_pton(AF_INET, t->host, address) == 1 ||
                      inet_pton(AF_INET6, t->host, address) == 1;

    l->ssl = SSL_new(t->context);
    if (!l->ssl || SSL_set_fd(l->ssl, l->fd) != 1)
        return false;
    if (is_address)
        return t->insecure ||
               X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(l->ssl), t->host) == 1;
    memcpy(name, t->host, sizeof(name));
    (void)SSL_set_tlsext_host_name(l->ssl, name);
    return t->insecure || SSL_set1_host(l->ssl, t->host) == 1;
}

bool load_link_open(struct load_link *l, const struct load_target *t)
{
    int on = 1;

    *l = (struct load_link){.fd = -1};
    l->fd = socket(t->address.ss_family, SOCK_STREAM, 0);
    if (l->fd < 0)
        return false;
    (void)fcntl(l->fd, F_SETFD, FD_CLOEXEC);
    if (fcntl(l->fd, F_SETFL, O_NONBLOCK) != 0 ||
        setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        (connect(l->fd, (const struct sockaddr *)&t->address, t->address_len) != 0 &&
         errno != EINPROGRESS) ||
        (t->tls && !open_tls(l, t))) {
        int kept = errno;

        load_link_close(l);
        errno = kept;
        return false;
    }
    return true;
}

static int tls_step(struct load_link *l, int rc)
{
    switch (SSL_get_error(l->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        l->wants_write = false;
        return LOAD_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        l->wants_write = true;
        return LOAD_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return LOAD_GONE;
    }
}

static int finish_connect(struct load_link *l)
{
    int failed = 0;
    socklen_t len = sizeof(failed);
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof(peer);

    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &failed, &len) != 0)
        failed = errno;
    if (failed) {
        errno = failed;
        return LOAD_GONE;
    }
    l->connected = getpeername(l->fd, (struct sockaddr *)&peer, &peer_len) == 0;
    l->wants_write = !l->connected;
    return l->connected ? 1 : LOAD_AGAIN;
}

int load_link_ready(struct load_link *l, bool *tls_failed)
{
    int rc = l->connected ? 1 : finish_connect(l);

    *tls_failed = false;
    if (rc != 1 || !l->ssl)
        return rc;
    ERR_clear_error();
    rc = SSL_connect(l->ssl);
    if (rc == 1)
        return 1;
    rc = tls_step(l, rc);
    *tls_failed = rc != LOAD_AGAIN;
    return rc == LOAD_AGAIN ? rc : LOAD_GONE;
}

ssize_t load_link_read(struct load_link *l, void *p, size_t n)
{
    ssize_t got;

    if (l->ssl) {
        int want = n > INT32_MAX ? INT32_MAX : (int)n, rc;

        ERR_clear_error();
        rc = SSL_read(l->ssl, p, want);
        return rc > 0 ? rc : tls_step(l, rc);
    }
    got = recv(l->fd, p, n, 0);
    if (got >= 0)
        return got;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? LOAD_AGAIN
                                                                     : LOAD_GONE;
}

ssize_t load_link_write(struct load_link *l, const void *p, size_t n)
{
    ssize_t put;

    if (l->ssl) {
        int want = n > INT32_MAX ? INT32_MAX : (int)n, rc;

        ERR_clear_error();
        rc = SSL_write(l->ssl, p, want);
        rc = rc > 0 ? rc : tls_step(l, rc);
        return rc == 0 ? LOAD_GONE : rc;
    }
    put = send(l->fd, p, n, MSG_NOSIGNAL);
    if (put >= 0)
        return put;
    l->wants_write = true;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? LOAD_AGAIN
                                                                     : LOAD_GONE;
}

bool load_link_holds(const struct load_link *l)
{
    return l->ssl && SSL_pending(l->ssl) > 0;
}

void load_link_close(struct load_link *l)
{
    SSL_free(l->ssl);
    if (l->fd >= 0)
        (void)close(l->fd);
    *l = (struct load_link){.fd = -1};
}

const char *load_link_error(const struct load_link *l)
{
    unsigned long code = l->ssl ? ERR_peek_error() : 0;
    long trust = l->ssl ? SSL_get_verify_result(l->ssl) : X509_V_OK;
    const char *text = code ? ERR_reason_error_string(code) : NULL;

    if (trust != X509_V_OK)
        return X509_verify_cert_error_string(trust);
    return text ? text : errno ? strerror(errno) : "the peer closed it";
}
