"""driver.py - tokenize.c, compiled and talked to. Shared by the scripts beside it."""
import atexit
import glob
import os
import shutil
import struct
import subprocess
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def build(flags=("-O2",)):
    """Compiles tokenize.c with the rooms it needs; returns the program's path."""
    folder = tempfile.mkdtemp(prefix="tokenize-")
    atexit.register(shutil.rmtree, folder)
    out = os.path.join(folder, "tokenize")
    sources = [os.path.join(HERE, "tokenize.c")]
    for room in ("base", "text"):
        sources += sorted(glob.glob(os.path.join(ROOT, "src", room, "**", "*.c"), recursive=True))
    subprocess.run(
        [os.environ.get("CC", "cc"), "-std=c17", "-D_POSIX_C_SOURCE=200809L", *flags,
         "-I", os.path.join(ROOT, "src"), "-o", out, *sources,
         "-lpcre2-8", "-lz", "-lyaml", "-lm"],
        check=True,
    )
    return out


class Driver:
    """One tokenizer in a process of its own."""

    def __init__(self, program, path):
        self.process = subprocess.Popen(
            [program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def _send(self, requests):
        for kind, flags, data in requests:
            self.process.stdin.write(kind.encode() + struct.pack("=II", flags, len(data)) + data)
        self.process.stdin.flush()

    def _receive(self):
        head = self.process.stdout.read(8)
        if len(head) < 8:
            raise RuntimeError(f"tokenize ended with {self.process.wait()}")
        status, size = struct.unpack("=II", head)
        return status, self.process.stdout.read(size)

    def ask(self, requests):
        """[(letter, flags, bytes)] -> [bytes]; an error is an exception."""
        sender = threading.Thread(target=self._send, args=(requests,))
        sender.start()
        answers = [self._receive() for _ in requests]
        sender.join()
        for status, data in answers:
            if status:
                raise ValueError(data.decode())
        return [data for _, data in answers]

    def ids(self, texts, flags=0):
        answers = self.ask([("e", flags, t.encode()) for t in texts])
        return [list(struct.unpack(f"={len(a) // 4}I", a)) for a in answers]

    def texts(self, id_lists, flags=0):
        answers = self.ask([("d", flags, struct.pack(f"={len(i)}I", *i)) for i in id_lists])
        return [a.decode() for a in answers]

    def streams(self, id_lists, flags=0):
        """For each list of ids, what came out behind each id."""
        out = []
        for data in self.ask([("s", flags, struct.pack(f"={len(i)}I", *i)) for i in id_lists]):
            pieces = []
            while data:
                (size,) = struct.unpack("=I", data[:4])
                pieces.append(data[4 : 4 + size].decode())
                data = data[4 + size :]
            out.append(pieces)
        return out

    def close(self):
        self.process.stdin.close()
        self.process.wait()
