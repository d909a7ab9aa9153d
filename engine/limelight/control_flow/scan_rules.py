"""Forward mode and batching of scans: their bodies with tangents, or for many examples. Both are scans again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.autodiff import filled
from limelight.batching import Shared, Site, rule
from limelight.batching.rule_table import front
from limelight.control_flow.body_batching import count_of, many, note, shown, tensors_only
from limelight.control_flow.body_tangents import flags_of, parted, present, pushed
from limelight.control_flow.scan_gradient import scan_forward
from limelight.control_flow.scan_op import scan_op
from limelight.core import dispatch

Flags = tuple[bool, ...]


def _push(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    """Tangents of the carry are carried, those of rows are rows, and what the scan returns has stacks of tangents."""
    body, n, m, length, reverse = attrs[:5]
    flags, before = flags_of(tangents), None
    while flags != before:  # what moves after a step moves before the next one
        before = flags
        reached = pushed(body, flags, (), n, n + m).moving
        flags = tuple([f or (i < n and i in reached) for i, f in enumerate(flags)])
    n_outputs = len(body.graph.outputs)
    forced = tuple([i < n and flags[i] for i in range(n_outputs)])
    found = pushed(body, flags, forced, n, n + m)
    given = [filled(0, x) if f and t is None else t for x, t, f in zip(inputs, tangents, flags, strict=True)]
    operands = [x for part in (slice(0, n), slice(n, n + m), slice(n + m, None)) for x in _both(inputs, given, part)]
    wider = n + sum(flags[:n]), m + sum(flags[n : n + m])
    results = dispatch.apply(scan_op, tuple(operands), (found.function, *wider, length, reverse))
    carries, stacks = results[: wider[0]], results[wider[0] :]
    last, moved = parted(carries, n, [i for i in range(n) if flags[i]])
    shown_, of_shown = parted(stacks, n_outputs - n, [i - n for i in found.moving if i >= n])
    return (*last, *shown_), [*moved, *of_shown]


def _both(inputs: Sequence[Any], tangents: Sequence[Any], part: slice) -> list[Any]:
    return [*inputs[part], *present(tangents[part])]


scan_op.jvp = scan_forward.jvp = _push


@rule("scan", "scan_forward")
def _scan(site: Site) -> Any:
    """Steps come first, then examples, so that each row has those of one step."""
    body, n, m, length, reverse = site.attrs[:5]
    if not tensors_only(site):
        return NotImplemented
    mask: Flags = site.mask
    before: Flags | None = None
    while mask != before:  # what differs after a step differs before the next one
        found = many(count_of(site), body, mask)
        if found is None:
            return NotImplemented
        before, mask = mask, tuple([d or (i < n and found.mask[i]) for i, d in enumerate(mask)])
    forced = tuple([i < n and mask[i] for i in range(len(body.graph.outputs))])
    step = many(count_of(site), body, mask, forced)
    assert step is not None, "it could be had without forcing"
    note(site, step)
    inputs = [site.lead(i) if d else x for i, (x, d) in enumerate(zip(site.inputs, mask, strict=True))]
    inputs[n : n + m] = [front(x, 1) if d else x for x, d in zip(inputs[n : n + m], mask[n : n + m], strict=True)]
    results = dispatch.apply(scan_op, tuple(inputs), (step.function, n, m, length, reverse))
    stacks = [front(y, 1) if d else Shared(y) for y, d in zip(results[n:], step.mask[n:], strict=True)]
    return (*shown(results[:n], mask[:n]), *stacks)
