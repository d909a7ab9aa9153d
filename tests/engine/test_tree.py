"""`ll.tree`: public functions over nests."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import limelight as ll


class Pair(NamedTuple):
    first: object
    second: object


TREE = {"b": [1, (2, None)], "a": Pair(3, {"x": 4})}


def test_what_is_taken_apart_is_put_together():
    leaves, structure = ll.tree.flatten(TREE)
    assert leaves == ll.tree.leaves(TREE) == [3, 4, 1, 2, None]
    assert structure == ll.tree.structure(TREE)
    assert len({structure, ll.tree.structure(TREE)}) == 1
    assert ll.tree.unflatten(structure, leaves) == TREE
    assert ll.tree.paths(TREE, "t") == [
        't["a"].first',
        't["a"].second["x"]',
        't["b"][0]',
        't["b"][1][0]',
        't["b"][1][1]',
    ]


def test_map_and_reduce():
    doubled = ll.tree.map(ll.add, [ll.ones(2), (1.0,)], [ll.ones(2), (2.0,)])
    assert doubled[0].tolist() == [2.0, 2.0]
    assert doubled[1][0].item() == 3.0
    assert ll.tree.reduce(lambda total, x: total + x, [1, (2, 3)], 10) == 16
    with pytest.raises(ll.errors.ArgumentError, match="structures differ"):
        ll.tree.map(lambda x, y: x, [1], (1,))


def test_only_public_names_are_listed():
    assert dir(ll.tree) == ["flatten", "leaves", "map", "paths", "reduce", "structure", "unflatten"]


def test_none_is_a_leaf_that_keeps_its_place_as_gradients_that_are_not_connected():
    v, w = ll.Variable(1.0), ll.Variable(1.0)
    with ll.GradientTape() as tape:
        loss = v * 2.0
    gradients = tape.gradient(loss, {"v": v, "w": w})
    assert [g is None for g in ll.tree.leaves(gradients)] == [False, True]
    assert ll.tree.map(lambda g, x: x if g is None else x - g, gradients, {"v": 3.0, "w": 4.0})["w"] == 4.0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("map_structure", "; write ll.tree.map"), ("tree_map", "; write ll.tree.map"),
        ("tree_flatten", "ll.tree.flatten"),
        ("tree_leaves", "ll.tree.leaves"), ("pack_sequence_as", "ll.tree.unflatten"),
        ("all", r"write all\(ll.tree.leaves"),
        ("flatten_with_path", "ll.tree.paths"), ("assert_same_structure", "ll.tree.structure"),
        ("flaten", "write ll.tree.flatten$"), ("transpose", "of a list of trees: ll.tree.map"),
    ],
)  # fmt: skip
def test_names_of_other_libraries_trees(name, words):
    with pytest.raises(AttributeError, match=words):
        getattr(ll.tree, name)
