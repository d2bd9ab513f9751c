"""attacks.py - requests that once stopped `vtwin serve` or filled its memory: bench/serve
measures what other streams see of them, bench/soak what they leave behind.

ATTACKS: name -> function(server, over), which attacks until the event `over` is set; a
server has host and port. Bodies are made once, before anything is measured.
"""
import functools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

COMPLETIONS = "/v1/completions"


def head(path, length, more=b""):
    return (b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%b"
            b"Content-Length: %d\r\n\r\n" % (path.encode(), more, length))


def send(server, data, linger=0.0, read=False):
    """All of it on a connection of its own; hangs up after `linger` seconds, or once an answer
    has begun."""
    try:
        with socket.create_connection((server.host, int(server.port)), timeout=20) as s:
            s.sendall(data)
            if read:
                return s.recv(4096)
            time.sleep(linger)
    except OSError:
        pass
    return b""


@functools.cache
def body(name):
    """The request of that name, head and all."""
    def post(path, **fields):
        data = json.dumps({"model": "m", **fields}).encode()
        return head(path, len(data)) + data

    def raw(path, data):
        return head(path, len(data)) + data
    items = {"type": "string", "pattern": "(" + "^" * 1300 + "[ab]){900}"}
    for _ in range(2):
        items = {"type": "array", "uniqueItems": True, "minItems": 100, "maxItems": 100,
                 "items": items}
    chat = {"messages": [{"role": "user", "content": "x"}]}
    makers = {
        "schema": lambda: post("/v1/chat/completions", **chat, max_tokens=8, response_format={
            "type": "json_schema", "json_schema": {"name": "s", "schema": items}}),
        "choices": lambda: post(COMPLETIONS, prompt=["x"] * 64, n=16384, max_tokens=2),
        "choices, allowed": lambda: post(COMPLETIONS, prompt="x", n=4096, max_tokens=1000,
                                         ignore_eos=True),
        "inputs": lambda: post("/v1/embeddings", input=["x"] * 100_000),
        "inputs, allowed": lambda: post("/v1/embeddings", input=["x"] * 4096),
        "ids": lambda: raw("/abort_requests", b'{"request_ids":["a"' + b',"a"' * 14_999_999 + b"]}"),
        "stops": lambda: post(COMPLETIONS, prompt="x", max_tokens=100_000, ignore_eos=True,
                              stop=[f"{i:06d}" + "stop" * 124 for i in range(100_000)]),
        "prompt of ids": lambda: raw(COMPLETIONS, b'{"model":"m","prompt":[1' +
                                     b",1" * 30_000_000 + b"]}"),
        "adapter": lambda: post("/v1/load_lora_adapter", lora_name="n" * 20_000_000,
                                lora_path="/p"),
        "upload": lambda: post("/tokenize", prompt="x " * 20_000_000),
        "large": lambda: post(COMPLETIONS, prompt="x", max_tokens=1, user="u" * 5_000_000),
        "long prompt": lambda: post(COMPLETIONS, prompt="hello " * 100_000, max_tokens=1),
        "deaf": lambda: post(COMPLETIONS, prompt="x", max_tokens=30000, ignore_eos=True,
                             stream=True),
    }
    return makers[name]()


def again(*names, linger=0.0, read=False, pause=0.02):
    def attack(server, over):
        while not over.is_set():
            for name in names:
                send(server, body(name), linger, read)
            over.wait(pause)
    attack.bodies = names
    return attack


def uploads(server, over, clients=60):
    """All at the same time, and they hang up."""
    data = body("upload")
    while not over.is_set():
        threads = [threading.Thread(target=send, args=(server, data, 0.5)) for _ in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


uploads.bodies = ("upload",)


def others(server, over):
    """Long prompts, floods, broken HTTP, and peers that never read."""
    while not over.is_set():
        send(server, body("long prompt"), 0.2)
        send(server, b"GET / HTTP/1.1\r\n" + b"X-Flood: 1\r\n" * 20000)
        send(server, b"\x00\xff BROKEN\r\n\r\n" * 100)
        send(server, body("deaf"), 0.2)
        over.wait(0.02)


others.bodies = ("long prompt", "deaf")

ATTACKS = {
    "schema": again("schema", read=True),
    "64 x 16,384 choices": again("choices", read=True),
    "4,096 choices, hang-up": again("choices, allowed", linger=0.3),
    "100,000 inputs, hang-up": again("inputs", linger=0.05),
    "4,096 inputs, hang-up": again("inputs, allowed", linger=0.05),
    "15 million ids": again("ids", read=True),
    "100,000 stop strings": again("stops", linger=0.3),
    "prompt of 30 million ids": again("prompt of ids", read=True),
    "adapter's name of 20 MB": again("adapter", read=True),
    "60 uploads of 40 MB": uploads,
    "long prompts, floods, ...": others,
}


# ---- TLS ---------------------------------------------------------------------


def certificate():
    """(certificate, key, their directory) for the loopback address."""
    place = tempfile.mkdtemp(prefix="vtwin-bench-")
    cert, key = f"{place}/cert.pem", f"{place}/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", key, "-out", cert], check=True, stderr=subprocess.DEVNULL)
    return cert, key, place


def handshakes(server, over, clients=2):
    """As many new sessions as these clients can begin."""
    flood = [subprocess.Popen(["openssl", "s_time", "-connect", f"{server.host}:{server.port}",
                               "-new", "-time", "60"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) for _ in range(clients)]
    over.wait()
    for p in flood:
        p.kill()
        p.wait()


def remove(place):
    shutil.rmtree(place, ignore_errors=True)
    assert not os.path.exists(place)
