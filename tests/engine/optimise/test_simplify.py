"""Each rule of simplification: what it makes, that results keep their bits (or nearly), and what it must not touch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.graph import Graph, Node, Value, parse
from limelight.graph.build import Rewriter
from limelight.optimise import algebra, inexact_algebra, view_algebra
from limelight.optimise import simplify as tables
from limelight.optimise.cse import share
from limelight.optimise.dead_code import prune
from limelight.optimise.layouts import Layouts
from limelight.optimise.pass_record import PassRecord
from limelight.optimise.product_operands import partners_of
from limelight.optimise.rewriter import Replacement, rewrite
from limelight.optimise.simplify import simplify, simplify_exactly

sys.path.insert(0, str(Path(__file__).parent))

from applying import bits, body, constant, ops, results, run  # beside this file

ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -3e38, 1e-42], np.float32)
X8 = "  input %0: f32[8]  x\n"
MATRIX = "  input %0: f32[2,4]  x\n"

EXACT: list[tuple[str, str, list[str], list[str]]] = [
    # rule, inputs, lines, ops afterwards
    ("x + 0", X8, [constant(1, "-0.0"), "%2: f32[8] = add(%0, %1)"], []),
    ("x + 0", X8, [constant(1, "0.0"), "%2: f32[8] = exp(%0)", "%3: f32[8] = add(%1, %2)"], ["exp"]),
    ("x + 0", "  input %0: i32[8]  x\n", [constant(1, "0", "i32[]"), "%2: i32[8] = add(%0, %1)"], []),
    ("x - 0", X8, [constant(1, "0.0"), "%2: f32[8] = subtract(%0, %1)"], []),
    ("x * 1", X8, [constant(1, "1.0"), "%2: f32[8] = multiply(%1, %0)"], []),
    ("x * 1", X8, [constant(1, "[1.0]", "f32[1]"), "%2: f32[8] = multiply(%0, %1)"], []),
    ("x * -1", X8, [constant(1, "-1.0"), "%2: f32[8] = multiply(%0, %1)"], ["negative"]),
    ("x / 1", X8, [constant(1, "1.0"), "%2: f32[8] = divide(%0, %1)"], []),
    ("x / 2**n", X8, [constant(1, "8.0"), "%2: f32[8] = divide(%0, %1)"], ["multiply"]),
    ("-(-x)", X8, ["%1: f32[8] = negative(%0)", "%2: f32[8] = negative(%1)"], []),
    ("x + -y", X8, ["%1: f32[8] = negative(%0)", "%2: f32[8] = add(%0, %1)"], ["subtract"]),
    ("x - -y", X8, ["%1: f32[8] = negative(%0)", "%2: f32[8] = subtract(%0, %1)"], ["add"]),
    ("-x * -y", X8, ["%1: f32[8] = negative(%0)", "%2: f32[8] = multiply(%1, %1)"], ["multiply"]),
    ("-x * c", X8, ["%1: f32[8] = negative(%0)", constant(2, "3.0"), "%3: f32[8] = multiply(%2, %1)"], ["multiply"]),
    ("-(x * c)", X8, [constant(1, "3.0"), "%2: f32[8] = multiply(%0, %1)", "%3: f32[8] = negative(%2)"], ["multiply"]),
    ("abs twice", X8, ["%1: f32[8] = abs(%0)", "%2: f32[8] = abs(%1)"], ["abs"]),
    ("floor twice", X8, ["%1: f32[8] = floor(%0)", "%2: f32[8] = floor(%1)"], ["floor"]),
    ("square of -x", X8, ["%1: f32[8] = negative(%0)", "%2: f32[8] = square(%1)"], ["square"]),
    ("identity", X8, ["%1: f32[8] = identity(%0)", "%2: f32[8] = exp(%1)"], ["exp"]),
    ("stop_gradient", X8, ["%1: f32[8] = stop_gradient(%0)"], []),
    ("cast to its own dtype", X8, ["%1: f32[8] = astype(%0)  {dtype=f32}"], []),
    (
        "cast there and back",
        X8,
        ["%1: f64[8] = astype(%0)  {dtype=f64}", "%2: f32[8] = astype(%1)  {dtype=f32}"],
        [],
    ),
    (
        "cast of a cast",
        "  input %0: i8[8]  x\n",
        ["%1: i32[8] = astype(%0)  {dtype=i32}", "%2: f32[8] = astype(%1)  {dtype=f32}"],
        ["astype"],
    ),
    ("where(c, x, x)", X8, ["%1: bool[8] = isnan(%0)", "%2: f32[8] = where(%1, %0, %0)"], []),
    ("reshape to its own shape", MATRIX, ["%1: f32[2,4] = reshape(%0)  {shape=(2, 4)}"], []),
    (
        "reshape of a reshape",
        MATRIX,
        ["%1: f32[8] = reshape(%0)  {shape=(8,)}", "%2: f32[1,8] = expand_dims(%1)  {axis=0}"],
        ["reshape"],
    ),
    (
        "reshape there and back",
        MATRIX,
        ["%1: f32[1,2,4] = expand_dims(%0)  {axis=0}", "%2: f32[2,4] = squeeze(%1)  {axis=(0,)}"],
        [],
    ),
    ("transpose of nothing", MATRIX, ["%1: f32[2,4] = transpose(%0)  {axes=(0, 1)}"], []),
    (
        "transpose of a transpose",
        MATRIX,
        ["%1: f32[4,2] = matrix_transpose(%0)", "%2: f32[2,4] = transpose(%1)  {axes=(1, 0)}"],
        [],
    ),
    (
        "transpose of a transpose",
        "  input %0: f32[2,1,4]  x\n",
        ["%1: f32[1,4,2] = transpose(%0)  {axes=(1, 2, 0)}", "%2: f32[4,1,2] = transpose(%1)  {axes=(1, 0, 2)}"],
        ["transpose"],
    ),
    (
        "matrix_transpose after tanh",
        MATRIX,
        ["%1: f32[4,2] = matrix_transpose(%0)", "%2: f32[4,2] = tanh(%1)", "%3: f32[2,4] = matrix_transpose(%2)"],
        ["tanh"],
    ),
    (
        "reshape after add",
        MATRIX + "  input %1: f32[2,4]  y\n",
        [
            "%2: f32[8] = reshape(%0)  {shape=(8,)}",
            "%3: f32[8] = reshape(%1)  {shape=(8,)}",
            "%4: f32[8] = add(%2, %3)",
        ],
        ["add", "reshape"],
    ),
    (
        "broadcast of a broadcast",
        "  input %0: f32[8]  x\n",
        ["%1: f32[2,8] = broadcast_to(%0)  {shape=(2, 8)}", "%2: f32[3,2,8] = broadcast_to(%1)  {shape=(3, 2, 8)}"],
        ["broadcast_to"],
    ),
    ("sum to its own shape", X8, ["%1: f32[8] = sum_to(%0)  {shape=(8,)}"], []),
]
CLOSE: list[tuple[str, str, list[str], list[str]]] = [
    (
        "multiply of constants",
        X8,
        [constant(1, "0.3"), "%2: f32[8] = multiply(%0, %1)", constant(3, "0.55"), "%4: f32[8] = multiply(%3, %2)"],
        ["multiply"],
    ),
    (
        "add of constants",
        X8,
        [constant(1, "3.0"), "%2: f32[8] = add(%0, %1)", constant(3, "5.5"), "%4: f32[8] = add(%3, %2)"],
        ["add"],
    ),
    (
        "add of constants",
        "  input %0: i8[8]  x\n",
        [
            constant(1, "100", "i8[]"),
            "%2: i8[8] = add(%0, %1)",
            constant(3, "-90", "i8[]"),
            "%4: i8[8] = add(%2, %3)",
        ],
        ["add"],
    ),
    ("x ** 1", X8, [constant(1, "1.0"), "%2: f32[8] = pow(%0, %1)"], []),
    ("x ** -1", X8, [constant(1, "-1.0"), "%2: f32[8] = pow(%0, %1)"], ["reciprocal"]),
    ("x ** 2", X8, [constant(1, "2.0"), "%2: f32[8] = pow(%0, %1)"], ["square"]),
    (
        "sum of a broadcast",
        X8,
        ["%1: f32[3,8] = broadcast_to(%0)  {shape=(3, 8)}", "%2: f32[8] = sum_to(%1)  {shape=(8,)}"],
        ["multiply"],
    ),
]


TABLES = (algebra.EXACT, view_algebra.EXACT, inexact_algebra.INEXACT)


def payloads(graph: Any) -> list[np.ndarray]:
    with np.errstate(invalid="ignore"):
        return [np.resize(ODD, value.spec.shape).astype(value.spec.dtype) for value in graph.inputs]


def simplify_rows(graph: Graph) -> tuple[Graph, PassRecord]:
    """What `simplify_exactly` does where arguments are known to be in C order."""
    layouts = Layouts(in_rows=graph.inputs)
    return rewrite("simplify", graph, tables._EXACT, tables._PRODUCERS, partners_of(graph), layouts)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize(("rule", "inputs", "lines", "left"), EXACT, ids=[case[0] for case in EXACT])
def test_exact_rules_keep_every_bit(rule: str, inputs: str, lines: list[str], left: list[str]) -> None:
    text = body(*lines, f"return %{len(lines) + inputs.count('%') - 1}", inputs=inputs)
    simpler, record = run(simplify_rows, text)
    assert rule in {change.rule for change in record.changes}
    assert ops(prune(simpler)[0]) == left
    given = payloads(parse(text))
    for before, after in zip(results(parse(text), given), results(simpler, given), strict=True):
        assert [*map(bits, before)] == [*map(bits, after)]


@pytest.mark.parametrize(("rule", "inputs", "lines", "left"), CLOSE, ids=[case[0] for case in CLOSE])
def test_other_rules_only_round(rule: str, inputs: str, lines: list[str], left: list[str]) -> None:
    text = body(*lines, f"return %{len(lines) + inputs.count('%') - 1}", inputs=inputs)
    assert rule not in {change.rule for change in run(simplify_exactly, text)[1].changes}
    simpler, record = run(simplify, text)
    assert rule in {change.rule for change in record.changes}
    assert ops(prune(simpler)[0]) == left
    given = payloads(parse(text))
    for before, after in zip(results(parse(text), given), results(simpler, given), strict=True):
        for one, other in zip(before, after, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-6)
            if one.dtype.kind == "f" and "sum" not in rule:  # a plan's sum of nothing but -0.0 is 0.0
                assert np.array_equal(np.signbit(one), np.signbit(other))


ALONE = [
    (X8, [constant(1, "0.0"), "%2: f32[8] = add(%0, %1)"]),  # -0.0 becomes 0.0
    (X8, [constant(1, "-0.0"), "%2: f32[8] = subtract(%0, %1)"]),
    (X8, [constant(1, "0.0"), "%2: f32[8] = multiply(%0, %1)"]),  # NaN for infinities
    (X8, ["%1: f32[8] = subtract(%0, %0)"]),
    (X8, ["%1: f32[8] = divide(%0, %0)"]),
    (X8, [constant(1, "3.0"), "%2: f32[8] = divide(%0, %1)"]),
    (X8, [constant(1, "0.5"), "%2: f32[8] = pow(%0, %1)"]),  # inf for -inf, where the root is NaN
    (X8, [constant(1, "[[1.0]]", "f32[1,1]"), "%2: f32[1,8] = multiply(%0, %1)"]),  # another shape
    (X8, [constant(1, "1.0"), "%2: f32[8] = multiply(%0, %1)  @CPU:0"]),  # asked for a place
    (X8, ["%1: i32[8] = astype(%0)  {dtype=i32}", "%2: f32[8] = astype(%1)  {dtype=f32}"]),
    # numbers that no integer is become something else on the way through another dtype, on some machines
    (X8, ["%1: f64[8] = astype(%0)  {dtype=f64}", "%2: i32[8] = astype(%1)  {dtype=i32}"]),
    ("  input %0: c64[8]  x\n", ["%1: c128[8] = astype(%0)  {dtype=c128}", "%2: c64[8] = astype(%1)  {dtype=c64}"]),
    (
        X8,
        [constant(1, "3.7e19"), "%2: f32[8] = multiply(%0, %1)", constant(3, "4e18"), "%4: f32[8] = multiply(%2, %3)"],
    ),
    (X8, [constant(1, "0.0"), "%2: f32[8] = multiply(%0, %1)", constant(3, "2.0"), "%4: f32[8] = multiply(%2, %3)"]),
    (X8, [constant(1, "inf"), "%2: f32[8] = add(%0, %1)", constant(3, "2.0"), "%4: f32[8] = add(%2, %3)"]),
    (
        X8,  # overflows on its way, and is infinite
        [constant(1, "1e30"), "%2: f32[8] = multiply(%0, %1)", constant(3, "1e-30"), "%4: f32[8] = multiply(%2, %3)"],
    ),
    (X8, [constant(1, "1e8"), "%2: f32[8] = add(%0, %1)", constant(3, "-1e8"), "%4: f32[8] = add(%2, %3)"]),
    (X8, [constant(1, "1e6"), "%2: f32[8] = add(%0, %1)", constant(3, "-999999.0"), "%4: f32[8] = add(%2, %3)"]),
    # more or less of a rounding would decide at the end of the range
    (
        X8,
        [constant(1, "3.0"), "%2: f32[8] = multiply(%0, %1)", constant(3, "5.5"), "%4: f32[8] = multiply(%2, %3)"],
    ),
    (X8, [constant(1, "1e31"), "%2: f32[8] = add(%0, %1)", constant(3, "1e31"), "%4: f32[8] = add(%2, %3)"]),
    # for x = -1 the small constant would be lost
    (X8, [constant(1, "1.0"), "%2: f32[8] = add(%0, %1)", constant(3, "1e-12"), "%4: f32[8] = add(%2, %3)"]),
    (X8, ["%1: f32[9,8] = broadcast_to(%0)  {shape=(9, 8)}", "%2: f32[8] = sum_to(%1)  {shape=(8,)}"]),
    # complex results may have parts -0.0
    ("  input %0: c64[8]  x\n", ["%1: c64[8] = exp(%0)", constant(2, "0.0", "c64[]"), "%3: c64[8] = add(%1, %2)"]),
    ("  input %0: c64[8]  x\n", [constant(1, "1.0", "c64[]"), "%2: c64[8] = multiply(%0, %1)"]),
    # the condition may repeat x, whose size may be 1
    (
        "  input %0: f32[?]  x\n  input %1: bool[?]  c\n",
        ["%2: f32[?] = where(%1, %0, %0)"],
    ),
    # not every int64 is a float64, and out of range a float becomes anything
    ("  input %0: i64[8]  x\n", ["%1: f64[8] = astype(%0)  {dtype=f64}", "%2: i64[8] = astype(%1)  {dtype=i64}"]),
    ("  input %0: i32[8]  x\n", ["%1: f64[8] = astype(%0)  {dtype=f64}", "%2: i8[8] = astype(%1)  {dtype=i8}"]),
    (MATRIX, ["%1: f32[8] = reshape(%0)  {shape=(8,)}", "%2: i32[8] = astype(%1)  {dtype=i32}"]),
    *[
        (
            f"  input %0: {kind}  x\n",
            [f"%1: {wide} = broadcast_to(%0)  {{shape={shape}}}", f"%2: {kind} = sum_to(%1)  {{shape={start}}}"],
        )
        for kind, wide, shape, start in (
            ("f16[8]", "f16[3,8]", "(3, 8)", "(8,)"),
            ("i32[8]", "i32[3,8]", "(3, 8)", "(8,)"),
            ("f32[0]", "f32[3,0]", "(3, 0)", "(0,)"),
        )
    ],
    (X8, ["%1: f32[3,8] = broadcast_to(%0)  {shape=(3, 8)}", "%2: f32[1,8] = sum_to(%1)  {shape=(1, 8)}"]),
    (
        "  input %0: f16[8]  x\n",
        [
            constant(1, "3.0", "f16[]"),
            "%2: f16[8] = multiply(%0, %1)",
            constant(3, "5.5", "f16[]"),
            "%4: f16[8] = multiply(%2, %3)",
        ],
    ),
    ("  input %0: f32[?]  x\n", ["%1: f32[8] = reshape(%0)  {shape=(8,)}"]),
    ("  input %0: f32[?,4]  x\n", ["%1: f32[?] = reshape(%0)  {shape=(-1,)}", "%2: f32[?] = tanh(%1)"]),
]


@pytest.mark.parametrize(("inputs", "lines"), ALONE)
def test_what_only_looks_simple_is_left_alone(inputs: str, lines: list[str]) -> None:
    text = body(*lines, f"return %{len(lines) + inputs.count('%') - 1}", inputs=inputs)
    assert run(simplify, text)[1].changes == []


@pytest.mark.parametrize(
    "lines",
    [
        [constant(1, "0.3"), "%2: f32[8] = multiply(%0, %1)", constant(3, "0.55"), "%4: f32[8] = multiply(%2, %3)"],
        [constant(1, "3.0"), "%2: f32[8] = negative(%0)", constant(3, "5.5"), "%4: f32[8] = multiply(%2, %3)"],
        [constant(1, "3.0"), "%2: f32[8] = multiply(%0, %1)", constant(3, "5.5"), "%4: f32[8] = negative(%2)"],
        [
            constant(1, "3.0"),
            "%2: f32[2,4] = reshape(%0)  {shape=(2, 4)}",
            constant(3, "5.5"),
            "%4: f32[2,4] = tanh(%2)",
        ],
    ],
)
def test_what_is_wanted_for_itself_too_is_not_joined(lines: list[str]) -> None:
    """There would be nothing to gain: the inner node has to be computed all the same."""
    assert run(simplify, body(*lines, "return %4", inputs=X8))[1].changes
    assert run(simplify, body(*lines, "return %2, %4", inputs=X8))[1].changes == []
    assert (
        run(simplify, body(*lines, "%5: f32[] = sum(%2)  {axis=None, keepdims=False}", "return %4, %5", inputs=X8))[
            1
        ].changes
        == []
    )


def test_every_rule_has_a_case() -> None:
    """Rules are functions; each of the tables' functions must find something in a case above."""
    given = {rule for table in TABLES for rules in table.values() for rule in rules}
    called: set[Any] = set()

    def noting(rule: Any) -> Any:
        def noted(*operands: Any) -> Any:
            found = rule(*operands)
            if found is not None:
                called.add(rule)
            return found

        return noted

    from limelight.optimise.simplify import _merged

    table = _merged(*TABLES)
    watched = {op: [noting(rule) for rule in rules] for op, rules in table.items()}
    same = [("", MATRIX, ["%1: f32[2,4] = broadcast_to(%0)  {shape=(2, 4)}"], [])]
    for _, inputs, lines, _ in [*EXACT, *CLOSE, *same]:
        text = body(*lines, f"return %{len(lines) + inputs.count('%') - 1}", inputs=inputs)
        run(lambda graph: rewrite("simplify", graph, watched), text)
    assert given == called, {rule.__name__ for rule in given - called}


