"""The magics of a module and a function that were loaded from a file."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("%load_ext limelight\nimport limelight as ll\nx = ll.ones((2, 3))\nnet = ll.nn.Sequential(ll.nn.Dense(2))")
    run("L = ll.load(ll.save(net, 'net.ll', ll.TensorSpec((None, 3))))\ny = L(x)")
    run("f = ll.load(ll.save(lambda x: x * 2.0, 'f.ll', [ll.TensorSpec(()), ll.TensorSpec((None,))]))")
    return run


@pytest.mark.parametrize("name", ["L", "L.call"])
def test_its_traces_are_shown(notebook, name):
    assert "matmul" in str(notebook(f"%graph {name} --text").value)
    shown = str(notebook(f"%trace_cache {name} --text").value)
    assert "1 trace, 1 hit" in shown
    assert "read from a file" in shown
    assert "matmul" in str(notebook(f"%dashboard {name} --text").value)


@pytest.mark.parametrize("name", ["L", "L.call"])
def test_its_calls_are_stepped_through_and_measured(notebook, name):
    steps = notebook(f"%steps {name}(x) --text").text or str(notebook(f"%steps {name}(x) --text").value)
    assert "matmul(" in steps
    assert "are finite" in str(notebook(f"%explain --nan {name}(x)").value)
    assert "agrees with central differences" in str(notebook(f"%tape --check {name}(x)").value)
    assert "all finite" in " ".join(str(notebook(f"%graph {name}(x) --overlay nan --text").value).split())


def test_the_views_take_it_in_python(notebook):
    notebook("views = [ll.widgets.graph(L), ll.widgets.trace_cache(L), ll.widgets.dashboard(L)]")
    for text in notebook("[str(view) for view in views]").value:
        assert "Sequential" in text
    notebook("x = ll.widgets.close_dashboard()")


def test_a_function_has_several_traces(notebook):
    assert "trace #1 of 2" in str(notebook("%graph f --trace 1 --text").value)
    assert "rank 0 -> 1" in str(notebook("%trace_cache f --diff 1 2 --text").value)
    assert "no trace #3" in str(notebook("%graph f --trace 3", fails=True).error)


@pytest.mark.parametrize(
    "line", ["%explain L", "%explain f", "%trace_cache L --why", "%trace_cache L --clear", "%trace_cache --would L(x)"]
)
def test_questions_about_tracing_are_refused_with_what_can_be_asked(notebook, line):
    said = str(notebook(line, fails=True).error)
    assert "was loaded from a file, with traces and without Python code" in said
    assert "%graph and %trace_cache NAME show the traces" in said
    assert "1 trace" in str(notebook("%trace_cache L --text").value)
