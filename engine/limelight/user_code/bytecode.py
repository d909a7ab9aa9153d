"""What code mentions: the names it looks up outside itself, what it calls, and what it writes to.

Read from bytecode, which is there when the source is not, by a walk over the instructions with a stack of what is
known of the operands. Branches are walked one after the other, so the answer is what the code may do.

>>> def f(x):
...     return x * config.rate + len(config.names["first"])
>>> [str(use.chain) for use in uses_of(f.__code__).uses if use.how == "read"]
['x', 'config.rate', 'len', "config.names['first']"]
"""

from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import Any, Final, NamedTuple

_ESCAPES: Final = frozenset(["py_func", "deferred"])
_LONGEST: Final = 20_000
"""Instructions; longer code is not looked at beyond these."""


_SIZES: Final = frozenset(["shape", "size", "nbytes"])


@functools.lru_cache(maxsize=1024)
def reads_sizes(code: CodeType) -> bool:
    """Whether code reads `.shape` or `.size` of anything, which may decide something while tracing."""
    read = any(i.opname in ("LOAD_ATTR", "LOAD_METHOD") and i.argval in _SIZES for i in dis.get_instructions(code))
    return read or any(reads_sizes(inner) for inner in code.co_consts if isinstance(inner, CodeType))


class Chain(NamedTuple):
    """A name and the way on from it: `steps` are attribute names (".rate") and constant keys (["first"])."""

    root: str  # "global", "free" (a closure's), "local", "import" (within the code), or "bound" by a partial function
    name: str
    steps: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name + "".join([f".{step}" if kind == "." else f"[{step!r}]" for kind, step in self.steps])


_GETATTR: Final = Chain("global", "getattr")
_SETATTR: Final = Chain("global", "setattr")


class Use(NamedTuple):
    """One mention, on a line of the code.

    `how` is "read", "call", "write" (of the chain itself, so of an attribute or item of what its beginning names), or
    "target" for a thing that was looked up only to be written to, or "escaped" for a function that is handed to
    `py_func` or `deferred`, which run it each time.
    """

    how: str
    chain: Chain
    line: int


class Uses(NamedTuple):
    """All uses in order, and the code of functions, lambdas and comprehensions inside that are run by the trace."""

    uses: tuple[Use, ...]
    inner: tuple[CodeType, ...]


class _Constant(NamedTuple):
    value: Any


class _Made(NamedTuple):
    """A function that the code itself makes."""

    code: CodeType


def uses_of(code: CodeType) -> Uses:
    """What `code` mentions; not what the functions inside it do."""
    uses, inner = _found(code)
    return Uses(uses, tuple([code.co_consts[i] for i in inner]))


@functools.lru_cache(maxsize=4096)
def _found(code: CodeType) -> tuple[tuple[Use, ...], tuple[int, ...]]:
    """The uses, and which constants are code that is run: equal code from another file has constants of its own."""
    walk = _Walk(code)
    for instruction in list(dis.get_instructions(code))[:_LONGEST]:
        walk.step(instruction)
    codes = [(i, x) for i, x in enumerate(code.co_consts) if isinstance(x, CodeType)]
    return tuple(walk.uses), tuple([i for i, x in codes if not any(x is y for y in walk.escaped)])


