"""same.py REAL TWIN - the same requests to a real API server and to vtwin serve: their answers
have the same status, content type, keys, types and errors, and streams say the same in all,
however a busy server cuts them into events. What is known to differ is listed with the reason. Python's own library only."""
import http.client
import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.environ["VT_ROOT"], "tests/e2e/serve"))
from shapes import answer  # noqa: E402

HELLO = [{"role": "user", "content": "Say something about blocks."}]
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {
    "type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}}}
BASE = {
    "/v1/completions": {"model": "tiny", "prompt": "Hello world", "max_tokens": 4,
                        "temperature": 0},
    "/v1/chat/completions": {"model": "tiny", "messages": HELLO, "max_tokens": 4,
                             "temperature": 0},
    "/v1/responses": {"model": "tiny", "input": "hi", "max_output_tokens": 6, "temperature": 0},
    "/v1/messages": {"model": "tiny", "max_tokens": 6,
                     "messages": [{"role": "user", "content": "hi"}]},
}
USAGE = {"include_usage": True, "continuous_usage_stats": True}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}

# Fields that are laid over the base of each route.
OVER = {
    "/v1/completions": [
        {}, {"stream": True}, {"top_p": 0}, {"top_k": -2}, {"min_p": 2},
        {"repetition_penalty": 0}, {"presence_penalty": 3}, {"frequency_penalty": -3},
        {"temperature": 2.5}, {"temperature": -1}, {"temperature": "0.5"}, {"temperature": "x"},
        {"seed": -1}, {"seed": 2 ** 70}, {"logprobs": -1}, {"logprobs": 0}, {"logprobs": 2},
        {"logprobs": 99}, {"logprobs": 1, "return_tokens_as_token_ids": True},
        {"prompt_logprobs": -5}, {"prompt_logprobs": 1, "stream": True}, {"min_tokens": 10},
        {"min_tokens": -1}, {"n": 100}, {"n": -1}, {"n": 2, "logprobs": 1, "temperature": 1},
        {"stop": 5}, {"stop": ""}, {"stop": ["a", "b", "c", "d", "e"]},
        {"stop_token_ids": ["a"]}, {"logit_bias": {"5": 1}}, {"logit_bias": {"x": 1}},
        {"logit_bias": {"99999": 1}}, {"allowed_token_ids": []}, {"allowed_token_ids": [99999]},
        {"bad_words": ["x"]}, {"best_of": 2}, {"echo": True}, {"echo": True, "stream": True},
        {"echo": True, "max_tokens": 0}, {"truncate_prompt_tokens": 1},
        {"truncate_prompt_tokens": -5}, {"prompt": None}, {"prompt": []}, {"prompt": [[]]},
        {"prompt": 5}, {"prompt": ["a", 5]}, {"prompt": [-1]}, {"prompt": [5] * 3000},
        {"max_tokens": 3.0}, {"max_tokens": 3.5}, {"max_tokens": None}, {"max_tokens": "5"},
        {"max_tokens": 3000}, {"stream": "yes"}, {"stream": 1},
        {"stream": True, "stream_options": {}}, {"stream_options": None},
        {"stream": True, "stream_options": "x"}, {"stream": True, "stream_options": USAGE},
        {"stream": True, "stream_options": {"include_usage": True}, "n": 2, "temperature": 1},
        {"priority": "x"}, {"cache_salt": ""}, {"cache_salt": 5},
        {"response_format": {"type": "xx"}}, {"response_format": {"type": "json_schema"}},
        {"structured_outputs": {"regex": "a", "choice": ["b"]}},
        {"structured_outputs": {"choice": []}}, {"suffix": ""}, {"suffix": "x"}, {"user": "x"},
        {"return_token_ids": True}, {"return_token_ids": True, "stream": True},
        {"use_beam_search": True, "n": 2}, {"kv_transfer_params": 5}, {"request_id": "abc"},
        {"a": 1, "b": [2]}, {"model": "nope"}, {"model": None}, {"model": 5},
    ],
    "/v1/chat/completions": [
        {}, {"stream": True}, {"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 50},
        {"logprobs": True, "top_logprobs": -2}, {"logprobs": True},
        {"logprobs": True, "top_logprobs": 2, "n": 2, "temperature": 1, "stream": True},
        {"max_completion_tokens": 2}, {"messages": []}, {"messages": "x"}, {"messages": [5]},
        {"messages": [{"content": "x"}]}, {"messages": [{"role": "xx", "content": "x"}]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "assistant", "content": None}, *HELLO]},
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "zz"}]}]},
        {"messages": [{"role": "user", "content": "x", "name": "bob"}]},
        {"messages": [{"role": "developer", "content": "x"}, *HELLO]},
        {"messages": [*HELLO, {"role": "assistant", "content": "", "tool_calls": [CALL]},
                      {"role": "tool", "tool_call_id": "a", "content": "1"}]},
        {"messages": [{"role": "user", "content": "word " * 3000}]},
        {"echo": True}, {"continue_final_message": True},
        {"messages": [*HELLO, {"role": "assistant", "content": "I"}],
         "continue_final_message": True, "add_generation_prompt": False},
        {"tools": []}, {"tools": [{}]}, {"tools": [TOOL], "tool_choice": "none"},
        {"tools": [TOOL], "tool_choice": "none", "stream": True},
        {"tool_choice": "auto"}, {"tool_choice": "required"},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        {"tools": [TOOL], "tool_choice": "xx"}, {"tools": [TOOL], "tool_choice": {}},
        {"response_format": {"type": "text"}}, {"reasoning_effort": "low"},
        {"reasoning_effort": "zz"}, {"return_token_ids": True},
        {"return_token_ids": True, "stream": True}, {"prompt_logprobs": 1}, {"n": 0},
        {"max_tokens": 3000}, {"stream": True, "stream_options": USAGE},
    ],
    "/v1/responses": [
        {}, {"stream": True}, {"instructions": "Be brief."},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]},
        {"max_output_tokens": -1}, {"max_output_tokens": 5000}, {"model": "nope"},
        {"store": False, "user": "u", "metadata": {"a": "b"}},
        {"stream": True, "temperature": -1}, {"text": {"format": {"type": "text"}}},
        {"previous_response_id": "resp_none"}, {"input": None},
    ],
    "/v1/messages": [
        {}, {"stream": True}, {"system": "x"}, {"system": [{"type": "text", "text": "x"}]},
        {"max_tokens": 0}, {"max_tokens": None}, {"model": "nope"}, {"stop_sequences": ["zz"]},
        {"messages": []}, {"temperature": 3},
    ],
}
# Other requests: a method, a path and a body; text is sent as it is.
OTHER = [
    ("POST", "/v1/messages/count_tokens", BASE["/v1/messages"]),
    ("POST", "/v1/messages/count_tokens", {"model": "tiny"}),
    ("POST", "/tokenize", {}), ("POST", "/tokenize", {"model": "nope", "prompt": "x"}),
    ("POST", "/tokenize", {"prompt": "one two", "return_token_strs": True}),
    ("POST", "/tokenize", {"messages": HELLO, "add_generation_prompt": False}),
    ("POST", "/detokenize", {"model": "tiny"}), ("POST", "/detokenize", {"tokens": ["x"]}),
    ("POST", "/detokenize", {"tokens": [99999999]}), ("POST", "/detokenize", {"tokens": [-1]}),
    ("GET", "/v1/models", None), ("POST", "/v1/models", {}), ("DELETE", "/v1/completions", None),
    ("PUT", "/health", None), ("GET", "/reset_prefix_cache", None), ("GET", "/load", None),
    ("POST", "/abort_requests", {}), ("POST", "/abort_requests", {"request_ids": []}),
    ("POST", "/pause?mode=zz", None), ("POST", "/pause?mode=keep", None),
    ("GET", "/is_paused", None), ("POST", "/resume", None), ("GET", "/is_sleeping", None),
    ("POST", "/v1/chat/completions/render", {"model": "tiny"}), ("GET", "/v1/models/tiny", None),
] + [("POST", "/v1/completions", text) for text in (
    "", "  {\"prompt\": \"x\", \"max_tokens\": 1}  ", "{\"model\": \"tiny\",}", "\"x\"", "5",
    "null", "{\"model\": \"ti\nny\"}", "{/*x*/}", "{'a': 1}", "{} {}", "[1, 2]", "{\"a\": tru",
    "{\"prompt\": \"x\", \"temperature\": NaN}", "{\"model\": \"nope\", \"model\": \"tiny\", "
    "\"prompt\": \"x\", \"max_tokens\": 1}")]

