"""What is printed instead of a side effect of tracing runs, and happens at each call."""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import limelight as ll

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.HostRandomnessWarning")

_files = itertools.count(1)
HEAD = """
import collections, datetime, queue, random, time, types
import numpy as np
from datetime import datetime as moment
seen, counts, parts = [], {"n": 0}, collections.defaultdict(list)
state, lists = types.SimpleNamespace(n=0, last=None, shape=()), [0, 0]
tasks, table, rng, dice = queue.Queue(), np.zeros(3), np.random.default_rng(0), random.Random(0)
steps, total = iter(range(9)), 0
"""


@pytest.fixture
def define() -> Iterator[Callable[[str], dict[str, Any]]]:
    files = []

    def made(body: str, head: str = "") -> dict[str, Any]:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        text = f"{HEAD}{head}\n@ll.function\ndef f(x):\n{lines}\n"
        files.append(f"effects{next(_files)}.py")
        linecache.cache[files[-1]] = (len(text), None, text.splitlines(keepends=True), files[-1])
        names: dict[str, Any] = {"ll": ll}
        exec(compile(text, files[-1], "exec"), names)
        return names

    yield made
    for file in files:
        linecache.cache.pop(file, None)


def instead_of(names: dict[str, Any], kind: str) -> str:
    """The code that is printed instead of the only side effect, as soon as the function has traced."""
    names["f"](ll.constant(1.0))
    (effect,) = ll.explain.side_effects(names["f"]).records
    assert effect.kind == kind
    return re.findall(r"`(ll\.[^`]*)`", effect.instead)[-1]


MUTATIONS = {
    "an item": ("counts['n'] = x", "ll.py_func(lambda x: counts.__setitem__('n', x), [x], None)", "counts['n']", 3.0),
    "an item that counts": ("counts['n'] += 1", "ll.py_func(lambda: counts.__setitem__(", "counts['n']", 3),
    "an item by a name": ("for i in range(2):\n    lists[i] += i", "ll.py_func(lambda i: ", "lists", [0, 3]),
    "a deleted item": ("del seen[0]", "ll.py_func(lambda: seen.__delitem__(0), [], None)", "len(seen)", 7),
    "a part of a defaultdict": (
        "parts['a'].append(x)",
        "ll.py_func(parts['a'].append, [x], None)",
        "len(parts['a'])",
        4,
    ),
    "by another name": ("own = seen\nown.append(x)", "ll.py_func(seen.append, [x], None)", "len(seen)", 13),
    "a queue": ("tasks.put(x)", "ll.py_func(tasks.put, [x], None)", "tasks.qsize()", 3),
    "an array": ("table[0] += 1", "ll.py_func(lambda: table.__setitem__(0, ", "table[0]", 3),
}


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
@pytest.mark.parametrize("name", MUTATIONS)
def test_changes_happen_at_each_call(define: Callable[..., dict[str, Any]], name: str) -> None:
    line, instead, value, wanted = MUTATIONS[name]
    head = "seen.extend(range(10))\nparts['a'].append(0)"
    found = instead_of(define(f"{line}\nreturn x", head), "mutation")
    assert found.startswith(instead)
    last = line.splitlines()[-1]
    mended = line.replace(last.strip(), found)
    names = define(f"{mended}\nreturn x", head)
    for number in (1.0, 2.0, 3.0):
        names["f"](ll.constant(number))
    result = eval(value, names)
    assert (result.item() if isinstance(result, ll.Tensor) else result) == wanted
    assert names["f"].trace_count == 1
    assert not ll.explain.side_effects(names["f"]).records


