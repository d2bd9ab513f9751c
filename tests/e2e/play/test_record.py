"""vtwin record between a real frontend and vtwin play."""
import asyncio
import gzip
import json
import os
import signal
import unittest

from peers import (Frontend, Play, Process, STEADY, VTWIN, free_port, main, mixture_of_experts,
                   until)


class Record(Process):
    """vtwin record, for the frontend at a handshake port; engines come to its own."""

    def __init__(self, frontend, *flags, trace="trace.jsonl"):
        self.handshake, self.trace = free_port(), trace
        super().__init__("record", [
            VTWIN, "record", "--frontend-handshake", f"tcp://127.0.0.1:{frontend}",
            "--engine-handshake", f"tcp://127.0.0.1:{self.handshake}", "--trace-out", trace,
            "--overwrite", "--record-tokens", *flags])

    def rows(self):
        """Requests by their external id, as far as they are written."""
        if not os.path.exists(self.trace):
            return {}
        with open(self.trace) as f:
            lines = [json.loads(line) for line in f if line.endswith("\n")]
        return {row["external_id"]: row for row in lines[1:]}

    def meta(self):
        with open(self.trace) as f:
            return json.loads(f.readline())["meta"]


class RecordTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)
        Process.shown.clear()

    async def asyncTearDown(self):
        for p in Process.shown:
            p.end(signal.SIGKILL)

    async def trio(self, *flags, engines=1, play_flags=(), **options):
        frontend = Frontend(engines=engines, **options)
        record = Record(frontend.handshake, *flags)
        count = ["--engine-count", str(engines)] if engines > 1 else []
        play = Play(record.handshake, *STEADY, *count, *play_flags)
        await frontend.healthy()
        return frontend, record, play

    async def streams(self, frontend, n, **fields):
        fields = {"max_tokens": 20, "ignore_eos": True, "return_token_ids": True, **fields}
        return await asyncio.gather(*(
            frontend.http.stream_complete(f"question {i}", headers={"X-Request-Id": f"r{i}"},
                                          **fields) for i in range(n)))

    def assert_rows(self, record, streams):
        """Every stream has its row, with the tokens that its client got."""
        rows = record.rows()
        for s in streams:
            self.assertEqual(s.status, 200)
            row = rows[s.id]
            self.assertEqual(row["output_token_ids"], s.tokens)
            self.assertEqual(row["finish_reason"], s.finish)
            self.assertEqual(row["prompt_tokens"], s.usage["prompt_tokens"])
            self.assertLessEqual(row["ttft_ms"], 1e3 * s.ttft + 1)

    async def healthy(self, frontend):
        self.assertEqual((await frontend.http.get("/health")).status, 200)


class Serving(RecordTest):
    async def test_200_streams_are_recorded_token_by_token(self):
        frontend, record, play = await self.trio("--wire-out", "wire.jsonl.gz",
                                                 "--step-stats-out", "stats.jsonl")
        streams = await self.streams(frontend, 200)
        await self.healthy(frontend)
        self.assertEqual(record.end(), 0)
        self.assertIn("200 requests written (0 aborted)", record.log())
        self.assert_rows(record, streams)
        self.assertEqual(len(record.rows()), 200)
        with gzip.open("wire.jsonl.gz", "rt") as f:
            kinds = [json.loads(line)["kind"] for line in f]
        self.assertEqual(kinds.count("ADD"), 200)
        self.assertEqual(set(kinds) - {"OUTPUTS/REQ", "OUTPUTS/STATS", "ADD"},
                         {"HELLO", "INIT", "INIT(rewritten by tap)", "REGISTER", "READY"})
        with open("stats.jsonl") as f:
            self.assertTrue(all("num_running_reqs" in json.loads(line)["scheduler"] for line in f))
        self.assertEqual(play.end(), 0)

    async def test_given_up_and_failing_requests_are_there_too(self):
        frontend, record, play = await self.trio()
        cut = await self.streams(frontend, 5, max_tokens=1000)  # queued behind nothing
        gone = await asyncio.gather(*(frontend.http.stream_complete(
            max_tokens=2000, ignore_eos=True, cut_after=3) for _ in range(5)))
        await until("they are aborted", lambda: len(record.rows()) == 10)
        await self.healthy(frontend)
        self.assertEqual(record.end(), 0)
        rows = record.rows()
        for s in gone:
            self.assertEqual((rows[s.id]["finish_reason"], rows[s.id]["aborted_by"]),
                             ("abort", "frontend"))
            self.assertGreaterEqual(rows[s.id]["output_tokens"], 3)
        self.assert_rows(record, cut)
        self.assertEqual(play.end(), 0)

    async def test_a_kill_loses_no_finished_request(self):
        frontend, record, play = await self.trio()
        for n in (1, 30):
            streams = await self.streams(frontend, n)
        await until("they are written", lambda: len(record.rows()) >= 30, 2)
        record.end(signal.SIGKILL)
        self.assert_rows(record, streams)

    async def test_the_meta_line_has_the_registration(self):
        frontend, record, play = await self.trio("--gpu", "H200", "--vllm-version",
                                                 os.environ.get("VT_FRONTEND", "0.26.0"),
                                                 play_flags=("--vllm-line",
                                                             os.environ["VT_FRONTEND"][:4]))
        await self.streams(frontend, 1)
        self.assertEqual(record.end(), 0)
        meta = record.meta()
        self.assertEqual((meta["source"], meta["gpu"], meta["engines"]), ("tap", "H200", 1))
        self.assertIn(b"vllm_version", bytes.fromhex(meta["ready_response_hex"]))
        self.assertEqual(len(meta["config_hash"]), 64)


