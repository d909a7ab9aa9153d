"""Where the collector is paused, what is made is old afterwards: it is walked over when all is."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from limelight.core import collector
from limelight.core.collector import collector_paused


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """As in most programs; the tests themselves freeze what they do not free."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    gc.collect()
    yield
    if frozen:
        gc.freeze()


def generation_of(x: object) -> int:
    return next(i for i in (0, 1, 2) if any(y is x for y in gc.get_objects(i)))


def made_in_a_pause(n: int) -> list[list[int]]:
    with collector_paused():
        return [[] for _ in range(n)]


def test_what_a_long_pause_makes_is_old(nothing_frozen):
    made = made_in_a_pause(20_000)
    assert gc.isenabled()
    assert generation_of(made[0]) == generation_of(made[-1]) == len(gc.get_stats()) - 1
    cycle: list[object] = []
    cycle.append(cycle)
    del made, cycle
    assert gc.collect() > 0


def test_what_a_short_one_makes_is_young(nothing_frozen):
    made = made_in_a_pause(100)
    assert generation_of(made[0]) == 0


def test_there_is_a_limit_until_a_full_collection(nothing_frozen, monkeypatch):
    monkeypatch.setattr(collector, "_LIMIT", 50_000)
    kept = [made_in_a_pause(20_000) for _ in range(3)]
    assert generation_of(kept[1][0]) == 2
    assert generation_of(kept[2][-1]) < 2
    gc.collect()
    assert generation_of(made_in_a_pause(20_000)[0]) == 2


def test_frozen_objects_stay_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    made = made_in_a_pause(20_000)
    assert gc.get_freeze_count() >= frozen - 100  # some may have been freed
    assert len(made) == 20_000
