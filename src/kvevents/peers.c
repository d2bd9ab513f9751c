/* peers.c - engines that prefill for others, and those that decode: what their requests
 * and answers say, and the side channel between them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kvevents/kvevents.h"
#include "kvevents/probe.h"
#include "kvevents/sock.h"

/* ---- kv_transfer_params ------------------------------------------------ */

static bool is_true(const struct vt_node *map, const char *key)
{
    const struct vt_node *v = vt_get(map, key);

    return v && v->kind == VT_BOOL && v->u.boolean;
}

static const char *text_of(const struct vt_node *map, const char *key)
{
    const struct vt_node *v = vt_get(map, key);

    return v && v->kind == VT_STR && v->n > 0 ? v->u.str : NULL;
}

static int64_t number_of(const struct vt_node *map, const char *key)
{
    const struct vt_node *v = vt_get(map, key);

    return v && v->kind == VT_INT && !v->is_u64 && v->u.integer >= 0 ? v->u.integer
                                                                     : -1;
}

int vt_kv_ask_read(struct vt_kv_ask *a, const struct vt_node *map, struct vt_err *err)
{
    const char *host, *id;
    int64_t port;

    *a = (struct vt_kv_ask){.cached = -1};
    if (!map || map->kind != VT_MAP)
        return VT_OK;
    if (is_true(map, "do_remote_decode")) {
        a->apart = VT_PREFILL_ONLY;
        return VT_OK;
    }
    if (!is_true(map, "do_remote_prefill"))
        return VT_OK;
    a->apart = VT_DECODE_ONLY;
    a->cached = number_of(map, "remote_prefill_cached_tokens");
    host = text_of(map, "remote_host");
    id = text_of(map, "remote_request_id");
    port = number_of(map, "remote_port");
    if (!host || !id || !text_of(map, "remote_engine_id") || port < 1 || port > 65535)
        return VT_OK; /* vLLM waits for blocks that nobody is told of */
    a->port = (uint32_t)port;
    a->host = strdup(host);
    a->id = strdup(id);
    if (a->host && a->id)
        return VT_OK;
    vt_kv_ask_free(a);
    return vt_nomem(err);
}

void vt_kv_ask_free(struct vt_kv_ask *a)
{
    free(a->host);
    free(a->id);
    a->host = a->id = NULL;
}

/* Windows: places before them hold no memory, and are not told. */
static void put_blocks(struct vt_jw *w, const struct vt_sched *s, uint32_t slot)
{
    vt_jw_list(w, "remote_block_ids");
    for (uint32_t g = 0; g < vt_sched_groups(s); g++) {
        uint32_t n, first = 0;
        const uint32_t *block = vt_sched_blocks(s, slot, g, &n);

        while (first < n && block[first] == 0)
            first++;
        vt_jw_u32_list(w, NULL, block + first, n - first);
    }
    vt_jw_end(w);
}

void vt_kv_put_kept(struct vt_jw *w, const char *key, const struct vt_side *side,
                    uint32_t vllm, const struct vt_sched *s, uint32_t slot,
                    const char *id, const struct vt_first *first)
{
    enum { TELLS_MODE = 28, TELLS_SIZES = 29, TELLS_CACHED = 31 }; /* releases */

    vt_jw_map(w, key);
    vt_jw_bool(w, "do_remote_prefill", true);
    vt_jw_bool(w, "do_remote_decode", false);
    put_blocks(w, s, slot);
    vt_jw_str(w, "remote_engine_id", side->engine_id);
    vt_jw_str(w, "remote_request_id", id);
    vt_jw_str(w, "remote_host", side->host);
    vt_jw_u64(w, "remote_port", side->port);
    vt_jw_u64(w, "tp_size", side->tp);
    if (vllm >= TELLS_SIZES) {
        vt_jw_u64(w, "dcp_size", 1);
        vt_jw_u64(w, "pp_size", 1);
    }
    vt_jw_u64(w, "remote_num_tokens", vt_sched_computed(s, slot));
    vt_jw_null(w, "remote_blocks_expiry_time");
    if (vllm >= TELLS_MODE)
        vt_jw_str(w, "transfer_mode", "pull");
    if (first && vllm >= TELLS_CACHED)
        vt_jw_u64(w, "remote_prefill_cached_tokens", first->cached_tokens);
    vt_jw_end(w);
}

