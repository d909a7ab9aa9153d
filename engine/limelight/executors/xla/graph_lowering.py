"""Graphs run on arrays of JAX: under `jax.jit` that makes the program, node by node, by the ops' own kernels.

Constants, and what is computed from them alone, stay arrays of NumPy: kernels then find sizes and places that they need
as numbers. Control flow is lowered by `structured_control`; functions that are called are written out where they are.
A variable is a cell that holds its value of now, so kernels that read and write storages do so here as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from limelight.core.op import Op
from limelight.core.spec import TensorSpec
from limelight.executors.xla.symbolic_sizes import is_symbolic, results_of_sizes, sizes_of, value_of
from limelight.graph.ir import Graph, Node, Value

MOST_FOLDED: Final = 4096
"""Elements of a constant that is computed beforehand; larger ones are computed by the program, to keep it small."""
_CALLS: Final = {"call": 0, "call_forward": 0, "custom_call": 0, "custom_forward": 0}
"""Ops that call a function, and the place of that among their parameters."""


class NoFormError(Exception):
    """A node has no form in a program: `node` is it, `why` the end of a sentence that begins with its op."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(f"{place_of(node)} {why}")
        self.node = node
        self.why = why


class VariableCell:
    """What stands for the storage of a variable: it holds the value of now, as an array of JAX or NumPy."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def set(self, array: Any) -> Any:
        """Takes a new value; returns it."""
        self.array = array
        return array

    def exchange(self, old: Any, new: Any) -> bool:
        """Takes the value `new`: nobody else assigns while a program is made."""
        self.array = new
        return True

    def update(self, change: Callable[[Any], Any]) -> Any:
        """Takes the value `change(value)`; returns it."""
        return self.set(change(self.array))


class Control(Protocol):
    """Lowers a node of control flow."""

    def __call__(self, lowering: GraphLowering, node: Node, inputs: list[Any], /) -> Sequence[Any]: ...


class GraphLowering:
    """Runs graphs.

    Args:
        control: what lowers control flow, by the names of ops.
        refused: says why an op has no form, whatever its operands; empty where it has one.
        draw: `draw(node, inputs, within)` gives the results of a node that draws, `within` a branch or loop or not;
            None where `refused` refuses them all.
    """

    def __init__(
        self,
        control: Mapping[str, Control],
        refused: Callable[[Op], str],
        draw: Callable[[Node, list[Any], bool], Sequence[Any]] | None = None,
    ) -> None:
        self._control = control
        self._refused = refused
        self._draw = draw
        self._depth = 0  # of branches and loops

    def run(self, graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs for inputs of JAX or NumPy, and cells for variables. Raises NoFormError where a node has none."""
        values = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            results = self._node(node, [values[value] for value in node.inputs])
            values.update(zip(node.outputs, results, strict=True))
        return tuple([values[value] for value in graph.outputs])

    def _node(self, node: Node, inputs: list[Any]) -> Sequence[Any]:
        op = node.op
        refused = self._refused(op)
        if refused:
            raise NoFormError(node, refused)
        if op.name == "constant":
            return (np.asarray(node.params[0].array),)
        if op.placement is not None:
            return inputs[:1]
        if op.name in _CALLS:
            return self.run(node.params[_CALLS[op.name]].graph, inputs)
        try:
            if op.name in self._control:
                results = self._in_control(node, inputs)
            elif op.effect == "random" and self._draw is not None:
                results = self._draw(node, inputs, self._depth > 0)
            elif op.name == "shape_of":
                results = (sizes_of(inputs[0]),)
            else:
                results = _kernel_results(node, inputs)
            return [_checked(x, value.spec) for x, value in zip(results, node.outputs, strict=True)]
        except NoFormError:
            raise
        except Exception as error:  # of JAX, which has many classes for what it cannot trace
            words = (str(error) or type(error).__name__).split("\n")[0][:300]
            raise NoFormError(node, f"has no form in it for these operands: {words}") from error

    def _in_control(self, node: Node, inputs: list[Any]) -> Sequence[Any]:
        self._depth += 1
        try:
            return self._control[node.op.name](self, node, inputs)
        finally:
            self._depth -= 1


def array_of(x: Any, value: Value) -> Any:
    """What a node has made of a tensor, as an array of JAX of just the dtype that the op's shape rule says."""
    import jax.numpy as jnp  # noqa: PLC0415  # JAX is imported when something is lowered

    spec: Any = value.spec
    return jnp.asarray(value_of(x), spec.dtype)


def place_of(node: Node) -> str:
    """The op of a node, and the user's line: "take at model.py:12"."""
    return f"{node.op.name} at {node.source[0]}:{node.source[1]}" if node.source else node.op.name


def why_no_form(op: Op) -> str:
    """Why an op has no form in any program of XLA; empty if it has one."""
    if op.name in ("while_forward", "custom_gradient"):
        return "keeps something for a gradient in each of unknown many steps: write the loop with ll.scan"
    if op.effect == "io" or op.name == "py_func_backward":
        return "does something besides computing, in Python or to a table"
    if op.foreign and op.higher_order:
        return "is an op of yours over functions: write it with ll.cond, ll.while_loop or ll.scan"
    return ""


def _kernel_results(node: Node, inputs: list[Any]) -> Sequence[Any]:
    if any(map(is_symbolic, inputs)):
        made = results_of_sizes(node, inputs)
        if made is not None:
            return made
        inputs = list(map(value_of, inputs))
    folds = all(isinstance(x, (np.ndarray, np.generic)) for x in inputs) and _is_small(node)
    results = node.op.kernel_on("numpy" if folds else "jax")(*inputs, *node.params)
    return results if node.op.multiple else (results,)


def _is_small(node: Node) -> bool:
    return all(isinstance(value.spec, TensorSpec) and _most(value.spec) <= MOST_FOLDED for value in node.outputs)


def _most(spec: TensorSpec) -> float:
    """The number of elements; infinite where it is not known."""
    return math.prod([math.inf if n is None else n for n in spec.shape])


def _checked(x: Any, spec: Any) -> Any:
    """A result in the dtype that the op's shape rule says: JAX's functions give other integers here and there."""
    if not isinstance(spec, TensorSpec):
        return x
    array = x if hasattr(x, "astype") else np.asarray(x)
    if array.dtype != spec.dtype and not is_symbolic(array):
        array = array.astype(spec.dtype)
    wrong = len(array.shape) != len(spec.shape) or any(
        isinstance(n, int) and m is not None and n != m for n, m in zip(array.shape, spec.shape, strict=True)
    )
    if wrong:
        raise ValueError(f"JAX gives the shape {array.shape}, not {spec.shape}")
    return array
