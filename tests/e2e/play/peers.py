"""peers.py - real frontends, twins behind them, and clients in front, for the tests of
vtwin play beside this file. Python's own library only.

Taken from the environment: VTWIN, the binary; VT_ROOT, the repository; VT_FRONTENDS, a
directory of VERSION/vllm-rs; VT_FRONTEND, the version to test with.
"""
import asyncio
import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

VTWIN = os.environ["VTWIN"]
ROOT = os.environ["VT_ROOT"]
VERSION = os.environ.get("VT_FRONTEND", "0.26.0")
OTHER = "0.32.0" if VERSION == "0.26.0" else "0.26.0"
MODEL_DIR = os.path.join(ROOT, "tests/cases/tiny-qwen3")
SKIPPED = 77  # CTest's SKIP_RETURN_CODE

# Every step takes 5 ms, or half of one, whatever is in it.
STEADY = ("--model", "linear:base=5000")
FAST = ("--model", "linear:base=500")
MINOR = int(VERSION.split(".")[1])  # 26 for 0.26.0


_claims = []


def free_port():
    """Below the range from which the kernel gives out ports of its own accord, and claimed
    against other tests until this program ends: an engine waits for whoever comes to its
    port, and would serve another's frontend."""
    while True:
        port = random.randrange(10000, 32000)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0vtwin-test-port-{port}")
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port


async def measured(attempt, tries=8):
    """Other work on the machine may spoil a measurement, but not all of them."""
    for left in reversed(range(tries)):
        try:
            return await attempt()
        except AssertionError:
            if left == 0:
                raise
            await asyncio.sleep(0.25 * (tries - left))  # that may take seconds


def mixture_of_experts():
    """The tiny model as a mixture of experts: frontends coordinate the ranks of those."""
    place = tempfile.mkdtemp(dir=".")
    shutil.copytree(MODEL_DIR, place, dirs_exist_ok=True)
    path = os.path.join(place, "config.json")
    with open(path) as f:
        config = json.load(f)
    config.update(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", num_experts=8,
                  num_experts_per_tok=2, moe_intermediate_size=64)
    with open(path, "w") as f:
        json.dump(config, f)
    return place


async def until(what, condition, seconds=10.0):
    """Waits until condition(), which may be a coroutine function, gives something true."""
    end = time.monotonic() + seconds
    while True:
        got = condition()
        if asyncio.iscoroutine(got):
            got = await got
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        await asyncio.sleep(0.02)


# ---- processes --------------------------------------------------------------

_libc = ctypes.CDLL(None)


