"""A walker finds the same stack as a walk of its own, op after op."""

from __future__ import annotations

import gc
import json
import weakref

import numpy as np
import pytest

import limelight as ll
from limelight.staging.tracer import Tracer
from limelight.user_code import source_line


@pytest.fixture
def both():
    """Asks a walker and walks, on one line, and compares; returns what was found."""
    walker = source_line.Walker()

    def ask():
        found, walked = walker.stack(), source_line.user_stack()
        assert found[1:] == walked[1:]
        assert found[0].line == walked[0].line
        return [line.line for line in found]

    return ask


def inner(ask):
    return ask()


def middle(ask):
    first = inner(ask)
    return first, inner(ask)


def test_lines_and_callers_change(both):
    def outer():
        found = [middle(both)]
        found.append(middle(both))
        return [*found, middle(both)]

    found = [outer(), outer()]
    assert found[0] == found[1]
    assert found[0][0][0][2] + 1 == found[0][0][1][2]  # the two lines of `middle`
    assert found[0][0][0][3] + 1 == found[0][1][0][3]  # two lines of `outer`


def test_a_loop_that_calls_again_from_the_same_instruction(both):
    assert len({tuple(map(tuple, middle(both))) for _ in range(3)}) == 1


def test_the_same_caller_moves_on(both):
    first = both()
    second = both()
    assert first[1] + 1 == second[1]


def steps(ask):
    while True:
        yield ask()


def test_a_generator_that_is_resumed_from_elsewhere(both):
    running = steps(both)
    first = next(running)
    second = next(running)
    assert first[1] == second[1]
    assert first[2] + 1 == second[2]


def inner_of(walker):
    return walker.stack()


def asked_thrice(walker):
    return [inner_of(walker) for _ in range(3)]


async def awaited(walker):
    return asked_thrice(walker)


def test_a_line_has_one_stack_however_far_out_a_coroutine_runs_it():
    """As each cell of a notebook is run."""
    with pytest.raises(StopIteration) as ended:
        awaited(source_line.Walker()).send(None)
    first, second, third = ended.value.value
    assert second is third is first
    assert [line.function for line in first if line.function != "<listcomp>"][:3] == [
        "inner_of", "asked_thrice", "awaited",
    ]  # fmt: skip


def test_recursion(both):
    def down(n):
        return [both(), *(down(n - 1) if n else [])]

    assert {len(found) for found in down(12)} == {8}  # at most so many are kept


@pytest.mark.slow  # collects garbage
def test_a_trace_keeps_no_frame_alive_once_it_is_over():
    class Big:
        pass

    def body(tracer):
        ll.exp(tracer.add_input(ll.TensorSpec((2,))))

    def traced():
        big = Big()
        with Tracer("f") as tracer:
            body(tracer)
        return tracer, weakref.ref(big)

    tracer, big = traced()
    gc.collect()
    assert [line.function for line in tracer.nodes[0].stack[:2]] == ["body", "traced"]
    assert big() is None


@pytest.mark.parametrize(
    ("file", "installed"),
    [
        (np.__file__, True),
        (json.__file__, True),
        ("/home/somebody/.local/lib/python3.11/site-packages/package/module.py", True),
        ("/usr/lib/python3/dist-packages/package.py", True),
        (r"C:\Users\somebody\AppData\Roaming\Python\Python311\site-packages\package.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("/home/somebody/my-site-packages/program.py", False),
        (__file__, False),
    ],
)
def test_packages_are_installed_wherever_they_lie(file: str, installed: bool) -> None:
    assert source_line.is_installed(file) is installed


def test_a_name_without_a_file_is_looked_for_once(monkeypatch):
    asked = []
    search = source_line.linecache.updatecache
    monkeypatch.setattr(source_line.linecache, "updatecache", lambda *names: asked.append(names[0]) or search(*names))
    name = "made up without a file"
    assert [source_line.line_of(name, 1) for _ in range(3)] == ["", "", ""]
    assert asked == [name]
    monkeypatch.setitem(source_line.linecache.cache, name, (4, None, ["x\n"], name))  # as IPython does with a cell
    assert source_line.line_of(name, 1) == "x\n"
