/* target.c - where requests go: the URL, its address, and what TLS is to trust. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "load/client.h"

enum { TRY_MS = 5000 };

/* ---- the URL ----------------------------------------------------------- */

static int copy(char *out, size_t cap, const char *p, size_t len, const char *what,
                struct vt_err *err)
{
    if (len >= cap)
        return vt_fail(err, VT_EINPUT, "the URL's %s is too long", what);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)p[i] <= ' ' || p[i] == 0x7f)
            return vt_fail(err, VT_EINPUT, "the URL's %s holds a blank", what);
    memcpy(out, p, len);
    out[len] = '\0';
    return VT_OK;
}

static int parse_authority(struct load_target *t, const char *p, size_t len,
                           struct vt_err *err)
{
    const char *end = p + len, *host_end, *port = NULL;
    uint64_t number;
    int rc;

    if (memchr(p, '@', len))
        return vt_fail(err, VT_EINPUT, "a URL with a user name is not understood");
    if (len > 0 && *p == '[') {
        host_end = memchr(p, ']', len);
        if (!host_end)
            return vt_fail(err, VT_EINPUT, "the URL's '[' is not closed");
        port = host_end + 1 < end && host_end[1] == ':' ? host_end + 2 : NULL;
        p++;
    } else {
        host_end = memchr(p, ':', len);
        port = host_end ? host_end + 1 : NULL;
        host_end = host_end ? host_end : end;
    }
    if (host_end == p)
        return vt_fail(err, VT_EINPUT, "the URL names no host");
    if ((rc = copy(t->host, sizeof(t->host), p, (size_t)(host_end - p), "host", err)))
        return rc;
    if (port && (!vt_parse_u64(port, (size_t)(end - port), &number) || number == 0 ||
                 number > 65535))
        return vt_fail(err, VT_EINPUT, "the URL's port is not one of 1 to 65535");
    if (port)
        return copy(t->port, sizeof(t->port), port, (size_t)(end - port), "port", err);
    return copy(t->port, sizeof(t->port), t->tls ? "443" : "80", t->tls ? 3 : 2, "port",
                err);
}

int load_url_parse(struct load_target *t, const char *url, struct vt_err *err)
{
    const char *p = url, *path;
    size_t len;
    int rc;

    if (strncmp(p, "http://", 7) == 0) {
        p += 7;
    } else if (strncmp(p, "https://", 8) == 0) {
        t->tls = true;
        p += 8;
    } else {
        return vt_fail(err, VT_EINPUT, "'%s' is no http:// or https:// URL", url);
    }
    len = strcspn(p, "/?#");
    rc = parse_authority(t, p, len, err);
    if (rc == VT_OK)
        rc = copy(t->authority, sizeof(t->authority), p, len, "host", err);
    path = p + len;
    len = strcspn(path, "?#");
    while (len > 0 && path[len - 1] == '/')
        len--;
    if (rc == VT_OK)
        rc = copy(t->path, sizeof(t->path), path, len, "path", err);
    return vt_within(err, rc, "%s", url);
}

int vt_load_url_check(const char *url, struct vt_err *err)
{
    struct load_target t = {0};

    return load_url_parse(&t, url, err);
}

/* ---- TLS --------------------------------------------------------------- */

static int open_context(struct load_target *t, const struct vt_load_config *c,
                        struct vt_err *err)
{
    t->insecure = c->insecure;
    t->context = SSL_CTX_new(TLS_client_method());
    if (!t->context)
        return vt_nomem(err);
    SSL_CTX_set_mode(t->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                     SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (c->insecure)
        return VT_OK;
    SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER, NULL);
    if (c->ca_file ? SSL_CTX_load_verify_locations(t->context, c->ca_file, NULL) != 1
                   : SSL_CTX_set_default_verify_paths(t->context) != 1)
        return vt_fail(err, VT_EINPUT, "%s: no certificates to trust in it",
                       c->ca_file ? c->ca_file : "the system's store");
    return VT_OK;
}

/* ---- the address ------------------------------------------------------- */

static bool wait_ready(struct load_link *l, char *why, size_t cap)
{
    bool tls_failed = false;
    int rc;

    while ((rc = load_link_ready(l, &tls_failed)) == LOAD_AGAIN) {
        struct pollfd p = {.fd = l->fd, .events = l->wants_write ? POLLOUT : POLLIN};

        if (poll(&p, 1, TRY_MS) <= 0) {
            snprintf(why, cap, "no answer for %d s", TRY_MS / 1000);
            return false;
        }
    }
    if (rc != 1)
        snprintf(why, cap, "%s", load_link_error(l));
    return rc == 1;
}

/* The first address that takes a connection; a name may have several. */
static int find_address(struct load_target *t, const struct addrinfo *list,
                        struct vt_err *err)
{
    char why[256] = "no address";

    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        struct load_link l;
        bool good;

        if (a->ai_addrlen > sizeof(t->address))
            continue;
        memcpy(&t->address, a->ai_addr, a->ai_addrlen);
        t->address_len = a->ai_addrlen;
        if (!load_link_open(&l, t)) {
            snprintf(why, sizeof(why), "%s", strerror(errno));
            continue;
        }
        good = wait_ready(&l, why, sizeof(why));
        load_link_close(&l);
        if (good)
            return VT_OK;
    }
    return vt_fail(err, VT_EIO, "cannot connect to %s: %s", t->authority, why);
}

int load_target_open(struct load_target *t, const struct vt_load_config *c,
                     struct vt_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = load_url_parse(t, c->base_url, err), failed;

    if (rc == VT_OK && t->tls)
        rc = open_context(t, c, err);
    if (rc != VT_OK)
        return rc;
    failed = getaddrinfo(t->host, t->port, &hints, &list);
    if (failed)
        return vt_fail(err, VT_EIO, "cannot look up '%s': %s", t->host,
                       gai_strerror(failed));
    rc = find_address(t, list, err);
    freeaddrinfo(list);
    return rc;
}

void load_target_close(struct load_target *t)
{
    SSL_CTX_free(t->context);
    *t = (struct load_target){0};
}
