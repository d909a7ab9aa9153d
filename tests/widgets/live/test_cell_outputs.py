"""Which cells show what, as a kernel's requests tell it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from IPython.core.events import EventManager, available_events

import limelight_widgets
from limelight_widgets.live import cell_outputs, front_end
from limelight_widgets.views import view


class Output:
    """Takes note of what it is told."""

    def __init__(self):
        self.told = []

    def replaced(self, sure):
        self.told.append(sure)
        cell_outputs.forget(self)

    def cell_ended(self):
        self.told.append("end")


@pytest.fixture
def execute(monkeypatch):
    """Makes a request the one that is executed: `execute(text, cell)`."""
    monkeypatch.setattr(cell_outputs, "_shown", {})
    manager = EventManager(None, available_events)
    shell = SimpleNamespace(request={}, get_parent=lambda: shell.request, events=manager)
    monkeypatch.setattr(cell_outputs, "shell", lambda: shell)
    numbers = iter(range(100))

    def execute(text, cell=None, kind="execute_request"):
        execute.shell = shell
        header = {"msg_type": kind, "msg_id": str(next(numbers))}
        metadata = {} if cell is None else {"cellId": cell}
        shell.request = {"header": header, "metadata": metadata, "content": {"code": text}}

    return execute


def shown(*outputs):
    for output in outputs:
        cell_outputs.note(output)
    return outputs


def test_a_cell_is_known_by_its_id_whatever_its_text(execute):
    execute("one", "a")
    first, second = shown(Output(), Output())
    execute("one", "b")
    (elsewhere,) = shown(Output())
    execute("edited", "a")
    shown(Output())
    assert (first.told, second.told, elsewhere.told) == ([True], [True], [])


def test_without_ids_it_is_known_by_its_text_and_nobody_can_be_sure(execute):
    execute("one")
    (first,) = shown(Output())
    execute("other")
    (other,) = shown(Output())
    execute("one")
    shown(Output())
    assert (first.told, other.told) == ([False], [])


def test_what_another_cell_shows_as_well_stays(execute):
    output = Output()
    execute("one", "a")
    shown(output)
    execute("two", "b")
    shown(output, output)
    execute("one", "a")
    shown(Output())
    assert output.told == []
    execute("two", "b")
    shown(Output())
    assert output.told == [True]


def test_what_is_shown_again_stays(execute):
    output = Output()
    for _ in range(3):
        execute("one", "a")
        shown(output)
    assert output.told == []
    assert len(cell_outputs._shown) == 1


def test_what_was_closed_is_forgotten(execute):
    execute("one", "a")
    (output,) = shown(Output())
    cell_outputs.forget(output)
    assert cell_outputs._shown == {}


def test_what_no_cell_shows_is_left_to_whoever_shows_it(execute):
    execute("", kind="comm_msg")
    shown(Output())
    assert cell_outputs._shown == {}


def test_a_view_that_somebody_may_look_at_is_closed_only_where_its_cell_is_known_by_id(execute, staged, monkeypatch):
    monkeypatch.setenv(front_end.VARIABLE, "1")
    for cell, stays in ((None, True), ("a", False)):
        execute("one", cell)
        looked_at = limelight_widgets.trace_cache(staged)
        looked_at._repr_mimebundle_()
        looked_at._heard("opened", {"view": "page"})
        execute("one", cell)
        shown(Output())
        assert (looked_at._made is not None) is stays
        assert (id(looked_at) in view._closed) is stays
        looked_at.close()


def test_a_widget_for_layouts_stays(execute, staged, monkeypatch):
    monkeypatch.setenv(front_end.VARIABLE, "1")
    execute("one", "a")
    handed_out = limelight_widgets.trace_cache(staged)
    handed_out._repr_mimebundle_()
    widget = handed_out.widget
    execute("one", "a")
    shown(Output())
    assert widget.comm is not None
    handed_out.close()
    assert widget.comm is None
    assert widget.layout.comm is None


def test_what_is_shown_hears_of_the_end_of_each_cell_until_it_is_gone(execute):
    execute("one", "a")
    (first,) = shown(Output())
    manager = execute.shell.events
    manager.trigger("post_run_cell", None)
    execute("two", "b")
    manager.trigger("post_run_cell", None)
    assert first.told == ["end", "end"]
    cell_outputs.forget(first)
    manager.trigger("post_run_cell", None)
    assert first.told == ["end", "end"]
    assert manager.callbacks["post_run_cell"] == [], "nothing of ours is left where nothing is shown"
