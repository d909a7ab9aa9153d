"""Tries every op as a StableHLO program, and writes the table of docs/stablehlo.md. Needs JAX (the `xla` extra).

    python scripts/stablehlo_table.py [--check] [OP ...]

Each op is exported as one case of its tests uses it, is run back through JAX, and compared with eager execution. With
`--check` nothing is written, and the exit status says whether the table is what it was.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np

import limelight as ll
from limelight.core import dtypes
from limelight.core.op import all_ops, home_of
from limelight.errors import ExportError
from limelight.executors.xla.structured_control import CONTROL
from limelight.export.to_stablehlo.program_file import why_refused

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "stablehlo.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
EXPORTED: Final = "exported"
INLINED: Final = ("call", "call_forward", "custom_call", "custom_forward")
UNTRIED: Final = "has no case of its own: it occurs in what batching and gradients make of control flow"
READ: Final = ("constant", "read_variable", "to_device")


def cases() -> dict[str, list[Any]]:
    """For each op the largest case of each way to call it, the largest first."""
    sys.path.insert(0, str(ROOT / "tests" / "engine" / "ops"))
    module, thinned = importlib.import_module("cases"), importlib.import_module("opcase").thinned
    ways = thinned(module.CASES, lambda case: (case.op, case.note, len(case.inputs)))
    by_op: dict[str, list[Any]] = {}
    for case in sorted(ways, key=lambda case: -sum(int(np.prod(x.shape)) for x in case.inputs)):
        by_op.setdefault(case.op, []).append(case)
    return by_op


def outcome(case: Any, folder: Path) -> str:
    """What becomes of an op: "exported", or why it is refused. Raises AssertionError where JAX computes otherwise."""
    export = importlib.import_module("jax.export")
    jax = importlib.import_module("jax")
    arrays = case.arrays(case.tried[-1] if dtypes.is_inexact(case.tried[-1]) else case.tried[0])
    tensors = [ll.constant(array) for array in arrays]
    try:
        f = ll.function(lambda *xs: case.call(*xs))  # noqa: PLW0108  # a call may be a ufunc
        expected = f(*tensors)
        path = ll.export.stablehlo(f, folder / "op")
    except ExportError as error:
        return said(error.bare)
    with jax.enable_x64(True):
        results = export.deserialize(bytearray(path.read_bytes())).call(*arrays)
    if case.check is None:
        compare(results, expected)
    return EXPORTED


def best_outcome(ways: list[Any], folder: Path) -> str:
    """What becomes of an op in the first way to call it that travels, else in the first one."""
    refusals = []
    for case in ways[:8]:
        what = outcome(case, folder)
        if what == EXPORTED:
            return what
        refusals.append(what)
    return refusals[0]


def said(words: str) -> str:
    """The reason in a refusal, without place and operands."""
    reason = re.sub(r"^.* cannot be exported to StableHLO: \w+( at \S+)? ", "", words)
    if "has no form in it" in reason:
        return "its kernel needs values, or NumPy, where a program has none yet"
    return reason


def compare(results: Any, expected: Any) -> None:
    """Raises AssertionError unless both are equal, but for rounding."""
    pairs = zip(flat(results), flat(expected), strict=True)
    for mine, theirs in pairs:
        array = theirs.numpy()
        assert (mine.dtype, mine.shape) == (array.dtype, array.shape), f"{mine.dtype}{mine.shape}"
        exact = array.dtype.kind in "biu"
        wide = "complex128" if array.dtype.kind == "c" else "float64"
        close = {2: 2e-2, 4: 2e-4}.get(array.dtype.itemsize, 1e-4 if array.dtype == np.complex64 else 1e-8)
        np.testing.assert_allclose(
            np.asarray(mine).astype(array.dtype if exact else wide), array if exact else array.astype(wide),
            rtol=0 if exact else close, atol=0 if exact else close,
        )  # fmt: skip


def flat(x: Any) -> list[Any]:
    if isinstance(x, (list, tuple)):
        return [leaf for part in x for leaf in flat(part)]
    return [x]


def table(only: list[str]) -> dict[str, str]:
    """What becomes of each op, by name."""
    by_op, outcomes = cases(), {}
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in sorted(only or own_ops()):
            refused = why_refused(all_ops()[op])
            if refused:
                outcomes[op] = refused
            elif op in CONTROL or op in INLINED or op in READ:
                outcomes[op] = EXPORTED  # the tests have them
            elif op in by_op:
                try:
                    outcomes[op] = best_outcome(by_op[op], Path(name))
                except AssertionError as error:
                    outcomes[op] = f"DIFFERS: {' '.join(str(error).split())[:200]}"
                except Exception as error:  # noqa: BLE001  # it is told in the table, which the test refuses
                    outcomes[op] = f"FAILS: {type(error).__name__}: {str(error)[:200]}"
            else:
                outcomes[op] = UNTRIED
    return outcomes


def own_ops() -> list[str]:
    """The names of limelight's ops."""
    return [op for op in all_ops() if home_of(op).partition(".")[0] == "limelight"]


def as_text(outcomes: dict[str, str]) -> str:
    """The table in Markdown: what travels, in one line for each module, and each reason with the ops that it is of."""
    rooms: dict[str, list[str]] = {}
    reasons: dict[str, list[str]] = {}
    for op, what in outcomes.items():
        if what == EXPORTED:
            rooms.setdefault(home_of(op).removeprefix("limelight.").removeprefix("ops."), []).append(f"`{op}`")
        else:
            reasons.setdefault(what, []).append(f"`{op}`")
    travels = sum(what == EXPORTED for what in outcomes.values())
    lines = [f"{travels} of {len(outcomes)} ops travel.", "", "| module | exported |", "| --- | --- |"]
    lines += [f"| {room} | {', '.join(ops)} |" for room, ops in sorted(rooms.items())]
    lines += ["", "| refused | since it ... |", "| --- | --- |"]
    lines += [f"| {', '.join(ops)} | {reason} |" for reason, ops in sorted(reasons.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the table, or checks it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("ops", nargs="*")
    given = parser.parse_args()
    outcomes = table(given.ops)
    if given.ops:
        print("\n".join(f"{op}: {what}" for op, what in outcomes.items()))
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    text = before + BEGIN + as_text(outcomes) + END + after
    if given.check:
        sys.exit(text != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
