"""What `eager.py` and `staging.py` measure: the rows of their tables, and what their words mean in each library."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from measure import Library, Row

Words = dict[str, Any]

RECORDED = 300
"""Additions on one tape: what a step of training may record."""
CHAINS = (30, 300, 3_000)
"""Operations of a graph, by three a round of `x -> tanh(x * b) + a`."""

ROWS = [
    Row("add", "tiny", "a + b"),
    Row("multiply by a scalar", "tiny", "a * 2.0"),
    Row("tanh", "tiny", "tanh(a)"),
    Row("matmul 2x2", "tiny", "p @ p"),
    Row("matmul 100x100", "medium", "q @ q"),
    Row("sum", "tiny", "total(a)"),
    Row("mean", "tiny", "mean(a)"),
    Row("reshape", "tiny", "reshape(a, (2, 5))"),
    Row("transpose", "tiny", "transpose(r)"),
    Row("slice", "tiny", "a[2:7]"),
    Row("where", "tiny", "where(c, a, b)"),
    Row("softmax", "tiny", "softmax(a)"),
    Row("add, recorded", "gradient", "recorded", block=True),
    Row("gradient of sum(tanh(a*b)*a)", "gradient", "gradient(a, b)"),
    Row("staged x + 1", "staged", "plus_one(a)"),
    *[Row(f"staged chain of {n}", "staged", f"chain({n})(a, b)", size=n) for n in CHAINS],
    Row("call, list of 100", "calls", "of_list(xs)"),
    Row("call, dictionary of 10", "calls", "of_dict(d)"),
    Row("call, nested parameters", "calls", "of_params(params, a)"),
    Row("call, keywords", "calls", "of_two(a, b=b)"),
    Row("call, Python number", "calls", "of_number(a, 3)"),
    Row("call, Python float", "calls", "of_number(a, 0.5)"),
    Row("call, NumPy array", "calls", "of_two(a, array)"),
    Row("call, a mix", "calls", "of_mix(params, a, array, rate=0.5)"),
    Row("call, list of variables", "calls", "of_list(variables)"),
    Row("call, nested result", "calls", "to_nest(a)"),
    *[Row(f"first call of {n}", "first call", f"new_chain({n})(a, b)", once=True, size=n) for n in CHAINS],
    Row("add, large", "large", "A + B", finish=True),
    Row("scalar, large", "large", "A * 2.0", finish=True),
    Row("tanh, large", "large", "tanh(A)", finish=True),
    Row("matmul, large", "large", "Q @ Q", finish=True),
    Row("sum, large", "large", "total(A)", finish=True),
    Row("mean, large", "large", "mean(A)", finish=True),
    Row("reshape, large", "large views", "reshape(A, (1000, 1000))", finish=True),
    Row("transpose, large", "large views", "transpose(Q)", finish=True),
    Row("slice, large", "large views", "A[2:700_000]", finish=True),
    Row("where, large", "large", "where(C, A, B)", finish=True),
    Row("softmax, large", "large", "softmax(A)", finish=True),
]


def _operands(convert: Callable[[Any], Any]) -> Words:
    """The same arrays for every library: lower case is tiny (10 elements), upper case large (a million)."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.1, 1.0, (2, 10)).astype(np.float32)
    A, B = rng.uniform(0.1, 1.0, (2, 1_000_000)).astype(np.float32)
    arrays = {"a": a, "b": b, "c": a > b, "A": A, "B": B, "C": A > B, "r": a.reshape(2, 5)}
    arrays |= {"p": a[:4].reshape(2, 2), "q": A[:10_000].reshape(100, 100), "Q": A.reshape(1000, 1000)}
    return {name: convert(array) for name, array in arrays.items()}


