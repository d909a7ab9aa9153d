"""Each pass alone: what it does, what it must leave alone, and that its records add up."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import limelight as ll
from limelight import events
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.errors import ArgumentError
from limelight.graph import Graph, Node, Value, parse
from limelight.optimise import optimise, pipeline
from limelight.optimise.constant_folding import LARGEST, fold
from limelight.optimise.cse import share, share_exactly
from limelight.optimise.dead_code import prune

sys.path.insert(0, str(Path(__file__).parent))

from applying import body, constant, run  # beside this file

# prune


def test_prune_removes_what_leads_nowhere() -> None:
    result, record = run(
        prune,
        body(
            "%1: f32[3] = tanh(%0)  # model.py:3",
            "%2: f32[3] = exp(%1)  # model.py:4",
            "%3: f32[3] = sin(%0)",
            "return %3",
        ),
    )
    assert [node.op.name for node in result.nodes] == ["sin"]
    assert (record.name, record.removed, record.added) == ("prune", 2, 0)
    assert [(change.rule, change.source) for change in record.changes] == [
        ("unused", ("model.py", 3)),
        ("unused", ("model.py", 4)),
    ]
    assert "this exp" in record.changes[1].reason


def test_prune_keeps_effects_and_what_they_need() -> None:
    text = body(
        "%2: f32[3] = tanh(%0)",
        "%3: f32[3] = assign(%1, %2)",
        "return",
        inputs="  input %0: f32[3]  x\n  capture %1: var f32[3]  v\n",
    )
    result, record = run(prune, text)
    assert result.text() == text
    assert record.changes == []


def test_prune_removes_unused_reads_and_mends_the_order() -> None:
    result, record = run(
        prune,
        body(
            "!0 %2: f32[3] = assign(%1, %0)",
            "!1 %3: f32[3] = read_variable(%1)  after !0",
            "%4: f32[3] = assign_add(%1, %0)  after !0, !1",
            "return",
            inputs="  input %0: f32[3]  x\n  capture %1: var f32[3]  v\n",
        ),
    )
    assert [node.op.name for node in result.nodes] == ["assign", "assign_add"]
    assert result.nodes[1].after == (result.nodes[0],)
    assert len(record.rewired) == 1


def test_prune_keeps_random_draws_io_and_calls_that_do_such() -> None:
    kept = [name for name, op in ll_ops().items() if op.effect in ("random", "io") and not op.higher_order]
    assert kept, "there are random ops"
    for name in kept:
        op = get(name)
        node = Node(op, tuple([Value(TensorSpec(())) for _ in op.operands]), (None,) * len(op.attrs), [TensorSpec(())])
        graph = Graph("g", node.inputs, [node], [])
        assert prune(graph)[0] is graph, name


def ll_ops() -> dict[str, object]:
    from limelight.core.op import all_ops

    return all_ops()


CALLS = """\
graph g
  input %0: f32[]  x
  capture %1: var f32[]  v
  !0 %2: f32[] = call(%0, %1)  {function=@reads}
  %3: f32[] = call(%0, %1)  {function=@writes}  after !0
  %4: f32[] = call(%0)  {function=@pure}
  return

graph reads
  input %0: f32[]  x
  input %1: var f32[]  v
  %2: f32[] = read_variable(%1)
  return %2

graph writes
  input %0: f32[]  x
  input %1: var f32[]  v
  %2: f32[] = assign(%1, %0)
  return %2

graph pure
  input %0: f32[]  x
  %1: f32[] = tanh(%0)
  return %1
