"""A module where variables belong: `tape.gradient(loss, net)`, `optimizer.apply(grads, net)`."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError


@pytest.fixture
def net():
    ll.random.seed(0)
    net = ll.nn.Sequential(ll.nn.Dense(4, activation="tanh"), ll.nn.BatchNorm(), ll.nn.Dense(2))
    net.build((None, 3))
    return net


def loss_of(net):
    return ll.sum(net(ll.constant([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]]), training=True) ** 3)


def answers(net, sources, staged):
    def answer():
        with ll.GradientTape() as tape:
            loss = loss_of(net)
        return tape.gradient(loss, sources)

    return ll.function(answer)() if staged else answer()


@pytest.mark.parametrize("staged", [False, True])
def test_the_gradient_by_a_module_is_that_by_its_trainable_variables(net, staged):
    found, expected = answers(net, net, staged), answers(net, net.trainable_variables, staged)
    assert type(found) is list
    assert len(found) == 6
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_modules_in_a_nest_are_lists_in_their_places(net):
    first, last = net.layers[0], net.layers[2]
    found = answers(net, {"ends": (first, last), "one": last.bias}, staged=False)
    assert [[g.shape for g in part] for part in found["ends"]] == [[(3, 4), (4,)], [(4, 2), (2,)]]
    np.testing.assert_array_equal(found["ends"][1][1].numpy(), found["one"].numpy())


def test_jacobians_take_modules(net):
    with ll.GradientTape() as tape:
        y = net(ll.ones((2, 3)))
    assert [j.shape for j in tape.jacobian(y, net.layers[2])] == [(2, 2, 4, 2), (2, 2, 2)]


@pytest.mark.parametrize("staged", [False, True])
def test_an_optimiser_changes_what_a_module_trains(net, staged):
    optimizer = ll.optim.Adam(0.1)
    optimizer.build(net)
    before = [v.numpy().copy() for v in net.trainable_variables]

    def step():
        with ll.GradientTape() as tape:
            loss = loss_of(net)
        optimizer.apply(tape.gradient(loss, net), net)

    (ll.function(step) if staged else step)()
    assert len(optimizer.variables_with_slots()) == 6
    assert not any(np.array_equal(v.numpy(), old) for v, old in zip(net.trainable_variables, before, strict=True))


def test_a_loaded_function_is_a_source_too(net, tmp_path):
    ll.save(net, tmp_path / "net", ll.TensorSpec((None, 3), "float32"))
    loaded = ll.load(tmp_path / "net")
    with ll.GradientTape() as tape:
        loss = ll.sum(loaded(ll.ones((2, 3))))
    grads = tape.gradient(loss, loaded)
    assert [g.shape for g in grads] == [v.shape for v in loaded.trainable_variables]
    ll.optim.SGD(0.1).apply(grads, loaded)


def test_a_module_without_variables_is_told_of_and_other_things_are_no_sources():
    empty = ll.nn.Dense(3)
    with ll.GradientTape(persistent=True) as tape:
        loss = ll.sum(ll.Variable([1.0]) * 2.0)
    assert tape.gradient(loss, empty) == []
    with pytest.raises(ArgumentError, match=r"no variables\. Layers create theirs on the first call"):
        ll.optim.SGD(0.1).apply(tape.gradient(loss, empty), empty)
    with pytest.raises(ArgumentError, match="a source must be a tensor or a variable, got a set"):
        tape.gradient(loss, [empty, {1.0}])
