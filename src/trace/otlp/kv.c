/* kv.c - KV-cache events: among a span's events, or in batches as a subscriber to
 * vLLM's KV events writes them, one a line:
 *
 *     [1794714579.9, [["CacheStoreCommitted", "req", "CPU", 4, 17],
 *                     ["TransferInitiated", 7, "req", "GPU", "CPU", 4, 17], ...], null,
 * 17]
 *
 * or the same as "decoded" of an object. They meet steps by the step id. */
#include "trace/otlp/otlp.h"

/* Where a batch's event, a list, holds what. */
struct layout {
    const char *name;
    uint32_t blocks, step;
    uint32_t transfer, to; /* 0: it has none */
};

static const struct layout layouts[] = {
    [VT_KV_STORE_COMMITTED] = {"CacheStoreCommitted", 3, 4, 0, 0},
    [VT_KV_TRANSFER_INITIATED] = {"TransferInitiated", 5, 6, 1, 4},
    [VT_KV_TRANSFER_COMPLETED] = {"TransferCompleted", 5, 7, 1, 4},
};

/* Ids are numbers or texts; both of a transfer's events have the same. */
static uint64_t transfer_of(const struct vt_node *n)
{
    uint64_t number;

    if (n->kind == VT_STR)
        return vt_hash_bytes(n->u.str, n->n, 1) | 1;
    return vt_node_u64(n, INT64_MAX, &number) ? vt_hash2(number, 2) | 1 : 0;
}

static bool is_gpu(const char *medium)
{
    return strcmp(medium, "GPU") == 0 || strcmp(medium, "gpu") == 0;
}

static enum vt_otlp_kv_event find_kind(const char *name)
{
    size_t i = 0;

    while (i < VT_COUNT(layouts) && strcmp(otlp_last_word(name), layouts[i].name) != 0)
        i++;
    return i < VT_COUNT(layouts) ? (enum vt_otlp_kv_event)i : VT_KV_OTHER;
}

static int keep_event(struct vt_otlp *o, const struct otlp_kv *kv, struct vt_err *err)
{
    int rc = vt_grow(&o->kv, &o->cap_kv, o->n_kv + 1, sizeof(*kv), err);

    if (rc == VT_OK)
        o->kv[o->n_kv++] = *kv;
    return rc;
}

/* ---- in spans --------------------------------------------------------- */

static const struct otlp_field fields[] = {
    {"scheduler.step", OTLP_U64, VT_OPTIONAL, offsetof(struct otlp_kv, step)},
    {"step.id", OTLP_U64, VT_OPTIONAL, offsetof(struct otlp_kv, step)},
    {"block_count", OTLP_U32, VT_OPTIONAL, offsetof(struct otlp_kv, blocks)},
};

/* Where a transfer went, and which one it was; numbers are strings in OTLP. */
static void read_transfer(const struct vt_node *attributes, struct otlp_kv *kv)
{
    for (uint32_t i = 0; attributes && i < attributes->n; i++) {
        const char *key = otlp_get_text(&attributes->u.item[i], "key"), *text;
        const struct vt_node *value = vt_get(&attributes->u.item[i], "value"), *number;

        text = value ? otlp_get_text(value, "stringValue") : NULL;
        number = value ? vt_get(value, "intValue") : NULL;
        if (key && text && strcmp(key, "destination") == 0)
            kv->to_gpu = is_gpu(text);
        if (key && strcmp(key, "transfer_id") == 0 && (text || number))
            kv->transfer = transfer_of(text ? vt_get(value, "stringValue") : number);
    }
}

static int read_event(struct vt_otlp *o, const struct otlp_span *s,
                      const struct vt_node *node, enum vt_otlp_kv_event kind,
                      struct vt_err *err)
{
    struct otlp_kv kv = {.kind = kind, .engine = s->engine, .step = UINT64_MAX};
    const struct vt_node *attributes;
    int rc;

    if ((rc = otlp_get_list(node, "attributes", &attributes, err)) ||
        (rc = otlp_get_ns(node, "timeUnixNano", &kv.unix_ns, err)) ||
        (rc = otlp_read(attributes, fields, VT_COUNT(fields), &kv, err)))
        return vt_within(err, rc, "event '%s'", layouts[kind].name);
    kv.has_step = kv.step != UINT64_MAX;
    read_transfer(attributes, &kv);
    return keep_event(o, &kv, err);
}

int otlp_read_kv(struct vt_otlp *o, const struct otlp_span *s, size_t *n,
                 struct vt_err *err)
{
    int rc = VT_OK;

    *n = 0;
    for (uint32_t i = 0; s->events && i < s->events->n && rc == VT_OK; i++) {
        const struct vt_node *node = &s->events->u.item[i];
        const char *name = otlp_get_text(node, "name");
        enum vt_otlp_kv_event kind = name ? find_kind(name) : VT_KV_OTHER;

        if (kind == VT_KV_OTHER)
            continue;
        rc = read_event(o, s, node, kind, err);
        ++*n;
    }
    return rc;
}

/* ---- in batches ------------------------------------------------------- */

static bool get_integer(const struct vt_node *list, uint32_t i, int64_t max,
                        uint64_t *out)
{
    return i < list->n && vt_node_u64(&list->u.item[i], (uint64_t)max, out);
}

