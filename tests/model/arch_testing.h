/* arch_testing.h - models from texts, for tests. */
#ifndef VT_TEST_ARCH_H
#define VT_TEST_ARCH_H

#include "model/model.h"

static inline int read_text(const char *text, struct vt_arch *a, struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *n;
    int rc = vt_json_parse(&arena, text, strlen(text), 1, &n, err);

    if (rc == VT_OK)
        rc = vt_arch_read(a, n, err);
    vt_arena_free(&arena);
    return rc;
}

/* A test for each row of a table whose first member is its name; into `tests`, which
 * has `n`. */
#define ADD(table, function)                                          \
    for (size_t i = 0; i < VT_COUNT(table); i++)                      \
        tests[n++] = (struct CMUnitTest)                              \
        {                                                             \
            .name = *(const char **)&table[i], .test_func = function, \
            .initial_state = &table[i]                                \
        }

#endif
