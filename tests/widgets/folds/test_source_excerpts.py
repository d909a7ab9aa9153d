"""The lines of code that a view shows."""

from __future__ import annotations

import pytest

from limelight.user_code.source_line import Source
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.folds.source_excerpts import as_written


def test_a_cell_is_one_source_whatever_file_its_lines_are_from(make, monkeypatch):
    """A staged cell has a file of its own, besides that which IPython has for it."""
    monkeypatch.setattr(Source, "label", property(lambda source: "In[4]" if source.file != "b.py" else "b.py"))
    maker = make("f")
    value = maker.node("exp", maker.input("x"))
    maker.nodes[0].stack = (Source("a", 2, "<module>"), Source("c", 1, "f"), Source("b.py", 7, "f"))
    state = GraphFold(maker.graph(value)).state()
    (node,) = state["graphs"][0]["nodes"]
    assert [source["label"] for source in state["sources"]] == ["b.py", "In[4]"]
    assert [position[:2] for position in node["stack"]] == [[1, 2], [1, 1], [0, 7]]


@pytest.mark.parametrize(
    ("made", "written"),
    [
        ("get_ipython().run_line_magic('trace_cache', 'g --why')", "%trace_cache g --why"),
        ("    x = get_ipython().run_line_magic('tape', '')", "    x = %tape"),
        ("# %%stage step -g", "%%stage step -g"),
        ("y = x  # get_ipython().run_line_magic(name, text)", "y = x  # get_ipython().run_line_magic(name, text)"),
    ],
)
def test_code_is_shown_as_its_author_wrote_it(made, written):
    assert as_written(made) == written
