/* fields.c - reading and writing of arrays and maps by table. */
#include "wire/codec/fields.h"

#include <math.h>

/* Elements of a list that takes more memory than it has bytes; far beyond any real one.
 */
enum { MAX_LIST = 1 << 20 };
/* Bytes of what a field's own poke() writes beside the fields of its table, at most. */
enum { POKE_CONSTANTS = 256 };

static const char no_memory[] = "out of memory";

void msg_begin(struct msg_in *r, struct vt_arena *a, const void *bytes, size_t len,
               struct vt_err *err)
{
    mp_in_init(&r->in, bytes, len);
    r->arena = a;
    r->err = err;
    r->n_aux = 0;
}

int msg_problem(struct msg_in *r)
{
    if (!r->in.bad)
        return VT_OK;
    if (r->in.bad == no_memory)
        return vt_nomem(r->err);
    return vt_fail(r->err, VT_EINPUT, "%s", r->in.bad);
}

int msg_end(struct msg_in *r)
{
    if (!r->in.bad && r->in.at != r->in.end)
        mp_fail(&r->in, "bytes after its end");
    return msg_problem(r);
}

void *msg_alloc(struct msg_in *r, uint32_t n, size_t cell)
{
    void *p = vt_arena_alloc(r->arena, (size_t)n * cell);

    if (!p)
        mp_fail(&r->in, no_memory);
    return p;
}

/* ---- single members --------------------------------------------------- */

static double read_whole(struct mp_in *in)
{
    double d = mp_f64(in);

    /* 2^63 and beyond do not fit; NaN compares with nothing. */
    if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0) || d != floor(d)) {
        mp_fail(in, "not a whole number");
        return 0.0;
    }
    return d;
}

/* Frontends are free to write 16.0 for 16. */
static int64_t read_integer(struct mp_in *in, int64_t lo, int64_t hi)
{
    int64_t v = mp_peek(in) == MP_FLOAT ? (int64_t)read_whole(in) : mp_i64(in);

    if (v < lo)
        return mp_fail(in, lo == 0 ? "negative" : "too small");
    return v > hi ? mp_fail(in, "too large") : v;
}

static uint64_t read_natural(struct mp_in *in)
{
    return mp_peek(in) == MP_FLOAT ? (uint64_t)read_integer(in, 0, INT64_MAX)
                                   : mp_u64(in);
}

static struct mp_span value_of(struct mp_in *in, enum mp_type type, const char *bad)
{
    if (in->at < in->end && mp_peek(in) != type)
        mp_fail(in, bad);
    return mp_raw(in);
}

/* A tensor is [dtype, shape, data]; data may be the number of a buffer, from 1. The
 * value has passed mp_raw(), so the depth is bounded. */
static bool buffers_exist(struct mp_in *in, uint32_t n_aux)
{
    bool tensor, exist = true;
    uint32_t n;

    if (mp_peek(in) != MP_ARRAY) {
        mp_skip(in);
        return true;
    }
    n = mp_array(in);
    tensor = n == 3 && mp_peek(in) == MP_STR;
    for (uint32_t i = 0; i < n && exist; i++) {
        if (tensor && i == 2 && mp_peek(in) == MP_INT) {
            uint64_t buffer = mp_u64(in);

            exist = buffer >= 1 && buffer <= n_aux;
        } else {
            exist = buffers_exist(in, n_aux);
        }
    }
    return exist;
}

/* ---- fields ----------------------------------------------------------- */

/* Elements of a list, in cells of its own kind; how many were kept. */
static uint32_t elements_read(enum msg_kind kind, void *list, uint32_t n,
                              struct mp_in *in)
{
    uint32_t kept = 0;

    if (kind == MSG_TOKENS)
        return mp_u32s(in, list, n) ? n : 0;
    for (uint32_t i = 0; i < n; i++) {
        double v;

        if (kind == MSG_U64S) {
            ((uint64_t *)list)[kept++] = read_natural(in);
        } else if (kind == MSG_TEXTS) {
            ((struct mp_span *)list)[kept++] = mp_str(in);
        } else { /* what can be no token is left out */
            v = mp_f64(in);
            if (v >= 0.0 && v <= UINT32_MAX && v == floor(v))
                ((uint32_t *)list)[kept++] = (uint32_t)v;
        }
    }
    return kept;
}

