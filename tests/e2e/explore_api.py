"""The API of vtwin explore beside the commands that it stands for. Run by explore.sh."""
import http.client
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import time
import unittest
import urllib.parse

VTWIN = os.environ["VTWIN"]
# Short requests, one seed: the answers themselves are not judged here.
TRAFFIC = {"dataset-name": "random", "random-input-len": "4000", "random-output-len": "4"}
SEARCH = {"seeds": "1", "tolerance": "0.2"}


class Server:
    def __init__(self, *flags):
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen([VTWIN, "explore", "--port", "0", *flags],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()
        self.port = urllib.parse.urlsplit(self.url).port

    def ask(self, path, flags=None, method="GET", **headers):
        """Status, headers and bytes."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        path += "?" + urllib.parse.urlencode(flags) if flags else ""
        c.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        r = c.getresponse()
        out = r.status, r.headers, r.read()
        c.close()
        return out

    def json(self, path, flags=None):
        status, _, body = self.ask(path, flags)
        return status, json.loads(body)

    def forks(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return pathlib.Path(path).read_text(encoding="ascii").split()

    def raw(self, data, wait=0.0):
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
            s.sendall(data)
            time.sleep(wait)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        with self.process.stdout as out:
            rest = out.read()
        return self.process.wait(20), rest


def until(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise AssertionError("never true")
        time.sleep(0.02)


def run(command):
    words = shlex.split(command)
    assert words[0] == "vtwin"
    return subprocess.run([VTWIN, *words[1:]], capture_output=True, text=True, check=False)


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.s = Server("qwen3-8b", "--gpu", "H100", "--slo", "ttft-p99=500ms")

    @classmethod
    def tearDownClass(cls):
        assert cls.s.stop() == (0, "")

    def same(self, path, flags, status=0):
        """What is answered is what its command prints, byte for byte."""
        code, _, body = self.s.ask(path, flags)
        d = json.loads(body)
        self.assertEqual((code, d["exit_status"]), (200, status), d)
        ran = run(d["command"])
        self.assertEqual(ran.returncode, status)
        self.assertEqual(json.loads(ran.stdout), d["answer"])
        self.assertIn(b'"answer":' + ran.stdout.strip().encode() + b"}\n", body)
        return d

    def test_start(self):
        code, d = self.s.json("/api/v1/start")
        self.assertEqual(code, 200)
        self.assertEqual(d["state"], {"model": "qwen3-8b", "gpu": "H100", "slo": "ttft-p99=500ms"})
        self.assertIn("H200", [g["name"] for g in d["gpus"]])

    def test_capacity(self):
        d = self.same("/api/v1/preview", {"model": "qwen3-8b", "gpu": "H100", **TRAFFIC})
        self.assertTrue(d["answer"]["sketch"] and d["answer"]["trials"] <= 10)
        d = self.same("/api/v1/capacity", {"model": "qwen3-8b", "gpu": "A100-80", **TRAFFIC, **SEARCH})
        self.assertGreater(d["answer"]["capacity"], 0)
        self.assertIn("vllm serve qwen3-8b", d["answer"]["vllm_serve"])

    def test_no_rate_is_an_answer(self):
        d = self.same("/api/v1/preview", {"model": "qwen3-8b", "gpu": "H100", **TRAFFIC,
                                          "slo": "ttft-p99=1ms"}, status=1)
        self.assertEqual(d["answer"]["capacity"], 0)
        self.assertIn("no rate keeps the limits", d["error"])

    def test_point_and_files(self):
        flags = {"model": "qwen3-8b", "gpu": "A100-80", **TRAFFIC, "request-rate": "7", "num-prompts": "50",
                 "max-num-seqs": "32"}
        d = self.same("/api/v1/point", flags)
        for name in ("workload.yaml", "profile.json"):
            code, headers, body = self.s.ask("/api/v1/" + name, flags)
            self.assertEqual((code, headers["content-disposition"]), (200, f'attachment; filename="{name}"'))
            pathlib.Path(name).write_bytes(body)
        again = json.loads(run("vtwin simulate --workload workload.yaml --profile profile.json --json").stdout)
        for key in ("requests", "duration_s", "ttft_ms", "tpot_ms", "e2e_ms", "output_tok_per_s", "steps"):
            self.assertEqual(again[key], d["answer"][key], key)
        self.assertIn("Requests running and waiting", [c["title"] for c in d["answer"]["charts"]])
        code, headers, body = self.s.ask("/api/v1/report.html", flags)
        self.assertEqual((code, headers["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertTrue(body.lower().startswith(b"<!doctype html>") and body.rstrip().endswith(b"</html>"))
        left = [f for f in os.listdir(os.environ.get("TMPDIR", "/tmp")) if f.startswith("vtwin-explore-")]
        self.assertEqual(left, [])

    def test_errors_are_told(self):
        for flags, why in (({"gpu": "H101"}, "none that a page may ask for"),
                           ({"workload": "/etc/passwd"}, "none that a page may ask for"),
                           ({"out": "x"}, "unknown flag 'out'"),
                           ({"random-input-len": "many"}, "--random-input-len: 'many' is not"),
                           ({"model": "llama-3.1-70b", "gpu": "L4"}, "no room for a KV cache")):
            code, d = self.s.json("/api/v1/capacity", flags)
            self.assertEqual(code, 400, d)
            self.assertIn(why, d["error"])

    def test_page(self):
        for path, kind in (("/", "text/html"), ("/explore.js", "text/javascript"), ("/page.css", "text/css")):
            code, headers, body = self.s.ask(path)
            self.assertEqual(code, 200)
            self.assertTrue(headers["content-type"].startswith(kind) and len(body) > 1000)
            self.assertIn("frame-ancestors 'none'", headers["content-security-policy"])
            self.assertNotIn("access-control-allow-origin", headers)

    # ---- those who should not ask ----

    def test_strangers_are_refused(self):
        own = f"127.0.0.1:{self.s.port}"
        for headers, want in (({"Host": "evil.example"}, 403), ({"Host": f"evil.example:{self.s.port}"}, 403),
                              ({"Host": "127.0.0.1.evil.example"}, 403), ({"Host": "localhost:99"}, 200),
                              ({"Host": "[::1]:1"}, 200), ({"Host": "127.0.0.1:80:80"}, 403),
                              ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
                              ({"Origin": "http://127.0.0.1:1"}, 403), ({"Origin": "http://" + own}, 200),
                              ({"Sec_Fetch_Site": "cross-site"}, 403), ({"Sec_Fetch_Site": "same-site"}, 403),
                              ({"Sec_Fetch_Site": "same-origin"}, 200)):
            code, got, _ = self.s.ask("/api/v1/start", **{"Host": own, **headers})
            self.assertEqual(code, want, headers)
            self.assertNotIn("access-control-allow-origin", got)
        for method in ("POST", "PUT", "DELETE"):
            self.assertEqual(self.s.ask("/api/v1/start", method=method)[0], 405)
        for path in ("/nothing", "/../etc/passwd", "/explore.c", "/api/v1/", "/api/v2/start"):
            self.assertEqual(self.s.ask(path)[0], 404, path)

    def test_hostile_bytes(self):
        for data in (b"\0" * 5000, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000, b"GET " + b"/" * 70000,
                     b"GET /api/v1/capacity?" + b"&" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET /api/v1/capacity?gpu=%zz&a=%0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"):
            self.s.raw(data)
        held = [socket.create_connection(("127.0.0.1", self.s.port)) for _ in range(50)]
        self.assertEqual(self.s.ask("/api/v1/start")[0], 200)
        for s in held:
            s.close()
        until(lambda: not self.s.forks())

    def test_stale_work_ends(self):
        slow = {"workload": "multiturn-starters", "model": "qwen3-8b", "gpu": "H100", "seeds": "200"}
        line = f"GET /api/v1/capacity?{urllib.parse.urlencode(slow)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        held = []
        for _ in range(16):
            held.append(socket.create_connection(("127.0.0.1", self.s.port)))
            held[-1].sendall(line)
        until(lambda: len(self.s.forks()) == 16)
        groups = self.s.forks()
        self.assertEqual(self.s.json("/api/v1/preview", slow)[0], 503)
        for s in held:
            s.close()
        until(lambda: not self.s.forks())
        for g in groups:  # nor is anything left of what they had started
            until(lambda group=g: not group_lives(int(group)), 5)


def group_lives(group):
    try:
        os.killpg(group, 0)
        return True
    except ProcessLookupError:
        return False


class Fixed(unittest.TestCase):
    def test_files_are_named_on_the_command_line_only(self):
        pathlib.Path("list.csv").write_text("id,arrival_us,input_tokens,output_tokens\n" + "".join(
            f"r{i},{i * 100000},100,5\n" for i in range(20)), encoding="ascii")
        s = Server("--trace", "list.csv", "--gpu", "H100")
        _, d = s.json("/api/v1/start")
        self.assertEqual(d["fixed"], [{"flag": "trace", "value": "list.csv"}])
        code, d = s.json("/api/v1/point", {"gpu": "H100"})
        self.assertEqual((code, d["answer"]["requests"]), (200, 20), d)
        self.assertIn("--trace list.csv", d["command"])
        self.assertEqual(s.json("/api/v1/point", {"trace": "list.csv"})[0], 400)
        self.assertEqual(s.stop(), (0, ""))

    def test_ends_with_work_under_way(self):
        s = Server()
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.sendall(b"GET /api/v1/capacity?workload=multiturn-starters&seeds=200 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(lambda: len(s.forks()) == 1)
            group = int(s.forks()[0])
            self.assertEqual(s.stop(), (0, ""))
            until(lambda: not group_lives(group), 5)

    def test_a_port_that_is_taken(self):
        s = Server()
        ran = subprocess.run([VTWIN, "explore", "--port", str(s.port)], capture_output=True, text=True, check=False)
        self.assertEqual(ran.stdout, "")
        self.assertEqual(ran.stderr.count("\n"), 1)
        self.assertIn(ran.returncode, (2, 3))
        s.stop()


if __name__ == "__main__":
    unittest.main()
