"""What an explanation costs: milliseconds for a call of 1,000 leaves that has none of 100 traces.

    python benchmarks/explain.py [leaves [traces]]

What tracing itself takes is left out: the figure is that of finding the closest trace, comparing with it, and writing
the record with its fixes and its sentence. The bar is 2 ms. Each figure is processor time, the best of several.
"""

from __future__ import annotations

import dataclasses
import gc
import sys
import time
import warnings
from typing import Any

import numpy as np

import limelight as ll
from limelight.explain.retracing import diagnosis

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
        "all variables": dict.fromkeys(names, ll.Variable(1.0)),
        "all long strings": {name: f"{name} {'relu ' * 20}" for name in names},
        "a dataclass": Tree(same, X),
        "100 levels deep": nested(list(same.items())),
    }


@dataclasses.dataclass
class Tree:
    """Arguments in a container of the user's."""

    leaves: Any
    more: Any


def nested(items: list[tuple[str, Any]], depth: int = 100) -> Any:
    """As many leaves, spread over levels one within the other."""
    tree: Any = {}
    each = max(1, len(items) // depth)
    for start in range(0, len(items), each):
        tree = dict(items[start : start + each]) | {"inner": tree}
    return tree


def open_sizes(leaves: int, traces: int) -> float:
    """The same for traces with all sizes open, where what differs is a string."""
    f = ll.function(lambda tree, which: 1.0)
    specs = dict.fromkeys([f"layer_{i}" for i in range(leaves)], ll.TensorSpec((None, 3)))
    for i in range(traces):
        f.get_concrete_function(specs, f"call {i}")
    key = f._call((dict.fromkeys(specs, X), "another"), {}).key
    return min(timed(f, key) for _ in range(ROUNDS))


def staged(leaves: int, traces: int, first: Any = None) -> Any:
    """A function with traces that differ in one string."""
    f = ll.function(lambda tree, which: 1.0)
    first = cases(leaves)["one shape"] | {"layer_7": X} if first is None else first
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        for i in range(traces):
            f(first, f"call {i}")
    return f


def milliseconds(f: Any, tree: Any) -> float:
    """What it takes to explain a call, whose objects nobody has looked at before."""
    return timed(f, f._call((tree, "call 5"), {}).key)


def timed(f: Any, key: Any) -> float:
    start = time.process_time()
    str(diagnosis.diagnose(f, key, ()))
    return (time.process_time() - start) * 1e3


def measure(leaves: int, traces: int) -> list[tuple[str, float]]:
    f = staged(leaves, traces)
    rows = []
    gc.disable()
    for name, tree in cases(leaves).items():
        rows.append((name, min(milliseconds(f, tree) for _ in range(ROUNDS))))
    deep = cases(leaves)["100 levels deep"]
    f = staged(leaves, traces, deep)
    rows.append(("a leaf 100 levels deep", min(milliseconds(f, changed(deep)) for _ in range(ROUNDS))))
    rows.append(("open sizes", open_sizes(leaves, traces)))
    gc.enable()
    return rows


def changed(tree: Any) -> Any:
    """`tree` with another shape at its innermost leaf."""
    return tree | {"inner": changed(tree["inner"])} if tree["inner"] else tree | dict.fromkeys(list(tree)[:1], OTHER)


def main() -> None:
    given = [int(number) for number in sys.argv[1:]]
    leaves, traces = given + [1000, 100][len(given) :]
    print(f"{leaves:,} leaves, {traces:,} traces{'':<6}ms    bar")
    for name, cost in measure(leaves, traces):
        print(f"{name:<24}{cost:8.2f}{BAR:7.1f}")


if __name__ == "__main__":
    main()
