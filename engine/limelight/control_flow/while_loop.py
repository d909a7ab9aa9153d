"""`while_loop`: repetition by value (paper section 4.1), and the ops behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, SupportsIndex

from limelight.autodiff import INEXACT, filled, unrecorded
from limelight.batching import Batched, Shared, Site
from limelight.batching.rule_table import front
from limelight.control_flow.cond import cond as choose
from limelight.control_flow.loop_backward import RecordedLoop, SavedLoop, pull_loop, save_loop
from limelight.control_flow.loop_constants import read_variables_before
from limelight.control_flow.loop_residuals import loop_residuals
from limelight.control_flow.masked_loops import masked_condition_and_body
from limelight.control_flow.ragged_rows import ragged_results
from limelight.control_flow.stacked_rows import empty_stacks, stack_of, stacked
from limelight.control_flow.user_functions import as_carried, conversion_hint, suggest_initial_dtype
from limelight.control_flow.zeros_spec import watched_in_loop
from limelight.core import dispatch, dtypes, nest, shapes
from limelight.core.op import Op, TapedVariant, defop, get
from limelight.core.spec import Spec, TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor, constant
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, ControlFlowError, DTypeError
from limelight.staging.body_batching import (
    Flags,
    batch_size,
    batched_function,
    cached_version,
    note_looped_ops,
    pure,
    tensors_only,
    with_shared,
)
from limelight.staging.body_tangents import (
    JvpFunction,
    condition_with_tangents,
    jvp_function,
    present_tangents,
    split_tangents,
    tangent_flags,
)
from limelight.staging.branch_state import settle_loop
from limelight.staging.graph_function import GraphFunction
from limelight.staging.symbolic import SymbolicTensor
from limelight.staging.trace_branch import (
    Traced,
    close,
    is_condition,
    require_callable,
    trace_branch,
    tracing,
    unaliased,
)
from limelight.staging.tracer import replay
from limelight.user_code.given_functions import call_user_function


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | Tensor | None = None,
    shape_invariants: Any = None,
    back_prop: bool = True,
) -> Any:
    """A loop by value: repeats `loop_vars = body(*loop_vars)` while `cond(*loop_vars)` (paper section 4.1).

    While tracing, `cond` and `body` are traced once each, and the loop is one node. Differentiable: what the backward
    pass needs of each iteration is stacked (rows of other shapes are padded to the largest), what does not change is
    kept once, and `GradientTape.saved_bytes` says how much that is. Less is kept with `ll.recompute_grad` around the
    body, which computes it again. What only a loop with more iterations would use has, while tracing, a gradient of
    zeros.

    Args:
        cond: a function of the loop variables that returns one boolean.
        body: a function of the loop variables that returns their next values, with the same structure and dtypes.
        loop_vars: a tuple or list of tensors, or of nests of them.
        maximum_iterations: a number from 0 on or an integer scalar; after so many iterations the loop ends, whatever
            `cond` says (a negative one that is known only when a graph runs counts as 0). By default no limit.
        shape_invariants: shapes for the leaves of `loop_vars`, in a list or in their structure, with None for sizes
            that change. By default each variable keeps the shape that it has on entry.
        back_prop: whether gradients lead through the loop; if not, nothing is kept for them. True.

    Returns:
        The last `loop_vars`, in the same structure.

    Raises:
        ControlFlowError: `loop_vars` are no tuple or list, `cond` does not return one boolean, or a variable, which is
            named, does not keep its structure, dtype or shape, or does not fit its shape invariant.
        ArgumentError: `cond` or `body` cannot be called, or `maximum_iterations` is not as above.

    >>> import limelight as ll
    >>> i, total = ll.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (ll.constant(0), ll.constant(0)))
    >>> total.item()
    10
    """
    if type(back_prop) is not bool:
        back_prop = shapes.flag("while_loop", "back_prop", back_prop)
    require_callable("while_loop", cond=cond, body=body)
    if not isinstance(loop_vars, (tuple, list)):
        raise ControlFlowError(
            f"while_loop: loop_vars must be a tuple or list, got {type(loop_vars).__name__}; write (x,) for one alone"
        )
    leaves, structure = nest.flatten(loop_vars)
    names = nest.paths(structure, "loop_vars")
    leaves = as_carried("while_loop", names, leaves)
    loop = Loop(
        cond, body, structure, _variable_specs(leaves, _flat_invariants(shape_invariants, structure), names), names
    )
    limit = _iteration_limit(maximum_iterations)
    return loop.repeat(leaves, limit, back_prop)


def counted_loop(op: str, first: Tensor, last: Tensor, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """The last carry of a loop over a range of numbers known only at run time.

    Args:
        op: what the user called.
        first: the first number.
        last: the end, which is not reached, of the same dtype.
        body: a function of the number and the carry that returns the next carry.
        init: the first carry.
    """
    leaves, structure = nest.flatten((first, init))
    names = ["i", *nest.paths(structure.children[1], "carry")]
    leaves = as_carried(op, names, leaves)
    specs = _variable_specs(leaves, _flat_invariants(None, structure), names)
    loop = Loop(lambda i, _: i < last, lambda i, carry: (i + 1, body(i, carry)), structure, specs, names, op)
    return loop.repeat(leaves)[1]


class Loop(NamedTuple):
    """A loop's functions, and what its variables keep in all iterations: structure and specs."""

    cond_fn: Callable[..., Any]
    body_fn: Callable[..., Any]
    structure: nest.Structure
    specs: list[TensorSpec]
    names: list[str]
    op: str = "while_loop"  # what the user called

    def repeat(self, leaves: Sequence[Tensor], limit: int | Tensor | None = None, back_prop: bool = True) -> Any:
        """The last variables: runs the loop at once, or in a trace makes it one op."""
        if tracing() is not None or isinstance(limit, Tensor):
            return self.stage(leaves, limit, while_op if back_prop else while_detached)
        return self.run(leaves, limit) if back_prop else self.run_detached(leaves, limit)

    def run(self, leaves: Sequence[Tensor], limit: int | None) -> Any:
        """Runs the loop at once."""
        first, done = leaves, 0
        while limit is None or done < limit:
            answer = self.condition(*leaves)
            if isinstance(answer, Batched):  # each example has an answer of its own
                return self.stage(leaves, None if limit is None else limit - done)
            if not answer:
                break
            leaves = self.step(*leaves)
            done += 1
        return nest.unflatten(self.structure, unaliased(leaves, first))

    def run_detached(self, leaves: Sequence[Tensor], limit: int | None) -> Any:
        """The same, unrecorded by tapes."""
        leaves = [dispatch.apply(get("stop_gradient"), (x,)) for x in leaves]  # which tapes take note of
        with unrecorded():
            result = self.run(leaves, limit)
        return nest.map_structure(lambda x: dispatch.apply(get("stop_gradient"), (x,)), result)

    def stage(self, leaves: Sequence[Tensor], limit: int | Tensor | None, op: Op | None = None) -> Any:
        """Makes the loop one op."""
        if isinstance(limit, Tensor):
            return self._stage_counting(leaves, limit, op)
        return nest.unflatten(self.structure, _apply_op(self.trace(leaves), leaves, limit, op))

    def trace(self, leaves: Sequence[Tensor] = ()) -> tuple[Traced, Traced]:
        """Traces both functions once, for `leaves` at first."""
        condition = trace_branch("cond", self.condition, self.specs, self.names, given=leaves)
        return condition, trace_branch("body", self.step, self.specs, self.names, given=leaves, repeated=True)

    def _stage_counting(self, leaves: Sequence[Tensor], limit: Tensor, op: Op | None) -> Any:
        """The same for a limit known only when the graph runs: a further loop variable counts the iterations."""

        def counted(count: Tensor, *leaves: Tensor) -> Tensor:
            never = as_tensor(False)
            result: Tensor = choose(count < limit, lambda: self.condition(*leaves).reshape(()), lambda: never)
            return result

        specs, names = [known((), limit.dtype), *self.specs], ["the count of iterations", *self.names]
        condition = trace_branch("cond", counted, specs, names)
        body = trace_branch(
            "body", lambda count, *leaves: [count + 1, *self.step(*leaves)], specs, names, repeated=True
        )
        initial = [constant(0, limit.dtype), *leaves]
        return nest.unflatten(self.structure, _apply_op((condition, body), initial, None, op)[1:])

    def condition(self, *leaves: Tensor) -> Tensor:
        """The answer of `cond_fn`, one boolean. Raises ControlFlowError for anything else."""
        answer = as_tensor(self._call("cond", self.cond_fn, leaves))
        if not is_condition(answer.spec):
            hint = "compare it, as in `n != 0`" if answer.dtype != dtypes.bool_ else "join them with ll.all or ll.any"
            raise ControlFlowError(f"while_loop: cond must return one boolean, got {answer.spec}; {hint}")
        return answer

    def step(self, *leaves: Tensor) -> list[Tensor]:
        """The leaves after one iteration."""
        try:
            result = self._call("body", self.body_fn, leaves)
        except DTypeError as error:
            suggest_initial_dtype(error, self.names, leaves)
            raise
        after = as_carried(self.op, self.names, self._leaves(result), self.specs)
        return list(map(self._checked, self.names, self.specs, after))

    def _call(self, parameter: str, function: Callable[..., Any], leaves: Sequence[Tensor]) -> Any:
        variables = nest.unflatten(self.structure, leaves)
        return call_user_function(self.op, parameter, "one for each loop variable", function, *variables)

    def _leaves(self, result: Any) -> list[Any]:
        """The leaves of what `body_fn` returned. Raises ControlFlowError for another structure."""
        n = len(self.structure.children)
        if n == 1 and not (isinstance(result, (tuple, list)) and len(result) == 1):
            result = (result,)
        if not isinstance(result, (tuple, list)) or len(result) != n:
            got = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
            raise ControlFlowError(f"{self.op}: the body must return {n} loop variables, got {got}")
        leaves, structure = nest.flatten(result)
        if structure.children != self.structure.children:
            raise ControlFlowError(
                f"{self.op}: the loop variables have structure {self.structure} on entry and {structure} after one "
                f"iteration; the body must keep it{nest.advice(self.structure)}"
            )
        return leaves

    def _checked(self, name: str, before: TensorSpec, x: Tensor) -> Tensor:
        """A leaf after an iteration. Raises ControlFlowError where its dtype or shape is another than `before`."""
        if x.dtype != before.dtype or not shapes.compatible(x.shape, before.shape):
            raise ControlFlowError(
                f"{self.op}: `{name}` is {before} on entry and {x.spec} after one iteration; the body must keep dtype "
                f"and shape. {conversion_hint(before, x.spec, 'body') or self._suggested_invariants(name, x.spec)}"
            )
        return x

    def _suggested_invariants(self, name: str, after: TensorSpec) -> str:
        """The shape invariants that would allow for the sizes of `name`, which changed."""
        all_shapes = [spec.shape for spec in self.specs]
        place = self.names.index(name)
        all_shapes[place] = shapes.generalise(all_shapes[place], after.shape) or after.shape
        invariants = ", ".join(map(shapes.show, all_shapes))
        return f"Keep the shape in the body, or name the sizes that change: shape_invariants=[{invariants}]"


