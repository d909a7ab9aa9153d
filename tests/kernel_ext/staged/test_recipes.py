"""What a trace cannot make again is refused at the statement that makes it."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.ones(2)")
    return run


@pytest.mark.parametrize(
    ("statement", "name"),
    [("it = iter([x, x])", "it"), ("pairs = [zip([x], [x])]", "pairs[0]"), ("def f(): return 1\nq = map(f, [x])", "q")],
)
def test_an_iterator_that_the_cell_makes_is_refused_at_its_statement(notebook, statement, name):
    ran = notebook(f"%%stage\ny = x * 2.0\n{statement}\nz = y", fails=True)
    last = statement.splitlines()[-1]
    assert f"`{name}` is an iterator" in str(ran.error)
    assert f"line {3 + statement.count(chr(10))}: {last})" in str(ran.error)
