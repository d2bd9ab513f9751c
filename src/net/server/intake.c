/* intake.c - see intake.h. A request that comes in one piece is read where it
 * lies; only one whose body is still on its way is copied. */
#include "net/server/intake.h"

enum {
    BAD_REQUEST = 400,
    BODY_TOO_LARGE = 413,
    TARGET_TOO_LONG = 414,
    FIELDS_TOO_LARGE = 431,
    NO_ROOM = 503,
    FIRST_BODY = 4096,    /* bytes kept for a body of unknown length */
    TRUSTED_BODY = 65536, /* a larger one gets its memory as it comes */
    LARGE_BODY = 1 << 20, /* bytes that are not freed at once */
};

struct net_partial {
    struct net_traits is;
    bool chunked;
    struct net_chunks chunks;
    size_t want; /* length of the body, unless chunked */
    char *body;  /* owned */
    size_t len, cap;
    struct net_request r; /* its texts lie behind the header fields */
    struct net_header header[];
};

/* ---- bodies on their way ------------------------------------------------- */

struct net_waste { /* at the beginning of a body that is to be freed */
    struct net_waste *next;
    size_t cap;
};

static void body_free(char *body, size_t cap, struct net_limits *l)
{
    struct net_waste *w = (struct net_waste *)(void *)body;

    if (body && cap >= LARGE_BODY) {
        *w = (struct net_waste){l->waste, cap};
        l->waste = w;
        return;
    }
    if (body)
        l->held_bytes -= cap;
    free(body);
}

bool net_intake_sweep(struct net_limits *l, size_t bytes)
{
    while (l->waste && bytes > 0) {
        struct net_waste *w = l->waste, *rest = NULL;
        size_t cap = w->cap, cut = bytes < cap ? bytes : cap;

        l->waste = w->next;
        if (cut < cap) /* its end goes back to the system */
            rest = realloc(w, cap - cut);
        if (!rest) {
            free(w);
            cut = cap;
        }
        l->held_bytes -= cut;
        bytes -= cut < bytes ? cut : bytes;
        if (rest)
            body_free((char *)rest, cap - cut, l);
    }
    return l->waste;
}

static void partial_free(struct net_partial *q, struct net_limits *l)
{
    if (!q)
        return;
    body_free(q->body, q->cap, l);
    free(q);
}

static const char *moved(const char *p, const char *from, size_t len, const char *to)
{
    return p >= from && p < from + len ? to + (p - from) : p;
}

/* A copy of the head, whose text begins at `text`. NULL: out of memory. */
static struct net_partial *partial_new(const struct net_head *h, const char *text)
{
    size_t len = h->r.head_len, fields = h->r.n_headers * sizeof(h->header[0]);
    struct net_partial *q = malloc(sizeof(*q) + fields + len);
    char *to;

    if (!q)
        return NULL;
    to = (char *)(q->header + h->r.n_headers);
    memcpy(to, text, len);
    *q = (struct net_partial){
        .is = h->is, .chunked = h->chunked, .want = (size_t)h->body_len, .r = h->r};
    q->r.header = q->header;
    q->r.method = moved(h->r.method, text, len, to);
    q->r.path = moved(h->r.path, text, len, to);
    q->r.query = moved(h->r.query, text, len, to);
    for (size_t i = 0; i < h->r.n_headers; i++)
        q->header[i] = (struct net_header){
            .name = moved(h->header[i].name, text, len, to),
            .value = moved(h->header[i].value, text, len, to),
        };
    return q;
}

/* Room for at least one more byte of body and its NUL; `more` are at hand. */
static bool partial_grow(struct net_partial *q, struct net_limits *l, size_t more)
{
    size_t need = q->len + (more > 0 ? more : 1) + 1, cap = q->cap * 2;
    char *body;

    if (need <= q->cap)
        return true;
    if (!q->chunked && q->want < TRUSTED_BODY)
        cap = q->want + 1;
    cap = cap < FIRST_BODY ? FIRST_BODY : cap;
    if (!q->chunked && cap > q->want + 1)
        cap = q->want + 1;
    cap = cap < need ? need : cap;
    if (l->held_bytes - q->cap + cap > l->max_held_bytes)
        return false;
    body = realloc(q->body, cap);
    if (!body)
        return false;
    l->held_bytes += cap - q->cap;
    q->body = body;
    q->cap = cap;
    return true;
}

static int partial_add(struct net_partial *q, struct net_limits *l, const char *bytes,
                       size_t n)
{
    if (n > l->max_body_bytes - q->len)
        return BODY_TOO_LARGE;
    if (!partial_grow(q, l, n))
        return NO_ROOM;
    memcpy(q->body + q->len, bytes, n);
    q->len += n;
    return 0;
}

static enum net_step give_partial(struct net_partial *q, struct net_head *h,
                                  struct net_request *r)
{
    if (q->body)
        q->body[q->len] = '\0';
    h->is = q->is;
    h->under_nul = NULL;
    *r = q->r;
    r->body = q->body ? q->body : "";
    r->body_len = q->len;
    return NET_REQUEST;
}

/* Chunks up to the end of the bytes or of the body. */
static int add_chunks(struct net_partial *q, struct net_limits *l, const char *bytes,
                      size_t len, size_t *used)
{
    const char *p = bytes, *end = bytes + len;
    int status = 0;

    while (!status && p < end) {
        size_t n;

        status = net_chunks_read(&q->chunks, l, &p, end, &n);
        if (!status && n > 0)
            status = partial_add(q, l, p, n);
        p += n;
    }
    *used = (size_t)(p - bytes);
    return status;
}