def _flat_invariants(invariants: Any, structure: nest.Structure) -> Any:
    """Shape invariants, given in the structure of the loop variables, as a list with one for each leaf."""
    if not isinstance(invariants, (tuple, list)) or structure.is_flat:
        return invariants
    nested = list(invariants) if structure.kind is list else tuple(invariants)
    try:
        return nest.flatten_like(structure, nested, "shape_invariants")
    except ArgumentError as error:
        if len(invariants) == structure.n_leaves and not any(isinstance(x, Mapping) for x in invariants):
            return invariants
        raise ControlFlowError(f"while_loop: {error.bare}, or one shape for each of its leaves") from None


def _variable_specs(leaves: Sequence[Tensor], invariants: Any, names: Sequence[str]) -> list[TensorSpec]:
    """The specs of the loop variables in any iteration. Raises ControlFlowError for invariants that do not fit."""
    specs = [known(x.shape, x.dtype) for x in leaves]  # without what a trace knows of elements, which change
    if invariants is None:
        return specs
    if len(invariants) != len(specs):
        raise ControlFlowError(f"while_loop: {len(invariants)} shape_invariants for {len(specs)} loop variables")
    for shape, spec, name in zip(invariants, specs, names, strict=True):
        if not shapes.compatible(spec.shape, shapes.as_shape(shape)):
            raise ControlFlowError(f"while_loop: `{name}` is {spec}, its shape invariant is {shapes.show(shape)}")
    return [known(shapes.as_shape(shape), spec.dtype) for shape, spec in zip(invariants, specs, strict=True)]


