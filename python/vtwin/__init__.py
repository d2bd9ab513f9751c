"""A GPU-free twin of a vLLM serving engine.

    >>> import vtwin
    >>> vtwin.simulate("qwen3-8b", gpu="H200", num_prompts=40)["requests"]
    40

simulate, capacity and tune answer as the program's commands do, byte for byte; Engine is one
engine, step by step; Server is ``vtwin serve`` on a free port. All run libvtwin or the program:
nothing is computed in Python.
"""

from vtwin._ask import Answer, Note, ask, capacity, simulate, tune
from vtwin._engine import Engine, Output
from vtwin._lib import Error, InputError, Stopped, version
from vtwin._server import Server, program

__version__ = version()
__all__ = ["Answer", "Engine", "Error", "InputError", "Note", "Output", "Server", "Stopped", "ask",
           "capacity", "program", "simulate", "tune", "version"]
