"""States on the wire."""

from __future__ import annotations

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
