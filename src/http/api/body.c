/* body.c - bytes of a request to a tree, refused as FastAPI refuses them. */
#include <string.h>
#include <strings.h>

#include "http/api/request.h"

/* Media types compare without case, and up to the first ';' exactly. */
static bool is_json(const char *content_type)
{
    static const char json[] = "application/json";
    size_t n = sizeof(json) - 1;

    return content_type && strncasecmp(content_type, json, n) == 0 &&
           (content_type[n] == '\0' || content_type[n] == ';');
}

static bool refuse_json(struct api_error *e, enum api_line line, const char *why,
                        size_t at)
{
    const struct vt_node nothing = {.kind = VT_MAP};
    const struct api_place root = {.name = "body"};
    const struct api_place place = {.up = &root, .index = (uint32_t)at};
    struct api_problems problems = {.line = line, .wanted = true};
    struct vt_buf ctx = {0};

    vt_buf_str(&ctx, "{'error': ");
    api_py_repr_text(&ctx, why, strlen(why));
    vt_buf_char(&ctx, '}');
    if (!ctx.failed)
        (void)api_problem(&problems, &place, &nothing, "json_invalid",
                          "JSON decode error", ctx.data);
    vt_buf_free(&ctx);
    return api_problems_end(&problems, e);
}

static bool refuse_empty(struct api_error *e, enum api_line line)
{
    const struct vt_node none = {.kind = VT_NULL};
    const struct api_place root = {.name = "body"};
    struct api_problems problems = {.line = line, .wanted = true};

    (void)api_problem(&problems, &root, &none, "missing", "Field required", NULL);
    return api_problems_end(&problems, e);
}

struct vt_json_bounds api_json_bounds(const struct api_context *c, const char *key)
{
    return (struct vt_json_bounds){
        .values = c->max_values > 0 ? c->max_values : UINT32_MAX,
        .key = key,
        .python = true,
        .ends = c->max_model_len > 0 ? c->max_model_len : UINT32_MAX / 2};
}

bool api_body_read(struct vt_arena *a, const struct api_context *c, const char *key,
                   const char *content_type, const char *body, size_t len,
                   const struct vt_node **out, struct api_error *e)
{
    struct vt_json_bounds bounds = api_json_bounds(c, key);
    enum api_line line = c->line;
    struct vt_err err;
    const char *why;
    size_t at, step = 1;

    if (!is_json(content_type))
        return api_error_set(e, 400, "Bad Request", NULL,
                             "1 validation error:\n  Unsupported Media Type: Only "
                             "'application/json' is allowed");
    if (len == 0)
        return refuse_empty(e, line);
    if (len >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0) {
        body += 3;
        len -= 3;
    }
    if (vt_json_parse_bounded(a, body, len, &bounds, out, &err) == VT_OK)
        return (*out)->kind != VT_NULL || refuse_empty(e, line);
    if (bounds.passed)
        return api_error_set(
            e, 413, "RequestEntityTooLargeError", NULL,
            "The body holds more than %u JSON values, which is as many "
            "as this server reads.",
            (unsigned)bounds.values);
    if (err.code == VT_ENOMEM) {
        api_error_from(e, &err);
        return false;
    }
    for (at = 0; at < len && step > 0; at += step)
        step = vt_utf8_len(body + at, len - at);
    if (step == 0 || bounds.many_digits)
        return api_error_set(e, 400, "Bad Request", NULL,
                             "There was an error parsing the body");
    why = api_py_json_error(body, len, &at);
    if (why)
        return refuse_json(e, line, why, at);
    /* Python is content with keys that hold NULs, halves of surrogates and more than 64
     * levels; we are not, and say what it is. */
    why = strstr(err.msg, ": ");
    return refuse_json(e, line, why ? why + 2 : err.msg, 0);
}
