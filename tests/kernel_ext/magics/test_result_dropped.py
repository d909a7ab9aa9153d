"""Line magics show themselves wherever they stand in a cell, once."""

from __future__ import annotations

import pytest

LINES = [
    "%trace_cache net",
    "%trace_cache net --why",
    "%trace_cache --would net(x=x)",
    "%explain net",
    "%devices",
    "%graph net",
    "%tape",
    "%stage",
]


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([1.0, 2.0])")
    run("%%stage -q net\ny = x * 2")
    return run


@pytest.mark.slow  # looks through all objects of the process
@pytest.mark.parametrize("line", LINES)
def test_above_the_last_line_it_is_displayed(notebook, line):
    expected = repr(notebook(line).value)
    ran = notebook(f"{line}\nafter = 1")
    assert ran.text.splitlines()[0] == expected.splitlines()[0]
    assert len(ran.shown) == 1


@pytest.mark.parametrize("line", LINES)
def test_as_the_last_line_it_is_the_value_and_not_displayed_twice(notebook, line):
    ran = notebook(f"before = 1\n{line}")
    assert ran.value is not None
    assert ran.shown == []
    assert ran.out.count("Out[") == 1


def test_in_a_loop_it_is_displayed_each_time(notebook):
    assert len(notebook("for _ in range(2):\n    %trace_cache net").shown) == 2


@pytest.mark.parametrize("cell", ["kept = %trace_cache net\nafter = 1", "%trace_cache net;\nafter = 1"])
def test_what_is_assigned_or_silenced_is_not_displayed(notebook, cell):
    assert notebook(cell).shown == []


def test_timing_a_line_does_not_display_it(notebook):
    assert notebook("%timeit -n3 -r1 %trace_cache net").shown == []
