"""The first run of a cell does what the plain cell does, once, also where it makes weights or is traced again."""

from __future__ import annotations

import numpy as np
import pytest

MODEL = "%load_ext limelight\nimport numpy as np, random, io\nnet, x = ll.nn.Dense(2), ll.ones((1, 3))"


@pytest.fixture
def notebook(run):
    run("import limelight as ll")
    return run


def test_a_first_run_that_makes_weights_prints_and_draws_once(notebook, shell):
    notebook(f"{MODEL}\nnp.random.seed(0); random.seed(0); seen = []")
    draws = "noise, r = np.random.rand(), random.random()\nseen.append(noise)"
    cell = f"%%stage -q step\nprint('epoch')\n{draws}\ny = net(x) * noise"
    ran = notebook(cell)
    first, second = np.random.RandomState(0).rand(2)
    assert ran.out.count("epoch") == 1
    assert shell.user_ns["noise"] == first
    assert np.allclose(shell.user_ns["y"].numpy(), (shell.user_ns["net"](shell.user_ns["x"]) * first).numpy())
    assert any("`print(...)` prints once for each trace" in one for one in ran.warned)
    assert not any("twice" in one for one in ran.warned)
    ran = notebook(cell)  # this one makes no weights, and so its trace serves later runs
    assert ran.out.count("epoch") == 1
    assert shell.user_ns["noise"] == second
    assert shell.user_ns["seen"] == [first, second]
    assert "created variables beside effects of Python's" in shell.user_ns["step"].trace_cache[-1].reason
    assert "epoch" not in notebook(cell).out


def test_variables_made_at_each_run_are_refused_at_the_first_as_without_effects(notebook):
    notebook(MODEL)
    ran = notebook("%%stage -q\nprint('a')\nv = ll.Variable(1.0)\ny = x * v", fails=True)
    assert "each time" in str(ran.error)


def test_a_model_that_no_input_leads_to_is_told_to_have_had_its_effects_twice(notebook):
    notebook(f"{MODEL}\nimport functools\n@functools.lru_cache\ndef model(): return ll.nn.Dense(2)\nmodel()")
    ran = notebook("%%stage -q\nprint('a')\ny = model()(x)")
    assert ran.out.count("a") == 2
    assert any("`print(...)` was done twice" in one for one in ran.warned)


def test_what_is_done_before_the_value_of_a_lent_tensor_is_asked_is_told_to_be_done_twice(notebook, shell):
    notebook("%load_ext limelight\nimport types\ncfg, x = types.SimpleNamespace(t=ll.constant(2.0)), ll.ones(2)")
    ran = notebook("%%stage -q\nprint('a')\nk = cfg.t.item()\ny = x * k")
    assert shell.user_ns["k"] == 2.0
    assert any("`print(...)` was done twice. Instead: read that value in a cell above" in one for one in ran.warned)


def test_a_trace_that_changes_what_it_reads_is_followed_by_another(notebook, shell):
    notebook("%load_ext limelight\nfrom collections import ChainMap\nx = ll.ones(2)")
    for _ in range(2):
        notebook("cfg = ChainMap({}, {'n': 2})")
        notebook("%%stage -q step\nz = x * cfg['n']\ncfg['n'] = cfg['n'] + 1")
        assert shell.user_ns["cfg"]["n"] == 3
    assert "changed what it reads" in shell.user_ns["step"].trace_cache[-1].reason
