"""What a function does with a number: where a tensor is said to do, it does, and what stands in its way is named."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import limelight as ll
from limelight.explain.may_be_tensor import Written, obstacle
from limelight.user_code.value_use import UNKNOWN

_numbers = itertools.count()

HELPERS = """
import math
import limelight as ll

def scaled(x, by):
    return x * by

def picky(x, by):
    if by > 1.0:
        return x
    return x * by

@ll.function
def staged(x, by):
    return x * by

def deep(x, by):
    return scaled(scaled(x, by=by), by + 1.0)

class Thing:
    factor = 1.0
thing = Thing()
kept = ll.Variable(1.0)
"""


@pytest.fixture
def define() -> Iterator[Callable[[str], Any]]:
    """A function `f` from its text, with a few helpers beside it, whose source can be had."""
    files = []

    def made(text: str) -> Any:
        file = f"uses{next(_numbers)}.py"
        files.append(file)
        whole = f"{HELPERS}\n{text}\n"
        linecache.cache[file] = (len(whole), None, whole.splitlines(keepends=True), file)
        names: dict[str, Any] = {"__name__": "uses"}
        exec(compile(whole, file, "exec"), names)
        return names["f"]

    yield made
    for file in files:
        linecache.cache.pop(file, None)


def body(text: str) -> str:
    return "def f(x, rate):\n" + "\n".join(f"    {line}" for line in text.splitlines())


FINE = {
    "arithmetic": "return (x * rate - rate / 2) ** rate + abs(-rate)",
    "a name of its own": "half = rate / 2\nhalf += 1.0\nreturn x * half",
    "a method of the result": "return (x * rate).mean()",
    "an item of the result": "y = x * rate\nif y.shape[0] > 1:\n    y = y[0]\nreturn y.sum()",
    "comparison": "return ll.where(x > rate, x, rate)",
    "a branch on something else": "if x.shape[0] > 1:\n    return x * rate\nreturn x",
    "None": "if rate is None:\n    return x\nreturn x + rate",
    "containers": "pair = (rate, x)\na, b = pair\nreturn {'a': a, 'b': [b]}",
    "a helper": "return scaled(x, rate)",
    "a helper by keyword, and its own helper": "return deep(x, by=rate)",
    "a staged helper": "return staged(x, rate)",
    "an op by keyword": "return ll.maximum(x, rate) + ll.pow(x, rate)",
    "a lambda": "return (lambda v: v * rate)(x)",
    "ll.cond": "return ll.cond(ll.greater(rate, 0.5), lambda: x * rate, lambda: x)",
    "an inner function": "def inner(v):\n    return v * rate\nreturn inner(x) + inner(x)",
    "a loop over something else": "for i in range(3):\n    x = x * rate + i\nreturn x",
    "a with block": "with ll.GradientTape() as tape:\n    y = x * rate\nreturn y",
    "a method of a tape": "with ll.GradientTape() as t:\n    t.watch(x)\n    y = x * rate\nreturn t.gradient(y, x)",
    "a variable": "kept.assign_sub(rate * kept)\nreturn x",
    "a comprehension": "return [x * rate for _ in range(2) if x.ndim]",
    "a named expression": "return (y := rate * 2.0) * x + y",
    "not used": "return x",
    "text": "print(f'the rate is {rate is None}')\nreturn x * rate",
    "try": "try:\n    return x * rate\nfinally:\n    pass",
    "over several lines": "return scaled(\n    x,\n    rate,\n)",
    "in parentheses": "y = (\n    x * rate\n)\nreturn (\n    y\n)",
}

REFUSED = {
    "if": ("if rate > 0.5:\n    return x * rate\nreturn x", "an `if` asks for it", 2),
    "if, later": ("half = rate / 2\ny = half\nif 1.0 > y:\n    return x\nreturn x * y", "an `if` asks for it", 4),
    "if, by way of a loop": (
        "y = 0.0\nfor _ in range(2):\n    if y > 1.0:\n        break\n    y = y + rate\nreturn x * y",
        "an `if` asks for it",
        4,
    ),
    "if in an expression": ("return x if rate > 0.5 else x * rate", "an `if` asks for it", 2),
    "while": ("while rate < 1.0:\n    rate = rate * 2\nreturn x", "a `while` asks for it", 2),
    "assert": ("assert rate > 0\nreturn x * rate", "an `assert` asks for it", 2),
    "not": ("return x if not rate else x * 2", "`not` asks for it", 2),
    "and": ("return (rate and 2.0) * x", "`and` asks for it", 2),
    "float": ("return x * float(rate)", "`float()` asks for it", 2),
    "int": ("return x[: int(rate)]", "`int()` asks for it", 2),
    "chained comparison": ("return ll.where(0.0 < rate < 1.0, x, 2.0)", "`0.0 < rate < 1.0` asks for it", 2),
    "a part of it": ("return x * rate.hex().count('a')", "`rate.hex` asks for a part of it", 2),
    "the value of the result": ("return (x * rate).mean().item() * x", "`(x * rate).mean().item` asks for it", 2),
    "formatted": ("name = f'{rate:.2f}'\nreturn x", "it is formatted", 2),
    "repeated": ("layers = [x]\nreturn layers * rate", "`layers * rate` repeats something", 3),
    "repeated in place": ("layers = [x]\nlayers *= rate\nreturn layers", "`layers *= rate` repeats something", 3),
    "bits": ("return x * (rate & 1)", "its bits are asked for", 2),
    "bits in place": ("rate <<= 1\nreturn x * rate", "its bits are asked for", 2),
    "kept": ("thing.factor = rate\nreturn x * rate", "`thing.factor` keeps it", 2),
    "in a comprehension": ("return [x for _ in range(2) if rate > 1.0]", "an `if` asks for it", 2),
    "in a lambda": ("pick = lambda: 1.0 if rate > 0 else 2.0\nreturn x * pick()", "an `if` asks for it", 2),
}

DOUBTFUL = {
    "math": "return x * math.sqrt(rate)",
    "a method of something": "return x.clip(0.0, rate)",
    "made by a constructor": "return x * ll.constant(rate)",
    "a size": "return x * ll.zeros((1,)) + ll.full((1,), rate)",
    "any arguments": "return scaled(*[x, rate])",
    "a set": "return x * len({rate})",
    "over it": "return [x * v for v in [rate]]",
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE.keys())
def test_where_a_tensor_is_said_to_do_it_does(define: Callable[[str], Any], text: str) -> None:
    f = define(body(text))
    assert obstacle(f, "rate") is None
    ll.function(f)(ll.ones((2,)), ll.constant(0.75))


@pytest.mark.parametrize(("text", "what", "line"), REFUSED.values(), ids=REFUSED.keys())
def test_what_a_tensor_cannot_do_is_named_with_its_line(
    define: Callable[[str], Any], text: str, what: str, line: int
) -> None:
    f = define(body(text))
    found = obstacle(f, "rate")
    assert found is not None
    assert found.what == what
    assert found.where is not None
    assert found.where.line == HELPERS.count("\n") + 1 + line
    if "repeats" in what:  # a list beside a tensor is an array of numbers, not what repeats
        assert ll.function(f)(ll.ones((2,)), ll.constant(0.75)).shape == (1, 2)
    elif what != "`thing.factor` keeps it":
        with pytest.raises((TypeError, AttributeError)):
            ll.function(f)(ll.ones((2,)), ll.constant(0.75))


@pytest.mark.parametrize("text", DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_of_what_is_not_understood_nothing_is_said(define: Callable[[str], Any], text: str) -> None:
    assert obstacle(define(body(text)), "rate") == UNKNOWN


def test_a_helper_that_branches_is_named(define: Callable[[str], Any]) -> None:
    found = obstacle(define(body("return picky(x, rate)")), "rate")
    assert found is not None
    assert str(found).endswith("line 9, where ll.cond takes one")
    assert found.where is not None
    assert found.where.function == "picky"


def test_parts_of_containers_are_told_apart(define: Callable[[str], Any]) -> None:
    f = define(
        "def f(batch):\n    if batch['on'] > 1:\n        return batch['x'] * batch['rate']\n    return batch['x']"
    )
    assert obstacle(f, 'batch["rate"]') is None
    assert obstacle(f, 'batch["on"]') is not None
    assert obstacle(define("def f(batch):\n    return dict(batch)"), 'batch["rate"]') == UNKNOWN
    assert obstacle(define("def f(*xs):\n    return xs[0] * xs[1]"), "xs[1]") is None


@pytest.mark.parametrize(
    "text",
    [
        "f = lambda x, rate: x * rate",
        "f = [\n    lambda x, rate: (\n        x * rate\n    ),\n][0]",
        "f = (lambda v: lambda x, rate: v * (x * rate))(2.0)",
        "@ll.function\ndef staged_f(x, rate):\n    return x * rate\nf = staged_f",
        "class Model:\n    @ll.function\n    def step(self, x, rate):\n        return x * rate\nf = Model().step",
    ],
)
def test_functions_of_all_sorts_are_read(define: Callable[[str], Any], text: str) -> None:
    assert obstacle(define(text), "rate") is None


def test_converted_code_lets_tensors_decide(define: Callable[[str], Any]) -> None:
    f = define(body("if rate > 0.5:\n    x = x * rate\nreturn x"))
    assert obstacle(f, "rate", converted=True) is None
    assert obstacle(define(body("return x * float(rate)")), "rate", converted=True) is not None


def test_without_source_nothing_is_vouched_for() -> None:
    names: dict[str, Any] = {}
    exec("def f(x, rate):\n    return x * rate", names)
    for f in (names["f"], functools.partial(names["f"], 1.0), math.sqrt, len):
        assert obstacle(f, "rate") == UNKNOWN


def test_code_that_is_no_function_of_pythons() -> None:
    class Body:
        """As a cell of a notebook is."""

        def __init__(self, text: str) -> None:
            names = {"ll": ll, "scaled": scaled}
            self.__limelight_written__ = Written(ast.parse(text).body, "In[3]", "cell", names)

        def __call__(self, **inputs: Any) -> Any:
            raise AssertionError("nothing is run")

    def scaled(x: Any, by: Any) -> Any:
        return x * by

    assert obstacle(Body("y = scaled(x, rate)\nll.sum(y)"), "rate") is None
    assert obstacle(Body("scaled = x\ny = scaled(x, rate)"), "rate") == UNKNOWN
    assert str(obstacle(Body("half = rate / 2\nif half > 1:\n    y = x"), "rate")) == (
        "an `if` asks for it at In[3] line 2, where ll.cond takes one"
    )
    f = ll.function(Body("if rate > 1: pass"))
    rate = f.explain(rate=0.5)
    assert rate.miss is not None


@pytest.mark.parametrize("text", ["ll.function(lambda v: v, name=f'by {rate}')(x)", "{'by 1': x}[f'by {rate}']"])
def test_a_name_made_of_the_number_would_be_another_one(define: Callable[[str], Any], text: str) -> None:
    found = obstacle(define(body(f"return {text} * rate")), "rate")
    assert found is not None
    assert found.what == "it is formatted"
