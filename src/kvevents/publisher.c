/* publisher.c - batches of events: sockets, sequence numbers, and replay. */
#include "kvevents/kvevents.h"

#include <inttypes.h>
#include <string.h>

#define DEFAULT_ENDPOINT "tcp://*:5557"

enum {
    DEFAULT_STEPS = 10000,
    QUEUED_BATCHES = 100000, /* for a subscriber that is slow */
    REPLAY_SLICE = 256,      /* batches sent again in one call */
    SEQUENCE_BYTES = 8,
};

static const uint8_t end_of_replay[SEQUENCE_BYTES] = {0xff, 0xff, 0xff, 0xff,
                                                      0xff, 0xff, 0xff, 0xff};

struct replay { /* the one being served */
    bool active;
    zmq_msg_t client; /* its identity; open while active */
    uint64_t next, end;
};

struct vt_kv_publisher {
    void *own_ctx;      /* NULL: the caller's is used */
    void *pub, *router; /* router NULL: no replay */
    char endpoint[SOCK_ADDRESS], replay_endpoint[SOCK_ADDRESS];
    char *topic;
    uint32_t dp_rank;
    struct vt_kv_batch batch;
    uint64_t sequence; /* of the next batch */
    zmq_msg_t *kept;   /* ring: batch s is at s % n_ring; NULL without replay */
    size_t n_ring;
    struct replay replay;
    struct sock_msg request;
    struct vt_kv_stats stats;
};

/* ---- endpoints -------------------------------------------------------- */

static bool starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Each data-parallel rank publishes on its own: tcp on the port as many places on, and
 * under a name of its own elsewhere. */
static int place_rank(char out[SOCK_ADDRESS], const char *endpoint, uint32_t rank,
                      struct vt_err *err)
{
    const char *colon = strrchr(endpoint, ':');
    uint64_t port = 0;
    int len;

    if (rank == 0 || (colon && strcmp(colon, ":0") == 0))
        len = snprintf(out, SOCK_ADDRESS, "%s", endpoint);
    else if (!starts_with(endpoint, "tcp://"))
        len = snprintf(out, SOCK_ADDRESS, "%s_dp%u", endpoint, rank);
    else if (!colon || !vt_parse_u64(colon + 1, strlen(colon + 1), &port) ||
             port + rank > UINT16_MAX)
        return vt_fail(err, VT_EINPUT,
                       "%s: no port that %u could be added to for this rank", endpoint,
                       rank);
    else
        len = snprintf(out, SOCK_ADDRESS, "%.*s:%" PRIu64, (int)(colon - endpoint),
                       endpoint, port + rank);
    if (len < 0 || len >= SOCK_ADDRESS)
        return vt_fail(err, VT_EINPUT, "the endpoint is too long: %.80s...", endpoint);
    return VT_OK;
}

/* A port that the system chose is told as it is. */
static int bind_to(void *sock, char endpoint[SOCK_ADDRESS], struct vt_err *err)
{
    const char *colon = strrchr(endpoint, ':');
    int rc = sock_bind(sock, endpoint, err);

    if (rc == VT_OK && (strcmp(colon, ":0") == 0 || strcmp(colon, ":*") == 0))
        rc = sock_endpoint(sock, endpoint, err);
    return rc;
}

static int open_pub(struct vt_kv_publisher *p, void *ctx, const struct vt_kv_config *c,
                    struct vt_err *err)
{
    const struct sock_options o = {.type = ZMQ_PUB};
    const char *at = p->endpoint;
    const int hwm = QUEUED_BATCHES;
    int rc = sock_open(&p->pub, ctx, &o, err);

    if (rc != VT_OK)
        return rc;
    zmq_setsockopt(p->pub, ZMQ_SNDHWM, &hwm, sizeof(hwm));
    rc = place_rank(p->endpoint,
                    c->wanted.endpoint ? c->wanted.endpoint : DEFAULT_ENDPOINT,
                    c->dp_rank, err);
    if (rc != VT_OK)
        return rc;
    if (strchr(at, '*') || strstr(at, "::") || starts_with(at, "ipc://") ||
        starts_with(at, "inproc://"))
        return bind_to(p->pub, p->endpoint, err);
    return sock_connect(p->pub, p->endpoint, err);
}

