/* problems.c - what is wrong with a request, as the client reads it: pydantic's error
 * entries, vLLM's own errors, and the last polish of a message. */
#include "http/api/request.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* 0.32 bounds what it reports; 0.26 does not, but our messages end at some point. */
enum { MAX_ENTRIES = 10, MAX_INPUT_CHARS = 200, MAX_ENTRY_CHARS = 1000 };
enum { ENOUGH_BYTES = 8192 };

/* ---- errors ------------------------------------------------------------- */

/* A message that was cut must not end within a character. */
static void mend_end(char *text)
{
    text[vt_utf8_trim(text, strlen(text))] = '\0';
}

bool api_error_set(struct api_error *e, int status, const char *type, const char *param,
                   const char *fmt, ...)
{
    va_list args;

    e->status = status;
    e->type = type;
    e->anthropic = false;
    (void)snprintf(e->param, sizeof(e->param), "%s", param ? param : "");
    va_start(args, fmt);
    (void)vsnprintf(e->message, sizeof(e->message), fmt, args);
    va_end(args);
    mend_end(e->param);
    mend_end(e->message);
    return false;
}

void api_error_from(struct api_error *e, const struct vt_err *why)
{
    bool theirs = why->code == VT_EINPUT;

    api_error_set(e, theirs ? 400 : 500,
                  theirs ? "BadRequestError" : "InternalServerError", NULL, "%s",
                  why->msg);
}

bool api_nomem(struct api_error *e)
{
    return api_error_set(e, 500, "InternalServerError", NULL, "out of memory");
}

void api_error_json(struct vt_buf *b, const struct api_error *e)
{
    struct vt_jw w;

    vt_jw_init(&w, b, NULL);
    vt_jw_map(&w, NULL);
    if (e->anthropic)
        vt_jw_str(&w, "type", "error");
    vt_jw_map(&w, "error");
    if (e->anthropic)
        vt_jw_str(&w, "type", e->type);
    vt_jw_str(&w, "message", e->message);
    if (!e->anthropic) {
        vt_jw_str(&w, "type", e->type);
        vt_jw_str(&w, "param", e->param[0] ? e->param : NULL);
        vt_jw_i64(&w, "code", e->status);
    }
    vt_jw_end(&w);
    vt_jw_end(&w);
}

/* ---- places ------------------------------------------------------------- */

/* Names that pydantic puts into a place for its own constructs. */
static bool is_internal(const char *name)
{
    static const char markers[] =
        "function-wrap function-after function-before function-plain json-or-python "
        "lax-or-strict chain default nullable tagged-union union call arguments "
        "is-instance is-subclass callable str int float bool bytes bytearray list "
        "tuple "
        "dict set frozenset complex none nonetype";
    size_t n = strlen(name), len;

    if (strpbrk(name, "[]{}()"))
        return true;
    for (const char *at = markers; *at; at += len + (at[len] == ' ')) {
        len = strcspn(at, " ");
        if (len == n && strncasecmp(at, name, n) == 0)
            return true;
    }
    return false;
}

static void put_tuple(struct vt_buf *b, const struct api_place *at)
{
    if (at->up) {
        put_tuple(b, at->up);
        vt_buf_str(b, ", ");
    }
    if (at->name)
        api_py_repr_text(b, at->name, strlen(at->name));
    else
        vt_buf_u64(b, at->index);
}

static void put_path(struct vt_buf *b, const struct api_place *at)
{
    if (at->up)
        put_path(b, at->up);
    if (at->name && is_internal(at->name))
        return;
    if (b->len > 0)
        vt_buf_char(b, '.');
    if (at->name)
        vt_buf_str(b, at->name);
    else
        vt_buf_u64(b, at->index);
}

/* ---- entries ------------------------------------------------------------ */

/* Bytes of the first n characters. */
static size_t bytes_of(const char *text, size_t len, size_t n)
{
    size_t at = 0;

    for (; at < len; at++)
        if (((unsigned char)text[at] & 0xc0) != 0x80 && n-- == 0)
            break;
    return at;
}

static void put_summary(struct vt_buf *b, const struct vt_node *v)
{
    struct vt_buf text = {0};
    size_t keep;

    if (v->kind == VT_LIST || v->kind == VT_MAP)
        vt_buf_printf(&text, "<%s of %u items>", api_py_type(v), v->n);
    else
        api_py_str(&text, v);
    keep = bytes_of(text.data, text.len, MAX_INPUT_CHARS);
    if (keep < text.len) {
        text.len = keep;
        vt_buf_str(&text, "...[truncated]");
    }
    api_py_repr_text(b, text.data ? text.data : "", text.len);
    vt_buf_free(&text);
}

