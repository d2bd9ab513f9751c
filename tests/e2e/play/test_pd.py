"""Two engines behind two frontends: one prefills, the other decodes what it pulls."""
import asyncio
import json
import unittest

from peers import MINOR, Frontend, Play, Sidecar, free_port, main, until

PROMPT = list(range(100, 600))
NIXL = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both", "engine_id": "here",
                   "kv_connector_extra_config": {"kv_lease_duration": 3}})
# A block of 16 tokens is 64 KB; 500 tokens take 20 ms.
FLAGS = ("--kv-transfer-config", NIXL, "--kv-bytes-per-token", "4096", "--kv-transfer-gb-per-s",
         "0.1024", "--kv-transfer-base-us", "0", "--model", "linear:base=1000",
         "--num-gpu-blocks", "200")


class PrefillDecode(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)
        self.pair = []
        for _ in range(2):
            frontend = Frontend()
            port = free_port()
            play = Play(frontend.handshake, *FLAGS, "--step-stats-out", f"stats-{port}.jsonl",
                        env={"VLLM_NIXL_SIDE_CHANNEL_PORT": str(port)})
            self.pair.append((frontend, play, port))
        for frontend, _, _ in self.pair:
            await frontend.healthy()
        self.prefill, self.decode = (x[0].http for x in self.pair)

    async def asyncTearDown(self):
        for frontend, play, _ in self.pair:
            play.end()
            frontend.end()

    async def usage(self, http):
        return (await http.metrics())("kv_cache_usage_perc")

    async def test_what_one_prefills_the_other_decodes(self):
        async with Sidecar(self.prefill, self.decode) as sidecar:
            answer = await sidecar.http.complete(PROMPT, max_tokens=8, ignore_eos=True)
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(answer.json["usage"]["completion_tokens"], 8)
            first = sidecar.told[0].json
            self.assertEqual(first["usage"]["completion_tokens"], 1)
            told = first["kv_transfer_params"]
            self.assertEqual(told["do_remote_prefill"], True)
            self.assertEqual(told["do_remote_decode"], False)
            self.assertEqual([len(x) for x in told["remote_block_ids"]], [32])
            self.assertEqual(told["remote_num_tokens"], 500)
            self.assertEqual(told["remote_engine_id"], "here")
            self.assertEqual(told["remote_port"], self.pair[0][2])
            self.assertEqual("transfer_mode" in told, MINOR >= 28)
            self.assertEqual(told.get("remote_prefill_cached_tokens"), 0 if MINOR >= 31 else None)
            chat = await sidecar.http.post("/v1/chat/completions", {
                "model": "tiny", "max_tokens": 4,
                "messages": [{"role": "user", "content": "one two three " * 40}]})
            self.assertEqual(chat.json["usage"]["completion_tokens"], 4, chat)
            self.assertIsNotNone(sidecar.told[1].json["kv_transfer_params"])
        # The decoder computed one token of each prompt; the rest came from elsewhere.
        m = await self.decode.metrics()
        self.assertGreaterEqual(m("external_prefix_cache_hits_total"), 500)
        frontend, play, port = self.pair[1]
        play.end()
        with open(f"stats-{port}.jsonl") as f:
            told = [json.loads(line)["scheduler"]["kv_connector_stats"] for line in f]
        told = [x for x in told if x]
        self.assertEqual(sum(len(x["transfer_duration"]) for x in told), 2)
        self.assertEqual(sum(len(x["post_duration"]) for x in told), 2)
        self.assertGreaterEqual(sum(sum(x["bytes_transferred"]) for x in told), 32 * 65536)
        self.assertGreaterEqual(sum(sum(x["transfer_duration"]) for x in told), 0.02)
        self.assertEqual("num_failed_handshakes" in told[0], MINOR >= 31)

    async def test_blocks_are_kept_until_they_are_pulled(self):
        first = await self.prefill.complete(PROMPT, max_tokens=1,
                                            kv_transfer_params=Sidecar.FIRST)
        told = first.json["kv_transfer_params"]
        await self.prefill.complete([7] * 20, max_tokens=1)
        self.assertAlmostEqual(await self.usage(self.prefill), 32 / 199, places=3)
        await self.decode.complete(PROMPT, max_tokens=2, kv_transfer_params=told)

        async def given_back():
            await self.prefill.complete([7] * 20, max_tokens=1)
            return await self.usage(self.prefill) < 1e-6
        await until("blocks are given back", given_back)

    async def test_a_prefill_engine_that_is_gone(self):
        told = []
        for i in range(2):
            first = await self.prefill.complete([i + 1] * 500, max_tokens=1,
                                                kv_transfer_params=Sidecar.FIRST)
            told.append(first.json["kv_transfer_params"])
        answer = await self.decode.complete([1] * 500, max_tokens=2, kv_transfer_params=told[0])
        self.assertEqual(answer.status, 200, answer)
        self.pair[0][1].end()
        answer = await self.decode.complete([2] * 500, max_tokens=2, kv_transfer_params=told[1])
        self.assertEqual(answer.status, 500, answer)  # kv_load_failure_policy: fail
        m = await self.decode.metrics()
        self.assertEqual(m("request_success_total", finished_reason="error"), 1)

    async def test_blocks_that_nobody_pulls_are_given_up(self):
        await self.prefill.complete(PROMPT, max_tokens=1, kv_transfer_params=Sidecar.FIRST)

        async def given_up():
            await self.prefill.complete([7] * 20, max_tokens=1)
            return await self.usage(self.prefill) < 1e-6
        self.assertFalse(await given_up())
        await until("blocks are given up", given_up, 8)


if __name__ == "__main__":
    main()
