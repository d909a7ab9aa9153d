"""Names that other libraries have, or that are misspelt: the error says what to write."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight import habits
from limelight.errors import ArgumentError

x = ll.ones((3, 4))
FOUND = {
    "relu": "ll.nn.relu", "concatenate": "ll.concat", "power": "ll.pow", "embedding": "ll.nn.embedding",
    "zerros": "ll.zeros", "softmaxx": "ll.nn.softmax", "Adam": "ll.optim.Adam", "reduce_sum": "ll.sum",
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_missing_names_are_suggested(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; write {FOUND[name]}$"):
        getattr(ll, name)


@pytest.mark.parametrize("name", ["nothing_like_it", "__wrapped__"])
def test_nothing_is_suggested_where_nothing_is_near(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
        getattr(ll, name)


def test_what_is_suggested_exists_and_what_it_stands_for_does_not() -> None:
    for name, instead in habits.FUNCTIONS.items():
        found: Any = ll
        for part in instead.split("."):
            found = getattr(found, part)
        assert name not in dir(ll), f"ll.{name} exists: no need to write {instead}"
    assert not [name for name in habits.METHODS if hasattr(x, name)]
    assert not [name for name in habits.MODULES if hasattr(ll.Module, name)]


def test_dir_has_public_names_only() -> None:
    names = dir(ll)
    assert {"nn", "linalg", "widgets", "sum", "Tensor", "config"} <= set(names)
    assert not {"tensor", "registry", "ops", "Any", "importlib", "habits", "sorting", "builtins"} & set(names)


def test_a_star_import_shadows_nothing_of_python() -> None:
    scope: dict[str, Any] = {}
    exec("from limelight import *", scope)
    assert {"zeros", "function", "Variable", "nn"} <= set(scope)
    assert not [name for name in scope if hasattr(builtins, name) and name != "__builtins__"]
    assert "importlib" not in scope


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.backward(), r"GradientTape.*tape\.gradient\(loss, x\)"),
        (lambda x: x.grad, r"g = tape\.gradient"),
        (lambda x: x.detach(), r"write ll\.stop_gradient\(x\)"),
        (lambda x: x.requires_grad, r"tape\.watch\(x\)"),
    ],
)
@pytest.mark.parametrize("kind", [lambda: x, lambda: ll.Variable(1.0)], ids=["tensor", "variable"])
def test_attributes_of_other_tensors(call: Callable[[Any], Any], words: str, kind: Callable[[], Any]) -> None:
    with pytest.raises(AttributeError, match=words):
        call(kind())
    with pytest.raises(AttributeError, match=words):
        ll.function(call)(kind())


def test_tensors_still_take_attributes_and_lack_others() -> None:
    t = ll.ones(2)
    t.note = "mine"  # type: ignore[attr-defined]  # users may attach what they like
    assert t.note == "mine"
    assert not hasattr(t, "nothing")
    assert "backward" not in dir(t)
    t.grad = 1.0  # type: ignore[attr-defined]  # a name of other libraries, too
    assert t.grad == 1.0


def test_sizes_and_axes_are_one_argument() -> None:
    with pytest.raises(ArgumentError, match=r"write x\.reshape\(\(4, 3\)\)"):
        x.reshape(4, 3)  # type: ignore[call-arg]  # the mistake
    with pytest.raises(ArgumentError, match=r"write x\.transpose\(\(1, 0\)\)"):
        x.transpose(1, 0)  # type: ignore[call-arg, arg-type]  # the mistake


def test_modules_name_what_they_have_and_let_properties_fail_by_themselves() -> None:
    class Net(ll.nn.Dense):
        @property
        def broken(self) -> Any:
            return x.nothing

    net = Net(2)
    with pytest.raises(
        AttributeError, match=r"'Net' object has no attribute 'parameters': write module\.trainable_var"
    ):
        net.parameters()  # type: ignore[attr-defined]  # the mistake
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nothing'"):
        _ = net.broken
