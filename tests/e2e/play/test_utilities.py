"""What a frontend asks of an engine beside tokens."""
import asyncio
import os

from peers import MINOR, PlayTest, STEADY, VERSION, main

PROMPT = list(range(100, 600))


class Utilities(PlayTest):
    async def ok(self, method, path, body=None):
        answer = await self.http.ask(method, path, body)
        self.assertEqual(answer.status, 200, (path, answer))
        return answer.json if answer.body else None

    async def cached(self):
        """Prompt tokens of a repeated prompt that the prefix cache knew."""
        before = await self.http.metrics()
        await self.http.complete(PROMPT, max_tokens=1)
        await self.idle()
        after = await self.http.metrics()
        return after("prefix_cache_hits_total") - before("prefix_cache_hits_total")

    async def test_reset_prefix_cache_forgets(self):
        await self.http.complete(PROMPT, max_tokens=1)
        self.assertEqual(await self.cached(), 496)
        self.assertEqual(await self.ok("POST", "/reset_prefix_cache"), {"success": True})
        self.assertEqual(await self.cached(), 0)

    async def test_reset_prefix_cache_is_refused_while_requests_run_unless_forced(self):
        running = asyncio.create_task(self.http.complete(max_tokens=200, ignore_eos=True))
        await self.runs(1)
        self.assertEqual(await self.ok("POST", "/reset_prefix_cache"), {"success": False})
        forced = await self.ok("POST", "/reset_prefix_cache?reset_running_requests=true")
        self.assertEqual(forced, {"success": True})
        self.assertEqual((await running).json["usage"]["completion_tokens"], 200)

    async def test_other_caches_are_reset(self):
        await self.ok("POST", "/reset_mm_cache")
        await self.ok("POST", "/reset_encoder_cache")

    async def test_pause_aborts_and_holds_until_resume(self):
        self.assertEqual(await self.ok("GET", "/is_paused"), {"is_paused": False})
        running = asyncio.create_task(self.http.stream_complete(max_tokens=1000, ignore_eos=True))
        await self.runs(1)
        await self.ok("POST", "/pause")
        self.assertEqual((await running).finish, "abort")
        self.assertEqual(await self.ok("GET", "/is_paused"), {"is_paused": True})
        held = asyncio.create_task(self.http.complete(max_tokens=3))
        await asyncio.sleep(0.2)
        self.assertFalse(held.done())
        await self.ok("POST", "/resume")
        self.assertEqual((await held).json["usage"]["completion_tokens"], 3)
        self.assertEqual(await self.ok("GET", "/is_paused"), {"is_paused": False})

    async def test_pause_in_mode_wait_lets_requests_end(self):
        running = asyncio.create_task(self.http.complete(max_tokens=120, ignore_eos=True))
        await self.runs(1)
        await self.ok("POST", "/pause?mode=wait")
        # That answer comes when the engine has come to rest.
        self.assertEqual((await self.http.metrics())("num_requests_running"), 0)
        self.assertEqual((await running).json["usage"]["completion_tokens"], 120)
        await self.ok("POST", "/resume")

    async def test_pause_in_mode_keep_freezes_requests(self):
        running = asyncio.create_task(self.http.stream_complete(
            max_tokens=100, ignore_eos=True, return_token_ids=True))
        await self.runs(1)
        await self.ok("POST", "/pause?mode=keep&clear_cache=false")
        await asyncio.sleep(0.4)
        self.assertFalse(running.done())
        await self.ok("POST", "/resume")
        s = await running
        self.assertEqual((s.finish, len(s.tokens)), ("length", 100))
        self.assertGreater(max(s.gaps), 0.3)

    async def test_sleep_ends_with_wake_up(self):
        for level in (0, 1, 2):
            await self.ok("POST", f"/sleep?level={level}")
            self.assertEqual(await self.ok("GET", "/is_sleeping"), {"is_sleeping": True})
            await self.ok("POST", "/wake_up")
            self.assertEqual(await self.ok("GET", "/is_sleeping"), {"is_sleeping": False})
        after = await self.http.complete(max_tokens=3)
        self.assertEqual(after.json["usage"]["completion_tokens"], 3)

    async def test_sleep_forgets_the_cache(self):
        await self.http.complete(PROMPT, max_tokens=1)
        await self.ok("POST", "/sleep?level=1")
        await self.ok("POST", "/wake_up")
        self.assertEqual(await self.cached(), 0)

    async def test_collective_rpc_is_answered_by_each_worker(self):
        answer = await self.ok("POST", "/collective_rpc", {"method": "check_health"})
        self.assertEqual(answer, {"results": [None, None]})

    async def test_abort_requests_ends_them(self):
        running = asyncio.create_task(self.http.stream_complete(max_tokens=1000, ignore_eos=True))
        await self.runs(1)
        await self.ok("POST", "/abort_requests", {})
        await asyncio.wait([running], timeout=2)
        self.assertTrue(running.done())
        await self.idle()

    async def test_facts_of_the_registration(self):
        self.assertEqual(await self.ok("GET", "/get_world_size"), {"world_size": 2})

    play_flags = (*STEADY, "--tensor-parallel-size", "2")


class BeforeAnyRequest(PlayTest):
    """The line is not yet known, unless it was stated."""

    play_flags = (*STEADY, "--vllm-line", ".".join(VERSION.split(".")[:2]))

    async def test_sleep_ends_with_wake_up(self):
        for path in ("/sleep", "/wake_up", "/pause", "/resume", "/reset_prefix_cache"):
            self.assertEqual((await self.http.post(path)).status, 200, path)


class Adapters(PlayTest):
    play_flags = (*STEADY, "--max-loras", "4")

    @classmethod
    def setUpClass(cls):
        os.environ["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "True"
        super().setUpClass()

    async def test_an_adapter_is_loaded_served_and_unloaded(self):
        load = await self.http.post("/v1/load_lora_adapter",
                                    {"lora_name": "poet", "lora_path": "someone/poet"})
        if load.status == 404 and MINOR == 26:
            self.skipTest("this frontend loads no adapters")
        self.assertEqual(load.status, 200, load)
        self.assertIn(b'"poet"', (await self.http.get("/v1/models")).body)
        plain = await self.http.complete("rhyme", temperature=0)
        rhymed = await self.http.post("/v1/completions", {
            "model": "poet", "prompt": "rhyme", "temperature": 0})
        self.assertEqual(rhymed.status, 200, rhymed)
        self.assertNotEqual(plain.choice["text"], rhymed.choice["text"])
        unload = await self.http.post("/v1/unload_lora_adapter", {"lora_name": "poet"})
        self.assertEqual(unload.status, 200, unload)
        self.assertNotIn(b'"poet"', (await self.http.get("/v1/models")).body)


if __name__ == "__main__":
    main()
