"""Two servers: one prefills, the other pulls what it has computed and decodes."""
import asyncio
import json
import os

from serving import AsyncTest, Server, Sidecar, chat_body, free_port, main, until

PROMPT = list(range(100, 600))


def nixl(policy="fail", **extra):
    return json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both", "engine_id": "here",
                       "kv_load_failure_policy": policy, "kv_connector_extra_config": extra})


def engine(*flags, version="0.32.0", **extra):
    """500 tokens are 32 blocks of 64 KB: 200 ms on the way."""
    port = free_port()
    os.environ["VLLM_NIXL_SIDE_CHANNEL_PORT"] = str(port)
    server = Server("--kv-transfer-config", nixl(**extra), "--kv-bytes-per-token", "4096",
                    "--kv-transfer-gb-per-s", "0.01048576", "--kv-transfer-base-us", "0",
                    "--model", "linear:base=1000", "--num-gpu-blocks", "200",
                    "--enable-prompt-tokens-details", "--vllm-version", version, *flags)
    server.side = port
    return server


class PrefillDecode(AsyncTest):
    async def usage(self, server):
        return (await server.http.metrics())("kv_cache_usage_perc")

    async def test_a_sidecar_prefills_first(self):
        prefill, decode = engine(), engine()
        async with Sidecar(prefill.http, decode.http) as sidecar:
            for n in range(2):
                answer = await sidecar.http.complete(PROMPT, max_tokens=3)
                usage = answer.json["usage"]
                self.assertEqual(usage["completion_tokens"], 3, answer)
                # What the prefill found in its cache, not what was pulled.
                cached = (usage["prompt_tokens_details"] or {}).get("cached_tokens")
                self.assertEqual(cached or 0, 496 * n)
                self.assertIsNone(answer.json["kv_transfer_params"])
            told = sidecar.told[0].json["kv_transfer_params"]
            blocks = told.pop("remote_block_ids")
            self.assertEqual([len(x) for x in blocks], [32])
            self.assertTrue(told.pop("remote_request_id"))
            self.assertEqual(told, {
                "do_remote_prefill": True, "do_remote_decode": False, "remote_engine_id": "here",
                "remote_host": "localhost", "remote_port": prefill.side, "tp_size": 1,
                "dcp_size": 1, "pp_size": 1, "remote_num_tokens": 500,
                "remote_blocks_expiry_time": None, "transfer_mode": "pull",
                "remote_prefill_cached_tokens": 0})
            chat = await sidecar.http.post("/v1/chat/completions", {**chat_body("one two three"), "max_tokens": 2})
            self.assertEqual(chat.status, 200, chat)
            self.assertIsNotNone(sidecar.told[2].json["kv_transfer_params"])
        m = await decode.http.metrics()
        # Of the second prompt all but the last block was here.
        self.assertEqual(m("nixl_xfer_time_seconds_count"), 3)
        self.assertEqual(m("nixl_num_kv_expired_reqs_total"), 0)
        # The whole transfer is part of the first token's time.
        self.assertGreaterEqual(m("nixl_xfer_time_seconds_sum"), 0.2)
        self.assertGreaterEqual(m("time_to_first_token_seconds_sum"), 0.2)
        await until("blocks are given back", lambda: self.is_empty(prefill))
        prefill.stop()
        decode.stop()

    async def is_empty(self, server):
        return await self.usage(server) == 0

    async def test_blocks_are_reserved_and_kept_meanwhile(self):
        prefill, decode = engine(), engine()
        first = await prefill.http.complete(PROMPT, max_tokens=1,
                                            kv_transfer_params=Sidecar.FIRST)
        told = first.json["kv_transfer_params"]
        self.assertAlmostEqual(await self.usage(prefill), 32 / 199)
        task = asyncio.create_task(
            decode.http.complete(PROMPT, max_tokens=1, kv_transfer_params=told))
        await until("blocks are reserved", lambda: self.holds(decode, 32))
        self.assertAlmostEqual(await self.usage(prefill), 32 / 199)
        await task
        await until("blocks are given back", lambda: self.is_empty(prefill))
        prefill.stop()
        decode.stop()

    async def holds(self, server, blocks):
        return abs(await self.usage(server) - blocks / 199) < 1e-6

    async def test_leases_end(self):
        prefill, decode = engine(kv_lease_duration=1), engine()
        await prefill.http.complete(PROMPT, max_tokens=1, kv_transfer_params=Sidecar.FIRST)
        self.assertFalse(await self.is_empty(prefill))
        await until("blocks are given up", lambda: self.is_empty(prefill))
        m = await prefill.http.metrics()
        self.assertEqual(m("nixl_num_kv_expired_reqs_total"), 1)
        prefill.stop()
        decode.stop()

    async def test_who_pulls_too_late_is_told_of(self):
        prefill, decode = engine(kv_lease_duration=1), engine()
        first = await prefill.http.complete(PROMPT, max_tokens=1, kv_transfer_params=Sidecar.FIRST)
        await until("blocks are given up", lambda: self.is_empty(prefill))
        # Nobody checks: as in vLLM what is pulled may be anything.
        answer = await decode.http.complete(PROMPT, max_tokens=2,
                                            kv_transfer_params=first.json["kv_transfer_params"])
        self.assertEqual(answer.status, 200, answer)

        async def told():
            await prefill.http.complete([1, 2, 3], max_tokens=1)
            return (await prefill.http.metrics())("nixl_num_notifications_after_expiry_total") == 1
        await until("it was told late", told)
        prefill.stop()
        decode.stop()

    async def test_a_prefill_engine_that_is_gone(self):
        for policy in ("fail", "recompute"):
            with self.subTest(policy):
                prefill, decode = engine(), engine(policy=policy)
                begun = asyncio.get_running_loop().time()
                never = asyncio.create_task(decode.http.complete([9] * 20, max_tokens=2, kv_transfer_params={
                    "do_remote_prefill": True, "remote_engine_id": "x", "remote_request_id": "y",
                    "remote_host": "127.0.0.1", "remote_port": free_port()}))
                told = []
                for i in range(3):
                    first = await prefill.http.complete([i + 1] * 500, max_tokens=1,
                                                        kv_transfer_params=Sidecar.FIRST)
                    told.append(first.json["kv_transfer_params"])
                answer = await decode.http.complete([1] * 500, max_tokens=2, kv_transfer_params=told[0])
                self.assertEqual(answer.status, 200, answer)
                prefill.stop()
                whole, stream = await asyncio.gather(
                    decode.http.complete([2] * 500, max_tokens=2, kv_transfer_params=told[1]),
                    decode.http.complete([3] * 500, max_tokens=2, kv_transfer_params=told[2]))
                for answer in (whole, stream):
                    if policy == "fail":
                        self.assertEqual(answer.status, 500, answer)
                        self.assertEqual(answer.json["error"]["message"], "Internal server error")
                    else:
                        self.assertEqual(answer.status, 200, answer)
                        self.assertEqual(answer.json["usage"]["completion_tokens"], 2)
                m = await decode.http.metrics()
                self.assertEqual(m("nixl_num_failed_transfers_total"), 2)
                self.assertEqual(m("nixl_xfer_time_seconds_count"), 1)
                if policy == "recompute":  # a handshake is given up after five seconds
                    self.assertEqual((await never).status, 200)
                    self.assertGreaterEqual(asyncio.get_running_loop().time() - begun, 4.9)
                    self.assertEqual(await self.usage(decode), 0)
                decode.stop()

    async def test_without_a_connector_nothing_is_asked_of_others(self):
        server = Server("--model", "linear:base=1000")
        answer = await server.http.complete(PROMPT, max_tokens=1,
                                            kv_transfer_params=Sidecar.FIRST)
        self.assertIsNone(answer.json["kv_transfer_params"])
        server.stop()


if __name__ == "__main__":
    main()
