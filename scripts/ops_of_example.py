"""Which ops a function runs, found by its own example, and what is known of them: gradients, executors, exports.

The example of the docstring runs while a listener notes the ops that run below the function's code. So the facts of the
reference are those of the ops themselves, also for layers and for functions that are made of many ops.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, Final

import limelight as ll
from limelight.core.op import Op, all_ops
from limelight.executors.xla.graph_lowering import why_no_form

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
READS: Final = {"constant", "read_variable", "identity"}
"""Ops that hand values on, which say nothing about a function."""
BY_EXAMPLE: Final = (
    "limelight.ops", "limelight.nn", "limelight.linalg", "limelight.fft", "limelight.random", "limelight.optim",
)  # fmt: skip
STAGED_AS: Final = {"fori_loop": "while_loop", "map_fn": "scan"}
"""What control flow becomes in a graph, where it has not the name of its op."""
_MOST: Final = 6  # more ops than these are not told one by one


def facts(value: Any) -> Iterator[tuple[str, str]]:
    """What the reference says of a function or a layer beside its docstring: titles and sentences."""
    if str(getattr(value, "__module__", "")).startswith("limelight.control_flow"):
        name = STAGED_AS.get(getattr(value, "__name__", ""), getattr(value, "__name__", ""))
        if name in all_ops():
            yield "Staged", f"one node, `{name}`, around the graphs of the functions that it is given"
            yield "Runs on", "the devices of the ops in these; " + _executors([all_ops()[name]])
        return
    ops = [op for op in ops_of(value) if op.name not in READS]
    if not ops:
        return
    named = ", ".join(f"`{op.name}`" for op in ops)
    if len(ops) > 1:
        yield "Ops", f"{named} in the example"
    gradient = _gradient(ops)
    if gradient:
        yield "Gradient", gradient
    yield "Runs on", _runs_on(ops)
    yield "Exports", f"{_exports('ONNX', ops, onnx_refusals())}; {_exports('StableHLO', ops, stablehlo_refusals())}"


def ops_of(value: Any) -> list[Op]:
    """The ops that run below the code of `value` while its example runs, in the order in which they began."""
    if not str(getattr(value, "__module__", "")).startswith(BY_EXAMPLE):
        return []
    codes = set(_codes(value))
    if not codes:
        return []
    seen: dict[str, None] = {}

    def note(event: Any) -> None:
        if _is_below(codes):
            seen.setdefault(event.op)

    # An example of a few lines, which the tests run, too; what it prints is compared there.
    parsed = doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", {}, "example", None, None)
    if parsed.examples:
        parsed.globs.update(vars(sys.modules[value.__module__]))
        with ll.events.listen(note, ll.events.OpRan):
            doctest.DocTestRunner(verbose=False).run(parsed, out=lambda text: None)
    known = all_ops()
    return [known[name] for name in seen if name in known]


def _codes(value: Any) -> Iterator[CodeType]:
    function: Any = getattr(value, "apply", getattr(value, "call", None)) if isinstance(value, type) else value
    function = inspect.unwrap(getattr(function, "__func__", function))  # draws are methods of the default generator
    if inspect.isfunction(function):
        yield function.__code__


def _is_below(codes: set[CodeType]) -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code is ll.nn.Layer.weight.__code__:
            return False  # draws of initial values, on the first call alone
        if frame.f_code in codes:
            return True
        frame = frame.f_back  # type: ignore[assignment]  # None at the bottom
    return False


def _gradient(ops: list[Op]) -> str:
    """The rules of one op as formulas, or which of several have none."""
    none = [op for op in ops if op.vjp is None and op.taped is None]
    if len(ops) == 1:
        (op,) = ops
        if op.rule:
            return ", ".join(f"`{formula}`" for formula in op.maths.values()) + " (z̄ is the gradient of the result)"
        if op.vjp is not None:
            return "has a rule"
        return f"none: {op.why_no_gradient}" if op.why_no_gradient else ""
    if not none:
        return "all of its ops have rules"
    return f"not through {', '.join(f'`{op.name}`' for op in none)}"


def _runs_on(ops: list[Op]) -> str:
    special = sorted({name for op in ops for name in op.special})
    devices = "CPU (NumPy), GPU (CuPy), XLA (JAX)"
    kernels = f", with kernels of its own for {', '.join(special)}" if special else ""
    if any(op.effect == "random" for op in ops):
        kernels += ", all with numbers that the host draws"
    if any(op.effect == "io" for op in ops):
        devices, kernels = "the host", ""
    return f"{devices}{kernels}; {_executors(ops)}"


def _executors(ops: list[Op]) -> str:
    """Which executors run the ops: `loops` leaves some to the plan, and graphs with others have no program of XLA."""
    apart = [op for op in ops if op.name in not_in_tables()]
    refused = {op.name: why for op in ops if (why := why_no_form(op))}
    names = ["`plan`", "`step`", *["`loops`"][: not apart], *["`xla`"][: not refused]]
    told = [f"executors {', '.join(names[:-1])} and {names[-1]}"]
    if len(apart) == len(ops):
        told.append("`loops` has the plan run it")
    elif apart:
        told.append(f"`loops` has the plan run {', '.join(f'`{op.name}`' for op in apart)}")
    told += [f"`xla` has the plan run it, as `{name}` {why}" for name, why in refused.items()]
    return "; ".join(told)


def _exports(form: str, ops: list[Op], refused: dict[str, str]) -> str:
    stopped = [op for op in ops if op.name in refused]
    if not stopped:
        return f"{form} yes"
    return f"{form} no: " + ", ".join(f"`{op.name}` {refused[op.name]}" for op in stopped[:_MOST])


@functools.cache
def onnx_refusals() -> dict[str, str]:
    """Why ONNX cannot have an op, for those that it cannot: the rows of docs/onnx_ops.md that say so."""
    page = (DOCS / "onnx_ops.md").read_text(encoding="utf-8")
    return {
        name: why.partition(";")[0]
        for name, why in re.findall(r"^\| (\w+) \|.*\| refused: (.*) \|$", page, re.MULTILINE)
    }


@functools.cache
def stablehlo_refusals() -> dict[str, str]:
    """Why StableHLO cannot have an op, for those that it cannot: the second table of docs/stablehlo.md."""
    rows = _rows(DOCS / "stablehlo.md", "refused")
    return {name: why.partition(":")[0] for names, why in rows for name in re.findall(r"`(\w+)`", names)}


@functools.cache
def not_in_tables() -> dict[str, str]:
    """Why the executor `loops` leaves an op to the plan, for those of docs/executors.md."""
    rows = _rows(DOCS / "executors.md", "left to the plan")
    return {name: why for names, why in rows for name in re.findall(r"`(\w+)`", names)}


def _rows(page: Path, heading: str) -> list[tuple[str, str]]:
    """The rows of the table whose first column has this heading."""
    table = page.read_text(encoding="utf-8").partition(f"| {heading} |")[2].split("\n\n")[0]
    cells = [line.strip("|").split(" | ") for line in table.splitlines()[2:] if line.startswith("| `")]
    return [(first.strip(), last.strip()) for first, last in cells]