static void list_read(const struct msg_field *f, char *thing, struct msg_in *r)
{
    static const size_t cells[] = {
        [MSG_TOKENS] = sizeof(uint32_t),
        [MSG_SOME_TOKENS] = sizeof(uint32_t),
        [MSG_U64S] = sizeof(uint64_t),
        [MSG_TEXTS] = sizeof(struct mp_span),
    };
    enum msg_kind kind = (enum msg_kind)f->kind;
    uint32_t n = mp_array(&r->in), kept;
    void *list;

    *(uint32_t *)(void *)(thing + f->n_at) = 0;
    if (n > MAX_LIST && cells[kind] > sizeof(uint32_t))
        mp_fail(&r->in, "too many");
    list = r->in.bad ? NULL : msg_alloc(r, n, cells[kind]);
    kept = list ? elements_read(kind, list, n, &r->in) : 0;
    if (r->in.bad)
        return;
    memcpy(thing + f->at, &list, sizeof(list)); /* some point at const */
    *(uint32_t *)(void *)(thing + f->n_at) = kept;
}

static void member_read(const struct msg_field *f, char *thing, struct msg_in *r)
{
    struct mp_in *in = &r->in, inside;
    void *at = thing + f->at;
    struct mp_span s;

    switch ((enum msg_kind)f->kind) {
    case MSG_VALUE:
        *(struct mp_span *)at = mp_raw(in);
        break;
    case MSG_ARRAY:
        *(struct mp_span *)at = value_of(in, MP_ARRAY, "not an array");
        break;
    case MSG_MAP:
        *(struct mp_span *)at = value_of(in, MP_MAP, "not a map");
        break;
    case MSG_STRING:
        *(struct mp_span *)at = value_of(in, MP_STR, "not text");
        break;
    case MSG_FLAG:
        *(struct mp_span *)at = value_of(in, MP_BOOL, "not a boolean");
        break;
    case MSG_TENSORS:
        *(struct mp_span *)at = s = value_of(in, MP_ARRAY, "not an array");
        mp_in_init(&inside, s.at, s.len);
        if (s.at && !buffers_exist(&inside, r->n_aux))
            mp_fail(in, "names a buffer that did not come");
        break;
    case MSG_TEXT:
        *(struct mp_span *)at = mp_str(in);
        break;
    case MSG_NAME:
        s = mp_str(in);
        if (in->bad)
            break;
        *(const char **)at = vt_arena_copy(r->arena, (const char *)s.at, s.len);
        if (!*(const char **)at)
            mp_fail(in, no_memory);
        break;
    case MSG_BOOL:
        *(bool *)at = mp_bool(in);
        break;
    case MSG_U32:
        *(uint32_t *)at = (uint32_t)read_integer(in, 0, UINT32_MAX);
        break;
    case MSG_I32:
        *(int32_t *)at = (int32_t)read_integer(in, INT32_MIN, INT32_MAX);
        break;
    case MSG_U31:
        *(int *)at = (int)read_integer(in, 0, INT32_MAX);
        break;
    case MSG_U64:
        *(uint64_t *)at = read_natural(in);
        break;
    case MSG_I64:
        *(int64_t *)at = read_integer(in, INT64_MIN, INT64_MAX);
        break;
    case MSG_F64:
        *(double *)at = mp_f64(in);
        break;
    default:
        list_read(f, thing, r);
    }
}

/* Most optional fields are nil: worth a path without calls. */
static inline bool skip_nil(const struct msg_field *f, struct mp_in *in)
{
    bool nil = f->nil != MSG_NEVER_NIL && in->at < in->end && *in->at == 0xc0;

    in->at += nil;
    return nil;
}

int msg_read_field(const struct msg_field *f, void *thing, struct msg_in *r)
{
    if (skip_nil(f, &r->in))
        return VT_OK;
    if (f->read)
        return f->read(thing, r);
    if (f->kind == MSG_NESTED) {
        if (f->n_at)
            *((bool *)thing + f->n_at) = true;
        return msg_read_map(f->nested, thing, r);
    }
    member_read(f, thing, r);
    return msg_problem(r);
}

int msg_read_array(const struct msg_table *t, void *thing, struct msg_in *r,
                   uint32_t *n_fields)
{
    uint32_t n = mp_array(&r->in);

    if (n_fields)
        *n_fields = n;
    for (uint32_t i = 0; i < n && i < t->n; i++) {
        int rc = VT_OK;

        if (!skip_nil(&t->field[i], &r->in))
            rc = msg_read_field(&t->field[i], thing, r);
        if (rc != VT_OK)
            return vt_within(r->err, rc, "field %u (%s)", i, t->field[i].name);
    }
    for (uint32_t i = t->n; i < n && !r->in.bad; i++)
        mp_skip(&r->in);
    return msg_problem(r);
}