def _die_with_parent():
    PR_SET_PDEATHSIG = 1
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A child with a log file. It ends with this program, however that ends."""

    shown = []  # whose logs a failing test prints

    def __init__(self, name, argv, env=None):
        self.name = name
        self.path = tempfile.NamedTemporaryFile(prefix=name + "-", dir=".", delete=False).name
        with open(self.path, "wb") as log:
            self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env={**os.environ, **(env or {})},
                                          preexec_fn=_die_with_parent)
        Process.shown.append(self)

    @property
    def pid(self):
        return self.child.pid

    def log(self):
        with open(self.path, errors="replace") as f:
            return re.sub(r"\x1b\[[0-9;]*m", "", f.read())

    def running(self):
        return self.child.poll() is None

    def send(self, number):
        self.child.send_signal(number)

    def end(self, number=signal.SIGTERM, seconds=10):
        """The exit status; -N: ended by signal N."""
        if self.running():
            self.child.send_signal(signal.SIGCONT)
            self.child.send_signal(number)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError(f"{self.name} does not end within {seconds} s of signal {number}")


class Frontend(Process):
    """vllm-rs serve, waiting for `engines` engines at its handshake port."""

    @staticmethod
    def program(version=VERSION):
        return os.path.join(os.environ["VT_FRONTENDS"], version, "vllm-rs")

    def __init__(self, *flags, engines=1, handshake=None, port=None, model=MODEL_DIR,
                 version=VERSION):
        self.handshake = handshake or free_port()
        self.port = port or free_port()
        self.http = Http(self.port)
        env = {"HF_HUB_OFFLINE": "1", "VLLM_SERVER_DEV_MODE": "1", "NO_COLOR": "1",
               "RUST_LOG": "info,vllm_engine_core_client::coordinator=debug"}
        super().__init__("frontend", [
            self.program(version), "serve", model, "--served-model-name", "tiny",
            "--max-model-len", "4096", "--data-parallel-size", str(engines),
            "--data-parallel-size-local", "0", "--handshake-port", str(self.handshake),
            "--host", "127.0.0.1", "--port", str(self.port), *flags], env)

    async def healthy(self, seconds=20):
        async def ok():
            if not self.running():
                raise AssertionError(f"the frontend has ended: {self.log()[-500:]}")
            try:
                return (await self.http.get("/health")).status == 200
            except OSError:
                return False
        await until("/health is 200", ok, seconds)


class Play(Process):
    """vtwin play, for the frontend at a handshake port."""

    def __init__(self, handshake, *flags, model=MODEL_DIR, env=None):
        super().__init__("play", [VTWIN, "play", model,
                                  "--handshake-address", f"tcp://127.0.0.1:{handshake}",
                                  "--json", "--log-requests", *flags], env)

    def summary(self):
        """What it prints at its end."""
        return json.loads([line for line in self.log().splitlines() if line.startswith("{")][-1])


# ---- prefill here, decode there ---------------------------------------------


class Sidecar:
    """Before an engine that decodes, as llm-d's routing sidecar: each request goes to one that
    prefills first, for one token, and then to the other with the kv_transfer_params of that
    answer. What the second one says is passed on as it comes."""

    FIRST = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None,
             "remote_block_ids": None, "remote_host": None, "remote_port": None}

    def __init__(self, prefill, decode):
        self.prefill, self.decode = prefill, decode  # Http
        self.told = []  # what prefills answered

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24)
        self.http = Http(self.server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def _serve(self, reader, writer):
        path = (await reader.readline()).split()[1].decode()
        length = 0
        while (line := await reader.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = json.loads(await reader.readexactly(length))
        first = {k: v for k, v in body.items() if k != "stream_options"}
        first.update(stream=False, max_tokens=1, kv_transfer_params=self.FIRST)
        if "max_completion_tokens" in first:
            first["max_completion_tokens"] = 1
        answer = await self.prefill.post(path, first)
        self.told.append(answer)
        params = answer.json.get("kv_transfer_params") if answer.status == 200 else None
        x = await Exchange.open(self.decode.port, "POST", path,
                                {**body, "kv_transfer_params": params}, None)
        try:
            while piece := await x.reader.read(1 << 16):
                writer.write(piece)
                await writer.drain()
        finally:
            x.close()
            writer.close()


# ---- HTTP -------------------------------------------------------------------


class Answer:
    def __init__(self, status, headers, body=b""):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def choice(self):
        return self.json["choices"][0]

    def __repr__(self):
        return f"<{self.status}: {self.body[:300]!r}>"


class Exchange:
    """One request on a connection of its own, and its answer as it comes."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.status, self.headers = 0, {}

    @classmethod
    async def open(cls, port, method, path, body, headers):
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close",
                 "Content-Type: application/json", f"Content-Length: {len(data)}"]
        lines += [f"{k}: {v}" for k, v in (headers or {}).items()]
        x = cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 24))
        x.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        await x.writer.drain()
        return x

    async def head(self):
        self.status = int((await self.reader.readline()).split()[1])
        while (line := await self.reader.readline()).strip():
            key, _, value = line.decode().partition(":")
            self.headers[key.strip().lower()] = value.strip()

    async def pieces(self):
        """The body in the pieces in which it was sent."""
        if self.headers.get("transfer-encoding") != "chunked":
            if rest := await self.reader.read():
                yield rest
            return
        while line := await self.reader.readline():
            size = int(line, 16)
            if size == 0:
                return
            yield await self.reader.readexactly(size)
            await self.reader.readline()
        raise ConnectionError("the server hung up")

    async def events(self):
        """Server-sent events, decoded; None is [DONE]."""
        held = b""
        async for piece in self.pieces():
            held += piece
            *whole, held = held.split(b"\n\n")
            for event in whole:
                data = event.removeprefix(b"data: ")
                if data.startswith(b":") or not data:
                    continue
                yield None if data == b"[DONE]" else json.loads(data)

    def close(self):
        self.writer.close()


