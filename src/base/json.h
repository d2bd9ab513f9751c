/* json.h - the two halves of the JSON reader: structure and strings. */
#ifndef VT_JSON_H
#define VT_JSON_H

#include "base/tree_build.h"

struct vt_json {
    const char *p, *end;
    uint32_t line;
    struct vt_build build;
};

/* "line N: unexpected end of text", or what was met instead of `wanted`. */
int vt_json_unexpected(struct vt_json *j, const char *wanted);

/* Reads the string whose opening quote is at j->p into the arena, NUL-terminated.
 * Its text is UTF-8 and may hold NULs. */
int vt_json_string(struct vt_json *j, const char **text, uint32_t *len);

#endif
