/* chat.c - chats of the three kinds to one list of messages, and to a prompt.
 *
 * Texts follow what vLLM makes of them for templates that take strings: parts of text
 * are joined by line ends, calls of tools are written into the assistant's message the
 * way Qwen's and Hermes' templates write them. Approximate: the list of tools, which
 * every template words in its own way, goes into the system message in short form, and
 * only where the template knows tools at all. */
#include <string.h>

#include "http/api/request.h"

struct chat {
    struct api_reading *q;
    struct vt_chat_message *message; /* room for `cap`, in the arena */
    size_t n, cap;
    struct vt_buf text; /* of the message being made */
    bool calling;       /* that is an assistant's, which more calls may follow */
    bool failed;
};

/* What templates write behind the last message. */
enum { MOST_CLOSING = 256 };

/* ---- parts ----------------------------------------------------------- */

/* The first one is told. */
static void refuse_chat(struct chat *c, const char *param, const char *message,
                        const char *what)
{
    if (!c->failed)
        (void)api_refuse_late(c->q, param, NULL, "%s%s", message, what);
    c->failed = true;
}

static void add_line(struct chat *c, const struct vt_node *text)
{
    if (!text || text->kind != VT_STR)
        return;
    if (c->text.len > 0)
        vt_buf_char(&c->text, '\n');
    vt_buf_add(&c->text, text->u.str, text->n);
}

static void add_part(struct chat *c, const struct vt_node *part)
{
    static const char *const text[] = {"text", "input_text", "output_text", NULL};
    static const char *const media[] = {"image_url", "input_image", "input_audio",
                                        "audio_url", "video_url",   "image",
                                        NULL};
    static const char *const passed_over[] = {"thinking", "redacted_thinking", NULL};
    const char *type = api_get_str(vt_get(part, "type"), "text");

    if (part->kind == VT_STR)
        add_line(c, part);
    else if (vt_is_one_of(type, text))
        add_line(c, vt_get(part, "text"));
    else if (strcmp(type, "refusal") == 0)
        add_line(c, vt_get(part, "refusal"));
    else if (vt_is_one_of(type, media))
        refuse_chat(c, NULL, c->q->r->model, " is not a multimodal model");
    else if (!vt_is_one_of(type, passed_over))
        refuse_chat(c, NULL, "Unknown part type: ", type);
}

static void add_content(struct chat *c, const struct vt_node *content)
{
    if (!content)
        return;
    if (content->kind == VT_STR)
        add_line(c, content);
    for (uint32_t i = 0; content->kind == VT_LIST && i < content->n; i++)
        add_part(c, &content->u.item[i]);
}

static void add_call(struct chat *c, const struct vt_node *name,
                     const struct vt_node *arguments)
{
    if (c->text.len > 0)
        vt_buf_char(&c->text, '\n');
    vt_buf_str(&c->text, "<tool_call>\n{\"name\": \"");
    vt_buf_str(&c->text, api_get_str(name, ""));
    vt_buf_str(&c->text, "\", \"arguments\": ");
    if (arguments && arguments->kind == VT_STR)
        vt_buf_add(&c->text, arguments->u.str, arguments->n);
    else if (arguments)
        vt_buf_json_node(&c->text, arguments, &json_dumps);
    else
        vt_buf_str(&c->text, "{}");
    vt_buf_str(&c->text, "}\n</tool_call>");
}

/* ---- messages -------------------------------------------------------- */

/* Ends the message whose text was gathered. */
static void end_message(struct chat *c, const char *role)
{
    char *text = c->text.failed
                     ? NULL
                     : vt_arena_copy(&c->q->r->arena,
                                     c->text.len > 0 ? c->text.data : "", c->text.len);

    if (!text || c->n == c->cap) {
        if (!c->failed)
            (void)api_nomem(c->q->e);
        c->failed = true;
        return;
    }
    c->message[c->n++] = (struct vt_chat_message){role, text};
    vt_buf_clear(&c->text);
}

/* A message that is one text already needs no copy. */
static void add_message(struct chat *c, const char *role, const char *text)
{
    if (c->n < c->cap)
        c->message[c->n++] = (struct vt_chat_message){role, text};
}

static void openai_message(struct chat *c, const struct vt_node *m)
{
    const char *role = api_get_str(vt_get(m, "role"), "user");
    const struct vt_node *content = vt_get(m, "content");
    const struct vt_node *calls = vt_get(m, "tool_calls");

    if (content && content->kind == VT_STR && !api_truth(calls)) {
        add_message(c, role, content->u.str);
        return;
    }
    add_content(c, content);
    for (uint32_t i = 0; calls && calls->kind == VT_LIST && i < calls->n; i++) {
        const struct vt_node *f = vt_get(&calls->u.item[i], "function");

        add_call(c, vt_get(f, "name"), vt_get(f, "arguments"));
    }
    end_message(c, role);
}

