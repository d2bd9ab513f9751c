"""A real browser, driven: Debian's headless Chromium over the pipe of its DevTools protocol.

    with Browser() as b:
        page = b.open("report.html", width=390, dark=True)
        page.hover(*page.middle("#ttft svg"))
        assert page.text("#ttft .tip")
        page.screenshot("seen.png")
        assert page.errors == []

Only Python's standard library is needed.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WIDTHS = {"narrow": 390, "wide": 1280}
SKIP = 77


def program():
    return next((p for p in map(shutil.which, PROGRAMS) if p), None)


def need_browser():
    """Ends the test as skipped where there is none."""
    if not program():
        print("no Chromium here", file=sys.stderr)
        sys.exit(SKIP)


class Failed(Exception):
    pass


class Browser:
    def __init__(self, deadline_s=60):
        self.deadline_s = deadline_s
        self.profile = tempfile.mkdtemp(prefix="browser.")
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        self.waiting, self.pages, self.number, self.bytes = {}, {}, 0, b""

        def place():  # the protocol's pipe is at descriptors 3 and 4
            high = [os.dup(fd) for fd in (to_read, to_write)]
            high = [os.dup2(fd, 100 + i) for i, fd in enumerate(high)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        # pylint: disable=subprocess-popen-preexec-fn
        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(3, 4), preexec_fn=place)
        os.close(to_read)
        os.close(to_write)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)

    # ---- the protocol: JSON, each ended by a NUL ----

    def receive(self, until):
        """Reads messages until one makes until() true."""
        end = time.monotonic() + self.deadline_s
        while not until():
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise Failed("the browser does not answer")
            more = os.read(self.back, 1 << 20)
            if not more:
                raise Failed("the browser has ended")
            *whole, self.bytes = (self.bytes + more).split(b"\0")
            for message in map(json.loads, whole):
                if "id" in message:
                    self.waiting[message["id"]] = message
                elif message.get("sessionId") in self.pages:
                    self.pages[message["sessionId"]].take(message)

    def call(self, method, session=None, **params):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        self.receive(lambda: number in self.waiting)
        answer = self.waiting.pop(number)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, where, width=1280, height=900, dark=False, touch=False):
        """A page: a file's path or an address."""
        if "://" not in str(where):
            where = pathlib.Path(where).resolve().as_uri()
        return Page(self, str(where), width, height, dark, touch)


class Page:
    # pylint: disable=too-many-arguments,too-many-positional-arguments
    def __init__(self, browser, address, width, height, dark, touch):
        self.browser, self.loaded = browser, False
        self.errors = []  # exceptions, errors on the console, and whatever is fetched
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        self.size = (width, height)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.resize(width, height, touch)
        self.media(dark)
        self.address = address
        self.call("Page.navigate", url=address)
        browser.receive(lambda: self.loaded)
        self.settle()

    def call(self, method, **params):
        return self.browser.call(method, session=self.session, **params)

    def take(self, message):
        method, params = message["method"], message["params"]
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            own = url.split("#")[0] == getattr(self, "address", url).split("#")[0]
            if url.startswith("file:") and not own:
                self.errors.append("fetches " + url)
            elif url.startswith("http") and self.address.startswith("file:"):
                self.errors.append("fetches " + url)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
        self.browser.pages.pop(self.session, None)

    def resize(self, width, height=900, touch=False):
        self.size = (width, height)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        if self.loaded:
            self.settle()

    def media(self, dark=False, paper=False):
        self.call("Emulation.setEmulatedMedia", media="print" if paper else "screen", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def settle(self):
        """Two frames: what was to be drawn is drawn."""
        self.eval("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def eval(self, expression):
        """The value of an expression, which may be a promise."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            details = got["exceptionDetails"]
            raise Failed(details.get("exception", {}).get("description") or details["text"])
        return got["result"].get("value")

    def wait(self, expression, seconds=20):
        """Until the expression is true."""
        end = time.monotonic() + seconds
        while not self.eval(expression):
            if time.monotonic() > end:
                raise Failed(f"never true: {expression}")
            time.sleep(0.02)

    def text(self, selector):
        """What is visible of an element; "" if there is none or it is hidden."""
        return self.eval(f"(e => e && e.getClientRects().length ? e.innerText : '')(document.querySelector({json.dumps(selector)}))")

    def box(self, selector):
        """Left, top, width, height on the screen, scrolled to."""
        got = self.eval(
            f"(e => {{ if (!e) return null; e.scrollIntoView({{block: 'center'}});"
            "const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })"
            f"(document.querySelector({json.dumps(selector)}))")
        if got is None:
            raise Failed(f"no {selector}")
        return got

    def at(self, selector, across=0.5, down=0.5):
        left, top, width, height = self.box(selector)
        return left + across * width, top + down * height

    def middle(self, selector):
        return self.at(selector)

    def mouse(self, kind, x, y, button="none", clicks=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=clicks,
                  buttons=1 if button == "left" and kind != "mouseReleased" else 0)

    def hover(self, x, y):
        self.mouse("mouseMoved", x - 2, y)
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, x, y, clicks=1):
        for n in range(1, clicks + 1):
            self.mouse("mousePressed", x, y, "left", n)
            self.mouse("mouseReleased", x, y, "left", n)
        self.settle()

    def drag(self, x0, y0, x1, y1):
        self.mouse("mouseMoved", x0, y0)
        self.mouse("mousePressed", x0, y0, "left", 1)
        for k in (0.3, 0.7, 1):
            self.mouse("mouseMoved", x0 + (x1 - x0) * k, y0 + (y1 - y0) * k, "left")
        self.mouse("mouseReleased", x1, y1, "left", 1)
        self.settle()

    def tap(self, x, y):
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def key(self, name, shift=False):
        code = {"Tab": 9, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
                "ArrowRight": 39, "ArrowDown": 40, "Enter": 13}.get(name, 0)
        for kind in ("keyDown", "keyUp"):
            extra = {"text": name} if len(name) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                      windowsVirtualKeyCode=code, modifiers=8 if shift else 0, **extra)
        self.settle()

    def overflow(self):
        """Pixels by which the page is wider than the screen."""
        return self.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def screenshot(self, path, whole=True):
        clip = {}
        if whole:
            tall = self.eval("document.documentElement.scrollHeight")
            clip = {"clip": {"x": 0, "y": 0, "width": self.size[0], "height": tall, "scale": 1},
                    "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **clip)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
