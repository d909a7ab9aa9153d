"""When a result goes into a dead operand's buffer, and when it must not; when values go in plans of several parts."""

from __future__ import annotations

import functools
import weakref

import numpy as np
import pytest

import limelight as ll  # registers the ops
from limelight.core import dtypes
from limelight.core.op import Op, all_ops, get
from limelight.core.spec import TensorSpec
from limelight.executors import base
from limelight.executors.plan import codegen, plan
from limelight.executors.plan.kernel_calls import KernelCalls, kernel_call
from limelight.executors.plan.specialised_kernels import specialised
from limelight.graph import Graph, Node, Value, parse


def reuses(*lines: str, inputs: str = "  input %0: f32[3]  x\n", for_sure: bool = False) -> list[str]:
    """The lines of the plan that write into an operand's buffer, by op; `for_sure`, without a look at its order."""
    run = plan.build(parse(f"graph g\n{inputs}" + "".join(f"  {line}\n" for line in lines)))
    found = []
    for line in run.source.split("\n"):
        target, _, call = line.strip().partition(" = ")
        op, _, arguments = call.partition(";")[0].rstrip(")").partition("(")
        if not for_sure:
            arguments = arguments.replace(f" if {target}.flags.c_contiguous else None", "")
        words = arguments.split(", ")
        if op not in all_ops():
            continue
        if f"out={target}" in words or (words[-1] == target and len(words) == len(get(op).operands) + 1):
            found.append(op)
    return found


def test_a_dead_new_buffer_takes_the_result() -> None:
    assert reuses("%1: f32[3] = tanh(%0)", "%2: f32[3] = exp(%1)", "%3: f32[3] = maximum(%2, %0)", "return %3") == [
        "exp",
        "maximum",
    ]


def test_either_operand_will_do() -> None:
    assert reuses("%1: f32[3] = tanh(%0)", "%2: f32[3] = add(%0, %1)", "return %2") == ["add"]
    assert reuses("%1: f32[3] = tanh(%0)", "%2: f32[3] = add(%1, %1)", "return %2") == ["add"]


def test_inputs_are_the_callers() -> None:
    assert reuses("%1: f32[3] = tanh(%0)", "return %1") == []


def test_literals_are_the_graphs() -> None:
    literal = "%1: f32[3] = constant()  {value=f32[3] [1.0, 2.0, 3.0]}"
    assert reuses(literal, "%2: f32[3] = tanh(%1)", "return %2") == []


def test_outputs_are_the_callers() -> None:
    assert reuses("%1: f32[3] = tanh(%0)", "%2: f32[3] = exp(%1)", "return %1, %2") == []


def test_a_value_that_is_used_again_lives_on() -> None:
    assert reuses("%1: f32[3] = tanh(%0)", "%2: f32[3] = exp(%1)", "%3: f32[3] = add(%1, %2)", "return %3") == ["add"]


def test_values_of_variables_are_the_variables() -> None:
    assert reuses(
        "%1: f32[3] = read_variable(%0)",
        "%2: f32[3] = tanh(%1)",
        "return %2",
        inputs="  capture %0: var f32[3]  v\n",
    ) == []  # fmt: skip


def test_what_a_variable_was_given_is_the_variables() -> None:
    assert reuses(
        "%2: f32[3] = tanh(%0)",
        "%3: f32[3] = assign(%1, %2)",
        "%4: f32[3] = exp(%2)",
        "return %4",
        inputs="  input %0: f32[3]  x\n  capture %1: var f32[3]  v\n",
    ) == []  # fmt: skip


def test_whatever_has_a_view_stays() -> None:
    view = "%2: f32[3,1] = reshape(%1)  {shape=(3, 1)}"
    assert reuses("%1: f32[3] = tanh(%0)", view, "%3: f32[3] = exp(%1)", "return %2, %3") == []
    assert reuses("%1: f32[3] = tanh(%0)", view, "%3: f32[3,1] = exp(%2)", "return %1, %3") == []


@pytest.mark.parametrize("op", ["identity", "stop_gradient"])
def test_another_name_is_a_view(op: str) -> None:
    assert reuses("%1: f32[3] = tanh(%0)", f"%2: f32[3] = {op}(%1)", "%3: f32[3] = exp(%1)", "return %2, %3") == []


def test_unknown_kernels_may_keep_anything() -> None:
    kept: list[np.ndarray] = []
    keep = Op(
        "keep", inputs="x", infer=lambda x: x, kernel=lambda xp, x: kept.append(x) or x + 1, why_no_gradient="a test"
    )
    x = Value(TensorSpec((3,)))
    first = parse("graph g\n  input %0: f32[3]  x\n  %1: f32[3] = tanh(%0)\n  return %1\n")
    second = Node(keep, first.outputs, (), [x.spec])
    third = parse("graph g\n  input %0: f32[3]  x\n  %1: f32[3] = exp(%0)\n  return %1\n").nodes[0]
    last = Node(third.op, first.outputs, (), [x.spec])
    graph = Graph("g", first.inputs, [*first.nodes, second, last], [*second.outputs, *last.outputs])
    plan.build(graph)(np.zeros(3, dtype=np.float32))
    assert kept[0].tolist() == [0.0, 0.0, 0.0]


