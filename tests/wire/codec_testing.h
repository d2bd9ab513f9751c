/* codec_testing.h - what the tests of the codec share: bytes as hex, bytes that end
 * where the sanitizer notices. */
#ifndef VT_TESTS_WIRE_CODEC_TESTING_H
#define VT_TESTS_WIRE_CODEC_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

static inline int hex_value(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Spaces are skipped. The bytes are the caller's to free. */
static inline struct mp_span unhex(const char *hex)
{
    uint8_t *bytes = malloc(strlen(hex) / 2 + 1);
    size_t n = 0;

    assert_non_null(bytes);
    while (*hex) {
        if (*hex == ' ') {
            hex++;
            continue;
        }
        bytes[n++] = (uint8_t)(hex_value(hex[0]) << 4 | hex_value(hex[1]));
        hex += 2;
    }
    return (struct mp_span){bytes, n};
}

/* A copy in a block of its own size. */
static inline struct mp_span exact(const void *bytes, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);

    assert_non_null(copy);
    if (len > 0)
        memcpy(copy, bytes, len);
    return (struct mp_span){copy, len};
}

static inline void span_free(struct mp_span s)
{
    union {
        const uint8_t *borrowed;
        void *own;
    } p = {s.at};

    free(p.own);
}

static inline void assert_hex(const struct vt_buf *b, const char *hex)
{
    struct mp_span want = unhex(hex);

    assert_false(b->failed);
    assert_int_equal(b->len, want.len);
    assert_memory_equal(b->data, want.at, want.len);
    span_free(want);
}

static inline struct mp_span buf_span(const struct vt_buf *b)
{
    return (struct mp_span){(const uint8_t *)b->data, b->len};
}

static inline struct mp_span text_span(const char *text)
{
    return (struct mp_span){(const uint8_t *)text, strlen(text)};
}

/* One row of a table as a test of its own. */
static inline struct CMUnitTest row(const char *name, CMUnitTestFunction f,
                                    const void *state)
{
    union {
        const void *in;
        void *out;
    } p = {state};

    return (struct CMUnitTest){.name = name, .test_func = f, .initial_state = p.out};
}

#endif
