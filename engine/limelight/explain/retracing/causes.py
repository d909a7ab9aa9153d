"""Why a call found no trace: the causes, from the slightest to the greatest, and what to do about each in general."""

from __future__ import annotations

import enum
from typing import Final


class Cause(enum.StrEnum):
    """Why a call did not find its trace, from the slightest difference to the greatest."""

    SHAPE = "shape"
    NUMBER = "Python number"
    VALUE = "Python value"
    FUNCTION = "new function object"
    REDEFINED = "redefined function"
    EXCHANGED = "exchanged code or defaults"
    OBJECT = "another object"
    DELETED = "deleted object"
    DEVICE = "device"
    DTYPE = "dtype"
    RANK = "rank"
    ALIASING = "aliasing of variables"
    SHARING = "which arguments are one and the same"
    VARIABLE = "variable"
    TYPE = "type of value"
    COUNT = "number of values"
    KEYS = "dictionary keys"
    CONTAINER = "container"
    # The rest concern the call as a whole.
    FIRST = "first call"
    REMADE = "staged anew"
    RERUN = "definition run again"
    EDITED = "code edited"
    CLEARED = "cleared cache"
    EVICTED = "evicted trace"
    STALE = "ended capture"
    ONCE = "trace of one call"


SEVERITY: Final = {cause: rank for rank, cause in enumerate(Cause)}

ADVICE: Final = {
    Cause.VALUE: "Each value needs a trace of its own; to choose inside one graph, pass a tensor and use ll.cond.",
    Cause.NUMBER: "Each value needs a trace of its own; if it only takes part in arithmetic, pass a tensor of the "
    "dtype that it meets, such as ll.constant({path}, dtype).",
    Cause.TYPE: "Pass the same type of value in each call.",
    Cause.RANK: "Each rank needs a trace of its own.",
    Cause.COUNT: "Each number of values needs a trace of its own; ll.stack makes one tensor of them.",
    Cause.KEYS: "Pass the same keys in each call.",
    Cause.CONTAINER: "Pass the same kinds of containers in each call.",
    Cause.VARIABLE: "Each shape and dtype of a variable needs a trace of its own.",
    Cause.ALIASING: "Each pattern of equal variables needs a trace of its own: gradients and effects differ.",
    Cause.SHARING: "Each pattern of arguments that are one and the same needs a trace of its own: the code changes "
    "them, or asks which they are.",
    Cause.FUNCTION: "Define the function once, outside the loop, and pass that one; what it takes from the loop "
    "becomes an argument of the call.",
    Cause.REDEFINED: "Its definition ran again; the trace of the old one can never be used again.",
    Cause.EXCHANGED: "Set them once, before the first call, or pass as an argument what a default would be.",
    Cause.OBJECT: "Keep one object and pass it in each call, or pass its tensors.",
    Cause.DELETED: "A trace goes with the object that it was made for: keep one object and pass it in each call.",
    Cause.DEVICE: "Each device needs a trace of its own.",
    Cause.SHAPE: "Each shape needs a trace of its own unless its sizes are declared unknown.",
    Cause.STALE: "Pass the tensor of the enclosing function as an argument.",
    Cause.ONCE: "Make variables before, and keep effects of Python's out of what is staged.",
}
"""What is said where nothing is known that would mend this very call."""
