"""The tracer: an interpreter that writes a graph instead of computing (paper sections 4.1 and 4.6).

On the stack of interpreters it receives each op of the traced code and appends a node to the graph, with the user's
line, the device asked for, the name scope, and explicit edges that keep effects in program order. Its results are
symbolic values (`symbolic`). What the code uses from outside becomes a captured input, tensors however small, as in the
paper, so that a trace holds no copy of a value that lives elsewhere; Python numbers become literals.

Sizes are followed while tracing: `graph.known_sizes` tells what is known of a vector of sizes, so that one unknown size
does not make the others unknown. A staged function begins without a name scope, since its graph has many callers.

`replay` is the way back: it runs the nodes of a graph through the interpreters, which differentiates or batches them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import inf
from typing import Any, Final, Self

import numpy as np

from limelight.core import device_scopes, dispatch, dtypes, name_scopes
from limelight.core.collector import collector_paused
from limelight.core.devices import CPU0, Device
from limelight.core.module_calls import ModuleCalls
from limelight.core.op import Op
from limelight.core.recursion_limit import Level
from limelight.core.saved_scopes import SavedScopes
from limelight.core.spec import Spec, TensorSpec, VariableSpec, known
from limelight.core.tensor import new_uid
from limelight.core.variable import Resource, itself, stand_in
from limelight.errors import SymbolicValueError
from limelight.executors.device_inference import DeviceInference, home_of_body
from limelight.graph import known_sizes
from limelight.graph.effects import EffectOrder
from limelight.graph.ir import Graph, Literal, Node, Value, node_with_one_output
from limelight.ops.create.literal import constant_op
from limelight.staging import partial_trace
from limelight.staging.key_parts import Part, TensorPart, VariablePart
from limelight.staging.repeated_rules import Fragment, fragment_of
from limelight.staging.symbolic import SymbolicObject, SymbolicTensor, SymbolicVariable, no_value_error
from limelight.user_code import call_notes, hints, source_line

_SCALARS: Final = (bool, int, float, complex)
_MANY: Final = 1000
_blank: Final[Any] = object.__new__


class Tracer(dispatch.Interpreter):
    """Writes the ops of its block into a graph. What they use from outside becomes a captured input.

    Use as a context manager; `finish(outputs)` makes the graph. After the block its symbolic tensors are dead: any use
    of them raises LeakedTensorError.

    Args:
        name: that of the graph, and of the function in messages.
        owner: the id of the staged function that is traced; 0 for that of the trace around.
        scope: the name scope in which the block begins.
        calls: the module calls in which it begins, those of the trace around; none by default.
        calls_before: how many calls of the staged function have gone well before this one.
    """

    makes_handles = True
    optional = False
    """Whether it is the trace of a branch, which a run of the graph may pass by."""
    repeated = False
    """Whether it is the trace of the body of a loop, which may have no round."""

    def __init__(
        self, name: str, owner: int = 0, scope: str = "", calls: ModuleCalls | None = None, calls_before: int = 0
    ) -> None:
        self.name = name
        self.words = repr(name)  # for messages: "'body' of 'train'"
        self.owner = owner
        self.calls_before = calls_before
        self.finished = False
        self.begun: source_line.Source | None = None
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.input_names: list[str] = []
        self.captured: dict[int, tuple[Any, Value]] = {}  # by uid: what is captured, and the input that stands for it
        self.scope: str = scope
        self.calls: ModuleCalls = calls or ModuleCalls()
        self.perhaps: set[int] = set()  # uids of what is captured, and used in some branches only
        self.made: list[Any] = []  # the variables that it has made, if it is a branch or a body (`branch_state`)
        self.closed_over: set[int] = set()  # uids of variables that are arguments, and are closed over as well
        self.changed_in_place: list[tuple[Value, source_line.Source | None]] = []  # by `x += y`; new tensors, here
        self._values: dict[int, tuple[Value, Resource]] = {}  # of variables that are arguments, by uid: as what
        self._literals: dict[tuple[Any, ...], Value] = {}
        self._fragments: dict[tuple[Any, ...], Fragment | None] = {}  # None: met once
        self._specs: dict[tuple[Any, ...], TensorSpec] = {}
        self.given: Sequence[Any] = ()  # what a body gets at first, whose devices say where it runs
        self._homes: dict[Value, Device] = {}  # of arguments that are elsewhere than on CPU:0
        self._inference: tuple[DeviceInference, list[Node]] | None = None  # and the nodes that it has taken in
        self._order = EffectOrder()
        self._walker = source_line.Walker()
        self._thread = threading.get_ident()
        self._elsewhere: list[Exception] = []  # what code in other threads was refused
        self._around: SavedScopes | None = None  # only within the block: settings may lead back here

    def __enter__(self) -> Self:
        dispatch.heal()
        if self.owner:
            partial_trace.begun(self)
        else:
            self.owner = next((x.owner for x in reversed(dispatch.local.stack) if isinstance(x, Tracer)), 0)
        self.begun = source_line.user_line()
        self._around = SavedScopes()
        self._level = Level(outermost=not any(isinstance(x, Tracer) for stack in dispatch.local.stacks for x in stack))
        dispatch.put(self, sys._getframe(1))
        return self

    def __exit__(self, kind: object, error: BaseException | None, tb: object) -> None:
        partial_trace.ended(self, error)
        try:
            self._leave()
        except KeyboardInterrupt:  # in the middle of it: once more
            self._leave()
            raise
        if error is None and self._elsewhere:
            del self._elsewhere[1:]
            raise self._elsewhere.pop()  # which nothing here holds: its traceback holds this trace
        if isinstance(error, TypeError):
            call_notes.note_call(error)
            if self._has_unknown_sizes():
                hints.note_sizes(error)
        elif type(error) is ValueError:
            if isinstance(error.__cause__, SymbolicValueError):
                raise error.__cause__ from None  # NumPy has put "setting an array element with a sequence" in its place
            call_notes.note_call(error)

    def _has_unknown_sizes(self) -> bool:
        values = [*self.inputs, *[value for node in self.nodes for value in node.outputs]]
        return any(None in getattr(value.spec, "shape", ()) for value in values)

    def _leave(self) -> None:
        """Ends the trace, and the scopes of generators that are suspended in it. May be called again."""
        self.finished = True
        self._fragments, self._inference, self.given = {}, None, ()
        self._walker.forget()
        if self._around is not None:
            self._around.restore()
            self._level.close()
            self._around = None  # last: an interrupt before it has all of this done again

    def note_elsewhere(self, error: Exception) -> None:
        """Takes note of what is refused out of its scope: in another thread, where nobody may see it."""
        if threading.get_ident() != self._thread:
            self._elsewhere.append(error)

    def abandon(self) -> None:
        """Ends the trace late: whatever has been entered since has a block of its own."""
        self.finished = True
        self._fragments, self._inference, self.given = {}, None, ()
        self._walker.forget()
        dispatch.remove(self)
        self._level.close()
        self._around = None

    # Inputs

    def add_input(self, spec: Spec, name: str = "") -> Any:
        """A new argument: a symbolic tensor, variable or object."""
        value = Value(self._one_for_all(spec))
        self.inputs.append(value)
        self.input_names.append(name or f"arg{len(self.inputs) - 1}")
        if isinstance(spec, VariableSpec):
            stand_in = SymbolicVariable(spec)
            self._values[stand_in._uid] = value, stand_in
            return stand_in
        return self._handle(value)

    def add_argument(self, leaf: Any, part: Part, path: str, seen: dict[int, Resource]) -> Any:
        """What the Python function sees in place of one leaf of a call's arguments; an input, unless it is keyed as is.

        Args:
            leaf: the argument, or a part of it.
            part: how it is keyed.
            path: how the user's code reaches it, for messages: 'batch["x"]'.
            seen: what stands for the variables so far, by uid; one is added.
        """
        if isinstance(part, TensorPart):
            symbolic = self.add_input(TensorSpec(part.shape, part.dtype), path)
            if part.device is not CPU0:
                self._homes[symbolic._value] = part.device
            return symbolic
        if isinstance(part, VariablePart) and isinstance(leaf, Resource):
            if leaf._uid in seen:
                self.add_input(leaf.spec, path)  # the same variable again: the graph has one input for each leaf
            else:
                seen[leaf._uid] = itself(leaf) if part.identity else stand_in(leaf, self.closed_over)
                self.bind_variable(seen[leaf._uid], path)
            return seen[leaf._uid]
        return leaf

    def bind_variable(self, variable: Resource, name: str = "") -> None:
        """A new argument that stands for `variable` wherever the traced code uses it."""
        value = Value(variable.spec)
        self.inputs.append(value)
        self.input_names.append(name or f"arg{len(self.inputs) - 1}")
        self._values[variable._uid] = value, variable

    @property
    def captures(self) -> list[Any]:
        """The handles captured so far, in the order of the graph's last inputs."""
        return [handle for handle, _ in self.captured.values()]

    def name_of(self, value: Value) -> str:
        """The name of an argument; empty for any other value."""
        names = zip(self.inputs, self.input_names, strict=True)
        return next((name for known, name in names if known is value), "")

    # Devices

    def device_of(self, value: Value) -> Device:
        """Where a value of the graph will be when it runs for arguments as those of this trace: its key has devices."""
        return self.devices()(value)

    def devices(self) -> Callable[[Value], Device]:
        """`device_of` for many values, with the devices of the nodes so far inferred once."""
        inference, known = self._inference or (None, [])
        if inference is None or known != self.nodes[: len(known)]:  # none yet, or nodes have been dropped since
            inference, known = DeviceInference(self._home_of, self.name_of), []
        for node in self.nodes[len(known) :]:
            inference.note(node)
            known.append(node)
        self._inference = inference, known
        return lambda value: inference.of(value) or CPU0

    def _home_of(self, value: Value) -> Device:
        """Where an input of the graph is; those of a body go to the device on which it runs."""
        if value in self._homes:
            return self._homes[value]
        variables = [(variable, known) for known, variable in self._values.values()]
        held = [handle for handle, known in (*self.captured.values(), *variables) if known is value]
        if self.given and not (held and isinstance(held[0], Resource)):
            return self._home_of_body()
        place = getattr(held[0], "device", None) if held else None
        return place if isinstance(place, Device) else CPU0

    def _home_of_body(self) -> Device:
        return device_scopes.requested_device() or home_of_body([(x.spec, x.device) for x in self.given])

    # Ops

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        values, given = [], []
        for x in inputs:
            value = x._value if type(x) is SymbolicTensor and x._tracer is self else self.value_of(x, op, inputs)
            values.append(value)
            given.append(value.spec)
        stack = self._walker.stack(self.calls.now)
        spec = op.infer(*given, *attrs)
        if type(spec) is TensorSpec and not dispatch.scopes and op.effect is None and op.direct:
            dtype = spec.dtype
            if dtype.kind in "iu" and op.name in known_sizes.RULES:
                spec = known_sizes.with_content(op, given, attrs, spec)
            if type(spec) is TensorSpec:  # `_one_for_all`
                spec = self._specs.setdefault((spec.shape, dtype), spec)
            node = node_with_one_output(op, tuple(values), attrs, spec, stack, self.scope)
            self.nodes.append(node)
            symbolic = _blank(SymbolicTensor)
            symbolic._value = node.outputs[0]
            symbolic._tracer = self
            symbolic._device = CPU0
            symbolic._uid = 0
            return symbolic
        return self._unusual_node(op, values, attrs, spec, stack)

    def _one_for_all(self, spec: Spec) -> Spec:
        """A spec equal to `spec`, the same at each call: rules are repeated where they meet the same ones."""
        if isinstance(spec, TensorSpec) and type(spec) is TensorSpec and spec.name is None:
            return self._specs.setdefault((spec.shape, spec.dtype), spec)
        return spec

    def _unusual_node(
        self, op: Op, values: list[Value], attrs: tuple[Any, ...], inferred: Any, stack: tuple[source_line.Source, ...]
    ) -> Any:
        """Writes a node with an effect, several outputs, functions or a device."""
        specs = inferred if isinstance(inferred, tuple) else (inferred,)
        if op.name in known_sizes.RULES and isinstance(inferred, TensorSpec) and inferred.dtype.kind in "iu":
            specs = (known_sizes.with_content(op, [value.spec for value in values], attrs, specs[0]),)
        if len(specs) > _MANY:  # the forward half of a long function: each residual is an output
            with collector_paused():
                return self._write_unusual(op, values, attrs, specs, stack)
        return self._write_unusual(op, values, attrs, specs, stack)

    def _write_unusual(
        self, op: Op, values: list[Value], attrs: tuple[Any, ...], specs: Sequence[Spec], stack: tuple[Any, ...]
    ) -> Any:
        device = device_scopes.requested_device() if dispatch.scopes else None
        node = Node(op, tuple(values), attrs, specs, device=device, stack=stack, scope=self.scope)
        if op.effect is not None or op.higher_order:
            node.after = self._order.place(node)
        self.nodes.append(node)
        if not op.multiple:
            return self._handle(node.outputs[0])
        handles: list[Any] = []
        for value in node.outputs:  # `_handle`: of residuals there are many
            if type(value.spec) is TensorSpec:
                symbolic = _blank(SymbolicTensor)
                symbolic._value = value
                symbolic._tracer = self
                symbolic._device = CPU0
                symbolic._uid = 0
                handles.append(symbolic)
            else:
                handles.append(self._handle(value))
        return tuple(handles)

    def repeat(self, work: Any, how: Any, operands: tuple[Any, ...], entry: Any, stack: Any) -> Any:
        """Writes what `work` has written for operands of the same types; types and other objects are known by `id`."""
        if dispatch.scopes:
            return work(how, operands, entry)
        tensors, key = [], [how]
        for x in operands:
            if type(x) is SymbolicTensor and x._tracer is self:
                tensors.append(x)
                key.append(id(x._value.spec))
            else:
                key.append(id(x))
        types = tuple(key)
        fragment = self._fragments.get(types)
        if fragment is None:
            return self._first_run(types, tensors, work, how, operands, entry)
        if fragment.steps is None:
            return work(how, operands, entry)
        return fragment.write(tensors, self.nodes, stack, self.scope, self)

    def _first_run(
        self,
        types: tuple[Any, ...],
        tensors: list[SymbolicTensor],
        work: Any,
        how: Any,
        operands: tuple[Any, ...],
        entry: Any,
    ) -> Any:
        """Does it; where the types come for the second time, the nodes that it writes are kept."""
        n_nodes, known = len(self.nodes), types in self._fragments
        results = work(how, operands, entry)
        if not known:
            self._fragments[types] = None  # an `id` that is given away again brings the second time early, no harm
        elif len({id(x._value) for x in tensors}) == len(tensors):
            self._fragments[types] = fragment_of(tensors, operands, self.nodes[n_nodes:], results)
        return results

    def value_of(self, x: Any, op: Op | None = None, beside: Sequence[Any] = ()) -> Value:
        """The value in this graph that stands for `x`: its own, a literal, or a capture."""
        if type(x) in _SCALARS:
            return self._literal(x, op, beside)
        if isinstance(x, (SymbolicTensor, SymbolicObject)) and x._tracer is self:
            return x._value
        if isinstance(x, Resource):
            known = self._values.get(x._uid)
            if known is None:
                return self._capture(x, x.spec)
            if known[1] is not x:
                self.closed_over.add(x._uid)
            return known[0]
        if isinstance(x, SymbolicTensor) and (x._tracer.finished or x._tracer not in dispatch.stack()):
            raise no_value_error(x)
        return self._capture(x._as_own() if isinstance(x, SymbolicTensor) else x, x.spec)  # an array's numbers of now

    def constant(self, array: Any, device: Any) -> SymbolicTensor:
        symbolic: SymbolicTensor = self._handle(self._constant_node(array, device))
        return symbolic

    def _constant_node(self, array: Any, device: Any = None) -> Value:
        literal = Literal(array)
        spec = known_sizes.with_content(constant_op, (), (literal,), known(array.shape, dtypes.dtype(array.dtype)))
        stack, scope = self._walker.stack(self.calls.now), self.scope
        specs = (self._one_for_all(spec),)
        node = Node(constant_op, (), (literal,), specs, device=device, stack=stack, scope=scope)
        self.nodes.append(node)
        return node.outputs[0]

    def finish(self, outputs: Sequence[Any]) -> Graph:
        """The graph that computes `outputs` (tensors, numbers or opaque values) from the inputs and captures."""
        results = [self.value_of(x) for x in outputs]
        captures = [value for _, value in self.captured.values()]
        return Graph(
            self.name,
            [*self.inputs, *captures],
            self.nodes,
            results,
            input_names=[*self.input_names, *self.capture_names()],
            n_captures=len(captures),
        )

    def capture_names(self) -> list[str]:
        """The names of the captures so far."""
        return [self._capture_name(handle, i) for i, handle in enumerate(self.captures)]

    def _capture_name(self, handle: Any, index: int) -> str:
        """A variable's path from the module that was called, else its own name."""
        if not isinstance(handle, Resource):
            return f"capture{index}"
        name = self.calls.path_of(handle) or getattr(handle, "name", None)
        return name if isinstance(name, str) else f"capture{index}"

    def discard_nodes(self, at: int) -> bool:
        """Drops the nodes from `at` on, unless one of them has an effect, or calls a function; whether it did.

        What they read stays captured. For code that is traced only to learn the types of its results.
        """
        dropped = self.nodes[at:]
        if any(node.op.effect is not None or node.op.higher_order for node in dropped):
            return False
        gone = {value for node in dropped for value in node.outputs}
        self._literals = {key: value for key, value in self._literals.items() if value not in gone}
        self._fragments = {}
        del self.nodes[at:]
        return True

    def _handle(self, value: Value) -> Any:
        if not isinstance(value.spec, TensorSpec):
            return SymbolicObject(value, self)
        symbolic = _blank(SymbolicTensor)
        symbolic._value = value
        symbolic._tracer = self
        symbolic._device = CPU0
        symbolic._uid = 0
        return symbolic

    def _capture(self, x: Any, spec: Spec) -> Value:
        if not x._uid:
            x._uid = new_uid()
        known = self.captured.get(x._uid)
        if known is None or (known[0] is not x and isinstance(x, Resource)):
            _note_closed_over(x)
        if known is None:
            known = self.captured[x._uid] = (x, Value(self._one_for_all(spec)))
        return known[1]

    def stands_for(self, generator: Resource, value: Value) -> None:
        """Has `generator`, which staged code splits off, be `value` in this trace."""
        self._values[generator._uid] = value, generator

    def captured_as(self, x: Any) -> Any:
        """What stands for `x`, which is from outside, in the code that is traced."""
        return self._handle(self._capture(x, x.spec))

    def _literal(self, scalar: Any, op: Op | None, beside: Sequence[Any]) -> Value:
        dtype = None
        for x in _same_dtype_operands(op, beside):
            if type(x) not in _SCALARS:
                dtype = x.dtype
                break
        dtype = dtype or dtypes.default_for(scalar)
        plain = 0 < abs(scalar) < inf if type(scalar) is float else type(scalar) is not complex
        key = (type(scalar), scalar if plain else repr(scalar), dtype)  # zeros differ in sign, NaN equals nothing
        value = self._literals.get(key)
        if value is None:
            value = self._literals[key] = self._constant_node(np.asarray(scalar, dtype=dtype))
        return value


