"""page.js in a real browser: every kind of chart draws, tells values, toggles and zooms."""
import json
import os
import pathlib
import tempfile
import unittest

import browser

ROOT = pathlib.Path(os.environ.get("VT_ROOT", pathlib.Path(__file__).parents[3]))
X = [i * 0.5 for i in range(200)]
CHARTS = {
    "lines": {"kind": "lines", "title": "TTFT, all requests", "note": "Nine of ten are below 300 ms.",
              "x": {"label": "TTFT", "unit": "ms", "log": True},
              "y": {"label": "requests", "unit": "%", "min": 0, "max": 100},
              "series": [{"name": "simulated", "x": [10 * 1.05 ** i for i in range(100)], "y": list(range(1, 101))},
                         {"name": "measured", "x": [12 * 1.05 ** i for i in range(100)], "y": list(range(1, 101)), "dash": True}],
              "marks": [{"axis": "x", "at": 500, "label": "limit 500 ms"}]},
    "steps": {"kind": "steps", "title": "Requests", "x": {"label": "time", "unit": "s"}, "y": {"label": "requests"},
              "sync": "time",
              "series": [{"name": "running", "x": X, "y": [i % 40 for i in range(200)]},
                         {"name": "waiting", "y": [max(0, i % 60 - 40) for i in range(200)]}]},
    "area": {"kind": "area", "title": "KV cache in use", "x": {"label": "time", "unit": "s"},
             "y": {"label": "in use", "unit": "%", "min": 0, "max": 100}, "sync": "time",
             "series": [{"name": "in use", "x": X, "y": [50 + i % 30 if i != 90 else None for i in range(200)]}]},
    "band": {"kind": "lines", "title": "With its range", "x": {"label": "load", "unit": "req/s"}, "y": {"label": "TTFT", "unit": "ms"},
             "series": [{"name": "p99", "x": [1, 2, 3, 4], "y": [100, 120, 190, 900], "lo": [90, 110, 150, 500], "hi": [110, 140, 250, 1500]}],
             "marks": [{"axis": "y", "at": 500, "label": "limit 500 ms"}]},
    "points": {"kind": "points", "title": "Settings tried", "x": {"label": "throughput", "unit": "tok/s"},
               "y": {"label": "TTFT p99", "unit": "ms"},
               "series": [{"name": "tried", "x": [1000, 2000, 3000, 3100], "y": [100, 150, 400, 410],
                           "text": ["a", "max-num-seqs 64", "max-num-seqs 128", "max-num-seqs 256"], "labels": True},
                          {"name": "front", "kind": "lines", "x": [1000, 2000, 3000], "y": [100, 150, 400], "colour": 7}]},
    "bars": {"kind": "bars", "title": "Errors", "x": {"categories": ["vtwin", "blis", "a simulator with a long name"]},
             "y": {"label": "MAPE", "unit": "%"},
             "series": [{"name": "E2E", "x": [0, 1, 2], "y": [3, 9, 30]},
                        {"name": "TTFT", "x": [0, 1, 2], "y": [5, 12, 80], "lo": [4, 10, 60], "hi": [6, 14, 95]}]},
    "flat": {"kind": "bars", "title": "Errors, sideways", "x": {"label": "MPE", "unit": "%"},
             "y": {"categories": ["vtwin", "blis", "a simulator with a long name"]},
             "series": [{"name": "E2E", "x": [3, -9, 30], "y": [0, 1, 2]}]},
    "lanes": {"kind": "lanes", "title": "Instances", "x": {"label": "time", "unit": "s"}, "y": {"label": "running"}, "sync": "time",
              "series": [{"name": f"instance {k}", "x": X, "y": [(i * (k + 1)) % 37 for i in range(200)]} for k in range(6)]},
    "hours": {"kind": "lines", "title": "A long run", "x": {"label": "time", "unit": "s"}, "y": {"label": "tokens", "unit": "tok/s"},
              "series": [{"name": "output", "x": [i * 60 for i in range(300)], "y": [2e6 + i for i in range(300)]}]},
    "empty": {"kind": "lines", "title": "Nothing", "x": {}, "y": {"log": True}, "series": []},
}


def write_page(path):
    script = (ROOT / "src/page/page.js").read_text()
    style = (ROOT / "src/page/page.css").read_text()
    boxes = "".join(f'<div class="chart" id="{name}"><script type="application/json">{json.dumps(spec)}</script></div>'
                    for name, spec in CHARTS.items())
    path.write_text('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">'
                    f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{style}</style></head>'
                    f'<body><main><div class="charts">{boxes}</div></main><script>{script}</script></body></html>')


