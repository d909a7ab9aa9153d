"""Turns what a kernel raised into an error that names the graph, the op, its operands and the user's line.

Errors are explained where the innermost graph runs; each graph that called it adds its own line to the message on the
way out. What a py_func raised passes unchanged, with a note of the way to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from limelight.core import dtypes
from limelight.core.spec import Spec, TensorSpec, known
from limelight.errors import LimelightError, failed, is_user_error
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Node, Value
from limelight.user_code import source_line

_Error = TypeVar("_Error", bound=Exception)
_EXPLAINED = "_limelight_told"
"""Marks an error whose message says where it happened, so that callers further out add only their own line."""


def explain(
    graph: Graph, node: Node, payloads: Sequence[Any], error: Exception, assigned: Sequence[str] = ()
) -> Exception:
    """The error to raise for one that a kernel raised.

    Where the op's own shape rule objects to the operands, its words are used, so that a mistake reads the same eager
    and staged. A call whose function has explained the error adds its own line to the message. What the user's own code
    raised (in a py_func) stays as it is, with a note of the way to it.

    Args:
        graph: the graph that was running.
        node: the node at which it was.
        payloads: the node's operands.
        error: what its kernel raised.
        assigned: the variables that had been assigned before this graph ran, where it is a part of another one.

    Returns:
        Another error, to be raised from this one; or `error` itself, to be raised again.
    """
    line = source_line.at(node.stack[0] if node.stack else None)
    stands = _which_stands([*assigned, *assigned_before(graph, node)])
    if is_user_error(error):
        way = "" if is_explained(error) else f"in {_call(node, payloads)} of {graph.name}{line}"
        note = f"{way}{stands}" if way else stands.lstrip("; .")
        if note and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return error
    if isinstance(error, LimelightError):
        if is_explained(error):
            error.args = (f"{error}\n  called by {graph.name}{line}{stands}",)
            return error
        error.args = (f"{error.bare}; in {_call(node, payloads)} of {graph.name}{line}{stands}",)
        return mark_explained(error)
    try:
        node.op.infer(*_specs(node, payloads), *node.params)
    except LimelightError as from_rule:
        return mark_explained(
            type(from_rule)(f"{from_rule.bare}; in {_call(node, payloads)} of {graph.name}{line}{stands}")
        )
    except Exception:  # noqa: BLE001  # a rule that fails on these operands explains nothing
        pass
    return mark_explained(failed(f"{_call(node, payloads)} of {graph.name}", error, f"{line}{stands}"))


def is_explained(error: Exception) -> bool:
    """Whether the message of an error says where it happened."""
    return getattr(error, _EXPLAINED, False)


def assigned_before(graph: Graph, failed_node: Node) -> list[str]:
    """The names of the variables that nodes before this one have assigned: a run that fails takes nothing back."""
    written: set[Value] = set()
    for node in graph.nodes:
        if node is failed_node:
            break
        written |= {value for value in effects_of(node).writes if not getattr(value.spec, "anywhere", False)}
    return [name for name, value in zip(graph.input_names, graph.inputs, strict=False) if value in written]


def _which_stands(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in dict.fromkeys(names)]
    return f"; assigned before that, which stands: {', '.join(quoted)}" if quoted else ""


def mark_explained(error: _Error) -> _Error:
    """`error`, of which no more is to be said: its message tells where it happened."""
    setattr(error, _EXPLAINED, True)
    return error


def _call(node: Node, payloads: Sequence[Any]) -> str:
    return f"{node.op}({', '.join(map(str, _specs(node, payloads)))})"


def _specs(node: Node, payloads: Sequence[Any]) -> list[Spec]:
    """The specs of the operands as they are, with all sizes."""
    return [_spec(value.spec, payload) for value, payload in zip(node.inputs, payloads, strict=True)]


def _spec(traced: Spec, payload: Any) -> Spec:
    if not isinstance(traced, TensorSpec) or not hasattr(payload, "shape"):
        return traced
    return known(tuple(payload.shape), dtypes.dtype(payload.dtype))
