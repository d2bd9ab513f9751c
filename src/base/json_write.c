/* json_write.c - a tree back to JSON. */
#include <string.h>

#include "base/base.h"

static void put_children(struct vt_buf *b, const struct vt_node *n,
                         const struct vt_json_style *s)
{
    bool map = n->kind == VT_MAP;

    vt_buf_char(b, map ? '{' : '[');
    for (uint32_t i = 0; i < n->n; i++) {
        const struct vt_node *child = &n->u.item[i];

        vt_buf_str(b, i > 0 ? s->comma : "");
        if (map) {
            s->text(b, child->key, strlen(child->key));
            vt_buf_str(b, s->colon);
        }
        vt_buf_json_node(b, child, s);
    }
    vt_buf_char(b, map ? '}' : ']');
}

void vt_buf_json_node(struct vt_buf *b, const struct vt_node *n,
                      const struct vt_json_style *style)
{
    static const struct vt_json_style ours = {vt_buf_f64, vt_buf_json_str, ",", ":"};
    const struct vt_json_style *s = style != NULL ? style : &ours;

    switch ((enum vt_kind)n->kind) {
    case VT_NULL:
        vt_buf_str(b, "null");
        break;
    case VT_BOOL:
        vt_buf_str(b, n->u.boolean ? "true" : "false");
        break;
    case VT_INT:
        vt_buf_int_node(b, n);
        break;
    case VT_REAL:
        s->real(b, n->u.real);
        break;
    case VT_STR:
        s->text(b, n->u.str, n->n);
        break;
    case VT_LIST:
    case VT_MAP: /* as deep as the parser let it become */
        put_children(b, n, s);
        break;
    }
}

void vt_buf_int_node(struct vt_buf *b, const struct vt_node *n)
{
    if (n->is_u64)
        vt_buf_u64(b, (uint64_t)n->u.integer);
    else
        vt_buf_i64(b, n->u.integer);
}
