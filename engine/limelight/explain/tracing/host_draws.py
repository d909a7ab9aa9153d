"""Random numbers of the host, as draws that are staged: `np.random.normal(size=3)` as `ll.random.normal(3)`."""

from __future__ import annotations

import ast
from typing import Final, NamedTuple

from limelight.explain.tracing.staged_calls import call_at
from limelight.user_code.names_read import Read


class _Form(NamedTuple):
    """A draw of the host's: its parameters in order, and the `ll.random` call, with {name} for what was given."""

    parameters: tuple[str, ...]
    call: str
    order: tuple[tuple[str, str], ...]  # parameters of that call, and those of the host's that they are
    more: tuple[str, ...] = ()  # further arguments


_SIZED: Final = ("shape", "size")
_NUMPY: Final = {
    "random": _Form(("size",), "uniform", (_SIZED,)),
    "random_sample": _Form(("size",), "uniform", (_SIZED,)),
    "uniform": _Form(("low", "high", "size"), "uniform", (_SIZED, ("low", "low"), ("high", "high"))),
    "normal": _Form(("loc", "scale", "size"), "normal", (_SIZED, ("mean", "loc"), ("stddev", "scale"))),
    "standard_normal": _Form(("size",), "normal", (_SIZED,)),
    "exponential": _Form(("scale", "size"), "exponential", (_SIZED, ("scale", "scale"))),
    "randint": _Form(("low", "high", "size"), "integers", (("low", "low"), ("high", "high"), _SIZED)),
    "integers": _Form(("low", "high", "size"), "integers", (("low", "low"), ("high", "high"), _SIZED)),
    "choice": _Form(("a", "size"), "choice", (("x", "a"), _SIZED)),
    "permutation": _Form(("x",), "permutation", (("x", "x"),)),
    "shuffle": _Form(("x",), "permutation", (("x", "x"),)),
    "seed": _Form(("seed",), "seed", (("seed", "seed"),)),
}
_PYTHON: Final = {
    "random": _Form((), "uniform", ()),
    "uniform": _Form(("a", "b"), "uniform", (("low", "a"), ("high", "b"))),
    "gauss": _Form(("mu", "sigma"), "normal", (("mean", "mu"), ("stddev", "sigma"))),
    "normalvariate": _Form(("mu", "sigma"), "normal", (("mean", "mu"), ("stddev", "sigma"))),
    "randrange": _Form(("start", "stop"), "integers", (("low", "start"), ("high", "stop"))),
    "randint": _Form(("a", "b"), "integers", (("low", "a"), ("high", "b + 1"))),
    "choice": _Form(("seq",), "choice", (("x", "seq"),)),
    "sample": _Form(("population", "k"), "choice", (("x", "population"), ("shape", "k")), ("replace=False",)),
    "shuffle": _Form(("x",), "permutation", (("x", "x"),)),
    "seed": _Form(("a",), "seed", (("seed", "a"),)),
}
_ALIKE: Final = ("gamma", "beta", "poisson", "laplace", "gumbel", "dirichlet", "multinomial")
"""Draws that `ll.random` has by the same name, with parameters of its own."""
_SIZES: Final = {"rand": "uniform", "randn": "normal"}
_FIRST: Final = {"uniform": "shape", "normal": "shape", "exponential": "shape", "integers": "low"}
"""The parameter that may be given by position."""


def staged_draw(read: Read, last: str, of_python: bool) -> str:
    """The draw `last` as one of `ll.random`, with the arguments of its line; "..." where they cannot be had.

    Empty for a draw that `ll.random` does not have.
    """
    form = (_PYTHON if of_python else _NUMPY).get(last)
    if form is None and last not in _SIZES:
        return f"ll.random.{last}(...)" if last in _ALIKE else ""
    op = _SIZES[last] if form is None else form.call
    located = call_at(read, str(read.use.chain))
    if located is None:
        return f"ll.random.{op}(...)"
    call = located[1]
    if form is None:
        sizes = [ast.unparse(a) for a in call.args]
        return f"ll.random.{op}(({', '.join(sizes)}{',' if len(sizes) == 1 else ''}))"
    by_parameter = dict(zip(form.parameters, map(ast.unparse, call.args), strict=False))
    by_parameter |= {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg}
    if any(k.arg is None for k in call.keywords) or not set(by_parameter) <= set(form.parameters):
        return f"ll.random.{op}(...)"
    return f"ll.random.{op}({', '.join([*_arguments(form, by_parameter), *form.more])})"


def _arguments(form: _Form, by_parameter: dict[str, str]) -> list[str]:
    written: list[str] = []
    for parameter, host in form.order:
        name, _, more = host.partition(" ")
        if name in by_parameter:
            value = f"{by_parameter[name]} {more}".strip()
            first = not written and _FIRST.get(form.call, parameter) == parameter
            written.append(value if first else f"{parameter}={value}")
    return written
