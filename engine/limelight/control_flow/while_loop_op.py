"""The op behind `while_loop`. Its operands: the loop variables, then what both functions capture."""

from __future__ import annotations

from typing import Any

from limelight.core.op import Op, defop
from limelight.core.spec import Spec


def _infer(*given: Any) -> tuple[Spec, ...]:
    _, body_fn, n, _ = given[-4:]
    return tuple(value.spec for value in body_fn.graph.inputs[:n])


def _run(xp: Any, *given: Any) -> tuple[Any, ...]:
    *data, cond_fn, body_fn, n, limit = given
    values, captures = tuple(data[:n]), tuple(data[n:])
    done = 0
    while (limit is None or done < limit) and bool(cond_fn.run(*values, *captures)[0]):
        values = body_fn.run(*values, *captures)
        done += 1
    return values


while_op: Op = defop(
    "while_loop",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records while_forward
    maths={"xs": "x̄ = backward of the body, iteration by iteration from the last"},
)

while_detached: Op = defop(
    "while_detached",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    why_no_gradient="the loop was asked for no gradient (back_prop=False)",
)
