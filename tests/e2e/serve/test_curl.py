"""curl, with and without TLS, and Python's own client over TLS."""
import asyncio
import json
import socket
import ssl
import subprocess

from serving import QUICK, AsyncTest, Process, Server, ServeTest, main, open_url

BODY = json.dumps({"model": "tiny", "prompt": "one", "max_tokens": 20, "ignore_eos": True,
                   "stream": True})


def curl(*args):
    done = subprocess.run(["curl", "--silent", "--show-error", "--max-time", "30", *args],
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


class Plain(ServeTest):
    def test_a_streamed_completion(self):
        rc, out, err = curl("-N", self.url + "/v1/completions", "-H",
                            "Content-Type: application/json", "-d", BODY)
        self.assertEqual(rc, 0, err)
        events = [x for x in out.split("\n\n") if x]
        self.assertTrue(all(x.startswith("data: ") for x in events), out)
        self.assertEqual(events[-1], "data: [DONE]")
        self.assertEqual(json.loads(events[-2][6:])["choices"][0]["finish_reason"], "length")

    def test_without_a_content_type_it_says_what_is_missing(self):
        rc, out, _ = curl(self.url + "/v1/completions", "-d", BODY)
        self.assertEqual(rc, 0)
        self.assertIn("Unsupported Media Type", json.loads(out)["error"]["message"])

    def test_what_curl_asks_by_itself(self):
        for flags in (("-I",), ("-X", "OPTIONS"), ("--http1.0",), ("--http2",),
                      ("-H", "Accept-Encoding: gzip")):
            rc, out, err = curl(*flags, "-o", "/dev/null", "-w", "%{http_code}",
                                self.url + "/v1/models")
            self.assertEqual(rc, 0, (flags, err))
            self.assertIn(out, ("200", "405"), flags)


class Tls(AsyncTest):
    @classmethod
    def setUpClass(cls):
        Process.shown.clear()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True)
        cls.server = Server(*QUICK, "--ssl-certfile", "cert.pem", "--ssl-keyfile", "key.pem")
        cls.url = cls.server.url
        cls.context = ssl.create_default_context(cafile="cert.pem")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_the_url_says_so(self):
        self.assertTrue(self.url.startswith("https://127.0.0.1:"), self.url)

    def test_an_answer_is_whole(self):
        status, headers, body = open_url(self.url + "/v1/completions", {
            "model": "tiny", "prompt": "one", "max_tokens": 1500, "ignore_eos": True,
            "logprobs": 5}, context=self.context)
        self.assertEqual(status, 200)
        self.assertEqual(json.loads(body)["usage"]["completion_tokens"], 1500)

    def test_a_stream_is_whole(self):
        status, headers, body = open_url(self.url + "/v1/completions", BODY.encode(),
                                         context=self.context)
        self.assertEqual((status, headers["content-type"]),
                         (200, "text/event-stream; charset=utf-8"))
        self.assertTrue(body.endswith(b"data: [DONE]\n\n"))

    async def test_many_at_once(self):
        async def one(i):
            return (await asyncio.to_thread(open_url, self.url + "/v1/completions", {
                "model": "tiny", "prompt": f"number {i}", "max_tokens": 5},
                None, self.context))[0]
        self.assertEqual(await asyncio.gather(*(one(i) for i in range(30))), [200] * 30)

    def test_curl(self):
        rc, out, err = curl("-N", "--cacert", "cert.pem", self.url + "/v1/completions", "-H",
                            "Content-Type: application/json", "-d", BODY)
        self.assertEqual(rc, 0, err)
        self.assertTrue(out.endswith("data: [DONE]\n\n"), out[-100:])
        self.assertNotEqual(curl(self.url + "/health")[0], 0)  # it trusts no such certificate

    def test_peers_that_speak_no_tls_are_let_go(self):
        for data in (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", bytes(100), b"\x16\x03\x01"):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as s:
                try:
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(1000):
                        pass
                except OSError as e:  # it hung up first
                    self.assertNotIsInstance(e, TimeoutError)
        status, _, _ = open_url(self.url + "/health", context=self.context)
        self.assertEqual(status, 200)

    def test_old_versions_are_refused(self):
        old = ssl.create_default_context(cafile="cert.pem")
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises(OSError):
            open_url(self.url + "/health", context=old)


if __name__ == "__main__":
    main()
