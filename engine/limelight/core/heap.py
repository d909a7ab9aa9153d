"""What is alive of a class: a walk over the objects that Python's garbage collector follows."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from typing import Any


def living(last_set: Mapping[type, str]) -> Iterator[Any]:
    """Instances of the classes that are keys, and of their subclasses.

    Each class comes with the attribute that its construction sets last, and an object without it is passed over: where
    a constructor raises, the half-made object lives as long as the traceback, and another thread may be inside one.

    Args:
        last_set: the attribute that is set last, by class; for slots the name of a slot; "" where what is half made
            does no harm.
    """
    # By who refers to the class, as each instance does. A list of all objects would hold those that other code is just
    # making: CPython refuses to end a tuple(...) that somebody else has got hold of.
    kinds = tuple(last_set)
    for x in gc.get_referrers(*{cls for kind in kinds for cls in _with_subclasses(kind)}):
        # By type(x): isinstance asks any object for its __class__, which a dead weak proxy answers by a ReferenceError
        # and a lazy module by an import.
        if issubclass(type(x), kinds) and _is_made(x, last_set):
            yield x


def _with_subclasses(kind: type) -> Iterator[type]:
    yield kind
    subclasses: list[type] = type.__subclasses__(kind)
    for subclass in subclasses:
        yield from _with_subclasses(subclass)


def _is_made(x: Any, last_set: Mapping[type, str]) -> bool:
    name = next(name for kind, name in last_set.items() if issubclass(type(x), kind))
    if not name:
        return True
    slot = getattr(type(x), name, None)
    try:  # not hasattr(x, name): a class may answer for unknown names by reading a value
        if slot is None:
            return name in x.__dict__
        slot.__get__(x)
    except AttributeError:
        return False
    return True
