"""In which order the keys of a cell's dictionaries stand: code that goes through one sees it, and a structure does not.

The engine takes dictionaries whose keys are the same for alike, whatever their order. A cell that ran on `{"a": 1, "b":
2}` means something else where it is `{"b": 2, "a": 1}`, so the order is a part of the key: a string of words, empty
where all keys are sorted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from limelight.core import nest
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight_kernel.inputs.pins import ByValue, Pinned
from limelight_kernel.inputs.portraits import PLAIN

KEY: Final = "order of keys"  # no identifier, so no name of the notebook's
_LEAVES: Final = frozenset([*PLAIN, Tensor, Variable, np.ndarray, Pinned, ByValue])
_SHOWN: Final = 8


def key_orders(arguments: Mapping[str, Any]) -> str:
    """Says in which order the keys stand of the dictionaries among arguments, but for those that are sorted.

    >>> print(key_orders({"a": {"k": 1, "l": 2}, "b": [{"k": 1, "h": {"y": 2, "x": 3}}], "c": 3}))
    b[0]: 'k', 'h'; b[0]["h"]: 'y', 'x'
    """
    said: list[str] = []
    waiting = deque([(name, x) for name, x in arguments.items() if type(x) not in _LEAVES])
    while waiting:
        path, x = waiting.popleft()
        container = nest.opened(x)
        if container is None:
            continue
        kind, keys, children = container
        order: tuple[Any, ...] = getattr(keys, "order", ())
        if keys[: len(order)] != order:
            said.append(f"{path}: {_words(order)}")
        if not _LEAVES.issuperset(map(type, children)):
            inside = zip(keys, children, strict=True)
            waiting += [(path + nest.step(kind, key), child) for key, child in inside if type(child) not in _LEAVES]
    return "; ".join(said)


def _words(keys: tuple[Any, ...]) -> str:
    words = ", ".join(map(repr, keys[:_SHOWN]))
    return words if len(keys) <= _SHOWN else f"{words}, ... ({hash(keys):#x})"
