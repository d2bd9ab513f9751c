/* out_testing.h - cases of responses: requests and what vLLM's Python frontends
 * answered to them, tests/cases/http/out-*.jsonl.gz. Ids that servers draw, and values
 * of log probabilities, are masked on both sides. */
#ifndef VT_OUT_TESTING_H
#define VT_OUT_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/api/api.h"
#include "http/out/out.h"
#include "http/reply/parts.h"

enum { MOST_CHOICES = 4, MOST_PROMPTS = 4 };

struct out_case {
    struct vt_arena arena;
    const struct vt_node *node; /* all of it */
    const char *name, *body;
    struct api_context context;
    struct api_request r;
    struct api_prompt prompt[MOST_PROMPTS];
};

static inline const struct vt_node *tree_of(struct vt_arena *a, const char *text,
                                            size_t len)
{
    const struct vt_node *n;
    struct vt_err err = {0};

    if (vt_json_parse(a, text, len, 1, &n, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return n;
}

static inline int64_t int_of(const struct vt_node *map, const char *key,
                             int64_t otherwise)
{
    const struct vt_node *n = vt_get(map, key);

    return n && n->kind == VT_INT ? n->u.integer : otherwise;
}

static inline bool flag(const struct vt_node *map, const char *key)
{
    const struct vt_node *n = vt_get(map, key);

    return n && n->kind == VT_BOOL && n->u.boolean;
}

static inline const char *str_of(const struct vt_node *map, const char *key,
                                 const char *other)
{
    const struct vt_node *n = vt_get(map, key);

    return n && n->kind == VT_STR ? n->u.str : other;
}

static inline double real_of(const struct vt_node *map, const char *key,
                             double otherwise)
{
    const struct vt_node *n = vt_get(map, key);

    return !n                   ? otherwise
           : n->kind == VT_REAL ? n->u.real
           : n->kind == VT_INT  ? (double)n->u.integer
                                : otherwise;
}

static inline const uint32_t *ids_of(struct vt_arena *a, const struct vt_node *list)
{
    uint32_t *id = vt_arena_alloc(a, (list->n + 1) * sizeof(*id));

    assert_non_null(id);
    for (uint32_t i = 0; i < list->n; i++)
        id[i] = (uint32_t)list->u.item[i].u.integer;
    return id;
}

static inline enum api_kind kind_of(const char *path)
{
    if (strstr(path, "/chat/"))
        return API_CHAT;
    if (strstr(path, "/responses"))
        return API_RESPONSES;
    return strstr(path, "/messages") ? API_MESSAGES : API_COMPLETIONS;
}

static inline void read_prompts(struct out_case *c)
{
    const struct vt_node *ids = vt_get(c->node, "prompts");
    const struct vt_node *texts = vt_get(c->node, "prompt_texts");

    assert_in_range(ids->n, 1, MOST_PROMPTS);
    for (uint32_t i = 0; i < ids->n; i++)
        c->prompt[i] =
            (struct api_prompt){ids_of(&c->r.arena, &ids->u.item[i]), ids->u.item[i].n,
                                texts->u.item[i].u.str, texts->u.item[i].n};
    c->r.prompt = c->prompt;
    c->r.n_prompts = ids->n;
}

static inline bool any_model(void *user, const char *name, uint32_t *lora)
{
    (void)user;
    *lora = 0;
    return strcmp(name, "tiny") == 0;
}

static inline void set_context(struct out_case *c, const struct vt_tokenizer *t)
{
    bool old = strcmp(str_of(c->node, "line", ""), "0.26.0") == 0;

    c->context = (struct api_context){
        .tokenizer = t,
        .line = old ? API_LINE_026 : API_LINE_032,
        .version = old ? "0.26.0" : "0.32.0",
        .fingerprint = old ? "vllm-0.26.0-40a75c21" : "vllm-0.32.0-18f18d96",
        .max_model_len = 2048,
        .max_logprobs = 20,
        .prompt_details = flag(c->node, "details"),
        .find = any_model,
        .model = "tiny",
    };
}

/* The request is read as the server would; only its ids and times are the recorded
 * ones, and its prompt, of which some cases have but the length. */
static inline void case_read(struct out_case *c, const struct vt_tokenizer *t,
                             const char *line, size_t len)
{
    const struct api_headers headers = {.content_type = "application/json"};
    struct vt_buf body = {0};
    struct api_error e;

    c->node = tree_of(&c->arena, line, len);
    c->name = str_of(c->node, "name", "");
    c->body = str_of(c->node, "body", "");
    set_context(c, t);
    vt_buf_json_node(&body, vt_get(c->node, "request"), &json_body);
    vt_buf_char(&body, '\0');
    if (!api_read(&c->r, &c->context, kind_of(str_of(c->node, "path", "")), body.data,
                  body.len - 1, &headers, &e))
        fail_msg("%s: %s", c->name, e.message);
    vt_buf_free(&body);
    c->r.id = str_of(c->node, "id", "");
    c->r.created = int_of(c->node, "created", 0);
    read_prompts(c);
}

/* ---- masks ----------------------------------------------------------- */

/* Behind the value that starts at p, brackets and strings minded. */
static const char *behind(const char *p)
{
    size_t depth = 0;

    for (bool quoted = false; *p != '\0'; p++) {
        if (quoted && *p == '\\')
            p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && (*p == '[' || *p == '{'))
            depth++;
        else if (!quoted && (*p == ']' || *p == '}') && (depth == 0 || --depth == 0))
            return depth == 0 && (*p == ']' || *p == '}') ? p + 1 : p;
    }
    return p;
}

static bool starts(const char *p, const char *what)
{
    return strncmp(p, what, strlen(what)) == 0;
}

static size_t hex_run(const char *p)
{
    return strspn(p, "0123456789abcdef");
}

/* Values of lists: numbers become 0, nulls stay. */
static const char *mask_numbers(struct vt_buf *out, const char *p)
{
    for (; *p != '\0' && *p != ']'; p++) {
        if (*p == '-' || (*p >= '0' && *p <= '9')) {
            p += strspn(p, "-+.e0123456789") - 1;
            vt_buf_char(out, '0');
        } else {
            vt_buf_char(out, *p);
        }
    }
    return p;
}

static const char *mask_value(struct vt_buf *out, const char *p)
{
    static const char *const lists[] = {"\"top_logprobs\":[", "\"prompt_logprobs\":["};

    for (size_t i = 0; i < VT_COUNT(lists); i++)
        if (starts(p, lists[i])) {
            vt_buf_str(out, lists[i]);
            vt_buf_char(out, ']');
            return behind(p + strlen(lists[i]) - 1);
        }
    if (starts(p, "\"logprob\":")) {
        vt_buf_str(out, "\"logprob\":0");
        return p + 10 + strspn(p + 10, "-+.e0123456789");
    }
    if (starts(p, "\"token_logprobs\":[")) {
        vt_buf_str(out, "\"token_logprobs\":[");
        return mask_numbers(out, p + 18);
    }
    return NULL;
}

static void mask(struct vt_buf *out, const char *p)
{
    while (*p != '\0') {
        const char *next = *p == '"' ? mask_value(out, p) : NULL;
        size_t hex = next ? 0 : hex_run(p);

        if (next) {
            p = next;
        } else if (hex == 16) {
            vt_buf_str(out, "ID");
            p += hex;
        } else {
            size_t n = hex > 0 ? hex : 1;

            vt_buf_add(out, p, n);
            p += n;
        }
    }
    vt_buf_char(out, '\0');
}

/* One that differs does not hide the others. */
static inline bool is_same(const struct out_case *c, struct vt_buf *got)
{
    bool same;
    struct vt_buf a = {0}, b = {0};
    size_t at = 0;

    vt_buf_char(got, '\0');
    mask(&a, c->body);
    mask(&b, got->data);
    while (a.data[at] != '\0' && a.data[at] == b.data[at])
        at++;
    same = a.data[at] == b.data[at];
    if (!same) {
        size_t from = at > 120 ? at - 120 : 0;

        print_error("%s %s differs at %zu:\nvLLM: ...%.240s\nours: ...%.240s\n",
                    str_of(c->node, "line", ""), c->name, at, a.data + from,
                    b.data + from);
    }
    vt_buf_free(&a);
    vt_buf_free(&b);
    return same;
}

/* ---- all cases of a file --------------------------------------------- */

static inline void for_cases(const char *file, bool (*each)(struct out_case *c))
{
    struct vt_tokenizer *t;
    struct vt_lines *lines = NULL;
    struct vt_err err = {0};
    char *line;
    size_t len, n = 0, n_wrong = 0;

    if (vt_tokenizer_open(&t, VT_TEST_DIR "/cases/tiny-qwen3", &err) != VT_OK ||
        vt_lines_open(&lines, file, &err) != VT_OK)
        fail_msg("%s", err.msg);
    while (vt_lines_next(lines, &line, &len, NULL, &err) == VT_OK && line) {
        struct out_case c = {0};

        case_read(&c, t, line, len);
        n_wrong += !each(&c);
        vt_arena_free(&c.r.arena);
        vt_arena_free(&c.arena);
        n++;
    }
    assert_true(n > 100);
    assert_int_equal(n_wrong, 0);
    vt_lines_close(lines);
    vt_tokenizer_close(t);
}

#endif
