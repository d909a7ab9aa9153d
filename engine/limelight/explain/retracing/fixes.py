"""What to write so that a call finds its trace next time, as code that can be pasted.

A fix is printed only where it works. A number becomes a tensor if the source of the function shows that nothing asks
for its value (`explain.may_be_tensor`), of the dtype that the last graph computes in; a whole number only where all
else in the graph is of one floating dtype, since it may be a size, an axis or a count. An object is made before the
loop only if its expression means the same there. A dictionary with more keys loses them only if the source reads no
others. What is not understood gets advice in words (`advice`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Final

from limelight.core import dtypes, shapes
from limelight.explain.fix import Fix, called, expression
from limelight.explain.retracing.causes import Cause
from limelight.explain.retracing.containers import as_tensor, constant
from limelight.explain.retracing.fix_context import MOST, FixContext, parameter_of
from limelight.explain.retracing.key_diff import SCOPE, Change, TextPart, quoted, show
from limelight.explain.retracing.suggest_signature import ONCE, for_shapes, is_lasting
from limelight.staging.key_parts import TensorPart, ValuePart, VariablePart, bare_part
from limelight.user_code import call_expression
from limelight.user_code.definitions import reads_only

_ATOMS: Final = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Dict, ast.List)
_NUMBERS: Final = (int, float)
_CONTAINERS: Final = frozenset(["list", "tuple"])
_CALL: Final = "call with"
"""The place of a fix that is the call itself."""


def find(changes: Sequence[Change], context: FixContext) -> list[Fix]:
    """The fixes for all changes that have one: the decorator first, then the call."""
    whole = (context.signature.rest_name, context.signature.keywords_name)
    named = [change for change in changes[:MOST] if change.path not in whole]
    templates = {change.path: draft for change in named if (draft := _template(change, context)) is not None}
    hoisted = _made_once(named, context)
    names = {fix.paths[0]: name for fix, name in hoisted}
    fixes = for_shapes(changes, templates, names, context)
    if fixes and "input_signature" in fixes[0].code:  # which takes numbers as tensors
        taken = [c.path for c in named if isinstance(c.before, ValuePart) and c.path in templates]
        fixes[0] = fixes[0]._replace(paths=(*fixes[0].paths, *taken))
        templates = {path: template for path, template in templates.items() if path not in taken}
    hoists = [fix for fix, _ in hoisted]
    fixes = hoists + fixes if fixes and fixes[0].place == ONCE else fixes + hoists
    numbers = {c.path: (c.before, c.after) for c in named if isinstance(c.before, ValuePart)}
    earlier = {path: before for path, (before, after) in numbers.items() if isinstance(after, TensorPart)}
    both = [path for path, (_, after) in numbers.items() if isinstance(after, ValuePart)]
    mended = _at_the_call(templates, names, earlier, context)
    fixes += [_also_elsewhere(fix, context) if set(both) & set(fix.paths) else fix for fix in mended]
    return _in_device_scope(changes, fixes, context)


# At the call: another expression for an argument


def _template(change: Change, context: FixContext) -> str | None:
    """The expression to pass for a leaf, with {} for what is passed now."""
    before, after = change.before, change.after
    match before, after:
        case TensorPart(), TensorPart():
            return _tensor_template(before, after)
        case ValuePart(), ValuePart():
            return _number_template(change, {before.kind, after.kind}, context)
        case TensorPart(), ValuePart():
            return _scalar_template(after, before)
        case ValuePart(), TensorPart():
            return _scalar_template(before, after)
        case TensorPart(), VariablePart() if (before.dtype, before.shape) == (after.dtype, after.spec.shape):
            return "ll.constant({})"
        case TensorPart(), TextPart() if after.kind in (list, tuple):
            return as_tensor(change.path, before, context)
        case TextPart(), TextPart():
            return container_template(change.path, before, after, context)
    return None


def _number_template(change: Change, types: set[type], context: FixContext) -> str | None:
    """For Python numbers that the function only computes with; whole numbers where all else is of one float dtype."""
    if not types <= set(_NUMBERS):
        return None
    if float not in types and context.is_default(change):
        return None  # the earlier call left it out
    dtype = context.met_dtype() if float in types else context.met_dtype(("integer", "floating", "complex"))
    if dtype is None or context.obstacle(change.path):
        return None
    return constant(dtype) if types == {float} else f'll.constant({{}}, "{dtype.name}")'


def _scalar_template(value: ValuePart, tensor: TensorPart) -> str | None:
    """For a Python number that can be that scalar tensor, at which the function has traced already or is about to."""
    allowed = {"bool": (bool,), "integer": (int,), "floating": (int, float), "complex": (int, float, complex)}
    fits = tensor.shape == () and value.kind in allowed[dtypes.kind(tensor.dtype)]
    return f'll.constant({{}}, "{tensor.dtype.name}")' if fits else None


def _tensor_template(before: TensorPart, after: TensorPart) -> str | None:
    """For a tensor that reshaped, cast or copied is of the type that there is a trace for."""
    text = "{}"
    if len(before.shape) != len(after.shape):
        if not shapes.is_static(before.shape) or _without_ones(before.shape) != _without_ones(after.shape):
            return None  # another dtype or device would not spare the trace
        text = f"ll.reshape({text}, {shapes.show(before.shape)})"
    if before.dtype != after.dtype:
        text = f'll.astype({text}, "{before.dtype.name}")'
    if before.device is not after.device:
        text = f'{text}.to("{before.device.short}")'
    return text if text != "{}" else None


def container_template(path: str, before: TextPart, after: TextPart, context: FixContext) -> str | None:
    """The expression for a container that is of another kind, or a dictionary with more keys than the function reads.

    Args:
        path: of the container.
        before: what the closest trace was made for.
        after: what is passed now.
        context: of the call.
    """
    old_kind, old_keys, new_kind, new_keys = before.kind, before.keys, after.kind, after.keys
    if old_kind is None or new_kind is None:
        return None
    if {old_kind, new_kind} == {list, tuple} and old_keys == new_keys:
        return f"{old_kind.__name__}({{}})"
    is_more = old_kind is new_kind is dict and len(old_keys) <= MOST and set(old_keys) < set(new_keys)
    if is_more and reads_only(context.function, path, old_keys):  # else the others may matter
        return f"{{{{name: {{}}[name] for name in [{', '.join(map(quoted, old_keys))}]}}}}"
    return None


def _without_ones(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    return tuple(n for n in shape if n != 1)


def _at_the_call(
    templates: dict[str, str], hoisted: dict[str, str], earlier: Mapping[str, ValuePart], context: FixContext
) -> list[Fix]:
    """The user's own call, mended; where it cannot be had, the expressions to pass.

    Args:
        templates: by path, the expression to pass, with {} for what is passed now.
        hoisted: by path, the name of what is made once, before the loop.
        earlier: by path, the numbers of another call that are tensors now: that one is to be mended.
        context: of the call.
    """
    site, mended, fixes = context.site, dict(hoisted), []
    for path, template in templates.items():
        parameter = parameter_of(path, context.signature)
        given = site.expression(parameter) if site else None
        if path in earlier and (context.elsewhere or given is None or not _varies(given)):
            fixes.append(_in_the_earlier_call(path, template, earlier[path], context))
        elif given is not None and parameter == path:
            mended[path] = _filled(template, given)
        else:
            fixes.append(_for_part(path, template, parameter, given, context))
    if site is not None and mended:
        fixes.append(Fix(site.mended(mended), _CALL, tuple(mended), is_inside=site.is_inside))
    return fixes


def _in_the_earlier_call(path: str, template: str, number: ValuePart, context: FixContext) -> Fix:
    """The call that made the closest trace, mended; where it cannot be told from others, the expression to pass.

    Args:
        path: of the argument.
        template: the expression to pass, with {} for what is passed now.
        number: what it was in that call.
        context: of this call.
    """
    called = frozenset([context.name, *([context.site.called] if context.site else [])])
    calls = call_expression.at_line(context.earlier, context.signature, called) if context.earlier else []
    given = [(call, text) for call in calls if (text := call.expression(path)) is not None]
    sure = [(call, text) for call, text in given if _is_literal(text, number)] or given
    if len(sure) != 1:
        return Fix(_filled(template, path), f"in the earlier call, for `{path}` pass", (path,), is_inside=True)
    ((call, text),) = sure
    where = f" at {context.elsewhere}" if context.elsewhere else ""
    mended = call.mended({path: _filled(template, text)})
    return Fix(mended, f"the earlier call{where} becomes", (path,), is_inside=call.is_inside)


def _is_literal(text: str, number: ValuePart) -> bool:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return type(value) in _NUMBERS and bool(number == bare_part(value, {}))


def _also_elsewhere(fix: Fix, context: FixContext) -> Fix:
    """Where a number becomes a tensor, the call that made the closest trace must be mended in the same way."""
    where = context.elsewhere
    return fix._replace(place=f"here, and alike at {where}, {fix.place}") if where else fix


def _for_part(path: str, template: str, parameter: str, given: str | None, context: FixContext) -> Fix:
    """For a part of a container: an assignment before the call, in the caller's words where they are known.

    Args:
        path: of the part.
        template: the expression to pass, with {} for what is passed now.
        parameter: the one that the path begins with.
        given: what the user wrote for it; None where that is not known.
        context: of the call.
    """
    if given is None or not is_lasting(given):  # a display or a call makes another container each time
        return Fix(_filled(template, path), f"for `{path}` pass", (path,), is_inside=True)
    target = f"{given}{path[len(parameter) :]}"
    if path.endswith('"]'):
        inside = context.site is None or context.site.is_inside
        return Fix(f"{target} = {_filled(template, target)}", "before the call", (path,), is_inside=inside)
    return Fix(_filled(template, target), f"for `{path}` pass", (path,), is_inside=True)


def _filled(template: str, given: str) -> str:
    """`template` with an expression, in parentheses where what follows it would bind more tightly."""
    template, given = _without_undone(template, given)
    bound = "{}." in template or "{}[" in template
    loose = bound and not isinstance(expression(given), _ATOMS)
    return template.format(f"({given})" if loose else given)


def _without_undone(template: str, given: str) -> tuple[str, str]:
    """Both without what would undo each other at once: casts, reshapes and containers that `given` ends with.

    A cast to integers, or of integers, stays: without it the numbers would be others.
    """
    wanted = {called(node): node for node in ast.walk(expression(template.format("x"))) if isinstance(node, ast.Call)}
    cast = wanted.get("astype")
    while isinstance(call := expression(given), ast.Call):
        name, is_method = called(call), not _is_library(call)
        floating = cast is not None and all("float" in ast.unparse(_last(one)) for one in (call, cast))
        if isinstance(call.func, ast.Name):
            if name not in _CONTAINERS or _CONTAINERS.isdisjoint(wanted) or len(call.args) != 1:
                break  # a function of the user's, whose argument is something else
        elif name == "constant" and cast is not None and floating and len(wanted) == 1 and len(_given(call)) == 2:
            call.args, call.keywords = [call.args[0], _last(cast)], []
            return "{}", ast.unparse(call).replace("'", '"')
        elif name not in wanted or (name == "astype" and not floating) or len(_given(call)) != 2 - is_method:
            break
        inner = call.func.value if is_method and isinstance(call.func, ast.Attribute) else call.args[0]
        given = ast.unparse(inner)
    return template, given


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _last(call: ast.Call) -> ast.expr:
    return _given(call)[-1] if _given(call) else ast.Constant(None)


def _is_library(call: ast.Call) -> bool:
    """Whether it is `ll.astype(x, ...)`, with two arguments, rather than `x.astype(...)`."""
    return len(_given(call)) == 2 and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)


def _varies(given: str) -> bool:
    """Whether one expression can be a number in one call and a tensor in another: no literal, no call can."""
    return not isinstance(expression(given), (ast.Call, ast.Constant, ast.UnaryOp))


# Before the call: objects that are made anew


def _made_once(changes: Sequence[Change], context: FixContext) -> list[tuple[Fix, str]]:
    """For an object written in the call itself: an assignment to make once, and the name to pass."""
    hoisted, site = [], context.site
    for change in changes:
        given = site.expression(change.path) if site else None
        same_kind = change.cause in (Cause.FUNCTION, Cause.DELETED) or (change.cause is Cause.OBJECT and change.note)
        if site and given and same_kind and site.is_steady(change.path) and not is_lasting(given):
            name = change.path.split("[")[0]
            hoisted.append((Fix(f"{name} = {given}", ONCE, (change.path,)), name))
    return hoisted


# Around the call


def _in_device_scope(changes: Sequence[Change], fixes: list[Fix], context: FixContext) -> list[Fix]:
    """With the device scope of the earlier call around this one, mended as it may be."""
    change = next((one for one in changes if one.path == SCOPE), None)
    if change is None:
        return fixes
    device = show(change.before)
    name = "None" if device == "none" else f'"{device}"'
    if fixes and fixes[-1].place.endswith(_CALL):
        last = fixes[-1]
        place = last.place.removesuffix(_CALL).strip()
        whole = last._replace(code=f"with ll.device({name}): {last.code}", place=place, paths=(SCOPE, *last.paths))
        return [*fixes[:-1], whole]
    call, inside = ("...", True) if context.site is None else (context.site.text, context.site.is_inside)
    return [*fixes, Fix(f"with ll.device({name}): {call}", "", (SCOPE,), is_inside=inside)]
