"""Where an op runs, and why: one rule for eager execution, for graphs, and for what a trace says of a tensor's device.

1. Where the op itself says: `x.to("gpu:0")`.
2. With its variables: state decides.
3. Where the scope around it asks for: `with ll.device("gpu:0")`.
4. On the host, where it computes from shapes alone.
5. With its tensor operands: on the first accelerator among their devices, else on the first device.
6. On CPU:0.

A device does only where the op has a kernel for the dtypes. Where it has none, and nobody named that device, the op
runs on the first that has one, CPU:0 as a rule; a device that was named is an error then, unless `soft_placement` is
on. Operands that a kernel reads on the host (`Op.on_host`) decide nothing, and are never copied to an accelerator.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from limelight.core import backends, devices
from limelight.core.devices import CPU0, Device
from limelight.core.dtypes import DType
from limelight.core.op import Op
from limelight.errors import DeviceError
from limelight.settings import Scoped, SettingScope

OP_SAYS: Final = "the op says where"
ASKED: Final = "asked for by the scope around it"
FIRST: Final = "with its first tensor operand"
ACCELERATOR: Final = "with the operand that is on an accelerator"
FROM_SHAPES: Final = "on the host, as it computes from shapes alone"
NOTHING_SAYS: Final = "nothing asks for another device"
soft: Final[Scoped[bool]] = Scoped("soft placement", False)


class Choice(NamedTuple):
    """The device on which an op runs, and why there, in words that follow "it runs there"."""

    device: Device
    reason: str


class soft_placement(SettingScope[bool]):  # noqa: N801  # used as a function
    """Ops that have no kernel on the device that was asked for run on one that has, rather than raise DeviceError.

    Their operands are copied, which is noted as any copy is (`ll.explain.copies()`), and their results stay where they
    are computed. Ops for which nobody has asked for a device do so in any case. As a `with` block it holds for what
    this thread does in the block.

    Args:
        on: whether they do. True.

    >>> import limelight as ll
    >>> with ll.config.soft_placement(), ll.device("cpu:0"):
    ...     (ll.ones(2) + 1.0).device.short
    'CPU:0'
    """

    def __init__(self, on: bool = True) -> None:
        super().__init__(soft, bool(on), sys._getframe(1))

    def __repr__(self) -> str:
        return f"<soft placement: {self._value}>"


def choose(
    op: Op,
    attrs: tuple[Any, ...],
    variables: Sequence[tuple[str, Device]],
    requested: Device | None,
    homes: Sequence[Device],
    dtypes: tuple[DType, ...],
) -> Choice:
    """Where `op` runs.

    Args:
        op: the op.
        attrs: its static parameters.
        variables: the names and devices of the variables among its operands.
        requested: the device asked for by the scopes around.
        homes: the devices of its tensor operands, without those that it reads on the host.
        dtypes: those of its tensor operands.

    Raises:
        DeviceError: its variables are on different devices, or it has no kernel where it must run.
    """
    if op.placement is not None:
        return Choice(op.placement(*attrs), OP_SAYS)
    if variables:
        return _with_state(op, variables, dtypes)
    if requested is not None:
        return _with_kernel(op, Choice(requested, ASKED), dtypes)
    if op.of_shapes:
        return Choice(CPU0, FROM_SHAPES)
    if not homes:
        return _with_kernel(op, Choice(CPU0, NOTHING_SAYS), dtypes)
    home = homes[0]
    if home.backend == "numpy":
        for other in homes:
            if other.backend != "numpy":
                return _with_kernel(op, Choice(other, ACCELERATOR), dtypes)
    return _with_kernel(op, Choice(home, FIRST), dtypes)


def _with_state(op: Op, variables: Sequence[tuple[str, Device]], dtypes: tuple[DType, ...]) -> Choice:
    name, home = variables[0]
    if any(device is not home for _, device in variables):
        where = ", ".join([f"{one or 'a variable'} on {device.short}" for one, device in variables])
        raise DeviceError(
            f"{op}: its variables live on different devices: {where}; make them on one (`with ll.device(...)`), or "
            "read one first: v.read_value()"
        )
    missing = _missing(op, home, dtypes)
    if missing:
        raise DeviceError(f"{op}: its variable {name or 'operand'} is on {home.short}, and {missing}")
    return Choice(home, f"with its variable {name}" if name else "with its variable")


def _with_kernel(op: Op, choice: Choice, dtypes: tuple[DType, ...]) -> Choice:
    """The choice where the op has a kernel there, else another one."""
    device, reason = choice
    missing = _missing(op, device, dtypes)
    if not missing:
        return choice
    others = [other for other in devices.list_devices() if not _missing(op, other, dtypes)]
    if not others:
        raise DeviceError(f"{op}: {missing}, and neither has any other device here")
    if reason is ASKED and not soft.get():
        have = ", ".join([other.short for other in others])
        raise DeviceError(
            f"{op}: {device.short} is asked for, and {missing}; devices that have one: {have}. Write `with "
            f'll.device("{others[0].short}"):` around it, or ll.config.soft_placement(), with which it falls back there'
        )
    return Choice(others[0], f"fallback from {device.short}: {missing}")


def _missing(op: Op, device: Device, dtypes: tuple[DType, ...]) -> str:
    """Why an op has no kernel on a device for operands of these dtypes; empty where it has one."""
    if device.backend == "numpy" and not op.special:
        return ""
    why = why_no_kernel(op, device.backend, dtypes)
    return f"it has no kernel there: {why}" if why else ""


@functools.lru_cache(maxsize=4096)
def why_no_kernel(op: Op, backend: str, dtypes: tuple[DType, ...]) -> str:
    """Why an op has no kernel on a backend for operands of these dtypes; empty where it has one."""
    library = backends.library_of(backend)
    title = backends.TITLES.get(library, library)
    kernel = op.special.get(library, op.kernel)
    if kernel is None:
        return f"{op} is not written for {title}"
    for dtype in dtypes:
        if dtype.name in backends.MISSING_DTYPES.get(library, ()):
            return f"{title} has no {dtype.name}"
    if isinstance(kernel, str) and backend != "numpy":
        try:
            functools.reduce(getattr, kernel.split("."), backends.load(backend).xp)
        except AttributeError:
            return f"{title} has no function {kernel!r}"
    return ""