/* Keys mostly come in the order of the table, so the search goes on from the last. */
static const struct msg_field *find_field(const struct msg_table *t, struct mp_span key,
                                          uint32_t *from)
{
    for (uint32_t k = 0; k < t->n; k++) {
        uint32_t i = *from + k < t->n ? *from + k : *from + k - t->n;
        const struct msg_field *f = &t->field[i];

        if (f->name_len == key.len && memcmp(f->name, key.at, key.len) == 0) {
            *from = i + 1;
            return f;
        }
    }
    return NULL;
}

int msg_read_map(const struct msg_table *t, void *thing, struct msg_in *r)
{
    struct mp_in *in = &r->in;
    uint32_t n = mp_map(in), from = 0;

    for (uint32_t i = 0; i < n && !in->bad; i++) {
        const struct msg_field *f;
        struct mp_span key;
        int rc;

        if (in->at < in->end && mp_peek(in) != MP_STR)
            mp_fail(in, "a key that is not text");
        key = mp_str(in);
        f = key.at ? find_field(t, key, &from) : NULL;
        if (!f || f->kind >= MSG_BYTE) {
            mp_skip(in);
            continue;
        }
        rc = msg_read_field(f, thing, r);
        if (rc != VT_OK)
            return vt_within(r->err, rc, "field '%s'", f->name);
    }
    return msg_problem(r);
}

int msg_whole_array(const struct msg_table *t, void *thing, struct vt_arena *a,
                    const void *bytes, size_t len, uint32_t *n_fields,
                    struct vt_err *err)
{
    struct msg_in r;
    int rc;

    msg_begin(&r, a, bytes, len, err);
    rc = msg_read_array(t, thing, &r, n_fields);
    return rc == VT_OK ? msg_end(&r) : rc;
}

int msg_whole_map(const struct msg_table *t, void *thing, struct vt_arena *a,
                  const void *bytes, size_t len, struct vt_err *err)
{
    struct msg_in r;
    int rc;

    msg_begin(&r, a, bytes, len, err);
    rc = msg_read_map(t, thing, &r);
    return rc == VT_OK ? msg_end(&r) : rc;
}

/* ---- writing ---------------------------------------------------------- */

static uint8_t *poke_list(uint8_t *p, const struct msg_field *f, const char *thing)
{
    uint32_t n = *(const uint32_t *)(const void *)(thing + f->n_at);
    const struct mp_span *texts;
    const void *list;

    memcpy(&list, thing + f->at, sizeof(list));
    texts = list;
    if (!list && f->kind != MSG_U64S && f->nil == MSG_NIL_OK)
        return poke_nil(p);
    p = poke_array(p, n);
    for (uint32_t i = 0; i < n; i++)
        if (f->kind == MSG_TEXTS)
            p = poke_str(p, texts[i].at, (uint32_t)texts[i].len);
        else
            p = poke_u64(p, f->kind == MSG_TOKENS ? ((const uint32_t *)list)[i]
                                                  : ((const uint64_t *)list)[i]);
    return p;
}

static bool is_there(const struct msg_field *f, const void *thing)
{
    return f->n_at == 0 || *((const bool *)thing + f->n_at);
}

uint8_t *msg_poke_field(uint8_t *p, const struct vt_wire_line *line,
                        const struct msg_field *f, const void *thing)
{
    const void *at = (const char *)thing + f->at;
    const char *name;
    struct mp_span s;

    if (f->poke)
        return f->poke(p, line, thing);
    switch ((enum msg_kind)f->kind) {
    case MSG_TOKENS:
    case MSG_U64S:
    case MSG_TEXTS:
        return poke_list(p, f, thing);
    case MSG_TEXT:
        s = *(const struct mp_span *)at;
        return s.at ? poke_str(p, s.at, (uint32_t)s.len) : poke_nil(p);
    case MSG_BOOL:
        return poke_bool(p, *(const bool *)at);
    case MSG_F64:
        return poke_f64(p, *(const double *)at);
    case MSG_U32:
        if (f->nil == MSG_NIL_AT_0 && *(const uint32_t *)at == 0)
            return poke_nil(p);
        return poke_u64(p, *(const uint32_t *)at);
    case MSG_U64:
        return poke_u64(p, *(const uint64_t *)at);
    case MSG_I32:
    case MSG_U31:
        return poke_i64(p, *(const int32_t *)at);
    case MSG_I64:
        if (f->nil == MSG_NIL_BELOW_0 && *(const int64_t *)at < 0)
            return poke_nil(p);
        return poke_i64(p, *(const int64_t *)at);
    case MSG_NESTED:
        if (!is_there(f, thing))
            return poke_nil(p);
        return msg_poke_map(p, line, f->nested, thing);
    case MSG_TUPLE:
        if (!is_there(f, thing))
            return poke_nil(p);
        p = poke_array(p, f->nested->n);
        for (uint32_t i = 0; i < f->nested->n; i++)
            p = msg_poke_field(p, line, &f->nested->field[i], thing);
        return p;
    case MSG_NAME:
        name = *(const char *const *)at;
        return name ? poke_str(p, name, (uint32_t)strlen(name)) : poke_nil(p);
    case MSG_BYTE:
        return poke_byte(p, f->byte);
    default:
        return poke_raw(p, *(const struct mp_span *)at);
    }
}