/* ---- the side channel --------------------------------------------------- */

#define STOP_AT "inproc://stop"

struct vt_peers {
    void *ctx, *in, *stop, *stopped; /* the thread's sockets: in, stopped */
    pthread_t thread;
    bool runs;
    vt_peers_heard *heard;
    void *user;
    struct peer_out {
        char *host;
        uint32_t port;
        void *sock;
    } *out;
    size_t n_out, cap_out;
    struct vt_map kept; /* hashes of names to tags */
    vt_ns renew_ns, renewed_ns;
    struct probes probes; /* the thread's */
};

bool vt_heard_read(struct vt_heard *h, const char *text, size_t len)
{
    enum { MOST = 4096 };

    if (len < 3 || len > MOST)
        return false;
    if (memcmp(text, "HB:", 3) == 0) {
        *h = (struct vt_heard){VT_HEARD_WANTED, text + 3, len - 3, 0};
        return h->len > 0;
    }
    while (len > 0 && text[len - 1] != ':')
        len--;
    if (len < 2)
        return false;
    *h = (struct vt_heard){VT_HEARD_PULLED, text, len - 1, 0};
    return true;
}

static void hear(const struct vt_peers *p, const struct sock_msg *m)
{
    size_t len;
    const char *text = m->n == 1 ? sock_data(m, 0, &len) : NULL;
    struct vt_heard h;

    if (text && vt_heard_read(&h, text, len))
        p->heard(p->user, &h);
}

/* What the other thread asks for: to stop, or "TAG PORT HOST". True: to stop. */
static bool take_orders(struct vt_peers *p, struct sock_msg *m)
{
    struct vt_err err;

    while (sock_recv(p->stopped, m, &err) == VT_OK && m->n > 0) {
        size_t len;
        const char *text = sock_data(m, 0, &len);

        if (len == 0)
            return true;
        if (!probes_add(&p->probes, text, len)) {
            struct vt_heard h = {.what = VT_HEARD_GONE,
                                 .tag = strtoull(text, NULL, 10)};

            p->heard(p->user, &h);
        }
    }
    return false;
}

static void *listen_all(void *peers)
{
    struct vt_peers *p = peers;
    struct sock_msg m = {0};
    struct vt_err err;
    bool stop = false;

    while (!stop) {
        zmq_pollitem_t item[2 + PROBES] = {
            {.socket = p->in, .events = ZMQ_POLLIN},
            {.socket = p->stopped, .events = ZMQ_POLLIN}};
        size_t n = probes_poll(&p->probes, item + 2);

        if (zmq_poll(item, (int)(2 + n), probes_wait_ms(&p->probes)) < 0)
            continue; /* a signal */
        while (item[0].revents && sock_recv(p->in, &m, &err) == VT_OK && m.n > 0)
            hear(p, &m);
        probes_go_on(&p->probes, item + 2, p->heard, p->user);
        stop = item[1].revents && take_orders(p, &m);
    }
    sock_msg_free(&m);
    return NULL;
}

