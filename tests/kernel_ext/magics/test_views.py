"""`%graph`, `%trace_cache`, `%tape`, `%devices`, `%stage`: what they show, and what they say when there is nothing."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])")
    return run


@pytest.fixture
def staged(notebook):
    notebook("%%stage -q double\ny = x + x\nz = y * 2")
    return notebook


def test_graph_shows_the_last_staged_cell_or_the_one_named(staged):
    assert "Graph of double" in repr(staged("%graph").value)
    assert "Graph of double" in repr(staged("%graph double --which traced").value)
    assert "Graph of double" in repr(staged("g = %graph double --trace 1\ng").value)


def test_a_trace_by_its_number(staged):
    staged("x = ll.ones([3])")
    staged("double()")
    assert "trace #1 of 2" in repr(staged("%graph double --trace 1").value)
    assert "trace #2 of 2" in repr(staged("%graph double --trace 2").value)
    assert "trace #2 of 2" in repr(staged("%graph double").value)
    assert "trace #2 of 2" in repr(staged("%graph double --trace -1").value)
    assert "trace #1 of 2" in repr(staged("%graph double --trace -2").value)


def test_graph_takes_staged_functions_and_methods(staged):
    staged("class Net:\n    @ll.function\n    def call(self, t):\n        return t + 1\nnet = Net()\nnet.call(x)")
    assert "Graph of call" in repr(staged("%graph net.call").value)


def test_output_static_and_text(staged):
    view = staged("%graph double -o kept").value
    assert staged("kept").value is view
    assert type(staged("%graph double --static").value).__name__ == "Figure"
    plain = staged("%graph double --text").value
    assert repr(plain) == repr(plain.view)
    assert staged("%graph double ;").value is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%graph doubel", "nothing is called 'doubel' here; did you mean 'double'?"),
        ("%graph x", "'x' is a Tensor, not a staged function"),
        ("%graph double --which forward", "invalid choice: 'forward'"),
        ("%graph double --trace 5", "double has no trace #5; its traces: #1"),
        ("%graph double --trace -2", "double has no trace #-2; its traces: #1"),
        ("%graph double --trace 0", "double has no trace #0; its traces: #1"),
        ("%graph double.nothing", "has no 'nothing'"),
        ("%graph --whihc traced", "did you mean '--which'?"),
        ("%trace_cache x", "not a staged function"),
        ("%tape x", "'x' is a Tensor, not a tape"),
        ("%tape tpae", "nothing is called 'tpae' here"),
        ("%tape --why x", "expected 2 arguments"),
        ("%devices --nothing", "its flags are"),
        ("%stage nosuch", "nothing is called 'nosuch'"),
        ("%stage -g", "%stage: -g is for a cell; write %%stage -g on the first line of one"),
        ("%stage double --max-traces 2", "%stage: --max-traces is for a cell"),
        ("%devices nosuch", "unrecognized arguments: nosuch; it takes no NAME"),
    ],
)
def test_usage_errors_are_one_line(staged, line, words):
    ran = staged(line, fails=True)
    assert ran.err.startswith("UsageError: ")
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.out + ran.err


def test_trace_cache(staged):
    assert "Trace cache of double" in repr(staged("%trace_cache double").value)
    assert repr(staged("%trace_cache").value).startswith("Trace cache")
    staged("x = ll.constant([1.0])\n")
    staged("double()")
    assert "`x`" in repr(staged("%trace_cache double --why").value)
    staged("%trace_cache double --clear ;")
    assert staged("len(double.trace_cache)").value == 0


def test_what_a_tape_saves(notebook):
    notebook("x = ll.ones((4, 8))\nwith ll.GradientTape() as tape:\n    tape.watch(x)\n    y = ll.tanh(x) * 2.0")
    said = repr(notebook("%tape --saved").value)
    assert "1 tensor, 128 B" in said
    assert "0 tanh" in said
    assert "svg" in notebook("%tape --saved").value.html
    notebook("tape.gradient(y, x)")
    assert "keeps no tensor alive" in repr(notebook("%tape --saved --text").value)


def test_tape(notebook):
    notebook("with ll.GradientTape(persistent=True) as first:\n    first.watch(x)\n    y = x * x")
    assert "Gradient tape" in repr(notebook("%tape").value)
    notebook("with ll.GradientTape() as second:\n    second.watch(x)\n    y = x * x\n    y = y + 1")
    assert "2 entries" in repr(notebook("%tape").value)
    assert "1 entry" in repr(notebook("%tape first").value)


def test_why_a_gradient_is_none(notebook):
    notebook("with ll.GradientTape(persistent=True) as tape:\n    tape.watch(x)\n    y = ll.stop_gradient(x) * 2.0")
    said = repr(notebook("%tape --why y x").value)
    assert "`y` has no gradient for `x`: it ends at stop_gradient" in said
    assert "In[" in said
    assert "Fix: y = x * 2.0" in said
    assert repr(notebook("%tape tape --why y x").value) == said
    notebook("%tape --why y x -o kept ;")
    assert notebook("kept.view.cause").value == "stop_gradient"
    ran = notebook("%tape --why ll x", fails=True)
    assert (
        ran.err == "UsageError: %tape --why: explain.why_none: the target must be a tensor or a variable, got module\n"
    )


@pytest.mark.slow  # looks through all objects of the process
def test_devices(notebook):
    assert "CPU:0" in repr(notebook("%devices").value)


def test_nothing_to_show(notebook):
    assert "No function is staged yet" in repr(notebook("%graph").value)
    assert "No function is staged yet" in repr(notebook("%trace_cache --why").value)
    assert "No tape is here yet" in repr(notebook("%tape").value)
    assert "No cell is staged yet" in repr(notebook("%stage").value)


def test_stage_lists_and_shows(staged):
    staged("%%stage -q\nq = x * 3")
    listed = repr(staged("%stage").value)
    assert listed.splitlines()[0].split() == ["name", "lines", "traces", "hits"]
    assert "double" in listed
    assert "cell_" in listed
    shown = staged("%stage double -a plan").value
    assert (shown.ran, shown.outputs) == (False, {})
    text = str(shown)
    assert text.startswith("double: trace #1, the newest of 1 (used ")
    assert "Graph of double" in text
    assert "plan  v" in text or "loops  table 1: " in text


def test_several_functions_and_no_name(notebook):
    notebook("f = ll.function(lambda t: t)\ng = ll.function(lambda t: t)")
    assert "which function? write one of f, g" in notebook("%graph", fails=True).err


# --- with other magics


def test_under_time(notebook):
    ran = notebook("%%time\n%%stage\ny = x + 1\ny")
    assert "Wall time" in ran.out
    assert ran.value.numpy()[0, 0] == 2.0
    assert "staged" in ran.text


def test_under_capture(notebook):
    ran = notebook("%%capture kept\n%%stage\ny = x + 1\nprint('traced')")
    assert (ran.out, ran.shown) == ("", [])
    assert notebook("kept.stdout").value == "traced\n"
    assert len(notebook("kept.outputs").value) == 1


def test_under_timeit_the_cell_is_shown_once(notebook):
    ran = notebook("%%timeit -n 5 -r 2\n%%stage step\ny = x + 1")
    assert "per loop" in ran.out
    assert len(ran.shown) == 1
    assert notebook("step.trace_count").value == 1


def test_a_terminal_sees_plain_text_alone(shell, notebook):
    ran = notebook("%%stage\ny = x + 1")
    assert "application/vnd.jupyter.widget-view+json" not in ran.shown[0].data
    assert "  2 ● staged" in ran.text