static void put_entry(struct vt_buf *b, enum api_line line, const struct api_place *at,
                      const struct vt_node *input, const char *type, const char *msg,
                      const char *ctx)
{
    vt_buf_printf(b, "{'type': '%s', 'loc': ", type);
    if (line == API_LINE_026) {
        vt_buf_char(b, '(');
        put_tuple(b, at);
        vt_buf_str(b, !at->up ? ",)" : ")");
    } else {
        struct vt_buf path = {0};

        put_path(&path, at);
        api_py_repr_text(b, path.data ? path.data : "", path.len);
        vt_buf_free(&path);
    }
    vt_buf_str(b, ", 'msg': ");
    api_py_repr_text(b, msg, strlen(msg));
    vt_buf_str(b, ", 'input': ");
    if (line == API_LINE_026)
        api_py_repr(b, input);
    else
        put_summary(b, input);
    if (ctx)
        vt_buf_printf(b, ", 'ctx': %s", ctx);
    vt_buf_char(b, '}');
}

bool api_problem(struct api_problems *p, const struct api_place *at,
                 const struct vt_node *input, const char *type, const char *msg,
                 const char *ctx)
{
    struct vt_buf entry = {0};
    size_t keep;

    if (!p->wanted)
        return false;
    p->n++;
    if (p->text.len > ENOUGH_BYTES || (p->line == API_LINE_032 && p->n > MAX_ENTRIES))
        return false;
    if (p->n == 1) {
        put_path(&entry, at);
        (void)snprintf(p->param, sizeof(p->param), "%s", entry.data ? entry.data : "");
        vt_buf_clear(&entry);
    }
    put_entry(&entry, p->line, at, input, type, msg, ctx);
    keep = p->line == API_LINE_032 ? bytes_of(entry.data, entry.len, MAX_ENTRY_CHARS)
                                   : entry.len;
    vt_buf_str(&p->text, "  ");
    vt_buf_add(&p->text, entry.data, keep);
    vt_buf_str(&p->text, keep < entry.len ? "...[truncated]\n" : "\n");
    vt_buf_free(&entry);
    return false;
}

bool api_problems_end(struct api_problems *p, struct api_error *e)
{
    const char *label = p->n == 1 ? "error" : "errors";

    if (p->line == API_LINE_032 && p->n > MAX_ENTRIES)
        vt_buf_printf(&p->text, "  ...and %u more %s\n", p->n - MAX_ENTRIES, label);
    while (p->text.len > 0 && p->text.data[p->text.len - 1] == '\n')
        p->text.data[--p->text.len] = '\0';
    api_error_set(e, 400, "Bad Request", p->param, "%u validation %s:\n%s", p->n, label,
                  p->text.data ? p->text.data : "");
    vt_buf_free(&p->text);
    return false;
}

/* ---- vLLM's own --------------------------------------------------------- */

void api_problem_raised(struct api_problems *p, const struct api_place *at,
                        const struct vt_node *input, const char *kind,
                        const char *extras, const char *message)
{
    struct vt_buf msg = {0}, ctx = {0};

    vt_buf_printf(&msg, "Value error, %s%s", message, extras);
    vt_buf_printf(&ctx, "{'error': %s(", kind);
    api_py_repr_text(&ctx, message, strlen(message));
    vt_buf_str(&ctx, ")}");
    if (!msg.failed && !ctx.failed)
        (void)api_problem(p, at, input, "value_error", msg.data, ctx.data);
    vt_buf_free(&msg);
    vt_buf_free(&ctx);
}

void api_refuse_field(struct api_error *e, enum api_line line, const char *field,
                      const struct vt_node *input, const char *kind, const char *extras,
                      const char *message)
{
    const struct api_place root = {.name = "body"};
    const struct api_place inner = {.up = &root, .name = field};
    struct api_problems problems = {.line = line, .wanted = true};

    api_problem_raised(&problems, field ? &inner : &root, input, kind, extras, message);
    (void)api_problems_end(&problems, e);
}

/* kind: of the error that pydantic wraps, with the whole body in it; NULL: the message
 * is all there is, with what it is about behind it. */
