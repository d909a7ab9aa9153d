"""Skips what needs the compiled package where it is not there; the cases of the ops can be imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from limelight.executors.loops.native_loops import is_installed

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "ops")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if is_installed():
        return
    skip = pytest.mark.skip(reason="limelight-native is not installed: pip install ./engine/native")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(skip)