/* Calls join the assistant's message before them. It is ended only when no other call
 * follows, for each copy would be longer than the one before. */
static void responses_call(struct chat *c, const struct vt_node *call)
{
    bool joins =
        !c->calling && c->n > 0 && strcmp(c->message[c->n - 1].role, "assistant") == 0;

    if (joins)
        vt_buf_str(&c->text, c->message[--c->n].content);
    add_call(c, vt_get(call, "name"), vt_get(call, "arguments"));
    c->calling = true;
}

static void end_calls(struct chat *c)
{
    if (c->calling)
        end_message(c, "assistant");
    c->calling = false;
}

static void responses_item(struct chat *c, const struct vt_node *item)
{
    const char *type = api_get_str(vt_get(item, "type"), "message");
    bool has_role = api_given(vt_get(item, "role"));

    if (strcmp(type, "function_call") == 0) {
        responses_call(c, item);
        return;
    }
    if (strcmp(type, "reasoning") == 0 && !has_role)
        return;
    end_calls(c);
    if (strcmp(type, "function_call_output") == 0) {
        add_content(c, vt_get(item, "output"));
        end_message(c, "tool");
    } else if (has_role) {
        openai_message(c, item);
    } else {
        refuse_chat(c, "input", "Unsupported input item type: ", type);
    }
}

static void anthropic_message(struct chat *c, const struct vt_node *m)
{
    const char *role = api_get_str(vt_get(m, "role"), "user");
    const struct vt_node *content = vt_get(m, "content");
    bool calls = false;

    if (!content || content->kind != VT_LIST) {
        add_message(c, role, api_get_str(content, ""));
        return;
    }
    /* Results of tools become messages before the one that holds them. */
    for (uint32_t i = 0; i < content->n; i++) {
        const struct vt_node *b = &content->u.item[i];

        if (strcmp(api_get_str(vt_get(b, "type"), ""), "tool_result") == 0) {
            add_content(c, vt_get(b, "content"));
            end_message(c, "tool");
        }
    }
    for (uint32_t i = 0; i < content->n; i++) {
        const struct vt_node *b = &content->u.item[i];
        const char *type = api_get_str(vt_get(b, "type"), "");

        if (strcmp(type, "tool_use") == 0) {
            add_call(c, vt_get(b, "name"), vt_get(b, "input"));
            calls = true;
        } else if (strcmp(type, "text") == 0 || strcmp(type, "image") == 0) {
            add_part(c, b);
        }
    }
    if (c->text.len > 0 || calls)
        end_message(c, role);
}

/* ---- tools ----------------------------------------------------------- */

/* A template that knows the role "tool" writes more about its answer than that. */
static bool knows_tools(const struct vt_tokenizer *t)
{
    static const struct vt_chat_message probe[] = {{"user", "a"}, {"tool", "b"}};
    const struct vt_chat_options options = {.add_generation_prompt = false};
    struct vt_buf out = {0};
    struct vt_err err;
    bool knows = vt_chat_render(t, probe, 2, &options, &out, &err) == VT_OK &&
                 (strstr(out.data, "<tool_response>") || strstr(out.data, "ipython"));

    vt_buf_free(&out);
    return knows;
}

static void add_tools(struct chat *c)
{
    const struct vt_node *tools = c->q->slot[SLOT_TOOLS];
    bool has_system = c->n > 0 && strcmp(c->message[0].role, "system") == 0;

    if (c->failed || !api_given(tools) || tools->n == 0 ||
        !knows_tools(c->q->c->tokenizer))
        return;
    if (has_system)
        vt_buf_printf(&c->text, "%s\n\n", c->message[0].content);
    vt_buf_str(&c->text, "# Tools\n\n<tools>");
    for (uint32_t i = 0; i < tools->n; i++) {
        vt_buf_char(&c->text, '\n');
        vt_buf_json_node(&c->text, &tools->u.item[i], &json_dumps);
    }
    vt_buf_str(&c->text, "\n</tools>");
    end_message(c, "system");
    if (c->failed)
        return;
    if (has_system) {
        c->message[0] = c->message[--c->n];
    } else {
        struct vt_chat_message last = c->message[c->n - 1];

        memmove(c->message + 1, c->message, sizeof(*c->message) * (c->n - 1));
        c->message[0] = last;
    }
}

