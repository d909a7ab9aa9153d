"""Containers and objects that a cell changes: the change is made at each run, and nothing of a trace is left behind."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])")
    return run


def value(run, expression):
    return run(expression).value


def test_a_history_that_grows_is_no_part_of_the_key(notebook):
    notebook("losses, log = [], {'loss': []}")
    for _ in range(3):
        notebook("%%stage step\nloss = (x * x).sum()\nlosses.append(loss)\nlog['loss'].append(loss)")
    assert value(notebook, "len(step.trace_cache), len(losses), len(log['loss'])") == (1, 3, 3)
    assert value(notebook, "all(a is b for a, b in zip(losses, log['loss'])), losses[-1] is loss") == (True, True)


def test_what_the_cell_reads_of_a_list_is(notebook):
    notebook("seen = []")
    for _ in range(2):
        notebook("%%stage step\nseen.append(x)\nn = len(seen)")
    assert value(notebook, "len(step.trace_cache), n") == (2, 2)


def test_an_error_in_the_trace_leaves_everything_as_it_was(notebook):
    notebook("class Box: pass\nbox = Box(); box.n = 1; kept = [x]; d = {'a': x}\nbefore = kept[0]")
    notebook(
        "%%stage -q\nkept[0] = x + 1\nkept.append(x * 2)\nd['b'] = x * 2\nbox.n = 2\nbox.t = x * 3\n1 / 0", fails=True
    )
    assert value(notebook, "kept[0] is before, len(kept), list(d), vars(box)") == (True, 1, ["a"], {"n": 1})


def test_calling_the_cell_changes_containers_as_running_it_does(notebook):
    notebook("d = {'w': x}")
    notebook("%%stage step\nd['w'] = d['w'] + 1.0")
    assert value(notebook, "step()[1], float(d['w'].numpy()[0, 0]) - float(x.numpy()[0, 0])") == (None, 2.0)


def test_the_gradients_of_a_run_do_not_keep_its_changes_from_the_notebook(notebook):
    notebook("import numpy as np\nd = {'a': np.ones((1, 2), 'float32')}")
    notebook("%%stage --grad\nd['b'] = x * d['a']\nd['b'].sum()")
    assert value(notebook, "sorted(d)") == ["a", "b"]
