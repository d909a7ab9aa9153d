"""`ll.explain`: its names are loaded when they are asked for, and type checkers are told of the same ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from limelight import explain


def test_the_names_that_are_loaded_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(Path(explain.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    told = {a.asname: str(node.module) for node in imports for a in node.names if a.asname}
    assert told == {name: f"limelight.{home}" for name, home in explain._HOMES.items()}
    assert set(dir(explain)) == set(told)
    assert all(callable(getattr(explain, name)) for name in told)


def test_a_star_gives_the_public_names_and_no_others() -> None:
    names: dict[str, object] = {}
    exec("from limelight.explain import *", names)
    assert set(names) - {"__builtins__"} == set(explain._HOMES)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"module 'limelight\.explain' has no attribute 'whyy'"):
        _ = explain.whyy
