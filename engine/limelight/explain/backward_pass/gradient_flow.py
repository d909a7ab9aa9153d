"""How large are the gradients on their way back, and where do they vanish, explode or become NaN?"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from limelight.core import dispatch
from limelight.explain.backward_pass.both_passes import BothPasses, both_passes
from limelight.explain.backward_pass.vanishing import Size, vanished, whose
from limelight.explain.norms import norm, widened
from limelight.graph.ir import FunctionLike, Node, Value
from limelight.user_code import source_line
from limelight.user_code.source_line import Source

State = Literal["", "NaN", "infinite", "vanishing", "exploding"]
STATES: Final[tuple[State, ...]] = ("NaN", "infinite", "exploding", "vanishing")
EXPLODED: Final = 1e6  # the gradients of the results are ones


class BackwardStep(NamedTuple):
    """An op of the gradient that has run: the user's line, the norm of what it made, and what is the matter with it.

    `rms` is the root of the mean square, by which tensors of different sizes compare. `source` is the name of the
    argument or variable for whose gradient alone the op runs; empty where it is on the way to several.

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
    source: str = ""

    def __str__(self) -> str:
        flag = f"  {self.state}" if self.state else ""
        return f"{self.op:20} {self.spec:16} norm {self.norm:10.3g}{self._whose}{source_line.at(self.line)}{flag}"

    @property
    def _whose(self) -> str:
        call = getattr(self.line, "call", None)
        where = f" in `{call.path}`" if call is not None else ""
        return f" for `{self.source}`" if self.source else where


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
        said = [
            f"first {one.state} at {one.op}{one._whose}{source_line.at(one.line)}: norm {one.norm:.3g}" for one in found
        ]
        head = f"the gradient of `{self.name}`, {len(self.steps)} ops from the results back"
        return "\n".join(
            [f"{head}: {'; '.join(said) or 'finite, none vanishes, none explodes'}", *map(str, self.steps)]
        )

    __repr__ = __str__


def gradient_flow(F: Callable[..., Any], *args: Any, gradient_of: Any = True, **kwargs: Any) -> GradientFlow:
    """Runs `F(*args, **kwargs)` and its gradient op by op, and tells the norm of each gradient on its way back.

    A gradient has vanished where it is below a millionth of the largest before it on its way, with all behind it; one
    for a single source beside a way that goes on has not: such are zero by mathematics, as that of a bias before a
    normalisation. One has exploded where its root mean square is above a million (the gradients of the results are
    ones). Nothing that the call would change is changed.
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
    return GradientFlow(passes.name, _steps(passes, watch.steps))


def _steps(passes: BothPasses, steps: dict[Value, BackwardStep]) -> tuple[BackwardStep, ...]:
    """The steps, with the sources that they are for, and those that have vanished."""
    sizes = dict.fromkeys(passes.ones(), Size(1.0, 1.0))
    sizes |= {value: Size(one.rms, one.norm) for value, one in steps.items()}
    made_by = {value: node.inputs for value in steps if (node := value.node) is not None}
    parents = {value: [x for x in made_by.get(value, ()) if x in sizes] for value in sizes}
    outputs = passes.graph.outputs
    sources: dict[Value, set[int]] = {}
    for one in passes.sources:
        if one.gradient is not None:
            sources.setdefault(outputs[one.gradient], set()).add(one.place)
    gone, leads = vanished(sizes, parents, sources), whose(sizes, parents, sources)
    return tuple([_told(passes, step, leads[value], value in gone) for value, step in steps.items()])


def _told(passes: BothPasses, step: BackwardStep, places: set[int], gone: bool) -> BackwardStep:
    source = passes.input_name(min(places)) if len(places) == 1 else ""
    return step._replace(source=source, state=step.state or ("vanishing" if gone else ""))


class _Norms:
    """Observes a run: a step for each gradient that one of `nodes` makes."""

    def __init__(self, nodes: Set[Node]) -> None:
        self._nodes = nodes
        self.steps: dict[Value, BackwardStep] = {}

    def enter(self, node: Node, function: FunctionLike) -> None:
        """Called functions run as part of their call."""

    def leave(self) -> None:
        """Nothing to note."""

    def ran(self, node: Node, operands: Sequence[Any], outputs: Sequence[Any]) -> None:
        if node not in self._nodes:
            return
        for out, value in zip(outputs, node.outputs, strict=True):
            if getattr(getattr(out, "dtype", None), "kind", "") in "fV" and out.size:
                self._note(node, value, widened(out))

    def _note(self, node: Node, value: Value, array: Any) -> None:
        size = norm(array)
        rms = size / float(np.sqrt(array.size))
        line = node.stack[0] if node.stack else None
        self.steps[value] = BackwardStep(node.op.name, line, str(value.spec), size, rms, _state(array, rms))


def _state(array: Any, rms: float) -> State:
    if np.isnan(array).any():
        return "NaN"
    if not np.isfinite(array).all():
        return "infinite"
    return "exploding" if rms > EXPLODED else ""
