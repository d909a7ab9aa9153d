"""What a case of an op is: how to call it, on what, and what NumPy says.

A case is multiplied by every dtype that its op accepts, by memory layouts, and by ways to run (see test_cases.py).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from limelight import random, tree
from limelight.core import dispatch, dtypes
from limelight.core.dtypes import DType
from limelight.core.eager import prepare
from limelight.core.op import get

FULL = os.environ.get("LIMELIGHT_TESTS") == "full"
"""Whether to run every case with everything, as `make test` and CI do.

Else there is one dtype of a kind, one memory layout, one shape for each way to call an op, and what is traced or
differentiated is one case for each op.
"""
ONE_OF_A_KIND = {dtypes.bool_, dtypes.int32, dtypes.float32, dtypes.complex64}
REAL_OF = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
TOTAL = {
    dtypes.int8: dtypes.int32,
    dtypes.int16: dtypes.int32,
    dtypes.uint8: dtypes.uint32,
    dtypes.uint16: dtypes.uint32,
}
TOLERANCE = {
    dtypes.bfloat16: 4e-2,
    dtypes.float16: 6e-3,
    dtypes.float32: 2e-5,
    dtypes.complex64: 5e-5,
    dtypes.float64: 1e-11,
    dtypes.complex128: 1e-11,
}


@dataclass(frozen=True)
class Input:
    """An operand: its shape, what values it may have, and its dtype where it is not the case's."""

    shape: tuple[int, ...]
    values: str = "any"
    dtype: DType | None = None
    high: int = 0

    def draw(self, dtype: DType, seed: int) -> np.ndarray[Any, Any]:
        """An array of this kind, the same for equal seeds."""
        rng = np.random.Generator(np.random.Philox(seed))
        dtype = self.dtype or dtype
        return np.asarray(_VALUES[self.values](rng, self, dtypes.kind(dtype), dtype)).astype(dtype)


def _any(rng: np.random.Generator, x: Input, kind: str, dtype: DType) -> Any:
    if kind == "bool":
        return rng.random(x.shape) < 0.5
    if kind == "integer":
        return rng.integers(0 if dtype.kind == "u" else -5, 6, x.shape)
    real = rng.uniform(-2.0, 2.0, x.shape)
    return real + 1j * rng.uniform(-2.0, 2.0, x.shape) if kind == "complex" else real


def _positive(rng: np.random.Generator, x: Input, kind: str, dtype: DType) -> Any:
    if kind == "integer":
        return rng.integers(1, 4, x.shape)
    real = rng.uniform(0.5, 2.0, x.shape)
    return real + 1j * rng.uniform(-1.0, 1.0, x.shape) if kind == "complex" else real


def _unit(rng: np.random.Generator, x: Input, kind: str, dtype: DType) -> Any:
    real = rng.uniform(-0.9, 0.9, x.shape)
    return real + 1j * rng.uniform(0.1, 0.9, x.shape) if kind == "complex" else real


