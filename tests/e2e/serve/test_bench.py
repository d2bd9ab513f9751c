"""vtwin bench serve against vtwin serve: as many tokens as were asked for, and result files
with the fields of vLLM's own."""
import json
import os
import subprocess

from serving import MODEL_DIR, ROOT, VTWIN, ServeTest, main


def fields(name):
    with open(os.path.join(ROOT, "tests/cases/bench", name)) as f:
        return json.load(f)


class Bench(ServeTest):
    flags = ("--model", "linear:base=1000")

    def bench(self, *flags):
        done = subprocess.run([VTWIN, "bench", "serve", "--base-url", self.url, "--model", "tiny",
                               "--tokenizer", MODEL_DIR, "--save-result", "--result-filename",
                               "result.json", *flags],
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        with open("result.json") as f:
            return done.stdout, json.load(f)

    def same_fields(self, got, expected):
        """All of vLLM's, in its order, and of its types; ours may have more behind them."""
        keys = [k for k in got if k in expected]
        self.assertEqual(keys, list(expected))
        for k in keys:
            kinds = {type(expected[k]), type(None)} if expected[k] is None else {type(expected[k])}
            if float in kinds:
                kinds.add(int)
            self.assertTrue(type(got[k]) in kinds or expected[k] is None,
                            (k, got[k], expected[k]))

    def test_random_prompts(self):
        table, got = self.bench(
            "--backend", "vllm", "--dataset-name", "random", "--random-input-len", "64",
            "--random-output-len", "24", "--num-prompts", "40", "--request-rate", "40", "--seed",
            "1", "--ignore-eos", "--percentile-metrics", "ttft,tpot,itl,e2el",
            "--metric-percentiles", "50,90,99", "--save-detailed")
        self.same_fields(got, fields("result.json"))
        self.assertEqual((got["completed"], got["failed"]), (40, 0))
        self.assertEqual(got["output_lens"], [24] * 40)
        # As with vLLM's: text of so many tokens may be another number of them again.
        self.assertTrue(all(64 <= n <= 70 for n in got["input_lens"]), got["input_lens"])
        self.assertGreater(got["input_lens"].count(64), 30)
        self.assertEqual((got["total_input_tokens"], got["total_output_tokens"]),
                         (sum(got["input_lens"]), 40 * 24))
        for row in ("Successful requests:", "Request throughput (req/s):", "P99 E2EL (ms):",
                    "Mean TTFT (ms):"):
            self.assertIn(row, table)

    def test_ids_are_exactly_as_many(self):
        _, got = self.bench("--random-input-len", "100", "--random-output-len", "7",
                            "--num-prompts", "20", "--prompt-token-ids", "--save-detailed")
        self.assertEqual((got["input_lens"], got["output_lens"]), ([100] * 20, [7] * 20))

    def test_chats(self):
        _, got = self.bench(
            "--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--dataset-name",
            "random", "--random-input-len", "48", "--random-output-len", "16", "--num-prompts",
            "16", "--max-concurrency", "4", "--seed", "2", "--ignore-eos")
        self.same_fields(got, fields("result-chat.json"))
        self.assertEqual((got["completed"], got["failed"]), (16, 0))
        self.assertEqual(got["total_output_tokens"], 16 * 16)


if __name__ == "__main__":
    main()
