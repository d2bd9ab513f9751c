"""A page of each command in a real browser: at both widths, light and dark, on paper."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import browser

ROOT = pathlib.Path(os.environ.get("VT_ROOT", pathlib.Path(__file__).parents[3]))
VTWIN = os.environ.get("VTWIN", str(ROOT / "build/dev/vtwin"))
TRUTH = ROOT / "tests/cases/validate/truth"
SHORT = ["--quiet", "--num-prompts", "150"]
MOST_BYTES = 300_000

# The page, the commands that make it, the charts that it must have.
PAGES = {
    "simulate": (["simulate", *SHORT, "--slo", "ttft-p99=5s,tpot-p99=1s", "--report", "simulate.html"],
                 ["cdf-ttft_ms", "cdf-tpot_ms", "cdf-itl_ms", "cdf-e2e_ms", "queues", "kv", "batch", "throughput"]),
    "fleet": (["simulate", *SHORT, "--instances", "3", "--request-rate", "40", "--num-gpu-blocks-override", "700",
               "--max-model-len", "8192", "--report", "fleet.html"],
              ["queues", "lanes-running", "lanes-kv", "preempted"]),
    "compared": (["simulate", "--quiet", "--trace", "one/requests.jsonl", "--compare", "--report", "compared.html"],
                 ["cdf-ttft_ms", "queues", "both-in-flight"]),
    "capacity": (["capacity", *SHORT, "--once", "--seeds", "1", "--tolerance", "0.2", "--report", "capacity.html"],
                 ["load-ttft", "load-tpot", "load-itl", "load-output"]),
    "tune": (["tune", *SHORT, "--max-num-seqs", "8,64", "--max-num-batched-tokens", "2048,8192", "--report", "tune.html"],
             ["pareto"]),
    "compare": (["compare", "one", "two", "--report", "compare.html"],
                ["differences", "cdf-ttft_ms", "both-queues"]),
    "validate": (["validate", "--quiet", "--data-dir", str(TRUTH), "--output-dir", "results", "--clock", "client",
                  "--max-requests", "12", "--adapters", "vtwin-step", "--report", "validate.html"],
                 ["mape"]),
    "bench": (["bench", "serve", "--num-prompts", "20", "--random-input-len", "32", "--random-output-len", "8",
               "--slo", "ttft-p99=5s", "--report", "bench.html"],
              ["cdf-ttft_ms", "throughput", "in-flight"]),
    "sweep": (["bench", "sweep", "--rates", "40,80", "--num-prompts", "20", "--random-input-len", "32",
               "--random-output-len", "8", "--output-dir", "sweep", "--report", "sweep.html"],
              ["load-ttft", "load-output"]),
}


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.browser = browser.Browser()
        cls.vtwin("simulate", *SHORT, "--out", "one")
        cls.vtwin("simulate", *SHORT, "--out", "two", "--max-num-seqs", "4")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.dir.cleanup()

    @classmethod
    def vtwin(cls, *args):
        done = subprocess.run([VTWIN, *args], cwd=cls.dir.name, capture_output=True, text=True, timeout=200, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{args}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def make(self, kind):
        args, _ = PAGES[kind]
        if args[0] == "bench":
            with subprocess.Popen([VTWIN, "serve", "--port", "0", "--latency", "null"], cwd=self.dir.name,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
                try:
                    url = None
                    for line in server.stdout:
                        found = re.search(r"http://127\.0\.0\.1:\d+", line)
                        if found:
                            url = found.group()
                            break
                    self.vtwin(*args, "--base-url", url)
                finally:
                    server.terminate()
        else:
            self.vtwin(*args)
        return pathlib.Path(self.dir.name) / args[args.index("--report") + 1]

    def look(self, kind, path):
        _, charts = PAGES[kind]
        self.assertLess(path.stat().st_size, MOST_BYTES)
        page = self.browser.open(path)
        ids = page.eval("[...document.querySelectorAll('[id]')].map(e => e.id).sort().join(' ')").split()
        self.assertEqual(len(ids), len(set(ids)), ids)
        self.use(page, charts[0])
        for name, width in browser.WIDTHS.items():
            page.resize(width)
            for dark in (False, True):
                page.media(dark)
                self.assertLessEqual(page.overflow(), 0, (kind, width))
                for chart in charts:
                    self.assertGreater(page.box(f"#{chart} svg")[3], 60, chart)
                self.assertEqual(page.errors, [], (kind, width, dark))
                shots = os.environ.get("VT_SCREENSHOTS")
                if shots:
                    page.screenshot(pathlib.Path(shots) / f"{kind}-{name}-{'dark' if dark else 'light'}.png")
        page.close()

    def use(self, page, chart):
        """Values, the legend, zoom, paper."""
        at = (0.7, 0.5) if chart not in ("differences", "mape") else (0.9, 0.4)
        page.hover(*page.at(f"#{chart} svg", *at))
        self.assertRegex(page.text(f"#{chart} .tip"), r"\d")
        page.hover(2, 2)
        shapes = f"document.querySelectorAll('#{chart} svg .line, #{chart} svg .bar, #{chart} svg .dot').length"
        for button in [f"#{chart} .legend button"] if page.text(f"#{chart} .legend") else []:
            before = page.eval(shapes)
            page.click(*page.middle(button))
            self.assertLess(page.eval(shapes), before)
            page.click(*page.middle(button))
            page.hover(2, 2)
            self.assertEqual(page.eval(shapes), before)
        if chart not in ("differences", "mape"):
            x, y = page.at(f"#{chart} svg", 0.4)
            page.drag(x, y, page.at(f"#{chart} svg", 0.7)[0], y)
            self.assertIn("reset", page.text(f"#{chart} .tools"))
            page.click(*page.middle(f"#{chart} .tools button"))
            self.assertEqual(page.text(f"#{chart} .tools"), "")
        page.media(dark=True, paper=True)
        self.assertEqual(page.eval("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        page.media()
        self.assertEqual(page.errors, [])


def add_test(kind):
    def test(self):
        self.look(kind, self.make(kind))
    setattr(Pages, f"test_{kind}", test)


for each in PAGES:
    add_test(each)


if __name__ == "__main__":
    browser.need_browser()
    unittest.main()
