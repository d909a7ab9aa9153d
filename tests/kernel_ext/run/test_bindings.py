"""Names that `%%stage NAME` and `-o NAME` may not take."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([1.0, 2.0])")
    return run


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x", "the cell reads 'x'"),
        ("y", "the cell assigns 'y'"),
        ("ll", "'ll' is a module here"),
        ("print", "'print' is a builtin"),
        ("-o x", "the cell reads 'x'"),
        ("-o y", "the cell assigns 'y'"),
        ("-o ll", "'ll' is a module here"),
        ("-o sum", "'sum' is a builtin"),
        ("step -o step", "'step' is the staged cell itself"),
    ],
)
def test_a_name_that_would_be_replaced(notebook, line, words):
    before = notebook("sorted(n for n in dir() if n[0] != '_')").value
    ran = notebook(f"%%stage {line}\ny = x * 2", fails=True)
    assert ran.err.startswith("UsageError: %%stage ")
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert ("keeps the record of this run" in ran.err) == ("-o" in line)
    assert notebook("sorted(n for n in dir() if n[0] != '_')").value == before
    assert notebook("type(x).__name__").value == "Tensor"


def test_a_name_that_a_helper_reads(notebook):
    notebook("def helper(t):\n    return t + x")
    assert "the cell reads 'x'" in notebook("%%stage x\ny = helper(2)", fails=True).err


def test_a_staged_cell_and_a_record_are_bound_anew(notebook):
    notebook("kept = 4")
    for body in ("y = x * 2", "y = x * 3"):
        notebook(f"%%stage step -o kept\n{body}")
        assert notebook("type(step).__name__, type(kept).__name__").value == ("StagedCell", "StageResult")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("3", "'step' is 3 here"),
        ("[1, 2]", "'step' is a list of 2 here"),
        ("ll.function(lambda t: t)", "'step' is "),
        ("None", "'step' is None here"),
    ],
)
def test_a_name_that_means_something_else_is_asked_for_first(notebook, value, words):
    notebook(f"step = {value}\nkept = step")
    ran = notebook("%%stage step\ny = x * 2", fails=True)
    assert ran.err.startswith("UsageError: %%stage step: ")
    assert words in ran.err
    assert "write another NAME, or first `del step`" in ran.err
    assert notebook("step is kept, 'y' in dir()").value == (True, False)
    notebook("del step")
    notebook("%%stage step\ny = x * 2")
    assert notebook("step().outputs['y'].numpy().tolist()").value == [2.0, 4.0]
