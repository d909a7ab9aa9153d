"""Calls over short axes, which tables make as loops of their own: NumPy's numbers to the bit, whatever the axes."""

from __future__ import annotations

import ctypes
import itertools
import os
from typing import Any

import numpy as np
import pytest

from limelight.executors.loops import native_loops

UFUNCS = [np.add, np.subtract, np.multiply, np.divide]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, 1e-40]
LENGTHS = [1, 2, 3, 4, 5, 8]
ROUNDS = 200 if os.environ.get("LIMELIGHT_TESTS") == "full" else 20


def numbers(random: Any, n: int, dtype: str) -> Any:
    array = random.standard_normal(n).astype(dtype)
    array[random.random(n) < 0.1] = random.choice(SPECIAL)
    return array


def run(ufunc: Any, x: Any, y: Any, out: Any, lengths: Any, steps: Any) -> Any:
    """One instruction over these axes, the last one the loop's own; `out` is None where the first operand is."""
    (*outer, n), (*outer_steps, step) = lengths, steps
    axes = tuple(word for length, row in zip(outer, outer_steps, strict=True) for word in (length, *row))
    loop = native_loops.ufunc_loop(ufunc, bytes([x.dtype.num] * 3))
    copy = native_loops.copy_loop(x.dtype.num, x.dtype.num)
    spec = [(one.dtype.num, one.shape, one.strides) for one in (x, y, x if out is None else out)]
    fill = [(copy, (0, 0, 2, 0), (len(x),), (x.itemsize,) * 2, ())] if out is None else []
    places = (2, 0, 1, 0, 2, 0) if out is None else (0, 0, 1, 0, 2, 0)
    table = native_loops.native().Table(
        tuple(spec[:2]), (), tuple(spec[2:]), 0, [*fill, (loop, places, (n,), tuple(step), axes)], print
    )
    return table(x, y)[0]


def by_calls(ufunc: Any, arrays: Any, lengths: Any, steps: Any) -> None:
    """The same with a call of NumPy's function for each position of the outer axes."""
    item, n = arrays[0].itemsize, lengths[-1]
    for position in itertools.product(*map(range, lengths[:-1])):
        views = []
        for k, array in enumerate(arrays):
            start = sum(i * row[k] for i, row in zip(position, steps, strict=False)) // item
            views.append(np.lib.stride_tricks.as_strided(array[start:], (n,), (steps[-1][k],)))
        ufunc(*views[:2], out=views[2])


def laid_out(random: Any, lengths: Any, item: int, kept: Any) -> tuple[int, list[int]]:
    """The elements of an array that has those axes that are kept, in some order of memory, and its strides."""
    strides, n = [0] * len(lengths), 1
    for axis in random.permutation(len(lengths)):
        if kept[axis]:
            strides[axis], n = n * item, n * lengths[axis]
    return n, strides


def agrees_with_calls(ufunc: Any, x: Any, y: Any, out: Any, strides: Any, lengths: Any) -> None:
    """One instruction gives the numbers of many calls, to the bit but for NaN; `out` is None as for `run`."""
    steps = list(zip(*strides, strict=True))
    found = run(ufunc, x, y, out, lengths, steps)
    wanted = x if out is None else out
    with np.errstate(all="ignore"):
        by_calls(ufunc, (x, y, wanted), lengths, steps)
    np.testing.assert_array_equal(found, wanted)
    assert found[~np.isnan(wanted)].tobytes() == wanted[~np.isnan(wanted)].tobytes()


of_ufuncs = pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
of_dtypes = pytest.mark.parametrize("dtype", ["f4", "f8"])


@of_dtypes
@of_ufuncs
def test_elements_are_those_of_numpy(ufunc: Any, dtype: str) -> None:
    random = np.random.default_rng(1)
    item = np.dtype(dtype).itemsize
    for _ in range(ROUNDS):
        rank = random.integers(2, 5)
        lengths = [int(n) for n in random.choice(LENGTHS, rank)]
        lengths[random.integers(rank)] *= int(random.choice([1, 10]))
        sizes, strides = zip(
            *[laid_out(random, lengths, item, random.random(rank) < share) for share in (0.7, 0.7, 2.0)], strict=True
        )
        agrees_with_calls(ufunc, *[numbers(random, n, dtype) for n in sizes], strides, lengths)


@of_dtypes
@of_ufuncs
def test_what_is_taken_in_comes_in_the_order_of_the_calls(ufunc: Any, dtype: str) -> None:
    random = np.random.default_rng(2)
    item = np.dtype(dtype).itemsize
    for _ in range(ROUNDS):
        rank = random.integers(2, 4)
        lengths = [int(n) for n in random.choice(LENGTHS, rank)]
        kept = np.ones(rank, bool)
        kept[random.integers(rank - 1)] = False
        n, strides = laid_out(random, lengths, item, kept)
        m, others = laid_out(random, lengths, item, np.ones(rank, bool))
        x, y = numbers(random, n, dtype), numbers(random, m, dtype)
        agrees_with_calls(ufunc, x, y, None, (strides, others, strides), lengths)


def ten_times_more() -> Any:
    """A ufunc of float64 with the name of NumPy's `add`: ten times the first operand, and the second one."""
    kind = ctypes.CFUNCTYPE(None, *[ctypes.POINTER(ctypes.c_ssize_t)] * 3, ctypes.c_void_p)

    @kind
    def loop(args: Any, dims: Any, steps: Any, data: Any) -> None:
        for i in range(dims[0]):
            x, y, out = [ctypes.c_double.from_address(args[k] + i * steps[k]) for k in range(3)]
            out.value = 10 * x.value + y.value

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    core = __import__("numpy._core" if hasattr(np, "_core") else "numpy.core", fromlist=["_multiarray_umath"])
    functions = ctypes.cast(pointer(core._multiarray_umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
    text, number = ctypes.c_char_p, ctypes.c_int
    signature = [ctypes.c_void_p, ctypes.c_void_p, text, *[number] * 4, text, text, number]
    make = ctypes.PYFUNCTYPE(ctypes.py_object, *signature)(functions[1])  # PyUFunc_FromFuncAndData
    kept = (ctypes.c_void_p * 1)(ctypes.cast(loop, ctypes.c_void_p)), (ctypes.c_void_p * 1)(), bytes([12] * 3), loop
    _KEPT.append(kept)
    return make(kept[0], kept[1], kept[2], 1, 2, 1, -1, b"add", b"", 0)


_KEPT: list[Any] = []


def test_another_function_with_the_name_of_numpys_is_called() -> None:
    own = ten_times_more()
    assert own.__name__ == "add"
    x, y, out = np.arange(12.0), np.arange(4.0), np.empty(12)
    found = run(own, x, y, out, (3, 4), ((32, 0, 32), (8, 8, 8)))
    np.testing.assert_array_equal(found.reshape(3, 4), 10 * x.reshape(3, 4) + y)
