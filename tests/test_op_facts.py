"""The facts of ops that the site tells are what the code does: some ops here, all with LIMELIGHT_OP_FACTS=all."""

from __future__ import annotations

import os

import pytest

import limelight as ll
import op_facts
from limelight.core.op import all_ops
from op_programs import PROGRAMS
from stablehlo_table import cases, own_ops

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every case is staged anew
ALL = os.environ.get("LIMELIGHT_OP_FACTS") == "all"
KEPT = op_facts.kept()
SOME = (
    "add", "argsort", "cond", "conv", "dropout_mask", "einsum_pair", "matmul", "nonzero", "random_normal", "scan",
    "softmax", "sort", "sum", "take",
)  # fmt: skip


def test_every_op_is_in_the_file_in_its_form() -> None:
    assert set(own_ops()) == set(KEPT), "run `python scripts/op_facts.py`"
    assert op_facts.FACTS.read_text(encoding="utf-8") == op_facts.written(KEPT)


def test_what_can_be_read_off_an_op_is_as_the_file_says() -> None:
    ours = {name: all_ops()[name] for name in own_ops()}
    assert {name: op_facts.on_onnx(op) for name, op in ours.items()} == {n: f["onnx"] for n, f in KEPT.items()}
    assert [name for name, facts in KEPT.items() if facts["gradient"] == "yes" and not op_facts.has_rule(name)] == []
    wrong = [
        f"{name}, {fact}: {said}" for name, facts in KEPT.items() for fact, said in facts.items() if "differs" in said
    ]
    assert wrong == []


def test_what_was_tried_is_so() -> None:
    by_op = cases()
    names = own_ops() if ALL else [name for name in SOME if name in all_ops()]
    assert len(names) > 10
    for name in names:
        found = op_facts.facts_of(all_ops()[name], by_op, only=None if ALL else op_facts.QUICK)
        assert found == {fact: KEPT[name][fact] for fact in found}, f"{name}: run `python scripts/op_facts.py`"


def test_programs_have_the_ops_that_they_are_for() -> None:
    x = ll.constant([0.25, 1.0, 1.5, 2.0])
    for name, program in PROGRAMS.items():
        f = ll.function(program)
        f(x)
        assert name in {str(node.op) for node in f.trace_cache[0].graph.nodes}, name
