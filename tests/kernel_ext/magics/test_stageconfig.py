"""`%stageconfig`: settings hold, are remembered, and leave nothing behind."""

from __future__ import annotations

import pytest

from limelight.optimise.setting import setting


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([1.0, 2.0])")
    return run


def test_settings_hold_for_lines_that_do_not_say(notebook):
    notebook("%stageconfig annotate=trace -q")
    assert "multiply(" in notebook("%%stage --text\nx * 2.0").text
    notebook("%stageconfig max_traces=1 -q")
    notebook("%%stage -q step\nx + 1.0")
    ran = notebook("x = ll.ones((3,))\nstep()", fails=True)
    assert "TraceBudgetError" in ran.out + ran.err
    assert notebook("%stageconfig annotate").value.to_dict() == {"annotate": "trace"}
    notebook("%stageconfig --reset -q")
    assert notebook("%stageconfig max_traces --json").value.to_dict() == {"max_traces": "none"}


def test_static_forms_and_the_optimiser(notebook):
    notebook("%stageconfig optimiser=0 -q")
    assert setting.get().level == 0
    assert notebook("%unload_ext limelight").error is None
    assert setting.get().level == 3


def test_they_are_remembered_and_forgotten(notebook, shell):
    notebook("%stageconfig optimiser=1 --save -q")
    notebook("%unload_ext limelight")
    notebook("%load_ext limelight")
    assert setting.get().level == 1
    notebook("%stageconfig --reset --save -q")
    notebook("%reload_ext limelight")
    assert setting.get().level == 3


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%stageconfig anotate=trace", "did you mean 'annotate'?"),
        ("%stageconfig optimiser=9", "optimiser is 0 to 3, not '9'"),
        ("%stageconfig nothing", "there is no setting 'nothing'"),
        ("%stageconfig max_traces=0", "max_traces is none, or a number"),
    ],
)
def test_usage_errors_are_one_line(notebook, line, words):
    ran = notebook(line, fails=True)
    assert ran.err.startswith("UsageError: ")
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_the_theme_of_views_that_are_open_and_of_later_ones(notebook):
    widget = notebook("double = ll.function(lambda t: t + t)\nviews = ll.widgets\nviews.graph(double).widget").value
    try:
        assert widget.theme == "auto"
        notebook("%stageconfig theme=dark -q")
        assert widget.theme == "dark"
        later = notebook("views.trace_cache(double).widget").value
        assert later.theme == "dark"
        later.close()
        assert "theme is auto, light or dark, not 'night'" in notebook("%stageconfig theme=night", fails=True).err
        notebook("%stageconfig --reset -q")
        assert widget.theme == "auto"
    finally:
        notebook("views.set_theme('auto')")
        widget.close()
