"""The passes of `malt` over one function, and where ours differ; this and `source_positions` alone import it."""

from __future__ import annotations

import ast
import os
from typing import Any, Final

import malt
from malt.converters import (
    break_statements,
    call_trees,
    conditional_expressions,
    continue_statements,
    control_flow,
    functions,
    logical_expressions,
    return_statements,
    variables,
)
from malt.core import converter
from malt.pyct import anno, cfg, errors, naming, qual_names, templates, transformer
from malt.pyct.static_analysis import activity, annos, liveness, reaching_definitions, reaching_fndefs

from limelight.autograph.function_source import Definition, UnconvertibleError
from limelight.autograph.reserved_names import added, come_back
from limelight.autograph.source_positions import (
    FUNCTIONS,
    Position,
    begin,
    named_position,
    note_positions,
    place,
    place_guards,
    position,
)
from limelight.autograph.static_analysis import Inner, always_returns, inner_functions
from limelight.user_code import source_line

source_line.hide(os.path.dirname(malt.__file__))
call_trees.set_trace_warned = True  # a breakpoint works in code that keeps its lines: nothing to warn of

_PROGRAM: Final = converter.ProgramContext(converter.STANDARD_OPTIONS)


def rewrite(node: Definition, name: str, namespace: dict[str, Any], file: str, first: int | None = None) -> ast.stmt:
    """The function, lambda or cell `node` as a statement that defines `name`, its control flow turned into calls.

    Raises UnconvertibleError for what the library does not know.

    Args:
        node: the definition, prepared (`preprocessing`); it is changed.
        name: what the statement defines.
        namespace: the names that are known outside, with their values.
        file: of the source.
        first: the line on which the code of added functions begins, by default that of `node`.
    """
    note_positions(node)
    written = {named_position(part) for part in ast.walk(node) if isinstance(part, FUNCTIONS)}
    for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
        _blank(node.args, default)
    info = transformer.EntityInfo(name, "", file, (), namespace)
    context = transformer.Context(info, _Namer(namespace), _PROGRAM)
    try:
        rewritten = _passes(node, context)
    except (errors.PyCTError, NotImplementedError, ValueError, AssertionError, KeyError, AttributeError) as error:
        said = str(error).strip().splitlines()
        reason = f"its source could not be rewritten ({said[0] if said else type(error).__name__}); write "
        reason += "ll.cond and ll.while_loop"
        raise UnconvertibleError(reason, file, node.lineno) from error
    finally:
        _forget_notes_on_shared_nodes()
    if isinstance(rewritten, ast.Lambda):
        definition: Any = ast.Assign([ast.Name(name, ast.Store())], rewritten)
    else:
        definition, rewritten.name = rewritten, name
    come_back(definition)
    place(definition, position(node))
    begin(definition, first or node.lineno, written, first is not None)
    statement: ast.stmt = definition
    return statement


def _nodes_of_all_trees() -> list[ast.AST]:
    """The nodes that the parser hands out again and again: contexts and operators."""
    binary = [f"x {sign} x" for sign in ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "|", "&", "^", "@"]]
    compared = [f"x {sign} x" for sign in ("==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in")]
    text = "\n".join(["x = +x, -x, ~x, not x, x and x, x or x", *binary, *compared, "del x"])
    shared = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    return [part for part in ast.walk(ast.parse(text)) if isinstance(part, shared)]


_SHARED: Final = _nodes_of_all_trees()


def _forget_notes_on_shared_nodes() -> None:
    """Takes off what the library has noted on nodes that all trees of the process share.

    Else each of these would lead to trees converted before: copies of a cell's tree took seconds after 40 conversions,
    and whoever else walks a tree would find a field that is none of Python's.
    """
    for node in _SHARED:
        vars(node).clear()


class _Namer(naming.Namer):  # type: ignore[misc]  # the library publishes no types
    """Names that the user cannot have written."""

    def new_symbol(self, name_root: str, reserved_locals: Any) -> str:
        return added(super().new_symbol(name_root, reserved_locals))


def _blank(args: ast.arguments, default: ast.expr) -> None:
    """Defaults are known by value: evaluating them again might do something, or give another value."""
    none = ast.copy_location(ast.Constant(None), default)
    args.defaults = [none if x is default else x for x in args.defaults]
    args.kw_defaults = [none if x is default else x for x in args.kw_defaults]


