"""worker.py VTWIN COMMAND...: `vtwin worker` as a task of Ray asks it, without Ray: the code
of the wheel packs the command, starts the worker and takes its answers."""
import importlib.util
import os
import signal
import struct
import sys
import tempfile

spec = importlib.util.spec_from_file_location(
    "driver", os.path.join(os.environ["VT_ROOT"], "python", "vtwin", "ray.py"))
driver = importlib.util.module_from_spec(spec)
spec.loader.exec_module(driver)

vtwin, words = sys.argv[1], [w.encode() for w in sys.argv[2:]]
tempfile.tempdir = tempfile.mkdtemp(dir=".")  # where nodes unpack
tempfile.tempdir = os.path.abspath(tempfile.tempdir)

# An absolute path travels as one below the node's root.
absolute = os.path.abspath("load.yaml")
words[words.index(b"load.yaml")] = absolute.encode()
run = driver.pack(words, [absolute.encode(), b"gone.yaml"])
run = run._replace(program=open(vtwin, "rb").read())
assert b"load.yaml" in run.words and list(run.files) == [absolute], run.words
os.rename("load.yaml", "elsewhere.yaml")

SEEDS = 2  # jobs of a rate
first = driver.Worker(run)
answers = [first.ask(None, 0, i, SEEDS) for i in range(SEEDS)]
assert all(a[0] == 0 and len(a) > 100 for a in answers), answers

# Another that was told what came of the first batch goes on to the second.
past = b"".join(struct.pack("=Q", len(a) - 1) + a[1:] for a in answers)
second = driver.Worker(run)
later = second.ask(lambda b: past, 1, 0, SEEDS)
assert later[0] == 0 and later != answers[0], later
assert first.ask(lambda b: past, 1, 0, SEEDS) == later

# Files that are not the same make other trials; what cannot go on says why.
assert b"other files" in first.ask(None, 1, 0, 99), "another number of jobs"
broken = driver.Worker(run._replace(key="broken", words=[b"tune", b"--workload", b"nix.yaml"]))
answer = broken.ask(None, 0, 0, 1)
assert answer[0] == 2 and b"nix.yaml" in answer, answer

# Killed: told from an end of its own, since that one would come again.
os.kill(second.process.pid, signal.SIGKILL)
try:
    second.ask(None, 1, 1, SEEDS)
    raise AssertionError("nobody missed it")
except driver.Lost:
    pass
for worker in (first, second, broken):
    worker.end()
