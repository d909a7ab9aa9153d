"""What to write instead: for names of other libraries, misspelt names, and errors of Python's.

What other libraries' names are called here says `equivalents`. Notes are added to errors that Python itself raises
for sizes that are unknown while tracing; those for calls that do not fit are of `call_notes`.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, Final

from limelight.errors import mark_user_error
from limelight.user_code import equivalents, source_line, unknown_sizes
from limelight.user_code.definitions import parsed_expression

_APART: Final = ("tree", "data", "lookup", "debug")
"""Namespaces whose names mean something else outside of them: a misspelt one is looked for there alone."""
_PARTS: Final = ("", "nn", "linalg", "random", "optim", "fft", "nn.initializers", "optim.schedules", "config")
"""The namespaces in which a name is looked for, the likeliest first."""


@functools.cache
def public_names() -> dict[str, list[str]]:
    """The public names of each namespace."""
    names = {}
    for part in (*_PARTS, *_APART):  # the facade imports this, and exists by the time somebody asks it for a name
        namespace = functools.reduce(getattr, part.split(".") if part else (), sys.modules["limelight"])
        names[part] = [name for name in dir(namespace) if name[0] != "_"]
    return names


@functools.lru_cache(256)  # libraries ask modules for the same names again and again, pytest those that it collects
def suggested(name: str, part: str = "") -> str:
    """What to write instead of `ll.name`, or `ll.part.name`, as the end of a message; "" where nothing does its job."""
    known = equivalents.functions()
    entry = known.get(f"{part}.{name}", known.get(name))
    if entry is not None and entry.ours:
        return f"; write ll.{entry.ours}" + (f" ({entry.remark})" if entry.remark else "")
    if entry is not None:
        return f": {entry.remark or 'there is none here'}"
    instead = _same_elsewhere(name, part) or _misspelt(name, part)
    return f"; write ll.{instead}" if instead else ""


def _same_elsewhere(name: str, part: str) -> str:
    """The name in another namespace of ours, or with other capitals and underscores."""
    namespaces = public_names()
    for alike in (str, _bare):
        for home in (part, *_PARTS):
            for known in namespaces.get(home, ()):
                if alike(known) == alike(name):
                    return _path(home, known)
    return ""


def _misspelt(name: str, part: str) -> str:
    """The nearest name of ours, where so near a one is no other word: one letter away, or two of a long name."""
    namespaces, most = public_names(), 2 if len(name) >= _LONG else 1
    homes = dict.fromkeys((part, *_PARTS))
    near = [
        (distance, sorted(known) != sorted(name), i, known)  # two letters the wrong way round come before one too many
        for i, home in enumerate(homes)
        for known in namespaces.get(home, ())
        if _may_be_near(name, known, most) and (distance := edit_distance(name, known)) <= most
    ]
    if not near:
        return ""
    *_, i, known = min(near)
    return _path(list(homes)[i], known)


def _may_be_near(a: str, b: str, most: int) -> bool:
    """Whether the names are long enough to be told apart, and lengths and letters do not rule it out.

    Short words that differ by one letter are two words: `fit` is no `fft`, `feed` no `seed`.
    """
    lengths = min(len(a), len(b)) > _SHORTEST and abs(len(a) - len(b)) <= most
    replaced = len(a) == len(b) <= _SHORT and sorted(a) != sorted(b)
    return lengths and not replaced and len(set(a) ^ set(b)) <= 2 * most


def form_of(path: str) -> str:
    """How `ll.path` is called, with what must be given: "ll.swapaxes(x, axis1, axis2)"."""
    function: Any = functools.reduce(getattr, path.split("."), sys.modules["limelight"])
    given = [
        _OPERANDS.get(name, name)
        for name, p in inspect.signature(function).parameters.items()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    return f"ll.{path}({', '.join(given)})"


_OPERANDS: Final = {"x1": "x", "x2": "y", "xs": "[x, y]", "operands": "*operands", "arrays": "*arrays"}
_CALL_OF_X: Final = re.compile(r"(?<=^write ll\.)([\w.]+)\(x\)$")


def with_form(hint: str) -> str:
    """The hint "write ll.take(x)" of the table with all that must be given: "write ll.take(x, indices)"."""
    call = _CALL_OF_X.search(hint)
    return hint if call is None else f"write {form_of(call[1])}"


_SHORTEST: Final = 2
_SHORT: Final = 4
_LONG: Final = 9


def _bare(name: str) -> str:
    return name.replace("_", "").lower()


def _path(part: str, name: str) -> str:
    return f"{part}.{name}" if part else name


def edit_distance(a: str, b: str) -> int:
    """How many letters must be added, left out, changed, or exchanged with the next (optimal string alignment)."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def missing_name_hint(part: str) -> Callable[[str], Any]:
    """The `__getattr__` of the public module `part`, as "nn"."""

    def missing(name: str) -> Any:
        hint = "" if name.startswith("__") else suggested(name, part)
        raise _marked(AttributeError(f"module 'limelight.{part}' has no attribute {name!r}{hint}", name=name))

    return missing


