/* plain_openapi.c - the server described for machines and for people, from the tables
 * that it works by: routes, and the schemas that bodies are checked against. */
#include "http/serve/plain_routes.h"

#include <inttypes.h>

/* ---- schemas ------------------------------------------------------------ */

enum { DEPTH_MAX = 12 }; /* of types within types */

static void put_type(struct vt_buf *b, const struct api_type *t, enum api_line line,
                     int depth);

static void put_text(struct vt_buf *b, const char *text)
{
    vt_buf_json_str(b, text, strlen(text));
}

static void put_required(struct vt_buf *b, const struct api_field *f,
                         enum api_line line)
{
    bool any = false;

    for (; f->name; f++) {
        if (!f->required || !api_field_known(f, line))
            continue;
        vt_buf_str(b, any ? "," : ",\"required\":[");
        put_text(b, f->name);
        any = true;
    }
    if (any)
        vt_buf_char(b, ']');
}

static void put_object(struct vt_buf *b, const struct api_field *fields,
                       enum api_line line, int depth)
{
    bool any = false;

    vt_buf_str(b, "\"type\":\"object\",\"properties\":{");
    for (const struct api_field *f = fields; f->name; f++) {
        if (!api_field_known(f, line))
            continue;
        if (any)
            vt_buf_char(b, ',');
        any = true;
        put_text(b, f->name);
        vt_buf_char(b, ':');
        put_type(b, f->type, line, depth + 1);
    }
    vt_buf_char(b, '}');
    put_required(b, fields, line);
}

static void put_bounds(struct vt_buf *b, const struct api_type *t, const char *least,
                       const char *most)
{
    if (t->has_min && t->min > INT64_MIN)
        vt_buf_printf(b, ",\"%s\":%" PRId64, least, t->min);
    if (t->has_max && t->max < INT64_MAX)
        vt_buf_printf(b, ",\"%s\":%" PRId64, most, t->max);
}

static void put_words(struct vt_buf *b, const char *const *word)
{
    vt_buf_str(b, "\"enum\":[");
    for (size_t i = 0; word[i]; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        put_text(b, word[i]);
    }
    vt_buf_char(b, ']');
}

static void put_of(struct vt_buf *b, const char *key, const struct api_type *of,
                   enum api_line line, int depth)
{
    if (!of)
        return;
    vt_buf_printf(b, ",\"%s\":", key);
    put_type(b, of, line, depth + 1);
}

static void put_union(struct vt_buf *b, const struct api_type *t, enum api_line line,
                      int depth)
{
    vt_buf_str(b, "\"anyOf\":[");
    for (uint32_t i = 0; i < t->n; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        put_type(b, &t->of[i], line, depth + 1);
    }
    if (t->nullable)
        vt_buf_str(b, ",{\"type\":\"null\"}");
    vt_buf_char(b, ']');
}

/* The members of a schema that is not a union. */
static void put_plain(struct vt_buf *b, const struct api_type *t, enum api_line line,
                      int depth)
{
    switch (t->what) {
    case API_BOOL:
        vt_buf_str(b, "\"type\":\"boolean\"");
        break;
    case API_INT:
        vt_buf_str(b, "\"type\":\"integer\"");
        put_bounds(b, t, "minimum", "maximum");
        break;
    case API_REAL:
        vt_buf_str(b, "\"type\":\"number\"");
        break;
    case API_STR:
    case API_BYTES:
        vt_buf_str(b, "\"type\":\"string\"");
        put_bounds(b, t, "minLength", "maxLength");
        break;
    case API_LIST:
    case API_ITERABLE:
    case API_SEQUENCE:
        vt_buf_str(b, "\"type\":\"array\"");
        put_bounds(b, t, "minItems", "maxItems");
        put_of(b, "items", t->of, line, depth);
        break;
    case API_DICT:
        vt_buf_str(b, "\"type\":\"object\"");
        put_of(b, "additionalProperties", t->of, line, depth);
        break;
    case API_LITERAL:
        put_words(b, t->literal);
        break;
    case API_MODEL:
    case API_DATACLASS:
    case API_TYPED_DICT:
        if (t->field)
            put_object(b, t->field, line, depth);
        else
            vt_buf_str(b, "\"type\":\"object\"");
        break;
    default: /* anything */
        break;
    }
}

static void put_type(struct vt_buf *b, const struct api_type *t, enum api_line line,
                     int depth)
{
    bool nullable = t->nullable && t->what != API_UNION && t->what != API_ANY;

    vt_buf_char(b, '{');
    if (nullable)
        vt_buf_str(b, "\"anyOf\":[{");
    if (depth < DEPTH_MAX && t->what == API_UNION)
        put_union(b, t, line, depth);
    else if (depth < DEPTH_MAX)
        put_plain(b, t, line, depth);
    if (nullable)
        vt_buf_str(b, "},{\"type\":\"null\"}]");
    vt_buf_char(b, '}');
}

/* ---- routes ------------------------------------------------------------- */

