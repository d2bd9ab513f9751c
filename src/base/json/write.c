/* write.c - JSON as it is told, value by value, in one of several layouts. */
#include <assert.h>

#include "base/base.h"

const struct vt_json_style vt_json_tight = {vt_buf_f64, vt_buf_json_str, ",", ":",
                                            NULL};
const struct vt_json_style vt_json_spaced = {vt_buf_f64, vt_buf_json_str, ", ", ": ",
                                             NULL};
const struct vt_json_style vt_json_python = {vt_buf_py_f64, vt_buf_json_ascii, ", ",
                                             ": ", NULL};
const struct vt_json_style vt_json_pretty = {vt_buf_f64, vt_buf_json_str, ", ", ": ",
                                             "  "};

void vt_jw_init(struct vt_jw *w, struct vt_buf *b, const struct vt_json_style *style)
{
    *w = (struct vt_jw){.b = b, .style = style ? style : &vt_json_tight};
}

void vt_jw_members(struct vt_jw *w, struct vt_buf *b, const struct vt_json_style *style,
                   bool more)
{
    vt_jw_init(w, b, style);
    w->depth = 1;
    w->is_map[0] = 1;
    w->more = more;
}

/* ---- between values ----------------------------------------------------- */

static bool on_lines(const struct vt_jw *w)
{
    return w->style->indent && w->row == 0;
}

static void new_line(struct vt_jw *w)
{
    vt_buf_char(w->b, '\n');
    for (uint32_t i = 0; i < w->depth; i++)
        vt_buf_str(w->b, w->style->indent);
}

/* Room for what stands before a value, and for a number or a short text behind it. */
enum { SHORT_KEY = 32, SHORT_TEXT = 64, ROOM = 6 * (SHORT_KEY + SHORT_TEXT) + 48 };

/* A comma or colon, and the space that may be behind it. */
static char *put_mark(char *p, const char *mark)
{
    p[0] = mark[0];
    p[1] = mark[1];
    return p + 1 + (mark[1] != '\0');
}

/* Writes comma and key to p if that is cheap, else to the buffer itself; returns where
 * the value goes on. Going through the buffer once for each member is worth a third. */
static char *key_at(struct vt_jw *w, const char *key, char *p)
{
    const struct vt_json_style *s = w->style;
    char *from = p;
    size_t len;

    assert(w->depth > 0 || !w->more);
    if (s->indent && w->depth > 0 && w->row == 0) {
        if (w->more)
            vt_buf_char(w->b, ',');
        new_line(w);
    } else if (w->more) {
        p = put_mark(p, s->comma);
    }
    w->more = true;
    if (!key)
        return p;
    len = strlen(key);
    if (len <= SHORT_KEY && s->text == vt_buf_json_str)
        return put_mark(vt_json_str_at(p, key, len), s->colon);
    vt_buf_add(w->b, from, (size_t)(p - from));
    s->text(w->b, key, len);
    return put_mark(from, s->colon);
}

void vt_jw_key(struct vt_jw *w, const char *key)
{
    char room[ROOM];

    vt_buf_add(w->b, room, (size_t)(key_at(w, key, room) - room));
}

/* "{", "null" and the like. */
static inline void put_word(struct vt_jw *w, const char *key, const char *word,
                            size_t len)
{
    char room[ROOM], *p = key_at(w, key, room);

    memcpy(p, word, len);
    vt_buf_add(w->b, room, (size_t)(p + len - room));
}

/* ---- maps and lists ----------------------------------------------------- */

static void open_level(struct vt_jw *w, const char *key, bool map, bool row)
{
    uint64_t bit = UINT64_C(1) << w->depth % 64;
    uint64_t *bits = &w->is_map[w->depth / 64 % VT_COUNT(w->is_map)];

    put_word(w, key, map ? "{" : "[", 1);
    assert(w->depth < VT_JW_DEPTH);
    w->b->failed = w->b->failed || w->depth >= VT_JW_DEPTH;
    *bits = map ? *bits | bit : *bits & ~bit;
    w->depth++;
    if (row && w->row == 0)
        w->row = w->depth;
    w->more = false;
}

void vt_jw_map(struct vt_jw *w, const char *key)
{
    open_level(w, key, true, false);
}

void vt_jw_list(struct vt_jw *w, const char *key)
{
    open_level(w, key, false, false);
}

void vt_jw_row(struct vt_jw *w, const char *key)
{
    open_level(w, key, true, true);
}

void vt_jw_row_list(struct vt_jw *w, const char *key)
{
    open_level(w, key, false, true);
}

void vt_jw_end(struct vt_jw *w)
{
    bool lines = on_lines(w) && w->more, map;

    assert(w->depth > 0);
    if (w->row == w->depth)
        w->row = 0;
    w->depth--;
    map = w->is_map[w->depth / 64 % VT_COUNT(w->is_map)] >> w->depth % 64 & 1;
    if (lines)
        new_line(w);
    vt_buf_char(w->b, map ? '}' : ']');
    w->more = true;
}

/* ---- values ------------------------------------------------------------- */

void vt_jw_raw(struct vt_jw *w, const char *key, const char *text, size_t len)
{
    vt_jw_key(w, key);
    vt_buf_add(w->b, text, len);
}

void vt_jw_null(struct vt_jw *w, const char *key)
{
    put_word(w, key, "null", 4);
}

