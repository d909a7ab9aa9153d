"""What does a staged function do only while it is traced?"""

from __future__ import annotations

import inspect
import io
import random
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.explain.story import Place, Story, fixes_in, merged
from limelight.explain.subject import staged_functions
from limelight.explain.tracing.host_draws import staged_draw
from limelight.explain.tracing.staged_calls import added, is_deletion, staged, staged_write
from limelight.staging.argument_changes import remedy
from limelight.staging.function import Function
from limelight.staging.key_parts import ObjectPart
from limelight.user_code.names_read import MISSING, Read, reads
from limelight.user_code.source_line import Source

_CONTAINERS: Final = (list, dict, set, bytearray, deque)
_MUTATORS: Final = frozenset([
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add",
    "discard", "appendleft", "extendleft", "popleft", "rotate", "difference_update", "intersection_update",
])  # fmt: skip
GENERATORS: Final = (np.random.Generator, np.random.RandomState, random.Random)
_PRINTING: Final = (
    *("builtins.print", "pprint.", "logging.", "warnings.warn", "sys.stdout.", "sys.stderr."),
    *("IPython.core.display_functions.display", "matplotlib."),
)
_ASKING: Final = ("builtins.breakpoint", "pdb.", "ipdb.", "IPython.embed")
_RANDOM: Final = ("numpy.random.", "random.", "secrets.", "uuid.uuid", "os.urandom")
_SECRETS: Final = ("secrets.", "uuid.", "os.urandom")
_CLOCKS: Final = ("time.", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today")
_FILES: Final = (
    "builtins.open", "builtins.input", "io.open", "_io.open", "os.", "shutil.", "json.dump", "json.load", "pickle.dump",
    "pickle.load", "numpy.save", "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "subprocess.",
    "urllib.", "gzip.open", "gzip.GzipFile", "bz2.open", "lzma.open", "zipfile.ZipFile", "tarfile.open", "shelve.",
    "sqlite3.connect", "tempfile.", "glob.", "socket.", "requests.", "http.client.", "joblib.dump", "joblib.load",
    "pandas.read_",
)  # fmt: skip
_HARMLESS: Final = (
    "os.path.", "os.fspath", "os.cpu_count", "os.getpid", "os.getenv", "os.environ", "random.Random",
    "logging.getLogger", "time.sleep", "time.struct_time", "time.strftime", "json.dumps", "json.loads", "pickle.dumps",
    "pickle.loads",
)  # fmt: skip
_PATH_METHODS: Final = frozenset([
    "open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "touch", "unlink", "rename",
])  # fmt: skip
_FILE_METHODS: Final = frozenset([
    *("read", "readinto", "readline", "readlines", "write", "writelines", "seek", "truncate", "flush"),
])  # fmt: skip
_ONLY_OF_FILES: Final = frozenset([
    *("read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "touch", "unlink"),
    *("tofile", "to_csv", "to_parquet", "to_pickle", "savefig"),
])  # fmt: skip
"""Methods that nothing else has, whatever they are called of."""
_IN_PLACE: Final = frozenset(["fill", "sort", "partition", "put", "resize", "itemset"])
"""Methods that change an array of NumPy's."""
_QUEUES: Final = frozenset(["put", "get", "put_nowait", "get_nowait"])


class SideEffect(NamedTuple):
    """Something that happens when a trace is made, and not when one is found.

    `kind`: "print", "mutation", "attribute write", "global write", "closure write", "host randomness", "time", "file",
    "iterator", "debugger", or "lost change" for what it does to a list or dictionary that is an argument; `what` is the
    code that does it, `line` where; `instead` what to write so that it is staged.

    >>> import limelight as ll
    >>> effects = ll.explain.side_effects(ll.function(lambda x: print(x)))
    >>> effects.records[0].kind, effects.records[0].instead
    ('print', '`ll.py_func(print, [x], None)`, at each call')
    """

    kind: str
    what: str
    line: Source
    instead: str

    def __str__(self) -> str:
        return str(self.to_story())

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card."""
        return Story(
            "lost change" if self.kind == "lost change" else "side effect",
            _SAID[self.kind].format(what=self.what),
            (self.kind,),
            places=Place.of("line", self.line),
            remedy=self.instead,
            fixes=fixes_in(self.instead),
        )


_SAID: Final[Mapping[str, str]] = {
    "print": "`{what}` prints once for each trace, and not on calls that find it",
    "mutation": "`{what}` changes an outer container once for each trace",
    "attribute write": "`{what} = ...` sets an attribute once for each trace",
    "global write": "`{what} = ...` sets a global once for each trace",
    "closure write": "`{what} = ...` sets an outer variable once for each trace",
    "host randomness": "`{what}` draws once for each trace: all calls that find it get the same numbers",
    "iterator": "`{what}` takes an item once for each trace: all calls that find it get the same one",
    "time": "`{what}` is read once for each trace: all calls that find it get the same time",
    "file": "`{what}` does input or output once for each trace",
    "lost change": "`{what}` is changed in the copy of the argument that a trace has, and the caller's stays as it is",
    "debugger": "`{what}` stops once for each trace, where tensors have no values",
}


@dataclass(frozen=True)
class SideEffects:
    """What a staged function does only while it is traced: `records` are `SideEffect` records in the order of lines.

    `unknown` are the functions, it or what it calls, whose source cannot be read, by their first lines.

    >>> import limelight as ll
    >>> found = ll.explain.side_effects(ll.function(lambda x: x + x))
    >>> found.records, found.calls
    ((), 0)
    """

    function: str
    traces: int
    calls: int
    records: tuple[SideEffect, ...]
    unknown: tuple[Source, ...] = ()

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each effect, in the order of lines."""
        return merged([record.to_story() for record in self.records])

    def __str__(self) -> str:
        untold = not_known("does", self.unknown)
        if not self.records:
            nothing = f"`{self.function}` does nothing besides what its graphs do, as far as its code tells."
            if not self.traces:
                nothing += " What it does to containers that it is given is known after its first call."
            return "\n".join(untold or [nothing])
        ran = f"its Python code ran {_times(self.traces)}, for {_times(self.calls, 'call')}"
        lines = [f"  {record}" for record in self.records]
        return "\n".join([f"What `{self.function}` does only while it is traced ({ran}):", *lines, *untold])

    __repr__ = __str__


def not_known(what: str, functions: Iterable[Source]) -> list[str]:
    """For each function that cannot be read, a sentence that says so; `what` it "does" or "reads"."""
    return [f"What `{one.function}` ({one}) {what} is not known: its source cannot be read." for one in functions]


def side_effects(F: Function) -> SideEffects:
    """What `F` does in Python besides computing: it happens once for each trace, and not when a call finds a trace.

    Prints, changes of outer lists, dictionaries and sets, and of those that are arguments, writes to attributes,
    globals and outer variables, random numbers of NumPy and `random`, clocks, files, debuggers: each with its line and
    what to write instead. Found by reading the source of `F` and of the user's functions that it calls, so branches
    that were not taken count, and what library code does is not seen; where a source cannot be read, it says that this
    is not known. Changes of arguments are those seen while tracing. What goes through `ll.py_func` is staged and not
    listed. Raises ArgumentError for anything but a staged function.

    >>> import limelight as ll
    >>> seen = []
    >>> @ll.function
    ... def double(x):
    ...     seen.append(x)
    ...     return x + x
    >>> y = double(ll.constant(1.0))
    >>> [(effect.kind, effect.what) for effect in ll.explain.side_effects(double).records]
    [('mutation', 'seen.append(...)')]
    """
    functions = staged_functions("side_effects", F)
    effects: dict[tuple[str, str, Source], SideEffect] = {}
    unknown: dict[Source, None] = {}
    for one in functions:
        for record in [*_of_function(one), *_lost_changes(one)]:
            if isinstance(record, Source):
                unknown[record] = None
            else:
                effects.setdefault((record.kind, record.what, record.line), record)
    ordered = sorted(effects.values(), key=lambda effect: (effect.line.file, effect.line.line))
    calls = sum(1 + entry.hits for one in functions for entry in one.trace_cache)
    return SideEffects(F.name, F.trace_count, calls, tuple(ordered), tuple(unknown))


def _of_function(function: Function) -> list[SideEffect | Source]:
    """The effects, and the first lines of functions that cannot be read."""
    objects: dict[str, Any] = {}
    plain: set[str] = set()
    for entry in function.trace_cache:
        for path, part in zip(entry.paths, entry.key.parts, strict=True):
            if isinstance(part, ObjectPart) and path.isidentifier():
                objects[path] = part.identity.target()
            if not part.is_input and path.isidentifier():
                plain.add(path)
    own = getattr(function.python_function, "__code__", None)
    began = {v.name: v.text for entry in reversed(function.trace_cache) for v in entry.baked.values() if v.is_number}
    found = list(reads(function.python_function, objects))
    effects = [_effect(read, plain if read.code is own else (), began) for read in found]
    made_anew = _of_iterators_made_anew(found)
    return [
        effect
        for effect in effects
        if effect is not None
        and not (isinstance(effect, SideEffect) and effect.kind == "iterator" and effect.line in made_anew)
    ]


def _of_iterators_made_anew(found: list[Read]) -> set[Source]:
    """The lines that take items of iterators of the graph, or of such as the code makes of what can be gone through."""
    last = {read.code for read in found if read.use.how == "read" and issubclass(type(read.value), Iterator)}
    in_graph = [read.line for read in found if hasattr(type(read.value), "__limelight_rounds__")]
    generators = {(read.code, read.use.chain) for read in found if _is_generator_function(read.value)}
    own = [x for x in found if x.use.own is True or (x.use.own and (x.code, x.use.own) in generators)]
    return {*in_graph, *[read.line for read in own if read.code not in last]}


def _is_generator_function(value: Any) -> bool:
    return type(value) is FunctionType and bool(value.__code__.co_flags & inspect.CO_GENERATOR)


def _lost_changes(function: Function) -> list[SideEffect]:
    """What its traces were seen to change of their arguments."""
    unknown = Source("<unknown>", 1, "")
    changes = [change for entry in function.trace_cache for change in entry.lost_changes]
    return [SideEffect("lost change", x.path, x.line or unknown, remedy(x)) for x in changes]


def _effect(read: Read, plain: Collection[str], began: Mapping[str, str]) -> SideEffect | Source | None:
    if read.use.how == "unknown":
        return read.line
    if read.use.how == "write":
        return _written(read, plain, began)
    return _called(read, plain) if read.use.how == "call" else None


# Writing


def _written(read: Read, plain: Collection[str], began: Mapping[str, str]) -> SideEffect | None:
    chain, name = read.use.chain, str(read.use.chain).replace("[Ellipsis]", "[...]")
    if not chain.steps:
        if _is_state(read.value):
            return None  # state that the first call creates
        kind = "global write" if chain.root == "global" else "closure write"
        return SideEffect(kind, name, read.line, f"return it{_variable(name, read, began)}")
    if read.base is MISSING or read.base is None:
        return None  # an argument, which a trace has for itself
    if chain.steps[-1][0] == ".":
        if _is_state(read.value):
            return None
        instead = f"return it and set it outside{_variable(name, read, began)}"
        return SideEffect("attribute write", name, read.line, instead)
    what = f"del {name}" if is_deletion(read) else f"{name} = ..."
    instead = f"return the value and store it outside; or `{staged_write(read, plain)}` at each call"
    return SideEffect("mutation", what, read.line, instead)


def _is_state(value: Any) -> bool:
    """Whether it is a variable or a module of them: state, which a first call may create."""
    return isinstance(value, Resource) or hasattr(type(value), "named_variables")


def _variable(name: str, read: Read, began: Mapping[str, str]) -> str:
    """A variable for what can be one: numbers, arrays and tensors. `began`: what numbers were before the traces."""
    value = read.value
    if value is not MISSING and value is not None and not isinstance(value, (int, float, complex, np.ndarray, Tensor)):
        return ""
    initial = began.get(name, repr(value)) if type(value) in (bool, int, float, complex) else "..."
    write = added(read) or "assign(...)"
    return f"; or keep it in a variable, `{name} = ll.Variable({initial})` outside, and write `{name}.{write}`"


# Calling


def _called(read: Read, plain: Collection[str]) -> SideEffect | None:
    name = f"{read.use.chain}(...)"
    if not read.use.chain.steps and read.value is MISSING:
        return None
    last = str(read.use.chain.steps[-1][1]) if read.use.chain.steps else read.use.chain.name
    if isinstance(read.base, _CONTAINERS) and last in _MUTATORS:
        instead = f"return the value and store it outside; or `{staged(read, plain)}` at each call"
        return SideEffect("mutation", name, read.line, instead)
    if _is_in_place(read.base, last):
        return SideEffect("mutation", name, read.line, f"`{staged(read, plain)}` at each call")
    owner = attribute_or_none(read.value, "__self__")
    if isinstance(read.base, GENERATORS) or isinstance(owner, GENERATORS):
        return SideEffect("host randomness", name, read.line, draw_instead(read, last))
    if _is_of_file(read.base, last):
        return SideEffect("file", name, read.line, _FILE)
    return _named(read, _dotted(read), name, last, plain)


def _named(read: Read, dotted: str, name: str, last: str, plain: Collection[str]) -> SideEffect | None:
    if dotted.startswith(_HARMLESS):
        return None
    if dotted.startswith(_PRINTING) or type(read.base).__name__ == "Logger":
        return SideEffect("print", name, read.line, f"`{staged(read, plain)}`, at each call")
    if dotted.startswith(_ASKING):
        instead = "`with ll.config.run_functions_eagerly():` around the call, where it works on values"
        return SideEffect("debugger", name, read.line, instead)
    if dotted.startswith(_RANDOM):
        return SideEffect("host randomness", name, read.line, draw_instead(read, last))
    if dotted.startswith(_CLOCKS):
        return SideEffect("time", name, read.line, f"pass the time as an argument; or `{_clock(read)}` at each call")
    if dotted == "builtins.next":
        return SideEffect("iterator", name, read.line, "take the item outside, and pass it as an argument")
    return SideEffect("file", name, read.line, _FILE) if dotted.startswith(_FILES) else None


_FILE: Final = "do it outside, or in a function given to `ll.py_func`, which runs at each call"


def _is_of_file(base: Any, last: str) -> bool:
    """Whether a method of this name, called of `base`, reads or writes a file."""
    if base is MISSING:
        return last in _ONLY_OF_FILES
    if isinstance(base, io.IOBase):
        return last in _FILE_METHODS
    return last in _PATH_METHODS and type(base).__module__.startswith("pathlib")


def _is_in_place(base: Any, last: str) -> bool:
    if isinstance(base, np.ndarray):
        return last in _IN_PLACE
    return last in _QUEUES and type(base).__module__ in ("queue", "multiprocessing.queues")


def _clock(read: Read) -> str:
    """A clock as seconds, a tensor, at each call."""
    chain = read.use.chain
    if not _dotted(read).startswith("datetime."):
        return f"ll.py_func({chain}, [], ll.float64)"
    module = str(chain._replace(steps=chain.steps[:-1]))
    stamp = f"{chain}().timestamp()" if chain.steps[-1][1] != "today" else f"float({module}.today().toordinal())"
    return f"ll.py_func(lambda: {stamp}, [], ll.float64)"


def draw_instead(read: Read, last: str) -> str:
    """What to write for a draw of the host's, a use whose last name is `last`, so that it is staged."""
    owners = (read.base, attribute_or_none(read.value, "__self__"))
    of_python = any(isinstance(one, random.Random) or one is random for one in owners)
    if last == "seed":
        return f"`{staged_draw(read, last, of_python)}`, outside the function"
    call = "" if _dotted(read).startswith(_SECRETS) else staged_draw(read, last, of_python)
    return f"`{call}`, which draws anew at each call" if call else "draw it outside, and pass it as an argument"


def attribute_or_none(value: Any, name: str) -> Any:
    """An attribute of what is called; None where it has none, or its class, the user's, raises instead of saying so."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001  # of a `__getattr__` of the user's
        return None


def _dotted(read: Read) -> str:
    """The full name of what is called: "numpy.random.normal"."""
    chain = read.use.chain
    if read.module:
        base: Any = read.base
        if not isinstance(base, type):
            return ".".join([read.module, *[str(key) for kind, key in chain.steps if kind == "."]])
    if isinstance(read.base, type):
        return f"{read.base.__module__}.{read.base.__qualname__}.{chain.steps[-1][1]}"
    if isinstance(read.base, ModuleType):
        return f"{read.base.__name__}.{chain.steps[-1][1]}"
    value = read.value
    module = attribute_or_none(value, "__module__")
    name = attribute_or_none(value, "__qualname__")
    return f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else str(chain)


def _times(count: int, what: str = "time") -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
