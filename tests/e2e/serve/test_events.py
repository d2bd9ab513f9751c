"""What it tells others: block events over ZeroMQ, spans over OTLP; several engines behind one
port; and failures on purpose."""
import asyncio
import base64
import gzip
import http.server
import json
import os
import re
import subprocess
import threading
from collections import Counter

import msgpack
import openai
import zmq
import zmq.asyncio

from serving import (QUICK, ROOT, STEADY, TINY, VTWIN, AsyncTest, Http, Process, Server, ServeTest,
                     free_port, main, parsed, until)
from block_events import GPT_OSS, of_gpt_oss, replay

BLOCK = 16


class Subscriber:
    """A reader of vLLM's block events."""

    def __init__(self, endpoint, topic=b""):
        self.context = zmq.asyncio.Context()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.connect(endpoint)
        self.socket.subscribe(topic)
        self.seqs, self.ranks, self.topics, self.events = [], set(), set(), []

    async def take(self, seconds=0.5):
        """Events that come before a silence of that length."""
        found = []
        while await self.socket.poll(int(seconds * 1000)):
            topic, seq, payload = await self.socket.recv_multipart()
            stamp, events, rank, *_ = msgpack.unpackb(payload)
            assert stamp > 1.7e9, stamp
            self.seqs.append(int.from_bytes(seq, "big"))
            self.ranks.add(rank)
            self.topics.add(topic)
            found += events
        self.events += found
        return found

    async def joined(self, http):
        """Subscribing takes a moment: until events come."""
        for i in range(50):
            await http.complete([1000 + i] * 20, max_tokens=1)
            if await self.take(0.1):
                return
        raise AssertionError("no events come")

    def close(self):
        self.context.destroy(linger=0)


def stored(events):
    return [e for e in events if e["type"] == "BlockStored"]


