"""Arrays of NumPy's that a cell changes in place, by `x += y` and the like, and which of them share memory.

While a cell is traced, a stand-in has the changed numbers from that line on: all names of an array are names of one
stand-in, so each of them sees the change, and the array of an input gets it after each run. A view is a stand-in of its
own, which would see nothing. So a change of a view is refused at the line, and one of an array that has views.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Final

from limelight.core import dispatch
from limelight.graph.ir import Value
from limelight.staging.symbolic import VIEWS, SymbolicTensor
from limelight.staging.tracer import Tracer
from limelight.user_code import operand_text, source_line
from limelight.user_code.source_line import Source
from limelight_kernel.cell.compiled_cell import StagedSyntaxError

_showing: Final[weakref.WeakKeyDictionary[Value, weakref.WeakValueDictionary[int, Any]]] = weakref.WeakKeyDictionary()
"""The stand-ins of arrays by the memory that they show, and by id: tensors cannot be the elements of a set."""


def remember(x: SymbolicTensor) -> None:
    """Takes note of a new stand-in, or of one that shows other memory than before."""
    _showing.setdefault(_memory(x), weakref.WeakValueDictionary())[id(x)] = x


def is_changed(x: Any) -> bool:
    """Whether it is a stand-in that has been changed in place."""
    return isinstance(x, SymbolicTensor) and "changed_at" in x.__dict__


class Refusals(threading.local):
    """What the code of this thread's cell was refused, in case that it has caught it."""

    raised: list[StagedSyntaxError] | None = None


_refusals: Final = Refusals()


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Raises what was refused inside at its end, too, where the code of a cell has caught it."""
    before, _refusals.raised = _refusals.raised, []
    try:
        yield
        if _refusals.raised:
            raise _refusals.raised[0]
    finally:
        _refusals.raised = before


def refuse_lost(x: SymbolicTensor) -> None:
    """Raises StagedSyntaxError where a branch or a loop has changed `x`, which means the array as it was before."""
    lost = x.__dict__.get("lost")
    if lost is not None:
        raise lost


def line_of_change(x: Any) -> Source:
    """Where it was changed first."""
    line: Source = x.__dict__["changed_at"]
    return line


def may_change(x: SymbolicTensor) -> bool:
    """Whether `x += y` changes an array; no for a scalar of NumPy's, and for what a loop carries from step to step.

    Raises StagedSyntaxError where something else shows the same memory, and where a tensor decides whether it happens.
    """
    here = next((one for one in reversed(dispatch.stack()) if isinstance(one, Tracer)), None)
    if x.shape == () and x._value.node is not None:
        return False
    if "part_of" in x.__dict__ and x.shape != ():
        raise _noted(_refusal(x, "of which it is a row"))
    memory = _memory(x)
    others = list(_showing[memory].values()) if memory in _showing else []
    if any(other is not x and _memory(other) is memory for other in others):
        raise _noted(_refusal(x, "of which another name has a part, or the whole"))
    if here is None or here is not x._tracer:  # in a branch or a loop, which binds the name to another array
        x.__dict__.setdefault("lost", _refusal(x, "in a branch or a loop that a tensor decides"))
        return False
    if here._level.is_outermost or memory.node is not None:
        return True
    if memory is not x._value:
        raise _noted(_refusal(x, "of which it is a part, in a loop or a branch that a tensor decides"))
    return False


def check_assignment(x: SymbolicTensor) -> None:
    """Raises StagedSyntaxError where `x[i] = y` would not reach all that shows the memory of `x`."""
    if not may_change(x):
        raise _noted(_refusal(x, "in a branch or a loop that a tensor decides"))


def change(x: SymbolicTensor, new: SymbolicTensor) -> None:
    """Has `x` stand for the numbers of `new`."""
    x.__dict__.setdefault("changed_at", source_line.user_line())
    for name in ("_value", "_uid", "_device"):
        setattr(x, name, getattr(new, name))
    remember(x)


def refuse_cast(x: SymbolicTensor, new: SymbolicTensor, fits: bool) -> None:
    """Raises StagedSyntaxError where an array cannot take what is computed for it, as NumPy refuses it."""
    if not fits:
        line = source_line.user_line()
        raise _error(
            f"`{_code(line)}`: {_called(x)} of {x.dtype}{list(x.shape)} cannot take the result, which is {new.spec}; "
            f"NumPy refuses that, too. {_instead()}",
            line,
        )


def _noted(refusal: StagedSyntaxError) -> StagedSyntaxError:
    if _refusals.raised is not None:
        _refusals.raised.append(refusal)
    return refusal


def _memory(x: SymbolicTensor) -> Value:
    """The value that an array is a view of, or its own."""
    value = x._value
    while (node := value.node) is not None and node.op.name in VIEWS and value.spec.shape != ():  # type: ignore[union-attr]  # a tensor's
        value = node.inputs[0]
    return value


def _refusal(x: SymbolicTensor, why: str) -> StagedSyntaxError:
    line = source_line.user_line()
    return _error(
        f"`{_code(line)}` changes {_called(x)} in place, {why}; in a staged cell each name has a tensor of its own, "
        f"which would stay as it is. {_instead()}, or put the line into a cell above",
        line,
    )


def _code(line: Source | None) -> str:
    """What the line does: of an assignment to an item all of it, as Python tells the place of the item alone."""
    segment = None if operand_text.item_assigned() else source_line.user_segment()
    return segment or ("" if line is None else line.text)


def _called(x: SymbolicTensor) -> str:
    """What messages call an array: by the input that it is, or is a part of."""
    whole = x.__dict__.get("part_of", x)
    name = whole._tracer.name_of(_memory(whole))
    return f"the NumPy array `{name}`" if name else "a NumPy array"


def _instead() -> str:
    """What to write."""
    owner = operand_text.item_assigned()
    if owner:
        return f"Write `{owner} = {owner}.copy()` before it" if owner.isidentifier() else "Make a copy before it"
    return f"Write `{operand_text.without_augmentation() or 'x = x + y'}` for a new array"


def _error(message: str, line: Source | None) -> StagedSyntaxError:
    return StagedSyntaxError(message, *([] if line is None else [(line.file, line.line, 1, line.text)]))
