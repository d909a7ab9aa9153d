"""`%dashboard` and the words that may stand in the place of a name."""

from __future__ import annotations


def test_open_close_and_reset_are_words_where_no_function_is_called_so(notebook):
    notebook("%%stage double -q\nx + x")
    notebook("%dashboard open -q")
    assert "as it was at first" in notebook("%dashboard reset").out
    assert "is closed" in notebook("%dashboard close").out
    assert "No dashboard is open" in notebook("%dashboard close").out
    notebook("import limelight as ll\nclose = ll.function(lambda x: x)\nclose(x);")
    view = notebook("%dashboard close").value
    assert view.state()["title"] == "<lambda>"
    notebook("%dashboard --close")