def refuse_import(name: str, frame: FrameType, hint: str) -> None:
    """Raises ImportError with the hint where `frame` runs `from limelight import name`: of our error Python keeps none.

    Where a module of that name is being imported, Python finds it by itself.
    """
    import opcode  # noqa: PLC0415  # only a mistake needs it: importing limelight is to be quick

    at = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else -1
    if at == opcode.opmap["IMPORT_FROM"] and f"limelight.{name}" not in sys.modules:
        error = ImportError(f"cannot import name {name!r} from 'limelight'{hint}", name="limelight")
        mark_user_error(error)
        raise error


def without_internals(cls: type, names: Iterable[str], internal: Iterable[str]) -> list[str]:
    """What completion offers of `names`, the attributes of an object of `cls`: the public ones, and no hints."""
    hidden = {name for kind in cls.__mro__ for name, value in vars(kind).items() if isinstance(value, Elsewhere)}
    hidden |= set(internal)
    return [name for name in names if name not in hidden and (name[0] != "_" or name[:2] == "__")]


def listing(names: Iterable[str]) -> Callable[[], list[str]]:
    """The `__dir__` of a public module: what completion offers, without what the module itself imports."""
    public = sorted(names)
    return lambda: list(public)


def _marked(error: AttributeError) -> AttributeError:
    """As the user's mistake, who need not see where in the library it was found."""
    mark_user_error(error)
    return error


def _at_part(method: str) -> str | None:
    """What to write for `v[i].assign(x)`, where the user's line has that; None anywhere else."""
    if not method.startswith("assign"):
        return None
    text = source_line.user_segment()
    node = None if text is None else parsed_expression(text)
    part = node.func if isinstance(node, ast.Call) else node
    if not (isinstance(part, ast.Attribute) and part.attr == method and isinstance(part.value, ast.Subscript)):
        return None
    variable, index = ast.unparse(part.value.value), ast.unparse(part.value)
    place = f"{variable}.at{index[len(variable) :]}"
    return f"{index} is a part of its value, a tensor, and tensors are immutable; write {place}.{method}(value)"


class Elsewhere:
    """Stands where users of other libraries look for a method of a tensor (or of `kind`), and says what to write.

    No `__getattr__`: with that, Python looks up every attribute of a tensor the slow way.
    """

    def __init__(self, name: str, hint: str, kind: str = "a tensor") -> None:
        self.name = name
        self.hint = hint
        self.kind = kind

    def __get__(self, tensor: Any, owner: type) -> Any:
        if tensor is None:
            return self
        words = f"{self.kind} has no attribute {self.name!r}: {_at_part(self.name) or with_form(self.hint)}"
        raise _marked(AttributeError(words, name=self.name, obj=tensor))


class NotToSet(Elsewhere):
    """One that elsewhere changes a tensor: set here it would do nothing, in silence. Other names may be attached."""

    def __set__(self, handle: Any, value: Any) -> None:
        kind = "variable" if hasattr(handle, "assign") else "tensor"
        words = f"a {kind} has no attribute {self.name!r} to set: {self.hint}"
        raise _marked(AttributeError(words, name=self.name, obj=handle))


def missing_of_module(self: Any, name: str, hints: Mapping[str, str] | None = None) -> Any:
    """The same for a module, whose properties may fail with an AttributeError of their own: it is raised again."""
    own = getattr(type(self), name, None)
    if own is not None and hasattr(own, "__get__"):
        return own.__get__(self, type(self))
    hint = (equivalents.of_modules() if hints is None else hints).get(name)
    if not hint and not name.startswith("_"):
        hint = _near_names(self, name)
    words = f"{type(self).__name__!r} object has no attribute {name!r}" + (f": {hint}" if hint else "")
    raise _marked(AttributeError(words, name=name, obj=self))


def missing_of_generator(name: str) -> Any:
    """The same for a generator, whose methods are the functions of `ll.random`."""
    hint = equivalents.of_generators().get(name, "")
    if not hint and not name.startswith("_"):
        elsewhere = suggested(name, "random")
        hint = elsewhere[2:].replace("ll.random.", "generator.", 1) if elsewhere.startswith(("; ", ": ")) else ""
    words = f"a generator has no attribute {name!r}" + (f": {hint}" if hint else "")
    raise _marked(AttributeError(words, name=name))


