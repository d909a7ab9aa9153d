"""What converted code calls, as attributes of `ag__`: the names are those that `diastatic-malt` emits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

from limelight.autograph.conditionals import assert_stmt, if_exp, if_stmt
from limelight.autograph.context import FunctionScope, trying, with_function_scope
from limelight.autograph.converted_calls import converted_call
from limelight.autograph.local_containers import made, whole
from limelight.autograph.logical_operators import and_, compare, kept, not_, or_
from limelight.autograph.loops import for_stmt, while_stmt
from limelight.autograph.mutation_guards import rebinds, writes
from limelight.autograph.number_builtins import class_of
from limelight.autograph.printing import printer
from limelight.autograph.transpiler import MARK, provide
from limelight.autograph.undefined_variables import Undefined, UndefinedReturnValue, ld, ldu

__all__ = [
    "STD",
    "autograph_artifact",
    "FunctionScope",
    "Undefined",
    "UndefinedReturnValue",
    "and_",
    "assert_stmt",
    "compare",
    "converted_call",
    "for_stmt",
    "if_exp",
    "if_stmt",
    "kept",
    "keywords",
    "ld",
    "ldu",
    "made",
    "not_",
    "or_",
    "class_of",
    "printer",
    "rebinds",
    "trying",
    "while_stmt",
    "whole",
    "with_function_scope",
    "writes",
]

_Fn = TypeVar("_Fn", bound=Callable[..., Any])

STD: Final = None
"""The library's options, of which we use none."""


def keywords(**given: Any) -> dict[str, Any]:
    """Keyword arguments of a call, some of them by `**`."""
    return given


def autograph_artifact(function: _Fn) -> _Fn:
    """Marks a function that converted code defines: it is converted with it."""
    setattr(function, MARK, True)
    return function


provide(sys.modules[__name__])
