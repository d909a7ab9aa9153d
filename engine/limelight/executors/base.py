"""What an executor is, and the registry of those that there are.

An executor makes graphs runnable. To add one, write a module in this folder with a class that has the members of
`Executor`, end it with `register(MyExecutor())`, and import it in `limelight/executors/__init__.py`.

- `build` gets a graph that is optimised, and the devices of its inputs. `placement.place` says where each node runs and
  makes every copy between devices a node; functions whose inputs are elsewhere are built by the function given to it.
- Functions that a node calls are parameters of the node: its kernel calls their `run(*payloads)`, which is a runnable
  of the executor that they asked for. An executor may compile their graphs together with the caller's instead.
- Runnables take and return payloads (arrays, storages of variables, opaque values), never tensors. They may run on
  several threads at once, and call themselves. Variables are written in the order of the nodes.
- What a kernel raises is turned by `error_lines.explain` into an error that names op, operands and the user's line.
- A function asks for the executor that `chosen` names when it is traced. The random programs of the tests run on all
  that are registered and compare results, effects and gradients; nothing need be added there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol

from limelight.core.devices import Device
from limelight.errors import ArgumentError
from limelight.graph.ir import Graph, Node
from limelight.settings import Scoped
from limelight.user_code.source_line import Source


class Peak(NamedTuple):
    """The most bytes of intermediates and results that are alive at once, and the node that runs then.

    Inputs and literals do not count, nor does what kernels need inside; called functions do. `exact` is False where
    sizes are unknown, whose values are not counted, and where it is not known which function is called, or how often.
    """

    nbytes: int
    node: Node | None
    exact: bool


class Runnable(Protocol):
    """A graph that can be run: `runnable(*payloads)` is the tuple of its outputs' payloads.

    `output_devices` says where these are; `source` is the generated code that runs, None where there is none. One that
    leaves a graph to another executor has the name of that as `tier`, and why as `refusal`; one that may come to run it
    otherwise says in `progress` how far that is.
    """

    output_devices: tuple[Device, ...]

    @property
    def source(self) -> str | None: ...

    def __call__(self, *payloads: Any) -> tuple[Any, ...]: ...

    def memory(self) -> Peak:
        """An estimate from shapes of what a run needs at most."""


class Executor(Protocol):
    """A way to run graphs, known by its `name`: that of the tier of a trace that it runs (`entry.tier`)."""

    name: str

    def build(self, graph: Graph, devices: Sequence[Device] = (), *, deliver: Device | None = None) -> Runnable:
        """Makes a graph runnable.

        Args:
            graph: the graph, which stays as it is.
            devices: those of its inputs, none at all for CPU:0.
            deliver: where all outputs are to go; without it they stay where they are made.

        Returns:
            The runnable. It raises RunError where a kernel fails; errors of limelight keep their class, those of a
            py_func and KeyboardInterrupt pass unchanged.
        """

    def code(self, graph: Graph) -> list[tuple[Node, str]]:
        """Each node that runs for `graph` on CPU:0, in order, with the code or the name of the kernel that does it."""

    def node_at(self, tb: TracebackType) -> Node | None:
        """The node at which a runnable of this executor was when an error passed its frame `tb`; None for others."""


@dataclass
class FunctionExecutor:
    """An executor that consists of functions: see `Executor`."""

    name: str
    build: Callable[..., Runnable]
    code: Callable[[Graph], list[tuple[Node, str]]]
    node_at: Callable[[TracebackType], Node | None] = lambda _: None  # what it builds does not raise, or is a plan


class Automatic(str):
    """The name of an executor that nobody asked for: functions traced for it are compiled once that is worth it."""

    __slots__ = ()


DEFAULT: Final = "plan"
"""The one that is always there. Functions run on it, or on what `chosen` says (see `setting.at_first`)."""
COMPILED: Final = "xla"
"""The one that compiles, which is there where JAX is installed."""
chosen: Final[Scoped[str]] = Scoped("executor", Automatic(DEFAULT))
"""The name of the executor that functions traced from now on ask for."""
pinned: Final = Scoped("deterministic", False)
"""Whether functions stay on the executor on which they run now."""
_executors: Final[dict[str, Executor]] = {}


def register(executor: Executor) -> None:
    """Makes an executor known by its name.

    Raises:
        ArgumentError: another one has the name, or this one lacks a member of `Executor`.
    """
    lacking = [name for name in ("name", "build") if not hasattr(executor, name)]
    if lacking:
        raise ArgumentError(f"an executor has `{'` and `'.join(lacking)}`, see executors/base.py; this one lacks it")
    if _executors.setdefault(executor.name, executor) is not executor:
        raise ArgumentError(f"there is an executor {executor.name!r} already; give yours another name")


def unregister(name: str) -> None:
    """Forgets an executor; what it has built goes on."""
    _executors.pop(name, None)


def names() -> tuple[str, ...]:
    """The names of all executors, in alphabetical order."""
    return tuple(sorted(_executors))


def get(name: str) -> Executor:
    """The executor of a name; raises ArgumentError where there is none."""
    executor = _executors.get(name)
    if executor is None:
        raise ArgumentError(f"there is no executor {name!r}; there are {', '.join(names())}")
    return executor


def on_devices(name: str, devices: Sequence[Device]) -> str:
    """The executor for inputs on these devices: XLA's compile whole graphs, since single ops are slow there."""
    compiles = COMPILED in _executors and name != "step"
    return COMPILED if compiles and devices and all(device.backend == "jax" for device in devices) else name


def running(tb: TracebackType | None) -> Source | None:
    """The user's line of the innermost op that executors were at when an error was raised; None where none was."""
    line = None
    while tb is not None:
        for executor in _executors.values():
            node = executor.node_at(tb)
            if node is not None and node.stack:
                line = node.stack[0]
        tb = tb.tb_next
    return line
