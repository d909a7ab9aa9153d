"""`%%stage --strict` refuses what becomes a constant, and prints code that it accepts."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])")
    run("class Config:\n    rate = 0.5\nconfig = Config()")
    return run


def flat(text):
    return " ".join(text.split())


NET = "class Net:\n    scale = 2.0\n    def __call__(self, t):\n        return t * self.scale\nnet = Net()"


@pytest.mark.parametrize(
    ("cell", "fix", "mended"),
    [
        ("y = x * config.rate", "rate = config.rate", "y = x * rate"),
        ("y = x * config.rate", "config.rate = ll.Variable(0.5)", "y = x * config.rate"),
        ("y = net(x)", "self.scale = ll.Variable(2.0)", "y = net(x)"),
        ("for k in range(config.n):\n    y = x * k", "n = config.n", "for k in range(n):\n    y = x * k"),
    ],
)
def test_strict_prints_code_that_it_accepts(notebook, cell, fix, mended):
    notebook(NET + "\nconfig.n = 2")
    said = flat(notebook(f"%%stage --strict\n{cell}", fails=True).out)
    assert "and a constant of the trace" in said
    assert f"`{fix}`" in said
    notebook(fix.replace("self.", "net."))
    notebook(f"%%stage --strict\n{mended}")
    assert notebook("y.shape").value == (1, 2)


def test_strict_says_what_to_do_with_an_attribute_that_no_variable_can_be(notebook):
    notebook("class Net:\n    n = 2\n    def __call__(self, t):\n        return ll.concat([t] * self.n)\nnet = Net()")
    said = flat(notebook("%%stage --strict\ny = net(x)", fails=True).out)
    assert "`self.n` (attribute) is 2" in said
    assert "Fix: give the method an argument, `n`, that the cell hands it" in said


def test_strict_accepts_what_never_runs(notebook):
    notebook("debug = False")
    notebook("%%stage --strict\nif debug:\n    print('debugging')\ndef report():\n    print('report')\ny = x * 2")
    notebook("debug = True")
    said = notebook("%%stage --strict\nif debug:\n    print('debugging')\ny = x * 2", fails=True).out
    assert "- line 3: `print(...)`" in said


def test_strict_counts_and_times_as_without_it(notebook):
    for name, flags in {"a": "", "b": "--strict", "c": '--spec "x=ll.TensorSpec([None, 2])"'}.items():
        notebook(f"%%stage {name} {flags}\n(x * 2).sum()")
        assert notebook(f"{name}.trace_cache[0].hits").value == 0, name
    text = notebook("%%stage --strict d\n(x * 3).sum()").text
    assert "cache hit" not in text
    assert "cache hit on trace #1 (used 2 times)" in notebook("%%stage --strict d\n(x * 3).sum()").text
