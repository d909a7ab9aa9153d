"""`print` of tensors: when the graph runs, each time, with the text that it has eagerly."""

from __future__ import annotations

import builtins
from typing import Any

from limelight.autograph.logical_operators import decides
from limelight.autograph.python_numbers import MixedNumber, decoded, kind_of
from limelight.core import nest
from limelight.core.dispatch import apply
from limelight.core.tensor import as_tensor, constant
from limelight.ops.debugging import print_op
from limelight.user_code.tracebacks import in_place_of_python


class _Line:
    """What is printed, with the values of its tensors still to come; `options` are for `print` itself."""

    __limelight_leaf__ = True

    def __init__(self, leaves: list[Any], structure: nest.Structure, sep: str | None, options: dict[str, Any]) -> None:
        self._structure, self._sep, self.options = structure, " " if sep is None else sep, options
        self._places = [i for i, x in enumerate(leaves) if decides(x)]
        self.tensors = [as_tensor(leaves[i]) for i in self._places]
        self._kinds = [kind_of(leaves[i]) for i in self._places]
        self._mixed = [i for i in self._places if type(leaves[i]) is MixedNumber]
        self.tensors += [leaves[i].code for i in self._mixed]
        self._leaves = [None if decides(x) else x for x in leaves]

    def __call__(self, values: list[Any]) -> str:
        leaves = list(self._leaves)
        for i, x, kind, value in zip(self._places, self.tensors, self._kinds, values, strict=False):
            leaves[i] = constant(value, x.dtype) if kind is None else kind(value.item())
        for i, code in zip(self._mixed, values[len(self._places) :], strict=True):
            leaves[i] = decoded(leaves[i], code)
        return self._sep.join(map(str, nest.unflatten(self._structure, leaves)))

    def __repr__(self) -> str:
        return "a line of print()"


def printer(function: Any) -> Any:
    """What converted code calls where `function` is written as `print`."""
    return print_ if function is builtins.print else function


@in_place_of_python
def print_(*values: Any, sep: str | None = None, **options: Any) -> None:
    """`print`; where symbolic tensors are among `values`, be it in nests, a node of the graph prints."""
    leaves, structure = nest.flatten(values)
    if not any(map(decides, leaves)):
        builtins.print(*values, sep=sep, **options)  # noqa: T201  # the user asks for it
        return
    line = _Line(leaves, structure, sep, options)
    apply(print_op, tuple(line.tensors), (line,))