void vt_jw_strn(struct vt_jw *w, const char *key, const char *text, size_t len)
{
    char room[ROOM], *p;

    if (w->style->text == vt_buf_json_str && len <= SHORT_TEXT) {
        p = vt_json_str_at(key_at(w, key, room), text, len);
        vt_buf_add(w->b, room, (size_t)(p - room));
        return;
    }
    vt_jw_key(w, key);
    w->style->text(w->b, text, len);
}

void vt_jw_str(struct vt_jw *w, const char *key, const char *text)
{
    if (text)
        vt_jw_strn(w, key, text, strlen(text));
    else
        vt_jw_null(w, key);
}

void vt_jw_bool(struct vt_jw *w, const char *key, bool v)
{
    put_word(w, key, v ? "true" : "false", v ? 4 : 5);
}

void vt_jw_u64(struct vt_jw *w, const char *key, uint64_t v)
{
    char room[ROOM];

    vt_buf_add(w->b, room, (size_t)(vt_u64_at(key_at(w, key, room), v) - room));
}

void vt_jw_i64(struct vt_jw *w, const char *key, int64_t v)
{
    vt_jw_key(w, key);
    vt_buf_i64(w->b, v);
}

void vt_jw_f64(struct vt_jw *w, const char *key, double v)
{
    vt_jw_key(w, key);
    w->style->real(w->b, v);
}

void vt_jw_ms(struct vt_jw *w, const char *key, vt_ns t)
{
    char room[ROOM];

    vt_buf_add(w->b, room, (size_t)(vt_ms_at(key_at(w, key, room), t) - room));
}

void vt_jw_printf(struct vt_jw *w, const char *key, const char *fmt, ...)
{
    va_list args;

    vt_jw_key(w, key);
    va_start(args, fmt);
    vt_buf_vprintf(w->b, fmt, args);
    va_end(args);
}

/* ---- lists of numbers --------------------------------------------------- */

/* A trace is nearly all of these: through the buffer once for many. */
enum { CHUNK = 1024, LONGEST = 32 };

static char *next_number(struct vt_jw *w, char *chunk, char *at, uint32_t i)
{
    if (chunk + CHUNK - at < LONGEST) {
        vt_buf_add(w->b, chunk, (size_t)(at - chunk));
        at = chunk;
    }
    return i > 0 ? put_mark(at, w->style->comma) : at;
}

void vt_jw_ms_list(struct vt_jw *w, const char *key, const vt_ns *t, uint32_t n)
{
    char chunk[CHUNK], *at = chunk;

    vt_jw_row_list(w, key);
    for (uint32_t i = 0; i < n; i++)
        at = vt_ms_at(next_number(w, chunk, at, i), t[i]);
    vt_buf_add(w->b, chunk, (size_t)(at - chunk));
    vt_jw_end(w);
}

void vt_jw_u32_list(struct vt_jw *w, const char *key, const uint32_t *v, uint32_t n)
{
    char chunk[CHUNK], *at = chunk;

    vt_jw_row_list(w, key);
    for (uint32_t i = 0; i < n; i++)
        at = vt_u64_at(next_number(w, chunk, at, i), v[i]);
    vt_buf_add(w->b, chunk, (size_t)(at - chunk));
    vt_jw_end(w);
}

void vt_jw_f64_list(struct vt_jw *w, const char *key, const double *v, uint32_t n)
{
    vt_jw_row_list(w, key);
    for (uint32_t i = 0; i < n; i++)
        vt_jw_f64(w, NULL, v[i]);
    vt_jw_end(w);
}

/* ---- trees -------------------------------------------------------------- */

void vt_jw_node(struct vt_jw *w, const char *key, const struct vt_node *n)
{
    if (!n) {
        vt_jw_null(w, key);
        return;
    }
    switch ((enum vt_kind)n->kind) {
    case VT_NULL:
        vt_jw_null(w, key);
        break;
    case VT_BOOL:
        vt_jw_bool(w, key, n->u.boolean);
        break;
    case VT_INT:
        vt_jw_key(w, key);
        vt_buf_int_node(w->b, n);
        break;
    case VT_BIG:
        vt_jw_raw(w, key, n->u.str, strlen(n->u.str));
        break;
    case VT_REAL:
        vt_jw_f64(w, key, n->u.real);
        break;
    case VT_STR:
        vt_jw_strn(w, key, n->u.str, n->n);
        break;
    case VT_LIST:
    case VT_MAP: /* as deep as the parser let it become */
        open_level(w, key, n->kind == VT_MAP, false);
        for (uint32_t i = 0; i < n->n; i++)
            vt_jw_node(w, n->kind == VT_MAP ? n->u.item[i].key : NULL, &n->u.item[i]);
        vt_jw_end(w);
        break;
    }
}

void vt_buf_json_node(struct vt_buf *b, const struct vt_node *n,
                      const struct vt_json_style *style)
{
    struct vt_jw w;

    vt_jw_init(&w, b, style);
    vt_jw_node(&w, NULL, n);
}

void vt_buf_int_node(struct vt_buf *b, const struct vt_node *n)
{
    if (n->is_u64)
        vt_buf_u64(b, (uint64_t)n->u.integer);
    else
        vt_buf_i64(b, n->u.integer);
}
