"""What tests of behaviours share: lines of the test file as errors name them, and virtual devices."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import limelight as ll
from limelight import devices
from limelight.devices import Device

Here = Callable[..., str]


@pytest.fixture(autouse=True)
def _retraces_are_meant() -> Iterator[None]:
    """Parametrised tests stage one definition again and again: that is no mistake here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        yield


@pytest.fixture
def here() -> Here:
    """Lines as errors name them: "test_x.py line N" for the line n lines below the one that asks."""

    def line(offset: int = 0) -> str:
        frame = sys._getframe(1)
        return f"{Path(frame.f_code.co_filename).name} line {frame.f_lineno + offset}"

    return line


@pytest.fixture
def cpus(monkeypatch: pytest.MonkeyPatch) -> list[Device]:
    """Four logical CPU devices, for this test only."""
    monkeypatch.setattr(devices, "_local", list(devices._local))
    monkeypatch.setattr(devices, "_in_use", False)
    ll.config.set_virtual_devices(CPU=4)
    return [d for d in ll.list_devices() if d.kind == "CPU"]
