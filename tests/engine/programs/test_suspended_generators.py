"""Generators that are suspended in a `with` block of the engine's (behaviour 22): a trace leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any

import pytest

import limelight as ll
from limelight.core import device_scopes, dispatch, name_scopes

Clean = Any  # the fixture of conftest.py
Scope = Callable[[], AbstractContextManager[Any]]

pytestmark = pytest.mark.usefixtures("retraces_are_meant")

SCOPES: dict[str, Scope] = {
    "device": lambda: ll.device("cpu:0"),
    "tape": lambda: ll.GradientTape(persistent=True),
    "accumulator": lambda: ll.ForwardAccumulator(ll.constant(1.0), ll.constant(1.0)),
    "name_scope": lambda: ll.name_scope("inside"),
    "init_scope": ll.init_scope,
    "optimiser": lambda: ll.config.optimiser(level=0),
}


def thrown_into(generator: Any) -> None:
    with contextlib.suppress(KeyError):
        generator.throw(KeyError("thrown in"))


ENDINGS: dict[str, Callable[[Any], object]] = {
    "close": lambda generator: generator.close(),
    "finish": lambda generator: next(generator, None),
    "throw": thrown_into,
}


def suspended(scope: Scope) -> Generator[None]:
    with scope():
        yield


def entered(scope: Scope, kept: list[Any]) -> None:
    kept.append(suspended(scope))
    next(kept[-1])


def in_body(enter: Callable[[], None], x: Any) -> Any:
    enter()
    return x


def in_branch(enter: Callable[[], None], x: Any) -> Any:
    def branch() -> Any:
        y = x * 2.0
        enter()
        return y

    return ll.cond(x > 0, branch, lambda: x) + x


def in_loop(enter: Callable[[], None], x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        y = c * 2.0
        enter()
        return y, None

    return ll.scan(step, x, length=2)[0] + x


def failing(enter: Callable[[], None], x: Any) -> Any:
    enter()
    raise KeyError("the body fails")


@pytest.mark.parametrize("body", [in_body, in_branch, in_loop, failing])
@pytest.mark.parametrize("name", SCOPES)
def test_a_scope_ends_with_the_trace_that_it_was_entered_in(name: str, body: Any, clean: Clean) -> None:
    kept: list[Any] = []
    f = ll.function(lambda x: body(lambda: entered(SCOPES[name], kept), x))
    for end in ENDINGS.values():
        with clean(), contextlib.suppress(KeyError):
            f(ll.constant(1.0))
        f.clear_cache()
        with clean():
            end(kept.pop())


@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("name", SCOPES)
def test_its_late_end_takes_nobody_elses_scope_away(name: str, end: Any, clean: Clean) -> None:
    kept: list[Any] = []
    f = ll.function(lambda x: in_body(lambda: entered(SCOPES[name], kept), x))
    x = ll.constant(3.0)
    with clean():
        f(x)
        with ll.device("cpu:0"), ll.name_scope("outer"), ll.config.optimiser(level=1), ll.GradientTape() as tape:
            tape.watch(x)
            before = (dispatch.stack(), device_scopes.requested_device(), name_scopes.current_name_scope())
            end(kept.pop())
            assert (dispatch.stack(), device_scopes.requested_device(), name_scopes.current_name_scope()) == before
            y = x * x
        assert tape.gradient(y, x).item() == 6.0


def test_name_scopes_in_a_trace_that_are_left_out_of_order() -> None:
    @ll.function
    def f(x: Any) -> Any:
        inner = suspended(lambda: ll.name_scope("a"))
        next(inner)
        with ll.name_scope("b"):
            y = ll.exp(x)
            inner.close()
            z = ll.sin(y)
        return ll.cos(z)

    f(ll.constant(1.0))
    scopes = {str(node.op): node.scope for node in f.trace_cache[0].graph.nodes}
    assert scopes == {"exp": "a/b/", "sin": "a/b/", "cos": ""}


def test_blocks_outside_the_trace_that_are_left_out_of_order(clean: Clean) -> None:
    with clean():
        with ll.GradientTape() as tape:
            tape.watch(x := ll.constant(3.0))
            first, second = suspended(ll.init_scope), suspended(ll.init_scope)
            next(first)
            next(second)
            first.close()
            y = x * x  # not recorded: the second block is open
            second.close()
            z = x * x
        assert tape.gradient([z], [x])[0].item() == 6.0
    assert y.item() == 9.0