def _passes(node: Any, context: Any) -> Any:
    """Those passes that find something to do: each analyses the whole function anew."""
    kinds = {type(part) for part in ast.walk(node)}
    tests = {position(part): ast.unparse(part.test) for part in ast.walk(node) if isinstance(part, ast.IfExp)}
    without_else = {position(part) for part in ast.walk(node) if isinstance(part, ast.If) and not part.orelse}
    node = reaching_definitions.resolve(_named(node, context), context, cfg.build(node))
    anno.dup(node, {anno.Static.DEFINITIONS: anno.Static.ORIG_DEFINITIONS})
    node = functions.transform(node, context)
    _tell_scopes(node)
    if ast.Break in kinds or _has_else(node):
        node = break_statements.transform(node, context)
    if kinds & {ast.Break, ast.Continue}:
        node = continue_statements.transform(node, context)
    if _returns_early(node):
        node = return_statements.transform(node, context)
    place_guards(node, kinds)
    if ast.Call in kinds:
        node = _with_targets(_CallTrees(context).visit(qual_names.resolve(node)))
    if kinds & {ast.If, ast.While, ast.For}:
        node = _with_blocks(node, context, without_else)
    if ast.IfExp in kinds:
        node = _ConditionalExpressions(context, tests).visit(node)
    node = _with_targets(_LogicalExpressions(context).visit(node))
    return variables.transform(node, context)


def _with_targets(node: Any) -> Any:
    """`node`, where `:=` assigns: the library's templates turn its names within a call into ones that are read."""
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr):
            part.target.ctx = ast.Store()
    return node


def _has_else(node: ast.AST) -> bool:
    """Whether a loop has an `else`, which the pass for `break` takes care of."""
    return any(isinstance(part, ast.For | ast.While) and part.orelse for part in ast.walk(node))


def _returns_early(node: ast.AST) -> bool:
    """Whether there is a `return` anywhere but at the end of a function."""
    functions_ = [part for part in ast.walk(node) if isinstance(part, ast.FunctionDef)]
    scopes = [part.body[-1] for part in functions_ if isinstance(part.body[-1], ast.With)]
    last = {id(scope.body[-1]) for scope in scopes}
    return any(isinstance(part, ast.Return) and id(part) not in last for part in ast.walk(node))


def _tell_scopes(node: ast.AST) -> None:
    """Tells the scope of each function, by its last argument, whether the function ends by `return` in any case."""
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef) and isinstance(part.body[-1], ast.With):
            scope: Any = part.body[-1]
            scope.body = scope.body or [ast.Pass()]  # where there was a docstring, and no more
            scope.items[0].context_expr.args[-1] = ast.Constant(always_returns(scope.body))


def _parameters(node: ast.FunctionDef) -> set[Any]:
    return {qual_names.QN(part.arg) for part in ast.walk(node.args) if isinstance(part, ast.arg)}


def _with_blocks(node: Any, context: Any, without_else: set[Position]) -> Any:
    graphs = cfg.build(node)
    node = reaching_definitions.resolve(_named(node, context), context, graphs)
    node = reaching_fndefs.resolve(node, context, graphs)
    node = liveness.resolve(node, context, graphs)
    return _ControlFlow(context, without_else).visit(node)


class _Activity(activity.ActivityAnalyzer):  # type: ignore[misc]  # the library publishes no types
    """Parameters belong to their function: the library binds them in the code around it, too, with the annotations."""

    def visit_arg(self, node: ast.arg) -> Any:
        return self.generic_visit(node) if self._track_annotations_only else super().visit_arg(node)


def _named(node: Any, context: Any) -> Any:
    return _Activity(context).visit(qual_names.resolve(node))


