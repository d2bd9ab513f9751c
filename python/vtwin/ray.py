"""The driver behind ``vtwin tune --workers ray[:ADDRESS]``, capacity and validate.

``vtwin`` starts ``python3 -m vtwin.ray [ADDRESS]`` and speaks with it over a socket that is
its stdin and stdout, in the messages of forked workers (src/tune/jobs/jobs.h): here is a
command, here is the number of a trial; there is its result. Each trial becomes a Ray task. A
task has a ``vtwin worker`` run it, a process that stays for the next ones; nothing is
computed here. The program, the files that the command has read, and the results of earlier
batches of trials travel by Ray's object store, once for each node.
"""

import collections
import hashlib
import logging
import os
import queue
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

COMMAND, INPUTS, GIVEN, ANSWER, RESULTS, COST, HELLO, FAILED = range(8)
HEAD = "=IIQQ"  # kind, batch, index, bytes that follow
OK, EINPUT, EIO = b"\0", b"\2", b"\3"  # enum vt_code

TRIES = 3  # processes that one trial may end before it is at fault
NODES_LOST = 16  # nodes and Ray workers that one trial may lose

# What vtwin's commands read from the environment; the rest is the node's own.
VARIABLES = (
    "VTWIN_PROFILES", "VLLM_PREFIX_CACHE_RETENTION_INTERVAL", "BLIS_BINARY", "VIDUR_DIR",
    "LLMSERVINGSIM_DIR", "BASE", "MODEL", "TP", "INPUT_LEN", "OUTPUT_LEN", "MAX_MODEL_LEN",
    "MIN_CACHE_HIT_PCT", "MAX_LATENCY_ALLOWED_MS", "NUM_SEQS_LIST", "NUM_BATCHED_TOKENS_LIST",
)

Run = collections.namedtuple("Run", "key words cwd environment program files")


def receive(sock):
    """One message; None: the other side has ended."""
    def exactly(n):
        data = bytearray()
        while len(data) < n:
            piece = sock.recv(min(n - len(data), 1 << 20))
            if not piece:
                return None
            data += piece
        return bytes(data)

    head = exactly(struct.calcsize(HEAD))
    if head is None:
        return None
    kind, batch, index, length = struct.unpack(HEAD, head)
    data = exactly(length)
    return None if data is None else (kind, batch, index, data)


def send(sock, kind, batch, index, data):
    sock.sendall(struct.pack(HEAD, kind, batch, index, len(data)) + data)


def failure(code, text):
    return code + text.encode(errors="replace")


# ---- on a node -------------------------------------------------------------------------

class Lost(Exception):
    """The worker process was killed."""


class Worker:
    """A ``vtwin worker`` process; lives as long as the Ray process that started it."""

    def __init__(self, run):
        root = unpack(run)
        self.key, self.batch = run.key, 0
        self.said = tempfile.TemporaryFile()
        self.sock, theirs = socket.socketpair()
        environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        try:
            self.process = subprocess.Popen(
                [os.path.join(root, "program"), "worker"], stdin=theirs, stdout=theirs,
                stderr=self.said, cwd=os.path.join(root, "files") + run.cwd,
                env=environment | run.environment)
        finally:
            theirs.close()
        try:
            send(self.sock, COMMAND, 0, 0, b"".join(w + b"\0" for w in run.words))
        except OSError:
            pass  # it has ended already: ask() says why

    def ask(self, past, batch, index, n):
        """A trial's answer; past(b) gives the results of batch b."""
        try:
            while self.batch < batch:
                send(self.sock, RESULTS, self.batch, 0, past(self.batch))
                self.batch += 1
            send(self.sock, GIVEN, batch, index, struct.pack("=Q", n))
            answer = receive(self.sock)
        except OSError:
            answer = None
        return self.why() if answer is None else answer[3]

    def why(self):
        """It has ended by itself: what it said would be said again."""
        status = self.process.wait()
        self.said.seek(0)
        words = self.said.read().decode(errors="replace").strip().splitlines()
        if status < 0:
            raise Lost(f"signal {-status}")
        text = words[-1] if words else f"vtwin worker: exit status {status}"
        return failure(EINPUT if status == 2 else EIO, text.removeprefix("vtwin: "))

    def end(self):
        self.sock.close()
        self.process.kill()
        self.process.wait()
        self.said.close()


