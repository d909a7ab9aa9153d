"""What a plain script ends with: the user's own line, and none of the library's, staged or not."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import limelight as ll

BEGIN = """
import functools, pdb, sys, threading
import limelight as ll

x = ll.ones((2, 3))
kept = []

@ll.function
def two(a, b):
    kept.append(a * 2)
    return a + b

two(x, x)
"""


def run(tmp_path: Path, line: str, begin: str = BEGIN, given: str = "") -> str:
    """What Python prints when a script that has `line` in a function ends by an error."""
    script = tmp_path / "script.py"
    script.write_text(f"{begin}\ndef main():\n{textwrap.indent(line, '    ')}\n\nmain()\n")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, input=given)
    return ran.stderr + ran.stdout


@pytest.mark.slow  # starts another Python
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x @ x", "ShapeError: matmul"),
        ("kept[0] + 1", "LeakedTensorError: a symbolic tensor leaked out of the function 'two'"),
        ("two(x)", "TypeError: two() missing 1 required positional argument: 'b'"),
    ],
)
def test_the_users_line_is_the_last(tmp_path: Path, line: str, message: str) -> None:
    said = run(tmp_path, line)
    *frames, last = [part.strip() for part in said.splitlines() if set(part) - set(" ~^")]
    assert last.rpartition("limelight.errors.")[2].startswith(message)
    assert frames[-1] == line
    assert set(re.findall(r'File "(.*?)"', said)) == {str(tmp_path / "script.py")}


@pytest.mark.slow  # starts another Python
def test_one_switch_shows_all(tmp_path: Path) -> None:
    said = run(tmp_path, "x @ x", BEGIN + "ll.config.show_library_frames()\n")
    assert "limelight/core/eager" in said.replace("\\", "/")
    assert "ShapeError: matmul" in said


@pytest.mark.slow  # starts another Python
def test_threads_and_the_debugger_after_death(tmp_path: Path) -> None:
    line = (
        "thread = threading.Thread(target=lambda: x @ x)\n"
        "thread.start(); thread.join()\n"
        "chained = sys.excepthook\n"
        "sys.excepthook = lambda *error: (chained(*error), pdb.pm())\n"
        "mine = 12345\n"
        "x @ x"
    )
    said = run(tmp_path, line, given="p mine\nq\n")
    assert said.count("ShapeError: matmul") == 2
    assert "limelight/core/eager" not in said.replace("\\", "/")
    assert "(Pdb) 12345" in said


@pytest.mark.slow  # starts another Python
def test_other_errors_and_other_hooks_are_left_alone() -> None:
    program = (
        "import sys\n"
        "heard = []\n"
        "sys.excepthook = lambda kind, error, tb: heard.append((kind, tb is error.__traceback__))\n"
        "import contextlib, limelight as ll\n"
        "@contextlib.contextmanager\n"
        "def scope():\n"
        "    yield\n"
        "@scope()\n"
        "def fails():\n"
        "    raise TypeError\n"
        "for line in ('fails()', 'll.ones(3) @ ll.ones(4)'):\n"
        "    try:\n"
        "        exec(line)\n"
        "    except Exception as error:\n"
        "        depth = len(list(__import__('traceback').walk_tb(error.__traceback__)))\n"
        "        sys.excepthook(type(error), error, error.__traceback__)\n"
        "        left = len(list(__import__('traceback').walk_tb(error.__traceback__)))\n"
        "        print(type(error).__name__, depth, left)\n"
        "print(len(heard), all(same for _, same in heard))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    other, ours, hooks = ran.stdout.splitlines()
    assert other == "TypeError 4 4"  # one of them contextlib's, which limelight hides in its own
    assert ours.startswith("ShapeError")
    assert ours.endswith(" 2")
    assert hooks == "2 True"


def test_python_raises_for_the_users_line_in_converted_code() -> None:
    """Where an operator of converted code does what Python would, its frame is not a fault of the library's."""

    def wrong_arguments(x: ll.Tensor) -> ll.Tensor:
        def inner(a: ll.Tensor, b: ll.Tensor) -> ll.Tensor:
            return a + b

        return inner(x)  # type: ignore[call-arg]  # the mistake

    def empty_list(x: ll.Tensor) -> ll.Tensor:
        found: list[ll.Tensor] = []
        return found.pop() + x

    def no_value(x: ll.Tensor) -> ll.Tensor:
        if x.ndim > 3:
            y = x
        return y

    def not_iterable(x: ll.Tensor) -> ll.Tensor:
        for _ in 5:  # type: ignore[attr-defined]  # the mistake
            x = x + 1
        return x

    def does_not_hold(x: ll.Tensor) -> ll.Tensor:
        assert x.ndim > 3, "too few axes"
        return x

    mistakes = (wrong_arguments, empty_list, no_value, not_iterable, does_not_hold)
    kinds = (TypeError, IndexError, UnboundLocalError, TypeError, AssertionError)
    for function, kind in zip(mistakes, kinds, strict=True):
        with pytest.raises(kind) as caught:
            ll.function(function, autograph=True)(ll.ones(()))  # of a plain function
        assert {str(frame.path) for frame in caught.traceback} == {__file__}, function.__name__


@pytest.mark.slow  # starts another Python
@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("ll.nn.Sequential(ll.nn.Dense(3))(x, train=True)", "t is called training: write training=..."),
        ("ll.nn.MultiHeadAttention(1)(ll.ones((1, 2, 3)), is_causal=True)", "t is called causal: write causal=..."),
        ("Own()(x, 1)", "TypeError: Own.call() takes 2 positional arguments but 3 were given"),
    ],
)
def test_a_layers_call_that_does_not_fit_shows_the_users_line_and_what_to_write(tmp_path, line, hint) -> None:
    own = "class Own(ll.Module):\n    def call(self, x):\n        return x\n"
    said = run(tmp_path, line, BEGIN + own)
    assert hint in said.replace("\n", " ")
    assert set(re.findall(r'File "(.*?)"', said)) == {str(tmp_path / "script.py")}
