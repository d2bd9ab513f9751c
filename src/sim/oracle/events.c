/* events.c - KV-cache events with the hashes that vLLM gives its blocks. */
#include "sim/oracle/replay.h"

static void put_stored_rest(struct replay *r, uint32_t i, uint32_t first, uint32_t n)
{
    uint32_t bs = r->c->config.block_size;
    struct vt_jw *j = &r->out;

    vt_jw_list(j, "token_ids");
    for (uint32_t k = first * bs; k < (first + n) * bs; k++)
        vt_jw_u64(j, NULL, oracle_token(r->c, i, k));
    vt_jw_end(j);
    vt_jw_u64(j, "block_size", bs);
    vt_jw_null(j, "lora_id");
    vt_jw_str(j, "medium", "GPU");
    vt_jw_null(j, "lora_name");
    vt_jw_list(j, "extra_keys");
    for (uint32_t k = first; k < first + n; k++) {
        const char *salt = k == 0 ? r->c->req[i].salt : NULL;

        if (salt)
            vt_jw_list(j, NULL);
        vt_jw_str(j, NULL, salt);
        if (salt)
            vt_jw_end(j);
    }
    vt_jw_end(j);
    vt_jw_u64(j, "group_idx", 0);
    vt_jw_str(j, "kv_cache_spec_kind", "full_attention");
    vt_jw_null(j, "kv_cache_spec_sliding_window");
    vt_jw_null(j, "locality");
    vt_jw_str(j, "type", "BlockStored");
}

/* One message for n blocks that were stored together. */
static int put_stored(struct replay *r, const struct vt_kv_event *e, uint32_t n,
                      struct vt_err *err)
{
    uint32_t i = (uint32_t)e->tag;
    uint64_t hash = 0;
    int rc;

    vt_jw_map(&r->out, NULL);
    vt_jw_list(&r->out, "block_hashes");
    for (uint32_t k = 0; k < n; k++) {
        if ((rc = oracle_block_hash(r->c, i, e[k].index, &hash, err)) ||
            (rc = vt_grow(&r->hashes, &r->cap_hashes, r->n_hashes + 1,
                          sizeof(*r->hashes), err)))
            return rc;
        r->hashes[r->n_hashes++] = (struct known_hash){e[k].key, hash};
        vt_jw_u64(&r->out, NULL, hash);
    }
    vt_jw_end(&r->out);
    if (e->index == 0)
        vt_jw_null(&r->out, "parent_block_hash");
    else if ((rc = oracle_block_hash(r->c, i, e->index - 1, &hash, err)))
        return rc;
    else
        vt_jw_u64(&r->out, "parent_block_hash", hash);
    put_stored_rest(r, i, e->index, n);
    vt_jw_end(&r->out);
    return VT_OK;
}

static void put_removed(struct replay *r, uint64_t key)
{
    size_t i = r->n_hashes;

    while (i > 0 && r->hashes[i - 1].key != key)
        i--;
    vt_buf_printf(&r->mine,
                  "{\"block_hashes\":[%llu],\"medium\":\"GPU\",\"group_idx\":0,"
                  "\"locality\":null,\"type\":\"BlockRemoved\"}",
                  (unsigned long long)(i > 0 ? r->hashes[i - 1].hash : 0));
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
    if (e->u.item[0].u.integer != r->step)
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
        for (k = 1; i + k < n && e[i + k].joins; k++)
            ;
        if (e[i].kind == VT_KV_STORED)
            rc = put_stored(r, &e[i], k, err);
        else if (e[i].kind == VT_KV_REMOVED)
            put_removed(r, e[i].key);
        else
            vt_buf_str(&r->mine, "{\"type\":\"AllBlocksCleared\"}");
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
