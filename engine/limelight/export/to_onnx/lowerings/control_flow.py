"""Calls, which are inlined, and control flow: branches are If, loops Loop.

A complex value goes into a graph inside, and comes out, as two: `_parts` takes it apart, `_whole` puts it together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.core import dtypes
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
from limelight.export.to_onnx.builder import Builder, Complex, Var
from limelight.export.to_onnx.registry import Site, lowers, lowers_complex, refuses


@lowers("call", "call_forward", "custom_call", "custom_forward")
def _call(site: Site, *arguments: Any) -> Any:
    n = len(site.node.params)
    inputs, function = arguments[: len(arguments) - n], arguments[-n]
    return site.inline(function.graph, inputs)


@lowers("read_variable")
def _read(site: Site, variable: Var) -> Var:
    return variable  # nothing assigns to it: such ops are refused


# --- what goes through the graphs inside


def _parts(values: Sequence[Any]) -> list[Any]:
    """Values with the real and the imaginary part in the place of each complex one."""
    return [part for x in values for part in ((x.re, x.im) if isinstance(x, Complex) else (x,))]


def _part_specs(specs: Sequence[Any]) -> list[Any]:
    return [part for spec in specs for part in (_real(spec),) * (2 if _is_complex(spec) else 1)]


def _whole(parts: Sequence[Any], specs: Sequence[Any]) -> list[Any]:
    """The values of these specs out of their parts."""
    feed = iter(parts)
    return [Complex(next(feed), next(feed)) if _is_complex(spec) else next(feed) for spec in specs]


def _is_complex(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and dtypes.kind(spec.dtype) == "complex"


def _real(spec: Any) -> Any:
    """The spec of a part."""
    if not _is_complex(spec):
        return spec
    return TensorSpec(spec.shape, dtypes.float64 if spec.dtype == dtypes.complex128 else dtypes.float32)


def _specs_of(values: Sequence[Any]) -> list[Any]:
    return [value.spec for value in values]


# --- branches


def _branch(site: Site, function: Any, inputs: Sequence[Any], kinds: list[Any]) -> Any:
    """The graph of one branch; its results are made inside, as ONNX wants them."""
    b = site.builder
    with b.inner() as nodes:
        results = _parts(site.inline(function.graph, inputs))
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
    specs = _part_specs(site.specs)
    graphs = [_branch(site, f, inputs, specs) for f in branches]
    names = b.emit("If", [condition], len(specs), then_branch=graphs[0], else_branch=graphs[1])
    return _whole([_made(b, name, spec) for name, spec in zip(names, specs, strict=True)], site.specs)


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
    return _whole(_chosen(site, cast(index, INT64), list(branches), inputs, 0), site.specs)


def _chosen(site: Site, index: Var, branches: list[Any], inputs: Sequence[Any], at: int) -> list[Any]:
    """The parts of the results by nested ifs; the last branch is the one for all that is left."""
    b, specs = site.builder, _part_specs(site.specs)
    if len(branches) - at == 1:
        results = _parts(site.inline(branches[at].graph, inputs))
        return [_in_kind(b, y, s) for y, s in zip(results, specs, strict=True)]
    first = _branch(site, branches[at], inputs, specs)
    with b.inner() as nodes:
        rest = [b.unary("Identity", y) for y in _chosen(site, index, branches, inputs, at + 1)]
        other = b.graph(nodes, [], rest)
    names = b.emit("If", [equal(index, at)], len(specs), then_branch=first, else_branch=other)
    return [_made(b, name, spec) for name, spec in zip(names, specs, strict=True)]


@lowers("checked_index")
def _checked_index(site: Site, index: Var, n: int) -> Var:
    return index


@lowers_complex("nothing")
@lowers("nothing")
def _nothing(site: Site, *arguments: Any) -> Any:
    made = [_in_kind(site.builder, None, spec) for spec in _part_specs(site.specs)]
    return _whole(made, site.specs)


@lowers_complex("either")
@lowers("either")
def _either(site: Site, condition: Var, x: Any, y: Any) -> Any:
    if isinstance(x, Complex):
        return Complex(_either(site, condition, x.re, y.re), _either(site, condition, x.im, y.im))
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


@lowers("while_loop", "while_detached", "while_forward")
def _while(site: Site, *arguments: Any) -> list[Any]:
    b = site.builder
    params = site.node.params
    data = list(arguments[: len(arguments) - len(params)])
    condition, body, n, limit = params[:4]
    carry, captures = _parts(data[:n]), data[n:]
    specs = _specs_of(body.graph.inputs[:n])

    def goes_on(state: Sequence[Var]) -> Var:
        return reshape(site.inline(condition.graph, [*_whole(state, specs), *captures])[0], ())

    first = goes_on(carry)
    counter, flag = Var(b, b.fresh("step"), INT64, ()), Var(b, b.fresh("on"), BOOL, ())
    inner = _inner_inputs(b, carry, _part_specs(specs))
    with b.inner() as nodes:
        results = _parts(site.inline(body.graph, [*_whole(inner, specs), *captures]))
        following, rows = _step_results(b, results, inner)
        again = b.unary("Identity", goes_on(following))
        live = [b.unary("Identity", again | ~again)] if site.node.op.name == "while_forward" else []
        graph = b.graph(nodes, [counter, flag, *inner], [again, *following], [*live, *rows])
    steps = None if limit is None else b.constant(limit, INT64)
    return _looped(site, steps, first, carry, graph, [*live, *rows])


def _step_results(b: Builder, results: Sequence[Var], inner: Sequence[Var]) -> tuple[list[Var], list[Var]]:
    """What a step hands on, in the dtypes of what it was given, and its row of what is stacked."""
    n = len(inner)
    following = [b.unary("Identity", cast(y, v.dtype)) for y, v in zip(results[:n], inner, strict=True)]
    return following, [b.unary("Identity", y) for y in results[n:]]


def _looped(site: Site, steps: Var | None, first: Var, carry: list[Var], body: Any, rows: Sequence[Var]) -> list[Any]:
    """The results of a loop: what it carries, and the stacks of `rows`."""
    b = site.builder
    names = b.emit("Loop", [steps, first, *carry], len(carry) + len(rows), body=body)
    kinds = [v.dtype for v in (*carry, *rows)]
    shapes = [s.shape if isinstance(s, TensorSpec) else () for s in _part_specs(site.specs)]
    made = [Var(b, name, kind, shape) for name, kind, shape in zip(names, kinds, shapes, strict=True)]
    return _whole(made, site.specs)


@lowers("scan", "scan_forward")
def _scan(site: Site, *arguments: Any) -> list[Any]:
    b = site.builder
    params = site.node.params
    data = list(arguments[: len(arguments) - len(params)])
    body, n, m, length, reverse = params[:5]
    carry, xs, captures = _parts(data[:n]), _parts(data[n : n + m]), data[n + m :]
    steps = length if length is not None else size(xs[0], 0)
    steps = steps if isinstance(steps, Var) else b.constant(steps, INT64)
    specs = _specs_of(body.graph.inputs[: n + m])
    counter, flag = Var(b, b.fresh("step"), INT64, ()), Var(b, b.fresh("on"), BOOL, ())
    inner = _inner_inputs(b, carry, _part_specs(specs[:n]))
    with b.inner() as nodes:
        at = steps - 1 - counter if reverse else counter
        rows = [pick(x, 0, at) for x in xs]
        results = _parts(site.inline(body.graph, [*_whole([*inner, *rows], specs), *captures]))
        following, columns = _step_results(b, results, inner)
        on = b.unary("Identity", flag)
        graph = b.graph(nodes, [counter, flag, *inner], [on, *following], columns)
    made = _looped(site, steps, b.constant(True), carry, graph, columns)
    return [*made[:n], *map(_reversed, made[n:])] if reverse else made


def _reversed(x: Any) -> Any:
    return Complex(*map(_reversed, (x.re, x.im))) if isinstance(x, Complex) else flip(x, (0,))


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
    "split_generator",
)  # fmt: skip