"""


def test_prune_looks_into_called_functions() -> None:
    result, _ = run(prune, CALLS)
    assert [node.functions[0].name for node in result.nodes] == ["writes"]


# fold


def test_fold_computes_what_depends_on_nothing() -> None:
    result, record = run(
        fold,
        body(
            constant(1, "2.0"),
            constant(2, "3.0"),
            "%3: f32[] = multiply(%1, %2)  # model.py:7",
            "%4: f32[] = add(%3, %1)",
            "%5: f32[3] = multiply(%0, %4)",
            "return %5",
        ),
    )
    assert [node.op.name for node in result.nodes] == ["constant"] * 4 + ["multiply"]
    assert result.nodes[3].params[0].array == np.float32(8.0)
    assert result.nodes[3].params[0].array.dtype == np.float32
    assert result.nodes[2].source == ("model.py", 7)
    assert (record.removed, record.added) == (2, 2)
    assert {change.rule for change in record.changes} == {"constant"}


def test_fold_knows_the_shape_of_what_it_does_not_know() -> None:
    text = body(
        "%1: i64[2] = shape_of(%0)",
        "%2: f32[6] = reshape(%0)  {shape=(6,)}",
        "return %1",
        inputs="  input %0: f32[2,3]  x\n",
    )
    result, record = run(fold, text)
    assert result.nodes[0].params[0].array.tolist() == [2, 3]
    assert record.changes[0].rule == "known shape"
    unknown = (
        text.replace("f32[2,3]", "f32[?,3]").replace("f32[6] = reshape", "f32[?] = reshape").replace("(6,)", "(-1,)")
    )
    assert run(fold, unknown)[1].changes == []


def test_fold_leaves_effects_and_inputs_alone() -> None:
    text = body(
        constant(2, "2.0"),
        "!0 %3: f32[] = assign(%1, %2)",
        "%4: f32[] = read_variable(%1)  after !0",
        "%5: f32[3] = multiply(%0, %2)",
        "return %4, %5",
        inputs="  input %0: f32[3]  x\n  capture %1: var f32[]  v\n",
    )
    assert run(fold, text)[1].changes == []


def test_fold_makes_nothing_large_out_of_something_small() -> None:
    n = LARGEST  # four times as many bytes
    text = body(
        constant(1, "1.0"),
        f"%2: f32[{n}] = broadcast_to(%1)  {{shape=({n},)}}",
        "%3: f32[4] = broadcast_to(%1)  {shape=(4,)}",
        "return %2, %3",
    )
    result, record = run(fold, text)
    assert [node.op.name for node in result.nodes] == ["constant", "broadcast_to", "constant"]
    assert record.removed == 1
    assert result.nodes[2].params[0].array.strides == (4,), "a real array, not a view of one number"


def test_fold_leaves_errors_to_the_run() -> None:
    graph = parse(
        body(
            constant(1, "[1.0, 2.0]", "f32[2]"), "%2: f32[?] = reshape(%1)  {shape=(?,)}".replace("?", "3"), "return %2"
        )
    )
    assert fold(graph)[1].changes == []


def test_fold_is_silent_about_numbers_that_are_not_finite() -> None:
    result, _ = run(
        fold, body(constant(1, "0.0"), "%2: f32[] = divide(%1, %1)", "%3: f32[] = log(%1)", "return %2, %3")
    )
    assert np.isnan(result.nodes[1].params[0].array)
    assert result.nodes[2].params[0].array == -np.inf


@pytest.mark.parametrize(
    "lines",
    [
        ['%2: f32[] = to_device(%1)  {device=device("CPU:0")}', "return %2"],
        ["%2: f32[] = constant()  {value=f32[] 1.0}  @CPU:0", "%3: f32[] = add(%2, %1)", "return %3"],
        ["%2: f32[] = add(%1, %1)  @CPU:0", "%3: f32[] = add(%2, %1)", "return %3"],
    ],
)
def test_fold_leaves_results_where_they_are(lines: list[str]) -> None:
    """What runs on a device that somebody asked for stays there, and so does what follows from it."""
    graph, _ = run(fold, body(constant(1, "2.0"), *lines))
    assert graph.outputs[0].node.op != "constant"
    asked = [node for node in graph.nodes if node.device is not None or node.op == "to_device"]
    assert len(asked) == 1


# share


def test_share_computes_equal_things_once() -> None:
    result, record = run(
        share,
        body(
            "%1: f32[3] = tanh(%0)",
            "%2: f32[3] = tanh(%0)  # model.py:5",
            "%3: f32[3] = exp(%1)",
            "%4: f32[3] = exp(%2)",
            "%5: f32[3] = add(%3, %4)",
            "return %5, %2",
        ),
    )
    assert [node.op.name for node in result.nodes] == ["tanh", "exp", "add"]
    assert result.outputs == (result.nodes[2].outputs[0], result.nodes[0].outputs[0])
    assert (record.removed, record.added) == (2, 0)
    assert record.changes[0].new == (result.nodes[0],)
    assert record.changes[0].source == ("model.py", 5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("clip(%0)  {low=1, high=None}", "clip(%0)  {low=1.0, high=None}"),
        ("clip(%0)  {low=1, high=None}", "clip(%0)  {low=True, high=None}"),
        ("clip(%0)  {low=0.0, high=None}", "clip(%0)  {low=-0.0, high=None}"),
        ("tanh(%0)", "exp(%0)"),
        ("tanh(%0)", "tanh(%0)  @CPU:0"),
        ("add(%0, %0)", "multiply(%0, %0)"),
        ("constant()  {value=f32[3] [0.0, 0.0, 0.0]}", "constant()  {value=f32[3] [0.0, -0.0, 0.0]}"),
    ],
)
def test_share_keeps_apart_what_only_looks_alike(one: str, other: str) -> None:
    _, record = run(share, body(f"%1: f32[3] = {one}", f"%2: f32[3] = {other}", "return %1, %2"))
    assert record.changes == []
    _, record = run(share, body(f"%1: f32[3] = {one}", f"%2: f32[3] = {one}", "return %1, %2"))
    assert record.removed == 1


SQUARE = "  input %0: f32[3,3]  x\n"
TWICE = ("%1: f32[3,3] = exp(%0)", "%2: f32[3,3] = exp(%0)", "%3: f32[3,3] = tanh(%1)", "%4: f32[3,3] = tanh(%2)")


@pytest.mark.parametrize(
    "product",
    [
        ("%5: f32[3,3] = matrix_transpose(%4)", "%6: f32[3,3] = matmul(%3, %5)"),
        ("%5: f32[3,3] = matrix_transpose(%3)", "%6: f32[3,3] = matmul(%5, %4)"),
        ("%5: f32[3,3] = tanh(%2)", "%6: f32[3,3] = matmul(%5, %4)"),
    ],
)
def test_share_makes_no_product_of_an_array_with_itself_where_every_bit_stays(product: tuple[str, str]) -> None:
    text = body(*TWICE, *product, "return %6", inputs=SQUARE)
    result, _ = run(share_exactly, text)
    ops = [node.op.name for node in result.nodes]
    assert (ops.count("exp"), ops.count("tanh")) == (1, 2)
    x, y = result.nodes[-1].inputs
    assert x is not y
    assert [node.op.name for node in run(share, text)[0].nodes].count("tanh") == 1
    alone = body(*TWICE, "%6: f32[3,3] = matmul(%3, %0)", "%7: f32[3,3] = add(%6, %4)", "return %7", inputs=SQUARE)
    assert run(share_exactly, alone)[0].text() == run(share, alone)[0].text()


EQUAL_OPERANDS = {
    "tanh twice": lambda x: (ll.tanh(x), ll.tanh(x)),
    "times one": lambda x: (x * 1.0, x),
    "times one, twice": lambda x: (x * 1.0, x * 1.0),
    "times one, and again": lambda x: (x * 1.0 * 1.0, x),
    "negated twice": lambda x: (x, ll.negative(ll.negative(x))),
    "divided by one": lambda x: (ll.exp(x), ll.exp(x) / 1.0),
    "one tensor": lambda x: (ll.exp(x),) * 2,
    "views of two": lambda x: (ll.reshape(x * 1.0, (9, 45)), ll.reshape(x, (9, 45))),
}


@pytest.mark.parametrize("equal", EQUAL_OPERANDS)
def test_products_of_equal_operands_keep_their_bits(equal: str) -> None:
    x = ll.constant(np.random.default_rng(0).normal(size=(5, 9, 9)).astype(np.float32))

    def f(x: ll.Tensor) -> ll.Tensor:
        a, b = EQUAL_OPERANDS[equal](x)
        return a @ ll.matrix_transpose(b)

    with ll.config.optimiser(level=2):
        staged = ll.function(f)(x)
    assert staged.numpy().tobytes() == f(x).numpy().tobytes()


def test_share_compares_literals_by_content() -> None:
    result, record = run(
        share, body(constant(1, "1.5"), constant(2, "1.5"), constant(3, "1.5", "f64[]"), "return %1, %2, %3")
    )
    assert record.removed == 1
    assert result.outputs[0] is result.outputs[1]


READS = """\
graph g
  input %0: f32[]  x
  capture %1: var f32[]  v
  capture %2: var f32[]  w
  !0 %3: f32[] = read_variable(%1)
  !1 %4: f32[] = read_variable(%1)
  !2 %5: f32[] = assign(%2, %0)
  !3 %6: f32[] = read_variable(%1)
  !4 %7: f32[] = assign(%1, %0)  after !0, !1, !3
  !5 %8: f32[] = read_variable(%1)  after !4
  %9: f32[] = assign_add(%1, %8)  after !4, !5
  return %3, %4, %6, %8
