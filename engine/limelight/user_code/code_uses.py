"""What code mentions: the names it looks up outside itself, what it calls, and what it writes to.

Read from the syntax tree, by a visitor that knows of each expression which name and which attributes and keys lead to
it. Branches are visited one after the other, so the answer is what the code may do. Which names are local, of a
closure, or global is told by the code object. Code without a source, or whose file is no longer what it was compiled
from, is not known.

>>> def f(x):
...     return x * config.rate + len(config.names["first"])
>>> [str(use.chain) for use in uses_of(f.__code__).uses if use.how == "read"]
['x', 'config.rate', 'len', "config.names['first']"]
"""

from __future__ import annotations

import ast
import dis
import functools
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from types import CodeType
from typing import Any, Final, NamedTuple

from limelight.user_code.definitions import current_stamp, definition_of, first_line, known_stamp
from limelight.user_code.instruction_uses import mentions

_RUN_EACH_TIME: Final = frozenset(["py_func", "deferred"])
_MOST_KNOWN: Final = 4096
_SIZES: Final = frozenset(["shape", "size", "nbytes"])
_LOAD_GLOBAL: Final = dis.opmap["LOAD_GLOBAL"]
_EXTENDED_ARG: Final = dis.opmap["EXTENDED_ARG"]
_GENERIC: Final = "<generic parameters of "
_LEAVES: Final = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@functools.lru_cache(maxsize=1024)
def reads_sizes(code: CodeType) -> bool:
    """Whether code reads `.shape` or `.size` of anything, which may decide something while tracing.

    Told by its instructions, since code that `autograph` has rewritten is not what any file says.
    """
    read = any(i.opname in ("LOAD_ATTR", "LOAD_METHOD") and i.argval in _SIZES for i in dis.get_instructions(code))
    return read or any(reads_sizes(inner) for inner in code.co_consts if isinstance(inner, CodeType))


class Chain(NamedTuple):
    """A name and the way on from it: `steps` are attribute names (".rate") and constant keys (["first"])."""

    root: str  # "global", "free" (a closure's), "local", "import" (within the code), or "bound" by a partial function
    name: str
    steps: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name + "".join([f".{step}" if kind == "." else f"[{step!r}]" for kind, step in self.steps])


_NAMELESS: Final = Chain("local", "(...)")
"""What no name leads to, as in `(folder / "a.txt").write_text(...)`."""
_GETATTR: Final = Chain("global", "getattr")
_SETATTR: Final = Chain("global", "setattr")
_ITERATORS: Final = frozenset([
    Chain("global", name) for name in ("iter", "enumerate", "zip", "map", "filter", "reversed")
])  # fmt: skip
_OWN_ITERATOR: Final = object()
"""Stands for an iterator that the code makes."""


class Use(NamedTuple):
    """One mention, on a line of the code.

    `how` is "read", "call", "write" (of the chain itself, so of an attribute or item of what its beginning names),
    "target" for a thing that was looked up only to be written to, "escaped" for a function that is handed to `py_func`
    or `deferred`, which run it each time, or "unknown" for code that cannot be read. `dropped`: it is read to be called
    for what that does, as nobody takes the result. `own`: it is called of an iterator that the code itself has made, or
    of the result of calling this.
    """

    how: str
    chain: Chain
    line: int
    dropped: bool = False
    own: bool | Chain = False


class Uses(NamedTuple):
    """All uses in order, and those of the functions, lambdas and comprehensions inside that are run by the trace."""

    uses: tuple[Use, ...]
    inner: tuple[tuple[CodeType, Uses], ...] = ()


class _Constant(NamedTuple):
    value: Any


class _ResultOf(NamedTuple):
    called: Chain


class _Operand(NamedTuple):
    """What is known of an expression, and the place of its use in the list of uses (-1: none)."""

    value: Any = None  # a Chain, _Constant, code of a function made here, list of a tuple's operands, _OWN_ITERATOR
    use: int = -1


_UNKNOWN: Final = _Operand()
_known: dict[tuple[CodeType, str, object], Uses] = {}
"""By code, file and the file's stamp: equal code from another file may have no source, and an edited file has another
one. Emptied when it has grown too large."""


class _ChangedError(Exception):
    """The source is not what the code was compiled from."""


def uses_of(
    code: CodeType, body: Sequence[ast.stmt] | None = None, stamps: MutableMapping[str, object] | None = None
) -> Uses:
    """What `code` mentions.

    `body` are its statements, where they are at hand and are no function's of a file. `stamps` are those of files that
    have been looked at: whoever asks for many codes at once looks at each file once.
    """
    file = code.co_filename
    stamps = {} if stamps is None else stamps
    if file not in stamps:
        stamps[file] = current_stamp(file)
    known = _known.get((code, file, stamps[file]))
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _read(code, body)
        stamps[file] = known_stamp(file)  # there is none until its lines are read
        _known[code, file, stamps[file]] = known
    return known


