"""The static forms of every view: text, HTML and pictures."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

import pytest

import limelight as ll
import limelight_widgets
from limelight_widgets import VIEWS, ExplainView
from limelight_widgets.figures.dashboard import dashboard_figure
from limelight_widgets.figures.devices import devices_figure
from limelight_widgets.figures.graph import graph_figure
from limelight_widgets.figures.static_forms import Table, figure, html_table, text_table
from limelight_widgets.figures.table_picture import Column, drawn_table, table_figure, table_of
from limelight_widgets.figures.tape import tape_figure
from limelight_widgets.figures.trace_cache import cache_figure
from limelight_widgets.figures.trace_diff import Differences
from limelight_widgets.folds.devices import DevicesFold
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.folds.tape import TapeFold
from limelight_widgets.folds.trace_cache import CacheFold

PICTURED = [view.name for view in VIEWS if view is not ExplainView]  # cards are text
ALLOWED = {
    "code",
    "figure",
    "figcaption",
    "img",
    "details",
    "summary",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "p",
    "div",
}


@pytest.fixture
def figures(network, staged, fake_tape, tmp_path):
    tape = fake_tape(40, 80)
    staged.add(network, reason="first call")
    staged.add(network, signature="x: f32[17,3]", reason="argument `x` f32[2,3] -> f32[17,3]", hits=3)
    devices = DevicesFold([("CPU:0", "/job:localhost/task:0/device:CPU:0", 31_360, 62_720)])
    shown = {
        "graph": graph_figure(GraphFold(staged).state(), "optimised"),
        "trace_cache": cache_figure(CacheFold((staged,), only=True).state()),
        "tape": tape_figure(TapeFold(tape).state()),
        "devices": devices_figure(devices.state()),
        "checkpoint": limelight_widgets.checkpoint(ll.Checkpoint(v=ll.Variable([1.0])).write(tmp_path / "x")).static(),
    }
    return shown | {"dashboard": dashboard_figure(shown)}


@pytest.mark.parametrize("name", PICTURED)
def test_every_form_is_there_and_small(figures, name):
    bundle = figures[name].bundle()
    assert set(bundle) == {"text/plain", "text/html"}
    assert sum(len(form.encode()) for form in bundle.values()) < 200_000
    assert all(len(line) <= 80 for line in bundle["text/plain"].splitlines())


@pytest.mark.parametrize("name", PICTURED)
def test_html_holds_only_what_untrusted_notebooks_keep(figures, name):
    html = figures[name].html
    assert set(re.findall(r"<\s*([a-zA-Z]+)", html)) <= ALLOWED
    image = re.search(r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]+)"', html)
    assert base64.b64decode(image[1]).decode() == figures[name].svg
    assert image[2]


@pytest.mark.parametrize("name", PICTURED)
def test_a_picture_is_not_shrunk_beyond_reading_in_a_narrow_page_but_scrolls(figures, name):
    width, least = re.search(r'width="(\d+)" style="min-width:(\d+)px">', figures[name].html).groups()
    assert 0.75 <= int(least) / int(width) < 1
    assert '<figure style="overflow-x:auto">' in figures[name].html


@pytest.mark.parametrize("name", PICTURED)
def test_pictures_are_well_formed_described_and_bring_their_backdrop(figures, name):
    root = ElementTree.fromstring(figures[name].svg)
    kinds = [child.tag.rpartition("}")[2] for child in root]
    assert kinds[:4] == ["title", "desc", "style", "rect"]
    assert not {"script", "foreignObject", "image"} & {e.tag.rpartition("}")[2] for e in root.iter()}


def test_the_graph_as_text(figures):
    assert figures["graph"].text.splitlines() == [
        "Graph of step: optimised, trace #2 of 2, 5 ops, 3 inputs, 1 output",
        "",
        "value  op         of              gives     line",
        "─────  ─────────  ──────────────  ────────  ─────────",
        "%3     matmul     x, w            f32[2,3]  cell.py:5",
        "%4     tanh       %3              f32[2,3]  cell.py:6",
        "%5     constant   2.0             f32[2,3]",
        "%6     multiply   %4, %5          f32[2,3]  cell.py:7",
        "%7     call loss  %6, y           f32[2,3]  cell.py:8",
        "       in loss:",
        "%2     subtract   logits, labels  f32[2,3]  cell.py:2",
        "%3     multiply   %2, %2          f32[2,3]  cell.py:3",
        "%4     mean       %3              f32[2,3]  cell.py:3",
    ]


def test_the_cache_as_text_names_the_reason(figures):
    assert "2 traces, 3 hits" in figures["trace_cache"].text
    assert "first call" in figures["trace_cache"].text


def test_a_table_that_is_too_large_says_that_it_was_cut():
    rows = [[str(n), "x" * 150, "y" * 150, "z" * 150] for n in range(2_000)]
    shown = figure("Rows", "many", None, Table(("n", "a", "b", "c"), rows))
    assert sum(len(form.encode()) for form in shown.bundle().values()) < 200_000
    kept = shown.html.count("<tr>") - 1
    assert f"… {2_000 - kept:,} more rows" in shown.html


def test_rows_that_are_left_out_are_counted_once():
    column = Column("n", [str(n) for n in range(100)])
    shown = table_figure("Numbers", "many", [column], 1_000, "A number is one more than the one before.")
    assert shown.text.endswith("39\n… 960 more rows\nA number is one more than the one before.")
    assert "<p>… 900 more rows</p><p>A number" in shown.html
    assert "… 976 more rows" in shown.svg


def test_text_in_cells_is_flush_left_whatever_the_page_says_with_no_more_markup_than_that_needs():
    html = html_table(Table(("op", "bytes"), [["add", "8"], ["", ""]], frozenset({"bytes"})))
    assert '<tr><th><div align="left">op</div></th><th align="right">bytes</th></tr>' in html
    assert '<tr><td><div align="left">add</div></td><td align="right">8</td></tr>' in html
    assert '<tr><td></td><td align="right"></td></tr>' in html


def test_empty_views_say_what_to_do_in_every_form(staged):
    shown = graph_figure(GraphFold(staged).state(), "optimised")
    for form in (shown.text, shown.html, shown.svg):
        assert "has not been traced yet" in form


def test_wide_columns_give_way():
    table = Table(("a", "b"), [["x" * 200, "12"]], numbers=frozenset({"b"}))
    assert max(map(len, text_table(table).splitlines())) == 80
    assert text_table(table).splitlines()[-1].endswith("…  12")


def test_no_shape_is_cut_in_plain_text():
    inputs, output = [f"f32[{n},1024,1024]" for n in range(100, 104)], ["f32[128,1024,1024]"]
    row = [0, "concatenate", ["In[3]", 4, ""], inputs, output, 8, "a rule that is as long as rules in words are"]
    state = {"entries": 1, "saved": 8, "rows": [row], "released": False, "hint": "", "empty": ""}
    text = tape_figure(state).text
    assert all(spec in text for spec in (*inputs, *output))
    assert max(map(len, text.splitlines())) <= 80


def test_lambdas_are_told_apart_by_where_they_begin_and_those_of_one_line_by_numbers():
    functions = [
        ll.function(lambda x: x + 1.0),
        *[ll.function(one) for one in (lambda x: x * 2.0, lambda x: x * 3.0)],
        ll.function(lambda x: x, name="other"),
    ]
    for function in functions:
        function(ll.ones(2))
    text = cache_figure(CacheFold(tuple(functions), only=True).state()).text
    assert text.startswith("Trace caches of 4 functions")
    said = " ".join(text.split())
    places = re.findall(r"<lambda> \((test_static_forms\.py:\d+(?:, no\. 2)?)\) #1: ", said)
    assert len(set(places)) == 3
    assert places[2] == f"{places[1]}, no. 2"
    assert "other #1: " in said


@pytest.mark.parametrize("ahead", range(0, 160, 7))
@pytest.mark.parametrize(
    "code",
    [
        '@ll.function(input_signature=[ll.TensorSpec((4, None), "int32")])',
        "step(ll.constant([1, 2, 3]), training=False)",
        "steps[0](x, y=-1)",
        "make_(a, b)(c, d)",
        'step(x, device="gpu-of-this-machine")',
    ],
)
def test_the_code_of_a_fix_is_not_broken_in_plain_text_wherever_it_begins(code, ahead):
    sentence = f"{' word' * (ahead // 5)}{'x' * (ahead % 5)}: too many sizes. Fix: {code} above the def"
    table = Table(("trace",), [("#1",)], sentences=[sentence])
    lines = figure("Trace cache", "1 trace", None, table).text.splitlines()
    assert any(code in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert " ".join(lines[-4:]).endswith("above the def")


@pytest.mark.parametrize(("hidden", "said"), [(1, "… 1 more op"), (1200, "… 1,200 more ops"), (0, "")])
def test_what_is_left_out_is_counted_in_words(hidden, said):
    table = Table(("op",), [("add",)], hidden=hidden, unit="op")
    for form in (text_table(table), html_table(table)):
        assert re.findall(r"… [\d,]+ more ops?", form) == ([said] if said else [])


def test_ops_in_which_two_traces_differ_are_counted_where_they_are_not_listed():
    rows = tuple([("1", "add", "f32[2]", "f32[3]")] * 230)
    told = Differences("f", (1, 2), (), rows, (300, 300))
    assert "… 30 more ops" in told._repr_html_()
    assert "… 190 more ops" in str(told)  # of 40 in plain text


@pytest.mark.parametrize(("unlisted", "said"), [(0, False), (3, True)])
def test_copies_that_are_not_listed_are_told(unlisted, said):
    state = DevicesFold([("CPU:0", "/job:localhost/task:0/device:CPU:0", 40, 40)]).state() | {"unlisted": unlisted}
    assert ("3 more copies not listed." in devices_figure(state).text) is said


def test_code_that_is_wider_than_the_text_is_whole_all_the_same():
    code = f"step({', '.join(f'argument_{i}=ll.ones((4, {i}))' for i in range(5))})"
    lines = figure("f", "1 trace", None, Table(("trace",), [("#1",)], sentences=[f"Cost 1 ms. Fix: {code}"])).text
    assert len(code) > 80
    assert code in lines.splitlines()


def test_what_stands_between_backticks_is_code_in_a_table_and_plain_in_a_picture():
    columns = [Column("held by", ["saved by gradient tape `tape`"])]
    drawn = drawn_table("Live", "1 buffer", columns, ["`f` traced"])
    assert "saved by gradient tape tape" in drawn
    assert "`" not in drawn
    table = html_table(table_of([*columns, Column("why", ["`f` traced"])]))
    assert "saved by gradient tape <code>tape</code>" in table
    assert "<code>f</code> traced" in table
