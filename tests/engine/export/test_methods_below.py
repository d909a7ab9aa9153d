"""Staged methods of the modules below a saved one: each travels with it, or is named in a warning."""

from __future__ import annotations

import copy
import json
import warnings
from dataclasses import dataclass

import pytest

import limelight as ll
from limelight.errors import ExportError

X = ll.TensorSpec((None,))


class Scale(ll.Module):
    def __init__(self, value):
        self.v = ll.Variable(value)

    @ll.function
    def scaled(self, x):
        return x * self.v

    @ll.function(input_signature=[X])
    def halved(self, x):
        return x / 2.0


class Table(ll.Module):
    """Without variables."""

    @ll.function
    def call(self, x):
        return x + ll.constant([1.0, 2.0])

    @ll.function
    def told(self, x, how):
        return x


@dataclass
class Parts:
    first: Scale
    table: Table


class Net(ll.Module):
    def __init__(self):
        self.blocks = [ll.nn.Dropout(0.5), Scale(2.0)]
        self.parts = Parts(Scale(3.0), Table())
        self.named = {"a/b": self.parts.first, 7: Scale(4.0)}

    def call(self, x):
        return self.named[7].scaled(self.blocks[1].scaled(x) + self.parts.first.scaled(x))


def saved(path, net=None):
    net = Net() if net is None else net
    net.parts.table(ll.ones((2,)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ll.save(net, path, X)


def test_each_module_has_its_methods_with_its_variables(tmp_path):
    loaded, x = ll.load(saved(tmp_path / "n.ll")), ll.ones((2,))
    for net in (loaded, ll.load(saved_again(loaded, tmp_path / "again.ll")), copy.deepcopy(loaded)):
        assert net.blocks[1].scaled(x).tolist() == [2.0, 2.0]
        assert net.named[7].scaled(x).tolist() == [4.0, 4.0]
        assert net.parts.first.halved(x).tolist() == [0.5, 0.5]
        assert net.parts.table(x).tolist() == [2.0, 3.0]
        assert net(x).tolist() == [20.0, 20.0]
        net.blocks[1].v.assign(0.0)
        assert net.blocks[1].scaled(x).tolist() == [0.0, 0.0]
        assert net(x).tolist() == [12.0, 12.0]
        net.blocks[1].v.assign(2.0)
        assert sorted(net.functions) == ["call"]
        assert sorted(net.blocks[1].functions) == ["halved", "scaled"]


def saved_again(loaded, path):
    return ll.save(loaded, path)


def test_a_loaded_module_below_another_travels_with_it(tmp_path):
    outer = ll.nn.Sequential(ll.load(saved(tmp_path / "n.ll")))
    again = ll.load(ll.save(outer, tmp_path / "o.ll", X))
    assert again.layers[0].blocks[1].scaled(ll.ones((1,))).tolist() == [2.0]
    assert again.layers[0](ll.ones((1,))).tolist() == again(ll.ones((1,))).tolist() == [20.0]


def test_what_was_never_called_and_what_cannot_travel_is_named(tmp_path):
    net = Net()
    with pytest.warns(UserWarning, match=r"leaves out `parts\.table\.call`, `parts\.table\.told` of the Net, staged"):
        ll.save(net, tmp_path / "n.ll", X)
    net.parts.table(ll.ones((2,)))
    net.parts.table.told(ll.ones((2,)), how=print)
    with pytest.warns(UserWarning, match=r"leaves out `parts\.table\.told` of the Net: .*`how` is") as told:
        path = ll.save(net, tmp_path / "n.ll", X)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert sorted(ll.load(path).parts.table.functions) == ["call"]


@pytest.mark.parametrize("name", ["blocks/1/v/scaled", "blocks/scaled", "/scaled", "nowhere/3/x/~q/scaled"])
def test_a_path_that_is_no_module_is_refused_or_makes_one(tmp_path, name):
    path = saved(tmp_path / "n.ll")
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    content = json.loads(header["__metadata__"]["limelight.functions"])
    content["functions"][name] = content["functions"].pop("blocks/1/scaled")
    header["__metadata__"]["limelight.functions"] = json.dumps(content)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    try:
        ll.load(path)
    except ExportError as error:
        assert "damaged" in str(error)  # noqa: PT017  # either is right
