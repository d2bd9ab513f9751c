"""/metrics by Prometheus' own parser: what it counts is what clients got; and the routes
that change what runs."""
import asyncio
import signal
import time

from serving import (QUICK, STEADY, TINY, AsyncTest, Exchange, ServeTest, Server, Stream, main,
                     measured, parsed, until)


def value(families, family, sample=None, **labels):
    """The sum over the samples of a family that have these labels."""
    sample = sample or family
    return sum(s.value for s in families[family].samples
               if s.name == sample and labels.items() <= s.labels.items())


def count(families, family, **labels):
    return value(families, family, family + "_count", **labels)


def total(families, family, **labels):
    return value(families, family, family + "_total", **labels)


class MetricsTest(ServeTest):
    async def families(self):
        a = await self.http.get("/metrics")
        self.assertEqual(a.status, 200)
        self.assertTrue(a.headers["content-type"].startswith("text/plain; version="), a.headers)
        return parsed(a.body.decode())

    async def change(self, work):
        """Families before and after it."""
        before = await self.families()
        got = await work
        await self.idle()
        return before, await self.families(), got


class Counters(MetricsTest):
    async def load(self):
        whole = await asyncio.gather(*(
            self.http.complete(f"number {i} of many", max_tokens=10 + i, ignore_eos=True)
            for i in range(8)))
        streams = await asyncio.gather(*(
            self.http.stream_complete("streamed", max_tokens=20, ignore_eos=True)
            for _ in range(4)))
        two = await self.http.complete("two", max_tokens=5, n=2, ignore_eos=True)
        return [a.json["usage"] for a in (*whole, two)] + [s.usage for s in streams]

    async def test_they_add_up_to_what_clients_got(self):
        a, b, usages = await self.change(self.load())
        out = sum(u["completion_tokens"] for u in usages)
        # Both choices of the request with two have its prompt.
        prompts = sum(u["prompt_tokens"] for u in usages) + usages[8]["prompt_tokens"]
        self.assertEqual(out, sum(range(10, 18)) + 4 * 20 + 10)

        def grown(f, how=total, **labels):
            return how(b, f, **labels) - how(a, f, **labels)
        self.assertEqual(grown("vllm:generation_tokens"), out)
        self.assertEqual(grown("vllm:prompt_tokens"), prompts)
        self.assertEqual(grown("vllm:request_success", finished_reason="length"), 14)
        for reason in ("stop", "abort", "error", "repetition"):
            self.assertEqual(grown("vllm:request_success", finished_reason=reason), 0)
        for f, n in (("time_to_first_token_seconds", 14), ("e2e_request_latency_seconds", 14),
                     ("request_queue_time_seconds", 14), ("request_inference_time_seconds", 14),
                     ("request_prefill_time_seconds", 14), ("request_decode_time_seconds", 14),
                     ("request_prompt_tokens", 14), ("request_generation_tokens", 14),
                     ("request_params_max_tokens", 14), ("request_params_n", 13),
                     ("request_max_num_generation_tokens", 13)):
            self.assertEqual(grown("vllm:" + f, count), n, f)
        self.assertEqual(grown("vllm:inter_token_latency_seconds", count), out - 14)
        self.assertEqual(value(b, "vllm:request_generation_tokens",
                               "vllm:request_generation_tokens_sum")
                         - value(a, "vllm:request_generation_tokens",
                                 "vllm:request_generation_tokens_sum"), out)
        by_source = sum(grown("vllm:prompt_tokens_by_source", source=s)
                        for s in ("local_compute", "local_cache_hit", "external_kv_transfer"))
        self.assertEqual(by_source, prompts)

    async def test_http_requests_are_counted_by_route_and_status(self):
        async def work():
            await self.http.complete(max_tokens=1)
            await self.http.complete(max_tokens=-1)
            await self.http.post("/tokenize", {"model": "tiny", "prompt": "x"})
        a, b, _ = await self.change(work())
        for handler, status, n in (("/v1/completions", "2xx", 1), ("/v1/completions", "4xx", 1),
                                   ("/tokenize", "2xx", 1)):
            labels = {"handler": handler, "method": "POST", "status": status}
            self.assertEqual(total(b, "http_requests", **labels)
                             - (total(a, "http_requests", **labels)), n, labels)

    async def test_a_stop_is_counted_as_one(self):
        text = (await self.http.complete(max_tokens=30, temperature=0)).choice["text"]
        a, b, r = await self.change(self.http.complete(max_tokens=30, temperature=0,
                                                       stop=[text[8:12]]))
        self.assertEqual(r.choice["finish_reason"], "stop")
        self.assertEqual(total(b, "vllm:request_success", finished_reason="stop")
                         - total(a, "vllm:request_success", finished_reason="stop"), 1)

    async def test_a_prompt_seen_before_hits_the_cache(self):
        prompt = list(range(100, 400))
        ask = dict(max_tokens=2, ignore_eos=True)
        a, b, _ = await self.change(self.http.complete(prompt, **ask))
        self.assertEqual(total(b, "vllm:prefix_cache_hits"), total(a, "vllm:prefix_cache_hits"))
        self.assertEqual(total(b, "vllm:prefix_cache_queries")
                         - total(a, "vllm:prefix_cache_queries"), 300)
        a, b, _ = await self.change(self.http.complete(prompt, **ask))
        hits = total(b, "vllm:prefix_cache_hits") - total(a, "vllm:prefix_cache_hits")
        self.assertEqual(hits, 288)  # whole blocks of 16, and the last token is computed
        self.assertEqual(total(b, "vllm:prompt_tokens_cached")
                         - total(a, "vllm:prompt_tokens_cached"), 288)
        salted = self.http.complete(prompt, cache_salt="other salt, other blocks", **ask)
        a, b, _ = await self.change(salted)
        self.assertEqual(total(b, "vllm:prefix_cache_hits"), total(a, "vllm:prefix_cache_hits"))

    async def test_the_cache_can_be_emptied(self):
        prompt = list(range(500, 700))
        await self.http.complete(prompt, max_tokens=2)
        await self.idle()
        a = await self.http.post("/reset_prefix_cache")
        self.assertEqual((a.status, a.json), (200, {"success": True}))
        a, b, _ = await self.change(self.http.complete(prompt, max_tokens=2))
        self.assertEqual(total(b, "vllm:prefix_cache_hits"), total(a, "vllm:prefix_cache_hits"))

    async def test_embeddings_run_and_are_counted(self):
        a, b, r = await self.change(self.http.post("/v1/embeddings",
                                                   {"model": "tiny", "input": ["a", "b"]}))
        self.assertEqual((r.status, len(r.json["data"])), (200, 2))
        self.assertEqual(total(b, "vllm:prompt_tokens") - total(a, "vllm:prompt_tokens"),
                         r.json["usage"]["prompt_tokens"])


