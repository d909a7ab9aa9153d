"""Tries every op on each executor, device and transformation, and writes docs/reference/op_facts.json for the site.

    python scripts/op_facts.py [--write] [OP ...]

An op is tried as a case of its tests uses it, ops without a case by a program (`op_programs`). What is not installed
here is not tried, and keeps what the file says of it. With names of ops only these are tried, and are printed; with
`--write` they go into the file as well.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

import limelight as ll
import onnx_ops
from executors_table import ASSIGNMENTS, UNTRIED, fate
from limelight.core import dtypes
from limelight.core.op import Op, all_ops
from limelight.executors.loops.control_flow import LOWERINGS
from limelight.export.to_onnx.registry import REFUSED, SAME
from op_programs import PROGRAMS
from stablehlo_table import cases, flat, own_ops

FACTS: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "op_facts.json"
YES: Final = "yes"
NO_FORM: Final = "its kernel needs values, or NumPy, where a program has none yet"
_WAYS: Final = 4  # cases that are tried until one is fine: an op may be refused for some operands
_PLACE: Final = re.compile(r"^\w+( at \S+)? ")
Run = Callable[..., Any]


class Trial:
    """A use of an op: a function, and the tensors that it is given."""

    def __init__(self, call: Run, arrays: list[Any], drawn: bool) -> None:
        self.call, self.drawn = call, drawn
        self.tensors = [ll.constant(array) for array in arrays]

    def run(self, function: Run, *tensors: Any) -> list[Any]:
        """The results, by the same random numbers each time."""
        ll.random.seed(3)
        return [x for x in flat(function(*(tensors or self.tensors))) if isinstance(x, ll.Tensor)]


def trials(name: str, by_op: dict[str, list[Any]]) -> Iterator[Trial]:
    """The uses of an op that are tried, the largest first."""
    effect = all_ops()[name].effect
    for case in by_op.get(name, [])[:_WAYS]:
        dtype = dtypes.float32 if dtypes.float32 in case.tried else case.tried[-1]
        yield Trial(case.call, case.arrays(dtype), effect == "random")
    if name in PROGRAMS:
        yield Trial(PROGRAMS[name], [np.linspace(0.25, 2.0, 4, dtype=np.float32)], effect == "random")


def _agree(found: list[Any], wanted: list[Any], exact: bool) -> str:
    """How they differ; "yes" where they do not."""
    for x, y in zip(found, wanted, strict=True):
        a, b = x.numpy(), y.numpy()
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"differs: {x.spec}, not {y.spec}"
        wide = "complex128" if a.dtype.kind == "c" else "float64"
        close = 0.0 if exact or a.dtype.kind in "biu" else 2e-2 if a.dtype.itemsize == 2 else 2e-4
        if not np.allclose(a.astype(wide), b.astype(wide), rtol=close, atol=close, equal_nan=True):
            return "differs in value"
    return YES


# Each fact: "yes", or why not. `trial.run(trial.call)` has run before.


def on_executor(name: str) -> Callable[[str, Trial], str]:
    """Whether a staged call on an executor gives the bits of eager code."""

    def tried(op: str, trial: Trial) -> str:
        with ll.config.executor(name):
            f = ll.function(trial.call)
            found = trial.run(f)
        return _agree(found, trial.run(trial.call), exact=op not in _ROUNDED)

    return tried


_ROUNDED: Final = frozenset({"vecdot", "matmul"})  # a graph may choose another kernel of BLAS


def compiled(op: str, trial: Trial) -> str:
    """Whether XLA compiles it and finds the numbers of eager code, but for rounding."""
    f = ll.function(trial.call, jit_compile=True)
    found = trial.run(f)
    entry = f.trace_cache[0]
    if entry.tier != "xla":
        why = _PLACE.sub("", re.split(r"[;(]", str(entry.tier_reason))[0].strip(), count=1).rstrip(".")
        return NO_FORM if why.startswith("has no form in it for these") else why
    return _agree(found, trial.run(trial.call), exact=False)


def on_xla_device(op: str, trial: Trial) -> str:
    """Whether it runs alone on XLA:0."""
    there = [x.to("XLA:0") for x in trial.tensors]
    with ll.device("XLA:0"):
        found = trial.run(trial.call, *there)
    return _agree(found, trial.run(trial.call), exact=False)


def on_gpu(op: str, trial: Trial) -> str:
    """Whether it runs on GPU:0."""
    with ll.device("GPU:0"):
        found = trial.run(trial.call, *[x.to("GPU:0") for x in trial.tensors])
    return _agree(found, trial.run(trial.call), exact=False)


def batched(op: str, trial: Trial) -> str:
    """Whether `vectorize` runs it for all examples at once."""
    stacked = [ll.stack([x, x]) for x in trial.tensors] or [ll.zeros(2)]
    f = ll.vectorize(trial.call if trial.tensors else lambda _: trial.call())
    ll.random.seed(3)
    f(*stacked)
    return "example by example" if op in f.looped else YES


def has_rule(op: str) -> bool:
    """Whether it has a gradient rule, or a variant that is recorded for one."""
    return all_ops()[op].vjp is not None or all_ops()[op].taped is not None


def differentiated(op: str, trial: Trial) -> str:
    """Whether a tape finds a gradient for one of its operands."""
    if not has_rule(op):
        return all_ops()[op].why_no_gradient
    inexact = [x for x in trial.tensors if dtypes.is_inexact(x.dtype)]
    if not inexact:
        return all_ops()[op].why_no_gradient or "no operand is floating"
    with ll.GradientTape() as tape:
        tape.watch(inexact)
        results = trial.run(trial.call)
    targets = [y for y in results if dtypes.is_inexact(y.dtype)]
    found = tape.gradient(targets, inexact) if targets else []
    return YES if any(g is not None for g in found) else all_ops()[op].why_no_gradient or "nothing is connected"


def forward(op: str, trial: Trial) -> str:
    """Whether forward mode finds a tangent, by a rule of the op's own or by the transpose of its gradient rule."""
    if not has_rule(op):
        return all_ops()[op].why_no_gradient
    inexact = [x for x in trial.tensors if dtypes.is_inexact(x.dtype)]
    if not inexact:
        return all_ops()[op].why_no_gradient or "no operand is floating"
    with ll.ForwardAccumulator(inexact, [ll.ones_like(x) for x in inexact]) as accumulator:
        results = trial.run(trial.call)
    found = [accumulator.jvp(y) for y in results if dtypes.is_inexact(y.dtype)]
    if not any(t is not None for t in found):
        return all_ops()[op].why_no_gradient or "nothing is connected"
    return "by a rule of its own" if all_ops()[op].jvp is not None else YES