static int batch_event(struct vt_otlp *o, const struct vt_node *event,
                       const struct vt_node *batch, vt_ns unix_ns, struct vt_err *err)
{
    struct otlp_kv kv = {.unix_ns = unix_ns, .engine = SIZE_MAX};
    const struct layout *at;
    uint64_t blocks = 0;

    if (event->kind != VT_LIST || event->n == 0 || event->u.item[0].kind != VT_STR)
        return vt_fail(err, VT_EINPUT, "a KV-cache event is not a list with a name");
    kv.kind = find_kind(event->u.item[0].u.str);
    if (kv.kind == VT_KV_OTHER)
        return keep_event(o, &kv, err);
    at = &layouts[kv.kind];
    if (!get_integer(event, at->blocks, INT32_MAX, &blocks))
        return vt_fail(err, VT_EINPUT, "%s without a number of blocks", at->name);
    kv.blocks = (uint32_t)blocks;
    if (at->transfer > 0)
        kv.transfer = transfer_of(&event->u.item[at->transfer]);
    if (at->to > 0 && event->u.item[at->to].kind == VT_STR)
        kv.to_gpu = is_gpu(event->u.item[at->to].u.str);
    kv.has_step = get_integer(event, at->step, INT64_MAX, &kv.step) ||
                  get_integer(batch, 3, INT64_MAX, &kv.step);
    return keep_event(o, &kv, err);
}

int otlp_read_kv_batch(struct vt_otlp *o, const struct vt_node *batch,
                       struct vt_err *err)
{
    const struct vt_node *events;
    double seconds;
    int rc = VT_OK;

    if (batch->kind != VT_LIST || batch->n < 2 ||
        !vt_node_f64(&batch->u.item[0], &seconds) || batch->u.item[1].kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "not a batch of KV-cache events");
    if (!(seconds >= 0 && seconds <= 3e9))
        return vt_fail(err, VT_EINPUT, "the batch's time is out of range");
    events = &batch->u.item[1];
    for (uint32_t i = 0; i < events->n && rc == VT_OK; i++)
        rc = batch_event(o, &events->u.item[i], batch, otlp_ns_from_s(seconds), err);
    o->useful++;
    return rc;
}

/* ---- joining ---------------------------------------------------------- */

static bool has_step(const struct otlp_engine *e, uint64_t id)
{
    size_t i = otlp_first_of(e->step, e->n_steps, sizeof(*e->step), id);

    return i < e->n_steps && e->step[i].id == id;
}

static int by_step(const void *pa, const void *pb)
{
    const struct vt_otlp_kv *a = pa, *b = pb;

    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->blocks < b->blocks ? -1 : a->blocks > b->blocks;
}

static bool belongs(const struct otlp_kv *kv, size_t engine, bool alone)
{
    return kv->kind != VT_KV_OTHER && kv->has_step &&
           (kv->engine == engine || (kv->engine == SIZE_MAX && alone));
}

/* How long transfers took: by the last beginning of the same before each end. */
static int time_transfers(struct vt_otlp_capture *c, struct vt_err *err)
{
    struct vt_map began = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < c->n_kv && rc == VT_OK; i++) {
        struct vt_otlp_kv *kv = &c->kv[i];
        uint64_t *at;

        if (kv->transfer == 0 || kv->at_ns == VT_NEVER)
            continue;
        if (kv->kind == VT_KV_TRANSFER_INITIATED) {
            at = vt_map_put(&began, kv->transfer);
            if (at)
                *at = i;
            else
                rc = vt_nomem(err);
        } else if (kv->kind == VT_KV_TRANSFER_COMPLETED &&
                   (at = vt_map_get(&began, kv->transfer)) != NULL &&
                   kv->at_ns >= c->kv[*at].at_ns) {
            kv->took_ns = kv->at_ns - c->kv[*at].at_ns;
        }
    }
    vt_map_free(&began);
    return rc;
}

int otlp_make_kv(struct vt_otlp *o, size_t engine, bool alone, vt_ns origin_ns,
                 struct vt_otlp_capture *c, struct vt_err *err)
{
    const struct otlp_engine *e = &o->engine[engine];
    vt_ns shift_ns = VT_NEVER; /* from wall-clock time; VT_NEVER: nobody knows both */
    size_t n = 0;

    for (size_t i = 0; i < e->n_requests && shift_ns == VT_NEVER; i++)
        if (e->request[i].known)
            shift_ns = e->request[i].to_unix_ns + origin_ns;
    for (size_t i = 0; i < o->n_kv; i++)
        n += belongs(&o->kv[i], engine, alone);
    if (n == 0)
        return VT_OK;
    c->kv = vt_arena_alloc(&o->arena, n * sizeof(*c->kv));
    if (!c->kv)
        return vt_nomem(err);
    for (size_t i = 0; i < o->n_kv; i++) {
        const struct otlp_kv *kv = &o->kv[i];

        if (!belongs(kv, engine, alone))
            continue;
        o->stats.kv_joined += has_step(e, kv->step);
        c->kv[c->n_kv++] = (struct vt_otlp_kv){
            .kind = kv->kind,
            .step = kv->step,
            .at_ns = shift_ns == VT_NEVER ? VT_NEVER : kv->unix_ns - shift_ns,
            .blocks = kv->blocks,
            .to_gpu = kv->to_gpu,
            .transfer = kv->transfer,
            .took_ns = -1};
    }
    qsort(c->kv, c->n_kv, sizeof(*c->kv), by_step);
    return time_transfers(c, err);
}