class Times(MetricsTest):
    flags = STEADY

    async def test_they_are_measured_and_belong_together(self):
        async def work():
            return await asyncio.gather(*(self.http.stream_complete(
                f"number {i}", max_tokens=40, ignore_eos=True) for i in range(10)))
        a, b, streams = await self.change(work())

        def grown(family):
            name = "vllm:" + family
            return value(b, name, name + "_sum") - value(a, name, name + "_sum")
        gaps, decode = grown("inter_token_latency_seconds"), grown("request_decode_time_seconds")
        self.assertAlmostEqual(gaps, decode, delta=0.02 * decode)
        self.assertGreater(decode, 10 * 39 * 0.0045)  # steps of 5 ms
        self.assertAlmostEqual(grown("request_time_per_output_token_seconds"), decode / 39,
                               delta=0.02 * decode / 39)
        prefill, queue = grown("request_prefill_time_seconds"), grown("request_queue_time_seconds")
        self.assertAlmostEqual(grown("request_inference_time_seconds"), prefill + decode,
                               delta=0.02 * (prefill + decode))
        ttft, e2e = grown("time_to_first_token_seconds"), grown("e2e_request_latency_seconds")
        self.assertGreaterEqual(e2e + 1e-3, ttft + decode)
        # What clients saw holds all of it, and a little of their own.
        self.assertLess(e2e, sum(s.at[-1] - s.began for s in streams) + 0.05)
        # An engine that is late takes what has come meanwhile as if it had been on time.
        self.assertGreater(ttft + 0.5, prefill + queue)

    async def test_a_long_stream_does_not_drift(self):
        async def attempt():
            s = await self.http.stream_complete(max_tokens=300, ignore_eos=True)
            took = s.at[-1] - s.at[0]
            self.assertGreater(took, 299 * 0.005 - 0.1)
            self.assertLess(took, 299 * 0.005 + 0.2)
        await measured(attempt)


