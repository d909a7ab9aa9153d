"""A call of a module on types instead of values: it makes the weights, and tells the type of each module's result.

The call is traced (`limelight.staging`), and the graph is thrown away. Initial values of weights are computed as in any
first call; nothing else is.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast
from weakref import ref

import numpy as np

from limelight.core import nest
from limelight.core.module_calls import told_of_results
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.errors import ArgumentError, DTypeError
from limelight.staging.function import Function

_PLAIN: Final = frozenset([bool, int, float, str, type(None)])
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
    hint = (
        f"; write (None, {given}) for rows of so many features, ({given},) for one of them"
        if isinstance(given, int)
        else ""
    )
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


def traced_results(module: Any, specs: Sequence[Any], by_name: Mapping[str, Any] | None = None) -> Results:
    """Traces a call of `module` on arguments of these types; returns the types that each module below it returned."""
    models = [module, *module.submodules]
    before = {id(m): vars(m)["_traced"] for m in models if "_traced" in vars(m)}
    results: Results = {}

    def note(called: Any, result: Any) -> None:
        results.setdefault(id(called), []).append(_words(result))

    def call(args: Any, by_name: Any) -> Any:
        results.clear()  # the trace that makes variables is followed by another
        return module(*args, **by_name)

    try:
        with told_of_results.override(note):
            Function(call, name=f"a call of {type(module).__name__}").get_concrete_function(
                tuple(specs), dict(by_name or {})
            )
    finally:
        for m in [module, *module.submodules]:
            if "_traced" in vars(m):  # no trace is kept, so layers may still be added
                m._traced = before.get(id(m), False)
    return results


def note_call(module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Remembers the types of the arguments of a module's first call for its summary: of tensors, and plain values.

    Beside the module, whose attributes stay what its author wrote.
    """
    key, specs, noted = id(module), cast(Any, ()), _first_calls  # globals may be gone before the module is
    with contextlib.suppress(Exception):  # containers of users lead back to themselves, or raise when read
        leaves, structure = nest.flatten((args, dict(kwargs)))
        arrays = [isinstance(x, (Tensor, np.ndarray)) for x in leaves]
        if any(arrays) and all(is_array or type(x) in _PLAIN for x, is_array in zip(leaves, arrays, strict=True)):
            known = [TensorSpec(x.shape, x.dtype) if a else x for x, a in zip(leaves, arrays, strict=True)]
            specs = nest.unflatten(structure, known)
    noted[key] = ref(module, lambda _: noted.pop(key, None)), specs


def is_noted(module: Any) -> bool:
    """Whether a call of `module` has been noted."""
    return id(module) in _first_calls


def results_of_first_call(module: Any) -> Results:
    """What the modules below one return for arguments as in its first call; empty where that is not known.

    For any number of rows if the code allows it, else for as many as there were. The Python code of the call runs once
    more, on symbolic tensors; what it does to attributes is undone, and what it raises (it may ask for values) only
    means that the results are not known.
    """
    args = _first_calls.get(id(module), (None, ()))[1]
    rows = {x.shape[:1] for x in nest.leaves_of(args) if isinstance(x, TensorSpec) and x.shape}
    open_rows = nest.map_structure(_of_any_rows, args) if len(rows) == 1 else ()
    before = [(m, dict(vars(m)), _contents(m)) for m in [module, *module.submodules]] if args else []
    for specs in filter(None, (open_rows, args)):
        try:
            with warnings.catch_warnings(action="ignore"):
                return traced_results(module, *specs)
        except Exception:  # noqa: BLE001  # the user's code, run for a table alone
            continue
        finally:
            for m, attributes, contents in before:
                vars(m).clear()
                vars(m).update(attributes)
                for container, items in contents:
                    container.clear()
                    container.update(items) if isinstance(container, dict) else container.extend(items)
    return {}


def _of_any_rows(given: Any) -> Any:
    return TensorSpec((None, *given.shape[1:]), given.dtype) if isinstance(given, TensorSpec) and given.shape else given


def _contents(module: Any) -> list[tuple[Any, Any]]:
    """The lists and dictionaries that are a module's attributes, each with a copy."""
    return [(x, x.copy()) for x in vars(module).values() if type(x) in (list, dict)]


_first_calls: Final[dict[int, tuple[ref[Any], tuple[Any, ...]]]] = {}


def _words(result: Any) -> str:
    leaves, structure = nest.flatten(result)
    return nest.words(structure, [str(getattr(x, "spec", type(x).__name__)) for x in leaves])
