"""Routes that no openai client calls: tokens, Anthropic's messages, descriptions; and headers
and fields of vLLM's own."""
import asyncio
import json

from serving import (QUICK, STEADY, Exchange, ServeTest, Stream, chat_body, main, raw,
                     until)

TEXTS = ("Hello world", " leading and trailing ", "naïve café — 日本語 🙂🙃", "a\n\n\tb\r\nc",
         "1234567890 3.14e-5", "<|im_start|>user", "")


class Tokens(ServeTest):
    async def test_ids_lead_back_to_the_text(self):
        for text in TEXTS:
            a = await self.http.post("/tokenize", {"model": "tiny", "prompt": text,
                                                   "return_token_strs": True})
            got = a.json
            self.assertEqual((a.status, got["count"], got["max_model_len"]),
                             (200, len(got["tokens"]), 2048))
            self.assertEqual(len(got["token_strs"] or []), got["count"])
            back = await self.http.post("/detokenize", {"model": "tiny",
                                                        "tokens": got["tokens"]})
            self.assertEqual(back.json, {"prompt": text})

    async def test_a_chat_is_counted_as_it_is_run(self):
        ask = chat_body("Say something about blocks.")
        counted = (await self.http.post("/tokenize", ask)).json
        run = await self.http.chat("Say something about blocks.", max_tokens=1)
        self.assertEqual(run.json["usage"]["prompt_tokens"], counted["count"])
        rendered = await self.http.post("/v1/chat/completions/render", ask)
        self.assertEqual(rendered.json["token_ids"], counted["tokens"])
        rendered = await self.http.post("/v1/completions/render",
                                        {"model": "tiny", "prompt": ["one", "two three"]})
        self.assertEqual([len(r["token_ids"]) > 0 for r in rendered.json], [True, True])

    async def test_long_texts_are_tokenized_beside_the_loop(self):
        text = "The scheduler assigns tokens to requests in every step. " * 2000
        a = await self.http.post("/tokenize", {"model": "tiny", "prompt": text})
        self.assertGreater(a.json["count"], 10_000)
        back = await self.http.post("/detokenize", {"model": "tiny", "tokens": a.json["tokens"]})
        self.assertEqual(back.json["prompt"], text)


class ScaleOut(ServeTest):
    flags = (*QUICK, "--vllm-version", "0.32.0", "--enable-scale-out")

    async def test_the_newer_line_renders_where_it_may(self):
        a = await self.http.post("/v1/chat/completions/render", chat_body("hi"))
        self.assertEqual(a.status, 200, a)
        self.assertEqual(len(a.json["token_ids"]),
                         (await self.http.post("/tokenize", chat_body("hi"))).json["count"])


class NewerLine(ServeTest):
    flags = (*QUICK, "--vllm-version", "0.32.0")

    async def test_sleepers_say_what_they_do(self):
        for ask, answer in (
                ("/sleep", {"status": "sleeping", "level": 1}),
                ("/wake_up?tags=weights", {"status": "sleeping", "tags": ["weights"]}),
                ("/wake_up?tags=weights&tags=kv_cache",
                 {"status": "awake", "tags": ["weights", "kv_cache"]}),
                ("/sleep?level=2", {"status": "sleeping", "level": 2}),
                ("/wake_up", {"status": "awake", "tags": None})):
            self.assertEqual((await self.http.post(ask)).json, answer, ask)


