"""Nested structures: the order of a dictionary makes no difference, and is given back."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight.core import nest

trees = st.recursive(
    st.integers(0, 9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("abc", max_size=2) | st.integers(0, 3), inner, max_size=4)
    ),
)


def spelled(tree: Any) -> str:
    """`repr` tells the order of dictionaries, where == does not."""
    return repr(tree)


@given(trees)
def test_a_tree_comes_back_as_it_was(tree):
    leaves, structure = nest.flatten(tree)
    assert spelled(nest.unflatten(structure, leaves)) == spelled(tree)
    assert spelled(nest.unflatten(pickle.loads(pickle.dumps(structure)), leaves)) == spelled(tree)


def test_the_order_of_keys_is_no_part_of_a_structure():
    one, other = nest.flatten({"b": 1, "a": [2]}), nest.flatten({"a": [2], "b": 1})
    assert one == other
    assert hash(one[1]) == hash(other[1])


def test_gradients_and_results_keep_the_order_of_dictionaries():
    parameters = {"b": ll.Variable(1.0), "a": ll.Variable(2.0)}
    with ll.GradientTape() as tape:
        loss = parameters["b"] * 3 + parameters["a"]
    assert list(tape.gradient(loss, parameters)) == ["b", "a"]
    staged = ll.function(lambda x: {"z": x["b"], "c": x["a"]})
    first = staged({"b": ll.constant(1.0), "a": ll.constant(2.0)})
    assert list(first) == ["z", "c"]
    second = staged({"a": ll.constant(2.0), "b": ll.constant(1.0)})
    assert staged.trace_count == 1
    assert second["z"].item() == 1.0
    found = ll.grad(lambda x: x["b"] * x["a"])({"b": ll.constant(1.0), "a": ll.constant(2.0)})
    assert list(found) == ["b", "a"]
