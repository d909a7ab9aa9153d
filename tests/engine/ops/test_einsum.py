"""einsum: any equation as NumPy has it, the order of contractions, unknown sizes, and what its errors say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.ops.linalg._einsum_notation import contraction_order

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every example is staged anew

SIZES = {"a": 2, "b": 3, "c": 1, "d": 3, "e": 0}
ODD = np.array([[1.0, np.inf], [np.nan, 0.0]])


@st.composite
def equations(draw):
    """An equation, and operands that fit it; some axes of size 1 where others have more."""
    labels = st.text("abcde" if draw(st.booleans()) else "abcd", max_size=3)
    terms = draw(st.lists(labels, min_size=1, max_size=4))
    present = sorted(set("".join(terms)))
    output = "".join(draw(st.permutations(present)))[: draw(st.integers(0, len(present)))]
    arrays = []
    for i, term in enumerate(terms):
        narrow = draw(st.sets(st.sampled_from(term))) if term and draw(st.booleans()) else set()
        shape = [1 if label in narrow else SIZES[label] for label in term]
        arrays.append(np.random.default_rng(i).uniform(-1, 1, shape))
    return ",".join(terms) + (f"->{output}" if draw(st.booleans()) else ""), arrays


@pytest.mark.slow  # draws equations
@given(equations())
@settings(max_examples=150, deadline=None)
def test_any_equation_is_as_in_numpy(example):
    equation, arrays = example
    found = ll.einsum(equation, *map(ll.constant, arrays))
    wanted = np.einsum(equation, *arrays)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)


@given(equations())
@settings(max_examples=25, deadline=None)
def test_gradients_are_products_of_the_others(example):
    """The derivative of Σ einsum in the direction of an operand is einsum with that operand replaced: it is linear."""
    equation, arrays = example
    tensors = [ll.constant(x) for x in arrays]
    with ll.GradientTape() as tape:
        tape.watch(tensors)
        total = ll.sum(ll.einsum(equation, *tensors))
    for i, g in enumerate(tape.gradient(total, tensors)):
        towards = np.random.default_rng(9).uniform(-1, 1, arrays[i].shape)
        wanted = np.sum(np.einsum(equation, *arrays[:i], towards, *arrays[i + 1 :]))
        assert g.shape == arrays[i].shape
        np.testing.assert_allclose(np.sum(g.numpy() * towards), wanted, rtol=1e-10, atol=1e-10)


@given(equations())
@settings(max_examples=15, deadline=None)
def test_a_trace_of_unknown_sizes_gives_the_same(example):
    equation, arrays = example
    if any(label.count(c) > 1 for label in equation.split("->")[0].split(",") for c in label):
        arrays = [np.ones_like(x) for x in arrays]
    signature = [ll.TensorSpec((None,) * x.ndim, "float64") for x in arrays]
    F = ll.function(lambda *xs: ll.einsum(equation, *xs), input_signature=signature)
    np.testing.assert_allclose(F(*arrays).numpy(), np.einsum(equation, *arrays), rtol=1e-12, atol=1e-12)


def test_the_ellipsis_broadcasts_from_the_right():
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(3, 4)
    for equation in ("...i,...i->...", "...i,...i", "...,..."):
        np.testing.assert_allclose(ll.einsum(equation, x, y).numpy(), np.einsum(equation, x, y))


def test_matrix_products_are_matrix_products():
    """So that they are as fast, and optimised as such."""
    for equation in ("ij,jk->ik", "ij,kj->ik", "ji,jk->ik", "ij,jk->ki", "bij,bjk->bik", "...ij,...jk->...ik"):
        lead = (2,) if "b" in equation or "." in equation else ()
        F = ll.function(lambda x, y, e=equation: ll.einsum(e, x, y))
        graph = F.get_concrete_function(ll.TensorSpec((*lead, 3, 3)), ll.TensorSpec((*lead, 3, 3))).graph
        ops = {str(node.op) for node in graph.nodes}
        assert ops <= {"matmul", "matrix_transpose"}, (equation, ops)
        assert "matmul" in ops, equation


def test_the_cheapest_pair_goes_first():
    shapes = ((100, 2), (2, 100), (100, 2))
    assert contraction_order(("ij", "jk", "kl"), "il", shapes) == ((1, 2), (0, 1))
    assert contraction_order(("ij", "jk", "kl"), "il", ((2, 100), (100, 2), (2, 100))) == ((0, 1), (0, 1))


@pytest.mark.parametrize("count", [5, 8])
def test_many_operands(count):
    arrays = [np.random.default_rng(i).uniform(-1, 1, (3, 3)) for i in range(count)]
    labels = "abcdefghij"
    equation = ",".join(labels[i : i + 2] for i in range(count)) + f"->a{labels[count]}"
    np.testing.assert_allclose(ll.einsum(equation, *arrays).numpy(), np.linalg.multi_dot(arrays), rtol=1e-10)
    outer = ",".join(labels[:count]) + "->" + labels[:count]
    np.testing.assert_allclose(
        ll.einsum(outer, *[x[0, :2] for x in arrays]).numpy(), np.einsum(outer, *[x[0, :2] for x in arrays])
    )


def test_not_finite_numbers_pass_through_quietly():
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ll.einsum("ij,jk->ik", ODD, ODD).numpy(), ODD @ ODD)
        np.testing.assert_array_equal(ll.einsum("i,ij->j", ODD[0], ODD).numpy(), ODD[0] @ ODD)


I2, F23, F34 = ll.ones((2, 2), dtype=ll.int32), ll.ones((2, 3)), ll.ones((3, 4))
REFUSED = {
    "sizes": (("ij,jk->ik", F23, ll.ones((4, 5))), ShapeError, "'j' has size 3 in operand 0.*size 4 in operand 1"),
    "diagonal": (("ii->i", F23), ShapeError, "'i' stands for axes of sizes 2 and 3 in operand 0"),
    "rank": (("ijk->", F23), ShapeError, "'ijk'.*names 3 axes, but operand 0 has 2"),
    "more axes": (("i->i", F23), ShapeError, "put '...' where the others are"),
    "operands": (("ij,jk->ik", F23), ArgumentError, "2 operands between its commas, got 1"),
    "output": (("ij->ijk", F23), ArgumentError, "'k', which no operand has"),
    "twice": (("ij->ii", F23), ArgumentError, "label 'i' 2 times"),
    "letters": (("i1->i", F23), ArgumentError, "'1' in 'i1->i': write a letter"),
    "arrows": (("ij->i->j", F23), ArgumentError, "write a letter"),
    "nothing": (("",), ArgumentError, "an operand at least"),
    "no equation": ((F23, F34), ArgumentError, "ll.einsum\\('ij,jk->ik', x, y\\)"),
    "dots": (("i..j", F23), ArgumentError, "'\\.' in"),
    "kinds": (("ij,jk", ll.ones((2, 2)), I2), DTypeError, "do not mix"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why_eager_and_staged(case):
    given_, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        ll.einsum(*given_)
    if case != "no equation":
        equation, *operands = given_
        with pytest.raises(error, match=words):
            ll.function(lambda *xs: ll.einsum(equation, *xs))(*operands)


def test_a_clash_found_at_run_time_names_the_label_too():
    F = ll.function(lambda x, y: ll.einsum("ij,jk->ik", x, y), input_signature=[ll.TensorSpec((None, None))] * 2)
    assert F(F23, F34).shape == (2, 4)
    with pytest.raises(ShapeError, match=r"'j' has size 3 in operand 0.*size 4"):
        F(F23, ll.ones((4, 4)))
