"""Section 4.6, `function`: the edges of keys, signatures, state, calls of one trace, and clones."""

from __future__ import annotations

import copy
import datetime
import decimal
import functools
import pathlib
import pickle
import sys
import threading
import time
import uuid
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import recursion_limit
from limelight.errors import ArgumentError, DTypeError, ShapeError, SignatureError

x = ll.constant(2.0)
scalar = ll.TensorSpec(())


# 134, 135


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (lambda: pathlib.Path("a/b"), pathlib.Path("a/c")),
        (lambda: datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
        (lambda: decimal.Decimal("1.5"), decimal.Decimal("1.50")),
        (lambda: uuid.UUID(int=3), uuid.UUID(int=4)),
        (lambda: slice(1, 2), slice(1, 2.0)),
        (lambda: np.str_("a"), "a"),
        (lambda: {1: "a"}, {True: "a"}),
        (lambda: {2.0: "a"}, {2: "a"}),
    ],
)
def test_134_values_that_never_change_are_keyed_by_what_they_say(make: Any, other: Any) -> None:
    f = ll.function(lambda v, k: v + v)
    f(x, make())
    f(x, make())
    assert f.trace_count == 1
    entry = f.trace_cache[0]
    assert entry(v=x).item() == entry(v=x, k=make()).item() == 4.0
    f(x, other)
    assert f.trace_count == 2


def test_135_an_object_may_have_a_key_of_its_own() -> None:
    class Setting:
        def __init__(self, name: Any, note: str) -> None:
            self.name, self.note = name, note

        def __limelight_key__(self) -> Any:
            return (self.name, None)

    f = ll.function(lambda v, setting: v * setting.name)
    assert f(x, Setting(2, "one")).item() == f(x, Setting(2, "two")).item() == 4.0
    assert f.trace_count == 1
    f(x, Setting(2.0, "one"))
    assert f.trace_count == 2
    assert "  setting: = Setting (2, None)  (by its own key)\n" in f.trace_cache[0].full_signature
    other = ll.Module()
    by_identity = ll.function(lambda v, *, setting: v).get_concrete_function(x, setting=other)
    assert "  setting: = Module object  (keyword only, by identity)\n" in by_identity.full_signature
    with pytest.raises(SignatureError, match=r"`setting`: __limelight_key__ of a Setting returned a list; it must"):
        f(x, Setting.__new__(type("Setting", (), {"__limelight_key__": lambda self: [1]})))


def test_137_arrays_of_another_byte_order_are_the_same_numbers() -> None:
    f = ll.function(lambda v: v * 2)
    for order in ("<", ">"):
        assert f(np.array([1.0, 2.0], f"{order}f4")).tolist() == [2.0, 4.0]
    assert f.trace_count == 1
    assert ll.constant(np.arange(3, dtype=">i4")).numpy().dtype.isnative


@pytest.mark.parametrize("side", ["argument", "result"])
def test_139_a_container_that_contains_itself_is_refused(side: str) -> None:
    endless: list[Any] = []
    endless.append(endless)
    f = ll.function(lambda v: v if side == "argument" else endless)
    with pytest.raises(ArgumentError, match="contains itself, or is nested more than 100 levels deep"):
        f(endless if side == "argument" else x)
    deep: Any = x
    for _ in range(60):
        deep = [deep]
    assert isinstance(ll.function(lambda v: v)(deep), list)


def test_142_objects_without_weak_references_are_told_what_to_add() -> None:
    class Slotted:
        __slots__ = ()

        @ll.function
        def step(self, v: Any) -> Any:
            return v

    with pytest.raises(ArgumentError, match=r'step is a staged method of Slotted, .* add "__weakref__"'):
        Slotted().step(x)


def test_144_the_number_of_axes_is_never_guessed() -> None:
    open_rank = ll.TensorSpec(None)
    plain = ll.function(lambda v: v)
    with pytest.raises(ShapeError, match=r"argument `v`: .*write \(\) for a scalar, and None for each size"):
        plain.get_concrete_function(open_rank)
    with pytest.raises(ShapeError, match=r"the number of axes of f32\[...\].*ll\.ensure_shape"):
        ll.function(lambda x: ll.py_func(lambda v: v, [x], open_rank).shape)(ll.ones(2))
    with pytest.raises(ShapeError, match="deferred: shape None"):
        ll.deferred(lambda: ll.ones(2), open_rank)
    with pytest.raises(ShapeError, match="rank: shape None"):
        _ = open_rank.rank


