"""Devices: their names, which ones exist, and which backend computes on each."""

from __future__ import annotations

import difflib
import importlib.util
import re
from dataclasses import dataclass, replace
from typing import Any, Final

from limelight.core import backends
from limelight.errors import ArgumentError, DeviceError

_BACKEND: Final = {"CPU": "numpy", "GPU": "cupy", "XLA": "jax"}
_NAME = re.compile(
    r"/?(?:job:(?P<job>[A-Za-z_]\w*))?(?:(?:^|/)task:(?P<task>\d+))?"
    r"(?:(?:^|/)(?:device:)?(?P<kind>[A-Za-z]+)(?::(?P<index>\d+))?)?",
    re.ASCII,
)


class Device:
    """A place where tensors live and ops run. There is one object for each device: compare with `is` or `==`.

    `name` is the full name "/job:localhost/task:0/device:CPU:0"; `short` is "CPU:0".
    """

    __slots__ = ("backend", "index", "job", "kind", "name", "short", "task")

    def __init__(self, kind: str, index: int, job: str = "localhost", task: int = 0) -> None:
        self.kind = kind
        self.index = index
        self.job = job
        self.task = task
        self.backend = _BACKEND[kind] + (f":{index}" if kind == "GPU" and index else "")
        self.short = f"{kind}:{index}"
        self.name = f"/job:{job}/task:{task}/device:{self.short}"

    @property
    def memory(self) -> int | None:
        """The bytes that it has in all; None where nobody says. All CPU devices share the host's."""
        return backends.total_memory(self.backend, self.index)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceName):
            return other.matches(self)
        if isinstance(other, str):
            try:
                return parse(other).matches(self)
            except DeviceError:
                return False
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return (find, (self.name,))  # copies and pickles lead to the one object

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Device({self.name!r})"


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A device name with parts left open (None); it may stand wherever a name may.

    Args:
        job: the name of the job, "localhost" in this process.
        task: the number of the task.
        kind: "CPU", "GPU" or "XLA".
        index: the number of the device among those of its kind.

    >>> import limelight as ll
    >>> with ll.device(ll.DeviceName(kind="CPU", index=0)):
    ...     ll.ones(2).device.short
    'CPU:0'
    """

    job: str | None = None
    task: int | None = None
    kind: str | None = None
    index: int | None = None

    def merged(self, outer: DeviceName) -> DeviceName:
        """This name with its open parts taken from `outer`, as nested device scopes do."""
        kind = self.kind or outer.kind
        index = self.index if self.index is not None or self.kind not in (None, outer.kind) else outer.index
        job = self.job or outer.job
        return replace(self, job=job, task=self.task if self.task is not None else outer.task, kind=kind, index=index)

    def matches(self, device: Device) -> bool:
        return (
            self.job in (None, device.job)
            and self.task in (None, device.task)
            and self.kind in (None, device.kind)
            and self.index in (None, device.index)
        )

    def __str__(self) -> str:
        parts = [f"job:{self.job}"] if self.job is not None else []
        parts += [f"task:{self.task}"] if self.task is not None else []
        index = "" if self.index is None else f":{self.index}"
        parts += [f"device:{self.kind}{index}"] if self.kind is not None else []
        return "/" + "/".join(parts)


CPU0: Final = Device("CPU", 0)
_local: list[Device] = [CPU0]
_detected = False
_in_use = False


def parse(name: str | Device | DeviceName) -> DeviceName:
    """The parts of `name`: "cpu", "GPU:1", "/gpu:0", "/job:localhost/task:0/device:CPU:0".

    Raises DeviceError for a malformed name or an unknown kind.
    """
    if isinstance(name, DeviceName):
        return name
    if isinstance(name, Device):
        return DeviceName(name.job, name.task, name.kind, name.index)
    if not isinstance(name, str):
        dtype = "; for a dtype write x.astype(dtype)" if isinstance(name, type) or hasattr(name, "itemsize") else ""
        raise DeviceError(_unknown(name, f"is not a device name, which is a string{dtype}"))
    match = _NAME.fullmatch(name.strip())
    if not match or not any(match.groups()):
        raise DeviceError(_unknown(name, "is not a device name"))
    parts = match.groupdict()
    kind = parts["kind"].upper() if parts["kind"] else None
    if kind is not None and kind not in _BACKEND:
        kinds = f"names no known kind of device (kinds: {', '.join(_BACKEND)})"
        if kind == "CUDA":
            raise DeviceError(f'{name!r} {kinds}; write "GPU:{parts["index"] or 0}"; devices here: {_listed()}')
        raise DeviceError(_unknown(name, kinds))
    return DeviceName(
        parts["job"],
        int(parts["task"]) if parts["task"] else None,
        kind,
        int(parts["index"]) if parts["index"] else None,
    )


def list_devices() -> list[Device]:
    """All devices that this process can compute on, CPU:0 first.

    >>> import limelight as ll
    >>> ll.list_devices()[0].short
    'CPU:0'
    """
    _detect()
    return list(_local)


def find(name: str | Device | DeviceName) -> Device:
    """The device that `name` means; an open index means 0.

    Raises DeviceError that lists the devices that exist.
    """
    if isinstance(name, Device):
        return name
    wanted = name if isinstance(name, DeviceName) else parse(name)
    _detect()
    chosen = [device for device in _local if replace(wanted, index=wanted.index or 0).matches(device)]
    if not chosen:
        raise DeviceError(_unknown(name, "does not exist here", wanted))
    return chosen[0]


def set_virtual_devices(CPU: int) -> None:
    """Splits the CPU into `CPU` logical devices with separate accounting and real copies between them.

    More may be added at any time. Fewer are refused with a DeviceError once tensors have been on any but the first.

    >>> import limelight as ll
    >>> ll.config.set_virtual_devices(CPU=len([d for d in ll.list_devices() if d.kind == "CPU"]))
    """
    if type(CPU) is not int or CPU < 1:
        raise ArgumentError(f"set_virtual_devices needs a number of CPU devices, at least 1, got {CPU!r}")
    cpus = [device for device in _local if device.kind == "CPU"]
    if CPU == len(cpus):
        return
    if _in_use and CPU < len(cpus):
        raise DeviceError(
            f"{len(cpus)} CPU devices are in use already and tensors may live on them; "
            "restart the kernel to have fewer (more may be added at any time)"
        )
    others = [device for device in _local if device.kind != "CPU"]
    _local[:] = [*cpus[:CPU], *(Device("CPU", i) for i in range(len(cpus), CPU)), *others]


def in_use() -> bool:
    """Whether anything may be on another device than CPU:0."""
    return _in_use


def mark_in_use() -> None:
    """Called when a tensor is first put on a device other than CPU:0: from now on devices may not vanish."""
    global _in_use
    _in_use = True


def _detect() -> None:
    """Adds accelerators once; a backend that is not installed, or finds no hardware, adds none."""
    global _detected
    if _detected:
        return
    _detected = True
    if importlib.util.find_spec("cupy") is not None:
        from limelight.core.backends import cupy as gpu  # noqa: PLC0415  # only where it is installed: it takes a second

        _local.extend(Device("GPU", i) for i in range(gpu.device_count()))
    if importlib.util.find_spec("jax") is not None:
        _local.append(Device("XLA", 0))


def _unknown(name: object, problem: str, wanted: DeviceName | None = None) -> str:
    existing = [device.short for device in _local]
    close = difflib.get_close_matches(str(name).upper().strip("/"), existing, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close and wanted is None else ""
    local_cpu = wanted is not None and replace(wanted, index=0).matches(CPU0)
    virtual = " (ll.config.set_virtual_devices(CPU=n) makes more CPU devices)" if local_cpu else ""
    shown = repr(str(name)) if isinstance(name, DeviceName) else repr(name)
    return f"{shown} {problem}; devices here: {_listed()}{hint}{virtual}"


def _listed() -> str:
    return ", ".join([device.short for device in _local])
