"""Tensors as Python sees them: methods and operators, and what the families attach to the class."""

from __future__ import annotations

import ast
import inspect
import operator

import numpy as np
import pytest

import limelight as ll
from limelight.core import tensor
from limelight.core.tensor import Tensor

X, Y = np.array([5.0, -3.0, 2.0], np.float32), np.array([2.0, 2.0, -4.0], np.float32)
K, L = np.array([5, 3, 2], np.int32), np.array([2, 1, 4], np.int32)


def declared():
    """The names that class Tensor declares for type checkers only."""
    body = ast.parse(inspect.getsource(tensor)).body
    (cls,) = [node for node in body if isinstance(node, ast.ClassDef) and node.name == "Tensor"]
    (block,) = [node for node in cls.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {node.name for node in ast.walk(block) if isinstance(node, ast.FunctionDef)} - {"__getattr__"}


def test_every_method_that_is_declared_is_attached():
    missing = {name for name in declared() if getattr(Tensor, name, None) is getattr(object, name, None)}
    assert not missing


def test_every_public_method_that_is_attached_is_declared():
    written = {
        node.name for node in ast.walk(ast.parse(inspect.getsource(Tensor))) if isinstance(node, ast.FunctionDef)
    }
    attached = {name for name in dir(ll.ones(())) if not name.startswith("_") or name.endswith("__")}
    attached &= set(vars(Tensor))
    inherited = {
        "__array_function__",  # these three are attached to the class by limelight.core.eager.numpy_interop
        "__dlpack__",
        "__dlpack_device__",
        "__module__",
        "__doc__",
        "__slots__",
        "__annotations__",
        "__dict__",
        "__weakref__",
        "__limelight_leaf__",
    }
    assert attached - written - inherited - {"__array_ufunc__", "__firstlineno__", "__static_attributes__"} == set()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "matmul"])
def test_arithmetic_operators_and_their_reflections(name):
    apply = getattr(operator, name)
    for a, b in ((X, Y), (K, L)):
        if name == "truediv" and a is K:
            continue
        for left, right in ((ll.constant(a), ll.constant(b)), (ll.constant(a), b), (a, ll.constant(b))):
            found = apply(left, right)
            assert isinstance(found, Tensor)
            np.testing.assert_allclose(found.numpy(), apply(a, b), rtol=1e-6)
    if name != "matmul":
        np.testing.assert_allclose(apply(ll.constant(X), 2).numpy(), apply(X, 2), rtol=1e-6)
        np.testing.assert_allclose(apply(2.5, ll.constant(X)).numpy(), apply(np.float32(2.5), X), rtol=1e-6)


def test_powers():
    x = ll.constant(np.abs(X))
    np.testing.assert_allclose((x**2).numpy(), np.abs(X) ** 2)
    np.testing.assert_allclose((2.0**x).numpy(), 2.0 ** np.abs(X))
    np.testing.assert_allclose((x**x).numpy(), np.abs(X) ** np.abs(X), rtol=1e-6)


@pytest.mark.parametrize("name", ["and_", "or_", "xor"])
def test_bit_operators(name):
    apply = getattr(operator, name)
    for a, b in ((K, L), (X > 0, Y > 0)):
        np.testing.assert_array_equal(apply(ll.constant(a), ll.constant(b)).numpy(), apply(a, b))
    np.testing.assert_array_equal(apply(ll.constant(K), 3).numpy(), apply(K, 3))
    np.testing.assert_array_equal(apply(3, ll.constant(K)).numpy(), apply(3, K))


@pytest.mark.parametrize("name", ["neg", "pos", "abs"])
def test_signs(name):
    apply = getattr(operator, name)
    np.testing.assert_array_equal(apply(ll.constant(X)).numpy(), apply(X))


def test_inversion():
    np.testing.assert_array_equal((~ll.constant(K)).numpy(), ~K)
    np.testing.assert_array_equal((~ll.constant(X > 0)).numpy(), ~(X > 0))


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons(name):
    apply = getattr(operator, name)
    for right in (ll.constant(Y), Y, 2, 2.0, np.float32(2)):
        found = apply(ll.constant(X), right)
        assert found.dtype == ll.bool_
        np.testing.assert_array_equal(found.numpy(), apply(X, right.numpy() if isinstance(right, Tensor) else right))
    np.testing.assert_array_equal(apply(2, ll.constant(X)).numpy(), apply(2, X))


@pytest.mark.parametrize("other", [None, "x", object(), {}])
def test_what_is_no_number_is_not_equal(other):
    x = ll.constant(1.0)
    assert (x == other) is False
    assert (x != other) is True
    with pytest.raises(TypeError):
        x < other  # noqa: B015


def test_nan_equals_nothing_and_lists_compare_by_element():
    nan = ll.constant(np.nan)
    assert not (nan == nan).item()  # noqa: PLR0124
    assert (ll.constant([1, 2]) == [1, 3]).tolist() == [True, False]


def test_methods_read_as_the_functions():
    x = ll.constant([[4.0, 1.0], [0.25, 9.0]])
    for name in (
        "sum",
        "mean",
        "max",
        "min",
        "prod",
        "exp",
        "log",
        "sqrt",
        "square",
        "tanh",
        "sin",
        "cos",
        "sigmoid",
        "sign",
    ):
        np.testing.assert_array_equal(getattr(x, name)().numpy(), getattr(ll, name)(x).numpy())
    assert x.T.tolist() == x.mT.tolist() == x.transpose().tolist() == [[4.0, 0.25], [1.0, 9.0]]
    assert x.reshape(4).shape == x.reshape((4,)).shape == (4,)
    assert x.expand_dims(0).squeeze(0).shape == (2, 2)
    assert (x > 1).where(x, 0.0).tolist() == [[4.0, 0.0], [0.0, 9.0]]
    assert x.argmax().item() == 3
    assert x.argmin(0).tolist() == [1, 0]
    assert (x > 0).all().item()
    assert not (x < 0).any().item()
    assert x.astype("int32").dtype == ll.int32
    assert x.to("cpu").cpu().device.short == "CPU:0"


def test_conj_of_a_real_tensor_and_astype_to_the_same_dtype_cost_nothing():
    x = ll.constant([1.0])
    assert x.conj() is x
    assert ll.conj(x) is x
    assert x.astype(ll.float32) is x
    assert x.broadcast_to((1,)) is x


def test_identity_positive_and_stop_gradient_are_tensors_of_their_own():
    x = ll.constant([1.0])
    for same in (ll.identity(x), +x, ll.stop_gradient(x), x + 0, x * 1):
        assert same is not x
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.stop_gradient(x * 2)
    assert tape.gradient(y, x) is None


def test_iteration_and_length():
    x = ll.constant([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert len(x) == 2


@pytest.mark.parametrize("number", [300, 255, -1, 2**70, -(2**70)])
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_with_ints_beyond_the_range_are_exact_however_they_run(name, number):
    compare, values = getattr(operator, name), [0, 200, 255]
    x = ll.constant(np.array(values, np.uint8))
    beside = lambda x: (compare(x, number), compare(number, x))  # noqa: E731
    with ll.GradientTape(), ll.GradientTape():
        taped = beside(x)
    for one, other in (beside(x), taped, ll.function(beside)(x)):
        assert one.tolist() == [compare(v, number) for v in values]
        assert other.tolist() == [compare(number, v) for v in values]
