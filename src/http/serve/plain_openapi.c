/* plain_openapi.c - the server described for machines and for people, from the tables
 * that it works by: routes, and the schemas that bodies are checked against. */
#include "http/serve/plain.h"

/* ---- schemas ------------------------------------------------------------ */

enum { DEPTH_MAX = 12 }; /* of types within types */

/* Writes the members of a map that is open. */
static void put_type(struct vt_jw *w, const struct api_type *t, enum api_line line,
                     int depth);

static void put_map(struct vt_jw *w, const char *key, const struct api_type *t,
                    enum api_line line, int depth)
{
    vt_jw_map(w, key);
    put_type(w, t, line, depth);
    vt_jw_end(w);
}

static void put_null_type(struct vt_jw *w)
{
    vt_jw_map(w, NULL);
    vt_jw_str(w, "type", "null");
    vt_jw_end(w);
}

static void put_object(struct vt_jw *w, const struct api_field *fields,
                       enum api_line line, int depth)
{
    bool any = false;

    vt_jw_str(w, "type", "object");
    vt_jw_map(w, "properties");
    for (const struct api_field *f = fields; f->name; f++)
        if (api_field_known(f, line))
            put_map(w, f->name, f->type, line, depth + 1);
    vt_jw_end(w);
    for (const struct api_field *f = fields; f->name; f++) {
        if (!f->required || !api_field_known(f, line))
            continue;
        if (!any)
            vt_jw_list(w, "required");
        any = true;
        vt_jw_str(w, NULL, f->name);
    }
    if (any)
        vt_jw_end(w);
}

static void put_members(struct vt_jw *w, const struct api_type *t, enum api_line line,
                        int depth)
{
    static const struct {
        const char *name, *least, *most, *of;
    } kind[] = {
        [API_ANY] = {NULL},
        [API_BOOL] = {"boolean"},
        [API_INT] = {"integer", "minimum", "maximum"},
        [API_REAL] = {"number"},
        [API_STR] = {"string", "minLength", "maxLength"},
        [API_BYTES] = {"string", "minLength", "maxLength"},
        [API_LIST] = {"array", "minItems", "maxItems", "items"},
        [API_ITERABLE] = {"array", "minItems", "maxItems", "items"},
        [API_SEQUENCE] = {"array", "minItems", "maxItems", "items"},
        [API_DICT] = {"object", NULL, NULL, "additionalProperties"},
        [API_LITERAL] = {NULL},
        [API_MODEL] = {"object"},
        [API_DATACLASS] = {"object"},
        [API_TYPED_DICT] = {"object"},
        [API_UNION] = {NULL},
    };

    if (t->what == API_UNION) {
        vt_jw_list(w, "anyOf");
        for (uint32_t i = 0; i < t->n; i++)
            put_map(w, NULL, &t->of[i], line, depth + 1);
        if (t->nullable)
            put_null_type(w);
        vt_jw_end(w);
    } else if (t->what == API_LITERAL) {
        vt_jw_list(w, "enum");
        for (size_t i = 0; t->literal[i]; i++)
            vt_jw_str(w, NULL, t->literal[i]);
        vt_jw_end(w);
    } else if (t->field) {
        put_object(w, t->field, line, depth);
    } else if (kind[t->what].name) {
        vt_jw_str(w, "type", kind[t->what].name);
        if (kind[t->what].least && t->has_min && t->min > INT64_MIN)
            vt_jw_i64(w, kind[t->what].least, t->min);
        if (kind[t->what].most && t->has_max && t->max < INT64_MAX)
            vt_jw_i64(w, kind[t->what].most, t->max);
        if (kind[t->what].of && t->of)
            put_map(w, kind[t->what].of, t->of, line, depth + 1);
    }
}

static void put_type(struct vt_jw *w, const struct api_type *t, enum api_line line,
                     int depth)
{
    bool nullable = t->nullable && t->what != API_UNION && t->what != API_ANY;

    if (nullable) {
        vt_jw_list(w, "anyOf");
        vt_jw_map(w, NULL);
    }
    if (depth < DEPTH_MAX)
        put_members(w, t, line, depth);
    if (nullable) {
        vt_jw_end(w);
        put_null_type(w);
        vt_jw_end(w);
    }
}

/* ---- routes ------------------------------------------------------------- */

static bool route_exists(const struct plain_ask *q, const struct plain_row *row)
{
    return row->summary && plain_find(q->c->config, row->path);
}

/* content: application/json, whose schema stays open. */
static void content_begin(struct vt_jw *w)
{
    vt_jw_map(w, "content");
    vt_jw_map(w, "application/json");
    vt_jw_map(w, "schema");
}

