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
