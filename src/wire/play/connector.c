/* connector.c - kv_connector_stats as vLLM's connectors write them, which is the same
 * in all lines but for what NixlConnector counts. */
#include "wire/play/engines.h"

/* ---- OffloadingConnector: {"types": {name: kind}, "data": {name: {labels: value}}} */

enum kind { COUNTER, GAUGE, HISTOGRAM };
static const char *const kinds[] = {"counter", "gauge", "histogram"};

enum metric {
    LOAD_BYTES,
    LOAD_TIME,
    LOAD_SIZE,
    STORE_BYTES,
    STORE_TIME,
    STORE_SIZE,
    LOOKUP_DELAY,
    NO_ROOM,
    USED,
    ASKED,
    WRITTEN,
    READ,
    SKIPPED,
    METRICS
};

static const struct {
    const char *name;
    enum kind kind;
} metrics[METRICS] = {
    [LOAD_BYTES] = {"vllm:kv_offload_load_bytes", COUNTER},
    [LOAD_TIME] = {"vllm:kv_offload_load_time", COUNTER},
    [LOAD_SIZE] = {"vllm:kv_offload_load_size", HISTOGRAM},
    [STORE_BYTES] = {"vllm:kv_offload_store_bytes", COUNTER},
    [STORE_TIME] = {"vllm:kv_offload_store_time", COUNTER},
    [STORE_SIZE] = {"vllm:kv_offload_store_size", HISTOGRAM},
    [LOOKUP_DELAY] = {"vllm:kv_offload_lookup_sync_delay_seconds", HISTOGRAM},
    [NO_ROOM] = {"vllm:kv_offload_allocation_failure", COUNTER},
    [USED] = {"vllm:kv_offload_cpu_cache_usage_perc", GAUGE},
    [ASKED] = {"vllm:kv_offload_cpu_allocation_size", HISTOGRAM},
    [WRITTEN] = {"vllm:kv_offload_cpu_cache_write_usage_perc", GAUGE},
    [READ] = {"vllm:kv_offload_cpu_cache_read_usage_perc", GAUGE},
    [SKIPPED] = {"vllm:kv_offload_stores_skipped", COUNTER},
};

static double seconds(const struct play_engines *k, vt_ns ns)
{
    return (double)ns / 1e9 / k->p->c->time_scale;
}

static void put_sizes(struct vt_buf *b, const struct vt_step_offload *o, bool store,
                      uint32_t n)
{
    mp_put_array(b, n);
    for (uint32_t i = 0; i < o->n_moved; i++)
        if (o->moved[i].store == store)
            mp_put_u64(b, o->moved[i].bytes);
}

struct sums { /* of one way */
    uint64_t bytes;
    vt_ns ns;
    uint32_t n;
};

/* Lookups take time that no engine here spends: as many as there were, of 0 s. */
static void put_offload(struct play_engines *k, struct rank *r,
                        const struct vt_step_offload *o)
{
    struct vt_buf *b = &k->connector;
    const struct vt_host_state *h = &o->host;
    uint64_t no_room = h->no_room - r->told_no_room;
    struct sums way[2] = {{0}};
    bool told[METRICS];
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->n_moved; i++) {
        struct sums *w = &way[o->moved[i].store];

        w->bytes += o->moved[i].bytes;
        w->ns += o->moved[i].ended_ns - o->moved[i].begun_ns;
        w->n++;
    }
    r->told_no_room = h->no_room;
    for (enum metric m = 0; m < METRICS; m++) {
        told[m] = m <= LOAD_SIZE      ? way[0].n > 0
                  : m <= STORE_SIZE   ? way[1].n > 0
                  : m == LOOKUP_DELAY ? h->lookups > 0
                  : m == NO_ROOM      ? no_room > 0
                  : m == ASKED        ? h->n_asked > 0
                  : m == SKIPPED      ? k->p->engine.offload.store_threshold >= 2
                                      : true;
        n += told[m];
    }
    mp_put_map(b, 2);
    mp_put_str(b, "types");
    mp_put_map(b, n);
    for (enum metric m = 0; m < METRICS; m++) {
        if (!told[m])
            continue;
        mp_put_str(b, metrics[m].name);
        mp_put_str(b, kinds[metrics[m].kind]);
    }
    mp_put_str(b, "data");
    mp_put_map(b, n);
    for (enum metric m = 0; m < METRICS; m++) {
        if (!told[m])
            continue;
        mp_put_str(b, metrics[m].name);
        mp_put_map(b, 1);
        mp_put_array(b, 0); /* no labels */
        switch (m) {
        case LOAD_BYTES:
        case STORE_BYTES:
            mp_put_u64(b, way[m == STORE_BYTES].bytes);
            break;
        case LOAD_TIME:
        case STORE_TIME:
            mp_put_f64(b, seconds(k, way[m == STORE_TIME].ns));
            break;
        case LOAD_SIZE:
        case STORE_SIZE:
            put_sizes(b, o, m == STORE_SIZE, way[m == STORE_SIZE].n);
            break;
        case LOOKUP_DELAY:
            mp_put_array(b, h->lookups);
            for (uint32_t i = 0; i < h->lookups; i++)
                mp_put_f64(b, 0);
            break;
        case ASKED:
            mp_put_array(b, h->n_asked);
            for (uint32_t i = 0; i < h->n_asked; i++)
                mp_put_u64(b, h->asked[i]);
            break;
        case NO_ROOM:
        case SKIPPED:
            mp_put_u64(b, m == NO_ROOM ? no_room : h->skipped);
            break;
        default:
            mp_put_f64(b, m == USED      ? h->used
                          : m == WRITTEN ? h->written
                                         : h->used - h->written);
        }
    }
}

