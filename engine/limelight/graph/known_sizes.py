"""What is known, while tracing, of the elements of small integer vectors: sizes on their way to an op that needs them.

`shape_of` a tensor f32[?,3] gives the vector [?, 3]. Followed through the few ops that take shapes apart and put them
together, it lets `reshape`, `broadcast_to` or `sum_to` a vector of sizes know all but the first size of the result. Ops
that take such a vector read it from its spec (`TensorSpec.content`). One unknown size then leaves the others known, in
gradients too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from limelight.core.op import Op
from limelight.core.spec import Sizes, Spec, TensorSpec

Content = tuple[int | None, ...]

LONGEST: Final = 32
"""Longer vectors are no shapes."""


def content_of(spec: Spec) -> Content | None:
    """The elements of a small integer vector or scalar, None for those that are not known; None for anything else."""
    if not _may_be_sizes(spec):
        return None
    assert isinstance(spec, TensorSpec)
    return spec.content if spec.content is not None else (None,) * (spec.size or 0)


def with_content(op: Op, specs: Sequence[Spec], params: Sequence[Any], result: Spec) -> Spec:
    """The spec of a result with what is known of its elements.

    Args:
        op: the op that makes it.
        specs: those of the op's operands.
        params: the op's static parameters.
        result: the spec that the op's shape rule gives.
    """
    rule = RULES.get(op.name)
    if rule is None or not _may_be_sizes(result):
        return result
    content = rule(specs, params)
    assert isinstance(result, TensorSpec)
    if content is None or len(content) != result.size or all(n is None for n in content):
        return result
    return Sizes(result.shape, result.dtype, content)


def inferred(op: Op, specs: Sequence[Spec], params: Sequence[Any]) -> tuple[Spec, ...]:
    """The specs of what `op` makes of `specs`, with what is known of small vectors of sizes."""
    result = op.infer(*specs, *params)
    if isinstance(result, tuple):
        return result
    return (with_content(op, specs, params, result) if op.name in RULES else result,)


def _may_be_sizes(spec: Spec) -> bool:
    return (
        isinstance(spec, TensorSpec)
        and len(spec.shape) <= 1
        and spec.dtype.kind in "iu"
        and spec.size is not None
        and spec.size <= LONGEST
    )


def _unchanged(specs: Sequence[Any], params: Sequence[Any]) -> Content | None:
    return content_of(specs[0])


def _concatenated(specs: Sequence[Any], params: Sequence[Any]) -> Content | None:
    parts = [content_of(spec) for spec in specs]
    return None if None in parts else tuple([n for part in parts if part is not None for n in part])


def _of_literal(given: Sequence[Any], params: Sequence[Any]) -> Content:
    return tuple([int(n) for n in params[0].array.reshape(-1)])


def _sliced(specs: Sequence[Any], params: Sequence[Any]) -> Content | None:
    content, key = content_of(specs[0]), params[0]
    if content is None or len(specs[0].shape) != 1 or len(key) != 1:
        return None
    if isinstance(key[0], int):
        return (content[key[0]],)
    return content[slice(*key[0])] if isinstance(key[0], tuple) else None


def _gathered(specs: Sequence[Any], params: Sequence[Any]) -> Content | None:
    content, at = content_of(specs[0]), content_of(specs[1])
    if content is None or at is None or params[0] != ("i",) or len(specs[0].shape) != 1:
        return None
    known = range(-len(content), len(content))
    return tuple([content[i] if i is not None and i in known else None for i in at])


def _multiplied(specs: Sequence[Any], params: Sequence[Any]) -> Content | None:
    """A product, which is 0 if one factor is, whatever the other one may be."""
    x, y = map(content_of, specs)
    products = _elementwise(operator.mul)(specs, params)
    if products is None or x is None or y is None:
        return None
    zero = [0 in pair for pair in zip(*_broadcast_together(x, y), strict=True)]
    return tuple([0 if z else n for z, n in zip(zero, products, strict=True)])


def _broadcast_together(x: Content, y: Content) -> tuple[Content, Content]:
    n = len(y) if len(x) == 1 else len(x)  # 0 where one of them is empty
    return (x * n if len(x) == 1 else x), (y * n if len(y) == 1 else y)


def _product(specs: Sequence[Any], params: Sequence[Any]) -> Content | None:
    content = content_of(specs[0])
    if content is None:
        return None
    sizes = [n for n in content if n is not None]
    return (math.prod(sizes) if len(sizes) == len(content) else None,)


def _elementwise(f: Callable[[int, int], int]) -> Callable[[Sequence[Any], Sequence[Any]], Content | None]:
    def rule(specs: Sequence[Any], params: Sequence[Any]) -> Content | None:
        x, y = map(content_of, specs)
        if x is None or y is None:
            return None
        pairs = zip(*_broadcast_together(x, y), strict=True)
        return tuple([None if a is None or b is None else f(a, b) for a, b in pairs])

    return rule


# Not fields of the ops: what these rules compute with (elements that a trace may not know) is this module's, above the
# ops; most serve several of them, and an op without one loses nothing but a size that is known while tracing.
RULES: Final[dict[str, Callable[[Sequence[Any], Sequence[Any]], Content | None]]] = {
    "shape_of": lambda given, params: given[0].shape,
    "constant": _of_literal,
    "astype": _unchanged,
    "identity": _unchanged,
    "reshape": _unchanged,
    "expand_dims": _unchanged,
    "squeeze": _unchanged,
    "concat": _concatenated,
    "stack": _concatenated,
    "slice": _sliced,
    "prod": _product,
    "add": _elementwise(operator.add),
    "subtract": _elementwise(operator.sub),
    "multiply": _multiplied,
    "index": _gathered,
    "pack_indices": _concatenated,
}
"""By op. They are no fields of the ops, since they compute with what specs know while a graph is traced, not with
tensors, and since only these few ops take vectors of sizes apart and put them together."""
