"""The dashboard: one in a kernel, four views in one widget, what is chosen, and what is shown before anything ran."""

from __future__ import annotations

import gc

import pytest

import limelight as ll
import limelight_widgets
from harness.waiting import until
from limelight import events
from limelight.core import device_counts
from limelight_widgets.live import front_end, wire
from limelight_widgets.live.panel import PANELS
from limelight_widgets.views import dashboard as module
from limelight_widgets.views import selection
from limelight_widgets.views.selection import Selection


@pytest.fixture(autouse=True)
def closed():
    limelight_widgets.close_dashboard()
    selection.choose(Selection())
    yield
    limelight_widgets.close_dashboard()


@pytest.fixture
def double():
    double = ll.function(lambda x: x * 2.0, name="double")
    for size in (2, 3):
        double(ll.ones((size,)))
    return double


def hear(view, kind, part="", **content):
    message = {"type": kind, "view": "page", **content, **({"part": part} if part else {})}
    view.widget._handle_msg({"content": {"data": {"method": "custom", "content": message}}, "buffers": []})


def test_a_second_one_shows_other_things_in_the_first(double):
    other = ll.function(lambda x: x + 1.0, name="other")
    other(ll.ones((2,)))
    view = limelight_widgets.dashboard(double)
    widget = view.widget
    assert view.views["graph"].state()["title"] == "double"
    assert limelight_widgets.dashboard(other) is view
    assert view.widget is widget
    assert view.state()["title"] == "other"
    assert view.views["graph"].state()["title"] == "other"
    assert limelight_widgets.close_dashboard()
    assert not limelight_widgets.close_dashboard()
    assert limelight_widgets.dashboard() is not view


def test_it_follows_whatever_is_newest(double):
    view = limelight_widgets.dashboard()
    assert hear(view, "opened", "graph", number=-1) is None
    later = ll.function(lambda x: x - 1.0, name="later")
    later(ll.ones((2,)))
    assert view.views["graph"].state()["title"] == "later"
    double(ll.ones((5,)))
    assert view.views["graph"].state()["title"] == "double"
    with ll.GradientTape() as tape:
        ll.Variable(2.0) * 3.0
    fresh = limelight_widgets.dashboard()
    assert fresh.views["tape"].state()["id"] == tape.id


def test_what_ran_before_a_view_was_seen_is_shown_in_it(double):
    """The page says that it sees a view after the next cell has begun, or much later, from behind another tab."""
    view = limelight_widgets.dashboard()
    assert view.widget
    other = ll.function(lambda x: x - 3.0, name="other")
    other(ll.ones((2,)))
    with ll.GradientTape() as tape:
        ll.Variable(2.0) * 3.0
    hear(view, "opened", "graph", number=0)
    hear(view, "opened", "tape", number=0)
    assert view.views["graph"].state()["title"] == "other"
    assert view.views["tape"].state()["id"] == tape.id
    hear(view, "closed", "graph")
    double(ll.ones((7,)))
    assert view.views["graph"].state()["title"] == "double", "traced last, not made last"


def test_a_tape_that_has_answered_unseen_has_recorded(double):
    view = limelight_widgets.dashboard()
    with ll.GradientTape() as tape:
        x = ll.Variable(2.0)
        y = x * 3.0
    tape.gradient(y, x)
    shown = view.views["tape"].state()
    assert shown["id"] == tape.id
    assert "has answered" in shown["empty"]


def test_a_trace_that_was_chosen_while_the_graph_was_hidden_is_shown_until_there_is_a_newer_one(double):
    other = ll.function(lambda x: x + 4.0, name="another one")
    other(ll.ones((2,)))
    view = limelight_widgets.dashboard()
    hear(view, "chosen", "cache", traces=[[double.id, 0]])
    hear(view, "opened", "graph", number=0)
    assert view.views["graph"].state()["title"] == "double"
    hear(view, "closed", "graph")
    other(ll.ones((3,)))
    hear(view, "opened", "graph", number=0)
    assert view.views["graph"].state()["title"] == "another one"


def test_with_the_widget_all_views_have_gone(double):
    view = limelight_widgets.dashboard(double)
    for part in ("graph", "tape"):
        hear(view, "opened", part, number=0)
    view.widget.close()
    assert not any(one.is_live for one in view.views.values())
    assert not events.wanted(events.Recorded)


