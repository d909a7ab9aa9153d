"""Warnings of cells: one line each, once."""

from __future__ import annotations

import warnings

import pytest

from limelight_kernel.cell.cell_warnings import CellWarnings, StagedCellWarning


def test_a_warning_is_one_line_with_the_line_of_the_cell() -> None:
    with pytest.warns(StagedCellWarning) as caught:
        CellWarnings("<cell>").warn("`print(...)` prints\n  once.", 3)
    one = caught[0]
    shown = warnings.formatwarning(one.message, one.category, one.filename, one.lineno)
    assert shown == "<cell>:3: StagedCellWarning: `print(...)` prints once.\n"


def test_a_cell_warns_once_of_one_thing() -> None:
    cell, other = CellWarnings("<cell>"), CellWarnings("<cell>")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for line in (3, 3, 4):
            cell.warn("It differs.", line)
        other.warn("It differs.", 3)
    assert [(one.filename, one.lineno) for one in caught] == [("<cell>", 3), ("<cell>", 4), ("<cell>", 3)]


def test_a_warning_made_an_error_is_raised() -> None:
    with warnings.catch_warnings(), pytest.raises(StagedCellWarning):
        warnings.simplefilter("error")
        CellWarnings("<cell>").warn("It differs.")