def test_another_shape_or_dtype_needs_another_buffer() -> None:
    x = "  input %0: f32[3]  x\n  input %1: f32[2,3]  y\n"
    assert reuses("%2: f32[3] = tanh(%0)", "%3: f32[2,3] = add(%2, %1)", "return %3", inputs=x) == []
    assert reuses("%1: f32[3] = tanh(%0)", "%2: bool[3] = greater(%1, %0)", "return %2") == []


def test_scalars_have_no_buffer() -> None:
    scalar = "  input %0: f32[]  x\n"
    assert reuses("%1: f32[] = tanh(%0)", "%2: f32[] = exp(%1)", "return %2", inputs=scalar) == []


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=dtypes.short)
def test_buffers_of_every_dtype(dtype: np.dtype) -> None:
    short = dtypes.short(dtype)
    text = f"""\
graph g
  input %0: {short}[2,3]  x
  %1: {short}[2,3] = multiply(%0, %0)
  %2: {short}[2,3] = add(%1, %0)
  %3: {short}[2,3] = multiply(%2, %2)
  return %3
"""
    run = plan.build(parse(text))
    assert ", v1)" in run.source
    x = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    result = run(x)[0]
    assert result.dtype == dtype
    assert np.array_equal(result, (x * x + x) * (x * x + x))
    assert np.array_equal(x, np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype))


UNKNOWN = "  input %0: f32[?,3]  x\n  input %1: f32[?,3]  y\n  input %2: f32[3]  b\n"


def test_unknown_sizes_that_are_the_same_for_sure() -> None:
    assert reuses("%3: f32[?,3] = tanh(%0)", "%4: f32[?,3] = exp(%3)", "return %4", inputs=UNKNOWN) == ["exp"]
    assert reuses("%3: f32[?,3] = tanh(%0)", "%4: f32[?,3] = add(%3, %2)", "return %4", inputs=UNKNOWN) == ["add"]
    through = ["%3: f32[?,3] = tanh(%0)", "%4: f32[?,3] = exp(%3)", "%5: f32[?,3] = multiply(%4, %0)", "return %5"]
    assert reuses(*through, inputs=UNKNOWN) == ["exp", "multiply"]


def test_operands_of_size_one_have_no_say_in_unknown_sizes() -> None:
    inputs = UNKNOWN.replace("f32[3]  b", "f32[1,3]  b")
    lines = ["%3: f32[?,3] = tanh(%0)", "%4: f32[?,3] = add(%2, %3)", "return %4"]
    assert reuses(*lines, inputs=inputs) == ["add"]


@pytest.mark.parametrize(
    "lines",
    [
        [
            "%3: f32[?,3] = add(%2, %0)",
            "%4: f32[?,3] = add(%2, %1)",
            "%5: f32[?,3] = multiply(%3, %4)",
        ],
        ["%3: f32[?,3] = concat(%0, %0)  {axis=0}", "%4: f32[?,3] = tanh(%0)", "%5: f32[?,3] = multiply(%4, %3)"],
        ["%3: f32[?,3] = multiply(%0, %1)", "%4: f32[?,3] = tanh(%0)", "%5: f32[?,3] = multiply(%4, %3)"],
    ],
)
def test_unknown_sizes_that_only_look_the_same(lines: list[str]) -> None:
    assert reuses(*lines, "return %5", inputs=UNKNOWN) == []
    run = plan.build(parse("graph g\n" + UNKNOWN + "".join(f"  {line}\n" for line in [*lines, "return %5"])))
    assert run(np.ones((1, 3), np.float32), np.ones((2, 3), np.float32), np.ones(3, np.float32))[0].shape == (2, 3)


