"""`%%stage --strict` refuses a second trace and what Python does while tracing alone."""

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


@pytest.mark.parametrize("cell", ["y = x * config.rate", "y = net(x)", "for k in range(config.n):\n    y = x * k"])
def test_strict_accepts_what_is_compared_on_each_call(notebook, cell):
    notebook(NET + "\nconfig.n = 2")
    notebook(f"%%stage --strict\n{cell}")
    notebook("config.n, config.rate, net.scale = 3, 0.25, 4.0")
    said = flat(notebook(f"%%stage --strict\n{cell}", fails=True).out)
    assert "has one trace (--strict), and the call" in said
    assert any(f"argument `{path}`" in said for path in ("config.rate", "config.n", "net.scale"))


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
