"""The hierarchy of a graph's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight_widgets.folds.group_tree import MOST_CHILDREN, ROOT, Facts
from limelight_widgets.folds.node_groups import Hierarchy
from limelight_widgets.folds.node_places import LANES, Place, Segment
from limelight_widgets.folds.repeated_groups import LEAST_UNROLLED


def module(key: str, cls: str = "Dense") -> Segment:
    return Segment(key, "module", key, cls)


def scope(key: str) -> Segment:
    return Segment(key, "scope", key)


def tree(paths: Sequence[tuple[Segment, ...]], **more: Any) -> Hierarchy:
    """Nodes at these paths, all different unless `symbols` are given."""
    count = len(paths)
    lanes = more.get("lanes", ["forward"] * count)
    symbols = more.get("symbols", range(count))
    places = {key: Place(*key) for key in zip(lanes, paths, strict=True)}
    return Hierarchy(
        Facts(
            [places[key] for key in zip(lanes, paths, strict=True)],
            [(hash((lane, symbol)),) * 2 for lane, symbol in zip(lanes, symbols, strict=True)],
            more.get("lines", [("", 0)] * count),
            more.get("inputs", [[]] * count),
            more.get("folded", [-1] * count),
        )
    )


def titles(hierarchy: Hierarchy) -> list[tuple[str, int, int]]:
    return [(group.title, group.parent, group.size) for group in hierarchy.groups]


@pytest.mark.parametrize("count", [61, 1_000, 20_000])
def test_every_container_is_small_whatever_the_graph(count):
    hierarchy = tree([()] * count)
    assert max(hierarchy.children().values()) <= MOST_CHILDREN
    grouped = sum(group.size for group in hierarchy.groups if group.parent == ROOT)
    assert grouped + sum(parent == ROOT for parent in hierarchy.of) == count
    assert len(hierarchy.groups) <= count / 7  # a group for every other node says nothing, and is sent and walked over


def test_runs_of_one_line_are_grouped_before_blocks():
    hierarchy = tree([()] * 200, lines=[("In[3]", 1 + n // 4) for n in range(200)])
    assert [group.title for group in hierarchy.groups[:3]] == ["lines 1–8", "In[3] line 1", "In[3] line 2"]
    assert {group.kind for group in hierarchy.groups} == {"line"}
    assert hierarchy.children()[ROOT] == 7
    assert tree([()] * 48, lines=[("In[3]", 1 + n // 4) for n in range(48)]).children()[ROOT] == 12


class Line(NamedTuple):
    line: int
    file: str = "In[3]"


def called(function: str, line: int, times: int = 1, cls: str = "") -> Segment:
    again = {} if times == 1 else {"key": f"{function}#{times}", "title": f"{function} (call {times})"}
    segment = Segment(function, "module" if cls else "function", function, cls, at=Line(line))
    return segment._replace(**again)


def test_calls_stand_with_the_statement_that_makes_them_where_there_is_much_at_the_top():
    steps = [(called(f"net{n}", n + 1, cls="Net"),) for n in range(10)]
    paths = [path for step in steps for path in (step, step, (), ())]
    lines = [("In[3]", n // 4 + 1) for n in range(40)]
    few = tree(paths[:12], lines=lines[:12])
    assert [group.title for group in few.groups] == ["net0", "net1", "net2"]
    many = tree(paths, lines=lines)
    assert titles(many)[:4] == [
        ("In[3] line 1", ROOT, 4), ("net0", 0, 2), ("In[3] line 2", ROOT, 4), ("net1", 2, 2)
    ]  # fmt: skip
    assert many.children()[ROOT] == 10


def test_rounds_that_differ_a_little_are_rounds_of_the_loop():
    paths, lines, symbols = [], [], []
    for n in range(6):
        for name, line in (("update_v", 7), ("update_x", 8)):
            ops = [name] * (2 + (n == 0))  # the first round has more to do
            paths += [(called(name, line, n + 1),)] * len(ops)
            lines += [("In[3]", 3)] * len(ops)
            symbols += [f"{name}{k}{line}" for k in range(len(ops))]
        if n:  # and the first round nothing to add to
            paths, lines, symbols = [*paths, ()], [*lines, ("In[3]", 9)], [*symbols, "add"]
    hierarchy = tree(paths, lines=lines, symbols=symbols)
    assert [(group.title, group.repeat.count) for group in hierarchy.groups if group.parent == ROOT] == [
        ("update_v + update_x", 6)
    ]
    assert hierarchy.children()[ROOT] == 1


def test_small_graphs_are_not_grouped_by_line():
    assert tree([()] * 10, lines=[("a", 1)] * 10).groups == []


def test_nested_scopes_without_own_nodes_are_one_group():
    model = scope("model")
    hierarchy = tree([(model, scope("dense"))] * 3 + [(model, scope("out"))] + [()])
    assert titles(hierarchy) == [("model", -1, 4), ("dense", 0, 3)]
    assert hierarchy.of == [1, 1, 1, 0, -1]
    assert [group.title for group in tree([(scope("a"), scope("b"))] * 2).groups] == ["a/b"]


def test_a_module_is_a_group_with_a_single_node_as_well_and_a_scope_around_all_of_it_is_none():
    assert titles(tree([(module("pool"),), ()])) == [("pool", -1, 1)]
    assert titles(tree([(module("pool"), scope("inside"))] * 3)) == [("pool", -1, 3)]


def test_groups_are_opened_while_they_fit():
    hierarchy = tree([(scope(f"layer{n % 10}"),) for n in range(100)])
    opened = hierarchy.initially_open()
    visible = hierarchy.children()[ROOT] + sum(hierarchy.children()[g] - 1 for g in opened)
    assert 50 < visible <= MOST_CHILDREN


def test_equal_modules_in_a_row_are_one_group():
    names = ["embed", "block.0", "block.1", "block.2", "head"]
    hierarchy = tree([(module(name),) for name in names for _ in range(2)], symbols=[0, 1, 2, 3, 2, 3, 2, 3, 4, 5])
    assert [group.title for group in hierarchy.groups] == ["embed", "block.0", *names[1:4], "head"]
    repeat = hierarchy.groups[1]
    assert repeat.kind == "repeat"
    assert repeat.repeat is not None
    assert (repeat.repeat.count, repeat.repeat.members) == (3, [2, 3, 4])
    assert [hierarchy.groups[k].parent for k in (2, 3, 4)] == [1, 1, 1]
    assert hierarchy.of == [0, 0, 2, 2, 3, 3, 4, 4, 5, 5]


@pytest.mark.parametrize("different", ["symbols", "cls", "inputs"])
def test_modules_that_do_different_things_are_no_repeat(different):
    symbols = [0, 1, 0, 2 if different == "symbols" else 1]
    inputs = [[], [0], [], [] if different == "inputs" else [2]]
    classes = ["Dense", "Dense", "Other" if different == "cls" else "Dense"]
    paths = [(module("a", classes[0]),)] * 2 + [(module("b", classes[2]),)] * 2
    assert [group.kind for group in tree(paths, symbols=symbols, inputs=inputs).groups] == ["module", "module"]


def test_repeats_of_repeats_are_found_from_the_inside_out():
    paths = [(module(f"layer.{i}"), module(f"head.{k}")) for i in range(3) for k in range(4)]
    hierarchy = tree(paths, symbols=[0] * 12)
    counts = [group.repeat.count for group in hierarchy.groups if group.repeat is not None]
    assert counts == [3, 4, 4, 4]


def test_an_unrolled_loop_is_one_group_with_remainders_at_both_ends():
    symbols = [90, 91, *[1, 2, 3] * 50, 1, 2, 92]
    hierarchy = tree([()] * len(symbols), symbols=symbols, lines=[("a", symbol) for symbol in symbols])
    (group,) = hierarchy.groups
    assert group.repeat is not None
    assert (group.kind, group.title, group.repeat.count, group.repeat.period) == ("repeat", "lines 1–3", 50, 3)
    assert [child.at for child in group.children] == list(range(2, 152))
    assert hierarchy.children()[ROOT] == 6


def test_a_loop_begins_where_its_first_line_is():
    symbols = [3, *[1, 2, 3] * 9]
    (group,) = tree([()] * 28, symbols=symbols, lines=[("a", symbol) for symbol in symbols]).groups
    assert group.first == 1


def test_a_few_equal_ops_are_no_loop():
    assert tree([()] * (LEAST_UNROLLED - 1), symbols=[1] * (LEAST_UNROLLED - 1)).groups == []


def test_rounds_of_a_loop_that_calls_modules_are_groups():
    paths = [path for n in range(5) for path in [(), (module(f"cell#{n}"),), (module(f"cell#{n}"),)]]
    hierarchy = tree(paths, symbols=[0, 1, 2] * 5)
    repeat = hierarchy.groups[0].repeat
    assert repeat is not None
    assert repeat.count == 5
    assert [hierarchy.groups[k].kind for k in repeat.members] == ["step"] * 5
    assert [hierarchy.groups[k].title for k in repeat.members[:2]] == ["1 of 5: cell#0", "2 of 5: cell#1"]
    assert [hierarchy.of[i] for i in range(15) if i % 3 == 0] == repeat.members


def test_a_lane_repeats_whatever_other_lanes_do_in_between():
    paths = [(module(f"model#{n}"),) for n in range(4) for _ in range(2)]
    hierarchy = tree(paths, symbols=[0, 1] * 4, lanes=["forward", "backward"] * 4)
    repeats = [(group.lane, group.repeat.count) for group in hierarchy.groups if group.repeat is not None]
    assert repeats == [("forward", 4), ("backward", 4)]


def test_folded_nodes_are_where_they_are_drawn_and_in_nobodys_count():
    hierarchy = tree([(module("a"),), (module("b"),), (module("b"),)], folded=[1, -1, -1])
    assert titles(hierarchy) == [("b", -1, 3)]
    assert len(hierarchy.groups[0].children) == 2


KEYS = st.sampled_from(["a", "b", "c.0", "c.1", "c.2"])
SEGMENTS = st.builds(module, KEYS) | st.builds(scope, KEYS)
NODES = st.tuples(st.lists(SEGMENTS, max_size=3).map(tuple), st.sampled_from(LANES), st.integers(0, 3))


@settings(max_examples=150, deadline=None)
@given(st.lists(NODES, max_size=30), st.integers(1, 6))
def test_any_nodes_have_one_place_in_the_tree(nodes, times):
    """Containers partition the nodes, ids are stable, lanes do not mix, and repeats are their members, no more."""
    rows = nodes * times
    arguments = {"lanes": [lane for _, lane, _ in rows], "symbols": [symbol for _, _, symbol in rows]}
    hierarchy = tree([path for path, _, _ in rows], **arguments)
    groups = hierarchy.groups
    contained = [child for group in groups for child in group.children] + hierarchy.top
    assert sorted(child.at for child in contained if not child.is_group) == list(range(len(rows)))
    assert sorted(child.at for child in contained if child.is_group) == list(range(len(groups)))
    assert len({group.id for group in groups}) == len(groups)
    assert all(group.parent < index for index, group in enumerate(groups))
    for index, group in enumerate(groups):
        nodes_inside = list(hierarchy.nodes_of(index))
        assert {arguments["lanes"][k] for k in nodes_inside} == {group.lane}
        assert group.size == len(nodes_inside)
        if group.repeat is not None:
            members = [list(hierarchy.nodes_of(member)) for member in group.repeat.members] or [
                nodes_inside[k : k + group.repeat.period] for k in range(0, len(nodes_inside), group.repeat.period)
            ]
            assert len(members) == group.repeat.count > 1
            assert [k for member in members for k in member] == nodes_inside
            assert len({tuple(arguments["symbols"][k] for k in member) for member in members}) == 1
    again = tree([path for path, _, _ in rows], **arguments)
    assert [group.id for group in again.groups] == [group.id for group in groups]


def test_calls_of_one_function_and_groups_of_one_line_are_one_at_the_top():
    """A loop that Python unrolls, as the inner steps of meta-learning: its rounds take turns in two lanes."""
    paths, lanes, lines = [], [], []
    for call in range(1, 13):
        segment = Segment(f"f#{call}", "function", f"f (call {call})")
        paths += [(segment,), (segment,), (), ()]
        lanes += ["forward", "forward", "backward", "backward"]
        lines += [("In[1]", 1), ("In[1]", 2), ("In[1]", 3), ("In[1]", 3)]
    hierarchy = tree(paths, lanes=lanes, lines=lines)
    tops = [(group.title, group.lane, group.size) for group in hierarchy.groups if group.parent == ROOT]
    assert tops == [("calls of f", "forward", 24), ("In[1] line 3", "backward", 24)]


def test_lines_of_two_files_are_told_apart():
    lines = [(file, line) for line in range(1, 21) for file in ("a.py", "b.py")]
    hierarchy = tree([()] * 40, lines=lines)
    files = [{lines[node][0] for node in hierarchy.nodes_of(k)} for k in range(len(hierarchy.groups))]
    assert all(len(found) == 1 for found in files)