def _read(code: CodeType, body: Sequence[ast.stmt] | None) -> Uses:
    nodes: Iterable[ast.AST] | None = body
    if body is None:
        tree = definition_of(code)
        nodes = None if tree is None else [tree.body] if isinstance(tree, ast.Lambda) else tree.body
    try:
        if nodes is not None:
            nodes = list(nodes)
            uses = _uses(code, nodes)
            if body is None:
                _check_globals(code, nodes, uses)
            return uses
    except (_ChangedError, RecursionError):
        pass
    return _by_instructions(code)


def _by_instructions(code: CodeType) -> Uses:
    """What can be told without a source: that it is not known, and the names that the code looks up."""
    uses = [Use("unknown", Chain("local", code.co_name), code.co_firstlineno)]
    for one in mentions(code):
        chain = Chain(one.root, one.name, tuple([(".", name) for name in one.attributes]))
        uses += [Use(how, chain, one.line) for how in ("read", "call") if how == "read" or one.is_called]
    return Uses(tuple(uses), tuple([(inner, _by_instructions(inner)) for inner in _codes_in(code)]))


def _check_globals(code: CodeType, nodes: Iterable[ast.AST], uses: Uses) -> None:
    """Raises where the code looks up a global that the source does not name: it was compiled from another text.

    That the source names nothing else is found while it is visited. Names that no source can have are passed over:
    pytest adds such to a test that asserts.
    """
    missing = [name for name in _globals_of(code) - _globals_in(uses) if name.isidentifier()]
    if not missing:
        return
    # The uses lack annotations, and what runs each time.
    written = {node.id for outer in nodes for node in ast.walk(outer) if isinstance(node, ast.Name)}
    private = tuple([name for name in written if name.startswith("__")])  # after the name of a class, in its code
    if any(name not in written and not (name.startswith("_") and name.endswith(private)) for name in missing):
        raise _ChangedError


def _globals_in(uses: Uses) -> set[str]:
    found = {use.chain.name for use in uses.uses if use.chain.root == "global"}
    return found.union(*[_globals_in(inner) for _, inner in uses.inner])


def _globals_of(code: CodeType) -> set[str]:
    """The globals that code looks up, itself or in code within; `co_names` would have those of dead code as well.

    Read from the bytes: `dis` would take as long as all the rest of a first reading.
    """
    found, more = set(), 0
    instructions = code.co_code
    for op, low in zip(instructions[::2], instructions[1::2], strict=True):
        argument = more | low
        if op == _LOAD_GLOBAL:
            found.add(code.co_names[argument >> 1])  # the lowest bit says whether it is called
        more = argument << 8 if op == _EXTENDED_ARG else 0
    return found.union(*[_globals_of(inner) for inner in _codes_in(code)])


def _codes_in(code: CodeType) -> list[CodeType]:
    return [x for x in code.co_consts if isinstance(x, CodeType)]


def _uses(code: CodeType, nodes: Iterable[ast.AST], is_class: bool = False) -> Uses:
    visitor = _Visitor(code, is_class)
    visitor.block(nodes)
    run = [(x, part) for x, part in visitor.inner if not any(x is one for one in visitor.run_each_time)]
    return Uses(tuple(visitor.uses), tuple([(inner, _uses(inner, *part)) for inner, part in run]))


def _definable(code: CodeType) -> Iterator[CodeType]:
    """The code of what is defined within; from Python 3.12 on that of generic definitions lies one deeper."""
    for inner in _codes_in(code):
        yield inner
        if inner.co_name.startswith(_GENERIC):
            yield from _codes_in(inner)


