/* head.c - the head of a request: request line, header fields, and looking them up. */
#include <strings.h>

#include "net/server/intake.h"

enum { BAD_REQUEST = 400, FIELDS_TOO_LARGE = 431, NO_SUCH_CODING = 501, VERSION = 505 };

/* What a byte may stand in: 1 a token, 2 a field value, 4 a request target. */
enum { IN_TOKEN = 1, IN_VALUE = 2, IN_TARGET = 4 };

static const uint8_t byte_class[256] = {
    ['\t'] = 2, [' '] = 2,  ['!'] = 7, ['"'] = 6, ['#'] = 3, ['$'] = 7,  ['%'] = 7,
    ['&'] = 7,  ['\''] = 7, ['('] = 6, [')'] = 6, ['*'] = 7, ['+'] = 7,  [','] = 6,
    ['-'] = 7,  ['.'] = 7,  ['/'] = 6, ['0'] = 7, ['1'] = 7, ['2'] = 7,  ['3'] = 7,
    ['4'] = 7,  ['5'] = 7,  ['6'] = 7, ['7'] = 7, ['8'] = 7, ['9'] = 7,  [':'] = 6,
    [';'] = 6,  ['<'] = 6,  ['='] = 6, ['>'] = 6, ['?'] = 6, ['@'] = 6,  ['A'] = 7,
    ['B'] = 7,  ['C'] = 7,  ['D'] = 7, ['E'] = 7, ['F'] = 7, ['G'] = 7,  ['H'] = 7,
    ['I'] = 7,  ['J'] = 7,  ['K'] = 7, ['L'] = 7, ['M'] = 7, ['N'] = 7,  ['O'] = 7,
    ['P'] = 7,  ['Q'] = 7,  ['R'] = 7, ['S'] = 7, ['T'] = 7, ['U'] = 7,  ['V'] = 7,
    ['W'] = 7,  ['X'] = 7,  ['Y'] = 7, ['Z'] = 7, ['['] = 6, ['\\'] = 6, [']'] = 6,
    ['^'] = 7,  ['_'] = 7,  ['`'] = 7, ['a'] = 7, ['b'] = 7, ['c'] = 7,  ['d'] = 7,
    ['e'] = 7,  ['f'] = 7,  ['g'] = 7, ['h'] = 7, ['i'] = 7, ['j'] = 7,  ['k'] = 7,
    ['l'] = 7,  ['m'] = 7,  ['n'] = 7, ['o'] = 7, ['p'] = 7, ['q'] = 7,  ['r'] = 7,
    ['s'] = 7,  ['t'] = 7,  ['u'] = 7, ['v'] = 7, ['w'] = 7, ['x'] = 7,  ['y'] = 7,
    ['z'] = 7,  ['{'] = 6,  ['|'] = 7, ['}'] = 6, ['~'] = 7,
};

static bool may(char c, int where)
{
    unsigned char u = (unsigned char)c;

    return (byte_class[u] & where) != 0 || (u >= 0x80 && where == IN_VALUE);
}

ptrdiff_t net_head_end(const char *text, size_t len, size_t *line)
{
    if (len > 0 && text[0] != '\r' && !may(text[0], IN_TOKEN))
        return -1; /* TLS on a plain port must not wait for a line end */
    while (*line < len) {
        const char *lf = memchr(text + *line, '\n', len - *line);
        size_t at;

        if (!lf)
            return 0;
        at = (size_t)(lf - text);
        if (at == *line || lf[-1] != '\r')
            return -1;
        if (at == *line + 1)
            return (ptrdiff_t)at + 1;
        *line = at + 1;
    }
    return 0;
}

/* In place; *len becomes the new length. False: it holds a NUL. Escapes that are none
 * stay as they are, as Python's unquote() leaves them. */
static bool percent_decode(char *text, size_t *len)
{
    size_t n = 0;

    for (size_t i = 0; i < *len; i++, n++) {
        int high = text[i] == '%' && *len - i > 2 ? net_hex_digit(text[i + 1]) : -1;
        int low = high >= 0 ? net_hex_digit(text[i + 2]) : -1;

        text[n] = low >= 0 ? (char)(high * 16 + low) : text[i];
        if (low >= 0)
            i += 2;
        if (text[n] == '\0')
            return false;
    }
    *len = n;
    return true;
}

/* Past "http://authority" of an absolute target, which proxies send; NULL: not one. */
static char *after_authority(char *target, const char *end)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < VT_COUNT(schemes); i++) {
        size_t n = strlen(schemes[i]);
        char *p = target + n;

        if ((size_t)(end - target) <= n || strncasecmp(target, schemes[i], n) != 0)
            continue;
        while (p < end && *p != '/' && *p != '?')
            p++;
        return p > target + n ? p : NULL;
    }
    return NULL;
}

static int parse_target(struct net_head *h, char *target, char *end)
{
    char *query;
    size_t len;

    for (const char *p = target; p < end; p++)
        if (!may(*p, IN_TARGET))
            return BAD_REQUEST;
    if (target < end && *target != '/' && !(*target == '*' && end - target == 1)) {
        target = after_authority(target, end);
        if (!target)
            return BAD_REQUEST;
    }
    query = memchr(target, '?', (size_t)(end - target));
    len = (size_t)((query ? query : end) - target);
    *end = '\0';
    h->r.query = query ? query + 1 : "";
    if (!percent_decode(target, &len))
        return BAD_REQUEST;
    h->r.path = len > 0 ? target : "/";
    target[len] = '\0';
    return 0;
}

