from __future__ import annotations

import time
from types import SimpleNamespace

import comm
import pytest
from comm.base_comm import BaseComm

import limelight_widgets
from harness.waiting import until
from limelight import events
from limelight_widgets.live import front_end as frontend
from limelight_widgets.live import view_script, wire
from limelight_widgets.live.layout_widget import shared_engine
from limelight_widgets.live.static_outputs import VIEW_MIME, WIDGET_MIME
from limelight_widgets.views import view


class FakeComm(BaseComm):
    """Keeps what would go to the front end."""

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        FakeComm.log.append(SimpleNamespace(comm=self, kind=msg_type, data=data, buffers=buffers, metadata=metadata))

    def _reply_subshell_for(self, data, default):
        return "the shell that a cell blocks"


@pytest.fixture
def log(monkeypatch):
    """Messages to a front end that exists."""
    FakeComm.log = []
    monkeypatch.setattr(comm, "create_comm", FakeComm)
    monkeypatch.setenv(frontend.VARIABLE, "1")
    from limelight_widgets.live import layout_widget as engine
    from limelight_widgets.live import view_script

    monkeypatch.setattr(engine, "_shared", [])
    monkeypatch.setattr(view_script, "_shared", {})
    return FakeComm.log


@pytest.fixture
def show(staged, log):
    """Displays the trace cache of a staged function; closes it at the end."""
    shown = limelight_widgets.trace_cache(staged)
    shown._repr_mimebundle_()
    yield shown
    shown.close()
    view._closed.clear()


def hear(shown, kind, number=0, looker="a"):
    content = {"type": kind, "number": number, "view": looker}
    shown.widget._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})


def messages(log, shown):
    return [m for m in log if m.kind == "comm_msg" and m.comm is shown.widget.comm and m.data.get("method") == "custom"]


def updates(log, shown):
    return [m for m in messages(log, shown) if m.data["content"]["type"] != "static"]


def openings(log):
    """Our views' widgets as they were opened; their scripts and ipywidgets' layouts are opened beside them."""
    return [m for m in log if m.kind == "comm_open" and "snapshot" in m.data["state"]]


def scripts(log):
    """The hidden widgets' states as they were opened."""
    states = [m.data["state"] for m in log if m.kind == "comm_open"]
    return [state for state in states if "_esm" in state and "snapshot" not in state]


def miss(entry):
    events.emit(events.CacheMiss("step", -7, entry, "shape", None))


def test_without_a_front_end_there_are_only_static_forms(staged, monkeypatch):
    monkeypatch.setenv(frontend.VARIABLE, "0")
    shown = limelight_widgets.trace_cache(staged)
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert not shown.is_live
    assert not events.wanted(events.CacheMiss)


def test_a_view_whose_widget_somebody_else_closes_follows_no_more(show, log):
    first = show.widget
    assert show.is_live
    first.close()
    assert not show.is_live
    assert not events.wanted(events.CacheMiss)
    assert show.widget is not first
    assert show.is_live
    first.close()  # once more: it is the view's no longer
    assert show.is_live


def test_with_a_front_end_there_is_a_widget_beside_them(show, log):
    bundle = show._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", WIDGET_MIME, VIEW_MIME}
    assert bundle[WIDGET_MIME]["model_id"] == show.widget.model_id
    assert set(show.static().bundle()) == {"text/plain", "text/html"}


def test_the_widget_opens_with_the_state_of_that_moment(show, log):
    (opening,) = openings(log)
    snapshot = wire.unpack([bytes(part) for part in _buffers_at(opening, "snapshot")])
    assert snapshot["kind"] == "trace_cache"


def test_the_script_of_a_view_is_sent_once(staged, show, log):
    for _ in range(3):
        another = limelight_widgets.trace_cache(staged)
        another._repr_mimebundle_()
        another.close()
    assert len(openings(log)) == 4
    assert all(len(str(m.data)) < 7_500 for m in openings(log))  # 5,400 of them what it lends to the script
    (carrier,) = scripts(log)
    assert carrier["_esm"] == view_script.script("trace_cache").read_text(encoding="utf-8")
    assert carrier["_css"]
    (ref,) = {m.data["state"]["script"] for m in openings(log)}
    assert ref == f"anywidget:{view_script.shared_script(view_script.script('trace_cache')).model_id}"


def _buffers_at(opening, name):
    paths = opening.data["buffer_paths"]
    return [buffer for path, buffer in zip(paths, opening.buffers, strict=True) if path[0] == name]


def test_events_travel_as_numbered_updates(show, log):
    hear(show, "opened")
    miss(0)
    until(lambda: updates(log, show))
    message = updates(log, show)[-1]
    assert message.data["content"]["type"] == "update"
    state = wire.unpack(message.buffers)
    assert state["functions"][0]["entries"][0]["reason"] == "shape"


def test_a_view_that_is_shown_first_gets_no_state_twice(show, log):
    hear(show, "opened", 0)
    time.sleep(0.1)
    assert updates(log, show) == []