class BlockEvents(ServeTest):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.endpoint = f"tcp://127.0.0.1:{port}"
        cls.replay = f"tcp://127.0.0.1:{port + 1}"
        cls.flags = (*QUICK, "--num-gpu-blocks", "140", "--enable-kv-cache-events",
                     "--kv-events-endpoint", f"tcp://*:{port}", "--kv-events-topic", "blocks",
                     "--kv-events-replay-endpoint", f"tcp://*:{port + 1}")
        super().setUpClass()

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.sub = Subscriber(self.endpoint)
        self.addCleanup(self.sub.close)
        await self.sub.joined(self.http)

    async def test_hashes_form_a_chain(self):
        tokens = list(range(2000, 2100))
        r = await self.http.complete(tokens, max_tokens=30, ignore_eos=True,
                                     return_token_ids=True)
        events = await self.sub.take()
        all_tokens = tokens + r.choice["token_ids"]
        last, at = None, 0
        for e in stored(events):
            self.assertEqual((e["block_size"], e["parent_block_hash"]), (BLOCK, last))
            n = len(e["block_hashes"])
            self.assertEqual(e["token_ids"], all_tokens[at:at + n * BLOCK])
            last, at = e["block_hashes"][-1], at + n * BLOCK
        self.assertEqual(at, (100 + 29) // BLOCK * BLOCK)
        self.assertEqual(self.sub.topics, {b"blocks"})
        self.assertEqual(self.sub.ranks, {0})
        self.assertEqual(self.sub.seqs, list(range(self.sub.seqs[0], self.sub.seqs[-1] + 1)))

    async def test_what_is_there_is_not_stored_again(self):
        tokens = list(range(2200, 2270))
        await self.http.complete(tokens, max_tokens=1)
        first = await self.sub.take()
        self.assertEqual(sum(len(e["block_hashes"]) for e in stored(first)), 4)
        await self.http.complete(tokens, max_tokens=1)
        self.assertEqual(stored(await self.sub.take()), [])
        await self.http.complete(tokens[BLOCK:], max_tokens=1)
        other = await self.sub.take()
        hashes = [{h for e in stored(x) for h in e["block_hashes"]} for x in (first, other)]
        self.assertEqual(hashes[0] & hashes[1], set())  # same tokens, but not behind the same

    async def test_evicted_blocks_are_told(self):
        kept = set()
        for i in range(4):
            await self.http.complete(list(range(100 * i, 100 * i + 700)), max_tokens=1)
        for e in self.sub.events + await self.sub.take():
            if e["type"] == "BlockStored":
                kept |= set(e["block_hashes"])
            elif e["type"] == "BlockRemoved":
                kept -= set(e["block_hashes"])
        removed = [e for e in self.sub.events if e["type"] == "BlockRemoved"]
        self.assertGreater(len(removed), 30)
        self.assertLess(len(kept), 140)

    async def test_a_reset_clears_all(self):
        await self.idle()
        await self.sub.take(0.2)
        self.assertEqual((await self.http.post("/reset_prefix_cache")).json, {"success": True})
        events = await self.sub.take()
        self.assertEqual([e["type"] for e in events], ["AllBlocksCleared"])

    async def test_old_batches_can_be_asked_for(self):
        await self.http.complete(list(range(2500, 2600)), max_tokens=1)
        await self.sub.take()
        context = zmq.asyncio.Context()
        try:
            s = context.socket(zmq.DEALER)
            s.connect(self.replay)
            await s.send_multipart([b"", (0).to_bytes(8, "big")])
            seqs = []
            while await s.poll(5000):
                *_, seq, payload = await s.recv_multipart()
                seqs.append(int.from_bytes(seq, "big", signed=True))
                if seqs[-1] == -1:
                    break
        finally:
            context.destroy(linger=0)
        self.assertEqual(seqs, [*range(len(seqs) - 1), -1])
        self.assertEqual(seqs[-2], self.sub.seqs[-1])


class Groups(ServeTest):
    """An engine whose layers have windows by turns: two groups of blocks."""

    version = "0.26.0"

    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.replay = f"tcp://127.0.0.1:{port + 1}"
        cls.flags = (*QUICK, "--vllm-version", cls.version, "--num-gpu-blocks", "600",
                     "--gpu", "H200", "--hf-config", os.path.join(ROOT, GPT_OSS),
                     "--enable-kv-cache-events", "--block-hash-seed", "0",
                     "--kv-events-endpoint", f"tcp://*:{port}",
                     "--kv-events-replay-endpoint", f"tcp://*:{port + 1}")
        super().setUpClass()

    async def test_each_is_told_of_field_by_field(self):
        want = []
        for first, n, salt in ((1000, 200, None), (1300, 40, None), (1000, 200, "pepper")):
            tokens = list(range(first, first + n))
            more = {"cache_salt": salt} if salt else {}
            r = await self.http.complete(tokens, max_tokens=1, **more)
            self.assertEqual(r.status, 200)
            want += of_gpt_oss(tokens, int(self.version.split(".")[1]), salt)
        await self.idle()
        batches = await asyncio.to_thread(replay, self.replay)
        self.assertEqual([n for n, _, _ in batches], list(range(len(batches))))
        self.assertEqual([e for _, events, _ in batches for e in events], want)

    async def test_the_cache_is_counted_over_both(self):
        info = parsed((await self.http.get("/metrics")).body.decode())[
            "vllm:cache_config_info"].samples[0].labels
        # 2048 tokens: 128 blocks of each group, for what is in flight is more than that
        self.assertEqual(info["kv_cache_max_concurrency"], str(600 / 256))
        self.assertEqual(info["kv_cache_size_tokens"], str(int(600 / 256 * 2048)))
        self.assertEqual(info["block_size"], "16")


class GroupsOfTheNewest(Groups):
    version = "0.32.0"


class Ranks(ServeTest):
    @classmethod
    def setUpClass(cls):
        cls.events = free_port()
        cls.flags = (*STEADY, "--data-parallel-size", "2", "--max-num-seqs", "4",
                     "--enable-kv-cache-events", "--kv-events-endpoint", f"tcp://*:{cls.events}")
        super().setUpClass()

    async def test_both_take_their_share_and_say_so(self):
        before = await self.http.metrics()
        streams = asyncio.gather(*(self.http.stream_complete(
            f"number {i}", max_tokens=400, ignore_eos=True, return_token_ids=True)
            for i in range(8)))

        async def spread():
            m = await self.http.metrics()
            return [m("num_requests_running", engine=e) for e in "01"] == [4, 4]
        await until("four run on each", spread)
        self.assertEqual([len(s.tokens) for s in await streams], [400] * 8)
        after = await self.http.metrics()
        for e in "01":
            self.assertEqual(after("generation_tokens_total", engine=e)
                             - before("generation_tokens_total", engine=e), 1600)
        families = parsed((await self.http.get("/metrics")).body.decode())
        self.assertEqual({s.labels["engine"] for s in
                          families["vllm:cache_config_info"].samples}, {"0", "1"})
        self.assertEqual((await self.http.get("/get_world_size")).json, {"world_size": 2})

    async def test_a_client_may_choose(self):
        before = await self.http.metrics()
        for _ in range(5):
            r = await self.http.complete(max_tokens=4, ignore_eos=True,
                                         headers={"X-data-parallel-rank": "1"})
            self.assertEqual(r.status, 200)
        after = await self.http.metrics()
        grown = [after("generation_tokens_total", engine=e)
                 - before("generation_tokens_total", engine=e) for e in "01"]
        self.assertEqual(grown, [0, 20])

    async def test_each_has_block_events_of_its_own(self):
        subs = [Subscriber(f"tcp://127.0.0.1:{self.events + rank}") for rank in range(2)]
        try:
            async def both():
                await asyncio.gather(*(self.http.complete(
                    list(range(300 + i, 340 + i)), max_tokens=2,
                    headers={"X-data-parallel-rank": str(i % 2)}) for i in range(4)))
                await self.http.post("/reset_prefix_cache")
                for s in subs:
                    await s.take(0.1)
                return all(s.events for s in subs)
            await until("events of both", both)
            self.assertEqual([s.ranks for s in subs], [{0}, {1}])
        finally:
            for s in subs:
                s.close()


# ---- failures ---------------------------------------------------------------

KINDS = {"rate_limit": (429, openai.RateLimitError),
         "invalid_api_key": (401, openai.AuthenticationError),
         "context_length": (400, openai.BadRequestError),
         "server_error": (503, openai.InternalServerError),
         "invalid_request": (400, openai.BadRequestError),
         "model_not_found": (404, openai.NotFoundError)}


class Failures(AsyncTest):
    def setUp(self):
        Process.shown.clear()

    def serve(self, *flags):
        server = Server(*QUICK, *flags)
        self.addCleanup(server.end)
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="x", max_retries=0)
        self.addCleanup(client.close)
        return server, lambda **more: client.completions.create(
            model="tiny", prompt="one", max_tokens=10, extra_body={"ignore_eos": True}, **more)

    def test_each_kind_is_the_clients_exception(self):
        for kind, (status, exception) in KINDS.items():
            with self.subTest(kind):
                server, call = self.serve("--failure-injection-rate", "1",
                                          "--failure-types", kind)
                with self.assertRaises(exception) as caught:
                    call()
                self.assertEqual(caught.exception.status_code, status)
                self.assertEqual(caught.exception.body["code"], status)
                summary = server.stop()
                self.assertEqual((summary["failed"], summary["finished"]), (1, 0))

    def test_a_stream_breaks_in_the_middle(self):
        server, call = self.serve("--failure-injection-rate", "1",
                                  "--failure-types", "broken_stream")
        got = 0
        with self.assertRaises(openai.APIError):
            for chunk in call(stream=True):
                got += 1
        self.assertTrue(0 < got < 10, got)
        with self.assertRaises(openai.InternalServerError):
            call()

    def test_the_first_fail_and_a_retry_helps(self):
        server, call = self.serve("--fail-first", "3", "--failure-types", "server_error")
        for _ in range(3):
            with self.assertRaises(openai.InternalServerError):
                call()
        self.assertEqual(call().usage.completion_tokens, 10)
        self.assertEqual(server.stop()["failed"], 3)
        server, _ = self.serve("--fail-first", "2", "--failure-types", "rate_limit")
        with openai.OpenAI(base_url=server.url + "/v1", api_key="x", max_retries=3) as client:
            r = client.completions.create(model="tiny", prompt="one", max_tokens=2)
        self.assertEqual(r.usage.completion_tokens, 2)

    async def test_a_share_of_them_fails_in_all_ways(self):
        server, _ = self.serve("--failure-injection-rate", "0.5", "--seed", "3")
        http = Http(server.port)
        statuses = Counter([(await http.complete(max_tokens=1)).status for _ in range(200)])
        self.assertTrue(60 < statuses[200] < 140, statuses)
        self.assertEqual(set(statuses), {200, 400, 401, 404, 429, 503})
        self.assertEqual((await http.get("/health")).status, 200)


