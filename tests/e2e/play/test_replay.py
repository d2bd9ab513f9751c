"""Tokens and times of a recording come back through a real frontend."""
import asyncio
import json
import random
import statistics

from peers import FAST, PlayTest, STEADY, main, measured

EOS = 4091


def records(n=8):
    """Traces as record writes them: some in bursts, some ended by an EOS or otherwise."""
    dice = random.Random(1)
    for i in range(n):
        chunks = [dice.choice((1, 1, 2, 4)) for _ in range(30 + i)]
        tokens = [dice.randrange(200, 3000) for _ in range(1 + sum(chunks))]
        finish = ("length", "stop", "stop")[i % 3]
        if i % 3 == 1:
            tokens[-1] = EOS
        yield {"id": f"case-{i}", "prompt_tokens": 3, "output_tokens": len(tokens),
               "arrival_ms": 10 * i, "ttft_ms": 30 + 10 * i, "finish_reason": finish,
               "itl_ms": [dice.choice((4, 8, 25)) for _ in chunks], "itl_tokens": chunks,
               "output_token_ids": tokens}


def write(path, rows):
    with open(path, "w") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows)


class Tokens(PlayTest):
    play_flags = (*FAST, "--replay-tokens", "trace.jsonl", "--replay-match", "id")

    @classmethod
    def setUpClass(cls):
        cls.rows = list(records())
        write("trace.jsonl", cls.rows)
        super().setUpClass()

    async def detokenized(self, tokens):
        return (await self.http.post("/detokenize", {"model": "tiny", "tokens": tokens})).json[
            "prompt"]

    async def test_a_request_of_the_same_id_gets_the_same_answer(self):
        for row in self.rows:
            asked = dict(headers={"X-Request-Id": row["id"]}, max_tokens=1000)
            answer = await self.http.complete(return_token_ids=True, **asked)
            self.assertEqual(answer.choice["token_ids"], row["output_token_ids"])
            self.assertEqual(answer.choice["finish_reason"], row["finish_reason"])
            streamed = await self.http.stream_complete(**asked)
            self.assertEqual(streamed.text, answer.choice["text"])
            self.assertEqual(streamed.finish, row["finish_reason"])

    async def test_all_at_once(self):
        answers = await asyncio.gather(*(
            self.http.complete(headers={"X-Request-Id": row["id"]}, max_tokens=1000,
                               return_token_ids=True) for row in self.rows))
        self.assertEqual([a.choice["token_ids"] for a in answers],
                         [row["output_token_ids"] for row in self.rows])

    async def test_the_requests_own_limit_holds(self):
        answer = await self.http.complete(headers={"X-Request-Id": "case-1"}, max_tokens=7,
                                          return_token_ids=True)
        self.assertEqual(answer.choice["token_ids"], self.rows[1]["output_token_ids"][:7])
        self.assertEqual(answer.choice["finish_reason"], "length")

    async def test_a_request_that_is_not_in_the_trace_is_served_all_the_same(self):
        answer = await self.http.complete(headers={"X-Request-Id": "stranger"}, max_tokens=9)
        self.assertEqual(answer.json["usage"]["completion_tokens"], 9)


class TokensByIndex(PlayTest):
    play_flags = (*FAST, "--replay-tokens", "trace.jsonl")

    @classmethod
    def setUpClass(cls):
        cls.rows = list(records())
        write("trace.jsonl", reversed(cls.rows))  # the index counts arrivals
        super().setUpClass()

    async def test_the_number_at_the_end_of_an_id_names_the_record(self):
        for i, row in enumerate(self.rows):
            answer = await self.http.complete(headers={"X-Request-Id": f"replay-{i}"},
                                              max_tokens=row["output_tokens"],
                                              return_token_ids=True)
            self.assertEqual(answer.choice["token_ids"], row["output_token_ids"])


