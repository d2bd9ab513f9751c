"""The Python package says what the program says, byte for byte."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import vtwin

LINES = [
    ("simulate", "--num-prompts", "40"),
    ("simulate", "qwen3-8b", "--gpu", "H100", "--num-prompts", "40", "--instances", "2"),
    ("simulate", "--num-prompts", "40", "--slo", "ttft-p99=1"),
    ("capacity", "--num-prompts", "40", "--once", "--seeds", "1"),
    ("capacity", "--num-prompts", "40", "--once", "--seeds", "1", "--slo", "tpot-p99=1"),
    ("tune", "--num-prompts", "40", "--once", "--seeds", "1", "--rates", "1,20",
     "--max-num-seqs", "2,64"),
]


def run(*line):
    return subprocess.run([vtwin.program(), *line, "--json"], capture_output=True, check=False)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
@pytest.mark.filterwarnings("ignore::vtwin.Note")
def test_same_bytes(line):
    said, answer = run(*line), vtwin.ask(*line)
    assert answer.text.encode() == said.stdout
    assert answer.ok == (said.returncode == 0)
    assert [f"vtwin: {n}" for n in [*answer.notes, answer.problem] if n] == \
        said.stderr.decode().splitlines()


@pytest.mark.parametrize("line", [("simulate", "--trace", "nowhere.jsonl"),
                                  ("capacity", "--seeds", "0"), ("tune", "no-such-model")],
                         ids=" ".join)
def test_same_refusals(line):
    with pytest.raises(vtwin.InputError) as e:
        vtwin.ask(*line)
    assert f"vtwin: {e.value}\n" == run(*line).stderr.decode()


def test_threads_ask_at_once():
    alone = [vtwin.ask(*line).text for line in LINES[:2]]
    texts, threads = {}, []
    for i in range(8):
        def ask(i=i):
            texts[i] = vtwin.ask(*LINES[i % 2]).text
        threads.append(threading.Thread(target=ask))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert [texts[i] for i in range(8)] == [alone[i % 2] for i in range(8)]


def test_notes_are_warnings():
    with pytest.warns(vtwin.Note, match="--prefill-schedule-interval has no effect"):
        vtwin.simulate(num_prompts=40, prefill_schedule_interval=2)


def test_ctrl_c_takes_a_question_back():
    """Which would go on for minutes: a million requests."""
    code = ("import vtwin\nprint('asking', flush=True)\n"
            "vtwin.simulate(num_prompts=5000000, request_rate=20, dataset_name='random')")
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "asking\n"
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    assert p.returncode == -signal.SIGINT, err
    assert err.rstrip().endswith("KeyboardInterrupt")


def test_the_gil_is_let_go():
    """While one thread simulates, another one counts."""
    done, counted = threading.Event(), 0

    def ask():
        vtwin.ask("simulate", "--num-prompts", "20000")
        done.set()

    thread = threading.Thread(target=ask)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0)
    thread.join()
    assert counted > 100


def test_rows_of_requests_and_steps():
    a = vtwin.simulate(num_prompts=40, rows=True)
    assert len(a.requests) == a["requests"] == 40
    assert len(a.steps) == a["steps"]


def test_frames():
    pandas = pytest.importorskip("pandas")
    a = vtwin.simulate(num_prompts=40, rows=True)
    assert a.frame().loc["ttft_ms", "p99"] == a["ttft_ms"]["p99"]
    assert isinstance(a.frame("requests"), pandas.DataFrame) and len(a.frame("requests")) == 40
    b = vtwin.capacity(num_prompts=40, once=True, seeds=1)
    assert list(b.frame()["rate"]) == [p["rate"] for p in b["points"]]


def test_engine_is_the_simulator():
    """Requests that all come at once leave the engine as simulate says."""
    with vtwin.Engine("qwen3-8b-h200") as e:
        for i in range(16):
            e.add(i, 256, 32)
        outputs, steps = list(e.run()), e.state()["steps"]
    a = vtwin.simulate(dataset_name="random", num_prompts=16, random_input_len=256,
                       random_output_len=32, request_rate="inf", rows=True, quiet=True)
    assert sum(o.new_tokens for o in outputs) == a["output_tokens"] == 16 * 32
    assert steps == a["steps"]
    # But for their way into the engine's queue, which simulate counts.
    assert max(o.at_ns for o in outputs) / 1e9 == pytest.approx(a["duration_s"], rel=2e-3)


def test_engine_that_is_closed():
    e = vtwin.Engine()
    e.close()
    with pytest.raises(ValueError, match="closed"):
        e.step()
    with pytest.raises(vtwin.InputError, match="no-such"):
        vtwin.Engine("no-such")


def test_server_that_does_not_begin():
    with pytest.raises(vtwin.Error, match="unknown flag '--no-such=1'"):
        vtwin.Server(no_such=1).start()


def test_module_runs_the_program():
    out = subprocess.run([sys.executable, "-m", "vtwin", "--version"], capture_output=True,
                         text=True, check=True).stdout
    assert out.startswith(f"vtwin {vtwin.__version__} ")
    assert os.access(vtwin.program(), os.X_OK)
