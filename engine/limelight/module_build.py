"""A call of a module on types instead of values: it makes the weights, and tells the type of each module's result.

The call is traced (`limelight.staging`), and the graph is thrown away. Initial values of weights are computed as in any
first call; nothing else is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from limelight.core import nest
from limelight.core.module_calls import told_of_results
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.errors import ArgumentError, DTypeError
from limelight.staging.function import Function

Results = dict[int, list[str]]
"""What the calls of each module returned, in words, by the module's id."""


def spec_of(given: Any) -> Any:
    """A shape, spec, tensor or array as a spec; a nest of them as a nest.

    Raises ArgumentError for anything else.
    """
    if isinstance(given, TensorSpec):
        return given.ranked("build")
    if isinstance(given, (tuple, list)) and all(n is None or _is_size(n) for n in given):
        return TensorSpec(tuple([None if n is None else int(n) for n in given]))
    if isinstance(given, Tensor) or hasattr(given, "dtype"):
        return TensorSpec(given.shape, given.dtype)
    if isinstance(given, (dict, list, tuple)):
        return nest.map_structure(spec_of, given) if isinstance(given, dict) else tuple(map(spec_of, given))
    hint = f"; write ({given},) for a vector of so many" if isinstance(given, int) else ""
    raise ArgumentError(
        f"build: needs the shape of each argument, as in (None, 64), or a ll.TensorSpec, got "
        f"{type(given).__name__}{hint}"
    )


def _is_size(n: Any) -> bool:
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool)


@contextlib.contextmanager
def types_told(inputs: Sequence[Any]) -> Iterator[None]:
    """Adds to a DTypeError, where a shape stood for an argument, that it is one of float32, and what to write."""
    try:
        yield
    except DTypeError as error:
        shape = next((x for x in inputs if isinstance(x, (tuple, list)) and isinstance(spec_of(x), TensorSpec)), None)
        if shape is not None:
            error.add_note(f'A shape alone is one of float32; of integers write ll.TensorSpec({tuple(shape)}, "int32")')
        raise


def traced_results(module: Any, specs: Sequence[Any]) -> Results:
    """Traces a call of `module` on arguments of these types; returns the types that each module below it returned."""
    models = [module, *module.submodules]
    before = {id(m): vars(m)["_traced"] for m in models if "_traced" in vars(m)}
    results: Results = {}

    def note(called: Any, result: Any) -> None:
        results.setdefault(id(called), []).append(_words(result))

    def call(*args: Any) -> Any:
        results.clear()  # the trace that makes variables is followed by another
        return module(*args)

    try:
        with told_of_results.override(note):
            Function(call, name=f"a call of {type(module).__name__}").get_concrete_function(*specs)
    finally:
        for m in [module, *module.submodules]:
            if "_traced" in vars(m):  # no trace is kept, so layers may still be added
                m._traced = before.get(id(m), False)
    return results


def _words(result: Any) -> str:
    leaves, structure = nest.flatten(result)
    return nest.words(structure, [str(getattr(x, "spec", type(x).__name__)) for x in leaves])
