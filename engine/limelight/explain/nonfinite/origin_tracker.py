"""Which op made the numbers of a run that are not finite, and which ops handed them on.

An op is at fault if it makes NaN without having been given any, or infinities of finite numbers. Infinities that come
from literals are meant. Values are followed by the identity of their payloads, across calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.autodiff import INEXACT
from limelight.core import dtypes
from limelight.core.backends import to_host
from limelight.core.spec import known
from limelight.graph.ir import FunctionLike, Node
from limelight.user_code import source_line
from limelight.user_code.source_line import Source

_LONGEST: Final = 12


class Figures(NamedTuple):
    """What the numbers of a tensor are like: the range of the finite ones, and how many there are of the others."""

    spec: str
    low: float | None
    high: float | None
    nans: int
    infinities: int
    size: int

    @property
    def finite(self) -> bool:
        return not self.nans and not self.infinities

    def __str__(self) -> str:
        said = [] if self.low is None else [f"from {self.low:.6g} to {self.high:.6g}"]
        if self.low is not None and self.low == self.high:
            said = [f"{self.low:.6g}"]
        said += [f"{self.nans} NaN"] if self.nans else []
        said += [f"{self.infinities} infinite"] if self.infinities else []
        of = f" of {self.size}" if not self.finite and self.size > 1 else ""
        return f"{self.spec} ({', '.join(said)}{of})" if said else self.spec


def figures(payload: Any) -> Figures | None:
    """The figures of an array of floating or complex numbers; None for anything else."""
    array = _on_host(payload)
    if array is None or array.dtype not in INEXACT:
        return None
    spec = str(known(array.shape, dtypes.dtype(array.dtype)))
    wide = np.abs(array) if array.dtype.kind == "c" else np.asarray(array, np.float64)
    kept = wide[np.isfinite(wide)]
    low, high = (float(kept.min()), float(kept.max())) if kept.size else (None, None)
    nans = int(np.isnan(wide).sum())
    return Figures(spec, low, high, nans, int(wide.size - kept.size) - nans, int(wide.size))


def _on_host(payload: Any) -> Any:
    if isinstance(payload, (np.ndarray, np.generic)):
        return np.asarray(payload)
    if not hasattr(payload, "shape") or not hasattr(payload, "dtype"):
        return None
    return np.asarray(to_host(payload))


class Place(NamedTuple):
    """A node on the way: the op, the function that it is in, the user's line."""

    op: str
    function: str
    line: Source | None

    def __str__(self) -> str:
        return f"{self.op}{source_line.at(self.line)}"


@dataclass
class Origin:
    """Where numbers that are not finite came from, and where they went on.

    `of` is the op whose gradient it is. `operands` and `result` are the figures there, `calls` the nodes that led into
    the function, outermost first, `way` the ops that handed the numbers on, and `became_nan` the first of these that
    made NaN of infinities.
    """

    place: Place
    backward: bool
    operands: tuple[Figures | None, ...]
    result: Figures
    calls: tuple[str, ...] = ()
    of: str = ""
    became_nan: Place | None = None
    way: list[Place] = field(default_factory=list)


class OriginTracker:
    """Observes a run of `executors.step`: `origins` are what made numbers that are not finite, in order of time."""

    def __init__(self, function: str) -> None:
        self.origins: list[Origin] = []
        self._origin_by_id: dict[int, tuple[Any, Origin]] = {}  # by payload, which is kept so that its id stays its own
        self._calls: list[str] = []
        self._functions = [function]
        self._rounds: list[dict[int, int]] = [{}]

    def given(self, payload: Any, name: str) -> None:
        """An input of the run: NaN in it comes from elsewhere; infinities may be meant."""
        input_figures = figures(payload)
        if input_figures is not None and input_figures.nans:
            origin = Origin(Place(name, self._functions[0], None), False, (), input_figures)
            self._add(origin, [payload])

    def origin_of(self, payloads: Iterable[Any]) -> Origin | None:
        """Where the numbers of the first payload that has such came from."""
        return next((self._origin_by_id[id(x)][1] for x in payloads if id(x) in self._origin_by_id), None)

    # What the executor tells

    def enter(self, node: Node, function: FunctionLike) -> None:
        rounds = self._rounds[-1]
        rounds[id(function.graph)] = count = rounds.get(id(function.graph), 0) + 1
        line = source_line.at(node.stack[0] if node.stack else None)
        again = f", iteration {count}" if "while" in node.op.name or "scan" in node.op.name else ""
        self._calls.append(f"{node.op} runs {function.name}{again}{line}")
        self._functions.append(function.name)
        self._rounds.append({})

    def leave(self) -> None:
        self._calls.pop()
        self._functions.pop()
        self._rounds.pop()

    def ran(self, node: Node, operands: Sequence[Any], outputs: Sequence[Any]) -> None:
        if node.op == "constant":
            return
        bad = [x for x in outputs if id(x) not in self._origin_by_id and is_bad(x)]
        if not bad:
            return
        place = Place(node.op.name, self._functions[-1], node.stack[0] if node.stack else None)
        earlier = self.origin_of(operands)
        has_nan = any(map(_has_nan, bad))
        if earlier is not None:
            self._hand_on(earlier, place, has_nan, operands, bad)
        elif node.op.higher_order and self.origins:
            self._remember(self.origins[-1], bad)  # made inside: a stack of what the iterations left
        elif has_nan or not any(map(is_bad, operands)):
            self._add(self._origin(node, place, operands, bad[0]), bad)

    def _hand_on(
        self, origin: Origin, place: Place, has_nan: bool, operands: Sequence[Any], bad: Sequence[Any]
    ) -> None:
        """Notes that an op was given such numbers, and made more of them."""
        if has_nan and origin.became_nan is None and not origin.result.nans and not any(map(_has_nan, operands)):
            origin.became_nan = place
        if len(origin.way) < _LONGEST and place not in origin.way:
            origin.way.append(place)
        self._remember(origin, bad)

    def _origin(self, node: Node, place: Place, operands: Sequence[Any], made: Any) -> Origin:
        result = figures(made)
        assert result is not None
        backward = node.scope.startswith("gradient/") or any(f.startswith("backward_") for f in self._functions)
        of = getattr(place.line, "of", "") if backward else ""
        return Origin(place, backward, tuple(map(figures, operands)), result, tuple(self._calls), of)

    def _add(self, origin: Origin, payloads: Sequence[Any]) -> None:
        self.origins.append(origin)
        self._remember(origin, payloads)

    def _remember(self, origin: Origin, payloads: Sequence[Any]) -> None:
        self._origin_by_id.update({id(x): (x, origin) for x in payloads})


def is_bad(payload: Any) -> bool:
    """Whether it is an array with a number that is not finite."""
    array = _on_host(payload)
    return array is not None and array.dtype in INEXACT and not bool(np.isfinite(array).all())


def _has_nan(payload: Any) -> bool:
    known = figures(payload)
    return known is not None and known.nans > 0
