#!/usr/bin/env python3
"""Makes the tables that test_api_checked.c and test_api_json.c read.

    make_api_cases.py json OUT.jsonl
        what Python's own json module says of broken texts
    PYTHON_WITH_FASTAPI make_api_cases.py values OUT.jsonl
        what it reads of texts that other readers refuse, and what FastAPI and pydantic
        then say of numbers beyond any range
    PYTHON_OF_A_VLLM make_api_cases.py checked LINE OUT.jsonl.gz
        what that vLLM's request classes and error handlers answer to bodies with one
        fault or another; LINE is 0.26.0 or 0.32.0. No server is started: the classes
        hang on routes of a FastAPI application that does nothing else.

Left out are bodies that vtwin refuses, or takes, in other words on purpose: see UNLIKE.
"""
import asyncio
import gzip
import json
import sys
import types

C, H, R, M, E = (
    "/v1/completions",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/embeddings",
)
BASE = {
    C: {"model": "tiny", "prompt": "Hello world"},
    H: {"model": "tiny", "messages": [{"role": "user", "content": "hi"}]},
    R: {"model": "tiny", "input": "hi"},
    M: {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    E: {"model": "tiny", "input": "hi"},
}
VALUES = ["x", "12", "1.5", " 7 ", True, None, 1.5, 2.0, [1], {"a": 1}, -3, "", "on", 0, 2]

# Fields of several classes, then those of one.
SHARED = """model stream temperature top_p top_k cache_salt kv_transfer_params vllm_xargs
    chat_template_kwargs tools tool_choice""".split()
SAMPLED = """frequency_penalty presence_penalty logit_bias seed stop priority request_id
    ignore_eos repetition_penalty structured_outputs user include_stop_str_in_output
    skip_special_tokens session_id watermarking""".split()
OPENAI = """n stream_options min_p length_penalty stop_token_ids min_tokens
    truncate_prompt_tokens truncation_side allowed_token_ids bad_words add_special_tokens
    response_format return_token_ids return_tokens_as_token_ids repetition_detection
    thinking_token_budget stream_interval use_beam_search logprob_token_ids logprobs
    prompt_logprobs max_tokens echo return_mm_kwargs mm_payload
    routed_experts_prompt_start""".split()
FIELDS = {
    C: SHARED + SAMPLED + OPENAI + ["prompt", "prompt_embeds"],
    H: SHARED + SAMPLED + OPENAI
    + """messages top_logprobs max_completion_tokens parallel_tool_calls reasoning_effort
    add_generation_prompt continue_final_message documents mm_processor_kwargs
    media_io_kwargs include_reasoning return_prompt_text""".split(),
    R: SHARED + SAMPLED
    + """instructions max_output_tokens text previous_response_id store background
    metadata parallel_tool_calls reasoning truncation include top_logprobs service_tier
    prompt max_tool_calls prompt_cache_key enable_response_messages""".split(),
    M: SHARED + ["messages", "max_tokens", "metadata", "stop_sequences", "system",
                 "output_config"],
    E: """model input dimensions encoding_format user truncate_prompt_tokens request_id
    add_special_tokens priority embed_dtype endianness use_activation messages padding
    truncation_side""".split(),
}
TOOL = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
FLAT = [{"type": "function", "name": "f", "parameters": {}}]
CLAUDE = [{"name": "f", "input_schema": {"type": "object"}}]


def user(content):
    return [{"role": "user", "content": content}]


# Of completions and of chats, both.
BOTH = [
    {"structured_outputs": {"json": {}, "regex": "x"}},
    {"structured_outputs": {"choice": ["a"], "regex": "x"}},
    {"structured_outputs": {}},
    {"structured_outputs": {"grammar": "x", "json_object": True}},
    {"structured_outputs": {"choice": "a"}},
    {"structured_outputs": {"json": 5}},
    {"structured_outputs": {"json_object": "maybe"}},
    {"structured_outputs": {"choice": [1]}},
    {"response_format": {"type": "json_schema"}},
    {"response_format": {"type": "xml"}},
    {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
    {"response_format": {"type": "json_schema", "json_schema": 5}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": 3, "schema": []}}},
    {"response_format": {"type": "text"}},
    {"stream": True, "stream_options": {"include_usage": "x"}},
    {"stream": True, "stream_options": 5},
    {"stream": False, "stream_options": {}},
    {"stream_options": {"include_usage": True}},
    {"prompt_logprobs": -2},
    {"prompt_logprobs": 2, "stream": True},
    {"prompt_logprobs": 0, "stream": True},
    {"prompt_logprobs": "x"},
    {"prompt_logprobs": 1.5},
    {"logprob_token_ids": [1]},
    {"logprob_token_ids": [1], "use_beam_search": True},
    {"top_p": 0}, {"top_p": 1.5}, {"top_p": "nan"},
    {"temperature": -0.5}, {"temperature": "nan"}, {"temperature": 2.5},
    {"top_k": -2}, {"top_k": -1}, {"min_p": 1.5}, {"min_p": -0.1},
    {"presence_penalty": 2.5}, {"frequency_penalty": -3},
    {"repetition_penalty": 0}, {"repetition_penalty": "inf"},
    {"min_tokens": -1}, {"min_tokens": 50, "max_tokens": 10},
    {"max_tokens": 0}, {"max_tokens": -5},
    {"n": 0}, {"n": 2, "temperature": 0}, {"n": 20000}, {"n": -1},
    {"stop": ["a", ""]}, {"stop": ["a", 5]}, {"stop": ["a", "b", "c", "d", "e"]},
    {"stop_token_ids": ["x", 5]}, {"bad_words": [""]}, {"bad_words": None},
    {"logit_bias": {"x": 1}}, {"logit_bias": {"5": "y"}},
    {"logit_bias": {"5": 200, "6": -300}},
    {"stream_interval": 0}, {"stream_interval": 3},
    {"seed": 2**63}, {"priority": 2**63}, {"seed": -(2**63)},
    {"repetition_detection": {"max_pattern_size": -1}},
    {"repetition_detection": {"max_pattern_size": 3}},
    {"repetition_detection": {"max_pattern_size": 3, "min_count": 2}},
    {"repetition_detection": {"max_pattern_size": "x"}},
    {"cache_salt": ""}, {"cache_salt": "a/b"}, {"cache_salt": "x" * 129},
    {"cache_salt": "x" * 128},
    {"truncate_prompt_tokens": -2},
    {"vllm_xargs": {"a": {}}}, {"vllm_xargs": {"a": [1, "x", {}]}},
    {"n": "x", "max_tokens": "y", "stop": 5, "temperature": []},
    {"user": {"p": "/tmp/aa/b.txt and \"q\" 's' \n \u00e9 \u200b \U0001f600"}},
    {"user": ["/home/x/y.z /a/b/c.d /a b/c.d"]},
    {"user": [1e16, 1e-5, 0.1, 123456789.125, -0.0, 1e22, 2**63]},
    {"logprobs": "x"}, {"logprobs": []}, {"logprobs": -2},
]
OWN = {
    C: [
        {"prompt": [[1], [2]]}, {"prompt": ["a", "b"]}, {"prompt": [1, "a"]},
        {"prompt": [-1]}, {"prompt": [[1], "a"]}, {"prompt": [1.5]}, {"prompt": [True]},
        {"prompt": ["a", None]}, {"prompt": [[1, -2]]}, {"prompt": ["x"] * 1100},
        {"prompt": None, "prompt_embeds": []},
        {"use_beam_search": True, "echo": True, "logprobs": 1},
        {"echo": True, "max_tokens": 0},
        {"echo": True, "max_tokens": 0, "logprobs": 1, "logprob_token_ids": [1]},
    ],
    H: [
        {"tools": []}, {"tool_choice": "auto"},
        {"tools": TOOL, "tool_choice": "sometimes"},
        {"tools": TOOL, "tool_choice": {"type": "function"}},
        {"tools": TOOL, "tool_choice": {"function": {}}},
        {"tools": TOOL, "tool_choice": {"function": {"name": ""}}},
        {"tools": TOOL, "tool_choice": {"function": {"name": "g"}}},
        {"tools": TOOL, "tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"tools": [{"type": "x", "function": {}}]}, {"tools": [5]}, {"tools": {}},
        {"tools": TOOL, "tool_choice": {"function": {"name": 5}}},
        {"tools": TOOL, "tool_choice": "none", "structured_outputs": {"regex": "x"}},
        {"tools": TOOL, "tool_choice": {"type": "function", "function": {"name": "f"}},
         "structured_outputs": {"regex": "x"}},
        {"tools": TOOL, "tool_choice": None},
        {"tools": [{"function": {"name": "f", "parameters": 5}}], "tool_choice": "none"},
        {"tools": [{"type": "function"}], "tool_choice": "auto"},
        {"tools": TOOL, "tool_choice": {"type": "x", "function": {"name": "f"}}},
        {"tools": None, "tool_choice": "required"},
        {"tools": TOOL, "tool_choice": {"function": "f"}}, {"tools": TOOL, "n": "x"},
        {"continue_final_message": True, "add_generation_prompt": True},
        {"continue_final_message": True},
        {"top_logprobs": 3}, {"top_logprobs": -3}, {"top_logprobs": "x"},
        {"logprobs": True, "top_logprobs": None}, {"logprobs": True, "top_logprobs": 1.5},
        {"messages": [{"content": "x"}]}, {"messages": [{"role": "user"}]},
        {"messages": user(5)}, {"messages": [5]}, {"messages": [{}]},
        {"messages": [{"role": 5, "content": "x"}]}, {"messages": user(None)},
        {"messages": user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])},
        {"messages": user(["a", "b"])}, {"messages": [{"role": "weird", "content": "x"}]},
        {"messages": [{"role": "assistant", "content": None}]},
        {"messages": [{"role": "tool", "content": "x"}]}, {"messages": "hi"},
        {"messages": {"role": "user"}}, {"messages": [None]},
        {"messages": [{"role": "user", "content": "x", "name": 5}]},
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": 5}]},
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": []}]},
        {"messages": [{"role": "assistant", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "5"}]},
        {"messages": [{"role": "assistant", "tool_calls": [
            {"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}]}]},
    ],
    R: [
        {"input": user("hi")},
        {"input": [{"type": "message", "role": "user",
                    "content": [{"type": "input_text", "text": "hi"}]}]},
        {"input": [{"type": "function_call", "name": "f", "arguments": "{}", "call_id": "1"},
                   {"type": "function_call_output", "call_id": "1", "output": "5"}]},
        {"tools": FLAT}, {"tools": []}, {"tools": FLAT, "tool_choice": "required"},
        {"tool_choice": "required"}, {"tool_choice": {"type": "function", "name": "f"}},
        {"text": {"format": {"type": "json_object"}}}, {"text": {"format": {"type": "text"}}},
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}},
        {"text": {"format": {"type": "x"}}}, {"text": {"format": 5}},
        {"text": {"format": {"type": "json_schema", "name": "x"}}},
        {"text": {"verbosity": "x"}}, {"text": {"format": None}},
        {"background": True, "store": False}, {"prompt": {"id": "x"}},
        {"max_output_tokens": 0}, {"temperature": -1}, {"top_p": 0}, {"cache_salt": ""},
        {"top_logprobs": 3, "include": ["message.output_text.logprobs"]},
    ],
    M: [
        {"max_tokens": 0}, {"max_tokens": -1}, {"model": ""}, {"system": "x"},
        {"system": [{"type": "text", "text": "a"}]}, {"system": 5},
        {"messages": [{"role": "system", "content": "x"}]},
        {"messages": [{"role": "x", "content": "y"}]}, {"messages": [{"role": "user"}]},
        {"messages": user([{"type": "text", "text": "a"},
                           {"type": "tool_result", "tool_use_id": "1", "content": "5"}])},
        {"messages": [{"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "f", "input": {}}]}]},
        {"messages": user([{"type": "zz"}])},
        {"tools": CLAUDE}, {"tools": [{"name": "f"}]}, {"tool_choice": {"type": "x"}},
        {"tools": CLAUDE, "tool_choice": {"type": "any"}},
        {"tools": CLAUDE, "tool_choice": {"type": "tool", "name": "f"}},
        {"tools": CLAUDE, "tool_choice": {"type": "tool"}},
        {"tool_choice": {"type": "none"}},
    ],
    E: [
        {"input": ["a", "b"]}, {"input": [1, 2]}, {"input": [[1], [2]]}, {"input": [1, "a"]},
        {"input": [{}]}, {"encoding_format": "base64"},
    ],
}


def UNLIKE(path, body, answer):
    """Why vtwin differs there, or None."""
    key = list(body)[-1] if isinstance(body, dict) and body else None
    value = body.get(key) if key else None
    if path == R and key in ("tools", "tool_choice", "input") and value not in ([], "required"):
        return "unions of dozens of classes" if " validation errors" in answer else None
    if path == R and key == "previous_response_id" and isinstance(value, str):
        return "checked behind the request class"
    if path == M and key in ("temperature", "top_p", "top_k"):
        return "checked behind the request class"
    if path == E and key in ("input", "dimensions") and value in ("", 0, -3):
        return "checked behind the request class"
    if key in ("truncate_prompt_tokens", "max_completion_tokens") and value == 0:
        return "checked with the prompt"
    return None


def bodies():
    for path, fields in FIELDS.items():
        for whole in (None, [1, 2], "abc", 5, True, 1.5, {}):
            yield path, whole
        for field in fields:
            for value in VALUES:
                yield path, {**BASE[path], field: value}
        for extra in (BOTH if path in (C, H) else []) + OWN[path]:
            yield path, {**BASE[path], **extra}


def application(line):
    from fastapi import Depends, FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
    from vllm.entrypoints.pooling.embed.protocol import EmbeddingRequest
    from vllm.entrypoints.serve.utils.api_utils import validate_json_request

    app = FastAPI()
    app.state.args = types.SimpleNamespace(log_error_stack=False)
    if line == "0.26.0":
        from vllm.entrypoints.serve.utils import server_utils

        app.exception_handler(RequestValidationError)(
            server_utils.validation_exception_handler
        )
        for kind in (ValueError, TypeError, OverflowError, NotImplementedError, Exception):
            app.exception_handler(kind)(server_utils.exception_handler)
    else:
        from vllm.entrypoints.serve.exception_handling.register import (
            init_exception_handler,
        )

        init_exception_handler(app)

    def route(path, cls, params):
        async def answer(request: cls, raw_request: Request):
            params(request)
            return JSONResponse({})

        app.post(path, dependencies=[Depends(validate_json_request)])(answer)

    def chosen(request):
        wanted = getattr(request, "max_completion_tokens", None)
        wanted = request.max_tokens if wanted is None else wanted
        request.to_sampling_params(100 if wanted is None else wanted, {})

    route(C, CompletionRequest, chosen)
    route(H, ChatCompletionRequest, chosen)
    route(R, ResponsesRequest, lambda r: r.to_sampling_params(100, {}))
    route(M, AnthropicMessagesRequest, lambda r: None)
    route(E, EmbeddingRequest, lambda r: None)
    return app


async def ask(app, path, body):
    sent = []
    scope = dict(type="http", asgi={"version": "3.0"}, http_version="1.1", method="POST",
                 path=path, raw_path=path.encode(), query_string=b"", root_path="",
                 scheme="http", headers=[(b"content-type", b"application/json")],
                 client=("client", 1), server=("server", 2), app=app)

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    try:
        await app(scope, receive, send)
    except Exception:  # the handler has answered already
        if not sent:
            raise
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent[1:]).decode()


async def checked(line):
    app, rows, seen = application(line), [], set()
    for path, body in bodies():
        text = json.dumps(body)
        if (path, text) in seen:
            continue
        seen.add((path, text))
        status, answer = await ask(app, path, text.encode())
        if UNLIKE(path, body, answer) or len(answer) > 4000:
            continue
        rows.append({"path": path, "request": text, "status": status,
                     "body": answer if status != 200 else ""})
    return rows


TEXTS = ['{"a": [1, -2.5e3, true, null], "b": {"c": "d\\u00e9\\n"}}', '[{"x": []}, "y"]',
         '{"\u00fc": "\u00e9\u4e2d", "k": 1}', '"abc"', "12", "-0.5E+7"]
ODD = ["", " ", "nul", "-", "1.", "1e", "01", ".5", "+1", "NaN", "-Infinity", "tru", "'a'",
       '"\\x"', '"\\u12g4"', '"\\u12', '"\\', '"\\ud800\\u12"', '"\x01"', "{1:2}", "{,}",
       "[1,,2]", "[1,]", '{"a":1,}', '{"a":1, }', "[1]x", "[] []", "[" * 40]


def broken():
    for text in TEXTS:
        for i in range(len(text) + 1):
            yield text[:i]
            yield text[:i] + text[i + 1:]
            for extra in ",:x]\"}{ ":
                yield text[:i] + extra + text[i:]
    yield from ODD


def json_rows():
    rows, seen = [], set()
    for text in broken():
        if text in seen:
            continue
        seen.add(text)
        try:
            json.loads(text)
            rows.append({"text": text})
        except json.JSONDecodeError as e:
            rows.append({"text": text, "error": e.msg, "at": e.pos})
    return rows


# Doubled keys, numbers that are none, numbers of any size.
READ = ['{"a": 1, "a": 2}', '{"a": 1, "b": 2, "a": 3, "c": 4, "b": 5}', '{"a": {"x": 1}, "a": []}',
        '{"": 1, "": 2, "": 3}', "[NaN, Infinity, -Infinity]", '{"a": NaN, "a": -Infinity}',
        "1e999", "-1e999", "1e-999", "-0", "-0.0", "0e5", "9" * 400 + ".5", "0." + "0" * 400 + "1",
        *map(str, (2**63 - 1, 2**63, 2**64 - 1, 2**64, -2**63, -2**63 - 1, -2**64, 10**100)),
        "1" + "0" * 4299, "-1" + "0" * 4299, "1" + "0" * 4300, "1" + "0" * 5000 + ".0",
        "nan", "inf", "Infinit", "-Infinit", "--Infinity", "+Infinity", "-NaN", "NaN1", "[NaN",
        "{" + ", ".join(f'"k{i % 40}": {i}' for i in range(100)) + "}"]
NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e18", "1e19", "-1e19", "1e30",
           "9223372036854775807.0", "0.5", "3",
           *map(str, (2**63 - 1, 2**63, 2**64, -2**63, -2**63 - 1, -2**64, 10**400))]


def read_rows():
    for text in READ:
        try:
            yield {"text": text, "repr": repr(json.loads(text))}
        except ValueError:
            yield {"text": text}


def number_rows():
    from typing import Annotated

    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import PlainTextResponse
    from pydantic import BaseModel, Field

    class Body(BaseModel):
        whole: int | None = None
        real: float | None = None
        flag: bool | None = None
        text: str | None = None
        long: Annotated[int, Field(ge=-2**63, le=2**63 - 1)] = 0
        from_1: Annotated[int | None, Field(ge=-1, le=2**63 - 1)] = None
        share: Annotated[float, Field(ge=0, le=2)] = 0
        ids: list[int] | None = None

    app = FastAPI()

    @app.post("/")
    async def answer(body: Body):
        return PlainTextResponse("")

    @app.exception_handler(RequestValidationError)
    async def refuse(_, e):
        said = [{k: v for k, v in x.items() if k != "url"} for x in e.errors()]
        return PlainTextResponse("\n  ".join([f"{len(said)} validation error:", *map(str, said)]))

    for field in Body.model_fields:
        for number in NUMBERS:
            text = '{"%s": %s}' % (field, f"[{number}]" if field == "ids" else number)
            _, said = asyncio.run(ask(app, "/", text.encode()))
            yield {"body": text, "said": said}


def write(path, rows):
    text = "".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n"
                   for r in rows)
    with open(path, "wb") as out:
        if path.endswith(".gz"):
            with gzip.GzipFile("", "wb", 9, out, 0) as z:
                z.write(text.encode())
        else:
            out.write(text.encode())


if sys.argv[1] == "json":
    write(sys.argv[2], json_rows())
elif sys.argv[1] == "values":
    write(sys.argv[2], [*read_rows(), *number_rows()])
else:
    write(sys.argv[3], asyncio.run(checked(sys.argv[2])))
