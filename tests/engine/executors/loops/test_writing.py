"""What of writing tables is compiled, by itself: templates, lifetimes, places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from limelight.core.devices import CPU0
from limelight.executors.loops.instructions import Guard, Instruction
from limelight.executors.loops.layout import Buffer, View
from limelight.executors.loops.native_loops import ufunc_loop
from limelight.executors.loops.native_records import native

FLOAT = np.dtype("f4")
ADD = ufunc_loop(np.add, bytes([FLOAT.num] * 3))
OUT = (2, 0, (3,), (4,), FLOAT)
CALL = (ADD, (0, 1, 2), (3,), (4, 4, 4), ())
GIVEN: tuple[Any, ...] = (None, 2, (12,), (OUT,), (CALL,), (2,), (((3,), FLOAT),))


def view(offset: int = 0, shape: tuple[int, ...] = (3,), buffer: Buffer | None = None) -> View:
    return View(buffer or Buffer(12), offset, shape, (4,) * len(shape), FLOAT)


class Thing:
    """Stands for nodes, values and specs."""

    def __init__(self, **given: Any) -> None:
        vars(self).update({"device": None, "params": ()} | given)


def value(shape: tuple[int, ...] = (3,)) -> Thing:
    return Thing(spec=Thing(shape=shape, dtype=FLOAT))


def node(op: Any, *inputs: Any, **more: Any) -> Thing:
    return Thing(**({"op": op, "inputs": inputs, "outputs": (value(),)} | more))


class Lowering:
    """One op of two operands whose template is known, for operands that lie as `view()`."""

    def __init__(self) -> None:
        self.op = object()
        self.known = {native().pattern(id(self.op), (), (view(), view())): native().Template(*GIVEN)}
        self.x, self.y = value(), value()
        self.views: dict[Any, Any] = {self.x: view(), self.y: view(8)}
        self.instructions: list[Any] = []
        self.ends: list[int] = []

    def take(self, *nodes: Any, missing: Any = None) -> int:
        given = (self.known, self.views, missing, CPU0, self.instructions, self.ends)
        return native().take_known(nodes, 0, *given)


@pytest.mark.parametrize(
    ("which", "wrong"),
    [
        (1, -1),
        (2, (-4,)),
        (2, ("many",)),
        (3, ((3, 0, (3,), (4,), FLOAT),)),
        (3, ((-1, 0, (3,), (4,), FLOAT),)),
        (3, ((0, 0, (3,)),)),
        (3, ((0, None, (3,), (4,), FLOAT),)),
        (3, ("a view",)),
        (4, ((ADD, (0, 1, 3), (3,), (4, 4, 4), ()),)),
        (4, ((ADD, (0, -1, 2), (3,), (4, 4, 4), ()),)),
        (4, ((ADD, (0, 1, 2)),)),
        (4, ((3,),)),
        (4, (("add", (0, 1, 2), (3,), (4, 4, 4), ()),)),
        (5, (3,)),
        (5, (0, 1)),
        (6, ()),
        (6, ((3,),)),
    ],
)
def test_templates_have_what_they_name(which: int, wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        native().Template(*GIVEN[:which], wrong, *GIVEN[which + 1 :])


def test_nodes_are_written_by_their_template() -> None:
    given = Lowering()
    first = node(given.op, given.x, given.y)
    second = node(given.op, first.outputs[0], given.x, device=CPU0)
    assert given.take(first, second) == 2
    assert given.ends == [1, 2]
    (one, two) = given.instructions
    assert type(one) is type(two) is Instruction
    assert one[:1] + one[2:] == CALL[:1] + CALL[2:]
    assert one.operands[:2] == (given.views[given.x], given.views[given.y])
    assert one.operands[2] is two.operands[0] is given.views[first.outputs[0]]
    assert type(two.operands[2]) is View
    assert two.operands[2].buffer.nbytes == 12
    assert two.operands[2].buffer is not one.operands[2].buffer


def test_views_of_an_operand_lie_where_it_does() -> None:
    given = Lowering()
    part = native().Template(None, 1, (), ((0, 4, (2,), (4,), FLOAT),), (), (1,), (((2,), FLOAT),))
    given.known = {native().pattern(id(given.op), (), (view(),)): part}
    slice_of_y = node(given.op, given.y, outputs=(value((2,)),))
    assert given.take(slice_of_y) == 1
    assert given.views[slice_of_y.outputs[0]] == (given.views[given.y].buffer, 12, (2,), (4,), FLOAT)
    assert given.instructions == []


def test_templates_are_applied() -> None:
    condition = View(Buffer(1), 0, (), (), np.dtype("?"))
    kept = native().Template(None, 1, (), (), ((0,),), (0,), (((), np.dtype("?")),))
    instructions: list[Any] = []
    assert kept.applied((condition,), instructions) == (condition,)
    assert instructions == [Guard(condition)]
    assert type(instructions[0]) is Guard
    for wrong in ((), (condition, condition), ("no view",)):
        with pytest.raises(ValueError, match="as many views"):
            kept.applied(wrong, [])


def test_a_template_outlives_the_types_that_it_was_made_with() -> None:
    """A second copy of the engine in one process tells types of its own."""
    constant = View(Buffer(4), 0, (), (), FLOAT)
    kept = native().Template(None, 1, (), (constant,), (), (1,), (((), FLOAT),))

    class Other(View):
        pass

    native().use_records(Other, Instruction, Guard, Buffer)
    try:
        assert kept.applied((Other(Buffer(4), 0, (), (), FLOAT),), []) == (constant,)
    finally:
        native().use_records(View, Instruction, Guard, Buffer)


@pytest.mark.parametrize(
    "other",
    [
        lambda g: node(object(), g.x, g.y),
        lambda g: node(g.op, g.x, g.y, params=(1,)),
        lambda g: node(g.op, g.x, g.y, params=([],)),
        lambda g: node(g.op, g.x, g.y, device="another"),
        lambda g: node(g.op, g.x, g.y, outputs=(value((4,)),)),
        lambda g: node(g.op, g.x, g.y, outputs=(value(), value())),
        lambda g: node(g.op, g.x, value()),
        lambda g: node(g.op, g.x),
        lambda g: node(g.op, g.x, g.x),
    ],
)
def test_other_nodes_are_left(other: Any) -> None:
    given = Lowering()
    assert given.take(node(given.op, given.x, given.y), other(given)) == 1
    assert len(given.instructions) == len(given.ends) == 1


def test_views_of_values_from_outside_are_asked_for() -> None:
    given = Lowering()
    outside = value()
    one = node(given.op, given.x, outside)
    assert given.take(one, missing=lambda x: None) == 0
    assert given.take(one, missing={outside: view(100)}.__getitem__) == 1
    assert given.instructions[0].operands[1].offset == 100
    with pytest.raises(KeyError):
        given.take(node(given.op, given.x, value()), missing={}.__getitem__)


def test_patterns() -> None:
    pattern = native().pattern
    x, y = view(), view()
    assert pattern("op", (), (x, y)) == pattern("op", (), (y, view(8)))
    assert pattern("op", (), (x, y)) != pattern("op", (), (x, x))
    assert pattern("op", (), (x, view(4, buffer=x.buffer))) != pattern("op", (), (x, x))
    different = [(1,), (True,), (1.0,), (0.0,), (-0.0,), ("1",), (None,), (FLOAT,), ((1,),), ((True,),), ((),), ()]
    assert len({pattern("op", params, (x,)) for params in different}) == len(different)
    assert pattern("op", ([],), (x,)) is None
    assert pattern("op", ((1, ([],)),), (x,)) is None
    assert pattern("op", (), (x, "no view")) is None


def instructions(*buffers: tuple[Buffer, ...]) -> list[Instruction]:
    return [Instruction(ADD, tuple([view(4, buffer=x) for x in some]), (3,), (4, 4, 4), ()) for some in buffers]


def test_places_follow_from_lifetimes() -> None:
    given, a, b, c = (Buffer(12) for _ in range(4))
    items = instructions((given, given, a), (a, given, b), (b, b, c), (c, c, c))
    last = native().last_uses(items)
    assert last == {given: 1, a: 1, b: 2, c: 3}
    where: dict[Any, tuple[int, int]] = {given: (0, 0)}
    ending = native().endings(last, where, len(items))
    assert ending == [None, [a], [b], [c]]
    asked: list[Buffer] = []

    def new(buffer: Buffer) -> tuple[int, int]:
        asked.append(buffer)
        return where.setdefault(buffer, (1, 64 * len(asked) - 64))

    written: list[Any] = []
    free: dict[int, list[int]] = {12: []}
    arguments = (where, ending, free, 1, 100, 1000, new, "not called", written)
    assert native().write_calls(items, 0, *arguments) == 4
    assert asked == [a, b], "c lies where a has been"
    assert [words for _, words, *_ in written] == [
        (0, 4, 0, 4, 1, 4),
        (1, 4, 0, 4, 1, 68),
        (1, 68, 1, 68, 1, 4),
        (1, 4, 1, 4, 1, 4),
    ]
    assert free == {12: [64, 0]}


def test_what_is_long_large_or_elsewhere_is_left_to_python() -> None:
    a, b = Buffer(12), Buffer(400)
    items: list[Any] = instructions((a, a, a), (a, a, b))
    items[1:1] = [Instruction(ADD, items[0].operands, (2000,), (4, 4, 4), ()), Thing(operands=[view(buffer=a)])]
    last = native().last_uses(items)
    assert last == {a: 3, b: 3}
    given_back: list[Buffer] = []
    where: dict[Any, tuple[int, int]] = {}
    ending = native().endings(last, where, len(items))
    arguments = (where, ending, {}, 1, 100, 1000, lambda x: where.setdefault(x, (2, 0)), given_back.append, [])
    assert native().write_calls(items, 0, *arguments) == 1
    assert native().write_calls(items, 1, *arguments) == 1
    assert native().write_calls(items, 2, *arguments) == 2
    assert native().write_calls(items, 3, *arguments) == 4
    assert given_back == [a, b]


def test_items_and_their_views_are_checked() -> None:
    with pytest.raises(TypeError, match="view"):
        native().last_uses([Thing(operands=["no view"])])
    with pytest.raises(AttributeError):
        native().last_uses([object()])
    with pytest.raises(ValueError, match="not there"):
        native().endings({Buffer(4): 7}, {}, 2)
    with pytest.raises(TypeError, match="place"):
        native().write_calls(instructions((Buffer(4),)), 0, {}, [None], {}, 1, 0, 9, lambda x: None, None, [])
