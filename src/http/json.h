/* json.h - JSON as Python writes it, fast; private to http. */
#ifndef VT_HTTP_OUT_JSON_H
#define VT_HTTP_OUT_JSON_H

#include "base/base.h"

/* json.dumps puts a space behind commas and colons; bodies are written without. */
enum json_spacing { JSON_TIGHT, JSON_SPACED };

#define json_room    vt_json_room
#define json_text_at vt_json_str_at
#define json_text    vt_buf_json_str
#define json_float32 vt_buf_py_f32

void json_node(struct vt_buf *b, const struct vt_node *n, enum json_spacing spacing);
/* As above, NULL as null. */
static inline void json_node_or_null(struct vt_buf *b, const struct vt_node *n)
{
    json_node(b, n, JSON_TIGHT);
}

#endif
