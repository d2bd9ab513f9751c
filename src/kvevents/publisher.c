/* publisher.c - batches of events: sockets, sequence numbers, and replay. */
#include "kvevents/publisher.h"

#include <inttypes.h>

#include "kvevents/encode.h"
#include "kvevents/kvevents.h"

#define DEFAULT_ENDPOINT "tcp://*:5557"

enum {
    DEFAULT_STEPS = 10000,
    DEFAULT_HWM = 100000,
    REPLAY_SLICE = 256, /* batches sent again in one call */
    SEQUENCE_BYTES = 8,
};

static const uint8_t end_of_replay[SEQUENCE_BYTES] = {0xff, 0xff, 0xff, 0xff,
                                                      0xff, 0xff, 0xff, 0xff};

struct replay { /* the one being served */
    bool active;
    zmq_msg_t client; /* its identity; open while active */
    uint64_t next, end;
};

struct kv_events {
    void *pub, *router; /* router NULL: no replay */
    char endpoint[SOCK_ADDRESS], replay_endpoint[SOCK_ADDRESS];
    char *topic;
    size_t topic_len;
    uint32_t dp_rank;
    struct kv_batch batch;
    uint64_t sequence; /* of the next batch */
    zmq_msg_t *kept;   /* ring: batch s is at s % n_ring; NULL without replay */
    size_t n_ring;
    struct replay replay;
    struct sock_msg request;
    struct kv_events_stats stats;
};

/* ---- endpoints -------------------------------------------------------- */

static bool starts(const char *text, const char *with)
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
    else if (!starts(endpoint, "tcp://"))
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