class Charts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.dir.name) / "charts.html"
        write_page(cls.path)
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.dir.cleanup()

    def open(self, **how):
        page = self.browser.open(self.path, **how)
        self.addCleanup(page.close)
        return page

    def seen(self, page, name):
        out = os.environ.get("VT_SCREENSHOTS")
        if out:
            page.screenshot(pathlib.Path(out) / f"{name}.png")

    def test_every_kind_fits(self):
        for name, width in browser.WIDTHS.items():
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    page = self.open(width=width, dark=dark)
                    self.assertEqual(page.errors, [])
                    self.assertLessEqual(page.overflow(), 0)
                    for chart in CHARTS:
                        self.assertGreater(page.box(f"#{chart} svg")[3], 80, chart)
                    self.seen(page, f"charts-{name}-{'dark' if dark else 'light'}")

    def test_values_on_hover(self):
        page = self.open()
        for chart, at, said in (("lines", (0.5, 0.5), ("ms", "simulated", "measured", "%")),
                                ("steps", (0.5, 0.5), ("s", "running", "waiting")),
                                ("bars", (0.25, 0.5), ("vtwin", "E2E", "3", "TTFT", "(4 to 6)")),
                                ("flat", (0.9, 0.25), ("vtwin", "3")),
                                ("lanes", (0.5, 0.5), ("instance 0", "instance 5"))):
            with self.subTest(chart):
                page.hover(*page.at(f"#{chart} svg", *at))
                told = page.text(f"#{chart} .tip")
                for word in said:
                    self.assertIn(word, told)
        page.hover(*page.middle("#points svg .dot"))
        self.assertIn("throughput\n1,000", page.text("#points .tip"))
        page.hover(2, 2)
        self.assertEqual(page.text("#points .tip"), "")
        self.assertEqual(page.errors, [])

    def test_values_by_touch_and_key(self):
        page = self.open(width=390, touch=True)
        page.tap(*page.middle("#lines svg"))
        self.assertIn("simulated", page.text("#lines .tip"))
        page = self.open()
        page.eval("document.querySelector('#steps svg').focus()")
        page.key("ArrowRight")
        first = page.text("#steps .tip")
        page.key("ArrowRight")
        self.assertNotEqual(page.text("#steps .tip"), first)
        page.key("End")
        self.assertIn("99.5", page.text("#steps .tip"))
        page.key("+")
        self.assertTrue(page.text("#steps .tools"))
        page.key("Escape")
        self.assertFalse(page.text("#steps .tools"))

    def test_legend_toggles(self):
        page = self.open()
        button = "#lines .legend button:nth-child(2)"
        count = "document.querySelectorAll('#lines svg .line').length"
        self.assertEqual(page.eval(count), 2)
        page.click(*page.middle(button))
        self.assertEqual(page.eval(count), 1)
        self.assertEqual(page.eval(f"document.querySelector('{button}').getAttribute('aria-pressed')"), "false")
        page.hover(*page.middle("#lines svg"))
        self.assertNotIn("measured", page.text("#lines .tip"))
        page.click(*page.middle(button))
        self.assertEqual(page.eval(count), 2)

    def test_zoom_is_shared_and_goes(self):
        page = self.open()
        ticks = "[...document.querySelectorAll('#{} svg text')].map(t => t.textContent).join()"
        before = {c: page.eval(ticks.format(c)) for c in ("steps", "area", "lanes", "lines")}
        x0, y = page.at("#steps svg", 0.3)
        page.drag(x0, y, page.at("#steps svg", 0.4)[0], y)
        self.assertEqual(page.errors, [])
        for chart in ("steps", "area", "lanes"):
            self.assertNotEqual(page.eval(ticks.format(chart)), before[chart], chart)
            self.assertIn("reset", page.text(f"#{chart} .tools"), chart)
        self.assertEqual(page.eval(ticks.format("lines")), before["lines"])
        page.click(*page.middle("#area .tools button"))
        for chart in ("steps", "area", "lanes"):
            self.assertEqual(page.eval(ticks.format(chart)), before[chart], chart)
        page.drag(x0, y, x0 + 60, y)
        page.click(*page.middle("#steps svg"), clicks=2)
        self.assertEqual(page.eval(ticks.format("steps")), before["steps"])

    def test_update_and_resize(self):
        page = self.open()
        page.eval("window.made = vtwin.chart(document.querySelector('#empty'), "
                  + json.dumps(CHARTS["lines"]) + "), 1")
        self.assertEqual(page.eval("document.querySelectorAll('#empty svg .line').length"), 2)
        page.click(*page.middle("#empty .legend button"))
        page.eval("made.update(" + json.dumps(CHARTS["lines"]) + ")")
        self.assertEqual(page.eval("document.querySelectorAll('#empty svg .line').length"), 1)
        page.eval("made.update(" + json.dumps(CHARTS["bars"]) + ")")
        self.assertEqual(page.eval("document.querySelectorAll('#empty svg .bar').length"), 6)
        page.resize(390)
        page.wait("document.querySelector('#empty svg').viewBox.baseVal.width < 390")
        self.assertLessEqual(page.overflow(), 0)
        self.assertEqual(page.errors, [])

    def test_numbers_have_units(self):
        page = self.open()
        for value, unit, text in ((12345, "ms", "12.3\u00a0s"), (0.05, "ms", "50\u00a0\u00b5s"), (250.04, "ms", "250\u00a0ms"),
                                  (3725, "s", "1:02:05"), (45.25, "%", "45.3\u00a0%"), (123456, "tok/s", "123,456\u00a0tok/s"),
                                  (2.5e9, "", "2.5G"), (0, "ms", "0\u00a0ms")):
            self.assertEqual(page.eval(f"vtwin.format({value}, {json.dumps(unit)})"), text)


if __name__ == "__main__":
    browser.need_browser()
    unittest.main()