def _distinct(rng: np.random.Generator, x: Input, kind: str, dtype: DType) -> Any:
    """All different, well apart, none near 0 or a whole number."""
    n = int(np.prod(x.shape))
    order = rng.permutation(n).reshape(x.shape)
    return order if kind == "integer" else (order - n // 2) * 0.5 + 0.26


def _nonzero(rng: np.random.Generator, x: Input, kind: str, dtype: DType) -> Any:
    sign = 1 if dtype.kind == "u" else np.where(rng.random(x.shape) < 0.5, -1, 1)
    return _positive(rng, x, kind, dtype) * sign


def _index(rng: np.random.Generator, x: Input, kind: str, dtype: DType) -> Any:
    return rng.integers(0 if dtype.kind == "u" else -x.high, x.high, x.shape)


def _class(rng: np.random.Generator, x: Input, kind: str, dtype: DType) -> Any:
    return rng.integers(0, x.high, x.shape)


def _with_zeros(rng: np.random.Generator, x: Input, kind: str, dtype: DType) -> Any:
    found = np.array(_nonzero(rng, x, kind, dtype))
    found.reshape(-1)[::3] = 0
    return found


def _special(rng: np.random.Generator, x: Input, kind: str, dtype: DType) -> Any:
    if kind not in ("floating", "complex"):
        return _any(rng, x, kind, dtype)
    return rng.choice([0.0, -1.5, 2.0, np.inf, -np.inf, np.nan], x.shape)


_VALUES: dict[str, Callable[..., Any]] = {
    "any": _any,
    "positive": _positive,
    "unit": _unit,
    "distinct": _distinct,
    "nonzero": _nonzero,
    "index": _index,
    "class": _class,
    "zeros": _with_zeros,
    "special": _special,
}


@dataclass(frozen=True)
class Case:
    """One use of the op called `op`.

    `call(*tensors)` and `reference(*arrays)` compute the same, the second in 64 bits; without a reference,
    `check(outputs, inputs)` asserts what can be said. `out` is the dtype of the result: "same", "real", "total" (of a
    sum), or a dtype. `smooth` cases are checked for second order as well; `dtypes` narrows what the op accepts. With
    `needs_sizes` the op cannot be traced without knowing sizes.
    """

    op: str
    call: Callable[..., Any]
    reference: Callable[..., Any] | None
    inputs: tuple[Input, ...] = ()
    note: str = ""
    out: str | DType = "same"
    smooth: bool = True
    dtypes: frozenset[DType] | None = None
    check: Callable[..., None] | None = None
    differentiable: bool | None = None
    needs_sizes: bool = False

    @property
    def name(self) -> str:
        shapes = " ".join("x".join(map(str, x.shape)) or "scalar" for x in self.inputs)
        return " ".join(part for part in (self.op, self.note, shapes) if part)

    @property
    def accepted(self) -> tuple[DType, ...]:
        """The dtypes that it can be run with."""
        found = get(self.op).accepts if self.dtypes is None else self.dtypes
        return tuple(d for d in dtypes.ALL if d in found)

    @property
    def tried(self) -> tuple[DType, ...]:
        """The dtypes to run with."""
        if not isinstance(self.out, str) and all(x.dtype for x in self.inputs):
            return self.accepted[:1]  # the case's dtype appears nowhere: all are one run
        if FULL:
            return self.accepted
        kinds = {dtypes.kind(d): d for d in reversed(self.accepted)}
        kinds |= {dtypes.kind(d): d for d in self.accepted if d in ONE_OF_A_KIND}
        return tuple(kinds.values())

    @property
    def hides_sizes(self) -> bool:
        """Whether a trace for unknown sizes is another than one for known sizes: numbers have no sizes."""
        return not self.needs_sizes and any(x.shape for x in self.inputs)

    @property
    def has_gradient(self) -> bool:
        return get(self.op).vjp is not None if self.differentiable is None else self.differentiable

    def arrays(self, dtype: DType) -> list[np.ndarray[Any, Any]]:
        return [x.draw(dtype, seed) for seed, x in enumerate(self.inputs)]

    def out_dtype(self, dtype: DType) -> DType:
        if not isinstance(self.out, str):
            return self.out
        return {"same": dtype, "real": REAL_OF.get(dtype, dtype), "total": TOTAL.get(dtype, dtype)}[self.out]


def thinned(cases: Sequence[Case], of: Callable[[Case], Any]) -> list[Case]:
    """All cases for the full run; else one of those with an equal key."""
    return list(cases) if FULL else one_of_each(cases, of)


def one_of_each(cases: Sequence[Case], of: Callable[[Case], Any]) -> list[Case]:
    """Of the cases with an equal key that with the most elements."""
    largest: dict[Any, Case] = {}
    for case in sorted(cases, key=lambda case: sum(int(np.prod(x.shape)) for x in case.inputs)):
        largest[of(case)] = case
    return [case for case in cases if largest[of(case)] is case]


def each(runs: Sequence[tuple[Any, ...]]) -> Callable[[Callable[..., None]], Any]:
    """Calls the test with each of `runs`, whose first part is a case.

    A test that takes a millisecond costs five more, so several are one: eight in the full run, sixteen otherwise.
    """
    size = 8 if FULL else 16
    parts = [runs[i : i + size] for i in range(0, len(runs), size)]

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def of_several(part: Sequence[tuple[Any, ...]]) -> None:
            for run in part:
                try:
                    test(*run)
                except BaseException as error:
                    error.add_note(f"the case: {_name(run)}")
                    raise

        vars(of_several).pop("__wrapped__")  # of which pytest would take the parameters
        return pytest.mark.parametrize("part", parts, ids=lambda part: ", ".join(map(_name, part)))(of_several)

    return decorate


def _name(run: tuple[Any, ...]) -> str:
    case, *others = run
    return " ".join([case.name, *[dtype.name for dtype in others]])


def call_of(case: Case) -> Any:
    """The key of cases that call an op in one way, on tensors of other shapes."""
    return case.op, case.note, len(case.inputs)


def op_of(case: Case) -> str:
    """The key of cases of one op."""
    return case.op


def wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`array` in 64 bits of its kind, for references."""
    kind = dtypes.kind(array.dtype)
    target = {"bool": "bool", "floating": "float64", "complex": "complex128"}.get(kind)
    if target is None:
        target = "uint64" if array.dtype == np.uint64 else "int64"
    return array.astype(target)


def agree(found: Any, wanted: Any) -> None:
    """Asserts that two nests of tensors have the same dtypes and shapes, and nearly the same values."""
    for x, y in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        tolerance = max(TOLERANCE.get(x.dtype, 0), 2e-5 if x.dtype.kind in "fc" else 0)
        np.testing.assert_allclose(wide(x.numpy()), wide(y.numpy()), rtol=tolerance, atol=tolerance)


def drawn_alike(run: Callable[[], Any]) -> Any:
    """What `run()` gives with the random numbers that each such run draws."""
    random.seed(3)
    return run()


def raw(name: str, *attrs: Any) -> Callable[..., Any]:
    """Calls an op that has no public function of its own."""

    def call(*inputs: Any) -> Any:
        op = get(name)
        return dispatch.apply(op, prepare(op, inputs), attrs)

    return call


UNARY: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (0, 2), (1, 1))
BINARY: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((), (2, 2)),
    ((0, 3), (3,)),
    ((1,), ()),
)


def unary(
    op: str, call: Callable[..., Any], reference: Callable[..., Any], values: str = "any", **more: Any
) -> list[Case]:
    """An op of one tensor on several shapes."""
    return [Case(op, call, reference, (Input(shape, values),), **more) for shape in UNARY]


def binary(
    op: str,
    call: Callable[..., Any],
    reference: Callable[..., Any],
    values: str | Sequence[str] = "any",
    scalars: Sequence[Any] = (),
    **more: Any,
) -> list[Case]:
    """An op of two tensors on several pairs of broadcasting shapes, on a tensor twice, and beside Python scalars."""
    kinds = (values, values) if isinstance(values, str) else tuple(values)
    found = [Case(op, call, reference, (Input(a, kinds[0]), Input(b, kinds[1])), **more) for a, b in BINARY]
    if kinds[0] == kinds[1]:
        found.append(
            Case(
                op,
                lambda x: call(x, x),
                lambda x: reference(x, x),
                (Input((3,), kinds[0]),),
                **{**more, "note": "of itself"},
            )
        )
    for s in scalars:
        only = {**more, "note": f"with {s!r}"}
        found.append(
            Case(op, lambda x, s=s: call(x, s), lambda x, s=s: reference(x, s), (Input((3,), kinds[0]),), **only)
        )
        only = {**more, "note": f"of {s!r} and"}
        found.append(
            Case(op, lambda y, s=s: call(s, y), lambda y, s=s: reference(s, y), (Input((3,), kinds[1]),), **only)
        )
    return found