def unpack(run):
    """Puts program and files below a directory of this node, once for all of its processes."""
    root = os.path.join(tempfile.gettempdir(), f"vtwin-{os.getuid()}-{run.key}")
    if os.path.lexists(root):
        return checked(root)
    fresh = tempfile.mkdtemp(prefix="vtwin-new-")
    put(os.path.join(fresh, "program"), run.program, 0o700)
    os.makedirs(os.path.join(fresh, "files") + run.cwd, exist_ok=True)
    for name, data in run.files.items():
        put(os.path.join(fresh, "files") + name, data, 0o600)
    try:
        os.rename(fresh, root)
    except OSError:  # another process of this node was faster
        shutil.rmtree(fresh, ignore_errors=True)
    return checked(root)


def checked(root):
    """Who can guess the name may have put something there before us."""
    found = os.lstat(root)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{root} is somebody else's")
    return root


def put(path, data, mode):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


worker = None  # of this Ray process


def trial(run, key, history, batch, index, n):
    """The task: (answer, seconds, node). run and history are references, got if needed."""
    import ray

    global worker
    began = time.monotonic()
    for _ in range(TRIES):
        try:
            if worker is None or worker.key != key or worker.batch > batch \
                    or worker.process.poll() is not None:
                if worker is not None:
                    worker.end()
                    worker = None
                worker = Worker(ray.get(run[0]))
            answer = worker.ask(lambda b: ray.get(history[b]), batch, index, n)
            break
        except Lost as lost:
            worker.end()
            worker = None
            answer = failure(EIO, f"trial {index} ended {TRIES} processes that ran it: {lost}")
    return answer, time.monotonic() - began, node_name()


def node_name():
    import ray
    return f"{ray.util.get_node_ip_address()} ({ray.get_runtime_context().get_node_id()[:8]})"


# ---- here --------------------------------------------------------------------------------

def rewrite(word, moved):
    """A word that names an absolute path which travels, as a relative one: nodes have it
    below another root, and begin in the same place below that."""
    head, equals, tail = word.rpartition(b"=")
    return head + equals + moved[tail] if tail in moved else word


def pack(words, inputs):
    """All that a node needs to run the command's trials."""
    cwd = os.getcwd()
    files, moved = {}, {}
    for name in inputs:
        path = os.path.normpath(os.path.join(cwd, os.fsdecode(name)))
        if not os.path.isfile(path):
            continue
        with open(path, "rb") as f:
            files[path] = f.read()
        while path != "/":
            moved[os.fsencode(path)] = os.fsencode(os.path.relpath(path, cwd))
            path = os.path.dirname(path)
    with open(f"/proc/{os.getppid()}/exe", "rb") as f:
        program = f.read()
    environment = {k: os.fsdecode(rewrite(os.fsencode(os.environ[k]), moved))
                   for k in VARIABLES if k in os.environ}
    words = [rewrite(w, moved) for w in words]
    digest = hashlib.sha256(program)
    for part in [cwd.encode(), *words, *(f"{k}={v}".encode() for k, v in environment.items())]:
        digest.update(hashlib.sha256(part).digest())
    for name, data in sorted(files.items()):
        digest.update(os.fsencode(name) + hashlib.sha256(data).digest())
    return Run(digest.hexdigest()[:32], words, cwd, environment, program, files)


