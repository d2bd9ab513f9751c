/* testing.h - what the tests of this room share. */
#ifndef VT_TESTS_TEXT_TESTING_H
#define VT_TESTS_TEXT_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text/text.h"

/* A test for each row of a table. */
#define ROWS(rows, function, group)                                    \
    int main(void)                                                     \
    {                                                                  \
        struct CMUnitTest tests[VT_COUNT(rows)];                       \
                                                                       \
        for (size_t i = 0; i < VT_COUNT(rows); i++)                    \
            tests[i] = (struct CMUnitTest){.name = rows[i].name,       \
                                           .test_func = function,      \
                                           .initial_state = &rows[i]}; \
        return cmocka_run_group_tests_name(group, tests, NULL, NULL);  \
    }

/* "1 2 3" of ids. */
static inline void ids_text(const struct vt_ids *ids, struct vt_buf *out)
{
    vt_buf_clear(out);
    vt_buf_str(out, "");
    for (size_t i = 0; i < ids->n; i++)
        vt_buf_printf(out, i ? " %u" : "%u", (unsigned)ids->id[i]);
}

static inline struct vt_tokenizer *open_json(const char *json)
{
    struct vt_tokenizer_texts texts = {.tokenizer = json,
                                       .tokenizer_len = strlen(json)};
    struct vt_tokenizer *t;
    struct vt_err err;

    if (vt_tokenizer_from(&t, &texts, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return t;
}

static inline void assert_ids(const struct vt_tokenizer *t, const char *text,
                              unsigned flags, const char *want)
{
    struct vt_ids ids = {0};
    struct vt_buf got = {0};
    struct vt_err err;

    if (vt_tokenizer_encode(t, text, strlen(text), flags, &ids, &err) != VT_OK)
        fail_msg("%s", err.msg);
    ids_text(&ids, &got);
    assert_string_equal(got.data, want);
    vt_ids_free(&ids);
    vt_buf_free(&got);
}

#endif