def _apply_op(traced: tuple[Traced, Traced], leaves: Sequence[Tensor], limit: int | None, op: Op | None) -> Any:
    (cond_fn, body_fn), captures = read_variables_before(*close(traced))
    settle_loop(traced[1].tracer, lambda: limit != 0 and replay(cond_fn.graph, (*leaves, *captures))[0])
    return dispatch.apply(op or while_op, (*leaves, *captures), (cond_fn, body_fn, len(leaves), limit))


def _iteration_limit(limit: Any) -> int | Tensor | None:
    """`maximum_iterations`; a tensor where its value is not known. Raises ArgumentError for what is no count."""
    if limit is None:
        return None
    limit = as_tensor(limit) if isinstance(limit, Resource) else limit
    fits = isinstance(limit, Tensor) and dtypes.kind(limit.dtype) == "integer" and limit.spec.size == 1
    if fits and isinstance(limit, (SymbolicTensor, Batched)):
        return limit.reshape(())
    number = fits or (isinstance(limit, SupportsIndex) and not isinstance(limit, (bool, Tensor)))
    if not number or int(limit) < 0:
        raise ArgumentError(
            "while_loop: maximum_iterations must be a number from 0 on, an integer tensor of one element, or None, "
            f"got {limit!r}"
        )
    return int(limit)