class EndpointPicker(MetricsTest):
    """What llm-d's picker scrapes."""
    flags = (*STEADY, "--max-num-seqs", "2", "--num-gpu-blocks", "256", "--max-loras", "2",
             "--lora-modules", "first=/adapters/first")

    async def test_the_five_families(self):
        streams = [Stream() for _ in range(4)]
        tasks = [asyncio.create_task(self.http.stream(
            "/v1/completions", {"model": m, "prompt": "one", "max_tokens": 800,
                                "ignore_eos": True}, into=s, cut_after=400))
            for m, s in zip(("tiny", "first", "first", "tiny"), streams)]
        await self.runs(2)
        f = await self.families()
        self.assertEqual(value(f, "vllm:num_requests_running", model_name="tiny", engine="0"), 2)
        self.assertEqual(value(f, "vllm:num_requests_waiting", model_name="tiny", engine="0"), 2)
        self.assertTrue(0 < value(f, "vllm:kv_cache_usage_perc", engine="0") < 1)
        info = f["vllm:cache_config_info"].samples[0]
        self.assertEqual((info.labels["block_size"], info.labels["num_gpu_blocks"], info.value),
                         ("16", "256", 1))
        lora = max(f["vllm:lora_requests_info"].samples, key=lambda s: s.value)
        self.assertEqual((lora.labels["max_lora"], lora.labels["running_lora_adapters"],
                          lora.labels["waiting_lora_adapters"]), ("2", "first", "first"))
        self.assertEqual((await self.http.get("/load")).json, {"server_load": 4})
        for t in tasks:
            t.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.idle()
        f = await self.families()
        self.assertEqual(total(f, "vllm:request_success", finished_reason="abort"), 4)
        self.assertEqual(value(f, "vllm:kv_cache_usage_perc"), 0)
        self.assertEqual((await self.http.get("/load")).json, {"server_load": 0})

    async def test_adapters_come_and_go(self):
        async def names():
            return [m["id"] for m in (await self.http.get("/v1/models")).json["data"]]
        one = {"lora_name": "second", "lora_path": "/adapters/second"}
        self.assertEqual(await names(), ["tiny", "first"])
        a = await self.http.post("/v1/load_lora_adapter", one)
        self.assertEqual((a.status, a.body),
                         (200, b"Success: LoRA adapter 'second' added successfully."))
        self.assertEqual(await names(), ["tiny", "first", "second"])
        card = (await self.http.get("/v1/models")).json["data"][2]
        self.assertEqual((card["root"], card["parent"]), ("/adapters/second", "tiny"))
        r = await self.http.post("/v1/completions", {"model": "second", "prompt": "one",
                                                     "max_tokens": 2})
        self.assertEqual((r.status, r.json["model"]), (200, "second"))
        a = await self.http.post("/v1/load_lora_adapter", one)
        self.assertEqual((a.status, a.json["error"]["type"]), (400, "InvalidUserInput"))
        a = await self.http.post("/v1/load_lora_adapter", {"lora_name": "second"})
        self.assertEqual(a.status, 400)
        a = await self.http.post("/v1/unload_lora_adapter", {"lora_name": "second"})
        self.assertEqual((a.status, a.body),
                         (200, b"Success: LoRA adapter 'second' removed successfully."))
        self.assertEqual(await names(), ["tiny", "first"])
        a = await self.http.post("/v1/unload_lora_adapter", {"lora_name": "second"})
        self.assertEqual((a.status, a.json["error"]["type"]), (404, "NotFoundError"))
        r = await self.http.post("/v1/completions", {"model": "second", "prompt": "one"})
        self.assertEqual(r.status, 404)