class Steps(PlayTest):
    play_flags = (*STEADY, "--replay-steps", "trace.jsonl", "--replay-tokens", "trace.jsonl",
                  "--replay-match", "id")

    @classmethod
    def setUpClass(cls):
        cls.rows = list(records())
        write("trace.jsonl", cls.rows)
        super().setUpClass()

    async def test_chunks_come_when_they_came_whatever_else_runs(self):
        await measured(self.replay_all)
        await self.idle()
        m = await self.http.metrics()
        self.assertGreater(m("request_prefill_time_seconds_sum"), 0.5)

    async def replay_all(self):
        streams = await asyncio.gather(*(
            self.http.stream_complete(headers={"X-Request-Id": row["id"]}, max_tokens=1000,
                                      return_token_ids=True) for row in self.rows))
        # Seconds beside the record. A busy machine delays what a client reads, now here, now
        # there, and never hastens it: the least delay of a part is the engine's own.
        starts, drifts, gaps = [], [], {}
        for s, row in zip(streams, self.rows):
            self.assertEqual(s.tokens, row["output_token_ids"])
            self.assertEqual(s.finish, row["finish_reason"])
            self.assertEqual(s.sizes, [1, *row["itl_tokens"]])
            late = [sum(s.gaps[:i]) + s.ttft - (sum(row["itl_ms"][:i]) + row["ttft_ms"]) / 1e3
                    for i in range(len(s.sizes))]
            part = len(late) // 4
            starts.append(min(late[:part]))
            drifts.append(min(late[-part:]) - starts[-1])
            for gap, was in zip(s.gaps, row["itl_ms"]):
                gaps.setdefault(was, []).append(gap - was / 1e3)
        for was, off in gaps.items():
            self.assertAlmostEqual(statistics.median(off), 0, delta=0.005, msg=f"{was} ms")
        self.assertAlmostEqual(statistics.median(drifts), 0, delta=0.01)
        self.assertGreater(min(starts), 0)
        self.assertLess(statistics.median(starts), 0.03)


class Dataset(PlayTest):
    """Answers of a dataset, found by the prompt."""

    play_flags = (*FAST, "--replay-tokens", "data.jsonl", "--replay-match", "prefix")
    rows = {"Which model configuration does the scheduler use today?": "The default one.",
            "How many blocks are there in a request of this size?": "As many as it needs."}

    @classmethod
    def setUpClass(cls):
        write("data.jsonl", ({"prompt": q, "response": a} for q, a in cls.rows.items()))
        super().setUpClass()

    async def test_a_chat_with_the_prompt_gets_its_answer(self):
        for question, wanted in self.rows.items():
            answer = await self.http.chat(question, max_tokens=200)
            said = answer.choice["message"]
            self.assertEqual((said.get("content") or said.get("reasoning")).strip(), wanted)
            self.assertEqual(answer.choice["finish_reason"], "stop")
            plain = await self.http.complete(question, max_tokens=200)
            self.assertEqual(plain.choice["text"], wanted)


class Lengths(PlayTest):
    """A trace that times requests also ends them."""

    play_flags = ("--latency-trace", "trace.jsonl", "--time-scale", "5")

    @classmethod
    def setUpClass(cls):
        cls.rows = list(records(40))
        write("trace.jsonl", cls.rows)
        super().setUpClass()

    async def test_requests_end_by_themselves_unless_they_ignore_it(self):
        answers = await asyncio.gather(*(self.http.complete(f"q {i}", max_tokens=2000)
                                         for i in range(20)))
        self.assertEqual({a.choice["finish_reason"] for a in answers}, {"stop"})
        lengths = [a.json["usage"]["completion_tokens"] for a in answers]
        recorded = [row["output_tokens"] for row in self.rows]
        self.assertGreaterEqual(min(lengths), min(recorded))
        self.assertLessEqual(max(lengths), max(recorded))
        self.assertGreater(len(set(lengths)), 5)
        on = await self.http.complete(max_tokens=max(recorded) + 50, ignore_eos=True)
        self.assertEqual(on.json["usage"]["completion_tokens"], max(recorded) + 50)


if __name__ == "__main__":
    main()
