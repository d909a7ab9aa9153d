"""Arguments of a loaded function as its traces take them: numbers, lists and variables become tensors.

A staged function traces anew for a number that it has not met. A loaded one cannot, so what fits the tensor that a
trace was made for is made one, as an `input_signature` does (`staging.input_signature`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core.tensor import Tensor, as_tensor, beside
from limelight.errors import ArgumentError, DTypeError, ShapeError, SignatureError
from limelight.export.nest_json import leaves_like
from limelight.staging.key import Call, Key
from limelight.staging.key_parts import TensorPart
from limelight.staging.signature import Signature

_Bound = tuple[tuple[Any, ...], dict[str, Any]]
_CANNOT = (DTypeError, ShapeError, ArgumentError, SignatureError)


def cast(signature: Signature, key: Key, bound: _Bound, *, to_dtype: bool) -> Call | None:
    """A call with tensors where the trace of `key` takes tensors; None where its arguments cannot be such.

    Args:
        signature: of the function.
        key: what the trace was made for.
        bound: the arguments, positional and by keyword.
        to_dtype: whether Python's numbers take the dtype of the trace, or that of a tensor made of them.
    """
    leaves = _leaves(signature, key, bound)
    if leaves is None:
        return None
    try:
        made = [
            _tensor(x, part, to_dtype) if isinstance(part, TensorPart) and not isinstance(x, Tensor) else x
            for x, part in zip(leaves, key.parts, strict=True)
        ]
        args, kwargs = signature.unbind(made, key.structure)
        return signature.call(args, kwargs)
    except _CANNOT:
        return None


def _leaves(signature: Signature, key: Key, bound: _Bound) -> list[Any] | None:
    """What stands at each leaf of `key`, below which lists are tensors; None for another structure."""
    if key.structure is None:
        return list(bound[0]) if len(bound[0]) == len(key.parts) else None
    return leaves_like(key.structure, bound if signature.takes_keywords else bound[0])


def _tensor(x: Any, part: TensorPart, to_dtype: bool) -> Tensor:
    return beside(x, part.dtype) if to_dtype else as_tensor(x)


def hint(signature: Signature, keys: Sequence[Key], bound: _Bound) -> str:
    """What to write, where an argument has another dtype than a trace takes, but its shape; "" otherwise."""
    for key in keys:
        leaves = _leaves(signature, key, bound)
        if leaves is None:
            continue
        for x, part, path in zip(leaves, key.parts, signature.paths(key.structure, len(key.parts)), strict=True):
            written = _written(x, part, path) if isinstance(part, TensorPart) else ""
            if written:
                return f" (write {written})"
    return ""


def _written(x: Any, part: TensorPart, path: str) -> str:
    """The argument `x`, called `path`, with the dtype of `part`; "" where that would not help."""
    try:
        made = as_tensor(x)
    except _CANNOT:
        return ""
    fits = TensorPart.of(part.dtype, part.shape).covers(TensorPart.of(part.dtype, made.shape))
    if made.dtype == part.dtype or not fits or (made.dtype.kind == "c" and part.dtype.kind != "c"):
        return ""
    name = part.dtype.name
    if isinstance(x, (np.ndarray, np.generic)):
        return f'{path}.astype("{name}")'
    return f'll.astype({path if isinstance(x, Tensor) else f"ll.constant({path})"}, "{name}")'
