"""Tables as pictures: they are as wide as their columns, whatever is said of them."""

from __future__ import annotations

import re

from limelight_widgets.figures.static_forms import HTML_WIDTH
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


def test_long_cells_go_on_in_further_lines_instead_of_making_the_picture_small() -> None:
    """The type of a picture that is wider than a page is smaller there."""
    rules = ["x̄ = " + "ȳ over the axes that were added " * 3, "x̄ = ȳ"]
    inputs = ["blocks.1.mlp.layers.0.kernel f32[128,128], " * 3 + "f32[8,32,128]", "f32[2]"]
    columns = [
        Column("op", ["softmax_cross_entropy", "add"]), Column("saved", ["1 MB", "8 B"], True, [1.0, 0.1]),
        Column("inputs", inputs, wraps=True), Column("output", ["f32[8,32,128]"] * 2),
        Column("rule", rules, wraps=True),
    ]  # fmt: skip
    picture = drawn_table("Gradient tape", "2 entries", columns)
    assert width(picture) <= HTML_WIDTH
    said = " ".join(re.findall(r"<text[^>]*>([^<]*)<", picture))
    assert "…" not in said
    assert all(word in said for word in {*rules[0].split(), *inputs[0].split()})


def test_a_cell_that_goes_on_and_on_is_cut() -> None:
    arguments = ", ".join(f'p["layer{i}.kernel"]: f32[3,{i}]' for i in range(150))
    picture = drawn_table(
        "Trace cache", "1 trace", [Column("trace", ["#1"]), Column("arguments", [arguments], wraps=True)]
    )
    assert float(re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)', picture)[0]) < 300
    assert "layer0.kernel" in picture
    assert " …<" in picture


def test_a_note_stands_below_all_lines_of_its_row() -> None:
    long = Column("inputs", ["blocks.1.kernel f32[128,128], " * 5, "f32[2]"], widest=30, wraps=True)
    picture = drawn_table("Trace cache", "2 traces", [Column("trace", ["#1", "#2"]), long], ["why one", "why two"])
    placed = {text: float(y) for y, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*)<', picture)}
    lines = [y for text, y in placed.items() if "kernel" in text]
    assert placed["#1"] < max(lines) < placed["why one"] < placed["#2"] < placed["why two"]
