"""What newcomers write from habit: the error says what to write instead."""

from __future__ import annotations

import dataclasses
import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import nest
from limelight.errors import ArgumentError, DTypeError, RunError, ShapeError, StateCreationError

x = ll.ones((3, 4))
unknown = ll.function(input_signature=[ll.TensorSpec((None, 4), "float32")])


@pytest.mark.parametrize("body", [lambda x: ll.sum(x) / x.shape[0], lambda x: x.shape[0] * x])
def test_an_unknown_size_is_named_where_it_is_computed_with(body: Callable[..., Any]) -> None:
    with pytest.raises(
        DTypeError, match=r"cannot make a tensor of None.*unknown.*ll\.shape_of\(x\)\[0\].*x\.sizes\(\)"
    ):
        unknown(body)(x)


@pytest.mark.parametrize("call", [lambda: x + None, lambda: ll.constant(None), lambda: ll.constant([1.0, None])])
def test_none_is_no_number(call: Callable[[], Any]) -> None:
    with pytest.raises(DTypeError, match=r"tensor of None: it is no number; if"):
        call()


def test_a_module_stands_for_the_variables_that_it_trains() -> None:
    layer = ll.nn.Dense(2)
    layer(x)
    loss = lambda x: ll.sum(layer(x))  # noqa: E731  # one expression
    by_x, by_variables = ll.grad(loss, variables=layer)(x)
    assert by_x.shape == (3, 4)
    assert [g.shape for g in by_variables] == [v.shape for v in layer.trainable_variables]
    with pytest.raises(ArgumentError, match=r"write variables=\[v\]"):
        ll.grad(loss, variables=layer.trainable_variables[0])


@pytest.mark.parametrize("transform", [ll.grad, ll.value_and_grad, ll.jacobian, ll.hessian])
@pytest.mark.parametrize("given", [x, np.ones(3), 2.0, (0, x), ll.Variable(1.0)])
def test_arguments_are_not_positions(transform: Callable[..., Any], given: Any) -> None:
    with pytest.raises(ArgumentError, match=r"argnums is the position.*write ll\.\w+\(f\)\(x\)"):
        transform(ll.sum, given)


@pytest.mark.parametrize(
    ("statement", "instead"),
    [("v += 1.0", "assign_add(value)"), ("v -= 1.0", "assign_sub(value)"), ("v *= 2.0", "assign(v * value)")]
    + [(f"v {sign}= 2.0", f"assign(v {sign} value)") for sign in ("/", "//", "%", "**", "@", "&", "|", "^")],
)
def test_a_variable_is_not_lost_to_an_operator_in_place(statement: str, instead: str) -> None:
    v = ll.Variable(1.0, name="weight")
    with pytest.raises(ArgumentError, match=rf"'weight'.*write v\.{re.escape(instead)} to change"):
        exec(statement, {"v": v})
    total = ll.constant(1.0)
    total += v
    assert total.item() == 2.0
    assert v.numpy() == 1.0


def test_a_generator_that_is_made_on_a_later_call_is_called_so() -> None:
    kept: list[Any] = []

    @ll.function
    def draws(x: Any) -> Any:
        kept.append(ll.random.Generator(1))
        return x + kept[-1].uniform()

    with pytest.raises(
        StateCreationError, match=r"creates a generator .*generators on its.*ll\.random\.Generator\(seed\)"
    ):
        draws(x)


@dataclasses.dataclass
class Settings:
    rate: float
    start: Any = dataclasses.field(default_factory=lambda: ll.ones(2))

    def __post_init__(self) -> None:
        ll.ones(2) + ll.ones(3)


def test_errors_in_dataclasses_name_lines_that_somebody_wrote() -> None:
    with pytest.raises(ArgumentError, match=r"\(test_habits_of_other_libraries.py line \d+: ll.optim.schedules.Cosine"):
        ll.optim.schedules.Cosine(0.1, 10, warmup=20)
    with pytest.raises(ShapeError, match=r"\(test_habits_of_other_libraries.py line \d+: ll.ones\(2\) \+ ll.ones\(3\)"):
        Settings(0.1)
    scope: dict[str, Any] = {"ll": ll}
    with pytest.raises(ShapeError, match=r"\(<string> line 1\)"):  # code that somebody wrote, though in no file
        exec("ll.ones(2) + ll.ones(3)", scope)


def grown(x: Any) -> Any:
    return x + ll.zeros(x.shape)


def test_shapes_need_their_sizes() -> None:
    shapes: list[Any] = [None, (None,), (2, None)]
    for make in (ll.zeros, ll.ones, lambda shape: ll.full(shape, 1.0)):
        for shape in shapes:
            with pytest.raises(ShapeError, match=r"needs all its sizes, got .*None.*x\.sizes\(\)"):
                make(shape)
    with pytest.raises(ShapeError, match=r"needs all its sizes, got \(None, 4\)"):
        unknown(grown)(x)
    with pytest.raises(ShapeError, match="reshape: needs sizes, got None"):
        x.reshape(None)


@pytest.mark.parametrize("correction", ["a", None, (1,)])
def test_a_correction_is_a_number(correction: Any) -> None:
    for op in (ll.var, ll.std):
        with pytest.raises(ArgumentError, match="correction must be a number, got"):
            op(x, correction=correction)


@pytest.mark.parametrize("key", ['a"b', "a\\", "a\nb", "it's", "plain"])
def test_paths_are_code_whatever_the_keys(key: str) -> None:
    batch = {key: [1.0, 2.0]}
    leaves, structure = nest.flatten(batch)
    assert [eval(path, {"batch": batch}) for path in nest.paths(structure, "batch")] == leaves


def shown(call: Callable[[], Any]) -> str:
    """The traceback that a script prints."""
    try:
        call()
    except Exception:  # noqa: BLE001  # whatever it is
        return traceback.format_exc()
    return ""


@pytest.mark.parametrize(
    "call",
    [
        lambda: ll.ones(2) + ll.ones(3),
        lambda: x @ x,
        lambda: ll.concat([x, ll.ones((2, 3))]),
        lambda: ll.transpose(x) * x,
    ],
)
def test_a_shape_error_is_not_preceded_by_that_of_numpy(call: Callable[[], Any]) -> None:
    text = shown(call)
    assert "limelight.errors.ShapeError" in text
    assert text.count("Traceback (most recent call last)") == 1


def test_an_error_that_only_the_array_library_explains_keeps_its_cause() -> None:
    def kernel(xp: Any, x: Any) -> Any:
        raise KeyError("inside")

    broken = ll.defop("broken_kernel", inputs="x", infer=lambda x: x, kernel=kernel, why_no_gradient="a test")
    with pytest.raises(RunError, match="KeyError") as caught:
        broken(x)
    assert isinstance(caught.value.__cause__, KeyError)
