"""Whatever a graph's text was changed into, reading and verifying it ends well, or in a GraphError that says where.

Texts of every op and of all control flow are changed at random: characters, words, lines, and words that mean trouble.
`LIMELIGHT_MUTATIONS=200000 pytest tests/engine/graph/test_mutated_texts.py` tries more than the few of a quick run.
"""

from __future__ import annotations

import functools
import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import limelight as ll
from limelight.errors import GraphError
from limelight.graph import parse, show, verify
from limelight.staging.tracer import Tracer

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from cases import CASES  # of the ops, beside their tests
from opcase import FULL, Case

N = int(os.environ.get("LIMELIGHT_MUTATIONS", "4000" if FULL else "100"))
WORD = re.compile(r"%\d+|!\d+|@?\w+|\s+|.", re.DOTALL)
TROUBLE = (
    *("0", "1", "-1", "2", "3", "7", "1.5", "-0.0", "nan", "inf", "-inf", "1e400", "9" * 30, "-" + "9" * 5000),
    *(
        "None",
        "True",
        "False",
        "...",
        "()",
        "[]",
        "(1,)",
        "((),)",
        "[[1, 2]]",
        '"x"',
        '"\\x"',
        '"',
        "'",
        "\\",
        "\0",
        "²",
    ),
    *("f32", "c128", "bf16", "bool", "a", "V8", "f33", "f32[?]", "f32[]", "i64[2] [1, 2]", "f32[2] 1", "i8[] 300"),
    *("var", "frozen", "var f32[2]", "var var f32[]", "object", "object tape", "generator", "u8(300)", "i32(1e9)"),
    *("slice(1)", "slice()", "slice(1, 2, 3, 4)", "complex(1)", 'complex("x")', "bytes(1)", 'bytes("zz")', "bytes"),
    *('device("CPU:0")', "device(3)", "@CPU:0", "@GPU:7", "@f", "@body", "@", "<lambda>", "{", "}", "(", ")", "[", "]"),
    *("{axis=0}", "after !0", "!0", "%0", "%1", "%99", "=", ",", ":", "#", "\n", "return", "input", "graph", "graph g"),
    *("[" * 3000, "(" * 3000, "var " * 3000, "slice(" * 3000, "add", "call", "cond", "scan", "while_loop", "reshape"),
)


def branches_and_loops() -> str:
    w, generator = ll.Variable([1.0, 2.0]), ll.random.Generator(1)

    def body(carry: ll.Tensor, x: ll.Tensor) -> tuple[ll.Tensor, ll.Tensor]:
        return carry + x, carry * 2.0

    def loop(x: ll.Tensor) -> ll.Tensor:
        return ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * w), (0, x))[1]

    def f(x: ll.Tensor) -> tuple[ll.Tensor, ...]:
        w.assign_add(ll.sum(x, axis=0))
        noisy = x + generator.normal((2, 2))
        last, rows = ll.scan(body, ll.zeros(2), noisy)
        chosen = ll.cond(ll.sum(x) > 0, lambda: loop(x), lambda: ll.switch(1, [lambda: x, lambda: -x]))
        called = ll.function(lambda q: ll.astype(q, "float16"))(x)
        parts = ll.concat([x[::-1, 1:], x[:1, :1]], axis=0)
        return last, rows, chosen, called, parts, ll.where(x > 0, x, float("nan")), ll.recompute_grad(loop)(x)

    x = ll.constant([[1.0, 2.0], [3.0, 4.0]])
    with ll.GradientTape() as tape:
        tape.watch(x)
        ll.sum(ll.function(f)(x)[2])
    return show(ll.function(f).get_concrete_function(x).graph, literals="full")


def of_a_case(case: Case) -> str:
    """The graph of an op's case; empty where text cannot hold its parameters."""
    tensors = [ll.constant(array) for array in case.arrays(case.accepted[0])]
    with Tracer("case") as tracer:
        result = case.call(*[tracer.add_input(x.spec) for x in tensors])
        graph = tracer.finish(result if isinstance(result, tuple) else (result,))
    text = show(graph, literals="full")
    try:
        verify(parse(text))
    except GraphError as error:
        assert "stands for a Python object" in str(error), text  # noqa: PT017  # others are read
        return ""
    return text


@functools.cache
def texts() -> list[str]:
    """One of each op, in a quick run of some; a third as often the one with all control flow."""
    one_of_each = list({case.op: case for case in CASES}.values())
    found = [text for text in map(of_a_case, one_of_each[:: 1 if N > 100 else 12]) if text]
    return found + [branches_and_loops()] * (len(found) // 3)


def lines_changed(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i : i + 1] = rng.choice([[], [lines[i]] * 2, [lines[j]], [lines[j], lines[i]]])
    return "\n".join(lines)


def words_changed(rng: random.Random, text: str) -> str:
    words = WORD.findall(text)
    i, j = rng.randrange(len(words)), rng.randrange(len(words))
    words[i : i + 1] = rng.choice(
        [[], [words[i]] * 2, [words[j]], [rng.choice(TROUBLE)], [words[i], rng.choice(TROUBLE)]]
    )
    return "".join(words)


def parameter_changed(rng: random.Random, text: str) -> str:
    places = list(re.finditer(r"=([^=]+?)(?=, \w+=|\}|\n)", text))
    if not places:
        return words_changed(rng, text)
    place, other = rng.choice(places), rng.choice(places)
    return text[: place.start(1)] + rng.choice([other[1], rng.choice(TROUBLE)]) + text[place.end(1) :]


def characters_changed(rng: random.Random, text: str) -> str:
    i = rng.randrange(len(text))
    return text[:i] + rng.choice(["", text[i] * 2, chr(rng.randrange(32, 127)), "é"]) + text[i + rng.randrange(3) :]


CHANGES: tuple[Callable[[random.Random, str], str], ...] = (
    lines_changed,
    words_changed,
    words_changed,
    parameter_changed,
    parameter_changed,
    characters_changed,
)


def mutated(rng: random.Random) -> str:
    text = rng.choice(texts())
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        text = rng.choice(CHANGES)(rng, text) or "graph"
    return text


def outcome(text: str) -> str:
    """Empty for a good graph, else the message of the error; any other error is raised."""
    try:
        verify(parse(text))
    except GraphError as error:
        return error.bare
    return ""


def test_changed_texts_are_read_or_refused() -> None:
    rng = random.Random(20)
    outcomes: dict[str, int] = {"good": 0, "refused": 0}
    foreign: dict[str, str] = {}
    for _ in range(N):
        text = mutated(rng)
        try:
            message = outcome(text)
        except Exception as error:  # noqa: BLE001  that there is none is what is tested
            foreign.setdefault(f"{type(error).__name__}: {error}"[:200], text[:3000])
            continue
        outcomes["refused" if message else "good"] += 1
        assert not message or re.match(r"line \d+|graph |no graph|two graphs", message), message
    assert not foreign, "\n\n".join([f"{error}\n{text}" for error, text in foreign.items()])
    assert min(outcomes.values()) > N // 20, outcomes
