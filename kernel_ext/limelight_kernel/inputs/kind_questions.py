"""What the code of a cell and of its helpers asks for the kind of what it is given: a stand-in is something else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from limelight.core.tensor import Tensor
from limelight.user_code.definitions import definition_of
from limelight.user_code.names_read import Read
from limelight.user_code.source_line import Source

_ASK: Final = (isinstance, hasattr, getattr, type, id)


class KindQuestions(NamedTuple):
    """`of_type`: whether it calls `type(x)`; `modules`: the globals of the user's modules that ask.

    `patterns`: where helpers match `case ll.Tensor()`, which a stand-in for an array is as well.
    """

    of_type: bool = False
    modules: tuple[dict[str, Any], ...] = ()
    patterns: tuple[Source, ...] = ()


def kind_questions(found: Iterable[Read], own_file: str) -> KindQuestions:
    """Those in the code that has been read; the patterns in `own_file`, the cell's, are left out."""
    calls = [read for read in found if read.use.how == "call" and any(read.value is one for one in _ASK)]
    elsewhere = {id(read.globals): read.globals for read in calls if read.globals.get("__name__") != "__main__"}
    codes = dict.fromkeys(
        read.code for read in found if read.value is Tensor and read.code.co_filename != own_file
    )  # most code reads no such class, and so is not looked at again
    return KindQuestions(
        any(read.value is type for read in calls),
        tuple([names for names in elsewhere.values() if isinstance(names, dict)]),
        tuple([pattern for code in codes for pattern in _tensor_patterns(code)]),
    )


def _tensor_patterns(code: Any) -> Iterator[Source]:
    tree = definition_of(code)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.MatchClass) and ast.unparse(node.cls).rpartition(".")[2] == "Tensor":
            yield Source(code.co_filename, node.lineno, code.co_name)
