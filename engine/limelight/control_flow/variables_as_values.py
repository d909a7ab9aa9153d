"""Variables that graph functions only read, as values: functions that take a tensor where they took a variable."""

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


def fixable(function: Any, place: int) -> bool:
    """Whether a value can stand for the variable that is input number `place`: it is read, here or further in.

    Not where the function also writes to it, nor where the gradient function of a custom gradient reads it, which
    happens later and wants the value of then.
    """
    variable = function.graph.inputs[place]
    if not isinstance(variable.spec, VariableSpec) or variable in function.effects.writes:
        return False
    return all(_reads_only(node, variable) for node in function.graph.nodes if variable in node.inputs)


def _reads_only(node: Node, variable: Value) -> bool:
    if node.op is get("read_variable"):
        return True
    places = [i for i, value in enumerate(node.inputs) if value is variable]
    if not node.op.higher_order or any(_pulls_through(param, i) for param in node.params for i in places):
        return False
    return all(fixable(function, i) for function in node.functions for i in _inner(node.inputs, function, places))


def _pulls_through(param: Any, place: int) -> bool:
    """Whether a custom gradient begins with the input itself."""
    return hasattr(param, "with_functions") and ("input", place) in param.sources


def reading(function: Any, place: int) -> Node | None:
    """The first node that reads the variable that is input number `place`, here or further in."""
    variable = function.graph.inputs[place]
    for node in function.graph.nodes:
        if variable not in node.inputs:
            continue
        if node.op is get("read_variable"):
            return node  # type: ignore[no-any-return]  # a node
        places = [i for i, value in enumerate(node.inputs) if value is variable]
        inner = ((f, i) for f in node.functions for i in _inner(node.inputs, f, places))
        found = next((n for f, i in inner if (n := reading(f, i)) is not None), None)
        if found is not None:
            return found
    return None


def fixed(function: GraphFunction, places: Iterable[int]) -> GraphFunction:
    """`function` with tensors, values, for the variables that are inputs number `places`, which must be fixable."""
    wanted = frozenset(places)
    if not wanted:
        return function
    key = ("fixed", wanted)
    if key not in function.pairs:
        function.pairs[key] = function.with_graph(_with_values(function.graph, wanted))
    made: GraphFunction = function.pairs[key]
    return made


def fixed_params(n_inputs: int, params: Sequence[Any], places: Collection[int]) -> tuple[Any, ...]:
    """The parameters of an op that calls functions on its last inputs, for values in the places of some variables."""

    def change(function: Any) -> Any:
        return fixed(function, _inner(range(n_inputs), function, places))

    changed = with_functions(change, params)
    return tuple([param.with_functions(change) if hasattr(param, "with_functions") else param for param in changed])


def all_fixable(n_inputs: int, params: Sequence[Any], place: int) -> bool:
    """Whether `fixed_params` may be asked for input number `place` of an op."""
    if any(_pulls_through(param, place) for param in params):
        return False
    functions = functions_in(params)
    return all(fixable(function, i) for function in functions for i in _inner(range(n_inputs), function, [place]))


def valued(
    op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], values: Mapping[int, Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """What an op that calls functions is given, with `values`, by uid, for variables; None where that is impossible."""
    places = [i for i, x in enumerate(inputs) if isinstance(x, Resource) and x._uid in values]
    if not all(all_fixable(len(inputs), attrs, i) for i in places):
        return None
    given = tuple([values[x._uid] if i in places else x for i, x in enumerate(inputs)])
    return given, fixed_params(len(inputs), attrs, places) if places else attrs


register_variable_binding(valued)  # for tapes that run a call once more


def _inner(inputs: Sequence[Any], function: Any, places: Iterable[int]) -> list[int]:
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
            made = rewriter.rebuild(node, rewriter.inputs(node))
            made.params = fixed_params(len(node.inputs), node.params, inside)
    return rewriter.finish()
