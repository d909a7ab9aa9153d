"""The table of passes: one line adds a pass, and everything else that knows passes reads it from there."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight import events
from limelight.core.op import all_ops
from limelight.errors import ArgumentError
from limelight.executors.plan import specialised_kernels
from limelight.graph import Graph, known_sizes, parse
from limelight.graph.build import Rewriter
from limelight.optimise import (
    PassRecord,
    algebra,
    broadcasts,
    fusion,
    loop_invariants,
    optimise,
    pipeline,
    product_operands,
    simplify,
    view_algebra,
)
from limelight.optimise.pass_record import Recorder
from limelight.optimise.pipeline import Pass, When
from limelight_widgets.folds.node_fates import fates

GRAPH = """\
graph g
  input %0: f32[3]  x
  %1: f32[3] = round(%0)
  %2: f32[3] = exp(%1)
  return %2
"""


def unround(graph: Graph) -> tuple[Graph, PassRecord]:
    """A pass that nobody should want: it removes roundings."""
    recorder = Recorder("unround", graph)
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "round":
            rewriter.replace(node, rewriter.inputs(node))
            recorder.note("round", "whole numbers are dull", (node,))
        else:
            rewriter.keep(node)
    return recorder.finish(rewriter)


@pytest.fixture(params=list(When))
def added(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pass:
    made = Pass("unround", unround, 2, "unrounded", "set free: {reason}", when=request.param)
    monkeypatch.setattr(pipeline, "PASSES", (*pipeline.PASSES, made))
    return made


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def test_a_pass_in_the_table_runs_at_its_level(added: Pass) -> None:
    graph = parse(GRAPH)
    assert ops(optimise(graph, 1).graph) == ["round", "exp"]
    seen: list[events.PassApplied] = []
    with events.listen(seen.append, events.PassApplied):
        better, records = optimise(graph, 2, check=True)
    assert ops(better) == ["exp"]
    assert "unround: 2 - 1 + 0 = 1 nodes" in map(str, records)
    assert "unround" in {event.name for event in seen}


def test_it_can_be_left_out_by_name_and_is_listed(added: Pass) -> None:
    graph = parse(GRAPH)
    with ll.config.optimiser(without=["unround"]):
        better, records = optimise(graph)
    assert ops(better) == ["round", "exp"]
    assert "unround" not in {record.name for record in records}
    with pytest.raises(ArgumentError, match=", fuse, unround"):
        ll.config.optimiser(without=["round"])


def test_the_views_tell_of_it_in_its_own_words(added: Pass) -> None:
    graph = parse(GRAPH)
    better, records = optimise(graph)
    fate = fates(graph, better, records)[graph.nodes[0]]
    assert (fate.words, fate.mark) == ("set free: whole numbers are dull", "unrounded")


def test_passes_run_in_the_order_of_the_table() -> None:
    records = optimise(parse(GRAPH), 3).records
    order = pipeline.names()
    first = list(dict.fromkeys(record.name for record in records))
    assert first == list(order)
    assert order == ("prune", "fold", "simplify", "share", "hoist", "stack", "spread", "fuse")


def test_what_tidies_ends_with_what_removes() -> None:
    assert [one.name for one in pipeline.tidy_passes()] == ["fold", "share", "prune"]


def test_which_passes_have_rules_that_round_otherwise() -> None:
    exact = [one.name for one in pipeline.PASSES if one.at(2) is not one.at(3)]
    assert exact == ["simplify", "share"]


def test_tables_of_ops_name_ops_that_there_are() -> None:
    """The name of an op that has been renamed would only make graphs slower, and nobody would notice."""
    tables = {
        "rules": simplify._INEXACT,
        "makers": simplify._PRODUCERS,
        "views": view_algebra.VIEWS,
        "products": product_operands._PRODUCTS,
        "never -0.0": algebra._NEVER_MINUS_ZERO,
        "never fail": loop_invariants._SAFE,
        "spread": broadcasts._OPS,
        "heads of groups": fusion._HEADS,
        "sizes": known_sizes.RULES,
        "plans": specialised_kernels._OPS,
    }
    ops = all_ops()
    assert {name: set(table) - set(ops) for name, table in tables.items()} == {name: set() for name in tables}
