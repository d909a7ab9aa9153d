"""`ll.export.onnx`: a trace as a file of ONNX, checked against onnxruntime before it gets its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from limelight.errors import ExportError


def onnx(target: Any, path: str | os.PathLike[str], signature: Any = (), *, check: bool = True) -> Path:
    """Writes one trace of a function, or of a module's call, as an ONNX file, to run without Python and limelight.

    The graph has the names of the arguments and results; sizes that are None in the signature are free when it runs.
    Variables and tensors that the function uses are initialisers of the graph. Before the file gets its name the
    checker of ONNX reads it, and onnxruntime runs it, on the example arguments or on drawn ones, and must give the
    function's numbers: to 1e-4 of the largest one in float32, 1e-7 in float64, 2e-2 in 16 bits, exactly for integers.

    Args:
        target: a function made by `ll.function`, a plain one (which is staged for it), a trace
            (`get_concrete_function`), a module, or what `ll.load` has read.
        path: the file; one that exists is replaced.
        signature: what to trace: a spec, or a tuple of arguments as `get_concrete_function` takes them. Tensors among
            them are examples as well. Left out where the function has a single trace.
        check: whether onnxruntime runs the graph. It is needed for that alone.

    Returns:
        The path.

    Raises:
        ExportError: something cannot be written in ONNX: Python code, random draws, changes of variables, complex
            arguments or results; it names function, op and line. Or the numbers differ, a library is missing, or
            there is not exactly one trace. docs/onnx_ops.md lists all ops.

    >>> import tempfile
    >>> import limelight as ll
    >>> @ll.function
    ... def area(r):
    ...     return 3.0 * r * r
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ll.export.onnx(area, f"{folder}/area.onnx", ll.TensorSpec((None,))).name
    'area.onnx'
    """
    try:
        from limelight.export.to_onnx import model  # noqa: PLC0415  # onnx is loaded when something is exported
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "onnx":
            raise
        raise ExportError("ll.export.onnx needs the onnx package: pip install 'limelight[onnx]'") from None
    return model.write(target, path, signature, check)
