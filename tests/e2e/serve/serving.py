"""serving.py - vtwin serve as a child process, and clients of it, for the tests beside this
file. Processes and the plain asyncio client are those of the tests of vtwin play.

Taken from the environment: VTWIN, the binary; VT_ROOT, the repository; PYTHONPATH holds
what tools/fetch_clients gets.
"""
import asyncio
import importlib.util
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../play"))
from peers import (MODEL_DIR, ROOT, SKIPPED, VTWIN, Answer, Exchange, Http, Metrics,  # noqa: E402
                   Process, Sidecar, Stream, _Result, chat_body, free_port, measured, until)

__all__ = ["MODEL_DIR", "QUICK", "ROOT", "STEADY", "TINY", "VTWIN", "Answer", "AsyncTest",
           "Exchange", "Http", "Metrics", "Process", "ServeTest", "Server", "Sidecar", "Stream", "chat_body",
           "connect", "exchange", "free_port", "main", "measured", "open_url", "parsed", "raw",
           "until"]

TINY = (MODEL_DIR, "--served-model-name", "tiny", "--max-model-len", "2048")
QUICK = ("--model", "linear:base=200")    # every step takes 0.2 ms
STEADY = ("--model", "linear:base=5000")  # or 5 ms
CLIENTS = ("openai", "jsonschema", "zmq", "msgpack", "prometheus_client")


class Server(Process):
    """vtwin serve at a free port of this machine, with the API of 0.26 if nothing is said."""

    def __init__(self, *flags, model=TINY, wait=True):
        super().__init__("serve", [VTWIN, "serve", *model, "--port", "0", "--json",
                                   "--vllm-version", "0.26.0", *flags])
        self.port = None
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds=20):
        end = time.monotonic() + seconds
        while (m := re.search(r"^vtwin serve: (https?)://([^ ]*):(\d+) answers for '(.*?)' as vLLM [0-9.]+, timed "
                              r"by (.*) \(up in (\d+) ms\)$", self.log(), re.M)) is None:
            if not self.running() or time.monotonic() > end:
                raise AssertionError(f"serve does not come up: {self.log()[-800:]}")
            time.sleep(0.01)
        self.scheme, self.host, self.port = m[1], m[2], int(m[3])
        self.name, self.timed_by, self.up_ms = m[4], m[5], int(m[6])
        self.url = f"{self.scheme}://{self.host}:{self.port}"
        self.http = Http(self.port)

    def stop(self, number=signal.SIGTERM, seconds=20):
        """Ends it, which must go well; what it served in all."""
        status = self.end(number, seconds)
        if status != 0:
            raise AssertionError(f"serve ends with {status}: {self.log()[-2000:]}")
        return json.loads([x for x in self.log().splitlines() if x.startswith("{")][-1])


class AsyncTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)  # it is slow


class ServeTest(AsyncTest):
    """A server that is there before the first test of a class and must end well after the
    last."""

    flags = QUICK
    model = TINY

    @classmethod
    def setUpClass(cls):
        Process.shown.clear()
        cls.server = Server(*cls.flags, model=cls.model)
        cls.http = cls.server.http
        cls.port, cls.url = cls.server.port, cls.server.url

    @classmethod
    def tearDownClass(cls):
        cls.summary = cls.server.stop()

    async def idle(self, seconds=10.0):
        async def quiet():
            m = await self.http.metrics()
            return m("num_requests_running") == 0 and m("num_requests_waiting") == 0
        await until("no request runs or waits", quiet, seconds)

    async def runs(self, n, seconds=10.0):
        async def enough():
            return (await self.http.metrics())("num_requests_running") == n
        await until(f"{n} requests run", enough, seconds)


# ---- clients ----------------------------------------------------------------


def open_url(url, body=None, headers=None, context=None, method=None, seconds=30):
    """(status, headers, bytes) by Python's own client."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json",
                                                 **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=seconds, context=context) as r:
            return r.status, r.headers, r.read()
    except urllib.error.HTTPError as e:
        with e:
            return e.code, e.headers, e.read()


async def exchange(port, method, path, data=b"", headers=None):
    """An Exchange whose body is bytes as they are."""
    x = Exchange(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 24))
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close",
             f"Content-Length: {len(data)}"]
    lines += [f"{k}: {v}" for k, v in (headers or {}).items()]
    x.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
    await x.writer.drain()
    return x


def connect(port, seconds=30):
    return socket.create_connection(("127.0.0.1", port), timeout=seconds)


def raw(port, data, seconds=30):
    """Sends bytes and returns all that comes back until the server hangs up."""
    with connect(port, seconds) as s:
        try:
            s.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has heard enough
        got = b""
        while True:
            try:
                piece = s.recv(1 << 16)
            except ConnectionResetError:
                return got
            if not piece:
                return got
            got += piece


def parsed(text):
    """Families of a metrics page, by Prometheus' own parser."""
    from prometheus_client.parser import text_string_to_metric_families
    return {f.name: f for f in text_string_to_metric_families(text)}


def main():
    """Runs the tests of the calling program in a directory of their own."""
    missing = [name for name in CLIENTS if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: no {', '.join(missing)}; tools/fetch_clients gets them")
        sys.exit(SKIPPED)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="vtwin-serve-") as place:
        os.chdir(place)
        program = unittest.main("__main__", exit=False, verbosity=2,
                                testRunner=unittest.TextTestRunner(resultclass=_Result,
                                                                   verbosity=2))
        for p in Process.shown:
            p.end(signal.SIGKILL)
        os.chdir("/")
    sys.exit(not program.result.wasSuccessful())
