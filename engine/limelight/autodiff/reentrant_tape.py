"""Higher orders from one persistent tape that goes back within its own block, through calls, branches and loops.

The backward pass of a call starts from what the forward one left behind. When the tape that asks also records the
backward pass, gradients come to those leftovers, too; an outer tape would have recorded the variant of the call that is
prepared for this (`Op.taped`), but this one has recorded the call for its first order. So the call runs once more,
under a tape of its own, which does, and with the values that variables had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from limelight.autodiff.backward import once
from limelight.core import dispatch
from limelight.core.op import Op, get
from limelight.core.variable import Resource
from limelight.errors import GradientError

BindVariables: TypeAlias = Callable[[Op, tuple[Any, ...], tuple[Any, ...], dict[int, Any]], tuple[Any, ...] | None]
"""(op, inputs, parameters, values by uid) to inputs and parameters with these values for variables; None where a custom
gradient reads one."""
_bind_variables: list[BindVariables] = []


def register_variable_binding(bind: BindVariables) -> None:
    """Tells how a call is given values for the variables that its functions read; called once, by staging."""
    _bind_variables[:] = [bind]


class CallToRerun(NamedTuple):
    """A call to run once more: the type of the tape, the op, and what it was given."""

    make_tape: Any
    op: Op
    attrs: tuple[Any, ...]
    inputs: tuple[Any, ...]
    values: dict[int, Any]  # of its variables, by uid


def call_to_rerun(tape: Any, op: Op, attrs: tuple[Any, ...], inputs: tuple[Any, ...]) -> CallToRerun:
    """The call that `tape` has just recorded, with the values that its variables have now."""
    read = get("read_variable")
    values = {x._uid: tape.process(read, (x,), ()) for x in inputs if isinstance(x, Resource)}
    return CallToRerun(type(tape), op, attrs, inputs, values)


def hidden_outputs(names: Sequence[int], visible: Sequence[int]) -> tuple[int, ...]:
    """The uids of outputs that can have gradients and are not among the results at `visible`; 0 for the others."""
    return tuple([0 if i in visible else uid for i, uid in enumerate(names)])


def _pull(g: tuple[Any, ...], saved: CallToRerun, needed: tuple[bool, ...]) -> tuple[Any, ...]:
    make_tape, op, attrs, inputs, values = saved
    _refuse_effects(op, attrs)
    if values:
        bound = _bind_variables[0](op, inputs, attrs, values)
        if bound is None:
            raise GradientError(_refusal(op, "what it calls", "has a custom gradient that reads a variable"))
        inputs, attrs = bound
    sources = once([x if wanted else None for x, wanted in zip(inputs, needed, strict=True)])
    with make_tape() as tape:
        tape.watch([x for x in sources if x is not None])
        outputs = dispatch.apply(op, inputs, attrs)
    pairs = [(y, s) for y, s in zip(outputs, g, strict=True) if s is not None]
    return tuple(tape.gradient([y for y, _ in pairs], sources, output_gradients=[s for _, s in pairs]))


def _refuse_effects(op: Op, attrs: tuple[Any, ...]) -> None:
    """Raises GradientError where running once more would draw other numbers, or do something twice."""
    for function in [part for param in attrs for part in (param if type(param) is tuple else (param,))]:
        effects = getattr(function, "effects", None)
        if effects is not None and effects.changes:
            raise GradientError(_refusal(op, function.name, "draws random numbers or has effects"))


def _refusal(op: Op, name: str, does: str) -> str:
    return (
        f"{op}: higher orders from one persistent tape run {name} again, and it {does}; use a tape inside another one: "
        "with ll.GradientTape() as outer: with ll.GradientTape() as inner: ..."
    )


rerun: Final = Op(
    "again",
    inputs="*xs:any",
    infer=lambda *arguments: arguments,
    kernel=lambda xp, *arguments: arguments,
    multiple=True,
    save=lambda inputs, out, attrs: inputs,  # never asked: the tape says it itself, a Call
    vjp={"xs": _pull},
    maths={"xs": "x̄ = through the call, run once more"},
)
"""Never run, and not registered: tapes alone record it, beside the op that has left something behind."""
