/* mp.h - MessagePack, read and written in place.
 *
 * The reader walks over bytes it does not own and allocates nothing; values that are
 * passed on unread are kept as the bytes they came in. The first problem sticks: later
 * reads return zeroes, so that a decoder checks once at its end. */
#ifndef VT_BASE_MP_H
#define VT_BASE_MP_H

#include "base/base.h"
#include "base/json/json.h"

struct mp_span { /* bytes of a message, borrowed; of a value: one whole encoded value */
    const uint8_t *at; /* NULL: absent */
    size_t len;
};

/* ---- reading ---------------------------------------------------------- */

enum mp_type {
    MP_END, /* nothing left, or a problem before */
    MP_NIL,
    MP_BOOL,
    MP_INT,   /* any integer */
    MP_FLOAT, /* 32 or 64 bits */
    MP_STR,
    MP_BIN,
    MP_ARRAY,
    MP_MAP,
    MP_EXT,
};

struct mp_in {
    const uint8_t *at, *end;
    const char *bad; /* what is wrong, a few static words; NULL: nothing yet */
};

void mp_in_init(struct mp_in *in, const void *bytes, size_t len);
enum mp_type mp_peek(const struct mp_in *in);
bool mp_fail(struct mp_in *in, const char *what); /* false; keeps the first problem */

/* Each consumes one value of its kind, or fails. A number of elements is never more
 * than the bytes left could hold, so that it can be allocated for. */
uint32_t mp_array(struct mp_in *in); /* number of elements, which follow */
uint32_t mp_map(struct mp_in *in);   /* number of key-value pairs, which follow */
bool mp_bool(struct mp_in *in);
uint64_t mp_u64(struct mp_in *in); /* an integer that is not negative */
uint32_t mp_u32(struct mp_in *in);
bool mp_u32s(struct mp_in *in, uint32_t *out, uint32_t n); /* n of them, fast */
int64_t mp_i64(struct mp_in *in);
double mp_f64(struct mp_in *in);         /* a number of any kind */
struct mp_span mp_str(struct mp_in *in); /* its characters */
struct mp_span mp_bin(struct mp_in *in); /* its bytes; text is accepted as well */
struct mp_span mp_ext(struct mp_in *in, int *type); /* its bytes */
struct mp_span mp_raw(struct mp_in *in); /* any one value, whole, as it is encoded */
void mp_skip(struct mp_in *in);          /* any one value; nesting is bounded */
bool mp_nil(struct mp_in *in); /* consumes a nil and returns true; else leaves it */

/* For values kept as spans. */
bool mp_is_nil(struct mp_span value); /* also when absent */
/* The value of a key in a map; absent where there is none or `map` is not one. */
struct mp_span mp_get(struct mp_span map, const char *key);
/* The characters of a text; absent where the value is something else. */
struct mp_span mp_text(struct mp_span value);
/* An integer up to `most` that is not negative; `fallback` where it is something else.
 */
uint64_t mp_natural(struct mp_span value, uint64_t most, uint64_t fallback);
bool mp_span_is(struct mp_span text, const char *word); /* characters, not a value */

/* One value as JSON text: numbers exact, ext {"__ext__":type,"len":n,"hex":...}, bin
 * {"__bin__":hex}, keys that are not text written as text. False: malformed. */
bool mp_json(struct vt_buf *b, struct mp_span value);

/* ---- writing ---------------------------------------------------------- */

/* Appends to a vt_buf in the shortest form of each value, as msgspec and rmp do; a
 * failed append shows in the buffer. */
void mp_put_nil(struct vt_buf *b);
void mp_put_bool(struct vt_buf *b, bool v);
void mp_put_u64(struct vt_buf *b, uint64_t v);
void mp_put_i64(struct vt_buf *b, int64_t v);
void mp_put_f64(struct vt_buf *b, double v);
void mp_put_f32(struct vt_buf *b, float v);
void mp_put_str(struct vt_buf *b, const char *text);
void mp_put_strn(struct vt_buf *b, const void *text, size_t len);
void mp_put_bin(struct vt_buf *b, const void *bytes, size_t len);
void mp_put_ext(struct vt_buf *b, int type, const void *bytes, size_t len);
void mp_put_array(struct vt_buf *b, uint32_t n);
void mp_put_map(struct vt_buf *b, uint32_t n);
void mp_put_raw(struct vt_buf *b, struct mp_span value);     /* absent: nil */
void mp_put_node(struct vt_buf *b, const struct vt_node *n); /* a tree of JSON */

#include "base/mp/poke.h"

#endif
