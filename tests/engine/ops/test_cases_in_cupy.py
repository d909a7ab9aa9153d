"""Each op as CuPy runs it, alone, differentiated and staged: a case of each op, on a pretended GPU where none is.

The test marked `gpu` runs all cases with all dtypes on a real one.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from cases import CASES
from opcase import agree, drawn_alike, each, one_of_each, op_of
from pretended_gpu import pretended_gpus

import limelight as ll
from limelight.core import dtypes
from limelight.executors import base as executors

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every case is staged anew
ONE_OF_EACH = one_of_each(CASES, op_of)
PARTS = 16
ELSEWHERE = {"to_device"}  # its result is where it says


@pytest.fixture
def cupy(no_gpu):
    with pretended_gpus() if no_gpu else nullcontext():
        yield


def tried(case):
    """Those that CuPy has."""
    return [dtype for dtype in case.accepted if dtype != dtypes.bfloat16]


def inputs_of(case, dtype=None):
    known = [x for x in tried(case) if x == dtypes.float32] or tried(case)
    return [ll.constant(array) for array in case.arrays(dtype or known[0])]


def tuple_of(result):
    return tuple(ll.tree.leaves(result))


def on_gpu(function, there):
    def run():
        with ll.device("GPU:0"), ll.config.tf32(False):
            return function(*there)

    return drawn_alike(run)


def stays_there(case, found):
    import cupy

    if case.op not in ELSEWHERE:
        places = {(x.device.short, type(x._data)) for x in tuple_of(found)}
        assert places <= {("GPU:0", cupy.ndarray)}


def runs_alone(case, dtype=None):
    tensors = inputs_of(case, dtype)
    found = on_gpu(case.call, [x.to("GPU:0") for x in tensors])
    stays_there(case, found)
    agree(found, drawn_alike(lambda: case.call(*tensors)))


@pytest.mark.usefixtures("cupy")
@each([(case,) for case in ONE_OF_EACH])
def test_alone(case):
    runs_alone(case)


def gradients(function, tensors, weights):
    with ll.GradientTape() as tape:
        watched = [x for x in tensors if dtypes.is_inexact(x.dtype)]
        tape.watch(watched)
        outputs = tuple_of(function(*tensors))
    found = tape.gradient(list(outputs), watched, output_gradients=weights)
    return [g.dense() if hasattr(g, "dense") else g for g in found]


def is_differentiated_alike(case, dtype=None):
    tensors = inputs_of(case, dtype)
    outputs = tuple_of(drawn_alike(lambda: case.call(*tensors)))
    if not all(dtypes.is_inexact(out.dtype) for out in outputs) or not any(dtypes.is_inexact(x.dtype) for x in tensors):
        return
    weights = [ll.full_like(out, 0.5) for out in outputs]
    wanted = drawn_alike(lambda: gradients(case.call, tensors, weights))
    there, weights_there = ([x.to("GPU:0") for x in xs] for xs in (tensors, weights))
    with ll.config.tf32(False):
        found = drawn_alike(lambda: gradients(case.call, there, weights_there))
    assert [g is None for g in found] == [g is None for g in wanted]
    stays_there(case, [g for g in found if g is not None])
    agree([g for g in found if g is not None], [g for g in wanted if g is not None])


@pytest.mark.usefixtures("cupy")
@each([(case,) for case in ONE_OF_EACH if case.has_gradient and case.inputs])
def test_gradients(case):
    is_differentiated_alike(case)


@pytest.mark.usefixtures("cupy")
@each([(case,) for case in ONE_OF_EACH])
def test_staged(case):
    tensors = inputs_of(case)
    with executors.chosen.override("plan"):
        found = on_gpu(ll.function(case.call), [x.to("GPU:0") for x in tensors])
    stays_there(case, found)
    agree(found, drawn_alike(lambda: case.call(*tensors)))


def failures(cases):
    """The cases with all dtypes, and their gradients: what failed, and why."""
    failed = {}
    for case in cases:
        for dtype in tried(case):
            ways = [runs_alone]
            ways += [is_differentiated_alike] if case.has_gradient and case.inputs else []
            for way in ways:
                try:
                    way(case, dtype)
                except Exception as error:  # noqa: BLE001  # all of them are to be seen at once
                    if "this CuPy has no such dtype" not in str(error):  # bfloat16, before version 14
                        failed[f"{case.name} {dtype.name} {way.__name__}"] = str(error).partition("\n")[0]
    return failed


@pytest.mark.gpu
@pytest.mark.slow  # CuPy compiles its kernels when they are first used: in parts, which processes share
@pytest.mark.parametrize("part", range(PARTS))
def test_the_whole_registry_on_a_real_gpu(part):
    failed = failures(CASES[part::PARTS])
    assert not failed, "\n".join([f"{len(failed)} failed:", *[f"{name}: {why}" for name, why in failed.items()]])