def in_tables(op: str, trial: Trial) -> str:
    """Why tables leave it to the plan."""
    if op in LOWERINGS or op in ASSIGNMENTS:  # as much as what it stands beside, and calls
        return YES
    return fate(trial.call, trial.tensors, op) or YES


HAS_JAX: Final = importlib.util.find_spec("jax") is not None
HAS_LOOPS: Final = importlib.util.find_spec("limelight_native") is not None
HAS_GPU: Final = importlib.util.find_spec("cupy") is not None
FACT: Final[dict[str, Callable[[str, Trial], str]]] = {
    "plan": on_executor("plan"),
    "step": on_executor("step"),
    **({"loops": in_tables} if HAS_LOOPS else {}),
    **({"xla": compiled, "XLA:0": on_xla_device} if HAS_JAX else {}),
    **({"GPU:0": on_gpu} if HAS_GPU else {}),
    "batched": batched,
    "gradient": differentiated,
    "forward": forward,
}
"""What is tried here, by the name of the fact."""
QUICK: Final = frozenset({"plan", "step", "loops", "batched", "gradient", "forward"})
"""Facts for which nothing is compiled."""


def facts_of(op: Op, by_op: dict[str, list[Any]], only: frozenset[str] | None = None) -> dict[str, str]:
    """What is known of an op: for each fact "yes" if one of its uses is fine, else why the first one is not."""
    uses = list(trials(op.name, by_op))
    found = {"onnx": on_onnx(op)}
    for fact, tried in FACT.items():
        if only is not None and fact not in only:
            continue
        outcomes: list[str] = []
        for use in uses:
            outcomes.append(_outcome(tried, op.name, use))
            if outcomes[-1] in (YES, "by a rule of its own"):
                break
        found[fact] = (outcomes[-1] if outcomes[-1].startswith((YES, "by")) else outcomes[0]) if outcomes else UNTRIED
    return found


def _outcome(tried: Callable[[str, Trial], str], op: str, use: Trial) -> str:
    with quiet():
        try:
            return tried(op, use)
        except ll.errors.LimelightError as error:
            return f"{type(error).__name__}: {_words(error)}"
        except TypeError as error:
            return f"TypeError: {_words(error)}"


def _words(error: Exception) -> str:
    """What an error says, without the user's line."""
    said = str(getattr(error, "bare", error)).split("\n")[0]
    return re.sub(r" at \S+:\d+", "", said)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """A block without warnings, as a function is staged anew for each case, and without what `debug.print` prints."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def on_onnx(op: Op) -> str:
    """What the table of lowerings says."""
    onnx_ops.ops()  # loads it
    if op.name in SAME:
        return YES
    return YES if onnx_ops.is_exported(op) else REFUSED[op.name].partition(";")[0]


def kept() -> dict[str, dict[str, str]]:
    """The facts in the file."""
    return dict(json.loads(FACTS.read_text(encoding="utf-8"))) if FACTS.is_file() else {}


def written(facts: dict[str, dict[str, str]]) -> str:
    """The text of the file: a line for each op, in the order of the alphabet."""
    lines = [f'"{op}": {json.dumps(facts[op], ensure_ascii=False, sort_keys=True)}' for op in sorted(facts)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Tries all ops, and writes the file; or tries some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    by_op, before, known = cases(), kept(), all_ops()
    facts = {name: before[name] for name in own_ops() if name in before and given.ops}
    for name in given.ops or own_ops():
        facts[name] = {**before.get(name, {}), **facts_of(known[name], by_op)}
        print(f"{name}: {facts[name]}", file=sys.stdout if given.ops else sys.stderr, flush=True)
    if given.write or not given.ops:
        FACTS.write_text(written(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
