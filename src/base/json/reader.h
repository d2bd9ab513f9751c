/* reader.h - what the readers and the writer of JSON share. */
#ifndef VT_JSON_READER_H
#define VT_JSON_READER_H

#include "base/json/build.h"

struct vt_json {
    const char *p, *end;
    uint32_t line;
    struct vt_build build;
    struct vt_json_bounds *bounds; /* NULL: none */
    uint64_t n_values;
    bool in_ids;   /* within the list at bounds->key */
    size_t *nulls; /* NULL, or NaN and Infinity are null, and counted here */
};

/* "line N: unexpected end of text", or what was met instead of `wanted`. */
int vt_json_unexpected(struct vt_json *j, const char *wanted);

/* Reads the string whose opening quote is at j->p into the arena, NUL-terminated.
 * Its text is UTF-8 and may hold NULs. */
int vt_json_string(struct vt_json *j, const char **text, uint32_t *len);

/* Nonzero if any of the eight bytes at p cannot stand in a string as it is, or is not
 * ASCII; it may also be so if all can, which only costs time. */
static inline uint64_t vt_json_any_special(const char *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t highs = UINT64_C(0x8080808080808080);
    uint64_t w, quote, slash;

    memcpy(&w, p, sizeof(w));
    quote = w ^ ones * '"';
    slash = w ^ ones * '\\';
    return (w | (w - ones * 0x20) | (quote - ones) | (slash - ones)) & highs;
}

#endif
