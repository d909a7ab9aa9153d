"""What overlays tell on the boxes of static pictures."""

from __future__ import annotations

import pytest

import limelight as ll
import limelight_widgets as views
from limelight_widgets.figures.overlays import told
from limelight_widgets.figures.visible_boxes import by_default, visible


@pytest.fixture
def measured():
    @ll.function
    def roots(x):
        return ll.sqrt(x * 2.0 - 1.0).sum()

    x = ll.constant([0.0, 1.0, 2.0])
    roots(x)
    return roots, ll.explain.costs(roots, x)


def test_a_measured_call_is_told_on_boxes_with_a_legend_and_a_bar(measured):
    roots, costs = measured
    view = views.graph(roots, costs=costs, overlay="nan")
    figure = view.static()
    assert "⚠ 1 number not finite" in figure.svg
    assert "✓ all finite" in figure.svg
    assert "nan: numbers that are NaN or infinite in what each op gave; all in all ⚠ 2 numbers not finite" in " ".join(
        figure.text.split()
    )
    plain = views.graph(roots).static()
    assert figure.svg.count("<rect") > plain.svg.count("<rect")


def test_a_group_has_the_sum_of_what_is_in_it():
    @ll.function
    def scoped(x):
        with ll.name_scope("dense"):
            return ll.tanh(ll.exp(x)) + 1.0

    x = ll.ones(1000)
    scoped(x)
    state = views.graph(scoped, which="traced").state()
    closed = visible(state, 0, lambda name, _: False)
    open_ = visible(state, 0, lambda name, _: True)
    sums = [told(state, picture.boxes, "bytes") for picture in (closed, open_)]
    assert sums[0]["g0"].text == "12 kB"
    assert sums[1]["n0"].text == "4 kB"
    assert sums[0]["g0"].share == 1.0


def test_norms_are_told_where_there_are_gradients_and_leave_no_line_elsewhere():
    @ll.function
    def loss(w):
        return (ll.exp(w) * 3.0).sum()

    step = ll.function(ll.grad(loss))
    w = ll.ones(8)
    step(w)
    svg = views.graph(step, costs=ll.explain.costs(step, w), overlay="grad").static().svg
    assert "norm 23.1" in svg  # 3 e √8
    assert ">–<" not in svg


def test_other_traces_than_the_measured_one_are_not_measured(measured):
    roots, costs = measured
    roots(ll.ones(7))
    view = views.graph(roots, costs=costs, overlay="time")
    assert "not measured" in " ".join(view.static().text.split())
    assert "not measured" not in views.graph(roots, trace=0, costs=costs, overlay="time").static().text
    assert visible(view.state(), 0, by_default).boxes


def test_an_unknown_overlay_lists_those_there_are(measured):
    with pytest.raises(ll.errors.ArgumentError, match="overlay='heat': a graph view tells time, bytes"):
        views.graph(measured[0], overlay="heat")


def test_bytes_are_those_of_the_call_where_one_was_measured_and_at_least_what_is_known_elsewhere():
    @ll.function(input_signature=[ll.TensorSpec((None, 20))])
    def loss(x):
        return (ll.exp(x) * 3.0).sum()

    x = ll.ones((50, 20))
    loss(x)
    assert "all in all ≥ 4 B" in " ".join(views.graph(loss, overlay="bytes").static().text.split())
    measured = views.graph(loss, costs=ll.explain.costs(loss, x), overlay="bytes")
    assert "all in all 8 kB" in " ".join(measured.static().text.split())
