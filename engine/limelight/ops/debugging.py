"""Ops that look at values while a program runs: `debug_print`, `debug_check`, `check_numerics`.

Their effects have an order, and are kept even where nobody uses a result. `limelight.debug` has the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.core import backends, dtypes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import Op, defop
from limelight.core.spec import known
from limelight.errors import CheckError

Writer = Callable[[list[Any]], str]
"""Makes a text of values: NumPy arrays, with what else the user gave."""

# debug_print


def _host(x: Any) -> Any:
    """A payload as a NumPy array, whatever library it is of."""
    return np.asarray(backends.to_host(x))


def _print(xp: Any, *arguments: Any) -> tuple[()]:
    *xs, writer = arguments
    print(writer(list(map(_host, xs))), **getattr(writer, "options", {}))  # noqa: T201  # which it is for
    return ()


print_op: Op = defop(
    "debug_print",
    inputs="*xs",
    attrs="writer",
    infer=lambda *arguments: (),
    kernel=_print,
    multiple=True,
    effect="io",
    why_no_gradient="it returns nothing",
    batching="loop",
)

# debug_check


def _check(xp: Any, *arguments: Any) -> tuple[()]:
    condition, *xs, writer = arguments
    if not bool(condition.all()):
        raise CheckError(writer(list(map(_host, xs))))
    return ()


check_op: Op = defop(
    "debug_check",
    inputs="*xs",
    attrs="writer",
    infer=lambda *arguments: (),
    kernel=_check,
    multiple=True,
    effect="io",
    why_no_gradient="it returns nothing",
    batching="loop",
)

# check_numerics


def _numerics(xp: Any, x: Any, message: str) -> Any:
    finite = xp.isfinite(x)
    if finite.all():
        return x
    nan = int(xp.isnan(x).sum())
    infinite = int((~finite).sum()) - nan
    counts = " and ".join(f"{n} {word}" for n, word in ((nan, "NaN"), (infinite, "infinite")) if n)
    spec = known(tuple(x.shape), dtypes.dtype(x.dtype))
    raise CheckError(f"check_numerics: {f'{message}: ' if message else ''}{counts} among the elements of {spec}")


check_numerics: EntryPoint = entry_point(defop(
    "check_numerics",
    inputs="x",
    attrs="message",
    infer=lambda x, message: known(x.shape, x.dtype),
    kernel=_numerics,
    accepts="inexact",
    effect="io",
    vjp={"x": lambda g: g},
    linear="x",
    maths={"x": "x̄ = ȳ"},
    batching=lambda site: site.run(site.inputs, *site.attrs),
    view=True,
))  # fmt: skip