static void content_end(struct vt_jw *w)
{
    for (int i = 0; i < 3; i++)
        vt_jw_end(w);
}

static void put_method(struct plain_ask *q, const struct plain_row *row,
                       const char *method)
{
    enum api_line line = q->c->api->line;
    struct vt_jw *w = &q->w;
    char id[128]; /* "post_v1_chat_completions": operation ids must differ */
    size_t n = (size_t)snprintf(id, sizeof(id), "%s%s", method, row->path);

    for (size_t i = strlen(method); i < n && i < sizeof(id) - 1; i++)
        if (!(id[i] >= 'a' && id[i] <= 'z') && !(id[i] >= '0' && id[i] <= '9'))
            id[i] = '_';
    vt_jw_map(w, method);
    vt_jw_str(w, "summary", row->summary);
    vt_jw_str(w, "operationId", id);
    if (row->fields && strcmp(method, "post") == 0) {
        const struct api_field *const form[] = {row->fields, row->or_fields};

        vt_jw_map(w, "requestBody");
        vt_jw_bool(w, "required", true);
        content_begin(w);
        if (!row->or_fields)
            put_object(w, row->fields, line, 0);
        else
            vt_jw_list(w, "anyOf");
        for (size_t i = 0; row->or_fields && i < VT_COUNT(form); i++) {
            vt_jw_map(w, NULL);
            put_object(w, form[i], line, 0);
            vt_jw_end(w);
        }
        if (row->or_fields)
            vt_jw_end(w);
        content_end(w);
        vt_jw_end(w);
    }
    vt_jw_map(w, "responses");
    vt_jw_map(w, "200");
    vt_jw_str(w, "description", "Successful Response");
    vt_jw_end(w);
    if (row->fields) {
        vt_jw_map(w, "400");
        vt_jw_str(w, "description", "Bad Request");
        content_begin(w);
        vt_jw_str(w, "$ref", "#/components/schemas/ErrorResponse");
        content_end(w);
        vt_jw_end(w);
    }
    vt_jw_end(w);
    vt_jw_end(w);
}

static const char error_schema[] =
    "{\"ErrorResponse\":{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{"
    "\"error\":{\"type\":\"object\",\"required\":[\"message\",\"type\",\"code\"],"
    "\"properties\":{\"message\":{\"type\":\"string\"},\"type\":{\"type\":\"string\"},"
    "\"param\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"
    "\"code\":{\"type\":\"integer\"}}}}}}";

bool plain_openapi(struct plain_ask *q)
{
    struct vt_jw *w = &q->w;

    vt_jw_map(w, NULL);
    vt_jw_str(w, "openapi", "3.1.0");
    vt_jw_map(w, "info");
    vt_jw_str(w, "title", "vtwin");
    vt_jw_str(w, "version", VT_VERSION);
    vt_jw_end(w);
    vt_jw_map(w, "paths");
    for (size_t i = 0; i < plain_n_rows; i++) {
        const struct plain_row *row = &plain_rows[i];

        if (!route_exists(q, row))
            continue;
        vt_jw_map(w, row->path);
        if (plain_takes(row, "GET"))
            put_method(q, row, "get");
        if (!row->mounted && plain_takes(row, "POST"))
            put_method(q, row, "post");
        vt_jw_end(w);
    }
    vt_jw_end(w);
    vt_jw_map(w, "components");
    vt_jw_raw(w, "schemas", error_schema, sizeof(error_schema) - 1);
    vt_jw_end(w);
    vt_jw_end(w);
    return true;
}

/* ---- for people --------------------------------------------------------- */

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<title>vtwin</title><style>body{font:16px/1.5 sans-serif;margin:2em auto;"
    "max-width:50em;padding:0 1em}td{padding:.2em 1em .2em 0;vertical-align:top}"
    "code{font-size:95%}</style></head><body>\n<h1>vtwin</h1>\n"
    "<p>A vLLM server without a GPU. For machines: <a href=\"/openapi.json\">"
    "openapi.json</a>.</p>\n<table>\n";

bool plain_docs(struct plain_ask *q)
{
    q->a->type = "text/html; charset=utf-8";
    vt_buf_str(q->body, page_head);
    for (size_t i = 0; i < plain_n_rows; i++)
        if (route_exists(q, &plain_rows[i]))
            vt_buf_printf(
                q->body, "<tr><td>%s</td><td><code>%s</code></td><td>%s</td></tr>\n",
                plain_rows[i].methods, plain_rows[i].path, plain_rows[i].summary);
    vt_buf_str(q->body, "</table>\n</body></html>\n");
    return true;
}
