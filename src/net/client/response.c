/* response.c - an HTTP/1.1 response and the event stream in it, taken as it comes. */
#include <strings.h>

#include "net/client/client.h"

enum { MAX_HEAD = 64 << 10 };

void net_response_reset(struct net_response *r)
{
    r->part = NET_PART_STATUS_LINE;
    r->status = 0;
    r->reason[0] = '\0';
    r->events = r->chunked = r->has_length = r->keep_alive = r->http_1_0 = false;
    r->left = 0;
    r->chunks = (struct net_chunks){.lenient = true};
    r->head_bytes = r->line_len = 0;
    vt_buf_clear(&r->sse.line);
    vt_buf_clear(&r->body);
}

void net_response_free(struct net_response *r)
{
    net_sse_free(&r->sse);
    vt_buf_free(&r->body);
}

/* ---- the head ---------------------------------------------------------- */

static enum net_part status_line(struct net_response *r, const char *p, size_t n)
{
    size_t len;

    if (n < 12 || memcmp(p, "HTTP/1.", 7) != 0 || p[8] != ' ' || p[9] < '1' ||
        p[9] > '5' || p[10] < '0' || p[10] > '9' || p[11] < '0' || p[11] > '9' ||
        (n > 12 && p[12] != ' '))
        return NET_PART_BROKEN;
    r->http_1_0 = p[7] == '0';
    r->keep_alive = !r->http_1_0;
    r->status = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
    len = n > 13 ? n - 13 : 0;
    len = len < sizeof(r->reason) ? len : sizeof(r->reason) - 1;
    memcpy(r->reason, p + (n > 13 ? 13 : 0), len);
    r->reason[len] = '\0';
    return NET_PART_HEADERS;
}

static bool has_word(const char *value, size_t n, const char *word)
{
    size_t len = strlen(word);

    for (size_t i = 0; i + len <= n; i++)
        if (strncasecmp(value + i, word, len) == 0)
            return true;
    return false;
}

static void note_header(struct net_response *r, const char *name, size_t name_len,
                        const char *value, size_t n)
{
    if (name_len == 14 && strncasecmp(name, "content-length", 14) == 0) {
        if (r->has_length || !vt_parse_u64(value, n, &r->left))
            r->part = NET_PART_BROKEN; /* twice may mean two things */
        r->has_length = true;
    } else if (name_len == 17 && strncasecmp(name, "transfer-encoding", 17) == 0) {
        r->chunked = has_word(value, n, "chunked");
    } else if (name_len == 12 && strncasecmp(name, "content-type", 12) == 0) {
        r->events = has_word(value, n, "text/event-stream");
    } else if (name_len == 10 && strncasecmp(name, "connection", 10) == 0) {
        if (has_word(value, n, "close"))
            r->keep_alive = false;
        else if (has_word(value, n, "keep-alive"))
            r->keep_alive = true;
    }
}

static enum net_part head_end(struct net_response *r)
{
    if (r->status < 200) { /* only a sign of life */
        net_response_reset(r);
        return NET_PART_STATUS_LINE;
    }
    if (r->status == 204 || r->status == 304)
        return NET_PART_WHOLE;
    if (r->chunked)
        return NET_PART_CHUNKS;
    if (r->has_length)
        return r->left > 0 ? NET_PART_LENGTH : NET_PART_WHOLE;
    r->keep_alive = false;
    return NET_PART_TO_CLOSE;
}

static enum net_part header_line(struct net_response *r, const char *p, size_t n)
{
    const char *colon = n > 0 ? memchr(p, ':', n) : NULL;
    const char *value, *end = p + n;

    if (n == 0)
        return head_end(r);
    if (!colon || colon == p)
        return NET_PART_BROKEN;
    for (value = colon + 1; value < end && (*value == ' ' || *value == '\t'); value++)
        ;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    note_header(r, p, (size_t)(colon - p), value, (size_t)(end - value));
    return (enum net_part)r->part;
}

/* Parts of a line wait in r->line; the stream's own half lines have another place. */
static size_t take_head(struct net_response *r, const char *p, size_t n)
{
    const char *nl = memchr(p, '\n', n);
    size_t used = nl ? (size_t)(nl - p) + 1 : n, len = nl ? used - 1 : n;

    r->head_bytes += used;
    if (r->head_bytes > MAX_HEAD || r->line_len + len > sizeof(r->line)) {
        r->part = NET_PART_BROKEN;
        return used;
    }
    if (!nl || r->line_len > 0) {
        memcpy(r->line + r->line_len, p, len);
        r->line_len += len;
        p = r->line;
        len = r->line_len;
    }
    if (!nl)
        return used;
    r->line_len = 0;
    len -= len > 0 && p[len - 1] == '\r';
    r->part = (int)(r->part == NET_PART_STATUS_LINE ? status_line(r, p, len)
                                                    : header_line(r, p, len));
    return used;
}

/* ---- the body ----------------------------------------------------------- */

static void take_body(struct net_response *r, const char *p, size_t n)
{
    size_t room = r->max_body > r->body.len ? r->max_body - r->body.len : 0;
    bool fine = true;

    if (r->events && r->status == 200 && r->sse.data)
        fine = net_sse_feed(&r->sse, p, n);
    else if (r->sink && r->status == 200)
        fine = r->sink(r->sse.user, p, n);
    else
        vt_buf_add(&r->body, p, n < room ? n : room);
    if (!fine)
        r->part = NET_PART_BROKEN;
}

static size_t take_counted(struct net_response *r, const char *p, size_t n)
{
    size_t used = n < r->left ? n : (size_t)r->left;

    take_body(r, p, used);
    r->left -= used;
    if (r->left == 0 && r->part == NET_PART_LENGTH)
        r->part = NET_PART_WHOLE;
    return used;
}

static size_t take_chunks(struct net_response *r, const char *p, size_t n)
{
    static const struct net_limits limits = {.max_header_bytes = MAX_HEAD,
                                             .max_body_bytes = SIZE_MAX};
    const char *at = p, *end = p + n;

    while (at < end && r->part == NET_PART_CHUNKS) {
        size_t len;
        int status = net_chunks_read(&r->chunks, &limits, &at, end, &len);

        if (status)
            r->part = status == NET_CHUNKS_END ? NET_PART_WHOLE : NET_PART_BROKEN;
        else if (len > 0)
            take_body(r, at, len);
        at += len;
    }
    return (size_t)(at - p);
}

size_t net_response_feed(struct net_response *r, const char *p, size_t n)
{
    size_t used = 0;

    while (used < n && r->part != NET_PART_WHOLE && r->part != NET_PART_BROKEN) {
        if (r->part == NET_PART_CHUNKS) {
            used += take_chunks(r, p + used, n - used);
        } else if (r->part == NET_PART_LENGTH) {
            used += take_counted(r, p + used, n - used);
        } else if (r->part == NET_PART_TO_CLOSE) {
            take_body(r, p + used, n - used);
            used = n;
        } else {
            used += take_head(r, p + used, n - used);
        }
    }
    return used;
}

void net_response_close(struct net_response *r)
{
    if (r->part == NET_PART_TO_CLOSE) {
        net_sse_end(&r->sse);
        r->part = NET_PART_WHOLE;
    }
    r->keep_alive = false;
}
