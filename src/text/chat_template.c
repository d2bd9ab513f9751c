/* chat_template.c - which of the known chat templates a Jinja text is.
 *
 * There is no Jinja here. A template is known if every word and every quoted text in it
 * is one that the ChatML templates (Qwen) or those of Llama 3 use; which of them occur
 * says which variant it is. What only concerns tools offered by the caller is passed
 * over. Anything else is unknown, and says what gave it away: a prompt that is nearly
 * right would be worse than none. */
#include "text/tokenizer.h"

enum { MAX_DEPTH = 32, MAX_TEMPLATE = 1 << 20 };

enum family { CHATML = 1, LLAMA = 2, BOTH = CHATML | LLAMA };

/* What the quoted texts, or the words, of a template may be: by family those that tell
 * nothing else, and clues, which set the flag of chat_template at that offset. */
struct lexicon {
    const char *const *plain[BOTH + 1]; /* each ends with NULL */
    struct clue {
        const char *text; /* NULL: the last */
        enum family family;
        size_t flag;
    } clue[16];
};

#define SETS(member) offsetof(struct chat_template, member)
#define LIST(...)    ((const char *const[]){__VA_ARGS__, NULL})

static const struct lexicon texts = {
    .plain = {[BOTH] = LIST("", "\n", "role", "content", "system", "user", "assistant",
                            "tool"),
              [CHATML] = LIST("<|im_start|>", "<|im_end|>", "<|im_end|>\n",
                              "<|im_start|>system\n", "<|im_start|>user",
                              "<|im_start|>assistant\n", "\n</tool_response>",
                              "<tool_response>", "</tool_response>", "\n</think>\n\n"),
              [LLAMA] =
                  LIST("<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>",
                       "<|start_header_id|>assistant<|end_header_id|>\n\n",
                       "<|start_header_id|>system<|end_header_id|>\n\n",
                       "Cutting Knowledge Date: December 2023\n", "\n\n", "ipython",
                       "tool_calls")},
    .clue =
        {
            {"<|im_start|>assistant\n<think>\n", CHATML, SETS(starts_thinking)},
            {"\n<tool_response>\n", CHATML, SETS(tools)},
            {"<think>", CHATML, SETS(has_thoughts)},
            {"</think>", CHATML, SETS(has_thoughts)},
            {"\n<think>\n", CHATML, SETS(thinks)},
            {"<think>\n\n</think>\n\n", CHATML, SETS(may_not_think)},
            {"<|start_header_id|>ipython<|end_header_id|>\n\n", LLAMA, SETS(tools)},
            {"Today Date: ", LLAMA, SETS(dated)},
            {"%d %b %Y", LLAMA, SETS(today)},
        },
};

static const struct lexicon words = {
    .plain = {[BOTH] = LIST("messages", "message", "role", "content", "loop", "first",
                            "last", "index0", "length", "tools", "tool_calls", "is",
                            "in", "not", "and", "or", "none", "true", "false",
                            "defined", "if", "elif", "else", "endif", "for", "endfor",
                            "set", "add_generation_prompt"),
              [CHATML] = LIST("index", "ns", "namespace", "multi_step_tool",
                              "last_query_index", "reasoning_content",
                              "enable_thinking", "string", "startswith", "endswith",
                              "split", "strip", "lstrip", "rstrip"),
              [LLAMA] =
                  LIST("date_string", "loop_messages", "system_message", "custom_tools",
                       "tools_in_user_message", "tojson", "mapping", "iterable")},
    .clue =
        {
            {"bos_token", LLAMA, SETS(bos)},
            {"trim", LLAMA, SETS(trims)},
            {"strftime_now", LLAMA, SETS(today)},
        },
};

/* Conditions and loops that never hold without tools: what their tag starts with. */
static const char *const idle[] = {
    "if tools",
    "if builtin_tools",
    "if custom_tools",
    "if tools_in_user_message",
    "if message.tool_calls",
    "elif message.tool_calls",
    "elif 'tool_calls' in message",
    "for tool_call in",
};

struct reading {
    struct chat_template *c;
    struct vt_arena *arena;
    const char *p, *end;
    unsigned family;   /* those still possible */
    bool writes;       /* a message, the way its family does */
    bool asks;         /* whether to add the generation prompt */
    bool prompts;      /* there is a generation prompt */
    struct vt_buf tag; /* what the tag at hand writes: its texts, ROLE and CONTENT */
    bool idle[MAX_DEPTH], was_idle[MAX_DEPTH];
    size_t depth;
    bool strips;   /* the last tag took the white space behind it */
    bool is_block; /* it was {% %} or {# #} */
};

/* Keeps the first reason. Returns false, for the caller to return; without a reason
 * false means that memory ran out. */
static bool because(struct reading *r, const char *why, size_t len)
{
    if (!r->c->problem)
        r->c->problem = vt_arena_copy(r->arena, why, len);
    return false;
}

