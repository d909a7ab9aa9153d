"""`%graph`, and the graph of a cell that failed."""

from __future__ import annotations

import re

import pytest

from limelight_widgets.figures.overlays import legend

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


@pytest.mark.parametrize("magic", ["graph", "trace_cache", "explain"])
def test_a_failed_cell_has_its_name_although_nothing_is_called_so(cell, magic):
    cell("%%stage bad --text\n" + FAILS, fails=True)
    said = cell(f"%{magic} bad --text")
    assert "nothing is called" not in said.text + said.out + said.err
    if magic == "graph":
        assert "a trace that failed" in str(said.value)


def test_the_graphs_of_several_failed_cells_can_be_asked_for_by_name(cell):
    cell("%%stage --text first\n" + FAILS, fails=True)
    cell("%%stage --text second\n" + FAILS, fails=True)
    cell("%%stage --text third\nx + 1.0")
    for name in ("first", "second"):
        said = str(cell(f"%graph --text {name}").value)
        assert f"Graph of {name}: a trace that failed after 2 ops" in said
        assert "a trace that failed" in str(cell(f"%graph --overlay time --text {name}").value)
    cell("first = 3")
    assert "not a staged function" in str(cell("%graph first", fails=True).error)


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


def test_the_way_to_measure_that_a_view_names_goes_for_a_staged_cell_and_is_no_python_for_a_function(cell):
    cell("%%stage step -q\nx + 1.0\n")
    cell("%graph step -o view --static")
    command = re.search(r"%graph .*", legend(cell("view").value.state(), 0, "time"))[0]
    assert command == "%graph step --overlay time"
    assert "all in all" in str(cell(f"{command} --text").value)
    cell("f = ll.function(lambda x: ll.log(x))\ny = f(x)")
    cell("%graph f -o view --static")
    said = legend(cell("view").value.state(), 0, "time")
    assert "invalid character" in str(cell(re.search(r"%graph .* --overlay time", said)[0], fails=True).error)


def test_a_call_is_shown_on_its_own_trace_and_not_on_the_newest(cell):
    cell("f = ll.function(lambda x, by: ll.tanh(x) * by if by > 2.5 else x - by)\ny = f(x, 2.0), f(x, 3.0)")
    assert "subtract" in str(cell("%graph f(x, 2.0) --text").value)
    assert "subtract" in str(cell("%graph f(x, 2.0) --overlay time --text").value)
    assert "tanh" in str(cell("%graph f(x, 3.0) --overlay time --text").value)
    assert "tanh" in str(cell("%graph f --text").value)


def test_two_names_are_one_too_many(cell):
    assert "one NAME at a time" in str(cell("%graph a b", fails=True).error)
    assert "invalid choice" in str(cell("%graph --overlay heat", fails=True).error)


def test_two_traces_are_compared_by_their_numbers(cell):
    cell("f = ll.function(lambda x, by: ll.tanh(x) * by)\ny = f(x, 2.0), f(x, 3.0)")
    view = cell("%graph f --diff 1 2 -o compared --static") and cell("compared").value
    assert view.state()["label"] == "trace #1 to #2"
    assert "%graph --diff 5" in str(cell("%graph f --diff 1 5", fails=True).error)


@pytest.fixture
def step(cell):
    cell("w = ll.Variable([[1.0, 2.0], [3.0, 4.0]], name='w')")
    cell("inner = ll.function(lambda t: ll.tanh(-(-t)), name='inner')")
    cell("%%stage step -q\ny = inner(x @ w) + 0.0\ny.sum()")
    return cell


def text(step, line):
    return str(step(f"%graph step {line} --text").value)


def test_what_is_sought_is_listed_alone(step):
    said = text(step, "--which traced --find op:ta")
    assert "1 of " in said
    assert "match op:ta" in said
    assert "tanh" in said
    assert "matmul" not in said
    assert "0 of" in text(step, "--find 'op:conv line:3'")
    assert step("%graph step --find op:matmul").value.state()["begin"] == {"find": "op:matmul"}


