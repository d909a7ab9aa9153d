"""The concrete function: one trace of a staged function, specialised to its key; an entry of the trace cache.

It holds what it captured: tensors strongly, as values, and variables weakly, since a trace refers to state that the
user's program owns. A variable that has been deleted is an error at the call, which says what to do.

`run_payloads` is the hot path: a call that took the shortcut of the cache runs the plan on arrays, with no tensor in
between. Everything else goes by `_run`, which under a tape, a tracer or on other devices makes one `call` op.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any

import numpy as np

from limelight.batching import Batched
from limelight.core import dispatch
from limelight.core.devices import CPU0, Device
from limelight.core.eager.interpreter import counted_call
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, as_tensor, wrap
from limelight.core.variable import Resource, itself
from limelight.errors import ArgumentError, DeadVariableError, DTypeError, ShapeError, SignatureError
from limelight.executors.base import Runnable
from limelight.graph.ir import Graph
from limelight.staging import explainer, partial_trace, structured_inputs
from limelight.staging.argument_changes import ArgumentChange
from limelight.staging.array_changes import ArrayChange
from limelight.staging.call_gradient import call
from limelight.staging.deferred import Deferred
from limelight.staging.direct_call import Direct, direct_call
from limelight.staging.graph_function import GraphFunction
from limelight.staging.guards import HITS
from limelight.staging.key import Key
from limelight.staging.key_parts import VariablePart
from limelight.staging.structured_outputs import Outputs
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code import tracebacks


class ConcreteFunction:
    """A graph function with what it captured: one entry of a trace cache, and callable by itself.

    Calling it with tensors (in the order of the traced leaves that are tensors or variables) runs the graph; nothing
    is ever traced again. It may also be called as its Python function is, or by flat names (`pair_0` for `pair[0]`);
    plain values that it was traced for may then be left out, and must be the same otherwise.

    Args:
        function: the traced graph, with the means to run it.
        captures: what the graph's last inputs stand for.
        outputs: how the results are put together.
        key: what it was traced for.
        paths: how the user's code reaches each leaf of the arguments.
        where: the call that made this trace, for messages.
    """

    __limelight_leaf__ = True

    def __init__(
        self,
        function: GraphFunction,
        captures: Sequence[Any],
        outputs: Outputs,
        key: Key,
        paths: Sequence[str],
        where: str,
    ) -> None:
        self.function = function
        self.name = function.name
        self.key = key
        self.paths = tuple(paths)
        self.where = where
        self.miss: Any = None  # the full record behind `reason`
        self.origin = "first call"  # the reason where there is no such record
        self.counter = [0]  # of hits; the history of the function keeps it when the entry has gone
        self.fingerprint: Any = None  # a digest of the key, kept by `explain.retracing.closest_trace`
        self.python_signature: Any = None  # the `Signature` of its Python function
        self.baked: Any = {}  # a snapshot of what its Python code read besides the arguments, see `explainer`
        self.lost_changes: tuple[ArgumentChange, ...] = ()
        self.tells_apart = 0  # of what its Python code may ask whether it is one and the same, see `sharing`
        self.same_leaves: Mapping[int, int] = {}  # leaves of the arguments that are an earlier one to it, see `sharing`
        self.host_draws: Any = ()  # random numbers of NumPy and Python that its code has drawn while tracing
        self.array_changes: tuple[ArrayChange, ...] = ()  # arguments that it changes in place, where they are arrays
        self.closed_over: frozenset[int] = frozenset()  # uids of the variables that its Python code closes over
        self.gain = ""  # what `explain.gain` has measured: "6.9 times as fast as plan"
        self.index = 0
        self.serves_once = ""  # why it serves the call that it was made for alone, and the next one makes another
        self.trace_seconds = 0.0
        self.serial = next(partial_trace.serials)  # the newer of two has the greater one
        self._outputs = outputs
        self._rebuild: Callable[[Sequence[Any]], Any] | None = None  # made by `_rebuilder`
        self._captures = [weakref.ref(x) if isinstance(x, Resource) else _strong(x) for x in captures]
        self._capture_names = [getattr(x, "name", None) for x in captures]
        self._capture_uids = [x._uid if isinstance(x, Resource) else 0 for x in captures]
        self._python_function: Any = None  # a weak reference
        self._renewable: list[weakref.ref[Any]] = []
        self._first: ConcreteFunction | None = None
        self._tensor_leaves = [i for i, part in enumerate(key.parts) if part.is_input]

    @property
    def reason(self) -> str:
        """Why it was made, in a sentence, which is written when somebody asks: of most traces nobody does."""
        return self.origin if self.miss is None else str(self.miss)

    def keep(self, captures: Sequence[Any]) -> None:
        """Keeps its variables alive: those of a trace from a file have no other owner."""
        self._kept = tuple(captures)

    def with_captures(self, captures: Sequence[Any]) -> ConcreteFunction:
        """The same trace with other captures of the same types, which it keeps alive."""
        trace = ConcreteFunction(self.function, captures, self._outputs, self.key, self.paths, self.where)
        trace.python_signature, trace.origin = self.python_signature, self.reason
        trace.keep(captures)
        return trace

    def result_of(self, tensors: Sequence[Any]) -> Any:
        """The result with `tensors`, or what stands for them, at its leaves."""
        return self._outputs.rebuild(tensors)

    def traced_from(self, function: Any, signature: Any, snapshot: Any) -> None:
        """Notes the Python function, its signature, and what its code read besides the arguments."""
        self.python_signature, self.baked = signature, snapshot
        with contextlib.suppress(TypeError):
            self._python_function = weakref.ref(function)

    def begin_with(self, first: ConcreteFunction) -> ConcreteFunction:
        """Has the first run done by another trace for the same call, in which state was created between draws."""
        alike = [x.spec for x in first.graph.outputs] == [x.spec for x in self.graph.outputs]
        self._first = first if alike else None
        return self

    # For people

    @property
    def hits(self) -> int:
        """How many calls found this trace in the cache."""
        return self.counter[0]

    @property
    def n_inputs(self) -> int:
        """How many leaves of the arguments are inputs of the graph."""
        return len(self._tensor_leaves)

    @property
    def tier(self) -> str:
        """The name of the executor that runs it."""
        return self.function.tier

    @property
    def tier_reason(self) -> str:
        """Why it is not the executor that was asked for, with the user's lines; empty where it is."""
        return self.function.tier_reason

    @property
    def tier_progress(self) -> str:
        """How far it is on the way to be compiled: "compiling…", "compiled: 2.1 times as fast", "kept on plan: …"."""
        return self.function.tier_progress

    @property
    def graph(self) -> Graph:
        """The graph as traced."""
        return self.function.graph

    @property
    def optimised(self) -> Graph:
        """The graph after all passes."""
        return self.function.optimised.graph

    @property
    def signature(self) -> str:
        """The abstract arguments on one line: "x: f32[32,784], training: True"."""
        return self.key.describe(self.paths)

    @property
    def full_signature(self) -> str:
        """The same on several lines, with the kinds of parameters, the types of the results, and the captures."""
        signature = self.python_signature
        return self.signature if signature is None else structured_inputs.full_signature(self, signature)

    @property
    def returns(self) -> str:
        """What a call returns, with types for tensors: '(f32[], {"loss": f32[3]})'."""
        return self._outputs.describe([value.spec for value in self.graph.outputs])

    @property
    def output_paths(self) -> list[str]:
        """How each output of the graph is reached from the result, '["loss"]'; none where the result is a tensor."""
        return [] if self._outputs.bare else self._outputs.paths("")

    @property
    def device(self) -> str | None:
        """The device asked for by the scope around the call, None when there was none."""
        return None if self.key.device is None else self.key.device.short

    @property
    def input_devices(self) -> list[Device]:
        """The devices of the graph's inputs: of the arguments that it was traced for, and of what it captured."""
        parts: list[Any] = [self.key.parts[i] for i in self._tensor_leaves]
        homes = [CPU0 if _is_anywhere(part) else part.device for part in parts]
        return homes + [CPU0 if x is None or _is_anywhere(x) else x._device for x in self.captures]

    @property
    def captures(self) -> tuple[Any, ...]:
        """The tensors and variables closed over; None for a variable that has been deleted."""
        return tuple(get() for get in self._captures)

    @property
    def stale(self) -> bool:
        """Whether another trace is to take its place: it serves once, or captured what has ended.

        That is a tensor of a trace or vectorised call, or a variable where `renew_without` has been called.
        """
        return bool(self.serves_once) or any(
            (isinstance(x, SymbolicTensor) and x._tracer.finished)
            or (isinstance(x, Batched) and x._batcher.finished)
            or (x is None and self._renewable)
            for x in self.captures
        )

    @property
    def deleted(self) -> list[Any]:
        """The names of the variables that it captured, and that have been deleted."""
        return [name for name, get in zip(self._capture_names, self._captures, strict=True) if get() is None]

    def renew_without(self, clear_shortcuts: Callable[[], None]) -> None:
        """Has another trace made, rather than an error, once a variable that it captured has been deleted.

        Args:
            clear_shortcuts: a method, held weakly, which is then called: shortcuts do not ask whether a trace is stale.
        """
        clear = weakref.WeakMethod(clear_shortcuts)

        # `is_finalizing` as an argument: a module's globals are gone by the time that the last weak references die.
        def forget(_: object, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
            method = clear()
            if method is not None and not is_finalizing():
                method()

        self._renewable = [weakref.ref(x, forget) for x in self.captures if isinstance(x, Resource)]

    @property
    def nbytes(self) -> int:
        """Bytes of literals and captured tensors that this entry keeps alive."""
        literals = sum(node.params[0].array.nbytes for node in self.graph.nodes if node.op == "constant")
        return int(literals + sum(x.nbytes for x in self.captures if isinstance(x, Tensor)))

    def __repr__(self) -> str:
        return f"<{self.name}({self.signature}): {len(self.graph.nodes)} nodes, {self.hits} hits>"

    # Calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            signature = self.python_signature
            if structured_inputs.is_structured(signature, args, kwargs, len(self.graph.arguments)):
                return self._call_tensors(structured_inputs.tensors_of(signature, self.key, self.paths, args, kwargs))
            return self._call_tensors(args)
        except Exception as error:
            tracebacks.trim(error)
            raise

    def _call_tensors(self, tensors: Sequence[Any]) -> Any:
        """Checks `tensors` against the arguments of the graph, and runs it."""
        expected = self.graph.arguments
        if len(tensors) != len(expected):
            count = f"{len(expected)} tensor{'s' if len(expected) != 1 else ''}"
            raise SignatureError(f"{self.name} takes {count} ({self.signature}), got {len(tensors)}")
        wanted = [value.spec for value in expected]
        named = zip(tensors, wanted, self.graph.input_names, strict=False)
        inputs = [self._as_input(x, spec, name) if isinstance(spec, TensorSpec) else x for x, spec, name in named]
        for x, spec, name in zip(inputs, wanted, self.graph.input_names, strict=False):
            given = getattr(x, "spec", type(x).__name__)
            fits = (
                isinstance(given, TensorSpec) and spec.accepts(given) if isinstance(spec, TensorSpec) else spec == given
            )
            if not fits:
                raise SignatureError(f"{self.name}: argument `{name}` must be {spec}, got {given}")
        self._check_aliases(inputs)
        self._check_same(tensors)
        return self._run(inputs)

    def _as_input(self, x: Any, spec: TensorSpec, name: str) -> Tensor:
        try:
            return as_tensor(x)
        except (DTypeError, ShapeError) as error:
            raise SignatureError(
                f"{self.name}: argument `{name}` must be {spec}, got {type(x).__name__}: {error.bare}"
            ) from None

    def __deepcopy__(self, memo: dict[int, Any]) -> ConcreteFunction:
        return self  # it never changes

    def __reduce__(self) -> Any:
        raise ArgumentError(
            f"{self!r} is a trace, which belongs to this process and cannot be pickled; pickle the staged function, "
            "which goes by reference to its Python function and traces anew"
        )

    def _check_aliases(self, inputs: list[Any]) -> None:
        """Which variables are one and the same is part of a trace: another pattern needs another one."""
        seen: dict[int, int] = {}
        captured = {x._uid for x in self.captures if isinstance(x, Resource)}
        for x, part in zip(inputs, [self.key.parts[i] for i in self._tensor_leaves], strict=True):
            if not isinstance(part, VariablePart):
                continue
            number = seen.setdefault(x._uid, len(seen))
            identity = part.identity
            if (
                number != part.alias
                or (identity is not None and identity.target() is not itself(x))
                or (not identity and x._uid in captured)
            ):
                raise SignatureError(
                    f"{self.name} was traced for variables that are the same, or are closed over, in another pattern "
                    f"({self.signature}); call the staged function itself, which traces for each pattern"
                )

    def _check_same(self, tensors: Sequence[Any]) -> None:
        """What was one and the same where it was traced, it reads at one place."""
        inputs = {leaf: i for i, leaf in enumerate(self._tensor_leaves)}
        for again, first in self.same_leaves.items():
            if again not in inputs:
                continue
            x, y = tensors[inputs[again]], tensors[inputs[first]]
            if x is not y and (isinstance(x, Tensor) or isinstance(y, Tensor) or not np.array_equal(x, y)):
                raise SignatureError(
                    f"{self.name} was traced for a call in which {self.key.shared}, and reads one of them; call the "
                    "staged function itself, which traces for each pattern"
                )

    def call_leaves(self, leaves: list[Any]) -> Any:
        """Runs the graph on the leaves of a call whose key led here."""
        if self._first is not None:
            first, self._first = self._first, None
            return first.call_leaves(leaves)
        return self._run([leaves[i] for i in self._tensor_leaves])

    def run_payloads(self, payloads: list[Any]) -> Any:
        """The same for the payloads of tensors on CPU:0, while nothing is active; see `runs_payloads`. The hot path."""
        if self._captures:
            payloads += [x._data for x in self._captured()]
        run = self.function.run if self._home is CPU0 else self._run_elsewhere
        results = run(*payloads)
        if self._outputs.bare:
            return wrap(results[0], run.output_devices[0])
        rebuild = self._rebuild or self._rebuilder()
        return rebuild(list(map(wrap, results, run.output_devices)))

    def _rebuilder(self) -> Callable[[Sequence[Any]], Any]:
        """What puts results together; code of its own from as many hits on as a guard is worth."""
        if self.counter[0] < HITS:
            return self._outputs.rebuild
        self._rebuild = self._outputs.compiled(self.name)
        return self._rebuild

    def run_counted(self, payloads: list[Any]) -> Any:
        """The same while views count what runs, and nothing else is active: one record of the call, no event."""
        if self._captures:
            payloads += [x._data for x in self._captured()]
        run = self.function.run if self._home is CPU0 else self._run_elsewhere
        start = time.perf_counter()
        results = run(*payloads)
        outputs = list(map(wrap, results, run.output_devices))
        counted_call(outputs, run.output_devices, time.perf_counter() - start, run.memory())
        return outputs[0] if self._outputs.bare else self._outputs.rebuild(outputs)

    def runs_payloads(self, count: int) -> bool:
        """Whether `run_payloads` will do for any call with so many payloads that leads here, now and later."""
        without_payload = (SymbolicTensor, Batched, Deferred)
        plain = all(x is not None and not isinstance(x, without_payload) for x in self.captures)
        return (
            not self.serves_once and plain and self._home is not None and count == len(self._tensor_leaves)
        )  # others were made of defaults, or of numbers

    def direct_call(self, args: tuple[Any, ...]) -> Direct | None:
        """What makes such calls as one with these arguments; None where a call is more than a compiled program's.

        It is asked only where `runs_payloads`.
        """
        home = self._home
        if home is None or self._first is not None or not self._outputs.bare:
            return None
        run = self.function.run if home is CPU0 else self._run_elsewhere
        return direct_call(args, self._captures, home, run, self.counter, self.name)

    @functools.cached_property
    def _home(self) -> Device | None:
        """CPU:0 or a device of XLA, where all its inputs are there; a generator is nowhere. None for any others."""
        parts: list[Any] = [self.key.parts[i] for i in self._tensor_leaves]
        homes = {part.device for part in parts if not _is_anywhere(part)}
        homes |= {x._device for x in self.captures if x is not None and not _is_anywhere(x)}
        home = homes.pop() if homes else CPU0
        return home if not homes and (home is CPU0 or home.backend == "jax") else None

    @functools.cached_property
    def _run_elsewhere(self) -> Runnable:
        """What runs it on its device, where that is not CPU:0."""
        home = self._home
        assert home is not None, "asked for by calls for which `runs_payloads`"
        return self.function.placed_on([CPU0 if _is_anywhere(value) else home for value in self.graph.inputs]).run

    def _captured(self) -> list[Any]:
        """What it closed over; raises DeadVariableError for a variable that has been deleted."""
        captured = []
        for i, get in enumerate(self._captures):
            x = get()
            if x is None:
                raise DeadVariableError(
                    f"{self.name} uses the variable {self._capture_names[i]!r}, which has been deleted{self._remedy(i)}"
                )
            captured.append(x.now() if type(x) is Deferred else x)
        return captured

    @property
    def _clearing(self) -> str:
        return f"{self.name}.clear_cache()" if self.name.isidentifier() else "clear_cache() of the staged function"

    def _remedy(self, i: int) -> str:
        """What to do about the i-th capture, a variable that has been deleted."""
        function = None if self._python_function is None else self._python_function()
        name = explainer.current().rebound_name(function, self, self._capture_uids[i])
        if not name:
            return (
                "; keep a reference to it as long as the function is called (an attribute of a module will do), or "
                f"call {self._clearing}, so that the next call traces with what is there now"
            )
        return (
            f": the name `{name}` has been rebound to another variable. Call {self._clearing}, so that the next call "
            f"traces with that one; or keep the first one and write `{name}.assign(...)`"
        )

    def _run(self, inputs: list[Any]) -> Any:
        inputs += self._captured()
        if not dispatch.active and all([x._device is CPU0 for x in inputs]):  # noqa: C419  # a list is quicker
            run = self.function.run
            results = run(*[x._data for x in inputs])
            return self._outputs.rebuild(list(map(wrap, results, run.output_devices)))
        if not dispatch.active and self._home is not None and self._home is not CPU0:
            return self.run_payloads([x._data for x in inputs[: len(inputs) - len(self._captures)]])
        return self._outputs.rebuild(dispatch.apply(call, tuple(inputs), (self.function,)))


def _is_anywhere(x: Any) -> bool:
    """Whether that is a generator, or the type of one."""
    return getattr(getattr(x, "spec", None), "anywhere", False)


def is_capture(x: object) -> bool:
    """Whether `x` is what keeps a tensor that a trace has captured."""
    return isinstance(x, MethodType) and x.__func__ is _itself


def _strong(x: Any) -> Any:
    return MethodType(_itself, x)


def _itself(x: Any) -> Any:
    return x
