"""`custom_gradient`: a gradient of the user's own in the place of that of the ops (behaviours 48 to 51).

Run eagerly, the body runs while the innermost one-shot tape is paused; then one op, an identity on the results, stands
between them and the arguments on every tape, and its gradient is the user's rule. Outer tapes do record the body,
because the rule uses its values. While tracing, body and gradient function are traced together: see `custom_call`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, cast

from limelight.autodiff import GradientTape
from limelight.batching import Batcher, Site
from limelight.batching.batched_tensor import batched
from limelight.batching.rule_table import repeated
from limelight.control_flow.custom_call import call_staged
from limelight.control_flow.custom_gradient_rules import (
    Arguments,
    Body,
    MakeRule,
    Packing,
    Rule,
    UserRule,
    bind,
    split_result,
)
from limelight.control_flow.effect_recorder import EffectRecorder
from limelight.core import dispatch, nest
from limelight.core.autograph_hook import maybe_converted
from limelight.core.op import Op, defop
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import ArgumentError, CallError
from limelight.executors.base import Peak
from limelight.staging.trace_branch import tracing


def custom_gradient(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that gives a function its own gradient: `fn` returns `(y, grad)`, and `grad` replaces the ops' rules.

    Under a tape the ops of `fn` are not recorded. `grad` is differentiated in its turn, so second order follows from
    the ops in it (an outer tape does record the ops of `fn`, whose results `grad` may use). To say what that is as
    well, let `grad` call another function with a custom gradient. Works eagerly, staged, in branches and loops, and in
    forward mode, by transposing `grad`. While tracing, `grad` is traced along with `fn`; eagerly it sees names as then.

    Args:
        fn: returns `(y, grad)`. `grad(dy)` gets the gradient of `y` (one argument for each item where `y` is a tuple or
            list; zeros for an output that is not used) and returns a gradient for each argument of `fn`, in its
            structure; None for one that has none. Arguments that hold no tensors may be left out; keywords count in the
            order of the parameters. Trainable variables that `fn` reads, but for those among its arguments, get
            gradients too: `grad` must then take a keyword argument `variables`, a list, and return `(gradients of the
            arguments, gradients of the variables)`. Other tensors that `fn` closes over have none.

    Returns:
        A function with the arguments of `fn` that returns `y`.

    Raises:
        ArgumentError: `fn` cannot be called, or gets a tensor for a keyword-only parameter.
        SignatureError: `fn` does not return a pair, or `grad` takes no `variables` where it must.
        GradientError: `grad` returns a wrong number of gradients (when the gradient is computed, as the next two).
        ShapeError: a gradient has another shape than its source.
        DTypeError: or another dtype.

    >>> import limelight as ll
    >>> @ll.custom_gradient
    ... def log1pexp(x):
    ...     e = ll.exp(x)
    ...     def grad(dy):
    ...         return dy * (1.0 - 1.0 / (1.0 + e))  # no nan, however large e is
    ...     return ll.log(1.0 + e), grad
    >>> x = ll.constant(100.0)
    >>> with ll.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = log1pexp(x)
    >>> tape.gradient(y, x).item()
    1.0
    """
    if not callable(fn):
        raise ArgumentError(f"custom_gradient needs a function, got {type(fn).__name__}; write it as a decorator")
    name = str(getattr(fn, "__name__", type(fn).__name__))
    signature = inspect.signature(fn)

    def body(arguments: Arguments) -> tuple[Any, MakeRule]:
        args, kwargs = arguments.given
        result, gradient = split_result(name, maybe_converted(fn)(*args, **kwargs))
        return result, functools.partial(UserRule, name, gradient)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = bind(name, signature, args, kwargs)
        if tracing() is not None:
            return call_staged(name, body, arguments)
        if len(dispatch.stack()) == 1:
            return body(arguments)[0]
        return call_eagerly(body, arguments, _unrecorded())

    return _refusing_rules(call)


def _refusing_rules(function: Any) -> Callable[..., Any]:
    """`function`, which says what to write where JAX's users look for a way to give it its rule."""
    function.defvjp = function.defjvp = function.defjvps = _refuse_rules
    return cast("Callable[..., Any]", function)


def _refuse_rules(*rules: Any, **options: Any) -> None:
    """Raises CallError: the rule comes with the value."""
    raise CallError(
        "custom_gradient: the function itself returns its value and its rule: write `return y, lambda dy: dy * dydx`, "
        "and leave defvjp out; what the rule needs of the forward pass it finds as a closure"
    )


def call_eagerly(
    body: Body, arguments: Arguments, unrecorded: AbstractContextManager[None], closures: bool = False
) -> Any:
    """Runs `body` now and puts its rule between its results and the arguments.

    Args:
        body: runs the user's function.
        arguments: its arguments.
        unrecorded: a context that pauses the tapes that must not record the body.
        closures: whether the rule also gives gradients of watched tensors that the body closes over.
    """
    operands = [as_tensor(x) for x in arguments.tensors]  # reads the variables among them
    with unrecorded, EffectRecorder(tensors=closures) as recorder:
        result, make_rule = body(arguments)
        leaves, structure = nest.flatten(result)
        outputs = [None if y is None else as_tensor(y) for y in leaves]
        recorder.record_tensors(outputs)
    argument_uids = {x._uid for x in arguments.tensors}
    variables = [v for v in (*recorder.variables, *recorder.tensors.values()) if v._uid not in argument_uids]
    packing = Packing(structure, tuple([None if y is None else y.spec for y in outputs]))
    rule = make_rule(arguments, packing, variables)
    present = [y for y in outputs if y is not None]
    routed = iter(_route(rule, operands, variables, present))
    return nest.unflatten(structure, [None if y is None else next(routed) for y in outputs])


