"""Fixtures of pytest: a simulated server for tests of what talks to one.

    @pytest.mark.vtwin("qwen3-8b", gpu="H200", max_num_seqs=8)
    def test_client(vtwin_server):
        client = openai.OpenAI(base_url=vtwin_server.base_url, api_key="none")
        ...

    def test_two(vtwin_serve):
        fast, slow = vtwin_serve(), vtwin_serve(time_scale=2)
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import pytest

from vtwin._server import Server


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "vtwin(model=None, **flags): what vtwin_server serves")


@pytest.fixture
def vtwin_serve() -> Iterator[Callable[..., Server]]:
    """Starts servers, as ``vtwin.Server`` takes its arguments; they end with the test."""
    with contextlib.ExitStack() as started:

        def serve(*args: Any, **flags: Any) -> Server:
            return started.enter_context(Server(*args, **flags))

        yield serve


@pytest.fixture
def vtwin_server(request: pytest.FixtureRequest,
                 vtwin_serve: Callable[..., Server]) -> Server:
    """A server of what ``@pytest.mark.vtwin(...)`` names, or of the standard model."""
    mark = request.node.get_closest_marker("vtwin")
    return vtwin_serve(*mark.args, **mark.kwargs) if mark else vtwin_serve()