DRAWS = {
    "np.random.normal(1.0, 2.0, (3,))": "ll.random.normal((3,), mean=1.0, stddev=2.0)",
    "np.random.normal(size=3)": "ll.random.normal(3)",
    "np.random.uniform(-1, 1)": "ll.random.uniform(low=-1, high=1)",
    "np.random.rand(3, 2)": "ll.random.uniform((3, 2))",
    "np.random.randn(3)": "ll.random.normal((3,))",
    "np.random.randint(0, 1000)": "ll.random.integers(0, high=1000)",
    "np.random.permutation(50)": "ll.random.permutation(50)",
    "np.random.choice(1000, 3)": "ll.random.choice(1000, shape=3)",
    "rng.standard_normal(3)": "ll.random.normal(3)",
    "rng.integers(0, 1000, size=2)": "ll.random.integers(0, high=1000, shape=2)",
    "random.random()": "ll.random.uniform()",
    "random.uniform(1, 2)": "ll.random.uniform(low=1, high=2)",
    "random.randint(1, 600)": "ll.random.integers(1, high=600 + 1)",
    "random.sample(range(500), 3)": "ll.random.choice(range(500), shape=3, replace=False)",
    "rng.exponential(2.0, 3)": "ll.random.exponential(3, scale=2.0)",
    "dice.gauss(0, 1)": "ll.random.normal(mean=0, stddev=1)",
    "time.time()": "ll.py_func(time.time, [], ll.float64)",
    "time.perf_counter_ns()": "ll.py_func(time.perf_counter_ns, [], ll.float64)",
    "moment.now().timestamp()": "ll.py_func(lambda: moment.now().timestamp(), [], ll.float64)",
}


@pytest.mark.parametrize("code", DRAWS)
def test_draws_and_clocks_differ_at_each_call(define: Callable[..., dict[str, Any]], code: str) -> None:
    kind = "time" if "py_func" in DRAWS[code] else "host randomness"
    assert instead_of(define(f"y = {code}\nreturn x"), kind) == DRAWS[code]
    names = define(f"return {DRAWS[code]}")
    first, second = [names["f"](ll.constant(0.0)).numpy() for _ in range(2)]
    assert first.shape == second.shape
    assert (first != second).any()


def test_what_has_no_staged_form_is_not_made_up(define: Callable[..., dict[str, Any]]) -> None:
    names = define(
        "np.random.normal(**{'size': 3})\nnp.random.seed(0)\nnext(steps)\nuuid.uuid4()\nrandom.triangular()\nreturn x",
        "import uuid",
    )
    names["f"](ll.constant(1.0))
    found = {effect.what: effect.instead for effect in ll.explain.side_effects(names["f"]).records}
    assert found["np.random.seed(...)"] == "`ll.random.seed(0)`, outside the function"
    assert found["uuid.uuid4(...)"] == found["random.triangular(...)"] == "draw it outside, and pass it as an argument"
    assert found["next(...)"] == "take the item outside, and pass it as an argument"


def test_what_is_taken_of_iterators_made_anew_is_no_side_effect(define: Callable[..., dict[str, Any]]) -> None:
    names = define(
        "for it in [iter(lists)]: pass\nat = enumerate(lists)\nnext(at)\nreturn x * next(iter(lists)) * next(steps)"
    )
    assert [effect.what for effect in ll.explain.side_effects(names["f"]).records] == ["next(...)"] * 2
    pairs = "def pairs(of):\n    yield from zip(of, of[1:])\n"
    made = "at = enumerate(lists)\nnext(at)\nlater = pairs(lists)\nnext(later)"
    names = define(f"{made}\nreturn x * next(iter(lists)) * next(i for i in lists) * next(pairs(lists))[0]", pairs)
    assert ll.explain.side_effects(names["f"]).records == ()


WRITES = {
    "state.n += 2": ("attribute write", "state.n = ll.Variable(0)", "state.n.assign_add(2)"),
    "global total\ntotal -= 1": ("global write", "total = ll.Variable(0)", "total.assign_sub(1)"),
    "state.last = x": ("attribute write", "state.last = ll.Variable(...)", "state.last.assign(...)"),
    "setattr(state, 'n', 3)": ("attribute write", "state.n = ll.Variable(0)", "state.n.assign(...)"),
}


@pytest.mark.parametrize("code", WRITES)
def test_a_variable_for_what_is_written(define: Callable[..., dict[str, Any]], code: str) -> None:
    f = define(f"{code}\nreturn x")["f"]
    kind, outside, inside = WRITES[code]
    (effect,) = ll.explain.side_effects(f).records
    assert effect.kind == kind
    assert effect.instead.endswith(f"; or keep it in a variable, `{outside}` outside, and write `{inside}`")


def test_no_variable_for_what_can_be_none(define: Callable[..., dict[str, Any]]) -> None:
    (effect,) = ll.explain.side_effects(define("state.shape = x.shape\nreturn x")["f"]).records
    assert effect.instead == "return it and set it outside"