@contextmanager
def _unrecorded() -> Iterator[None]:
    """Keeps the ops of its block from the innermost tape, if it is on top of everything and answers once.

    Outer interpreters see them: they differentiate the gradient function, which uses their results.
    """
    top = dispatch.current()
    if isinstance(top, GradientTape) and not top.persistent:
        with top.stop_recording():
            yield
    else:
        yield


# The op: an identity on the outputs, whose further inputs are the tensors that the rule gives gradients of


class Route(NamedTuple):
    """The parameter of the op: the rule, which gives gradients of all inputs but the last `n_outputs`."""

    rule: Rule
    variables: tuple[Any, ...]
    n_outputs: int
    sizes: tuple[Any, ...]  # of the outputs
    run: Placement

    def __repr__(self) -> str:
        return f"<{getattr(self.rule, 'name', 'custom')} rule>"


class Placement(NamedTuple):
    """The devices of the outputs, where the eager interpreter looks for them, as in the plan of a graph function."""

    output_devices: tuple[Any, ...]

    def memory(self) -> Peak:
        """Of handing on what has been computed."""
        return Peak(0, None, True)


def _route(rule: Rule, operands: Sequence[Any], variables: Sequence[Any], outputs: Sequence[Tensor]) -> tuple[Any, ...]:
    """New handles to the outputs, from which the rule leads back to operands and variables on every tape.

    Args:
        rule: the user's rule for this call.
        operands: the tensors among the arguments.
        variables: the variables that the body read, and tensors that it closes over.
        outputs: the results of the body.
    """
    reads = [as_tensor(v) for v in variables]
    placement = Placement(tuple([y.device for y in outputs]))
    sizes = tuple([y.sizes() for y in outputs])
    route = Route(rule, tuple(variables), len(outputs), sizes, placement)
    routed: tuple[Any, ...] = dispatch.apply(custom_op, (*operands, *reads, *outputs), (route,))
    return routed


def _run(xp: Any, *arguments: Any) -> tuple[Any, ...]:
    *payloads, route = arguments
    return tuple(payloads[len(payloads) - route.n_outputs :])


def _save(inputs: tuple[Any, ...], out: Any, attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    route: Route = attrs[0]
    return (route, *getattr(route.rule, "keeps", ()))


def _pull(g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    route: Route = saved[0]
    return (*route.rule(g, route.sizes, route.variables), *[None] * route.n_outputs)


class _BatchedRule(NamedTuple):
    """A rule that was written for one example, for all: it runs as part of the vectorised call, which may be over.

    What all examples share gets the sum of their gradients.
    """

    rule: Any
    sizes: tuple[Any, ...]
    mask: tuple[bool, ...]
    batcher: Batcher

    def __call__(self, gradients: Sequence[Any], sizes: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        batcher = self.batcher
        with batcher.resumed():
            batched_gradients = [None if g is None else batched(g, batcher) for g in gradients]
            results = [None if g is None else as_tensor(g) for g in self.rule(batched_gradients, self.sizes, variables)]
        return [
            None if g is None else self._of_all(g, batcher.value_of(g), m)
            for g, m in zip(results, self.mask, strict=True)
        ]

    @property
    def keeps(self) -> tuple[Any, ...]:
        """What it keeps alive, for counting bytes."""
        kept = getattr(self.rule, "keeps", ())
        return tuple([self.batcher.inside(x) if self.batcher.owns(x) else x for x in kept])

    def _of_all(self, g: Tensor, value: Tensor | None, differs: bool) -> Tensor:
        """The gradients of all examples; of what they share, their sum."""
        if differs:
            return repeated(g, self.batcher.size) if value is None else value
        if value is None:
            value = repeated(g, self.batcher.size)
        return value.sum(0)


def _batch(site: Site) -> Any:
    (route,) = site.attrs
    first = len(site.inputs) - route.n_outputs
    inputs = [site.lead(i) if i >= first else x for i, x in enumerate(site.inputs)]
    wider = route._replace(
        rule=_BatchedRule(route.rule, route.sizes, site.mask[:first], site.batcher.origin),
        sizes=tuple([y.sizes() for y in inputs[first:]]),
    )
    return dispatch.apply(site.op, tuple(inputs), (wider,))


custom_op: Op = defop(
    "custom_gradient",
    inputs="*xs:any",
    attrs="step",
    infer=lambda *arguments: tuple(arguments[-1 - arguments[-1].n_outputs : -1]),
    kernel=_run,
    multiple=True,
    higher_order=True,
    batching=_batch,
    save=_save,
    vjp={"xs": _pull},
    maths={"xs": "x̄ = grad(ȳ), as the user wrote it"},
)
