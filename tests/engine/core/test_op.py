"""An op is complete where it is defined: nothing adds rules to it later."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import limelight as ll
from limelight.core.op import Op, all_ops

ENGINE = Path(ll.__file__).parent
FIELDS = set(inspect.signature(Op.__init__).parameters) - {"self", "name", "inputs", "attrs"}


def patches(source: str) -> list[tuple[int, str]]:
    """The lines that assign to an attribute which bears the name of an op's field, but for attributes of `self`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        elif isinstance(node, ast.Call):
            if not _sets_an_attribute(node):
                continue
            if ast.unparse(node.args[1]).strip("'") in FIELDS and ast.unparse(node.args[0]) != "self":
                found.append((node.lineno, ast.unparse(node)))
            continue
        else:
            continue
        for target in (part for whole in targets for part in ast.walk(whole)):
            stored = isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
            if stored and target.attr in FIELDS and ast.unparse(target.value) != "self":
                found.append((node.lineno, ast.unparse(target)))
    return found


def _sets_an_attribute(call: ast.Call) -> bool:
    """Whether it is `setattr(...)` or `object.__setattr__(...)`; most calls are told apart by their last name."""
    last = getattr(call.func, "id", None) or getattr(call.func, "attr", None)
    return last in ("setattr", "__setattr__") and ast.unparse(call.func) in ("setattr", "object.__setattr__")


ALLOWED = {
    ("core/op.py", "op.vjp"),  # by `defop` itself, before it registers an op from outside the engine
    ("ops/_shape_rules.py", "rule.elementwise"),  # of a shape rule, before ops are defined with it
}


@pytest.mark.slow  # reads every file of the engine
def test_no_field_of_an_op_is_assigned_after_its_definition() -> None:
    found = {
        (path.relative_to(ENGINE).as_posix(), target)
        for path in ENGINE.rglob("*.py")
        for _, target in patches(path.read_text())
    }
    assert found <= ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        "while_op.taped = f",
        "a.jvp = b.jvp = f",
        "get('scan').batching = f",
        "op.vjp: object = f",
        "setattr(op, 'jvp', f)",
    ],
)
def test_a_patch_is_seen(source: str) -> None:
    assert patches(source)


def test_ops_that_call_functions_state_their_batching_rules_themselves() -> None:
    calling = {op.name for op in all_ops().values() if op.higher_order}
    assert calling >= {"call", "cond", "switch", "while_loop", "scan", "custom_gradient", "custom_call"}
    assert all(callable(all_ops()[name].batching) for name in calling)
