"""What a module is given after it was traced: said at the line where traces go on with what was there before."""

from __future__ import annotations

import gc
import re
import warnings

import pytest

import limelight as ll
from limelight.errors import DeadVariableError, LostChangeWarning


class Net(ll.Module):
    def __init__(self):
        self.body, self.drop, self.head = ll.nn.Dense(4), ll.nn.Dropout(0.5), ll.nn.Dense(2)
        self.note = 0

    def call(self, x):
        return self.head(self.drop(self.body(x), training=True))


def training():
    net, optimizer = Net(), ll.optim.AdamW(0.1)

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            loss = ll.sum(net(x))
        optimizer.apply(tape.gradient(loss, net), net)
        return loss

    return net, optimizer, step


x = ll.ones((2, 3))


def warned(change):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        change()
    assert all(one.category is LostChangeWarning and one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


def test_a_layer_that_is_exchanged_after_a_trace_is_told_of_and_clearing_helps():
    net, _, step = training()
    step(x)
    with pytest.warns(LostChangeWarning) as caught:
        net.head = ll.nn.Dense(3)
    said = str(caught[0].message)
    assert said.startswith(
        "Net.head is another Dense now, while the traces of `step` go on with the one before (test_st"
    )
    assert said.endswith(
        "Call step.clear_cache(), before the change or after it, so that the next call traces with "
        + ("what is there now")
    )
    step(x)
    assert net.head.variables == []
    step.clear_cache()
    step(x)
    assert net.head.kernel.shape == (4, 3)


def test_a_layer_without_weights_and_one_in_a_function_that_calls_another():
    net, optimizer, step = training()
    net.build((None, 3))
    optimizer.build(net)
    outer = ll.function(lambda x: step(x) * 2.0, name="outer")
    outer(x)
    said = warned(lambda: setattr(net, "drop", ll.nn.Dropout(0.1)))
    assert len(said) == 1
    assert "`step` and `outer`" in said[0]
    assert "Call step.clear_cache() and outer.clear_cache(), " in said[0]


@pytest.mark.parametrize(("name", "value"), [("weight_decay", 0.5), ("beta1", 0.5), ("epsilon", 1e-3)])
def test_a_setting_of_an_optimiser_that_was_traced_is_told_of(name, value):
    _, optimizer, step = training()
    setattr(optimizer, name, 0.25)  # before
    step(x)
    assert warned(lambda: setattr(optimizer, name, 0.25)) == []  # the same
    (said,) = warned(lambda: setattr(optimizer, name, value))
    assert said.startswith(f"AdamW.{name} is a constant of the traces of `step`, and stays there as it was (")
    step.clear_cache()
    assert warned(lambda: setattr(optimizer, name, 0.125)) == []


def test_a_setting_of_a_layer_and_a_function_that_is_one():
    net, _, step = training()
    step(x)
    assert "Dropout.rate is a constant" in warned(lambda: setattr(net.drop, "rate", 0.25))[0]
    assert "Dense.activation is a constant" in warned(lambda: setattr(net.body, "activation", ll.nn.relu))[0]


def test_a_setting_of_an_optimiser_of_ones_own():
    class Sign(ll.optim.Optimizer):
        def __init__(self, rate, power):
            super().__init__(rate)
            self.power, self.note = power, 0

        def change(self, gradient, variable, slots, rate, t):
            return rate * ll.sign(gradient) * self.power

    sign, v = Sign(0.5, 2.0), ll.Variable([3.0])
    step = ll.function(lambda: sign.apply([ll.ones(1)], [v]), name="step")
    step()
    assert warned(lambda: setattr(sign, "note", 1)) == []
    assert "Sign.power is a constant of the traces of `step`" in warned(lambda: setattr(sign, "power", 1.0))[0]


def test_what_is_no_setting_or_not_in_a_trace_is_left_alone():
    net, optimizer, step = training()
    other, other_optimizer, _ = training()
    step(x)

    def change():
        optimizer.learning_rate = 0.01
        net.note = 1
        net.head = net.head
        other.head, other_optimizer.weight_decay = ll.nn.Dense(3), 0.5

    assert warned(change) == []


def test_nothing_is_said_where_the_next_call_raises_or_traces_anew_by_itself():
    net = Net()
    net.build((None, 3))
    fwd = ll.function(lambda net, x: net(x))
    fwd(net, x)
    gc.collect()

    assert warned(lambda: setattr(net, "head", ll.nn.Dense(3))) == []  # nobody else has the one before
    assert fwd(net, x).shape == (2, 3)


def test_a_deleted_variable_names_what_lets_go_of_the_traces():
    holder = [ll.Variable(2.0, name="w")]

    def scaled(x):
        return x * next(iter(holder))

    staged = ll.function(scaled)
    staged(x)
    holder[:] = [ll.Variable(3.0)]
    with pytest.raises(
        DeadVariableError, match=re.escape("or call scaled.clear_cache(), so that the next call traces")
    ):
        staged(x)
    staged.clear_cache()
    assert staged(x).numpy()[0, 0] == 3.0
