"""Plain answers to "why?": each function here returns records, and `str()` of it is a sentence.

The magics print these answers, the views draw them, scripts call them. `retracing` tells why a function traced,
`none_gradients` why a gradient is None, `backward_pass` whether it is right, how large on its way back, and what it
keeps, `nonfinite` where a NaN comes from, `tracing` what a trace hides, `leaked_tensors` what has outlived its trace,
`allocations` what lives, `placement_log` where ops run, `copied_tensors` what moves between devices, `op_costs` what
each op takes and gives, `tier_gain` what its executor gains a trace. `story` is the record that each answer tells
itself by, from which its sentence is written and its card is drawn; `fix` is what they share to write the user's code
anew.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

_HOMES: Final = {
    "CheckedSource": "explain.backward_pass.check_gradient",
    "GradientErrors": "explain.backward_pass.check_gradient",
    "check_gradient": "explain.backward_pass.check_gradient",
    "BackwardStep": "explain.backward_pass.gradient_flow",
    "GradientFlow": "explain.backward_pass.gradient_flow",
    "gradient_flow": "explain.backward_pass.gradient_flow",
    "Recomputation": "explain.backward_pass.recomputation",
    "Recomputations": "explain.backward_pass.recomputation",
    "recomputations": "explain.backward_pass.recomputation",
    "Copies": "explain.copied_tensors",
    "Copy": "explain.copied_tensors",
    "copies": "explain.copied_tensors",
    "Leak": "explain.leaked_tensors",
    "Leaks": "explain.leaked_tensors",
    "leaks": "explain.leaked_tensors",
    "LiveTensor": "explain.allocations",
    "LiveTensors": "explain.allocations",
    "live_tensors": "explain.allocations",
    "History": "explain.none_gradients.op_history",
    "GradientPath": "explain.none_gradients.path_entries",
    "gradient_path": "explain.none_gradients.path_entries",
    "WhyNone": "explain.none_gradients.report",
    "why_none": "explain.none_gradients.report",
    "Nan": "explain.nonfinite.report",
    "nan": "explain.nonfinite.report",
    "Retrace": "explain.retracing.retrace_table",
    "retrace": "explain.retracing.retrace_table",
    "Cost": "explain.op_costs",
    "Costs": "explain.op_costs",
    "costs": "explain.op_costs",
    "Recording": "explain.stepping.recording",
    "Step": "explain.stepping.recording",
    "steps": "explain.stepping.recording",
    "Gain": "explain.tier_gain",
    "gain": "explain.tier_gain",
    "BakedIn": "explain.tracing.baked",
    "baked": "explain.tracing.baked",
    "Impurity": "explain.tracing.purity",
    "Purity": "explain.tracing.purity",
    "purity": "explain.tracing.purity",
    "SideEffect": "explain.tracing.side_effects",
    "SideEffects": "explain.tracing.side_effects",
    "side_effects": "explain.tracing.side_effects",
    "PlacedOp": "explain.placement_log",
    "Placements": "explain.placement_log",
    "placements": "explain.placement_log",
    "Story": "explain.story",
    "Holder": "user_code.holders",
    "Holders": "user_code.holders",
    "who_holds": "user_code.holders",
}
"""Where each public name is defined. Each is loaded when first asked for: together they take a fifth of the time that
importing limelight takes, and of this package `import limelight` itself needs only what hears of traces (`hook`)."""

if not TYPE_CHECKING:  # type checkers read the imports below; a test holds both lists together
    __all__ = sorted(_HOMES)  # noqa: PLE0605  # what `import *` gives

if TYPE_CHECKING:
    from limelight.explain.allocations import LiveTensor as LiveTensor
    from limelight.explain.allocations import LiveTensors as LiveTensors
    from limelight.explain.allocations import live_tensors as live_tensors
    from limelight.explain.backward_pass.check_gradient import CheckedSource as CheckedSource
    from limelight.explain.backward_pass.check_gradient import GradientErrors as GradientErrors
    from limelight.explain.backward_pass.check_gradient import check_gradient as check_gradient
    from limelight.explain.backward_pass.gradient_flow import BackwardStep as BackwardStep
    from limelight.explain.backward_pass.gradient_flow import GradientFlow as GradientFlow
    from limelight.explain.backward_pass.gradient_flow import gradient_flow as gradient_flow
    from limelight.explain.backward_pass.recomputation import Recomputation as Recomputation
    from limelight.explain.backward_pass.recomputation import Recomputations as Recomputations
    from limelight.explain.backward_pass.recomputation import recomputations as recomputations
    from limelight.explain.copied_tensors import Copies as Copies
    from limelight.explain.copied_tensors import Copy as Copy
    from limelight.explain.copied_tensors import copies as copies
    from limelight.explain.leaked_tensors import Leak as Leak
    from limelight.explain.leaked_tensors import Leaks as Leaks
    from limelight.explain.leaked_tensors import leaks as leaks
    from limelight.explain.none_gradients.op_history import History as History
    from limelight.explain.none_gradients.path_entries import GradientPath as GradientPath
    from limelight.explain.none_gradients.path_entries import gradient_path as gradient_path
    from limelight.explain.none_gradients.report import WhyNone as WhyNone
    from limelight.explain.none_gradients.report import why_none as why_none
    from limelight.explain.nonfinite.report import Nan as Nan
    from limelight.explain.nonfinite.report import nan as nan
    from limelight.explain.op_costs import Cost as Cost
    from limelight.explain.op_costs import Costs as Costs
    from limelight.explain.op_costs import costs as costs
    from limelight.explain.placement_log import PlacedOp as PlacedOp
    from limelight.explain.placement_log import Placements as Placements
    from limelight.explain.placement_log import placements as placements
    from limelight.explain.retracing.retrace_table import Retrace as Retrace
    from limelight.explain.retracing.retrace_table import retrace as retrace
    from limelight.explain.stepping.recording import Recording as Recording
    from limelight.explain.stepping.recording import Step as Step
    from limelight.explain.stepping.recording import steps as steps
    from limelight.explain.story import Story as Story
    from limelight.explain.tier_gain import Gain as Gain
    from limelight.explain.tier_gain import gain as gain
    from limelight.explain.tracing.baked import BakedIn as BakedIn
    from limelight.explain.tracing.baked import baked as baked
    from limelight.explain.tracing.purity import Impurity as Impurity
    from limelight.explain.tracing.purity import Purity as Purity
    from limelight.explain.tracing.purity import purity as purity
    from limelight.explain.tracing.side_effects import SideEffect as SideEffect
    from limelight.explain.tracing.side_effects import SideEffects as SideEffects
    from limelight.explain.tracing.side_effects import side_effects as side_effects
    from limelight.user_code.holders import Holder as Holder
    from limelight.user_code.holders import Holders as Holders
    from limelight.user_code.holders import who_holds as who_holds


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'limelight.explain' has no attribute {name!r}", name=name)
    value = globals()[name] = getattr(importlib.import_module(f"limelight.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
