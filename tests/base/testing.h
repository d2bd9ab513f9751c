/* testing.h - what the tests of this room share. */
#ifndef VT_TESTS_BASE_TESTING_H
#define VT_TESTS_BASE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

/* A tree as text that shows kinds: 1 integer, 1r real, 1u above INT64_MAX, 1b beyond.
 */
static inline void dump(struct vt_buf *b, const struct vt_node *node)
{
    switch ((enum vt_kind)node->kind) {
    case VT_NULL:
        vt_buf_str(b, "null");
        break;
    case VT_BOOL:
        vt_buf_str(b, node->u.boolean ? "true" : "false");
        break;
    case VT_INT:
        if (node->is_u64)
            vt_buf_printf(b, "%lluu", (unsigned long long)node->u.integer);
        else
            vt_buf_i64(b, node->u.integer);
        break;
    case VT_BIG:
        vt_buf_printf(b, "%sb", node->u.str);
        break;
    case VT_REAL:
        vt_buf_f64(b, node->u.real);
        vt_buf_char(b, 'r');
        break;
    case VT_STR:
        vt_buf_json_str(b, node->u.str, node->n);
        break;
    case VT_LIST:
    case VT_MAP:
        vt_buf_char(b, node->kind == VT_MAP ? '{' : '[');
        for (uint32_t i = 0; i < node->n; i++) {
            const struct vt_node *item = &node->u.item[i];

            if (i > 0)
                vt_buf_char(b, ' ');
            if (node->kind == VT_MAP)
                vt_buf_printf(b, "%s:", item->key);
            dump(b, item);
        }
        vt_buf_char(b, node->kind == VT_MAP ? '}' : ']');
        break;
    }
}

static inline void assert_dump(const struct vt_node *node, const char *want)
{
    struct vt_buf b = {0};

    dump(&b, node);
    assert_false(b.failed);
    assert_string_equal(b.data, want);
    vt_buf_free(&b);
}

#endif
