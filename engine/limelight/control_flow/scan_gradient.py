"""The gradient of a scan: a scan in the other direction.

The variant that a tape records is a scan, too, whose body has more results: what each step's gradient needs. So every
order of derivative comes from one rule.
"""

from __future__ import annotations

from typing import Any

from limelight.autodiff import INEXACT
from limelight.control_flow.loop_backward import Loop, Saved, pull, saved_of
from limelight.control_flow.loop_residuals import recorded
from limelight.control_flow.scan_op import infer_scan, passes, run_scan, scan_op
from limelight.control_flow.zeros_spec import watched_in_loop
from limelight.core.op import Op, Taped, defop


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> Taped | None:
    body, n, m, length, reverse = attrs[:5]
    record, wider = recorded(body, n, m, watched_in_loop(inputs, n, mask))
    if not any(record.pair.connected) and not any(x.dtype in INEXACT for x in inputs[:n]):
        return None  # a carry that the body overwrites goes through untouched when there are no steps
    shown = record.pair.n_outputs
    return Taped(scan_forward, (wider, n, m, length, reverse, record), lambda outputs: outputs[:shown])


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> Saved:
    body, n, m, length, reverse, record = attrs
    loop = Loop(body, n, m, reverse, record)
    return saved_of(loop, inputs, out, lambda: length if length is not None else inputs[n].sizes()[0])


scan_forward: Op = defop(
    "scan_forward",
    inputs="*xs:any",
    attrs="body n_carry n_xs length reverse record",
    infer=lambda *given: infer_scan(*given[:-1]),
    kernel=lambda *given: run_scan(*given[:-1]),
    multiple=True,
    higher_order=True,
    passes=passes,
    taped=_taped,
    save=_save,
    vjp={"xs": pull},
    maths={"xs": "x̄ₖ = backward of the body at step k, from the last"},
)

scan_op.taped = _taped
