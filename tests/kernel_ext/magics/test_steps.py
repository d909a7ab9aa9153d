"""`%steps` and `%%steps`."""

from __future__ import annotations

import pytest

SETUP = "%load_ext limelight\nimport limelight as ll\nx = ll.constant([1.0, 2.0])\nw = ll.Variable(3.0, name='w')"


@pytest.fixture
def notebook(run):
    run(SETUP)
    return run


def test_a_cell_is_recorded_and_neither_run_nor_assigned(notebook, shell):
    ran = notebook("%%steps\ny = x * w\nw.assign(y.sum())\ny.sum()")
    recording = ran.value.recording
    assert [step.text for step in recording.of("trace")] == ["y = x * w", "w.assign(y.sum())", "y.sum()"]
    assert recording.of("trace")[0].sees == (("y", "f32[2], no value yet"),)
    assert "y" not in shell.user_ns
    assert shell.user_ns["w"].numpy() == 3.0
    assert str(recording.of("run")[-1].value) == "f32[] = 9"


def test_a_staged_cell_by_its_name_and_a_call(notebook):
    notebook("%%stage double -q\nx + x")
    named = notebook("%steps double").value.recording
    assert str(named.of("run")[0].value) == "f32[2] = 2, 4"
    called = notebook("%steps double(x=x * 10)").value.recording
    assert str(called.of("run")[0].value) == "f32[2] = 20, 40"
    by_position = notebook("%steps double(x * 10)").value.recording  # as the cell itself may be called
    assert str(by_position.of("run")[0].value) == "f32[2] = 20, 40"
    assert "finite" in repr(notebook("%explain --nan double(x * 10)").value)
    assert notebook("%steps").value.recording.name == named.name


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%steps pick(x, -1)", "f32[] = 2"),
        ("%steps pick( x , k = -1 ) ;", "f32[] = 2"),
        ("%steps --level run pick(x,  {0: x, 1: -1}[1])", "f32[] = 2"),
        ("%steps named(x, 'a  (b', -1)", "f32[2] = 5, 10"),
        ("%steps pick(x, -1);", "f32[] = 2"),
        ("%steps (lambda t: t * -1.0)(x) --level run", "f32[2] = -1, -2"),
    ],
)
def test_arguments_of_a_call_are_no_flags(notebook, line, said):
    notebook("pick = lambda t, k: t[k]\nnamed = lambda t, name, sign: t * (float(len(name)) * -sign)")
    shown = notebook(line.replace("%steps", "%steps -o kept") + "\nkept").value
    assert str(shown.recording.of("run")[-1].value) == said


def test_gradient_text_file_and_name(notebook, shell, tmp_path):
    notebook("f = ll.function(lambda t: (t * t).sum())")
    ran = notebook(f"%steps --grad --text -o kept --save {tmp_path}/s.html f(x)")
    assert "backward" in repr(ran.value)
    assert not hasattr(ran.value, "_repr_mimebundle_")
    assert (tmp_path / "s.html").read_text().startswith("<!doctype html>")
    assert "kept" in shell.user_ns


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%steps 3 + 4", "nothing is called"),
        ("%steps f(x)", "NameError"),
        ("%steps len(x)", "'len' is built in"),
        ("%%steps double(x)\nx", "above a cell stand flags only"),
        ("%steps --most 0 f(x)", "--most"),
    ],
)
def test_what_cannot_be_recorded_is_said_in_one_line(notebook, cell, says):
    ran = notebook(cell, fails=True)
    assert says in str(ran.error)


def test_a_name_whose_function_needs_arguments_is_a_usage_error(notebook):
    notebook("@ll.function\ndef gan(real, rate=0.1):\n    return real * rate")
    for line in ("%steps", "%steps gan"):
        said = notebook(line, fails=True).err
        assert said.startswith("UsageError: %steps: `gan` is missing a required argument: 'real'; write a call, as in")
        assert said.endswith("%steps gan(real, rate)\n")


def test_nothing_is_staged_yet(notebook):
    assert "No function is staged yet" in repr(notebook("%steps").value)


def test_it_stops_at_ops_lines_and_nan_and_opens_there(notebook):
    notebook("%%stage broken -q --no-run\ny = ll.log(x - 1.0)\nz = y * 2.0")
    player = notebook("%steps --break nan,op:log broken").value
    said = [player.recording.steps[i] for i in player.stops]
    assert [(one.kind, "log" in one.text) for one in said][:2] == [("trace", True), ("run", True)]
    assert all(one.value.infinities for one in said if one.kind == "run")
    assert "stops at step" in repr(player)
    (first, *_rest) = notebook("%steps --break line:3 broken").value.stops
    assert notebook("_").value.recording.steps[first].text == "z = y * 2.0"


def test_one_level_alone(notebook):
    notebook("%%stage double -q\nx + x")
    assert {one.kind for one in notebook("%steps --level run double").value.recording.steps} == {"run"}
    assert "invalid choice" in notebook("%steps --level nothing double", fails=True).err
    assert "%steps --grad goes back" in notebook("%steps --level backward double").out
    notebook("%%stage folded -q\nx * 1.0 + (x + x) * 1.0")
    assert {one.kind for one in notebook("%steps --level passes folded").value.recording.steps} == {"pass"}


def test_a_stop_that_is_none_is_a_usage_error(notebook):
    notebook("%%stage double -q\nx + x")
    err = notebook("%steps --break lines:3 double", fails=True).err
    kinds = "line:7, op:matmul, nan, shape, copy, retrace or error"
    assert err == f"UsageError: %steps --break: a step to stop at is {kinds}; got 'lines:3'\n"
