"""What play tells an OpenTelemetry collector of requests that come from a real frontend."""
import asyncio
import json
import subprocess
import sys

from peers import VERSION, VTWIN, PairTest, main

if VERSION != "0.32.0":
    sys.exit(0)  # nothing of it hangs on the line


def attributes(part):
    return {a["key"]: next(iter(a["value"].values())) for a in part["attributes"]}


class Spans(PairTest):
    async def test_journeys_and_steps_are_told(self):
        frontend, play = await self.pair("--otlp-traces-endpoint", "file:spans.jsonl")
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        answers = await asyncio.gather(*(frontend.http.complete(
            [i + 5] * (20 + 7 * i), max_tokens=10 + i, ignore_eos=True,
            headers={"traceparent": f"00-{trace}-{parent}-01"}) for i in range(20)))
        self.assertEqual([a.status for a in answers], [200] * 20)
        cut = await frontend.http.stream_complete(max_tokens=2000, ignore_eos=True, cut_after=3)
        self.assertIsNone(cut.finish)
        await asyncio.sleep(0.5)
        self.assertEqual(play.end(), 0)
        with open("spans.jsonl") as f:
            scopes = [s for line in f for r in json.loads(line)["resourceSpans"]
                      for s in r["scopeSpans"]]
        self.assertEqual({s["scope"]["name"] for s in scopes},
                         {"vllm.scheduler", "vllm.scheduler.step"})
        core = [s for scope in scopes if scope["scope"]["name"] == "vllm.scheduler"
                for s in scope["spans"]]
        self.assertEqual(len(core), 21)
        ends = []
        for s in core:
            events = {e["name"]: attributes(e) for e in s["events"]}
            self.assertLessEqual({"journey.QUEUED", "journey.SCHEDULED", "journey.FIRST_TOKEN",
                                  "journey.FINISHED"}, set(events))
            end = events["journey.FINISHED"]
            ends.append((int(end["prefill.total_tokens"]), int(end["decode.done_tokens"]),
                         end["finish.status"]))
        self.assertEqual(sorted(e for e in ends if e[2] == "length"),
                         [(20 + 7 * i, 10 + i, "length") for i in range(20)])
        self.assertEqual([e[2] for e in ends if e[2] != "length"], ["aborted"])
        done = subprocess.run([VTWIN, "fit", "--otlp", "spans.jsonl", "--kind", "regression",
                               "--beta-terms", "num_decode", "--warmup-steps", "0"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("alpha, QUEUED to SCHEDULED", done.stdout)


if __name__ == "__main__":
    main()
