"""What a trace cannot make again is refused at the statement that makes it."""

from __future__ import annotations

import pytest

import limelight as ll


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


def test_numbers_of_a_cell_that_is_called_in_a_trace_or_a_batch_are_tensors(notebook, shell):
    notebook("import limelight as ll\nx = ll.constant(2.0)")
    notebook("%%stage step --autograph -q\nn, best = 0, 0.0\nif x > 1:\n    n, best = 1, x\nn")
    step = shell.user_ns["step"]
    traced = ll.function(lambda x: (step(x).outputs["best"] + 1.0, step(x).result))
    assert [x.item() for x in (*traced(ll.constant(0.5)), *traced(ll.constant(3.0)))] == [1.0, 0, 4.0, 1]
    batched = ll.vectorize(lambda x: (step(x).outputs["best"], step(x).result))(ll.constant([0.5, 3.0]))
    assert [x.tolist() for x in batched] == [[0.0, 3.0], [0, 1]]
    assert type(step(ll.constant(0.5)).outputs["best"]) is float
