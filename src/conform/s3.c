/* s3.c - one object of an S3 bucket into a file, with requests signed as AWS describes
 * it (Signature Version 4). The path is percent-encoded by S3's rules and sent as it
 * was signed. */
#include <ctype.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "conform/conform.h"
#include "live/live.h"
#include "net/net.h"

/* Of a body of no bytes. */
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

enum {
    MAX_URL = 4096,
    MAX_ANSWER = 4096,   /* of an error's XML that is kept */
    SLOW_BYTES_S = 1024, /* slower than this for SLOW_S: given up */
    SLOW_S = 30,
    LONGEST_S = 24 * 3600,
};

/* ---- addresses -------------------------------------------------------- */

struct object {
    char bucket[64];
    const char *key;
};

static int parse_uri(struct object *o, const char *uri, struct vt_err *err)
{
    static const char scheme[] = "s3://";
    const char *start = uri + strlen(scheme), *slash;
    size_t n;

    if (strncmp(uri, scheme, strlen(scheme)) != 0)
        return vt_fail(err, VT_EINPUT, "'%s' is not s3://BUCKET/KEY", uri);
    slash = strchr(start, '/');
    n = slash ? (size_t)(slash - start) : 0;
    if (n < 3 || n >= sizeof(o->bucket) || slash[1] == '\0')
        return vt_fail(err, VT_EINPUT, "'%s' is not s3://BUCKET/KEY", uri);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)start[i]) && !strchr(".-_", start[i]))
            return vt_fail(err, VT_EINPUT, "'%.*s' is no name of a bucket", (int)n,
                           start);
    memcpy(o->bucket, start, n);
    o->bucket[n] = '\0';
    o->key = slash + 1;
    return VT_OK;
}

static const char *unless_empty(const char *text)
{
    return text && *text ? text : NULL;
}

static const char *region_of(const struct vt_s3 *s3)
{
    return unless_empty(s3->region) ? s3->region : "us-east-1";
}

/* A bucket with dots in its name does not fit into a certificate's name. */
static int make_address(struct vt_buf *server, struct vt_buf *path,
                        const struct vt_s3 *s3, const struct object *o,
                        struct vt_err *err)
{
    const char *endpoint = unless_empty(s3->endpoint);

    server->max = path->max = MAX_URL;
    if (endpoint && strncmp(endpoint, "http://", 7) != 0 &&
        strncmp(endpoint, "https://", 8) != 0)
        return vt_fail(err, VT_EINPUT, "'%s' is no http address of an S3 server",
                       endpoint);
    if (endpoint)
        vt_buf_str(server, endpoint);
    else if (strchr(o->bucket, '.'))
        vt_buf_printf(server, "https://s3.%s.amazonaws.com", region_of(s3));
    else
        vt_buf_printf(server, "https://%s.s3.%s.amazonaws.com", o->bucket,
                      region_of(s3));
    if (endpoint || strchr(o->bucket, '.'))
        vt_buf_printf(path, "/%s", o->bucket);
    vt_buf_char(path, '/');
    for (const char *key = o->key; *key; key++) {
        unsigned char c = (unsigned char)*key;

        if (isalnum(c) || strchr("-._~/", c))
            vt_buf_char(path, *key);
        else
            vt_buf_printf(path, "%%%02X", c);
    }
    return server->failed || path->failed
               ? vt_fail(err, VT_EINPUT, "the address is too long")
               : VT_OK;
}

/* ---- signing ---------------------------------------------------------- */

enum { MAC_BYTES = 32, DATE_BYTES = 17 };

struct signature {
    char date[DATE_BYTES];       /* 20130524T000000Z */
    struct vt_buf authorization; /* empty: the request is not signed */
};

static void put_mac(unsigned char mac[MAC_BYTES], const void *key, size_t len,
                    const char *text)
{
    HMAC(EVP_sha256(), key, (int)len, (const unsigned char *)text, strlen(text), mac,
         NULL);
}

