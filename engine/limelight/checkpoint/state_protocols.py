"""Objects that give and take their state by methods of their own: iterators, loaders, generators of other libraries."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

_METHODS: Final = (("get_state", "set_state"), ("state_dict", "load_state_dict"), ("getstate", "setstate"))
"""Of Grain's iterators and ours and NumPy's `RandomState`; of torchdata's loaders; of Python's `random.Random`."""


def _methods(x: Any) -> tuple[str, str] | None:
    kind = type(x)
    return next((pair for pair in _METHODS if all(callable(getattr(kind, name, None)) for name in pair)), None)


def is_stateful(x: Any) -> bool:
    """Whether `x` has a pair of methods to get and set its state, or is a generator of NumPy's.

    >>> import random
    >>> is_stateful(random.Random(1)), is_stateful(np.random.default_rng(1)), is_stateful(3)
    (True, True, False)
    """
    return not isinstance(x, type) and (isinstance(x, np.random.Generator) or _methods(x) is not None)


def get_state(x: Any) -> Any:
    """The state of a stateful object."""
    if isinstance(x, np.random.Generator):
        return x.bit_generator.state
    methods = _methods(x)
    assert methods is not None, "asked of stateful objects only"
    return getattr(x, methods[0])()


def set_state(x: Any, state: Any) -> None:
    """Gives a stateful object the state that it, or one like it, had."""
    if isinstance(x, np.random.Generator):
        x.bit_generator.state = state
        return
    methods = _methods(x)
    assert methods is not None, "asked of stateful objects only"
    getattr(x, methods[1])(state)
