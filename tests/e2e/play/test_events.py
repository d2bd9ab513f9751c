"""Block events of an engine with several KV groups behind a real frontend, field by field."""
import asyncio
import os
import sys

from peers import FAST, MINOR, ROOT, SKIPPED, VERSION, PlayTest, free_port, main

try:
    from block_events import GPT_OSS, of_gpt_oss, replay
except ImportError:
    sys.exit(SKIPPED)  # without tools/fetch_clients


class Groups(PlayTest):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.replay = f"tcp://127.0.0.1:{port + 1}"
        cls.play_flags = (*FAST, "--num-gpu-blocks", "600", "--gpu", "H200",
                          "--hf-config", os.path.join(ROOT, GPT_OSS),
                          "--enable-kv-cache-events", "--block-hash-seed", "0", "--vllm-version", VERSION,
                          "--kv-events-endpoint", f"tcp://*:{port}",
                          "--kv-events-replay-endpoint", f"tcp://*:{port + 1}")
        super().setUpClass()

    async def test_each_group_is_told_of(self):
        want = []
        for first, n, salt in ((1000, 200, None), (1300, 40, None), (1000, 200, "pepper")):
            tokens = list(range(first, first + n))
            more = {"cache_salt": salt} if salt else {}
            answer = await self.http.complete(tokens, max_tokens=1, **more)
            self.assertEqual(answer.status, 200)
            want += of_gpt_oss(tokens, MINOR, salt)
        await self.idle()
        batches = await asyncio.to_thread(replay, self.replay)
        self.assertEqual([n for n, _, _ in batches], list(range(len(batches))))
        self.assertEqual({rank for _, _, rank in batches}, {0})
        told = [e for _, events, _ in batches for e in events]
        for event, wanted in zip(told, want):
            self.assertEqual(event, wanted)
        self.assertEqual(len(told), len(want))


if __name__ == "__main__":
    main()
