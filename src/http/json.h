/* json.h - JSON as vLLM's Python frontend writes it; private to http. */
#ifndef VT_HTTP_JSON_H
#define VT_HTTP_JSON_H

#include "base/base.h"

/* Bodies: no spaces, Python's floats. */
extern const struct vt_json_style json_body;
/* Text that a model would write, as json.dumps(ensure_ascii=False) does: a space behind
 * commas and colons. */
extern const struct vt_json_style json_dumps;

#endif