def _note_closed_over(x: Any) -> None:
    """Tells the trace around whose argument `x` is, if it is one, where that has another object for it.

    A branch or a body captures one object for a variable, and may be what mentions the other.
    """
    for tracer in reversed(dispatch.stack()):
        if isinstance(tracer, Tracer) and x._uid in tracer._values:
            if tracer._values[x._uid][1] is not x:
                tracer.closed_over.add(x._uid)
            return


def _same_dtype_operands(op: Op | None, inputs: Sequence[Any]) -> Sequence[Any]:
    """The operands whose dtype a scalar among them takes on."""
    if op is None or op.variadic or op.uniform:
        return inputs
    return [x for x, operand in zip(inputs, op.operands, strict=True) if operand.accepts is None]


def _at(node: Node) -> AbstractContextManager[object]:
    """The device scope in which `node` was made."""
    return nullcontext() if node.device is None else device_scopes.device(node.device)


def _scope_of(node: Node) -> AbstractContextManager[object]:
    """The name scope in which `node` was made, if there are any such."""
    return name_scopes.scope_of_nodes(node.scope) if name_scopes.named_scopes else nullcontext()


def replay(graph: Graph, inputs: Sequence[Any], apply: Callable[..., Any] = dispatch.apply) -> list[Any]:
    """Runs the nodes of `graph` through this thread's interpreters, at their own source lines; returns its outputs."""
    handles: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    with source_line.pretend(()) as line:
        for node in graph.nodes:
            line.stack = node.stack
            operands = tuple([handles[value] for value in node.inputs])
            if node.device is None and not name_scopes.named_scopes:
                result = apply(node.op, operands, node.params)
            else:
                with _at(node), _scope_of(node):
                    result = apply(node.op, operands, node.params)
            if node.op.multiple:
                handles.update(zip(node.outputs, result, strict=True))
            else:
                handles[node.outputs[0]] = result
    return [handles[value] for value in graph.outputs]