# ---- spans ------------------------------------------------------------------


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes OTLP over HTTP in its JSON form."""
    protocol_version = "HTTP/1.1"
    bodies, seen = [], []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        Collector.seen.append((self.path, dict(self.headers)))
        Collector.bodies.append(json.loads(body))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def spans(bodies):
    return [(scope["scope"]["name"], span) for body in bodies for r in body["resourceSpans"]
            for scope in r["scopeSpans"] for span in scope["spans"]]


def attributes(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


class Spans(AsyncTest):
    # Times that a fit can tell apart: by step, by token of a prompt, by sequence.
    times = ("--model", "linear:base=2000,prefill_token=10,decode=50")

    def setUp(self):
        Process.shown.clear()

    async def load(self, server, n=40):
        async def one(i):
            await asyncio.sleep(0.02 * i)
            return await server.http.stream_complete(
                [i + 5] * (20 + 13 * i), max_tokens=10 + i, ignore_eos=True,
                headers={"X-Request-Id": f"r{i}"})
        return await asyncio.gather(*(one(i) for i in range(n)))

    def check_spans(self, bodies, n):
        found = [attributes(s) for _, s in spans(bodies) if s["name"] == "llm_request"
                 and "gen_ai.usage.completion_tokens" in attributes(s)]
        by_id = {a["gen_ai.request.id"]: a for a in found}
        self.assertEqual(len(by_id), n)
        for i in range(n):
            a = next(a for name, a in by_id.items() if f"r{i}" in name.split("-"))
            self.assertEqual(int(a["gen_ai.usage.completion_tokens"]), 10 + i)
            self.assertEqual(int(a["gen_ai.usage.prompt_tokens"]), 20 + 13 * i)
            self.assertGreater(float(a["gen_ai.latency.e2e"]),
                               float(a["gen_ai.latency.time_to_first_token"]))

    async def test_a_file_of_them_can_be_fitted(self):
        server = Server(*self.times, "--otlp-traces-endpoint", "file:spans.jsonl",
                        model=(*TINY[:3], "--max-model-len", "2048"))
        await self.load(server)
        server.stop()
        with open("spans.jsonl") as f:
            self.check_spans([json.loads(line) for line in f], 40)
        done = subprocess.run([VTWIN, "fit", "--otlp", "spans.jsonl", "-o", "fitted.json"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        error = re.search(r"^window +median error ([0-9.]+) %", done.stdout, re.M)
        self.assertLess(float(error[1]), 25, done.stdout)  # a few, where nothing else runs
        again = subprocess.run([VTWIN, "profile", "show", "fitted.json"], capture_output=True,
                               text=True, timeout=60)
        self.assertEqual(again.returncode, 0, again.stderr)

    async def test_a_collector_gets_them(self):
        Collector.bodies.clear()
        Collector.seen.clear()
        collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        try:
            server = Server(*self.times, "--otlp-traces-endpoint",
                            f"http://127.0.0.1:{collector.server_port}/v1/traces",
                            "--otlp-headers", "X-Tenant=me,X-Other=you")
            await self.load(server, 10)
            server.stop()
        finally:
            collector.shutdown()
            thread.join()
            collector.server_close()
        self.check_spans(Collector.bodies, 10)
        path, headers = Collector.seen[0]
        self.assertEqual((path, headers["X-Tenant"], headers["X-Other"]),
                         ("/v1/traces", "me", "you"))

    async def test_a_grpc_collector_gets_them(self):
        try:
            import grpc
            from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
            from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service
        except ImportError:
            self.skipTest("no grpcio; tools/fetch_clients gets it")
        from concurrent import futures
        from google.protobuf import json_format

        got, tenants, refuse = [], set(), [1]

        class Receiver(service.TraceServiceServicer):
            def Export(self, request, context):
                if refuse:  # a collector that is busy is asked again
                    refuse.pop()
                    context.abort(grpc.StatusCode.UNAVAILABLE, "later")
                got.append(request)
                tenants.update(v for k, v in context.invocation_metadata() if k == "x-tenant")
                return messages.ExportTraceServiceResponse()

        collector = grpc.server(futures.ThreadPoolExecutor(2))
        service.add_TraceServiceServicer_to_server(Receiver(), collector)
        port = collector.add_insecure_port("127.0.0.1:0")
        collector.start()
        try:
            server = Server(*self.times, "--otlp-traces-endpoint", f"http://127.0.0.1:{port}",
                            "--otlp-protocol", "grpc", "--otlp-headers", "X-Tenant=me")
            await self.load(server, 40)
            server.stop()
        finally:
            collector.stop(None)
        self.assertEqual(tenants, {"me"})
        bodies = [json.loads(json_format.MessageToJson(g)) for g in got]
        self.check_spans(bodies, 40)
        steps = [e for scope, s in spans(bodies) if scope == "vllm.scheduler.step"
                 for e in s["events"]]
        snapshots = [attributes(e) for e in steps if e["name"] == "step.REQUEST_SNAPSHOT"]
        self.assertTrue(snapshots)
        for a in snapshots:
            self.assertEqual(a["request.num_preemptions"], "0")
            self.assertEqual(a["kv.blocks_cached_gpu"], "0")
        # The same bytes as a collector writes them to a file can be fitted: ids in hex there.
        with open("grpc.jsonl", "w") as f:
            for body in bodies:
                for r in body["resourceSpans"]:
                    for scope in r["scopeSpans"]:
                        for span in scope["spans"]:
                            for key in ("traceId", "spanId", "parentSpanId"):
                                if key in span:
                                    span[key] = base64.b64decode(span[key]).hex()
                f.write(json.dumps(body) + "\n")
        done = subprocess.run([VTWIN, "fit", "--otlp", "grpc.jsonl", "--kind", "regression",
                               "--beta-terms", "num_prefill,num_decode,prefill_tokens",
                               "-o", "grpc.json"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open("grpc.json") as f:
            self.assertAlmostEqual(json.load(f)["model"]["params"]["intercept"], 2000, delta=20)

    async def test_sampling_rates(self):
        server = Server(*self.times, "--otlp-traces-endpoint", "file:some.jsonl",
                        "--journey-tracing-sample-rate", "0.5", "--step-tracing-sample-rate",
                        "0.5", "--step-tracing-rich-subsample-rate", "0.5")
        await self.load(server, 40)
        server.stop()
        with open("some.jsonl") as f:
            found = spans([json.loads(line) for line in f])
        requests = [s for scope, s in found if s["name"] == "llm_core"]
        events = [e for scope, s in found if scope == "vllm.scheduler.step" for e in s["events"]]
        ids = {attributes(e)["step.id"] for e in events if e["name"] == "step.BATCH_SUMMARY"}
        rich = {attributes(e)["step.id"] for e in events if e["name"] == "step.REQUEST_SNAPSHOT"}
        last = max(int(attributes(s)["scheduler.step_range_end"]) for scope, s in found
                   if scope == "vllm.scheduler.step")
        self.assertTrue(8 <= len(requests) <= 32, len(requests))
        self.assertTrue(0.3 < len(ids) / last < 0.7, (len(ids), last))
        self.assertTrue(0.2 < len(rich) / len(ids) < 0.8, (len(rich), len(ids)))

    async def test_a_clients_trace_goes_on(self):
        server = Server(*QUICK, "--otlp-traces-endpoint", "file:traced.jsonl",
                        "--no-step-tracing-enabled")
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        await server.http.complete(max_tokens=3, headers={
            "traceparent": f"00-{trace}-{parent}-01"})
        server.stop()
        with open("traced.jsonl") as f:
            found = spans([json.loads(line) for line in f])
        self.assertEqual({s["traceId"] for _, s in found}, {trace})
        self.assertIn(parent, {s.get("parentSpanId") for _, s in found})

    async def test_a_collector_that_is_not_there_harms_nobody(self):
        server = Server(*QUICK, "--otlp-traces-endpoint",
                        f"http://127.0.0.1:{free_port()}/v1/traces")
        for s in await self.load(server, 5):
            self.assertTrue(s.done)
        server.stop()


if __name__ == "__main__":
    main()
