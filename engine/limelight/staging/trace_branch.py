"""Tracing the branches and bodies of control flow into graph functions with one common list of captures."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from limelight.core import dispatch, dtypes, name_scopes, nest, shapes
from limelight.core.module_calls import calls_around
from limelight.core.op import get
from limelight.core.spec import Spec, TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, ControlFlowError
from limelight.graph.ir import Graph, Value
from limelight.staging.array_changes import hand_out_captured
from limelight.staging.branch_state import settle
from limelight.staging.call_gradient import infer_outputs
from limelight.staging.graph_function import GraphFunction
from limelight.staging.structured_outputs import Outputs, split
from limelight.staging.tracer import Tracer


class Traced(NamedTuple):
    """A function that is traced but not yet a graph: it may have to take the captures of others, too."""

    tracer: Tracer
    tensors: list[Any]
    outputs: Outputs

    @property
    def specs(self) -> list[Spec]:
        return [x.spec for x in self.tensors]


def require_callable(op: str, **functions: Any) -> None:
    """Raises ArgumentError for one of `functions`, given by parameter name, that cannot be called."""
    for name, fn in functions.items():
        if not callable(fn):
            raise ArgumentError(
                f"{op}: {name} must be a function, got {type(fn).__name__}; write `lambda ...: ...`, so that it runs "
                "only when its turn comes"
            )


def is_condition(spec: Spec) -> bool:
    """Whether a value of `spec` can decide: a boolean with one element (as far as sizes are known)."""
    return isinstance(spec, TensorSpec) and spec.dtype == dtypes.bool_ and spec.size in (1, None)


def tracing() -> Tracer | None:
    """The trace in progress on this thread, if any."""
    return next((x for x in reversed(dispatch.stack()) if isinstance(x, Tracer)), None)


def trace_branch(
    name: str,
    fn: Callable[..., Any],
    specs: Sequence[Spec] = (),
    names: Sequence[str] = (),
    optional: bool = False,
    given: Sequence[Any] = (),
    repeated: bool = False,
) -> Traced:
    """Runs `fn` on symbolic arguments, inside the trace in progress.

    Args:
        name: the name of the graph.
        fn: a branch or a body.
        specs: the specs of its arguments.
        names: their names, none by default.
        optional: whether a run may pass it by: a branch, and not a body.
        given: the tensors that its arguments stand for at first: where they are, it runs.
        repeated: whether it is the body of a loop.
    """
    around = tracing()
    with Tracer(name, scope=name_scopes.current_name_scope(), calls=calls_around()) as tracer:
        tracer.optional, tracer.repeated = optional, repeated
        tracer.given = given
        tracer.words = repr(name) if around is None else f"{name!r} of {around.words}"
        arguments = [tracer.add_input(spec, names[i] if names else "") for i, spec in enumerate(specs)]
        tensors, shape = split(fn(*arguments), name)
        values = [tracer.value_of(x) for x in tensors]  # captures what is returned as it came
        assert len(values) == len(tensors)
    hand_out_captured(tracer)
    return Traced(tracer, tensors, shape)


def unaliased(results: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """`results` with new tensors for those that are among `given`: results of a graph are tensors of their own."""
    known = set(map(id, given))
    return [dispatch.apply(get("identity"), (x,)) if id(x) in known and isinstance(x, Tensor) else x for x in results]


def variables_read(result: Any) -> Any:
    """What a function has returned, as a graph would: the values of variables, and tensors for arrays of NumPy's."""
    if type(result) is Tensor:
        return result
    try:
        leaves = nest.leaves_of(result)
    except ArgumentError:  # a list that leads back to itself: eagerly anything may be returned
        return result
    if not any(isinstance(x, (Variable, np.ndarray, np.generic)) for x in leaves):
        return result
    return nest.map_structure(_read, result)


def _read(leaf: Any) -> Any:
    is_array = isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "biufc"  # others are in no graph
    return as_tensor(leaf) if is_array or isinstance(leaf, Variable) else leaf