def test_gradients_are_those_of_the_program_as_it_was_written() -> None:
    """Behaviour 42: x + 0 and x * 1 are tensors of their own to a tape, inside a staged function and around it."""

    def names(x: Any) -> list[Any]:
        x1 = x + 0.0
        return [x, ll.identity(x1), x1 - 0.0, x1 * 1.0]

    def inside(x: Any) -> Any:
        with ll.GradientTape() as tape:
            watched = names(x)
            tape.watch(watched)
            x1, x2, x3, x4 = watched
            y = x1 * 2.0 + x2 * 3.0 + x3 * 4.0 + x4 * 5.0
        return tape.gradient(y, watched)

    x = ll.constant(3.0)
    eager, staged = [[g.item() for g in f(x)] for f in (inside, ll.function(inside))]
    assert eager == staged
    f = ll.function(lambda x: sum(names(x)[1:], x))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).item() == 4.0


UNKNOWN = "  input %0: f32[?]  x\n  input %1: f32[?]  y\n"


@pytest.mark.parametrize("apply", [simplify, share])
def test_declared_sizes_stay_known(apply: Any) -> None:
    """A graph may know more of a result than its op's rule does; what replaces the result then knows as much."""
    lines = ["%2: f32[?] = negative(%1)", "%3: f32[?] = add(%0, %2)", "%4: f32[3] = add(%0, %2)", "return %3, %4"]
    better, record = run(apply, body(*lines, inputs=UNKNOWN))
    assert [str(value.spec) for value in better.outputs] == ["f32[?]", "f32[3]"]
    assert len(record.changes) == (2 if apply is simplify else 0)
    assert ops(prune(better)[0])[-1] == ("subtract" if apply is simplify else "add")