class Messages(ServeTest):
    ask = {"model": "tiny", "max_tokens": 9, "system": "Be brief.",
           "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}

    async def test_a_message(self):
        a = await self.http.post("/v1/messages", self.ask)
        self.assertEqual((a.status, a.json["type"], a.json["role"], a.json["stop_reason"]),
                         (200, "message", "assistant", "max_tokens"))
        self.assertEqual(a.json["usage"]["output_tokens"], 9)
        count = await self.http.post("/v1/messages/count_tokens", {
            k: v for k, v in self.ask.items() if k != "max_tokens"})
        self.assertEqual(count.json["input_tokens"], a.json["usage"]["input_tokens"])

    async def test_a_streamed_message(self):
        whole = await self.http.post("/v1/messages", {**self.ask, "temperature": 0})
        a = await self.http.post("/v1/messages", {**self.ask, "temperature": 0, "stream": True})
        self.assertTrue(a.headers["content-type"].startswith("text/event-stream"))
        names, said = [], ""
        for block in a.body.decode().strip().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
            if lines["data"] == "[DONE]":
                continue
            event = json.loads(lines["data"])
            self.assertEqual(lines["event"], event["type"])
            names.append(event["type"])
            said += event.get("delta", {}).get("text") or ""
        self.assertEqual(said, whole.json["content"][0]["text"])
        self.assertEqual((names[0], names[1], names[-1]),
                         ("message_start", "content_block_start", "message_stop"))


class Descriptions(ServeTest):
    async def test_they_describe_the_routes_that_answer(self):
        a = await self.http.get("/openapi.json")
        paths = a.json["paths"]
        for path in ("/v1/completions", "/v1/chat/completions", "/v1/models", "/tokenize",
                     "/health", "/metrics", "/sleep"):
            self.assertIn(path, paths)
        for path, methods in paths.items():
            if path in ("/sleep", "/pause"):
                continue
            for method in methods:
                body = None if method == "get" else {}
                a = await self.http.ask(method.upper(), path, body)
                self.assertNotIn(a.status, (404, 405), (method, path))
        self.assertIn(b"<html", (await self.http.get("/docs")).body.lower())
        await self.http.post("/resume")
        await self.http.post("/wake_up")

    async def test_small_ones(self):
        self.assertEqual((await self.http.get("/version")).json, {"version": "0.26.0"})
        for method, path in (("GET", "/health"), ("GET", "/ping"), ("POST", "/ping")):
            a = await self.http.ask(method, path)
            self.assertEqual((a.status, a.body), (200, b""))
        a = await self.http.ask("GET", "/no/such/route")
        self.assertEqual((a.status, a.json), (404, {"detail": "Not Found"}))
        a = await self.http.ask("DELETE", "/v1/models")
        self.assertEqual((a.status, a.json, a.headers["allow"]),
                         (405, {"detail": "Method Not Allowed"}, "GET"))


# What FastAPI 0.136, Starlette 1.10 and uvicorn 0.54 (h11) answer where vLLM 0.26 and 0.32 hang
# their routes, /metrics of prometheus_client among them, on an application: request line, host,
# status, Location, Allow.
AS_STARLETTE = (
    ("GET /v1/models/ HTTP/1.1", "localhost", 307, "http://localhost/v1/models", None),
    ("GET /v1/models// HTTP/1.1", "localhost", 307, "http://localhost/v1/models", None),
    ("GET /v1/%6dodels/ HTTP/1.1", "a:99", 307, "http://a:99/v1/models", None),
    ("GET /v1/models/?a=b%20c HTTP/1.1", "localhost", 307, "http://localhost/v1/models?a=b%20c",
     None),
    ("POST /v1/completions/ HTTP/1.1", "localhost", 307, "http://localhost/v1/completions", None),
    ("DELETE /v1/models/ HTTP/1.1", "localhost", 307, "http://localhost/v1/models", None),
    ("GET /health/ HTTP/1.1", "localhost", 307, "http://localhost/health", None),
    ("GET /ping/ HTTP/1.1", "localhost", 307, "http://localhost/ping", None),
    ("GET /openapi.json/ HTTP/1.1", "localhost", 307, "http://localhost/openapi.json", None),
    ("GET /nothing/ HTTP/1.1", "localhost", 404, None, None),
    ("GET / HTTP/1.1", "localhost", 404, None, None),
    ("HEAD /health HTTP/1.1", "localhost", 405, None, "GET"),
    ("HEAD /v1/models HTTP/1.1", "localhost", 405, None, "GET"),
    ("HEAD /nothing HTTP/1.1", "localhost", 404, None, None),
    ("HEAD /openapi.json HTTP/1.1", "localhost", 200, None, None),
    ("HEAD /docs HTTP/1.1", "localhost", 200, None, None),
    ("HEAD /metrics HTTP/1.1", "localhost", 200, None, None),
    ("GET /metrics/ HTTP/1.1", "localhost", 200, None, None),
    ("GET /metricsxyz HTTP/1.1", "localhost", 200, None, None),
    ("POST /metrics HTTP/1.1", "localhost", 200, None, None),
    ("GET /health HTTP/1.1", None, 400, None, None),
    ("GET /health HTTP/1.0", None, 200, None, None),
)


class Paths(ServeTest):
    async def test_slashes_methods_and_hosts_are_taken_as_starlette_takes_them(self):
        for line, host, status, location, allow in AS_STARLETTE:
            with self.subTest(line):
                head = f"{line}\r\nConnection: close\r\n"
                head += "" if host is None else f"Host: {host}\r\n"
                got = await asyncio.to_thread(raw, self.port, head.encode() + b"\r\n")
                lines, _, body = got.partition(b"\r\n\r\n")
                fields = dict(x.split(": ", 1) for x in lines.decode().split("\r\n")[1:])
                self.assertEqual((int(got[9:12]), fields.get("location"), fields.get("allow")),
                                 (status, location, allow))
                if line.startswith("HEAD"):
                    self.assertEqual(body, b"")

    async def test_a_redirect_without_a_usable_host_names_the_path_alone(self):
        for version, host in (("1.0", ""), ("1.1", "Host:\r\n"), ("1.1", "Host: a b/c\r\n")):
            got = await asyncio.to_thread(raw, self.port, f"GET /health/ HTTP/{version}\r\n{host}"
                                          "Connection: close\r\n\r\n".encode())
            self.assertIn(b"\r\nlocation: /health\r\n", got)


class RequestIds(ServeTest):
    flags = (*QUICK, "--enable-request-id-headers")

    async def test_every_answer_has_one(self):
        seen = set()
        for method, path, body in (("GET", "/health", None), ("GET", "/nothing", None),
                                   ("GET", "/metrics", None), ("HEAD", "/health", None),
                                   ("GET", "/v1/models/", None), ("POST", "/pause?mode=x", None),
                                   ("POST", "/v1/completions", {"prompt": 1}),
                                   ("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1}),
                                   ("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2,
                                                                "stream": True})):
            a = await self.http.ask(method, path, body)
            self.assertRegex(a.headers["x-request-id"], "^[0-9a-f]{32}$", path)
            seen.add(a.headers["x-request-id"])
            a = await self.http.ask(method, path, body, {"X-Request-Id": "mine"})
            self.assertEqual(a.headers["x-request-id"], "mine", path)
        self.assertEqual(len(seen), 9)

    async def test_bytes_beyond_ascii_are_characters_of_latin_1(self):
        text = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
        got = await asyncio.to_thread(raw, self.port, (
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nX-Request-Id: a\xe9\xff\r\n"
            b"Content-Length: %d\r\n\r\n" % len(text)) + text)
        head, _, body = got.partition(b"\r\n\r\n")
        self.assertIn(b"\r\nx-request-id: a\xe9\xff\r\n", head)
        self.assertEqual(json.loads(body.decode())["id"], "cmpl-a\u00e9\u00ff")


class Fields(ServeTest):
    async def test_a_model_need_not_be_named(self):
        a = await self.http.post("/v1/completions", {"prompt": "one", "max_tokens": 2})
        self.assertEqual((a.status, a.json["model"]), (200, "tiny"))

    async def test_the_ids_of_requests(self):
        a = await self.http.complete(max_tokens=1, headers={"X-Request-Id": "abc-1"})
        self.assertEqual(a.json["id"], "cmpl-abc-1")
        a = await self.http.chat(max_tokens=1, request_id="def-2")
        self.assertEqual(a.json["id"], "chatcmpl-def-2")

    async def test_chunks_of_several_tokens(self):
        x = await Exchange.open(self.port, "POST", "/v1/completions", {
            "model": "tiny", "prompt": "one", "max_tokens": 40, "ignore_eos": True,
            "stream": True, "return_token_ids": True}, None)
        await x.head()
        tokens = [t for e in [e async for e in x.events()] if e
                  for t in e["choices"][0]["token_ids"] or []]
        x.close()
        self.assertEqual(len(tokens), 40)

    async def test_prompt_log_probabilities(self):
        a = await self.http.complete([5, 6, 7], max_tokens=1, prompt_logprobs=2)
        probs = a.choice["prompt_logprobs"]
        self.assertEqual((probs[0], len(probs)), (None, 3))
        self.assertIn("6", probs[1])
        self.assertLessEqual(probs[1]["6"]["logprob"], 0)


class Priorities(ServeTest):
    flags = (*STEADY, "--max-num-seqs", "1", "--scheduling-policy", "priority")

    async def test_the_urgent_one_goes_first(self):
        done = []

        async def one(name, priority):
            await self.http.complete(max_tokens=20, ignore_eos=True, priority=priority)
            done.append(name)
        s = Stream()
        first = asyncio.create_task(self.http.stream_complete(max_tokens=800, ignore_eos=True,
                                                              priority=-9, into=s))
        await until("it streams", lambda: len(s.at) > 1)
        later = asyncio.create_task(one("later", 5))

        async def waits():
            return (await self.http.metrics())("num_requests_waiting") == 1
        await until("one waits", waits)
        urgent = asyncio.create_task(one("urgent", 0))
        await asyncio.gather(first, later, urgent)
        self.assertEqual(done, ["urgent", "later"])


class Speculation(ServeTest):
    flags = (*STEADY, "--num-speculative-tokens", "3", "--speculative-acceptance", "0.8")

    async def test_drafts_come_in_bursts_and_are_counted(self):
        s = await self.http.stream_complete(max_tokens=200, ignore_eos=True,
                                            return_token_ids=True)
        self.assertEqual(len(s.tokens), 200)
        self.assertLess(len(s.at), 120)
        m = await self.http.metrics()
        drafts = m("spec_decode_num_drafts_total")
        self.assertGreater(drafts, 30)
        self.assertAlmostEqual(m("spec_decode_num_draft_tokens_total") / drafts, 3, delta=0.2)


class Lengths(ServeTest):
    flags = (*QUICK, "--seed", "5")

    async def test_without_a_limit_answers_end_at_various_lengths(self):
        lengths = [(await self.http.chat(max_tokens=None)).json["usage"]["completion_tokens"]
                   for _ in range(20)]
        self.assertGreater(len(set(lengths)), 10)
        self.assertTrue(20 < sorted(lengths)[10] < 1000, lengths)


class RecordedLengths(ServeTest):
    @classmethod
    def setUpClass(cls):
        with open("lengths.jsonl", "w") as f:
            for i, n in enumerate((7, 11, 13)):
                f.write(json.dumps({"id": str(i), "arrival_ms": i, "prompt_tokens": 5,
                                    "output_tokens": n}) + "\n")
        cls.flags = (*QUICK, "--output-lengths", "lengths.jsonl")
        super().setUpClass()

    async def test_answers_are_as_long_as_the_traces(self):
        answers = [await self.http.complete(max_tokens=100) for _ in range(30)]
        self.assertEqual({a.choice["finish_reason"] for a in answers}, {"stop"})
        lengths = {a.json["usage"]["completion_tokens"] for a in answers}
        self.assertTrue(lengths <= set(range(7, 14)) and len(lengths) > 2, lengths)
        a = await self.http.complete(max_tokens=100, ignore_eos=True)
        self.assertEqual(a.json["usage"]["completion_tokens"], 100)


if __name__ == "__main__":
    main()
