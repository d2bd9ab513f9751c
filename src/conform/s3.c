/* s3.c - one object of an S3 bucket into a file, through libcurl.
 *
 * Requests are signed by libcurl (SigV4). What Debian 12's 7.88 leaves to its caller is
 * done here: the path is sent percent-encoded by S3's rules and untouched afterwards,
 * because what is signed is what is sent. */
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "conform/conform.h"

/* Of a body of no bytes; S3 wants it stated, and curl signs it as stated. */
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

enum {
    MAX_URL = 4096,
    MAX_ANSWER = 4096, /* of an error's XML that is kept */
    CONNECT_S = 10,
    SLOW_BYTES_S = 1024, /* slower than this for SLOW_S: given up */
    SLOW_S = 30,
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

static void put_encoded(struct vt_buf *b, const char *key)
{
    for (; *key; key++) {
        unsigned char c = (unsigned char)*key;

        if (isalnum(c) || strchr("-._~/", c))
            vt_buf_char(b, *key);
        else
            vt_buf_printf(b, "%%%02X", c);
    }
}

static const char *given(const char *text)
{
    return text && *text ? text : NULL;
}

static const char *region_of(const struct vt_s3 *s3)
{
    return given(s3->region) ? s3->region : "us-east-1";
}

/* A bucket with dots in its name does not fit into a certificate's name. */
static int make_url(struct vt_buf *url, const struct vt_s3 *s3, const struct object *o,
                    struct vt_err *err)
{
    const char *endpoint = given(s3->endpoint);

    url->max = MAX_URL;
    if (endpoint) {
        size_t n = strlen(endpoint);

        if (strncmp(endpoint, "http://", 7) != 0 &&
            strncmp(endpoint, "https://", 8) != 0)
            return vt_fail(err, VT_EINPUT, "'%s' is no http address of an S3 server",
                           endpoint);
        while (n > 0 && endpoint[n - 1] == '/')
            n--;
        vt_buf_add(url, endpoint, n);
        vt_buf_printf(url, "/%s/", o->bucket);
    } else if (strchr(o->bucket, '.')) {
        vt_buf_printf(url, "https://s3.%s.amazonaws.com/%s/", region_of(s3), o->bucket);
    } else {
        vt_buf_printf(url, "https://%s.s3.%s.amazonaws.com/", o->bucket, region_of(s3));
    }
    put_encoded(url, o->key);
    return url->failed ? vt_fail(err, VT_EINPUT, "the address is too long") : VT_OK;
}

/* ---- the answer ------------------------------------------------------- */

struct answer {
    CURL *curl;
    FILE *file;
    uint64_t bytes, max_bytes;
    bool too_large;
    int write_error; /* errno */
    char error[MAX_ANSWER];
    size_t error_len;
};

/* curl calls it with the body, whatever the status is. */
static size_t take(char *data, size_t size, size_t n, void *user)
{
    struct answer *a = user;
    size_t len = size * n;
    long status = 0;

    curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        size_t room = sizeof(a->error) - 1 - a->error_len;
        size_t part = len < room ? len : room;

        memcpy(a->error + a->error_len, data, part);
        a->error_len += part;
        return len;
    }
    a->bytes += len;
    a->too_large = a->bytes > a->max_bytes;
    if (a->too_large)
        return 0;
    if (fwrite(data, 1, len, a->file) == len)
        return len;
    a->write_error = errno;
    return 0;
}

/* The text of <tag> in an error's XML; "" if there is none. */
static void xml_text(const struct answer *a, const char *tag, char *out, size_t size)
{
    char open[32];
    const char *start, *end;
    size_t n;

    *out = '\0';
    snprintf(open, sizeof(open), "<%s>", tag);
    start = strstr(a->error, open);
    end = start ? strchr(start + strlen(open), '<') : NULL;
    if (!end)
        return;
    start += strlen(open);
    n = (size_t)(end - start) < size - 1 ? (size_t)(end - start) : size - 1;
    memcpy(out, start, n);
    out[n] = '\0';
}

static int refused(const struct answer *a, long status, struct vt_err *err)
{
    char code[64], message[200];

    xml_text(a, "Code", code, sizeof(code));
    xml_text(a, "Message", message, sizeof(message));
    if (!*code)
        return vt_fail(err, VT_EIO, "S3 answered %ld", status);
    return vt_fail(err, VT_EIO, "S3 answered %ld %s%s%s", status, code,
                   *message ? ": " : "", message);
}

static int judge(const struct answer *a, CURLcode code, const char *detail,
                 struct vt_err *err)
{
    long status = 0;

    curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
    if (a->too_large || code == CURLE_FILESIZE_EXCEEDED)
        return vt_fail(err, VT_EIO, "larger than %llu bytes",
                       (unsigned long long)a->max_bytes);
    if (a->write_error)
        return vt_fail(err, VT_EIO, "cannot write: %s", strerror(a->write_error));
    if (code != CURLE_OK)
        return vt_fail(err, VT_EIO, "%s", *detail ? detail : curl_easy_strerror(code));
    return status == 200 ? VT_OK : refused(a, status, err);
}

/* ---- the request ------------------------------------------------------ */

static bool add_header(struct curl_slist **list, const char *header)
{
    struct curl_slist *more = curl_slist_append(*list, header);

    *list = more ? more : *list;
    return more != NULL;
}

/* Bounds on everything that the other side decides. */
static void set_limits(CURL *curl, uint64_t max_bytes)
{
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_S);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE,
                     (curl_off_t)(max_bytes < INT64_MAX ? max_bytes : INT64_MAX));
}

/* Everything that is signed: host and date, which curl adds, and these headers. */
static int sign(CURL *curl, const struct vt_s3 *s3, struct curl_slist **headers,
                struct vt_err *err)
{
    char provider[128], token[4096];

    if (!given(s3->access_key) || !given(s3->secret_key))
        return VT_OK;
    if (strchr(region_of(s3), ':') || strlen(region_of(s3)) > 64)
        return vt_fail(err, VT_EINPUT, "'%s' is no region", region_of(s3));
    snprintf(provider, sizeof(provider), "aws:amz:%s:s3", region_of(s3));
    if (!add_header(headers, "x-amz-content-sha256: " EMPTY_SHA256))
        return vt_nomem(err);
    if (given(s3->session_token)) {
        int n = snprintf(token, sizeof(token), "x-amz-security-token: %s",
                         s3->session_token);

        if (n < 0 || (size_t)n >= sizeof(token))
            return vt_fail(err, VT_EINPUT, "the session token is too long");
        if (!add_header(headers, token))
            return vt_nomem(err);
    }
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, provider);
    curl_easy_setopt(curl, CURLOPT_USERNAME, s3->access_key);
    curl_easy_setopt(curl, CURLOPT_PASSWORD, s3->secret_key);
    return VT_OK;
}

static int perform(const struct vt_s3 *s3, const char *url, FILE *file,
                   uint64_t max_bytes, struct vt_err *err)
{
    struct answer a = {.file = file, .max_bytes = max_bytes};
    struct curl_slist *headers = NULL;
    char detail[CURL_ERROR_SIZE] = "";
    int rc;

    a.curl = curl_easy_init();
    if (!a.curl)
        return vt_nomem(err);
    curl_easy_setopt(a.curl, CURLOPT_URL, url);
    curl_easy_setopt(a.curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(a.curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(a.curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(a.curl, CURLOPT_WRITEDATA, &a);
    set_limits(a.curl, max_bytes);
    rc = sign(a.curl, s3, &headers, err);
    if (rc == VT_OK) {
        curl_easy_setopt(a.curl, CURLOPT_HTTPHEADER, headers);
        rc = judge(&a, curl_easy_perform(a.curl), detail, err);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(a.curl);
    return rc;
}

/* Whole or not at all: written beside its place, then renamed. */
static int download(const struct vt_s3 *s3, const char *url, const char *path,
                    uint64_t max_bytes, struct vt_err *err)
{
    struct vt_buf part = {0};
    FILE *file = NULL;
    int fd, rc;

    vt_buf_printf(&part, "%s.part-XXXXXX", path);
    if (part.failed)
        return vt_nomem(err);
    fd = mkstemp(part.data);
    file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!file) {
        rc = vt_fail(err, VT_EIO, "%s: %s", part.data, strerror(errno));
        if (fd >= 0)
            close(fd);
    } else {
        rc = perform(s3, url, file, max_bytes, err);
        if (fclose(file) != 0 && rc == VT_OK)
            rc = vt_fail(err, VT_EIO, "%s: %s", part.data, strerror(errno));
        if (rc == VT_OK && rename(part.data, path) != 0)
            rc = vt_fail(err, VT_EIO, "%s: %s", path, strerror(errno));
    }
    if (rc != VT_OK && fd >= 0)
        unlink(part.data);
    vt_buf_free(&part);
    return rc;
}

int vt_s3_fetch(const struct vt_s3 *s3, const char *uri, const char *path,
                uint64_t max_bytes, struct vt_err *err)
{
    struct vt_buf url = {0};
    struct object o;
    int rc = parse_uri(&o, uri, err);

    if (rc == VT_OK)
        rc = make_url(&url, s3, &o, err);
    if (rc == VT_OK)
        rc = vt_within(err, download(s3, url.data, path, max_bytes, err), "%s", uri);
    vt_buf_free(&url);
    return rc;
}
