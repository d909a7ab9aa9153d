"""A graph compiled in the background: JAX writes it out here, XLA compiles it in another process.

What is compiled is for arrays of just the shapes that the graph knows. The other process leaves the program on disk
(`xla.disk_cache`); where no folder is chosen, or none can be written to, in one of its own that goes when the program
has been taken from it.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from limelight.core.spec import GeneratorSpec, ObjectSpec, VariableSpec
from limelight.executors.xla import disk_cache, exported_program
from limelight.executors.xla.compiler_process import CompilerProcess
from limelight.executors.xla.graph_lowering import VariableCell
from limelight.executors.xla.program import Program, jax
from limelight.graph.ir import Graph


def compiled(graph: Graph, process: CompilerProcess) -> Program:
    """The program of a graph whose inputs and outputs are on CPU:0.

    Raises:
        NoFormError: a node has no form in a program.
        CompilationError: the other process has failed.
        StoppedError: the process ends.
    """
    process.may_be_left = True
    jax()  # its import takes the longest of what is done here
    process.may_be_left = False
    process.stop_if_told()

    def elsewhere(run: Callable[..., Any], types: Sequence[Any]) -> Any:
        process.stop_if_told()
        export = importlib.import_module("jax.export")
        program = bytes(export.export(jax().jit(run), platforms=["cpu"])(*types).serialize())
        with _folder() as (folder, most_bytes):
            process.compile(program, folder, most_bytes)
            with disk_cache.used(Path(folder), most_bytes=most_bytes):
                return exported_program.compiled(program)

    payloads = [_stand_in(value.spec) for value in graph.inputs]
    return Program(graph, payloads, [True] * len(graph.outputs), elsewhere, process.stop_if_told)


def _stand_in(spec: Any) -> Any:
    """What has the shape and dtype of a payload, and no memory."""
    if isinstance(spec, GeneratorSpec | ObjectSpec):
        return None
    array = np.broadcast_to(np.zeros((), spec.dtype), spec.shape)
    return VariableCell(array) if isinstance(spec, VariableSpec) else array


@contextlib.contextmanager
def _folder() -> Iterator[tuple[Path | str, int]]:
    """Where the other process leaves the program, and how many bytes there may be in all."""
    config = jax().config
    if config.jax_compilation_cache_dir:  # the program's own, with its own bound
        yield config.jax_compilation_cache_dir, config.jax_compilation_cache_max_size
        return
    chosen = disk_cache.folder()
    if chosen is not None and disk_cache.is_usable(chosen):
        yield chosen, disk_cache.MOST_BYTES
        return
    import tempfile  # noqa: PLC0415  # and much with it

    with tempfile.TemporaryDirectory(prefix="limelight-") as folder:
        yield Path(folder), -1
