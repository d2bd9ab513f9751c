/* json.c - styles of JSON. */
#include "http/json.h"

const struct vt_json_style json_body = {vt_buf_py_f64, vt_buf_json_str, ",", ":", NULL};
const struct vt_json_style json_dumps = {vt_buf_py_f64, vt_buf_json_str, ", ", ": ",
                                         NULL};