class SmallPool(MetricsTest):
    model = (*TINY[:3], "--max-model-len", "256")
    flags = (*QUICK, "--num-gpu-blocks", "24")

    async def test_requests_that_do_not_fit_are_preempted_and_still_finish(self):
        async def work():
            return await asyncio.gather(*(
                self.http.stream_complete(f"request {i}", max_tokens=150, ignore_eos=True,
                                          return_token_ids=True) for i in range(6)))
        a, b, streams = await self.change(work())
        self.assertEqual([len(s.tokens) for s in streams], [150] * 6)
        self.assertGreater(total(b, "vllm:num_preemptions"), total(a, "vllm:num_preemptions"))
        self.assertEqual(total(b, "vllm:generation_tokens")
                         - total(a, "vllm:generation_tokens"), 900)
        self.assertEqual(value(b, "vllm:kv_cache_usage_perc"), 0)


class HostMemory(MetricsTest):
    """A GPU of 23 blocks forgets each prompt before it comes again; the host does not."""
    model = (*TINY[:3], "--max-model-len", "352")
    flags = (*QUICK, "--num-gpu-blocks", "24", "--kv-offloading-size", "0.1",
             "--otlp-traces-endpoint", "file:moved.jsonl")

    async def load(self):
        for _ in range(2):
            for k in range(4):
                await self.http.complete([100 * k + i for i in range(320)], max_tokens=2,
                                         ignore_eos=True)

    async def test_loads_and_stores_are_told_as_vllm_does(self):
        a, b, _ = await self.change(self.load())

        def grown(f, how=total, **labels):
            return how(b, f, **labels) - how(a, f, **labels)

        self.assertEqual(grown("vllm:external_prefix_cache_queries"), 8 * 320)
        self.assertEqual(grown("vllm:external_prefix_cache_hits"), 4 * 320)
        self.assertEqual(grown("vllm:prompt_tokens_by_source",
                               source="external_kv_transfer"), 4 * 320)
        self.assertEqual(grown("vllm:kv_offload_load_size", count), 4)
        self.assertEqual(grown("vllm:kv_offload_store_bytes"),
                         grown("vllm:kv_offload_load_bytes"))
        self.assertEqual(grown("vllm:kv_offload_total_bytes", transfer_type="CPU_to_GPU"),
                         grown("vllm:kv_offload_load_bytes"))
        self.assertGreater(grown("vllm:kv_offload_load_time"), 0)
        await until("transfers as events", lambda: self.told("kv.TransferCompleted") == 8)
        self.assertEqual(self.told("kv.CacheStoreCommitted"), 4)

    def told(self, name):
        try:
            with open("moved.jsonl") as f:
                return f.read().count(f'"{name}"')
        except FileNotFoundError:
            return 0