def test_144_a_spec_of_unknown_rank() -> None:
    spec = ll.TensorSpec(None, "float32")
    assert spec.shape is None
    assert (spec.size, spec.nbytes, spec.has_rank) == (None, None, False)
    assert spec == ll.TensorSpec(None)
    assert spec != ll.TensorSpec(())
    assert ll.TensorSpec((None,)) != spec
    assert {spec: 1}[ll.TensorSpec(None)] == 1
    assert (repr(spec), str(spec)) == ("TensorSpec(None, float32)", "f32[...]")
    assert spec.accepts(ll.ones((2, 3)).spec)
    assert spec.accepts(spec)
    assert not spec.accepts(ll.constant(1).spec)
    assert not ll.TensorSpec((None,)).accepts(spec)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_144_a_signature_of_unknown_rank_has_a_trace_for_each_rank() -> None:
    seen = []

    @ll.function(
        input_signature=[{"x": ll.TensorSpec(None), "n": ll.TensorSpec((None,))}, ll.TensorSpec(None, "int32")]
    )
    def f(d: Any, k: Any) -> Any:
        seen.append((d["x"].shape, k.shape))
        return ll.sum(d["x"]) * ll.sum(d["n"]) + ll.astype(ll.sum(k), ll.float32)

    for shape in ((2, 3), (), (4, 1), (2,), (3,), (5, 5)):
        x = ll.ones(shape)
        assert f({"x": x, "n": [1.0, 1.0]}, 3).item() == 2.0 * x.size + 3.0
    assert seen == [((None, None), ()), ((), ()), ((None,), ())]
    assert f({"x": 2, "n": ll.ones(3)}, [[1]]).item() == 7.0
    assert f.trace_count == 4
    with pytest.raises(SignatureError, match=r'`d\["x"\]` must be TensorSpec\(None, float32\) by the input_signature'):
        f({"x": ll.constant(1), "n": [1.0]}, 3)
    with pytest.raises(SignatureError, match=r"of any rank by the input_signature, which has a trace for each"):
        f.get_concrete_function()
    concrete = f.get_concrete_function({"x": ll.TensorSpec((None,)), "n": ll.ones(3)}, ll.TensorSpec((), "int32"))
    assert concrete is f.trace_cache[2]
    assert "rank 2 -> 1" in str(f.trace_cache[2].miss)


def test_143_partial_functions_and_objects_have_a_name() -> None:
    def scaled(v: Any, by: float) -> Any:
        return v * by

    class Doubling:
        def __call__(self, v: Any) -> Any:
            return v * 2

    names = [ll.function(f).__name__ for f in (scaled, functools.partial(scaled, by=2.0), Doubling(), lambda v: v)]
    assert names == ["scaled", "scaled", "Doubling", "<lambda>"]


# 155, 159, 160


def test_155_a_function_for_the_initial_value_may_use_the_arguments() -> None:
    made: list[Any] = []
    ran: list[str] = []

    @ll.function
    def f(v: Any) -> Any:
        if not made:
            made.append(ll.Variable(lambda: [ran.append(type(v).__name__), v * 3][1]))
            made.append(ll.Variable(lambda: np.asarray(ll.ones((2,))) * 5))
        return v * made[0]

    assert f(x).item() == 12.0
    assert made[0].numpy() == 6.0
    assert made[1].numpy().tolist() == [5.0, 5.0]
    assert f.trace_count == 2


def test_159_a_recursion_that_fills_the_stack_says_how_deep_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion_limit, "MAX_RAISE", 200)  # the stack grows with the levels, up to a bound

    @ll.function
    def count(v: Any, n: int) -> Any:
        return v if n == 0 else count(v, n - 1) + 1

    assert count(x, 20).item() == 22.0
    with pytest.raises(RecursionError, match=r"count called itself [\d,]+ levels deep .* ll.while_loop"):
        count(x, sys.getrecursionlimit())
    assert count(x, 21).item() == 23.0


