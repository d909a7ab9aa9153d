"""Which names may `%%stage NAME` and `-o NAME` bind, so that nothing in use is lost?"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from types import ModuleType
from typing import Any

from IPython.core.error import UsageError

from limelight_kernel.staged.calling import kind_of
from limelight_kernel.staged.staged_cell import StagedCell


def check_bindings(staged: StagedCell, output: str | None, namespace: Mapping[str, Any]) -> None:
    """Raises UsageError, one line, where the staged cell's name, or `output` for its record, means something in use."""
    reads, writes = staged.reads, staged.writes
    name = staged.options.name
    if name is not None:
        rebound = isinstance(namespace.get(name), StagedCell)  # a cell may call the one whose name it takes
        problem = _problem(name, frozenset() if rebound else reads, writes, namespace)
        if problem:
            raise UsageError(f"%%stage {name}: {problem}, and NAME binds the staged cell; write another NAME")
        if name in namespace and not rebound:
            raise UsageError(
                f"%%stage {name}: {name!r} is {kind_of(namespace[name])} here, and NAME binds the staged cell; "
                f"write another NAME, or first `del {name}`"
            )
    if output is not None:
        problem = _problem(output, reads, writes, namespace)
        if problem is None and output == name:
            problem = f"{output!r} is the staged cell itself"
        if problem:
            raise UsageError(
                f"%%stage -o {output}: {problem}, and -o keeps the record of this run under that name; "
                "write another name after -o"
            )


def _problem(name: str, reads: Collection[str], writes: Collection[str], namespace: Mapping[str, Any]) -> str | None:
    if isinstance(namespace.get(name), ModuleType):
        return f"{name!r} is a module here"
    if hasattr(builtins, name):
        return f"{name!r} is a builtin"
    if name in writes:
        return f"the cell assigns {name!r}"
    return f"the cell reads {name!r}" if name in reads else None
