"""The examples in docstrings run, every op has one, and public names tell their parameters and errors."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import inspect
import itertools
import pkgutil
import re
import textwrap
from types import ModuleType
from typing import Any, get_overloads

import pytest

import limelight
import limelight_kernel
import limelight_widgets
import reference
from limelight.core.dispatch import Interpreter

ELSEWHERE = {"limelight.core.backends.cupy", "limelight.core.backends.jax"}  # need libraries that not every machine has


def modules_of(package: ModuleType) -> list[str]:
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [package.__name__, *(module.name for module in found if module.name not in ELSEWHERE)]


def rooms_of(*packages: ModuleType) -> dict[str, list[str]]:
    """The modules by the folder of a package that they lie in: as many tests can be shared out among workers."""
    rooms: dict[str, list[str]] = {}
    for name in itertools.chain.from_iterable(map(modules_of, packages)):
        rooms.setdefault(".".join(name.split(".")[:2]), []).append(name)
    return rooms


ROOMS = rooms_of(limelight, limelight_kernel, limelight_widgets)


@pytest.mark.filterwarnings("ignore::limelight.errors.LostChangeWarning")  # which some examples are about
@pytest.mark.slow  # runs the examples of all docstrings
@pytest.mark.parametrize("room", ROOMS)
def test_examples_run(room: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name in ROOMS[room]:
        for found in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name):
            if found.examples:  # to run one without any takes its time as well, and there are ten thousand
                runner.run(found)
    assert not runner.summarize().failed, "see the printed report"


def test_the_walk_finds_the_modules() -> None:
    assert {"limelight.ops", "limelight.nn", "limelight_kernel.staged", "limelight_widgets.folds"} <= set(ROOMS)
    assert "limelight.nn.layers.sequential" in ROOMS["limelight.nn"]


FAMILIES = [name for name in modules_of(limelight) if name.startswith("limelight.ops.")]


OTHERS = ["data", "lookup", "nn", "nn.initializers", "optim", "optim.schedules", "random", "linalg", "fft"]


@pytest.mark.parametrize("name", [*FAMILIES, *(f"limelight.{name}" for name in OTHERS)])
def test_every_public_function_has_an_example(name: str) -> None:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        assert ">>>" in (getattr(module, public).__doc__ or ""), f"{name}.{public} has no example"


def unbound_names(text: str) -> set[str]:
    """The names that the examples in a docstring use, and nothing in them binds."""
    used, bound = set(), set(dir(builtins))
    for example in doctest.DocTestParser().get_examples(text):
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)):
                bound.add(node.name or "")
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
    return used - bound


def test_examples_of_public_names_can_be_copied() -> None:
    listed = {name: value for name, value in reference.public_names().items() if callable(value)}
    texts = {name: value.__doc__ or "" for name, value in {**public_callables(), **listed}.items()}
    assert {name: lacking for name, text in texts.items() if (lacking := unbound_names(text))} == {}


# What help() says of the public names

_PARTS = ("data", "lookup", "nn", "nn.initializers", "optim", "optim.schedules", "random", "linalg", "fft")
SPOKEN_OF = [limelight, *(importlib.import_module(f"limelight.{name}") for name in _PARTS)]
FROM_FOUR_ON = 4  # parameters which need a list


def public_callables() -> dict[str, Any]:
    """The functions and classes of the packages, and the public methods of the classes, by their dotted names."""
    found: dict[str, Any] = {}
    for package in SPOKEN_OF:
        for name in getattr(package, "__all__", ()) or dir(package):
            value = getattr(package, name)
            if name[0] == "_" or not callable(value) or not str(value.__module__).startswith("limelight"):
                continue
            found[f"{package.__name__}.{name}"] = value
            if isinstance(value, type):
                found |= {f"{package.__name__}.{name}.{k}": v for k, v in public_methods(value).items()}
    return found


def public_methods(owner: type) -> dict[str, Any]:
    """The methods of a class for users; what the dispatcher asks of its interpreters is for the dispatcher."""
    names = [name for name in dir(owner) if name[0] != "_" and not hasattr(Interpreter, name)]
    found = {name: inspect.getattr_static(owner, name) for name in names}
    return {name: value for name, value in found.items() if inspect.isfunction(value)}


def parameters_of(value: Any) -> list[str]:
    """The names of the parameters; where there are overloads, those of all of them."""
    if isinstance(value, type):
        constructor = value.__init__  # type: ignore[misc]  # of the class itself
        made_by = [constructor] if inspect.isfunction(constructor) else [value]
    else:
        made_by = [value, *get_overloads(value)]
    try:
        signatures = list(map(inspect.signature, made_by))
    except ValueError:  # of a class that is written in C underneath
        return []
    names = dict.fromkeys(name for signature in signatures for name in signature.parameters)
    return [name for name in names if name not in ("self", "cls")]


def section(doc: str, title: str) -> dict[str, str]:
    """The entries of a section of a docstring in Google's style: what stands before and behind the colons."""
    found: dict[str, str] = {}
    lines = inspect.cleandoc(doc).splitlines()
    if f"{title}:" not in lines:
        return found
    for line in lines[lines.index(f"{title}:") + 1 :]:
        if line and not line.startswith("    "):
            break
        entry = re.match(r"    \*{0,2}(\w+): +(\S.*)", line)
        if entry:
            found[entry[1]] = entry[2]
    return found


