#!/usr/bin/env python3
"""make_out_cases.py - cases for test_out_made.c and test_out_recorded.c, as JSON lines.

  build/real/VERSION/bin/python tests/http/make_out_cases.py made VERSION
      What the classes of a real vLLM (tools/real_vllm installs it) make of given tokens:
      its output processor, its tool parser, its servers; no engine, no socket.
  ... make_out_cases.py recorded VERSION DIR
      Recordings of a real server, DIR/*.json, with every 200 of the endpoints.

Both versions one after the other, through `gzip -9n`, are
tests/cases/http/out-{made,recorded}.jsonl.gz.
"""
import glob
import json
import os
import re
import sys

from tokenizers import Tokenizer

MODEL = os.path.join(os.path.dirname(__file__), "..", "cases", "tiny-qwen3")
tokens_of = Tokenizer.from_file(os.path.join(MODEL, "tokenizer.json"))
EOS = tokens_of.token_to_id("<|im_end|>")

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
ID_PREFIX = {COMPLETIONS: "cmpl-", CHAT: "chatcmpl-", RESPONSES: "resp_", MESSAGES: "chatcmpl-"}
CREATED = 1794712925


def encode(text):
    return tokens_of.encode(text, add_special_tokens=False).ids


def put(case):
    print(json.dumps(case, ensure_ascii=False, separators=(",", ":")))


# ---- what is asked ---------------------------------------------------------------------

