"""What onnxruntime computes of an exported function for values at the ends of their dtypes, empty and complex ones."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'limelight[onnx]'")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'limelight[onnx]'")

import limelight as ll
from limelight.errors import ExportError
from limelight.export.to_onnx import check

spec = ll.TensorSpec
LARGE = {
    "uint32": [3, 2**31 + 5, 7, 2**32 - 1],
    "uint64": [3, 2**63 + 5, 7, 2**64 - 1],
    "int64": [-(2**63), 3, 2**63 - 1, 2**53 + 1],
    "int32": [-(2**31), 3, 2**31 - 1, 5],
}


@pytest.fixture
def compared(tmp_path):
    """Exports a function for arrays, and compares what it gives for them with what the file gives."""

    def compare(f, *arrays, signature=None):
        tensors = tuple(map(ll.constant, arrays))
        path = ll.export.onnx(f, tmp_path / "f.onnx", tensors if signature is None else signature, check=False)
        expected = f(*tensors)
        expected = [expected] if isinstance(expected, ll.Tensor) else expected
        found = check.run(path.read_bytes(), [np.asarray(x) for x in arrays])
        for mine, theirs in zip(expected, found, strict=True):
            assert not check.difference(mine.numpy(), theirs), (mine, theirs)

    return compare


@pytest.mark.parametrize("dtype", LARGE)
def test_large_whole_numbers_are_ordered_and_added_exactly(dtype, compared):
    def orders(x):
        last = x.at[ll.constant([0, 0])]
        return (
            ll.max(x), ll.min(x), ll.argmax(x), ll.argmin(x), ll.sort(x), ll.argsort(x), *ll.top_k(x, 2),
            ll.unique_values(x), last.max(x[:2]), last.min(x[:2]), ll.segment_max(x, [0, 1, 0, 1], 2),
        )  # fmt: skip

    def sums(x):
        return ll.sum(x), ll.prod(x), ll.prod(x.reshape((2, 2)), axis=0, keepdims=True), ll.sum(x[:0]), x**2, x**5

    compared(orders, np.array(LARGE[dtype], dtype))
    compared(sums, np.array(LARGE[dtype], dtype))


def test_powers_of_short_whole_numbers_keep_the_lowest_bits(compared):
    compared(lambda x, y: x**y, np.array([65535, 3], np.uint16), np.array([2, 4], np.uint16))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_shifts_by_more_than_there_are_bits(dtype, compared):
    x = np.array([1, 5, 100, 127, 3], dtype) * (-1 if dtype.startswith("i") else 1)
    by = np.array([0, 7, 8, 63, 64], dtype)
    compared(lambda x, y: (ll.bitwise_left_shift(x, y), ll.bitwise_right_shift(x, y)), x.astype(dtype), by)


def test_floor_division_by_infinity_and_of_the_least_number(compared):
    x = np.array([1.0, -1.0, 0.0, 2.5, -2.5], np.float32)
    for y in (np.inf, -np.inf, 2.0):
        compared(lambda x, y: x // y, x, np.float32(y))
    compared(lambda x, y: x // y, np.array([-(2**31), 7, -7], np.int32), np.array([-1, -1, 2], np.int32))


@pytest.mark.parametrize("step", [2, -1, -2])
def test_a_step_that_is_a_tensor_may_be_negative(step, compared):
    wide = spec((None,), ll.float64)
    compared(lambda x, i: (x[::i], x[2::i]), np.arange(5.0), np.int32(step), signature=(wide, spec((), ll.int32)))


def test_rows_of_unknown_number_roll_where_there_are_none(compared):
    compared(lambda x: ll.roll(x, 1, axis=0), np.zeros((0, 3), np.float32), signature=spec((None, 3)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "uint64"])
def test_a_loop_of_no_steps_stacks_rows_of_their_shape(dtype, compared):
    def loop(xs):
        return ll.scan(lambda c, x: (x, (c, x)), ll.zeros((3,), dtype=dtype), xs)[1]

    compared(loop, ll.zeros((0, 3), dtype=dtype).numpy(), signature=spec((None, 3), dtype))


def turned(x):
    return ll.astype(x, ll.complex64) * (1 + 2j)


COMPLEX = [
    lambda x: ll.abs(ll.cond(x.sum() > 0, lambda: turned(x) * 1j, lambda: -turned(x))),
    lambda x: ll.abs(ll.switch(ll.astype(x[0] > 0, "int32"), [lambda: turned(x), lambda: turned(x) + 1j])),
    lambda x: ll.abs(ll.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 1j), (ll.constant(0), turned(x)))[1]),
    lambda x: ll.real(ll.scan(lambda c, z: (c * z, c + z), ll.constant(1 + 1j), turned(x), reverse=True)[1]),
    ll.grad(lambda x: ll.cond(x[0] > 0, lambda: ll.abs(turned(x)).sum(), lambda: ll.imag(turned(x) ** 2).sum())),
]


@pytest.mark.parametrize("f", COMPLEX)
@pytest.mark.parametrize("sign", [1, -1])
def test_complex_numbers_in_branches_and_loops(f, sign, compared):
    compared(f, sign * np.array([1.0, -2.0, 3.0], np.float32))


def names_of(path):
    session = check.session(path.read_bytes())
    return [x.name for x in session.get_inputs()], [y.name for y in session.get_outputs()]


def test_arguments_and_results_keep_their_names(tmp_path):
    def f(v, c):
        return {"loss": v + 1.0, "c_1": c * 2.0, "v_3": ll.exp(v), "größe": c}

    found = names_of(ll.export.onnx(f, tmp_path / "f.onnx", (spec((3,)), spec((3,)))))
    assert found[0] == ["v", "c"]
    assert set(found[1]) == {"loss", "c_1", "v_3", "größe"}


def test_a_function_without_results_is_refused_in_words(tmp_path):
    with pytest.raises(ExportError, match="it returns no tensor"):
        ll.export.onnx(lambda x: None, tmp_path / "f.onnx", spec((3,)))


@pytest.mark.parametrize("name", ["cholesky", "upper cholesky", "triangular_solve", "upper triangular_solve", "solve"])
def test_a_decomposition_takes_nodes_in_proportion_to_its_columns(compared, tmp_path, name):
    onnx = pytest.importorskip("onnx")
    drawn = np.random.default_rng(3).normal(size=(24, 24))
    matrices = {n: (drawn @ drawn.T + 24 * np.eye(24))[:n, :n] for n in (8, 16, 24)}

    def f(a):
        if "triangular" in name:
            return ll.linalg.triangular_solve(a, a[:, :3], upper="upper" in name)
        return ll.linalg.solve(a, a[:, :3]) if name == "solve" else ll.linalg.cholesky(a, upper="upper" in name)

    counts = []
    for a in matrices.values():
        compared(ll.function(f), a)
        counts.append(len(onnx.load(tmp_path / "f.onnx").graph.node))
    assert counts[2] - counts[1] <= counts[1] - counts[0] + 2