static bool is_bound(const char *endpoint)
{
    return strchr(endpoint, '*') || strstr(endpoint, "::") ||
           starts(endpoint, "ipc://") || starts(endpoint, "inproc://");
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

static int open_pub(struct kv_events *e, void *ctx, const struct kv_events_config *c,
                    struct vt_err *err)
{
    const struct sock_options o = {.type = ZMQ_PUB};
    int hwm = (int)(c->hwm > 0 && c->hwm < INT32_MAX ? c->hwm : DEFAULT_HWM);
    int rc = sock_open(&e->pub, ctx, &o, err);

    if (rc != VT_OK)
        return rc;
    zmq_setsockopt(e->pub, ZMQ_SNDHWM, &hwm, sizeof(hwm));
    rc = place_rank(e->endpoint, c->endpoint ? c->endpoint : DEFAULT_ENDPOINT,
                    c->dp_rank, err);
    if (rc != VT_OK)
        return rc;
    return is_bound(e->endpoint) ? bind_to(e->pub, e->endpoint, err)
                                 : sock_connect(e->pub, e->endpoint, err);
}

static int open_replay(struct kv_events *e, void *ctx, const struct kv_events_config *c,
                       struct vt_err *err)
{
    const struct sock_options o = {.type = ZMQ_ROUTER};
    int rc;

    if (!c->replay_endpoint)
        return VT_OK;
    rc = sock_open(&e->router, ctx, &o, err);
    if (rc == VT_OK)
        rc = place_rank(e->replay_endpoint, c->replay_endpoint, c->dp_rank, err);
    if (rc == VT_OK)
        rc = bind_to(e->router, e->replay_endpoint, err);
    if (rc != VT_OK)
        return rc;
    e->n_ring = c->buffer_steps > 0 ? c->buffer_steps : DEFAULT_STEPS;
    e->kept = calloc(e->n_ring, sizeof(*e->kept));
    return e->kept ? VT_OK : vt_nomem(err);
}

/* ---- opening and closing ---------------------------------------------- */

int kv_events_open(struct kv_events **out, void *ctx, const struct kv_events_config *c,
                   struct vt_err *err)
{
    const char *topic = c->topic ? c->topic : "";
    struct kv_events *e = calloc(1, sizeof(*e));
    int rc;

    *out = NULL;
    if (!e)
        return vt_nomem(err);
    e->dp_rank = c->dp_rank;
    e->batch.raw_hashes = c->raw_hashes;
    e->batch.session_ids = c->session_ids;
    e->topic_len = strlen(topic);
    e->topic = malloc(e->topic_len + 1);
    rc = e->topic ? VT_OK : vt_nomem(err);
    if (rc == VT_OK) {
        memcpy(e->topic, topic, e->topic_len + 1);
        rc = open_pub(e, ctx, c, err);
    }
    if (rc == VT_OK)
        rc = open_replay(e, ctx, c, err);
    if (rc != VT_OK) {
        kv_events_close(e);
        return vt_within(err, rc, "KV events");
    }
    *out = e;
    return VT_OK;
}

static uint64_t oldest_kept(const struct kv_events *e)
{
    return e->sequence > e->n_ring ? e->sequence - e->n_ring : 0;
}

void kv_events_close(struct kv_events *e)
{
    if (!e)
        return;
    for (uint64_t s = oldest_kept(e); e->kept && s < e->sequence; s++)
        zmq_msg_close(&e->kept[s % e->n_ring]);
    if (e->replay.active)
        zmq_msg_close(&e->replay.client);
    sock_msg_free(&e->request);
    sock_close(e->pub);
    sock_close(e->router);
    vt_buf_free(&e->batch.events);
    free(e->kept);
    free(e->topic);
    free(e);
}

const char *kv_events_endpoint(const struct kv_events *e)
{
    return e->endpoint;
}

const char *kv_events_replay_endpoint(const struct kv_events *e)
{
    return e->router ? e->replay_endpoint : NULL;
}

void *kv_events_replay_socket(const struct kv_events *e)
{
    return e->router;
}

struct kv_events_stats kv_events_stats(const struct kv_events *e)
{
    return e->stats;
}

/* ---- events ----------------------------------------------------------- */

void kv_events_stored(struct kv_events *e, const struct kv_stored *s)
{
    kv_batch_stored(&e->batch, s);
}

void kv_events_removed(struct kv_events *e, const uint8_t *hash, uint32_t n_hashes)
{
    kv_batch_removed(&e->batch, hash, n_hashes);
}

void kv_events_cleared(struct kv_events *e)
{
    kv_batch_cleared(&e->batch);
}

/* ---- sending ---------------------------------------------------------- */

static void put_sequence(uint8_t out[SEQUENCE_BYTES], uint64_t v)
{
    for (int i = SEQUENCE_BYTES - 1; i >= 0; i--, v >>= 8)
        out[i] = (uint8_t)v;
}

/* Sends a message that shares its bytes with *m. */
static int send_shared(void *sock, zmq_msg_t *m, int flags)
{
    zmq_msg_t copy;
    int rc;

    zmq_msg_init(&copy);
    rc = zmq_msg_copy(&copy, m);
    if (rc == 0)
        rc = zmq_msg_send(&copy, sock, flags | ZMQ_DONTWAIT);
    if (rc < 0)
        zmq_msg_close(&copy);
    return rc;
}

static int send_bytes(void *sock, const void *bytes, size_t len)
{
    return zmq_send(sock, bytes, len, ZMQ_SNDMORE | ZMQ_DONTWAIT);
}

/* [topic, sequence, batch], which a subscriber gets live or again. */
static int send_batch(const struct kv_events *e, void *sock, uint64_t sequence,
                      zmq_msg_t *payload)
{
    uint8_t number[SEQUENCE_BYTES];
    int rc = send_bytes(sock, e->topic, e->topic_len);

    put_sequence(number, sequence);
    if (rc >= 0)
        rc = send_bytes(sock, number, sizeof(number));
    return rc >= 0 ? send_shared(sock, payload, 0) : rc;
}

static void keep(struct kv_events *e, zmq_msg_t *payload)
{
    zmq_msg_t *place = e->kept ? &e->kept[e->sequence % e->n_ring] : NULL;

    if (!place) {
        zmq_msg_close(payload);
        return;
    }
    if (e->sequence >= e->n_ring)
        zmq_msg_close(place);
    zmq_msg_init(place);
    zmq_msg_move(place, payload);
}

static int make_payload(struct kv_events *e, double now_unix, zmq_msg_t *out,
                        struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = VT_OK;

    kv_batch_finish(&e->batch, &b, now_unix, e->dp_rank);
    if (b.failed || zmq_msg_init_size(out, b.len) != 0)
        rc = vt_nomem(err);
    else
        memcpy(zmq_msg_data(out), b.data, b.len);
    vt_buf_free(&b);
    return rc;
}

int kv_events_flush(struct kv_events *e, double now_unix, struct vt_err *err)
{
    zmq_msg_t payload;
    int rc;

    if (e->batch.n_events == 0 && !e->batch.events.failed)
        return VT_OK;
    e->stats.events += e->batch.n_events;
    rc = make_payload(e, now_unix, &payload, err);
    if (rc != VT_OK)
        return rc;
    e->stats.batches++;
    e->stats.bytes += zmq_msg_size(&payload);
    if (send_batch(e, e->pub, e->sequence, &payload) < 0)
        rc = vt_fail(err, VT_EIO, "KV events: %s", zmq_strerror(zmq_errno()));
    keep(e, &payload);
    e->sequence++;
    return rc;
}

/* ---- replay ----------------------------------------------------------- */

/* A number of up to 8 bytes, big-endian; a longer one is beyond all batches. */
static uint64_t read_sequence(const uint8_t *bytes, size_t len)
{
    uint64_t v = 0;

    if (len > SEQUENCE_BYTES)
        return UINT64_MAX;
    for (size_t i = 0; i < len; i++)
        v = v << 8 | bytes[i];
    return v;
}

/* [client, "", first sequence]; anything else is left unanswered, as by vLLM. */
static bool begin_replay(struct kv_events *e)
{
    struct replay *r = &e->replay;
    const void *bytes;
    size_t len;

    if (sock_recv(e->router, &e->request, NULL) != VT_OK || e->request.n == 0)
        return false;
    if (e->request.n != 3)
        return true;
    bytes = sock_data(&e->request, 2, &len);
    zmq_msg_init(&r->client);
    if (zmq_msg_copy(&r->client, &e->request.frame[0]) != 0)
        return false;
    r->active = true;
    r->next = read_sequence(bytes, len);
    r->end = e->sequence;
    return true;
}

static int send_again(struct kv_events *e, uint64_t sequence)
{
    int rc = send_shared(e->router, &e->replay.client, ZMQ_SNDMORE);

    if (rc >= 0)
        rc = send_bytes(e->router, "", 0);
    return rc >= 0 ? send_batch(e, e->router, sequence, &e->kept[sequence % e->n_ring])
                   : rc;
}

static void end_replay(struct kv_events *e)
{
    if (send_shared(e->router, &e->replay.client, ZMQ_SNDMORE) >= 0 &&
        send_bytes(e->router, "", 0) >= 0 && send_bytes(e->router, "", 0) >= 0 &&
        send_bytes(e->router, end_of_replay, sizeof(end_of_replay)) >= 0)
        zmq_send(e->router, "", 0, ZMQ_DONTWAIT);
    zmq_msg_close(&e->replay.client);
    e->replay.active = false;
}

bool kv_events_serve_replay(struct kv_events *e)
{
    struct replay *r = &e->replay;

    if (!e->router)
        return false;
    if (!r->active && !begin_replay(e))
        return false;
    if (!r->active)
        return true;
    if (r->next < oldest_kept(e))
        r->next = oldest_kept(e);
    for (int i = 0; i < REPLAY_SLICE && r->next < r->end; i++)
        if (send_again(e, r->next++) < 0)
            r->next = r->end; /* the peer is gone */
    if (r->next >= r->end)
        end_replay(e);
    return true;
}