def undocumented(value: Any, doc: str) -> list[str]:
    """The parameters that a list should say something about and does not."""
    names = parameters_of(value)
    return [name for name in names if name not in section(doc, "Args")] if len(names) >= FROM_FOUR_ON else []


def not_taken(value: Any, doc: str) -> set[str]:
    """The names in the list of arguments that are no parameters."""
    code = getattr(value, "__code__", None)
    if code is not None and code.co_flags & inspect.CO_VARKEYWORDS:
        return set()  # the names that it may be given stand nowhere but in the list
    hidden = inspect.getargs(code).varargs if code is not None else None  # a signature may leave it out
    return {*section(doc, "Args")} - {*parameters_of(value), hidden}


def raised_by(value: Any) -> set[str]:
    """The errors of limelight that the code of a function, or of the constructor of a class, raises by itself."""
    makers = ("__init__", "__post_init__", "__enter__")
    functions = [vars(value)[name] for name in makers if name in vars(value)] if isinstance(value, type) else [value]
    found = set()
    for function in map(inspect.unwrap, functions):
        if not inspect.isfunction(function) or function.__code__.co_filename.startswith("<"):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
        found |= {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    return {name for name in found if hasattr(limelight.errors, name)}


PUBLIC = public_callables()


def test_the_walk_finds_the_public_names() -> None:
    assert len(PUBLIC) > 300
    assert {"limelight.function", "limelight.nn.Dense", "limelight.nn.GRU.call", "limelight.optim.Adam"} <= set(PUBLIC)
    assert "limelight.GradientTape.jacobian" in PUBLIC
    assert "cache_size" in parameters_of(limelight.function), "what overloads take is taken"


def test_what_has_many_parameters_says_what_each_is() -> None:
    gaps = {name: undocumented(value, inspect.getdoc(value) or "") for name, value in PUBLIC.items()}
    assert {name: missing for name, missing in gaps.items() if missing} == {}


def test_lists_of_arguments_name_parameters() -> None:
    strangers = {name: not_taken(value, inspect.getdoc(value) or "") for name, value in PUBLIC.items()}
    assert {name: extra for name, extra in strangers.items() if extra} == {}, "renamed, or gone"


@pytest.mark.slow  # reads all sources
def test_errors_that_a_function_raises_are_told() -> None:
    docs = {name: inspect.getdoc(value) or "" for name, value in PUBLIC.items()}
    untold = {name: {e for e in raised_by(value) if e not in docs[name]} for name, value in PUBLIC.items()}
    assert {name: errors for name, errors in untold.items() if errors} == {}
    told = {error for doc in docs.values() for error in section(doc, "Raises")}
    for error in told:
        known = getattr(limelight.errors, error, None) or getattr(builtins, error, None)
        assert isinstance(known, type), f"there is no {error}"
        assert issubclass(known, Exception)
    assert len(told) > 10, "the walk has missed the sections"


BEHIND = """Does it.

Args:
    x: a tensor.
    y: another,
        axis: which is no entry.
    keepdims:

Returns:
    axis: nothing of the kind.
"""


def test_a_docstring_that_falls_behind_is_noticed() -> None:
    def f(x: Any, y: Any, axis: int, keepdims: bool) -> None: ...

    assert undocumented(f, BEHIND) == ["axis", "keepdims"]
    assert section(BEHIND, "Args") == {"x": "a tensor.", "y": "another,"}
    dense = limelight.nn.Dense
    assert undocumented(dense, (dense.__doc__ or "").replace("    use_bias:", "    bias:")) == ["use_bias"]
    assert not_taken(dense, (dense.__doc__ or "").replace("    use_bias:", "    bias:")) == {"bias"}
    assert raised_by(limelight.while_loop) == {"ControlFlowError"}
