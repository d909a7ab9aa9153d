"""Graphs of traces that run or have failed."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

import limelight as ll
import limelight_widgets as views
from limelight.staging import partial_trace
from limelight.staging.tracer import Tracer
from limelight_widgets.figures.visible_boxes import by_default, visible
from limelight_widgets.folds.dashboard import NewestGraphFold
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.views.dashboard import DashboardView

sys.path.insert(0, str(Path(__file__).parents[1]))
import models  # in the folder above


@pytest.fixture
def failed():
    step = models.failing()
    with pytest.raises(ll.errors.ShapeError):
        step(models.IMAGES)
    return step


def test_a_failed_trace_has_the_error_on_its_box_and_line(failed):
    state = GraphFold(failed).state()
    graph = state["graphs"][0]
    node = graph["nodes"][state["failed"]["node"]]
    assert node["kind"] == "error"
    assert (node["op"], node["said"]) == ("matmul", "ShapeError in model.dense")
    assert [graph["nodes"][k - len(graph["inputs"])]["op"] for k in node["in"]] == ["reshape", "full"]
    assert "group" not in node
    label = state["sources"][node["stack"][0][0]]["label"]
    assert label == "models.py"
    assert [function for _, _, function in node["stack"]] == ["<lambda>", "call", "train_step"]
    assert state["label"] == "a trace that failed after 19 ops"
    assert [variant["key"] for variant in state["variants"]] == ["traced"]
    assert any(group["label"] == "conv1" for group in graph["groups"])


def test_its_static_forms_say_the_error(failed):
    figure = views.graph(failed).static()
    assert "ShapeError: matmul" in " ".join(figure.text.split())
    texts = [
        "".join(text.itertext()) for text in ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert "✗ matmul" in texts
    assert "ShapeError in model.dense" in texts


def test_an_error_that_is_no_ops_has_a_box_too():
    @ll.function
    def look_up(x):
        y = x + 1.0
        return {}["weights"] * y

    with pytest.raises(KeyError):
        look_up(ll.ones(2))
    state = GraphFold(look_up).state()
    node = state["graphs"][0]["nodes"][state["failed"]["node"]]
    assert (node["op"], node["said"]) == ("KeyError", "'weights'")
    assert "in" not in node


def test_an_error_that_is_no_ops_stands_after_the_last_op():
    @ll.function
    def look_up(x):
        y = ll.exp(x) * 2.0
        return {}["weights"] * y

    with pytest.raises(KeyError):
        look_up(ll.ones(2))
    picture = visible(GraphFold(look_up).state(), 0, by_default)
    assert list(picture.edges) == [("i0", "n0"), ("n0", "n2"), ("n2", "n3")]  # n1 is written on n2
    assert picture.again == {("n2", "n3")}
    assert 'stroke-dasharray="5 4"' in views.graph(look_up).static().svg


def test_an_error_in_an_update_is_in_its_lane():
    w = ll.Variable([1.0, 2.0])

    @ll.function
    def step():
        with ll.GradientTape() as tape:
            loss = ll.sum(w * w)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return {}["weights"]

    with pytest.raises(KeyError):
        step()
    assert GraphFold(step).state()["graphs"][0]["nodes"][-1]["lane"] == "update"


def test_after_a_trace_that_succeeds_its_graph_is_shown_and_an_older_one_where_it_was_asked_for():
    @ll.function
    def add(x, y):
        return x + y

    add(ll.ones(2), ll.ones(2))
    fold = GraphFold(add, trace=0)
    with pytest.raises(ll.errors.ShapeError):
        add(ll.ones(2), ll.ones(3))
    assert "failed" in GraphFold(add).state()
    assert "failed" not in fold.state()
    add(ll.ones(3), ll.ones(3))
    assert GraphFold(add).state()["label"] == "trace #2 of 2"


@pytest.fixture
def add():
    """A function that has a trace."""
    staged = ll.function(lambda x, y: x + y, name="add")
    staged(ll.ones(2), ll.ones(2))
    return staged


def fail(add):
    with pytest.raises(ll.errors.ShapeError):
        add(ll.ones(2), ll.ones(3))


def told(fold):
    """Which trace a view that is not open shows, and what it says of others."""
    fold.catch_up()
    state = fold.state()
    return state["label"], state.get("newer")


def test_a_whole_trace_stays_and_says_that_a_call_has_failed_until_one_goes_well(add):
    fold, failed = GraphFold(add), "a call since failed: ShapeError"
    described = fold.state()["described"]
    fail(add)
    assert told(fold) == ("trace #1 of 1", failed)
    assert fold.state()["described"] == described  # the page leaves it as it is
    add(ll.ones(2), ll.ones(2))
    assert told(fold) == ("trace #1 of 1", None)
    fold.choose(add.id, 0)
    add(ll.ones(3), ll.ones(3))
    fail(add)
    assert told(fold) == ("trace #1 of 2", f"#2 is newer, {failed}")


def test_the_forms_of_a_whole_trace_stay_when_a_call_fails(add):
    view = views.graph(add)
    before = view.static()
    fail(add)
    assert view.static() == before


def test_a_view_that_is_made_after_a_failure_shows_it_until_a_call_goes_well(add):
    fail(add)
    fold = GraphFold(add)
    assert told(fold) == ("a trace that failed after 0 ops", None)
    add(ll.ones(2), ll.ones(2))  # finds its trace: no event tells of it
    assert told(GraphFold(add)) == told(fold) == ("trace #1 of 1", None)


def test_a_dashboard_shows_what_happened_last(add):
    fold = NewestGraphFold()
    for _ in range(2):
        assert told(fold) == ("trace #1 of 1", None)
        fail(add)
        assert told(fold) == ("a trace that failed after 0 ops", None)
        add(ll.ones(2), ll.ones(2))
    assert told(fold) == ("trace #1 of 1", None)


@pytest.mark.parametrize("bound", [False, True])
def test_an_open_dashboard_comes_back_at_the_end_of_the_cell(add, bound):
    dashboard = DashboardView(add if bound else None)
    view = dashboard.views["graph"]
    view._feed.open()
    fail(add)
    assert view.state()["label"] == "a trace that failed after 0 ops"
    add(ll.ones(2), ll.ones(2))
    dashboard.cell_ended()
    assert view.state()["label"] == "trace #1 of 1"
    dashboard.close()


def test_a_live_view_grows_with_a_slow_trace_and_ends_with_the_whole_graph():
    grown, go_on = threading.Event(), threading.Event()

    @ll.function
    def slow(x):
        x = ll.tanh(x)
        grown.set()
        assert go_on.wait(300)
        return ll.exp(x)

    fold = GraphFold(slow)
    thread = threading.Thread(target=slow, args=(ll.ones(2),))
    thread.start()
    assert grown.wait(300)
    assert fold.runs
    assert fold.grow()
    state = fold.state()
    assert (state["label"], state["running"]) == ("tracing: 1 op so far", True)
    mark = fold.since(0)[1]
    assert fold.grow()
    assert fold.since(mark)[0] == {}  # nothing has been added
    go_on.set()
    thread.join(300)
    assert not fold.grow()
    assert partial_trace.of(slow.id) is None


def test_a_trace_on_the_side_ends_with_the_last_whole_one():
    """As that of `%steps`, which goes into no cache: it ends without an event."""

    @ll.function
    def double(x):
        return x + x

    double(ll.ones(2))
    fold = GraphFold(double)
    with Tracer("double", owner=double.id):
        ll.tanh(ll.ones(2) + 1.0)
        running = fold.grow()
        shown = fold.state()["label"]
    assert running
    assert shown.startswith("tracing")
    assert fold.runs  # so that it is looked at again
    assert not fold.grow()
    assert fold.state()["label"] == "trace #1 of 1"
    assert not fold.runs


def test_an_open_view_looks_at_a_trace_while_it_runs(monkeypatch):
    monkeypatch.setattr("limelight_widgets.views.graph.LOOK", 0.01)
    seen, go_on = threading.Event(), threading.Event()

    @ll.function
    def slow(x):
        x = ll.tanh(x)
        assert go_on.wait(300)
        return ll.exp(x)

    view = views.graph(slow)
    publish = view._feed._publish

    def published(fold):
        if fold.state().get("running"):
            seen.set()
        return publish(fold)

    view._feed._publish = published
    view._feed.open()
    thread = threading.Thread(target=slow, args=(ll.ones(2),))
    thread.start()
    assert seen.wait(300)
    go_on.set()
    thread.join(300)
    assert view.state()["label"] == "trace #1 of 1"
    view.close()
