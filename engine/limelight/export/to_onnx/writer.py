"""A trace as a graph of ONNX: every node by its lowering, calls inlined, control flow as graphs inside of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.core import dtypes
from limelight.core.op import home_of
from limelight.core.spec import TensorSpec
from limelight.errors import ExportError
from limelight.export.to_onnx import lowerings
from limelight.export.to_onnx.arrays import reshape
from limelight.export.to_onnx.builder import Builder, Complex, Var
from limelight.export.to_onnx.registry import COMPLEX, COMPLEX_LOWERINGS, LOWERINGS, REFUSED, Refused, Site
from limelight.graph.ir import Graph, Node, Value

lowerings.load()
_HALF = (dtypes.float16, dtypes.bfloat16)
_COMPLEX = (dtypes.complex64, dtypes.complex128)


class GraphWriter:
    """Writes graphs of limelight into a builder.

    Args:
        name: the user's name of the function, for messages.
        builder: takes the nodes.
    """

    def __init__(self, name: str, builder: Builder) -> None:
        self._name = name
        self._builder = builder

    def inline(self, graph: Graph, inputs: Sequence[Any]) -> list[Any]:
        """The results of a graph for these values. Raises ExportError that names function, op and line."""
        values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            results = self._node(node, [values[x] for x in node.inputs])
            values.update(zip(node.outputs, results, strict=True))
        return [values[y] for y in graph.outputs]

    def _node(self, node: Node, inputs: list[Any]) -> Sequence[Any]:
        try:
            rule = _rule(node)
            site = Site(self._builder, node, tuple([y.spec for y in node.outputs]), self.inline)
            if not node.op.higher_order:
                inputs = [self._without_halves(x) for x in inputs]
            made = rule(site, *inputs, *node.params)
        except Refused as error:
            line = f" at {node.source[0]}:{node.source[1]}" if node.source else ""
            raise ExportError(
                f"{self._name} cannot be exported to ONNX: {node.op.name}{line}: {error}. Write that part with other "
                "ops, or leave it out of the function; docs/onnx_ops.md lists all ops"
            ) from None
        results = made if isinstance(made, (list, tuple)) else [made]
        return [self._as_said(x, y.spec) for x, y in zip(results, node.outputs, strict=True)]

    def _without_halves(self, x: Any) -> Any:
        """16-bit floating numbers are computed in float32 and rounded once, as limelight's kernels do."""
        return self._builder.cast(x, dtypes.float32) if isinstance(x, Var) and x.dtype in _HALF else x

    def _as_said(self, x: Any, spec: Any) -> Any:
        """A result in the dtype of its spec, with all that is known of its shape."""
        if isinstance(x, Complex):
            part = TensorSpec(spec.shape, dtypes.float64 if spec.dtype == dtypes.complex128 else dtypes.float32)
            return Complex(self._as_said(x.re, part), self._as_said(x.im, part))
        if not isinstance(x, Var) or not isinstance(spec, TensorSpec):
            return x
        x = self._builder.cast(x, spec.dtype)
        if x.ndim != spec.rank:
            x = reshape(x, spec.shape)
        shape = [m if n is None else n for m, n in zip(x.shape, spec.shape, strict=True)]
        return Var(self._builder, x.name, x.dtype, shape, x.value)


def _rule(node: Node) -> Any:
    """The lowering of a node. Raises Refused where there is none."""
    values = (*node.inputs, *node.outputs)
    if any(getattr(value.spec, "dtype", None) in _COMPLEX for value in values) and not node.op.higher_order:
        rule = COMPLEX_LOWERINGS.get(node.op.name)
        if rule is None:
            raise Refused(COMPLEX)
        return rule
    rule = LOWERINGS.get(node.op.name)
    if rule is None:
        raise Refused(_why_not(node))
    return rule


def _why_not(node: Node) -> str:
    name = node.op.name
    home = home_of(name)
    if home.partition(".")[0] != "limelight":
        return f"it is an op of your own ({home}), which ONNX does not have"
    return REFUSED.get(name, "ONNX has nothing to write it with")
