"""Names that other libraries have, or that are misspelt: the error says what to write."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.errors import ArgumentError
from limelight.user_code import hints, tracebacks

x = ll.ones((3, 4))
loose: Any = ll  # the mistakes are no news to type checkers
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
    for name, instead in hints.FUNCTIONS.items():
        found: Any = ll
        for part in instead.split("."):
            found = getattr(found, part)
        assert name not in dir(ll), f"ll.{name} exists: no need to write {instead}"
    assert not [name for name in hints.METHODS if hasattr(x, name)]
    assert not [name for name in hints.MODULES if hasattr(ll.Module, name)]
    assert not [name for name in hints.OPTIMIZERS if hasattr(ll.optim.Adam, name)]
    assert not set(hints.ADVICE) & {*dir(ll), *hints.FUNCTIONS}


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: loose.zeros((2,), loose.int32), r"write ll\.zeros\(\(2,\), dtype=ll\.int32\)"),
        (lambda: loose.ones(2, 3), r"write ll\.ones\(\(2, 3\)\)"),
        (lambda: loose.full((2,), 1, "int32"), r"write ll\.full\(\(2,\), 1, dtype=ll\.int32\)"),
        (lambda: loose.zeros_like(x, loose.int32), r"write ll\.zeros_like\(x, dtype=ll\.int32\)"),
        (lambda: loose.optim.SGD(0.1).step(), r"write optimizer\.apply\(gradients, variables\)"),
        (lambda: round(x, 2), r"write ll\.round\(x \* 100\) / 100"),
    ],
)
def test_calls_as_in_other_libraries(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ArgumentError), match=words):
        call()


@pytest.mark.parametrize(
    ("get", "words"),
    [
        (lambda: loose.optim.SGD(0.1).apply_gradients, "two lists, not one of pairs"),
        (lambda: loose.optim.SGD(0.1).minimize, "GradientTape"),
        (lambda: loose.nn.Dense(1).train, "training=True"),
        (lambda: loose.nn.Linear, r"write ll\.nn\.Dense"),
        (lambda: loose.optim.Adm, r"write ll\.optim\.Adam"),
        (lambda: loose.linalg.inverse, r"write ll\.linalg\.inv"),
        (lambda: loose.random.randn, r"write ll\.random\.normal"),
        (lambda: loose.save, "named_variables"),
        (lambda: loose.Assert, r"write ll\.debug\.check"),
        (lambda: loose.tensor, r"write ll\.constant\(value\)"),
        (lambda: x.numel, r"write x\.size"),
    ],
)
def test_names_of_parts_and_objects(get: Callable[[], Any], words: str) -> None:
    with pytest.raises(AttributeError, match=words) as caught:
        get()
    assert not tracebacks.is_at_fault(caught.value)


def test_pythons_round_and_divmod() -> None:
    assert round(loose.constant([1.2, 2.5])).tolist() == round(loose.Variable([1.2, 2.5])).tolist() == [1.0, 2.0]
    for pair in (divmod(ll.constant([7, -7]), 3), divmod(loose.Variable([7, -7]), 3)):
        assert [y.tolist() for y in pair] == [[2, -3], [1, 2]]
    assert [y.tolist() for y in divmod(7, loose.constant([2]))] == [[3], [1]]


def test_variables_without_a_name_are_called_as_their_attribute() -> None:
    class Net(ll.Module):
        def __init__(self, shared: ll.Variable) -> None:
            self.w, self.b, self.tied = ll.Variable(1.0), ll.Variable(2.0, name="bias"), shared
            with ll.name_scope("inner"):
                self.v = ll.Variable(3.0)

    first = Net(ll.Variable(0.0))
    second = Net(first.w)
    assert [v.name for v in first.variables] == ["w", "bias", "tied", "inner/v"]
    assert second.tied.name == "w"