static int listen_at(struct vt_peers *p, const struct vt_side *side, struct vt_err *err)
{
    const struct sock_options in = {.type = ZMQ_PULL, .gets = SOCK_GETS_LITTLE};
    const struct sock_options pair = {.type = ZMQ_PAIR, .gets = SOCK_GETS_LITTLE};
    char address[SOCK_ADDRESS];
    int rc;

    (void)snprintf(address, sizeof(address), "tcp://%.200s:%u",
                   strcmp(side->host, "localhost") == 0 ? "127.0.0.1" : side->host,
                   side->port);
    if ((rc = sock_ctx(&p->ctx, err)) || (rc = sock_open(&p->in, p->ctx, &in, err)) ||
        (rc = sock_bind(p->in, address, err)) ||
        (rc = sock_open(&p->stopped, p->ctx, &pair, err)) ||
        (rc = sock_bind(p->stopped, STOP_AT, err)) ||
        (rc = sock_open(&p->stop, p->ctx, &pair, err)) ||
        (rc = sock_connect(p->stop, STOP_AT, err)) ||
        (rc = vt_thread_start(&p->thread, listen_all, p, err)))
        return rc;
    p->runs = true;
    return VT_OK;
}

int vt_peers_open(struct vt_peers **out, const struct vt_side *side,
                  vt_peers_heard *heard, void *user, struct vt_err *err)
{
    struct vt_peers *p = calloc(1, sizeof(*p));
    int rc;

    *out = p;
    if (!p)
        return vt_nomem(err);
    p->heard = heard;
    p->user = user;
    p->renew_ns = vt_ns_from_us(side->lease_s * 1e6 / 6); /* as vLLM's heartbeats */
    rc = listen_at(p, side, err);
    if (rc != VT_OK) {
        vt_peers_close(p);
        *out = NULL;
    }
    return vt_within(err, rc, "the side channel of kv_transfer_params");
}

void vt_peers_close(struct vt_peers *p)
{
    if (!p)
        return;
    while (p->runs) {
        p->runs = sock_put(p->stop, "", 0, false, NULL) != VT_OK;
        if (!p->runs)
            (void)pthread_join(p->thread, NULL);
    }
    for (size_t i = 0; i < p->n_out; i++) {
        sock_close(p->out[i].sock);
        free(p->out[i].host);
    }
    free(p->out);
    probes_free(&p->probes);
    sock_close(p->in);
    sock_close(p->stop);
    sock_close(p->stopped);
    if (p->ctx)
        zmq_ctx_term(p->ctx);
    vt_map_free(&p->kept);
    free(p);
}

static int find_out(struct vt_peers *p, const struct vt_kv_ask *a, void **sock,
                    struct vt_err *err)
{
    const struct sock_options o = {
        .type = ZMQ_PUSH, .gets = SOCK_GETS_LITTLE, .linger_ms = 200};
    char address[SOCK_ADDRESS];
    struct peer_out *x;
    int rc;

    for (size_t i = 0; i < p->n_out; i++)
        if (p->out[i].port == a->port && strcmp(p->out[i].host, a->host) == 0) {
            *sock = p->out[i].sock;
            return VT_OK;
        }
    if ((rc = vt_grow(&p->out, &p->cap_out, p->n_out + 1, sizeof(*p->out), err)))
        return rc;
    x = &p->out[p->n_out];
    *x = (struct peer_out){.host = strdup(a->host), .port = a->port};
    if (!x->host)
        return vt_nomem(err);
    p->n_out++;
    if ((rc = sock_open(&x->sock, p->ctx, &o, err)))
        return rc;
    *sock = x->sock;
    (void)snprintf(address, sizeof(address), "tcp://%.200s:%u",
                   strcmp(a->host, "localhost") == 0 ? "127.0.0.1" : a->host, a->port);
    /* A request may name anything: what can't be reached is told nothing. */
    if (sock_connect(x->sock, address, NULL) != VT_OK) {
        sock_close(x->sock);
        *sock = x->sock = NULL;
    }
    return VT_OK;
}

