"""Dataclasses and plain objects below a module: the fields of the first are state, of the second a warning tells."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, CheckpointError, CheckpointWarning


@dataclass
class Weights:
    w: Any = None
    b: Any = None
    rate: float = 0.1
    inner: Any = None
    more: list = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Frozen:
    w: ll.Variable
    name: str = "frozen"


class Model(ll.Module):
    def __init__(self, value: float) -> None:
        self.weights = Weights(ll.Variable(value), ll.nn.Dense(1), inner=Frozen(ll.Variable([value, value])))
        self.parts = [Frozen(ll.Variable(value + 1)), {"a": Weights(more=[ll.Variable(value + 2)])}]

    def call(self, x):
        return self.weights.b(x) * self.weights.w


def values(model):
    return {path: v.numpy().tolist() for path, v in model.named_variables()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def test_variables_in_dataclasses_are_those_of_the_module():
    model = Model(1.0)
    model(ll.ones((1, 1)))
    assert list(values(model)) == [
        "weights/w", "weights/b/kernel", "weights/b/bias", "weights/inner/w", "parts/0/w", "parts/1/a/more/0",
    ]  # fmt: skip
    assert len(model.trainable_variables) == 6
    assert model.layers == [model.weights.b]


@pytest.mark.parametrize("first", [False, True])
def test_dataclasses_are_saved_and_restored(path, first):
    model, other = Model(3.0), Model(0.0)
    model(ll.ones((1, 1)))
    ll.Checkpoint(model=model, extra=Frozen(ll.Variable(7.0), None)).write(path)
    if not first:
        other(ll.ones((1, 1)))
    extra = Frozen(ll.Variable(0.0), None)
    status = ll.Checkpoint(model=other, extra=extra).restore(path)
    other(ll.ones((1, 1)))
    status.assert_consumed()
    assert values(other) == values(model)
    assert extra.w.item() == 7.0
    with pytest.raises(ValueError, match="restored"):
        other.weights.w = ll.Variable([1.0, 2.0])
        ll.Checkpoint(model=other).restore(path)


@pytest.mark.parametrize("below", ["checkpoint", "module"])
def test_a_field_that_is_set_later_has_its_value_when_it_is_read(path, below):
    weights, late = Weights(rate=None), ll.Variable(0.0)
    holder = ll.Checkpoint(x=weights)
    if below == "module":
        holder = ll.Checkpoint(x=ll.Module())
        holder.x.weights = weights
        saved = ll.Module()
        saved.weights = Weights(ll.Variable(5.0))
        ll.Checkpoint(x=saved).write(path)
    else:
        ll.Checkpoint(x=Weights(ll.Variable(5.0), rate=None)).write(path)
    status = holder.restore(path)
    weights.w = late
    assert late.item() == 5.0
    status.assert_consumed()


def test_a_file_has_objects_for_dataclasses_as_older_readers_know_them(path):
    ll.Checkpoint(model=Model(3.0)).write(path)
    assert b"record" not in path.read_bytes()

    class Parts(ll.Module):
        def __init__(self) -> None:
            self.weights = ll.Module()
            self.weights.w = ll.Variable(0.0)

    parts = Parts()
    ll.Checkpoint(model=parts).restore(path).expect_partial()
    assert parts.weights.w.item() == 3.0


def test_plain_fields_are_settings_of_a_module_and_refused_in_a_state(path):
    model = ll.Module()
    model.weights = Weights(ll.Variable(1.0), rate=0.5)
    ll.Checkpoint(model=model).write(path)
    model.weights.rate = 0.25
    ll.Checkpoint(model=model).restore(path).assert_consumed()
    assert model.weights.rate == 0.25
    with pytest.raises(CheckpointError, match=r"'weights/rate' is a plain float in a dataclass .*ll\.Module"):
        ll.Checkpoint(weights=model.weights).write(path)
    with pytest.raises(ArgumentError, match="is, or holds, a Weights"):
        ll.Checkpoint(weights=Weights(rate=0.5)).write(path)


def test_a_saved_function_has_the_variables_of_dataclasses(tmp_path):
    model = Model(2.0)
    loaded = ll.load(ll.save(model, tmp_path / "m.ll", ll.TensorSpec((None, 1))))
    np.testing.assert_array_equal(loaded(ll.ones((2, 1))).numpy(), model(ll.ones((2, 1))).numpy())
    assert loaded.weights.w.item() == 2.0
    assert values(loaded) == values(model)


class Plain:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Slots:
    __slots__ = ("w",)


def slots():
    x = Slots()
    x.w = ll.Variable(1.0, name="w")
    return x


def circle():
    x = Plain(a=Plain())
    x.a.back, x.a.w = x, ll.Variable(1.0, name="w")
    return x


def layer():
    made = ll.nn.Dense(1)
    made(ll.ones((1, 1)))
    return made


UNSEEN = {
    "attribute": (lambda: Plain(w=ll.Variable(1.0, name="w")), "`model/x/w`, the variable 'w'"),
    "slot": (slots, "`model/x/w`"),
    "list": (lambda: [Plain(w=[1, ll.Variable(1.0, name="w")])], "`model/x/0/w/1`"),
    "dataclass": (lambda: Frozen(Plain(w=ll.Variable(1.0, name="w"))), "`model/x/w/w`"),
    "circle": (circle, "`model/x/a/w`"),
    "layer": (lambda: Plain(layer=layer()), "`model/x/layer/kernel`"),
    "key": (lambda: Plain(d={(1, 2): ll.Variable(1.0, name="w")}), r"`model/x/d/\(1, 2\)`"),
}


@pytest.mark.parametrize("kind", [set, frozenset, deque])
def test_variables_in_sets_and_queues_are_told_of(path, kind):
    model = ll.Module()
    model.v, model.x = ll.Variable(1.0), [kind([Plain(w=ll.Variable(1.0, name="w"))])]
    with pytest.warns(CheckpointWarning, match=f"`model/x/0/0/w`.* is not saved: a {kind.__name__} has"):
        ll.Checkpoint(model=model).write(path)
    model.x = [kind([Plain(v=model.v), 1])]
    ll.Checkpoint(model=model).write(path)


@pytest.mark.parametrize("case", UNSEEN)
def test_variables_in_plain_objects_are_told_of(path, case):
    make, said = UNSEEN[case]
    model = ll.Module()
    model.v, model.x = ll.Variable(1.0), make()
    checkpoint = ll.Checkpoint(model=model)
    with pytest.warns(CheckpointWarning, match=f"{said}.*is not saved: a .* is no module") as told:
        checkpoint.write(path)
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings(), pytest.raises(CheckpointWarning):
        warnings.simplefilter("error")
        checkpoint.save(path)
    assert checkpoint.save_counter == 0


class Computing:
    @property
    def expensive(self):
        raise AssertionError("nobody asked")

    def __getattr__(self, name):
        raise AssertionError(name)


class Proxy:
    __slots__ = ("target",)

    def __getattribute__(self, name):
        if name == "__class__":
            return Proxy
        raise RuntimeError(name)


class WithoutNames:
    @property
    def __dict__(self):
        raise RuntimeError("no names here")


@pytest.mark.filterwarnings("error")
def test_what_is_saved_elsewhere_and_what_has_no_variables_gives_no_warning(path):
    model = ll.Module()
    model.v = ll.Variable(1.0)
    model.trainer = Plain(model=model, v=model.v, log=print, rate=0.1)
    model.proxy, model.without = Proxy(), WithoutNames()
    model.x, model.f, model.kind, model.array = Computing(), ll.function(lambda x: x * model.v), Plain, np.ones(2)
    ll.Checkpoint(model=model).write(path)


@pytest.mark.parametrize("kind", [set, frozenset, deque])
def test_layers_in_a_container_without_lasting_names_are_told_of(tmp_path, kind):
    model = ll.Module()
    unseen = rf"Module\.layers is a {kind.__name__}, in which nothing is looked for: the Dense"
    with pytest.warns(UserWarning, match=unseen):
        model.layers = kind([ll.nn.Dense(2)])
    for layer in model.layers:
        layer(ll.ones((1, 3)))
    with pytest.warns(CheckpointWarning, match=rf"`m/layers/0/kernel`.* is not saved: a {kind.__name__} has no edges"):
        ll.Checkpoint(m=model).write(tmp_path / "x")