def test_a_newest_fold_sends_all_of_another_subject(double):
    fold = module.NewestGraphFold()
    change, mark = fold.since(0)
    assert change["title"] == "double"
    assert fold.since(mark) == ({}, mark)
    other = ll.function(lambda x: x - 2.0, name="other one")
    other(ll.ones((2,)))
    assert fold.apply(events.Traced("other one", other.id, 0, 2, 0.1))
    change, later = fold.since(mark)
    assert change["title"] == "other one"
    assert later != mark
    assert not fold.apply(events.CacheCleared("double", double.id, 2))


def test_what_is_newest_is_known_though_the_clock_is_set_back(double, monkeypatch):
    view = limelight_widgets.dashboard()
    hear(view, "opened", "graph", number=0)
    monkeypatch.setattr("time.time", lambda: 1.0)
    other = ll.function(lambda x: x * 7.0, name="after the clock")
    other(ll.ones((2,)))
    assert view.views["graph"].state()["title"] == "after the clock"
    hear(view, "closed", "graph")
    double(ll.ones((9,)))
    assert view.views["graph"].state()["title"] == "double"


def test_a_trace_is_looked_for_in_no_other_functions(double, monkeypatch):
    from limelight_widgets.folds import dashboard as folds

    fold = module.NewestGraphFold()
    other = ll.function(lambda x: x - 5.0, name="the event's own")
    other(ll.ones((2,)))
    monkeypatch.setattr(folds, "staged_functions", lambda **_: pytest.fail("all functions are looked at"))
    assert fold.apply(events.Traced("the event's own", other.id, 0, 2, 0.1))
    assert fold.state()["title"] == "the event's own"


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "behind another tab"])
def test_a_trace_that_failed_is_the_newest_until_another_is_made(double, seen):
    view = limelight_widgets.dashboard()
    if seen:
        hear(view, "opened", "graph", number=0)
    broken = ll.function(lambda x: ll.tanh(x) @ ll.ones((3, 3)), name="broken")
    with pytest.raises(ll.errors.ShapeError):
        broken(ll.ones((2, 2)))
    state = view.views["graph"].state()
    assert (state["title"], "ShapeError" in state["failed"]["error"]) == ("broken", True)
    assert "ShapeError" in limelight_widgets.dashboard().static().text
    double(ll.ones((11,)))
    assert view.views["graph"].state()["title"] == "double"


def test_a_trace_that_runs_is_seen_to_grow(double):
    view = limelight_widgets.dashboard()
    graph = view.views["graph"]
    shown = []

    @ll.function
    def slow(x):
        x = ll.tanh(x)
        shown.append(graph.state())  # takes in that it has begun
        graph._look()
        shown.append(graph.state())
        return x

    hear(view, "opened", "graph", number=0)
    slow(ll.ones((2,)))
    assert [(state["title"], state["label"]) for state in shown[1:]] == [("slow", "tracing: 1 op so far")]
    assert shown[0]["title"] != "slow", "most are over before there is anything to see"
    assert "running" not in graph.state()


def test_the_other_version_of_a_large_graph_is_described_when_it_is_asked_for(double, monkeypatch):
    from limelight_widgets.folds import graph as folds

    monkeypatch.setattr(folds, "MIDDLE", 0)
    monkeypatch.setattr(folds, "LARGE", 0)
    double(ll.ones((13,)))
    view = limelight_widgets.dashboard()
    hear(view, "opened", "graph", number=0)
    assert view.views["graph"].state()["waiting"] == "traced"
    hear(view, "whole", "graph")
    assert "waiting" not in view.views["graph"].state()


def test_nothing_has_run_yet(monkeypatch):
    from limelight_widgets.folds import dashboard as folds

    monkeypatch.setattr(folds, "staged_functions", lambda **_: [])
    monkeypatch.setattr(folds, "tapes", list)
    text = limelight_widgets.dashboard().static().text
    assert "Stage one with" in " ".join(text.split())
    assert "No tape has recorded yet" in text
    graph, _, tape, _ = text.split("─" * 80)  # the others tell of other tests, also code that is not broken
    assert all(len(line) <= 80 for part in (graph, tape) for line in part.splitlines())


def test_a_trace_chosen_in_its_cache_is_shown_in_its_graph(double):
    other = ll.function(lambda x: x + 1.0, name="another")
    other(ll.ones((2,)))
    view = limelight_widgets.dashboard()
    hear(view, "chosen", "cache", traces=[[double.id, 0]])
    shown = view.views["graph"].state()
    assert (shown["title"], "f32[2]" in shown["signature"]) == ("double", True)
    assert view.selection.trace == (double.id, 0)


