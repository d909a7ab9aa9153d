"""Tracing: an interpreter that writes a graph instead of computing (paper sections 4.1 and 4.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np

from limelight.core import dispatch, dtypes, shapes
from limelight.core.devices import CPU0
from limelight.core.dtypes import DType
from limelight.core.op import Op, get
from limelight.core.recursion_limit import Level
from limelight.core.saved_scopes import Surroundings
from limelight.core.spec import Spec, TensorSpec, VariableSpec, known
from limelight.core.tensor import Tensor, new_uid
from limelight.core.variable import Resource
from limelight.errors import LeakedTensorError, LimelightError, SymbolicValueError
from limelight.graph import known_sizes
from limelight.graph.effects import EffectOrder
from limelight.graph.ir import Graph, Literal, Node, Value
from limelight.ops.create.literal import constant_op
from limelight.user_code import hints, holders, source_line

_SCALARS: Final = (bool, int, float, complex)


class SymbolicTensor(Tensor):
    """A tensor that will have a value when the graph runs. Shape and dtype are known now, sizes perhaps not."""

    __slots__ = ("_tracer", "_value")
    _tracer: Tracer
    _value: Value

    @property
    def _data(self) -> Any:  # stands where a tensor keeps its array, and explains
        raise _no_value(self)

    @property
    def spec(self) -> TensorSpec:
        spec = self._value.spec
        assert isinstance(spec, TensorSpec)
        return spec

    @property
    def dtype(self) -> DType:
        found: DType = self._value.spec.dtype  # type: ignore[union-attr]  # a TensorSpec, asked for at every operand
        return found

    @property
    def shape(self) -> shapes.Shape:
        found: shapes.Shape = self._value.spec.shape  # type: ignore[union-attr]  # the same
        return found

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.spec.nbytes or 0

    @property
    def name(self) -> str:
        """What to call it in a message: the op that makes it, or the argument that it is."""
        node = self._value.node
        return f"the result of {node.op}" if node else f"the argument `{self._tracer.name_of(self._value)}`"

    @property
    def line(self) -> source_line.Source | None:
        """The user's line that made it; of an argument that at which the trace began."""
        node = self._value.node
        return node.stack[0] if node and node.stack else None if node else self._tracer.begun

    def sizes(self) -> Any:
        return self.shape if shapes.is_static(self.shape) else dispatch.apply(get("shape_of"), (self,))

    def numpy(self) -> np.ndarray[Any, Any]:
        raise _no_value(self, ".numpy()")

    def item(self) -> Any:
        raise _no_value(self, ".item()")

    def tolist(self) -> Any:
        raise _no_value(self, ".tolist()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise _no_value(self, "conversion to a NumPy array")

    def __bool__(self) -> bool:
        raise _no_value(self, "bool() (as in `if`, `while`, `and`, `or`, `not`)")

    def __int__(self) -> int:
        raise _no_value(self, "int()")

    def __float__(self) -> float:
        raise _no_value(self, "float()")

    def __complex__(self) -> complex:
        raise _no_value(self, "complex()")

    def __index__(self) -> int:
        raise _no_value(self, "use as a Python index")

    def __format__(self, form: str) -> str:
        if form:
            raise _no_value(self, f"format(..., {form!r})")
        return repr(self)

    def __repr__(self) -> str:
        made = self._value.node.stack[:1] if self._value.node else ()
        where = f", made at {made[0]}" if made else ""
        return f"<symbolic {self.spec}: {self.name} in {self._tracer.name}{where}>"


def _no_value(x: SymbolicTensor, asked: str = "the value") -> LimelightError:
    """The error for asking a symbolic tensor for data: it leaked out of its trace, or the trace is still going on."""
    here = source_line.here()
    made = source_line.at(x.line if x._value.node or x._tracer.finished else None)
    made = made if made != here or x._tracer.finished else ""
    if x._tracer.finished:
        holder = holders.first_holder(x)
        held = "" if holder is None else f" It is kept as {holder}."
        return LeakedTensorError(
            f"a symbolic tensor leaked out of the function {x._tracer.words}, whose trace has ended: "
            f"{x.name}, {x.spec}{made}. It has no value outside{here}.{held} Return it from the "
            "function instead of storing it in a global, list or attribute; to keep a value between calls use "
            "ll.Variable"
        )
    if x._tracer not in dispatch.stack():
        return SymbolicValueError(
            f"a symbolic tensor is out of scope{here}: {x.name}, {x.spec}{made} belongs to the trace of "
            f"{x._tracer.words}, which this code has left (ll.init_scope does, and so do other threads and the "
            "function given to ll.py_func). Compute it from values that exist now, or move it into the traced code"
        )
    return SymbolicValueError(
        f"{asked} of a symbolic tensor{here}: {x.name}, {x.spec}{made} has a value only when the graph of "
        f"{x._tracer.words} runs, not while it is traced. {hints.without_value(asked)}"
    )


class SymbolicVariable(Resource):
    """Stands for a variable while a graph is rebuilt from another one."""

    __slots__ = ()

    def __init__(self, spec: VariableSpec) -> None:
        self.spec = spec
        self._uid = new_uid()
        self._device = CPU0
        self._data = None

    def __as_tensor__(self) -> Tensor:
        value: Tensor = dispatch.apply(get("read_variable"), (self,))
        return value


class SymbolicObject:
    """Stands for an opaque value that flows between ops of a graph."""

    __slots__ = ("_tracer", "_uid", "_value", "dtype", "shape", "spec")

    def __init__(self, value: Value, tracer: Tracer) -> None:
        self._value = value
        self._tracer = tracer
        self._uid = 0
        self.spec = value.spec
        self.dtype = None
        self.shape = ()


class Tracer(dispatch.Interpreter):
    """Writes the ops of its block into a graph. What they use from outside becomes a captured input.

    Use as a context manager; `finish(outputs)` makes the graph. After the block its symbolic tensors are dead: any use
    of them raises LeakedTensorError.
    """

    def __init__(self, name: str, owner: int = 0, scope: str = "") -> None:
        self.name = name
        self.words = repr(name)  # for messages: "'body' of 'train'"
        self.owner = owner  # the id of the staged function that is traced; of one inside it, that of the outer one
        self.finished = False
        self.begun: source_line.Source | None = None
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.input_names: list[str] = []
        self.captured: dict[int, tuple[Any, Value]] = {}
        self.scope: str = scope
        self._values: dict[int, Value] = {}  # of variables, by uid
        self._literals: dict[tuple[Any, ...], Value] = {}
        self._order = EffectOrder()
        self._walker = source_line.Walker()
        self._around: Surroundings | None = None  # only within the block: settings may lead back here

    def __enter__(self) -> Tracer:
        around = self.owner or next((x.owner for x in reversed(dispatch.stack()) if isinstance(x, Tracer)), 0)
        self.owner = around
        self.begun = source_line.user_line()
        self._around = Surroundings()
        self._level = Level()
        dispatch.push(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, tb: object) -> None:
        try:
            self._leave()
        except KeyboardInterrupt:  # in the middle of it: once more
            self._leave()
            raise
        if isinstance(error, TypeError) and self._has_unknown_sizes():
            hints.note_sizes(error)

    def _has_unknown_sizes(self) -> bool:
        values = [*self.inputs, *[value for node in self.nodes for value in node.outputs]]
        return any(None in getattr(value.spec, "shape", ()) for value in values)

    def _leave(self) -> None:
        """Ends the trace, and the scopes of generators that are suspended in it. May be called again."""
        self.finished = True
        self._walker.forget()
        if self._around is not None:
            self._around.come_back()
            self._around = None
            self._level.close()

    # Inputs

    def add_input(self, spec: Spec, name: str = "") -> Any:
        """A new argument: a symbolic tensor, variable or object."""
        value = Value(spec)
        self.inputs.append(value)
        self.input_names.append(name or f"arg{len(self.inputs) - 1}")
        if isinstance(spec, VariableSpec):
            stand_in = SymbolicVariable(spec)
            self._values[stand_in._uid] = value
            return stand_in
        return self._handle(value)

    def bind_variable(self, variable: Resource, name: str = "") -> None:
        """A new argument that stands for `variable` wherever the traced code uses it."""
        value = Value(variable.spec)
        self.inputs.append(value)
        self.input_names.append(name or f"arg{len(self.inputs) - 1}")
        self._values[variable._uid] = value

    @property
    def captures(self) -> list[Any]:
        """The handles captured so far, in the order of the graph's last inputs."""
        return [handle for handle, _ in self.captured.values()]

    def name_of(self, value: Value) -> str:
        """The name of an argument; empty for any other value."""
        names = zip(self.inputs, self.input_names, strict=True)
        return next((name for known, name in names if known is value), "")

    # Ops

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        values = tuple(
            [
                x._value if type(x) is SymbolicTensor and x._tracer is self else self.value_of(x, op, inputs)
                for x in inputs
            ]
        )
        stack = self._walker.stack()
        found = op.infer(*[value.spec for value in values], *attrs)
        specs = found if isinstance(found, tuple) else (found,)
        if op.name in known_sizes.RULES:
            specs = (known_sizes.with_content(op, [value.spec for value in values], attrs, specs[0]),)
        device = dispatch.requested_device() if dispatch.scopes else None
        node = Node(op, values, attrs, specs, device=device, stack=stack, scope=self.scope)
        if op.effect is not None or op.higher_order:
            node.after = self._order.place(node)
        self.nodes.append(node)
        if op.multiple:
            return tuple([self._handle(value) for value in node.outputs])
        return self._handle(node.outputs[0])

    def value_of(self, x: Any, op: Op | None = None, beside: Sequence[Any] = ()) -> Value:
        """The value in this graph that stands for `x`: its own, a literal, or a capture."""
        if isinstance(x, (SymbolicTensor, SymbolicObject)) and x._tracer is self:
            return x._value
        if type(x) in _SCALARS:
            return self._literal(x, op, beside)
        if isinstance(x, Resource):
            known = self._values.get(x._uid)
            return known if known is not None else self._capture(x, x.spec)
        if isinstance(x, SymbolicTensor) and (x._tracer.finished or x._tracer not in dispatch.stack()):
            raise _no_value(x)
        return self._capture(x, x.spec)

    def constant(self, array: Any, device: Any) -> SymbolicTensor:
        made: SymbolicTensor = self._handle(self._constant_node(array, device))
        return made

    def _constant_node(self, array: Any, device: Any = None) -> Value:
        literal = Literal(array)
        spec = known_sizes.with_content(constant_op, (), (literal,), known(array.shape, dtypes.dtype(array.dtype)))
        stack, scope = self._walker.stack(), self.scope
        node = Node(constant_op, (), (literal,), (spec,), device=device, stack=stack, scope=scope)
        self.nodes.append(node)
        return node.outputs[0]

    def finish(self, outputs: Sequence[Any]) -> Graph:
        """The graph that computes `outputs` (tensors, numbers or opaque values) from the inputs and captures."""
        results = [self.value_of(x) for x in outputs]
        captures = [value for _, value in self.captured.values()]
        names = [_capture_name(handle, i) for i, handle in enumerate(self.captures)]
        return Graph(
            self.name,
            [*self.inputs, *captures],
            self.nodes,
            results,
            input_names=[*self.input_names, *names],
            n_captures=len(captures),
        )

    def take_back(self, at: int) -> bool:
        """Drops the nodes from `at` on, unless one of them has an effect, or calls a function; whether it did.

        What they read stays captured. For code that is traced just to see what comes of it.
        """
        dropped = self.nodes[at:]
        if any(node.op.effect is not None or node.op.higher_order for node in dropped):
            return False
        gone = {value for node in dropped for value in node.outputs}
        self._literals = {key: value for key, value in self._literals.items() if value not in gone}
        del self.nodes[at:]
        return True

    def _handle(self, value: Value) -> Any:
        if not isinstance(value.spec, TensorSpec):
            return SymbolicObject(value, self)
        symbolic = object.__new__(SymbolicTensor)
        symbolic._value = value
        symbolic._tracer = self
        symbolic._device = CPU0
        symbolic._uid = 0
        return symbolic

    def _capture(self, x: Any, spec: Spec) -> Value:
        if not x._uid:
            x._uid = new_uid()
        known = self.captured.get(x._uid)
        if known is None:
            known = self.captured[x._uid] = (x, Value(spec))
        return known[1]

    def captured_as(self, x: Any) -> Any:
        """What stands for `x`, which is from outside, in the code that is traced."""
        return self._handle(self._capture(x, x.spec))

    def _literal(self, scalar: Any, op: Op | None, beside: Sequence[Any]) -> Value:
        dtype = next((x.dtype for x in _uniform(op, beside) if type(x) not in _SCALARS), None)
        dtype = dtype or dtypes.default_for(scalar)
        key = (type(scalar), repr(scalar), dtype)
        value = self._literals.get(key)
        if value is None:
            value = self._literals[key] = self._constant_node(np.asarray(scalar, dtype=dtype))
        return value


def _uniform(op: Op | None, inputs: Sequence[Any]) -> Sequence[Any]:
    """The operands whose dtype a scalar among them takes on."""
    if op is None or op.variadic:
        return inputs
    return [x for x, operand in zip(inputs, op.operands, strict=True) if operand.accepts is None]


def _capture_name(handle: Any, index: int) -> str:
    name = getattr(handle, "name", None)
    return name if isinstance(handle, Resource) and isinstance(name, str) else f"capture{index}"


def _at(node: Node) -> AbstractContextManager[object]:
    """The device scope in which `node` was made."""
    return nullcontext() if node.device is None else dispatch.device(node.device)


def _scope_of(node: Node) -> AbstractContextManager[object]:
    """The name scope in which `node` was made, if there are any such."""
    return dispatch.written_in(node.scope) if dispatch.named_scopes else nullcontext()


def replay(graph: Graph, inputs: Sequence[Any], apply: Callable[..., Any] = dispatch.apply) -> list[Any]:
    """Runs the nodes of `graph` through this thread's interpreters, at their own source lines; returns its outputs."""
    handles: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        with source_line.pretend(node.stack), _at(node), _scope_of(node):
            result = apply(node.op, tuple([handles[value] for value in node.inputs]), node.params)
        results = result if node.op.multiple else (result,)
        handles.update(zip(node.outputs, results, strict=True))
    return [handles[value] for value in graph.outputs]