class Stream:
    """What a streaming completion came to."""

    def __init__(self):
        self.status, self.id = 0, None
        self.text, self.tokens, self.finish, self.stop_reason = "", [], None, None
        self.usage, self.error, self.done = None, None, False
        self.at, self.sizes = [], []  # of chunks with content: when, how many tokens
        self.began = time.monotonic()

    def take(self, event):
        if event is None:
            self.done = True
            return
        if "error" in event:
            self.error = event["error"]
            return
        self.id = event["id"]
        self.usage = event.get("usage") or self.usage
        for choice in event["choices"]:
            delta = choice.get("delta", choice)
            # A model that thinks aloud says `reasoning` until it has thought.
            said = delta.get("content") or delta.get("text") or ""
            said += delta.get("reasoning") or delta.get("reasoning_content") or ""
            self.text += said
            self.tokens += choice.get("token_ids") or []
            if said or choice.get("token_ids"):
                self.at.append(time.monotonic())
                self.sizes.append(len(choice.get("token_ids") or []))
            if choice.get("finish_reason"):
                self.finish = choice["finish_reason"]
                self.stop_reason = choice.get("stop_reason")

    @property
    def ttft(self):
        return self.at[0] - self.began

    @property
    def gaps(self):
        return [b - a for a, b in zip(self.at, self.at[1:])]


class Http:
    """A client of one frontend. Every call may take `seconds`."""

    def __init__(self, port, seconds=30):
        self.port, self.seconds = port, seconds

    async def _ask(self, method, path, body, headers):
        x = await Exchange.open(self.port, method, path, body, headers)
        try:
            await x.head()
            return Answer(x.status, x.headers, b"".join([p async for p in x.pieces()]))
        finally:
            x.close()

    async def ask(self, method, path, body=None, headers=None):
        return await asyncio.wait_for(self._ask(method, path, body, headers), self.seconds)

    async def get(self, path):
        return await self.ask("GET", path)

    async def post(self, path, body=None, headers=None):
        return await self.ask("POST", path, body, headers)

    async def complete(self, prompt="one two three", headers=None, **fields):
        return await self.post("/v1/completions",
                               {"model": "tiny", "prompt": prompt, **fields}, headers)

    async def chat(self, text="one two three", **fields):
        return await self.post("/v1/chat/completions", {**chat_body(text), **fields})

    async def _stream(self, s, path, body, headers, cut_after):
        x = await Exchange.open(self.port, "POST", path, body, headers)
        try:
            await x.head()
            s.status = x.status
            if x.status != 200:
                s.error = [p async for p in x.pieces()]
                return s
            async for event in x.events():
                s.take(event)
                if cut_after is not None and len(s.at) >= cut_after:
                    break
            return s
        finally:
            x.close()

    async def stream(self, path, body, headers=None, cut_after=None, into=None):
        """cut_after: hang up after so many chunks. into: a Stream to watch as it fills."""
        body = {"stream": True, "stream_options": {"include_usage": True}, **body}
        return await asyncio.wait_for(
            self._stream(into or Stream(), path, body, headers, cut_after), self.seconds)

    async def stream_complete(self, prompt="one two three", headers=None, cut_after=None,
                              into=None, **fields):
        return await self.stream("/v1/completions", {"model": "tiny", "prompt": prompt, **fields},
                                 headers, cut_after, into)

    async def stream_chat(self, text="one two three", cut_after=None, **fields):
        return await self.stream("/v1/chat/completions", {**chat_body(text), **fields},
                                 cut_after=cut_after)

    async def metrics(self):
        return Metrics((await self.get("/metrics")).body.decode())


def chat_body(text):
    return {"model": "tiny", "messages": [{"role": "user", "content": text}]}


class Metrics:
    """A page of metrics: sums over the series of a name, or of some labels."""

    def __init__(self, text):
        self.series = []
        for line in text.splitlines():
            m = re.fullmatch(r'([\w:]+)(?:\{(.*)\})? (\S+)', line)
            if m and not line.startswith("#"):
                labels = dict(re.findall(r'(\w+)="([^"]*)"', m[2] or ""))
                self.series.append((m[1], labels, float(m[3])))

    def __call__(self, name, **labels):
        return sum(v for n, has, v in self.series
                   if n == "vllm:" + name and labels.items() <= has.items())

    def nonzero(self):
        """Names of families that say something, as `name` or `name{label=value}`."""
        found = set()
        for name, labels, v in self.series:
            if v == 0 or not name.startswith("vllm:") or "le" in labels:
                continue
            name = re.sub(r"_(sum|count)$", "", name)
            kinds = [f"{k}={labels[k]}" for k in ("source", "finished_reason") if k in labels]
            found.add(name + ("{" + ",".join(kinds) + "}" if kinds else ""))
        return found


