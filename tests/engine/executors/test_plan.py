"""Plans: what they compute, how they treat memory, how they name their errors."""

from __future__ import annotations

import functools
import gc
import linecache
import threading
import warnings
import weakref

import numpy as np
import pytest

import limelight as ll
from limelight.core.op import Op, get
from limelight.core.spec import ObjectSpec, TensorSpec
from limelight.errors import DTypeError, RunError, ShapeError
from limelight.executors import base
from limelight.executors.base import Runnable
from limelight.executors.plan import plan
from limelight.graph import Graph, Literal, Node, Value, parse
from limelight.user_code.source_line import Source

F3 = TensorSpec((3,))
X = np.array([1.0, -2.0, 3.0], dtype=np.float32)


def f32(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def built(*lines: str, inputs: str = "  input %0: f32[3]  x\n", name: str = "g") -> Runnable:
    return plan.build(parse(f"graph {name}\n{inputs}" + "".join(f"  {line}\n" for line in lines)))


def custom(name: str, kernel: object, **fields: object) -> Op:
    """An op that is not registered: f32[3] to f32[3]."""
    fields = {"inputs": "x", "infer": lambda x: x, "why_no_gradient": "a test", **fields}
    return Op(name, kernel=kernel, **fields)


# What they compute


def test_a_plan_computes_what_the_graph_says() -> None:
    run = built("%1: f32[3] = tanh(%0)", "%2: f32[3] = add(%1, %0)", "return %2, %0, %2")
    first, same, again = run(X)
    assert np.array_equal(first, np.tanh(X) + X)
    assert same is X
    assert again is first


def test_a_graph_without_nodes() -> None:
    assert built("return %0")(X) == (X,)
    assert built("return")(X) == ()


def test_constants_are_bound_once() -> None:
    run = built("%1: f32[3] = constant()  {value=f32[3] [1.0, 2.0, 3.0]}", "return %1, %1")
    first, second = run(X)
    assert first is second is run(X)[0]
    assert not first.flags.writeable


def test_parameters_keep_their_types() -> None:
    seen: list[object] = []
    probe = custom("probe", lambda xp, x, a, b: seen.append((a, b)) or x, attrs="a b", infer=lambda x, a, b: x)
    things = [
        1,
        True,
        1.0,
        0.0,
        -0.0,
        None,
        "word",
        (1, 2),
        (True, 1),
        (1.0,),
        (),
        ((1, None, 2),),
        slice(1),
        ll.float32,
    ]
    x = Value(F3)
    nodes: list[Node] = []
    for a, b in zip(things, reversed(things), strict=True):
        nodes.append(Node(probe, (x,), (a, b), [F3]))
    plan.build(Graph("g", [x], nodes, [x]))(X)
    assert repr(seen) == repr(list(zip(things, reversed(things), strict=True)))


def test_several_outputs() -> None:
    run = built(
        "%1: f32[1], %2: f32[2] = split(%0)  {sizes=(1, 2), axis=0}",
        "%3: f32[1], %4: f32[2] = split(%0)  {sizes=(1, 2), axis=0}",
        "return %2, %3",
    )
    assert [out.tolist() for out in run(X)] == [[-2.0, 3.0], [1.0]]


def test_variables_are_storages() -> None:
    run = built(
        "!0 %2: f32[3] = read_variable(%1)",
        "!1 %3: f32[3] = assign_add(%1, %0)  after !0",
        "%4: f32[3] = read_variable(%1)  after !1",
        "return %2, %3, %4",
        inputs="  input %0: f32[3]  x\n  capture %1: var f32[3]  v\n",
    )
    v = ll.Variable(X)
    before, written, after = run(X, v._data)
    assert np.array_equal(before, X)
    assert np.array_equal(written, 2 * X)
    assert after is written
    assert np.array_equal(v.numpy(), 2 * X)


def test_effects_happen_although_nobody_uses_their_results() -> None:
    run = built(
        "%2: f32[3] = assign(%1, %0)",
        "return",
        inputs="  input %0: f32[3]  x\n  capture %1: var f32[3]  v\n",
    )
    v = ll.Variable([0.0, 0.0, 0.0])
    run(X, v._data)
    assert np.array_equal(v.numpy(), X)


def test_opaque_values_pass_through() -> None:
    opened = custom("open", lambda xp, x: [x], infer=lambda x: ObjectSpec("list"))
    closed = custom("close", lambda xp, box: box[0], inputs="box:any", infer=lambda box: F3)
    x = Value(F3)
    first = Node(opened, (x,), (), [ObjectSpec("list")])
    second = Node(closed, first.outputs, (), [F3])
    assert plan.build(Graph("g", [x], [first, second], second.outputs))(X)[0] is X


def test_functions_are_called_by_the_ops_own_kernel() -> None:
    graph = parse(
        """\
graph outer
  input %0: f32[3]  x
  %1: f32[3], %2: f32[3] = call(%0)  {function=@inner}
  %3: f32[3] = add(%1, %2)
  return %3

graph inner
  input %0: f32[3]  x
  %1: f32[3] = tanh(%0)
  return %1, %0
""",
        runner=plan.build,
    )
    assert np.array_equal(plan.build(graph)(X)[0], np.tanh(X) + X)


@pytest.mark.parametrize("name", base.names())
def test_numpys_warnings_are_not_the_users(name: str) -> None:
    lines = ["input %0: f32[3]  x", "%1: f32[3] = log(%0)", "%2: f32[3] = divide(%0, %0)", "return %1, %2"]
    run = base.get(name).build(parse("graph g\n" + "".join(f"  {line}\n" for line in lines)))
    with np.errstate(all="warn"), warnings.catch_warnings():
        warnings.simplefilter("error")  # as pytest has it; on top of it what importing limelight adds
        warnings.filterwarnings(
            "ignore", message=".*encountered in", category=RuntimeWarning, module=r"limelight(\.|$)"
        )
        logs, ratios = run(f32(0.0, -1.0, 1.0))
    assert logs[0] == -np.inf
    assert np.isnan(logs[1])
    assert np.isnan(ratios[0])


@pytest.mark.parametrize("executor", ["eagerly", "plan", "step"])
def test_a_filter_that_makes_errors_of_numpys_warnings_finds_the_line(executor: str) -> None:
    def inverse(x: ll.Tensor) -> ll.Tensor:
        return 2.0 / x

    x = ll.constant([0.0, 1.0])
    call = inverse if executor == "eagerly" else ll.function(inverse)
    with ll.config.executor("plan" if executor == "eagerly" else executor), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RunError, match=r"divide.*divide by zero.*test_plan.py line \d+: return 2.0 / x"):
            call(x)
        warnings.filterwarnings("ignore", ".*encountered in", module="limelight")  # as docs/executors.md has it
        assert call(x).tolist() == [np.inf, 2.0]