static int parse_request_line(struct net_head *h, char *line, char *end)
{
    char *p = line, *target;
    const char *version;

    while (p < end && may(*p, IN_TOKEN))
        p++;
    if (p == line || p == end || *p != ' ')
        return BAD_REQUEST;
    *p = '\0';
    h->r.method = line;
    h->is.is_head = strcmp(line, "HEAD") == 0;
    target = p + 1;
    p = memchr(target, ' ', (size_t)(end - target));
    if (!p || p == target)
        return BAD_REQUEST;
    version = p + 1;
    if (end - version != 8 || memcmp(version, "HTTP/", 5) != 0 || version[5] < '0' ||
        version[5] > '9' || version[6] != '.' || version[7] < '0' || version[7] > '9')
        return BAD_REQUEST;
    if (version[5] != '1' || version[7] > '1')
        return VERSION;
    h->is.http_1_0 = version[7] == '0';
    h->is.keep_alive = !h->is.http_1_0; /* as uvicorn: an old client never keeps it */
    return parse_target(h, target, p);
}

static int parse_length(struct net_head *h, const char *value, size_t len)
{
    /* A length beyond 19 digits is no length of anything; equal ones sent twice are
     * refused too: nobody does it honestly. */
    if (h->has_length || len == 0 || len > 18)
        return BAD_REQUEST;
    h->has_length = true;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9')
            return BAD_REQUEST;
        h->body_len = h->body_len * 10 + (uint64_t)(value[i] - '0');
    }
    return 0;
}

/* The fields that say where a request ends and what becomes of its connection. */
static int note_field(struct net_head *h, const char *name, size_t name_len,
                      const char *value, size_t len)
{
    switch (name_len) {
    case 4:
        if (memcmp(name, "host", 4) != 0)
            return 0;
        if (h->has_host)
            return BAD_REQUEST;
        h->has_host = true;
        return 0;
    case 6:
        if (memcmp(name, "expect", 6) == 0)
            h->expects_continue = !h->is.http_1_0 && !strcasecmp(value, "100-continue");
        else if (memcmp(name, "origin", 6) == 0)
            h->is.has_origin = true;
        return 0;
    case 10:
        while (memcmp(name, "connection", 10) == 0 && *value) {
            size_t n = strcspn(value, ", \t");

            if (n == 5 && strncasecmp(value, "close", 5) == 0)
                h->is.keep_alive = false;
            value += n;
            value += strspn(value, ", \t");
        }
        return 0;
    case 14:
        return memcmp(name, "content-length", 14) ? 0 : parse_length(h, value, len);
    case 17:
        if (memcmp(name, "transfer-encoding", 17) != 0)
            return 0;
        if (h->chunked || h->is.http_1_0)
            return BAD_REQUEST;
        h->chunked = true;
        return strcasecmp(value, "chunked") == 0 ? 0 : NO_SUCH_CODING;
    default:
        return 0;
    }
}

static int parse_field(struct net_head *h, char *line, char *end)
{
    char *p = line, *value;
    size_t name_len;

    for (; p < end && may(*p, IN_TOKEN); p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p | 32);
    name_len = (size_t)(p - line);
    if (name_len == 0 || p == end || *p != ':') /* folded, or space before the colon */
        return BAD_REQUEST;
    *p++ = '\0';
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    value = p;
    while (p < end && may(*p, IN_VALUE))
        p++;
    if (p < end)
        return BAD_REQUEST;
    *end = '\0';
    if (h->r.n_headers == NET_MAX_HEADERS)
        return FIELDS_TOO_LARGE;
    h->header[h->r.n_headers++] = (struct net_header){line, value};
    return note_field(h, line, name_len, value, (size_t)(end - value));
}

int net_head_parse(struct net_head *h, char *text, size_t len)
{
    char *end = text + len - 2; /* of the last field; an empty line follows */
    char *line = text, *lf = memchr(text, '\n', len);
    int status;

    h->r = (struct net_request){.header = h->header, .head_len = len};
    h->body_len = 0;
    h->has_length = h->chunked = h->has_host = false;
    h->expects_continue = h->is.has_origin = false;
    h->under_nul = NULL;
    status = parse_request_line(h, text, lf - 1);
    for (line = lf + 1; !status && line < end; line = lf + 1) {
        lf = memchr(line, '\n', (size_t)(end - line));
        status = parse_field(h, line, lf - 1);
    }
    if (!status && h->chunked && h->has_length)
        status = BAD_REQUEST;
    if (!status && !h->has_host && !h->is.http_1_0)
        status = BAD_REQUEST;
    return status;
}

/* ---- looking things up ----------------------------------------------- */

const char *net_header_value(const struct net_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcmp(r->header[i].name, name) == 0)
            return r->header[i].value;
    return NULL;
}

/* Decodes [from, from + len) into out; false: too long, or a NUL is in it. */
static bool decode_part(const char *from, size_t len, char *out, size_t cap)
{
    if (len >= cap)
        return false;
    for (size_t i = 0; i < len; i++)
        out[i] = from[i] == '+' ? ' ' : from[i];
    if (!percent_decode(out, &len))
        return false;
    out[len] = '\0';
    return true;
}

bool net_query_value(const char *query, const char *key, char *out, size_t cap)
{
    while (*query) {
        size_t pair = strcspn(query, "&"), name = strcspn(query, "=&");
        size_t from = name < pair ? name + 1 : pair;
        char text[64];

        if (decode_part(query, name, text, sizeof(text)) && strcmp(text, key) == 0)
            return decode_part(query + from, pair - from, out, cap);
        query += pair;
        query += *query == '&';
    }
    return false;
}
