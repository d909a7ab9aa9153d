"""Axes, of every public function that has some: every way of running takes the same ones and refuses the others.

Operands have 0 to 3 axes (in the quick run 0 or 2), and an axis lies up to two places outside. A scalar has no axis, so
each is refused.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from opcase import FULL

import limelight as ll

PLACES = (ll, ll.nn, ll.linalg, ll.fft)
WORDS = ("axis", "axes", "axis1", "source")
SHAPE = (2, 3, 2)
RANKS = (0, 1, 2, 3) if FULL else (0, 2)
SAME = {"cross": (3, 3, 3)}

MORE = {  # what stands between the tensor and the axis: of the tensor, arguments
    "gather": lambda x: (x, ll.constant([0, 1])),
    "take": lambda x: (x, ll.constant([0, 1])),
    "take_along_axis": lambda x: (x, ll.zeros(x.shape, dtype=ll.int64)),
    "put_along_axis": lambda x: (x, ll.zeros(x.shape, dtype=ll.int64), x),
    "one_hot": lambda x: (x.astype(ll.int32), 3),
    "quantile": lambda x: (x, 0.5),
    "percentile": lambda x: (x, 50.0),
    "repeat": lambda x: (x, 2),
    "roll": lambda x: (x, 1),
    "split": lambda x: (x, [1, x.shape[-1] - 1] if x.ndim else 1),
    "top_k": lambda x: (x, 1),
    "vecdot": lambda x: (x, x),
    "cross": lambda x: (x, x),
    "cosine_similarity": lambda x: (x, x),
    "kl_divergence": lambda x: (x, x),
    "concat": lambda x: ((x, x),),
    "stack": lambda x: ((x, x),),
    "softmax_cross_entropy": lambda x: (x, x),
}
ELSEWHERE = {"load_weights", "moveaxis", "nll", "permute_dims", "tensordot", "transpose"}


def functions():
    """The public functions with an axis among their parameters: name, function, the parameter's name."""
    for place in PLACES:
        for name in dir(place):
            function = getattr(place, name)
            if name[0] == "_" or name in ELSEWHERE or not inspect.isfunction(function):
                continue
            for word in WORDS:
                if word in inspect.signature(function).parameters:
                    yield pytest.param(name, function, word, id=f"{place.__name__}.{name}")


def by_axis(name, function, word, axis):
    """`function` of a tensor alone."""
    more = MORE.get(name, lambda x: (x,))
    at = list(inspect.signature(function).parameters).index(word)
    words = {**({"axis2": 0} if word == "axis1" else {}), word: axis}
    by_name = inspect.signature(function).parameters[word].kind is not inspect.Parameter.POSITIONAL_ONLY

    def call(x):
        given = more(x)
        return function(*given, **words) if by_name else function(*given[:at], axis, *given[at:])

    return call


def outcome(way, function, x):
    """What comes of it, in numbers, or the error's class and words."""
    try:
        result = way(function, x)
    except ll.errors.LimelightError as error:
        return type(error).__name__, str(error).splitlines()[0]
    return [np.asarray(part).tolist() for part in (result if isinstance(result, tuple) else (result,))]


def taped(function, x):
    with ll.GradientTape() as tape:
        tape.watch(x)
        return function(x)


def batched(function, x):
    result = ll.vectorize(function)(ll.stack([x, x + 1.0]))
    return tuple([part[0] for part in result]) if isinstance(result, tuple) else result[0]


WAYS = {"taped": taped, "staged": lambda f, x: ll.function(f)(x), "batched": batched}


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # one definition, staged for each axis
@pytest.mark.parametrize(("name", "function", "word"), list(functions()))
def test_every_way_of_running_agrees_on_axes(name, function, word):
    for rank in RANKS:
        shape = SAME.get(name, SHAPE)[:rank]
        x = ll.constant(np.random.default_rng(0).uniform(0.1, 1.0, shape), ll.float64)
        for axis in range(-rank - 2, rank + 2):
            call = by_axis(name, function, word, axis)
            eager = outcome(lambda f, x: f(x), call, x)
            for way, run in WAYS.items():
                found = outcome(run, call, x)
                if isinstance(eager, tuple) or isinstance(found, tuple):
                    assert found == eager, f"{way}, axis {axis} of rank {rank}"
                else:
                    for a, b in zip(found, eager, strict=True):
                        np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=f"{way}, axis {axis} of rank {rank}")
