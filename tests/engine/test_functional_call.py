"""Modules as functions of the values of their variables."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import CallError


class Net(ll.Module):
    """Reads variables as an operand, in a branch, in a loop and in a staged function; some are not trainable."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.w = ll.Variable(random.normal(size=(3, 3)))
        self.parts = [ll.Variable(random.normal(size=3)), ll.Variable(random.normal(size=3), trainable=False)]
        self.staged = ll.function(lambda x: x * self.parts[1] + ll.sum(self.w))

    def call(self, x: Any) -> Any:
        y = ll.tanh(x @ self.w) + self.parts[0]
        y = ll.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, ll.sin(y * self.parts[0])), (0, y))[1]
        y = ll.cond(ll.sum(x) > 0, lambda: y * self.parts[1], lambda: y + self.parts[0])
        return self.staged(y)


NETS = [Net(0), Net(1), Net(2)]
X = ll.constant(np.random.default_rng(9).normal(size=(4, 3)))


def _values(net: Net) -> dict[str, Any]:
    return {path: v.read_value() for path, v in net.named_variables()}


@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
def test_as_a_module_with_these_values(stage: Any) -> None:
    other = _values(NETS[1])
    for values in (other, list(other.values())):
        found = stage(lambda values, x: ll.functional_call(NETS[0], values, x))(values, X)
        np.testing.assert_allclose(found.numpy(), NETS[1](X).numpy(), rtol=1e-12)
    partly = stage(lambda w: ll.functional_call(NETS[0], {"w": w}, X))(NETS[0].w.read_value())
    np.testing.assert_allclose(partly.numpy(), NETS[0](X).numpy(), rtol=1e-12)
    np.testing.assert_array_equal(NETS[0].w.numpy(), Net(0).w.numpy())


@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
def test_gradients_by_the_values(stage: Any) -> None:
    def of_values(values: Any) -> Any:
        return ll.sum(ll.functional_call(NETS[0], values, X) ** 2)

    with ll.GradientTape() as tape:
        tape.watch(NETS[1].variables)
        y = ll.sum(NETS[1](X) ** 2)
    wanted = tape.gradient(y, NETS[1].variables)
    found = stage(ll.grad(of_values))(_values(NETS[1]))
    for (path, _), g in zip(NETS[1].named_variables(), wanted, strict=True):
        np.testing.assert_allclose(found[path].numpy(), g.numpy(), rtol=1e-10, err_msg=path)
    tangents = {path: ll.ones_like(v) for path, v in _values(NETS[1]).items()}
    moved = ll.jvp(of_values, (_values(NETS[1]),), (tangents,))[1]
    np.testing.assert_allclose(moved.item(), sum(ll.sum(g).item() for g in wanted), rtol=1e-10)


@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
def test_an_ensemble(stage: Any) -> None:
    def of_one(values: Any, x: Any) -> Any:
        return ll.functional_call(NETS[0], values, x)

    def together(x: Any) -> Any:
        return ll.vectorize(of_one, in_axes=(0, None))(ll.stack_modules(NETS), x)

    np.testing.assert_allclose(stage(together)(X).numpy(), np.stack([net(X).numpy() for net in NETS]), rtol=1e-12)
    with ll.GradientTape(persistent=True) as tape:
        y = ll.sum(together(X)[2] ** 2)
        alone = ll.sum(NETS[2](X) ** 2)
    for v in NETS[2].trainable_variables:
        np.testing.assert_allclose(tape.gradient(y, v).numpy(), tape.gradient(alone, v).numpy(), rtol=1e-10)
    assert not ll.any(tape.gradient(y, NETS[1].w)).item()


def test_what_is_refused() -> None:
    class Counting(ll.Module):
        def __init__(self) -> None:
            self.n = ll.Variable(0.0)

        def call(self) -> Any:
            return self.n.assign_add(1.0)

    counting = Counting()
    with pytest.raises(ll.errors.ArgumentError, match="leave it out of the values"):
        ll.functional_call(counting, {"n": 1.0})
    assert ll.functional_call(counting, {}).item() == 1.0
    with pytest.raises(ll.errors.ArgumentError, match=r"no variable 'm' in Counting \(it has n\)"):
        ll.functional_call(counting, {"m": 1.0})
    with pytest.raises(ll.errors.ArgumentError, match="2 values for 1 variables"):
        ll.functional_call(counting, [1.0, 2.0])
    with pytest.raises(ll.errors.ShapeError, match="`n`"):
        ll.functional_call(counting, {"n": [1.0]})
    with pytest.raises(ll.errors.DTypeError, match="`n`"):
        ll.functional_call(counting, {"n": 1})
    with pytest.raises(ll.errors.ArgumentError, match="needs a module"):
        ll.functional_call(lambda: 1.0, {})  # type: ignore[arg-type]
    with pytest.raises(ll.errors.ArgumentError, match="other variables"):
        ll.stack_modules([counting, NETS[0]])
    with pytest.raises(ll.errors.ArgumentError, match="one module"):
        ll.stack_modules([])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (((X,),), "write functional_call(module, values, x);"),
        (((X, X),), "write functional_call(module, values, x0, x1);"),
        (((X,), {"training": True}), "write functional_call(module, values, x, training=...);"),
    ],
)
def test_a_tuple_of_arguments_as_elsewhere_is_refused(args: Any, words: str) -> None:
    with pytest.raises(CallError, match=re.escape(words)):
        ll.functional_call(NETS[0], _values(NETS[0]), *args)


def test_a_module_that_takes_a_tuple_is_given_it_by_name() -> None:
    class Pair(ll.Module):
        def __init__(self) -> None:
            self.w = ll.Variable(2.0)

        def call(self, pair: Any) -> Any:
            return self.w * pair[0] + pair[1]

    module = Pair()
    assert ll.functional_call(module, {"w": 3.0}, pair=(1.0, 4.0)).item() == 7.0
    assert ll.functional_call(module, {"w": 3.0}, [1.0, 4.0]).item() == 7.0


def test_an_argument_in_the_place_of_the_values_is_told_from_them():
    layer, x = ll.nn.Dense(3), ll.ones((2, 4))
    with pytest.raises(
        ll.errors.ArgumentError, match=r"got a Tensor \(2, 4\); this Dense makes its variables"
    ) as caught:
        ll.functional_call(layer, x)
    assert "call it once, then functional_call(module, values, x)" in str(caught.value)
    layer(x)
    with pytest.raises(ll.errors.ArgumentError) as caught:
        ll.functional_call(layer, x)
    assert 'write functional_call(module, {"kernel": ..., "bias": ...}, x)' in str(caught.value)
    with pytest.raises(ll.errors.ArgumentError, match="got a float"):
        ll.functional_call(layer, 3.0, x)
    with pytest.raises(ll.errors.ArgumentError, match=r"1 values for 2 variables \(kernel, bias\)"):
        ll.functional_call(layer, [x], x)
