/* kv_publisher.c - the publisher of block events for drivers without ZeroMQ sockets of
 * their own. */
#include "kvevents/kvevents.h"

#include <string.h>

struct vt_kv_publisher {
    void *ctx; /* ZeroMQ */
    struct kv_events *events;
};

int vt_kv_publisher_open(struct vt_kv_publisher **out, const struct vt_kv_config *c,
                         struct vt_err *err)
{
    struct vt_kv_publisher *p = calloc(1, sizeof(*p));
    struct kv_events_config k = {.endpoint = c->endpoint,
                                 .replay_endpoint = c->replay_endpoint,
                                 .topic = c->topic,
                                 .dp_rank = c->dp_rank,
                                 .session_ids = c->session_ids};
    int rc = VT_OK;

    *out = NULL;
    if (p == NULL)
        return vt_nomem(err);
    p->ctx = zmq_ctx_new();
    if (p->ctx == NULL)
        rc = vt_nomem(err);
    if (rc == VT_OK)
        rc = kv_events_open(&p->events, p->ctx, &k, err);
    if (rc != VT_OK) {
        vt_kv_publisher_close(p);
        return rc;
    }
    *out = p;
    return VT_OK;
}

void vt_kv_publisher_close(struct vt_kv_publisher *p)
{
    if (p == NULL)
        return;
    kv_events_close(p->events);
    if (p->ctx != NULL)
        (void)zmq_ctx_term(p->ctx);
    free(p);
}

const char *vt_kv_publisher_endpoint(const struct vt_kv_publisher *p)
{
    return kv_events_endpoint(p->events);
}

static struct mp_span chars(const char *text)
{
    return text != NULL ? (struct mp_span){(const uint8_t *)text, strlen(text)}
                        : (struct mp_span){0};
}

void vt_kv_stored(struct vt_kv_publisher *p, const struct vt_kv_stored *s)
{
    struct kv_stored k = {.hash = s->hash,
                          .n_hashes = s->n_hashes,
                          .parent = s->parent,
                          .token = s->token,
                          .block_size = s->block_size,
                          .lora_name = chars(s->lora),
                          .lora_id = s->lora_id,
                          .cache_salt = chars(s->salt),
                          .first = s->parent == NULL,
                          .session_id = chars(s->session)};

    kv_events_stored(p->events, &k);
}

void vt_kv_removed(struct vt_kv_publisher *p, const uint8_t *hash, uint32_t n_hashes)
{
    kv_events_removed(p->events, hash, n_hashes);
}

void vt_kv_cleared(struct vt_kv_publisher *p)
{
    kv_events_cleared(p->events);
}

int vt_kv_flush(struct vt_kv_publisher *p, double unix_s, struct vt_err *err)
{
    return kv_events_flush(p->events, unix_s, err);
}

bool vt_kv_replay(struct vt_kv_publisher *p)
{
    return kv_events_serve_replay(p->events);
}
