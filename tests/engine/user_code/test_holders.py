"""What keeps a tape alive can be found out (behaviour 72)."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

import limelight as ll
from limelight.user_code import holders


def paths(x: Any) -> dict[str, str]:
    return {place.path: place.where for place in ll.explain.who_holds(x).places}


def failing() -> None:
    with ll.GradientTape() as lost:
        lost.watch(x := ll.ones((100,)))
        ll.exp(x)
        raise ValueError("in the middle")


@pytest.mark.slow  # looks through all objects of the process
def test_072_a_traceback_that_holds_a_tape_is_found() -> None:
    try:
        failing()
    except ValueError as error:
        kept = error.__traceback__
    assert kept is not None
    assert kept.tb_next is not None
    found = paths(kept.tb_next.tb_frame.f_locals["lost"])
    (where,) = [where for path, where in found.items() if path == "lost"]
    assert "failing" in where
    assert "kept by a traceback" in where


@pytest.mark.slow  # looks through all objects of the process
def test_072_an_output_of_a_notebook_that_holds_a_tape_is_found() -> None:
    notebook = types.ModuleType("notebook_for_a_test")
    sys.modules["notebook_for_a_test"] = notebook
    try:
        scope = vars(notebook)
        exec("import limelight as ll\nwith ll.GradientTape() as tape:\n    pass\nOut = {3: tape}\n_ = tape", scope)
        found = paths(scope["tape"])
        assert {"tape", "_", "Out[3]"} <= found.keys()
        assert found["Out[3]"] == "a name of module notebook_for_a_test"
        assert "Out[3] (a name of module notebook_for_a_test)" in str(ll.explain.who_holds(scope["tape"]))
    finally:
        del sys.modules["notebook_for_a_test"]


class Shelf:
    __slots__ = ("contents",)


@pytest.mark.slow  # looks through all objects of the process
def test_attributes_slots_closures_and_defaults() -> None:
    tape = ll.GradientTape()
    shelf = Shelf()
    shelf.contents = {"tapes": [tape]}
    holder = types.SimpleNamespace(shelf=shelf)
    enclosing = (lambda kept: lambda: kept)(tape)  # noqa: PLC3002
    default = lambda kept=tape: kept  # noqa: E731
    found = paths(tape)
    assert {"tape", "holder.shelf.contents['tapes'][0]", "enclosing.__closure__[0].cell_contents"} <= found.keys()
    assert "default.__defaults__[0]" in found
    assert "running" in found["tape"]
    here = dict(locals())
    assert all(eval(path, {}, here) is tape for path, where in found.items() if "test_attributes" in where)
    assert (enclosing(), default()) == (tape, tape)
    assert holder.shelf is shelf


@pytest.mark.slow  # looks through all objects of the process
def test_nothing_holds_what_is_only_asked_about() -> None:
    answer = ll.explain.who_holds(ll.GradientTape())
    assert str(answer) == "nothing with a name holds this GradientTape"


def test_the_heap_is_walked_once_for_each_step_back(monkeypatch: pytest.MonkeyPatch) -> None:
    walks, referrers = [], holders.gc.get_referrers

    def counted(*objects: Any) -> Any:
        walks.append(len(objects))
        return referrers(*objects)

    monkeypatch.setattr(holders.gc, "get_referrers", counted)
    tape = ll.GradientTape()
    shelves = [types.SimpleNamespace(inside={"tapes": [tape]}) for _ in range(200)]
    found = paths(tape)
    assert any(path.startswith("shelves[") and path.endswith("].inside['tapes'][0]") for path in found), found
    assert len(shelves) == 200
    assert len(walks) <= holders._MOST_STEPS_BACK + 1, walks


def test_the_search_looks_at_the_clock_within_one_large_list_too(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, parts_of, parts = iter(range(1_000_000)), holders._parts, []

    def counted(value: Any, thorough: bool) -> Any:
        for part in parts_of(value, thorough):
            parts.append(part)
            yield part

    large = [[] for _ in range(200_000)]
    monkeypatch.setattr(holders.time, "thread_time", lambda: next(looks) * 0.01)
    monkeypatch.setattr(holders, "_parts", counted)
    monkeypatch.setattr(holders, "_modules", lambda: iter([({"large": large}, "a global name")]))
    holders.first_holder(object(), seconds=0.2)
    assert len(parts) < 200_000