def test_a_page_that_was_loaded_again_gets_everything(show, log):
    hear(show, "opened", 0)
    miss(0)
    until(lambda: len(updates(log, show)) == 1)
    hear(show, "opened", 0, looker="b")
    until(lambda: len(updates(log, show)) == 2)
    assert wire.unpack(updates(log, show)[-1].buffers)["functions"][0]["entries"]


def test_closing_the_last_output_detaches_and_opening_it_again_catches_up(show, log, staged, network):
    hear(show, "opened", 0, "a")
    hear(show, "opened", 0, "b")
    hear(show, "closed", looker="a")
    assert show.is_live
    hear(show, "closed", looker="b")
    assert not show.is_live
    assert not events.wanted(events.CacheMiss)
    staged.add(network, reason="while nobody looked")
    hear(show, "opened", 0, "c")
    until(lambda: updates(log, show))
    assert wire.unpack(updates(log, show)[-1].buffers)["functions"][0]["entries"][0]["reason"] == "while nobody looked"


@pytest.mark.slow  # waits
def test_a_front_end_that_does_not_answer_gets_fewer_updates(show, log, monkeypatch):
    hear(show, "opened")
    monkeypatch.setattr(view, "AHEAD", 3)
    monkeypatch.setattr(view, "SLOW_INTERVAL", 30.0)
    until(lambda: miss(0) or len(updates(log, show)) >= 4)
    for n in range(12):
        miss(n)
        time.sleep(0.06)
    assert len(updates(log, show)) <= 6
    assert show._publish(show._feed.fold) == 30.0
    hear(show, "seen", show._sent)
    assert show._publish(show._feed.fold) < 1.0


def test_a_front_end_that_never_answers_is_given_up_and_an_answer_brings_it_back(show, log, monkeypatch):
    monkeypatch.setattr(view, "GIVE_UP", 2)
    monkeypatch.setattr(view, "SLOW_INTERVAL", 0.01)
    hear(show, "opened")
    until(lambda: miss(0) or not show.is_live)
    hear(show, "seen", show._sent)
    assert show.is_live


def test_every_fourth_update_asks_for_an_answer(show, log):
    hear(show, "opened")
    for n in range(8):
        miss(n)
        until(lambda n=n: len(updates(log, show)) > n)
    assert [m.data["content"]["answer"] for m in updates(log, show)[:8]] == [False, False, False, True] * 2


def test_messages_are_not_sent_to_the_shell_that_a_cell_blocks(show):
    """Ipykernel 7.4 answers on the shell that last sent; see `widget.Responsive`."""
    assert show.widget.comm._reply_subshell_for({"content": {}}, "subshell-1") == "subshell-1"


def test_ipykernels_comm_still_has_the_method_that_is_overridden():
    """Fails when a newer ipykernel renames it: then the browser test of clicks while a cell runs decides what to do."""
    import ipykernel
    from ipykernel.comm.comm import BaseComm as KernelComm

    if ipykernel.version_info[:2] < (7, 4):
        pytest.skip(f"ipykernel {ipykernel.__version__} routes messages by itself; 7.4 is the first that does not")
    assert hasattr(KernelComm, "_reply_subshell_for")


def test_all_graph_views_share_one_engine(network, log):
    views = [limelight_widgets.graph(network) for _ in range(3)]
    for one in views:
        one._repr_mimebundle_()
    assert len([state for state in scripts(log) if "new Worker" in state["_esm"]]) == 1
    refs = {m.data["state"]["engine"] for m in openings(log) if "engine" in m.data["state"]}
    assert refs == {f"anywidget:{shared_engine().model_id}"}
    for one in views:
        one.close()
    shared_engine().close()


def test_the_page_loads_what_graph_views_share_while_the_graph_is_described(network, log):
    limelight_widgets.graph(network)
    assert len(scripts(log)) == 2
    assert not openings(log)
    shared_engine().close()


def test_a_view_that_no_page_shows_sends_it_nothing(network, log, monkeypatch):
    monkeypatch.setenv(frontend.VARIABLE, "0")
    limelight_widgets.graph(network).static()
    assert not log


def test_the_page_begins_with_a_widget_before_its_static_forms_are_drawn(staged, log, monkeypatch):
    shown = limelight_widgets.trace_cache(staged)
    opened = []

    def figure(state):
        opened.append(len(openings(log)))
        return SimpleNamespace(bundle=dict)

    monkeypatch.setattr(shown, "_figure", figure)
    shown._repr_mimebundle_()
    assert opened == [1]
    shown.close()


def test_an_engine_that_was_closed_is_replaced(log):
    first = shared_engine()
    first.close()
    assert shared_engine() is not first
    shared_engine().close()


def test_widgets_that_nobody_looks_at_do_not_pile_up(staged, log, monkeypatch):
    monkeypatch.setattr(view, "MOST_CLOSED", 3)
    views = []
    for _ in range(6):
        one = limelight_widgets.trace_cache(staged)
        one._repr_mimebundle_()
        hear(one, "opened")
        hear(one, "closed")
        views.append(one)
    assert [one._made is None for one in views] == [True, True, True, False, False, False]
    for one in views:
        one.close()
    assert not view._closed


