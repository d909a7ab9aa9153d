"""Computes at optimisation time what does not depend on the inputs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from limelight.core import shapes
from limelight.core.op import Op
from limelight.core.spec import Spec, TensorSpec, known
from limelight.graph.build import Rewriter
from limelight.graph.ir import Graph, Literal, Node, Value
from limelight.ops.create.literal import constant_op, literal_value
from limelight.optimise.pass_record import PassRecord, Recorder

LARGEST: Final = 1 << 16
"""Bytes that a folded result may have; a larger one is folded only if its operands, together, are as large."""


def fold(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with pure ops on constants, and the shapes of values whose sizes are known, replaced by constants."""
    recorder = Recorder("fold", graph)
    rewriter = Rewriter(graph)
    constants: dict[Value, Any] = {}  # of the new graph
    with np.errstate(all="ignore"):  # a result that is not finite is as good as any other
        for node in graph.nodes:
            if node.op is constant_op:
                kept = rewriter.keep(node)
                if node.device is None:  # the others decide where what is computed from them is
                    constants[kept.outputs[0]] = literal_value(node.params)
                continue
            rule, arrays = _evaluate(node, rewriter.inputs(node), constants)
            if arrays is None:
                rewriter.keep(node)
                continue
            new = [_literal(rewriter, node, array) for array in arrays]
            rewriter.replace(node, [literal.outputs[0] for literal in new])
            recorder.note(rule, f"the result of this {node.op} is known now", (node,), tuple(new), added=len(new))
            if node.device is None:
                constants.update({literal.outputs[0]: literal_value(literal.params) for literal in new})
    return recorder.finish(rewriter)


def _evaluate(
    node: Node, inputs: tuple[Value, ...], constants: dict[Value, Any]
) -> tuple[str, list[np.ndarray[Any, Any]] | None]:
    """The outputs of `node` if they can be known now, with the rule that says so; None for them otherwise."""
    op = node.op
    if op.effect is not None or op.higher_order or op.placement is not None:
        return "", None
    if op.name == "shape_of" and isinstance(inputs[0].spec, TensorSpec) and shapes.is_static(inputs[0].spec.shape):
        return "known shape", [np.array(inputs[0].spec.shape, dtype=np.int64)]
    if not constants.keys() >= set(inputs) or not _is_small(node, inputs) or any(map(callable, node.params)):
        return "", None
    return "constant", _run(op, [constants[value] for value in inputs], node)


def _is_small(node: Node, inputs: tuple[Value, ...]) -> bool:
    produced = _nbytes([value.spec for value in node.outputs])
    return produced is not None and produced <= max(LARGEST, _nbytes([value.spec for value in inputs]) or 0)


def _nbytes(specs: list[Spec]) -> int | None:
    sizes = [spec.nbytes if isinstance(spec, TensorSpec) else None for spec in specs]
    return None if None in sizes else sum(n for n in sizes if n is not None)


def _run(op: Op, operands: list[Any], node: Node) -> list[np.ndarray[Any, Any]] | None:
    try:
        result = op.numpy_kernel(*operands, *node.params)
    except Exception:  # noqa: BLE001  # whatever is wrong with it, it is reported when and if the node runs
        return None
    arrays = [np.array(r, order="C") for r in (result if op.multiple else (result,))]
    fits = all(map(_has_spec, arrays, [value.spec for value in node.outputs]))
    return arrays if fits else None


def _has_spec(array: np.ndarray[Any, Any], spec: Spec) -> bool:
    return isinstance(spec, TensorSpec) and array.dtype == spec.dtype and shapes.compatible(array.shape, spec.shape)


def _literal(rewriter: Rewriter, node: Node, array: np.ndarray[Any, Any]) -> Node:
    spec = known(array.shape, array.dtype)
    return rewriter.add(node, constant_op, (), (Literal(array),), (spec,))
