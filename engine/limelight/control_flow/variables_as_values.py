"""Graph functions with values in the place of variables that they only read.

Loops read such variables once, before they begin (`loop_constants`); functions that are run again for a gradient get
the values of the first run (`replay`, and tapes that run a call once more).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from limelight.autodiff.reentrant_tape import register_variable_binding
from limelight.core.op import Op, get
from limelight.core.spec import VariableSpec
from limelight.core.variable import Resource
from limelight.graph.build import Rewriter
from limelight.graph.ir import Graph, Node, Value, functions_in, with_functions
from limelight.staging.graph_function import GraphFunction


def can_be_value(function: Any, place: int) -> bool:
    """Whether a value can stand for the variable that is input number `place`, which the function only reads.

    Not where the gradient function of a custom gradient reads it: that happens later and wants the value of then.
    """
    variable = function.graph.inputs[place]
    if not isinstance(variable.spec, VariableSpec) or variable in function.effects.writes:
        return False
    return all(_reads_only(node, variable) for node in function.graph.nodes if variable in node.inputs)


def _reads_only(node: Node, variable: Value) -> bool:
    """Whether a node, and the functions that it calls, do nothing but read `variable`."""
    if node.op is get("read_variable"):
        return True
    places = [i for i, value in enumerate(node.inputs) if value is variable]
    if not node.op.higher_order or any(_is_residual_of_custom(param, i) for param in node.params for i in places):
        return False
    return all(
        can_be_value(function, i) for function in node.functions for i in _inner_places(node.inputs, function, places)
    )


def _is_residual_of_custom(param: Any, place: int) -> bool:
    """Whether the backward pass of a custom gradient reads the input itself."""
    return hasattr(param, "with_functions") and ("input", place) in param.sources


def first_read(function: Any, place: int) -> Node | None:
    """The first node that reads the variable that is input number `place`, here or in inner functions."""
    variable = function.graph.inputs[place]
    for node in function.graph.nodes:
        if variable not in node.inputs:
            continue
        if node.op is get("read_variable"):
            return node  # type: ignore[no-any-return]  # a node
        places = [i for i, value in enumerate(node.inputs) if value is variable]
        inner = ((f, i) for f in node.functions for i in _inner_places(node.inputs, f, places))
        inner_read = next((n for f, i in inner if (n := first_read(f, i)) is not None), None)
        if inner_read is not None:
            return inner_read
    return None


def with_values(function: GraphFunction, places: Iterable[int]) -> GraphFunction:
    """`function` with values for the variables that are inputs number `places`, for which `can_be_value` holds."""
    wanted = frozenset(places)
    if not wanted:
        return function
    key = ("values", wanted)
    if key not in function.pairs:
        function.pairs[key] = function.with_graph(_with_values(function.graph, wanted))
    version: GraphFunction = function.pairs[key]
    return version


def params_with_values(n_inputs: int, params: Sequence[Any], places: Collection[int]) -> tuple[Any, ...]:
    """The parameters of an op that calls functions on its last inputs, for values in the places of some variables."""

    def change(function: Any) -> Any:
        return with_values(function, _inner_places(range(n_inputs), function, places))

    changed = with_functions(change, params)
    return tuple([param.with_functions(change) if hasattr(param, "with_functions") else param for param in changed])


def all_can_be_values(n_inputs: int, params: Sequence[Any], place: int) -> bool:
    """Whether `params_with_values` may be asked for input number `place` of an op."""
    if any(_is_residual_of_custom(param, place) for param in params):
        return False
    functions = functions_in(params)
    return all(
        can_be_value(function, i) for function in functions for i in _inner_places(range(n_inputs), function, [place])
    )


def call_with_values(
    op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], values: Mapping[int, Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """Inputs and parameters of an op that calls functions, with values for variables; None where that is impossible.

    Args:
        op: the op.
        inputs: its inputs.
        attrs: its parameters.
        values: values of variables, by uid.
    """
    places = [i for i, x in enumerate(inputs) if isinstance(x, Resource) and x._uid in values]
    if not all(all_can_be_values(len(inputs), attrs, i) for i in places):
        return None
    new_inputs = tuple([values[x._uid] if i in places else x for i, x in enumerate(inputs)])
    return new_inputs, params_with_values(len(inputs), attrs, places) if places else attrs


register_variable_binding(call_with_values)  # for tapes that run a call once more


def _inner_places(inputs: Sequence[Any], function: Any, places: Iterable[int]) -> list[int]:
    """Places among the inputs of a node as places among those of a function that it calls, which are its last ones."""
    first = len(inputs) - len(function.graph.inputs)
    return [i - first for i in places]


def _with_values(graph: Graph, places: Collection[int]) -> Graph:
    new = {v: Value(getattr(v.spec, "value", v.spec)) for i, v in enumerate(graph.inputs) if i in places}
    rewriter = Rewriter(graph, new)
    for node in graph.nodes:
        if new.keys().isdisjoint(node.inputs):
            rewriter.keep(node)
        elif node.op is get("read_variable"):
            rewriter.replace(node, rewriter.inputs(node))
        else:
            inside = [i for i, value in enumerate(node.inputs) if value in new]
            rebuilt = rewriter.rebuild(node, rewriter.inputs(node))
            rebuilt.params = params_with_values(len(node.inputs), node.params, inside)
    return rewriter.finish()