/* ---- NixlConnector: a list of each --------------------------------------- */

static void put_ones(struct vt_buf *b, const char *name, uint32_t n)
{
    mp_put_str(b, name);
    mp_put_array(b, n);
    for (uint32_t i = 0; i < n; i++)
        mp_put_u64(b, 1);
}

/* What a successful pull has of each list. */
static void put_pull(struct play_engines *k, const struct vt_kv_pulled *x,
                     uint32_t list)
{
    struct vt_buf *b = &k->connector;

    if (list == 0)
        mp_put_f64(b, seconds(k, x->ended_ns - x->begun_ns));
    else if (list == 1)
        mp_put_f64(b, k->p->engine.remote.setup_us / 1e6 / k->p->c->time_scale);
    else
        mp_put_u64(b, list == 2
                          ? x->bytes
                          : (uint64_t)x->blocks * k->p->engine.remote.block_parts);
}

static void put_nixl(struct play_engines *k, const struct rank *r,
                     const struct vt_step_remote *s)
{
    static const char *const lists[] = {"transfer_duration", "post_duration",
                                        "bytes_transferred", "num_descriptors"};
    struct vt_buf *b = &k->connector;
    bool handshakes = r->line->minor >= 31, late = r->line->minor >= 32;
    uint32_t n = 0, failed = 0;

    for (uint32_t i = 0; i < s->n_pulled; i++) {
        failed += s->pulled[i].failed;
        n += !s->pulled[i].failed && s->pulled[i].blocks > 0;
    }
    if (n + failed + s->expired + s->told_late == 0)
        return;
    mp_put_map(b, 7u + handshakes + late);
    for (uint32_t l = 0; l < VT_COUNT(lists); l++) {
        mp_put_str(b, lists[l]);
        mp_put_array(b, n);
        for (uint32_t i = 0; i < s->n_pulled; i++)
            if (!s->pulled[i].failed && s->pulled[i].blocks > 0)
                put_pull(k, &s->pulled[i], l);
    }
    put_ones(b, "num_failed_transfers", failed);
    put_ones(b, "num_failed_notifications", 0);
    if (handshakes)
        put_ones(b, "num_failed_handshakes", 0);
    put_ones(b, "num_kv_expired_reqs", s->expired);
    if (late)
        put_ones(b, "num_notifications_after_expiry", s->told_late);
}

struct mp_span engines_connector_stats(struct play_engines *k, struct rank *r,
                                       const struct vt_step *s)
{
    struct vt_buf *b = &k->connector;

    vt_buf_clear(b);
    if (s->offload)
        put_offload(k, r, s->offload);
    else if (s->remote)
        put_nixl(k, r, s->remote);
    if (b->failed || b->len == 0)
        return (struct mp_span){0};
    return (struct mp_span){(const uint8_t *)b->data, b->len};
}
