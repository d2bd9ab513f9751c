"""An engine that keeps KV blocks in the host's memory: what its statistics say, and what the
frontend makes of them. (No Rust frontend shows vllm:kv_offload_*; Python's do, tests/real.)"""
import json
import unittest

from peers import MINOR, VERSION, Frontend, Play, main

STATS = "step-stats.jsonl"
NAME = "vllm:kv_offload_"


def total(steps, name):
    """Of a counter, or the observations of a histogram."""
    told = [s["data"][NAME + name]["90"] for s in steps if NAME + name in s["data"]]
    return sum(len(x) if isinstance(x, list) else x for x in told)


class Offload(unittest.IsolatedAsyncioTestCase):
    async def test_transfers_are_told(self):
        frontend = Frontend()
        play = Play(frontend.handshake, "--kv-offloading-size", "1", "--gpu", "H100", "--latency",
                    "linear:base=1000", "--num-gpu-blocks", "60", "--max-model-len", "900",
                    "--vllm-version", VERSION, "--step-stats-out", STATS)
        await frontend.healthy()
        for _ in range(2):  # what comes again is in the host's memory only
            for i in range(4):
                answer = await frontend.http.complete(
                    list(range(100 + 400 * i, 500 + 400 * i)), max_tokens=4, ignore_eos=True)
                self.assertEqual(answer.status, 200, answer)
        m = await frontend.http.metrics()
        self.assertEqual(m("external_prefix_cache_hits_total"), 1600)
        if MINOR >= 32:
            self.assertEqual(m("prompt_tokens_cached_by_source_total", source="host"), 1600)
        play.end()
        frontend.end()
        self.assertIn("vtwin play: request ", play.log())
        with open(STATS) as f:
            all_stats = [json.loads(line)["scheduler"] for line in f]
        steps = [s["kv_connector_stats"] for s in all_stats if s["kv_connector_stats"]]
        self.assertEqual(total(steps, "load_size"), 4)
        self.assertEqual(total(steps, "store_size"), 4)
        self.assertEqual(total(steps, "cpu_allocation_size"), 4)
        self.assertEqual(total(steps, "lookup_sync_delay_seconds"), 8)
        self.assertEqual(total(steps, "load_bytes"), total(steps, "store_bytes"))
        self.assertGreater(total(steps, "load_time"), 0)
        for s in steps:
            self.assertEqual(set(s["types"]), set(s["data"]))
        if MINOR >= 32:
            stages = [s["num_kv_fetch_reqs_by_stage"] for s in all_stats]
            self.assertEqual(sum(x["in_progress"] + x["completed_waiting"] for x in stages) >= 4, True)
            found = [s["connector_prefix_cache_stats"]["hits_by_source"] for s in all_stats]
            self.assertEqual(sum(x.get("host", 0) for x in found), 1600)
            self.assertEqual({k for x in found for k in x}, {"host"})


if __name__ == "__main__":
    main()
