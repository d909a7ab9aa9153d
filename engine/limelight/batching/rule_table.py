"""Batching rules: how ops take the hidden axis of examples.

An op states in its own block by which rule it is batched (`Op.batching`): the name of a kind of ops, whose rule stands
below or in `rules`, or a rule of its own. For elementwise ops and for reductions the rule follows from what they state
anyway. All others are run example by example.

A rule gets a `Site` and returns what the op returns for all examples, examples first, or `NotImplemented`, and then the
op is run example by example. It runs under the interpreters below the batcher and uses ordinary ops, so its result is
recorded, traced and differentiated like anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from limelight.core import dispatch, dtypes, shapes
from limelight.core.op import Op, get
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import ArgumentError, ShapeError

R = TypeVar("R", bound=Callable[..., Any])


class Shared(NamedTuple):
    """A result that is the same for all examples, without their axis."""

    value: Any


@dataclass(frozen=True, slots=True)
class Site:
    """One op at work: its inputs, those in `mask` with the examples along their first axis; `size` is how many.

    The size is an int, or in a trace with unknown sizes a scalar tensor. `batcher` is the interpreter that asks.
    """

    op: Op
    inputs: tuple[Any, ...]
    mask: tuple[bool, ...]
    attrs: tuple[Any, ...]
    size: Any
    batcher: Any

    def rank(self, i: int) -> int:
        """The number of axes that one example of input `i` has."""
        return getattr(self.inputs[i], "ndim", 0) - self.mask[i]

    def run(self, inputs: Sequence[Any], *attrs: Any) -> Any:
        """The op itself on these."""
        return dispatch.apply(self.op, tuple(inputs), attrs)

    def lead(self, i: int) -> Any:
        """Input `i` with the examples' axis, repeated along it if it is the same for all."""
        x = self.inputs[i]
        return x if self.mask[i] else repeated(as_tensor(x), self.size)

    def wider(self, i: int, rank: int) -> Any:
        """Input `i` with axes of size 1 put in so that one example has `rank` axes; as it is if it is shared."""
        x, missing = self.inputs[i], rank - self.rank(i)
        return x.expand_dims(tuple(range(1, 1 + missing))) if self.mask[i] and missing > 0 else x

    def specs(self) -> list[Any]:
        """The types of one example's inputs."""
        return list(map(_spec_of_one, self.inputs, self.mask))


def _spec_of_one(x: Any, differs: bool) -> Any:
    if type(x) is list:  # each example's by itself
        return x[0].spec
    spec = x.spec if hasattr(x, "spec") else as_tensor(x).spec
    return known(spec.shape[1:], spec.dtype) if differs else spec


def batch_shape(size: Any, shape: Any) -> Any:
    """The sizes `(size, *shape)`: a tuple, or a vector where some are known only at run time."""
    if isinstance(size, int) and isinstance(shape, tuple):
        return (size, *shape)
    parts = [
        as_tensor(part).astype("int64").reshape((-1,))
        for part in (size, shape)
        if isinstance(part, Tensor) or part != ()
    ]
    return parts[0] if len(parts) == 1 else dispatch.apply(get("concat"), tuple(parts), (0,))


def repeated(x: Tensor, size: Any) -> Tensor:
    """`x` once for each example."""
    return with_known_shape(x.broadcast_to(batch_shape(size, x.sizes())), size, x.shape)


def with_known_shape(x: Tensor, size: Any, shape: shapes.Shape) -> Tensor:
    """`x`, of which a trace shall know that one example has `shape` where it does not know how many there are."""
    return x if isinstance(size, int) or None in shape or 0 in shape else x.reshape((-1, *shape))


def front(x: Tensor, axis: int) -> Tensor:
    """`x` with `axis` moved to the front."""
    return x if axis == 0 else x.transpose((axis, *[i for i in range(x.ndim) if i != axis]))


Rule = Callable[[Site], Any]
KINDS: Final[dict[str, Rule | None]] = {"loop": None}
"""The rule of each kind of ops, by the kind's name; None where ops are run example by example."""


def kind(name: str) -> Callable[[R], R]:
    """Registers the function below as the batching rule of the ops of a kind, which say `batching="name"`."""

    def register(function: R) -> R:
        KINDS[name] = function
        return function

    return register


_SEPARATE: Final[dict[str, Rule]] = {}
"""Rules that users state apart from their ops, by the op's name: they stay when the op is defined again."""


def rule(*names: str) -> Callable[[R], R]:
    """Makes the function below the rule of the ops called `names`, which state none in their own blocks.

    >>> import limelight as ll
    >>> from limelight import batching
    >>> last = ll.defop(
    ...     "last", inputs="x", infer=lambda x: ll.TensorSpec(x.shape[:-1]), kernel=lambda xp, x: x[..., -1],
    ...     why_no_gradient="an example needs none",
    ... )
    >>> @batching.rule("last")
    ... def last_of_all(site):
    ...     return site.run(site.inputs)
    >>> ll.vectorize(last)(ll.constant([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [2.0, 4.0]
    """

    def register(function: R) -> R:
        _SEPARATE.update(dict.fromkeys(names, function))
        return function

    return register