/* Once told that its blocks were pulled, nobody is told again. */
static int tell(struct vt_peers *p, struct vt_kv_ask *a, bool renew, struct vt_err *err)
{
    enum { MOST = 4096 }; /* peers; a frontend may name anything */
    struct vt_buf text = {0};
    void *sock = NULL;
    int rc;

    if (!a->host || p->n_out >= MOST)
        return VT_OK;
    if ((rc = find_out(p, a, &sock, err)))
        return rc;
    vt_buf_printf(&text, renew ? "HB:%s" : "%s:1", a->id);
    if (text.failed)
        rc = vt_nomem(err);
    /* A peer that has never been there has no queue: nobody waits for what is told. */
    else if (sock && sock_put(sock, text.data, text.len, false, NULL) != VT_OK)
        rc = VT_OK;
    vt_buf_free(&text);
    if (!renew)
        vt_kv_ask_free(a);
    return rc;
}

bool vt_peers_reach(struct vt_peers *p, const struct vt_kv_ask *a, uint64_t tag)
{
    char text[512];
    int len;

    if (!a->host)
        return false;
    len = snprintf(text, sizeof(text), "%" PRIu64 " %u %.255s", tag, a->port, a->host);
    return sock_put(p->stop, text, (size_t)len, false, NULL) == VT_OK;
}

void vt_peers_over(struct vt_peers *p, struct vt_kv_ask *a)
{
    if (tell(p, a, false, NULL) != VT_OK)
        vt_kv_ask_free(a); /* the lease will end it */
}

/* ---- names -------------------------------------------------------------- */

static uint64_t name_key(const char *id, size_t len)
{
    return vt_hash_bytes(id, len, 7);
}

int vt_peers_keep(struct vt_peers *p, const char *id, uint64_t tag, struct vt_err *err)
{
    uint64_t *place = vt_map_put(&p->kept, name_key(id, strlen(id)));

    if (!place)
        return vt_nomem(err);
    *place = tag;
    return VT_OK;
}

static void take_name(struct vt_peers *p, const struct vt_driver *d, uint32_t n_engines,
                      const struct vt_heard *h, vt_ns now)
{
    uint64_t *place = vt_map_get(&p->kept, name_key(h->id, h->len));
    bool renew = h->what == VT_HEARD_WANTED, known = false;

    for (uint32_t i = 0; place && i < n_engines && !known; i++) {
        struct vt_engine *e = vt_driver_engine(d, i);

        known = (renew ? vt_engine_renew(e, now, *place)
                       : vt_engine_gave(e, now, *place)) == VT_OK;
    }
    if (place && (!known || !renew))
        vt_map_drop(&p->kept, place); /* it was given up, or is now */
    if (!known && !renew)             /* whose it was nobody knows */
        vt_engine_told_late(vt_driver_engine(d, 0));
}

void vt_peers_take(struct vt_peers *p, const struct vt_driver *d, uint32_t n_engines,
                   const struct vt_heard *h, vt_ns now)
{
    bool there = h->what == VT_HEARD_THERE;

    if (h->what == VT_HEARD_PULLED || h->what == VT_HEARD_WANTED) {
        take_name(p, d, n_engines, h, now);
        return;
    }
    for (uint32_t i = 0; i < n_engines; i++)
        if (vt_engine_reached(vt_driver_engine(d, i), now, h->tag, there, NULL) !=
            VT_OK)
            return; /* without memory the next step fails, too */
}

int vt_peers_step(struct vt_peers *p, const struct vt_driver *d,
                  const struct vt_step *s, vt_peers_ask *ask, struct vt_err *err)
{
    int rc = VT_OK;
    size_t at = 0;
    void *request;

    for (uint32_t i = 0; i < s->remote->n_pulled && rc == VT_OK; i++) {
        request = vt_driver_find(d, s->remote->pulled[i].tag);
        if (request && s->remote->pulled[i].failed)
            vt_kv_ask_free(ask(request)); /* there is nobody */
        else if (request)
            rc = tell(p, ask(request), false, err);
    }
    if (!(p->renew_ns > 0) || s->done_ns < p->renewed_ns + p->renew_ns)
        return rc;
    p->renewed_ns = s->done_ns;
    while (rc == VT_OK && (request = vt_driver_each(d, &at)))
        rc = tell(p, ask(request), true, err);
    return rc;
}