class _Visitor(ast.NodeVisitor):
    """Visits what one code object was compiled from; each visit of an expression returns its _Operand."""

    def __init__(self, code: CodeType, is_class: bool) -> None:
        self.uses: list[Use] = []
        self.inner: list[tuple[CodeType, tuple[Iterable[ast.AST], bool]]] = []
        self.run_each_time: list[CodeType] = []
        self._is_class = is_class
        self._codes = list(_definable(code))
        self._parameters = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        self._local = frozenset((*code.co_varnames, *code.co_cellvars))
        self._free = frozenset(code.co_freevars)
        self._names = frozenset(code.co_names)  # globals, attributes and modules
        self._every_name = self._local | self._free | self._names
        self._aliases: dict[str, Any] = {}  # what local names stand for; None where that is something else
        self._outer: set[str] = set()  # what a class's body declares `global` or `nonlocal`
        self._dropped: ast.expr | None = None  # the expression that is a statement

    def visit(self, node: ast.AST) -> _Operand:
        operand: _Operand | None = getattr(self, "visit_" + type(node).__name__, self.generic_visit)(node)
        return operand or _UNKNOWN

    def generic_visit(self, node: ast.AST) -> None:
        for name in node._fields:
            part = getattr(node, name, None)
            if isinstance(part, list):
                self.block([x for x in part if isinstance(x, ast.AST)])
            elif isinstance(part, ast.AST) and part._fields:  # operators and contexts have none
                self.visit(part)

    def block(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)
            if isinstance(node, _LEAVES):  # what follows never runs, and Python has not compiled it
                return

    def _note(self, how: str, chain: Chain, line: int) -> int:
        self.uses.append(Use(how, chain, line))
        return len(self.uses) - 1

    def _load(self, chain: Chain, line: int) -> _Operand:
        return _Operand(chain, self._note("read", chain, line))

    # Names

    def _compiled(self, name: str, names: frozenset[str]) -> str:
        """The name as it stands in the code, where that of a class goes before private ones."""
        if name in names:
            return name
        private = [x for x in names if x.endswith(name) and name.startswith("__") and x.startswith("_")]
        if not private:
            raise _ChangedError
        return private[0]

    def visit_Name(self, node: ast.Name) -> _Operand:
        if isinstance(node.ctx, ast.Load):
            return self._read_name(node)
        is_own = node.id in self._local | self._free or self._is_class
        if isinstance(node.ctx, ast.Store) or not is_own:
            self._bind_name(node.id, node.lineno)
        return _UNKNOWN

    def _read_name(self, node: ast.Name) -> _Operand:
        if node.id == "__debug__":  # which Python compiles as a constant
            return _Operand(_Constant(__debug__))
        name = self._compiled(node.id, self._every_name)
        if name in self._aliases:
            meaning = self._aliases[name]
            return self._load(meaning, node.lineno) if isinstance(meaning, Chain) else _Operand(meaning)
        if name in self._free:
            return self._load(Chain("free", name), node.lineno)
        if name in self._parameters:
            return self._load(Chain("local", name), node.lineno)
        return _UNKNOWN if name in self._local else self._load(Chain("global", name), node.lineno)

    def _bind(self, target: ast.expr, operand: _Operand = _UNKNOWN) -> None:
        """Assigns an operand to a name, an attribute, an item or several of them."""
        if isinstance(target, ast.Name):
            self._bind_name(target.id, target.lineno, operand.value)
        elif isinstance(target, ast.Attribute):
            self._write(self.visit(target.value), self._step(target), target.end_lineno or target.lineno)
        elif isinstance(target, ast.Subscript):
            owner = self.visit(target.value)
            self._write(owner, _key(self.visit(target.slice)), target.lineno)
        elif isinstance(target, ast.Tuple) and isinstance(operand.value, list):
            for one, part in zip(target.elts, operand.value, strict=False):
                self._bind(one, part)
        else:
            self.generic_visit(target)

    def _bind_name(self, name: str, line: int, value: Any = None) -> None:
        name = self._compiled(name, self._every_name)
        is_own = name not in self._outer if self._is_class else name in self._local and name not in self._free
        if is_own:
            known = isinstance(value, (Chain, CodeType, _ResultOf)) or value is _OWN_ITERATOR
            self._aliases[name] = value if known and not self._is_class else None
        else:
            self._note("write", Chain("free" if name in self._free else "global", name), line)

    def _write(self, owner: _Operand, step: tuple[str, Any], line: int) -> None:
        """A write to an attribute or item of `owner`, which was looked up, but not read."""
        chain, use = owner
        if isinstance(chain, Chain):
            if use >= 0 and self.uses[use].chain == chain:
                self.uses[use] = self.uses[use]._replace(how="target")
            self._note("write", chain._replace(steps=(*chain.steps, step)), line)

    def _step(self, node: ast.Attribute) -> tuple[str, str]:
        return (".", self._compiled(node.attr, self._names))

    # Attributes and items

    def _extended(self, owner: _Operand, step: tuple[str, Any], line: int) -> _Operand:
        """An attribute or item that is read: its use takes the place of that of its owner."""
        chain, use = owner
        if not isinstance(chain, Chain):
            return _UNKNOWN
        longer = chain._replace(steps=(*chain.steps, step))
        if use < 0 or self.uses[use].chain != chain:
            return self._load(longer, line)
        self.uses[use] = Use("read", longer, line)
        return _Operand(longer, use)

    def visit_Attribute(self, node: ast.Attribute) -> _Operand:
        if not isinstance(node.ctx, ast.Load):
            self._bind(node)
            return _UNKNOWN
        return self._extended(self.visit(node.value), self._step(node), node.end_lineno or node.lineno)

    def visit_Subscript(self, node: ast.Subscript) -> _Operand:
        if not isinstance(node.ctx, ast.Load):
            self._bind(node)
            return _UNKNOWN
        container = self.visit(node.value)
        return self._item(container, self.visit(node.slice), node.lineno)

    def _item(self, container: _Operand, key: _Operand, line: int) -> _Operand:
        constant = isinstance(key.value, _Constant) and isinstance(key.value.value, (str, int))
        return self._extended(container, _key(key), line) if constant else _UNKNOWN

    def visit_Constant(self, node: ast.Constant) -> _Operand:
        return _Operand(_Constant(node.value))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> _Operand:
        value = self.visit(node.operand).value
        negative = isinstance(node.op, ast.USub) and isinstance(value, _Constant) and isinstance(value.value, int)
        return _Operand(_Constant(-value.value)) if negative else _UNKNOWN

    def visit_Tuple(self, node: ast.Tuple) -> _Operand:
        return _Operand([self.visit(x) for x in node.elts])

    def visit_BoolOp(self, node: ast.BoolOp) -> _Operand:
        return [self.visit(x) for x in node.values][-1]

    def visit_IfExp(self, node: ast.IfExp) -> _Operand:
        self.visit(node.test)
        self.visit(node.body)
        return self.visit(node.orelse)

    # Statements

    def visit_Expr(self, node: ast.Expr) -> None:
        self._dropped = node.value.value if isinstance(node.value, ast.Await) else node.value
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        test = self.visit(node.test).value
        if not isinstance(test, _Constant) or test.value:  # else Python has not compiled it
            self.block(node.body)
        if not isinstance(test, _Constant) or not test.value:
            self.block(node.orelse)

    def visit_Assert(self, node: ast.Assert) -> None:
        if __debug__:  # else it was not compiled
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.visit(node.value)
        for target in node.targets:
            self._bind(target, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:  # annotations are left alone: whether they are evaluated depends on the Python
            self._bind(node.target, self.visit(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        target, line = node.target, node.target.end_lineno or node.target.lineno
        if isinstance(target, ast.Name):
            self._read_name(target)
            self.visit(node.value)
            self._bind_name(target.id, line)
            return
        owner = self.visit(target.value)
        if isinstance(target, ast.Attribute):
            step = self._step(target)
            self._extended(owner, step, line)
        else:
            key = self.visit(target.slice)
            step = _key(key)
            self._item(owner, key, target.lineno)
        self.visit(node.value)
        self._write(owner, step, line)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> _Operand:
        value = self.visit(node.value)
        self._bind(node.target, value)
        return value

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._bind(node.target)
        self.block(node.body)
        self.block(node.orelse)

    visit_AsyncFor = visit_For  # noqa: N815  # names that ast.NodeVisitor calls

    def _binding(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        self.generic_visit(node)
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None:
            self._bind_name(name, node.lineno)

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = visit_MatchMapping = _binding  # noqa: N815  # names that ast.NodeVisitor calls

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            first, *rest = alias.name.split(".")
            operand = self._load(Chain("import", first), node.lineno)
            for part in rest if alias.asname else ():
                operand = self._extended(_Operand(operand.value), (".", part), node.lineno)
            self._bind_name(alias.asname or first, node.lineno, operand.value)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = self._load(Chain("import", node.module or ""), node.lineno).value
        for alias in node.names:
            operand = self._extended(_Operand(module), (".", alias.name), node.lineno)
            self._bind_name(alias.asname or alias.name, node.lineno, operand.value)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self._outer |= set(node.names)

    visit_Nonlocal = visit_Global  # noqa: N815  # names that ast.NodeVisitor calls

    # Code within

    def _code_of(self, name: str, node: ast.AST) -> CodeType | None:
        """The code that was compiled of a function, class or comprehension; some comprehensions have none."""
        line = first_line(node)
        code = next((x for x in self._codes if x.co_name == name and x.co_firstlineno == line), None)
        if code is not None:
            self._codes.remove(code)
        return code

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._define(node, self._made(node.name, node, node.body))

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  # names that ast.NodeVisitor calls

    def visit_Lambda(self, node: ast.Lambda) -> _Operand:
        self._defaults(node)
        return self._made("<lambda>", node, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        generic = self._code_of(f"{_GENERIC}{node.name}>", node)
        if generic is None:
            self.block([*node.bases, *node.keywords])
        else:  # which evaluates the bases
            self.inner.append((generic, ([*node.bases, *node.keywords], False)))
        self._made(node.name, node, node.body)
        self._define(node)

    def visit_TypeAlias(self, node: Any) -> None:  # evaluated when somebody asks for its value
        self._bind(node.name)

    def _made(self, name: str, node: ast.AST, body: Sequence[ast.AST]) -> _Operand:
        code = self._code_of(name, node)
        if code is None:
            if not isinstance(node, ast.Lambda):
                self._note("unknown", Chain("local", name), first_line(node))
            return _UNKNOWN
        self.inner.append((code, (body, isinstance(node, ast.ClassDef))))
        return _Operand(code)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, made: _Operand = _UNKNOWN) -> None:
        """The calls of decorators, and the name."""
        decorators = [self.visit(x) for x in node.decorator_list]
        if not isinstance(node, ast.ClassDef):
            self._defaults(node)
        for line, (value, _) in zip([x.lineno for x in node.decorator_list], decorators, strict=True):
            if isinstance(value, Chain):
                self._note("call", value, line)
        self._bind_name(node.name, node.lineno, None if decorators else made.value)

    def _defaults(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        code = self._code_of(_COMPREHENSIONS[type(node)], node)  # it comes before those of one in `iter`
        self.visit(node.generators[0].iter)
        first, *others = node.generators
        head = ast.comprehension(first.target, ast.Constant(None), first.ifs, first.is_async)  # `iter` is read by now
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        body = [head, *others, *results]
        if code is not None:
            self.inner.append((code, (body, False)))
        else:
            before = dict(self._aliases)
            self.block(body)
            self._aliases = before

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.visit(node.iter)
        self._bind(node.target)
        self.block(node.ifs)

    visit_ListComp = visit_SetComp = visit_DictComp = _comprehension  # noqa: N815  # names that ast.NodeVisitor calls

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> _Operand:
        self._comprehension(node)
        return _Operand(_OWN_ITERATOR)

    # Calls

    def visit_Call(self, node: ast.Call) -> _Operand:
        called, is_dropped = self.visit(node.func), node is self._dropped
        if is_dropped and isinstance(called.value, Chain) and called.use >= 0:
            self.uses[called.use] = self.uses[called.use]._replace(dropped=True)
        operands = [self.visit(x) for x in node.args] + [self.visit(k.value) for k in node.keywords]
        unpacked = any(isinstance(x, ast.Starred) for x in node.args) or any(k.arg is None for k in node.keywords)
        chain = called.value
        line = (node.func.end_lineno if isinstance(node.func, ast.Attribute) else None) or node.lineno
        if chain is None and isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Constant):
            self._note("call", _NAMELESS._replace(steps=((".", node.func.attr),)), line)
        if not isinstance(chain, Chain) or unpacked:
            return _UNKNOWN
        if chain == _GETATTR and len(operands) >= 2 and isinstance(operands[1].value, _Constant):
            return self._extended(operands[0], (".", str(operands[1].value.value)), line)
        if chain == _SETATTR and len(operands) >= 3 and isinstance(operands[1].value, _Constant):
            self._write(_Operand(operands[0].value), (".", str(operands[1].value.value)), line)
        place = self._note("call", chain, line)
        if operands and (own := _own(operands[0].value)):
            self.uses[place] = self.uses[place]._replace(own=own)
        if (chain.steps[-1][1] if chain.steps else chain.name) in _RUN_EACH_TIME:
            self._escape(operands)
        return _Operand(_OWN_ITERATOR if chain in _ITERATORS else _ResultOf(chain))

    def _escape(self, operands: Iterable[_Operand]) -> None:
        for value, use in operands:
            if isinstance(value, CodeType):
                self.run_each_time.append(value)
            elif isinstance(value, Chain) and use >= 0 and self.uses[use].chain == value:
                self.uses[use] = self.uses[use]._replace(how="escaped")


_COMPREHENSIONS: Final = {
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}


def _own(value: Any) -> bool | Chain:
    """Whether an operand is an iterator that the code has made, or the call whose result it is."""
    return value.called if isinstance(value, _ResultOf) else value is _OWN_ITERATOR


def _key(operand: _Operand) -> tuple[str, Any]:
    return ("[]", operand.value.value if isinstance(operand.value, _Constant) else ...)
