/* chat_templates.h - short chat templates of every kind that src/text knows, as they
 * stand within a JSON string. */
#ifndef VT_CHAT_TEMPLATES_H
#define VT_CHAT_TEMPLATES_H

#define EACH "{%- for message in messages %}"
#define ONE \
    "'<|im_start|>' + message.role + '\\\\n' + message.content + '<|im_end|>\\\\n'"
#define ASK \
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\\\n' }}{%- endif %}"
#define CHATML EACH "{{- " ONE " }}{%- endfor %}" ASK
#define QWEN25                                                                       \
    "{%- if tools %}{{- 'Call <tools>' }}{%- else %}{%- if messages[0].role != "     \
    "'system' %}"                                                                    \
    "{{- '<|im_start|>system\\\\nBe brief.<|im_end|>\\\\n' }}{%- endif %}{%- endif " \
    "%}" EACH "{%- if message.role == 'tool' %}{{- '<|im_start|>user' }}"            \
    "{{- '\\\\n<tool_response>\\\\n' + message.content + '\\\\n</tool_response>' }}" \
    "{%- else %}{{- " ONE " }}{%- endif %}{%- endfor %}" ASK
#define QWEN3                                                                          \
    EACH "{%- if '</think>' in message.content %}{{- '\\\\n<think>\\\\n' }}"           \
         "{{- '\\\\n</think>\\\\n\\\\n' }}{%- endif %}{{- " ONE " }}{%- endfor %}" ASK \
         "{%- if enable_thinking is defined %}"                                        \
         "{{- '<think>\\\\n\\\\n</think>\\\\n\\\\n' }}{%- endif %}"
#define LLAMA_ONE                                                                \
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\\\n\\\\n' + " \
    "message['content'] | trim + '<|eot_id|>'"
#define LLAMA3                                                                    \
    "{{ bos_token }}{% for message in messages %}{{ " LLAMA_ONE " }}{% endfor %}" \
    "{% if add_generation_prompt %}"                                              \
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\\\n\\\\n' }}{% endif %}"
#define LLAMA31                                                    \
    "{{- bos_token }}{%- set date_string = \\\"26 Jul 2024\\\" %}" \
    "{%- set date_string = strftime_now(\\\"%d %b %Y\\\") %}"      \
    "{{- \\\"Today Date: \\\" + date_string + \\\"\\\\n\\\\n\\\" }}" LLAMA3

#endif
