"""What belongs to a state and what does not, which arrays change in place, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import limelight as ll
from limelight.checkpoint import checkpoint_file
from limelight.checkpoint.manifest import Manifest, SavedNode
from limelight.errors import CheckpointError


class Layer(ll.Module):
    pass


@pytest.mark.parametrize(
    ("attribute", "value", "path"),
    [
        ("x", lambda: [ll.Variable(1.0), 5, ll.Variable(2.0)], "s/x/1"),
        ("x", lambda: (ll.nn.Dense(2), "text"), "s/x/1"),
        ("h", lambda: {"v": ll.Variable(2.0), "losses": [1, 2, 3]}, "s/h/losses/0"),
        ("h", lambda: {"v": ll.Variable(2.0), "deep": {"a": np.float32(1)}}, "s/h/deep/a"),
    ],
)
def test_plain_values_beside_variables_are_not_dropped_silently(tmp_path, attribute, value, path):
    state = ll.State(**{attribute: value()})
    with pytest.raises(CheckpointError, match=f"'{path}' is a plain"):
        ll.Checkpoint(s=state).write(tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_settings_of_modules_and_functions_may_be_beside_variables(tmp_path):
    layer = Layer()
    layer.parts = [ll.Variable(1.0), 5, "text"]
    state = ll.State(parts=[ll.Variable(1.0), None, len, layer], empty={"v": ll.Variable(1.0), "l": []})
    checkpoint = ll.Checkpoint(s=state)
    checkpoint.restore(checkpoint.write(tmp_path / "x")).assert_consumed()


class Progress(ll.State):
    epoch = 0

    def advance(self):
        self.epoch += 1

    @property
    def next(self):
        return self.epoch + 1


def test_no_file_takes_the_place_of_a_method_or_of_what_is_private(tmp_path):
    names = ["_background", "save", "_saves", "p", ""]
    nodes = [SavedNode("object", children=[(name, i + 1) for i, name in enumerate(names)])]
    nodes += [SavedNode("value", value="x") for _ in range(3)]
    nodes += [SavedNode("object", children=[("advance", 6), ("next", 7), ("epoch", 8)]), SavedNode("value", value="y")]
    nodes += [SavedNode("value", value=5) for _ in range(3)]
    path = tmp_path / "x.safetensors"
    checkpoint_file.write(Path(path), Manifest(nodes, "ab"), {})
    checkpoint = ll.Checkpoint(p=Progress(), v=ll.Variable(1.0))
    before = dict(vars(checkpoint))
    status = checkpoint.restore(path).expect_partial()
    assert {name: value for name, value in vars(checkpoint).items() if name != ""} == before
    assert vars(checkpoint.p) == {"epoch": 5}
    assert str(status) == "x.safetensors: 2 matched, 5 unused, 1 new"
    assert "`save`" not in str(status.tree())
    checkpoint.restore(checkpoint.write(path)).assert_consumed()


def test_big_endian_arrays_change_in_place(tmp_path):
    state = ll.State(x=np.arange(3, dtype=">f8"))
    array, checkpoint = state.x, ll.Checkpoint(s=state)
    path = checkpoint.write(tmp_path / "x")
    array[:] = 0
    checkpoint.restore(path)
    assert state.x is array
    np.testing.assert_array_equal(array, [0.0, 1.0, 2.0])


def test_a_tree_of_many_that_wait_takes_time_by_their_number(tmp_path):
    layer = Layer()
    layer.parts = [ll.Variable(0.0) for _ in range(2000)]
    path = ll.Checkpoint(m=layer).write(tmp_path / "x")
    status = ll.Checkpoint(m=Layer()).restore(path).expect_partial()
    asked = []

    class Counted(list):
        def __iter__(self):
            asked.append(len(self))
            return super().__iter__()

    for node in status._restoration.nodes:
        node.children = Counted(node.children)
    assert "2000 waiting" in str(status)
    assert sum(asked) < 3 * 2000
