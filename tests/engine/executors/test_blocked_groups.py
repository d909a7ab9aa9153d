"""Which groups run block by block, and how: only large ones of ufuncs, with few buffers, and bit for bit the same."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll  # noqa: F401  # registers the ops
from limelight.core import cores
from limelight.executors import step
from limelight.executors.plan import blocked_groups, plan
from limelight.executors.plan.kernel_calls import KernelCalls
from limelight.executors.plan.specialised_kernels import specialised
from limelight.graph import Graph, parse
from limelight.optimise.fusion import fuse

X = "  input %0: f32[6,5]  x\n"
RANDOM = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_groups, "SMALLEST", 30)
    monkeypatch.setattr(blocked_groups, "BLOCK", 7)


def marked(*lines: str, inputs: str = X) -> Graph:
    return fuse(parse("graph g\n" + inputs + "".join(f"  {line}\n" for line in lines)))[0]


def blocked(graph: Graph) -> list[str]:
    """The ops that are left."""
    return [node.op.name for node in blocked_groups.in_blocks(graph, KernelCalls(specialised)).nodes]


def chain(n: int, shape: str = "f32[6,5]", start: int = 0, suffix: str = "") -> list[str]:
    return [f"%{start + i + 1}: {shape} = {'tanh' if i % 2 else 'sin'}(%{start + i}){suffix}" for i in range(n)]


def same(graph: Graph, *payloads: np.ndarray) -> None:
    """What a plan computes in blocks is what the steps compute one by one, bit by bit."""
    with np.errstate(all="ignore"):
        wanted = step.run(graph, payloads).outputs
        for mine, theirs in zip(plan.build(graph)(*payloads), wanted, strict=True):
            assert (mine.dtype, mine.shape, mine.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())


def test_three_steps_over_many_numbers() -> None:
    graph = marked(*chain(3), "return %3")
    assert blocked(graph) == ["fused_3_sin"]
    same(graph, RANDOM)
    assert blocked_groups.in_blocks(marked(*chain(2), "return %2"), KernelCalls(specialised)).nodes[0].op == "sin"


def test_small_groups_beside_large_ones_stay() -> None:
    inputs = X + "  input %1: f32[5]  y\n"
    lines = [*chain(3, start=1, shape="f32[5]"), "%5: f32[6,5] = exp(%0)", *chain(3, start=5), "return %4, %8"]
    graph = marked(*[line.replace("sin(%1)", "sin(%1)") for line in lines], inputs=inputs)
    assert blocked(graph) == ["sin", "tanh", "sin", "fused_4_sin"]
    same(graph, RANDOM, RANDOM[0])


@pytest.mark.parametrize(
    "lines",
    [
        chain(3, suffix="  @CPU:0"),  # placed by somebody
        ["%1: f32[6,5] = sin(%0)", "%2: f32[6,5] = sigmoid(%1)", "%3: f32[6,5] = tanh(%2)"],  # no ufunc
        ["%1: f32[6,5] = sin(%0)", "%2: f32[6,5] = where(%4, %1, %0)", "%3: f32[6,5] = tanh(%2)"],
    ],
)
def test_what_is_not_done_in_blocks(lines: list[str]) -> None:
    if "where" in lines[1]:
        lines = ["%1: bool[6,5] = isnan(%0)", "%2: f32[6,5] = sin(%0)", "%3: f32[6,5] = where(%1, %2, %0)"]
        lines += ["%4: f32[6,5] = tanh(%3)"]
    graph = marked(*lines, f"return %{len(lines)}")
    assert graph.groups
    assert not any(name.startswith("fused") for name in blocked(graph))
    same(graph, RANDOM)


def test_not_where_an_operand_s_size_is_unknown() -> None:
    inputs = X + "  input %1: f32[?]  y\n"
    lines = ["%2: f32[6,5] = add(%0, %1)", *chain(3, start=2), "return %5"]
    graph = marked(*lines, inputs=inputs)
    assert not any(name.startswith("fused") for name in blocked(graph))
    same(graph, RANDOM, RANDOM[0])


def test_a_product_in_front_is_computed_by_itself() -> None:
    inputs = X + "  input %1: f32[5,5]  w\n"
    graph = marked("%2: f32[6,5] = matmul(%0, %1)", *chain(3, start=2), "return %5", inputs=inputs)
    assert blocked(graph) == ["matmul", "fused_3_sin"]
    same(graph, RANDOM, RANDOM[:5])


def test_buffers_are_of_their_dtype_and_are_used_again() -> None:
    """Masks among numbers: a buffer of the one does not do for the other."""
    graph = marked(
        "%1: f32[6,5] = sin(%0)",
        "%2: bool[6,5] = greater(%1, %0)",
        "%3: bool[6,5] = logical_not(%2)",
        "%4: bool[6,5] = isfinite(%1)",
        "%5: bool[6,5] = logical_and(%3, %4)",
        "%6: bool[6,5] = logical_xor(%5, %2)",
        "return %6",
    )
    assert blocked(graph) == ["fused_6_logical_xor"]
    same(graph, RANDOM)
    nodes = graph.groups[0].nodes
    extra = [KernelCalls(specialised).of(node, "numpy").extra for node in nodes]
    _, scratch = blocked_groups._with_buffers(nodes, extra, {graph.inputs[0]: 0})
    assert [dtype.name for dtype in scratch] == ["float32", "bool", "bool", "bool"]
    longer = marked(*chain(9), "return %9").groups[0].nodes
    assert len(blocked_groups._with_buffers(longer, [()] * 9, {longer[0].inputs[0]: 0})[1]) == 1


def test_rows_that_are_one_for_all_and_constants_besides() -> None:
    inputs = X + "  input %1: f32[1,5]  y\n"
    lines = ["%2: f32[6,5] = add(%0, %1)", "%3: f32[6,5] = relu(%2)", "%4: f32[6,5] = subtract(%3, %1)"]
    graph = marked(*lines, "%5: f32[6,5] = relu(%4)", "return %5", inputs=inputs)
    assert blocked(graph) == ["fused_4_relu"]
    same(graph, RANDOM, RANDOM[:1])


def test_operands_of_every_layout() -> None:
    inputs = X + "  input %1: f32[5]  y\n  input %2: f32[6,1]  z\n  input %3: f32[]  s\n  input %4: f32[6,5]  t\n"
    lines = ["%5: f32[6,5] = add(%0, %1)", "%6: f32[6,5] = multiply(%2, %5)", "%7: f32[6,5] = maximum(%6, %3)"]
    graph = marked(*lines, "%8: f32[6,5] = relu(%7)", "%9: f32[6,5] = subtract(%8, %4)", "return %9", inputs=inputs)
    assert blocked(graph) == ["fused_5_subtract"]
    wide = np.repeat(RANDOM, 2, axis=1)
    for x in (RANDOM, np.asfortranarray(RANDOM), wide[:, ::2], RANDOM[::-1]):
        same(graph, x, RANDOM[0], RANDOM[:, :1], np.float32(0.5), np.asfortranarray(x))
    plain = marked(*chain(3), "return %3")
    for x in (np.asfortranarray(RANDOM), wide[:, ::2], RANDOM[::-1]):
        same(plain, x)


@pytest.mark.parametrize("count", [2, 3])
def test_blocks_shared_out_among_threads(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "WORTH", 0)
    monkeypatch.setattr(cores, "threads", lambda: count)
    same(marked(*chain(3), "%4: f32[6,5] = multiply(%3, %2)", "%5: f32[6,5] = add(%4, %0)", "return %5"), RANDOM)
    many = np.tile(RANDOM, (50, 1))
    wide = X.replace("6", "300")
    same(marked(*chain(4, shape="f32[300,5]"), "return %4", inputs=wide), many)