# ---- tests ------------------------------------------------------------------


class PlayTest(unittest.IsolatedAsyncioTestCase):
    """A frontend and a twin that are there before the first test of a class and must
    end well after the last."""

    play_flags = STEADY
    frontend_flags = ()
    engines = 1
    model = MODEL_DIR

    @classmethod
    def start_play(cls):
        count = ["--engine-count", str(cls.engines)] if cls.engines > 1 else []
        return [Play(cls.frontend.handshake, *count, *cls.play_flags, model=cls.model)]

    @classmethod
    def setUpClass(cls):
        Process.shown.clear()
        cls.frontend = Frontend(*cls.frontend_flags, engines=cls.engines, model=cls.model)
        cls.http = cls.frontend.http
        cls.plays = cls.start_play()
        cls.play = cls.plays[0]
        try:
            asyncio.run(cls.frontend.healthy())
        except BaseException:
            for p in (cls.frontend, *cls.plays):
                p.end(signal.SIGKILL)
            raise

    @classmethod
    def tearDownClass(cls):
        statuses = [p.end() for p in cls.plays]
        cls.frontend.end(signal.SIGKILL)
        if any(statuses):
            raise AssertionError(f"play ends with {statuses}")

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)  # it is slow

    async def runs(self, n):
        """So many requests run."""
        async def enough():
            return (await self.http.metrics())("num_requests_running") == n
        await until(f"{n} requests run", enough)

    async def idle(self, seconds=2.0):
        """The engine has nothing to do, and says so within that time."""
        async def quiet():
            m = await self.http.metrics()
            return m("num_requests_running") == 0 and m("num_requests_waiting") == 0
        await until("no request runs or waits", quiet, seconds)


class PairTest(unittest.IsolatedAsyncioTestCase):
    """A frontend and a twin that a test may end."""

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)
        Process.shown.clear()

    async def asyncTearDown(self):
        for p in Process.shown:
            p.end(signal.SIGKILL)

    async def pair(self, *flags):
        frontend = Frontend()
        play = Play(frontend.handshake, *STEADY, *flags)
        await frontend.healthy()
        return frontend, play

    async def serves(self, frontend, n=5):
        answers = await asyncio.gather(*(frontend.http.complete(max_tokens=5, ignore_eos=True)
                                         for _ in range(n)))
        self.assertEqual([a.status for a in answers], [200] * n, answers)
        self.assertEqual([a.json["usage"]["completion_tokens"] for a in answers], [5] * n)

    async def streaming(self, frontend, n=5, **fields):
        """Streams that have begun."""
        streams = [Stream() for _ in range(n)]
        tasks = [asyncio.create_task(frontend.http.stream_complete(
            **{"max_tokens": 100, "ignore_eos": True, "return_token_ids": True, **fields}, into=s))
            for s in streams]
        await until("all stream", lambda: all(len(s.at) > 5 for s in streams))
        return tasks


def show_logs(lines=12):
    for p in Process.shown:
        tail = "\n    ".join(p.log().splitlines()[-lines:])
        print(f"---- the end of the {p.name}'s log:\n    {tail}", file=sys.stderr)


class _Result(unittest.TextTestResult):
    def addFailure(self, test, err):
        super().addFailure(test, err)
        show_logs()

    def addError(self, test, err):
        super().addError(test, err)
        show_logs()


def main():
    """Runs the tests of the calling program in a directory of their own."""
    for version in (VERSION, OTHER):
        if not os.access(Frontend.program(version), os.X_OK):
            print(f"skipped: no frontend {version}; tools/fetch_frontends gets it")
            sys.exit(SKIPPED)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="vtwin-play-") as place:
        os.chdir(place)
        program = unittest.main("__main__", exit=False, verbosity=2,
                                testRunner=unittest.TextTestRunner(resultclass=_Result,
                                                                   verbosity=2))
        for p in Process.shown:
            p.end(signal.SIGKILL)
        os.chdir("/")
    sys.exit(not program.result.wasSuccessful())
