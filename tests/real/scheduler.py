"""vLLM's scheduler and the twin's, side by side on random configurations.

    scheduler.py [--seeds FIRST..LAST | --seed N | --minutes M] [--all] [--shrink] [--keep DIR]
    scheduler.py --again FILE...

A seed makes a configuration and its traffic; the installed vLLM's own scheduler runs them
(recorder.py), and `vtwin simulate --oracle` has to repeat every step. Prints how much was
compared and the first difference, with the command that repeats it; exit 1 if there was one.
--again records the cases of FILEs once more and compares with what they hold, field by field.
"""

import argparse
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import recorder  # noqa: E402
from recorder import RELEASE, VERSION  # noqa: E402

VTWIN = os.environ.get("VTWIN", "build/vtwin")
MOST_STEPS = 400  # of one case
BATCH = 50  # files to a call


# ---- random configurations -------------------------------------------------


def layers(rng, align):
    """Kinds of attention as models have them, and some that none has."""
    dim = lambda: rng.choice([8, 8, 8, 16, 32])  # noqa: E731
    window = lambda: rng.choice([5, 16, 17, 33, 64, 100, 128])  # noqa: E731
    full = lambda n=1: {"type": "full", "n": n, "dim": dim()}  # noqa: E731
    sliding = lambda n=1: {"type": "sliding", "n": n, "window": window(), "dim": dim()}  # noqa: E731
    chunked = lambda n=1: {"type": "chunked", "n": n, "chunk": rng.choice([32, 64, 128]),  # noqa: E731
                           "dim": dim()}  # fmt: skip
    mla = lambda n=1: {"type": "mla", "n": n, "dim": rng.choice([16, 32])}  # noqa: E731
    mamba = lambda n=1: {"type": "mamba", "n": n, "state": rng.choice([50, 100, 128])}  # noqa: E731
    some = lambda: rng.randint(1, 4)  # noqa: E731
    if align:
        return rng.choice(
            [
                lambda: [mamba(some()), full(some())],
                lambda: [full(), mamba(3)],
                lambda: [mamba(2), full(), mamba(2), full()],
                lambda: [mamba(2), full(2), sliding(2)],
            ]
        )()
    return rng.choice(
        [
            lambda: [full(some())],
            lambda: [full(some())],
            lambda: [mla(some())],
            lambda: [sliding(some())],
            lambda: [sliding(1), full(1)] * 2,
            lambda: [sliding(5), full(1)],
            lambda: [full(some()), sliding(some())],
            lambda: [full(some()), sliding(some()), sliding(some())],
            lambda: [full(some()), chunked(some())],
            lambda: [full(), chunked(), sliding()],
            lambda: [mla(some()), full(some())],
            lambda: [mla(some()), sliding(some())],
            lambda: [sliding(some()), sliding(some())],
            lambda: [mamba(some()), full(some())],
            lambda: [mamba(some())],
            lambda: [mamba(), full(), sliding()],
        ]
    )()


