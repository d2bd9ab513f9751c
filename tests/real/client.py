"""client.py - what the checks share: HTTP calls, streams, metrics, and a list of checks."""
import asyncio
import json
import re
import sys
import time

import httpx

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
TEXT = "The scheduler gives tokens to requests in every step"


def expect(true, *what):
    if not true:
        raise AssertionError(" ".join(str(w) for w in what))


def completion(**more):
    return {"model": "tiny", "prompt": TEXT, "max_tokens": 8, "ignore_eos": True, **more}


def chat(**more):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": TEXT}]
    return {"model": "tiny", "messages": messages, "max_tokens": 8, "ignore_eos": True, **more}


class Server:
    """A frontend at BASE. Answers other than 200 are errors unless another is expected."""

    def __init__(self, base):
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self.http = httpx.AsyncClient(base_url=base, timeout=90, trust_env=False, limits=limits)

    async def get(self, path, status=200):
        answer = await self.http.get(path)
        expect(answer.status_code == status, "GET", path, answer.status_code, answer.text[:400])
        return answer.text if "text/plain" in answer.headers.get("content-type", "") else answer.json()

    async def post(self, path, body=None, status=200, **more):
        answer = await self.http.post(path, json=body, **more)
        expect(answer.status_code == status, "POST", path, answer.status_code, answer.text[:400])
        return answer.json() if answer.text else None

    async def stream(self, path, body, leave_after=None, **more):
        """The chunks of a streamed answer and when each came. Hangs up after LEAVE_AFTER."""
        chunks, times, done = [], [], False
        async with self.http.stream("POST", path, json={**body, "stream": True}, **more) as answer:
            expect(answer.status_code == 200, "stream", path, answer.status_code)
            async for line in answer.aiter_lines():
                if line == "data: [DONE]":
                    done = True
                elif line.startswith("data: "):
                    chunks.append(json.loads(line[6:]))
                    times.append(time.monotonic())
                    expect("error" not in chunks[-1], chunks[-1])
                    if leave_after and len(chunks) >= leave_after:
                        return chunks, times
        expect(done, "the stream has no end")
        return chunks, times

    async def metrics(self):
        return read_metrics((await self.http.get("/metrics")).text)

    async def quiet(self, seconds=10):
        """Waits until no request is left in the engine; says how long that took."""
        begun = time.monotonic()
        while total(await self.metrics(), "vllm:num_requests_running") > 0:
            expect(time.monotonic() - begun < seconds, "requests still run after", seconds, "s")
            await asyncio.sleep(0.05)
        return time.monotonic() - begun


def read_metrics(text):
    """{(name, ((label, value), ...)): number} of Prometheus' text format."""
    found = {}
    for line in text.splitlines():
        parts = re.fullmatch(r"([a-zA-Z_:]\w*(?::\w+)*)(?:\{(.*)\})? (\S+)", line)
        if parts and not line.startswith("#"):
            labels = tuple(re.findall(r'(\w+)="([^"]*)"', parts[2] or ""))
            found[parts[1], labels] = float(parts[3])
    return found


def total(metrics, name, **labels):
    return sum(value for (n, l), value in metrics.items() if n == name and set(labels.items()) <= set(l))


def pieces(chunks, index=0):
    """The text that the chunks of one choice carry, and its finish reason."""
    text, reason = "", None
    for choice in (c for chunk in chunks for c in chunk["choices"] if c["index"] == index):
        text += choice["text"] if "text" in choice else choice["delta"].get("content") or ""
        reason = choice.get("finish_reason") or reason
    return text, reason


def run(checks, *args):
    """Calls each of the coroutines and ends the program with 1 if one of them failed."""
    async def one_by_one():
        failed = 0
        for check in checks:
            begun = time.monotonic()
            try:
                said = await asyncio.wait_for(check(*args), 120)
                seconds = f"{time.monotonic() - begun:.1f} s"
                print(f"ok {check.__name__} ({seconds}){': ' + said if said else ''}", flush=True)
            except Exception as e:
                failed += 1
                print(f"FAIL {check.__name__}: {type(e).__name__}: {e}", flush=True)
        return failed
    sys.exit(1 if asyncio.run(one_by_one()) else 0)
