"""What code mentions is read from its source; without one, or with another one, it is not known."""

from __future__ import annotations

import importlib
import itertools
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import limelight as ll
from limelight.user_code.code_uses import uses_of
from limelight.user_code.definitions import definition_of

_files = itertools.count(1)
Define = Callable[..., dict[str, Any]]


@pytest.fixture
def define() -> Iterator[Define]:
    """Runs a program; its source is what `linecache` has, which may be another one (`said`) or none (None)."""
    files = []

    def run(text: str, said: str | None = "", **names: Any) -> dict[str, Any]:
        file = f"uses{next(_files)}.py"
        files.append(file)
        said = text if said == "" else said
        if said is not None:
            linecache.cache[file] = (len(said), None, said.splitlines(keepends=True), file)
        names = {"ll": ll, **names}
        exec(compile(text, file, "exec"), names)
        return names

    yield run
    for file in files:
        linecache.cache.pop(file, None)


def said(function: Any, how: str) -> list[tuple[str, int]]:
    return [(str(use.chain), use.line) for use in uses_of(function.__code__).uses if use.how == how]


BODIES = {
    "a chain over lines": ("return (cfg\n .rate\n .first)", "read", [("cfg.rate.first", 4)]),
    "negative keys": ("return cfg[-1]", "read", [("cfg[-1]", 2)]),
    "another name": ("own = cfg.rate\nreturn own.value", "read", [("cfg.rate", 2), ("cfg.rate.value", 3)]),
    "two other names": ("a, b = cfg.a, cfg.b\nb.n = 1", "write", [("cfg.b.n", 3)]),
    "getattr": ("return getattr(cfg, 'rate')", "read", [("getattr", 2), ("cfg.rate", 2)]),
    "an item that counts": ("cfg['n'] += 1", "write", [("cfg['n']", 2)]),
    "an item by a name": ("for i in range(2): cfg[i] = i", "write", [("cfg[Ellipsis]", 2)]),
    "a global": ("global cfg\ncfg = 1\ndel cfg", "write", [("cfg", 3), ("cfg", 4)]),
    "a global that counts": ("global cfg\ncfg += 1", "read", [("cfg", 3)]),
    "an import": ("import os.path as p\nreturn p.sep", "read", [("os", 2), ("os.path", 2), ("os.path.sep", 3)]),
    "names that are bound": (
        "with open(x) as f, cfg as g: pass\nreturn f, g",
        "read",
        [("open", 2), ("x", 2), ("cfg", 2)],
    ),
    "a match": ("match x:\n  case [a, *b]: return a\n  case cfg.key: return 0", "read", [("x", 2), ("cfg.key", 4)]),
    "what never runs": ("return x\ncfg.n = 1", "write", []),
    "a constant condition": ("if __debug__: cfg.a = 1\nelse: cfg.b = 1", "write", [("cfg.a", 2)]),
}


@pytest.mark.parametrize("name", BODIES)
def test_uses_of_a_body(define: Define, name: str) -> None:
    body, how, wanted = BODIES[name]
    text = "def f(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert said(define(text)["f"], how) == wanted


def test_private_names_are_those_of_the_class(define: Define) -> None:
    names = define("class A:\n    def f(self):\n        return self.__rate\n")
    assert said(names["A"].f, "read") == [("self._A__rate", 3)]


def test_lambdas_of_one_line_are_told_apart(define: Define) -> None:
    names = define("fs = [lambda x: x.a, (lambda lambda_: lambda_.b), lambda x: (x\n  .c)]\n")
    assert [said(f, "read") for f in names["fs"]] == [[("x.a", 1)], [("lambda_.b", 1)], [("x.c", 2)]]


def test_a_definition_has_the_columns_of_its_file(define: Define) -> None:
    names = define("class A:\n    @staticmethod\n    def f(x):\n        return x\ng = 0, lambda x: x\n")
    found = definition_of(names["A"].f.__code__)
    assert found is not None
    assert (found.lineno, found.col_offset, found.body[0].col_offset) == (3, 4, 8)  # type: ignore[index]
    found = definition_of(names["g"][1].__code__)
    assert found is not None
    assert (found.lineno, found.col_offset) == (5, 7)


def test_a_definition_that_ends_in_a_long_text_is_found(define: Define) -> None:
    names = define('def f(x):\n    return x, """\n\n\n\n\n\n\n"""\n')
    assert definition_of(names["f"].__code__) is not None


TRACED = "def helper(x):\n    SEEN.append(1)\n    return x * RATE\n"
SAID = "What `helper` ({file} line 1) {what} is not known: its source cannot be read."


@pytest.mark.parametrize("source", [None, "# edited\n" + TRACED, TRACED.replace("RATE", "SPEED"), "def helper(x:\n"])
def test_without_the_source_it_says_that_it_does_not_know(define: Define, source: str | None) -> None:
    helper = define(TRACED, source, RATE=2.0, SEEN=[])["helper"]
    f = ll.function(lambda x: helper(x) + 1.0)
    assert f(ll.constant(1.0)).item() == 3.0
    file = helper.__code__.co_filename
    effects, values = ll.explain.side_effects(f), ll.explain.baked(f)
    assert str(effects).splitlines()[-1] == SAID.format(file=file, what="does")
    assert [one.what for one in effects.records] == ["SEEN.append(...)"]  # which its instructions tell
    assert str(values).splitlines()[-1] == SAID.format(file=file, what="reads")
    assert [one.function for one in effects.unknown] == [one.function for one in values.unknown] == ["helper"]


