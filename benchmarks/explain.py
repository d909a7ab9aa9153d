"""What an explanation costs: milliseconds for a call of 1,000 leaves that has none of 100 traces.

    python benchmarks/explain.py [leaves [traces]]

What tracing itself takes is left out: the figure is that of finding the closest trace, comparing with it, and writing
the record with its fixes and its sentence. The bar is 2 ms. Each figure is processor time, the best of several.
"""

from __future__ import annotations

import gc
import sys
import time
import warnings
from typing import Any

import numpy as np

import limelight as ll
from limelight.staging import miss

BAR = 2.0
ROUNDS = 7
X = np.ones((2, 3), np.float32)
OTHER = np.ones((5, 3), np.float32)


class Thing:
    """Something that is keyed by identity."""


def cases(leaves: int) -> dict[str, Any]:
    """By what differs from every trace: a dictionary of arguments."""
    names = [f"layer_{i}" for i in range(leaves)]
    same = dict.fromkeys(names, X)
    return {
        "one shape": same | {names[7]: OTHER},
        "one number": same | {names[7]: 0.5},
        "ten shapes": same | dict.fromkeys(names[:10], OTHER),
        "all shapes": dict.fromkeys(names, OTHER),
        "all dtypes": dict.fromkeys(names, X.astype(np.float64)),
        "all kinds": dict.fromkeys(names, "relu"),
        "all objects": {name: Thing() for name in names},
        "all numbers": {name: float(i) for i, name in enumerate(names)},
        "nested, one key less": {"inner": dict(list(same.items())[1:]), "more": X},
        "one key more": same | {"more": X},
        "one key less": dict.fromkeys(names[1:], X),
        "a list": list(same.values()),
    }


def staged(leaves: int, traces: int) -> Any:
    """A function with traces that differ in one string."""
    f = ll.function(lambda tree, which: 1.0)
    first = cases(leaves)["one shape"] | {"layer_7": X}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        for i in range(traces):
            f(first, f"call {i}")
    return f


def milliseconds(f: Any, tree: Any) -> float:
    """What it takes to explain a call, whose objects nobody has looked at before."""
    key = f._call((tree, "call 5"), {}).key
    start = time.process_time()
    str(miss.diagnose(f, key, ()))
    return (time.process_time() - start) * 1e3


def measure(leaves: int, traces: int) -> list[tuple[str, float]]:
    f = staged(leaves, traces)
    rows = []
    gc.disable()
    for name, tree in cases(leaves).items():
        rows.append((name, min(milliseconds(f, tree) for _ in range(ROUNDS))))
    gc.enable()
    return rows


def main() -> None:
    given = [int(number) for number in sys.argv[1:]]
    leaves, traces = given + [1000, 100][len(given) :]
    print(f"{leaves:,} leaves, {traces:,} traces{'':<6}ms    bar")
    for name, cost in measure(leaves, traces):
        print(f"{name:<24}{cost:8.2f}{BAR:7.1f}")


if __name__ == "__main__":
    main()