FREEZING: Final = equivalents.of_modules()["trainable"]
_MOST_LISTED: Final = 8


def _near_names(module: Any, name: str) -> str:
    """The attributes of a module with a similar name; without any, those that it was given."""
    for kind in type(module).__mro__:
        near = [] if "__init__" in vars(kind) else difflib.get_close_matches("__init__", vars(kind), 1, 0.66)
        if near and inspect.isfunction(vars(kind)[near[0]]):
            return f"{kind.__name__}.{near[0]}, which might make it, is not called: the constructor is called __init__"
    own = [key for key in vars(module) if not key.startswith("_")]
    of_class = [key for kind in type(module).__mro__ for key in vars(kind) if not key.startswith("_")]
    close = [*difflib.get_close_matches(name, own, 2, 0.7), *difflib.get_close_matches(name, of_class, 2, 0.7)]
    if close:
        return f"write {' or '.join(list(dict.fromkeys(close))[:2])}"
    listed = ", ".join(own[:_MOST_LISTED]) + (", ..." if len(own) > _MOST_LISTED else "")
    return f"it has {listed}" if own else ""


# Notes on errors of Python's

_OF_NUMBERS: Final = re.compile(r"unsupported operand|not supported between|as an integer|real number|must be")


def note_sizes(error: BaseException) -> None:
    """For a trace in which sizes are unknown: says what to write if it was one of them that Python could not use."""
    said = str(error) if type(error) is TypeError else ""
    if "NoneType" in said and _OF_NUMBERS.search(said):
        size = unknown_sizes.behind(error.__traceback__)
        x = size.tensor
        add_note(
            error,
            f"If that None is a size of {x}.shape, unknown while tracing: write {size}, or {x}.sizes()[{size.axis}]; "
            f"for {x}.size write ll.prod(ll.shape_of({x}))",
        )


def add_note(error: BaseException, note: str) -> None:
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


AUTOGRAPH_DOES_IT: Final = ", or let ll.function(autograph=True) rewrite the `if`, `while` and `for` of the source"
_BRANCHES: Final = (
    "For a choice by value write ll.cond(pred, true_fn, false_fn) or ll.where(pred, x, y), for a loop "
    f"ll.while_loop(cond, body, loop_vars){AUTOGRAPH_DOES_IT}"
)
_ASSERTION: Final = (
    f"Write ll.debug.check(condition, message), which looks at the values of each call{AUTOGRAPH_DOES_IT}"
)
_ASSIGNMENT: Final = "Of a tensor there is no part to assign: write array = ll.constant(array).at[i].set(x)"
_CONVERSIONS: Final = (".numpy()", ".item()", "float()", "complex()")
_PYTHON: Final = "; for arbitrary Python on real values ll.py_func(fn, inputs, output_specs)"
_ARGUMENT: Final = "; or take the value as a plain Python argument, which is known while tracing"


def without_value(asked: str) -> str:
    """What to write instead of asking a symbolic tensor for its value: control flow for what steers Python."""
    line = source_line.user_line()
    if asked.startswith("bool()") and line is not None and line.text.lstrip().startswith("assert "):
        return _ASSERTION
    if asked.startswith(("bool()", "int()", "use as")):
        return _BRANCHES + _PYTHON + _ARGUMENT
    if asked == "assignment into a NumPy array":
        return f"{_ASSIGNMENT}{_PYTHON}{_ARGUMENT}"
    if asked.startswith("format("):
        form = asked.partition(", ")[2].strip("')")
        printing = f"To print it write ll.debug.print('{{:{form}}}', x), which prints the value of each call"
        return f"{printing}; else compute with ll: limelight's ops take the tensor as it is{_ARGUMENT}"
    around = _conversion_around(asked)
    way = f"Leave out `{asked}`{around}" if asked in _CONVERSIONS else "Compute with ll"
    return f"{way}: limelight's ops take the tensor as it is{_PYTHON}{_ARGUMENT}"


def _conversion_around(asked: str) -> str:
    """A call of `int` or `float` around a conversion, which would ask in its place: `int(x.item())`."""
    line = source_line.user_line()
    inner = rf"\b(int|float)\((?=[^)]*(?:\([^)]*\)[^)]*)*{re.escape(asked)})"
    written = re.search(inner, line.text) if line is not None else None
    if written is None:
        return ""
    return ", and write ll.astype(x, ll.int32) for `int()`" if written[1] == "int" else ", and `float()` around it"
