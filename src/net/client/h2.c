/* h2.c - the frames of one call after another on an HTTP/2 connection, sans I/O. */
#include "net/client/h2.h"

#include <string.h>

enum {
    FRAME_HEAD = 9,
    MAX_FRAME = 16384, /* that we take, and that all peers do */
    MAX_BLOCK = 1 << 20,
    DEFAULT_WINDOW = 65535,
    GRPC_HEAD = 5,
};
enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION
};
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4, PADDED = 8, HAS_PRIORITY = 32 };
enum { S_TABLE_SIZE = 1, S_PUSH = 2, S_WINDOW = 4, S_FRAME = 5 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* ---- writing ------------------------------------------------------------------- */

static void put_u32(struct vt_buf *b, uint32_t v)
{
    const char bytes[] = {(char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v};

    vt_buf_add(b, bytes, sizeof(bytes));
}

static void put_frame(struct vt_buf *b, int type, int flags, uint32_t stream,
                      const void *body, size_t len)
{
    const char head[] = {(char)(len >> 16), (char)(len >> 8), (char)len, (char)type,
                         (char)flags};

    vt_buf_add(b, head, sizeof(head));
    put_u32(b, stream);
    vt_buf_add(b, body, len);
}

static void put_window(struct h2 *h, uint32_t stream, uint32_t bytes)
{
    const char body[] = {(char)(bytes >> 24), (char)(bytes >> 16), (char)(bytes >> 8),
                         (char)bytes};

    if (bytes > 0)
        put_frame(&h->out, WINDOW_UPDATE, 0, stream, body, sizeof(body));
}

/* No table of ours, so that fields stand for themselves; no pushes. */
static void greet(struct h2 *h)
{
    static const char settings[] = {0, S_TABLE_SIZE, 0, 0, 0, 0, 0, S_PUSH, 0, 0, 0, 0};

    if (h->greeted)
        return;
    vt_buf_add(&h->out, preface, sizeof(preface) - 1);
    put_frame(&h->out, SETTINGS, 0, 0, settings, sizeof(settings));
    h->greeted = true;
    h->max_frame = MAX_FRAME;
    h->window = h->first_window = DEFAULT_WINDOW;
}

/* As much of the body as the peer's windows allow. */
static void send_body(struct h2 *h)
{
    while (h->state == H2_GOING && h->sent < h->body.len) {
        int64_t may = h->window < h->stream_window ? h->window : h->stream_window;
        size_t n = h->body.len - h->sent;

        if (may <= 0)
            return;
        n = n < (size_t)may ? n : (size_t)may;
        n = n < h->max_frame ? n : h->max_frame;
        put_frame(&h->out, DATA, h->sent + n == h->body.len ? END_STREAM : 0, h->stream,
                  h->body.data + h->sent, n);
        h->sent += n;
        h->window -= (int64_t)n;
        h->stream_window -= (int64_t)n;
    }
}

void h2_begin(struct h2 *h, const struct net_url *url, const struct net_grpc_call *c)
{
    struct vt_buf fields = {0};

    greet(h);
    h->stream = h->stream == 0 ? 1 : h->stream + 2;
    h->stream_window = h->first_window;
    h->state = H2_GOING;
    h->http_status = h->grpc_status = -1;
    h->message[0] = '\0';
    h->sent = 0;
    vt_buf_clear(&h->body);
    vt_buf_char(&h->body, 0); /* not compressed */
    put_u32(&h->body, (uint32_t)c->len);
    vt_buf_add(&h->body, c->body, c->len);
    h2_field_put(&fields, ":method", "POST");
    h2_field_put(&fields, ":scheme", url->tls ? "https" : "http");
    h2_field_put(&fields, ":path", c->path);
    h2_field_put(&fields, ":authority", url->authority);
    h2_field_put(&fields, "te", "trailers");
    h2_field_put(&fields, "content-type", "application/grpc");
    for (size_t i = 0; i < c->n_headers; i++)
        h2_field_put(&fields, c->header[i].name, c->header[i].value);
    if (fields.failed || h->body.failed || fields.len > MAX_FRAME)
        h->state = H2_BROKEN;
    else
        put_frame(&h->out, HEADERS, END_HEADERS, h->stream, fields.data, fields.len);
    vt_buf_free(&fields);
    send_body(h);
}

/* ---- reading --------------------------------------------------------------------- */

struct frame {
    int type, flags;
    uint32_t stream;
    const uint8_t *body;
    size_t len;
};

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void break_off(struct h2 *h, const char *why)
{
    h->state = H2_BROKEN;
    (void)snprintf(h->message, sizeof(h->message), "%s", why);
}

static void take_field(void *user, const char *name, const char *value)
{
    struct h2 *h = user;
    uint64_t number = 0;
    bool is_number = vt_parse_u64(value, strlen(value), &number) && number < 1000;

    if (strcmp(name, ":status") == 0)
        h->http_status = is_number ? (int)number : 0;
    else if (strcmp(name, "grpc-status") == 0)
        h->grpc_status = is_number ? (int)number : 2;
    else if (strcmp(name, "grpc-message") == 0)
        (void)snprintf(h->message, sizeof(h->message), "%s", value);
}

static void end_block(struct h2 *h)
{
    if (!h2_fields_get(h->block.data, h->block.len, take_field, h))
        break_off(h, "malformed header fields");
    else if (h->ends_stream)
        h->state = H2_DONE;
    vt_buf_clear(&h->block);
}

/* Without padding, and of HEADERS without a priority; false: it is malformed. */
static bool unpad(struct frame *f)
{
    size_t pad = 0;

    if (f->flags & PADDED) {
        if (f->len == 0)
            return false;
        pad = f->body[0];
        f->body++;
        f->len--;
    }
    if (f->type == HEADERS && (f->flags & HAS_PRIORITY)) {
        if (f->len < 5)
            return false;
        f->body += 5;
        f->len -= 5;
    }
    if (pad > f->len)
        return false;
    f->len -= pad;
    return true;
}

static void take_headers(struct h2 *h, struct frame *f)
{
    if (f->type == HEADERS && !unpad(f)) {
        break_off(h, "malformed HEADERS");
        return;
    }
    if (f->type == HEADERS)
        h->ends_stream = f->flags & END_STREAM;
    vt_buf_add(&h->block, f->body, f->len);
    if (h->block.failed || h->block.len > MAX_BLOCK)
        break_off(h, "header fields without end");
    else if (f->flags & END_HEADERS)
        end_block(h);
}

static void take_settings(struct h2 *h, const struct frame *f)
{
    if (f->flags & ACK)
        return;
    for (size_t i = 0; i + 6 <= f->len; i += 6) {
        uint32_t id = (uint32_t)f->body[i] << 8 | f->body[i + 1],
                 v = get_u32(f->body + i + 2);

        if (id == S_WINDOW) { /* counts for the stream that is open, too */
            h->stream_window += (int64_t)v - h->first_window;
            h->first_window = v;
        } else if (id == S_FRAME && v >= MAX_FRAME && v < 1U << 24) {
            h->max_frame = v;
        }
    }
    put_frame(&h->out, SETTINGS, ACK, 0, NULL, 0);
}

/* What is said of the call's own stream, or of the connection. */
static void take_own(struct h2 *h, struct frame *f)
{
    switch (f->type) {
    case DATA: /* an answer has nothing that we want, but its bytes count */
        put_window(h, 0, (uint32_t)f->len);
        if (f->flags & END_STREAM)
            h->state = H2_DONE;
        else
            put_window(h, h->stream, (uint32_t)f->len);
        break;
    case HEADERS:
    case CONTINUATION:
        take_headers(h, f);
        break;
    case RST_STREAM:
        /* With NO_ERROR after an answer: it did not want the rest. */
        if (h->grpc_status < 0)
            break_off(h, "the peer reset the stream");
        else
            h->state = H2_DONE;
        break;
    case WINDOW_UPDATE:
        if (f->len == 4)
            h->stream_window += get_u32(f->body) & 0x7fffffff;
        break;
    default:
        break;
    }
}

static void take_frame(struct h2 *h, struct frame *f)
{
    if (f->type == SETTINGS)
        take_settings(h, f);
    else if (f->type == PING && !(f->flags & ACK) && f->len == 8)
        put_frame(&h->out, PING, ACK, 0, f->body, f->len);
    else if (f->type == GOAWAY && f->len >= 8) {
        h->leaving = true;
        if ((get_u32(f->body) & 0x7fffffff) < h->stream && h->state == H2_GOING)
            break_off(h, "the peer is leaving");
    } else if (f->type == WINDOW_UPDATE && f->stream == 0 && f->len == 4)
        h->window += get_u32(f->body) & 0x7fffffff;
    else if (f->stream == h->stream && h->state == H2_GOING)
        take_own(h, f);
    else if (f->type == DATA)
        put_window(h, 0, (uint32_t)f->len);
}

void h2_feed(struct h2 *h, const void *bytes, size_t len)
{
    size_t used = 0;

    vt_buf_add(&h->in, bytes, len);
    if (h->in.failed)
        break_off(h, "out of memory");
    while (h->state != H2_BROKEN && h->in.len - used >= FRAME_HEAD) {
        const uint8_t *p = (const uint8_t *)h->in.data + used;
        struct frame f = {.type = p[3],
                          .flags = p[4],
                          .stream = get_u32(p + 5) & 0x7fffffff,
                          .body = p + FRAME_HEAD,
                          .len = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2]};

        if (f.len > MAX_FRAME) {
            break_off(h, "what came is no HTTP/2");
            break;
        }
        if (h->in.len - used < FRAME_HEAD + f.len)
            break;
        used += FRAME_HEAD + f.len;
        take_frame(h, &f);
    }
    if (used > 0) {
        h->in.len -= used;
        memmove(h->in.data, h->in.data + used, h->in.len + 1);
    }
    send_body(h);
    if (h->out.failed)
        break_off(h, "out of memory");
}

void h2_free(struct h2 *h)
{
    vt_buf_free(&h->in);
    vt_buf_free(&h->out);
    vt_buf_free(&h->block);
    vt_buf_free(&h->body);
    *h = (struct h2){0};
}