static int open_replay(struct vt_kv_publisher *p, void *ctx,
                       const struct vt_kv_config *c, struct vt_err *err)
{
    const struct sock_options o = {.type = ZMQ_ROUTER};
    const char *endpoint = c->wanted.replay_endpoint;
    int rc;

    if (!endpoint)
        return VT_OK;
    if ((rc = sock_open(&p->router, ctx, &o, err)) ||
        (rc = place_rank(p->replay_endpoint, endpoint, c->dp_rank, err)) ||
        (rc = bind_to(p->router, p->replay_endpoint, err)))
        return rc;
    p->n_ring = c->buffer_steps > 0 ? c->buffer_steps : DEFAULT_STEPS;
    p->kept = calloc(p->n_ring, sizeof(*p->kept));
    return p->kept ? VT_OK : vt_nomem(err);
}

/* ---- opening and closing ---------------------------------------------- */

int vt_kv_publisher_open(struct vt_kv_publisher **out, void *ctx,
                         const struct vt_kv_config *c, struct vt_err *err)
{
    struct vt_kv_publisher *p = calloc(1, sizeof(*p));
    int rc;

    *out = NULL;
    if (!p)
        return vt_nomem(err);
    p->dp_rank = c->dp_rank;
    p->batch.raw_hashes = c->raw_hashes;
    p->batch.vllm = c->vllm;
    p->topic = strdup(c->wanted.topic ? c->wanted.topic : "");
    rc = p->topic ? VT_OK : vt_nomem(err);
    if (rc == VT_OK && !ctx)
        rc = sock_ctx(&p->own_ctx, err);
    ctx = ctx ? ctx : p->own_ctx;
    if (rc || (rc = open_pub(p, ctx, c, err)) || (rc = open_replay(p, ctx, c, err))) {
        vt_kv_publisher_close(p);
        return vt_within(err, rc, "KV events");
    }
    *out = p;
    return VT_OK;
}

static uint64_t oldest_kept(const struct vt_kv_publisher *p)
{
    return p->sequence > p->n_ring ? p->sequence - p->n_ring : 0;
}

void vt_kv_publisher_close(struct vt_kv_publisher *p)
{
    if (!p)
        return;
    for (uint64_t s = oldest_kept(p); p->kept && s < p->sequence; s++)
        zmq_msg_close(&p->kept[s % p->n_ring]);
    if (p->replay.active)
        zmq_msg_close(&p->replay.client);
    sock_msg_free(&p->request);
    sock_close(p->pub);
    sock_close(p->router);
    if (p->own_ctx)
        (void)zmq_ctx_term(p->own_ctx);
    vt_buf_free(&p->batch.events);
    free(p->kept);
    free(p->topic);
    free(p);
}

const char *vt_kv_publisher_endpoint(const struct vt_kv_publisher *p)
{
    return p->endpoint;
}

const char *vt_kv_publisher_replay_endpoint(const struct vt_kv_publisher *p)
{
    return p->router ? p->replay_endpoint : NULL;
}

void *vt_kv_publisher_replay_socket(const struct vt_kv_publisher *p)
{
    return p->router;
}

struct vt_kv_stats vt_kv_publisher_stats(const struct vt_kv_publisher *p)
{
    return p->stats;
}

struct vt_kv_batch *vt_kv_publisher_batch(struct vt_kv_publisher *p)
{
    return &p->batch;
}

/* ---- sending ---------------------------------------------------------- */

/* [topic, sequence, batch], which a subscriber gets live or again. */
static int send_batch(const struct vt_kv_publisher *p, void *sock, uint64_t sequence,
                      zmq_msg_t *payload)
{
    uint8_t number[SEQUENCE_BYTES];
    int rc = sock_put(sock, p->topic, strlen(p->topic), true, NULL);

    for (int i = 0; i < SEQUENCE_BYTES; i++) /* big-endian */
        number[i] = (uint8_t)(sequence >> 8 * (SEQUENCE_BYTES - 1 - i));
    if (rc == VT_OK)
        rc = sock_put(sock, number, sizeof(number), true, NULL);
    return rc == VT_OK ? sock_share(sock, payload, false, NULL) : rc;
}

