"""libvtwin by cffi: its public headers are the declarations, its errors become exceptions."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import cffi

_HERE = pathlib.Path(__file__).absolute().parent  # a link is where it stands


class Error(Exception):
    """What libvtwin said went wrong, in one line."""


class InputError(Error, ValueError):
    """A flag, an argument or a file that can't be used."""


class Stopped(Error):
    """A question that was taken back, or a file that could not be read."""


_KINDS = {2: InputError, 3: Stopped, 4: MemoryError}


def _declarations() -> str:
    """The headers without what only a compiler reads."""
    text = "".join((_HERE / "include" / "vtwin" / name).read_text(encoding="utf-8")
                   for name in ("vtwin.h", "latency.h", "engine.h", "ask.h"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    return text.replace("VTWIN_API", "")


ffi: Any = cffi.FFI()
ffi.cdef(_declarations())
lib: Any = ffi.dlopen(str(_HERE / "lib" / "libvtwin.so"))  # its calls let go of the GIL

OK, CHECK = 0, 1


def new(kind: str, **members: Any) -> Any:
    """A struct of the library's, with its size."""
    made = ffi.new(f"struct {kind} *", members)
    made.size = ffi.sizeof(made[0])
    return made


def check(code: int, error: Any) -> None:
    if code != OK:
        raise _KINDS.get(code, Error)(ffi.string(error.message).decode(errors="replace"))


def version() -> str:
    """The version of the library that runs.

    >>> version().count(".")
    2
    """
    return str(ffi.string(lib.vtwin_version()).decode())
