"""A view is registered once: what is public follows from it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import limelight_widgets
from limelight_widgets import VIEWS, View
from limelight_widgets.views import view as base

FILES = {path.stem for path in Path(base.__file__).parent.glob("*.py")} - {"__init__", "selection", "view"}


def test_every_view_is_registered():
    assert sorted(view.name for view in VIEWS) == sorted(FILES)
    assert set(limelight_widgets.__all__) == {
        "CacheView", "CheckpointView", "checkpoint", "DevicesView", "ExplainView",
        "GraphView", "TapeView", "View", "devices", "explain", "graph",
        "steps", "tape", "trace_cache", "TensorTile", "tensor_tile", "DashboardView", "dashboard", "close_dashboard",
        "reset_dashboard", "set_theme",
    }  # fmt: skip


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_has_its_class_and_its_function_in_the_facade(view):
    assert getattr(limelight_widgets, view.__name__) is view
    function = getattr(limelight_widgets, view.name)
    assert issubclass(view, View)
    assert inspect.getmodule(function) is inspect.getmodule(view)
    assert Path(inspect.getfile(view)).stem == view.name
