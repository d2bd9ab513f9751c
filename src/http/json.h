/* json.h - JSON as Python writes it, fast; private to http. */
#ifndef VT_HTTP_OUT_JSON_H
#define VT_HTTP_OUT_JSON_H

#include "base/base.h"

/* json.dumps puts a space behind commas and colons; bodies are written without. */
enum json_spacing { JSON_TIGHT, JSON_SPACED };

/* Bytes that a text may take as a JSON string, with quotes. */
static inline size_t json_room(size_t len)
{
    return 6 * len + 2;
}
/* Writes it with quotes to a place with that room; returns the end. The text is UTF-8.
 */
char *json_text_at(char *p, const char *text, size_t len);
void json_text(struct vt_buf *b, const char *text, size_t len);
/* The same text as vt_buf_py_f64((double)v), sooner. */
void json_float32(struct vt_buf *b, float v);
void json_node(struct vt_buf *b, const struct vt_node *n, enum json_spacing spacing);
/* As above, NULL as null. */
void json_node_or_null(struct vt_buf *b, const struct vt_node *n);

#endif
