"""Python's own errors, where limelight knows the reason: a note on them says what to write."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.user_code import call_notes

x = ll.ones((2, 3))
loose: Any = ll  # the mistakes are no news to type checkers
SIZES: list[Callable[[Any], Any]] = [
    lambda t: t.shape[0] * 2,
    lambda t: 7 // t.shape[0],
    lambda t: list(range(t.shape[0])),
    lambda t: t.shape[0] > 2,
    lambda t: int(t.shape[0]),
    lambda t: math.sqrt(t.shape[0]),
    lambda t: np.prod(t.shape),
    lambda t: t.size + 1,
    lambda t: ll.cond(ll.sum(t) > 0, lambda: ll.zeros(t.shape[0] + 1), lambda: ll.zeros(1)),
]


def notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


@pytest.mark.parametrize("call", SIZES)
@pytest.mark.parametrize("autograph", [False, True])
def test_a_size_that_is_unknown_while_tracing(call: Callable[[Any], Any], autograph: bool) -> None:
    with pytest.raises(TypeError) as caught:
        loose.function(call, input_signature=[ll.TensorSpec((None, 4), "float32")], autograph=autograph)(
            ll.ones((2, 4))
        )
    # x: what was rewritten has no such name
    said = re.compile(
        r"write ll\.shape_of\(([xt])\)\[0\], or \1\.sizes\(\)\[0\]"
    )  # x: what was rewritten has no such name
    assert len([note for note in notes(caught.value) if said.search(note)]) == 1


def test_other_nones_and_known_sizes_have_no_such_note() -> None:
    nothing: Any = None
    unknown = [ll.TensorSpec((None, 4), "float32")]
    for call, specs in ((lambda t: nothing * 2, None), (lambda t: nothing[0], unknown), (lambda t: nothing(), unknown)):
        with pytest.raises(TypeError) as caught:
            loose.function(call, input_signature=specs)(ll.ones((2, 4)))
        assert not notes(caught.value)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: loose.sum(x, dim=0), "axis"),
        (lambda: loose.nn.softmax(x, dim=0), "axis"),
        (lambda: loose.permute_dims(x, dims=(1, 0)), "axes"),
        (lambda: x.sum(axis=0, keepdim=True), "keepdims"),  # type: ignore[call-arg]  # the mistake
    ],
)
def test_keywords_of_other_libraries(call: Callable[[], Any], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    sys.excepthook(TypeError, caught.value, caught.value.__traceback__)
    assert f"called {name}: write {name}=..." in capsys.readouterr().err


def test_functions_of_other_libraries_are_left_alone_and_unknown_keywords_get_the_form() -> None:
    def own(axis: int = 0) -> int:
        return axis

    mine: Any = own
    numpy: Any = np
    calls: list[Any] = [lambda: mine(dim=0), lambda: numpy.sum([1], dim=0)]
    for call in calls:
        with pytest.raises(TypeError) as caught:
            call()
        call_notes.note_call(caught.value)
        assert not notes(caught.value)
    with pytest.raises(TypeError) as caught:
        loose.sum(x, whatever=1)
    call_notes.note_call(caught.value)
    assert notes(caught.value) == ["Its form: sum(x, /, axis=None, keepdims=False, *, dtype=None)"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x, v, net: setattr(x, "requires_grad", True), r"no attribute 'requires_grad' to set.*tape.watch\(x\)"),
        (lambda x, v, net: setattr(x, "data", 1.0), "a tensor has no attribute 'data' to set"),
        (
            lambda x, v, net: setattr(v, "value", 2.0),
            r"variable has no attribute 'value' to set: write v.assign\(x\)",
        ),
        (lambda x, v, net: setattr(v, "data", 2.0), r"write v.assign\(x\)"),
        (lambda x, v, net: setattr(v, "requires_grad", False), r"ll.Variable\(x, trainable=False\)"),
        (lambda x, v, net: setattr(net, "trainable", False), "what the optimiser is handed changes, and nothing else"),
        (lambda x, v, net: setattr(net, "kernel", x), r"Dense.kernel is a variable.*write .kernel.assign\(value\)"),
        (lambda x, v, net: net.trainable, "what the optimiser is handed changes"),
    ],
)
def test_what_would_do_nothing_in_silence_is_refused(change, said):
    net = ll.nn.Dense(2)
    net.build((None, 2))
    with pytest.raises(AttributeError, match=said):
        change(ll.ones((2, 2)), ll.Variable(1.0), net)
    assert len(net.trainable_variables) == 2


def test_what_users_attach_and_replace_is_theirs():
    x, v, net = ll.ones((2, 2)), ll.Variable(1.0), ll.nn.Dense(2)
    net.build((None, 2))
    x.note, v.note, net.trainable = "mine", "mine", True
    net.kernel, net.bias = ll.Variable(ll.zeros((2, 2))), None
    assert (x.note, v.note, len(net.trainable_variables)) == ("mine", "mine", 1)


class Switched(ll.Module):
    trainable = True

    def __init__(self, value):
        self.trainable = value


def test_a_class_of_users_may_have_an_attribute_of_this_name():
    assert Switched(False).trainable is False
    net = ll.Module()
    net.trainable = np.array([True, False])
    net.requires_grad = [0, 1]
    assert net.trainable.tolist() == [True, False]


@pytest.mark.parametrize("name", ["init", "_init_", "__int__"])
def test_a_constructor_of_another_name_is_told_of(name: str) -> None:
    def make(self: Any) -> None:
        self.head = ll.nn.Dense(2)

    kind = type("Net", (ll.Module,), {name: make, "call": lambda self, x: self.head(x)})
    with pytest.raises(AttributeError, match=rf"Net.{name}, which might make it, is not called: .* called __init__"):
        kind()(x)


def test_a_class_that_is_entered_without_brackets() -> None:
    with pytest.raises(TypeError) as caught, loose.GradientTape:
        pass
    call_notes.note_call(caught.value)
    assert "loose.GradientTape is a class; the block is entered by one of its objects" in " ".join(notes(caught.value))


def test_a_norm_that_is_unpacked_beside_the_clipped_gradients() -> None:
    with pytest.raises(ValueError, match="unpack") as caught:
        _, _ = ll.optim.clip_by_global_norm([x, x, x], 1.0)
    call_notes.note_call(caught.value)
    assert "their norm is ll.optim.global_norm(gradients)" in " ".join(notes(caught.value))


@pytest.mark.parametrize("change", [lambda t, net: t.gradient(net, x), lambda t, net: t.gradient(1.0, net)])
def test_a_target_that_is_none(change: Callable[[Any, Any], Any]) -> None:
    with ll.GradientTape() as tape:
        pass
    with pytest.raises(ll.errors.ArgumentError, match=r"the target comes first|it left the tape as a number"):
        change(tape, ll.nn.Dense(2))


def test_metrics_of_a_manager_are_given_by_name(tmp_path: Any) -> None:
    manager = ll.CheckpointManager({"net": ll.nn.Dense(2)}, tmp_path)
    for loss in (0.5, ll.constant(0.5)):
        with pytest.raises(ll.errors.ArgumentError, match=r"metrics by name: save\(loss=loss\)"):
            manager.save(loss)  # type: ignore[arg-type]  # the mistake


def _by_name(tok):
    _, t = tok.shape
    return tok + ll.arange(t)


def _in_a_loop(xs):
    for _ in range(xs.shape[1]):
        xs = xs + 1.0
    return xs


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_by_name, "a size of tok.shape that is unknown while tracing write ll.shape_of(tok)[1]"),
        (_in_a_loop, "write ll.shape_of(xs)[1], or xs.sizes()[1]"),
        (lambda img: ll.constant(img.shape[1]), "write ll.shape_of(img)[1], or img.sizes()[1]"),
        (lambda img: ll.random.normal(img.shape), "where img.shape has None, a size unknown while tracing, write img."),
    ],
)
def test_a_size_that_is_unknown_is_told_by_its_tensor_and_axis(function, said):
    staged = ll.function(function, input_signature=[ll.TensorSpec((2, None))])
    with pytest.raises((TypeError, ll.errors.LimelightError)) as caught:
        staged(ll.ones((2, 4)))
    assert said in "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def test_a_conversion_around_another_is_told_with_it():
    with pytest.raises(
        ll.errors.LimelightError, match=r"Leave out `\.item\(\)`, and write ll.astype\(x, ll.int32\) for"
    ):
        ll.function(lambda x: int(x.sum().item()))(ll.ones(3))
