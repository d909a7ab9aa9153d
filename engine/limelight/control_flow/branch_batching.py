"""Batching rules of `cond` and `switch`.

Where the choice is the same for all examples, one batched branch runs. Where each example chooses, all branches run,
and `where` takes the results of each example from its branch. A branch with effects must not run for examples that did
not choose it, so such an op is run example by example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.batching import Site
from limelight.batching.rule_table import repeated
from limelight.control_flow.branch_gradient import branches_of, with_branches
from limelight.control_flow.masked_loops import has_loops, masked
from limelight.core import dispatch
from limelight.core.dtypes import bool_
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.staging.body_batching import (
    BatchedFunction,
    batch_size,
    batched_function,
    note_looped_ops,
    pure,
    tensors_only,
    with_shared,
)
from limelight.staging.call_gradient import call


def batch_branches(op: str, site: Site) -> Any:
    """The batching rule of the op called `op`, "cond" or "switch", and of the variant that a tape records."""
    if not tensors_only(site):
        return NotImplemented
    branches, mask, count = branches_of(site.attrs), site.mask[1:], batch_size(site)
    versions = [batched_function(count, branch, mask) for branch in branches]
    batched = [version for version in versions if version is not None]
    if len(batched) < len(versions):
        return NotImplemented
    if site.mask[0]:
        return _select(site, branches)
    forced = tuple([any(flags) for flags in zip(*[version.mask for version in batched], strict=True)])
    versions = [batched_function(count, branch, mask, forced) for branch in branches]
    batched = [version for version in versions if version is not None]
    assert len(batched) == len(versions), "they could be batched without forcing"
    note_looped_ops(site, *batched)
    params = with_branches(site.attrs, [version.function for version in batched])
    return with_shared(dispatch.apply(get(op), site.inputs, params), forced)


def _select(site: Site, branches: Sequence[Any]) -> Any:
    """Runs all branches and takes from each the examples that chose it; blanks of other branches are not looked at."""
    if not pure(*branches) or any(not isinstance(v.spec, TensorSpec) for b in branches for v in b.graph.outputs):
        return NotImplemented
    versions = _batched_branches(site, branches)
    note_looped_ops(site, *versions)
    decides, *captures = site.inputs
    decides = decides.reshape((-1,))
    if decides.dtype == bool_:
        chosen = [decides, ~decides]
    else:
        decides = dispatch.apply(get("checked_index"), (decides,), (len(branches),))
        chosen = [decides == b for b in range(len(branches))]
    selected = []
    results = [
        _for_all(site, version, [*captures, wanted] if version.masked else captures)
        for version, wanted in zip(versions, chosen, strict=True)
    ]
    for i, column in enumerate(zip(*results, strict=True)):
        *others, last = [b for b in range(len(branches)) if i not in branches[b].blanks] or [0]
        y = column[last]
        for b in reversed(others):
            y = chosen[b].reshape((-1,) + (1,) * (y.ndim - 1)).where(column[b], y)
        selected.append(y)
    return tuple(selected)


def _batched_branches(site: Site, branches: Sequence[Any]) -> list[BatchedFunction]:
    """The batched branches. One with a loop, which may not end for examples of another branch, is masked."""
    mask, count, versions = site.mask[1:], batch_size(site), []
    for branch in branches:
        loops = has_loops(branch)
        if loops:
            version = batched_function(count, masked(branch), (*mask, True))
        else:
            version = batched_function(count, branch, mask)
        assert version is not None, "it could be batched without a mask"
        versions.append(version._replace(masked=loops))
    return versions


def _for_all(site: Site, version: BatchedFunction, captures: Sequence[Any]) -> list[Any]:
    """The results of a branch, each with the batch axis."""
    n = len(version.function.graph.inputs)
    results = dispatch.apply(call, tuple(captures[len(captures) - n :]), (version.function,))
    return [y if m else repeated(y, site.size) for y, m in zip(results, version.mask, strict=True)]
