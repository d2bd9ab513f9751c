/* fuzz_http.c - the bytes of a connection are requests or refused, and the same however
 * they are cut into pieces. */
#include "net/server/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct ear {
    struct net_intake in;
    struct net_limits limits;
    struct net_head head;
    uint64_t heard; /* a hash of all requests */
    size_t n_requests;
    int status; /* 0: not refused */
};

static void hash(struct ear *e, const void *bytes, size_t len)
{
    e->heard = vt_hash_bytes(bytes, len, vt_hash2(e->heard, len));
}

static void hash_text(struct ear *e, const char *text)
{
    hash(e, text, strlen(text));
}

static void note(struct ear *e, const struct net_request *r)
{
    e->n_requests++;
    if (!r->method[0] || !r->path[0] || r->body[r->body_len] != '\0' ||
        r->body_len > e->limits.max_body_bytes ||
        r->head_len > e->limits.max_header_bytes)
        abort();
    hash_text(e, r->method);
    hash_text(e, r->path);
    hash_text(e, r->query);
    for (size_t i = 0; i < r->n_headers; i++) {
        hash_text(e, r->header[i].name);
        hash_text(e, r->header[i].value);
    }
    hash(e, r->body, r->body_len);
    hash(e, &e->head.is, sizeof(e->head.is));
}

/* One step over the n bytes at `at`; returns how many are done with. */
static size_t step(struct ear *e, char *at, size_t n, bool direct, bool *wait)
{
    struct net_request r;
    size_t used = 0, room = 0;
    char *to = direct ? net_intake_room(&e->in, &e->limits, &room) : NULL;
    enum net_step s;

    if (to) {
        used = n < room ? n : room;
        memcpy(to, at, used);
        s = net_intake_took(&e->in, used, &e->head, &r);
    } else {
        s = net_intake_read(&e->in, &e->limits, at, n, &used, &e->head, &r, &e->status);
    }
    if (used > n || (s == NET_REFUSE) != (e->status != 0))
        abort();
    if (s == NET_REQUEST) {
        note(e, &r);
        net_intake_done(&e->in, &e->limits, &e->head);
    }
    *wait = s == NET_MORE && !e->in.partial;
    return used;
}

static void feed(struct ear *e, const uint8_t *piece, size_t len, bool direct)
{
    size_t n = e->in.n_held + len;
    char *text = malloc(n + 1), *at = text; /* exact, for the address sanitizer */
    bool wait = false;

    if (!text)
        abort();
    if (e->in.n_held > 0)
        memcpy(text, e->in.held, e->in.n_held);
    if (len > 0)
        memcpy(text + e->in.n_held, piece, len);
    while (n > 0 && !e->status && !wait) {
        size_t used = step(e, at, n, direct, &wait);

        at += used;
        n -= used;
    }
    if (net_intake_hold(&e->in, at, e->status ? 0 : n) != VT_OK)
        abort();
    free(text);
}

static void begin(struct ear *e)
{
    memset(e, 0, sizeof(*e));
    e->limits = (struct net_limits){
        .max_header_bytes = 512, .max_body_bytes = 256, .max_held_bytes = 1 << 20};
}

static void end(struct ear *e)
{
    net_intake_free(&e->in, &e->limits);
    if (e->limits.held_bytes != 0)
        abort();
}

/* The first byte says how the rest is cut. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ear whole, cut;
    uint64_t how = size > 0 ? data[0] : 0;
    bool unfinished;

    begin(&whole);
    begin(&cut);
    if (size > 1)
        feed(&whole, data + 1, size - 1, false);
    for (size_t i = 1, n; i < size && !cut.status; i += n) {
        how = vt_mix64(how);
        n = 1 + how % (how & 256 ? 3 : 64);
        n = n < size - i ? n : size - i;
        feed(&cut, data + i, n, (how & 512) != 0);
    }
    unfinished = whole.in.partial != NULL;
    if (whole.heard != cut.heard || whole.n_requests != cut.n_requests ||
        whole.status != cut.status ||
        (!whole.status &&
         (whole.in.n_held != cut.in.n_held || unfinished != (cut.in.partial != NULL))))
        abort();
    end(&whole);
    end(&cut);
    return 0;
}
