"""Groups: which nodes are marked as one, that large ones run in blocks, and that nothing but time tells."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors import step
from limelight.executors.plan import blocked_groups, plan
from limelight.graph import Graph, parse
from limelight.optimise import optimise
from limelight.optimise.fusion import LARGEST, fuse

sys.path.insert(0, str(Path(__file__).parent))

from applying import bits, body, check, run  # beside this file


def groups(graph: Graph) -> list[tuple[str, list[str]]]:
    return [(group.kind, [node.op.name for node in group.nodes]) for group in graph.groups]


def test_chains_and_diamonds_are_groups() -> None:
    marked, record = run(
        fuse,
        body(
            "%1: f32[3] = tanh(%0)  # model.py:7",
            "%2: f32[3] = exp(%1)",
            "%3: f32[3] = multiply(%2, %1)",
            "%4: f32[] = sum(%3)  {axis=None, keepdims=False}",
            "%5: f32[3] = sin(%0)",
            "return %4, %5",
        ),
    )
    assert groups(marked) == [("elementwise", ["tanh", "exp", "multiply"])]
    assert record.changes[0].new == marked.groups[0].nodes
    assert record.changes[0].source == ("model.py", 7)
    assert (record.removed, record.added) == (0, 0)
    again, record = check(fuse, marked)
    assert again is marked


@pytest.mark.parametrize(
    ("lines", "outputs"),
    [
        (["%1: f32[3] = tanh(%0)", "%2: f32[3] = exp(%1)"], "%1, %2"),  # both are returned
        (["%1: f32[3] = tanh(%0)", "%2: f32[3] = exp(%1)  @CPU:0"], "%2"),
        (["%1: f32[3] = tanh(%0)", "%2: f32[3] = exp(%1)", "%3: f32[3] = sin(%1)"], "%2, %3"),
        (["%1: f32[1] = sum(%0)  {axis=None, keepdims=True}", "%2: f32[3] = add(%0, %1)"], "%2"),
        (["%1: f32[3] = tanh(%0)", "%2: f32[2,3] = broadcast_to(%1)  {shape=(2, 3)}"], "%2"),
    ],
)
def test_what_is_no_group(lines: list[str], outputs: str) -> None:
    assert run(fuse, body(*lines, f"return {outputs}"))[0].groups == ()


def test_products_take_bias_and_activation_along() -> None:
    """The bias is added into the product's own buffer, and the activation, too."""
    marked, _ = run(
        fuse,
        body(
            "%3: f32[2,4] = matmul(%0, %1)",
            "%4: f32[2,4] = add(%3, %2)",
            "%5: f32[2,4] = relu(%4)",
            "return %5",
            inputs="  input %0: f32[2,3]  x\n  input %1: f32[3,4]  w\n  input %2: f32[4]  b\n",
        ),
    )
    assert groups(marked) == [("product", ["matmul", "add", "relu"])]
    source = plan.build(marked).source
    assert "v3 = add(v3, v2, v3)" in source
    assert "v3 = relu(v3, c1, out=v3)" in source


def test_convolutions_too() -> None:
    f = ll.function(lambda x, w, b: ll.nn.relu(ll.nn.conv(x, w) + b))
    x, w, b = (ll.constant(np.ones(shape, np.float32)) for shape in ((1, 5, 5, 2), (3, 3, 2, 4), (4,)))
    f(x, w, b)
    (group,) = f.trace_cache[0].optimised.groups
    assert (group.kind, [node.op.name for node in group.nodes]) == ("product", ["conv", "add", "relu"])


def test_groups_are_not_endless() -> None:
    n = 3 * LARGEST
    lines = [f"%{i + 1}: f32[3] = tanh(%{i})" for i in range(n)]
    marked, _ = run(fuse, body(*lines, f"return %{n}"))
    assert [len(group.nodes) for group in marked.groups] == [LARGEST] * 3


SHAPES = [((6, 5), (6, 5)), ((6, 5), (5,)), ((6, 5), ()), ((6, 5), (6, 1)), ((1, 30), (1, 30)), ((2, 3, 5), (3, 1))]


@pytest.mark.parametrize(("one", "other"), SHAPES)
@pytest.mark.parametrize("block", [1, 7, 10, 1000])
def test_blocks_give_every_bit(monkeypatch: pytest.MonkeyPatch, one: Any, other: Any, block: int) -> None:
    monkeypatch.setattr(blocked_groups, "SMALLEST", 30)
    monkeypatch.setattr(blocked_groups, "BLOCK", block)

    def f(x: Any, y: Any) -> Any:
        h = ll.tanh(x * y + 0.5)
        chosen = ll.minimum(ll.nn.relu(h), ll.maximum(y, h * h))
        return ll.exp(-chosen) - h

    random = np.random.default_rng(0)
    x, y = random.normal(size=one).astype(np.float32), random.normal(size=other).astype(np.float32)
    graph = optimise(ll.function(f).get_concrete_function(ll.constant(x), ll.constant(y)).graph, check=True).graph
    run_ = plan.build(graph)
    assert "fused" in run_.source
    assert bits(run_(x, y)[0]) == bits(step.run(graph, [x, y]).outputs[0])
    turned = np.ascontiguousarray(x.T).T
    assert bits(run_(turned, y)[0]) == bits(run_(x, y)[0])
    assert bits(run_(x, y)[0]) == bits(run_(x, y)[0])


def test_small_groups_run_line_by_line() -> None:
    graph = optimise(parse(body("%1: f32[3] = tanh(%0)", "%2: f32[3] = exp(%1)", "%3: f32[3] = sin(%2)", "return %3")))
    assert "fused" not in plan.build(graph.graph).source
