"""Programs in StableHLO: run back through JAX they compute what the plan computes; what cannot travel is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from programs_in_jax import jax_only, run_back, same

import limelight as ll
import stablehlo_table
from limelight.errors import ArgumentError, ExportError

X = np.linspace(-1.0, 1.0, 15, dtype="float32").reshape(5, 3)


def net():
    ll.random.seed(1)
    module = ll.nn.Sequential(ll.nn.Dense(4, "relu"), ll.nn.Dense(2))
    module(ll.ones((1, 3)))
    return module


@jax_only
@pytest.mark.parametrize("rows", [5, None])
def test_a_module_of_known_and_unknown_sizes(tmp_path, rows):
    module = net()
    path = ll.export.stablehlo(module, tmp_path / "net", ll.TensorSpec((rows, 3)))
    same(module, path, X)
    if rows is None:
        same(module, path, X[:2])


@jax_only
@pytest.mark.parametrize("margins", ["same", 1])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_over_unknown_sizes(tmp_path, stride, margins):
    w = ll.constant(np.random.default_rng(0).integers(-3, 4, (3, 3, 2, 4)).astype("float32"))  # sums are exact

    def gradients(x):
        with ll.GradientTape() as tape:
            tape.watch([x, w])
            y = ll.nn.conv(x, w, stride, margins)
            loss = ll.sum(y * y)
        return y, *tape.gradient(loss, [x, w])

    path = ll.export.stablehlo(
        gradients, tmp_path / "conv", ll.TensorSpec((None, None, None, 2)), platforms=("cpu", "cuda")
    )
    x = np.random.default_rng(1).integers(-3, 4, (2, 7, 6, 2)).astype("float32")
    same(lambda x: gradients(ll.constant(x)), path, x)


@jax_only
def test_variables_as_an_argument(tmp_path):
    module = net()
    path = ll.export.stablehlo(module, tmp_path / "net", ll.TensorSpec((5, 3)), variables="inputs")
    arrays = {name: v.numpy() for name, v in module.named_variables()}
    same(lambda variables, x: module(x), path, arrays, X)
    zeros = {name: np.zeros_like(x) for name, x in arrays.items()}
    assert not np.asarray(run_back(path, zeros, X)).any()


def loop(x):
    last = ll.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), (0, x))[1]
    most = ll.while_loop(lambda a: ll.sum(a) < 1e9, lambda a: (a * 2.0,), (x,), maximum_iterations=2)
    return last, most


def branches(x):
    picked = ll.switch(ll.argmax(x[0]), [lambda: x, lambda: -x, lambda: x * 3.0])
    return ll.cond(ll.sum(x) > 0.0, lambda: picked, lambda: x - picked)


def scanned(x):
    inner = ll.function(lambda c: ll.tanh(c) * 2.0)
    forward = ll.scan(lambda c, r: (inner(c) + r, c * r), ll.zeros(3), x)
    return forward, ll.scan(lambda c, r: (c + r, c), ll.zeros(3), x, reverse=True)


def slope(x):
    return ll.grad(lambda x: ll.sum(scanned(x)[0][1] ** 2) + ll.sum(branches(x)))(x)


@jax_only
@pytest.mark.parametrize("f", [loop, branches, scanned, slope], ids=lambda f: f.__name__)
def test_control_flow(tmp_path, f):
    staged = ll.function(f)
    same(staged, ll.export.stablehlo(staged, tmp_path / "f", ll.TensorSpec((5, 3))), X)


@jax_only
def test_sizes_that_must_be_equal_and_those_that_need_not(tmp_path):
    together = ll.function(lambda x, y: x + y)
    spec = ll.TensorSpec((None, 3))
    same(together, ll.export.stablehlo(together, tmp_path / "f", (spec, spec)), X, X)
    apart = ll.function(lambda x, y: ll.concat([x, y]))
    same(apart, ll.export.stablehlo(apart, tmp_path / "f", (spec, spec)), X, X[:2])


@jax_only
def test_dtypes_of_64_bits_and_nested_results(tmp_path):
    f = ll.function(lambda x, n: {"a": [x * 2.0, n + 1], "b": (ll.linalg.svd(x),)})
    arrays = np.eye(3), np.array([1, 2**40])
    path = ll.export.stablehlo(f, tmp_path / "f", (ll.TensorSpec((3, 3), ll.float64), ll.TensorSpec((2,), ll.int64)))
    result = run_back(path, *arrays)
    assert result["a"][1].tolist() == [2, 2**40 + 1]
    assert result["a"][0].dtype == "float64"
    assert len(result["b"][0]) == 3


V = ll.Variable(1.0)
REFUSED = {
    "a draw": (lambda x: x + ll.random.normal((3,)), r"random_normal at test_stablehlo.py:\d+ draws"),
    "an assignment": (lambda x: V.assign_add(ll.sum(x)), r"assign_add at test_stablehlo.py:\d+ assigns"),
    "Python": (lambda x: ll.py_func(lambda v: v, [x], ll.TensorSpec((5, 3))), r"py_func at .*:\d+ does something"),
    "a shape": (ll.nonzero, r"nonzero at test_stablehlo.py:\d+ has no form"),
    "a loop's gradient": (
        ll.grad(lambda x: ll.sum(loop(x)[0])), r"while_forward at .*:\d+ keeps something"
    ),
}  # fmt: skip


@jax_only
@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_travel_is_refused_before_anything_is_written(tmp_path, what):
    f, words = REFUSED[what]
    with pytest.raises(ExportError, match=f"cannot be exported to StableHLO: {words}"):
        ll.export.stablehlo(ll.function(f), tmp_path / "f", ll.TensorSpec((5, 3)))
    assert not list(tmp_path.iterdir())


@jax_only
def test_functions_without_one_trace(tmp_path):
    f = ll.function(lambda x: x * 2.0)
    with pytest.raises(ExportError, match=r"has no trace to save.* or give ll\.export\.stablehlo its"):
        ll.export.stablehlo(f, tmp_path / "f")
    f(X)
    same(f, ll.export.stablehlo(f, tmp_path / "f"), X)
    f(X[0])
    with pytest.raises(ExportError, match=r"writes one trace, and .* has 2: give the signature"):
        ll.export.stablehlo(f, tmp_path / "f")


def test_paths_and_options_that_are_wrong(tmp_path):
    f = ll.function(lambda x: x)
    with pytest.raises(ExportError, match="is a folder"):
        ll.export.stablehlo(f, tmp_path)
    with pytest.raises(ExportError, match="there is no folder"):
        ll.export.stablehlo(f, tmp_path / "no" / "f")
    with pytest.raises(ArgumentError, match="'constants' or 'inputs', got 'all'"):
        ll.export.stablehlo(f, tmp_path / "f", variables="all")


def test_without_jax_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    with pytest.raises(ExportError, match=r"needs JAX and flatbuffers: pip install 'limelight\[xla\]'"):
        ll.export.stablehlo(ll.function(lambda x: x), tmp_path / "f", ll.TensorSpec((2,)))


# The table


def rows():
    text = stablehlo_table.PAGE.read_text(encoding="utf-8")
    body = text.partition(stablehlo_table.BEGIN)[2].partition(stablehlo_table.END)[0]
    travels, _, refused = body.partition("| refused |")
    names = [set(part.split("`")[1::2]) for part in (travels, refused)]
    return body, names[0], names[1]


def test_the_table_has_every_op():
    body, travels, refused = rows()
    assert travels | refused == set(stablehlo_table.own_ops()), "run scripts/stablehlo_table.py"
    assert not travels & refused
    assert "FAILS" not in body
    assert "DIFFERS" not in body
    assert f"{len(travels)} of {len(travels | refused)} ops travel" in body


@jax_only
@pytest.mark.parametrize("part", range(4))
def test_a_part_of_the_table_is_right(part):
    _, travels, refused = rows()
    by_op = stablehlo_table.cases()
    some = [op for op in sorted(travels) if op in by_op][part::40] + [op for op in sorted(refused) if op in by_op][
        part::20
    ]
    for op, what in stablehlo_table.table(some).items():
        assert (what == stablehlo_table.EXPORTED) == (op in travels), f"{op}: {what}; run scripts/stablehlo_table.py"
