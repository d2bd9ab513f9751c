"""recording.py WHAT ... - a session with a real engine, and whether its recording is true.

  ask URL ANSWERS          asks the same things every time, and keeps the answers
  same ANSWERS ANSWERS     both sessions had the same answers
  texts ANSWERS ANSWERS    ... as far as a replay can know: not how likely tokens were
  trace TRACE ANSWERS      the trace has those requests, with plausible times
  wire WIRE CAPTURE        a log of messages is written like CAPTURE, and means what it says
  tokens TRACE TRACE       both traces have the same requests with the same tokens
"""
import asyncio
import gzip
import json
import sys
import time

import msgspec

from client import CHAT, COMPLETIONS, TEXT, Server, chat, completion, expect, pieces

# ---- a session ----------------------------------------------------------


class Session:
    def __init__(self, url):
        self.server = Server(url)
        self.answers = {}

    async def ask(self, name, path, body):
        """One request under an id of our own, and what matters of its answer."""
        begun = time.monotonic()
        answer = await self.server.post(path, body, headers={"X-Request-Id": name})
        choice = answer["choices"][0]
        self.answers[name] = {
            "text": choice["text"] if "text" in choice else choice["message"]["content"],
            "finish": choice["finish_reason"], "stop": choice.get("stop_reason"),
            "prompt": answer["usage"]["prompt_tokens"], "output": answer["usage"]["completion_tokens"],
            "likely": [choice.get("logprobs"), choice.get("prompt_logprobs")],
            "seconds": time.monotonic() - begun,
        }
        return choice

    async def listen(self, name, path, body, leave_after=None):
        begun = time.monotonic()
        body = {**body, "stream_options": {"include_usage": True}}
        chunks, _ = await self.server.stream(path, body, leave_after, headers={"X-Request-Id": name})
        if leave_after:
            self.answers[name] = {"left": True}
            return
        text, finish = pieces(chunks)
        usage = chunks[-1]["usage"]
        self.answers[name] = {"text": text, "finish": finish, "prompt": usage["prompt_tokens"],
                              "output": usage["completion_tokens"], "seconds": time.monotonic() - begun}


async def hold_session(url, path):
    s = Session(url)
    greedy = {"temperature": 0, "max_tokens": 24}
    long = {"prompt": [(i * 7) % 4000 + 5 for i in range(900)], **greedy}
    seeded = {"temperature": 0.8, "top_p": 0.9, "top_k": 20, "seed": 42, "max_tokens": 24}
    first = await s.ask("greedy", COMPLETIONS, completion(**greedy, return_token_ids=True))
    await s.ask("seeded", COMPLETIONS, completion(**seeded))
    await s.ask("chat", CHAT, chat(**greedy))
    await s.ask("likely", COMPLETIONS, completion(**greedy, logprobs=2))
    await s.ask("echo", COMPLETIONS, completion(**greedy, logprobs=1, echo=True))
    await s.ask("stop-string", COMPLETIONS, completion(**greedy, stop=[first["text"][12:15]]))
    await s.ask("stop-token", COMPLETIONS, completion(**seeded, stop_token_ids=list(range(2000, 4000))))
    await s.ask("one-token", COMPLETIONS, completion(**{**greedy, "max_tokens": 1}))
    await s.ask("long", COMPLETIONS, completion(**long))
    await s.ask("long-again", COMPLETIONS, completion(**long))
    await s.listen("stream", COMPLETIONS, completion(**greedy))
    await s.listen("chat-stream", CHAT, chat(**seeded))
    await asyncio.gather(*(s.listen(f"together-{i}", COMPLETIONS, completion(prompt=f"{i} {TEXT}", **greedy))
                           for i in "abcd"))
    await s.listen("leaves", COMPLETIONS, completion(temperature=0, max_tokens=1900), leave_after=5)
    await s.server.quiet(30)
    await asyncio.sleep(0.5)
    with open(path, "w") as f:
        json.dump(s.answers, f, indent=1)
    print(f"  {len(s.answers)} requests")


def compare(one, other, keys):
    a, b = (json.load(open(path)) for path in (one, other))
    expect(a.keys() == b.keys(), a.keys() ^ b.keys())
    for name in a:
        for key in keys:
            expect(a[name].get(key) == b[name].get(key), name, key, a[name].get(key), b[name].get(key))
    print(f"  {len(a)} answers are the same")


# ---- its trace ----------------------------------------------------------