def rule_for(op: Op) -> Rule | None:
    """The rule of an op: what it states, or what follows from its form; None where it is run example by example.

    Raises ArgumentError where the op states a kind that there is not.
    """
    stated = op.batching if op.batching is not None else _SEPARATE.get(op.name)
    if isinstance(stated, str):
        try:
            return KINDS[stated]
        except KeyError:
            raise ArgumentError(
                f"op {op.name}: batching={stated!r} is no kind of batching rule; write one of "
                f"{', '.join(sorted(KINDS))}, or a function"
            ) from None
    if stated is not None:
        return stated
    if op.elementwise:
        return elementwise
    if op.attrs[:2] == ("axis", "keepdims") and len(op.operands) == 1 and not op.variadic:
        return reduction
    return None


def how(name: str) -> str:
    """How `vectorize` takes the op called `name`: "rule", "elementwise", "reduction" or "loop".

    Raises ArgumentError when there is no such op.

    >>> from limelight import batching
    >>> batching.how("add"), batching.how("matmul"), batching.how("py_func")
    ('elementwise', 'rule', 'loop')
    """
    op = get(name)
    chosen = rule_for(op)
    if chosen is None:
        return "loop"
    return "elementwise" if chosen is elementwise else "reduction" if chosen is reduction else "rule"


@kind("elementwise")
def elementwise(site: Site) -> Any:
    """Elements meet those at the same place: axes line up from the right, so short operands are widened."""
    rank = max(map(site.rank, range(len(site.inputs))))
    return site.run([site.wider(i, rank) for i in range(len(site.inputs))], *site.attrs)


@kind("reduction")
def reduction(site: Site) -> Any:
    """All axes means all of one example's."""
    axis, *rest = site.attrs
    over = tuple([a + 1 for a in shapes.axes(site.op.name, site.rank(0), axis)])
    return site.run(site.inputs, over[0] if isinstance(axis, int) else over, *rest)


def loop(site: Site) -> Any:
    """The op once for each example, the results stacked. Raises ShapeError where these differ in shape."""
    if not isinstance(site.size, int):
        raise ShapeError(
            f"vectorize: {site.op} has no batching rule and is run example by example, so their number must be known "
            "while tracing; give it in the TensorSpec"
        )
    if site.size == 0:
        return _empty_results(site)
    rows = [
        site.run([row(x, i) if m else x for x, m in zip(site.inputs, site.mask, strict=True)], *site.attrs)
        for i in range(site.size)
    ]
    return (
        tuple([stacked(site, column) for column in zip(*rows, strict=True)])
        if site.op.multiple
        else stacked(site, rows)
    )


def row(x: Any, i: int) -> Any:
    """Example `i` of a tensor, or of a list of opaque values."""
    return x[i]


def stacked(site: Site, rows: Sequence[Any]) -> Any:
    """One result of all examples; opaque values stay in a list, and so do residuals of unlike shapes."""
    if not isinstance(rows[0], Tensor) or _is_ragged(site, rows):
        return list(rows)
    return stacked_examples(str(site.op), rows)


def _is_ragged(site: Site, rows: Sequence[Tensor]) -> bool:
    """Whether the examples of a result stay by themselves, since their shapes differ, or may where the run tells.

    Only residuals do, which nobody sees, and what is computed with them. Their sizes do, too: what is made from these
    may be unlike again.
    """
    shape = rows[0].shape
    computed = any(type(x) is list and x and isinstance(x[0], Tensor) for x in site.inputs)
    if not computed and not (site.op.higher_order and site.op.save):
        return False
    sizes = computed and dtypes.kind(rows[0].dtype) == "integer"
    return sizes or None in shape or any(x.shape != shape for x in rows)


def stacked_examples(op: str, rows: Sequence[Tensor]) -> Tensor:
    """The results of `op` for all examples as one tensor. Raises ShapeError where their shapes differ."""
    shape = rows[0].shape
    other = next((x for x in rows if x.shape != shape), None)
    if other is not None:
        raise ShapeError(
            f"vectorize: {op} gives {shapes.show(shape)} for one example and {shapes.show(other.shape)} for another, "
            "and a batch needs one shape: compute as many elements for each, and mask those beyond its own, as in "
            "ll.where(ll.arange(LARGEST) < n, x, 0); or write a Python loop over the examples"
        )
    stack: Tensor = dispatch.apply(get("stack"), tuple(rows), (0,))
    return stack


def _empty_results(site: Site) -> Any:
    specs = site.op.infer(*site.specs(), *site.attrs)
    return tuple(map(_empty_result, specs)) if isinstance(specs, tuple) else _empty_result(specs)


def _empty_result(spec: Any) -> Any:
    if not isinstance(spec, TensorSpec):
        return []
    shape = tuple([n or 0 for n in spec.shape])
    return dispatch.apply(get("full"), (), (0, spec.dtype, (0, *shape)))