static bool refuse(struct reading *r, const char *why)
{
    return because(r, why, strlen(why));
}

static bool unknown(struct reading *r, const char *what, size_t len)
{
    struct vt_buf b = {0};

    vt_buf_str(&b, "it has ");
    vt_buf_json_str(&b, what, len < 60 ? len : 60);
    if (!b.failed)
        because(r, b.data, b.len);
    vt_buf_free(&b);
    return false;
}

static bool is_known(struct reading *r, const struct lexicon *x, const char *text,
                     size_t len)
{
    for (unsigned family = CHATML; family <= BOTH; family++)
        for (const char *const *known = x->plain[family]; *known; known++)
            if (vt_is_text(*known, text, len)) {
                r->family &= family;
                return true;
            }
    for (const struct clue *c = x->clue; c->text; c++)
        if (vt_is_text(c->text, text, len)) {
            r->family &= c->family;
            *((bool *)((char *)r->c + c->flag)) = true;
            return true;
        }
    return false;
}

static bool starts_with(const char *text, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static const char system_open[] = "<|im_start|>system\n",
                  system_close[] = "<|im_end|>\n";
enum { N_OPEN = sizeof(system_open) - 1, N_CLOSE = sizeof(system_close) - 1 };

static bool use_text(struct reading *r, const char *text, size_t len)
{
    /* A system message that stands in for a missing one. */
    if (len >= N_OPEN + N_CLOSE && starts_with(text, len, system_open) &&
        memcmp(text + len - N_CLOSE, system_close, N_CLOSE) == 0) {
        r->family &= CHATML;
        r->c->system = vt_arena_copy(r->arena, text + N_OPEN, len - N_OPEN - N_CLOSE);
        return r->c->system;
    }
    if (len == 11 && text[2] == ' ' && text[6] == ' ' && text[7] == '2') { /* a day */
        r->family &= LLAMA;
        r->c->day = vt_arena_copy(r->arena, text, len);
        return r->c->day;
    }
    r->prompts |= starts_with(text, len, "<|im_start|>assistant\n") ||
                  starts_with(text, len, "<|start_header_id|>assistant");
    return is_known(r, &texts, text, len) || unknown(r, text, len);
}

/* ---- inside a tag ----------------------------------------------------- */

#define ROLE    "\x01"
#define CONTENT "\x02"

/* message.role and message['role'] are the same. */
static void note_written(struct reading *r, const char *text, size_t len)
{
    if (len == 4 && memcmp(text, "role", 4) == 0)
        vt_buf_str(&r->tag, ROLE);
    else if (len == 7 && memcmp(text, "content", 7) == 0)
        vt_buf_str(&r->tag, CONTENT);
    else
        vt_buf_add(&r->tag, text, len);
}

/* A quoted text at r->p, its escapes undone. */
static bool read_quoted(struct reading *r, const char *end)
{
    char quote = *r->p++;
    struct vt_buf b = {0};
    bool ok;

    for (; r->p < end && *r->p != quote; r->p++) {
        char c = *r->p;

        if (c == '\\' && r->p + 1 < end) {
            c = *++r->p;
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        vt_buf_char(&b, c);
    }
    r->p += r->p < end;
    ok = !b.failed && use_text(r, b.data ? b.data : "", b.len);
    note_written(r, b.data ? b.data : "", b.len);
    vt_buf_free(&b);
    return ok;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= '0' && c <= '9');
}

static bool read_word(struct reading *r, const char *end)
{
    const char *from = r->p;
    size_t len;

    while (r->p < end && is_word(*r->p))
        r->p++;
    len = (size_t)(r->p - from);
    if (*from >= '0' && *from <= '9')
        return true;
    r->asks |= starts_with(from, len, "add_generation_prompt");
    if (starts_with(from, len, "role") || starts_with(from, len, "content"))
        note_written(r, from, len);
    return is_known(r, &words, from, len) || unknown(r, from, len);
}

static bool read_expression(struct reading *r, const char *end)
{
    vt_buf_clear(&r->tag);
    vt_buf_str(&r->tag, "");
    while (r->p < end) {
        bool ok = true;

        if (*r->p == '\'' || *r->p == '"')
            ok = read_quoted(r, end);
        else if (is_word(*r->p))
            ok = read_word(r, end);
        else
            r->p++;
        if (!ok)
            return false;
    }
    if (r->tag.failed)
        return false;
    r->writes |= strstr(r->tag.data, "<|im_start|>" ROLE "\n" CONTENT "<|im_end|>\n") ||
                 strstr(r->tag.data, "<|start_header_id|>" ROLE
                                     "<|end_header_id|>\n\n" CONTENT "<|eot_id|>");
    return true;
}

/* ---- tags ------------------------------------------------------------- */

static bool in_idle(const struct reading *r)
{
    return r->depth > 0 && r->idle[r->depth - 1];
}

static bool is_idle_tag(const char *tag, size_t len)
{
    for (size_t i = 0; i < VT_COUNT(idle); i++)
        if (starts_with(tag, len, idle[i]))
            return true;
    return false;
}

/* Follows if, for, elif, else and their ends. */
static bool follow_nesting(struct reading *r, const char *tag, size_t len)
{
    if (starts_with(tag, len, "if ") || starts_with(tag, len, "for ")) {
        bool outer = in_idle(r);

        if (r->depth == MAX_DEPTH)
            return refuse(r, "it nests too deep");
        r->was_idle[r->depth] = outer;
        r->idle[r->depth++] = outer || is_idle_tag(tag, len);
    } else if (starts_with(tag, len, "el")) {
        if (r->depth == 0)
            return unknown(r, tag, len);
        r->idle[r->depth - 1] = r->was_idle[r->depth - 1] || is_idle_tag(tag, len);
    } else if (starts_with(tag, len, "end")) {
        if (r->depth == 0)
            return unknown(r, tag, len);
        r->depth--;
    }
    return true;
}

/* A tag's end, "%}" for a block: quotes hide it. NULL: there is none. */
static const char *tag_end(const char *p, const char *end, char close)
{
    char quote = 0;

    for (; end - p >= 2; p++) {
        if (quote && *p == '\\')
            p++;
        else if (quote)
            quote = *p == quote ? 0 : quote;
        else if (close != '#' && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (*p == close && p[1] == '}')
            return p;
    }
    return NULL;
}

/* r->p is at the brace that opens a tag. */
static bool read_tag(struct reading *r)
{
    char kind = r->p[1] == '{' ? '}' : r->p[1];
    const char *from = r->p + 2, *close = tag_end(from, r->end, kind);
    bool ok = true;

    if (!close)
        return unknown(r, r->p, (size_t)(r->end - r->p));
    r->strips = close > from && close[-1] == '-';
    r->is_block = kind != '}';
    if (from < close && *from == '-')
        from++;
    while (from < close && (*from == ' ' || *from == '\n'))
        from++;
    if (kind == '%')
        ok = follow_nesting(r, from, (size_t)(close - from));
    r->p = from;
    /* What holds only with tools may say what it likes, and so may remarks. */
    if (ok && kind != '#' && !in_idle(r) && !is_idle_tag(from, (size_t)(close - from)))
        ok = read_expression(r, close);
    r->p = close + 2;
    return ok;
}

/* White space between tags must not come out: stripped by '-' at either end, or, as
 * transformers sets Jinja up, the line end behind a block and the indent before one. */
static bool read_between(struct reading *r, const char *from)
{
    size_t n = (size_t)(r->p - from);
    bool last = r->p == r->end;

    for (const char *p = from; p < r->p; p++)
        if (*p != ' ' && *p != '\n')
            return in_idle(r) || unknown(r, from, n);
    if (n == 0 || r->strips || in_idle(r) ||
        (!last && r->end - r->p > 2 && r->p[2] == '-'))
        return true;
    if (r->is_block && *from == '\n')
        n--;
    else if (last && n == 1 && *from == '\n')
        return true;
    if (n == 0 || (!last && r->p[1] == '%' && !memchr(r->p - n, '\n', n)))
        return true;
    return unknown(r, from, (size_t)(r->p - from));
}

/* ---- the verdict ------------------------------------------------------ */

static bool read_template(struct reading *r)
{
    struct chat_template *c = r->c;

    if (r->end - r->p > MAX_TEMPLATE)
        return refuse(r, "it is longer than 1 MiB");
    while (r->p < r->end) {
        const char *from = r->p;

        while (r->p < r->end &&
               !(*r->p == '{' && r->end - r->p > 1 && strchr("{%#", r->p[1])))
            r->p++;
        if (!read_between(r, from) || (r->p < r->end && !read_tag(r)))
            return false;
    }
    if (!r->writes || (r->family != CHATML && r->family != LLAMA))
        return refuse(r, "it writes messages in another way");
    if ((c->may_not_think || c->starts_thinking || c->has_thoughts) && !c->thinks)
        return refuse(r, "it treats <think> in another way");
    if (c->dated && !c->day)
        return refuse(r, "it names no day");
    return true;
}

int chat_recognise(struct chat_template *c, const char *text, size_t len,
                   struct vt_arena *arena, struct vt_err *err)
{
    struct reading r = {
        .c = c, .arena = arena, .p = text, .end = text + len, .family = BOTH};
    bool known;

    *c = (struct chat_template){0};
    known = read_template(&r);
    vt_buf_free(&r.tag);
    if (!known)
        return c->problem ? VT_OK : vt_nomem(err);
    c->llama = r.family == LLAMA;
    c->generates = !r.prompts ? GENERATES_NEVER
                   : r.asks   ? GENERATES_ASKED
                              : GENERATES_ALWAYS;
    if (c->llama)
        c->kind = c->dated ? "llama3.1" : "llama3";
    else
        c->kind = c->thinks ? "qwen3" : "chatml";
    return VT_OK;
}
