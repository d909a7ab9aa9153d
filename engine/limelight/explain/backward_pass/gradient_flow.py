"""How large are the gradients on their way back, and where do they vanish, explode or become NaN?"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from limelight.core import dispatch
from limelight.explain.backward_pass.both_passes import both_passes
from limelight.explain.norms import norm, widened
from limelight.graph.ir import FunctionLike, Node
from limelight.user_code import source_line
from limelight.user_code.source_line import Source

State = Literal["", "NaN", "infinite", "vanishing", "exploding"]
STATES: Final[tuple[State, ...]] = ("NaN", "infinite", "exploding", "vanishing")
VANISHED: Final = 1e-6  # of the largest root mean square before it on the way back
EXPLODED: Final = 1e6  # the gradients of the results are ones


class BackwardStep(NamedTuple):
    """An op of the gradient that has run: the user's line, the norm of what it made, and what is the matter with it.

    `rms` is the root of the mean square, by which tensors of different sizes compare.

    >>> import limelight as ll
    >>> flow = ll.explain.gradient_flow(lambda x: ll.tanh(x) * 2.0, ll.constant(0.0))
    >>> [(one.op, one.norm) for one in flow.steps]
    [('multiply', 2.0), ('multiply', 2.0)]
    """

    op: str
    line: Source | None
    spec: str
    norm: float
    rms: float
    state: State

    def __str__(self) -> str:
        flag = f"  {self.state}" if self.state else ""
        return f"{self.op:20} {self.spec:16} norm {self.norm:10.3g}{source_line.at(self.line)}{flag}"


@dataclass(frozen=True)
class GradientFlow:
    """The ops of the gradient, in the order in which they run: from the results back. `str()` has a line for each.

    >>> import limelight as ll
    >>> flow = ll.explain.gradient_flow(lambda x: ll.sqrt(x), ll.constant(0.0))
    >>> flow.first("infinite").op
    'divide'
    """

    name: str
    steps: tuple[BackwardStep, ...]

    def first(self, state: State) -> BackwardStep | None:
        """The first op, on the way back, at which gradients are in that state."""
        return next((one for one in self.steps if one.state == state), None)

    def __str__(self) -> str:
        found = [one for state in STATES if (one := self.first(state)) is not None]
        said = [f"first {one.state} at {one.op}{source_line.at(one.line)}: norm {one.norm:.3g}" for one in found]
        head = f"the gradient of `{self.name}`, {len(self.steps)} ops from the results back"
        return "\n".join(
            [f"{head}: {'; '.join(said) or 'finite, none vanishes, none explodes'}", *map(str, self.steps)]
        )

    __repr__ = __str__


def gradient_flow(F: Callable[..., Any], *args: Any, gradient_of: Any = True, **kwargs: Any) -> GradientFlow:
    """Runs `F(*args, **kwargs)` and its gradient op by op, and tells the norm of each gradient on its way back.

    A gradient has vanished where its root mean square is below a millionth of the largest before it, and exploded where
    it is above a million (the gradients of the results are ones). Nothing that the call would change is changed.
    `gradient_of` is as for `ll.explain.check_gradient`, which says whether the gradients are right; `ll.explain.nan`
    follows a NaN to its origin. Raises ArgumentError as those do.

    >>> import limelight as ll
    >>> def deep(x):
    ...     for _ in range(4):
    ...         x = ll.sigmoid(x * 0.001)
    ...     return x
    >>> flow = ll.explain.gradient_flow(deep, ll.constant(1.0))
    >>> flow.first("vanishing").state, flow.first("NaN")
    ('vanishing', None)
    """
    passes = both_passes("gradient_flow", F, gradient_of, args, kwargs)
    watch = _Norms(passes.gradient_nodes())
    with dispatch.fresh_stack(), passes.without_effects():
        passes.run(observer=watch).outputs  # noqa: B018  # asking for them runs it
    return GradientFlow(passes.name, tuple(watch.steps))


class _Norms:
    """Observes a run: a step for each gradient that one of `nodes` makes."""

    def __init__(self, nodes: Set[Node]) -> None:
        self._nodes = nodes
        self.steps: list[BackwardStep] = []
        self._most = 1.0  # gradients of the results are ones

    def enter(self, node: Node, function: FunctionLike) -> None:
        """Called functions run as part of their call."""

    def leave(self) -> None:
        """Nothing to note."""

    def ran(self, node: Node, operands: Sequence[Any], outputs: Sequence[Any]) -> None:
        if node not in self._nodes:
            return
        for out, value in zip(outputs, node.outputs, strict=True):
            if getattr(getattr(out, "dtype", None), "kind", "") in "fV" and out.size:
                self._note(node, str(value.spec), widened(out))

    def _note(self, node: Node, spec: str, array: Any) -> None:
        size = norm(array)
        rms = size / float(np.sqrt(array.size))
        line = node.stack[0] if node.stack else None
        self.steps.append(BackwardStep(node.op.name, line, spec, size, rms, self._state(array, rms)))
        if np.isfinite(rms):
            self._most = max(self._most, rms)

    def _state(self, array: Any, rms: float) -> State:
        if np.isnan(array).any():
            return "NaN"
        if not np.isfinite(array).all():
            return "infinite"
        if rms > EXPLODED:
            return "exploding"
        return "vanishing" if rms < VANISHED * self._most else ""