static enum net_step read_body(struct net_intake *in, struct net_limits *l,
                               const char *bytes, size_t len, size_t *used,
                               struct net_head *h, struct net_request *r, int *status)
{
    struct net_partial *q = in->partial;

    if (q->chunked) {
        int end = add_chunks(q, l, bytes, len, used);

        *status = end == NET_CHUNKS_END ? 0 : end;
        if (end == NET_CHUNKS_END)
            return give_partial(q, h, r);
    } else {
        *used = len < q->want - q->len ? len : q->want - q->len;
        *status = partial_add(q, l, bytes, *used);
        if (*status == 0 && q->len == q->want)
            return give_partial(q, h, r);
    }
    return *status ? NET_REFUSE : NET_MORE;
}

char *net_intake_room(struct net_intake *in, struct net_limits *l, size_t *room)
{
    struct net_partial *q = in->partial;

    if (!q || q->chunked || !partial_grow(q, l, 0))
        return NULL;
    *room = q->cap - 1 - q->len;
    return q->body + q->len;
}

enum net_step net_intake_took(struct net_intake *in, size_t n, struct net_head *h,
                              struct net_request *r)
{
    struct net_partial *q = in->partial;

    q->len += n;
    return q->len == q->want ? give_partial(q, h, r) : NET_MORE;
}

/* ---- heads ----------------------------------------------------------- */

/* The request as it lies in the bytes it came in. */
static enum net_step give_in_place(struct net_head *h, char *text,
                                   struct net_request *r)
{
    size_t len = (size_t)h->body_len;
    char *body = text + h->r.head_len;

    *r = h->r;
    r->body = len > 0 ? body : "";
    r->body_len = len;
    if (len > 0) {
        h->under_nul = body + len;
        h->under = *h->under_nul;
        *h->under_nul = '\0';
    }
    return NET_REQUEST;
}

enum net_step net_intake_read(struct net_intake *in, struct net_limits *l, char *bytes,
                              size_t len, size_t *used, struct net_head *h,
                              struct net_request *r, int *status)
{
    size_t skip = 0, most = l->max_header_bytes, body_used = 0;
    enum net_step step;
    ptrdiff_t end;

    if (in->partial)
        return read_body(in, l, bytes, len, used, h, r, status);
    while (in->line == 0 && len - skip >= 2 && memcmp(bytes + skip, "\r\n", 2) == 0)
        skip += 2; /* some clients end a body with a line end too many */
    bytes += skip;
    len -= skip;
    *used = skip;
    end = len > 1 && bytes[0] == '\r'
              ? -1
              : net_head_end(bytes, len < most ? len : most, &in->line);
    *status = 0;
    if (end < 0)
        *status = BAD_REQUEST;
    else if (end == 0 && len >= most)
        *status = in->line == 0 ? TARGET_TOO_LONG : FIELDS_TOO_LARGE;
    if (*status || end == 0)
        return *status ? NET_REFUSE : NET_MORE;
    in->line = 0;
    *status = net_head_parse(h, bytes, (size_t)end);
    if (*status == 0 && h->body_len > l->max_body_bytes)
        *status = BODY_TOO_LARGE;
    if (*status)
        return NET_REFUSE;
    *used += (size_t)end;
    len -= (size_t)end;
    if (!h->chunked && h->body_len <= len) {
        *used += (size_t)h->body_len;
        return give_in_place(h, bytes, r);
    }
    in->partial = partial_new(h, bytes);
    *status = in->partial ? 0 : NO_ROOM;
    if (!in->partial)
        return NET_REFUSE;
    in->continue_due = h->expects_continue && len == 0;
    step = read_body(in, l, bytes + end, len, &body_used, h, r, status);
    *used += body_used;
    return step;
}

void net_intake_done(struct net_intake *in, struct net_limits *l, struct net_head *h)
{
    if (h->under_nul)
        *h->under_nul = h->under;
    h->under_nul = NULL;
    partial_free(in->partial, l);
    in->partial = NULL;
}

int net_intake_hold(struct net_intake *in, const char *bytes, size_t len)
{
    struct vt_err err;

    in->n_held = 0;
    if (len == 0) { /* a connection without business holds nothing */
        free(in->held);
        in->held = NULL;
        in->held_cap = 0;
        return VT_OK;
    }
    if (vt_grow(&in->held, &in->held_cap, len, 1, &err) != VT_OK)
        return VT_ENOMEM;
    memcpy(in->held, bytes, len);
    in->n_held = len;
    return VT_OK;
}

char *net_intake_take_body(struct net_intake *in, struct net_limits *l,
                           const struct net_request *r)
{
    struct net_partial *q = in->partial;
    char *body;

    if (q && q->body) {
        body = q->body;
        l->held_bytes -= q->cap;
        q->body = NULL;
        return body;
    }
    body = malloc(r->body_len + 1);
    if (body)
        memcpy(body, r->body, r->body_len + 1);
    return body;
}

void net_intake_free(struct net_intake *in, struct net_limits *l)
{
    partial_free(in->partial, l);
    free(in->held);
    *in = (struct net_intake){0};
}
