/* events.c - KV-cache events with the hashes that vLLM gives its blocks. */
#include "sim/oracle/replay.h"

enum { OWNERSHIP_SINCE = 29, SESSIONS_SINCE = 30 }; /* fields of events */

static void put_group(struct replay *r, const struct vt_kv_event *e,
                      const struct vt_kv_message *m)
{
    struct vt_jw *j = &r->out;

    vt_jw_u64(j, "group_idx", e->group);
    vt_jw_str(j, "kv_cache_spec_kind", m->kind);
    if (m->window > 0)
        vt_jw_u64(j, "kv_cache_spec_sliding_window", m->window);
    else
        vt_jw_null(j, "kv_cache_spec_sliding_window");
}

/* Of one block: its adapter's name and, at the first, the salt. */
static void put_extra_key(struct replay *r, const struct oracle_request *q, bool first)
{
    const char *salt = first ? q->salt : NULL;

    if (!salt && q->lora == 0) {
        vt_jw_null(&r->out, NULL);
        return;
    }
    vt_jw_list(&r->out, NULL);
    if (q->lora > 0)
        vt_jw_str(&r->out, NULL, q->lora_name);
    if (salt)
        vt_jw_str(&r->out, NULL, salt);
    vt_jw_end(&r->out);
}

static void put_lora_id(struct replay *r, const struct oracle_request *q)
{
    if (q->lora > 0)
        vt_jw_u64(&r->out, "lora_id", q->lora);
    else
        vt_jw_null(&r->out, "lora_id");
}

/* Of the blocks that were kept; null where none was. */
static void put_extra_keys(struct replay *r, const struct vt_kv_event *e,
                           const struct vt_kv_message *m)
{
    struct vt_jw *j = &r->out;

    if (m->n_kept == 0 || m->medium == VT_MEDIUM_CPU) {
        vt_jw_null(j, "extra_keys");
        return;
    }
    vt_jw_list(j, "extra_keys");
    for (uint32_t k = 0; k < m->n_events; k++)
        if (e[k].key != 0)
            put_extra_key(r, &r->c->req[e->tag], e[k].index == 0);
    vt_jw_end(j);
}

static void put_stored_rest(struct replay *r, const struct vt_kv_event *e,
                            const struct vt_kv_message *m)
{
    const struct oracle_request *q = &r->c->req[e->tag];
    struct vt_jw *j = &r->out;

    vt_jw_list(j, "token_ids");
    for (uint32_t k = m->first_token; k < m->first_token + m->n_tokens; k++)
        vt_jw_u64(j, NULL, oracle_token(r->c, (uint32_t)e->tag, k));
    vt_jw_end(j);
    vt_jw_u64(j, "block_size", m->block_size);
    put_lora_id(r, q);
    vt_jw_str(j, "medium", m->medium == VT_MEDIUM_CPU ? "CPU" : "GPU");
    vt_jw_str(j, "lora_name", q->lora > 0 ? q->lora_name : NULL);
    put_extra_keys(r, e, m);
    put_group(r, e, m);
    vt_jw_null(j, "locality");
    if (r->c->config.vllm >= OWNERSHIP_SINCE)
        vt_jw_null(j, "ownership");
    if (r->c->config.vllm >= SESSIONS_SINCE)
        vt_jw_null(j, "session_id");
    vt_jw_str(j, "type", "BlockStored");
}

static int put_parent(struct replay *r, uint32_t i, uint32_t before, struct vt_err *err)
{
    uint64_t hash = 0;
    int rc = VT_OK;

    if (before == 0)
        vt_jw_null(&r->out, "parent_block_hash");
    else if ((rc = oracle_block_hash(r->c, i, before - 1, &hash, err)) == VT_OK)
        vt_jw_u64(&r->out, "parent_block_hash", hash);
    return rc;
}

/* A chunk's hashes. */
static int put_chunk(struct replay *r, const struct vt_kv_event *e,
                     const struct vt_kv_message *m, struct vt_err *err)
{
    uint64_t hash = 0;
    int rc;

    for (uint32_t k = 0; k < m->n_kept; k++) {
        if ((rc = oracle_block_hash(r->c, (uint32_t)e->tag, m->first_hash + k, &hash,
                                    err)))
            return rc;
        vt_jw_u64(&r->out, NULL, hash);
    }
    return VT_OK;
}

static int put_chunk_stored(struct replay *r, const struct vt_kv_event *e,
                            const struct vt_kv_message *m, struct vt_err *err)
{
    int rc;

    vt_jw_map(&r->out, NULL);
    vt_jw_list(&r->out, "block_hashes");
    if ((rc = put_chunk(r, e, m, err)))
        return rc;
    vt_jw_end(&r->out);
    if ((rc = put_parent(r, (uint32_t)e->tag, m->bare ? 0 : m->first_hash, err)))
        return rc;
    put_stored_rest(r, e, m);
    vt_jw_end(&r->out);
    return VT_OK;
}

