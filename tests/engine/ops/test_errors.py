"""Bad operands: what is refused, and what the message says to write instead; the same eager and staged."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, LimelightError, RunError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")

F32, I32, B = ll.constant([[1.0, 2.0, 3.0]]), ll.constant([[1, 2, 3]]), ll.constant([True, False])

BAD = {
    "shapes that do not broadcast": (
        lambda x: x + ll.ones((2, 2)),
        ShapeError,
        "add",
        "f32[1,3] and f32[2,2]",
        "axis -1",
    ),
    "three operands of which one is a scalar": (
        lambda x: ll.where(ll.ones((4, 1, 3, 1), dtype="bool"), ll.ones((2, 1, 3, 1)), 0.0 * ll.sum(x)),
        ShapeError,
        "where",
        "axis -4 has sizes 4 and 2;",
    ),
    "booleans added": (lambda x: B + B, DTypeError, "add", "bool", "ll.astype(x, ll.int32)"),
    "exp of integers": (lambda x: ll.exp(I32), DTypeError, "exp", "int32", "ll.astype(I32, ll.float32)"),
    "sum of booleans": (lambda x: B.sum(), DTypeError, "sum", "bool", "ll.astype(B, ll.int32)"),
    "integers and floats": (
        lambda x: x + I32,
        DTypeError,
        "add",
        "f32[1,3] and i32[1,3]",
        "ll.astype(I32, ll.float32), as `I32` is the i32[1,3]",
    ),
    "a fraction beside integers": (lambda x: I32 + 0.5, DTypeError, "add", "0.5", "ll.astype"),
    "complex numbers in order": (lambda x: x.astype("complex64") < 1j, DTypeError, "less", "complex64"),
    "complex as real": (lambda x: (x * 1).astype("complex64").astype("float32"), DTypeError, "astype", "ll.real(x)"),
    "bits of floats": (lambda x: x & x, DTypeError, "bitwise_and", "float32"),
    "a condition of numbers": (lambda x: ll.where(x, x, x), DTypeError, "where", "bool", "ll.bool_"),
    "inner sizes": (lambda x: x @ x, ShapeError, "matmul", "f32[1,3] @ f32[1,3]", "3", "1"),
    "a scalar as a matrix": (lambda x: x @ 2.0, ShapeError, "matmul", "x * y"),
    "a reshape that does not fit": (
        lambda x: x.reshape(
            2,
        ),
        ShapeError,
        "reshape",
        "3 elements",
        "(2,)",
    ),
    "two sizes of -1": (lambda x: x.reshape((-1, -1)), ShapeError, "reshape", "only one"),
    "an axis too many": (lambda x: x.sum(2), ArgumentError, "sum", "axis 2", "rank 2"),
    "an axis too many for a short vector": (
        lambda x: ll.nn.softmax(x[0], 1),
        ArgumentError,
        "softmax",
        "axis 1",
        "rank 1",
    ),
    "sizes of -2": (lambda x: x.reshape((-2, 3)), ShapeError, "reshape", "at least 0", "(-2, 3)"),
    "a size that is no integer": (lambda x: x.reshape((1.0, 3)), ShapeError, "reshape", "integers", "1.0"),
    "a size of zeros that is no integer": (lambda x: ll.zeros((2.5,)), ShapeError, "integers", "2.5"),
    "an axis twice": (lambda x: x.sum((0, -2)), ArgumentError, "sum", "twice"),
    "an axis of size 3 squeezed": (lambda x: x.squeeze(1), ShapeError, "squeeze", "size 3"),
    "the largest of nothing": (lambda x: x[:0].max(0), ShapeError, "max", "no elements"),
    "where the largest of nothing is": (lambda x: x[:0].argmax(0), ShapeError, "argmax", "no elements"),
    "an index out of bounds": (lambda x: x[0, 5], ArgumentError, "5", "out of bounds", "(1, 3)"),
    "too many indices": (lambda x: x[0, 0, 0], ArgumentError, "too many indices", "(1, 3)"),
    "two ellipses": (lambda x: x[..., ...], ArgumentError, "ellipsis"),
    "a float as an index": (lambda x: x[0.5], ArgumentError, "0.5", "no index"),
    "floats as indices": (lambda x: x[x], DTypeError, "index", "float32"),
    "a boolean as an index": (lambda x: x[True], ArgumentError, "True"),
    "a mask that does not fit": (lambda x: x[B], ShapeError, "mask", "(2,)", "(1,)"),
    "shapes that do not join": (
        lambda x: ll.concat([x, ll.ones((1, 2))]),
        ShapeError,
        "concat",
        "f32[1,3]",
        "f32[1,2]",
        "axis 1 has sizes 3 and 2",
    ),
    "ranks that do not join": (lambda x: ll.concat([x, x[0]]), ShapeError, "concat", "2 and 1 axes"),
    "shapes that do not stack": (lambda x: ll.stack([x, ll.ones((2, 3))]), ShapeError, "stack", "f32[2,3]"),
    "repeats that do not fit": (lambda x: ll.repeat(x, I32[0], axis=0), ShapeError, "repeat", "axis 0", "i32[3]"),
    "repeats of a half": (lambda x: ll.repeat(x, 1.5), DTypeError, "repeat", "integers"),
    "a permutation of floats": (lambda x: ll.random.permutation(2.5), DTypeError, "permutation", "f32[]"),
    "a permutation of -3": (lambda x: ll.random.permutation(-3), ArgumentError, "permutation", "-3"),
    "numbers from a letter": (lambda x: ll.arange("a"), DTypeError, "arange", "'a'"),
    "a shape that is no integer": (lambda x: ll.ones(2.0), ShapeError, "integers", "2.0"),
    "nothing to join": (lambda x: ll.concat([]), ArgumentError, "at least one"),
    "parts of unequal size": (lambda x: ll.split(x, 2, axis=1), ShapeError, "split", "2 equal parts"),
    "a vector's T": (lambda x: x[0].T, ShapeError, ".T", "ll.transpose"),
    "axes that are no order": (lambda x: ll.transpose(x, (0, 0)), ArgumentError, "transpose", "once"),
    "labels of another shape": (
        lambda x: ll.nn.softmax_cross_entropy(x, ll.constant([0, 1])),
        ShapeError,
        "labels",
        "(1,)",
    ),
    "a dropout rate of 1": (lambda x: ll.nn.dropout(x, 1.0), ArgumentError, "rate", "1.0"),
    "bounds of clip of another kind": (lambda x: ll.clip(I32, 0.5), DTypeError, "clip", "0.5"),
    "margins of another kind": (lambda x: ll.pad(I32, 1, value=0.5), DTypeError, "pad", "0.5"),
    "negative margins": (lambda x: ll.pad(x, -1), ArgumentError, "pad", "-1"),
    "a step of 0": (lambda x: ll.arange(0, 5, 0), ArgumentError, "step"),
    "a value that does not fit": (lambda x: ll.full((2,), 0.5, dtype="int32"), DTypeError, "0.5", "int32"),
    "random integers of an empty range": (lambda x: ll.random.integers(3, 3), ArgumentError, "empty"),
    "an outer product of matrices": (lambda x: ll.outer(x, x), ShapeError, "outer", "reshape"),
    "a diagonal of a vector": (lambda x: ll.diagonal(x[0]), ShapeError, "diagonal", "ll.diag"),
    "pairs of axes that differ": (lambda x: ll.tensordot(x, x, axes=((0,), (1,))), ShapeError, "tensordot", "size"),
}


HALVES = {
    "sum": lambda x: ll.sum(x, axis=0.5),
    "max": lambda x: ll.max(x, axis=(0, 0.5)),
    "argmax": lambda x: ll.argmax(x, axis=0.5),
    "cumsum": lambda x: ll.cumsum(x, axis=0.5),
    "sort": lambda x: ll.sort(x, axis=0.5),
    "take": lambda x: ll.take(x, I32[0], axis=0.5),
    "softmax": lambda x: ll.nn.softmax(x, axis=0.5),
    "concat": lambda x: ll.concat([x, x], axis=0.5),
    "stack": lambda x: ll.stack([x, x], axis=0.5),
    "split": lambda x: ll.split(x, [1, 0.5], axis=1),
    "flip": lambda x: ll.flip(x, axis=0.5),
    "roll": lambda x: ll.roll(x, 0.5),
    "tile": lambda x: ll.tile(x, 0.5),
    "moveaxis": lambda x: ll.moveaxis(x, 0.5, 1),
    "expand_dims": lambda x: ll.expand_dims(x, axis=0.5),
    "top_k": lambda x: ll.top_k(x, 0.5),
    "one_hot": lambda x: ll.one_hot(I32, 0.5),
    "segment_sum": lambda x: ll.segment_sum(x, I32[:, 0], 0.5),
    "diag": lambda x: ll.diag(x[0], offset=0.5),
    "tril": lambda x: ll.tril(x, k=0.5),
    "tensordot": lambda x: ll.tensordot(x, x, axes=0.5),
    "vecdot": lambda x: ll.vecdot(x, x, axis=0.5),
    "vector_norm": lambda x: ll.linalg.vector_norm(x, axis=0.5),
    "fft": lambda x: ll.fft.fft(x, n=0.5),
    "fftn": lambda x: ll.fft.fftn(x, axes=(0, 0.5)),
    "eye": lambda x: ll.eye(0.5),
    "linspace": lambda x: ll.linspace(0.0, 1.0, 0.5),
    "random.integers": lambda x: ll.random.integers(0.5),
}


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_half_a_number_is_no_axis_and_no_count(name, stage):
    with pytest.raises(ArgumentError, match=rf"^{name}: .* must be an int(, a tuple.*)?, got 0.5 \(float\)"):
        stage(HALVES[name])(F32)


@pytest.mark.parametrize("name", BAD)
def test_bad_operands(name):
    call, kind, *told = BAD[name]
    messages = []
    for run in (lambda: call(F32), lambda: taped(call), lambda: ll.function(call)(F32)):
        with pytest.raises(kind) as caught:
            run()
        assert isinstance(caught.value, LimelightError)
        messages.append(str(caught.value))
    for message in messages:
        for words in told:
            assert words in message
    assert messages[0].split(" (")[0] == messages[2].split(" (")[0], "eager and staged say it differently"


def taped(call):
    with ll.GradientTape() as tape:
        tape.watch(F32)
        call(F32)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: ll.take(x, i, axis=1),
        lambda x, i: x[0, i],
        lambda x, i: ll.nn.softmax_cross_entropy(x, i[:1]),
    ],
)
def test_indices_out_of_bounds_are_noticed_at_run_time(call):
    for bad in ([7, 0], [-7, 0]):
        for run in (call, ll.function(call)):
            with pytest.raises((RunError, ArgumentError), match=r"-?7|out of bounds"):
                run(F32, ll.constant(bad))


def test_a_label_below_zero_is_no_class():
    with pytest.raises(ArgumentError, match="from 0 to 2"):
        ll.nn.softmax_cross_entropy(F32, ll.constant([-1]))


QUIET = """
import warnings
import numpy as np
import limelight as ll
odd = ll.constant(np.array([0.0, -1.0, np.inf, -np.inf, np.nan, 3e38], np.float32))
unary = [
    *[getattr(ll, name) for name in "sqrt rsqrt reciprocal exp expm1 log log1p sigmoid".split()],
    *[getattr(ll, name) for name in "tan asin acos sinh cosh square".split()],
    *[getattr(ll, name) for name in "sum prod mean var std logsumexp max cumsum sign abs floor isnan".split()],
    *[getattr(ll.nn, name) for name in "softmax relu log_softmax softplus gelu".split()],
    lambda x: ll.clip(x, 0.0, 1.0),
    lambda x: x.astype("int32"),
    lambda x: x.astype("float16"),
    lambda x: ll.mean(x[:0]),
    lambda x: ll.var(x[:1], correction=1),
]
names = "add subtract multiply divide floor_divide remainder pow atan2 maximum less outer dot".split()
binary = [*[getattr(ll, name) for name in names], ll.nn.sigmoid_cross_entropy]
for function in unary + [lambda x, f=f: f(x, x[::-1]) for f in binary] + [lambda x, f=f: f(x, 0.0) for f in binary[:9]]:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = odd.astype(dtype)
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        if y.dtype == x.dtype:
            tape.gradient(y, x)
        ll.function(function)(x)
