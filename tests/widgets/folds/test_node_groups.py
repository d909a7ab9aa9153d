"""The hierarchy of a graph's nodes."""

from __future__ import annotations

from limelight_widgets.folds.node_groups import MOST_CHILDREN, Hierarchy


def test_every_container_is_small_whatever_the_graph():
    for count in (61, 1_000, 20_000):
        hierarchy = Hierarchy([""] * count, [""] * count)
        assert max(hierarchy.children().values()) <= MOST_CHILDREN
        assert sum(group.size for group in hierarchy.groups if group.parent == -1) == count


def test_runs_of_one_line_are_grouped_before_blocks():
    lines = [f"In[3] line {n // 4}" for n in range(200)]
    hierarchy = Hierarchy([""] * 200, lines)
    assert [group.label for group in hierarchy.groups[:2]] == ["In[3] line 0", "In[3] line 1"]
    assert {group.kind for group in hierarchy.groups} == {"line"}
    assert hierarchy.children()[-1] == 50


def test_small_graphs_are_not_grouped_by_line():
    assert Hierarchy([""] * 10, ["a line 1"] * 10).groups == []


def test_nested_scopes_without_own_nodes_are_one_group():
    hierarchy = Hierarchy(["model/dense/"] * 3 + ["model/out/"] + [""], [""] * 5)
    assert [(group.label, group.parent, group.size) for group in hierarchy.groups] == [
        ("model", -1, 4),
        ("dense", 0, 3),
    ]
    assert hierarchy.of == [1, 1, 1, 0, -1]
    assert [g.label for g in Hierarchy(["a/b/"] * 2, [""] * 2).groups] == ["a/b"]


def test_groups_are_opened_while_they_fit():
    scopes = [f"layer{n % 10}/" for n in range(100)]
    hierarchy = Hierarchy(scopes, [""] * 100)
    opened = hierarchy.initially_open()
    visible = hierarchy.children()[-1] + sum(hierarchy.children()[g] - 1 for g in opened)
    assert 50 < visible <= MOST_CHILDREN