class _Walk:
    """The operands while the instructions are walked: chains, constants, or None for whatever else."""

    def __init__(self, code: CodeType) -> None:
        self.uses: list[Use] = []
        self.escaped: list[CodeType] = []
        self._stack: list[tuple[Any, int]] = []  # an operand, and the place of its use in `uses` (-1: none)
        self._line = code.co_firstlineno
        self._parameters = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        self._aliases: dict[str, Any] = {}  # what local names stand for; None where that is something else
        self._free = frozenset(code.co_freevars)
        self._own = {"__annotations__"}  # names of a class's body, once they are assigned

    def step(self, instruction: dis.Instruction) -> None:
        line = instruction.positions.lineno if instruction.positions else None
        self._line = line or self._line
        known = _HANDLERS.get(instruction.opname)
        if known is None:
            self._other(instruction)
        else:
            known(self, instruction)

    # The stack

    def _push(self, what: Any = None, use: int = -1) -> None:
        self._stack.append((what, use))

    def _pop(self) -> tuple[Any, int]:
        return self._stack.pop() if self._stack else (None, -1)

    def _note(self, how: str, chain: Chain) -> int:
        self.uses.append(Use(how, chain, self._line))
        return len(self.uses) - 1

    def _other(self, instruction: dis.Instruction) -> None:
        """An instruction that makes nothing known of its operands: only the height of the stack matters."""
        name = instruction.opname
        if name in _SILENT:
            return
        change = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        for _ in range(-change):
            self._pop()
        for _ in range(change):
            self._push()
        if change <= 0 and not name.startswith(_CONSUMING) and self._stack:
            self._stack[-1] = (None, -1)

    # Names

    def _load(self, chain: Chain) -> None:
        self._push(chain, self._note("read", chain))

    def load_global(self, instruction: dis.Instruction) -> None:
        if instruction.arg is not None and instruction.opname == "LOAD_GLOBAL" and instruction.arg & 1:
            self._push()  # a NULL for the call that follows
        if instruction.opname == "LOAD_NAME" and instruction.argval in self._own:
            self._push()
            return
        self._load(Chain("global", str(instruction.argval)))

    def store_name(self, instruction: dis.Instruction) -> None:
        self._pop()
        self._own.add(str(instruction.argval))

    def load_deref(self, instruction: dis.Instruction) -> None:
        self._load_local(str(instruction.argval))

    def _load_local(self, name: str) -> None:
        if name in self._aliases:
            found = self._aliases[name]
            self._load(found) if isinstance(found, Chain) else self._push(found)
        elif name in self._free:
            self._load(Chain("free", name))
        elif name in self._parameters:
            self._load(Chain("local", name))
        else:
            self._push()

    def load_fast(self, instruction: dis.Instruction) -> None:
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        for name in names:
            self._load_local(str(name))

    def store_fast(self, instruction: dis.Instruction) -> None:
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        for name in names:
            self._bind(str(name))

    def _bind(self, name: str) -> None:
        value, _ = self._pop()
        self._aliases[name] = value if isinstance(value, (Chain, _Made)) else None

    def store_and_load(self, instruction: dis.Instruction) -> None:
        stored, loaded = instruction.argval
        self._bind(str(stored))
        self._load_local(str(loaded))

    def store_deref(self, instruction: dis.Instruction) -> None:
        name = str(instruction.argval)
        if name in self._free:
            self._pop()
            self._note("write", Chain("free", name))
        else:
            self.store_fast(instruction)

    def store_global(self, instruction: dis.Instruction) -> None:
        self._pop()
        self._note("write", Chain("global", str(instruction.argval)))

    def delete_global(self, instruction: dis.Instruction) -> None:
        self._note("write", Chain("global", str(instruction.argval)))

    # Attributes and items

    def _extended(self, operand: tuple[Any, int], step: tuple[str, Any]) -> None:
        found, use = operand
        if not isinstance(found, Chain):
            self._push()
            return
        longer = found._replace(steps=(*found.steps, step))
        if use >= 0 and self.uses[use].chain == found:
            self.uses[use] = Use("read", longer, self._line)
            self._push(longer, use)
        else:
            self._load(longer)

    def load_attr(self, instruction: dis.Instruction) -> None:
        self._extended(self._pop(), (".", str(instruction.argval)))
        if _makes_method(instruction):
            self._push()

    def subscript(self, instruction: dis.Instruction) -> None:
        if instruction.opname == "BINARY_OP" and instruction.argrepr != "[]":
            self._other(instruction)
            return
        key, _ = self._pop()
        container = self._pop()
        if isinstance(key, _Constant) and isinstance(key.value, (str, int)):
            self._extended(container, ("[]", key.value))
        else:
            self._push()

    def store_attr(self, instruction: dis.Instruction) -> None:
        found = self._target()
        if not instruction.opname.startswith("DELETE"):
            self._pop()
        if found is not None:
            self._note("write", found._replace(steps=(*found.steps, (".", str(instruction.argval)))))

    def _target(self) -> Chain | None:
        """What is written to: it was looked up, but not read."""
        found, use = self._pop()
        if not isinstance(found, Chain):
            return None
        if use >= 0 and self.uses[use].chain == found:
            self.uses[use] = self.uses[use]._replace(how="target")
        return found

    def store_item(self, instruction: dis.Instruction) -> None:
        key, _ = self._pop()
        if instruction.opname == "STORE_SLICE":
            key, _ = None, self._pop()
        found = self._target()
        if not instruction.opname.startswith("DELETE"):
            self._pop()
        if found is not None:
            step = ("[]", key.value) if isinstance(key, _Constant) else ("[]", ...)
            self._note("write", found._replace(steps=(*found.steps, step)))

    # Calls and the rest

    def import_name(self, instruction: dis.Instruction) -> None:
        given, _ = self._pop()
        self._pop()
        name = str(instruction.argval)
        named = isinstance(given, _Constant) and given.value  # from a.b import c; else `import a.b` binds a
        self._load(Chain("import", name if named else name.partition(".")[0]))

    def import_from(self, instruction: dis.Instruction) -> None:
        module = self._stack[-1] if self._stack else (None, -1)
        self._extended((module[0], -1), (".", str(instruction.argval)))

    def call(self, instruction: dis.Instruction) -> None:
        count = (instruction.arg or 0) + (instruction.opname == "CALL_KW")
        operands = [self._pop() for _ in range(count + 2)]
        for found, _ in reversed(operands[count:]):
            if isinstance(found, Chain):
                if found == _GETATTR and count >= 2 and isinstance(operands[count - 2][0], _Constant):
                    self._extended(operands[count - 1], (".", str(operands[count - 2][0].value)))
                    return
                if found == _SETATTR and count >= 3 and isinstance(operands[count - 2][0], _Constant):
                    self._set_attribute(operands[count - 1], str(operands[count - 2][0].value))
                self._note("call", found)
                if (found.steps[-1][1] if found.steps else found.name) in _ESCAPES:
                    self._escape(operands[:count])
                break
        self._push()

    def _set_attribute(self, owner: tuple[Any, int], name: str) -> None:
        if isinstance(owner[0], Chain):
            self._note("write", owner[0]._replace(steps=(*owner[0].steps, (".", name))))

    def _escape(self, operands: list[tuple[Any, int]]) -> None:
        for found, use in operands:
            if isinstance(found, _Made):
                self.escaped.append(found.code)
            elif isinstance(found, Chain) and use >= 0 and self.uses[use].chain == found:
                self.uses[use] = self.uses[use]._replace(how="escaped")

    def make_function(self, instruction: dis.Instruction) -> None:
        code, _ = self._pop()
        for _ in range((instruction.arg or 0).bit_count()):  # its defaults, annotations and closure
            self._pop()
        made = isinstance(code, _Constant) and isinstance(code.value, CodeType)
        self._push(_Made(code.value) if made else None)

    def set_function_attribute(self, instruction: dis.Instruction) -> None:
        made = self._pop()
        self._pop()
        self._push(*made)

    def load_const(self, instruction: dis.Instruction) -> None:
        self._push(_Constant(instruction.argval))

    def copy(self, instruction: dis.Instruction) -> None:
        depth = instruction.arg or 1
        self._push(*(self._stack[-depth] if depth <= len(self._stack) else (None, -1)))

    def swap(self, instruction: dis.Instruction) -> None:
        depth = instruction.arg or 1
        if depth <= len(self._stack):
            self._stack[-1], self._stack[-depth] = self._stack[-depth], self._stack[-1]

    def pop(self, instruction: dis.Instruction) -> None:
        self._pop()

    def null(self, instruction: dis.Instruction) -> None:
        self._push()


