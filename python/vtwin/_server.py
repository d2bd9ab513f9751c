"""``vtwin serve`` for as long as a test or a script needs it."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sysconfig
import threading
from typing import TYPE_CHECKING, List, Mapping, Optional

from vtwin import _lib
from vtwin._ask import words

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from vtwin._flags import ServeFlags


def program() -> str:
    """Where the program of this package is.

    >>> import os
    >>> os.access(program(), os.X_OK)
    True
    """
    beside = pathlib.Path(__file__).absolute().parents[1] / "bin"  # pip install --target
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    for place in [str(beside), *schemes]:
        path = os.path.join(place, "vtwin")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("vtwin")
    if not found:
        raise FileNotFoundError("no program vtwin: not beside this package, not on PATH")
    return found


class Server:
    """An OpenAI-compatible server of a simulated engine, on a free port of this machine.

    Keywords are the flags of ``vtwin serve``. What it says goes to ``log``.

    >>> import json, urllib.request, vtwin
    >>> with vtwin.Server("qwen3-8b", gpu="H200", served_model_name="tiny") as server:
    ...     with urllib.request.urlopen(server.url + "/v1/models") as reply:
    ...         json.load(reply)["data"][0]["id"]
    'tiny'
    """

    def __init__(self, model: Optional[str] = None, *, seconds: float = 60,
                 env: Optional[Mapping[str, str]] = None,
                 **flags: "Unpack[ServeFlags]") -> None:
        flags.setdefault("port", 0)
        self.command = [program(), "serve", *words(model, flags)]
        self.seconds = seconds  #: that it may take to begin, and to end
        self.url = ""  #: of the server; clients of OpenAI's take ``base_url``
        self.log: List[str] = []
        self._env = None if env is None else {**os.environ, **env}
        self._process: Optional["subprocess.Popen[str]"] = None

    @property
    def base_url(self) -> str:
        return self.url + "/v1"

    def start(self) -> "Server":
        """Returns when it answers."""
        self._process = subprocess.Popen(  # noqa: S603
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace", env=self._env)
        ready = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(ready,), daemon=True)
        self._reader.start()
        if not ready.wait(self.seconds) or not self.url:
            self.stop()
            said = self.log[-1].removeprefix("vtwin: ") if self.log else "it said nothing"
            raise _lib.Error(f"vtwin serve did not begin: {said}")
        return self

    def _read(self, ready: threading.Event) -> None:
        assert self._process and self._process.stderr
        with self._process.stderr as pipe:
            for line in pipe:
                self.log.append(line.rstrip("\n"))
                found = re.match(r"vtwin serve: (https?://\S+) ", line)
                if found:
                    self.url = found.group(1)
                    ready.set()
        ready.set()

    def stop(self) -> Optional[int]:
        """Ends it as SIGTERM does; its exit status. None: it was not running."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        self._reader.join()
        return status

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __del__(self) -> None:
        if getattr(self, "_process", None):
            self.stop()
