"""One engine, step by step: it is told the time and says when each token leaves."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from vtwin import _lib

NEVER = (1 << 63) - 1  # VTWIN_NEVER
_FINISH = (None, "stop", "length", "abort")


class Output(NamedTuple):
    """What left the engine for one request."""

    id: int
    at_ns: int
    first_index: int
    new_tokens: int
    finish: Optional[str]  # None: it goes on; "stop", "length", "abort"


class Engine:
    """A twin of one vLLM engine under a clock of your own.

    ``model`` is a profile by name or path, or a latency model with its parameters; other
    keywords are those of ``struct vtwin_engine_options``, as vLLM names its flags.

    >>> import vtwin
    >>> with vtwin.Engine("qwen3-8b-h200", max_num_seqs=8) as e:
    ...     for i in range(3):
    ...         e.add(i, prompt_tokens=100, output_tokens=5)
    ...     outputs = list(e.run())
    >>> sum(o.new_tokens for o in outputs), {o.finish for o in outputs if o.finish}
    (15, {'length'})
    >>> vtwin.Engine("qwen3-8b-h200", max_num_seq=8)
    Traceback (most recent call last):
    TypeError: no engine option 'max_num_seq'
    """

    def __init__(self, model: str = "qwen3-8b-h200", **options: Any) -> None:
        self._error = _lib.new("vtwin_error")
        self._engine: Any = _lib.ffi.NULL
        self._model: Any = _lib.ffi.NULL
        made = _lib.ffi.new("struct vtwin_model **")
        _lib.check(_lib.lib.vtwin_model_open(made, model.encode(), self._error), self._error)
        self._model = made[0]
        wanted = _lib.ffi.new("struct vtwin_engine_options *")
        _lib.check(_lib.lib.vtwin_engine_options_init(wanted, self._model, self._error),
                   self._error)
        for key, value in options.items():
            if key == "size" or not hasattr(wanted, key):
                raise TypeError(f"no engine option '{key}'")
            setattr(wanted, key, value)
        made = _lib.ffi.new("struct vtwin_engine **")
        _lib.check(_lib.lib.vtwin_engine_new(made, self._model, wanted, self._error),
                   self._error)
        self._engine = made[0]
        self._n = _lib.ffi.new("size_t *")
        self._request = _lib.new("vtwin_request")
        self._state = _lib.new("vtwin_engine_state")
        #: of the last thing that it was told, in nanoseconds
        self.now_ns = 0

    def close(self) -> None:
        """Frees it. The end of a ``with`` does so too."""
        _lib.lib.vtwin_engine_free(self._engine)
        _lib.lib.vtwin_model_free(self._model)
        self._engine = self._model = _lib.ffi.NULL

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self.close()

    def _open(self) -> Any:
        if not self._engine:
            raise ValueError("the engine is closed")
        return self._engine

    def _at(self, now_ns: Optional[int]) -> int:
        if now_ns is not None:
            if now_ns < self.now_ns:
                raise ValueError(f"time goes back: {now_ns} after {self.now_ns}")
            self.now_ns = now_ns
        return self.now_ns

    def add(self, id: int, prompt_tokens: int, output_tokens: int,  # noqa: A002
            now_ns: Optional[int] = None, *, priority: int = 0, prefix_id: int = 0,
            prefix_tokens: int = 0) -> None:
        """Offers a request. Those with one ``prefix_id`` begin with the same tokens."""
        e, r = self._open(), self._request
        r.id, r.prompt_tokens, r.output_tokens = id, prompt_tokens, output_tokens
        r.priority, r.prefix_id, r.prefix_tokens = priority, prefix_id, prefix_tokens
        _lib.check(_lib.lib.vtwin_engine_add(e, self._at(now_ns), r, self._error), self._error)

    def abort(self, id: int, now_ns: Optional[int] = None) -> bool:  # noqa: A002
        """Whether there was such a request."""
        return bool(_lib.lib.vtwin_engine_abort(self._open(), self._at(now_ns), id))

    @property
    def due_ns(self) -> Optional[int]:
        """When to call step() next; None: not before something is added."""
        due = int(_lib.lib.vtwin_engine_due(self._open()))
        return None if due == NEVER else due

    def step(self, now_ns: Optional[int] = None) -> List[Output]:
        """Does the one thing that is due and tells what left the engine by it. Without a time
        it is that when it is due."""
        e = self._open()
        if now_ns is None:
            now_ns = self.due_ns
            if now_ns is None:
                return []
            now_ns = max(now_ns, self.now_ns)
        _lib.check(_lib.lib.vtwin_engine_step(e, self._at(now_ns), _lib.ffi.NULL, _lib.ffi.NULL,
                                              self._error), self._error)
        first = _lib.lib.vtwin_engine_outputs(e, self._n)
        return [Output(o.id, o.at_ns, o.first_index, o.new_tokens, _FINISH[o.finish])
                for o in (_lib.ffi.unpack(first, self._n[0]) if self._n[0] else ())]

    def run(self, until_ns: Optional[int] = None) -> Iterator[Output]:
        """Steps until nothing is due, or not before ``until_ns``."""
        while True:
            due = self.due_ns
            if due is None or (until_ns is not None and due > until_ns):
                return
            yield from self.step(max(due, self.now_ns))

    def state(self) -> Dict[str, Any]:
        """Requests waiting and running, KV usage, and totals so far.

        >>> e = Engine()
        >>> e.add(1, 100, 5)
        >>> list(e.run())[-1].finish, e.state()["running"]
        ('length', 0)
        """
        _lib.lib.vtwin_engine_state(self._open(), self.now_ns, self._state)
        names = (name for name, _ in _lib.ffi.typeof(self._state[0]).fields)
        return {name: getattr(self._state, name) for name in names if name != "size"}
