"""Symbolic tensors where they have no value: the message, and nothing left behind."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import limelight as ll
from limelight.errors import (
    LeakedTensorError,
    LimelightError,
    SymbolicValueError,
)

Clean = Any  # the fixture of conftest.py

pytestmark = [
    pytest.mark.usefixtures("retraces_are_meant"),
    pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind"),
]

one = ll.constant(1.0)


def line_of(f: Callable[..., Any], offset: int = 0) -> str:
    """How errors name a line of a function of this file: by default its first."""
    return f"test_leaks.py line {f.__code__.co_firstlineno + offset}"


# --- Symbolic tensors


def test_an_if_on_a_symbolic_tensor_names_the_line_and_the_way_out(clean: Clean) -> None:
    def choose(a: Any) -> Any:
        bigger = a > 0
        if bigger:
            return a
        return -a

    f = ll.function(choose)
    with clean(f), pytest.raises(SymbolicValueError, match=r"^bool\(\) \(as in `if`") as caught:
        f(one)
    message = str(caught.value)
    assert f"({line_of(choose, 2)}: if bigger:)" in message
    assert f"the result of greater, bool[] ({line_of(choose, 1)}: bigger = a > 0)" in message
    assert "ll.cond(pred, true_fn, false_fn)" in message
    assert choose(one).item() == 1.0


Leak = Callable[[Any, dict[str, Any]], Any]
LEAKS: dict[str, Leak] = {}
"""Ways to let a tensor out of its trace: bodies of staged functions, which put it into a dictionary."""


def leaking(body: Leak) -> Leak:
    LEAKS[body.__name__] = body
    return body


@leaking
def in_a_list(a: Any, out: dict[str, Any]) -> Any:
    out.setdefault("all", []).append(a * 2)
    out["leak"] = out["all"][0]
    return a


@leaking
def in_an_attribute(a: Any, out: dict[str, Any]) -> Any:
    class Holder:
        pass

    out["holder"] = Holder()
    out["holder"].leak = out["leak"] = a * 2
    return a


@leaking
def in_a_global(a: Any, out: dict[str, Any]) -> Any:
    global _leaked
    _leaked = out["leak"] = a * 2
    return a


@leaking
def by_an_exception(a: Any, out: dict[str, Any]) -> Any:
    try:
        raise KeyError(a * 2)
    except KeyError as error:
        out["leak"] = error.args[0]
    return a


@leaking
def by_a_generator(a: Any, out: dict[str, Any]) -> Any:
    def numbers() -> Iterator[Any]:
        yield a
        yield a * 2

    generator = numbers()
    doubled = [next(generator), next(generator)]
    out["leak"] = doubled[1]
    return a


@leaking
def by_a_default_argument(a: Any, out: dict[str, Any]) -> Any:
    def later(leak: Any = a * 2) -> Any:
        return leak

    out["leak"] = later.__defaults__[0]  # type: ignore[index]  # it has one
    return later()


@leaking
def from_a_loop_body(a: Any, out: dict[str, Any]) -> Any:
    def body(i: Any) -> Any:
        out["leak"] = i * 2
        return (i + 1,)

    return ll.while_loop(lambda i: i < 3, body, (a,))[0]


@leaking
def from_a_branch(a: Any, out: dict[str, Any]) -> Any:
    def branch() -> Any:
        out["leak"] = a * 2
        return a

    return ll.cond(a > 0, branch, lambda: a)


@leaking
def from_a_nested_function(a: Any, out: dict[str, Any]) -> Any:
    @ll.function
    def inner(b: Any) -> Any:
        out["leak"] = b * 2
        return b

    return inner(a)


_leaked: Any = None
USES: dict[str, Callable[[Any], Any]] = {
    "op": lambda t: t + 1,
    "reflected op": lambda t: 1 + t,
    "beside a tensor": lambda t: one + t,
    "numpy": lambda t: t.numpy(),
    "bool": lambda t: bool(t) or 1,
    "index": lambda t: t[None],
    "method": lambda t: t.sum(),
    "assign": lambda t: ll.Variable(0.0).assign(t),
    "variable": lambda t: ll.Variable(t).name,
    "another trace": lambda t: ll.function(lambda a: a + t)(one),
    "returned from another trace": lambda t: ll.function(lambda a: t)(one),
    "argument": ll.function(lambda a: a),
    "moved": lambda t: t.to("cpu:0"),
    "predicate": lambda t: ll.cond(t > 0, lambda: one, lambda: one),
}


@pytest.mark.slow  # looks through all objects of the process
@pytest.mark.parametrize("use", list(USES))
@pytest.mark.parametrize("leak", list(LEAKS))
def test_a_leaked_tensor_names_its_function_and_the_line_that_made_it(leak: str, use: str, clean: Clean) -> None:
    body, out = LEAKS[leak], {}
    f = ll.function(lambda a: body(a, out), name="leaky")
    f(one)
    with clean(f), pytest.raises(LeakedTensorError, match="a symbolic tensor leaked out of the function") as caught:
        USES[use](out["leak"])
    message = str(caught.value)
    assert re.search(
        r"the function ('leaky'|'body' of 'leaky'|'true_fn' of 'leaky'|'inner'), whose trace has ended", message
    )
    assert re.search(r"the result of multiply, f32\[\] \(test_leaks.py line \d+: .*\* 2", message)
    assert "It has no value outside (test_leaks.py line" in message
    assert "ll.Variable" in message
    assert "leaked" not in repr(out["leak"])
    assert f(one).item() in (1.0, 3.0, 2.0)  # the function itself is none the worse


def test_a_leak_used_in_the_same_function_after_its_block(clean: Clean) -> None:
    def uses(a: Any) -> Any:
        kept: list[Any] = []

        def body(i: Any) -> Any:
            kept.append(i * 2)
            return (i + 1,)

        return ll.while_loop(lambda i: i < 3, body, (a,))[0] + kept[0]

    f = ll.function(uses)
    with (
        clean(f),
        pytest.raises(LeakedTensorError, match="out of the function 'body' of 'uses', whose trace has ended"),
    ):
        f(one)


def test_another_thread_cannot_use_a_tensor_of_a_trace(clean: Clean) -> None:
    found: list[BaseException] = []

    @ll.function
    def f(a: Any) -> Any:
        def work() -> None:
            try:
                a + 1
            except LimelightError as error:
                found.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return a

    with (
        clean(),
        pytest.raises(SymbolicValueError, match="the argument `a`, f32\\[\\] belongs to the trace of 'f'") as caught,
    ):
        f(one)
    assert found == [caught.value], "the thread could hide it, and the graph would lack what it does"


def test_nor_can_it_use_one_of_a_body(clean: Clean) -> None:
    def in_a_thread(x: Any) -> Any:
        def work() -> None:
            with suppress(LimelightError):
                x + 1

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x

    loops = ll.function(lambda a: ll.while_loop(lambda x: x < 3, lambda x: in_a_thread(x * 2), (a,)))
    branches = ll.function(lambda a: ll.cond(a > 0, lambda: in_a_thread(a * 2), lambda: a))
    for f in (loops, branches):
        with clean(), pytest.raises(SymbolicValueError, match="which this code has left"):
            f(one)


def test_what_asks_for_numbers_is_not_told_of_branches() -> None:
    @ll.function
    def f(a: Any) -> Any:
        return a * float(a.sum())

    with pytest.raises(SymbolicValueError, match="Leave out `float\\(\\)`: limelight's ops take the tensor") as caught:
        f(one)
    assert "ll.cond" not in str(caught.value)
    assert str(caught.value).count(".sum())") == 1, "one line is quoted once"
