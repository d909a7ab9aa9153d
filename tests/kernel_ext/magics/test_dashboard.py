"""`%dashboard` and the words that may stand in the place of a name."""

from __future__ import annotations


def test_open_close_and_reset_are_words_where_no_function_is_called_so(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.ones(3)")
    run("%%stage double -q\nx + x")
    run("%dashboard open -q")
    assert "as it was at first" in run("%dashboard reset").out
    assert "is closed" in run("%dashboard close").out
    assert "No dashboard is open" in run("%dashboard close").out
    run("close = ll.function(lambda x: x)\nclose(x);")
    view = run("%dashboard close").value
    assert view.state()["title"] == "<lambda>"
    run("%dashboard --close")
