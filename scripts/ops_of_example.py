"""Which ops a function runs, found by its own example, and what is known of them: gradients, executors, exports.

The example of the docstring runs while a listener notes the ops that run below the function's code. So the facts of the
reference are those of the ops themselves, also for layers and for functions that are made of many ops.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, Final

import limelight as ll
from limelight.core.op import Op, all_ops

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
FACTS: Final = DOCS / "reference" / "op_facts.json"
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
            yield "Batched", _batched([all_ops()[name]])
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
    yield "Forward mode", _forward(ops)
    yield "Batched", _batched(ops)
    yield "Runs on", f"{_devices(ops)}; {_executors(ops)}"
    yield "Exports", f"{_exports('ONNX', ops, 'onnx')}; {_exports('StableHLO', ops, 'stablehlo')}"


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


# What was tried: `scripts/op_facts.py` writes the file


@functools.cache
def tried() -> dict[str, dict[str, str]]:
    """For each op what became of it on each executor and device, and under each transformation: "yes", or why not."""
    facts: dict[str, dict[str, str]] = json.loads(FACTS.read_text(encoding="utf-8"))
    for name, why in stablehlo_refusals().items():
        facts.setdefault(name, {})["stablehlo"] = why
    return facts


def _fact(op: Op, name: str) -> str:
    """What became of an op: "yes", or why not; "" where it was not tried."""
    said = tried().get(op.name, {}).get(name, "")
    return "" if said.startswith("has no case") else said


def _is_fine(said: str) -> bool:
    return said in ("yes", "") or said.startswith("by a rule")


def _apart(ops: list[Op], fact: str) -> dict[str, str]:
    """The ops for which a fact is not "yes", and why."""
    return {op.name: said for op in ops if not _is_fine(said := _fact(op, fact))}


def _told(apart: dict[str, str]) -> str:
    told = ", ".join(f"`{name}` ({why})" for name, why in list(apart.items())[:_MOST])
    return told + (", ..." if len(apart) > _MOST else "")


def _devices(ops: list[Op]) -> str:
    if any(op.effect == "io" for op in ops):
        return "the host"
    special = sorted({name for op in ops for name in op.special})
    there = [device for device in ("XLA:0", "GPU:0") if all(_fact(op, device) == "yes" for op in ops)]
    told = f"tried on {' and '.join(['CPU:0', *there]) if len(there) < 2 else 'CPU:0, XLA:0 and GPU:0'}"
    refused = _apart(ops, "XLA:0")
    if refused:
        told += f", not alone on XLA:0: {_told(refused)}"
    if "GPU:0" not in there:
        told += ", not tried on GPU:0, whose kernels by CuPy are the same"
    if special:
        told += f"; kernels of its own for {', '.join(special)}"
    if any(op.effect == "random" for op in ops):
        told += "; numbers are drawn on the host"
    return told


def _executors(ops: list[Op]) -> str:
    """Which executors run the ops: `loops` leaves some to the plan, and graphs with others have no program of XLA."""
    tables, refused = _apart(ops, "loops"), _apart(ops, "xla")
    names = ["`plan`", "`step`", *["`loops`"][: not tables], *["`xla`"][: not refused]]
    told = [f"executors {', '.join(names[:-1])} and {names[-1]}"]
    if tables:
        told.append(f"`loops` has the plan run {_told(tables)}")
    if refused:
        told.append(f"`xla` has the plan run it: {_told(refused)}")
    return "; ".join(told)


def _batched(ops: list[Op]) -> str:
    alone = _apart(ops, "batched")
    if not alone:
        return "by `vectorize` all examples at once"
    looped = [name for name, why in alone.items() if why == "example by example"]
    others = {name: why for name, why in alone.items() if why != "example by example"}
    told = [f"example by example: {', '.join(f'`{name}`' for name in looped)}"] if looped else []
    return "; ".join([*told, *([f"not by `vectorize`: {_told(others)}"] if others else [])])


def _forward(ops: list[Op]) -> str:
    """By what forward mode goes; nothing where there is no gradient at all."""
    own = [op.name for op in ops if _fact(op, "forward").startswith("by a rule")]
    smooth = [op for op in ops if _fact(op, "forward") == "yes"]
    if len(ops) == 1:
        return "by a rule of its own" if own else "by the transpose of the gradient's rule" if smooth else "none"
    told = f"by rules of their own: {', '.join(f'`{name}`' for name in own)}" if own else ""
    rest = "by the transposes of the gradients' rules" if smooth else ""
    return "; ".join(filter(None, [told, f"the others {rest}" if told and rest else rest])) or "none"


def _exports(form: str, ops: list[Op], fact: str) -> str:
    stopped = _apart(ops, fact)
    return f"{form} no: {_told(stopped)}" if stopped else f"{form} yes"


@functools.cache
def stablehlo_refusals() -> dict[str, str]:
    """Why StableHLO cannot have an op, for those that it cannot: the second table of docs/stablehlo.md."""
    rows = _rows(DOCS / "stablehlo.md", "refused")
    return {name: why.partition(":")[0] for names, why in rows for name in re.findall(r"`(\w+)`", names)}


def _rows(page: Path, heading: str) -> list[tuple[str, str]]:
    """The rows of the table whose first column has this heading."""
    table = page.read_text(encoding="utf-8").partition(f"| {heading} |")[2].split("\n\n")[0]
    cells = [line.strip("|").split(" | ") for line in table.splitlines()[2:] if line.startswith("| `")]
    return [(first.strip(), last.strip()) for first, last in cells]
