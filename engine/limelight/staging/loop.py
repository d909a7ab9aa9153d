"""`while_loop`: repetition by value (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from limelight import dispatch, dtypes, nest, source
from limelight.errors import ControlFlowError
from limelight.registry import Op, Taped, defop
from limelight.spec import Spec, TensorSpec, known
from limelight.staging.branches import Traced, close, trace_branch, tracing
from limelight.staging.gradient import Pair, call, pair_of, watched_mask
from limelight.tape import INEXACT, filled
from limelight.tensor import Tensor, as_tensor


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
    shape_invariants: Any = None,
) -> Any:
    """Repeats `loop_vars = body(*loop_vars)` while `cond(*loop_vars)`; returns the last `loop_vars`.

    `loop_vars`: a tuple or list of tensors (or nests of them). While tracing, `cond` and `body` are traced once each,
    and the body must keep every loop variable's dtype and shape (ControlFlowError names the variable otherwise);
    `shape_invariants`, a list of shapes for the leaves with None for sizes that change, relaxes that. Differentiable;
    the intermediates of each iteration that the backward pass needs are stacked.

    >>> import limelight as ll
    >>> i, total = ll.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (ll.constant(0), ll.constant(0)))
    >>> total.item()
    10
    """
    if not isinstance(loop_vars, (tuple, list)):
        raise ControlFlowError(f"while_loop: loop_vars must be a tuple or list, got {type(loop_vars).__name__}")
    leaves, structure = nest.flatten(loop_vars)
    leaves = [as_tensor(x) for x in leaves]
    if tracing() is None:
        return _run_eagerly(cond, body, nest.unflatten(structure, leaves), maximum_iterations)
    return _stage(cond, body, leaves, structure, maximum_iterations, shape_invariants)


def _run_eagerly(cond: Callable[..., Any], body: Callable[..., Any], values: Any, limit: int | None) -> Any:
    done = 0
    while (limit is None or done < limit) and cond(*values):
        values = _as_vars(body(*values), values)
        done += 1
    return values


def _as_vars(result: Any, like: Any) -> Any:
    if len(like) == 1 and not (isinstance(result, (tuple, list)) and len(result) == 1):
        result = (result,)
    if not isinstance(result, (tuple, list)) or len(result) != len(like):
        got = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
        raise ControlFlowError(f"while_loop: the body must return {len(like)} loop variables, got {got}")
    return type(like)(nest.map_structure(as_tensor, list(result)))


def _stage(
    cond: Callable[..., Any], body: Callable[..., Any], leaves: list[Tensor], structure: Any, limit: int | None, invariants: Any
) -> Any:
    specs = _entry_specs(leaves, invariants)
    names = nest.paths(structure, "loop_vars")

    def traced_cond(*xs: Any) -> Any:
        return cond(*nest.unflatten(structure, xs))

    def traced_body(*xs: Any) -> Any:
        given = nest.unflatten(structure, xs)
        return nest.flatten(_as_vars(body(*given), given))[0]

    traced = [trace_branch("cond", traced_cond, specs, names), trace_branch("body", traced_body, specs, names)]
    _check(traced[0], traced[1], specs, names)
    (cond_fn, body_fn), captures = close(traced)
    results = dispatch.apply(while_op, (*leaves, *captures), (cond_fn, body_fn, len(leaves), limit))
    return nest.unflatten(structure, results)


def _entry_specs(leaves: Sequence[Tensor], invariants: Any) -> list[TensorSpec]:
    specs = [x.spec for x in leaves]
    if invariants is None:
        return specs
    if len(invariants) != len(specs):
        raise ControlFlowError(f"while_loop: {len(invariants)} shape_invariants for {len(specs)} loop variables")
    return [known(tuple(shape), spec.dtype) for shape, spec in zip(invariants, specs, strict=True)]


def _check(cond: Traced, body: Traced, specs: Sequence[TensorSpec], names: Sequence[str]) -> None:
    answer = cond.specs
    if len(answer) != 1 or not isinstance(answer[0], TensorSpec) or answer[0].dtype != dtypes.bool_ or answer[0].size not in (1, None):
        raise ControlFlowError(f"while_loop: cond must return one boolean, got {', '.join(map(str, answer))}")
    for name, before, after in zip(names, specs, body.specs, strict=True):
        assert isinstance(after, TensorSpec)
        if after.dtype != before.dtype or not _keeps(after, before):
            raise ControlFlowError(
                f"while_loop: `{name}` is {before} on entry and {after} after one iteration; the body must keep dtype and shape"
                f"{source.at(source.user_line())}. Cast in the body with ll.astype, or name the sizes that change: "
                "shape_invariants=[(None, ...), ...]"
            )


def _keeps(after: TensorSpec, before: TensorSpec) -> bool:
    return after.rank == before.rank and all(b is None or a == b for a, b in zip(after.shape, before.shape, strict=True))


def _infer(*given: Any) -> tuple[Spec, ...]:
    cond_fn, body_fn, n, limit = given[-4:]
    return tuple(value.spec for value in body_fn.graph.inputs[:n])


def _run(xp: Any, *given: Any) -> tuple[Any, ...]:
    *data, cond_fn, body_fn, n, limit = given
    values, captures = tuple(data[:n]), tuple(data[n:])
    done = 0
    while (limit is None or done < limit) and bool(cond_fn.run(*values, *captures)[0]):
        values = body_fn.run(*values, *captures)
        done += 1
    return values


# Its gradient: forward stacks what each iteration's backward needs, backward is a while_loop that walks the stacks


def _stacked(pair: Pair, n: int) -> list[tuple[str, int]]:
    """The residuals that change from one iteration to the next: loop variables on entry, and intermediates."""
    return [place for place in pair.sources if place[0] == "output" or place[1] < n]


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Taped | None:
    cond_fn, body_fn, n, limit = attrs
    pair = pair_of(body_fn, watched_mask(inputs))
    if not any(pair.connected):
        return None
    return Taped(while_forward, (cond_fn, pair.forward, pair, n, limit), lambda outputs: outputs[:n])


def _infer_forward(*given: Any) -> tuple[Spec, ...]:
    cond_fn, forward, pair, n, limit = given[-5:]
    specs = [value.spec for value in forward.graph.inputs], [value.spec for value in forward.graph.outputs]
    stacks = [specs[0 if where == "input" else 1][i] for where, i in _stacked(pair, n)]
    return (*specs[0][:n], known((), dtypes.int32), *[known((None, *s.shape), s.dtype) for s in stacks])


def _run_forward(xp: Any, *given: Any) -> tuple[Any, ...]:
    *data, cond_fn, forward, pair, n, limit = given
    values, captures = tuple(data[:n]), tuple(data[n:])
    places = _stacked(pair, n)
    history: list[list[Any]] = [[] for _ in places]
    done = 0
    while (limit is None or done < limit) and bool(cond_fn.run(*values, *captures)[0]):
        outputs = forward.run(*values, *captures)
        for column, (where, i) in zip(history, places, strict=True):
            column.append(values[i] if where == "input" else outputs[i])
        values = outputs[:n]
        done += 1
    specs = _infer_forward(cond_fn, forward, pair, n, limit)[n + 1 :]
    stacks = [xp.stack(column) if column else _no_iterations(xp, spec) for column, spec in zip(history, specs, strict=True)]
    return (*values, np.int32(done), *stacks)


def _no_iterations(xp: Any, spec: Any) -> Any:
    return xp.empty(tuple(m or 0 for m in spec.shape), dtype=spec.dtype)


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    _, _, pair, n, _ = attrs
    invariant = {i: inputs[i] for where, i in pair.sources if where == "input" and i >= n}
    like = tuple([x if c else None for x, c in zip(inputs, pair.connected, strict=True)])
    return (pair, n, out[n], tuple(out[n + 1 :]), tuple(invariant.items()), like, tuple(out[:n]))


def _pull(g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    pair, n, count, stacks, invariant, like, finals = saved
    carried = [i for i in range(n) if like[i] is not None or finals[i].dtype in INEXACT]
    captured = [i for i in range(n, len(needed)) if needed[i] and pair.connected[i]]
    seeds = [g[i] if g[i] is not None else filled(0, finals[i]) for i in carried]
    body = _backward_body(pair, n, stacks, dict(invariant), carried, captured)
    start = (count - 1, *seeds, *[filled(0, like[i]) for i in captured])
    shapes_ = [(), *[x.shape for x in start[1:]]]
    end = while_loop(lambda k, *rest: k >= 0, body, start, shape_invariants=shapes_)
    results: list[Any] = [None] * len(needed)
    for i, value in zip([*carried, *captured], end[1:], strict=True):
        results[i] = value if needed[i] else None
    return tuple(results)


def _backward_body(
    pair: Pair, n: int, stacks: tuple[Any, ...], invariant: dict[int, Any], carried: list[int], captured: list[int]
) -> Callable[..., tuple[Any, ...]]:
    """One step back: gradients after an iteration to gradients before it, captured inputs' gradients added up."""
    targets = {*carried, *captured}
    needed = tuple(i in targets and c for i, c in enumerate(pair.connected))
    function, found_for = pair.backward(needed, tuple(i in carried for i in range(pair.n_outputs)))

    def body(k: Any, *gradients: Any) -> tuple[Any, ...]:
        after, totals = gradients[: len(carried)], gradients[len(carried) :]
        rows = iter([stack[k] for stack in stacks])
        residuals = [invariant[i] if where == "input" and i >= n else next(rows) for where, i in pair.sources]
        values = dispatch.apply(call, (*residuals, *after), (function,)) if found_for else ()
        found = dict(zip(found_for, values, strict=True))
        before = [found[i] if i in found else g * 0 for i, g in zip(carried, after, strict=True)]
        sums = [t + found[i] if i in found else t for i, t in zip(captured, totals, strict=True)]
        return (k - 1, *before, *sums)

    return body


while_op: Op = defop(
    "while_loop",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    taped=_taped,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records while_forward
    maths={"xs": "x̄ = backward of the body, iteration by iteration from the last"},
)

while_forward: Op = defop(
    "while_forward",
    inputs="*xs:any",
    attrs="cond body pair n_vars maximum_iterations",
    infer=_infer_forward,
    kernel=_run_forward,
    multiple=True,
    higher_order=True,
    save=_save,
    vjp={"xs": _pull},
    maths={"xs": "x̄ = backward of the body, iteration by iteration from the last"},
)
