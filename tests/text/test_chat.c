/* Chats as the templates of Qwen and Llama 3 write them. Expected prompts were compared
 * with Jinja's by compare_chats.py; templates here are short ones of the same kind. */
#include "chat_templates.h"
#include "testing.h"

#define USER {"user", "Hi"}

static struct row {
    const char *name, *template, *kind;
    struct vt_chat_message message[4];
    size_t n;
    struct vt_chat_options options;
    const char *want; /* or the message */
    bool refused;
} rows[] = {
    {"ChatML",
     CHATML,
     "chatml",
     {{"system", "S"}, USER, {"assistant", "\nYo "}},
     3,
     {0},
     "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
     "<|im_start|>assistant\n\nYo <|im_end|>\n",
     false},
    {"ChatML asks for an answer",
     CHATML,
     "chatml",
     {USER},
     1,
     {.add_generation_prompt = true},
     "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
     false},
    {"Qwen 2.5 has a system message of its own",
     QWEN25,
     "chatml",
     {USER},
     1,
     {0},
     "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n",
     false},
    {"unless there is one",
     QWEN25,
     "chatml",
     {{"system", "S"}, USER},
     2,
     {0},
     "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n",
     false},
    {"Qwen 2.5: answers of tools",
     QWEN25,
     "chatml",
     {{"system", ""}, {"tool", "1"}, {"tool", "2"}},
     3,
     {0},
     "<|im_start|>system\n<|im_end|>\n<|im_start|>user\n<tool_response>\n1\n"
     "</tool_response>\n<tool_response>\n2\n</tool_response><|im_end|>\n",
     false},
    {"Qwen 3 forgets old thoughts",
     QWEN3,
     "qwen3",
     {USER, {"assistant", "<think>\nhm\n</think>\n\nYo"}, USER},
     3,
     {0},
     "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYo<|im_end|>\n"
     "<|im_start|>user\nHi<|im_end|>\n",
     false},
    {"Qwen 3 keeps the last ones",
     QWEN3,
     "qwen3",
     {USER, {"assistant", "<think>\nhm\n</think>\n\nYo"}},
     2,
     {0},
     "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\n"
     "Yo<|im_end|>\n",
     false},
    {"Qwen 3 may be told not to think",
     QWEN3,
     "qwen3",
     {USER},
     1,
     {.add_generation_prompt = true, .thinking = VT_THINKING_OFF},
     "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
     false},
    {"Llama 3",
     LLAMA3,
     "llama3",
     {{"user", " \u00a0Hi\n\n"}},
     1,
     {.add_generation_prompt = true},
     "<B><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\n",
     false},
    {"Llama 3.1 names the template's day",
     LLAMA31,
     "llama3.1",
     {USER},
     1,
     {0},
     "<B><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: "
     "December "
     "2023\nToday Date: 26 Jul 2024\n\n<|eot_id|><|start_header_id|>user"
     "<|end_header_id|>\n\nHi<|eot_id|>",
     false},
    {"or the caller's",
     LLAMA31,
     "llama3.1",
     {{"system", "S"}, USER},
     2,
     {.today = "01 Jan 2030"},
     "<B><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: "
     "December "
     "2023\nToday Date: 01 Jan 2030\n\nS<|eot_id|><|start_header_id|>user"
     "<|end_header_id|>\n\nHi<|eot_id|>",
     false},

    {"a template that never asks for an answer",
     EACH "{{- " ONE " }}{%- endfor %}",
     "chatml",
     {USER},
     1,
     {.add_generation_prompt = true},
     "<|im_start|>user\nHi<|im_end|>\n",
     false},
    {"ChatML without its line ends",
     EACH "{{- '<|im_start|>' + message.role + '\\\\n' + message.content + "
          "'<|im_end|>' }}{%- endfor %}",
     NULL,
     {USER},
     1,
     {0},
     "the model's chat template is not one of ChatML or Llama 3: it writes messages in "
     "another way",
     true},
    {"no template", "", NULL, {USER}, 1, {0}, "the model has no chat template", true},
    {"no messages",
     CHATML,
     "chatml",
     {USER},
     0,
     {0},
     "a chat needs at least one message",
     true},
    {"bytes",
     CHATML,
     "chatml",
     {USER, {"user", "a\xff"}},
     2,
     {0},
     "message 2 is not UTF-8 at byte 1",
     true},
    {"another family",
     "{{ '[INST]' + message.content }}",
     NULL,
     {USER},
     1,
     {0},
     "the model's chat template is not one of ChatML or Llama 3: it has \"[INST]\"",
     true},
    {"a mixture of both",
     CHATML LLAMA3,
     NULL,
     {USER},
     1,
     {0},
     "the model's chat template is not one of ChatML or Llama 3: it writes "
     "messages in another way",
     true},
    {"ChatML that does more",
     EACH "{{- " ONE " | upper }}{%- endfor %}",
     NULL,
     {USER},
     1,
     {0},
     "the model's chat template is not one of ChatML or Llama 3: it has \"upper\"",
     true},
    {"text outside of tags",
     "Hello " CHATML,
     NULL,
     {USER},
     1,
     {0},
     "the model's chat template is not one of ChatML or Llama 3: it has \"Hello \"",
     true},
    {"a line end that would come out",
     "{{ '<|im_start|>' + '<|im_end|>' }}\\n\\n{{ 'x' }}",
     NULL,
     {USER},
     1,
     {0},
     "the model's chat template is not one of ChatML or Llama 3: it has \"\\n\\n\"",
     true},
    {"a tag that does not end",
     "{{ '<|im_start|>",
     NULL,
     {USER},
     1,
     {0},
     "the model's chat template is not one of ChatML or Llama 3: it has \"{{ "
     "'<|im_start|>"
     "\"",
     true},
    {"an end of nothing",
     "{% endif %}",
     NULL,
     {USER},
     1,
     {0},
     "the model's chat template is not one of ChatML or Llama 3: it has \"endif \"",
     true},
};

static struct vt_tokenizer *open_with(const char *template)
{
    static const char tokenizer[] =
        "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":{\"type\":"
        "\"ByteLevel\"},\"added_tokens\":[{\"content\":\"<B>\",\"special\":true}]}";
    struct vt_buf config = {0};
    struct vt_tokenizer_texts texts = {.tokenizer = tokenizer,
                                       .tokenizer_len = sizeof(tokenizer) - 1};
    struct vt_tokenizer *t;
    struct vt_err err;

    if (*template)
        vt_buf_printf(&config,
                      "{\"bos_token\":\"<B>\",\"chat_template\":[{\"name\":\"default\","
                      "\"template\":\"%s\"}]}",
                      template);
    texts.config = config.data;
    texts.config_len = config.len;
    if (vt_tokenizer_from(&t, &texts, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_buf_free(&config);
    return t;
}

static void renders(void **state)
{
    const struct row *r = *state;
    struct vt_tokenizer *t = open_with(r->template);
    const char *kind = vt_tokenizer_facts(t)->chat;
    struct vt_buf out = {0};
    struct vt_err err;
    int rc = vt_chat_render(t, r->message, r->n, &r->options, &out, &err);

    assert_string_equal(kind ? kind : "none", r->kind ? r->kind : "none");
    assert_int_equal(rc, r->refused ? VT_EINPUT : VT_OK);
    assert_string_equal(r->refused ? err.msg : out.data, r->want);
    vt_buf_free(&out);
    vt_tokenizer_close(t);
}

ROWS(rows, renders, "chat")