def test_threads_do_not_share_values() -> None:
    lines = [f"%{i + 1}: f32[3] = add(%{i}, %0)" for i in range(1, 60)]
    run = built("%1: f32[3] = tanh(%0)", *lines, "return %60")
    expected = [run(X * i)[0] for i in range(4)]
    wrong: list[int] = []

    def work(i: int) -> None:
        wrong.extend(i for _ in range(200) if not np.array_equal(run(X * i)[0], expected[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# Memory


def test_dead_values_go_at_their_last_use() -> None:
    alive: list[list[bool]] = []
    made: list[weakref.ref[np.ndarray]] = []

    def fresh(xp: object, x: np.ndarray) -> np.ndarray:
        alive.append([ref() is not None for ref in made])
        result = np.array(x)
        made.append(weakref.ref(result))
        return result

    op = custom("fresh", fresh)
    x = Value(F3)
    a = Node(op, (x,), (), [F3])
    b = Node(op, a.outputs, (), [F3])  # the last use of a
    c = Node(op, b.outputs, (), [F3])
    d = Node(op, b.outputs, (), [F3])  # the last use of b; c is returned
    e = Node(op, d.outputs, (), [F3])
    f = Node(op, (x,), (), [F3])
    graph = Graph("g", [x], [a, b, c, d, e, f], [*c.outputs, *e.outputs])
    plan.build(graph)(X)
    assert alive == [
        [],
        [True],
        [False, True],
        [False, True, True],
        [False, False, True, True],
        [False, False, True, False, True],
    ]


def test_a_dead_plan_leaves_nothing_behind() -> None:
    gc.disable()
    try:
        run = built("%1: f32[3] = tanh(%0)", "return %1")
        file = run.__code__.co_filename
        assert linecache.getline(file, 3).strip() == "v1 = tanh(v0)"
        dead = weakref.ref(run)
        del run
        assert dead() is None
        assert file not in linecache.cache
    finally:
        gc.enable()


def test_short_plans_that_read_alike_share_their_code_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_one = plan._compiled

    def note(text):
        compiled.append(text)
        return compile_one(text)

    monkeypatch.setattr(plan, "_compiled_once", functools.cache(note))
    runs = []
    for factor in (2.0, 3.0):
        twin = custom("twin", lambda xp, x, factor=factor: x * factor if x[0] else 1 / 0)
        runs.append(plan.build(Graph("g", [x := Value(F3)], [node := Node(twin, (x,), (), [F3])], node.outputs)))
    assert len(compiled) == 1
    assert [run(X)[0].tolist() for run in runs] == [(X * 2.0).tolist(), (X * 3.0).tolist()]
    files = [run.__code__.co_filename for run in runs]
    assert len({*files}) == 2
    assert all(linecache.getlines(file) for file in files)
    for run, file in zip(runs, files, strict=True):
        with pytest.raises(RunError, match="twin") as caught:
            run(np.zeros_like(X))
        assert file in [str(entry.path) for entry in caught.traceback]


def test_source_is_the_code_that_runs() -> None:
    run = built("%1: f32[3] = tanh(%0)", "%2: f32[3] = exp(%1)", "return %2")
    assert run.source.split("\n")[2:5] == ["  v1 = tanh(v0)", "  v1 = exp(v1, v1)", "  return (v1,)"]


# Errors


def at(line: int, op: str, *inputs: Value, params: tuple[object, ...] = (), spec: object = F3) -> Node:
    return Node(get(op), inputs, params, [spec], stack=(Source("/home/me/model.py", line, "layer"),))


def on_each(graph: Graph) -> list[object]:
    """The graph on each executor."""
    return [base.get(name).build(graph) for name in base.names()]


def test_shapes_that_clash_at_run_time_are_explained_by_the_ops_own_rule() -> None:
    x, y = Value(TensorSpec((None,))), Value(TensorSpec((None,)))
    node = at(12, "add", x, y, spec=TensorSpec((None,)))
    for run in on_each(Graph("train", [x, y], [node], node.outputs)):
        with pytest.raises(ShapeError) as caught:
            run(f32(1, 2), f32(1, 2, 3))
        assert "do not broadcast" in str(caught.value)
        assert str(caught.value).endswith("; in add(f32[2], f32[3]) of train (model.py line 12)")
        assert isinstance(caught.value.__cause__, ValueError)


def failing(error: BaseException) -> Graph:
    def kernel(xp: object, x: object) -> object:
        raise error

    x = Value(F3)
    first = at(3, "tanh", x)
    node = Node(custom("broken", kernel), first.outputs, (), [F3], stack=(Source("/me/model.py", 4, "f"),))
    last = at(5, "exp", *node.outputs)
    return Graph("train", [x], [first, node, last], last.outputs)


def test_a_failing_kernel_is_a_run_error_that_says_where() -> None:
    for run in on_each(failing(ZeroDivisionError("oh no"))):
        with pytest.raises(RunError) as caught:
            run(X)
        assert str(caught.value) == "broken(f32[3]) of train failed: ZeroDivisionError: oh no (model.py line 4)"
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_errors_of_limelight_keep_their_class() -> None:
    for run in on_each(failing(DTypeError("wrong kind"))):
        with pytest.raises(DTypeError, match=r"^wrong kind; in broken\(f32\[3\]\) of train \(model.py line 4\)"):
            run(X)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(3)])
def test_interrupts_pass_as_they_are(interrupt: BaseException) -> None:
    for run in on_each(failing(interrupt)):
        with pytest.raises(type(interrupt)) as caught:
            run(X)
        assert caught.value is interrupt
        line = base.running(caught.value.__traceback__)
        assert (line.label, line.line) == ("model.py", 4)
    assert base.running(None) is None


def test_a_plan_runs_again_after_an_error() -> None:
    x, y = Value(TensorSpec((None,))), Value(TensorSpec((None,)))
    node = at(12, "add", x, y, spec=TensorSpec((None,)))
    run = plan.build(Graph("train", [x, y], [node], node.outputs))
    for _ in range(3):
        with pytest.raises(ShapeError) as caught:
            run(f32(1, 2), f32(1, 2, 3))
        assert str(caught.value).count("train") == 1
        assert run(X, X)[0].tolist() == (X + X).tolist()


def test_errors_name_each_call_on_the_way() -> None:
    class Function:
        def __init__(self, graph: Graph) -> None:
            self.name = graph.name
            self.graph = graph
            self.run = plan.build(graph)

    def calling(graph: Graph, line: int, name: str) -> Graph:
        x = Value(F3)
        node = at(line, "call", x, params=(Function(graph),))
        return Graph(name, [x], [node], node.outputs)

    outer = calling(calling(failing(ValueError("oh no")), 8, "epoch"), 20, "fit")
    for run in on_each(outer):
        with pytest.raises(RunError) as caught:
            run(X)
        assert str(caught.value).split("\n") == [
            "broken(f32[3]) of train failed: ValueError: oh no (model.py line 4)",
            "  called by epoch (model.py line 8)",
            "  called by fit (model.py line 20)",
        ]


def test_errors_in_the_parts_of_a_large_plan() -> None:
    x = Value(F3)
    graph = failing(ValueError("oh no"))
    nodes, value = [], x
    for line in range(plan_part() + 5):
        nodes.append(at(line, "tanh", value))
        value = nodes[-1].outputs[0]
    broken = Node(graph.nodes[1].op, (value,), (), [F3], stack=(Source("/me/model.py", 77, "f"),))
    run = plan.build(Graph("big", [x], [*nodes, broken], broken.outputs))
    with pytest.raises(RunError, match=r"^broken\(f32\[3\]\) of big failed: ValueError: oh no \(model.py line 77\)$"):
        run(X)


def plan_part() -> int:
    from limelight.executors.plan.codegen import PART

    return PART


def test_a_missing_input_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        built("return %0")()


def test_literals_are_never_written_to() -> None:
    literal = Literal(f32(1, 2, 3))
    x = Value(F3)
    constant = Node(get("constant"), (), (literal,), [F3])
    first = at(1, "add", x, *constant.outputs)
    second = at(2, "multiply", *first.outputs, *constant.outputs)
    run = plan.build(Graph("g", [x], [constant, first, second], second.outputs))
    run(X)
    run(X)
    assert literal.array.tolist() == [1.0, 2.0, 3.0]
