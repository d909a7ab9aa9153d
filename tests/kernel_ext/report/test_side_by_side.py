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