WEATHER = {
    "type": "object",
    "properties": {"x": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["x"],
}
NOTHING = {"type": "object", "properties": {}}
CHAT_TOOLS = [
    {"type": "function", "function": {"name": n, "description": "d", "parameters": p}}
    for n, p in (("get_weather", WEATHER), ("f", NOTHING))
]
MESSAGE_TOOLS = [
    {"name": n, "description": "d", "input_schema": p}
    for n, p in (("get_weather", WEATHER), ("f", NOTHING))
]
RESPONSE_TOOLS = [
    {"type": "function", "name": "get_weather", "description": "d", "parameters": WEATHER,
     "strict": None},
    {"type": "function", "name": "f", "parameters": NOTHING},
]  # fmt: skip


def call(name, arguments):
    return '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>' % (name, arguments)


ONE = call("get_weather", '{"x": "Paris and more", "n": 12}')
TWO = ONE + "\n" + call("f", "{}")
HERE = "The block is here."
LAST = encode(HERE)[-1]
CJK = "A \u4e16\u754c"


class Cases:
    """Each is asked twice: whole, and as a stream."""

    def __init__(self):
        self.all = []

    def add(self, name, path, request, text, end="length", only_stream=False, groups=None,
            **more):
        request = dict(model="tiny", **request)
        if path == COMPLETIONS:
            request["prompt"] = "hi there you"
        elif path == RESPONSES:
            request["input"] = "hi"
        else:
            request.setdefault("messages", [{"role": "user", "content": "hi"}])
        tokens = encode(text)
        if end == "eos":
            tokens.append(EOS)
        elif end == "part":  # the last character is not whole
            tokens, end = tokens[:-1], "length"
        case = dict(name=name, path=path, request=request, tokens=tokens, end=end,
                    prompt_ids=encode("hi there you"), groups=groups, **more)  # fmt: skip
        case["id"] = ID_PREFIX[path] + "%016x" % (0xABC000 + len(self.all))
        if not only_stream:
            self.all.append(case)
        if "prompt_logprobs" not in request:  # which may not be streamed
            request = dict(request, stream=True)
            self.all.append(dict(case, name=name + "_stream", request=request))


def chat_cases(c):
    def tools(name, text, end="length", choice="auto", most=200, **more):
        request = dict(tools=CHAT_TOOLS, tool_choice=choice, max_tokens=most)
        request.update(more.pop("request", {}))
        c.add("chat_tools_" + name, CHAT, request, text, end, **more)

    named = {"type": "function", "function": {"name": "get_weather"}}
    tools("auto_one", ONE, "eos")
    tools("auto_two", TWO, "eos")
    tools("auto_cut", ONE[:60])
    tools("auto_cut_tag", ONE[:-4])
    tools("auto_cut_at_json", ONE[:-13])
    tools("auto_cut_between", ONE + "\n")
    tools("auto_cut_space", ONE[:62] + " ")
    tools("auto_cut_tag_open", "<tool")
    tools("auto_groups", TWO, "eos", groups=[3, 9, 4, 50])
    tools("auto_stop", TWO, "stop_string", request=dict(stop=['"n"']))
    tools("auto_text", HERE, "eos")
    tools("auto_text_length", HERE)
    tools("auto_ids", ONE, "eos", request=dict(return_token_ids=True))
    tools("auto_logprobs", call("f", "{}"), "eos", request=dict(logprobs=True, top_logprobs=1))
    tools("auto_usage", call("f", "{}"), "eos", only_stream=True, request=dict(
        stream_options={"include_usage": True, "continuous_usage_stats": True}))  # fmt: skip
    tools("empty", "", "eos")
    tools("required_one", ONE, "eos", "required")
    tools("required_two", TWO, "eos", "required")
    tools("required_cut", ONE[:-12], choice="required")
    tools("required_cut_early", ONE[:15], choice="required")
    tools("required_empty", "", "eos", "required")
    tools("named", ONE, "eos", named)
    tools("named_cut", ONE[:-32], choice=named)
    tools("named_ids", ONE, "eos", named, request=dict(return_token_ids=True))

    def chat(name, text, end="eos", most=50, **more):
        request = dict(max_tokens=most, **more.pop("request", {}))
        c.add("chat_" + name, CHAT, request, text, end, **more)

    chat("eos", HERE + " \u00e9\u4e16\u754c \U0001f600!")
    chat("ids", HERE, request=dict(return_token_ids=True))
    chat("details", HERE, cached=2, details=True)
    chat("stop", HERE, "stop_string", request=dict(stop=["is he", "zz"]))
    chat("stop_held", HERE, "length", request=dict(stop=["is nothing like here"]))
    chat("stop_token", HERE, "stop", request=dict(stop_token_ids=[LAST]), stop_reason=LAST)
    chat("logprobs0", "The block", request=dict(logprobs=True))
    chat("logprobs_as_ids", "The block",
         request=dict(logprobs=True, top_logprobs=2, return_tokens_as_token_ids=True))  # fmt: skip
    chat("stop_logprobs", HERE, "length",
         request=dict(stop=["is nothing like here"], logprobs=True, top_logprobs=1))  # fmt: skip
    chat("prompt_logprobs", "The block", request=dict(prompt_logprobs=1))
    chat("prompt_text", "The block.", request=dict(return_prompt_text=True))
    chat("echo_none", " block.", request=dict(echo=True))
    chat("echo", " block.", request=dict(
        messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Well, the"}],
        echo=True, add_generation_prompt=False, continue_final_message=True))  # fmt: skip
    chat("part_of_a_character", CJK, "part", request=dict(stop=["zzz"]))


def completion_cases(c):
    def add(name, text, end="length", **more):
        request = dict(max_tokens=50, **more.pop("request", {}))
        c.add("comp_" + name, COMPLETIONS, request, text, end, **more)

    add("eos", HERE, "eos")
    add("echo", HERE, "eos", request=dict(echo=True))
    add("echo_ids", HERE, "eos", request=dict(echo=True, return_token_ids=True))
    add("echo_logprobs", "The block is", "eos", request=dict(echo=True, logprobs=1))
    add("ids", HERE, "eos", request=dict(return_token_ids=True))
    add("details", HERE, "eos", cached=2, details=True)
    add("logprobs0", "The block is", request=dict(logprobs=0))
    add("logprobs_as_ids", "The block is",
        request=dict(logprobs=2, return_tokens_as_token_ids=True))  # fmt: skip
    add("logprobs_stop_held", HERE, request=dict(logprobs=1, stop=["is nothing"]))
    add("logprobs_utf8", CJK + " \U0001f600", request=dict(logprobs=1))
    add("prompt_logprobs", "The block is", request=dict(prompt_logprobs=2))
    add("stop_utf8", CJK + " \U0001f600 b\u754c xyz", "stop_string",
        request=dict(stop=["\u754c x"]))  # fmt: skip
    add("stop_min", HERE, "stop_string", request=dict(stop=["e"], min_tokens=3))
    add("stop_include", HERE, "stop_string",
        request=dict(stop=["is h"], include_stop_str_in_output=True))  # fmt: skip
    add("two_stops", HERE, "stop_string", request=dict(stop=["lock", "bl"]))
    add("stop_quote", 'They say "no".', "stop_string", request=dict(stop=['say "']))
    add("groups", "The block is here and there.", groups=[1, 2, 3, 1, 50])
    add("keep_special", "A<|im_start|> b", "eos", request=dict(skip_special_tokens=False))
    add("skip_special", "A<|im_start|> b", "eos")
    add("include_eos", "A b", "eos",
        request=dict(skip_special_tokens=False, include_stop_str_in_output=True))  # fmt: skip
    add("include_stop_token", HERE, "stop", stop_reason=LAST,
        request=dict(include_stop_str_in_output=True, stop_token_ids=[LAST]))  # fmt: skip
    add("control_characters", 'a\x01\tb\r\n"\\/\x7f')
    add("part_of_a_character", CJK, "part")


def usage_cases(c):
    for continuous in (False, True):
        options = {"include_usage": True}
        if continuous:
            options["continuous_usage_stats"] = True
        for details in (False, True):
            for path, kind in ((CHAT, "chat"), (COMPLETIONS, "comp")):
                c.add(f"{kind}_usage_{continuous:d}{details:d}", path,
                      dict(max_tokens=9, stream_options=options), "The block is.", "eos",
                      only_stream=True, cached=1, details=details)  # fmt: skip


def message_cases(c):
    def add(name, text, end="eos", tools=None, choice=None, **more):
        request = dict(max_tokens=50, **more.pop("request", {}))
        if tools:
            request["tools"] = MESSAGE_TOOLS
        if choice:
            request["tool_choice"] = choice
        c.add("msg_" + name, MESSAGES, request, text, end, **more)

    named = {"type": "tool", "name": "get_weather"}
    add("eos", HERE)
    add("length", HERE, "length")
    add("details", HERE, "length", cached=2, details=True)
    add("stop", HERE, "stop_string", request=dict(stop_sequences=["is h"]))
    add("empty", "")
    add("part_of_a_character", CJK, "part")
    add("tools_auto", ONE, tools=True)
    add("tools_auto_text", "Let me see.", tools=True)
    add("tools_two", TWO, tools=True)
    add("tools_empty", "", tools=True)
    add("tools_any", ONE, tools=True, choice={"type": "any"})
    add("tools_named", ONE, tools=True, choice=named)
    add("tools_named_cut", ONE[:-32], "length", tools=True, choice=named)


def response_cases(c):
    def add(name, text, end="eos", tools=None, choice=None, **more):
        request = dict(max_output_tokens=50, **more.pop("request", {}))
        if tools:
            request["tools"] = RESPONSE_TOOLS
        if choice:
            request["tool_choice"] = choice
        c.add("resp_" + name, RESPONSES, request, text, end, **more)

    named = {"type": "function", "name": "get_weather"}
    logprobs = ["message.output_text.logprobs"]
    schema = {"type": "json_schema", "name": "x", "schema": WEATHER, "strict": True}
    add("eos", HERE)
    add("length", HERE, "length", request=dict(
        temperature=0.5, top_p=0.9, instructions="be brief", metadata={"a": "b"}, user="u"))  # fmt: skip
    add("cached", HERE, cached=2)
    add("empty", "")
    add("logprobs", "The block", request=dict(include=logprobs, top_logprobs=2))
    add("logprobs0", "The block", request=dict(include=logprobs))
    add("part_of_a_character", CJK, "part", request=dict(include=logprobs, top_logprobs=1))
    add("text_format", '{"x": "a"}', request=dict(text={"format": schema}))
    add("reasoning", "ok", request=dict(
        reasoning={"effort": "low"}, truncation="auto", service_tier="default",
        parallel_tool_calls=False, max_tool_calls=3, store=False))  # fmt: skip
    add("tools_auto", ONE, tools=True)
    add("tools_two", TWO, tools=True, choice="auto")
    add("tools_text", "Let me see.", tools=True)
    add("tools_empty", "", tools=True)
    add("tools_required", ONE, tools=True, choice="required")
    add("tools_required_two", TWO, tools=True, choice="required")
    add("tools_named", ONE, tools=True, choice=named)
    add("tools_cut", ONE[:-32], "length", tools=True, choice=named)


# ---- recordings -------------------------------------------------------------------------


def single(token):
    ids = encode(token)
    return ids[0] if len(ids) == 1 else 0


class Choice:
    def __init__(self):
        self.tokens, self.ends, self.text, self.end, self.stop_reason = [], [], "", "open", None

    def add(self, text, tokens):
        self.text += text
        self.tokens += tokens
        self.ends += [len(self.text.encode())] * len(tokens)


def named_tokens(choice):
    logprobs = choice.get("logprobs")
    if not logprobs:
        return None
    names = logprobs["tokens"] if "tokens" in logprobs else [t["token"] for t in logprobs["content"]]
    return [single(name) for name in names]


def read_stream(body, choices):
    """Events of a stream as steps; chunks of two tokens are told by their text."""
    steps, usage = [], None
    for line in body.split("\n\n"):
        if not line.startswith("data: {"):
            continue
        event = json.loads(line[6:])
        if not event["choices"]:
            usage = event["usage"]
            continue
        c = event["choices"][0]
        if "role" in c.get("delta", {}):
            continue
        one = choices.setdefault(c["index"], Choice())
        text = c["text"] if "text" in c else c["delta"].get("content", "")
        n = 2 if text in ("Ex\n", "-projecttribut", "-w disable") else 1
        if event.get("usage"):
            n = event["usage"]["completion_tokens"] - len(one.tokens)
        one.add(text, named_tokens(c) or [0] * n)
        steps.append([c["index"], len(one.tokens)])
        if c["finish_reason"]:
            one.end, one.stop_reason = c["finish_reason"], c.get("stop_reason")
    if usage:
        assert usage["completion_tokens"] == sum(len(c.tokens) for c in choices.values())
    return steps, usage and usage["prompt_tokens"]


def read_choices(body, request, choices):
    n = body["usage"]["completion_tokens"] // len(body["choices"])
    for c in body["choices"]:
        one = choices.setdefault(c["index"], Choice())
        text = c["text"] if "text" in c else c["message"]["content"]
        if request.get("echo"):
            text = text[len(request["prompt"]) :]
        tokens = named_tokens(c)
        one.add(text, tokens[-n:] if tokens else c.get("token_ids") or [0] * n)
        one.end, one.stop_reason = c["finish_reason"], c["stop_reason"]
    return body["usage"]["prompt_tokens"]


def read_other(body, choices):
    one = choices.setdefault(0, Choice())
    text = (body.get("output") or [body])[0]["content"][0]["text"]
    one.add(text, [0] * body["usage"]["output_tokens"])
    cut = body.get("status") == "incomplete" or body.get("stop_reason") == "max_tokens"
    one.end = "length" if cut else "stop"
    return body["usage"]["input_tokens"]


def prompts_of(request, n):
    prompt = request.get("prompt")
    if isinstance(prompt, list) and isinstance(prompt[0], int):
        return [prompt], [""]
    if isinstance(prompt, list):
        return [encode(p) for p in prompt], prompt
    if isinstance(prompt, str) and len(prompt) < 200:
        return [encode(prompt)], [prompt]
    if prompt is not None:
        request["prompt"] = "long"
    return [[0] * n], ["long" if prompt else ""]


def recorded(version, directory):
    for path in sorted(glob.glob(os.path.join(directory, "*.json"))):
        with open(path, encoding="utf-8") as f:
            r = json.load(f)
        if r.get("status") != 200 or r["path"] not in ID_PREFIX:
            continue
        request, body, choices, steps = r["request"], r["body"], {}, []
        if request.get("stream"):
            steps, n = read_stream(body, choices)
            n = n or (2 if r["path"] == COMPLETIONS else 29)
        elif "choices" in json.loads(body):
            n = read_choices(json.loads(body), request, choices)
        else:
            n = read_other(json.loads(body), choices)
        ids, texts = prompts_of(request, n)
        created = re.search(r'"created(?:_at)?":(\d+)', body)
        put(dict(
            name=os.path.basename(path)[:-5], line=version, path=r["path"], request=request,
            id=re.search(r'"id":"([^"]+)"', body).group(1),
            created=int(created.group(1)) if created else 0,
            open=bool(request.get("stream")) and "[DONE]" not in body,
            prompts=ids, prompt_texts=texts, steps=steps,
            choices=[vars(choices[i]) for i in sorted(choices)], body=body))  # fmt: skip


# ---- a real vLLM, without its engine -----------------------------------------------------


def made(version):
    sys.path.insert(0, os.path.dirname(__file__))
    import real_servers  # which takes seconds, and is there in build/real only

    cases = Cases()
    for add in (chat_cases, completion_cases, usage_cases, message_cases, response_cases):
        add(cases)
    fingerprint = {"0.26.0": "vllm-0.26.0-40a75c21", "0.32.0": "vllm-0.32.0-18f18d96"}[version]
    real = real_servers.Servers(MODEL, fingerprint, CREATED)
    for c in cases.all:
        body = real.answer(c)
        created = re.search(r'"created(?:_at)?":(\d+)', body)
        put(dict(
            name=c["name"], line=version, path=c["path"], request=c["request"], id=c["id"],
            created=int(created.group(1)) if created else 0, details=c.get("details", False),
            cached=c.get("cached", 0), prompts=[c["prompt_ids"]],
            prompt_texts=[tokens_of.decode(c["prompt_ids"])], tokens=c["tokens"], end=c["end"],
            groups=c["groups"], body=body))  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["made"] and len(sys.argv) == 3:
        made(sys.argv[2])
    elif sys.argv[1:2] == ["recorded"] and len(sys.argv) == 4:
        recorded(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