class Pauses(MetricsTest):
    flags = STEADY

    async def stream(self, n=40):
        s = Stream()
        task = asyncio.create_task(self.http.stream_complete(
            max_tokens=n, ignore_eos=True, return_token_ids=True, into=s))
        await until("it streams", lambda: len(s.at) > 3)
        return s, task

    async def test_sleep_and_wake_up(self):
        async def sleeping():
            return (await self.http.get("/is_sleeping")).json["is_sleeping"]
        self.assertFalse(await sleeping())
        for level, state in ((1, "weights_offloaded"), (2, "discard_all")):
            self.assertEqual((await self.http.post(f"/sleep?level={level}")).status, 200)
            self.assertTrue(await sleeping())
            f = await self.families()
            self.assertEqual(value(f, "vllm:engine_sleep_state", sleep_state=state), 1)
            self.assertEqual(value(f, "vllm:engine_sleep_state", sleep_state="awake"), 0)
            self.assertEqual((await self.http.post("/wake_up")).status, 200)
            self.assertFalse(await sleeping())
            self.assertEqual((await self.http.complete(max_tokens=3)).status, 200)
        f = await self.families()
        self.assertEqual(value(f, "vllm:engine_sleep_state", sleep_state="awake"), 1)

    async def test_a_request_to_a_sleeper_waits_until_it_wakes(self):
        await self.http.post("/sleep?level=1")
        task = asyncio.create_task(self.http.complete(max_tokens=3, ignore_eos=True))
        await asyncio.sleep(0.2)
        self.assertFalse(task.done())
        await self.http.post("/wake_up?tags=weights")
        await asyncio.sleep(0.1)
        self.assertFalse(task.done())
        await self.http.post("/wake_up?tags=kv_cache")
        self.assertEqual((await task).json["usage"]["completion_tokens"], 3)

    async def test_a_pause_that_keeps_requests(self):
        s, task = await self.stream(100)
        a = await self.http.post("/pause?mode=keep")
        self.assertEqual((a.status, a.json), (200, {"status": "paused"}))
        self.assertEqual((await self.http.get("/is_paused")).json, {"is_paused": True})
        await asyncio.sleep(0.1)
        had = len(s.tokens)
        await asyncio.sleep(0.2)
        self.assertEqual(len(s.tokens), had)
        self.assertEqual((await self.http.post("/resume")).json, {"status": "resumed"})
        await task
        self.assertEqual(len(s.tokens), 100)
        self.assertEqual((await self.http.get("/is_paused")).json, {"is_paused": False})

    async def test_a_pause_that_waits_is_answered_when_all_that_runs_has_ended(self):
        for query, line in (("mode=wait", {"status": "paused"}),
                            ("wait_for_inflight_requests=true", {"status": "paused"})):
            s, task = await self.stream(100)
            pause = asyncio.create_task(self.http.post(f"/pause?{query}&clear_cache=false"))

            async def paused():
                return (await self.http.get("/is_paused")).json == {"is_paused": True}
            await until("it pauses", paused)
            later = asyncio.create_task(self.http.complete(max_tokens=3))
            self.assertFalse(pause.done())
            a = await pause
            self.assertEqual((a.status, a.json), (200, line))
            self.assertEqual((len(s.tokens), s.finish), (100, "length"))
            await task
            await asyncio.sleep(0.1)
            self.assertFalse(later.done())
            await self.http.post("/resume")
            self.assertEqual((await later).json["usage"]["completion_tokens"], 3)
        a = await self.http.post("/pause?mode=wait")  # nothing runs: at once
        self.assertEqual(a.status, 200)
        await self.http.post("/resume")

    async def test_who_waits_for_a_pause_may_leave(self):
        s, task = await self.stream(60)
        x = await Exchange.open(self.port, "POST", "/pause?mode=wait", None, None)

        async def paused():
            return (await self.http.get("/is_paused")).json == {"is_paused": True}
        await until("it pauses", paused)
        x.close()
        await task
        self.assertEqual(len(s.tokens), 60)
        await self.http.post("/resume")
        self.assertEqual((await self.http.complete(max_tokens=3)).status, 200)

    async def test_a_sleep_may_wait_as_well(self):
        s, task = await self.stream(60)
        a = await self.http.post("/sleep?mode=wait")
        self.assertEqual((a.status, len(s.tokens)), (200, 60))
        self.assertEqual((await self.http.get("/is_sleeping")).json, {"is_sleeping": True})
        await task
        await self.http.post("/wake_up")

    async def test_a_pause_that_aborts_ends_requests_with_what_they_have(self):
        before = await self.http.metrics()
        s, task = await self.stream(2000)
        chats = [asyncio.create_task(self.http.stream_chat(max_tokens=1900, ignore_eos=True)),
                 asyncio.create_task(self.http.chat(max_tokens=1900, ignore_eos=True, n=2)),
                 asyncio.create_task(self.http.complete(max_tokens=1900, ignore_eos=True,
                                                        return_token_ids=True, logprobs=1))]
        await self.runs(5)
        await self.http.post("/pause?mode=abort")
        await task
        self.assertEqual((s.finish, s.done, s.error), ("abort", True, None))
        self.assertTrue(3 < len(s.tokens) < 2000)
        self.assertEqual(s.usage["completion_tokens"], len(s.tokens))
        streamed, two, one = await asyncio.gather(*chats)
        self.assertEqual((streamed.finish, streamed.done), ("abort", True))
        self.assertEqual((two.status, [c["finish_reason"] for c in two.json["choices"]]),
                         (200, ["abort", "abort"]))
        self.assertEqual((one.status, one.choice["finish_reason"]), (200, "abort"))
        n = one.json["usage"]["completion_tokens"]
        self.assertEqual((len(one.choice["token_ids"]), len(one.choice["logprobs"]["tokens"])),
                         (n, n))
        await self.http.post("/resume")
        self.assertEqual((await self.http.complete(max_tokens=3)).status, 200)
        after = await self.http.metrics()
        self.assertEqual(after("request_success_total", finished_reason="abort")
                         - before("request_success_total", finished_reason="abort"), 5)

    async def test_one_that_has_nothing_yet_says_so(self):
        await self.http.post("/pause?mode=keep")
        s = Stream()
        tasks = [asyncio.create_task(self.http.stream_chat(max_tokens=5)),
                 asyncio.create_task(self.http.stream_complete(max_tokens=5, into=s)),
                 asyncio.create_task(self.http.complete(max_tokens=5))]

        async def held():
            return (await self.http.get("/load")).json == {"server_load": 3}
        await until("three are held", held)
        await self.http.post("/pause?mode=abort")
        chat, stream, whole = await asyncio.gather(*tasks)
        self.assertEqual([chat.finish, stream.finish, whole.choice["finish_reason"]],
                         ["abort"] * 3)
        self.assertEqual(([chat.text, stream.text, whole.choice["text"]],
                          whole.json["usage"]["completion_tokens"]), ([""] * 3, 0))
        await self.http.post("/resume")

    async def test_a_mode_that_there_is_not(self):
        a = await self.http.post("/pause?mode=maybe")
        self.assertEqual((a.status, a.json["error"]["param"]), (400, "query.mode"))
        self.assertEqual((await self.http.get("/is_paused")).json, {"is_paused": False})

    async def test_requests_are_aborted_by_id(self):
        s = Stream()
        task = asyncio.create_task(self.http.stream_complete(
            max_tokens=2000, ignore_eos=True, headers={"X-Request-Id": "mine"}, into=s))
        await until("it streams", lambda: len(s.at) > 3)
        self.assertEqual(s.id, "cmpl-mine")
        a = await self.http.post("/abort_requests", {"request_ids": ["cmpl-mine", "nobody"]})
        self.assertEqual((a.status, a.json), (200, {"status": "aborted", "aborted": 2}))
        await task
        self.assertEqual((s.finish, s.done), ("abort", True))
        await self.idle()
        a = await self.http.post("/abort_requests", {})
        self.assertEqual((a.status, a.json["aborted"]), (200, 0))
        self.assertEqual((await self.http.post("/abort_requests", {"request_ids": 5})).status, 400)
        self.assertEqual((await self.http.post("/abort_requests", [1])).status < 500, True)


