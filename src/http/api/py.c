/* py.c - values as Python writes them: vLLM's messages hold repr() of what came. */
#include "http/api/api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *api_py_type(const struct vt_node *v)
{
    static const char *const names[] = {
        [VT_NULL] = "NoneType", [VT_BOOL] = "bool",  [VT_INT] = "int",
        [VT_BIG] = "int",       [VT_REAL] = "float", [VT_STR] = "str",
        [VT_LIST] = "list",     [VT_MAP] = "dict",
    };

    return names[v->kind];
}

/* ---- numbers ------------------------------------------------------------ */

/* repr() spells what is not finite its own way. */
void api_py_float(struct vt_buf *b, double v)
{
    if (isnan(v))
        vt_buf_str(b, "nan");
    else if (isinf(v))
        vt_buf_str(b, v > 0 ? "inf" : "-inf");
    else
        vt_buf_py_f64(b, v);
}

/* ---- text --------------------------------------------------------------- */

/* Close to str.isprintable(): separators, controls, formats, private use and
 * noncharacters are not. Unassigned characters elsewhere count as printable. */
static bool is_printable(uint32_t c)
{
    static const uint32_t hidden[][2] = {
        {0x00, 0x1f},       {0x7f, 0xa0},       {0xad, 0xad},        {0x600, 0x605},
        {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},      {0x1680, 0x1680},
        {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},    {0x205f, 0x206f},
        {0x3000, 0x3000},   {0xd800, 0xf8ff},   {0xfdd0, 0xfdef},    {0xfeff, 0xfeff},
        {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},  {0x1d173, 0x1d17a},
        {0x1fffe, 0x1ffff}, {0xe0000, 0xe00ff}, {0xe01f0, 0x10ffff},
    };

    for (size_t i = 0; i < VT_COUNT(hidden); i++)
        if (c >= hidden[i][0] && c <= hidden[i][1])
            return false;
    return true;
}

void api_py_repr_text(struct vt_buf *b, const char *text, size_t len)
{
    bool twice = memchr(text, '\'', len) && !memchr(text, '"', len);
    char quote = twice ? '"' : '\'';

    vt_buf_char(b, quote);
    for (size_t at = 0; at < len;) {
        uint32_t c = 0xfffd; /* stands for a character within which the text was cut */
        size_t n = vt_utf8_len(text + at, len - at);

        if (n > 0)
            (void)vt_utf8_get(text + at, &c);
        else
            n = len - at;
        if (c == (uint32_t)quote || c == '\\') {
            vt_buf_char(b, '\\');
            vt_buf_char(b, (char)c);
        } else if (is_printable(c)) {
            vt_buf_add(b, text + at, n);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            vt_buf_str(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else {
            vt_buf_printf(b,
                          c < 0x100     ? "\\x%02x"
                          : c < 0x10000 ? "\\u%04x"
                                        : "\\U%08x",
                          (unsigned)c);
        }
        at += n;
    }
    vt_buf_char(b, quote);
}

/* ---- trees -------------------------------------------------------------- */

/* What a client is sent is JSON, also where what came was Python's. */
static void put_finite(struct vt_buf *b, double v)
{
    if (isfinite(v))
        vt_buf_py_f64(b, v);
    else
        vt_buf_str(b, "null");
}

const struct vt_json_style json_body = {put_finite, vt_buf_json_str, ",", ":", NULL};
const struct vt_json_style json_dumps = {vt_buf_py_f64, vt_buf_json_str, ", ", ": ",
                                         NULL};

/* A message is cut at api_error's length anyway; a body may have megabytes. */
enum { ENOUGH_BYTES = 8192 };

void api_py_repr(struct vt_buf *b, const struct vt_node *v)
{
    bool is_map = v->kind == VT_MAP;

    switch ((enum vt_kind)v->kind) {
    case VT_NULL:
        vt_buf_str(b, "None");
        break;
    case VT_BOOL:
        vt_buf_str(b, v->u.boolean ? "True" : "False");
        break;
    case VT_INT:
        vt_buf_int_node(b, v);
        break;
    case VT_BIG:
        vt_buf_str(b, v->u.str);
        break;
    case VT_REAL:
        api_py_float(b, v->u.real);
        break;
    case VT_STR:
        api_py_repr_text(b, v->u.str, v->n < ENOUGH_BYTES ? v->n : ENOUGH_BYTES);
        break;
    case VT_LIST:
    case VT_MAP:
        vt_buf_char(b, is_map ? '{' : '[');
        for (uint32_t i = 0; i < v->n && b->len < ENOUGH_BYTES && !b->failed; i++) {
            const struct vt_node *item = &v->u.item[i];

            if (i > 0)
                vt_buf_str(b, ", ");
            if (is_map) {
                api_py_repr_text(b, item->key, strlen(item->key));
                vt_buf_str(b, ": ");
            }
            api_py_repr(b, item);
        }
        vt_buf_char(b, is_map ? '}' : ']');
        break;
    }
}

void api_py_str(struct vt_buf *b, const struct vt_node *v)
{
    if (v->kind == VT_STR)
        vt_buf_add(b, v->u.str, v->n < ENOUGH_BYTES ? v->n : ENOUGH_BYTES);
    else
        api_py_repr(b, v);
}
