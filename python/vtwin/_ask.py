"""Questions: a command's flags as keywords, its JSON as a dict."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
import threading
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple, cast

from vtwin import _lib

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from vtwin._flags import CapacityFlags, SimulateFlags, TuneFlags


class Note(UserWarning):
    """What a command says besides its answer, such as that a run left what was measured."""


class Answer(Dict[str, Any]):
    """A command's JSON, as a dict.

    ``text`` is what the command would have printed, byte for byte. ``ok`` is False where its
    exit status would be 1 (a limit is broken, no rate keeps the limits); ``problem`` then says
    which.
    """

    text: str
    ok: bool = True
    problem: str = ""
    notes: List[str]
    #: of ``simulate(..., rows=True)``: one dict for each request, and for each step
    requests: List[Dict[str, Any]]
    steps: List[Dict[str, Any]]

    _rows = ("points", "tried", "rows")

    def frame(self, what: Optional[str] = None) -> "pandas.DataFrame":
        """A pandas DataFrame.

        Of a simulation: latencies, one row for each kind (``ttft_ms`` ...), or with ``what``
        "requests" or "steps" one row for each of those. Of a capacity its points, of a tuning
        what was tried.

        >>> import vtwin
        >>> a = vtwin.simulate(num_prompts=40)
        >>> try:
        ...     import pandas
        ...     p99 = float(a.frame().loc["ttft_ms", "p99"])
        ... except ImportError:
        ...     p99 = a["ttft_ms"]["p99"]
        >>> p99 == a["ttft_ms"]["p99"]
        True
        """
        import pandas

        if what in ("requests", "steps"):
            return pandas.json_normalize(getattr(self, what))
        if what is not None:
            return pandas.json_normalize(self[what])
        for name in self._rows:
            if isinstance(self.get(name), list):
                return pandas.json_normalize(self[name])
        kinds = {k: v for k, v in self.items() if k.endswith("_ms") and isinstance(v, dict)}
        return pandas.DataFrame.from_dict(kinds, orient="index")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):  # limits: {"ttft-p99": 200}
        return ",".join(f"{k.replace('_', '-')}={_text(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    return str(os.fspath(value) if isinstance(value, os.PathLike) else value)


# A list is this flag again and again; of all others it is one value with commas.
_REPEATED = ("against", "replica", "oracle")


def words(model: Optional[str], flags: Mapping[str, Any]) -> List[str]:
    """A command line's words: ``max_num_seqs=64`` is ``--max-num-seqs=64``, True is the flag
    alone, False ``--no-...``, None nothing.

    >>> words("qwen3-8b", {"gpu": "H200", "rates": [1, 2], "once": True, "jobs": None})
    ['qwen3-8b', '--gpu=H200', '--rates=1,2', '--once']
    >>> words(None, {"enable_prefix_caching": False, "slo": {"ttft_p99": 200}})
    ['--no-enable-prefix-caching', '--slo=ttft-p99=200']
    """
    out = [] if model is None else [model]
    for key, value in flags.items():
        name = key.replace("_", "-")
        if value is None:
            continue
        if value is True or value is False:
            out.append(f"--{'' if value else 'no-'}{name}")
        elif name in _REPEATED and isinstance(value, (list, tuple)):
            out.extend(f"--{name}={_text(v)}" for v in value)
        else:
            out.append(f"--{name}={_text(value)}")
    return out


def _call(question: Any, stop: Any) -> Tuple[int, str, str, str]:
    """In the main thread Ctrl-C must be heard while the library works: it then works in
    another one and is told to stop."""
    out, error = _lib.ffi.new("struct vtwin_answer **"), _lib.new("vtwin_error")
    code: List[int] = []

    def ask() -> None:
        code.append(_lib.lib.vtwin_ask(out, question, error))

    if threading.current_thread() is not threading.main_thread():
        ask()
    else:
        worker = threading.Thread(target=ask, name="vtwin", daemon=True)
        worker.start()
        try:
            worker.join()
        except BaseException:
            stop[0] = 1
            worker.join()
            _lib.lib.vtwin_answer_free(out[0])
            raise
    size = _lib.ffi.new("size_t *")

    def read(function: Any) -> str:
        start = function(out[0], size)
        return bytes(_lib.ffi.buffer(start, size[0])).decode(errors="replace")

    try:
        return (code[0], read(_lib.lib.vtwin_answer_json), read(_lib.lib.vtwin_answer_notes),
                _lib.ffi.string(error.message).decode(errors="replace"))
    finally:
        _lib.lib.vtwin_answer_free(out[0])


def ask(*line: str) -> Answer:
    """A command line, as the program takes it, and its JSON: of simulate, capacity and tune.

    >>> ask("simulate", "--num-prompts", "40")["requests"]
    40
    >>> ask("simulate", "--max-num-seq", "8")
    Traceback (most recent call last):
    vtwin._lib.InputError: unknown flag '--max-num-seq' (did you mean '--max-num-seqs'?)
    """
    kept = [_lib.ffi.new("char[]", os.fsencode(w)) for w in line]
    array = _lib.ffi.new("char *[]", kept)
    stop = _lib.ffi.new("int *", 0)
    question = _lib.new("vtwin_question", n_words=len(kept), stop=stop)
    question.words = _lib.ffi.cast("char **", array)
    code, text, notes, problem = _call(question, stop)
    if code not in (_lib.OK, _lib.CHECK) or (code == _lib.CHECK and not text):
        _lib.check(code, _lib.new("vtwin_error", message=problem.encode()))
    answer = Answer(json.loads(text))
    answer.text, answer.ok, answer.problem = text, code == _lib.OK, problem
    answer.notes = [n.removeprefix("vtwin: ") for n in notes.splitlines()]
    for note in answer.notes:
        warnings.warn(note, Note, stacklevel=3)
    return answer


def _lines(path: pathlib.Path) -> Iterator[Dict[str, Any]]:
    with path.open(encoding="utf-8") as f:
        for line in f:
            row = cast(Dict[str, Any], json.loads(line))
            if "meta" not in row:
                yield row


def simulate(model: Optional[str] = None, *, rows: bool = False,
             **flags: "Unpack[SimulateFlags]") -> Answer:
    """Predicts how an engine, or a fleet of them, serves a workload: ``vtwin simulate``.

    Keywords are the command's flags. With ``rows`` the answer also has ``requests`` and
    ``steps``, one dict for each.

    >>> import vtwin
    >>> a = vtwin.simulate("qwen3-8b", gpu="H200", num_prompts=40, slo={"ttft_p99": 200})
    >>> a["requests"], a.ok, a["settings"]["model"]
    (40, True, 'Qwen/Qwen3-8B')
    >>> a = vtwin.simulate(num_prompts=40, slo={"ttft_p99": 1})
    >>> a.ok, a.problem.startswith("TTFT p99")
    (False, True)
    >>> len(vtwin.simulate(num_prompts=40, rows=True).requests)
    40
    """
    if not rows:
        return ask("simulate", *words(model, flags))
    if flags.get("out"):
        raise TypeError("rows: give out= or rows=, not both")
    with tempfile.TemporaryDirectory(prefix="vtwin-") as tmp:
        out = pathlib.Path(tmp, "report")
        answer = ask("simulate", *words(model, flags), f"--out={out}")
        answer.requests = list(_lines(out / "requests.jsonl"))
        answer.steps = list(_lines(out / "steps.jsonl"))
    return answer


def capacity(model: Optional[str] = None, **flags: "Unpack[CapacityFlags]") -> Answer:
    """The highest request rate within latency limits: ``vtwin capacity``.

    Worker processes share the work, as many as there are cores, unless ``jobs`` says otherwise.

    >>> import vtwin
    >>> a = vtwin.capacity(num_prompts=40, once=True, seeds=1, slo={"tpot_p99": 12})
    >>> 0 < a["capacity"] < a["failed_rate"]
    True
    """
    return ask("capacity", *words(model, flags))


def tune(model: Optional[str] = None, **flags: "Unpack[TuneFlags]") -> Answer:
    """The engine settings that bear the most: ``vtwin tune``.

    >>> import vtwin
    >>> a = vtwin.tune(num_prompts=40, once=True, seeds=1, rates=[1, 20], max_num_seqs=[2, 64],
    ...                max_num_batched_tokens=8192, quiet=True)
    >>> a["best"]["max_num_seqs"], len(a["tried"])
    (64, 2)
    """
    return ask("tune", *words(model, flags))