# The op. Operands: n loop variables, which are the carried values, then what both functions capture.


def _infer(*arguments: Any) -> tuple[Spec, ...]:
    _, body_fn, n, _ = arguments[-4:]
    return tuple(value.spec for value in body_fn.graph.inputs[:n])


def _run(xp: Any, *arguments: Any) -> tuple[Any, ...]:
    *data, cond_fn, body_fn, n, limit = arguments
    values, captures = tuple(data[:n]), tuple(data[n:])
    done = 0
    while (limit is None or done < limit) and bool(cond_fn.run(*values, *captures)[0]):
        values = body_fn.run(*values, *captures)
        done += 1
    return values


# The gradient: a scan over the residuals of the steps, in the other direction (`loop_backward`). The variant that a
# tape records, `while_forward`, runs a body that also returns the residuals of each step (`loop_residuals`). It returns
# the variables, a row for each step that says whether it ran, and stacks of the residuals. The row is true for every
# step, but under `vectorize` false for the examples that were done; in the backward pass those steps change nothing.


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> TapedVariant | None:
    cond_fn, body_fn, n, limit = attrs[:4]
    residuals, wider = loop_residuals(body_fn, n, 0, watched_in_loop(inputs, n, mask))
    if not any(residuals.pair.connected) and not any(x.dtype in INEXACT for x in inputs[:n]):
        return None  # without iterations a variable that the body overwrites is the result, and has a gradient
    n_outputs = n if len(attrs) == 4 else residuals.pair.n_outputs + 1  # while_forward also returns flags
    return TapedVariant(while_forward, (cond_fn, wider, n, limit, residuals), lambda outputs: outputs[:n_outputs])


