"""Modules: what lies below them, and the recipe that saves and loads their values."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import dataclass

import numpy as np
import pytest

import limelight as ll
from limelight.user_code import equivalents


class Net(ll.Module):
    def __init__(self):
        self.first = ll.nn.Dense(4)
        self.blocks = [ll.nn.Sequential(ll.nn.Dense(4), ll.nn.relu), ll.nn.LSTM(3)]
        self.again = self.first
        self.me = self

    def call(self, x):
        return self.blocks[1](self.blocks[0](self.first(x)))


def test_layers_are_the_modules_directly_below_each_once():
    net = Net()
    assert net.layers == [net.first, *net.blocks, net]
    assert ll.nn.Dense(2).layers == []


def test_submodules_are_all_below_each_once_and_not_the_module_itself():
    net = Net()
    assert net.submodules == [net.first, net.blocks[0], net.blocks[0].layers[0], net.blocks[1], net.blocks[1].cell]
    assert net.blocks[0].submodules == [net.blocks[0].layers[0]]


@dataclass
class Link:
    weight: ll.Variable
    above: Link | None = None


def test_records_that_lead_back_to_themselves_or_very_deep_are_gone_through_once():
    first = last = Link(ll.Variable(0.0))
    for i in range(1, 5000):
        last = Link(ll.Variable(float(i)), last)
    first.above = last
    module = ll.Module()
    module.links, module.same = last, [last, [last]]
    found = [v.numpy().item() for v in module.variables]
    assert found == [*range(4999, -1, -1)]
    assert [path for path, _ in module.edges()][:2] == ["links/weight", "links/above/weight"]
    module.list = [module, ll.Variable(1.0)]
    module.list.append(module.list)
    assert len(module.variables) == 5001


def test_a_module_may_keep_attributes_of_these_names():
    class Own(ll.Module):
        def __init__(self):
            self.layers = [ll.nn.Dense(1), ll.nn.Dense(2)]
            self.submodules = "mine"

    own = Own()
    assert [layer.units for layer in own.layers] == [1, 2]
    assert own.submodules == "mine"
    assert [path for path, _ in own.edges()] == ["layers/0", "layers/1"]


def code_of(hint):
    return [code for code in hint.split("`")[1::2] if " " in code]


def load(module, saved):
    """Runs the code in the hint, as it stands there."""
    space = {"module": module, "saved": saved, "optimizer": module}
    for line in code_of(equivalents.of_modules()["load_state_dict"]):
        exec(line, space)


def made(shape=(2, 5, 3)):
    net = Net()
    net(ll.ones(shape))
    return net


SNAPSHOT = equivalents.of_modules()["state_dict"].partition("in memory ")[2].rpartition(", arrays")[0]
"""The code in the hint on `state_dict`."""


@pytest.mark.parametrize("through_a_file", [False, True])
def test_the_recipe_of_the_hints_loads_what_was_saved(tmp_path, through_a_file):
    net, new, path = made(), made(), tmp_path / "weights.npz"
    if through_a_file:
        exec(equivalents.functions()["savez"].remark.removeprefix("write "), {"np": np, "path": path, "module": net})
        load(new, np.load(path))
    else:
        load(
            new,
            eval(SNAPSHOT, {"module": net}),
        )
    for (name, v), (other, w) in zip(net.named_variables(), new.named_variables(), strict=True):
        assert name == other
        assert (v.numpy() == w.numpy()).all()


def test_the_recipe_refuses_a_model_without_weights_and_names_that_are_missing():
    saved = {name: v.numpy() for name, v in made().named_variables()}
    with pytest.raises(AssertionError):
        load(Net(), saved)
    with pytest.raises(AssertionError):
        load(made(), {k: v for k, v in saved.items() if k != "first/bias"})
    with pytest.raises(ll.errors.ShapeError):
        load(made((2, 5, 7)), saved)


def test_the_snapshot_of_the_hint_stays_as_it_was():
    net = made()
    saved = eval(SNAPSHOT, {"module": net})
    before = {name: value.copy() for name, value in saved.items()}
    for v in net.variables:
        v.assign_add(ll.ones(v.shape))
    assert all((saved[name] == before[name]).all() for name in before)


def test_the_recipe_is_that_of_optimisers_as_well():
    v, w = ll.Variable([1.0, 2.0]), ll.Variable([1.0, 2.0])
    old, new = ll.optim.Adam(0.1), ll.optim.Adam(0.1)
    for _ in range(3):
        old.apply([ll.constant([1.0, -1.0])], [v])
    new.apply([ll.constant([0.0, 0.0])], [w])
    load(new, {name: x.numpy() for name, x in old.named_variables()})
    w.assign(v)
    for optimizer, x in ((old, v), (new, w)):
        optimizer.apply([ll.constant([0.5, 0.25])], [x])
    assert v.numpy().tolist() == w.numpy().tolist()


UNSEEN = {
    "set": lambda: {ll.nn.Dense(2)},
    "frozenset": lambda: frozenset([ll.nn.Dense(2)]),
    "deque": lambda: deque([ll.Variable(1.0)]),
}


@pytest.mark.parametrize("kind", UNSEEN)
def test_parts_in_a_container_that_is_not_looked_into_are_told_of(kind: str) -> None:
    module, parts = ll.Module(), UNSEEN[kind]()
    with pytest.warns(UserWarning, match=f"Module.parts is a {kind}, .* Make it a list") as heard:
        module.parts = parts
    assert [warning.filename for warning in heard] == [__file__]
    assert not module.variables


def test_names_in_a_set_are_nobodys_parts() -> None:
    module = ll.Module()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.names, module.queue, module.parts = {"a", "b"}, deque([1]), [ll.Variable(1.0)]
    assert len(module.variables) == 1
