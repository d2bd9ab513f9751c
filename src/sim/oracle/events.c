/* events.c - KV-cache events with the hashes that vLLM gives its blocks. */
#include "sim/oracle/replay.h"

/* The key at the end of the event's block, and the tokens in it. */
static uint32_t units_of(const struct replay *r, const struct vt_kv_event *e)
{
    const struct vt_engine_config *c = &r->c->config;
    uint32_t bs = c->n_kv_groups > 0 ? c->kv_group[e->group].block_size : c->block_size;

    return bs / vt_hash_block_size(c);
}

static void put_group(struct replay *r, const struct vt_kv_event *e)
{
    const struct vt_engine_config *c = &r->c->config;
    const struct vt_kv_group *g = c->n_kv_groups > 0 ? &c->kv_group[e->group] : NULL;
    struct vt_jw *j = &r->out;

    vt_jw_u64(j, "group_idx", e->group);
    vt_jw_str(j, "kv_cache_spec_kind",
              vt_attention_name(g ? g->type : VT_ATTENTION_FULL));
    if (g && g->window > 0 && g->type != VT_ATTENTION_CHUNKED)
        vt_jw_u64(j, "kv_cache_spec_sliding_window", g->window);
    else
        vt_jw_null(j, "kv_cache_spec_sliding_window");
}

/* Of the blocks that were kept; null where none was. */
static void put_extra_keys(struct replay *r, const struct vt_kv_event *e, uint32_t n)
{
    struct vt_jw *j = &r->out;
    bool any = false;

    for (uint32_t k = 0; k < n; k++)
        any |= e[k].key != 0;
    if (!any) {
        vt_jw_null(j, "extra_keys");
        return;
    }
    vt_jw_list(j, "extra_keys");
    for (uint32_t k = 0; k < n; k++) {
        const char *salt = e[k].index == 0 ? r->c->req[e->tag].salt : NULL;

        if (e[k].key == 0)
            continue;
        if (salt)
            vt_jw_list(j, NULL);
        vt_jw_str(j, NULL, salt);
        if (salt)
            vt_jw_end(j);
    }
    vt_jw_end(j);
}

static void put_stored_rest(struct replay *r, const struct vt_kv_event *e, uint32_t n)
{
    uint32_t bs = units_of(r, e) * vt_hash_block_size(&r->c->config);
    uint32_t i = (uint32_t)e->tag;
    struct vt_jw *j = &r->out;

    vt_jw_list(j, "token_ids");
    for (uint32_t k = e->index * bs; k < (e->index + n) * bs; k++)
        vt_jw_u64(j, NULL, oracle_token(r->c, i, k));
    vt_jw_end(j);
    vt_jw_u64(j, "block_size", bs);
    vt_jw_null(j, "lora_id");
    vt_jw_str(j, "medium", "GPU");
    vt_jw_null(j, "lora_name");
    put_extra_keys(r, e, n);
    put_group(r, e);
    vt_jw_null(j, "locality");
    if (r->c->has_owners) {
        vt_jw_null(j, "ownership");
        vt_jw_null(j, "session_id");
    }
    vt_jw_str(j, "type", "BlockStored");
}

/* One message for n blocks that were stored together. */
static int put_stored(struct replay *r, const struct vt_kv_event *e, uint32_t n,
                      struct vt_err *err)
{
    uint32_t i = (uint32_t)e->tag, units = units_of(r, e);
    uint64_t hash = 0;
    int rc;

    vt_jw_map(&r->out, NULL);
    vt_jw_list(&r->out, "block_hashes");
    for (uint32_t k = 0; k < n; k++) {
        if (e[k].key == 0)
            continue;
        if ((rc = oracle_block_hash(r->c, i, (e[k].index + 1) * units - 1, &hash,
                                    err)) ||
            (rc = vt_grow(&r->hashes, &r->cap_hashes, r->n_hashes + 1,
                          sizeof(*r->hashes), err)))
            return rc;
        r->hashes[r->n_hashes++] = (struct known_hash){e[k].key, hash};
        vt_jw_u64(&r->out, NULL, hash);
    }
    vt_jw_end(&r->out);
    if (e->index == 0)
        vt_jw_null(&r->out, "parent_block_hash");
    else if ((rc = oracle_block_hash(r->c, i, e->index * units - 1, &hash, err)))
        return rc;
    else
        vt_jw_u64(&r->out, "parent_block_hash", hash);
    put_stored_rest(r, e, n);
    vt_jw_end(&r->out);
    return VT_OK;
}

static void put_removed(struct replay *r, const struct vt_kv_event *e)
{
    size_t i = r->n_hashes;

    while (i > 0 && r->hashes[i - 1].key != e->key)
        i--;
    vt_buf_printf(&r->mine,
                  "{\"block_hashes\":[%llu],\"medium\":\"GPU\",\"group_idx\":%u,"
                  "\"locality\":null,%s\"type\":\"BlockRemoved\"}",
                  (unsigned long long)(i > 0 ? r->hashes[i - 1].hash : 0), e->group,
                  r->c->has_owners ? "\"ownership\":null," : "");
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
        for (k = 1; i + k < n && e[i + k].joins; k++)
            ;
        if (e[i].kind == VT_KV_STORED)
            rc = put_stored(r, &e[i], k, err);
        else if (e[i].kind == VT_KV_REMOVED)
            put_removed(r, &e[i]);
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
