"""Tracebacks as a notebook's kernel shows them: each line beside its own number, and the user's frames alone."""

from __future__ import annotations

import re

import pytest
from ipykernel.compiler import XCachingCompiler

from limelight_kernel.tracebacks import user_frames


@pytest.fixture
def notebook(run, shell):
    """Cells have the file names that a kernel gives them, whose source IPython looks up by the code's first line."""
    shell.compile = XCachingCompiler()
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.ones((2, 3))")
    return run


def numbered(ran):
    """The lines that a traceback shows, by number."""
    return re.findall(r"^(?:-+> | +)(\d+) (.+)$", ran.out, flags=re.MULTILINE)


def arrows(ran):
    """The lines with an arrow."""
    return [text.strip() for text in re.findall(r"^-+> \d+ (.+)$", ran.out, flags=re.MULTILINE)]


STAGED = "@ll.function(autograph=True)\n"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%%stage c --autograph\nq = x * 2\nk = q @ q", ["k = q @ q"]),
        ("%%stage c --autograph\n\n# why\nq = x * 2\nk = q @ q", ["k = q @ q"]),
        (
            "%%stage c --autograph\n\nk = x\nfor i in x:\n    q = i\n    k = x @ x",
            ["for i in x:", "k = x @ x"],
        ),
        (
            f"# first\n{STAGED}def f(x):\n    # why\n    q = x * 2\n    if x.sum() > 0:\n        q = q @ q\n"
            "    return q\n\nf(x)",
            ["f(x)", "if x.sum() > 0:", "q = q @ q"],
        ),
        (
            f"{STAGED}def f(x):\n    def g(y):\n        if y.sum() > 0:\n            y = y @ y\n        return y\n\n"
            "    return g(x)\nf(x)",
            ["f(x)", "return g(x)", "if y.sum() > 0:", "y = y @ y"],
        ),
    ],
)
def test_converted_code_is_shown_at_its_own_lines(notebook, cell, expected):
    ran = notebook(cell, fails=True)
    assert type(ran.error).__name__ == "ShapeError"
    assert arrows(ran) == expected
    lines = [line.strip().removeprefix("# ") for line in cell.splitlines()]
    for number, text in numbered(ran):
        assert text.strip().removeprefix("# ") == lines[int(number) - 1]


@pytest.mark.slow  # formats long tracebacks
@pytest.mark.parametrize(
    ("cell", "kind", "expected"),
    [
        ("@ll.function\ndef f(x):\n    return x * nope\nf(x)", NameError, ["f(x)", "return x * nope"]),
        ("@ll.function\ndef f(x):\n    return ll.softmax(x)\nf(x)", AttributeError, ["f(x)", "return ll.softmax(x)"]),
        ("%%stage c\ny = ll.softmax(x)", AttributeError, ["y = ll.softmax(x)"]),
        (f"{STAGED}def f(x):\n    assert x.sum() < 0, 'no'\n    return x\nf(x)", AssertionError, ["f(x)"]),
        ("@ll.function\ndef f(x):\n    return x\nf(y=2)", TypeError, ["f(y=2)"]),
    ],
)
def test_frames_of_the_library_are_hidden_whatever_is_raised(notebook, cell, kind, expected):
    ran = notebook(cell, fails=True)
    assert isinstance(ran.error, kind)
    assert arrows(ran) == expected
    assert "/limelight/" not in ran.out


def test_errors_that_limelight_has_no_part_in_are_shown_as_ever(notebook):
    assert arrows(notebook("z = 1\n1 / 0", fails=True)) == ["1 / 0"]
    ran = notebook("import ast\nast.parse('1 +')", fails=True)
    assert "ast.parse('1 +')" in ran.out, "of a syntax error at run time the frames are shown"
    assert "invalid syntax" in ran.out
    ran = notebook("y = = 1", fails=True)
    assert "invalid syntax" in ran.out
    assert "Traceback" not in ran.out


def test_a_frame_that_has_gone_on_is_shown_at_the_line_of_its_error():
    """As IPython shows code that is in no file: by the line that the frame itself is at."""
    code = "def f():\n    try:\n        1 / 0\n    finally:\n        str()\ntry:\n    f()\nfinally:\n    str()\n"
    try:
        exec(compile(code, "<a cell>", "exec"), {})
    except ZeroDivisionError as error:
        tb = user_frames(error.__traceback__.tb_next)
    assert [tb.tb_frame.f_lineno, tb.tb_next.tb_frame.f_lineno] == [tb.tb_lineno, tb.tb_next.tb_lineno] == [7, 3]
    assert [tb.tb_frame.f_code.co_name, tb.tb_next.tb_frame.f_code.co_name] == ["<module>", "f"]


def test_what_another_error_was_raised_from_has_no_frames_of_the_library_either(run):
    run("%load_ext limelight\nimport limelight as ll\nx = ll.ones([2, 3])")
    cell = "try:\n    x @ x\nexcept ValueError as e:\n    raise RuntimeError('could not load') from e"
    said = run(cell, fails=True).out
    assert "----> 2     x @ x" in said
    assert "running.py" not in said
    assert "direct cause" in said
    assert "----> 4     raise RuntimeError" in said


def test_a_call_of_a_module_without_an_argument_ends_at_the_users_line(notebook):
    notebook("class Masked(ll.Module):\n    def __call__(self, x, mask):\n        return x * mask")
    shown = notebook("masked = Masked()\nmasked(ll.ones(2))", fails=True)
    assert "missing 1 required positional argument: 'mask'" in shown.out
    assert "module.py" not in shown.out
