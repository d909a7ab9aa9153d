"""Batching rules of `cond` and `switch`.

Where all examples choose alike, it is the same choice between branches for all examples. Where each example chooses for
itself, all branches run, and each example takes the results of its own; a branch with effects must not run for examples
that did not choose it, so then the op is run example by example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.batching import Site
from limelight.batching.rule_table import repeated
from limelight.control_flow.branch_gradient import branches_of, with_branches
from limelight.control_flow.masked_loops import guarded, has_loops
from limelight.core import dispatch
from limelight.core.dtypes import bool_
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.staging.body_batching import Many, count_of, many, note, pure, shown, tensors_only
from limelight.staging.call_gradient import call


def batch_branches(op: str, site: Site) -> Any:
    if not tensors_only(site):
        return NotImplemented
    branches, mask, count = branches_of(site.attrs), site.mask[1:], count_of(site)
    sides = [many(count, branch, mask) for branch in branches]
    found = [side for side in sides if side is not None]
    if len(found) < len(sides):
        return NotImplemented
    if site.mask[0]:
        return _select(site, branches)
    forced = tuple([any(flags) for flags in zip(*[side.mask for side in found], strict=True)])
    sides = [many(count, branch, mask, forced) for branch in branches]
    found = [side for side in sides if side is not None]
    assert len(found) == len(sides), "they could be had without forcing"
    note(site, *found)
    params = with_branches(site.attrs, [side.function for side in found])
    return shown(dispatch.apply(get(op), site.inputs, params), forced)


def _select(site: Site, branches: Sequence[Any]) -> Any:
    """All branches, and from each the examples that chose it. What only one of them has is taken as it is."""
    if not pure(*branches) or any(not isinstance(v.spec, TensorSpec) for b in branches for v in b.graph.outputs):
        return NotImplemented
    sides = _sides(site, branches)
    note(site, *sides)
    decides, *captures = site.inputs
    decides = decides.reshape((-1,))
    if decides.dtype == bool_:
        chosen = [decides, ~decides]
    else:
        decides = dispatch.apply(get("checked_index"), (decides,), (len(branches),))
        chosen = [decides == b for b in range(len(branches))]
    found = []
    results = [_for_all(site, s, [*captures, c] if s.guarded else captures) for s, c in zip(sides, chosen, strict=True)]
    for i, column in enumerate(zip(*results, strict=True)):
        *others, last = [b for b in range(len(branches)) if i not in branches[b].blanks] or [0]
        y = column[last]
        for b in reversed(others):
            y = chosen[b].reshape((-1,) + (1,) * (y.ndim - 1)).where(column[b], y)
        found.append(y)
    return tuple(found)


def _sides(site: Site, branches: Sequence[Any]) -> list[Many]:
    """Branches for many examples. One with a loop, which may not end for examples of another branch, is guarded."""
    mask, count, sides = site.mask[1:], count_of(site), []
    for branch in branches:
        loops = has_loops(branch)
        side = many(count, guarded(branch), (*mask, True)) if loops else many(count, branch, mask)
        assert side is not None, "it could be had without a guard"
        sides.append(side._replace(guarded=loops))
    return sides


def _for_all(site: Site, side: Many, captures: Sequence[Any]) -> list[Any]:
    n = len(side.function.graph.inputs)
    results = dispatch.apply(call, tuple(captures[len(captures) - n :]), (side.function,))
    return [y if m else repeated(y, site.size) for y, m in zip(results, side.mask, strict=True)]
