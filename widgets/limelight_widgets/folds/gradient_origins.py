"""Which op each node of a backward pass is the gradient of, where one line is run again and again.

A gradient knows the line and the name of its op, but no round. The backward pass goes through the ops from the last to
the first: a node belongs to an op that reads or gives the values that the node reads, and to none after those whose
gradients it reads. Where that leaves several, as of `-x`, whose gradient reads no value, and a line has as many nodes
of a kind as ops, each op has one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any

_Site = tuple[str, Any]
"""The name of an op, "" for any, and its line."""


def origins(
    gradient: Sequence[bool], stacks: Sequence[Sequence[Any]], ops: Sequence[str], inputs: Sequence[Sequence[int]]
) -> list[int]:
    """For each node of a gradient the op that it belongs to; -1 where no op has its line, and for other nodes.

    Args:
        gradient: whether a gradient wrote the node.
        stacks: for each the lines that led to it, innermost first; that of a gradient is the line of its op.
        ops: the name of the op of each.
        inputs: for each the indices of the nodes that it reads from, -1 for an input of the graph.
    """
    result = [-1] * len(ops)
    at: dict[_Site, list[int]] = {}
    readers: dict[tuple[int, _Site], list[int]] = {}
    before = len(ops)  # the op whose gradient came last
    kinds = [(ops[i], _of(stacks[i][0])) if gradient[i] and stacks[i] else None for i in range(len(ops))]
    total, met = Counter(kinds), Counter[Any]()
    for i, row in enumerate(inputs):
        if not stacks[i]:
            continue
        line = stacks[i][0]
        if not gradient[i]:
            site = ops[i], line
            at.setdefault(site, []).append(i)
            at.setdefault(("", line), []).append(i)
            for k in row:
                if k >= 0:
                    readers.setdefault((k, site), []).append(i)
            continue
        met[kinds[i]] += 1
        site = _of(line) if _of(line) in at else ("", line)
        latest = min([result[k] for k in row if k >= 0 and result[k] >= 0], default=before)
        known = [[k] if (ops[k], stacks[k][:1]) == (site[0], (line,)) else readers.get((k, site), ())
                 for k in row if k >= 0 and not gradient[k]]  # fmt: skip
        candidates = min(filter(None, known), key=len, default=at.get(site, ()))
        if len(candidates) > 1 and total[kinds[i]] == len(at[site]):
            result[i] = before = at[site][-met[kinds[i]]]
        elif candidates:
            result[i] = before = candidates[max(bisect_right(candidates, latest) - 1, 0)]
    return result


def _of(line: Any) -> _Site:
    """The site of the op whose gradient has this line."""
    return getattr(line, "of", ""), line
