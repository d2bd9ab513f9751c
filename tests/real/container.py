#!/usr/bin/env python3
"""container.py FILE CONTEXT DIR [ARG=VALUE...] - runs the steps of a container file where no
image can be pulled: `FROM debian:SUITE` is a tree by debootstrap (tools/debian_tree), RUN a
chroot. Then weighs what came out and starts it as an engine would: its own network, processes
and read-only root, its user, its command; its health check must fail before and pass after.
Needs root. What it does not know of a container file it refuses."""

import ctypes
import fcntl
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIMIT_MB = 60


def lines(text):
    """(instruction, rest) of each, continued lines joined."""
    joined = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in joined.replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word.upper(), rest.strip()


class Stage:
    def __init__(self, root):
        self.root, self.env, self.args = root, {"PATH": PATH}, {}
        self.user, self.cwd = "0:0", "/"
        self.entrypoint, self.cmd, self.health = [], [], None

    def path(self, inside):
        return self.root / os.path.normpath(os.path.join(self.cwd, inside)).lstrip("/")

    def run(self, rest):
        words = json.loads(rest) if rest.startswith("[") else ["/bin/sh", "-c", rest]
        uid, gid = self.user.split(":")
        subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child",
             f"--mount-proc={self.root}/proc", "chroot", f"--userspec={uid}:{gid}", str(self.root),
             "/bin/sh", "-c", 'cd "$0" && exec "$@"', self.cwd, *words],
            check=True, env={**self.env, **self.args}, stdin=subprocess.DEVNULL)


class Build:
    def __init__(self, context, out, args):
        self.context, self.out, self.given = context, out, args
        self.stages, self.now = [], None
        ignore = (context / ".dockerignore").read_text().splitlines()
        self.ignored = {w for w in ignore if w and not w.startswith("#")}
        assert not any(c in w for w in self.ignored for c in "*/!"), "whole names only"

    def FROM(self, rest):
        image, *named = rest.split()
        root = self.out / f"stage{len(self.stages)}"
        if image == "scratch":
            root.mkdir(parents=True)
        else:
            suite = image.removeprefix("debian:").removesuffix("-slim")
            subprocess.run([ROOT / "tools" / "debian_tree", root, suite], check=True)
            shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")  # as engines do
        self.now = Stage(root)
        self.stages.append((named[1] if named else None, self.now))

    def COPY(self, rest):
        words = rest.split()
        source = self.context
        if words[0].startswith("--from="):
            name = words.pop(0).partition("=")[2]
            source = next(s.root for n, s in self.stages if n == name)
        assert len(words) == 2, rest
        source = source / words[0].lstrip("/")
        to = self.now.path(words[1])
        skip = self.ignored if source == self.context / "." else set()
        for entry in sorted(source.iterdir()):
            if entry.name in skip:
                continue
            to.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-a", entry, to], check=True)

    def ARG(self, rest):
        name, _, value = rest.partition("=")
        self.now.args[name] = self.given.get(name, value)

    def ENV(self, rest):
        self.now.env.update(w.split("=", 1) for w in shlex.split(rest))

    def WORKDIR(self, rest):
        self.now.path(rest).mkdir(parents=True, exist_ok=True)
        self.now.cwd = os.path.join(self.now.cwd, rest)

    def RUN(self, rest):
        self.now.run(rest)

    def USER(self, rest):
        self.now.user = rest

    def EXPOSE(self, rest):
        self.now.port = int(rest)

    def HEALTHCHECK(self, rest):
        options, _, command = rest.partition(" CMD ")
        seconds = {k: float(v.rstrip("s")) for k, v in
                   (w.removeprefix("--").split("=") for w in options.split())}
        self.now.health = {**seconds, "command": json.loads(command)}

    def ENTRYPOINT(self, rest):
        self.now.entrypoint = json.loads(rest)

    def CMD(self, rest):
        self.now.cmd = json.loads(rest)


def weigh(root):
    """Bytes of all files, each inode once."""
    seen = {}
    for place, _, names in os.walk(root):
        for name in names:
            found = os.lstat(os.path.join(place, name))
            seen[found.st_ino] = found.st_size
    return sum(seen.values())


# ---- started ---------------------------------------------------------------------------

def as_engines_do(stage):
    """Of the namespaces that this process is in: a network that is up, a root nobody writes to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x49))  # SIOCSIFFLAGS: up, running
    root = str(stage.root)
    for name in ("proc", "dev"):
        (stage.root / name).mkdir(exist_ok=True)
    for words in (["--make-rprivate", "/"], ["-t", "proc", "proc", "/proc"],
                  ["--bind", root, root], ["-o", "remount,bind,ro", root],
                  ["-t", "tmpfs", "none", root + "/tmp"], ["-t", "tmpfs", "none", root + "/dev"],
                  ["-t", "proc", "proc", root + "/proc"]):
        subprocess.run(["mount", *words], check=True)
    os.mknod(root + "/dev/null", stat.S_IFCHR, os.makedev(1, 3))
    os.chmod(root + "/dev/null", 0o666)


def start(stage, words, **how):
    uid, gid = map(int, stage.user.split(":"))

    def become():
        os.chroot(stage.root)
        os.chdir(stage.cwd)
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS

    return subprocess.Popen(words, env=stage.env, preexec_fn=become, **how)


def healthy(stage):
    check = start(stage, stage.health["command"])
    try:
        return check.wait(stage.health["timeout"]) == 0
    except subprocess.TimeoutExpired:
        check.kill()
        return False


def ask(port, path, body=None):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data,
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


def inside(stage):
    as_engines_do(stage)
    assert not healthy(stage), "healthy before it was started"
    began = time.monotonic()
    program = start(stage, stage.entrypoint + stage.cmd)
    while not healthy(stage):
        assert program.poll() is None, f"ended: {program.returncode}"
        assert time.monotonic() < began + stage.health["start-period"], "not healthy in time"
        time.sleep(0.05)
    print(f"healthy after {time.monotonic() - began:.2f} s")
    status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name in ("Uid", "Gid"):
            assert set(value.split()) == {stage.user.split(":")[name == "Gid"]}, line
        if name in ("CapEff", "CapPrm"):
            assert int(value, 16) == 0, line
    model = ask(stage.port, "/v1/models")["data"][0]["id"]
    said = ask(stage.port, "/v1/completions", {"model": model, "prompt": "hello", "max_tokens": 5})
    assert said["usage"]["completion_tokens"] == 5, said
    program.send_signal(signal.SIGTERM)
    assert program.wait(10) == 0, f"exit {program.returncode}"
    print(f"ran as {stage.user}, answered, ended well")


def main():
    file, context, out = map(pathlib.Path, sys.argv[1:4])
    shutil.rmtree(out, ignore_errors=True)
    build = Build(context.resolve(), out.resolve(), dict(w.split("=", 1) for w in sys.argv[4:]))
    for word, rest in lines(file.read_text()):
        print(f"{word} {rest}", flush=True)
        getattr(build, word)(rest)
    stage = build.now
    size = weigh(stage.root)
    print(f"the image weighs {size / 1e6:.1f} MB", flush=True)
    assert size < LIMIT_MB * 1e6
    assert stage.user.split(":")[0] != "0", "it would run as root"
    sys.stdout.flush()
    # CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET: the last step leaves this machine's.
    assert ctypes.CDLL(None).unshare(0x00020000 | 0x20000000 | 0x40000000) == 0
    child = os.fork()
    if child == 0:
        try:
            inside(stage)
        except BaseException as error:
            print(f"container.py: {error!r}", flush=True)
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
