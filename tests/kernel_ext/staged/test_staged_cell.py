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


def test_numbers_that_a_tensor_decides_are_pythons_and_their_limits_told(notebook):
    notebook("t = ll.constant(4.0)")
    head = "%%stage -q --autograph\nn, f, p = 0, 1.0, 1\nwhile t > 1:\n    t = t - 1.0\n    n += 1\n"
    assert notebook(head + "n").warned == []
    notebook("t = ll.constant(4.0)")
    told = notebook(head + "    f = f / 3\n    p *= 5\n[n]").warned
    assert ["`f`" in said or "`p`" in said for said in told] == [True, True]
    assert any("In[6]:2" in said and "in float32, which has 7 digits" in said for said in told)
    assert any("as an int32, which wraps around beyond 2147483647" in said for said in told)
    assert notebook("type(n), n, type(f), p").value == (int, 3, float, 125)


def test_a_call_pays_for_the_keys_that_the_cell_reads(notebook):
    notebook("class Loud:\n    def __eq__(self, other):\n        raise AssertionError('compared')\n    __hash__ = None")
    notebook("d = {i: Loud() if i else 2.0 for i in range(200)}")
    notebook("%%stage step -q\ny = x * d[0]")
    notebook("d[1], d[200] = Loud(), 3.0")
    assert notebook("step()\nstep.trace_count").value == 1
    notebook("d[0] = 4.0")
    assert notebook("(float(step().outputs['y'][0]), step.trace_count)").value == (4.0, 2)
