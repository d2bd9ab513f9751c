/* tools.c - tool calls as models of the Hermes kind (Qwen among them) spell them,
 * and what vLLM's parser of that name has got out of them after each token.
 *
 *     <tool_call>
 *     {"name": "f", "arguments": {"x": 1}}
 *     </tool_call>
 *
 * vLLM makes required and named calls in the same form, by a grammar. */
#include "http/reply/parts.h"

#include <inttypes.h>
#include <string.h>

static const char open_tag[] = "<tool_call>", close_tag[] = "</tool_call>";

enum { MOST_CALLS = 4, TAG = sizeof(open_tag) - 1, END_TAG = sizeof(close_tag) - 1 };

struct spelt { /* where a call's parts end in the text */
    size_t start, json, name, arguments, arguments_end, json_end, end;
};

/* ---- spelling -------------------------------------------------------- */

static const struct api_tool *tool_for(const struct reply_draft *d, uint32_t i)
{
    const struct api_request *r = d->r;

    if (r->tool_choice == API_TOOLS_NAMED && r->tool_index < r->n_tools)
        return &r->tool[r->tool_index];
    return &r->tool[(uint32_t)(vt_draw_f64(d->key, DRAW_TOOLS, MOST_CALLS + i) *
                               r->n_tools)];
}

int reply_tools_spell(struct reply_draft *d, struct vt_buf *text,
                      struct reply_call **call, uint32_t *n_calls, struct vt_err *err)
{
    bool one = d->r->tool_choice == API_TOOLS_NAMED || !d->r->parallel_tools;
    uint32_t n = 1;
    struct reply_call *c;

    while (!one && n < MOST_CALLS && vt_draw_f64(d->key, DRAW_TOOLS, n) < 0.25)
        n++;
    c = vt_arena_alloc(&d->r->arena, n * sizeof(*c));
    if (!c)
        return vt_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        const struct api_tool *t = tool_for(d, i);
        uint64_t key = vt_hash2(vt_hash2(d->key, DRAW_IDS), i);
        char id[40];

        if (i > 0)
            vt_buf_char(text, '\n');
        vt_buf_printf(text, "%s\n{\"name\": ", open_tag);
        vt_buf_json_str(text, t->name, strlen(t->name));
        vt_buf_str(text, ", \"arguments\": ");
        if (!t->parameters || !reply_schema_write(d->forms, text, t->parameters,
                                                  vt_hash2(key, DRAW_SCHEMA)))
            vt_buf_str(text, "{}");
        vt_buf_printf(text, "}\n%s", close_tag);
        c[i].name = t->name;
        snprintf(id, sizeof(id), "chatcmpl-tool-%016" PRIx64, vt_mix64(key));
        c[i].id = vt_arena_copy(&d->r->arena, id, strlen(id));
        if (!c[i].id)
            return vt_nomem(err);
    }
    *call = c;
    *n_calls = n;
    return text->failed ? vt_nomem(err) : VT_OK;
}

/* ---- parsing --------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\n';
}

/* The next call in the text from `from` on; false: there is none. */
static bool find_call(const struct reply *r, size_t from, const char *name,
                      struct spelt *s)
{
    static const char key[] = "\"arguments\": ";
    size_t tag;

    s->start = reply_find(r->text, r->text_len, from, open_tag);
    if (s->start == SIZE_MAX)
        return false;
    s->json = s->start + TAG;
    /* The JSON ends where it was cut, or before its closing tag. */
    tag = reply_find(r->text, r->text_len, s->json, close_tag);
    s->end = tag < SIZE_MAX ? tag + END_TAG : SIZE_MAX;
    s->json_end = tag < SIZE_MAX ? tag : r->text_len;
    while (s->json_end > s->json && is_blank(r->text[s->json_end - 1]))
        s->json_end--;
    s->name = s->json + strlen("\n{\"name\": \"") + strlen(name) + 1;
    s->arguments = reply_find(r->text, r->text_len, s->json, key);
    if (s->arguments < SIZE_MAX)
        s->arguments += strlen(key);
    return true;
}

/* Behind the brace that closes the call's JSON; SIZE_MAX: it is not closed. */
static size_t closed_at(const char *text, const struct spelt *s)
{
    size_t depth = 0;
    bool quoted = false;

    for (size_t i = s->json; i < s->json_end; i++) {
        char c = text[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && (c == '}' || c == ']') && --depth == 0)
            return i + 1;
    }
    return SIZE_MAX;
}

/* ---- token by token -------------------------------------------------- */

/* How much of the text the parser looks at while a closing tag may be beginning; else
 * up to `solid`, where its last blanks begin. */
static size_t looked_at(const char *text, size_t len, const struct spelt *s,
                        size_t solid)
{
    size_t most = len - s->json < END_TAG ? len - s->json : END_TAG - 1;

    if (len >= s->end)
        return s->json_end;
    for (size_t n = most; n > 0; n--)
        if (memcmp(text + len - n, close_tag, n) == 0) {
            len -= n;
            while (len > s->json && is_blank(text[len - 1]))
                len--;
            return len;
        }
    return solid;
}

static int place_call(const struct reply *r, struct reply_draft *d,
                      const struct spelt *s, struct reply_call *c, struct vt_err *err)
{
    uint32_t last = r->n - 1, told = 0;
    size_t read = s->json, solid = read;
    uint32_t *end;

    while (c->first < last && r->text_end[c->first] <= s->start)
        c->first++;
    for (last = c->first; last + 1 < r->n && r->text_end[last] < s->end; last++)
        ;
    c->n = last - c->first + 1;
    end = vt_arena_alloc(&d->r->arena, c->n * sizeof(*end));
    if (!end)
        return vt_nomem(err);
    c->arguments = s->arguments < r->text_len ? r->text + s->arguments : "";
    c->named = c->n;
    for (uint32_t i = 0; i < c->n; i++) {
        size_t len = r->text_end[c->first + i], seen;

        for (; read < len; read++)
            if (!is_blank(r->text[read]))
                solid = read + 1;
        seen = len > s->json ? looked_at(r->text, len, s, solid) : 0;
        if (seen >= s->name && c->named == c->n)
            c->named = i;
        if (c->named < c->n && seen > s->arguments) {
            size_t all = s->arguments_end - s->arguments, out = seen - s->arguments;

            out = out < all ? out : all;
            told = out > told ? (uint32_t)out : told;
        }
        end[i] = told;
    }
    c->arguments_end = end;
    c->arguments_len = told;
    return VT_OK;
}

int reply_tools_find(struct reply *out, struct reply_draft *d, struct reply_call *call,
                     uint32_t n_calls, struct vt_err *err)
{
    size_t from = 0;
    bool whole = true;
    int rc = VT_OK;

    out->call = call;
    while (out->n_calls < n_calls && rc == VT_OK) {
        struct reply_call *c = &call[out->n_calls];
        struct spelt s;
        size_t closed;

        if (!find_call(out, from, c->name, &s))
            break;
        closed = closed_at(out->text, &s);
        whole = closed == s.json_end;
        s.arguments_end = closed < SIZE_MAX ? closed - 1 : s.json_end;
        rc = place_call(out, d, &s, c, err);
        out->n_calls++;
        from = s.end < out->text_len ? s.end : out->text_len;
    }
    out->calls_cut = !whole || out->n_calls == 0;
    return rc;
}
