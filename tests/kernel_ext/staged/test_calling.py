"""A staged cell as a callable: inputs by position, the result alone, what `help` shows, copies."""

from __future__ import annotations

import inspect
import pydoc

import pytest

from limelight.errors import ArgumentError

CELL = "%%stage step\nscaled = images * rate\nlogits = net(scaled)\nloss = ll.mean((logits - labels) ** 2)\nloss"


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nimages, labels, rate = ll.ones([2, 3]), ll.zeros([2, 4]), 0.5")
    run("net = ll.nn.Dense(4)\nnet(images)")
    run(CELL)
    return run


def test_data_by_position_in_the_order_of_first_use(notebook):
    assert notebook(
        "float(step(images * 2, 1.0, labels).result) == float(step(rate=1.0, images=images * 2).result)"
    ).value
    assert notebook(
        "float(step(images * 2, labels=labels + 1).result) == float(step(images * 2, 0.5, labels + 1)[1])"
    ).value
    assert notebook("step.explain(images).hit").value
    assert not notebook("step.explain(ll.ones([5, 3])).hit").value


def test_the_result_alone_and_with_the_outputs(notebook):
    assert notebook(
        "outputs, result = step(images)\nsorted(outputs), outputs['loss'].item() == result.item()"
    ).value == (
        ["logits", "loss", "scaled"],
        True,
    )
    assert notebook("run = step()\nrun.result is run[1], run.outputs is run[0]").value == (True, True)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("step(images, rate, labels, net)", "takes 3 by position (images, rate, labels), but 4 were given"),
        ("step(images, images=labels)", "got 'images' twice"),
        ("step(picture=images)", "unexpected input 'picture'"),
    ],
)
def test_calls_that_fit_no_inputs(notebook, call, words):
    ran = notebook(call, fails=True)
    assert isinstance(ran.error, TypeError)
    assert words in str(ran.error)
    assert "limelight_kernel" not in ran.out, "the user's line alone"


def test_a_cell_without_data_takes_nothing_by_position(notebook):
    notebook("%%stage alone\nones = ll.ones([2])")
    assert "takes none by position" in str(notebook("alone(images)", fails=True).error)


def test_help_shows_inputs_and_outputs(notebook):
    step = notebook("step").value
    assert str(inspect.signature(step)) == "(images=..., rate=..., labels=..., *, net=...)"
    said = pydoc.plain(pydoc.render_doc(step))
    for words in ("images  f32[2,3]", "rate    0.5", "net  a Dense", "outputs, result = step(images, rate, labels)"):
        assert words in said, said
    returned = said.partition("Returns")[2]
    for words in ("logits  f32[2,4]", "loss    f32[]", "result: f32[]"):
        assert words in returned, said


def test_help_tells_of_containers_and_plain_values(notebook):
    notebook(
        "%%stage made\npair = [images, labels]\nname = 'adam'\nparts = {'a': images}\nhelper = lambda: images\nname"
    )
    said = notebook("made.__doc__").value
    for words in ("pair    a list of 2", "name    'adam'", "parts   a dict of 1", "result: 'adam'"):
        assert words in said, said


def test_a_staged_cell_is_not_pickled_and_says_what_to_pickle(notebook):
    error = notebook("import pickle\npickle.dumps([step])", fails=True).error
    assert isinstance(error, ArgumentError), error
    assert "the staged cell step reads the names of this notebook" in str(error)
    assert notebook("len(pickle.dumps(step().outputs)) > 0").value  # as the error says


@pytest.mark.parametrize("how", ["copy", "deepcopy"])
def test_copies_are_staged_cells(notebook, how):
    notebook(f"import copy\nother = copy.{how}(step)")
    assert notebook("type(other) is type(step), other is not step, len(other.trace_cache)").value == (True, True, 0)
    assert notebook("other(images * 2).result.item() == step(images * 2).result.item()").value
    assert notebook("other.name, other.trace_count, [copy.deepcopy([step])[0].name]").value[0] == "step"