def test_what_is_chosen_in_the_page_is_known_in_python(double):
    view = limelight_widgets.dashboard(double)
    hear(view, "selected", op="matmul", line=["In[3]", 4], tensor="")
    assert view.selection == Selection("matmul", ("In[3]", 4))
    assert view.state()["selection"] == {"op": "matmul", "line": ("In[3]", 4)}
    hear(view, "selected")
    assert view.selection == Selection()


def test_hidden_views_follow_nothing(double):
    view = limelight_widgets.dashboard(double)
    assert view.widget
    assert not any(one.is_live for one in view.views.values())
    hear(view, "opened", "devices", number=0)
    assert [name for name, one in view.views.items() if one.is_live] == ["devices"]
    assert device_counts.kept
    hear(view, "closed", "devices")
    assert not device_counts.kept
    hear(view, "opened", "tape", number=0)
    assert events.wanted(events.Recorded)
    view.close()
    assert not events.wanted(events.Recorded)


def test_updates_bear_the_name_of_their_view_and_closing_frees_all(double):
    view = limelight_widgets.dashboard(double)
    sent = []
    view.widget.send = lambda content, buffers=None: sent.append((content, buffers))
    hear(view, "opened", "cache", number=-1)
    until(lambda: sent)
    content, buffers = sent[0]
    assert (content["part"], content["type"]) == ("cache", "update")
    assert wire.unpack(buffers)["functions"][0]["name"] == "double"
    view.close()
    assert sent[-1][0] == {"type": "dismissed"}
    assert not any(one.is_live for one in view.views.values())


def test_without_a_front_end_there_are_only_static_forms(double, monkeypatch):
    monkeypatch.setenv(front_end.VARIABLE, "0")
    bundle = limelight_widgets.dashboard(double)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    for words in ("Graph of double", "Trace cache of double", "CPU:0"):
        assert words in bundle["text/plain"]
    assert len(bundle["text/html"]) < 200_000


def test_no_function_is_kept_alive_by_it():
    gone = ll.function(lambda x: x * 3.0, name="gone")
    gone(ll.ones((2,)))
    limelight_widgets.dashboard()
    identity = gone.id
    del gone
    gc.collect()
    assert identity not in set(module.trace_cache()._feed.fold._known)


def test_every_part_has_its_script():
    assert list(PANELS) == ["graph", "cache", "tape", "devices"]


@pytest.mark.parametrize("wrong", [3, "double"])
def test_what_is_no_function_is_refused_and_leaves_the_old_one(double, wrong):
    view = limelight_widgets.dashboard(double)
    with pytest.raises(TypeError):
        limelight_widgets.dashboard(wrong)
    assert view.views["graph"].state()["title"] == "double"
    with pytest.raises(TypeError):
        limelight_widgets.dashboard(double, tape=wrong)


def test_it_has_the_views_that_were_asked_for_where_and_as_often_as(double):
    view = limelight_widgets.dashboard(double, panels=["devices", "graph"], dock="bottom", rate=4)
    state = view.state()
    assert (state["panels"], list(state["views"])) == (["graph", "devices"], ["graph", "devices"])
    assert "Tape" not in view.static().text
    limelight_widgets.dashboard(rate=4)
    assert view.state()["title"] == "double", "it shows the same things"
    assert (view.widget.dock, view.views["tape"]._interval) == ("bottom", 0.25)
    limelight_widgets.dashboard()
    assert view.state()["panels"] == ["graph", "devices"], "what is not asked for stays"
    assert (view.widget.dock, view.views["graph"]._interval) == ("bottom", 0.25)
    assert view.state()["reset"] == ""
    assert limelight_widgets.reset_dashboard()
    assert view.state()["reset"]
    assert (view.state()["panels"], view.state()["asked"]) == (list(PANELS), False)
    assert (view.widget.dock, view.views["graph"]._interval) == ("", 0.1)
    limelight_widgets.close_dashboard()
    assert not limelight_widgets.reset_dashboard()


@pytest.mark.parametrize("asked", [{"panels": ["graf"]}, {"panels": []}, {"dock": "top"}, {"rate": 0}, {"rate": 100}])
def test_what_cannot_be_arranged(asked):
    with pytest.raises(ll.errors.ArgumentError):
        limelight_widgets.dashboard(**asked)
    assert not limelight_widgets.close_dashboard(), "none is opened"
