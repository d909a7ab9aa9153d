"""Section 4.1, imperative and staged execution: behaviours 1 to 27."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight import dispatch
from limelight.errors import ControlFlowError, DTypeError, RunError, ShapeError, SymbolicValueError

Here = Callable[..., str]
x3 = ll.constant(3.0)


def ops_of(function: Any, index: int = 0) -> list[str]:
    """The ops of a trace but for its literals."""
    return [node.op.name for node in function.trace_cache[index].graph.nodes if node.op != "constant"]


# 1 Eager ops return data


def test_001_eager_ops_run_at_once_and_show_value_shape_and_dtype() -> None:
    y = ll.matmul(ll.constant([[1.0, 2.0]]), ll.constant([[3.0], [4.0]])) + 1
    assert repr(y) == "ll.Tensor(\n[[12.]], shape=(1, 1), dtype=float32)"


@pytest.mark.parametrize(
    ("shape", "shown"), [((), "ll.Tensor(0., shape=()"), ((0, 3), "shape=(0, 3)"), ((2000, 2000), "...")]
)
def test_001_scalars_empty_and_huge_tensors_print(shape: tuple[int, ...], shown: str) -> None:
    text = repr(ll.zeros(shape))
    assert shown in text
    assert len(text) < 2000


def test_001_repr_obeys_numpys_print_options() -> None:
    with np.printoptions(precision=2):
        assert "0.33" in repr(ll.constant(1 / 3))
        assert "0.333" not in repr(ll.constant(1 / 3))


def test_001_repr_without_a_value_does_not_raise() -> None:
    shown = []

    @ll.function
    def f(a: Any) -> Any:
        b = a * 2
        shown.extend([repr(a), str(b), f"{b}"])
        return b

    f(ll.ones((2,)))
    assert shown[0] == "<symbolic f32[2]: the argument `a` in f>"
    assert shown[1].startswith("<symbolic f32[2]: the result of multiply in f, made at test_4_1.py line")


# 2 The NumPy bridge


def test_002_tensors_copy_what_they_are_made_of() -> None:
    mine = np.arange(3.0)
    t = ll.constant(mine)
    mine[0] = 99
    assert t.tolist() == [0.0, 1.0, 2.0]


def test_002_what_numpy_returns_is_read_only() -> None:
    t = ll.constant([1.0, 2.0])
    for view in (t.numpy(), np.asarray(t)):
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 9
    assert memoryview(t.numpy()).readonly
    assert t.tolist() == [1.0, 2.0]


def test_002_conversions_to_numpy() -> None:
    t = ll.constant([1.5, 2.5])
    assert np.asarray(t, dtype="float64").dtype == np.float64
    assert np.asarray(t, dtype="int32").tolist() == [1, 2]
    copied = np.array(t)
    copied[0] = 9
    assert t.tolist() == [1.5, 2.5]
    assert np.ones(2).astype("float32") + t == pytest.approx([2.5, 3.5])


def test_002_a_value_saved_on_a_tape_cannot_be_written_to() -> None:
    mine = np.array([3.0], "float32")
    x = ll.constant(mine)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    mine[0] = 100
    assert tape.gradient(y, x).tolist() == [6.0]


def test_002_an_array_argument_is_not_held_by_the_trace() -> None:
    mine = np.ones(2, "float32")
    f = ll.function(lambda a: a * 1)
    kept = f(mine)
    mine[0] = 7
    assert kept.tolist() == [1.0, 1.0]
    assert f(mine).tolist() == [7.0, 1.0]


# 3 Default dtypes


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.0, "float32"),
        (1, "int32"),
        (True, "bool"),
        (1j, "complex64"),
        (2**40, "int64"),
        (-(2**31), "int32"),
        (2**31, "int64"),
        ([1, 2.5], "float32"),
        ([], "float32"),
        (np.float64(1), "float64"),
        (np.int8(1), "int8"),
        (np.ones(2), "float64"),
    ],
)
def test_003_default_dtypes(value: Any, dtype: str) -> None:
    assert ll.constant(value).dtype == dtype


def test_003_arrays_in_fortran_order_keep_their_logical_order() -> None:
    array = np.asfortranarray(np.arange(6).reshape(2, 3))
    assert ll.constant(array).tolist() == array.tolist()
    assert ll.function(lambda a: a + 0)(array).tolist() == array.tolist()


# 4 Strict mixing of dtypes


@pytest.mark.parametrize(
    "mix",
    [
        lambda i, f: i + f,
        lambda i, f: i + 0.5,
        lambda i, f: 0.5 * i,
        lambda i, f: ll.where(i > 0, i, f),
        lambda i, f: ll.maximum(f, i),
        lambda i, f: i @ f,
        lambda i, f: (i > 0) + i,
        lambda i, f: ll.concat([i, f], axis=0),
        lambda i, f: ll.sqrt(i),
        lambda i, f: ll.constant(0.5, dtype="int32"),
        lambda i, f: i + 2**40,
    ],
)
def test_004_mixing_kinds_is_refused_alike_eager_and_staged(mix: Callable[..., Any], here: Here) -> None:
    i, f = ll.constant([1, 2]), ll.constant([1.0, 2.0])
    messages = []
    for run in (mix, ll.function(mix)):
        with pytest.raises(TypeError) as caught:
            run(i, f)
        assert isinstance(caught.value, DTypeError)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "test_4_1.py line" in messages[0]


def test_004_numbers_adapt_within_their_kind() -> None:
    f = ll.constant([1.0, 2.0])
    for run in (lambda t: t + 1, ll.function(lambda t: t + 1)):
        assert run(f).dtype == "float32"
        assert run(ll.astype(f, "float16")).dtype == "float16"
        assert run(ll.constant([1, 2])).dtype == "int32"


@pytest.mark.parametrize(("value", "dtype"), [(300, "uint8"), (-1, "uint8"), ([1, 2**40], "int32"), (2**63, "int64")])
def test_004_a_number_that_does_not_fit_is_refused(value: Any, dtype: str) -> None:
    with pytest.raises(DTypeError, match=f"does not fit into {dtype}"):
        ll.constant(value, dtype=dtype)


# 5 Equality


def test_005_equality_is_elementwise_and_broadcasts() -> None:
    assert (ll.constant([[1.0], [2.0]]) == ll.constant([1.0, 2.0])).tolist() == [[True, False], [False, True]]
    nan = ll.constant(float("nan"))
    assert (nan == nan).tolist() is False  # noqa: PLR0124  # that is the question
    assert (nan != nan).tolist() is True  # noqa: PLR0124  # the same


def test_005_tensors_are_not_hashable_but_have_references() -> None:
    a, b = ll.constant(1.0), ll.constant(1.0)
    with pytest.raises(TypeError, match=r"t\.ref\(\)"):
        hash(a)
    known = weakref.WeakKeyDictionary({a.ref(): "a"})
    assert len(known) == 0  # the key was the reference itself, which has died
    refs = {a.ref(): "a", b.ref(): "b"}
    assert refs[a.ref()] == "a"
    assert refs[b.ref()] == "b"
    assert a.ref().deref() is a
    assert a.ref() != b.ref()


def test_005_membership_follows_numpys_ambiguity() -> None:
    t = ll.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="one element"):
        assert t in [ll.constant([1.0, 3.0])]
    assert ll.constant(1.0) in [ll.constant(2.0), ll.constant(1.0)]


# 6 Conversions to Python


def test_006_scalars_convert() -> None:
    assert bool(ll.constant([[2.0]]))
    assert int(ll.constant([2.7])) == 2
    assert float(ll.constant(2)) == 2.0
    assert complex(ll.constant(2.0)) == 2 + 0j
    assert [10, 20][ll.constant(1)] == 20
    assert len(ll.ones((3, 2))) == 3
    assert [row.tolist() for row in ll.ones((2, 1))] == [[1.0], [1.0]]
    assert f"{ll.constant(1 / 3):.2f}" == "0.33"


@pytest.mark.parametrize("convert", [bool, int, float, complex])
def test_006_only_one_element_converts(convert: Callable[..., Any]) -> None:
    with pytest.raises(ShapeError, match=r"one element, this one is f32\[2\]"):
        convert(ll.ones((2,)))


def test_006_scalars_have_no_length_and_only_integers_index() -> None:
    for ask in (len, list, iter):
        with pytest.raises(TypeError, match="no axes"):
            ask(ll.constant(1.0))
    for t in (ll.constant(1.0), ll.constant([1])):
        with pytest.raises(TypeError, match="index"):
            [0, 1][t]


# 7 Indexing


KEYS: list[Any] = [
    0,
    -1,
    slice(None, None, -1),
    slice(5, 2),
    slice(10, 20),
    (slice(None), slice(0, 0)),
    (..., 0),
    (None, 1, ...),
    (slice(None), None, 2),
    (0, slice(None, None, -2)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_007_indexing_agrees_with_numpy(key: Any) -> None:
    array = np.arange(12.0).reshape(4, 3)
    t = ll.constant(array)
    unknown = ll.function(lambda v: v[key], input_signature=[ll.TensorSpec((None, 3), "float64")])
    for run in (lambda v: v[key], ll.function(lambda v: v[key]), unknown):
        assert np.array_equal(run(t).numpy(), array[key])
    with ll.GradientTape() as tape:
        tape.watch(t)
        y = t[key]
    expected = np.zeros_like(array)
    expected[key] = 1
    assert np.array_equal(tape.gradient(y, t).numpy(), expected)


def test_007_tensors_index() -> None:
    array = np.arange(12).reshape(4, 3)
    where = np.array([3, 0, 0])
    for run in (lambda v, i: v[i], ll.function(lambda v, i: v[i])):
        assert np.array_equal(run(ll.constant(array), ll.constant(where)).numpy(), array[where])


# 8 One set of operations (the op cases multiply this by every op; here are the shapes of results)


@pytest.mark.parametrize(
    "ask",
    [
        lambda v: ll.split(v, 3),
        lambda v: ll.split(v, 1),
        lambda v: [],
        lambda v: [v],
        lambda v: {"b": v + 1, "a": (v, None)},
        lambda v: ll.unstack(v, axis=0),
    ],
)
def test_008_results_have_the_same_structure_eager_and_staged(ask: Callable[..., Any]) -> None:
    v = ll.constant([1.0, 2.0, 3.0])
    eager, staged = ask(v), ll.function(ask)(v)
    assert type(eager) is type(staged)
    leaves, structure = ll.nest.flatten(eager)
    staged_leaves, staged_structure = ll.nest.flatten(staged)
    assert structure == staged_structure
    for a, b in zip(leaves, staged_leaves, strict=True):
        assert (a is None) == (b is None)
        assert a is None or (a.dtype == b.dtype and a.tolist() == b.tolist())


# 9 Randomness


def test_009_foreign_randomness_is_frozen_and_ours_is_not() -> None:
    foreign = ll.function(lambda: ll.zeros(()) + float(np.random.rand()))
    assert foreign().item() == foreign().item()
    ours = ll.function(lambda: ll.random.normal((4,)))
    outer = ll.function(lambda: ours() + 0)
    for f in (ours, outer):
        assert f().tolist() != f().tolist()
        assert f.trace_count == 1


def test_009_each_iteration_of_a_loop_draws_anew() -> None:
    @ll.function
    def f() -> Any:
        body = lambda i, last, now: (i + 1, now, ll.random.uniform(()))  # noqa: E731
        return ll.while_loop(lambda i, *_: i < 3, body, (0, ll.zeros(()), ll.zeros(())))[1:]

    last, now = f()
    assert last.item() != now.item()


def test_009_a_seed_set_after_tracing_is_honoured() -> None:
    f = ll.function(lambda: ll.random.normal((3,)))
    f()
    ll.random.seed(7)
    first = f().tolist()
    ll.random.seed(7)
    assert f().tolist() == first
    ll.random.seed(7)
    assert ll.random.normal((3,)).tolist() == first


# 10 Python's side effects


def test_010_python_effects_happen_once_for_each_trace() -> None:
    calls: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        calls.append(a)
        return a + 1

    for _ in range(3):
        f(x3)
    assert len(calls) == 1
    f(ll.ones((2,)))
    assert len(calls) == f.trace_count == 2
    f.python_function(x3)
    assert len(calls) == 3
    assert calls[-1] is x3


def test_010_creating_state_runs_the_body_twice_and_a_failing_trace_ran_it_too() -> None:
    calls: list[int] = []
    state: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        calls.append(1)
        if not state:
            state.append(ll.Variable(1.0))
        return a * state[0]

    f(x3)
    assert len(calls) == f.trace_count == 2
    f(x3)
    assert len(calls) == 2

    @ll.function
    def fails(a: Any) -> Any:
        calls.append(1)
        raise ValueError("no")

    with pytest.raises(ValueError, match=r"^no$"):
        fails(x3)
    assert len(calls) == 3
    assert (fails.trace_count, len(fails.trace_cache)) == (1, 0)


# 11 Loops unroll


def test_011_python_loops_unroll_and_staged_loops_do_not() -> None:
    def unrolled(a: Any, n: int) -> Any:
        for _ in range(n):
            a = a + 1.0
        return a

    f = ll.function(unrolled)
    sizes = []
    for i, n in enumerate((10, 20)):
        assert f(x3, n).item() == 3.0 + n
        sizes.append(ops_of(f, i).count("add"))
    assert sizes == [10, 20]

    g = ll.function(lambda a, n: ll.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v + 1.0), (0, a))[1])
    assert g(x3, ll.constant(10)).item() == 13.0
    assert g(x3, ll.constant(20)).item() == 23.0
    assert (ops_of(g).count("while_loop"), g.trace_count) == (1, 1)


def test_011_ten_thousand_ops_meet_no_recursion_limit() -> None:
    @ll.function
    def deep(a: Any) -> Any:
        for _ in range(10_000):
            a = a * 1.0001
        return a

    x = ll.constant(1.0, dtype="float64")
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = deep(x)
    assert y.item() == pytest.approx(1.0001**10_000)
    assert tape.gradient(y, x).item() == pytest.approx(1.0001**10_000)
    graph = deep.trace_cache[0].graph
    assert ops_of(deep).count("multiply") == 10_000
    assert graph.text().count("\n") > 10_000
    assert graph.to_dot().count("multiply") >= 10_000


# 12 Python's `if` is baked in


def test_012_only_the_branch_taken_is_in_the_graph() -> None:
    f = ll.function(lambda a, wide: ll.exp(a) if wide else ll.tanh(a))
    f(x3, True)
    f(x3, False)
    assert ops_of(f, 0) == ["exp"]
    assert ops_of(f, 1) == ["tanh"]


# 13 Truth values


def _if(t: Any) -> Any:
    return t if t else -t


def _while(t: Any) -> Any:
    while t:
        t = t - 1
    return t


def _assert(t: Any) -> Any:
    assert t
    return t


@pytest.mark.parametrize(
    "ask",
    [
        _if,
        _while,
        _assert,
        lambda t: t and 1.0,
        lambda t: t or 1.0,
        lambda t: not t,
        lambda t: 0 < t < 3,
        lambda t: min(t, t + 1),
        lambda t: max([t, t + 1]),
        lambda t: sorted([t, t + 1])[0],
        lambda t: 1 if t in [t + 1, t + 2] else 0,
        lambda t: any([t > 0, t > 1]),
    ],
)
def test_013_a_symbolic_truth_value_is_refused_with_guidance(ask: Callable[..., Any]) -> None:
    with pytest.raises(SymbolicValueError, match=r"^bool\(\)") as caught:
        ll.function(ask)(x3)
    message = str(caught.value)
    assert f"test_4_1.py line {ask.__code__.co_firstlineno + (ask.__name__ in ('_if', '_while', '_assert'))}" in message
    for way in ("ll.cond", "ll.while_loop", "ll.py_func", "ll.where"):
        assert way in message
    assert dispatch.stack() == dispatch.stack()[:1]


# 14 No value


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.numpy(),
        lambda t: t.item(),
        lambda t: t.tolist(),
        lambda t: np.asarray(t) + 1,
        lambda t: float(t) + 1,
        lambda t: int(t) + 1,
        lambda t: complex(t) + 1,
        lambda t: f"{t:.3f}",
        lambda t: range(t, 9),
    ],
)
def test_014_symbolic_tensors_refuse_to_give_values(ask: Callable[..., Any], here: Here) -> None:
    @ll.function
    def f(a: Any) -> Any:
        made = ll.astype(a + 1, "int32")
        ask(made)
        return a

    with pytest.raises(SymbolicValueError, match="has a value only when the graph of 'f' runs") as caught:
        f(x3)
    assert f"the result of astype, i32[] ({here(-6)}" in str(caught.value)  # where it was made
    assert f"(test_4_1.py line {ask.__code__.co_firstlineno}" in str(caught.value)  # where it was asked


def test_014_static_facts_stay_readable() -> None:
    facts: list[Any] = []

    @ll.function(input_signature=[ll.TensorSpec((None, 3), "float64")])
    def f(a: Any) -> Any:
        facts.extend([a.shape, a.dtype, a.ndim, a.size, a.T.shape])
        return a

    f(ll.ones((2, 3), dtype="float64"))
    assert facts == [(None, 3), np.dtype("float64"), 2, None, (3, None)]


# 15 cond


def test_015_cond_runs_one_branch_with_its_effects() -> None:
    v = ll.Variable(0.0)
    ran: list[str] = []

    @ll.function
    def f(a: Any) -> Any:
        def seen(name: str, change: float) -> Callable[[], Any]:
            def branch() -> Any:
                ran.append(name)
                ll.py_func(lambda: calls.append(name), [], None)
                return v.assign_add(change) + a

            return branch

        return ll.cond(a > 0, seen("true", 1.0), seen("false", 10.0))

    calls: list[str] = []
    assert f(ll.constant(1.0)).item() == 2.0
    assert f(ll.constant(-1.0)).item() == 10.0
    assert v.numpy() == 11.0
    assert ran == ["true", "false"]  # both are traced, once
    assert calls == ["true", "false"]


def test_015_errors_of_the_branch_not_taken_never_occur() -> None:
    @ll.function
    def f(a: Any, i: Any) -> Any:
        return ll.cond(a > 0, lambda: ll.take(ll.ones((2,)), i, axis=0), lambda: ll.zeros((1,)))

    assert f(ll.constant(-1.0), ll.constant([9])).tolist() == [0.0]
    with pytest.raises(RunError, match="out of bounds"):
        f(ll.constant(1.0), ll.constant([9]))


def test_015_branches_may_return_none_and_nests() -> None:
    def branch(a: Any, k: float) -> Any:
        return {"a": a * k, "none": None, "pair": (a, [a + k])}

    f = ll.function(lambda a: ll.cond(a > 0, lambda: branch(a, 2.0), lambda: branch(a, 3.0)))
    result = f(ll.constant(-1.0))
    assert result["a"].item() == -3.0
    assert result["none"] is None
    assert result["pair"][1][0].item() == 2.0
    nothing = ll.function(lambda a: ll.cond(a > 0, lambda: None, lambda: None))
    assert nothing(x3) is None


def test_015_branches_must_agree() -> None:
    cases: list[tuple[Callable[[Any], Any], str]] = [
        (lambda a: ll.cond(a > 0, lambda: a, lambda: 1), r"output 0 is f32\[\] from true_fn and i32\[\] from false_fn"),
        (lambda a: ll.cond(a > 0, lambda: (a, a), lambda: (a, ll.ones((2,)))), r"output 1 is f32\[\].*f32\[2\]"),
        (lambda a: ll.cond(a > 0, lambda: (a, a), lambda: a), "different structures"),
        (lambda a: ll.cond(a > 0, lambda: None, lambda: a), "different structures"),
    ]
    for fails, message in cases:
        with pytest.raises(ControlFlowError, match=message):
            ll.function(fails)(x3)


def test_015_captures_of_one_branch_and_predicates_of_one_element() -> None:
    captured = ll.constant(5.0)
    f = ll.function(lambda p, a: ll.cond(p, lambda: a * captured, lambda: a))
    assert f(ll.constant([[True]]), x3).item() == 15.0
    assert f(ll.constant([[False]]), x3).item() == 3.0


# 16 while_loop


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_016_loops_run_as_often_as_data_says(stage: Callable[..., Any]) -> None:
    @stage
    def collatz(n: Any) -> Any:
        def body(n: Any, steps: Any) -> Any:
            return ll.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), steps + 1

        return ll.while_loop(lambda n, _: n != 1, body, (n, 0))[1]

    assert [collatz(ll.constant(n)).item() for n in (1, 6, 27)] == [0, 8, 111]


def test_016_the_body_is_traced_once() -> None:
    traced: list[int] = []

    @ll.function
    def f(n: Any) -> Any:
        def body(i: Any) -> Any:
            traced.append(1)
            return (i + 1,)

        return ll.while_loop(lambda i: i < n, body, (0,))[0]

    assert f(ll.constant(50)).item() == 50
    assert len(traced) == 1


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_016_limits_zero_iterations_and_nesting(stage: Callable[..., Any]) -> None:
    limited = stage(lambda a: ll.while_loop(lambda v: v < 100.0, lambda v: (v + 1.0,), (a,), maximum_iterations=4)[0])
    assert limited(x3).item() == 7.0
    never = stage(lambda a: ll.while_loop(lambda v: v < 0.0, lambda v: (v + 1.0,), (a,))[0])
    assert never(x3).item() == 3.0

    @stage
    def table(n: Any) -> Any:
        def row(i: Any, total: Any) -> Any:
            inner = ll.while_loop(lambda j, t: j < n, lambda j, t: (j + 1, t + i * j), (0, total))
            return i + 1, inner[1]

        return ll.while_loop(lambda i, _: i < n, row, (0, 0))[1]

    assert table(ll.constant(4)).item() == sum(i * j for i in range(4) for j in range(4))


def test_016_zero_iterations_return_values_that_are_their_own() -> None:
    v = ll.Variable([1.0, 2.0])
    never = ll.function(lambda: ll.while_loop(lambda a: ll.constant(False), lambda a: (a + 1,), (v,))[0])
    kept = never()
    v.assign([9.0, 9.0])
    assert kept.tolist() == [1.0, 2.0]


# 17 Loop invariants


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_017_a_body_that_changes_a_variable_is_refused_by_name(stage: Callable[..., Any]) -> None:
    def dtype(a: Any) -> Any:
        return ll.while_loop(
            lambda i, v: i < 2, lambda i, v: (i + 1, {"w": ll.astype(v["w"], "float64")}), (0, {"w": a})
        )

    def shape(a: Any) -> Any:
        return ll.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, ll.stack([v, v])), [0, a])

    with pytest.raises(ControlFlowError, match=r'`loop_vars\[1\]\["w"\]` is f32\[\] on entry and f64\[\] after one'):
        stage(dtype)(x3)
    with pytest.raises(ControlFlowError, match=r"`loop_vars\[1\]` is f32\[\] on entry and f32\[2\] after one"):
        stage(shape)(x3)


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_017_shape_invariants_relax_sizes(stage: Callable[..., Any]) -> None:
    grow = lambda i, v: (i + 1, ll.concat([v, v], axis=0))  # noqa: E731
    loop = stage(lambda v: ll.while_loop(lambda i, _: i < 3, grow, (0, v), shape_invariants=[(), (None,)])[1])
    assert loop(ll.ones((2,))).shape == (16,)
    wrong = stage(lambda v: ll.while_loop(lambda i, _: i < 3, grow, (0, v), shape_invariants=[(), (5,)]))
    with pytest.raises(ControlFlowError, match=r"`loop_vars\[1\]` is f32\[2\], its shape invariant is \(5,\)"):
        wrong(ll.ones((2,)))


# 18 Pruning


def test_018_dead_pure_ops_vanish_and_stateful_ones_stay() -> None:
    v = ll.Variable(0.0)
    printed: list[float] = []

    @ll.function
    def f(a: Any) -> Any:
        ll.tanh(a)  # dead
        doubled = a * 2  # feeds only what stays
        v.assign(doubled)
        ll.random.normal((3,))
        ll.py_func(lambda t: printed.append(t.item()), [a], None)
        return a + 1

    assert f(x3).item() == 4.0
    assert v.numpy() == 6.0
    assert printed == [3.0]
    kept = [node.op.name for node in f.trace_cache[0].optimised.nodes]
    assert "tanh" not in kept
    assert {"assign", "py_func", "add", "multiply"} <= set(kept)
    assert any(node.op.effect == "random" for node in f.trace_cache[0].optimised.nodes)


def test_018_an_unused_draw_still_advances_the_stream() -> None:
    def draws(unused: bool) -> Any:
        if unused:
            ll.random.normal((3,))
        return ll.random.normal((3,))

    f = ll.function(draws)
    streams = []
    for run in (draws, f):
        ll.random.seed(3)
        streams.append(run(True).tolist())
    assert streams[0] == streams[1]
    ll.random.seed(3)
    assert f(False).tolist() != streams[0]


def test_018_a_dead_op_of_a_failing_shape_still_raises_at_trace_time() -> None:
    @ll.function
    def f(a: Any) -> Any:
        a @ ll.ones((7,))
        return a

    with pytest.raises(ShapeError, match="matmul"):
        f(ll.ones((2,)))


# 19 Optimisation is invisible


def test_019_buffers_in_use_are_never_reused() -> None:
    v = ll.Variable([1.0, 2.0, 3.0])
    captured = ll.constant([1.0, 1.0, 1.0])

    @ll.function
    def f(a: Any) -> Any:
        kept = a + captured
        view = kept.reshape((3, 1))
        read = v.read_value()
        changed = ll.exp(kept * 2) - read
        v.assign(changed)
        return kept, view, read, changed

    a = ll.constant([0.0, 1.0, 2.0])
    first = f(a)
    texts = [t.tolist() for t in first]
    second = f(a)
    assert [t.tolist() for t in first] == texts
    assert first[0].tolist() == [1.0, 2.0, 3.0]
    assert first[2].tolist() == [1.0, 2.0, 3.0]
    assert second[2].tolist() == first[3].tolist()
    assert captured.tolist() == [1.0, 1.0, 1.0]
    assert a.tolist() == [0.0, 1.0, 2.0]


def test_019_reads_around_a_write_are_not_shared() -> None:
    v = ll.Variable(1.0)

    @ll.function
    def f() -> Any:
        before = v.read_value()
        v.assign_add(1.0)
        return before, v.read_value()

    assert [t.item() for t in f()] == [1.0, 2.0]


# 20 A call is one operation


def test_020_a_call_is_one_operation_for_tapes_traces_and_listeners() -> None:
    @ll.function
    def hundred(a: Any) -> Any:
        for _ in range(100):
            a = ll.tanh(a)
        return a

    x = ll.constant(0.5)
    with ll.GradientTape() as tape:
        tape.watch(x)
        hundred(x)
    assert len(tape.entries) == 1
    assert tape.entries[0].op.startswith("call")
    outer = ll.function(lambda a: hundred(a) + 1)
    outer(x)
    assert ops_of(outer) == ["call", "add"]
    seen: list[Any] = []
    with ll.events.listen(seen.append, ll.events.OpRan):
        hundred(x)
    assert [event.op for event in seen] == ["call"]


# 21 Order of errors


def test_021_the_earliest_error_in_program_order_wins() -> None:
    def fail(name: str) -> Callable[..., Any]:
        def raises(t: Any) -> Any:
            raise ValueError(name)

        return raises

    spec = ll.TensorSpec((), "float32")

    @ll.function
    def f(a: Any) -> Any:
        first = ll.py_func(fail("first"), [a], spec)
        second = ll.py_func(fail("second"), [a], spec)
        return second, first

    for _ in range(10):
        with pytest.raises(ValueError, match=r"^first"):
            f(x3)


# 22 Clean state (tests/engine/test_bad_input.py goes through everything that may be left behind)


def test_022_a_failing_trace_leaves_no_trace() -> None:
    @ll.function
    def f(a: Any, fail: bool) -> Any:
        with ll.device("cpu:0"), ll.GradientTape() as tape:
            tape.watch(a)
            if fail:
                raise KeyboardInterrupt
            return a * 2

    with pytest.raises(KeyboardInterrupt):
        f(x3, True)
    assert dispatch.active == []
    assert len(dispatch.stack()) == 1
    assert dispatch.requested_device() is None
    assert len(f.trace_cache) == 0
    assert f(x3, False).item() == 6.0


# 23 Errors at run time are not sticky


def test_023_errors_at_run_time_are_not_sticky() -> None:
    v = ll.Variable(0.0)

    @ll.function
    def f(i: Any) -> Any:
        v.assign_add(1.0)
        return ll.take(ll.constant([10.0, 20.0]), i, axis=0)

    with pytest.raises(RunError, match="out of bounds"):
        f(ll.constant(5))
    assert v.numpy() == 1.0  # what was written before the failing op stays
    assert f(ll.constant(1)).item() == 20.0
    assert f.trace_count == 1


# 24 Errors at run time point at the user's code


def test_024_errors_at_run_time_name_function_op_shapes_and_line(here: Here) -> None:
    @ll.function
    def inner(v: Any, i: Any) -> Any:
        return ll.take(v, i, axis=0)  # line A

    @ll.function
    def outer(v: Any, i: Any) -> Any:
        return inner(v, i) * 2  # line B

    a, b = here(-6), here(-2)
    with pytest.raises(RunError) as caught:
        outer(ll.ones((2, 3)), ll.constant([7]))
    message = str(caught.value)
    assert re.search(rf"take\(f32\[2,3\], i32\[1\]\) of inner failed: IndexError: .*\({a}: return ll.take", message)
    assert re.search(rf"called by outer \({b}: return inner\(v, i\) \* 2", message)
    assert isinstance(caught.value.__cause__, IndexError)


def test_024_mismatches_found_at_run_time_read_as_they_do_eagerly(here: Here) -> None:
    f = ll.function(lambda a, b: a + b, input_signature=[ll.TensorSpec((None,), "float32")] * 2)
    line = here(-1)
    with pytest.raises(ShapeError) as staged:
        f(ll.ones((2,)), ll.ones((3,)))
    with pytest.raises(ShapeError) as eager:
        f.python_function(ll.ones((2,)), ll.ones((3,)))
    assert str(staged.value).startswith(eager.value.bare)
    assert line in str(staged.value)


# 26 References


def test_026_tensors_die_with_their_last_reference() -> None:
    t = ll.ones((3,)) * 2
    t.note = "attributes are welcome"
    dead = weakref.ref(t)
    gc.disable()
    try:
        del t
        assert dead() is None
    finally:
        gc.enable()
    cycle = ll.ones((3,))
    cycle.me = cycle
    dead = weakref.ref(cycle)
    del cycle
    gc.collect()
    assert dead() is None


def test_026_a_call_keeps_no_argument_and_no_result() -> None:
    f = ll.function(lambda a: a * 2)
    a = ll.ones((3,))
    b = f(a)
    refs = [weakref.ref(a), weakref.ref(b)]
    gc.disable()
    try:
        del a, b
        assert [r() for r in refs] == [None, None]
    finally:
        gc.enable()


# 27 Threads


def test_027_a_new_thread_starts_eager() -> None:
    found: list[Any] = []

    def look() -> None:
        found.append((len(dispatch.stack()), dispatch.requested_device(), (x3 + 1).item()))

    @ll.function
    def f(a: Any) -> Any:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return a * 2

    with ll.device("cpu:0"), ll.GradientTape() as tape:
        tape.watch(x3)
        f(x3)
    assert found == [(1, None, 4.0)]
    assert ops_of(f) == ["multiply"]
    assert len(tape.entries) == 1