def _infer_forward(*arguments: Any) -> tuple[Spec, ...]:
    _, body_fn, n, _, _ = arguments[-5:]
    stacks = [stack_of(value.spec, None) for value in body_fn.graph.outputs[n:]]
    return (*[value.spec for value in body_fn.graph.inputs[:n]], known((None,), dtypes.bool_), *stacks)


def _run_forward(xp: Any, *arguments: Any) -> tuple[Any, ...]:
    *data, cond_fn, body_fn, n, limit, _ = arguments
    values, captures = tuple(data[:n]), tuple(data[n:])
    rows: list[Any] = []
    while (limit is None or len(rows) < limit) and bool(cond_fn.run(*values, *captures)[0]):
        outputs = body_fn.run(*values, *captures)
        values = outputs[:n]
        rows.append(outputs[n:])
    graph = body_fn.graph
    live = xp.ones(len(rows), dtype=bool)
    if not rows:
        return (*values, live, *empty_stacks(xp, graph, n, [getattr(x, "shape", ()) for x in data]))
    uneven = ragged_results(graph)
    columns = enumerate(zip(*rows, strict=True), n)
    stacks = [stacked("while_loop", xp, column, graph.outputs[i].spec, i in uneven) for i, column in columns]
    return (*values, live, *stacks)


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> SavedLoop:
    _, body_fn, n, _, residuals = attrs
    loop = RecordedLoop(body_fn, n, 0, False, residuals)
    return save_loop(loop, inputs, (*out[:n], *out[n + 1 :]), None, live=out[n])


def _pull(g: tuple[Any, ...], saved: SavedLoop, needed: tuple[bool, ...]) -> tuple[Any, ...]:
    n = saved.loop.n
    return pull_loop((*g[:n], *g[n + 1 :]), saved, needed)


# Forward mode: the tangents of loop variables are loop variables, so nothing is stacked.


class _LoopWithTangents(NamedTuple):
    """The loop with tangents of its variables as further variables."""

    operands: tuple[Any, ...]
    condition: GraphFunction
    body: JvpFunction
    moving: tuple[int, ...]  # the variables that have tangents


