/* url.c - http:// and https:// addresses taken apart. */
#include "net/net.h"

static int copy_part(char *out, size_t cap, const char *p, size_t len, const char *what,
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

static int parse_authority(struct net_url *u, const char *p, size_t len,
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
    rc = copy_part(u->host, sizeof(u->host), p, (size_t)(host_end - p), "host", err);
    if (rc != VT_OK)
        return rc;
    if (port && (!vt_parse_u64(port, (size_t)(end - port), &number) || number == 0 ||
                 number > 65535))
        return vt_fail(err, VT_EINPUT, "the URL's port is not one of 1 to 65535");
    if (!port)
        port = u->tls ? "443" : "80", end = port + strlen(port);
    return copy_part(u->port, sizeof(u->port), port, (size_t)(end - port), "port", err);
}

static int parse_parts(struct net_url *u, const char *p, struct vt_err *err)
{
    size_t len = strcspn(p, "/?#");
    int rc = parse_authority(u, p, len, err);

    if (rc == VT_OK)
        rc = copy_part(u->authority, sizeof(u->authority), p, len, "host", err);
    if (rc != VT_OK)
        return rc;
    p += len;
    u->base_len = strcspn(p, "?#");
    while (u->base_len > 0 && p[u->base_len - 1] == '/')
        u->base_len--;
    return copy_part(u->path, sizeof(u->path), p, strcspn(p, "#"), "path", err);
}

int net_url_parse(struct net_url *u, const char *url, struct vt_err *err)
{
    *u = (struct net_url){0};
    if (strncmp(url, "http://", 7) == 0)
        return vt_within(err, parse_parts(u, url + 7, err), "%s", url);
    if (strncmp(url, "https://", 8) != 0)
        return vt_fail(err, VT_EINPUT, "'%s' is no http:// or https:// URL", url);
    u->tls = true;
    return vt_within(err, parse_parts(u, url + 8, err), "%s", url);
}