/* One message for blocks that were stored together. */
static int put_stored(struct replay *r, const struct vt_kv_event *e,
                      const struct vt_kv_message *m, struct vt_err *err)
{
    uint32_t i = (uint32_t)e->tag;
    uint64_t hash = 0;
    int rc;

    if (m->medium == VT_MEDIUM_CPU)
        return put_chunk_stored(r, e, m, err);
    vt_jw_map(&r->out, NULL);
    vt_jw_list(&r->out, "block_hashes");
    for (uint32_t k = 0; k < m->n_events; k++) {
        if (e[k].key == 0)
            continue;
        if ((rc = oracle_block_hash(r->c, i, (e[k].index + 1) * m->units - 1, &hash,
                                    err)) ||
            (rc = vt_grow(&r->hashes, &r->cap_hashes, r->n_hashes + 1,
                          sizeof(*r->hashes), err)))
            return rc;
        r->hashes[r->n_hashes++] = (struct known_hash){e[k].key, hash};
        vt_jw_u64(&r->out, NULL, hash);
    }
    vt_jw_end(&r->out);
    if ((rc = put_parent(r, i, e->index * m->units, err)))
        return rc;
    put_stored_rest(r, e, m);
    vt_jw_end(&r->out);
    return VT_OK;
}

/* Those of the n that are told together; returns how many. */
static int put_removed(struct replay *r, const struct vt_kv_event *e, uint32_t n,
                       uint32_t *told, struct vt_err *err)
{
    bool host = e->medium == VT_MEDIUM_CPU;
    size_t i = r->n_hashes;
    int rc = VT_OK;

    *told = 0;
    vt_jw_map(&r->out, NULL);
    vt_jw_list(&r->out, "block_hashes");
    while (!host && i > 0 && r->hashes[i - 1].key != e->key)
        i--;
    if (!host)
        vt_jw_u64(&r->out, NULL, i > 0 ? r->hashes[i - 1].hash : 0);
    do {
        struct vt_kv_message m = vt_kv_message(&r->c->config, &e[*told], 1);

        if (host && (rc = put_chunk(r, &e[*told], &m, err)))
            return rc;
    } while (++*told < n && e[*told].kind == VT_KV_REMOVED && e[*told].joins);
    vt_jw_end(&r->out);
    vt_jw_str(&r->out, "medium", host ? "CPU" : "GPU");
    vt_jw_u64(&r->out, "group_idx", e->group);
    vt_jw_null(&r->out, "locality");
    if (r->c->config.vllm >= OWNERSHIP_SINCE)
        vt_jw_null(&r->out, "ownership");
    vt_jw_str(&r->out, "type", "BlockRemoved");
    vt_jw_end(&r->out);
    return VT_OK;
}

/* The next recorded event, as a one-field map so that check_field() can compare it. */
static int check_event(struct replay *r, struct vt_err *err)
{
    const struct vt_node *list = r->c->kv_events, *e;
    struct vt_node cell, rec = {.kind = VT_MAP, .n = 1, .u = {.item = &cell}};

    if (r->next_event >= list->n)
        return vt_fail(err, VT_ECHECK,
                       "%s: step %u: field 'kv_events' differs: got %.120s, "
                       "recorded no more",
                       r->c->name, r->step, r->mine.data);
    e = &list->u.item[r->next_event++];
    if (e->kind != VT_LIST || e->n != 2 || e->u.item[0].kind != VT_INT)
        return vt_fail(err, VT_EINPUT, "line %u: not a [step, event] pair", e->line);
    if (e->u.item[0].u.integer != r->at)
        return vt_fail(
            err, VT_ECHECK,
            "%s: step %u: field 'kv_events' differs: got %.120s, recorded at "
            "step %lld",
            r->c->name, r->step, r->mine.data, (long long)e->u.item[0].u.integer);
    cell = e->u.item[1];
    cell.key = "kv_events";
    return check_field(r, &rec, "kv_events", "null", err);
}

int replay_events(struct replay *r, struct vt_err *err)
{
    uint32_t n, i = 0, k;
    const struct vt_kv_event *e = vt_sched_kv_events(r->s, &n);
    int rc = VT_OK;

    for (; i < n && rc == VT_OK && r->c->kv_events; i += k) {
        k = 1;
        if (e[i].kind == VT_KV_STORED) {
            struct vt_kv_message m = vt_kv_message(&r->c->config, &e[i], n - i);

            k = m.n_events;
            rc = put_stored(r, &e[i], &m, err);
        } else if (e[i].kind == VT_KV_REMOVED) {
            rc = put_removed(r, &e[i], n - i, &k, err);
        } else {
            vt_buf_str(&r->mine, "{\"type\":\"AllBlocksCleared\"}");
        }
        if (rc == VT_OK)
            rc = check_event(r, err);
    }
    vt_sched_kv_events_clear(r->s);
    return rc;
}

int replay_events_seen(struct replay *r, struct vt_err *err)
{
    if (!r->c->kv_events || r->next_event == r->c->kv_events->n)
        return VT_OK;
    return vt_fail(err, VT_ECHECK,
                   "%s: step %u: field 'kv_events' differs: got %u events, "
                   "recorded %u",
                   r->c->name, r->step, r->next_event, r->c->kv_events->n);
}