static bool exists(const struct plain_ask *q, const struct plain_row *row)
{
    return !row->dev || q->c->dev_mode;
}

/* "post_v1_chat_completions": one of its kind, as operation ids must be. */
static void put_operation_id(struct vt_buf *b, const char *method, const char *path)
{
    vt_buf_char(b, '"');
    vt_buf_str(b, method);
    for (; *path; path++)
        vt_buf_char(b, (*path >= 'a' && *path <= 'z') || (*path >= '0' && *path <= '9')
                           ? *path
                           : '_');
    vt_buf_char(b, '"');
}

static void put_schema(struct vt_buf *b, const struct api_field *fields,
                       enum api_line line)
{
    vt_buf_char(b, '{');
    put_object(b, fields, line, 0);
    vt_buf_char(b, '}');
}

static void put_request_body(struct vt_buf *b, const struct plain_row *row,
                             enum api_line line)
{
    vt_buf_str(b, ",\"requestBody\":{\"required\":true,\"content\":{"
                  "\"application/json\":{\"schema\":");
    if (row->or_fields)
        vt_buf_str(b, "{\"anyOf\":[");
    put_schema(b, row->fields, line);
    if (row->or_fields) {
        vt_buf_char(b, ',');
        put_schema(b, row->or_fields, line);
        vt_buf_str(b, "]}");
    }
    vt_buf_str(b, "}}}");
}

static void put_responses(struct vt_buf *b, const struct plain_row *row)
{
    vt_buf_str(b, ",\"responses\":{\"200\":{\"description\":\"Successful Response\"}");
    if (row->fields)
        vt_buf_str(b, ",\"400\":{\"description\":\"Bad Request\",\"content\":{"
                      "\"application/json\":{\"schema\":{\"$ref\":"
                      "\"#/components/schemas/ErrorResponse\"}}}}");
    vt_buf_char(b, '}');
}

static void put_method(struct plain_ask *q, const struct plain_row *row,
                       const char *method)
{
    struct vt_buf *b = q->body;

    vt_buf_printf(b, "\"%s\":{\"summary\":", method);
    put_text(b, row->summary);
    vt_buf_str(b, ",\"operationId\":");
    put_operation_id(b, method, row->path);
    if (row->fields && strcmp(method, "post") == 0)
        put_request_body(b, row, q->c->api->line);
    put_responses(b, row);
    vt_buf_char(b, '}');
}

static void put_path(struct plain_ask *q, const struct plain_row *row)
{
    put_text(q->body, row->path);
    vt_buf_str(q->body, ":{");
    if (plain_takes(row, "GET"))
        put_method(q, row, "get");
    if (plain_takes(row, "GET") && plain_takes(row, "POST"))
        vt_buf_char(q->body, ',');
    if (plain_takes(row, "POST"))
        put_method(q, row, "post");
    vt_buf_char(q->body, '}');
}

static const char error_schema[] =
    "{\"ErrorResponse\":{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{"
    "\"error\":{\"type\":\"object\",\"required\":[\"message\",\"type\",\"code\"],"
    "\"properties\":{\"message\":{\"type\":\"string\"},\"type\":{\"type\":\"string\"},"
    "\"param\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"
    "\"code\":{\"type\":\"integer\"}}}}}}";

void plain_openapi(struct plain_ask *q)
{
    const char *comma = "";

    vt_buf_str(q->body, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"vtwin\","
                        "\"version\":\"" VT_VERSION "\"},\"paths\":{");
    for (size_t i = 0; i < plain_n_rows; i++) {
        if (!exists(q, &plain_rows[i]))
            continue;
        vt_buf_str(q->body, comma);
        put_path(q, &plain_rows[i]);
        comma = ",";
    }
    vt_buf_str(q->body, "},\"components\":{\"schemas\":");
    vt_buf_str(q->body, error_schema);
    vt_buf_str(q->body, "}}");
}

/* ---- for people --------------------------------------------------------- */

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<title>vtwin</title><style>body{font:16px/1.5 sans-serif;margin:2em auto;"
    "max-width:50em;padding:0 1em}td{padding:.2em 1em .2em 0;vertical-align:top}"
    "code{font-size:95%}</style></head><body>\n<h1>vtwin</h1>\n"
    "<p>A vLLM server without a GPU. For machines: <a href=\"/openapi.json\">"
    "openapi.json</a>.</p>\n<table>\n";

void plain_docs(struct plain_ask *q)
{
    q->a->type = "text/html; charset=utf-8";
    vt_buf_str(q->body, page_head);
    for (size_t i = 0; i < plain_n_rows; i++)
        if (exists(q, &plain_rows[i]))
            vt_buf_printf(
                q->body, "<tr><td>%s</td><td><code>%s</code></td><td>%s</td></tr>\n",
                plain_rows[i].methods, plain_rows[i].path, plain_rows[i].summary);
    vt_buf_str(q->body, "</table>\n</body></html>\n");
}
