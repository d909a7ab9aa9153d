"""One trace is called by parameters, by flat names, or by its tensors alone (behaviours 162 and 163)."""

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll
from limelight.errors import SignatureError

x = ll.constant([1.0, 2.0])


@ll.function
def f(v: Any, n: float, pair: Any, *, mode: str = "plain") -> Any:
    return v * n + pair[0] * pair[1]["w"] + (1.0 if mode == "odd" else 0.0)


def trace() -> Any:
    return f.get_concrete_function(x, 2.0, (x, {"w": x}))


def test_162_by_parameters_by_flat_names_and_by_tensors() -> None:
    concrete, wanted = trace(), [3.0, 8.0]
    nested = (x, {"w": x})
    assert concrete(x, x, x).tolist() == wanted
    assert concrete(x, 2.0, nested).tolist() == wanted
    assert concrete(v=x, pair=nested).tolist() == wanted
    assert concrete(x, pair=nested, mode="plain").tolist() == wanted
    assert concrete(v=x, pair_0=x, pair_1_w=x).tolist() == wanted
    assert f.trace_count == 1


def test_162_what_is_bound_is_checked() -> None:
    concrete = trace()
    with pytest.raises(SignatureError, match=r"f: argument `n`: expected 2\.0, which this trace is bound to, got 8\.0"):
        concrete(x, 8.0, (x, {"w": x}))
    with pytest.raises(SignatureError, match=r"f: argument `mode`: expected 'plain', .* got 'odd'"):
        concrete(v=x, pair=(x, {"w": x}), mode="odd")
    with pytest.raises(SignatureError, match=r"f: argument `v` \(f32\[2\]\) is missing"):
        concrete(pair=(x, {"w": x}))
    with pytest.raises(SignatureError, match=r"f has no parameter `q`"):
        concrete(v=x, q=x)
    with pytest.raises(SignatureError, match=r"f: argument `v` must be f32\[2\], got f32\[3\]"):
        concrete(v=ll.ones((3,)), pair=(x, {"w": x}))
    with pytest.raises(SignatureError, match=r"`pair` must have the structure \(\*, {w: \*}\), got"):
        concrete(v=x, pair=(x, {"w": x, "u": x}))


def test_162_names_are_legal_and_each_stands_once() -> None:
    from limelight.staging.structured_inputs import flat_names

    assert flat_names(["a", 'b["c d"]', "b[0]", "b_0", "a", "0"]) == ["a", "b_c_d", "b_0_1", "b_0", "a_1", "arg_0"]


def test_163_in_full() -> None:
    w = ll.Variable([1.0, 1.0], name="w")

    @ll.function
    def g(v: Any, /, on: bool, *rest: Any, scale: Any) -> Any:
        return v * w, rest[0] + scale

    said = g.get_concrete_function(x, True, x, scale=x).full_signature
    assert said.splitlines() == [
        "g(",
        "  v: f32[2]  (positional only)",
        "  on: = True",
        "  rest[0]: f32[2]  (*)",
        "  scale: f32[2]  (keyword only)",
        ") -> (f32[2], f32[2])",
        "  captures w: var f32[2]",
    ]


def test_one_value_and_a_structure_are_told_apart() -> None:
    one = ll.function(lambda x: x).get_concrete_function(x)
    with pytest.raises(SignatureError, match=r"argument `x` must be one value, got \[\*, \*\]"):
        one([x, x])
    with pytest.raises(SignatureError, match=r"argument `pair` must have the structure \(\*, {w: \*}\), got one value"):
        trace()(v=x, pair=x)


class Methods:
    @ll.function(autograph=True)
    @staticmethod
    def within(y: Any) -> Any:
        return y if y > 0 else -y

    @staticmethod
    @ll.function
    def around(y: Any) -> Any:
        return -y


def test_static_methods_are_called_without_an_instance() -> None:
    assert Methods.within(-x[0]).item() == Methods().within(-x[0]).item() == Methods().around(-x[0]).item() == 1.0
    assert Methods.within.trace_count == 1


def test_a_class_method_says_in_which_order() -> None:
    with pytest.raises(ll.errors.ArgumentError, match=r"write @classmethod first, and @ll.function below it"):
        ll.function(classmethod(lambda cls, y: y))
