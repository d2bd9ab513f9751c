/* chat.c - messages to a prompt, as the known chat templates do it. */
#include "text/tokenizer.h"
#include "text/unicode.h"

struct chat {
    const struct chat_template *c;
    const struct vt_chat_message *message;
    size_t n;
    const struct vt_chat_options *options;
    struct vt_buf *out;
    size_t last_query; /* of templates that think */
};

struct span {
    const char *text;
    size_t len;
};

static struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

static void add_span(struct vt_buf *out, struct span s)
{
    vt_buf_add(out, s.text, s.len);
}

static bool has_role(const struct chat *h, size_t i, const char *role)
{
    return i < h->n && strcmp(h->message[i].role, role) == 0;
}

static bool generates(const struct chat *h)
{
    return h->c->generates == GENERATES_ALWAYS ||
           (h->c->generates == GENERATES_ASKED && h->options->add_generation_prompt);
}

/* ---- ChatML ----------------------------------------------------------- */

static void chatml_plain(const struct chat *h, const char *role, struct span content)
{
    vt_buf_printf(h->out, "<|im_start|>%s\n", role);
    add_span(h->out, content);
    vt_buf_str(h->out, "<|im_end|>\n");
}

static struct span without_lines(struct span s, bool front, bool back)
{
    while (front && s.len > 0 && s.text[0] == '\n') {
        s.text++;
        s.len--;
    }
    while (back && s.len > 0 && s.text[s.len - 1] == '\n')
        s.len--;
    return s;
}

/* The text behind the last `mark`; all of it if there is none. */
static struct span behind_last(struct span s, const char *mark)
{
    size_t n = strlen(mark);

    for (size_t i = s.len; i >= n && n > 0; i--)
        if (memcmp(s.text + i - n, mark, n) == 0)
            return (struct span){s.text + i, s.len - i};
    return s;
}

/* The last question of the user, not a tool. */
static size_t last_query(const struct chat *h)
{
    static const char open[] = "<tool_response>", close[] = "</tool_response>";
    size_t n_open = sizeof(open) - 1, n_close = sizeof(close) - 1;

    for (size_t i = h->n; i-- > 0;) {
        struct span s = span_of(h->message[i].content);

        if (has_role(h, i, "user") &&
            !(s.len >= n_close && memcmp(s.text, open, n_open) == 0 &&
              memcmp(s.text + s.len - n_close, close, n_close) == 0))
            return i;
    }
    return h->n - 1;
}

/* Thoughts are kept only in what was said since the last question. */
static void qwen3_answer(const struct chat *h, size_t i)
{
    struct span content = span_of(h->message[i].content), thought = {"", 0};
    const char *end = strstr(content.text, "</think>");

    if (end) {
        thought = (struct span){content.text, (size_t)(end - content.text)};
        thought = without_lines(thought, false, true);
        thought = without_lines(behind_last(thought, "<think>"), true, true);
        content = without_lines(behind_last(content, "</think>"), true, false);
    }
    vt_buf_str(h->out, "<|im_start|>assistant\n");
    if (i > h->last_query && (i + 1 == h->n || thought.len > 0)) {
        vt_buf_str(h->out, "<think>\n");
        add_span(h->out, thought);
        vt_buf_str(h->out, "\n</think>\n\n");
        content = without_lines(content, true, false);
    }
    add_span(h->out, content);
    vt_buf_str(h->out, "<|im_end|>\n");
}

