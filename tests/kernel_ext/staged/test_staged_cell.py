"""What a call that finds its trace costs, and what a cell says that can find none."""

from __future__ import annotations

import sys
import types

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nclass Cfg:\n    pass\ncfg = Cfg()\ncfg.n, cfg.step, x = 0, 0, ll.ones(2)")
    return run


def test_a_hit_with_twenty_inputs_calls_few_python_functions(notebook):
    names = [f"x{i}" for i in range(20)]
    notebook("\n".join(f"{name} = ll.ones(4)" for name in names))
    notebook("%%stage step -q\ny = " + " + ".join(names))
    step = notebook("step").value
    for _ in range(5):
        step.call({})
    called = []

    def count(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        step.call({})
    finally:
        sys.setprofile(None)
    assert len(called) <= 40, called  # up to 195 where the notebook is looked at anew


def test_an_attribute_that_each_run_changes_is_warned_of_once(notebook):
    cell = "%%stage step -q\ny = x * 2.0\ncfg.n += 1\ncfg.step = cfg.step + 1 if flag else cfg.step"
    notebook("flag = False")
    first = notebook(cell).warned
    assert len(first) == 1
    assert "In[4]:3: `cfg.n` is a plain number that each run reads and changes, so each run traces again" in first[0]
    assert "`cfg.n = ll.Variable(0)` in a cell above, and here write `cfg.n.assign_add(...)`" in first[0]
    assert notebook(cell).warned == []
    notebook("flag = True")
    assert ["cfg.step" in said for said in notebook(cell).warned] == [True]
    assert notebook("cfg.n, cfg.step, step.trace_count").value == (3, 1, 3)


def test_an_attribute_that_is_set_to_the_same_is_not_warned_of(notebook):
    cell = "%%stage step -q\ny = x * cfg.n\ncfg.n = 7"
    assert [notebook(cell).warned for _ in range(3)] == [[], [], []]


def test_one_that_a_method_changes_is_warned_of_at_the_second_trace(notebook):
    notebook("def tick(self):\n    self.n += 1\nCfg.tick = tick")
    cell = "%%stage step -q\ny = x * 2.0\ncfg.tick()"
    told = [notebook(cell).warned for _ in range(3)]
    assert [len(said) for said in told] == [0, 1, 0]
