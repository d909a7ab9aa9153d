"""The scopes in which a tape or an accumulator was entered: whose tensors it can know, and whose it never can.

A trace and a batched call give the code within them handles of their own. A tape that is entered within sees these; one
that was entered outside knows the tensors that they stand for, by other uids, and would answer None, or zeros. None is
an answer only of a tape that could have known better.
"""

from __future__ import annotations

import weakref
from collections.abc import Container, Iterable, Sequence
from typing import Any, Final, TypeAlias

from limelight.core import dispatch
from limelight.core.tensor import Tensor
from limelight.errors import TapeError

Makers: TypeAlias = "weakref.WeakSet[Any]"


def makers_below(interpreter: dispatch.Interpreter | None) -> Makers | None:
    """The traces and batched calls from `interpreter` down; None where there are none."""
    makers: Makers = weakref.WeakSet()
    while interpreter is not None:
        if interpreter.makes_handles:
            makers.add(getattr(interpreter, "origin", interpreter))
        interpreter = interpreter.below
    return makers or None


def check_known(asker: Any, asked: str, known: Container[int], targets: Sequence[Any], sources: Sequence[Any]) -> None:
    """Raises TapeError where a tape or an accumulator can know a target or a source from nowhere: it has no answer.

    Args:
        asker: the tape or the accumulator.
        asked: the method that was called, for the message.
        known: the uids that it knows.
        targets: what is to be differentiated.
        sources: by what; strings and None may stand among them.
    """
    if not asker._entered_eagerly and asker._makers is None:
        raise TapeError(f"{asked}: {_NEVER_ENTERED}")
    makers: Makers | tuple[()] = () if asker._makers is None else asker._makers
    for what, group in (("target", targets), ("source", sources)):
        for x in group:
            maker = _maker_of(x)
            if maker is not None and x._uid not in known and maker not in makers:
                raise TapeError(f"{asked}: {_unseen(what, x, maker)}")
    if not asker._entered_eagerly and not _is_going_on(makers):
        for x in targets:
            if isinstance(x, Tensor) and x._uid not in known:
                raise TapeError(f"{asked}: {_OVER}")


def _is_going_on(makers: Iterable[Any]) -> bool:
    """Whether one of these traces and batched calls is, on this thread."""
    stack = [getattr(one, "origin", one) for one in dispatch.stack() if one.makes_handles]
    return any(maker in stack for maker in makers)


def _maker_of(x: Any) -> Any:
    """The trace or batched call that made a handle; None for a tensor that has a value."""
    return getattr(x, "_tracer", None) or getattr(x, "_batcher", None)


def _unseen(what: str, x: Any, maker: Any) -> str:
    within = f"the trace of {maker.words}" if hasattr(maker, "words") else str(maker)
    name = getattr(x, "name", "") or f"the {what}"
    return (
        f"its block was outside of {within}, with the tensors of then, and it has never seen {name}, which stands for "
        f"a tensor there; record in the same function or cell, `with ll.GradientTape() as tape: ...`, or ask outside"
    )


_NEVER_ENTERED: Final = (
    "its block was never entered, so it has recorded nothing; compute the target within the block, "
    "`with ll.GradientTape() as tape: ...`"
)
_OVER: Final = (
    "its block was within a trace or a batched call that is over, and it knows what stood for tensors there; the "
    "target is a result, which it has never seen. Ask in the same function or cell, and return the gradient"
)