def read_lines(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        return [json.loads(line) for line in f]


def read_trace(path):
    """The meta line, and the requests by the names that hold_session gave."""
    meta, *rows = read_lines(path)
    found = {}
    for row in rows:
        name = row["external_id"].removeprefix("cmpl-").removeprefix("chatcmpl-").removesuffix("-0")
        expect(name not in found, "twice:", name)
        found[name] = row
    return meta["meta"], found


def check_times(name, row, answer):
    expect(row["ttft_ms"] > 0 and all(gap >= 0 for gap in row["itl_ms"]), name, row["ttft_ms"], row["itl_ms"])
    expect(1 + sum(row.get("itl_tokens") or [1] * len(row["itl_ms"])) == row["output_tokens"], name, "chunks")
    if answer["finish"] == "stop" and answer["stop"] is not None and not isinstance(answer["stop"], int):
        return # the frontend found the end itself, a little later than the engine's token
    took = (row["ttft_ms"] + sum(row["itl_ms"])) / 1000
    expect(took < answer["seconds"], name, took, "s, but the client had waited", answer["seconds"])


def check_trace(path, answers_path):
    meta, rows = read_trace(path)
    answers = json.load(open(answers_path))
    expect(rows.keys() == answers.keys(), rows.keys() ^ answers.keys())
    expect(meta["source"] == "tap" and meta["num_gpu_blocks"] > 0 and meta["ready_response_hex"], meta)
    for name, row in rows.items():
        answer = answers[name]
        expect(len(row["output_token_ids"]) == row["output_tokens"] and row["sampling"], name, row)
        expect(row["events"][0][0] == "QUEUED" and row["queue_ms"] >= 0, name, row["events"])
        if "left" in answer:
            expect(row["finish_reason"] == "abort" and 5 <= row["output_tokens"] < 1900, name, row)
            continue
        expect(row["prompt_tokens"] == answer["prompt"], name, row["prompt_tokens"], answer["prompt"])
        if name != "stop-string":
            expect(row["output_tokens"] == answer["output"] and row["finish_reason"] == answer["finish"], name, row)
        check_times(name, row, {"stop": None, **answer})
    expect(rows["long-again"]["cached_tokens"] > 800, "no cached tokens", rows["long-again"]["cached_tokens"])
    arrivals = [rows[name]["arrival_ms"] for name in answers if not name.startswith("together")]
    expect(arrivals == sorted(arrivals), arrivals)
    expect(any(n > 1 for i in "abcd" for n in rows[f"together-{i}"]["itl_ctx"]["num_running"]), "never together")
    print(f"  {len(rows)} requests, {sum(r['output_tokens'] for r in rows.values())} tokens")


def check_tokens(one, other):
    (_, a), (_, b) = read_trace(one), read_trace(other)
    for name in a.keys() | b.keys():
        expect(name in a and name in b, "only one trace has", name)
        if a[name]["finish_reason"] == "abort": # left at some moment
            continue
        expect(a[name]["output_token_ids"] == b[name]["output_token_ids"], name,
               a[name]["output_token_ids"], b[name]["output_token_ids"])
        expect(a[name]["finish_reason"] == b[name]["finish_reason"], name,
               a[name]["finish_reason"], b[name]["finish_reason"])
    late = [b[n]["ttft_ms"] + sum(b[n]["itl_ms"]) - a[n]["ttft_ms"] - sum(a[n]["itl_ms"])
            for n in a if a[n]["finish_reason"] != "abort"]
    median = sorted(late)[len(late) // 2]
    print(f"  {len(a)} requests with the same tokens; later at the end by {median:.2f} ms (median)")


# ---- its messages -------------------------------------------------------

LABELS = {"frontend", "phase"} # of a capture's sessions
WHOSE = {"identity", "client"} # may be told of any message


def plain(value):
    """A decoded value as a log shows it."""
    if isinstance(value, msgspec.msgpack.Ext):
        return {"__ext__": value.code, "len": len(value.data), "hex": bytes(value.data).hex()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"__bin__": bytes(value).hex()}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def forms(lines):
    return {line["kind"]: set(line) - LABELS for line in lines}


def check_wire(path, capture):
    lines, known = read_lines(path), forms(read_lines(capture))
    for kind, keys in forms(lines).items():
        expect(kind in known and known[kind] <= keys <= known[kind] | WHOSE, kind, "has", keys, known.get(kind))
    for kind in "HELLO", "INIT", "READY", "REGISTER", "ADD", "ABORT", "OUTPUTS/REQ", "OUTPUTS/STATS":
        expect(any(line["kind"] == kind for line in lines), "no", kind)
    for line in lines:
        frames = [bytes.fromhex(f) for f in line["frames_hex"]]
        expect([len(f) for f in frames] == line["frame_sizes"] and len(frames) == line["nframes"], line)
        decoded = line["decoded"]
        payload = frames[0] if line["sock"] == "output" or len(frames) == 1 else frames[1]
        shown = decoded["payload"] if isinstance(decoded, dict) and "payload" in decoded else decoded
        expect(shown == plain(msgspec.msgpack.decode(payload)), line["seq"], line["kind"])
    expect([line["seq"] for line in lines] == list(range(len(lines))), "numbers")
    times = [line["t_mono_ns"] for line in lines]
    expect(times == sorted(times), "times go back")
    print(f"  {len(lines)} messages of {len(forms(lines))} kinds")


def main(what, *args):
    if what == "ask":
        asyncio.run(hold_session(*args))
    elif what == "same":
        compare(*args, keys=("text", "finish", "stop", "prompt", "output", "likely", "left"))
    elif what == "texts":
        compare(*args, keys=("text", "finish", "stop", "prompt", "output", "left"))
    else:
        {"trace": check_trace, "wire": check_wire, "tokens": check_tokens}[what](*args)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except AssertionError as e:
        print(f"FAIL {' '.join(sys.argv[1:])}: {e}")
        sys.exit(1)
