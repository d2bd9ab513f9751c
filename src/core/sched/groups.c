#include "core/sched/groups.h"

/* Runs of equal groups, those that need every token first. */
static void sort_kinds(struct groups *gs, const struct vt_kv_group *is)
{
    for (int whole = 1; whole >= 0; whole--)
        for (uint32_t i = 0, n; i < gs->n; i += n) {
            n = layout_alike(&is[i], gs->n - i);
            if (gs->group[i].whole == (whole == 1))
                gs->kind[gs->n_kinds++] = (struct kind){i, n};
        }
}

static void init_group(struct group *g, const struct vt_kv_group *is,
                       const struct vt_engine_config *c, uint32_t unit)
{
    uint32_t window = is->type == VT_ATTENTION_SLIDING ? is->window - 1 : 0;

    *g = (struct group){
        .is = *is,
        .units = is->block_size / unit,
        .most = layout_most_blocks(c, is),
        .span = (window + is->block_size - 1) / is->block_size,
        .whole = layout_needs_all(is),
        .aligned =
            is->type == VT_ATTENTION_MAMBA && c->mamba_cache_mode == VT_MAMBA_ALIGN,
    };
}

int groups_init(struct groups *gs, const struct vt_engine_config *c, struct vt_err *err)
{
    struct vt_kv_group one;
    const struct vt_kv_group *is = layout_groups(c, &one, &gs->n);

    gs->group = calloc(gs->n, sizeof(*gs->group));
    if (!gs->group)
        return vt_nomem(err);
    gs->step = vt_scheduler_block_size(c);
    gs->unit = vt_hash_block_size(c);
    for (uint32_t i = 0; i < gs->n; i++) {
        init_group(&gs->group[i], &is[i], c, gs->unit);
        gs->aligned |= gs->group[i].aligned;
    }
    gs->always = gs->aligned || (gs->n > 1 && c->use_eagle);
    sort_kinds(gs, is);
    return VT_OK;
}

void groups_follow(struct groups *gs, const struct release *rules, uint32_t retention)
{
    gs->retention = retention;
    if (retention == VT_RETENTION_DEFAULT)
        gs->retention = rules->sparse_retention ? 0 : VT_RETENTION_DENSE;
    gs->saves = gs->aligned;
    for (uint32_t i = 0; i < gs->n; i++) {
        struct group *g = &gs->group[i];

        g->saves = g->aligned && g->is.saves_inside && rules->mamba_saves_inside;
        gs->saves &= g->saves || g->is.type != VT_ATTENTION_MAMBA;
    }
}

void groups_free(struct groups *gs)
{
    for (uint32_t i = 0; gs->group && i < gs->n; i++)
        free(gs->group[i].hit.block);
    free(gs->group);
    vt_map_free(&gs->fresh_states);
}

uint32_t groups_state_before(const struct groups *gs, uint32_t n, bool eagle)
{
    return place_before(n - !eagle, gs->step, eagle);
}

bool groups_saves_at(const struct groups *gs, uint32_t start, uint32_t end, uint32_t at,
                     uint32_t block_size)
{
    /* Places in the table, counted from 1: of the state that it begins with, and of the
     * one before its last. */
    uint32_t first = (start + block_size - 1) / block_size;
    uint32_t place = (end + block_size - 1) / block_size - 1;

    return start % gs->unit == 0 && place > first && start + gs->unit <= at && at < end;
}

uint32_t group_skips(const struct group *g, uint32_t n)
{
    uint32_t w = g->is.window;

    switch ((enum vt_attention)g->is.type) {
    case VT_ATTENTION_SLIDING:
        return n >= w ? n - w + 1 : 0;
    case VT_ATTENTION_CHUNKED:
        return n - n % w;
    case VT_ATTENTION_MAMBA:
        return n > 0 ? n - 1 : 0;
    default:
        return 0;
    }
}

uint32_t group_next_skip(const struct group *g, uint32_t n)
{
    uint64_t bs = g->is.block_size, w = g->is.window;
    uint64_t end = (group_skips(g, n) / bs + 1) * bs; /* of the next block to go */

    if (g->is.type == VT_ATTENTION_SLIDING)
        end += w - 1;
    else if (g->is.type == VT_ATTENTION_CHUNKED)
        end = (end + w - 1) / w * w;
    else if (g->is.type == VT_ATTENTION_MAMBA)
        end += 1;
    else
        end = UINT32_MAX;
    return end < UINT32_MAX ? (uint32_t)end : UINT32_MAX;
}