def test_with_the_source_nothing_is_unknown(define: Define) -> None:
    helper = define(TRACED, RATE=2.0, SEEN=[])["helper"]
    f = ll.function(lambda x: helper(x) + 1.0)
    f(ll.constant(1.0))
    assert [one.what for one in ll.explain.side_effects(f).records] == ["SEEN.append(...)"]
    assert "RATE" in [one.name for one in ll.explain.baked(f).records]
    assert ll.explain.side_effects(f).unknown == ll.explain.baked(f).unknown == ()


MODULE = "SEEN = []\nRATE = 2.0\nSPEED = 5.0\n\n\ndef helper(x):\n"
QUIET = MODULE + "    return x * 3.0\n"
LOUD = MODULE + "    SEEN.append(1)\n    return x * RATE\n"


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Writes a module, the same each time; returns it as it was imported first."""
    name = f"edited{next(_files)}"
    file = tmp_path / f"{name}.py"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text: str) -> Any:
        file.write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write
    sys.modules.pop(name, None)
    linecache.cache.pop(str(file), None)


def test_a_module_that_was_edited_and_loaded_again_is_read_again(edit: Callable[[str], Any]) -> None:
    module = edit(QUIET)
    f = ll.function(lambda x: module.helper(x) + 0.0)
    f(ll.constant(1.0))
    assert ll.explain.side_effects(f).records == ()
    importlib.reload(edit(LOUD))
    g = ll.function(lambda x: module.helper(x) + 0.0)
    assert g(ll.constant(1.0)).item() == 2.0
    assert [one.what for one in ll.explain.side_effects(g).records] == ["SEEN.append(...)"]
    assert ("RATE", "2.0") in [(one.name, one.then) for one in ll.explain.baked(g).records]
    assert ll.explain.baked(g).unknown == ()


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("body", ["    return x * 3.0\n", "    return x * SPEED\n", "    x = RATE\n    return x\n"])
def test_a_module_that_was_edited_alone_is_not_known(edit: Callable[[str], Any], body: str, is_read: bool) -> None:
    module = edit(LOUD)
    f = ll.function(lambda x: module.helper(x) + 0.0)
    if is_read:
        f(ll.constant(1.0))
        assert [one.what for one in ll.explain.side_effects(f).records] == ["SEEN.append(...)"]
    edit(MODULE + body)
    f(ll.ones((3,)))
    assert [one.function for one in ll.explain.side_effects(f).unknown] == ["helper"]
    assert [one.function for one in ll.explain.baked(f).unknown] == ["helper"]


def test_a_file_is_looked_at_once_for_a_snapshot(edit: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    module = edit(MODULE + "    return one(x) + two(x)\n\n\ndef one(x):\n    return x\n\n\ndef two(x):\n    return x\n")
    f = ll.function(lambda x: module.helper(x) + 0.0)
    f(ll.constant(1.0))
    looked: list[Any] = []
    check = linecache.checkcache

    def checkcache(file: str | None = None) -> None:
        looked.append(file)
        check(file)

    monkeypatch.setattr(linecache, "checkcache", checkcache)
    ll.explain.side_effects(f)
    assert looked.count(module.__file__) == 1
    assert len(looked) == len(set(looked)) == 2


def test_names_that_are_written_otherwise_in_the_code_are_no_change(define: Define) -> None:
    names = define("class A:\n    def f(self):\n        return __rate * [__rate for x in self.xs][0]\n", _A__rate=2.0)
    assert ("_A__rate", 3) in said(names["A"].f, "read")
    assert said(names["A"].f, "unknown") == []


def test_a_definition_without_code_is_not_known(define: Define) -> None:
    """As where the file's `def` within came from another text: `None` stands for the code that is not found."""
    names = define("def f(x):\n    inner = None\n    return x\n", "def f(x):\n    def inner(): pass\n    return x\n")
    assert said(names["f"], "unknown") == [("inner", 2)]


GENERIC = """
def f(x):
    def inner[T](y: T, z: T = KEPT) -> T:
        SEEN.append(1)
        return y * RATE

    class Box[T](Base):
        side = cfg.side

    type Pair = tuple[T, T]
    return inner(x)
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="generic definitions are of Python 3.12")
def test_generic_definitions_are_read(define: Define) -> None:
    SEEN: list[int] = []

    cfg = SimpleNamespace(side=4.0)

    f = define(GENERIC, SEEN=SEEN, RATE=2.0, KEPT=1.0, Base=list, cfg=cfg)["f"]
    F = ll.function(f)
    assert F(ll.constant(1.5)).item() == 3.0
    assert [one.what for one in ll.explain.side_effects(F).records] == ["SEEN.append(...)"]
    assert {"RATE", "KEPT", "cfg.side"} <= {one.name for one in ll.explain.baked(F).records}
    assert ll.explain.baked(F).unknown == ()


def test_global_names_beyond_the_256th_are_checked(define: Define) -> None:
    text = "def f(x):\n    if x: return [" + ", ".join(f"g{i}" for i in range(600)) + "]\n    return g{n}\n"
    names = define(text.replace("{n}", "600"), text.replace("{n}", "5"))
    assert said(names["f"], "unknown") == [("f", 1)]
    assert said(define(text.replace("{n}", "600"))["f"], "unknown") == []


def test_calls_whose_results_nobody_takes_are_told(define: Define) -> None:
    f = define("def f(a, b):\n    if a: b.write(1)\n    n = b.write(2)\n    b.write(*a)\n    return b.write(3)")["f"]
    assert [use.line for use in uses_of(f.__code__).uses if use.dropped] == [2, 4]