class Parallel(RecordTest):
    async def both_engines(self, frontend, record, play):
        streams = await self.streams(frontend, 40)
        await self.healthy(frontend)
        self.assertEqual(record.end(), 0)
        self.assert_rows(record, streams)
        engines = [row["engine_index"] for row in record.rows().values()]
        for e in (0, 1):
            self.assertGreaterEqual(engines.count(e), 10)
        self.assertEqual(record.meta()["engines"], 2)

    async def test_two_engines(self):
        await self.both_engines(*await self.trio(engines=2))

    async def test_two_engines_and_a_coordinator(self):
        model = mixture_of_experts()
        frontend, record, play = await self.trio(engines=2, model=model,
                                                 play_flags=("--wave-coordination",))
        self.assertIn("coordinator_mode=Some(InProc)", frontend.log())
        for _ in range(2):
            await self.streams(frontend, 10)
            await asyncio.sleep(0.5)  # until the wave is over
        await self.both_engines(frontend, record, play)


class Restarts(RecordTest):
    async def test_the_next_frontend_finds_recorder_and_engine(self):
        frontend, record, play = await self.trio()
        for how in (signal.SIGKILL, signal.SIGTERM):
            await self.streams(frontend, 5)
            cut = asyncio.gather(*(frontend.http.stream_complete(max_tokens=2000, ignore_eos=True)
                                   for _ in range(3)), return_exceptions=True)
            await asyncio.sleep(0.2)
            frontend.end(how)
            await cut
            frontend = Frontend(handshake=frontend.handshake)
            await frontend.healthy(30)
        streams = await self.streams(frontend, 5)
        self.assertEqual(record.end(), 0)
        self.assertEqual(len(streams), 5)
        with open(record.trace) as f:
            rows = [json.loads(line) for line in f][1:]
        self.assertEqual(len({row["id"] for row in rows}), len(rows))
        self.assertEqual(sum(row["finish_reason"] == "length" for row in rows), 15)
        self.assertEqual(sum(row["finish_reason"] == "abort" for row in rows), 6)
        self.assertEqual(play.end(), 0)

    async def test_an_engine_that_comes_back_goes_on(self):
        frontend, record, play = await self.trio(play_flags=("--session-file", "session"))
        await self.streams(frontend, 3)
        lost = [asyncio.create_task(frontend.http.stream_complete(max_tokens=2000, ignore_eos=True))
                for _ in range(3)]
        await asyncio.sleep(0.2)
        play.end(signal.SIGKILL)
        play = Play(record.handshake, *STEADY, "--session-file", "session")
        await until("it goes on", lambda: "going on" in play.log(), 5)
        streams = await self.streams(frontend, 3)
        for task in lost:
            task.cancel()
        self.assertEqual(record.end(), 0)
        rows = record.rows()
        self.assertEqual(sum(row.get("aborted_by") == "engine" for row in rows.values()), 3)
        self.assert_rows(record, streams)


class Stalls(RecordTest):
    async def test_each_of_three_may_sleep_for_a_while(self):
        frontend, record, play = await self.trio()
        for who in (record, play, frontend):
            task = asyncio.create_task(self.streams(frontend, 20, max_tokens=100))
            await asyncio.sleep(0.1)
            who.send(signal.SIGSTOP)
            await asyncio.sleep(0.5)
            who.send(signal.SIGCONT)
            for s in await task:
                self.assertEqual((s.finish, len(s.tokens)), ("length", 100))
        await self.healthy(frontend)
        self.assertEqual(record.end(), 0)
        with open(record.trace) as f:
            self.assertEqual(len(f.readlines()), 61)


if __name__ == "__main__":
    main()