def is_left_behind():
    """Whether the cluster that Ray would join was killed: it would wait for that for long."""
    path = os.path.join(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")
    try:
        with open(path, encoding="utf-8") as f:
            host, port = f.read().strip().rsplit(":", 1)
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return False


def connect(address):
    """Joins the cluster: that address, $RAY_ADDRESS or one that runs here; else starts one."""
    import ray

    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # on a machine at work
    options = {"logging_level": logging.ERROR, "log_to_driver": False,
               "include_dashboard": False}
    if address or os.environ.get("RAY_ADDRESS"):
        del options["include_dashboard"]
        ray.init(address=address or None, **options)
        return ray
    if is_left_behind():
        ray.init(address="local", **options)
        return ray
    try:
        ray.init(address="auto", logging_level=logging.ERROR, log_to_driver=False)
    except ConnectionError:
        ray.init(**options)
    return ray


class Driver:
    def __init__(self, ray, sock):
        self.ray, self.sock = ray, sock
        self.words, self.run, self.key = [], None, None
        self.history = []  # references to the results of batches that are over
        self.results = {}  # of the batch under way
        self.pending = {}  # reference to (batch, index)
        self.inbox = queue.SimpleQueue()
        # Processes of Ray import this file by its text: they need no wheel.
        self.trial = ray.remote(num_cpus=1, max_retries=NODES_LOST)(trial)

    def listen(self):
        """Reads ahead, or the program and this process could wait for each other."""
        while (message := receive(self.sock)) is not None:
            self.inbox.put(message)
        os._exit(0)  # the program has ended; Ray ends what it has started for us

    def take(self, message):
        kind, batch, index, data = message
        if kind == COMMAND:
            self.words = data.split(b"\0")[:-1]
        elif kind == INPUTS:
            run = pack(self.words, data.split(b"\0")[:-1])
            self.key, self.run = run.key, self.ray.put(run)
        elif kind == GIVEN:
            while len(self.history) < batch:  # all answers of the batch before are here
                last = b"".join(struct.pack("=Q", len(self.results[i]) - 1) + self.results[i][1:]
                                for i in range(len(self.results)))
                self.history.append(self.ray.put(last))
                self.results = {}
            n, = struct.unpack("=Q", data)
            ref = self.trial.remote([self.run], self.key, self.history, batch, index, n)
            self.pending[ref] = (batch, index)

    def answer(self, ref):
        batch, index = self.pending.pop(ref)
        try:
            answer, seconds, node = self.ray.get(ref)
            send(self.sock, COST, batch, index,
                 struct.pack("=q", int(seconds * 1e9)) + node.encode())
        except self.ray.exceptions.RayError as error:
            text = str(error).strip().splitlines() or [""]
            # Of what our own code raised Ray first says where; what it was comes last.
            ours = isinstance(error, self.ray.exceptions.RayTaskError)
            answer = failure(EIO, f"Ray could not run trial {index}: {text[-1 if ours else 0]}")
        if answer[:1] == OK:
            self.results[index] = answer
        send(self.sock, ANSWER, batch, index, answer)

    def serve(self):
        nodes = [n for n in self.ray.nodes() if n["Alive"]]
        cpus = self.ray.cluster_resources().get("CPU", 0)
        hello = (f"Ray {self.ray.__version__}: {len(nodes)} node{'s' * (len(nodes) != 1)}, "
                 f"{cpus:g} processors")
        send(self.sock, HELLO, 0, 0, hello.encode())
        threading.Thread(target=self.listen, daemon=True).start()
        while True:
            while not self.pending or not self.inbox.empty():
                self.take(self.inbox.get())
            done, _ = self.ray.wait(list(self.pending), timeout=0.05)
            for ref in done:
                self.answer(ref)


def main(argv):
    sock = socket.socket(fileno=os.dup(0))
    os.dup2(2, 1)  # what others print must not come between messages
    try:
        ray = connect(argv[1] if len(argv) > 1 else "")
    except ImportError as error:
        send(sock, FAILED, 0, 0, failure(
            EINPUT, f"--workers ray needs Ray: pip install 'vtwin[ray]' ({error})"))
        return 2
    except Exception as error:  # whatever Ray raises: the program tells of it in one line
        text = str(error).strip().splitlines()
        send(sock, FAILED, 0, 0, failure(
            EIO, f"--workers ray: {text[0] if text else type(error).__name__}"))
        return 3
    try:
        Driver(ray, sock).serve()
    except (BrokenPipeError, ConnectionResetError):
        return 0
    except Exception as error:
        send(sock, FAILED, 0, 0, failure(EIO, f"--workers ray: {error!r}"))
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv))