whole = ll.constant([5, 0, -3])
for function in (ll.floor_divide, ll.remainder):
    function(whole, ll.constant([0, 0, 0]))
print("done")
"""


@pytest.mark.slow  # starts another Python
def test_no_warning_of_numpy_reaches_anyone():
    """Not even where warnings are errors: tensors follow IEEE 754 in silence."""
    for options in ([], ["-W", "error"]):
        code = f"import warnings, limelight as ll\nwarnings.simplefilter('ignore', ll.errors.RetracingWarning)\n{QUIET}"
        done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=False)
        heard = [line for line in done.stderr.splitlines() if "RetracingWarning" not in line]
        assert done.stdout == "done\n", done.stderr
        assert not [line for line in heard if "RuntimeWarning" in line], done.stderr


def test_infinities_and_nans_are_as_in_numpy():
    x = np.array([0.0, -1.0, np.inf], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ll.log(ll.constant(x)).numpy(), np.log(x))
        np.testing.assert_array_equal((1.0 / ll.constant(x)).numpy(), 1.0 / x)
        np.testing.assert_array_equal(ll.sigmoid(ll.constant(x)).numpy(), 1 / (1 + np.exp(-x)))


def test_the_usual_name_of_the_inverted_bits_leads_to_the_standards():
    with pytest.raises(AttributeError, match=r"write ll\.bitwise_invert"):
        _ = ll.bitwise_not
