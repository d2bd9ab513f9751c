"""/metrics of the frontend says what it says of a real engine."""
import asyncio
import os

from peers import FAST, PlayTest, ROOT, STEADY, VERSION, main, until


def real_families():
    """What a real engine's page showed after traffic of the same kinds. Of releases between
    the two that were recorded: what both showed."""
    place = os.path.join(ROOT, "tests/cases/play")
    own = f"metrics-{VERSION}.txt"
    pages = [own] if os.path.exists(os.path.join(place, own)) else sorted(os.listdir(place))
    shown = []
    for page in pages:
        with open(os.path.join(place, page)) as f:
            shown.append(set(f.read().split()))
    return set.intersection(*shown)


class Traffic(PlayTest):
    play_flags = (*STEADY, "--fail-first", "1")

    async def test_every_family_that_a_real_engine_fills_is_filled(self):
        long = " ".join(f"word{i}" for i in range(300))
        failed = await self.http.complete(max_tokens=2)
        self.assertEqual(failed.status, 500)
        over = asyncio.Event()
        peak = asyncio.create_task(self.watch_load(over))
        streams = await asyncio.gather(*(
            self.http.stream_chat(f"{long} {i % 4}", max_tokens=80 + i, ignore_eos=True)
            for i in range(20)))
        over.set()
        again = await self.http.stream_chat(f"{long} 0", max_tokens=10, ignore_eos=True)
        m = await self.http.metrics()
        tokens = sum(s.usage["completion_tokens"] for s in [*streams, again])
        prompt = sum(s.usage["prompt_tokens"] for s in [*streams, again])
        self.assertEqual(m("generation_tokens_total"), tokens)
        self.assertEqual(m("request_generation_tokens_sum"), tokens)
        self.assertEqual(m("prompt_tokens_total"), prompt)
        self.assertEqual(m("prefix_cache_queries_total"), prompt)
        self.assertGreater(m("prefix_cache_hits_total"), prompt / 3)
        self.assertEqual(m("prefix_cache_hits_total"), m("prompt_tokens_cached_total"))
        running, usage = await peak
        self.assertGreater(running, 10)
        self.assertGreater(usage, 0)

        await self.http.complete(max_tokens=50, allowed_token_ids=[7], stop_token_ids=[7])
        await self.http.stream_chat(max_tokens=2000, ignore_eos=True, cut_after=2)
        await self.idle()
        m = await self.http.metrics()
        self.assertEqual(real_families() - m.nonzero(), set())

    async def watch_load(self, over):
        running, usage = 0, 0
        while not over.is_set():
            m = await self.http.metrics()
            running = max(running, m("num_requests_running"))
            usage = max(usage, m("kv_cache_usage_perc"))
            await asyncio.sleep(0.02)
        return running, usage


class Times(PlayTest):
    """Steps of 5 ms, one request at a time: all times are known."""

    play_flags = (*STEADY, "--max-num-batched-tokens", "1024", "--max-num-seqs", "1")

    async def grown(self, work):
        before = await self.http.metrics()
        await work
        await self.idle()
        after = await self.http.metrics()
        return lambda name: after(name) - before(name)

    async def test_prefill_takes_its_steps_and_decode_its_tokens(self):
        for prompt, steps in ((100, 1), (1500, 2), (3000, 3)):
            grown = await self.grown(self.http.complete(
                [(prompt + i) % 4000 for i in range(prompt)], max_tokens=31, ignore_eos=True))
            for name, wanted in (("request_prefill_time_seconds", 0.005 * steps),
                                 ("request_decode_time_seconds", 0.150),
                                 ("request_inference_time_seconds", 0.150 + 0.005 * steps),
                                 ("inter_token_latency_seconds", 0.150),
                                 ("request_time_per_output_token_seconds", 0.005)):
                self.assertAlmostEqual(grown(name + "_sum"), wanted, delta=1e-4, msg=name)
            self.assertEqual(grown("request_queue_time_seconds_count"), 1)
            self.assertEqual(grown("inter_token_latency_seconds_count"), 30)
            self.assertLess(grown("request_queue_time_seconds_sum"), 0.001)

    async def test_a_request_waits_in_the_queue_for_the_one_before_it(self):
        async def both():
            first = asyncio.create_task(self.http.complete(max_tokens=200, ignore_eos=True))
            await self.runs(1)
            await asyncio.gather(first, self.http.complete(max_tokens=1))
        grown = await self.grown(both())
        self.assertGreater(grown("request_queue_time_seconds_sum"), 0.1)
        self.assertLess(grown("request_queue_time_seconds_sum"), 1.0)


class Preemptions(PlayTest):
    play_flags = (*FAST, "--num-gpu-blocks", "41")  # of which one is never used

    async def test_a_small_pool_preempts_and_says_so(self):
        streams = await asyncio.gather(*(
            self.http.stream_complete(f"question {i}", max_tokens=150, ignore_eos=True)
            for i in range(8)))
        for s in streams:
            self.assertEqual((s.finish, s.usage["completion_tokens"]), ("length", 150))
        m = await self.http.metrics()
        self.assertGreater(m("num_preemptions_total"), 0)
        self.assertEqual(m("generation_tokens_total"), 8 * 150)
        await self.idle()

        async def empty():
            return (await self.http.metrics())("kv_cache_usage_perc") == 0
        await until("no block is in use", empty, 1)

    async def test_the_pool_bounds_what_a_request_may_ask_for(self):
        chat = await self.http.chat(max_tokens=None, ignore_eos=True)
        self.assertEqual((chat.status, chat.json["usage"]["total_tokens"]), (200, 640), chat)


class Drafts(PlayTest):
    play_flags = (*STEADY, "--num-speculative-tokens", "3", "--speculative-acceptance", "0.7")

    async def test_accepted_drafts_come_in_bursts_and_are_counted(self):
        s = await self.http.stream_complete(max_tokens=300, ignore_eos=True,
                                            return_token_ids=True)
        self.assertEqual(len(s.tokens), 300)
        m = await self.http.metrics()
        drafts, drafted = m("spec_decode_num_drafts_total"), m("spec_decode_num_draft_tokens_total")
        accepted = m("spec_decode_num_accepted_tokens_total")
        self.assertGreater(drafts, 0)
        self.assertAlmostEqual(drafted / drafts, 3, delta=0.1)
        # 0.7 + 0.49 + 0.343 of three on average, and one token beside them.
        self.assertAlmostEqual(accepted / drafts, 1.533, delta=0.4)
        self.assertAlmostEqual(len(s.at), 300 / (1 + accepted / drafts), delta=12)


if __name__ == "__main__":
    main()