def _chain(tanh: Callable[[Any], Any], operations: int) -> Callable[[Any, Any], Any]:
    """A new function each time, so that staging it starts from nothing."""

    def chain(x: Any, b: Any) -> Any:
        a = x
        for _ in range(operations // 3):
            x = tanh(x * b) + a
        return x

    return chain


def _staged(words: Words, stage: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Words:
    """The rows of staged functions: `stage` is the library's own decorator."""

    def new_chain(operations: int) -> Callable[..., Any]:
        return stage(_chain(words["tanh"], operations))

    chains = {"chain": functools.cache(new_chain), "new_chain": new_chain}
    return {"plus_one": stage(lambda x: x + 1), **chains, **_calls(stage, words["a"])}


def _calls(stage: Callable[[Callable[..., Any]], Callable[..., Any]], a: Any) -> Words:
    """The rows of cached calls: what they compute is small, so what counts is how the arguments find their trace."""
    layer = {"w": a, "b": a}
    return {
        "xs": [a] * 100,
        "d": {f"k{i}": a for i in range(10)},
        "params": {"layers": [layer] * 6, "head": layer},
        "array": np.ones(10, np.float32),
        "variables": [a] * 10,  # where a library has none, it passes arrays
        "of_list": stage(lambda xs: xs[0] + xs[1]),
        "of_dict": stage(lambda d: d["k0"] + d["k1"]),
        "of_params": stage(lambda params, x: x + params["head"]["b"]),
        "of_two": stage(lambda a, b: a + b),
        "of_number": stage(lambda a, n: a + n),
        "of_mix": stage(lambda params, x, array, rate=0.1: x + array + params["head"]["b"] * rate),
        "to_nest": stage(lambda x: {"loss": x + 1, "more": (x + 2, [x + 3])}),
    }


def _adder(tape: Callable[[Callable[[Any], Any], Any], object], a: Any, b: Any) -> Callable[[int], int]:
    """The row of recorded additions: `tape(f, a)` records what f does with a."""

    def additions(x: Any) -> Any:
        for _ in range(RECORDED):
            y = x + b
        return y

    def recorded(number: int) -> int:
        tapes = max(1, number // RECORDED)
        for _ in range(tapes):
            tape(additions, a)
        return tapes * RECORDED

    return recorded


def _numpy() -> Words:
    words = _operands(np.array) | {"tanh": np.tanh, "total": np.sum, "mean": np.mean, "where": np.where}
    words |= {"reshape": np.reshape, "transpose": np.transpose, "softmax": _softmax(np)}

    def gradient(a: Any, b: Any) -> Any:  # by hand: what somebody without a library would write
        t = np.tanh(a * b)
        g = a * (1.0 - t * t)
        return np.sum(t * a), (t + g * b, g * a)

    words["gradient"] = gradient
    words["recorded"] = _adder(lambda f, a: f(a), words["a"], words["b"])
    return words | _staged(words, lambda f: f)


def _softmax(xp: Any) -> Callable[[Any], Any]:
    """As written where a library has none of its own."""

    def softmax(x: Any) -> Any:
        e = xp.exp(x - xp.max(x))
        return e / xp.sum(e)

    return softmax


def _limelight() -> Words:
    import limelight as ll

    words = _operands(ll.constant) | {"tanh": ll.tanh, "total": ll.sum, "mean": ll.mean, "where": ll.where}
    words |= {"reshape": ll.reshape, "transpose": ll.matrix_transpose, "softmax": ll.nn.softmax}

    def record(f: Callable[[Any], Any], a: Any) -> None:
        with ll.GradientTape() as tape:
            tape.watch(a)
            f(a)

    def gradient(a: Any, b: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch((a, b))
            y = ll.sum(ll.tanh(a * b) * a)
        return y, tape.gradient(y, (a, b))

    words |= {"recorded": _adder(record, words["a"], words["b"]), "gradient": gradient}
    words |= _staged(words, ll.function)
    return words | {"variables": [ll.Variable(words["a"]) for _ in range(10)]}


def limelight_on(executor: str) -> Words:
    """What it stages from now on runs on that executor."""
    import limelight as ll

    ll.config.executor(executor)
    return _limelight()


def _autograd() -> Words:
    import autograd.numpy as xp
    from autograd.core import make_vjp
    from autograd.differential_operators import make_vjp as of_several

    words = _operands(np.array) | {"tanh": xp.tanh, "total": xp.sum, "mean": xp.mean, "where": xp.where}
    words |= {"reshape": xp.reshape, "transpose": xp.transpose, "softmax": _softmax(xp)}

    def gradient(a: Any, b: Any) -> Any:
        pull, y = of_several(lambda a, b: xp.sum(xp.tanh(a * b) * a), (0, 1))(a, b)
        return y, pull(1.0)

    return words | {"recorded": _adder(make_vjp, words["a"], words["b"]), "gradient": gradient}


def _jax() -> Words:
    import jax
    import jax.numpy as xp

    words = _operands(xp.array) | {"tanh": xp.tanh, "total": xp.sum, "mean": xp.mean, "where": xp.where}
    words |= {"reshape": xp.reshape, "transpose": xp.transpose, "softmax": jax.nn.softmax}
    gradient = jax.value_and_grad(lambda a, b: xp.sum(xp.tanh(a * b) * a), (0, 1))
    words |= {"recorded": _adder(jax.vjp, words["a"], words["b"]), "gradient": gradient}
    return words | _staged(words, jax.jit)


def _torch() -> Words:
    import torch
    import torch._inductor.config

    words = _operands(torch.tensor) | {"tanh": torch.tanh, "total": torch.sum, "mean": torch.mean}
    words |= {"reshape": torch.reshape, "transpose": torch.t, "where": torch.where}
    words["softmax"] = lambda x: torch.softmax(x, 0)
    of_a, of_b = words["a"].clone().requires_grad_(), words["b"].clone().requires_grad_()

    def gradient(a: Any, b: Any) -> Any:
        y = torch.sum(torch.tanh(of_a * of_b) * of_a)
        return y, torch.autograd.grad(y, (of_a, of_b))

    words |= {"recorded": _adder(lambda f, a: f(a), of_a, words["b"]), "gradient": gradient}
    torch._inductor.config.force_disable_caches = True  # or a first call would find its code on the disk
    return words | _staged(words, torch.compile)


def _tensorflow(**options: Any) -> Words:
    import tensorflow as tf

    words = _operands(tf.constant) | {
        "tanh": tf.tanh,
        "total": tf.reduce_sum,
        "mean": tf.reduce_mean,
        "where": tf.where,
    }
    words |= {"reshape": tf.reshape, "transpose": tf.transpose, "softmax": tf.nn.softmax}

    def record(f: Callable[[Any], Any], a: Any) -> None:
        with tf.GradientTape() as tape:
            tape.watch(a)
            f(a)

    def gradient(a: Any, b: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch((a, b))
            y = tf.reduce_sum(tf.tanh(a * b) * a)
        return y, tape.gradient(y, (a, b))

    words |= {"recorded": _adder(record, words["a"], words["b"]), "gradient": gradient}
    return words | _staged(words, lambda f: tf.function(f, autograph=False, **options))


def _tensorflow_xla() -> Mapping[str, Any]:
    return _tensorflow(jit_compile=True)


EAGER = ("tiny", "medium", "gradient", "large", "large views")
STAGED = ("staged", "calls", "first call")
LIBRARIES = [
    Library("numpy", "numpy", _numpy, lacks=("first call",)),
    Library("limelight", "limelight", _limelight, beside="numpy"),
    Library("autograd", "autograd", _autograd, lacks=STAGED),
    Library("jax", "jax", _jax, finish="({}).block_until_ready()"),
    Library("torch", "torch", _torch, lacks=("first call of 3000", "staged chain of 3000")),
    Library("tensorflow", "tensorflow", _tensorflow),
    Library("tf (XLA)", "tensorflow", _tensorflow_xla, beside="tensorflow", lacks=EAGER),
]