static bool refuse(struct api_reading *q, const char *kind, const char *param,
                   const char *value, const char *message)
{
    char extras[512] = "";

    if (param && value)
        (void)snprintf(extras, sizeof(extras), " (parameter=%s, value=%s)", param,
                       value);
    else if (param)
        (void)snprintf(extras, sizeof(extras), " (parameter=%s)", param);
    if (!kind)
        return api_error_set(q->e, 400, "BadRequestError", param, "%s%s", message,
                             extras);
    api_refuse_field(q->e, q->c->line, NULL, q->body, kind, extras, message);
    if (param)
        (void)snprintf(q->e->param, sizeof(q->e->param), "%s", param);
    return false;
}

bool api_refuse(struct api_reading *q, const char *param, const char *value,
                const char *fmt, ...)
{
    bool old = q->c->line == API_LINE_026;
    char message[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return refuse(q, old ? "VLLMValidationError" : NULL, param, value, message);
}

bool api_refuse_value(struct api_reading *q, const char *param, const char *message)
{
    bool old = q->c->line == API_LINE_026;

    return refuse(q, old ? "ValueError" : NULL, old ? NULL : param, NULL, message);
}

bool api_refuse_late(struct api_reading *q, const char *param, const char *value,
                     const char *fmt, ...)
{
    char message[1536];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return refuse(q, NULL, param, value, message);
}

/* ---- texts for messages ------------------------------------------------- */

const char *api_kept(struct api_reading *q, struct vt_buf *text)
{
    const char *copy = text->failed || text->len == 0
                           ? NULL
                           : vt_arena_copy(&q->r->arena, text->data, text->len);

    vt_buf_free(text);
    return copy ? copy : "";
}

const char *api_printed(struct api_reading *q, const char *fmt, ...)
{
    char text[64], *copy;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < sizeof(text));
    copy = vt_arena_copy(&q->r->arena, text, (size_t)n);
    return copy ? copy : "";
}

const char *api_int_text(struct api_reading *q, const struct vt_node *asked, int64_t n)
{
    if (asked && asked->kind == VT_BIG)
        return asked->u.str;
    if (asked && asked->kind == VT_INT && asked->is_u64)
        return api_printed(q, "%llu", (unsigned long long)asked->u.integer);
    return api_printed(q, "%lld", (long long)n);
}

const char *api_str_of(struct api_reading *q, const struct vt_node *v)
{
    struct vt_buf text = {0};

    api_py_str(&text, v);
    return api_kept(q, &text);
}

/* ---- the last polish ---------------------------------------------------- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* "/home/x", "/tmp/a.b/c": a well-known root and at least one name behind it. */
static size_t rooted_path(const char *p)
{
    static const char *const roots[] = {"home", "usr", "opt", "var", "tmp",
                                        "root", "lib", "mnt", "srv"};

    for (size_t i = 0; i < VT_COUNT(roots); i++) {
        size_t n = 1 + strlen(roots[i]), end = 0;

        if (strncmp(p + 1, roots[i], n - 1) != 0)
            continue;
        while (p[n] == '/' &&
               (is_word(p[n + 1]) || p[n + 1] == '.' || p[n + 1] == '-')) {
            for (n++; is_word(p[n]) || p[n] == '.' || p[n] == '-';)
                n++;
            end = n;
        }
        return end;
    }
    return 0;
}

/* "/a/b/c.txt": at least one folder, and a file with an ending. */
static size_t file_path(const char *p)
{
    size_t n = 0;
    unsigned parts = 0;

    while (p[n] == '/' && (is_word(p[n + 1]) || p[n + 1] == '-')) {
        for (n++; is_word(p[n]) || p[n] == '-';)
            n++;
        parts++;
        if (parts >= 2 && p[n] == '.' && is_word(p[n + 1])) {
            for (n++; is_word(p[n]);)
                n++;
            return n;
        }
    }
    return 0;
}

void api_sanitize(char *text)
{
    static const char mark[] = "<path>";
    char *to = text;

    for (const char *p = text; *p != '\0';) {
        size_t n = *p == '/' ? rooted_path(p) : 0;

        if (n == 0 && *p == '/')
            n = file_path(p);
        if (n >= sizeof(mark) - 1) {
            memcpy(to, mark, sizeof(mark) - 1);
            to += sizeof(mark) - 1;
            p += n;
        } else {
            *to++ = *p++;
        }
    }
    *to = '\0';
}
