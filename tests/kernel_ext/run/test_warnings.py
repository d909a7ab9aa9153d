"""A staged cell warns of what only its traces do: one line each, at the first run, with -q as well."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nimport numpy as np\nimport time, random\nx = ll.ones(2)\nverbose = False")
    return run


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("print('hello')", "`print(...)` prints once for each trace"),
        ("t = time.time()", "`time.time(...)` is read once for each trace"),
        ("n = np.random.normal(size=2)", "Instead: `ll.random.normal(2)`"),
        ("n = random.random()", "Instead: `ll.random.uniform(())`"),
        ("f = open('/dev/null').close()", "does input or output once for each trace"),
    ],
)
def test_effects_of_tracing_alone_are_warned_of(notebook, line, said):
    cell = f"%%stage -q\ny = x * 2\n{line}"
    (warned,) = notebook(cell).warned
    assert warned.startswith("In[3]:3: ")
    assert said.partition("(")[0] in warned
    assert "Instead: " in warned
    assert "\n" not in warned
    assert notebook(cell).warned == [], "once"


def test_lines_that_do_not_run_are_not_warned_of_until_they_do(notebook):
    cell = "%%stage -q\nif verbose:\n    print('x')\ny = x * 2"
    assert notebook(cell).warned == []
    notebook("verbose = True")
    assert len(notebook(cell).warned) == 1


def test_those_of_helpers_say_where(notebook):
    notebook("def helper(t):\n    print('inside')\n    return t + 1")
    (warned,) = notebook("%%stage -q\ny = helper(x)").warned
    assert "In[3] line 2" in warned