def close(branches: Sequence[Traced]) -> tuple[list[GraphFunction], list[Any]]:
    """Graph functions for `branches` that all take the same captures after their arguments, and those captures.

    Warns of variables that some of them have made and others do not use (`branch_state`).
    """
    optional = [traced.tracer for traced in branches if traced.tracer.optional]
    if optional:
        settle(optional, tracing())
    union = {uid: handle for traced in branches for uid, (handle, _) in traced.tracer.captured.items()}
    return [GraphFunction(_graph(traced, union)) for traced in branches], list(union.values())


def _graph(traced: Traced, union: dict[int, Any]) -> Graph:
    tracer = traced.tracer
    captured = [tracer.captured[uid][1] if uid in tracer.captured else Value(x.spec) for uid, x in union.items()]
    names = [*tracer.input_names, *(f"capture{i}" for i in range(len(captured)))]
    outputs = [tracer.value_of(x) for x in traced.tensors]
    return Graph(
        tracer.name, [*tracer.inputs, *captured], tracer.nodes, outputs, input_names=names, n_captures=len(captured)
    )


def check_branches_agree(op: str, branches: Sequence[Traced]) -> None:
    """Raises ControlFlowError, which names the output, where branches return different structures, dtypes or ranks."""
    first = branches[0]
    for other in branches[1:]:
        a, b = first.tracer.name, other.tracer.name
        if first.outputs != other.outputs:
            raise ControlFlowError(
                f"{op}: the branches return different structures: {_structure_words(first, other)}, "
                f"{_structure_words(other, first)}; return the same keys, and as many values, from each"
                f"{nest.advice(first.outputs.structure) or nest.advice(other.outputs.structure)}"
            )
        for path, x, y in zip(first.outputs.paths("output"), first.specs, other.specs, strict=True):
            if isinstance(x, TensorSpec) and isinstance(y, TensorSpec) and (x.dtype != y.dtype or x.rank != y.rank):
                which = "the output" if first.outputs.bare else f"`{path}`"
                raise ControlFlowError(
                    f"{op}: {which} is {x} from {a} and {y} from {b}; dtypes and ranks must agree, write "
                    f"{_conversion(x, y)} in {b}"
                )


def _structure_words(traced: Traced, other: Traced) -> str:
    """What a branch returns, in words; which leaves are None only where nothing else tells it from the other."""
    name, outputs = traced.tracer.name, traced.outputs
    if outputs.structure != other.outputs.structure:
        return f"{name} {outputs.structure}"
    return f"{name} {outputs.structure} with {list(outputs.static)}"


def _conversion(wanted: TensorSpec, given: TensorSpec) -> str:
    """What to write in a branch that returns `given` so that it returns `wanted`."""
    text = "..."
    if wanted.rank != given.rank:
        if not shapes.is_static(wanted.shape) or given.rank > wanted.rank:
            return "ll.astype or ll.reshape"
        text = f"{'ll.reshape' if wanted.size == given.size else 'll.broadcast_to'}(..., {shapes.show(wanted.shape)})"
    return text if wanted.dtype == given.dtype else f"ll.astype({text}, ll.{wanted.dtype.name})"


def merge_specs(a: Spec, b: Spec) -> Spec:
    """The spec of a value that comes from either of two branches."""
    if isinstance(a, TensorSpec) and isinstance(b, TensorSpec) and a.shape != b.shape:
        return known(shapes.generalise(a.shape, b.shape) or a.shape, a.dtype)
    return a


def merged_specs(branches: Sequence[Any], captures: Sequence[Spec]) -> tuple[Spec, ...]:
    """The specs of the outputs of a choice between several graph functions."""
    columns = zip(*[infer_outputs(branch.graph, captures) for branch in branches], strict=True)
    return tuple([functools.reduce(merge_specs, column) for column in columns])
