"""Calls, which are inlined, and control flow: branches are If, loops Loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.core.spec import TensorSpec
from limelight.export.to_onnx.arrays import (
    BOOL,
    INT64,
    cast,
    equal,
    flip,
    full,
    pick,
    reshape,
    size,
    where,
)
from limelight.export.to_onnx.builder import Builder, Var
from limelight.export.to_onnx.registry import Site, lowers, refuses


@lowers("call", "call_forward", "custom_call", "custom_forward")
def _call(site: Site, *arguments: Any) -> Any:
    n = len(site.node.params)
    inputs, function = arguments[: len(arguments) - n], arguments[-n]
    return site.inline(function.graph, inputs)


@lowers("read_variable")
def _read(site: Site, variable: Var) -> Var:
    return variable  # nothing assigns to it: such ops are refused


# --- branches


def _branch(site: Site, function: Any, inputs: Sequence[Any], kinds: list[Any]) -> Any:
    """The graph of one branch; its results are made inside, as ONNX wants them."""
    b = site.builder
    with b.inner() as nodes:
        results = site.inline(function.graph, inputs)
        outputs = [b.unary("Identity", _in_kind(b, y, spec)) for y, spec in zip(results, kinds, strict=True)]
        return b.graph(nodes, [], outputs)


def _in_kind(b: Builder, x: Any, spec: Any) -> Var:
    """A result in the dtype of its spec; what is no tensor stands as a number, which nobody reads."""
    if not isinstance(x, Var):
        if isinstance(spec, TensorSpec):
            return full(b, [0 if n is None else n for n in spec.shape], 0, spec.dtype)
        return b.constant(0, INT64)
    if isinstance(spec, TensorSpec):
        x = cast(x, spec.dtype)
    made: Var = x
    return made


def _if(site: Site, condition: Var, branches: Any, inputs: Sequence[Any]) -> list[Any]:
    b = site.builder
    specs = list(site.specs)
    graphs = [_branch(site, f, inputs, specs) for f in branches]
    names = b.emit("If", [condition], len(specs), then_branch=graphs[0], else_branch=graphs[1])
    return [_made(b, name, spec) for name, spec in zip(names, specs, strict=True)]


def _made(b: Builder, name: str, spec: Any) -> Var:
    if isinstance(spec, TensorSpec):
        return Var(b, name, spec.dtype, spec.shape)
    return Var(b, name, INT64, ())


@lowers("cond", "cond_forward")
def _cond(site: Site, condition: Var, *arguments: Any) -> list[Any]:
    n = len(site.node.params)
    inputs, branches = arguments[: len(arguments) - n], site.node.params[:2]
    return _if(site, reshape(condition, ()), branches, inputs)


@lowers("switch", "switch_forward")
def _switch(site: Site, index: Var, *arguments: Any) -> list[Any]:
    n = len(site.node.params)
    inputs, branches = arguments[: len(arguments) - n], site.node.params[0]
    return _chosen(site, cast(index, INT64), list(branches), inputs, 0)


def _chosen(site: Site, index: Var, branches: list[Any], inputs: Sequence[Any], at: int) -> list[Any]:
    """Nested ifs; the last branch is the one for all that is left."""
    b, specs = site.builder, list(site.specs)
    if len(branches) - at == 1:
        return [_in_kind(b, y, s) for y, s in zip(site.inline(branches[at].graph, inputs), specs, strict=True)]
    first = _branch(site, branches[at], inputs, specs)
    with b.inner() as nodes:
        rest = [b.unary("Identity", y) for y in _chosen(site, index, branches, inputs, at + 1)]
        other = b.graph(nodes, [], rest)
    names = b.emit("If", [equal(index, at)], len(specs), then_branch=first, else_branch=other)
    return [_made(b, name, spec) for name, spec in zip(names, specs, strict=True)]


@lowers("checked_index")
def _checked_index(site: Site, index: Var, n: int) -> Var:
    return index


@lowers("nothing")
def _nothing(site: Site, *arguments: Any) -> Any:
    spec = site.specs[0]
    if isinstance(spec, TensorSpec):
        return full(site.builder, [0 if n is None else n for n in spec.shape], 0, spec.dtype)
    return site.builder.constant(0, INT64)


@lowers("either")
def _either(site: Site, condition: Var, x: Var, y: Var) -> Var:
    if x.shape == y.shape and None not in x.shape:
        return where(condition, x, y)
    b = site.builder
    graphs = []
    for z in (x, y):
        with b.inner() as nodes:
            graphs.append(b.graph(nodes, [], [b.unary("Identity", z)]))
    (name,) = b.emit("If", [reshape(condition, ())], then_branch=graphs[0], else_branch=graphs[1])
    return Var(b, name, x.dtype, site.out.shape)


# --- loops


def _inner_inputs(b: Builder, values: Sequence[Var], specs: Sequence[Any]) -> list[Var]:
    return [
        Var(b, b.fresh("loop"), v.dtype, s.shape if isinstance(s, TensorSpec) else v.shape)
        for v, s in zip(values, specs, strict=True)
    ]


def _loop(b: Builder, steps: Var | None, first: Var | None, carry: list[Var], body: Any, outputs: int) -> list[str]:
    return b.emit("Loop", [steps, first, *carry], outputs, body=body)


@lowers("while_loop", "while_detached", "while_forward")
def _while(site: Site, *arguments: Any) -> list[Any]:
    b = site.builder
    params = site.node.params
    data = list(arguments[: len(arguments) - len(params)])
    condition, body, n, limit = params[:4]
    carry, captures = data[:n], data[n:]
    specs = [v.spec for v in body.graph.inputs[:n]]
    first = reshape(site.inline(condition.graph, [*carry, *captures])[0], ())
    counter, flag = Var(b, b.fresh("step"), INT64, ()), Var(b, b.fresh("on"), BOOL, ())
    inner = _inner_inputs(b, carry, specs)
    with b.inner() as nodes:
        results = site.inline(body.graph, [*inner, *captures])
        following = [b.unary("Identity", cast(y, v.dtype)) for y, v in zip(results[:n], inner, strict=True)]
        rows = [b.unary("Identity", y) for y in results[n:]]
        again = b.unary("Identity", reshape(site.inline(condition.graph, [*following, *captures])[0], ()))
        live = [b.unary("Identity", again | ~again)] if site.node.op.name == "while_forward" else []
        graph = b.graph(nodes, [counter, flag, *inner], [again, *following, *live, *rows])
    steps = None if limit is None else b.constant(limit, INT64)
    names = _loop(b, steps, first, carry, graph, n + len(live) + len(rows))
    kinds = [v.dtype for v in carry] + [BOOL] * len(live) + [y.dtype for y in rows]
    shapes = [s.shape if isinstance(s, TensorSpec) else () for s in site.specs]
    return [Var(b, name, kind, shape) for name, kind, shape in zip(names, kinds, shapes, strict=True)]


@lowers("scan", "scan_forward")
def _scan(site: Site, *arguments: Any) -> list[Any]:
    b = site.builder
    params = site.node.params
    data = list(arguments[: len(arguments) - len(params)])
    body, n, m, length, reverse = params[:5]
    carry, xs, captures = data[:n], data[n : n + m], data[n + m :]
    steps = length if length is not None else size(xs[0], 0)
    steps = steps if isinstance(steps, Var) else b.constant(steps, INT64)
    specs = [v.spec for v in body.graph.inputs]
    counter, flag = Var(b, b.fresh("step"), INT64, ()), Var(b, b.fresh("on"), BOOL, ())
    inner = _inner_inputs(b, carry, specs[:n])
    with b.inner() as nodes:
        at = steps - 1 - counter if reverse else counter
        rows = [pick(x, 0, at) for x in xs]
        results = site.inline(body.graph, [*inner, *rows, *captures])
        following = [b.unary("Identity", cast(y, v.dtype)) for y, v in zip(results[:n], inner, strict=True)]
        columns = [b.unary("Identity", y) for y in results[n:]]
        on = b.unary("Identity", flag)
        graph = b.graph(nodes, [counter, flag, *inner], [on, *following, *columns])
    names = _loop(b, steps, b.constant(True), carry, graph, n + len(columns))
    kinds = [v.dtype for v in carry] + [y.dtype for y in columns]
    shapes = [s.shape if isinstance(s, TensorSpec) else () for s in site.specs]
    results = [Var(b, name, kind, shape) for name, kind, shape in zip(names, kinds, shapes, strict=True)]
    if reverse:
        results[n:] = [_reversed(y) for y in results[n:]]
    return results


def _reversed(x: Var) -> Var:
    return flip(x, (0,))


refuses(
    "it runs your Python code",
    "py_func", "py_func_forward", "py_func_backward", "custom_gradient", "debug_print", "debug_check",
)  # fmt: skip
refuses(
    "it changes a variable, and a file of ONNX holds no state; return the new value instead",
    "assign", "assign_add", "assign_sub", "assign_scatter", "assign_scatter_add", "assign_scatter_max",
    "assign_scatter_min", "assign_scatter_mul", "assign_scatter_sub", "assign_slice", "assign_slice_add",
    "assign_slice_sub",
)  # fmt: skip
refuses(
    "a dataset is state, which a file of ONNX does not hold; pass its elements as arguments",
    "begin_pass", "has_next_element", "next_element",
)  # fmt: skip
refuses(
    "a table is state, which a file of ONNX does not hold; look it up before the call",
    "table_contains", "table_export", "table_insert", "table_lookup", "table_remove", "table_size",
)  # fmt: skip
_DRAWS = (
    "random_cauchy", "random_exponential", "random_gumbel", "random_integers", "random_laplace", "random_normal",
    "random_uniform",
)  # fmt: skip
refuses(
    "it draws random numbers, of which ONNX has another stream; pass the draws as an argument",
    *_DRAWS, *[f"{name}_dynamic" for name in _DRAWS], "dropout_mask", "random_bernoulli", "random_categorical",
    "random_gamma", "random_log_gamma", "random_multinomial", "random_permutation", "random_poisson",
)  # fmt: skip
