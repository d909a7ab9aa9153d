"""`while_loop`: repetition by value (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, SupportsIndex

from limelight.autodiff import unrecorded
from limelight.batching import Batched
from limelight.control_flow.cond import cond as choose
from limelight.control_flow.loop_constants import read_outside
from limelight.control_flow.user_functions import blame_beginning, called, repaired
from limelight.control_flow.while_loop_op import while_detached, while_op
from limelight.core import dispatch, dtypes, nest, shapes
from limelight.core.op import Op, get
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor, constant
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, ControlFlowError, DTypeError
from limelight.staging.symbolic import SymbolicTensor
from limelight.staging.trace_body import Traced, apart, close, is_condition, require_callable, trace_branch, tracing


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
        maximum_iterations: a number from 0 on or an integer scalar; once it is reached, `cond` is not asked any more (a
            negative one that is known only when a graph runs counts as 0). By default no limit.
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
    require_callable("while_loop", cond=cond, body=body)
    if not isinstance(loop_vars, (tuple, list)):
        raise ControlFlowError(
            f"while_loop: loop_vars must be a tuple or list, got {type(loop_vars).__name__}; write (x,) for one alone"
        )
    leaves, structure = nest.flatten(loop_vars)
    leaves = [as_tensor(x) for x in leaves]
    names = nest.paths(structure, "loop_vars")
    loop = Loop(cond, body, structure, _kept_specs(leaves, _flat(shape_invariants, structure), names), names)
    limit = _limit(maximum_iterations)
    return loop.repeat(leaves, limit, back_prop)


class Loop(NamedTuple):
    """A loop's functions, and what its variables keep from one iteration to the next: structure and specs."""

    condition: Callable[..., Any]
    body: Callable[..., Any]
    structure: nest.Structure
    specs: list[TensorSpec]
    names: list[str]

    def repeat(self, leaves: Sequence[Tensor], limit: int | Tensor | None = None, back_prop: bool = True) -> Any:
        """The loop, run at once or in a trace made an op."""
        if tracing() is not None or isinstance(limit, Tensor):
            return self.stage(leaves, limit, while_op if back_prop else while_detached)
        return self.run(leaves, limit) if back_prop else self.run_detached(leaves, limit)

    def run(self, leaves: Sequence[Tensor], limit: int | None) -> Any:
        """Runs the loop at once."""
        entry, done = leaves, 0
        while limit is None or done < limit:
            going = self.goes_on(*leaves)
            if isinstance(going, Batched):  # each example has an answer of its own
                return self.stage(leaves, None if limit is None else limit - done)
            if not going:
                break
            leaves = self.step(*leaves)
            done += 1
        return nest.unflatten(self.structure, apart(leaves, entry))

    def run_detached(self, leaves: Sequence[Tensor], limit: int | None) -> Any:
        """The same, while tapes look away."""
        leaves = [dispatch.apply(get("stop_gradient"), (x,)) for x in leaves]  # which tapes take note of
        with unrecorded():
            result = self.run(leaves, limit)
        return nest.map_structure(lambda x: dispatch.apply(get("stop_gradient"), (x,)), result)

    def stage(self, leaves: Sequence[Tensor], limit: int | Tensor | None, op: Op | None = None) -> Any:
        """Makes the loop one op."""
        if isinstance(limit, Tensor):
            return self._stage_counting(leaves, limit, op)
        return nest.unflatten(self.structure, _one_op(self.trace(), leaves, limit, op))

    def trace(self) -> tuple[Traced, Traced]:
        """Traces both functions once."""
        condition = trace_branch("cond", self.goes_on, self.specs, self.names)
        return condition, trace_branch("body", self.step, self.specs, self.names)

    def _stage_counting(self, leaves: Sequence[Tensor], limit: Tensor, op: Op | None) -> Any:
        """The same for a limit that is known only when the graph runs: the loop counts, in a variable of its own."""

        def goes_on(count: Tensor, *leaves: Tensor) -> Tensor:
            never = as_tensor(False)
            result: Tensor = choose(count < limit, lambda: self.goes_on(*leaves).reshape(()), lambda: never)
            return result

        specs, names = [known((), limit.dtype), *self.specs], ["the count of iterations", *self.names]
        condition = trace_branch("cond", goes_on, specs, names)
        body = trace_branch("body", lambda count, *leaves: [count + 1, *self.step(*leaves)], specs, names)
        given = [constant(0, limit.dtype), *leaves]
        return nest.unflatten(self.structure, _one_op((condition, body), given, None, op)[1:])

    def goes_on(self, *leaves: Tensor) -> Tensor:
        """What the condition says: one boolean, as a tensor."""
        answer = as_tensor(self._called("cond", self.condition, leaves))
        if not is_condition(answer.spec):
            hint = "compare it, as in `n != 0`" if answer.dtype != dtypes.bool_ else "join them with ll.all or ll.any"
            raise ControlFlowError(f"while_loop: cond must return one boolean, got {answer.spec}; {hint}")
        return answer

    def step(self, *leaves: Tensor) -> list[Tensor]:
        """The leaves after one iteration."""
        try:
            result = self._called("body", self.body, leaves)
        except DTypeError as error:
            blame_beginning(error, self.names, leaves)
            raise
        return list(map(self.checked, self.names, self.specs, map(as_tensor, self._leaves(result))))

    def _called(self, parameter: str, function: Callable[..., Any], leaves: Sequence[Tensor]) -> Any:
        given = nest.unflatten(self.structure, leaves)
        return called("while_loop", parameter, "one for each loop variable", function, *given)

    def _leaves(self, result: Any) -> list[Any]:
        n = len(self.structure.children)
        if n == 1 and not (isinstance(result, (tuple, list)) and len(result) == 1):
            result = (result,)
        if not isinstance(result, (tuple, list)) or len(result) != n:
            got = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
            raise ControlFlowError(f"while_loop: the body must return {n} loop variables, got {got}")
        leaves, structure = nest.flatten(result)
        if structure.children != self.structure.children:
            raise ControlFlowError(
                f"while_loop: the loop variables have structure {self.structure} on entry and {structure} after one "
                "iteration; the body must keep it"
            )
        return leaves

    def checked(self, name: str, before: TensorSpec, x: Tensor) -> Tensor:
        if x.dtype != before.dtype or not shapes.compatible(x.shape, before.shape):
            raise ControlFlowError(
                f"while_loop: `{name}` is {before} on entry and {x.spec} after one iteration; the body must keep dtype "
                f"and shape. {repaired(before, x.spec, 'body') or self._relaxed(name, x.spec)}"
            )
        return x

    def _relaxed(self, name: str, after: TensorSpec) -> str:
        """The shape invariants that would allow for the sizes of `name`, which changed."""
        all_shapes = [spec.shape for spec in self.specs]
        place = self.names.index(name)
        all_shapes[place] = shapes.generalise(all_shapes[place], after.shape) or after.shape
        invariants = ", ".join(map(shapes.show, all_shapes))
        return f"Keep the shape in the body, or name the sizes that change: shape_invariants=[{invariants}]"


