"""States on the wire."""

from __future__ import annotations

import json
import zlib

import pytest

from limelight_widgets.folds.devices import DevicesFold
from limelight_widgets.live import wire

CPU, CPU1 = "CPU:0", "CPU:1"
FULL = "/job:localhost/task:0/device:"


def test_states_survive_the_wire():
    fold = DevicesFold([(CPU, FULL + CPU, 10, 10)])
    parts = wire.pack(fold.state())
    assert len(parts) == 2
    assert wire.unpack(parts)["devices"][0]["history"] == [10.0]
    assert wire.unpack(wire.pack({"name": "</script>\u202e", "n": None})) == {"name": "</script>\u202e", "n": None}


def test_a_state_holds_nothing_else():
    with pytest.raises(TypeError, match="not a object"):
        wire.pack({"tensor": object()})


def test_long_lists_of_records_survive_as_columns():
    stack = [[0, 6, "f"]]
    nodes = [
        {"op": "tanh" if k % 3 else "exp", "in": [k], "names": [f"%{k}"], "out": ["f32[2]"] * (k % 3), "stack": stack}
        | ({"inline": True} if k % 7 == 0 else {})
        | ({"became": ["cse", [k], "shared"]} if k % 5 == 0 else {})
        | ({"cost": [0.1, None]} if k == 3 else {})
        for k in range(wire.LONG + 1)
    ]  # fmt: skip
    for state in (
        {"graphs": [{"nodes": nodes}, {"nodes": nodes[:3]}], "title": "f"},
        {"odd": [{}, *nodes], "mixed": [*nodes, 1], "words": ["a"] * 1000, "pairs": [[1, 2]] * 1000, "none": None},
    ):
        assert wire.unpack(wire.pack(state)) == state


def test_columns_are_smaller_than_records():
    nodes = [{"op": "tanh", "in": [k], "out": ["f32[2]"], "stack": [[0, 6, "f"]]} for k in range(2000)]
    plain = json.dumps(nodes, separators=(",", ":"))
    assert len(zlib.decompress(wire.pack({"nodes": nodes})[0])) < len(plain) / 2
