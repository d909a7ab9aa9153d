"""What `ll.explain.baked` tells of buffers of other libraries, and of the environment."""

from __future__ import annotations

import array
import ctypes
import os

import pytest

import limelight as ll

samples = array.array("d", [1.0, 2.0])
weights = (ctypes.c_double * 2)(1.0, 2.0)
raw = bytearray(b"ab")


@ll.function
def scaled(x: ll.Tensor) -> ll.Tensor:
    return x * samples[0] * weights[1] * raw[0]


def test_buffers_are_told_by_what_they_hold() -> None:
    scaled(ll.constant(1.0))
    assert {one.name: (one.then, one.changed) for one in ll.explain.baked(scaled).records} == {
        "samples": ("array('d', [1.0, 2.0])", False),
        "weights": ("c_double_Array_2 [1.0, 2.0]", False),
        "raw": ("bytearray(b'ab')", False),
    }
    samples[0], weights[1], raw[0] = 3.0, 5.0, 99
    found = {one.name: (one.now, one.fix) for one in ll.explain.baked(scaled).changed}
    assert found == {
        "samples": ("array('d', [3.0, 2.0])", "pass it as an argument, scaled(x, ll.constant(samples))"),
        "weights": ("c_double_Array_2 [1.0, 5.0]", "pass it as an argument, scaled(x, ll.constant(weights))"),
        "raw": ("bytearray(b'cb')", "pass it as an argument, scaled(x, bytes(raw))"),
    }


@ll.function
def by_key(x: ll.Tensor) -> ll.Tensor:
    return x * float(os.environ["LIMELIGHT_TEST_RATE"])


@ll.function
def by_get(x: ll.Tensor) -> ll.Tensor:
    return x * float(os.environ.get("LIMELIGHT_TEST_RATE", "1"))


@ll.function
def by_getenv(x: ll.Tensor) -> ll.Tensor:
    return x * float(os.getenv("LIMELIGHT_TEST_RATE", "1"))


@pytest.mark.parametrize(
    ("step", "name"),
    [(by_key, "os.environ['LIMELIGHT_TEST_RATE']"), (by_get, "os.environ"), (by_getenv, "os.getenv")],
)
def test_the_environment_may_change(step: ll.Function, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_TEST_RATE", "0.5")
    step(ll.constant(1.0))
    assert [(one.name, one.changed) for one in ll.explain.baked(step).records] == [(name, False)]
    monkeypatch.setenv("LIMELIGHT_TEST_RATE", "0.25")
    (changed,) = ll.explain.baked(step).changed
    assert "another" in changed.now or changed.now == "'0.25'"
    assert "argument" in changed.fix
    assert "0.25" in changed.now or "0.25" not in str(changed)  # other names may be secrets