/* [time, events, rank] */
static int make_payload(struct vt_kv_publisher *p, double unix_s, zmq_msg_t *out,
                        struct vt_err *err)
{
    struct vt_kv_batch *batch = &p->batch;
    struct vt_buf b = {0};
    int rc = VT_OK;

    mp_put_array(&b, 3);
    mp_put_f64(&b, unix_s);
    mp_put_array(&b, batch->n_events);
    vt_buf_add(&b, batch->events.data, batch->events.len);
    mp_put_u64(&b, p->dp_rank);
    if (b.failed || batch->events.failed || zmq_msg_init_size(out, b.len) != 0)
        rc = vt_nomem(err);
    else
        memcpy(zmq_msg_data(out), b.data, b.len);
    vt_buf_clear(&batch->events);
    batch->n_events = 0;
    vt_buf_free(&b);
    return rc;
}

int vt_kv_publisher_flush(struct vt_kv_publisher *p, double unix_s, struct vt_err *err)
{
    zmq_msg_t payload;
    int rc;

    if (p->batch.n_events == 0 && !p->batch.events.failed)
        return VT_OK;
    p->stats.events += p->batch.n_events;
    rc = make_payload(p, unix_s, &payload, err);
    if (rc != VT_OK)
        return rc;
    p->stats.batches++;
    if (send_batch(p, p->pub, p->sequence, &payload) != VT_OK)
        rc = vt_fail(err, VT_EIO, "KV events: %s", zmq_strerror(zmq_errno()));
    if (p->kept) {
        zmq_msg_t *place = &p->kept[p->sequence % p->n_ring];

        if (p->sequence >= p->n_ring)
            zmq_msg_close(place);
        zmq_msg_init(place);
        zmq_msg_move(place, &payload);
    } else {
        zmq_msg_close(&payload);
    }
    p->sequence++;
    return rc;
}

/* ---- replay ----------------------------------------------------------- */

/* [client, "", first sequence]; anything else is left unanswered, as by vLLM. */
static bool begin_replay(struct vt_kv_publisher *p)
{
    struct replay *r = &p->replay;
    const uint8_t *bytes;
    size_t len;

    if (sock_recv(p->router, &p->request, NULL) != VT_OK || p->request.n == 0)
        return false;
    if (p->request.n != 3)
        return true;
    bytes = sock_data(&p->request, 2, &len);
    zmq_msg_init(&r->client);
    if (zmq_msg_copy(&r->client, &p->request.frame[0]) != 0)
        return false;
    r->active = true;
    r->next = len > SEQUENCE_BYTES ? UINT64_MAX : 0; /* beyond all batches */
    for (size_t i = 0; len <= SEQUENCE_BYTES && i < len; i++)
        r->next = r->next << 8 | bytes[i];
    r->end = p->sequence;
    return true;
}

/* What every answer to the client starts with. */
static bool send_client(struct vt_kv_publisher *p)
{
    return sock_share(p->router, &p->replay.client, true, NULL) == VT_OK &&
           sock_put(p->router, "", 0, true, NULL) == VT_OK;
}

bool vt_kv_publisher_replay(struct vt_kv_publisher *p)
{
    struct replay *r = &p->replay;

    if (!p->router)
        return false;
    if (!r->active && !begin_replay(p))
        return false;
    if (!r->active)
        return true;
    if (r->next < oldest_kept(p))
        r->next = oldest_kept(p);
    for (int i = 0; i < REPLAY_SLICE && r->next < r->end; i++) {
        uint64_t at = r->next++;

        if (!send_client(p) ||
            send_batch(p, p->router, at, &p->kept[at % p->n_ring]) != VT_OK)
            r->next = r->end; /* the peer is gone */
    }
    if (r->next < r->end)
        return true;
    if (send_client(p) && sock_put(p->router, "", 0, true, NULL) == VT_OK &&
        sock_put(p->router, end_of_replay, sizeof(end_of_replay), true, NULL) == VT_OK)
        zmq_send(p->router, "", 0, ZMQ_DONTWAIT);
    zmq_msg_close(&r->client);
    r->active = false;
    return true;
}
