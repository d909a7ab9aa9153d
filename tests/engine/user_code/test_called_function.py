"""Errors are in the name of the function that the user has called, not of what it is made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll

matrix = ll.constant([[2.0, 1.0], [0.5, 3.0]])
truth = ll.constant([True, False])

CALLS: dict[str, Callable[[Any], Any]] = {
    "std": lambda x: ll.std(x, axis=9),
    "var": lambda x: ll.var(x, axis=9),
    "average": lambda x: ll.average(x, axis=9),
    "moments": lambda x: ll.nn.moments(x, axis=9),
    "norm": lambda x: ll.linalg.norm(x, axis=9),
    "corrcoef": lambda x: ll.corrcoef(x[0, 0]),
    "dot": lambda x: ll.dot(x, truth),
    "diff": lambda x: ll.diff(truth),
    "isclose": lambda x: ll.isclose(x, truth),
    "zeros": lambda x: ll.zeros(truth),
    "reshape": lambda x: ll.reshape(x, truth),
    "cummax": lambda x: ll.cummax(truth, axis=0),
    "i0": lambda x: ll.i0(ll.constant(1j)),
    "rfft": lambda x: ll.fft.rfft(x, axis=9),
    "softmax_cross_entropy": lambda x: ll.nn.softmax_cross_entropy(x[0, 0], ll.constant(0)),
    "convolve": lambda x: ll.convolve(truth, truth),
    "kron": lambda x: ll.kron(x, truth),
}


@pytest.mark.parametrize("way", ["eager", "staged", "method of a tape", "batched"])
@pytest.mark.parametrize("name", CALLS)
def test_errors_name_what_was_called(name: str, way: str) -> None:
    f = CALLS[name]
    run = {
        "eager": f,
        "staged": ll.function(f),
        "method of a tape": ll.grad(lambda x: ll.sum(f(x))),
        "batched": lambda x: ll.vectorize(lambda _: f(x))(x),
    }[way]
    with pytest.raises(ll.errors.LimelightError) as caught:
        run(matrix)
    assert re.match(rf"(nn\.|linalg\.|fft\.)?{name}\b", str(caught.value))


FLAGS: dict[str, Callable[..., Any]] = {
    "keepdims": lambda flag: [f(matrix, 0, flag) for f in (ll.sum, ll.argmax, ll.std, ll.mean, ll.all, ll.logsumexp)],
    "descending": lambda flag: ll.sort(matrix, descending=flag),
    "stable": lambda flag: ll.argsort(matrix, stable=flag),
    "reverse": lambda flag: ll.cumsum(matrix, axis=0, reverse=flag),
    "equal_nan": lambda flag: ll.isclose(matrix, matrix, equal_nan=flag),
    "full_matrices": lambda flag: ll.linalg.svd(matrix, full_matrices=flag),
    "upper": lambda flag: ll.linalg.triangular_solve(matrix, matrix, upper=flag),
    "approximate": lambda flag: ll.nn.gelu(matrix, approximate=flag),
    "has_aux": lambda flag: ll.grad(lambda x: (ll.sum(x), x) if flag else ll.sum(x), has_aux=flag)(matrix),
    "trainable": lambda flag: ll.Variable(1.0, trainable=flag),
    "persistent": lambda flag: ll.GradientTape(persistent=flag),
    "watch_accessed_variables": lambda flag: ll.GradientTape(watch_accessed_variables=flag),
    "replace": lambda flag: ll.random.Generator(0).choice(3, (2,), replace=flag),
    "use_bias": lambda flag: ll.nn.Dense(3, use_bias=flag),
}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_are_true_or_false(name: str) -> None:
    for flag in (True, False, np.True_, np.False_):
        FLAGS[name](flag)
    for given in (1.5, "no", None, 2, [True], matrix):
        with pytest.raises(ll.errors.ArgumentError, match=rf"{name} must be True or False, got"):
            FLAGS[name](given)


def test_modules_tell_near_names() -> None:
    class Net(ll.Module):
        def __init__(self) -> None:
            self.scale, self.inner = ll.Variable(1.0), ll.nn.Dense(2)

    net = Net()
    for name, hint in (("scales", "write scale"), ("iner", "write inner"), ("weight", "it has scale, inner")):
        with pytest.raises(AttributeError, match=rf"'Net' object has no attribute '{name}': {hint}"):
            getattr(net, name)


def test_a_staged_function_tells_how_often_it_was_traced() -> None:
    cell: list[Any] = []

    def f(x: Any) -> Any:
        if not cell:
            cell.append(ll.Variable(2.0))
        return x * cell[0]

    staged, plain = ll.function(f), ll.function(lambda x: x, name="g")
    assert repr(plain) == "<limelight function g: 0 traces>"
    staged(matrix)
    plain(matrix)
    assert (staged.trace_count, repr(staged)) == (2, "<limelight function f: 1 trace, traced 2 times>")
    assert (plain.trace_count, repr(plain)) == (1, "<limelight function g: 1 trace>")