/* ---- the whole ------------------------------------------------------- */

static void gather_messages(struct chat *c, const struct vt_node *list)
{
    const struct vt_node *const *slot = c->q->slot;

    if (api_truth(slot[SLOT_INSTRUCTIONS]))
        add_message(c, "system", slot[SLOT_INSTRUCTIONS]->u.str);
    if (api_truth(slot[SLOT_SYSTEM])) {
        add_content(c, slot[SLOT_SYSTEM]);
        end_message(c, "system");
    }
    if (list->kind == VT_STR)
        add_message(c, "user", list->u.str);
    for (uint32_t i = 0; list->kind == VT_LIST && i < list->n && !c->failed; i++) {
        if (c->q->r->kind == API_RESPONSES)
            responses_item(c, &list->u.item[i]);
        else if (c->q->r->kind == API_MESSAGES)
            anthropic_message(c, &list->u.item[i]);
        else
            openai_message(c, &list->u.item[i]);
    }
    end_calls(c);
    add_tools(c);
}

static bool render_prompt(struct chat *c, struct vt_buf *prompt)
{
    const struct vt_node *const *slot = c->q->slot;
    /* Said outright, by an effort of "none", or by Anthropic's word for it. */
    const struct vt_node *said =
        vt_get(slot[SLOT_CHAT_TEMPLATE_KWARGS], "enable_thinking");
    const struct vt_node *effort = c->q->r->kind == API_RESPONSES
                                       ? vt_get(slot[SLOT_REASONING], "effort")
                                       : slot[SLOT_REASONING_EFFORT];
    bool off = said ? !api_truth(said) : strcmp(api_get_str(effort, ""), "none") == 0;
    bool open = api_get_bool(slot[SLOT_CONTINUE_FINAL], false);
    const struct vt_chat_options options = {
        .add_generation_prompt = api_get_bool(slot[SLOT_ADD_GENERATION_PROMPT], !open),
        .thinking = off ? VT_THINKING_OFF : VT_THINKING_DEFAULT,
    };
    struct vt_err err;

    if (c->n == 0)
        return api_refuse_late(c->q, NULL, NULL,
                               "Cannot apply chat template to an empty conversation. "
                               "Provide at least one message.");
    if (vt_chat_render(c->q->c->tokenizer, c->message, c->n, &options, prompt, &err) !=
        VT_OK)
        return api_refuse_late(c->q, NULL, NULL, "%s", err.msg);
    if (open) { /* continue_final_message: the last message stays open */
        const char *text = c->message[c->n - 1].content;
        size_t len = strlen(text), at = prompt->len;

        while (len > 0 && at >= len && prompt->len - at < MOST_CLOSING &&
               memcmp(prompt->data + at - len, text, len) != 0)
            at--;
        if (len > 0 && at >= len && prompt->len - at < MOST_CLOSING) {
            prompt->len = at;
            prompt->data[at] = '\0';
        }
    }
    return true;
}

bool api_read_chat(struct api_reading *q, const struct api_limits *l)
{
    const struct vt_node *list =
        q->slot[q->r->kind == API_RESPONSES ? SLOT_INPUT : SLOT_MESSAGES];
    struct chat c = {.q = q,
                     .cap = 2 + (list->kind == VT_STR)}; /* instructions, tools */
    struct api_prompt *p = vt_arena_alloc(&q->r->arena, sizeof(*p));
    struct vt_buf text = {0};
    bool ok, special = api_get_bool(q->slot[SLOT_ADD_SPECIAL_TOKENS], false);

    for (uint32_t i = 0; list->kind == VT_LIST && i < list->n; i++) {
        const struct vt_node *content = vt_get(&list->u.item[i], "content");

        c.cap += 1 + (content && content->kind == VT_LIST ? content->n : 0);
    }
    c.message = vt_arena_alloc(&q->r->arena, sizeof(*c.message) * c.cap);
    if (!p || !c.message)
        return api_nomem(q->e);
    gather_messages(&c, list);
    ok = !c.failed && render_prompt(&c, &text);
    if (ok) {
        p->text = "";
        for (size_t i = 0; i < c.n; i++)
            if (strcmp(c.message[i].role, "user") == 0)
                p->text = c.message[i].content;
        p->text_len = strlen(p->text);
        q->r->prompt = p;
        q->r->n_prompts = 1;
        ok = api_prompt_from_text(q, l, text.data, text.len,
                                  special ? VT_ENCODE_ADD_SPECIAL : VT_ENCODE_PLAIN, p);
    }
    vt_buf_free(&c.text);
    vt_buf_free(&text);
    return ok;
}