class Fixed(ServeTest):
    """A server whose doors for operators are shut."""
    flags = (*QUICK, "--no-dev-mode", "--no-runtime-lora-updating")

    async def test_there_are_no_such_routes(self):
        for method, path in (("POST", "/sleep"), ("POST", "/wake_up"), ("GET", "/is_sleeping"),
                             ("POST", "/reset_prefix_cache"), ("POST", "/pause"),
                             ("GET", "/server_info"), ("POST", "/v1/load_lora_adapter")):
            a = await self.http.ask(method, path)
            self.assertEqual((a.status, a.body), (404, b'{"detail":"Not Found"}'), path)


class Lateness(ServeTest):
    flags = STEADY

    async def test_a_machine_that_is_too_slow_is_told_of(self):
        s = Stream()
        task = asyncio.create_task(self.http.stream_complete(max_tokens=1900, ignore_eos=True,
                                                             into=s))
        await until("it streams", lambda: len(s.at) > 1)
        self.assertNotIn("too slow", self.server.log())
        end = time.monotonic() + 20  # as if others had the machine for most of the time
        while "too slow" not in self.server.log() and time.monotonic() < end:
            self.server.send(signal.SIGSTOP)
            await asyncio.sleep(0.4)
            self.server.send(signal.SIGCONT)
            await asyncio.sleep(0.02)
        self.assertRegex(self.server.log(), r"vtwin serve: this machine is too slow for the timing: "
                         r"of \d+ messages in [\d.]+ s \d+ left more than 50 ms late")
        text = (await self.http.get("/metrics")).body.decode()
        task.cancel()
        family = parsed(text)["vtwin:lateness_seconds"]
        sample = {(x.name, x.labels.get("le")): x.value for x in family.samples}
        n = sample["vtwin:lateness_seconds_count", None]
        self.assertGreater(n, 100)
        self.assertEqual(sample["vtwin:lateness_seconds_bucket", "+Inf"], n)
        self.assertLess(sample["vtwin:lateness_seconds_bucket", "0.05"], n / 2)
        self.assertGreater(sample["vtwin:lateness_seconds_sum", None], 0.05 * n / 2)
        self.assertTrue(text[:text.index("# HELP vtwin:lateness_seconds ")].endswith("\n"))
        self.assertNotIn("vllm:", text[text.index("vtwin:lateness_seconds"):])