def _with_tangents(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> _LoopWithTangents:
    condition, body, n, _ = attrs[:4]
    flags, before = tangent_flags(tangents), None
    while flags != before:  # what moves after an iteration moves before the next one
        before = flags
        reached = jvp_function(body, flags, (), n).moving
        flags = tuple([m or (i < n and i in reached) for i, m in enumerate(flags)])
    n_outputs = len(body.graph.outputs)
    forced = tuple([i < n and flags[i] for i in range(n_outputs)])
    full_tangents = [filled(0, x) if m and t is None else t for x, t, m in zip(inputs, tangents, flags, strict=True)]
    operands = (*inputs[:n], *present_tangents(full_tangents[:n]), *inputs[n:], *present_tangents(full_tangents[n:]))
    moving = tuple([i for i in range(n) if flags[i]])
    return _LoopWithTangents(
        operands, condition_with_tangents(condition, flags, n), jvp_function(body, flags, forced, n), moving
    )


def _jvp(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    n, limit = attrs[2:4]
    loop = _with_tangents(inputs, tangents, attrs)
    wider = n + len(loop.moving)
    results = dispatch.apply(while_op, loop.operands, (loop.condition, loop.body.function, wider, limit))
    return split_tangents(results, n, loop.moving)


def _jvp_forward(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    """The tangents of the stacks are stacks of the tangents of each iteration."""
    _, body, n, limit, _ = attrs
    loop = _with_tangents(inputs, tangents, attrs)
    wider = n + len(loop.moving)
    params = (loop.condition, loop.body.function, wider, limit, None)
    results = dispatch.apply(while_forward, loop.operands, params)
    values, moved = split_tangents(results[:wider], n, loop.moving)
    of_rows = [i - n for i in loop.body.moving if i >= n]
    stacks, of_stacks = split_tangents(results[wider + 1 :], len(body.graph.outputs) - n, of_rows)
    return (*values, results[wider], *stacks), [*moved, None, *of_stacks]


# Batching: a loop goes on while any example does, and those that are done keep their values. So a body with effects is
# run example by example instead.


def _batch(site: Site) -> Any:
    condition, body, n, limit = site.attrs[:4]
    if not tensors_only(site):
        return NotImplemented
    mask: Flags | None = site.mask
    before: Flags | None = None
    while mask != before and mask is not None:  # what differs after an iteration differs before the next one
        before, mask = mask, _mask_after(site, body, mask, n)
    holds = None if mask is None else batched_function(batch_size(site), condition, mask)
    if mask is None or holds is None:
        return NotImplemented
    if holds.mask[0]:  # the examples differ in the number of iterations
        return _masked(site, tuple([m or i < n for i, m in enumerate(mask)]))
    forced = tuple([i < n and mask[i] for i in range(len(body.graph.outputs))])
    step = batched_function(batch_size(site), body, mask, forced)
    assert step is not None, "it could be batched without forcing"
    note_looped_ops(site, holds, step)
    inputs = tuple([site.lead(i) if m else x for i, (x, m) in enumerate(zip(site.inputs, mask, strict=True))])
    if site.op != "while_forward":
        return with_shared(dispatch.apply(site.op, inputs, (holds.function, step.function, n, limit)), mask[:n])
    results = dispatch.apply(while_forward, inputs, (holds.function, step.function, n, limit, None))
    return (*with_shared(results[:n], mask[:n]), Shared(results[n]), *_examples_first(results[n + 1 :], step.mask[n:]))


def _mask_after(site: Site, body: Any, mask: Flags, n: int) -> Flags | None:
    """The inputs that differ between examples after an iteration; None where the body cannot be batched.

    Args:
        site: the loop.
        body: its body.
        mask: the inputs that differ between examples before the iteration.
        n: the number of loop variables.
    """
    step = batched_function(batch_size(site), body, mask)
    return None if step is None else tuple([m or (i < n and step.mask[i]) for i, m in enumerate(mask)])


def _examples_first(stacks: Sequence[Any], mask: Flags) -> list[Any]:
    """Stacks, in which the axis of iterations comes first, with the axis of examples in front."""
    return [front(stack, 1) if m else Shared(stack) for stack, m in zip(stacks, mask, strict=True)]


def _masked(site: Site, mask: Flags) -> Any:
    """A loop that goes on while any example does; those that are done keep their values."""
    condition, body, n, limit = site.attrs[:4]
    if not pure(condition, body):
        return NotImplemented
    recorded = site.op == "while_forward"
    key = ("masked", body, mask, batch_size(site), recorded)
    any_holds, step = cached_version(condition.pairs, key, lambda: masked_condition_and_body(site, mask, recorded))
    note_looped_ops(site, any_holds, step)
    inputs = tuple([site.lead(i) if m else x for i, (x, m) in enumerate(zip(site.inputs, mask, strict=True))])
    if not recorded:
        return dispatch.apply(site.op, inputs, (any_holds.function, step.function, n, limit))
    results = dispatch.apply(while_forward, inputs, (any_holds.function, step.function, n, limit, None))
    return (*results[:n], *_examples_first(results[n + 1 :], step.mask[n:]))


while_op: Op = defop(
    "while_loop",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    taped=_taped,
    jvp=_jvp,
    batching=_batch,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records while_forward
    maths={"xs": "x̄ = backward of the body, iteration by iteration from the last"},
)

while_detached: Op = defop(
    "while_detached",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    batching=_batch,
    why_no_gradient="the loop was asked for no gradient (back_prop=False)",
)

while_forward: Op = defop(
    "while_forward",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations record",
    infer=_infer_forward,
    kernel=_run_forward,
    multiple=True,
    higher_order=True,
    taped=_taped,
    jvp=_jvp_forward,
    batching=_batch,
    save=_save,
    vjp={"xs": _pull},
    maths={"xs": "x̄ = backward of the body, iteration by iteration from the last"},
)
