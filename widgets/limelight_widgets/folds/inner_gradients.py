"""Gradients that are differentiated in their turn, as of a step that meta-learning goes back through, or of a penalty.

They are no backward pass of the graph's: what is made of them goes on, and has a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def differentiated(
    gradient: Sequence[bool], stacks: Sequence[Sequence[Any]], inputs: Sequence[Sequence[int]], updates: Sequence[bool]
) -> list[bool]:
    """For each node whether it is of such a gradient.

    An op that is no gradient reads what it gives, at a line that has a gradient of its own; that one is asked for
    elsewhere, and reads what the first has made on its way. Two gradients that share a constant have no such op, and
    the steps of a descent, each of which begins with what the last has made, no such line.

    Args:
        gradient: whether a gradient wrote the node.
        stacks: for each the lines that led to it, innermost first; those of a gradient are the line of the op that it
            belongs to, and the lines that asked for it.
        inputs: for each the indices of the nodes that it reads from, -1 for an input of the graph.
        updates: whether it changes a variable: what that is read for afterwards is no part of what was before.
    """
    inner: set[Any] = set()
    read_at = _read_at(gradient, stacks, inputs, updates) if any(gradient) else {}
    if read_at:
        lines: dict[Any, set[Any]] = {}  # of the ops that a gradient goes through, by who asked for it
        for one, stack in zip(gradient, stacks, strict=True):
            if one:
                lines.setdefault(stack[1:], set()).add(stack[0] if stack else None)
        through = _gone_through(gradient, stacks, inputs)
        inner = {asked for asked, outer in through if lines[outer] & read_at.get(asked, set())}
    if not inner:
        return [False] * len(gradient)
    return [one and stack[1:] in inner for one, stack in zip(gradient, stacks, strict=True)]


def _gone_through(
    gradient: Sequence[bool], stacks: Sequence[Sequence[Any]], inputs: Sequence[Sequence[int]]
) -> set[tuple[Any, Any]]:
    """Who asked for a gradient, and who for another one that reads what it has made."""
    return {
        (stacks[k][1:], stacks[i][1:])
        for i, row in enumerate(inputs)
        if gradient[i]
        for k in row
        if k >= 0 and gradient[k] and stacks[k][1:] != stacks[i][1:]
    }


def _read_at(
    gradient: Sequence[bool], stacks: Sequence[Sequence[Any]], inputs: Sequence[Sequence[int]], updates: Sequence[bool]
) -> dict[Any, set[Any]]:
    """The lines at which ops that go into a gradient read what another one gives, by who asked for that."""
    goes_on = [False] * len(gradient)
    read_at: dict[Any, set[Any]] = {}
    for i in range(len(gradient) - 1, -1, -1):
        if not gradient[i] and (updates[i] or not goes_on[i]):
            continue
        for k in inputs[i]:
            if k >= 0:
                goes_on[k] = True
                if gradient[k] and not gradient[i] and stacks[i]:
                    read_at.setdefault(stacks[k][1:], set()).add(stacks[i][0])
    return read_at
