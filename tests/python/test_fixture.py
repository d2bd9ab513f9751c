"""The fixtures that the package brings to pytest."""

import json
import urllib.request

import pytest


def models(server):
    with urllib.request.urlopen(server.base_url + "/models") as reply:
        return [m["id"] for m in json.load(reply)["data"]]


@pytest.mark.vtwin("qwen3-8b", gpu="H200", served_model_name="named")
def test_marked(vtwin_server):
    assert models(vtwin_server) == ["named"]


def test_many(vtwin_serve):
    one, two = vtwin_serve(served_model_name="one"), vtwin_serve(served_model_name="two")
    assert models(one) == ["one"] and models(two) == ["two"]
    assert one.url != two.url
    assert two.stop() == 0 or two.log
