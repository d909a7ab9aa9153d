"""Running a graph one node at a time."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError
from limelight.executors import step
from limelight.graph import parse

GRAPH = parse("""\
graph g
  input %0: f32[2]  x
  capture %1: var f32[2]  v
  %2: f32[1], %3: f32[1] = split(%0)  {sizes=(1, 1), axis=0}
  %4: f32[1] = log(%3)
  !0 %5: f32[2] = read_variable(%1)
  %6: f32[2] = assign(%1, %0)  after !0
  return %4, %5
""")
X = np.array([1.0, 2.0], dtype=np.float32)


def test_each_node_in_turn_with_its_values() -> None:
    v = ll.Variable([5.0, 6.0])
    steps = step.run(GRAPH, [X, v._data])
    seen = []
    for node, outputs in steps:
        seen.append((node.op.name, [np.asarray(out).tolist() for out in outputs]))
        assert all(steps.values[value] is out for value, out in zip(node.outputs, outputs, strict=True))
        if node.op == "read_variable":
            assert v.numpy().tolist() == [5.0, 6.0], "later nodes have not run yet"
    assert seen == [
        ("split", [[1.0], [2.0]]),
        ("log", [[np.log(np.float32(2.0))]]),
        ("read_variable", [[5.0, 6.0]]),
        ("assign", [[1.0, 2.0]]),
    ]
    assert v.numpy().tolist() == [1.0, 2.0]
    assert [out.tolist() for out in steps.outputs] == [[np.log(np.float32(2.0))], [5.0, 6.0]]


def test_all_values_are_kept() -> None:
    steps = step.run(GRAPH, [X, ll.Variable([5.0, 6.0])._data])
    assert len(steps.values) == 2
    assert next(steps)[0].op == "split"
    assert len(steps.outputs) == 2
    assert len(steps.values) == 7
    assert next(steps, None) is None


def test_the_first_bad_number_can_be_found() -> None:
    with np.errstate(all="ignore"):
        steps = step.run(GRAPH, [np.array([1.0, -1.0], dtype=np.float32), ll.Variable([5.0, 6.0])._data])
        bad = next(node for node, outputs in steps if not all(np.isfinite(out).all() for out in outputs))
    assert bad.op == "log"
    assert steps.values[bad.inputs[0]].tolist() == [-1.0]


def test_the_inputs_are_counted() -> None:
    with pytest.raises(ArgumentError, match="graph g takes 2 inputs, got 1"):
        step.run(GRAPH, [X])
