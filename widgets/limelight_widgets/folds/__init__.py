"""Folds: from events to the small JSON state that a view draws.

A fold is a pure class without a screen. It holds names, specs and numbers, never tensors, and engine objects only
weakly, so an open view keeps no memory alive.
"""

from __future__ import annotations

from limelight_widgets.folds.cache import CacheFold as CacheFold
from limelight_widgets.folds.devices import DevicesFold as DevicesFold
from limelight_widgets.folds.fold import Fold as Fold
from limelight_widgets.folds.fold import State as State
from limelight_widgets.folds.graph import GraphFold as GraphFold
from limelight_widgets.folds.tape import TapeFold as TapeFold
