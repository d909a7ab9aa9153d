"""Pushing tangents forward through one op, by rules that were written to pull gradients back.

Forward mode needs no second rule for each op, because a gradient rule is a linear function of the output's gradient,
written in differentiable ops: what pushes forward is its transpose. The ways, the cheapest that applies first:

- an op that knows better has a `jvp` of its own (the calls of staged functions);
- a linear op is applied to the tangents;
- an elementwise op multiplies each element by a slope, so for real numbers its rule is its own transpose;
- any other rule is pulled through once, from an arbitrary gradient, and that is pulled back (two vector-Jacobian
  products in a row; Townsend 2017, "A new trick for calculating Jacobian vector products").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.autodiff.backward import filled
from limelight.autodiff.tape import INEXACT, GradientTape
from limelight.core import dispatch, dtypes
from limelight.core.op import SAVED, Op, VjpRecipe
from limelight.core.tensor import Tensor

Tangents = Sequence[Any]
"""For each input or output its tangent, None where that is zero."""


def push(op: Op, inputs: tuple[Any, ...], tangents: Tangents, attrs: tuple[Any, ...]) -> tuple[Any, Tangents]:
    """The result of an op, and the tangents of its outputs. At least one of `tangents` is not None."""
    if op.jvp is not None:
        return op.jvp(inputs, tangents, attrs)
    if op.taped is None:
        return _push_plain(op, inputs, tangents, attrs)
    swap = op.taped(inputs, attrs)
    if swap is None:  # nothing is connected
        out = dispatch.apply(op, inputs, attrs)
        return out, (None,) * (len(out) if op.multiple else 1)
    result, out_tangents = _push_plain(swap.op, inputs, tangents, swap.attrs)
    shown = swap.result(out_tangents if swap.op.multiple else out_tangents[0])
    return swap.result(result), shown if op.multiple else (shown,)


def _push_plain(op: Op, inputs: tuple[Any, ...], tangents: Tangents, attrs: tuple[Any, ...]) -> tuple[Any, Tangents]:
    out = dispatch.apply(op, inputs, attrs)
    outs = out if op.multiple else (out,)
    if all(y.dtype not in INEXACT for y in outs):
        return out, (None,) * len(outs)
    if _is_linear(op, tangents):
        return out, _through_linear(op, inputs, tangents, attrs)
    if op.elementwise and all(dtypes.kind(x.dtype) != "complex" for x in (out, *_tensors(inputs))):
        return out, (_through_elementwise(op, inputs, tangents, attrs, out),)
    return out, _through_transpose(op, inputs, tangents, attrs, out)


def _tensors(inputs: tuple[Any, ...]) -> list[Any]:
    return [x for x in inputs if isinstance(x, Tensor)]


def _is_linear(op: Op, tangents: Tangents) -> bool:
    if op.variadic:
        return op.operands[0].name in op.linear
    return all(t is None or o.name in op.linear for t, o in zip(tangents, op.operands, strict=True))


def _through_linear(op: Op, inputs: tuple[Any, ...], tangents: Tangents, attrs: tuple[Any, ...]) -> Tangents:
    if op.variadic:
        full_tangents = tuple([filled(0, x) if t is None else t for x, t in zip(inputs, tangents, strict=True)])
        results = [dispatch.apply(op, full_tangents, attrs)]
    else:
        results = [
            dispatch.apply(op, (*inputs[:i], t, *inputs[i + 1 :]), attrs)
            for i, t in enumerate(tangents)
            if t is not None
        ]
    columns = zip(*[r if op.multiple else (r,) for r in results], strict=True)
    return tuple(map(_total, columns))


def _total(parts: Sequence[Any]) -> Any:
    """The sum of the parts that are there, None of none."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def _through_elementwise(op: Op, inputs: tuple[Any, ...], tangents: Tangents, attrs: tuple[Any, ...], out: Any) -> Any:
    """The rule with tangents in the place of gradients, and no summing back to the operands' shapes."""
    recipe = op.recipe(_mask(tangents))
    sizes = out.sizes()
    saved = [
        sizes if name.endswith("_shape") else value
        for name, value in zip(recipe.names, recipe.save(inputs, out, attrs), strict=True)
    ]
    entry = _entry(recipe, saved)
    parts = []
    for place, _, rule in recipe.pulls:
        t = tangents[place - recipe.first_input]
        parts.append(rule(t if t.shape == out.shape and None not in t.shape else t.broadcast_to(sizes), entry))
    return _total(parts)


def _through_transpose(
    op: Op, inputs: tuple[Any, ...], tangents: Tangents, attrs: tuple[Any, ...], out: Any
) -> Tangents:
    outs = out if op.multiple else (out,)
    seeds = [filled(0, y) if y.dtype in INEXACT else None for y in outs]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([seed for seed in seeds if seed is not None])
        pulled = _pulled(op, inputs, tangents, attrs, out, tuple(seeds))
    pairs = [(p, t) for p, t in zip(pulled, tangents, strict=True) if p is not None and t is not None]
    out_tangents: Tangents = tape.gradient([p for p, _ in pairs], seeds, output_gradients=[t for _, t in pairs])
    return out_tangents


def _pulled(
    op: Op, inputs: tuple[Any, ...], tangents: Tangents, attrs: tuple[Any, ...], out: Any, seeds: tuple[Any, ...]
) -> list[Any]:
    """The gradients of the inputs that have tangents, for the gradients `seeds` of the outputs."""
    recipe = op.recipe(1 if op.variadic else _mask(tangents))
    entry = _entry(recipe, recipe.save(inputs, out, attrs))
    g = seeds if op.multiple else seeds[0]
    if recipe.pull_all is not None:
        return list(recipe.pull_all(g, entry, tuple([t is not None for t in tangents])))
    gradients: list[Any] = [None] * len(inputs)
    for place, _, rule in recipe.pulls:
        gradients[place - recipe.first_input] = rule(g, entry)
    return gradients


def _mask(tangents: Tangents) -> int:
    return sum([1 << i for i, t in enumerate(tangents) if t is not None])


def _entry(recipe: VjpRecipe, saved: Sequence[Any]) -> tuple[Any, ...]:
    """An entry as a tape would make it, of which rules read only what was saved."""
    return (recipe, *[None] * (SAVED - 1), *saved)
