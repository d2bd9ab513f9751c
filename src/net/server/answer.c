/* answer.c - responses as uvicorn words them: same fields, same order. */
#include <inttypes.h>
#include <sys/socket.h>

#include "net/server/server.h"

#define PUT(to, literal) put_bytes((to), "" literal, sizeof(literal) - 1)

enum { OWN_FIELDS = 320 }; /* no more bytes than all that is not the caller's */

static char *put_bytes(char *to, const char *bytes, size_t n)
{
    memcpy(to, bytes, n);
    return to + n;
}

/* The phrases of Python 3.11; of a status without one uvicorn sends none. */
static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } rows[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Request Entity Too Large"},
        {414, "Request-URI Too Long"},
        {415, "Unsupported Media Type"},
        {422, "Unprocessable Entity"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        if (rows[i].status == status)
            return rows[i].reason;
    return "";
}

/* Once a second. Written by hand: strftime() would ask the locale. */
void net_date_refresh(struct net *n)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = time(NULL);
    struct tm t;

    if (now == n->date_s || !gmtime_r(&now, &t))
        return;
    n->date_s = now;
    n->date_len = (size_t)snprintf(n->date, sizeof(n->date),
                                   "date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n"
                                   "server: uvicorn\r\n",
                                   days[t.tm_wday % 7], t.tm_mday % 100,
                                   months[t.tm_mon % 12], (t.tm_year + 1900) % 10000,
                                   t.tm_hour % 100, t.tm_min % 100, t.tm_sec % 100);
    n->ok_len =
        (size_t)snprintf(n->ok, sizeof(n->ok), "HTTP/1.1 200 OK\r\n%s", n->date);
}

static char *put_status(char *to, const struct net *n, int status)
{
    const char *reason;

    if (status == 200)
        return put_bytes(to, n->ok, n->ok_len);
    reason = reason_of(status);
    to = PUT(to, "HTTP/1.1 ");
    to = vt_u64_at(to, (uint64_t)status);
    to = PUT(to, " ");
    to = put_bytes(to, reason, strlen(reason));
    to = PUT(to, "\r\n");
    return put_bytes(to, n->date, n->date_len);
}

static char *put_field(char *to, const char *name, const char *value)
{
    to = put_bytes(to, name, strlen(name));
    to = PUT(to, ": ");
    to = put_bytes(to, value, strlen(value));
    return PUT(to, "\r\n");
}

static size_t fields_size(const struct net_conn *c, const struct net_reply *r)
{
    size_t n = OWN_FIELDS + (r->type ? strlen(r->type) : 0);

    for (size_t i = 0; i < r->n_headers; i++)
        n += strlen(r->header[i].name) + strlen(r->header[i].value) + 4;
    return n + (c->request_id ? strlen(c->request_id) : 0);
}

enum length { WITH_LENGTH, WITHOUT_LENGTH };

static char *put_head(char *to, const struct net_conn *c, const struct net_reply *r,
                      enum length length)
{
    to = put_status(to, c->net, r->status);
    for (size_t i = 0; i < r->n_headers; i++)
        /* A caller may hand on what a peer has sent: it must not begin a line. */
        if (!r->header[i].value[strcspn(r->header[i].value, "\r\n")])
            to = put_field(to, r->header[i].name, r->header[i].value);
    if (length == WITH_LENGTH) {
        to = PUT(to, "content-length: ");
        to = vt_u64_at(to, r->len);
        to = PUT(to, "\r\n");
    }
    if (r->type)
        to = put_field(to, "content-type", r->type);
    if (!r->bare && c->is.has_origin)
        to = PUT(to, "access-control-allow-origin: *\r\n");
    if (!r->bare)
        to = PUT(to, "vary: Origin\r\n");
    if (c->request_id)
        to = put_field(to, "x-request-id", c->request_id);
    if (!c->is.keep_alive)
        to = PUT(to, "connection: close\r\n");
    return to;
}