static bool is_written(const struct vt_wire_line *line, const struct msg_field *f,
                       const void *thing)
{
    const struct mp_span *text = (const void *)((const char *)thing + f->at);

    if (f->nil == MSG_LEFT_OUT &&
        (f->kind == MSG_U64 ? *(const uint64_t *)(const void *)text == 0 : !text->at))
        return false;
    return f->since == MSG_ALL_LINES || line->minor >= f->since;
}

uint8_t *msg_poke_map(uint8_t *p, const struct vt_wire_line *line,
                      const struct msg_table *t, const void *thing)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n; i++)
        n += is_written(line, &t->field[i], thing);
    p = poke_map(p, n);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct msg_field *f = &t->field[i];

        if (is_written(line, f, thing))
            p = msg_poke_field(poke_str(p, f->name, f->name_len), line, f, thing);
    }
    return p;
}

static size_t fields_room(const struct msg_table *t, uint32_t from, uint32_t to,
                          const void *thing);

/* The most bytes that the value of a field takes. */
static size_t field_room(const struct msg_field *f, const char *thing)
{
    const void *at = thing + f->at;
    const struct mp_span *texts;
    size_t room = POKE_NUMBER;
    uint32_t n;

    switch ((enum msg_kind)f->kind) {
    case MSG_VALUE:
    case MSG_ARRAY:
    case MSG_MAP:
    case MSG_STRING:
    case MSG_FLAG:
    case MSG_TENSORS:
    case MSG_TEXT:
        return room + ((const struct mp_span *)at)->len;
    case MSG_NAME:
        return room + (*(const char *const *)at ? strlen(*(const char *const *)at) : 0);
    case MSG_TOKENS:
    case MSG_U64S:
        return room +
               *(const uint32_t *)(const void *)(thing + f->n_at) * (size_t)POKE_NUMBER;
    case MSG_TEXTS:
        texts = *(const struct mp_span *const *)at;
        n = texts ? *(const uint32_t *)(const void *)(thing + f->n_at) : 0;
        for (uint32_t i = 0; i < n; i++)
            room += POKE_HEAD + texts[i].len;
        return room;
    case MSG_NESTED:
    case MSG_TUPLE:
        return room + (f->poke ? POKE_CONSTANTS : 0) +
               fields_room(f->nested, 0, f->nested->n, thing);
    default:
        return room;
    }
}

static size_t fields_room(const struct msg_table *t, uint32_t from, uint32_t to,
                          const void *thing)
{
    size_t room = POKE_HEAD;

    for (uint32_t i = from; i < to; i++)
        room += POKE_HEAD + t->field[i].name_len + field_room(&t->field[i], thing);
    return room;
}

void msg_write_map(struct vt_buf *b, const struct vt_wire_line *line,
                   const struct msg_table *t, const void *thing)
{
    uint8_t *p = poke_room(b, fields_room(t, 0, t->n, thing));

    if (p)
        poke_done(b, msg_poke_map(p, line, t, thing));
}

void msg_write_fields(struct vt_buf *b, const struct vt_wire_line *line,
                      const struct msg_table *t, uint32_t from, uint32_t to,
                      const void *thing)
{
    uint8_t *p = poke_room(b, fields_room(t, from, to, thing));

    for (uint32_t i = from; p && i < to; i++)
        p = msg_poke_field(p, line, &t->field[i], thing);
    if (p)
        poke_done(b, p);
}

void msg_write_array(struct vt_buf *b, const struct msg_table *t, uint32_t n,
                     const void *thing)
{
    mp_put_array(b, n);
    msg_write_fields(b, NULL, t, 0, n, thing);
}