def test_unknown_sizes_that_may_differ() -> None:
    lines = ["%3: f32[?,3] = tanh(%0)", "%4: f32[?,3] = add(%3, %1)", "return %4"]
    assert reuses(*lines, inputs=UNKNOWN) == []
    run = plan.build(parse("graph g\n" + UNKNOWN + "".join(f"  {line}\n" for line in lines)))
    one, two, bias = (np.zeros(shape, dtype=np.float32) for shape in ((1, 3), (2, 3), (3,)))
    assert run(one, two, bias)[0].shape == (2, 3)


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_values_go_at_their_last_use_in_plans_of_several_parts(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(codegen, "PART", size)
    made: list[weakref.ref[np.ndarray]] = []
    alive: list[list[int]] = []

    def fresh(xp: object, *xs: np.ndarray) -> np.ndarray:
        alive.append([i for i, ref in enumerate(made) if ref() is not None])
        result = np.array(xs[0])
        made.append(weakref.ref(result))
        return result

    op = Op("fresh", inputs="*xs", infer=lambda *xs: xs[0], kernel=fresh, why_no_gradient="a test")
    x = Value(TensorSpec((3,)))
    nodes: list[Node] = []
    for i in range(8):  # each uses the one before and the one four before
        used = [x] if i == 0 else [nodes[-1].outputs[0]] + ([nodes[i - 4].outputs[0]] if i >= 4 else [])
        nodes.append(Node(op, tuple(used), (), [x.spec]))
    plan.build(Graph("g", [x], nodes, nodes[-1].outputs))(np.ones(3, dtype=np.float32))
    last = [j + 4 if j + 4 < 8 else j + 1 for j in range(8)]
    assert alive == [[j for j in range(i) if last[j] >= i] for i in range(8)]


def test_what_a_kernel_is_written_as() -> None:
    """Only what is known to be new and elementwise is written over or into."""
    assert [kernel_call(f).fresh for f in (np.where, np.take, np.reshape, np.broadcast_to, np.flip)] == [True, True] + [
        False
    ] * 3
    assert [(kernel_call(f).elementwise, kernel_call(f).fresh) for f in (np.tanh, np.matmul, np.modf)] == [
        (True, True),
        (False, True),
        (False, True),
    ]
    assert [kernel_call(f).out for f in (np.maximum, np.minimum, np.add)] == ["out=", "out=", ""]
    whole, named = functools.partial(np.full, 3), functools.partial(np.full, fill_value=1)
    assert (kernel_call(whole).kernel, kernel_call(whole).first) == (np.full, (3,))
    assert (kernel_call(named).kernel, kernel_call(named).first) == (named, ())


def test_only_the_libraries_own_ops_are_known_by_name() -> None:
    """An op of somebody's that has the name of one of ours may hand on its operand."""
    impostor = Op("softmax", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x, why_no_gradient="a test")
    x = Value(TensorSpec((3,)))
    assert not KernelCalls(specialised).of(Node(impostor, (x,), (), [x.spec]), "numpy").fresh
    assert KernelCalls(specialised).of(Node(get("softmax"), (x,), (-1,), [x.spec]), "numpy").fresh


def test_complex_products_round_as_they_do_eagerly() -> None:
    """In place NumPy takes another loop for them, and what is in place is for the passes to say."""
    rng = np.random.default_rng(0)
    f = lambda x, y: (-x) * (-y)  # noqa: E731
    staged = ll.function(f)
    for _ in range(20):
        x = ll.constant(np.complex64(rng.normal() + 1j * rng.normal()))
        y = ll.constant((rng.normal(size=1) + 1j * rng.normal(size=1)).astype("complex64"))
        with ll.config.optimiser(level=0):
            assert staged(x, y).numpy().tobytes() == f(x, y).numpy().tobytes()


IN_ANOTHER_ORDER = [
    "%1: f32[4,6] = reshape(%0)  {shape=(4, 6)}",
    "%2: f32[6,4] = transpose(%1)  {axes=(1, 0)}",
    "%3: f32[6,4] = tanh(%2)",
]
TWO = "  input %0: f32[6,4]  x\n  input %9: f32[6,4]  y\n"


def test_the_result_lies_as_a_new_array_would() -> None:
    """Written into the buffer of an operand in Fortran order, it would be added up in another order than elsewhere."""
    assert reuses(*IN_ANOTHER_ORDER, "%4: f32[6,4] = multiply(%9, %3)", "return %4", inputs=TWO, for_sure=True) == []
    assert reuses(*IN_ANOTHER_ORDER, "%4: f32[6,4] = exp(%3)", "return %4", inputs=TWO) == ["exp"]
    in_order = "%4: f32[6,4] = exp(%9)"
    product = "%5: f32[6,4] = multiply(%3, %4)"
    assert reuses(*IN_ANOTHER_ORDER, in_order, product, "return %5", inputs=TWO) == ["multiply"]


@pytest.mark.parametrize("executor", ["plan", *(["loops"] if "loops" in base.names() else [])])
def test_sums_of_arrays_in_several_orders_are_those_of_one_op_after_the_other(executor: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (ll.constant(rng.standard_normal((96, 128)).astype(np.float32)) for _ in range(2))

    def f(x: ll.Tensor, y: ll.Tensor) -> ll.Tensor:
        turned = ll.tanh(ll.transpose(ll.reshape(x, (128, 96))))
        return ll.mean(ll.exp(y * turned), axis=1)

    with base.chosen.override(executor):
        np.testing.assert_array_equal(ll.function(f)(x, y).numpy(), f(x, y).numpy())
