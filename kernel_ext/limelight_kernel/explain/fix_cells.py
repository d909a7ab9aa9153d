"""The code of a fix as a whole cell: a decorator with its function, the line of `%%stage` with the cell below it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from limelight.explain.fix import Fix
from limelight.explain.story import Story


def with_cells(stories: Iterable[Story], function: Any) -> tuple[Story, ...]:
    """The stories, with fixes that can be inserted into a notebook as they are.

    Args:
        stories: about `function`.
        function: a staged function or a staged cell.
    """
    return tuple([replace(story, fixes=tuple([_with_cell(fix, function) for fix in story.fixes])) for story in stories])


def _with_cell(fix: Fix, function: Any) -> Fix:
    body = getattr(getattr(function, "cell", None), "text", "")
    if fix.code.startswith("%%stage") and body:
        return fix._replace(cell=f"{fix.code}\n{body.rstrip()}")
    if fix.code.startswith("@") and not fix.cell:
        return fix._replace(cell=_decorated(fix.code, function))
    return fix


def _decorated(decorator: str, function: Any) -> str:
    """The function's definition with `decorator` in the place of its own; empty where it cannot stand alone."""
    definition = getattr(function, "python_function", None)
    if "." in getattr(definition, "__qualname__", "."):
        return ""
    try:
        text = textwrap.dedent(inspect.getsource(definition))  # type: ignore[arg-type]  # a function, or TypeError
        (tree,) = ast.parse(text).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    if not isinstance(tree, ast.FunctionDef) or len(tree.decorator_list) > 1:
        return ""
    return "\n".join([decorator, *text.splitlines()[tree.lineno - 1 :]])
