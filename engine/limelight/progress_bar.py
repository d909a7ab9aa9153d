"""`ll.progress`: a bar for a long loop, in terminals and notebooks, with the loss beside it.

The bar is tqdm's, which is imported when the first one is shown. An error that ends a script or a cell closes the bars
that are open, so that its traceback begins on a line of its own.
"""

from __future__ import annotations

import importlib
import sys
import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, SymbolicValueError
from limelight.staging.symbolic import SymbolicTensor
from limelight.staging.trace_branch import tracing

T = TypeVar("T")
_open: Final[weakref.WeakSet[Progress[Any]]] = weakref.WeakSet()


class Progress(Generic[T]):
    """A loop with a bar; made by `ll.progress`. It is closed when its loop ends, or its `with` block."""

    def __init__(self, iterable: Iterable[T], total: int | None, description: str) -> None:
        self._iterable = iterable
        self._total = total
        self._description = description
        self._bar: Any = None
        self._closed = False

    def __iter__(self) -> Iterator[T]:
        if tracing() is not None:
            raise ArgumentError(
                "progress: a loop in a staged function runs while tracing, once: put ll.progress around the loop that "
                "calls the function"
            )
        bar = self._shown()
        try:
            for item in self._iterable:
                yield item
                bar.update(1)
        finally:
            self.close()

    def _shown(self) -> Any:
        if self._bar is None:
            _close_at_errors()
            make = importlib.import_module("tqdm.auto").tqdm
            seconds = 0.1 if sys.stderr is None or sys.stderr.isatty() or "ipykernel" in sys.modules else 10.0
            self._bar = make(  # each time that it is drawn is a line of a file
                total=self._length(), desc=self._description or None, dynamic_ncols=True, mininterval=seconds
            )
            _open.add(self)
        return self._bar

    def _length(self) -> int | None:
        if self._total is not None:
            return self._total
        try:
            return len(self._iterable)  # type: ignore[arg-type]  # those that have none raise TypeError
        except TypeError:
            return None

    def show(self, **values: Any) -> None:
        """Shows values beside the bar, under their names: numbers, texts, and tensors of one element.

        Raises:
            SymbolicValueError: a tensor of a trace, which has no value.
            ArgumentError: a tensor has more than one element.

        >>> import limelight as ll
        >>> with ll.progress(range(3)) as bar:
        ...     for step in bar:
        ...         bar.show(loss=ll.constant(0.5))
        """
        if self._closed:
            return  # it stays as it is
        self._shown().set_postfix({name: _words(name, value) for name, value in values.items()}, refresh=False)

    def close(self) -> None:
        """Closes the bar, which stays as it is; once it is closed nothing happens."""
        self._closed = True
        if self._bar is not None:
            self._bar.close()
            _open.discard(self)
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __len__(self) -> int:
        length = self._length()
        if length is None:
            raise TypeError("progress: the length of the loop is not known; give total=...")
        return length

    def __bool__(self) -> bool:
        return True


def progress(iterable: Iterable[T], total: int | None = None, description: str = "") -> Progress[T]:
    """Goes through `iterable` and shows how far it is: a bar on stderr in a terminal, a widget in a notebook.

    `show` puts values beside it. The bar is closed when the loop ends, by a `break` too; after an error when the
    script or the cell has ended, or at the end of a `with` block around the loop.

    Args:
        iterable: what to go through: a dataset, a range, a list.
        total: how many rounds there are; by default its length, where it has one.
        description: a word before the bar.

    Returns:
        An object to go through once, with `show(loss=...)` and `close()`.

    Raises:
        ArgumentError: `iterable` cannot be gone through, or the loop is in a staged function.

    >>> import limelight as ll
    >>> bar = ll.progress(range(3), description="epoch 1")
    >>> for step in bar:
    ...     bar.show(loss=1.0 / (1 + step))
    """
    if not isinstance(iterable, Iterable):
        hint = f"; write ll.progress(range({iterable}))" if isinstance(iterable, int) else ""
        raise ArgumentError(f"progress: needs something to go through, got {type(iterable).__name__}{hint}")
    return Progress(iterable, total, description)


def _words(name: str, value: Any) -> str:
    if isinstance(value, SymbolicTensor):
        raise SymbolicValueError(
            f"progress: `{name}` is a tensor of a trace and has no value yet: return it from the staged function, and "
            "show what the call returns"
        )
    if isinstance(value, (Tensor, Variable)):
        if value.size != 1:
            raise ArgumentError(f"progress: `{name}` has {value.size} elements; show one number, as in ll.mean({name})")
        value = value.item()
    if isinstance(value, str):
        return value
    try:
        return f"{value:.4g}"
    except (TypeError, ValueError):
        return str(value)


def _close_all() -> None:
    for bar in list(_open):
        bar.close()


_hooks: Final[list[Any]] = []


def _close_at_errors() -> None:
    """Has bars closed before an uncaught error is shown, and after each cell of a notebook."""
    if _hooks:
        return
    _hooks.append(sys.excepthook)

    def hook(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> None:
        _close_all()
        _hooks[0](kind, error, tb)

    sys.excepthook = hook
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        shell.events.register("post_run_cell", lambda *_: _close_all())
