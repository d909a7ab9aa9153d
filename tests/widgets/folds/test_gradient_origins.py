"""Which ops the nodes of a backward pass are the gradients of."""

from __future__ import annotations

from typing import NamedTuple

from limelight_widgets.folds.gradient_origins import origins


class Line(NamedTuple):
    number: int


class Of(Line):
    of = ""


def of(op: str) -> tuple[Line]:
    line = Of(1)
    line.of = op
    return (line,)


def test_rounds_of_one_line_are_told_apart_by_what_gradients_read():
    ops = ["read", *["matmul", "tanh"] * 3, "tanh", *["multiply", "matmul", "matmul", "add"] * 2]
    stacks = [(Line(0),), *[(Line(1),)] * 6, (Line(2),)]
    stacks += [of("tanh"), of("matmul"), of("matmul"), of("matmul")] * 2
    inputs = [[-1], [0, -1], [1], [0, 2], [3], [0, 4], [5], [6]]
    inputs += [[-1, 6], [8, 0], [8, 4], [10, -1]]  # of the last round: through tanh, to h, to the weight, and its sum
    inputs += [[9, 4], [12, 0], [12, 2], [14, 11]]
    gradient = [False] * 8 + [True] * 8
    assert origins(gradient, stacks, ops, inputs) == [-1] * 8 + [6, 5, 5, 5, 4, 3, 3, 3]


def test_what_reads_nothing_goes_on_from_the_last_and_a_line_without_ops_has_none():
    ops, stacks = ["exp", "multiply", "exp"], [(Line(1),)] * 3
    ops += ["multiply", "ones", "multiply", "zeros"]
    stacks += [of("exp"), of("multiply"), of("multiply"), (Line(9),)]
    inputs = [[-1], [0], [1], [2, -1], [], [4, 3], []]
    assert origins([False] * 3 + [True] * 4, stacks, ops, inputs)[3:] == [2, 1, 1, -1]


def test_of_gradients_that_read_no_value_of_their_round_each_op_has_one():
    ops, stacks = ["negative"] * 3, [(Line(1),)] * 3
    inputs = [[-1], [0], [1], [-1], [3], [4]]
    stacks += [of("negative")] * 3
    assert origins([False] * 3 + [True] * 3, stacks, ops * 2, inputs)[3:] == [2, 1, 0]


def test_an_op_that_was_written_as_others_is_the_last_of_its_line():
    ops, stacks = ["exp", "sum", "divide"], [(Line(1),)] * 3
    inputs = [[-1], [0], [0, 1]]
    assert origins([False] * 3 + [True], [*stacks, of("softmax")], [*ops, "multiply"], [*inputs, [-1]])[3:] == [2]


def test_what_few_ops_read_tells_more_than_what_all_rounds_read():
    ops, stacks = ["read", "tanh", "tanh", *["multiply"] * 3], [(Line(0),)] * 3 + [(Line(1),)] * 3
    inputs = [[-1], [-1], [-1], [0, 1], [0, 2], [0, -1]]
    ops, stacks, inputs = [*ops, "multiply"], [*stacks, of("multiply")], [*inputs, [-1, 0, 2]]
    assert origins([False] * 6 + [True], stacks, ops, inputs)[6:] == [4]
