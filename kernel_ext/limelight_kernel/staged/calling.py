"""A staged cell as a callable: which inputs it takes by position, what it returns, and what `help` says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import nest
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.errors import ArgumentError, CallError
from limelight.user_code.tracebacks import in_place_of_python
from limelight_kernel.staged.recipes import (
    ArrayResult,
    Composite,
    Constant,
    IfAssigned,
    Input,
    MixedResult,
    NumberResult,
    Recipe,
    Result,
    Run,
)
from limelight_widgets.format import shortened

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), slice, range)
_WIDEST: Final = 60


class CellOutputs(NamedTuple):
    """What a call of a staged cell returns: `outputs, result = step(x)`, or `step(x).result`.

    `outputs` are the names that the cell assigns, as a dictionary, `result` is the value of its last expression.
    """

    outputs: dict[str, Any]
    result: Any

    @in_place_of_python
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._hint(name, f"CellOutputs has no attribute {name!r}"), name=name, obj=self)

    @in_place_of_python
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            raise TypeError(self._hint(index, f"CellOutputs is (outputs, result), and has no {index!r}"))
        return tuple.__getitem__(self, index)

    def _hint(self, name: str, said: str) -> str:
        """What to write for the value of a name."""
        if name in self.outputs:
            return f"{said}; write .outputs[{name!r}]"
        known = ", ".join(map(repr, self.outputs)) or "nothing"
        return f"{said}; .result is the value of the last expression, and .outputs has {known}"

    def __repr__(self) -> str:
        """A line for each value: the values themselves may be megabytes."""
        rows = {f"outputs[{name!r}]": value for name, value in self.outputs.items()} | {"result": self.result}
        width = max(map(len, rows))
        return "\n".join(["CellOutputs", *[f"  {name:<{width}}  {_told(value)}" for name, value in rows.items()]])


class _FromTheNotebook:
    def __repr__(self) -> str:
        return "..."


_GIVEN: Final = _FromTheNotebook()  # the default of each parameter, as `help` writes it


def by_position(values: Mapping[str, object], through: Mapping[str, object]) -> list[str]:
    """The inputs that a call may give by position, in the order in which the cell reads them first.

    These are data: tensors, arrays, plain values, and containers of nothing else. Models, variables and functions are
    given by name alone, and so is what the cell reads by a helper (`through`).
    """
    return [name for name, value in values.items() if name not in through and _is_data(value)]


def _is_data(value: object) -> bool:
    return all(isinstance(leaf, (Tensor, np.ndarray, np.generic, *_PLAIN)) for leaf in nest.leaves_of(value))


def named(name: str, args: tuple[Any, ...], inputs: Mapping[str, Any], positional: list[str]) -> dict[str, Any]:
    """All inputs of a call by their names; raises CallError for too many, and for one given twice."""
    if len(args) > len(positional):
        taken = (
            f"takes {len(positional)} by position ({', '.join(positional)})" if positional else "takes none by position"
        )
        raise CallError(f"{name}() {taken}, but {len(args)} were given; give others by name: {name}(x=...)")
    given = dict(zip(positional, args, strict=False))
    for twice in given.keys() & inputs.keys():
        raise CallError(f"{name}() got {twice!r} twice: by position and by name")
    return {**given, **inputs}


def pickle_error(name: str) -> ArgumentError:
    """The error where a staged cell is to be pickled."""
    return ArgumentError(
        f"the staged cell {name} reads the names of this notebook and cannot be pickled; pickle what it makes, "
        f"{name}().outputs, or write its lines as a function with @ll.function, which goes by reference"
    )


def signature(values: Mapping[str, object], positional: list[str]) -> Signature:
    """The parameters of the callable: those by position, then the others but for modules; each has a default."""
    others = [name for name, value in values.items() if name not in positional and not isinstance(value, ModuleType)]
    return Signature(
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=_GIVEN) for name in positional]
        + [Parameter(name, Parameter.KEYWORD_ONLY, default=_GIVEN) for name in others]
    )


def documentation(
    name: str, positional: list[str], inputs: Mapping[str, object], outputs: Mapping[str, str], result: str
) -> str:
    """What `help` says: the inputs as the notebook has them, and what a call returns.

    Args:
        name: of the staged cell.
        positional: the inputs that may be given by position.
        inputs: what each input means in the notebook.
        outputs: what each name that the cell assigns is, in a few words.
        result: what the value of its last expression is.
    """
    return "\n".join(_lines(name, positional, inputs, outputs, result))


def _lines(
    name: str, positional: list[str], inputs: Mapping[str, object], outputs: Mapping[str, str], result: str
) -> Iterator[str]:
    call = f"{name}({', '.join(positional)})"
    yield f"The staged cell {name}, as a function. The notebook's names stay as they are.\n"
    yield f"    outputs, result = {call}\n    result = {call}.result"
    yield "\nInputs, by position or by name; what is not given is the notebook's:\n"
    yield from _table({given: kind_of(inputs[given]) for given in positional})
    others = {x: value for x, value in inputs.items() if x not in positional and not isinstance(value, ModuleType)}
    yield "\nInputs by name alone:\n"
    yield from _table({other: kind_of(value) for other, value in others.items()})
    yield "\nReturns (outputs, result). In the dictionary outputs:\n"
    yield from _table(outputs)
    yield f"\nand result: {result}"


def _table(rows: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, rows), default=0)
    yield from [f"    {name:<{width}}  {kind}" for name, kind in rows.items()] or ["    none"]


def kind_of_recipe(recipe: Recipe, specs: Sequence[object], inputs: Mapping[str, Any]) -> str:
    """What a recipe makes, in a few words; `specs` are those of the graph's outputs."""
    if isinstance(recipe, IfAssigned):
        return f"{kind_of_recipe(recipe.value, specs, inputs)}, if it is assigned"
    if isinstance(recipe, Result):
        return kind_of(specs[recipe.index])
    if isinstance(recipe, NumberResult):
        return f"a Python {recipe.kind.__name__}"
    if isinstance(recipe, MixedResult):
        return f"{kind_of(specs[recipe.index])}, or a Python number"
    if isinstance(recipe, ArrayResult):
        spec: Any = specs[recipe.index]
        return f"an array of {spec.dtype.name}{list(spec.shape)}"
    if isinstance(recipe, Constant | Input):
        return kind_of(recipe.make(Run((), inputs)))
    if not isinstance(recipe, Composite):
        return "made at each run"
    blank = recipe.blank()
    return f"{_a(blank)} of {len(recipe.parts)}" if hasattr(blank, "__len__") else _a(blank)


def kind_of(value: object) -> str:
    """What `value` is, in a few words: "f32[8,4]", "a list of 3", "0.1".

    >>> import limelight as ll
    >>> kind_of(ll.ones([2, 3])), kind_of([1, 2]), kind_of(0.5), kind_of(ll.nn.Dense(2))
    ('f32[2,3]', 'a list of 2', '0.5', 'a Dense')
    """
    if isinstance(value, Tensor | TensorSpec):
        return str(value.spec if isinstance(value, Tensor) else value)
    if isinstance(value, _PLAIN):
        return shortened(repr(value), _WIDEST)
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}{list(value.shape)}"
    if isinstance(value, list | tuple | dict | set):
        return f"{_a(value)} of {len(value)}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the {'class' if isinstance(value, type) else 'function'} {value.__name__}"
    return _a(value)


def _told(value: object) -> str:
    """What a value is, and a number itself; not one of a trace that calls the cell."""
    if type(value) is Tensor and value.ndim == 0:
        return f"{kind_of(value)} = {value.item()!r}"
    return kind_of(value)


def _a(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
