"""Tables as pictures: they are as wide as their columns, whatever is said of them."""

from __future__ import annotations

import re

from limelight_widgets.figures.table_picture import LEAST_WIDTH_WITH_NOTES, Column, drawn_table, table_of


def width(picture: str) -> float:
    return float(re.findall(r'viewBox="0 0 ([\d.]+)', picture)[0])


def test_a_long_summary_stands_below_the_heading_and_makes_no_picture_small() -> None:
    columns = [Column("op", ["matmul", "add"]), Column("norm", ["1.0", "2.0"], number=True)]
    short = drawn_table("Gradient", "2 ops", columns)
    long = drawn_table("Gradient", "262 ops: first vanishing at multiply (In[2] line 9), norm 9.3e-07; " * 3, columns)
    assert width(short) < width(long) <= LEAST_WIDTH_WITH_NOTES
    assert "norm 9.3e-07" in long
    assert long.count("<text") > short.count("<text")


def test_a_column_with_nothing_in_it_takes_no_room() -> None:
    tensors, lines = Column("tensor", ["f32[2]", "f32[3]"]), Column("line", ["", ""])
    assert drawn_table("Live", "2 buffers", [tensors, lines]) == drawn_table("Live", "2 buffers", [tensors])
    assert table_of([tensors, lines]) == table_of([tensors])
    one = Column("line", ["", "In[2]:1"])
    assert "In[2]:1" in drawn_table("Live", "2 buffers", [tensors, one])
    assert list(table_of([tensors, one]).columns) == ["tensor", "line"]
