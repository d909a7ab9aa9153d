"""What happens only while tracing is called out, with the line and the staged alternative (behaviours 9 and 10)."""

from __future__ import annotations

import datetime
import io
import json
import linecache
import logging
import pickle
import random
import time
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import limelight as ll

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.HostRandomnessWarning")

SEEN: list[Any] = []
TOTALS: dict[str, Any] = {}
COUNT = 0
RNG = np.random.default_rng(0)
LOG = logging.getLogger("limelight.test")


def counted(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return x


class Box:
    def __init__(self) -> None:
        self.calls = 0
        self.items: list[Any] = []
        self.w: Any = None

    def bump(self, x: Any) -> Any:
        self.calls += 1
        self.items.append(1)
        return x


BOX = Box()


def closing() -> Any:
    last = None

    def body(x: Any) -> Any:
        nonlocal last
        last = 1.0
        return x + (last or 0.0)

    return body


def item_write(x: Any) -> Any:
    TOTALS["x"] = 1.0
    return x


def timed(x: Any) -> Any:
    return x + perf_counter() * 0.0 + float(datetime.datetime.now().year) * 0.0 + time.time() * 0.0


def reading(x: Any) -> Any:
    with open(__file__) as file:
        return x + float(len(file.readline())) * 0.0


CASES = {
    "print": (
        lambda x: (print("tracing"), x)[1],  # noqa: T201  # what is looked for
        [("print", "print(...)")],
        'll.py_func(lambda: print("tracing"), [], None)',
    ),
    "logging": (lambda x: (LOG.debug("x"), x)[1], [("print", "LOG.debug(...)")], "ll.py_func"),
    "append": (
        lambda x: (SEEN.append(1), x)[1],
        [("mutation", "SEEN.append(...)")],
        "ll.py_func(lambda: SEEN.append(1), [], None)",
    ),
    "item": (item_write, [("mutation", "TOTALS['x'] = ...")], "return the value"),
    "global": (counted, [("global write", "COUNT")], "COUNT.assign_add(1)"),
    "closure": (closing(), [("closure write", "last")], "last = ll.Variable(1.0)"),
    "attribute": (
        lambda x: BOX.bump(x) * 1.0,
        [("attribute write", "self.calls"), ("mutation", "self.items.append(...)")],
        "self.calls.assign_add(1)",
    ),
    "numpy": (lambda x: x + np.random.normal(), [("host randomness", "np.random.normal(...)")], "ll.random.normal"),
    "generator": (lambda x: x + RNG.uniform(), [("host randomness", "RNG.uniform(...)")], "ll.random.uniform"),
    "random": (lambda x: x + random.random(), [("host randomness", "random.random(...)")], "ll.random.uniform"),
    "time": (
        timed,
        [("time", "perf_counter(...)"), ("time", "datetime.datetime.now(...)"), ("time", "time.time(...)")],
        "pass the time as an argument",
    ),
    "file": (reading, [("file", "open(...)")], "ll.py_func"),
    "path": (lambda x: (Path(__file__).exists(), x)[1], [], ""),
    "debugger": (
        lambda x: (breakpoint() if x is None else 0, x)[1],
        [("debugger", "breakpoint(...)")],
        "run_functions",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_010_each_kind_is_named_with_its_alternative(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    body, wanted, instead = CASES[name]
    f = ll.function(body)
    f(ll.constant(1.0))
    f(ll.constant(2.0))
    found = ll.explain.side_effects(f)
    assert [(effect.kind, effect.what) for effect in found.records] == wanted
    assert (found.traces, found.calls) == (1, 2)
    for effect in found.records:
        assert effect.line.file == __file__
        assert effect.line.text
    assert instead in str(found)


def test_009_the_alternative_for_randomness_draws_anew() -> None:
    frozen = ll.function(lambda x: x + np.random.normal())
    fresh = ll.function(lambda x: x + ll.random.normal(()))
    x = ll.constant(0.0)
    assert frozen(x).item() == frozen(x).item()
    assert fresh(x).item() != fresh(x).item()
    assert ll.explain.side_effects(frozen).records
    assert not ll.explain.side_effects(fresh).records


def test_what_goes_through_py_func_is_staged() -> None:
    def keep(t: Any) -> None:
        SEEN.append(t)

    @ll.function
    def f(x: Any) -> Any:
        def keep_inside(t: Any) -> None:
            SEEN.append(t)

        ll.py_func(keep, [x], None)
        ll.py_func(keep_inside, [x], None)
        ll.py_func(lambda t: SEEN.append(t + 0.0), [x], None)
        ll.py_func(SEEN.append, [x], None)
        return x

    SEEN.clear()
    for value in (1.0, 2.0):
        f(ll.constant(value))
    assert [t.item() for t in SEEN] == [1.0] * 4 + [2.0] * 4
    assert "does nothing besides" in str(ll.explain.side_effects(f))


def test_state_creation_local_lists_and_changed_copies_of_arguments_are_no_side_effects() -> None:
    class Layer:
        def __init__(self) -> None:
            self.w: Any = None

        @ll.function
        def __call__(self, x: Any, batch: Any) -> Any:
            if self.w is None:
                self.w = ll.Variable(2.0)
            parts = []
            parts.append(x * self.w)
            batch = dict(batch)
            batch["y"] = parts[0]
            return batch["y"] + sum(parts)

    layer = Layer()
    assert layer(ll.constant(1.0), {"y": ll.constant(0.0)}).item() == 4.0
    assert not ll.explain.side_effects(Layer.__call__).records


def test_it_says_how_often_python_ran() -> None:
    f = ll.function(CASES["append"][0])
    for n in (1, 2, 2, 2):
        f(ll.ones((n,)))
    assert "its Python code ran 2 times, for 4 calls" in str(ll.explain.side_effects(f))
    with pytest.raises(ll.errors.ArgumentError, match="staged function"):
        ll.explain.side_effects(counted)  # type: ignore[arg-type]


@pytest.mark.parametrize("line", ["(folder / 'a').write_text('b')", "path = folder / 'a'; path.unlink()"])
def test_files_by_paths_that_are_computed_are_told(line: str) -> None:
    code = f"def f(x):\n    {line}\n    return x\n"
    linecache.cache["<computed paths>"] = len(code), None, code.splitlines(True), "<computed paths>"
    names: dict[str, Any] = {"folder": Path("nowhere")}
    exec(compile(code, "<computed paths>", "exec"), names)
    assert [one.kind for one in ll.explain.side_effects(ll.function(names["f"])).records] == ["file"]


def test_what_is_done_with_an_open_file_is_told() -> None:
    log = io.StringIO()

    def f(x: Any) -> Any:
        log.write("a")
        return x, log.getvalue()

    assert [(one.kind, one.what) for one in ll.explain.side_effects(ll.function(f)).records] == [
        ("file", "log.write(...)")
    ]


@pytest.mark.parametrize("function", [json.dumps, json.loads, pickle.dumps])
def test_texts_are_no_files(function: Any) -> None:
    def f(x: Any) -> Any:
        return x, function(b"1" if function is pickle.dumps else "1")

    assert ll.explain.side_effects(ll.function(f)).records == ()
