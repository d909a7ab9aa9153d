"""Where ops run, and why there: of eager ops as they run, and of the nodes of a staged function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple

from limelight import events
from limelight.core.devices import Device
from limelight.errors import ArgumentError
from limelight.executors import base as executors
from limelight.executors.placement import placements as placements_of
from limelight.graph.ir import Graph, Node
from limelight.user_code import source_line
from limelight.user_code.source_line import Source

_VARIABLE: Final = "with its variable"
MOST_TOLD: Final = 20
"""Ops that are told one by one; of more only those that run elsewhere than asked, or for which something is copied."""


class PlacedOp(NamedTuple):
    """One op: where it was asked to run, where it runs, and why; what is copied for it, and what stays on the host.

    `copies` are the operands that are copied, of `nbytes` in all; None bytes where a size is not known before it runs.
    `on_host` names the operands that its kernel reads on the host whatever the device, and its static parameters, which
    are Python values and on no device.

    >>> import limelight as ll
    >>> f = ll.function(lambda x: ll.tanh(x) * 2.0)
    >>> y = f(ll.ones(3))
    >>> [placed.op for placed in ll.explain.placements(f).records]
    ['tanh', 'multiply']
    """

    op: str
    requested: str | None
    device: str
    reason: str
    copies: int
    nbytes: int | None
    line: Source | None
    on_host: tuple[str, ...] = ()

    def __str__(self) -> str:
        asked = f", asked for {self.requested}" if self.requested not in (None, self.device) else ""
        size = "" if self.nbytes is None else f", {self.nbytes:,} bytes"
        copied = f"; {self.copies} {'copy' if self.copies == 1 else 'copies'} in{size}" if self.copies else ""
        stays = f"; on the host: {', '.join(self.on_host)}" if self.on_host else ""
        return f"{self.op} on {self.device}{asked}: {self.reason}{copied}{stays}{source_line.at(self.line)}"


class Placements:
    """Where ops run. As a block it notes those that run eagerly in it; `placements` makes one of a staged function.

    `records` are `PlacedOp` records, in the order in which the ops run. `str()` has a line for each; where there are
    many, one for each device, and for each op that runs elsewhere than asked or needs a copy.

    >>> import limelight as ll
    >>> with ll.explain.Placements() as log:
    ...     y = ll.ones(2) + 1.0
    >>> [(one.op, one.device, one.reason) for one in log.records][-1]
    ('add', 'CPU:0', 'with its first tensor operand')
    """

    def __init__(self, records: Sequence[PlacedOp] = ()) -> None:
        self._records = list(records)
        self._subscription: events.Subscription | None = None

    @property
    def records(self) -> tuple[PlacedOp, ...]:
        """One for each op."""
        return tuple(self._records)

    def __enter__(self) -> Placements:
        self._subscription = events.listen(self._note, events.Placed)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._subscription is not None:
            self._subscription.close()

    def _note(self, event: events.Event) -> None:
        assert isinstance(event, events.Placed), "nothing else was asked for"
        self._records.append(
            PlacedOp(
                event.op,
                event.requested,
                event.device,
                event.reason,
                event.copies,
                event.nbytes,
                event.source,
                event.on_host,
            )
        )

    def __str__(self) -> str:
        if len(self._records) <= MOST_TOLD:
            return "\n".join(map(str, self._records)) or "no op has run"
        told = [one for one in self._records if one.copies or one.requested not in (None, one.device)]
        rest = f"and {len(told) - MOST_TOLD:,} more of these, in records" if len(told) > MOST_TOLD else ""
        return "\n".join(filter(None, [*self._summed(), *map(str, told[:MOST_TOLD]), rest]))

    __repr__ = __str__

    def _summed(self) -> list[str]:
        """How many ops run on each device, and why there."""
        of_device: dict[str, Counter[str]] = {}
        for one in self._records:
            named = one.reason.startswith(f"{_VARIABLE} ")  # whose name is told op by op alone
            of_device.setdefault(one.device, Counter())[_VARIABLE if named else one.reason] += 1
        return [
            f"{reasons.total():,} op{'s' * (reasons.total() > 1)} on {device}: "
            + ", ".join([f"{reason} ({count:,})" for reason, count in reasons.most_common()])
            for device, reasons in sorted(of_device.items(), key=lambda item: -item[1].total())
        ]


def placements(trace: Any) -> Placements:
    """Where each node of a trace runs for arguments on the devices that it was traced for, and why there.

    Of a staged function it is the newest trace. What is called from it, branches and bodies are one record each:
    their own nodes are placed in the same way, for the devices of what they are given.

    Args:
        trace: a staged function that has been traced, or an entry of its cache, `F.trace_cache[0]`.

    Raises:
        ArgumentError: it is neither.

    >>> import limelight as ll
    >>> f = ll.function(lambda x: ll.tanh(x) * 2.0)
    >>> y = f(ll.ones(3))
    >>> print(ll.explain.placements(f).records[0].reason)
    with its first tensor operand
    """
    entries = getattr(trace, "trace_cache", None)
    entry: Any = trace if entries is None else entries[-1] if len(entries) else None
    if not hasattr(entry, "input_devices"):
        given = "it has not been traced yet" if entries is not None else f"got {type(trace).__name__}"
        raise ArgumentError(
            f"placements: needs a staged function that has been traced, or an entry of its cache; {given}"
        )
    graph: Graph = entry.graph
    build = executors.get(executors.DEFAULT).build
    found = placements_of(graph, entry.input_devices, build)
    return Placements([_record(one.node, one.choice.device, one.choice.reason, one.copies) for one in found])


def _record(node: Node, device: Device, reason: str, copies: Sequence[Node]) -> PlacedOp:
    sizes = [copy.outputs[0].spec.nbytes for copy in copies]  # type: ignore[union-attr]  # only tensors are copied
    nbytes = None if None in sizes else sum([n for n in sizes if n is not None])
    asked = None if node.device is None else node.device.short
    line = node.stack[0] if node.stack else None
    return PlacedOp(node.op.name, asked, device.short, reason, len(copies), nbytes, line, node.op.stays_on_host)
