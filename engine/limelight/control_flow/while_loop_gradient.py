"""The gradient of `while_loop`: forward stacks what each step's backward needs, backward is a scan over the stacks.

The variant that a tape records runs a body that has more results than there are variables: what each step's gradient
needs. It returns the variables, a row that is true for each step, and stacks of the other results. Under `vectorize`
the row says which examples went on in a step, and which were done.
"""

from __future__ import annotations

from typing import Any

from limelight.autodiff import INEXACT
from limelight.control_flow.loop_backward import Loop, Saved, pull, saved_of
from limelight.control_flow.loop_residuals import recorded
from limelight.control_flow.ragged_rows import uneven_results
from limelight.control_flow.scan_op import empty_stacks, stack_of, stacked
from limelight.control_flow.while_loop_op import while_op
from limelight.control_flow.zeros_spec import watched_in_loop
from limelight.core import dtypes
from limelight.core.op import Op, Taped, defop
from limelight.core.spec import Spec, known


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> Taped | None:
    cond_fn, body_fn, n, limit = attrs[:4]
    record, wider = recorded(body_fn, n, 0, watched_in_loop(inputs, n, mask))
    if not any(record.pair.connected) and not any(x.dtype in INEXACT for x in inputs[:n]):
        return None  # a loop variable that the body overwrites goes through untouched when there are no iterations
    shown = n if len(attrs) == 4 else record.pair.n_outputs + 1
    return Taped(while_forward, (cond_fn, wider, n, limit, record), lambda outputs: outputs[:shown])


def _infer(*given: Any) -> tuple[Spec, ...]:
    _, body_fn, n, _, _ = given[-5:]
    stacks = [stack_of(value.spec, None) for value in body_fn.graph.outputs[n:]]
    return (*[value.spec for value in body_fn.graph.inputs[:n]], known((None,), dtypes.bool_), *stacks)


def _run(xp: Any, *given: Any) -> tuple[Any, ...]:
    *data, cond_fn, body_fn, n, limit, _ = given
    values, captures = tuple(data[:n]), tuple(data[n:])
    rows: list[Any] = []
    while (limit is None or len(rows) < limit) and bool(cond_fn.run(*values, *captures)[0]):
        outputs = body_fn.run(*values, *captures)
        values = outputs[:n]
        rows.append(outputs[n:])
    graph = body_fn.graph
    live = xp.ones(len(rows), dtype=bool)
    if not rows:
        return (*values, live, *empty_stacks(xp, graph, n, [getattr(x, "shape", ()) for x in data]))
    uneven = uneven_results(graph)
    columns = enumerate(zip(*rows, strict=True), n)
    stacks = [stacked("while_loop", xp, column, graph.outputs[i].spec, i in uneven) for i, column in columns]
    return (*values, live, *stacks)


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> Saved:
    _, body_fn, n, _, record = attrs
    loop = Loop(body_fn, n, 0, False, record)
    return saved_of(loop, inputs, (*out[:n], *out[n + 1 :]), None, live=out[n])


def _pull(g: tuple[Any, ...], saved: Saved, needed: tuple[bool, ...]) -> tuple[Any, ...]:
    n = saved.loop.n
    return pull((*g[:n], *g[n + 1 :]), saved, needed)


while_forward: Op = defop(
    "while_forward",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations record",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    taped=_taped,
    save=_save,
    vjp={"xs": _pull},
    maths={"xs": "x̄ = backward of the body, iteration by iteration from the last"},
)

while_op.taped = _taped
