/* json.c - trees as vLLM writes them. */
#include "http/json.h"

void json_node(struct vt_buf *b, const struct vt_node *n, enum json_spacing spacing)
{
    static const struct vt_json_style style[] = {
        [JSON_TIGHT] = {vt_buf_py_f64, vt_buf_json_str, ",", ":", NULL},
        [JSON_SPACED] = {vt_buf_py_f64, vt_buf_json_str, ", ", ": ", NULL},
    };

    vt_buf_json_node(b, n, &style[spacing]);
}
