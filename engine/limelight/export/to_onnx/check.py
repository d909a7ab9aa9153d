"""What onnxruntime makes of a model, beside what the function gives."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes
from limelight.core.tensor import Tensor
from limelight.errors import ExportError, LimelightError

TOLERANCE: Final = {dtypes.float16: 2e-2, dtypes.bfloat16: 5e-2, dtypes.float32: 1e-4, dtypes.float64: 1e-7}
"""How far results may lie apart, relative to the largest number among them, or to 1."""
_UNKNOWN_SIZE: Final = 3
_QUIET: Final = 4


def check(trace: Any, data: bytes, examples: Sequence[Any]) -> None:
    """Runs both on the same arguments. Raises ExportError where the numbers differ."""
    arguments = _arguments(trace, examples)
    try:
        expected = trace.function.run(*arguments, *[x._data for x in trace.captures])
    except (LimelightError, ValueError, IndexError, ArithmeticError) as error:
        raise ExportError(
            f"{trace.name} raises an error for drawn arguments, so that its numbers cannot be compared ({error}); give "
            "tensors as the signature: ll.export.onnx(f, path, (x, y)), or leave the check out: check=False"
        ) from error
    found = run(data, arguments)
    for i, (mine, theirs) in enumerate(zip(expected, found, strict=True)):
        why = difference(np.asarray(mine), theirs)
        if why:
            raise ExportError(
                f"{trace.name} cannot be exported: onnxruntime gives other numbers for result {i}: {why}. Please "
                "report this; check=False writes the file all the same"
            )


def _arguments(trace: Any, examples: Sequence[Any]) -> list[Any]:
    values = trace.graph.arguments
    given = [x.numpy() if isinstance(x, Tensor) else np.asarray(x) for x in examples]
    if len(given) == len(values) and all(
        g.ndim == v.spec.rank and g.dtype == v.spec.dtype for g, v in zip(given, values, strict=True)
    ):
        return given
    rng = np.random.Generator(np.random.Philox(7))
    return [drawn(rng, value.spec) for value in values]


def drawn(rng: Any, spec: Any) -> Any:
    """Numbers for an argument: real ones near 0, small whole ones that may be indices."""
    shape = [_UNKNOWN_SIZE if n is None else n for n in spec.shape]
    kind = dtypes.kind(spec.dtype)
    if kind == "bool":
        return rng.random(shape) < 0.5
    if kind == "integer":
        return rng.integers(0, 2, shape).astype(spec.dtype)
    return rng.normal(size=shape).astype(spec.dtype)


def session(data: bytes) -> Any:
    """A session of onnxruntime on the CPU."""
    try:
        import onnxruntime  # noqa: PLC0415  # needed for the check alone
    except ModuleNotFoundError:
        raise ExportError(
            "the check of ll.export.onnx needs onnxruntime: pip install 'limelight[onnx]', or leave it out: check=False"
        ) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _QUIET
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common class
        raise ExportError(f"onnxruntime cannot load the model: {error}") from error


def run(data: bytes, arguments: Sequence[Any]) -> list[Any]:
    """The results of a model. Raises ExportError."""
    ready = session(data)
    names = [x.name for x in ready.get_inputs()]
    fed = dict(zip(names, arguments, strict=True))
    if any(np.asarray(x).dtype == dtypes.bfloat16 for x in arguments) or any(
        "bfloat16" in y.type for y in ready.get_outputs()
    ):
        return _run_bound(ready, fed)
    try:
        return list(ready.run(None, fed))
    except Exception as error:  # its errors have no common class
        raise ExportError(f"onnxruntime cannot run the model: {error}") from error


def _run_bound(ready: Any, fed: dict[str, Any]) -> list[Any]:
    """bfloat16 goes in and out as its bits: NumPy has no such dtype."""
    import onnxruntime  # noqa: PLC0415  # needed for the check alone

    binding = ready.io_binding()
    kept = []
    for name, x in fed.items():
        x = np.array(x, order="C")  # noqa: PLW2901  # the same values, in another order
        if x.dtype == dtypes.bfloat16:
            value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(x.view(np.uint16).reshape(x.shape), 16)
        else:
            value = onnxruntime.OrtValue.ortvalue_from_numpy(x)
        kept.append(value)
        binding.bind_ortvalue_input(name, value)
    for y in ready.get_outputs():
        binding.bind_output(y.name)
    ready.run_with_iobinding(binding)
    return [_array(y) for y in binding.get_outputs()]


def _array(value: Any) -> Any:
    """A result; bfloat16 by the address of its bits."""
    if "bfloat16" not in value.data_type():
        return value.numpy()
    shape = value.shape()
    count = int(np.prod(shape))
    bits = (ctypes.c_uint16 * count).from_address(value.data_ptr()) if count else ()
    return np.array(bits, np.uint16).view(dtypes.bfloat16).reshape(shape)


def difference(mine: Any, theirs: Any) -> str:
    """What is different, in words; empty where the numbers agree."""
    theirs = np.asarray(theirs)
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return f"{theirs.dtype}{list(theirs.shape)} instead of {mine.dtype}{list(mine.shape)}"
    tolerance = TOLERANCE.get(mine.dtype)
    if tolerance is None:
        return "" if (mine == theirs).all() else f"{theirs.reshape(-1)[:4]} instead of {mine.reshape(-1)[:4]}"
    wide, other = mine.astype(np.float64), theirs.astype(np.float64)
    same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    if same.all():
        return ""
    finite = np.abs(wide[np.isfinite(wide)])
    scale = max(1.0, finite.max() if finite.size else 1.0)
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(wide - other))
    if not np.isfinite(apart).all():
        return f"{other[~np.isfinite(apart)][:3]} instead of {wide[~np.isfinite(apart)][:3]}"
    return "" if apart.max() <= tolerance * scale else f"they lie up to {apart.max():.2g} apart"
