"""An axis that the batch has and one example has not: the same as for the example alone, an error as a rule."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import dispatch
from limelight.core.op import all_ops, get

sys.path.append(str(Path(__file__).parents[1] / "ops"))

from cases import CASES  # the ops' own cases

COUNT = 3


class Listener(dispatch.BlockInterpreter):
    """Notes the ops of its block that have an axis."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[Any, Any]] = {}

    def process(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        if _place(op) is not None:
            self.calls[op.name] = (inputs, attrs)
        assert self.below is not None
        return self.below.process(op, inputs, attrs)


def _place(op: Any) -> int | None:
    """The place of the axis, or the axes, among the parameters; a permutation, pairs, or one for each size are none."""
    if op.effect is not None or op.name in ("transpose", "tensordot", "crop_or_fill"):
        return None
    return next((i for i, name in enumerate(op.attrs) if name in ("axis", "axes")), None)


def _calls() -> dict[str, tuple[Any, Any]]:
    """For each op with an axis one call, as its cases make it."""
    found: dict[str, tuple[Any, Any]] = {}
    names = {name for name in all_ops() if _place(get(name)) is not None}
    for case in CASES:
        if case.op in names and case.op not in found and case.inputs:
            with Listener() as listener:
                case.call(*[ll.constant(x.draw(case.accepted[0], 0)) for x in case.inputs])
            found |= {name: call for name, call in listener.calls.items() if name not in found}
    return found


def _outcome(work: Any) -> Any:
    try:
        result = work()
    except (ll.errors.LimelightError, IndexError) as error:  # the latter from ops that functions check before
        return type(error)
    return [x.numpy() for x in (result if isinstance(result, tuple) else (result,))]


def test_of_every_op() -> None:
    calls = _calls()
    assert len(calls) > 25
    for name, (inputs, attrs) in calls.items():
        op, at = get(name), _place(get(name))
        assert at is not None
        rank = inputs[0].ndim
        for axis in (rank, -rank - 1):
            given = (axis,) if isinstance(attrs[at], tuple) else axis
            changed = (*attrs[:at], given, *attrs[at + 1 :])
            alone = _outcome(lambda op=op, inputs=inputs, changed=changed: dispatch.apply(op, inputs, changed))
            many = [ll.stack([x] * COUNT) for x in inputs]
            of_one = ll.vectorize(lambda *xs, op=op, changed=changed: dispatch.apply(op, xs, changed))
            batched = _outcome(lambda of_one=of_one, many=many: of_one(*many))
            if isinstance(alone, type):
                same = batched is alone or alone is not ll.errors.AxisError  # functions check before these ops do
                assert isinstance(batched, type), f"{name}, axis {axis}: {alone} alone, {batched} in a batch"
                assert same, f"{name}, axis {axis}: {alone} alone, {batched} in a batch"
                continue
            assert not isinstance(batched, type), f"{name}, axis {axis}: {batched} in a batch"
            for one, all_of_them in zip(alone, batched, strict=True):
                np.testing.assert_array_equal(all_of_them, np.stack([one] * COUNT), err_msg=f"{name}, axis {axis}")


@pytest.mark.parametrize("f", [ll.nn.softmax, ll.nn.log_softmax])
@pytest.mark.parametrize("axis", [1, -2])
def test_of_softmax(f: Any, axis: int) -> None:
    x = ll.constant([[1.0, 2.0], [3.0, 5.0]])
    for way in (ll.vectorize(lambda x: f(x, axis)), ll.function(ll.vectorize(lambda x: f(x, axis)))):
        with pytest.raises(ll.errors.AxisError, match="rank 1"):
            way(x)


def test_of_scalars() -> None:
    for f in (ll.nn.softmax, ll.nn.log_softmax, ll.cumulative_sum, ll.sort, ll.flip):
        for axis in (0, -1):
            alone = _outcome(lambda f=f, axis=axis: f(ll.constant(1.0), axis=axis))
            batched = _outcome(lambda f=f, axis=axis: ll.vectorize(lambda x: f(x, axis=axis))(ll.constant([1.0, 3.0])))
            if isinstance(alone, type):
                assert batched is alone
            else:
                assert batched[0][0] == alone[0]
