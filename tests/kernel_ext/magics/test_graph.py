"""`%graph`, and the graph of a cell that failed."""

from __future__ import annotations

import pytest

FAILS = "y = ll.tanh(x)\ny @ ll.ones((3, 3))\n"


@pytest.fixture
def cell(run):
    run("%load_ext limelight\nimport limelight as ll\nx = ll.ones((2, 2))")
    return run


def test_a_failed_cell_shows_its_graph_up_to_the_error_and_graph_shows_it_again(cell):
    failed = cell("%%stage --text\n" + FAILS, fails=True)
    assert type(failed.error).__name__ == "ShapeError"
    assert "a trace that failed after 2 ops: ShapeError: matmul" in " ".join(failed.text.split())
    assert "a trace that failed" in str(cell("%graph --text").value)


def test_a_failed_cell_shows_no_graph_where_there_is_nothing_to_see_or_nothing_is_wanted(cell):
    assert cell("%%stage -q\n" + FAILS, fails=True).text == ""
    assert cell("%%stage\nnowhere + x\n", fails=True).text == ""


def test_after_another_cell_graph_shows_that(cell):
    cell("%%stage -q\n" + FAILS, fails=True)
    cell("%%stage -q\nx + 1.0\n")
    assert "failed" not in str(cell("%graph --text").value)


def test_graph_is_saved_and_what_cannot_be_is_said_in_a_line(cell, tmp_path):
    cell("%%stage step -q\nx + 1.0\n")
    saved = cell(f"%graph step --save {tmp_path / 'a b.svg'} --text".replace("a b", "ab"))
    assert " ".join(saved.text.split()).startswith(f"saved {tmp_path / 'ab.svg'}:")
    assert (tmp_path / "ab.svg").read_text().startswith("<svg")
    refused = cell(f"%graph step --save {tmp_path / 'a.pdf'}", fails=True)
    assert "ends in .svg, .png" in str(refused.error)
    assert "no folder" in str(cell(f"%graph step --save {tmp_path / 'no' / 'a.svg'}", fails=True).error)


def test_overlays_measure_a_call_or_a_staged_cell(cell):
    cell("%%stage step -q\nx + 1.0\n")
    assert "all in all ✓ all finite" in " ".join(str(cell("%graph step --overlay nan --text").value).split())
    assert "all in all ✓ all finite" in " ".join(str(cell("%graph --overlay nan --text").value).split())
    cell("f = ll.function(lambda x: ll.log(x))\ny = f(x)")
    assert "not measured" in str(cell("%graph f --overlay nan --text").value)
    said = str(cell("%graph f(x - 1.0) --overlay nan --text").value)
    assert "4 numbers not finite" in " ".join(said.split())
    assert "bytes of what each op gives" in str(cell("%graph f --overlay bytes --text").value)


def test_two_names_are_one_too_many(cell):
    assert "one NAME at a time" in str(cell("%graph a b", fails=True).error)
    assert "invalid choice" in str(cell("%graph --overlay heat", fails=True).error)


def test_two_traces_are_compared_by_their_numbers(cell):
    cell("f = ll.function(lambda x, by: ll.tanh(x) * by)\ny = f(x, 2.0), f(x, 3.0)")
    view = cell("%graph f --diff 1 2 -o compared --static") and cell("compared").value
    assert view.state()["label"] == "trace #1 to #2"
    assert "%graph --diff 5" in str(cell("%graph f --diff 1 5", fails=True).error)
