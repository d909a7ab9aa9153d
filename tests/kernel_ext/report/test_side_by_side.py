"""The widget beside a staged cell, where a front end can show one."""

from __future__ import annotations

import ipywidgets
import pytest

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def notebook(run, monkeypatch):
    monkeypatch.setenv("LIMELIGHT_WIDGETS", "1")
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])")
    yield run
    ipywidgets.Widget.close_all()


def widget_of(output):
    return ipywidgets.widgets.widget._instances[output.data[WIDGET]["model_id"]]


def test_one_output_holds_the_cell_the_graph_and_their_static_forms(notebook):
    (shown,) = notebook("%%stage -o kept\ny = x + 1").shown
    assert {WIDGET, "text/plain", "text/html"} <= set(shown.data)
    listing, graph = widget_of(shown).children
    assert "● staged" in listing.value
    assert "y = x + 1" in listing.value
    assert graph is notebook("kept.graph.widget").value


def test_all_groups_of_fused_ops_are_counted_though_the_first_few_are_listed(notebook):
    (shown,) = notebook("%%stage\ny = [ll.tanh(ll.sum(x) * float(k) + 2.0) for k in range(14)]").shown
    assert "14 groups of fused ops" in shown.data["text/html"]
    assert 0 < shown.data["text/html"].count("<li>group ") < 14


def test_static_and_text_have_no_widget(notebook):
    for flag in ("--static", "--text"):
        (shown,) = notebook(f"%%stage {flag}\ny = x + 1").shown
        assert WIDGET not in shown.data


def test_when_the_view_closes_all_of_it_goes(notebook):
    (shown,) = notebook("%%stage -o kept\ny = x + 1").shown
    box = widget_of(shown)
    (listing, _), key = box.children, shown.data[WIDGET]["model_id"]
    notebook("kept.graph.close()")
    assert listing.comm is None
    assert key not in ipywidgets.widgets.widget._instances


def models():
    """The models in the kernel but for those that all views share."""
    instances = ipywidgets.widgets.widget._instances.values()
    shared = [one for one in instances if type(one).__name__ in ("Engine", "ViewScript")]
    return {one.model_id for one in instances} - {one.model_id for owner in shared for one in (owner, owner.layout)}


CELLS = {
    "a staged cell": "%%stage step\ny = x + 1\ny",
    "with gradients": "%%stage step -g\nll.sum(x * w)",
    "two in one": "display(ll.widgets.graph(step), ll.widgets.trace_cache(step))",
    "a magic": "%graph step",
    "a kept result": "%%stage -o kept step\ny = x + 1",
    "a view that was kept": "display(view)",
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_a_cell_that_runs_again_replaces_the_models_of_its_last_run(notebook, cell):
    notebook("w = ll.Variable(2.0)")
    notebook("%%stage -q step\ny = x + 1")
    notebook("view = ll.widgets.graph(step)")
    ipywidgets.Widget.close_all()
    notebook(cell)
    first = models()
    for _ in range(3):
        notebook(cell)
    last = models()
    assert first
    assert len(last) == len(first)
    assert first == last if "view)" in cell else not first & last


def test_cells_of_other_texts_keep_their_views(notebook):
    (first,) = notebook("%%stage step\ny = x + 1").shown
    (second,) = notebook("%%stage step\ny = x + 2").shown
    notebook("%%stage step\ny = x + 2")
    assert widget_of(first).comm is not None
    assert second.data[WIDGET]["model_id"] not in ipywidgets.widgets.widget._instances
