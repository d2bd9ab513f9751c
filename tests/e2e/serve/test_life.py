"""Beginnings and ends: of the server, of connections, and of requests nobody waits for."""
import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import time

from serving import (QUICK, STEADY, TINY, VTWIN, AsyncTest, Process, Server, ServeTest, Stream,
                     connect, exchange, main, open_url, raw, until)

LONG = {"max_tokens": 1900, "ignore_eos": True, "return_token_ids": True}


def request(body, path="/v1/completions", **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json",
             f"Content-Length: {len(data)}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def ask(tokens=3, **more):
    return {"model": "tiny", "prompt": "one", "max_tokens": tokens, "ignore_eos": True, **more}


def read_response(s):
    """(status, body) of one answer with a length on an open connection."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = s.recv(1 << 16)
        if not piece:
            raise ConnectionError(got)
        got += piece
    head, _, body = got.partition(b"\r\n\r\n")
    length = [int(x.split(b":")[1]) for x in head.split(b"\r\n")
              if x.lower().startswith(b"content-length")][0]
    while len(body) < length:
        body += s.recv(1 << 16)
    return int(head.split()[1]), body


class OneSlot(ServeTest):
    flags = (*STEADY, "--max-num-seqs", "1")

    async def aborted(self):
        return (await self.http.metrics())("request_success_total", finished_reason="abort")

    async def test_a_reader_that_goes_frees_its_slot(self):
        before = await self.aborted()
        s = await self.http.stream_complete(cut_after=3, **LONG)
        self.assertGreaterEqual(len(s.tokens), 3)
        r = await self.http.complete(max_tokens=3)
        self.assertEqual(r.status, 200)
        self.assertEqual(await self.aborted(), before + 1)

    async def test_so_does_one_that_waits_for_the_whole_answer(self):
        before = await self.aborted()
        x = await exchange(self.port, "POST", "/v1/completions", json.dumps(
            ask(1900)).encode(), {"Content-Type": "application/json"})
        await self.runs(1)
        x.close()
        self.assertEqual((await self.http.complete(max_tokens=3)).status, 200)
        self.assertEqual(await self.aborted(), before + 1)

    async def test_and_one_whose_connection_is_reset(self):
        before = await self.aborted()
        s = connect(self.port)
        s.sendall(request(ask(1900, stream=True)))
        self.assertTrue(s.recv(10))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        self.assertEqual((await self.http.complete(max_tokens=3)).status, 200)
        self.assertEqual(await self.aborted(), before + 1)

    async def test_and_one_that_still_waits_in_the_queue(self):
        before = await self.aborted()
        first = asyncio.create_task(self.http.stream_complete(max_tokens=600, ignore_eos=True))
        await self.runs(1)
        x = await exchange(self.port, "POST", "/v1/completions", json.dumps(
            ask(1900)).encode(), {"Content-Type": "application/json"})
        await until("it waits", self.waits)
        x.close()
        await first
        self.assertEqual((await self.http.complete(max_tokens=3)).status, 200)
        self.assertEqual(await self.aborted(), before + 1)

    async def waits(self):
        return (await self.http.metrics())("num_requests_waiting") == 1


class Connections(ServeTest):
    flags = (*QUICK, "--max-request-body-mb", "1")

    async def works(self):
        r = await self.http.complete(max_tokens=3, ignore_eos=True)
        self.assertEqual((r.status, r.json["usage"]["completion_tokens"]), (200, 3))

    def test_one_connection_takes_many_requests(self):
        with connect(self.port) as s:
            for i in range(50):
                s.sendall(request(ask(2)))
                status, body = read_response(s)
                self.assertEqual((status, json.loads(body)["usage"]["completion_tokens"]),
                                 (200, 2))

    def test_requests_may_come_before_the_answers(self):
        with connect(self.port) as s:
            s.sendall(b"".join(request(ask(1 + i)) for i in range(10)))
            got = b""
            while got.count(b"completion_tokens") < 10:
                piece = s.recv(1 << 16)
                self.assertTrue(piece, got)
                got += piece
        lengths = [int(x.split(b",")[0]) for x in got.split(b'"completion_tokens":')[1:]]
        self.assertEqual(lengths, list(range(1, 11)))

    def test_a_request_may_come_byte_by_byte(self):
        with connect(self.port) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for b in request(ask(2)):
                s.sendall(bytes([b]))
            self.assertEqual(read_response(s)[0], 200)

    def test_a_chunked_body(self):
        data = json.dumps(ask(2)).encode()
        chunks = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(data[i:i + 7]), data[i:i + 7])
                          for i in range(0, len(data), 7)) + b"0\r\nTrailer: x\r\n\r\n"
        with connect(self.port) as s:
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
                      b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
            self.assertEqual(read_response(s)[0], 200)

    def test_a_client_that_asks_whether_it_may(self):
        with connect(self.port) as s:
            head, _, body = request(ask(2), Expect="100-continue").partition(b"\r\n\r\n")
            s.sendall(head + b"\r\n\r\n")
            self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 100 "))
            s.sendall(body)
            self.assertEqual(read_response(s)[0], 200)

    async def test_who_will_say_no_more_has_gone(self):
        """As for vLLM's own server, for which half a close is one."""
        before = (await self.http.metrics())("request_success_total", finished_reason="abort")
        for stream in (False, True):
            with connect(self.port) as s:
                s.sendall(request(ask(1900, stream=stream)))
                await self.runs(1)
                s.shutdown(socket.SHUT_WR)
                await self.idle()
        after = (await self.http.metrics())("request_success_total", finished_reason="abort")
        self.assertEqual(after, before + 2)

    async def test_malformed_requests_get_an_error_and_nothing_else_suffers(self):
        cases = {
            b"\r\n\r\n\r\n": None,
            b"HELLO\r\n\r\n": 400,
            b"GET / HTTP/9.9\r\nHost: x\r\n\r\n": (400, 505),
            b"GET /health HTTP/1.1\r\nHost x\r\n\r\n": 400,
            b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
            b"Content-Length: 2\r\n\r\n": 400,
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n": 400,
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1e3\r\n\r\n": 400,
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            b"\r\nzz\r\n": 400,
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n": 400,
            b"GET /he\x00alth HTTP/1.1\r\nHost: x\r\n\r\n": 400,
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n": 400,
            os.urandom(300).replace(b"\n", b"x") + b"\r\n\r\n": 400,
        }
        for data, status in cases.items():
            with self.subTest(data[:60]):
                if status is None:
                    with connect(self.port) as s:
                        s.sendall(data)
                    continue
                got = await asyncio.to_thread(raw, self.port, data)
                self.assertTrue(got.startswith(b"HTTP/1.1 "), got[:100])
                wanted = status if isinstance(status, tuple) else (status,)
                self.assertIn(int(got.split()[1]), wanted, got[:200])
        await self.works()

    async def test_malformed_json_gets_400(self):
        deep = b'{"model":"tiny","prompt":' + b"[" * 100000 + b"]" * 100000 + b"}"
        for body in (b"", b"{", b"nul", b'{"model":"tiny","prompt":"\xff\xfe"}',
                     b'{"model":"tiny","prompt":"\\ud800"}' + b"x", b"[" * 5000, deep,
                     b'{"model":"tiny","prompt":"x","max_tokens":1e400}',
                     b'{"model":1,"prompt":{}}', b'{"model":"tiny","prompt":[[1,"x"]]}'):
            with self.subTest(body[:40]):
                status, _, text = await asyncio.to_thread(
                    open_url, self.url + "/v1/completions", body or None, None, None, "POST")
                self.assertEqual(status, 400, text[:300])
                self.assertIn("error", json.loads(text))
        await self.works()

    async def test_a_body_that_is_too_large_gets_413(self):
        big = b" " * (1 << 20) + json.dumps(ask()).encode()
        got = await asyncio.to_thread(raw, self.port, request(big))
        self.assertTrue(got.startswith(b"HTTP/1.1 413 "), got[:200])
        endless = (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                   + (b"10000\r\n" + b"x" * 0x10000 + b"\r\n") * 20)
        got = await asyncio.to_thread(raw, self.port, endless)
        self.assertTrue(got.startswith(b"HTTP/1.1 413 "), got[:200])
        await self.works()

    async def test_a_flood_of_headers_gets_431(self):
        for flood in (b"X-Long: " + b"x" * (1 << 20),
                      b"".join(b"X-%d: y\r\n" % i for i in range(60000))):
            got = await asyncio.to_thread(
                raw, self.port, b"GET /health HTTP/1.1\r\nHost: x\r\n" + flood + b"\r\n\r\n")
            self.assertTrue(got.startswith(b"HTTP/1.1 431 "), got[:200])
        await self.works()

    async def test_a_thousand_idle_connections_cost_others_nothing(self):
        idle = [connect(self.port) for _ in range(1000)]
        try:
            await self.works()
            for s in idle[::100]:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(read_response(s)[0], 200)
        finally:
            for s in idle:
                s.close()
        await self.works()

    async def test_a_slow_reader_stops_nobody(self):
        with connect(self.port) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(30):
                slow.sendall(request(ask(1900, stream=True, logprobs=5)))
            await asyncio.sleep(0.2)
            streams = await asyncio.gather(*(self.http.stream_complete(**{**LONG, "max_tokens": 50})
                                             for _ in range(10)))
            self.assertEqual([len(s.tokens) for s in streams], [50] * 10)
        await self.idle()

    async def test_one_that_never_reads_is_hung_up(self):
        before = (await self.http.metrics())("request_success_total", finished_reason="abort")
        with connect(self.port) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.sendall(request(ask(1900, stream=True, logprobs=20, n=16)))

            async def dropped():
                m = await self.http.metrics()
                return m("request_success_total", finished_reason="abort") > before
            await until("it is given up", dropped, 30)
        await self.idle()
        await self.works()

    async def test_a_browser_may_ask_from_elsewhere(self):
        x = await exchange(self.port, "OPTIONS", "/v1/completions", b"", {
            "Origin": "http://example.org", "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type"})
        await x.head()
        x.close()
        self.assertEqual(x.status, 200)
        self.assertIn(x.headers["access-control-allow-origin"], ("*", "http://example.org"))
        self.assertIn("POST", x.headers["access-control-allow-methods"])
        x = await exchange(self.port, "GET", "/health", b"", {"Origin": "http://example.org"})
        await x.head()
        x.close()
        self.assertIn("access-control-allow-origin", x.headers)


class LongContext(ServeTest):
    model = (TINY[0], "--served-model-name", "tiny", "--max-model-len", "131072")
    flags = ("--model", "null", "--num-gpu-blocks", "20000")

    async def test_a_prompt_of_a_hundred_thousand_tokens(self):
        s = asyncio.create_task(self.http.stream_complete(
            [7] * 100_000, max_tokens=5, ignore_eos=True, return_token_ids=True))
        small = await self.http.complete(max_tokens=3)
        self.assertEqual(small.status, 200)
        s = await s
        self.assertEqual((len(s.tokens), s.usage["prompt_tokens"]), (5, 100_000))
        text = " block" * 60_000
        r = await self.http.complete(text, max_tokens=1)
        self.assertEqual(r.status, 200, r)
        self.assertGreaterEqual(r.json["usage"]["prompt_tokens"], 60_000)

    async def test_one_that_is_too_long_is_told_so(self):
        r = await self.http.complete([7] * 131_073, max_tokens=1)
        self.assertEqual((r.status, r.json["error"]["code"]), (400, 400))
        self.assertIn("maximum context length is 131072", r.json["error"]["message"])


class Ends(AsyncTest):
    def setUp(self):
        Process.shown.clear()

    def tearDown(self):
        for p in Process.shown:
            p.end(signal.SIGKILL)

    async def streaming(self, server, n=200):
        s = Stream()
        task = asyncio.create_task(server.http.stream_complete(**{**LONG, "max_tokens": n},
                                                               into=s))
        await until("it streams", lambda: len(s.at) > 3)
        return s, task

    async def test_sigterm_lets_streams_end_and_takes_nothing_new(self):
        server = Server(*STEADY)
        s, task = await self.streaming(server)
        server.send(signal.SIGTERM)
        await until("it drains", lambda: "waiting for 1 requests" in server.log())
        with self.assertRaises(OSError):
            connect(server.port).close()
        await task
        self.assertEqual((len(s.tokens), s.finish, s.done), (200, "length", True))
        self.assertEqual(await asyncio.to_thread(server.child.wait, 10), 0, server.log())
        summary = server.stop()
        self.assertEqual((summary["finished"], summary["tokens"]), (1, 200))

    async def test_a_second_signal_does_not_wait(self):
        server = Server(*STEADY)
        s, task = await self.streaming(server, 1900)
        server.send(signal.SIGINT)
        await until("it drains", lambda: "waiting for 1 requests" in server.log())
        await asyncio.sleep(0.5)  # sooner, it would count as the same wish
        server.send(signal.SIGINT)
        status = await asyncio.to_thread(server.child.wait, 10)
        self.assertIn(status, (-signal.SIGINT, 128 + signal.SIGINT))
        await asyncio.gather(task, return_exceptions=True)
        self.assertLess(len(s.tokens), 1900)

    async def test_what_takes_too_long_is_broken_off(self):
        server = Server(*STEADY, "--shutdown-timeout", "0.3")
        s, task = await self.streaming(server, 1900)
        server.send(signal.SIGTERM)
        await task
        self.assertLess(len(s.tokens), 1900)
        self.assertEqual(s.error["code"], 503)
        self.assertEqual(await asyncio.to_thread(server.child.wait, 10), 0, server.log())

    async def test_idle_connections_do_not_hold_it_up(self):
        server = Server(*QUICK)
        held = [connect(server.port) for _ in range(20)]
        begun = time.monotonic()
        await asyncio.to_thread(server.stop)
        self.assertLess(time.monotonic() - begun, 10)
        for s in held:
            s.close()

    def run_it(self, *flags):
        return subprocess.run([VTWIN, "serve", *flags], capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL)

    def test_a_port_that_is_taken(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            port = s.getsockname()[1]
            done = self.run_it("--port", str(port))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(str(port), done.stderr)

    def test_flags_that_make_no_sense(self):
        for flags in (("--port", "70000"), ("--port", "x"), ("--no-such-flag",),
                      ("--mode", "dataset"), ("--dataset-path", "x"), ("--api-key",),
                      ("--ssl-certfile", "x"), ("--failure-injection-rate", "2"),
                      ("--failure-types", "nonsense", "--port", "0"), ("no-such-directory",),
                      ("--host", "not.an.address.invalid", "--port", "0"),
                      ("--lora-modules", "x"), ("--time-scale", "0"),
                      ("--mode", "dataset", "--dataset-path", "no-such-file", "--port", "0"),
                      ("--ssl-certfile", "none.pem", "--ssl-keyfile", "none.pem", "--port", "0")):
            with self.subTest(flags):
                done = self.run_it(*flags)
                self.assertEqual(done.returncode, 2, (done.returncode, done.stderr))
                self.assertEqual(done.stdout, "")
                self.assertIn("vtwin", done.stderr)
                self.assertLessEqual(len(done.stderr.splitlines()), 3, done.stderr)

    async def test_it_says_when_it_is_up_and_what_it_did(self):
        server = Server(*QUICK, "--log-requests")
        self.assertLess(server.up_ms, 10_000)
        self.assertEqual(server.host, "127.0.0.1")
        await server.http.complete(max_tokens=7, ignore_eos=True)
        await server.http.complete(max_tokens=-7)
        summary = server.stop()
        self.assertEqual({k: summary[k] for k in ("requests", "finished", "aborted", "failed",
                                                  "refused", "tokens")},
                         {"requests": 2, "finished": 1, "aborted": 0, "failed": 0, "refused": 1,
                          "tokens": 7})
        self.assertIn("POST /v1/completions 200", server.log())
        self.assertIn("2 requests (1 finished, 0 aborted, 1 refused", server.log())

    async def test_it_listens_where_it_is_told_to(self):
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        server = Server(*QUICK, "--host", "::1")
        self.assertEqual(server.host, "[::1]")
        self.assertEqual((await asyncio.to_thread(open_url, server.url + "/health"))[0], 200)
        with self.assertRaises(OSError):
            connect(server.port).close()
        server.stop()

    async def test_the_same_seed_says_the_same(self):
        async def texts(seed):
            server = Server(*QUICK, "--seed", str(seed))
            got = [(await server.http.complete(max_tokens=10)).choice["text"] for _ in range(3)]
            server.stop()
            return got
        first = await texts(1)
        self.assertEqual(first, await texts(1))
        self.assertNotEqual(first, await texts(2))

    async def test_time_can_be_scaled(self):
        server = Server("--model", "linear:base=1000000", "--time-scale", "1000")
        r = await server.http.complete(max_tokens=50, ignore_eos=True)  # 50 s of the engine's
        self.assertEqual(r.status, 200)
        server.stop()

    async def test_more_connections_than_allowed(self):
        server = Server(*QUICK, "--max-connections", "5")
        held = [connect(server.port) for _ in range(5)]
        for s in held:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(read_response(s)[0], 200)
        got = await asyncio.to_thread(raw, server.port, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertIn(got[:13], (b"", b"HTTP/1.1 503 "))
        held.pop().close()

        async def again():
            got = await asyncio.to_thread(
                raw, server.port, b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return got.startswith(b"HTTP/1.1 200 ")
        await until("there is room again", again)
        for s in held:
            s.close()
        server.stop()

    async def test_idle_peers_are_let_go(self):
        server = Server(*QUICK, "--timeout-keep-alive", "0.2")
        with connect(server.port) as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(read_response(s)[0], 200)
            self.assertEqual(await asyncio.to_thread(s.recv, 10), b"")
        server.stop()


if __name__ == "__main__":
    main()