class StoppedWhilePausing(AsyncTest):
    async def test_who_waits_is_told(self):
        server = Server(*STEADY, "--shutdown-timeout", "0.3")
        s = Stream()
        asked = [asyncio.create_task(server.http.stream_complete(max_tokens=1900, into=s,
                                                                 ignore_eos=True))]
        await until("it streams", lambda: len(s.at) > 1)
        asked.append(asyncio.create_task(server.http.post("/pause?mode=wait")))

        async def paused():
            return (await server.http.get("/is_paused")).json == {"is_paused": True}
        await until("it pauses", paused)
        await asyncio.to_thread(server.stop)
        self.assertEqual((await asked[1]).status, 503)
        await asyncio.gather(*asked)


class Flags(ServeTest):
    flags = (*QUICK, "--enable-request-id-headers", "--enable-force-include-usage",
             "--enable-prompt-tokens-details")

    async def test_each_does_what_it_says(self):
        prompt = list(range(200, 300))
        for cached in (0, 96):
            a = await self.http.complete(prompt, max_tokens=2, headers={"X-Request-Id": "abc"})
            self.assertEqual(a.headers["x-request-id"], "abc")
            self.assertEqual((a.json["usage"]["prompt_tokens_details"] or {})
                             .get("cached_tokens", 0), cached)
        x = await Exchange.open(self.port, "POST", "/v1/completions",
                                {"model": "tiny", "prompt": "one", "max_tokens": 3,
                                 "ignore_eos": True, "stream": True}, None)
        await x.head()
        events = [e async for e in x.events()]
        x.close()
        self.assertIsNone(events[-1])
        self.assertEqual(events[-2]["usage"]["completion_tokens"], 3)
        self.assertTrue(all("usage" in e for e in events[:-1]), events)


if __name__ == "__main__":
    main()