def _flat(invariants: Any, structure: nest.Structure) -> Any:
    """Shape invariants in the structure of the loop variables as a list of them, one for each leaf."""
    if not isinstance(invariants, (tuple, list)) or structure.is_flat:
        return invariants
    given = list(invariants) if structure.kind is list else tuple(invariants)
    try:
        return nest.flatten_like(structure, given, "shape_invariants")
    except ArgumentError as error:
        if len(invariants) == structure.n_leaves and not any(isinstance(x, Mapping) for x in invariants):
            return invariants
        raise ControlFlowError(f"while_loop: {error.bare}, or one shape for each of its leaves") from None


def _kept_specs(leaves: Sequence[Tensor], invariants: Any, names: Sequence[str]) -> list[TensorSpec]:
    specs = [known(x.shape, x.dtype) for x in leaves]  # not what is known of the elements: these change
    if invariants is None:
        return specs
    if len(invariants) != len(specs):
        raise ControlFlowError(f"while_loop: {len(invariants)} shape_invariants for {len(specs)} loop variables")
    for shape, spec, name in zip(invariants, specs, names, strict=True):
        if not shapes.compatible(spec.shape, shapes.as_shape(shape)):
            raise ControlFlowError(f"while_loop: `{name}` is {spec}, its shape invariant is {shapes.show(shape)}")
    return [known(shapes.as_shape(shape), spec.dtype) for shape, spec in zip(invariants, specs, strict=True)]


def _one_op(traced: tuple[Traced, Traced], leaves: Sequence[Tensor], limit: int | None, op: Op | None) -> Any:
    (cond_fn, body_fn), captures = read_outside(*close(traced))
    return dispatch.apply(op or while_op, (*leaves, *captures), (cond_fn, body_fn, len(leaves), limit))


def _limit(given: Any) -> int | Tensor | None:
    """`maximum_iterations`; a tensor where its value is not known. Raises ArgumentError for what is no count."""
    if given is None:
        return None
    given = as_tensor(given) if isinstance(given, Resource) else given
    fits = isinstance(given, Tensor) and dtypes.kind(given.dtype) == "integer" and given.spec.size == 1
    if fits and isinstance(given, (SymbolicTensor, Batched)):
        return given.reshape(())
    number = fits or (isinstance(given, SupportsIndex) and not isinstance(given, (bool, Tensor)))
    if not number or int(given) < 0:
        raise ArgumentError(
            "while_loop: maximum_iterations must be a number from 0 on, an integer tensor of one element, or None, "
            f"got {given!r}"
        )
    return int(given)