def test_garbage_from_the_front_end_is_ignored(show):
    for content in (None, [], {"type": 3}, {"type": "unknown"}, {}):
        show.widget._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})


# --- is there a front end?


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        (None, False),
        (SimpleNamespace(), False),
        (SimpleNamespace(kernel=object(), history_manager=SimpleNamespace(hist_file="history.sqlite")), True),
        (SimpleNamespace(kernel=object(), history_manager=SimpleNamespace(hist_file=":memory:")), False),
        (SimpleNamespace(kernel=object(), history_manager=None), True),
    ],
)
def test_a_kernel_that_only_executes_a_file_has_no_front_end(shell, expected, monkeypatch):
    monkeypatch.delenv(frontend.VARIABLE, raising=False)
    monkeypatch.setattr(frontend, "shell", lambda: shell)
    assert frontend.has_front_end() is expected


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("true", True), ("0", False), ("off", False), ("", False)]
)
def test_the_environment_decides(value, expected, monkeypatch):
    monkeypatch.setenv(frontend.VARIABLE, value)
    assert frontend.has_front_end() is expected


# --- the public functions


def test_what_cannot_be_shown_is_refused_with_what_to_do():
    with pytest.raises(TypeError, match=r"this is a int\. Stage it first: F = limelight\.function\(f\)"):
        limelight_widgets.trace_cache(3)
    with pytest.raises(TypeError, match=r"a gradient tape .* this is a str"):
        limelight_widgets.tape("x")
    with pytest.raises(TypeError, match="Stage it first"):
        limelight_widgets.graph(None)


def test_a_view_prints_as_text(network, fake_tape):
    assert repr(limelight_widgets.graph(network)).startswith("Graph of step: ")
    assert repr(limelight_widgets.tape(fake_tape(40, 8))).startswith("Gradient tape: 2 entries, 48 B kept alive")


def forms_told(log, shown):
    contents = [m.data["content"] for m in messages(log, shown)]
    return [content for content in contents if content["type"] == "static"]


def test_the_static_forms_are_told_anew_where_a_cell_has_changed_what_is_shown(staged, network, show, log):
    hear(show, "opened")
    show.cell_ended()
    assert forms_told(log, show) == [], "nothing has changed"
    staged.add(network)
    miss(0)
    show.cell_ended()
    show.cell_ended()
    (told,) = forms_told(log, show)
    assert told["model_id"] == show.widget.model_id
    assert "1 trace" in told["forms"]["text/plain"]
    assert told["forms"] == show.static().bundle()


def test_what_a_cell_changed_before_its_page_was_ready_is_told_when_it_is(staged, network, show, log):
    staged.add(network)
    miss(0)
    show.cell_ended()
    assert forms_told(log, show) == [], "nobody could hear it"
    hear(show, "opened")
    assert len(forms_told(log, show)) == 1


def test_a_page_that_is_loaded_again_is_told_the_forms_that_the_last_one_had(staged, network, show, log):
    hear(show, "opened", looker="a page")
    staged.add(network)
    miss(0)
    show.cell_ended()
    hear(show, "opened", looker="the page that was loaded again, from what was saved before")
    hear(show, "opened", looker="a page")
    first, second = forms_told(log, show)
    assert first == second


def test_what_happens_while_the_widget_is_made_is_sent(staged, network, show, log, monkeypatch):
    another = limelight_widgets.trace_cache(staged)
    pack = wire.pack

    def packed(state):
        monkeypatch.setattr(wire, "pack", pack)
        parts = pack(state)
        staged.add(network)
        miss(0)
        until(lambda: not another._feed._has_work())
        return parts

    monkeypatch.setattr(wire, "pack", packed)
    assert another.widget
    until(lambda: updates(log, another))
    assert wire.unpack(updates(log, another)[0].buffers)["functions"][0]["entries"]
    another.close()


def test_where_no_widget_can_run_the_forms_are_displayed_again(staged, network, monkeypatch):
    monkeypatch.setenv(frontend.VARIABLE, "0")
    published = []
    publisher = SimpleNamespace(publish=lambda data, metadata, **keys: published.append((data, keys)))
    kernel = SimpleNamespace(kernel=object(), display_pub=publisher)
    monkeypatch.setattr(frontend, "shell", lambda: kernel)
    shown = limelight_widgets.trace_cache(staged)
    shown._ipython_display_()
    shown.cell_ended()
    staged.add(network)
    shown.cell_ended()
    (first, keys), (second, later) = published
    assert (keys["update"], later["update"]) == (False, True)
    assert keys["transient"] == later["transient"]
    assert "has no traces" in first["text/plain"]
    assert "1 trace" in second["text/plain"]


def test_without_a_kernel_ipython_shows_the_bundle(staged, monkeypatch):
    monkeypatch.setenv(frontend.VARIABLE, "0")
    with pytest.raises(NotImplementedError):
        limelight_widgets.trace_cache(staged)._ipython_display_()
