/* fields.h - messages described by tables: which field stands where in which
 * struct; private to wire. A table serves arrays (a field's place is its row) and maps
 * (its name is the key).
 *
 * Messages of errors grow from the inside out: "request: field 3 (sampling_params): not
 * a map". */
#ifndef VT_WIRE_CODEC_FIELDS_H
#define VT_WIRE_CODEC_FIELDS_H

#include "base/base.h"
#include "wire/wire.h"

struct msg_in { /* one message that is being read */
    struct mp_in in;
    struct vt_arena *arena; /* NULL where nothing is listed or copied */
    struct vt_err *err;
    uint32_t n_aux; /* buffers that follow the message */
};

enum msg_kind {
    MSG_VALUE, /* struct mp_span: any value, whole */
    MSG_ARRAY, /* the same, for one type alone */
    MSG_MAP,
    MSG_STRING,
    MSG_FLAG,
    MSG_TENSORS, /* the same: an array that may name buffers, all of them there */
    MSG_TEXT,    /* struct mp_span: characters */
    MSG_NAME,    /* const char *: a copy with a NUL */
    MSG_BOOL,
    MSG_U32,
    MSG_I32,
    MSG_U31, /* int, not negative */
    MSG_U64,
    MSG_I64,
    MSG_F64,
    MSG_TOKENS,      /* uint32_t * and uint32_t */
    MSG_SOME_TOKENS, /* the same; what can be no token is left out */
    MSG_U64S,        /* uint64_t * and uint32_t */
    MSG_TEXTS,       /* struct mp_span * and uint32_t */
    MSG_NESTED,      /* a map of fields of the same struct */
    MSG_TUPLE,       /* an array of them */
    /* Not read: */
    MSG_BYTE, /* always written so */
};

/* Values of one byte. */
enum {
    MSG_ZERO = 0x00,
    MSG_ONE = 0x01,
    MSG_NO_PAIRS = 0x80,
    MSG_NO_ITEMS = 0x90,
    MSG_NIL = 0xc0,
    MSG_FALSE = 0xc2,
};

/* nil leaves the default. MSG_NIL_BELOW_0: a negative number is written as nil, with
 * MSG_NIL_AT_0 the number 0; MSG_LEFT_OUT: a text that is absent, or a number 0, is not
 * written, nor is its key. */
enum msg_nil { MSG_NEVER_NIL, MSG_NIL_OK, MSG_NIL_BELOW_0, MSG_NIL_AT_0, MSG_LEFT_OUT };

/* The first line that writes it: 26 is 0.26. */
enum msg_since { MSG_ALL_LINES, MSG_FROM_0_26 = 26, MSG_FROM_0_31 = 31, MSG_FROM_0_32 };

struct msg_table;

struct msg_field {
    const char *name;
    uint8_t name_len, kind, nil, since, byte;
    /* Offsets of the member, and of its number of elements; of what is nested, of the
     * flag that says whether it is there (0: it always is). */
    uint16_t at, n_at;
    const struct msg_table *nested;
    /* In place of what the kind does; NULL: that. */
    int (*read)(void *thing, struct msg_in *r);
    uint8_t *(*poke)(uint8_t *p, const struct vt_wire_line *line, const void *thing);
};

#define MSG_NAMED(text, what, can_be_nil) \
    .name = (text), .name_len = sizeof(text) - 1, .kind = (what), .nil = (can_be_nil)
#define MSG_LIST(type, text, what, can_be_nil, member, n_member) \
    {                                                            \
        MSG_NAMED(text, what, can_be_nil),                       \
        .at = offsetof(type, member),                            \
        .n_at = offsetof(type, n_member),                        \
    }
#define MSG_FIELD(type, text, what, can_be_nil, member) \
    MSG_LIST(type, text, what, can_be_nil, member, member)
#define MSG_READ(text, can_be_nil, function)    \
    {                                           \
        MSG_NAMED(text, MSG_VALUE, can_be_nil), \
        .read = (function),                     \
    }
#define MSG_CONST(text, value, from_line)      \
    {                                          \
        MSG_NAMED(text, MSG_BYTE, MSG_NIL_OK), \
        .byte = (value),                       \
        .since = (from_line),                  \
    }

struct msg_table {
    const struct msg_field *field;
    uint32_t n;
};
#define MSG_TABLE(fields) {fields, VT_COUNT(fields)}

/* One value each. What is missing stays as it was; what is beyond the table is skipped.
 * *n_fields (may be NULL) is how many the array has. */
int msg_read_array(const struct msg_table *t, void *thing, struct msg_in *r,
                   uint32_t *n_fields) VT_MUST_CHECK;
int msg_read_map(const struct msg_table *t, void *thing,
                 struct msg_in *r) VT_MUST_CHECK;
int msg_read_field(const struct msg_field *f, void *thing,
                   struct msg_in *r) VT_MUST_CHECK;

/* A message that is nothing else. */
int msg_whole_array(const struct msg_table *t, void *thing, struct vt_arena *a,
                    const void *bytes, size_t len, uint32_t *n_fields,
                    struct vt_err *err) VT_MUST_CHECK;
int msg_whole_map(const struct msg_table *t, void *thing, struct vt_arena *a,
                  const void *bytes, size_t len, struct vt_err *err) VT_MUST_CHECK;

/* Append to a buffer: a map of the fields that the line knows, an array of the first n,
 * or fields [from, to) alone. line: NULL where all lines have the same. */
void msg_write_map(struct vt_buf *b, const struct vt_wire_line *line,
                   const struct msg_table *t, const void *thing);
void msg_write_array(struct vt_buf *b, const struct msg_table *t, uint32_t n,
                     const void *thing);
void msg_write_fields(struct vt_buf *b, const struct vt_wire_line *line,
                      const struct msg_table *t, uint32_t from, uint32_t to,
                      const void *thing);
/* Write to memory that has room enough; return where they stopped. */
uint8_t *msg_poke_field(uint8_t *p, const struct vt_wire_line *line,
                        const struct msg_field *f, const void *thing);
uint8_t *msg_poke_map(uint8_t *p, const struct vt_wire_line *line,
                      const struct msg_table *t, const void *thing);

void msg_begin(struct msg_in *r, struct vt_arena *a, const void *bytes, size_t len,
               struct vt_err *err);
int msg_problem(struct msg_in *r); /* VT_OK, or what stopped the reader */
int msg_end(struct msg_in *r);     /* the same, also for bytes left over */

/* An array in the arena, zeroed; NULL fails the reader. */
void *msg_alloc(struct msg_in *r, uint32_t n, size_t cell);

#endif