def test_what_knows_less_and_exists_already_takes_no_place() -> None:
    lines = [constant(2, "-0.0"), "%3: f32[3] = add(%0, %2)", "return %3"]
    better, record = run(simplify, body(*lines, inputs=UNKNOWN))
    assert (str(better.outputs[0].spec), record.changes) == ("f32[3]", [])


def test_new_nodes_know_the_sizes_that_vectors_of_sizes_hold() -> None:
    x = Value(TensorSpec((None, 3)))
    like = Node(get("tanh"), (x,), (), [x.spec])
    made = Rewriter(Graph("g", [x], [], [])).add(like, get("shape_of"), (x,), ())
    assert made.outputs[0].spec.content == (None, 3)


def test_rules_that_find_nothing_leave_nothing_behind() -> None:
    def hesitant(context: Any, node: Node, inputs: Any) -> None:
        context.add("exp", context.add("negative", inputs[0]))

    def mistaken(context: Any, node: Node, inputs: Any) -> Replacement:
        return Replacement("mistaken", "another shape", context.add("expand_dims", inputs[0], params=(0,)))

    def decided(context: Any, node: Node, inputs: Any) -> Replacement:
        return Replacement("decided", "for a test", context.add("sin", inputs[0]))

    text = body("%1: f32[8] = tanh(%0)", "%2: f32[8] = cos(%1)", "return %2", inputs=X8)
    better, record = run(lambda graph: rewrite("r", graph, {"tanh": [hesitant, mistaken, decided]}), text)
    assert ops(better) == ["sin", "cos"]
    assert (record.removed, record.added, [change.rule for change in record.changes]) == (1, 1, ["decided"])