def _makes_method(instruction: dis.Instruction) -> bool:
    """Whether an attribute is looked up to be called at once, which leaves two operands."""
    if instruction.opname == "LOAD_METHOD":
        return True
    return dis.stack_effect(instruction.opcode, instruction.arg) == 1


_SILENT: Final = frozenset(
    ["RESUME", "PRECALL", "KW_NAMES", "CACHE", "NOP", "COPY_FREE_VARS", "MAKE_CELL", "EXTENDED_ARG", "NOT_TAKEN"]
)
_CONSUMING: Final = ("POP_", "STORE_", "RETURN_", "DELETE_", "JUMP", "RAISE", "RERAISE", "LIST_APPEND", "CHECK_EXC")
_HANDLERS: Final[dict[str, Any]] = {
    "LOAD_GLOBAL": _Walk.load_global,
    "LOAD_NAME": _Walk.load_global,
    "LOAD_DEREF": _Walk.load_deref,
    "LOAD_CLASSDEREF": _Walk.load_deref,
    "LOAD_FAST": _Walk.load_fast,
    "LOAD_FAST_CHECK": _Walk.load_fast,
    "LOAD_FAST_BORROW": _Walk.load_fast,
    "LOAD_FAST_LOAD_FAST": _Walk.load_fast,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": _Walk.load_fast,
    "STORE_NAME": _Walk.store_name,
    "STORE_FAST": _Walk.store_fast,
    "STORE_FAST_STORE_FAST": _Walk.store_fast,
    "STORE_FAST_LOAD_FAST": _Walk.store_and_load,
    "STORE_DEREF": _Walk.store_deref,
    "STORE_GLOBAL": _Walk.store_global,
    "DELETE_GLOBAL": _Walk.delete_global,
    "LOAD_ATTR": _Walk.load_attr,
    "LOAD_METHOD": _Walk.load_attr,
    "BINARY_SUBSCR": _Walk.subscript,
    "BINARY_OP": _Walk.subscript,
    "STORE_ATTR": _Walk.store_attr,
    "DELETE_ATTR": _Walk.store_attr,
    "STORE_SUBSCR": _Walk.store_item,
    "DELETE_SUBSCR": _Walk.store_item,
    "STORE_SLICE": _Walk.store_item,
    "IMPORT_NAME": _Walk.import_name,
    "IMPORT_FROM": _Walk.import_from,
    "CALL": _Walk.call,
    "CALL_KW": _Walk.call,
    "MAKE_FUNCTION": _Walk.make_function,
    "SET_FUNCTION_ATTRIBUTE": _Walk.set_function_attribute,
    "LOAD_CONST": _Walk.load_const,
    "LOAD_SMALL_INT": _Walk.load_const,
    "COPY": _Walk.copy,
    "SWAP": _Walk.swap,
    "POP_TOP": _Walk.pop,
    "PUSH_NULL": _Walk.null,
}