"""


def test_share_merges_reads_up_to_the_next_write_of_the_same_variable() -> None:
    result, record = run(share, READS)
    reads = [node for node in result.nodes if node.op == "read_variable"]
    assert len(reads) == 2, "one before, one after the write; the write of another variable does not count"
    assert record.removed == 2
    write = next(node for node in result.nodes if node.op == "assign" and node.inputs[0] is result.inputs[1])
    assert write.after == (reads[0],)


def test_share_looks_into_called_functions() -> None:
    text = CALLS.replace("  return\n", "  %5: f32[] = call(%0)  {function=@pure}\n  return %2, %3, %4, %5\n", 1)
    _, record = run(share, text)
    assert [change.old[0].functions[0].name for change in record.changes] == ["pure"]
    text = CALLS.replace(
        "  %3: f32[] = call(%0, %1)  {function=@writes}  after !0", "  %3: f32[] = call(%0, %1)  {function=@reads}"
    )
    text = text.replace("  return\n", "  return %2, %3\n", 1)
    assert [change.old[0].functions[0].name for change in run(share, text)[1].changes] == ["reads"]


def test_share_never_merges_writes_or_random_draws() -> None:
    text = body(
        "!0 %2: f32[3] = assign_add(%1, %0)",
        "%3: f32[3] = assign_add(%1, %0)  after !0",
        "return %2, %3",
        inputs="  input %0: f32[3]  x\n  capture %1: var f32[3]  v\n",
    )
    assert run(share, text)[1].changes == []
    draw = "random_normal(%0)  {location=0.0, scale=1.0, dtype=f32, shape=(3,)}"
    text = body(
        f"!0 %1: f32[3] = {draw}",
        f"%2: f32[3] = {draw}  after !0",
        "return %1, %2",
        inputs="  input %0: generator  g\n",
    )
    assert run(share, text)[1].changes == []


# The pipeline


MESSY = body(
    constant(2, "2.0"),
    constant(3, "2.0"),
    "%4: f32[] = add(%2, %3)",
    "%5: f32[] = add(%3, %2)",
    "!0 %6: f32[3] = read_variable(%1)",
    "!1 %7: f32[3] = read_variable(%1)",
    "%8: f32[3] = multiply(%6, %4)",
    "%9: f32[3] = multiply(%7, %5)",
    "%10: f32[3] = add(%8, %9)",
    "%11: f32[3] = exp(%10)",
    "%12: f32[3] = assign(%1, %0)  after !0, !1",
    "return %10",
    inputs="  input %0: f32[3]  x\n  capture %1: var f32[3]  v\n",
)


def test_the_pipeline_ends_where_no_pass_finds_anything() -> None:
    graph, records = optimise(parse(MESSY), check=True)
    assert [node.op.name for node in graph.nodes] == ["constant", "read_variable", "multiply", "add", "assign"]
    assert sum(record.removed - record.added for record in records) == 11 - len(graph.nodes)
    for apply in (prune, fold, share):
        again, record = apply(graph)
        assert again is graph
        assert record.changes == []


EXACT = {one.name for one in pipeline.PASSES if one.level <= 2}


@pytest.mark.parametrize(("level", "names"), [(0, set()), (1, {"prune"}), (2, EXACT), (3, EXACT | {"stack"})])
def test_levels(level: int, names: set[str]) -> None:
    graph = parse(MESSY)
    result, records = optimise(graph, level)
    assert {record.name for record in records} == names
    assert (result is graph) == (level == 0)


def test_unknown_levels_are_refused() -> None:
    with pytest.raises(ArgumentError, match="levels are 0 to 3, got 4"):
        optimise(parse(MESSY), 4)


def test_passes_are_announced_to_who_asks() -> None:
    seen: list[events.PassApplied] = []
    with events.listen(seen.append, events.PassApplied):
        _, records = optimise(parse(MESSY))
    assert [(e.name, e.before, e.after) for e in seen] == [(r.name, r.before, r.after) for r in records]
    assert {e.graph for e in seen} == {"g"}
    assert str(records[0]) == "prune: 11 - 1 + 0 = 10 nodes"