def engine(rng):
    caching = rng.random() < 0.75
    align = caching and rng.random() < 0.15
    kinds = layers(rng, align)
    mamba = any(x["type"] == "mamba" for x in kinds)
    length = rng.choice([96, 200, 256, 512])
    spec = 0 if mamba or rng.random() < 0.7 else rng.randint(1, 4)
    seqs = rng.choice([1, 2, 4, 8, 16])
    chunked = align or rng.random() < 0.85
    kind = {x["type"] for x in kinds}
    if "mamba" in kind and len(kind) > 1 and not align:
        caching = False  # vLLM refuses it
    c = dict(
        max_num_seqs=seqs,
        max_num_batched_tokens=max(seqs, rng.choice([16, 33, 64, 100, 128, 256, 512])),
        max_model_len=length,
        block_size=rng.choice([4, 8, 16, 16, 16, 32]),
        enable_prefix_caching=caching,
        enable_chunked_prefill=chunked,
        policy=rng.choice(["fcfs", "fcfs", "priority"]),
        watermark=rng.choice([0.0, 0.0, 0.0, 0.05, 0.2]),
        scheduler_reserve_full_isl=rng.random() < 0.7,
        async_scheduling=rng.random() < 0.4,
        num_spec_tokens=spec,
        spec_method=rng.choice(["ngram", "eagle"]) if spec and "chunked" not in kind else "ngram",
        kv_events=caching and rng.random() < 0.25,
        prefill_schedule_interval=rng.choice([1, 1, 1, 1, 2, 4]),
        disable_hybrid_kv_cache_manager="full" in kind and not mamba and rng.random() < 0.15,
        mamba_cache_mode="align" if align else "none",
        kv_layers=kinds,
    )
    if not chunked:
        c["max_num_batched_tokens"] = max(c["max_num_batched_tokens"], length)
    if align:
        c["max_num_batched_tokens"] = max(c["max_num_batched_tokens"], 2 * c["block_size"])
    if align and RELEASE >= 32 and rng.random() < 0.5:
        for layer in kinds:
            layer["saves"] = layer["type"] == "mamba"
    if rng.random() < 0.3:
        c["long_prefill_token_threshold"] = rng.choice([8, 32, 50, 90])
        c["long_prefill_token_threshold_adaptive"] = RELEASE >= 31 and rng.random() < 0.4
    if align and c.get("long_prefill_token_threshold"):
        c["long_prefill_token_threshold"] = max(c["long_prefill_token_threshold"], c["block_size"])
    if rng.random() < 0.1:
        c["max_num_scheduled_tokens"] = max(seqs, c["max_num_batched_tokens"] // 2)
    if RELEASE >= 31 and rng.random() < 0.15:
        c["max_num_active_seqs"] = rng.randint(1, seqs)
    if rng.random() < 0.15:
        c["max_loras"] = rng.randint(1, 3)
    if kind & {"sliding", "mamba"} and not c["disable_hybrid_kv_cache_manager"] and rng.random() < 0.3:
        c["retention_interval"] = rng.choice(["dense", 0, 32, 64, 128])
    return c


def prompt(rng, i, longest, reqs):
    """Some begin alike, some go on where another ended."""
    n = min(longest, rng.choice([rng.randint(1, 24), rng.randint(1, longest), rng.randint(1, 100)]))
    how = rng.random()
    if how < 0.3 and n > 1:
        shared = rng.randint(1, n - 1)
        return [{"s": rng.randint(900, 902), "n": shared}, {"s": i + 1, "n": n - shared}]
    if how < 0.45:
        return [{"s": 900, "n": n}]
    if how < 0.65 and reqs:
        j = rng.randrange(len(reqs))
        before = reqs[j]
        out = rng.randint(1, before["max_tokens"])
        parts = [dict(p) for p in before["prompt"]] + [{"out": j, "n": out}, {"s": i + 1, "n": 1 + n // 4}]
        if sum(p["n"] for p in parts) <= longest:
            return parts
    return [{"s": i + 1, "n": n}]


def traffic(rng, c):
    reqs, longest = [], c["max_model_len"] - 1
    span = rng.choice([0, 10, 40])
    salts, ties = rng.random() < 0.2, rng.random() < 0.3
    for i in range(rng.randint(2, 16)):
        at = rng.randint(0, span)
        r = {
            "prompt": prompt(rng, i, longest, reqs),
            "max_tokens": rng.choice([1, 2, rng.randint(1, 20), rng.randint(1, 60)]),
            "arrival_step": at,
            "id": f"q{i}",
            "priority": rng.randint(0, 2) if c["policy"] == "priority" else 0,
            "arrival_time": float(at) if ties else round(at + i * 1e-6, 6),
        }
        if rng.random() < 0.2:
            r[rng.choice(["eos_at", "stop_at"])] = rng.randint(0, r["max_tokens"])
        if rng.random() < 0.1:
            r["min_tokens"] = rng.randint(1, r["max_tokens"])
        if rng.random() < 0.1:
            r["skip_cache"] = True
        if salts and rng.random() < 0.5:
            r["cache_salt"] = rng.choice(["a", "b"])
        if rng.random() < 0.1:
            r["abort_step"] = at + rng.randint(0, 30)
        if c.get("max_loras") and rng.random() < 0.7:
            r["lora"] = rng.randint(1, 4)
        reqs.append(r)
    return reqs


def actions(rng):
    if rng.random() < 0.85:
        return []
    steps = sorted(rng.sample(range(1, 40), rng.randint(1, 4)))
    kinds = ["pause_new", "pause_all", "reset_prefix_cache", "reset_prefix_cache_preempt", "unpause"]
    out = [{"step": s, "do": rng.choice(kinds)} for s in steps]
    return out + [{"step": 45, "do": "unpause"}]


def case_of(seed):
    rng = random.Random(seed)
    c = engine(rng)
    requests, acts = traffic(rng, c), actions(rng)
    need, page = recorder.smallest_pool(c)
    blocks = 1 + max(2, int(need * rng.choice([1.0, 1.0, 1.2, 1.6, 3.0, 10.0])))
    c["available_memory"] = blocks * page + rng.randrange(page)
    return {"case": f"seed{seed}", "config": c, "requests": requests, "actions": acts}


# ---- comparison ------------------------------------------------------------


def write(recording, path):
    path.write_text(json.dumps(recording, separators=(",", ":")))


def replay(paths):
    """The first difference: (index of its file, what vtwin says), or None."""
    flags = [x for p in paths for x in ("--oracle", str(p))]
    p = subprocess.run([VTWIN, "simulate", *flags], capture_output=True, text=True)
    if p.returncode == 0:
        return None
    said = (p.stderr.strip() or f"exit {p.returncode}").splitlines()[-1]
    at = next((i for i, path in enumerate(paths) if str(path) in said), None)
    if at is None:  # it died: look for the one
        for at, path in enumerate(paths):
            one = subprocess.run([VTWIN, "simulate", "--oracle", path], capture_output=True, text=True)
            if one.returncode != 0:
                return at, one.stderr.strip() or f"exit {one.returncode}"
        return 0, said
    return at, said.replace(str(paths[at]), paths[at].name)


def differs(case, place):
    path = place / "case.json"
    try:
        write(recorder.record(case, MOST_STEPS), path)
    except Exception:  # vLLM does not take it, or breaks
        return None
    found = replay([path])
    return found and found[1]


def without(case, i):
    """The case without its i-th request; what others took from it is made up instead."""
    out = json.loads(json.dumps(case))
    del out["requests"][i]
    for r in out["requests"]:
        for p in r["prompt"]:
            if p.get("out") == i:
                del p["out"]
                p["s"] = 5000 + i
            elif p.get("out", -1) > i:
                p["out"] -= 1
    return out


def smaller(case):
    for k in range(len(case["actions"])):
        yield {**case, "actions": case["actions"][:k] + case["actions"][k + 1 :]}
    if len(case["requests"]) > 1:
        for i in range(len(case["requests"])):
            yield without(case, i)
    for key, plain in recorder.DEFAULTS.items():
        if key in case["config"] and case["config"][key] != plain and key not in ("block_size",):
            yield {**case, "config": {**case["config"], key: plain}}
    for i, r in enumerate(case["requests"]):
        for key in ("eos_at", "stop_at", "min_tokens", "skip_cache", "cache_salt", "abort_step", "lora"):
            if key in r:
                reqs = [dict(x) for x in case["requests"]]
                del reqs[i][key]
                yield {**case, "requests": reqs}


def shrink(case, place, seconds=60):
    until, found = time.monotonic() + seconds, True
    while found and time.monotonic() < until:
        found = False
        for candidate in smaller(case):
            if time.monotonic() > until:
                break
            if differs(candidate, place):
                case, found = candidate, True
                break
    return case


class Tally:
    def __init__(self):
        self.configs = self.steps = self.requests = self.refused = 0
        self.bad, self.broke = [], []  # (seed, what); seeds
        self.begun = time.monotonic()

    def line(self):
        s = time.monotonic() - self.begun
        return (
            f"vLLM {VERSION}: {self.configs} configurations, {self.requests} requests, "
            f"{self.steps} steps compared in {s:.0f} s ({60 * self.steps / s:.0f} steps a minute); "
            f"{self.refused} that vLLM refuses, {len(self.broke)} that it ends on; "
            f"{len(self.bad)} differ"
        )


def compare_batch(seeds, place, tally):
    paths, kept = [], []
    for seed in seeds:
        try:
            recording = recorder.record(case_of(seed), MOST_STEPS)
        except recorder.Refused:
            tally.refused += 1
            continue
        except Exception as e:  # vLLM itself broke on the way: nothing to compare with
            tally.broke.append(seed)
            print(f"seed {seed}: vLLM ended with {type(e).__name__}: {str(e)[:200]}")
            continue
        path = place / f"seed{seed}.json"
        write(recording, path)
        tally.configs += 1
        tally.steps += len(recording["steps"])
        tally.requests += len(recording["requests"])
        paths.append(path)
        kept.append(seed)
    while paths and (found := replay(paths)):
        at, said = found
        tally.bad.append((kept[at], said))
        paths, kept = paths[at + 1 :], kept[at + 1 :]
    for p in place.glob("seed*.json"):
        p.unlink()


def seeds_of(args):
    if args.seed is not None:
        yield args.seed
        return
    first, last = map(int, args.seeds.split(".."))
    until = time.monotonic() + 60 * args.minutes if args.minutes else None
    seed = first
    while time.monotonic() < until if until else seed <= last:
        yield seed
        seed += 1


def batches(seeds):
    batch = []
    for seed in seeds:
        batch.append(seed)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def explain(seed, said, args, place):
    print(f"seed {seed}: {said[:2000]}")
    print(f"    again: VTWIN={VTWIN} PYTHONHASHSEED=0 {sys.executable} {sys.argv[0]} --seed {seed}")
    case = case_of(seed)
    if args.shrink:
        case = shrink(case, place)
        case["case"] = f"seed{seed}_small"
        print(f"    shrunk: {len(case['requests'])} requests: {differs(case, place)}")
    if args.keep:
        keep = pathlib.Path(args.keep)
        keep.mkdir(parents=True, exist_ok=True)
        write(recorder.record(case, MOST_STEPS), keep / f"{case['case']}.json")
        print(f"    kept: {keep / case['case']}.json")


def compare(args):
    tally = Tally()
    with tempfile.TemporaryDirectory() as d:
        place = pathlib.Path(d)
        for batch in batches(seeds_of(args)):
            compare_batch(batch, place, tally)
            if args.minutes:
                print(tally.line(), file=sys.stderr)
        for n, (seed, said) in enumerate(tally.bad):
            if n == 0 or args.all:
                explain(seed, said, args, place)
    if len(tally.bad) > 1 and not args.all:
        print("differ too:", *(seed for seed, _ in tally.bad[1:]))
    print(tally.line())
    return 1 if tally.bad or tally.configs == 0 else 0


# ---- recordings again ------------------------------------------------------

UNTOLD = {"description", "summary"}  # of older recordings, and what they lack
UNTOLD_CONFIG = {"kv_tensors", "offload", "prefix_match_unit", "use_v2_model_runner",
                 "max_num_active_seqs", "long_prefill_token_threshold_adaptive", "max_loras",
                 "use_eagle"}  # fmt: skip


def first_difference(mine, theirs, path=""):
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for k in list(theirs) + [k for k in mine if k not in theirs]:
            if (k not in mine) != (k not in theirs):
                return f"{path}.{k}: only in one of them"
            if found := first_difference(mine[k], theirs[k], f"{path}.{k}"):
                return found
        return None
    if isinstance(mine, list) and isinstance(theirs, list):
        for i, (a, b) in enumerate(zip(mine, theirs)):
            if found := first_difference(a, b, f"{path}[{i}]"):
                return found
        return None if len(mine) == len(theirs) else f"{path}: {len(mine)} and {len(theirs)}"
    return None if mine == theirs else f"{path}: {mine} and {theirs}"


def known_only(recording):
    out = {k: v for k, v in recording.items() if k not in UNTOLD}
    out["config"] = {k: v for k, v in out["config"].items() if k not in UNTOLD_CONFIG}
    return out


def again(files):
    bad = compared = 0
    for f in map(pathlib.Path, files):
        text = gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes()
        told = json.loads(text)
        if told["format"] != "vllm-sched-oracle/2" or told["vllm_version"] != VERSION:
            continue
        if told["config"].get("offload"):
            continue
        known = set(recorder.DEFAULTS) | {"kv_layers", "available_memory"}
        case = {
            "case": told["case"],
            "config": {k: v for k, v in told["config"].items() if k in known},
            "requests": told["requests"],
            "actions": told["actions"],
        }
        mine = json.loads(json.dumps(recorder.record(case, len(told["steps"]))))
        compared += 1
        if found := first_difference(known_only(mine), known_only(told)):
            bad += 1
            print(f"{f.name}: {found[:400]}")
    print(f"vLLM {VERSION}: {compared} recordings made again, {bad} differ")
    return 1 if bad or not compared else 0


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seeds", default="1..300")
    p.add_argument("--seed", type=int)
    p.add_argument("--minutes", type=float)
    p.add_argument("--keep")
    p.add_argument("--shrink", action="store_true")
    p.add_argument("--all", action="store_true", help="show every difference")
    p.add_argument("--again", nargs="+")
    args = p.parse_args()
    sys.exit(again(args.again) if args.again else compare(args))


if __name__ == "__main__":
    main()