/* The response is whole: the connection goes on or ends. */
static void finish_answer(struct net_conn *c)
{
    char byte;

    c->streaming = false;
    c->phase = c->is.keep_alive ? NET_IDLE : NET_LAST;
    net_out_wrote(c, 0); /* what follows is decided when all is sent */
    if (c->blocked)
        net_timer_set(c, NET_T_BODY);
    if (c->phase == NET_LAST)
        c->linger = /* the peer has said more than was asked for */
            c->in.n_held > 0 ||
            (c->readable && recv(c->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
    else if (c->in.n_held > 0 || c->readable)
        net_again(c);
}

static bool begin_answer(struct net_conn *c, const struct net_reply *r)
{
    if (c->phase != NET_DUE || c->streaming)
        return false;
    c->is.keep_alive = c->is.keep_alive && !r->close && !c->net->draining;
    return true;
}

void net_answer(struct net_conn *c, const struct net_reply *r)
{
    bool empty = r->status == 204 || r->status == 304;
    size_t body = empty || c->is.is_head ? 0 : r->len;
    char *from, *to;

    if (!begin_answer(c, r))
        return;
    from = net_out_room(c, fields_size(c, r) + body);
    if (from) {
        to = put_head(from, c, r, empty ? WITHOUT_LENGTH : WITH_LENGTH);
        to = PUT(to, "\r\n");
        if (body > 0)
            to = put_bytes(to, r->body, body);
        net_out_wrote(c, (size_t)(to - from));
    }
    finish_answer(c);
}

void net_stream(struct net_conn *c, const struct net_reply *r)
{
    char *from, *to;

    if (!begin_answer(c, r))
        return;
    c->streaming = true;
    from = net_out_room(c, fields_size(c, r));
    if (!from)
        return;
    to = put_head(from, c, r, WITHOUT_LENGTH);
    if (!c->is.http_1_0 && !c->is.is_head)
        to = PUT(to, "transfer-encoding: chunked\r\n");
    to = PUT(to, "\r\n");
    net_out_wrote(c, (size_t)(to - from));
}

static char *put_size(char *to, size_t v)
{
    int bits = 4;

    while (bits < 64 && v >> bits)
        bits += 4;
    for (bits -= 4; bits >= 0; bits -= 4)
        *to++ = "0123456789abcdef"[(v >> bits) & 15];
    return PUT(to, "\r\n");
}

void net_put(struct net_conn *c, const void *bytes, size_t len)
{
    size_t most = c->net->config.max_unsent_bytes;
    char *from, *to;

    if (!c->streaming || len == 0 || c->is.is_head) /* an empty chunk would end it */
        return;
    from = net_out_room(c, len + 24);
    if (!from)
        return;
    to = c->is.http_1_0 ? from : put_size(from, len);
    to = put_bytes(to, bytes, len);
    to = c->is.http_1_0 ? to : PUT(to, "\r\n");
    net_out_wrote(c, (size_t)(to - from));
    /* More than a reader may leave unread: it is given one more chance to read it. */
    if (c->len - c->from > most && !c->blocked)
        net_out_send(c);
    if (c->len - c->from > most)
        net_conn_lose(c);
}

void net_end(struct net_conn *c)
{
    char *to;

    if (!c->streaming)
        return;
    to = c->is.http_1_0 || c->is.is_head ? NULL : net_out_room(c, 8);
    if (to) {
        PUT(to, "0\r\n\r\n");
        net_out_wrote(c, 5);
    }
    finish_answer(c);
}

void net_answer_plainly(struct net_conn *c, int status)
{
    const char *text =
        status == 400 ? "Invalid HTTP request received." : reason_of(status);
    size_t len = strlen(text);
    char *from = net_out_room(c, OWN_FIELDS + len), *to;

    if (!from)
        return;
    to = put_status(from, c->net, status);
    to = PUT(to, "content-type: text/plain; charset=utf-8\r\ncontent-length: ");
    to = vt_u64_at(to, len);
    to = PUT(to, "\r\nconnection: close\r\n\r\n");
    to = put_bytes(to, text, len);
    net_out_wrote(c, (size_t)(to - from));
}

/* ---- ids of requests --------------------------------------------------- */

/* Python's uuid4().hex, as far as anyone can tell. */
static void make_id(struct net *n, char out[33])
{
    uint64_t high = vt_hash2(n->id_seed, n->n_ids++);
    uint64_t low = vt_hash2(n->id_seed, n->n_ids++);

    high = (high & ~UINT64_C(0xf000)) | 0x4000;
    low = (low & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63;
    (void)snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, high, low);
}

void net_request_id(struct net_conn *c, const struct net_request *r)
{
    const char *given;
    char made[33];

    if (!c->net->config.request_ids)
        return;
    given = net_header_value(r, "x-request-id");
    if (!given)
        make_id(c->net, made);
    free(c->request_id);
    c->request_id = strdup(given ? given : made); /* out of memory: it goes without */
}

/* ---- preflight requests of browsers ------------------------------------ */

/* As Starlette answers with vLLM's defaults: every origin, method and header, no
 * credentials. */
#define METHODS "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY"

bool net_cors_preflight(struct net_conn *c, const struct net_request *r)
{
    static const char *const verdict[2][2] = {
        {"Disallowed CORS method", "Disallowed CORS method, private-network"},
        {"OK", "Disallowed CORS private-network"}};
    const char *method, *headers, *at = METHODS;
    bool allowed = false, to_private;
    struct net_header field[5] = {
        {"vary", "Origin, Access-Control-Request-Method, "
                 "Access-Control-Request-Headers, "
                 "Access-Control-Request-Private-Network"},
        {"access-control-allow-origin", "*"},
        {"access-control-allow-methods", METHODS},
        {"access-control-max-age", "600"},
    };
    struct net_reply reply = {
        .header = field,
        .n_headers = 4,
        .type = "text/plain; charset=utf-8",
        .bare = true,
    };

    if (!c->is.has_origin || strcmp(r->method, "OPTIONS") != 0)
        return false;
    method = net_header_value(r, "access-control-request-method");
    if (!method)
        return false;
    for (; *at && !allowed; at += strcspn(at, ","), at += strspn(at, ", "))
        allowed = vt_is_text(method, at, strcspn(at, ","));
    to_private = net_header_value(r, "access-control-request-private-network") != NULL;
    headers = net_header_value(r, "access-control-request-headers");
    if (headers)
        field[reply.n_headers++] =
            (struct net_header){"access-control-allow-headers", headers};
    reply.body = verdict[allowed][to_private];
    reply.len = strlen(reply.body);
    reply.status = reply.len == 2 ? 200 : 400;
    net_answer(c, &reply);
    return true;
}
