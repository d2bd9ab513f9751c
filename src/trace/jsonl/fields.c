/* fields.c - single fields of a line of trace.jsonl. */
#include "trace/jsonl/jsonl.h"

int jsonl_get_u32(const struct vt_node *map, const char *key, uint32_t lo, uint32_t hi,
                  uint32_t *out, struct vt_err *err)
{
    return vt_get_non_null(map, key)
               ? vt_get_u32(map, key, VT_REQUIRED, lo, hi, out, err)
               : VT_OK;
}

int jsonl_get_str(const struct vt_node *map, const char *key, const char **out,
                  struct vt_err *err)
{
    return vt_get_non_null(map, key) ? vt_get_str(map, key, VT_REQUIRED, out, err)
                                     : VT_OK;
}

int jsonl_get_ms(const struct vt_node *map, const char *key, vt_ns *out,
                 struct vt_err *err)
{
    double ms = 0;
    int rc;

    if (!vt_get_non_null(map, key))
        return VT_OK;
    rc = vt_get_f64(map, key, VT_REQUIRED, 0, TRACE_MAX_MS, &ms, err);
    if (rc == VT_OK)
        *out = vt_ns_from_ms(ms);
    return rc;
}

int jsonl_bad_field(const struct vt_node *row, const char *key, const char *what,
                    struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "line %u: field '%s' %s", row->line, key, what);
}

int jsonl_get_list(const struct vt_node *map, const char *key,
                   const struct vt_node **out, struct vt_err *err)
{
    *out = vt_get_non_null(map, key);
    if (*out && (*out)->kind != VT_LIST)
        return jsonl_bad_field(map, key, "is not a list", err);
    return VT_OK;
}

bool jsonl_node_u32(const struct vt_node *n, uint32_t lo, uint32_t *out)
{
    uint64_t v;

    if (!vt_node_u64(n, UINT32_MAX, &v) || v < lo)
        return false;
    *out = (uint32_t)v;
    return true;
}

bool jsonl_node_ms(const struct vt_node *n, vt_ns *out)
{
    double ms;

    if (!vt_node_f64(n, &ms) || ms < 0 || ms > TRACE_MAX_MS)
        return false;
    *out = vt_ns_from_ms(ms);
    return true;
}

int jsonl_copy_str(struct vt_arena *a, const struct vt_node *map, const char *key,
                   const char **out, struct vt_err *err)
{
    const char *text = NULL;
    int rc = jsonl_get_str(map, key, &text, err);

    return rc || !text ? rc : vt_arena_text(a, text, out, err);
}
