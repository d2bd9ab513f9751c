"""vtwin explore in a real browser: a slider moves, a preview comes, the final answer is capacity's,
links restore, files simulate to the same numbers."""
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import browser

VTWIN = os.environ["VTWIN"]
# A slow engine, short answers and one seed make short runs: the page is judged here, not the answer.
STATE = ["llama-3.1-70b", "--gpu", "A100-80", "--tensor-parallel-size", "4", "--random-input-len", "2048",
         "--random-output-len", "8", "--slo", "ttft-p99=4s", "--seeds", "1", "--tolerance", "0.2"]
DONE = "document.body.dataset.stage === 'done'"


def run(command):
    out = subprocess.run([VTWIN, *shlex.split(command)[1:]], capture_output=True, text=True, check=False)
    return json.loads(out.stdout)


class Explore(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # pylint: disable=consider-using-with
        cls.server = subprocess.Popen([VTWIN, "explore", "--port", "0", *STATE], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)
        cls.url = cls.server.stdout.readline().strip()
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.terminate()
        with cls.server.stdout:
            assert cls.server.wait(20) == 0

    def check(self, page):
        self.assertEqual(page.errors, [])
        self.assertLessEqual(page.overflow(), 0)

    def same_as_commands(self, page):
        """What is shown is what the commands that are shown print."""
        a = run(page.text("#capacity-line"))
        self.assertNotIn("--sketch", page.text("#capacity-line"))
        shown = page.eval("document.querySelector('#figures dd').firstChild.textContent")
        self.assertEqual(float(shown.replace(",", "")), float(f"{a['capacity']:.4g}"))
        self.assertIn("not all is borne" if a["binding"] == "rate" else f"{a['binding']} breaks", page.text("#sentence"))
        self.assertEqual(page.eval("document.querySelector('#serve').textContent"), a["vllm_serve"])
        p = run(page.text("#point-line"))
        shown = page.eval("[...document.querySelectorAll('#point-figures dd')].map(e => e.firstChild.textContent)")
        for value, want in ((shown[1], p["ttft_ms"]["p99"]), (shown[3], p["tpot_ms"]["p99"])):
            self.assertAlmostEqual(float(value.split()[0].replace(",", "")), want, delta=0.006 * want)
        return a, p

    def test_a_slider_moves(self):
        page = self.browser.open(self.url)
        page.wait(DONE, 120)
        a, _ = self.same_as_commands(page)
        self.assertEqual(a["settings"]["gpu"], "A100-80")
        page.eval("document.querySelector('#instances').focus()")
        page.key("ArrowRight")
        page.wait("document.body.dataset.stage === 'preview'", 60)
        self.assertIn("short runs", page.text("#stage"))
        self.assertTrue(page.text("#sentence").startswith("About "))
        page.wait(DONE, 120)
        self.assertIn("exactly what vtwin capacity prints", page.text("#stage"))
        self.assertIn("--instances 2", page.text("#capacity-line"))
        b, _ = self.same_as_commands(page)
        self.assertGreater(b["capacity"], 1.5 * a["capacity"])
        self.assertIn("8 × A100-80", page.text("#sentence"))
        self.assertIn("4 GPUs more", page.text("#more-note"))
        # Money is the page's own: it asks for nothing.
        page.eval("(e => { e.value = '3'; e.dispatchEvent(new Event('input', {bubbles: true})); })"
                  "(document.querySelector('[name=price]'))")
        self.assertIn("$24.00", page.text("#figures"))
        self.assertEqual(page.eval("document.body.dataset.stage"), "done")
        page.hover(*page.at("#chart-ttft svg", 0.5, 0.5))
        self.assertIn("p99", page.text("#chart-ttft .tip"))
        self.check(page)
        # The link restores all of it.
        other = self.browser.open(page.eval("location.href"))
        other.wait(DONE, 120)
        for what in ("#capacity-line", "#point-line", "#sentence", "#figures", "#more-note"):
            self.assertEqual(other.text(what), page.text(what), what)
        self.files(other)
        other.close()
        page.close()

    def files(self, page):
        with tempfile.TemporaryDirectory() as where:
            page.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=where)
            for name in ("workload.yaml", "profile.json", "report.html"):
                page.click(*page.middle(f'[data-file="{name}"]'))
                end = time.monotonic() + 60
                while not (pathlib.Path(where) / name).exists():
                    self.assertLess(time.monotonic(), end, page.text("#told"))
                    page.settle()
            again = run(f"vtwin simulate --workload {where}/workload.yaml --profile {where}/profile.json "
                        "--instances 2 --json")
            report = self.browser.open(f"{where}/report.html")
            self.assertEqual(report.errors, [])
            report.close()
        p = run(page.text("#point-line"))
        for key in ("requests", "duration_s", "ttft_ms", "tpot_ms", "e2e_ms", "output_tok_per_s"):
            self.assertEqual(again[key], p[key], key)

    def test_screens(self):
        for width in browser.WIDTHS.values():
            for dark in (False, True):
                page = self.browser.open(self.url, width=width, dark=dark)
                page.wait("document.body.dataset.point && document.querySelectorAll('#point-charts svg').length > 2", 120)
                self.check(page)
                if os.environ.get("VT_SHOTS"):
                    page.wait(DONE, 120)
                    page.screenshot(f"{os.environ['VT_SHOTS']}/explore-{width}{'-dark' if dark else ''}.png")
                page.close()

    def test_what_cannot_run_is_told(self):
        state = urllib.parse.urlencode({"model": "llama-3.1-70b", "gpu": "L4", "tensor-parallel-size": "1"})
        page = self.browser.open(f"{self.url}#{state}")
        page.wait("document.body.dataset.stage === 'failed'", 60)
        self.assertIn("no room for a KV cache", page.text("#sentence"))
        # A failure is no end: the next state is asked for. (The browser logs the status 400.)
        page.errors.clear()
        page.eval("(e => { e.value = 'H200'; e.dispatchEvent(new Event('input', {bubbles: true})); })"
                  "(document.querySelector('#gpu'))")
        page.eval("document.querySelector('#tensor-parallel-size').focus()")
        page.key("ArrowRight")
        page.wait("document.body.dataset.stage === 'preview'", 60)
        self.assertIn("2 × H200", page.text("#sentence"))
        page.close()


if __name__ == "__main__":
    browser.need_browser()
    unittest.main()