static void derive_key(unsigned char mac[MAC_BYTES], const struct vt_s3 *s3,
                       const char *day, struct vt_buf *first)
{
    const char *const rest[] = {region_of(s3), "s3", "aws4_request"};

    vt_buf_printf(first, "AWS4%s", s3->secret_key);
    put_mac(mac, first->data, first->len, day);
    for (size_t i = 0; i < VT_COUNT(rest); i++)
        put_mac(mac, mac, MAC_BYTES, rest[i]);
}

/* Everything of the request that the other side must find unchanged. */
static void put_canonical(struct vt_buf *b, const struct vt_s3 *s3,
                          const struct net_url *u, const char *path, const char *date,
                          const char *names)
{
    vt_buf_printf(b, "GET\n%.*s%s\n\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n",
                  (int)u->base_len, u->path, path, u->authority, EMPTY_SHA256, date);
    if (unless_empty(s3->session_token))
        vt_buf_printf(b, "x-amz-security-token:%s\n", s3->session_token);
    vt_buf_printf(b, "\n%s\n%s", names, EMPTY_SHA256);
}

static int sign_request(struct signature *to, const struct vt_s3 *s3,
                        const struct net_url *u, const char *path, struct vt_err *err)
{
    const char *names =
        unless_empty(s3->session_token)
            ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
            : "host;x-amz-content-sha256;x-amz-date";
    struct vt_buf canonical = {0}, text = {0}, secret = {0};
    unsigned char mac[MAC_BYTES];
    char scope[128], day[9];
    time_t now = time(NULL);
    struct tm utc;

    if (!unless_empty(s3->access_key) || !unless_empty(s3->secret_key))
        return VT_OK;
    if (strchr(region_of(s3), ':') || strlen(region_of(s3)) > 64)
        return vt_fail(err, VT_EINPUT, "'%s' is no region", region_of(s3));
    gmtime_r(&now, &utc);
    strftime(to->date, sizeof(to->date), "%Y%m%dT%H%M%SZ", &utc);
    strftime(day, sizeof(day), "%Y%m%d", &utc);
    snprintf(scope, sizeof(scope), "%s/%s/s3/aws4_request", day, region_of(s3));
    put_canonical(&canonical, s3, u, path, to->date, names);
    derive_key(mac, s3, day, &secret);
    if (!canonical.failed && !secret.failed) {
        unsigned char digest[MAC_BYTES];

        EVP_Digest(canonical.data, canonical.len, digest, NULL, EVP_sha256(), NULL);
        vt_buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n", to->date, scope);
        vt_buf_hex(&text, digest, sizeof(digest));
        put_mac(mac, mac, sizeof(mac), text.failed ? "" : text.data);
        vt_buf_printf(&to->authorization,
                      "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=",
                      s3->access_key, scope, names);
        vt_buf_hex(&to->authorization, mac, sizeof(mac));
    }
    to->authorization.failed |= canonical.failed || secret.failed || text.failed;
    vt_buf_free(&canonical);
    vt_buf_free(&text);
    vt_buf_free(&secret);
    return to->authorization.failed ? vt_nomem(err) : VT_OK;
}

/* ---- the transfer ----------------------------------------------------- */

struct transfer {
    struct vt_out *file;
    uint64_t bytes, max_bytes;
    uint64_t bytes_before; /* at looked_at */
    vt_ns looked_at;
    bool slow;
    int rc; /* of writing, and why */
    struct vt_err *err;
};

static bool write_bytes(void *user, const char *bytes, size_t len)
{
    struct transfer *t = user;

    t->bytes += len;
    if (t->bytes > t->max_bytes)
        return false;
    t->rc = vt_out_write(t->file, bytes, len, t->err);
    return t->rc == VT_OK;
}

static bool is_too_slow(void *user)
{
    struct transfer *t = user;
    vt_ns now = vt_wall_ns();

    if (now - t->looked_at < SLOW_S * VT_SEC)
        return false;
    t->looked_at = now;
    t->slow = t->bytes - t->bytes_before < SLOW_BYTES_S * SLOW_S;
    t->bytes_before = t->bytes;
    return t->slow;
}

