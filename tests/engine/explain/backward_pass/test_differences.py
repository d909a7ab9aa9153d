"""Derivatives by differences: of random programs, smooth and with kinks, whose derivatives a complex step gives."""

from __future__ import annotations

import numpy as np
import pytest

from limelight.explain.backward_pass.differences import Differences

SMOOTH = (
    np.tanh,
    np.sin,
    np.square,
    lambda x: x - x.mean(),
    lambda x: (x - x.mean()) / np.sqrt(((x - x.mean()) ** 2).mean() + 1e-3),
    lambda x: np.exp(-x * x),
    lambda x: np.exp(x - x.real.max()) / np.exp(x - x.real.max()).sum(),
    lambda x: (x + 100.0) - 100.0,
    lambda x: x * 3.0,
)
KINKS = (
    lambda x: np.where(x.real > 0, x, 0),
    lambda x: np.where(x.real > 0, x, -x),
    lambda x: np.where(x.real > np.sin(3 * x.real), x, np.sin(3 * x)),
    lambda x: x[np.argmax(x.real)] * x,
    lambda x: np.where(abs(x.real) < 0.5, x, 0.5 * np.sign(x.real)),
)
SIZE = 6
EPS = float(np.finfo(np.float64).eps)


def drawn(seed: int, pool):
    rng = np.random.default_rng(seed)
    ops = [(pool[rng.integers(len(pool))], rng.normal(size=(SIZE, SIZE)) / 2) for _ in range(rng.integers(1, 6))]

    def program(x):
        for op, matrix in ops:
            x = op(x @ matrix)
        return x

    return program, rng.normal(size=SIZE)


def asked(program, x, place, found, least):
    unit = np.eye(SIZE)[place]
    size = float(np.abs(program(x)).sum())
    differences = Differences(lambda by: float(program(x + by * unit).sum()), max(1.0, abs(x[place])), 1e-4, EPS, size)
    return differences.judge(found, least, 1e-4).verdict


def gradient(program, x):
    return np.array([program(x + 1e-30j * unit).imag.sum() / 1e-30 for unit in np.eye(SIZE)])


@pytest.mark.parametrize("pool", [SMOOTH, SMOOTH + KINKS], ids=["smooth", "kinks"])
def test_right_derivatives_are_never_wrong_and_those_off_by_a_hundredth_are(pool):
    verdicts, all_off = [], []
    for seed in range(60):
        program, x = drawn(seed, pool)
        right = gradient(program, x)
        least = 1e-3 * float(np.abs(right).max()) or 1e-12
        verdicts += [asked(program, x, i, float(right[i]), least) for i in range(SIZE)]
        clear = np.flatnonzero(np.abs(right) > max(10 * least, 1e-5 * np.abs(program(x)).sum()))
        off = [asked(program, x, i, float(right[i]) * 1.01, least) for i in clear]
        assert set(off) <= {"wrong", "kink"}, seed
        all_off += off
    assert "wrong" not in verdicts
    assert all_off.count("wrong") > 0.99 * len(all_off)
    assert verdicts.count("right") > 0.99 * len(verdicts)


@pytest.mark.parametrize(("x", "verdict"), [(0.0, "kink"), (1e-8, "kink"), (3e-5, "right"), (3e-4, "right")])
def test_at_a_kink_there_is_no_derivative_and_beside_it_there_is(x, verdict):
    differences = Differences(lambda by: abs(x + by), 1.0, 1e-4, EPS, abs(x))
    assert differences.judge(1.0, 1e-3, 1e-4).verdict == verdict
    wrong = differences.judge(1.01, 1e-3, 1e-4).verdict
    assert wrong == ("kink" if verdict == "kink" else "wrong")


def test_rounding_within_a_function_that_its_value_does_not_show_is_measured():
    def value(by):
        return (by + 0.3 + 1e8) - 1e8

    for found, verdict in ((1.0, "right"), (1.3, "wrong")):
        assert Differences(value, 1.0, 1e-4, EPS, 0.3).judge(found, 1e-12, 1e-4).verdict == verdict


def test_at_a_jump_and_where_values_are_not_finite():
    assert Differences(lambda by: float(by > 0), 1.0, 1e-4, EPS, 1.0).judge(0.0, 1e-12, 1e-4).verdict == "kink"
    assert Differences(lambda by: np.nan, 1.0, 1e-4, EPS, 1.0).judge(0.0, 1e-12, 1e-4).verdict == "nonfinite"
    assert Differences(lambda by: by, 1.0, 1e-4, EPS, 1.0).judge(np.nan, 1e-12, 1e-4).verdict == "wrong"