# (path, part of what the body says) -> why it differs, in one version at least.
KNOWN = {
    ("/v1/completions", '{"seed": 1180591620717411303424}'): "integers have 64 bits",
    ("/v1/completions", '{"use_beam_search": true, "n": 2}'): "no beam search",
    ("/v1/completions", '{"structured_outputs": {"choice": []}}'): "not refused",
    ("/v1/completions", "NaN"): "no JSON, hence another error",
    ("/v1/completions", '"model": "nope", "model"'): "a key twice is an error",
    ("/v1/chat/completions", '[{"type": "text"}]'): "a part without its text is empty",
    ("/v1/chat/completions", '[{"type": "zz"}]'): "the union of all parts is not spelled out",
    ("/v1/chat/completions", '{"continue_final_message": true}'): "not refused",
    ("/v1/messages", '{"messages": []}'): "400, where 0.26.0 says 500",
    ("/v1/messages", '{"temperature": 3}'): "400, where 0.26.0 says 500",
    ("/v1/responses", '{"input": null}'): "the union of all items is not spelled out",
    ("/v1/messages/count_tokens", '{"model": "tiny"}'): "the input is told with a field more",
}


def send(url, method, path, body):
    parts = urllib.parse.urlsplit(url)
    c = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    data = body.encode() if isinstance(body, str) else \
        b"" if body is None else json.dumps(body).encode()
    c.request(method, path, data, {"Content-Type": "application/json"})
    r = c.getresponse()
    text = r.read().decode(errors="replace")
    c.close()
    kind = r.headers["content-type"]
    return [r.status, kind, r.headers["allow"], answer(r.status, kind, text, by_chunk=False)], text


def cases():
    for path, overs in OVER.items():
        for over in overs:
            yield "POST", path, {**BASE[path], **over}, json.dumps(over)
    for method, path, body in OTHER:
        yield method, path, body, body if isinstance(body, str) else json.dumps(body)


def main(real, twin):
    same, differ, failed = 0, 0, 0
    for method, path, body, says in cases():
        (a, a_text), (b, b_text) = send(real, method, path, body), send(twin, method, path, body)
        known = [why for (p, part), why in KNOWN.items() if p == path and part in says]
        if a == b:
            same += 1
        elif known:
            differ += 1
        else:
            failed += 1
            print(f"{method} {path} {says[:200]}\n  real {a[:3]} {a_text[:600]}\n"
                  f"  twin {b[:3]} {b_text[:600]}")
    print(f"{'FAIL' if failed else 'ok'} same: {same} answers, {differ} known to differ, "
          f"{failed} others")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