def test_how_deep_groups_are_open(step):
    flat, deep = (step(f"%graph step --which traced --depth {n} --static").value.svg for n in (0, 1))
    assert "tanh" not in flat.replace("inner", "").split("<desc>")[1]
    assert "tanh" in deep
    assert "--depth -1" in step("%graph step --depth -1", fails=True).err


def test_the_graph_as_a_pass_left_it(step):
    notebook = step
    notebook("%%stage plain -q\ny = -(-x) + 0.0\ny.sum()")
    by_name = str(notebook("%graph plain --pass simplify --text").value)
    assert "simplify: 5 − " in by_name
    view = notebook("%graph plain --pass 1").value
    assert view.state()["which"] == "history"
    assert view.state()["begin"] == {"stop": 1}
    assert notebook("%graph plain --pass nothing", fails=True).err.startswith(
        "UsageError: %graph: --pass 'nothing': no such pass has changed the graph; these have: 0 (traced), 1 ("
    )
    assert "it compares two traces" in notebook("%graph plain --diff 1 1 --pass 1", fails=True).err


def test_a_trace_with_its_gradient(step):
    view = step("%graph step --which backward").value
    lanes = {node.get("lane") for node in view.state()["graphs"][view.state()["variants"][0]["graph"]]["nodes"]}
    assert {"forward", "backward"} <= lanes
    assert "w" in str(view.static().text)
    step("%%stage counts -q\n(ll.constant([1, 2]) + 1).sum()")
    assert "no floating input and no trainable variable" in step("%graph counts --which backward", fails=True).err
    step("f = ll.function(lambda x: ll.argmax(x))\ny = f(x)\ng = ll.function(lambda x: x)")
    assert "there is no gradient to show" in step("%graph f --which backward", fails=True).err
    assert "has not been traced yet" in step("%graph g --which backward", fails=True).err


def test_arguments_of_a_call_are_neither_flags_nor_expanded(run):
    run("%load_ext limelight\nimport limelight as ll\nx = ll.ones((3,))\nf = lambda parts, k: parts[0][k] * 2.0")
    assert "multiply" in repr(run("%graph f({0: x}, -1) --overlay bytes --text").value)
    assert "did you mean '--overlay'" in str(run("%graph f({0: x}, -1) --ovrlay bytes", fails=True).error)


def test_norms_of_the_gradient_of_a_call(run):
    run("%load_ext limelight\nimport limelight as ll\nx = ll.constant([3.0, 4.0])")
    run("f = ll.function(lambda x: (x * x).sum(), name='f')")
    for line in ("%graph f(x) --overlay grad --text", "%graph f(x) --which backward --overlay grad --text"):
        said = " ".join(repr(run(line).value).split())
        assert "what each op of the backward pass gave; all in all norm" in said
    said = " ".join(repr(run("%graph f(x) --which backward --overlay nan --text").value).split())
    assert "all in all ✓ all finite" in said
    run("step = ll.function(lambda x: ll.grad(lambda x: (x * x).sum())(x), name='step')")
    assert "Graph of step: optimised" in repr(run("%graph step(x) --overlay grad --text").value)
    assert run("f.trace_count").value == 1


def test_the_gradient_of_a_trace_that_was_asked_for_is_not_that_of_the_call(run):
    run("%load_ext limelight\nimport limelight as ll\nf = ll.function(lambda x: x * x, name='f')")
    run("f(ll.ones(2)), f(ll.ones(3))")
    for which, spec in (("", "f32[3]"), ("--trace 2", "f32[3]"), ("--trace 1", "f32[2]")):
        view = run(f"%graph f(ll.ones(3)) --which backward --overlay grad {which}").value
        assert view.state()["graphs"][0]["inputs"][0]["spec"] == spec
