"""Where the variables of a module are: paths that say what each edge is, and the tree that they are made into again.

A path is that of a checkpoint (`checkpoint.object_paths`): a key "a/b" is another edge than "b" below "a", and the key
"1" another one than the position 1. What is a list or a dictionary is said beside the paths.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from limelight.checkpoint.object_paths import Edge, join, split
from limelight.core.records import fields_of, is_record
from limelight.core.variable import Variable
from limelight.errors import ExportError
from limelight.export.held_containers import HeldDict, HeldList
from limelight.module import Module

LIST: Final = "list"
DICT: Final = "dict"
_HOLDERS: Final = (Variable, Module, list, tuple, dict)
_MOST_BRANCHES: Final = 1_000_000  # and some for each variable: a hostile file has long paths for few variables


class VariablePaths(NamedTuple):
    """The variables and modules below a module by path, and the paths of lists (so of tuples) and dictionaries."""

    variables: dict[str, Variable]
    containers: dict[str, str]
    modules: dict[str, Module]


def paths_of(module: Module, wanted: Iterable[str] = ()) -> VariablePaths:
    """The variables as `Module.named_variables` has them, each once.

    Args:
        module: the root, which is not among the modules.
        wanted: paths of modules that are of interest without variables, too: what is above them counts.

    Raises ExportError where two keys would be alike: those that are neither strings nor integers travel as text.
    """
    found = VariablePaths({}, {}, {})
    seen: set[int] = set()
    pending: list[tuple[str, Any]] = [("", module)]
    while pending:
        path, at = pending.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, Variable):
            if path in found.variables:
                _refuse_alike(path)
            found.variables[path] = at
            continue
        if isinstance(at, (list, tuple, dict)):
            found.containers[path] = DICT if isinstance(at, dict) else LIST
        elif path and isinstance(at, Module):
            found.modules[path] = at
        pending += [(join(path, edge), child) for edge, child in reversed(_children(at))]
    above = {"/".join(edges) for path in (*found.variables, *wanted) for edges in _above(path)}
    for path in above & found.variables.keys():
        _refuse_alike(path)
    return found._replace(containers={path: kind for path, kind in found.containers.items() if path in above})


def _children(at: Any) -> list[tuple[Edge, Any]]:
    if isinstance(at, (list, tuple)):
        items: Iterable[tuple[Any, Any]] = enumerate(at)
    else:
        fields = None if isinstance(at, (dict, Module)) else fields_of(at)
        items = (at if isinstance(at, dict) else vars(at) if fields is None else fields).items()
    return [
        (key if type(key) in (int, str) else str(key), x) for key, x in items if isinstance(x, _HOLDERS) or is_record(x)
    ]


def module_path(function: str) -> str:
    """The path of the module below the saved one that a function belongs to; empty for one of its own.

    >>> module_path("encoder/encode"), module_path("call")
    ('encoder', '')
    """
    return function.rpartition("/")[0]


def dotted(function: str) -> str:
    """What messages call a function.

    >>> dotted("blocks/0/encode")
    'blocks[0].encode'
    """
    shown = ""
    for edge in split(function):
        shown += f".{edge}" if type(edge) is str and edge.isidentifier() else f"[{edge!r}]"
    return shown.removeprefix(".")


def _above(path: str) -> Iterator[list[str]]:
    """What is above a path: its segments without the last, the last two, and so on."""
    segments = path.split("/")
    return (segments[:i] for i in range(1, len(segments)))


def _refuse_alike(path: str) -> NoReturn:
    raise ExportError(
        f"ll.save: two variables would be at {path!r} of the file, as keys that are neither strings nor integers are "
        "text there: use strings as keys"
    )


def as_tree(
    variables: Mapping[str, Variable],
    containers: Mapping[str, str],
    module: Callable[[], Any],
    modules: Collection[str] = (),
) -> Any:
    """The inverse of `paths_of`.

    Args:
        variables: by path.
        containers: by path, `LIST` or `DICT`; the others are modules.
        module: makes one.
        modules: paths of modules that are there without variables, too.

    Returns:
        A module. Lists of which not all items have variables are dictionaries by position.

    Raises:
        ValueError, TypeError: the paths are not those of one tree.
    """
    nested: dict[Edge, Any] = {}
    room = _MOST_BRANCHES + 4 * (len(variables) + len(modules))
    for path, variable in variables.items():
        room -= path.count("/")
        if room < 0:
            raise ValueError("its paths are far longer than those of any model")
        *above, last = split(path)
        place = nested
        for edge in above:
            place = place.setdefault(edge, {})
        if last in place:
            raise ValueError(f"two variables are at {path}")
        place[last] = variable
    for path in modules:
        room -= path.count("/")
        if room < 0:
            raise ValueError("its paths are far longer than those of any model")
        place = nested
        for edge in split(path):
            place = place.setdefault(edge, {})
            if not isinstance(place, dict):
                raise ValueError(f"a variable is above the module {path}")
    return _grown(nested, "", containers, module)


def _grown(at: Any, path: str, containers: Mapping[str, str], module: Callable[[], Any]) -> Any:
    if not isinstance(at, dict):
        return at
    children = {edge: _grown(child, join(path, edge), containers, module) for edge, child in at.items()}
    kind = containers.get(path)
    if kind == LIST and list(children) == list(range(len(children))):
        return HeldList(children.values())
    if kind in (LIST, DICT):
        return HeldDict(children)
    made = module()
    for edge, child in children.items():
        if type(edge) is not str:
            raise ValueError(f"{path} has an attribute {edge}")
        vars(made)[edge] = child  # by whatever name: a class may have a property of that name, which a file may not set
    return made
