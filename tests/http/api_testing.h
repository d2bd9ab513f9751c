/* api_testing.h - what the tests of reading requests share. */
#ifndef VT_TESTS_HTTP_API_TESTING_H
#define VT_TESTS_HTTP_API_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/api/api.h"

#define CASES VT_TEST_DIR "/cases/"

static struct vt_tokenizer *tokenizer; /* of every test in the program */

static inline bool only_tiny(void *user, const char *name, uint32_t *lora)
{
    (void)user;
    *lora = strcmp(name, "adapter") == 0;
    return *lora || strcmp(name, "tiny") == 0;
}

static inline bool any_model(void *user, const char *name, uint32_t *lora)
{
    (void)user;
    (void)name;
    *lora = 0;
    return true;
}

static inline struct api_context context_of(enum api_line line)
{
    return (struct api_context){
        .tokenizer = tokenizer,
        .line = line,
        .version = line == API_LINE_026 ? "0.26.0" : "0.32.0",
        .fingerprint = "vllm-test",
        .max_model_len = 2048,
        .max_logprobs = 20,
        .embedding_dimensions = 32,
        .find = only_tiny,
        .model = "tiny",
    };
}

static inline int open_tokenizer(void **state)
{
    struct vt_err err;

    (void)state;
    if (vt_tokenizer_open(&tokenizer, CASES "tiny-qwen3", &err) != VT_OK)
        fail_msg("%s", err.msg);
    return 0;
}

static inline int close_tokenizer(void **state)
{
    (void)state;
    vt_tokenizer_close(tokenizer);
    return 0;
}

static inline enum api_kind kind_of(const char *path)
{
    if (strcmp(path, "/v1/chat/completions") == 0)
        return API_CHAT;
    if (strcmp(path, "/v1/responses") == 0)
        return API_RESPONSES;
    if (strcmp(path, "/v1/messages") == 0)
        return API_MESSAGES;
    if (strcmp(path, "/v1/embeddings") == 0)
        return API_EMBEDDINGS;
    return API_COMPLETIONS;
}

static inline const char *text_of(const struct vt_node *row, const char *key)
{
    const struct vt_node *v = vt_get(row, key);

    return v != NULL && v->kind == VT_STR ? v->u.str : NULL;
}

static inline int64_t int_of(const struct vt_node *row, const char *key)
{
    const struct vt_node *v = vt_get(row, key);

    return v != NULL && v->kind == VT_INT ? v->u.integer : -1;
}

/* Calls `check` with every row of a file of JSON lines; returns how many. */
static inline size_t each_row(const char *path,
                              void (*check)(void *user, const struct vt_node *row),
                              void *user)
{
    struct vt_lines *lines;
    struct vt_arena arena = {0};
    struct vt_err err;
    char *line;
    size_t len, n = 0;

    if (vt_lines_open(&lines, path, &err) != VT_OK)
        fail_msg("%s", err.msg);
    for (;; n++) {
        const struct vt_node *row;

        if (vt_lines_next(lines, &line, &len, NULL, &err) != VT_OK)
            fail_msg("%s", err.msg);
        if (line == NULL)
            break;
        vt_arena_reset(&arena);
        if (vt_json_parse(&arena, line, len, vt_lines_number(lines), &row, &err) !=
            VT_OK)
            fail_msg("%s: %s", path, err.msg);
        check(user, row);
    }
    vt_lines_close(lines);
    vt_arena_free(&arena);
    return n;
}

#endif
