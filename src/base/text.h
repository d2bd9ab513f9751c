/* text.h - UTF-8 for the rest of this room. */
#ifndef VT_TEXT_H
#define VT_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed character at p (1 to 4), or 0: overlong forms,
 * surrogates, values above U+10FFFF and cut sequences are not characters. */
size_t vt_utf8_len(const char *p, size_t left);

/* The length without a character that was cut at the end of the text. */
size_t vt_utf8_trim(const char *text, size_t len);

#endif
