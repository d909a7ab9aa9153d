"""Settings of the whole process that end with a block: blocks of several threads end in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.optimise.setting import setting
from limelight.staging import run_eagerly
from limelight.user_code import tracebacks

SWITCHES: dict[str, tuple[Callable[[], Any], Callable[[], object]]] = {
    "optimiser": (lambda: ll.config.optimiser(level=0), setting.get),
    "show_library_frames": (ll.config.show_library_frames, tracebacks.shown),
    "run_functions_eagerly": (ll.config.run_functions_eagerly, run_eagerly.everywhere),
}


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_blocks_that_overlap_leave_nothing_behind(name: str, order: tuple[int, int]) -> None:
    switch, value = SWITCHES[name]
    before = value()
    blocks = [switch(), switch()]  # each begins before the other is entered
    for block in blocks:
        block.__enter__()
    assert value() != before
    blocks[order[0]].__exit__(None, None, None)
    assert value() != before, "the other one still holds"
    blocks[order[1]].__exit__(None, None, None)
    assert value() == before


def test_a_block_within_another_gives_back_what_that_has_set() -> None:
    with ll.config.run_functions_eagerly():
        with ll.config.run_functions_eagerly(False):
            assert not run_eagerly.everywhere()
        assert run_eagerly.everywhere()
    assert not run_eagerly.everywhere()


def test_a_block_entered_again_within_itself() -> None:
    block = ll.config.optimiser(level=0)
    with block:
        with block:
            assert setting.get().level == 0
        assert setting.get().level == 0, "the outer one still holds"
    assert setting.get().level == 3