static void chatml(const struct chat *h)
{
    if (h->c->system && !has_role(h, 0, "system"))
        chatml_plain(h, "system", span_of(h->c->system));
    for (size_t i = 0; i < h->n; i++) {
        const struct vt_chat_message *m = &h->message[i];

        if (h->c->tools && has_role(h, i, "tool")) {
            /* Answers of tools that follow each other are one message of the user. */
            if (i == 0 || !has_role(h, i - 1, "tool"))
                vt_buf_str(h->out, "<|im_start|>user");
            vt_buf_printf(h->out, "\n<tool_response>\n%s\n</tool_response>",
                          m->content);
            if (!has_role(h, i + 1, "tool"))
                vt_buf_str(h->out, "<|im_end|>\n");
        } else if (h->c->thinks && has_role(h, i, "assistant")) {
            qwen3_answer(h, i);
        } else if (!h->c->tools || has_role(h, i, "user") || has_role(h, i, "system") ||
                   has_role(h, i, "assistant")) {
            /* Templates that know tools name their roles, and say nothing of others. */
            chatml_plain(h, m->role, span_of(m->content));
        }
    }
    if (!generates(h))
        return;
    vt_buf_str(h->out, "<|im_start|>assistant\n");
    if (h->c->starts_thinking)
        vt_buf_str(h->out, "<think>\n");
    else if (h->c->may_not_think && h->options->thinking == VT_THINKING_OFF)
        vt_buf_str(h->out, "<think>\n\n</think>\n\n");
}

/* ---- Llama 3 ---------------------------------------------------------- */

/* What Python's strip() takes away: White_Space and four separators. */
static bool is_python_space(uint32_t c)
{
    return uni_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

static struct span trimmed(const struct chat *h, const char *text)
{
    struct span s = span_of(text);
    size_t n = h->c->trims ? uni_front_spaces(s.text, s.len, is_python_space) : 0;

    s.text += n;
    s.len -= n;
    if (h->c->trims)
        s.len -= uni_back_spaces(s.text, s.len, is_python_space);
    return s;
}

static void llama_header(const struct chat *h, const char *role)
{
    vt_buf_printf(h->out, "<|start_header_id|>%s<|end_header_id|>\n\n", role);
}

static void llama(const struct chat *h, const char *bos)
{
    size_t first = 0;

    if (h->c->bos)
        vt_buf_str(h->out, bos);
    if (h->c->dated) { /* Llama 3.1 always has a system message, which names the day */
        bool today = h->c->today && h->options->today;

        llama_header(h, "system");
        vt_buf_printf(h->out,
                      "Cutting Knowledge Date: December 2023\nToday Date: %s\n\n",
                      today ? h->options->today : h->c->day);
        first = has_role(h, 0, "system");
        if (first > 0)
            add_span(h->out, trimmed(h, h->message[0].content));
        vt_buf_str(h->out, "<|eot_id|>");
    }
    for (size_t i = first; i < h->n; i++) {
        const struct vt_chat_message *m = &h->message[i];

        if (h->c->tools && (has_role(h, i, "tool") || has_role(h, i, "ipython"))) {
            llama_header(h, "ipython");
            vt_buf_json_str(h->out, m->content, strlen(m->content));
        } else {
            llama_header(h, m->role);
            add_span(h->out, trimmed(h, m->content));
        }
        vt_buf_str(h->out, "<|eot_id|>");
    }
    if (generates(h))
        llama_header(h, "assistant");
}

/* ---- all -------------------------------------------------------------- */

int vt_chat_render(const struct vt_tokenizer *t, const struct vt_chat_message *message,
                   size_t n, const struct vt_chat_options *options, struct vt_buf *out,
                   struct vt_err *err)
{
    struct chat h = {&t->chat, message, n, options, out, 0};
    unsigned flags;
    size_t bad;

    if (!t->chat.kind && !t->chat.problem)
        return vt_fail(err, VT_EINPUT, "the model has no chat template");
    if (!t->chat.kind)
        return vt_fail(err, VT_EINPUT,
                       "the model's chat template is not one of ChatML or Llama 3: %s",
                       t->chat.problem);
    if (n == 0)
        return vt_fail(err, VT_EINPUT, "a chat needs at least one message");
    for (size_t i = 0; i < n; i++)
        if (!uni_scan(message[i].content, strlen(message[i].content), &flags, &bad))
            return vt_fail(err, VT_EINPUT, "message %zu is not UTF-8 at byte %zu",
                           i + 1, bad);
    if (t->chat.thinks)
        h.last_query = last_query(&h);
    if (t->chat.llama)
        llama(&h, t->bos_text);
    else
        chatml(&h);
    return out->failed ? vt_nomem(err) : VT_OK;
}