class _ControlFlow(control_flow.ControlFlowTransformer):  # type: ignore[misc]  # the library publishes no types
    """State is simple names alone: parts of objects are refused when a block is staged (`mutation_guards`).

    Globals (in a cell every name is one) are read by whoever likes, so that each of them leaves the block. So is what
    a function within this one rebinds by `nonlocal`. A name that such a function reads is shared with it, not copied.
    """

    def __init__(self, context: Any, without_else: set[Position]) -> None:
        super().__init__(context)
        self._inner: list[Inner] = []
        self._without_else = without_else

    def visit_FunctionDef(self, node: Any) -> Any:
        scope, parameters, inner = (
            anno.getanno(node, annos.NodeAnno.BODY_SCOPE),
            _parameters(node),
            inner_functions(node),
        )
        own = {x for x in inner.rebound if qual_names.QN(x) in scope.bound | scope.nonlocals | parameters}
        self._inner.append(inner._replace(rebound=own))
        node = super().visit_FunctionDef(node)
        self._inner.pop()
        rebound = sorted(x for x in own if qual_names.QN(x) not in scope.nonlocals | parameters)
        body = node.body[-1].body if isinstance(node.body[-1], ast.With) else node.body
        body[:0] = self._create_undefined_assigns([qual_names.QN(x) for x in rebound])
        return node

    def visit_Lambda(self, node: Any) -> Any:
        self._inner.append(Inner({}, set(), {}))  # it has no blocks
        node = super().visit_Lambda(node)
        self._inner.pop()
        return node

    def _get_block_vars(self, node: Any, modified: Any) -> Any:
        live_in = anno.getanno(node, anno.Static.LIVE_VARS_IN)
        live_out = anno.getanno(node, anno.Static.LIVE_VARS_OUT)
        defined_in = anno.getanno(node, anno.Static.DEFINED_VARS_IN)
        scope = self.state[control_flow._Function].scope
        inner = self._inner[-1]
        rebound = set(map(qual_names.QN, inner.rebound))
        read = inner.read_beside(node)
        outside = scope.globals | scope.nonlocals | rebound | {s for s in modified if str(s) in read}
        called = any(isinstance(part, ast.Call) for part in ast.walk(node))
        simple = {s for s in modified if not s.is_composite()} | (rebound if called else set())
        kept = {s for s in simple if s in live_in or s in live_out or s in outside}
        read = inner.read_in(node)
        shared = {s for s in simple - kept if str(s) in read}
        input_only = (kept & live_in) - live_out - outside
        elsewhere = scope.globals | scope.nonlocals | rebound
        undefined = tuple(s for s in simple if s not in defined_in and s not in elsewhere)
        self._shared = tuple(sorted(map(str, shared)))
        order = sorted(kept | shared, key=lambda s: (s in input_only or s in shared, s))
        return order, undefined, len(kept) - len(input_only)

    def visit_If(self, node: Any) -> Any:
        guard = getattr(node, "limelight_guard", None)
        if anno.getanno(node, anno.Basic.ORIGIN, default=None) in self._without_else and node.orelse:
            guard = "rest"
        statements = super().visit_If(node)
        if guard is not None:
            statements[-1].value.args.append(ast.Constant(guard))
        return statements

    def _create_loop_options(self, node: Any) -> ast.Dict:
        names = ast.Tuple([ast.Constant(name) for name in self._shared], ast.Load())
        return ast.Dict(keys=[ast.Constant("shared")], values=[names])

    def _create_state_functions(self, block_vars: Any, nonlocals: Any, getter: Any, setter: Any) -> Any:
        state_functions = super()._create_state_functions(block_vars, nonlocals, getter, setter)
        scope = self.state[control_flow._Function].scope
        for s in block_vars:
            if s in scope.globals:
                read = templates.replace_as_expression(
                    "ag__.ldu(lambda: var_, name)", var_=s, name=ast.Constant(str(s))
                )
                state_functions[0] = _Replacing(str(s), read).visit(state_functions[0])
        return state_functions


_LOOK_AT_THEIR_CALLER: Final = ("globals", "warnings.warn", "warn")


class _CallTrees(call_trees.CallTreeTransformer):  # type: ignore[misc]  # the same
    """Arguments as they are written, whatever `tuple` and `dict` are here; functions that ask who calls are called."""

    def visit_Call(self, node: ast.Call) -> Any:
        if str(anno.getanno(node.func, anno.Basic.QN, default="")) in _LOOK_AT_THEIR_CALLER:
            return self.generic_visit(node)
        return super().visit_Call(node)

    def _args_to_tuple(self, node: ast.Call) -> ast.expr:
        return ast.Tuple(node.args, ast.Load())

    def _kwargs_to_dict(self, node: ast.Call) -> ast.expr:
        if any(x.arg is None for x in node.keywords):
            return ast.Call(ast.Attribute(ast.Name("ag__", ast.Load()), "keywords", ast.Load()), [], node.keywords)
        if not node.keywords:
            return ast.Constant(None)
        return ast.Dict([ast.Constant(x.arg) for x in node.keywords], [x.value for x in node.keywords])


class _Replacing(ast.NodeTransformer):
    """Puts an expression in place of a name that is read."""

    def __init__(self, name: str, expression: ast.expr) -> None:
        self._name = name
        self._expression = expression

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._expression if node.id == self._name else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node  # one that has just been put there


class _ConditionalExpressions(conditional_expressions.ConditionalExpressionTransformer):  # type: ignore[misc]  # the same
    """Those within others too; `tests` has their conditions as they were written, by the positions of the whole."""

    def __init__(self, context: Any, tests: dict[Any, str]) -> None:
        super().__init__(context)
        self._tests = tests

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        said = self._tests.get(anno.getanno(node, anno.Basic.ORIGIN, default=None)) or ast.unparse(node.test)
        call = super().visit_IfExp(self.generic_visit(node))
        call.args[-1] = ast.Constant(said)
        return call


class _LogicalExpressions(logical_expressions.LogicalExpressionTransformer):  # type: ignore[misc]  # the same
    """Chains of comparisons evaluate each operand once, as Python does."""

    def visit_Compare(self, node: ast.Compare) -> Any:
        node = self.generic_visit(node)
        if len(node.ops) == 1 and not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        signs = ast.Tuple([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        return templates.replace_as_expression(
            "ag__.compare(left, signs, operands)",
            left=node.left,
            signs=signs,
            operands=ast.Tuple([self._as_lambda(x) for x in node.comparators], ast.Load()),
        )