static void xml_text(const struct vt_buf *xml, const char *tag, char *out, size_t size)
{
    char open[32];
    const char *start, *end;
    size_t n;

    *out = '\0';
    snprintf(open, sizeof(open), "<%s>", tag);
    start = xml->data ? strstr(xml->data, open) : NULL;
    end = start ? strchr(start + strlen(open), '<') : NULL;
    if (!end)
        return;
    start += strlen(open);
    n = (size_t)(end - start) < size - 1 ? (size_t)(end - start) : size - 1;
    memcpy(out, start, n);
    out[n] = '\0';
}

/* ---- the request ------------------------------------------------------ */

static int download_object(struct transfer *t, struct net_client *n,
                           const struct vt_s3 *s3, const struct signature *s,
                           const char *path, struct vt_err *err)
{
    const struct net_header header[] = {{"x-amz-content-sha256", EMPTY_SHA256},
                                        {"x-amz-date", s->date},
                                        {"Authorization", s->authorization.data},
                                        {"x-amz-security-token", s3->session_token}};
    const struct net_ask ask = {.path = path,
                                .header = header,
                                .n_headers = s->authorization.len == 0         ? 0
                                             : unless_empty(s3->session_token) ? 4
                                                                               : 3,
                                .last = true,
                                .timeout_ns = LONGEST_S * VT_SEC,
                                .max_reply = MAX_ANSWER,
                                .sink = write_bytes,
                                .stopped = is_too_slow,
                                .user = t};
    char code[64], message[200];
    struct vt_buf reply = {0};
    int status = 0, rc = net_ask(n, &ask, &status, &reply, err);

    if (t->bytes > t->max_bytes)
        rc = vt_fail(err, VT_EIO, "larger than %llu bytes",
                     (unsigned long long)t->max_bytes);
    else if (t->rc != VT_OK)
        rc = vt_fail(err, VT_EIO, "cannot write: %s", t->err->msg);
    else if (t->slow)
        rc = vt_fail(err, VT_EIO, "slower than %d bytes/s for %d s", SLOW_BYTES_S,
                     SLOW_S);
    else if (rc != VT_OK && t->bytes > 0)
        rc = vt_within(err, rc, "transfer closed");
    else if (rc == VT_OK && status != 200) {
        xml_text(&reply, "Code", code, sizeof(code));
        xml_text(&reply, "Message", message, sizeof(message));
        rc = vt_fail(err, VT_EIO, "S3 answered %d%s%s%s%s", status, *code ? " " : "",
                     code, *code && *message ? ": " : "", *code ? message : "");
    }
    vt_buf_free(&reply);
    return rc;
}

static int fetch_object(const struct vt_s3 *s3, const char *server,
                        const char *key_path, const char *path, uint64_t max_bytes,
                        struct vt_err *err)
{
    struct vt_err write_err = {0};
    struct transfer t = {
        .max_bytes = max_bytes, .looked_at = vt_wall_ns(), .err = &write_err};
    struct signature s = {0};
    struct net_client n;
    int rc = net_client_open(&n, server, NULL, err);

    if (rc == VT_OK)
        rc = sign_request(&s, s3, &n.url, key_path, err);
    if (rc == VT_OK)
        rc = vt_out_open(&t.file, path, err);
    if (rc == VT_OK)
        rc = vt_out_end(t.file, download_object(&t, &n, s3, &s, key_path, err), err);
    vt_buf_free(&s.authorization);
    net_client_close(&n);
    return rc;
}

int vt_s3_fetch(const struct vt_s3 *s3, const char *uri, const char *path,
                uint64_t max_bytes, struct vt_err *err)
{
    struct vt_buf server = {0}, key_path = {0};
    struct object o;
    int rc = parse_uri(&o, uri, err);

    if (rc == VT_OK)
        rc = make_address(&server, &key_path, s3, &o, err);
    if (rc == VT_OK)
        rc = vt_within(
            err, fetch_object(s3, server.data, key_path.data, path, max_bytes, err),
            "%s", uri);
    vt_buf_free(&server);
    vt_buf_free(&key_path);
    return rc;
}
