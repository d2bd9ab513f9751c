"""metrics.py URL FILE - /metrics has the series that FILE lists, and no others of vLLM's; those
that FILE gives as "some" are not zero. FILE was made from a real engine's answer, with --list."""
import sys

import httpx

from client import read_metrics

BESIDE = ("engine", "model_name") # labels that every series has
ALWAYS_NEW = ("_created", "_bucket")


def series(text):
    """{name{labels}: value}, of settings the names of labels alone."""
    found = {}
    for (name, labels), value in read_metrics(text).items():
        if not name.startswith("vllm:") or name.endswith(ALWAYS_NEW):
            continue
        shown = ",".join(k if name.endswith("_info") else f"{k}={v}" for k, v in labels if k not in BESIDE)
        found[name + (f"{{{shown}}}" if shown else "")] = value
    return found


def main(url, path):
    have = series(httpx.get(url + "/metrics", trust_env=False).text)
    want = dict(line.split() for line in open(path))
    wrong = [f"missing: {name}" for name in want if name not in have]
    wrong += [f"not in {path}: {name}" for name in have if name not in want]
    wrong += [f"zero: {name}" for name, is_there in want.items() if is_there == "some" and have.get(name) == 0]
    print("\n".join(wrong) or f"ok metrics: {len(want)} series, {list(want.values()).count('some')} not zero")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        for name, value in sorted(series(open(sys.argv[2]).read()).items()):
            print(name, "some" if value else "zero")
    else:
        sys.exit(main(*sys.argv[1:]))
