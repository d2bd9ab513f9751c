"""shapes.py RECORDINGS OUT - makes tests/cases/http/e2e-VERSION.jsonl.gz of a directory of
recorded requests to vLLM and its answers: what of an answer another server must say too.

An answer's shape keeps keys, their order, lengths of lists, and values that are the same for
every model. What errors say is kept as it is.
"""
import glob
import gzip
import json
import os
import re
import sys

# Strings that do not depend on what a model says, by key.
KEPT = {"object", "role", "finish_reason", "type", "model", "owned_by", "status", "service_tier",
        "truncation", "tool_choice", "organization", "reason"}
COUNTED = {"completion_tokens", "output_tokens", "max_output_tokens", "max_model_len", "index",
           "max_tokens", "code"}
# Objects whose keys are tokens.
BY_TOKEN = {"top_logprobs", "prompt_logprobs"}
ID = re.compile(r"([a-z-]+[-_])?[0-9a-f]{16,32}")


def of_string(key, text):
    if key in KEPT:
        return text
    m = ID.fullmatch(text)
    return f"{m[1] or ''}N" if m else text if key == "id" else "str"


def shape(value, key=None):
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if key in COUNTED else "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return of_string(key, value)
    if isinstance(value, list):
        if key == "bytes" or (value and all(isinstance(x, int) for x in value)):
            return "ints"  # how many is the tokenizer's affair
        return [shape(x, key) for x in value]
    if key in BY_TOKEN and "logprob" not in value:
        return {"token": shape(next(iter(value.values())))} if value else {}
    return {k: shape(v, k) for k, v in value.items()}


def ordered(value):
    """The same with the order of keys made visible."""
    if isinstance(value, dict):
        return [[k, ordered(v)] for k, v in value.items()]
    if isinstance(value, list):
        return [ordered(x) for x in value]
    return value


def events(body, once=True):
    """Of a stream, by choice: shapes of its events, equal neighbours once. How many tokens
    come in one event is a matter of time."""
    found = {}
    for block in body.split("\n\n"):
        if not block:
            continue
        name, _, data = block.rpartition("data: ")
        if data == "[DONE]":
            found.setdefault("end", []).append("[DONE]")
            continue
        event = json.loads(data)
        which = str(event["choices"][0]["index"]) if event.get("choices") else "end"
        line = [name, ordered(shape(event))]
        mine = found.setdefault(which, [])
        if not once or mine[-1:] != [line]:
            mine.append(line)
    return found


def running_usage(found):
    """Usage that grows makes every event another: only its last says a number."""
    def blur(x, last):
        if isinstance(x, list):
            if len(x) == 2 and x[0] == "completion_tokens" and not last:
                return [x[0], "int"]
            return [blur(y, last) for y in x]
        return x
    out = {}
    for which, lines in found.items():
        out[which] = []
        for i, line in enumerate(lines):
            line = blur(line, i == len(lines) - 1)
            if out[which][-1:] != [line]:
                out[which].append(line)
    return out


def is_pairs(x):
    """An object with the order of its keys made visible."""
    return isinstance(x, list) and all(
        isinstance(y, list) and len(y) == 2 and isinstance(y[0], str) for y in x)


def joined(a, b):
    """What two events of one choice say together: what comes token by token adds up."""
    if a is None or b is None:
        return a if b is None else b
    if is_pairs(a) and is_pairs(b):
        theirs = dict(b)
        both = [[k, joined(v, theirs.pop(k, None))] for k, v in a]
        return both + [[k, v] for k, v in b if k in theirs]
    if isinstance(a, list) and isinstance(b, list):
        return a + b
    return b


def unchunked(found):
    """Events of a stream as if each choice had come in one: what is said, whatever number of
    tokens a busy server puts into an event."""
    if not isinstance(found, dict):
        return found
    out = {}
    for which, lines in found.items():
        if which == "end":  # events with names: what grows a text, or as much at once
            out[which] = [x for i, x in enumerate(lines) if i == 0 or x != lines[i - 1]]
            continue
        all_of_it = None
        for _, event in lines:
            event = [[k, v[0] if k == "choices" else v] for k, v in event]
            all_of_it = joined(all_of_it, event)
        out[which] = all_of_it
    return out


def answer(status, kind, body, by_chunk=True):
    """What is compared. by_chunk: of streams also how they are cut into events."""
    if not body:
        return ""
    if kind and kind.startswith("text/event-stream"):
        return running_usage(events(body)) if by_chunk else unchunked(events(body, once=False))
    if status >= 400 or not kind or not kind.startswith("application/json"):
        return body
    found = json.loads(body)
    if "vllm_env" in found:  # how vLLM was built and what of it is switched on
        found = dict.fromkeys(found)
    return ordered(shape(found))


def take(path):
    with open(path) as f:
        d = json.load(f)
    kind, allow = ((d.get("resp_headers") or {}).get(k) for k in ("content-type", "allow"))
    return {"name": d["name"], "method": d["method"], "path": d["path"],
            "headers": d["req_headers"], "request": d["request"], "status": d.get("status"),
            "type": kind, "allow": allow, "cut": d.get("client"),
            "answer": answer(d.get("status") or 0, kind, d.get("body"))}


def make(recordings, out):
    seen = set()
    with open(out, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        for path in sorted(glob.glob(os.path.join(recordings, "*.json"))):
            d = take(path)
            if d["name"] not in seen:
                z.write((json.dumps(d, separators=(",", ":")) + "\n").encode())
            seen.add(d["name"])


if __name__ == "__main__":
    make(*sys.argv[1:])
