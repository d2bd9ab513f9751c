"""vtwin learn at a real frontend that tells how full the KV cache is, not how large."""
import subprocess

from peers import VTWIN, PlayTest, main


class Learn(PlayTest):
    play_flags = ("--latency", "linear:base=3000", "--num-gpu-blocks", "777")

    def test_the_kv_cache_is_measured(self):
        # What it learns then is judged in virtual time (learn/test_learn): here it has no
        # time for more than the first look.
        run = subprocess.run(
            [VTWIN, "learn", "--base-url", f"http://127.0.0.1:{self.frontend.port}", "-o",
             "mine.json", "--seconds", "1", "--max-concurrency", "4"],
            capture_output=True, text=True)
        self.assertIn("777 KV blocks of 16 tokens", run.stderr)
        self.assertIn("1 s are too short", run.stderr)


if __name__ == "__main__":
    main()