def test_160_threads_that_waited_for_a_trace_have_hit_it() -> None:
    @ll.function
    def f(v: Any) -> Any:
        time.sleep(0.02)
        return v * 2

    threads = [threading.Thread(target=f, args=(x,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (f.trace_count, f.trace_cache[0].hits) == (1, 19)


# 162 to 165


@ll.function
def paired(a: Any, pair: Any, k: int = 5, *, s: Any) -> Any:
    return (a * pair[0] + pair[1]["z"] * k, {"s": s}, None)


def test_162_structures_are_checked_and_arguments_named() -> None:
    trace = paired.get_concrete_function(scalar, (scalar, {"z": scalar}), s=scalar)
    assert trace(x, (x, {"z": x}), s=x)[0].item() == 14.0
    with pytest.raises(SignatureError, match=r"paired: argument `pair` must have the structure \(\*, {z: \*}\), got"):
        trace(x, (x, {"q": x}), s=x)
    for bad in ("text", None):
        with pytest.raises(SignatureError, match=r"paired: argument `a` must be f32\[\], got (str|NoneType): cannot"):
            trace(bad, (x, {"z": x}), s=x)
    assert trace.full_signature.splitlines()[-1] == ") -> (f32[], {s: f32[]}, None)"


def test_162_variables_keep_the_pattern_that_was_traced() -> None:
    one, other = ll.Variable(1.0), ll.Variable(2.0)
    f = ll.function(lambda v, w: [v.assign_add(1.0), v * w][1])
    apart, same = f.get_concrete_function(one, other), f.get_concrete_function(one, one)
    assert (apart(one, other).item(), same(other, other).item()) == (4.0, 9.0)
    for trace, given in ((apart, (one, one)), (same, (one, other))):
        with pytest.raises(SignatureError, match=r"was traced for variables that are the same, .*, in another pattern"):
            trace(*given)
    assert (one.numpy(), other.numpy()) == (2.0, 3.0)


def test_162_a_flat_name_never_hides_a_parameter() -> None:
    trace = ll.function(lambda a, a_0: a[0] * 10 + a_0).get_concrete_function([scalar], scalar)
    assert trace(a_0=ll.constant(1.0), a_0_1=x).item() == 21.0


@pytest.mark.parametrize("result", [ll.Variable, np.ones(2), {"a": [object()]}, "text", {1}])
@pytest.mark.parametrize("eagerly", [False, True])
def test_164_what_is_no_tensor_is_refused_with_its_place(result: Any, eagerly: bool) -> None:
    f = ll.function(lambda v: {"out": result}, run_eagerly=eagerly)
    with pytest.raises(SignatureError, match=r'returns a \w+ at `result\["out"\]'):
        f(x)


def test_164_a_number_that_no_dtype_holds_is_named() -> None:
    with pytest.raises(DTypeError, match=r"`result\[1\]`: cannot make a tensor"):
        ll.function(lambda v: (v, 10**30))(x)


@pytest.mark.parametrize("eagerly", [False, True])
def test_164_results_are_tensors_of_their_own(eagerly: bool) -> None:
    f = ll.function(lambda v: (v, v), run_eagerly=eagerly)
    first, second = f(x)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x * first + second
    assert tape.gradient(y, x).item() == 2.0


def test_165_a_clone_has_the_options_and_another_body() -> None:
    seen: list[Any] = []
    first = ll.function(lambda v: v + 1, reduce_retracing=True, max_traces=2, cache_size=3)
    for size in (1, 2, 3):
        first(ll.ones((size,)))

    def body(v: Any) -> Any:
        seen.append(v.shape)
        return v * 2

    second = first.clone(body)
    for size in (1, 2, 3):
        assert second(ll.ones((size,))).tolist() == [2.0] * size
    assert seen == [(1,), (None,)]
    assert (first.trace_count, second.trace_count) == (2, 2)
    assert second.python_function is body
    with pytest.raises(ll.errors.TraceBudgetError):
        second(ll.ones((1, 1)))
    assert (first.clone().python_function, first.clone().trace_count) == (first.python_function, 0)

    class Empty(list):  # type: ignore[type-arg]
        def __call__(self, x: Any) -> Any:
            return x * 7.0

    assert first.clone(Empty())(ll.constant(1.0)).item() == 7.0  # false, and callable
    declared = ll.function(lambda v: v, input_signature=[scalar])
    with pytest.raises(SignatureError, match="1 specs for 0 arguments"):
        declared.clone(lambda: 1)


def test_165_a_trace_is_not_pickled_and_copies_are_the_same_trace() -> None:
    trace = paired.get_concrete_function(scalar, (scalar, {"z": scalar}), s=scalar)
    with pytest.raises(
        ArgumentError, match="belongs to this process and cannot be pickled; pickle the staged function"
    ):
        pickle.dumps(trace)
    assert copy.deepcopy({"trace": trace})["trace"] is trace


def test_166_state_made_outside_the_trace_has_the_scopes_of_the_function_alone() -> None:
    made: list[Any] = []

    @ll.function
    def f(v: Any) -> Any:
        with ll.init_scope():
            made.append(ll.Variable(1.0, name="w"))
        with ll.name_scope("inside"), ll.init_scope():
            made.append(ll.Variable(1.0, name="w"))
        return v * made[0]

    with ll.name_scope("around"):
        f(x)
    assert [v.name for v in made] == ["w", "inside/w"]


def test_168_a_clock_is_told_though_its_digits_do_not_fit() -> None:
    f = ll.function(lambda v: v * time.time())
    assert "`time.time(...)` is read once for each trace" in str(ll.explain.purity(f, ll.constant(0.0)))
