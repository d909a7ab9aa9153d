"""What tests of behaviours share: lines of the test file as errors name them, virtual devices, copies."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import limelight as ll
from limelight import events
from limelight.core import devices
from limelight.core.devices import Device

sys.path.insert(0, str(Path(__file__).parent))  # makes `behaving` importable

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
    monkeypatch.setattr(devices, "_local", devices.list_devices())
    monkeypatch.setattr(devices, "_in_use", False)
    ll.config.set_virtual_devices(CPU=4)
    return [d for d in ll.list_devices() if d.kind == "CPU"]


@pytest.fixture
def copies() -> Iterator[list[tuple[str, str, int, str]]]:
    """The copies between devices, as (from, to, bytes, why)."""
    seen: list[tuple[str, str, int, str]] = []
    note = lambda e: seen.append((e.source_device, e.target_device, e.nbytes, e.cause))  # noqa: E731
    with events.listen(note, events.Copied):
        yield seen
