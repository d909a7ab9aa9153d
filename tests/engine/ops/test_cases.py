"""Every case, multiplied by dtype, memory layout and way to run; and every gradient against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES
from opcase import FULL, TOLERANCE, Case, call_of, each, one_of_each, op_of, thinned, wide
from ways import STAGED_WAYS, WAYS, checked, of_unknown_sizes, staged

import limelight as ll
from limelight.core import dtypes
from limelight.core.op import all_ops
from limelight.core.tensor import wrap
from limelight.explain.retracing import restaging

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every case is staged anew

# --- layouts


def strided(array):
    """The same values with gaps between them."""
    if not array.ndim:
        return np.array(array)
    room = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    room[..., ::2] = array
    return room[..., ::2]


def backwards(array):
    """The same values, held in the opposite order and read backwards."""
    every = (slice(None, None, -1),) * array.ndim
    return np.array(array[every])[every] if array.ndim else np.array(array)


LAYOUTS = {
    "plain": np.array,
    "column-major": lambda array: np.array(array, order="F"),
    "strided": strided,
    "backwards": backwards,
}


KERNELS = {"eager", "elsewhere"}
"""The ways that differ in their kernels, which are what meets a layout; the others surround the eager one."""


def layouts(arrays):
    """Those that differ for arrays of these shapes: a row is held the same in both orders, a number in all ways."""
    found = {}
    for layout, arrange in LAYOUTS.items():
        found.setdefault(tuple(steps(arrange(array)) for array in arrays), (layout, arrange))
    return list(found.values())[: None if FULL else 1]


def steps(array):
    """The strides along which there is something to step over."""
    return tuple(step for n, step in zip(array.shape, array.strides, strict=True) if n > 1) if array.size else ()


def tuple_of(result):
    return result if isinstance(result, tuple) else (result,)


@each([(case,) for case in thinned(CASES, call_of)])
def test_values_dtypes_and_shapes(case: Case):
    for dtype in case.tried:
        drawn = Drawn(case, dtype)
        found = layouts(drawn.arrays)
        for layout, arrange in found:
            for way, run in WAYS.items():
                if way in KERNELS or layout == found[-1][0]:
                    drawn.agrees(run, arrange, f"{dtype.name}, {way}, {layout}")


@each([(case,) for case in thinned(CASES, op_of)])
def test_staged_as_eager(case: Case):
    """With one dtype of each kind: the kernels are the eager ones, and tables meet all dtypes in tests of their own."""
    kinds = {dtypes.kind(dtype): dtype for dtype in case.tried}
    for dtype in kinds.values() if FULL else {dtypes.float32}.intersection(case.tried) or case.tried[:1]:
        drawn = Drawn(case, dtype)
        ways = dict(STAGED_WAYS)
        if not case.hides_sizes:
            del ways["of unknown sizes"]
        for way, run in ways.items():
            drawn.agrees(run, strided, f"{dtype.name}, {way}")


class Drawn:
    """A case with a dtype: its inputs, and what NumPy says in 64 bits, drawn and computed once for all ways."""

    def __init__(self, case, dtype):
        self.case, self.dtype = case, dtype
        self.arrays = case.arrays(dtype)
        if case.reference is not None:
            with np.errstate(all="ignore"):
                self.wanted = tuple_of(case.reference(*map(wide, self.arrays)))

    def agrees(self, run, arrange, where):
        """Runs it on arrays laid out in one way, and compares with NumPy; the inputs must stay as they are."""
        case, out_dtype = self.case, self.case.out_dtype(self.dtype)
        if case.reference is None:
            ll.random.seed(3)  # it may draw
        tensors = [wrap(arrange(array)) for array in self.arrays]
        found = tuple_of(run(case.call, tensors))
        if case.reference is None:
            assert all(part.dtype is out_dtype for part in found), where
            case.check(*found, tensors)
        else:
            assert len(found) == len(self.wanted), where
            for part, value in zip(found, self.wanted, strict=True):
                agrees(part, value, out_dtype, where)
        for tensor, array in zip(tensors, self.arrays, strict=True):
            assert tensor.numpy().tobytes() == array.tobytes(), f"{where}: an input was changed"


def agrees(found, value, dtype, where):
    assert found.dtype is dtype, f"{where}: {found.dtype}, wanted {dtype}"
    assert found.shape == np.shape(value), f"{where}: {found.shape}, wanted {np.shape(value)}"
    with np.errstate(all="ignore"):
        wanted = np.asarray(value).astype(dtype)
    if found.numpy().tobytes() == wanted.tobytes():
        return  # which is most often so, and a hundredth of the work
    tolerance = TOLERANCE.get(dtype, 0)
    np.testing.assert_allclose(wide(found.numpy()), wide(wanted), rtol=tolerance, atol=tolerance, err_msg=where)


# --- gradients

DIFFERENTIABLE = [case for case in CASES if case.has_gradient and case.inputs]


def in_doubles(case):
    return [dtype for dtype in (dtypes.float64, dtypes.complex128) if dtype in case.accepted]


def gradient_runs(only_smooth=False, of_each_call=False):
    """Cases with dtypes; or of the cases that call an op in one way the largest, where a run takes long."""
    cases = [case for case in DIFFERENTIABLE if in_doubles(case) and (case.smooth or not only_smooth)]
    cases = one_of_each(cases, call_of) if of_each_call else cases
    return [(case, dtype) for case in thinned(cases, op_of) for dtype in in_doubles(case)[: None if FULL else 1]]


def weights_like(outputs, seed=1000):
    """Random output gradients; None where the output has none."""
    rng = np.random.Generator(np.random.Philox(seed))
    found = []
    for out in outputs:
        drawn = rng.uniform(-1, 1, out.shape)
        drawn = drawn + 1j * rng.uniform(-1, 1, out.shape) if out.dtype.kind == "c" else drawn
        found.append(ll.constant(np.asarray(drawn, out.dtype)))
    return found


def pulled_back(function, tensors, weights):
    """The gradient of each tensor for the given output gradients."""
    with ll.GradientTape() as tape:
        watched = [x for x in tensors if dtypes.is_inexact(x.dtype)]
        tape.watch(watched)
        outputs = tuple_of(function(*tensors))
    return tape.gradient(list(outputs), watched, output_gradients=weights)


def differences(function, arrays, weights, step=1e-6):
    """The same by central differences: d Re<w, f(x)> for each real and imaginary part of each element."""
    found = []
    for i, array in enumerate(arrays):
        if array.dtype.kind not in "fc":
            continue
        slope = np.zeros(array.shape, array.dtype)
        for place in np.ndindex(array.shape):
            for unit in (1.0, 1j) if array.dtype.kind == "c" else (1.0,):
                ends = []
                for sign in (1, -1):
                    moved = [np.array(a) for a in arrays]
                    moved[i][place] += sign * step * unit
                    ends.append(real_product(weights, tuple_of(function(*map(ll.constant, moved)))))
                slope[place] += unit * (ends[0] - ends[1]) / (2 * step)
        found.append(slope)
    return found


def same_slopes(found, function, arrays, weights, step=1e-6):
    """Each gradient against one central difference, along a direction in which every element moves.

    That is two runs for an operand, where `differences` takes two for each of its elements: a gradient that is wrong
    anywhere has another slope along it.
    """
    rng = np.random.Generator(np.random.Philox(4000))
    places = [i for i, array in enumerate(arrays) if array.dtype.kind in "fc"]
    for i, g in zip(places, found, strict=True):
        array = arrays[i]
        along = np.asarray(rng.uniform(0.5, 1.0, array.shape) * rng.choice([-1.0, 1.0], array.shape))
        if array.dtype.kind == "c":
            along = along * np.exp(1j * rng.uniform(0.0, 2 * np.pi, array.shape))
        ends = [[*arrays[:i], array + sign * step * along, *arrays[i + 1 :]] for sign in (1, -1)]
        more, less = [real_product(weights, tuple_of(function(*map(ll.constant, moved)))) for moved in ends]
        assert g is None or (g.shape, g.dtype) == (array.shape, array.dtype)
        parts = np.zeros(()) if g is None else (np.conj(g.numpy()) * along).real
        slack = 2e-7 + 2e-5 * np.abs(parts).max(initial=0.0)
        np.testing.assert_allclose(parts.sum(), (more - less) / (2 * step), rtol=2e-5, atol=slack)


def real_product(weights, outputs):
    """Re<w, f(x)>."""
    return sum(np.sum(np.conj(w.numpy()) * out.numpy()).real for w, out in zip(weights, outputs, strict=True))


def same_gradients(found, wanted, tensors):
    watched = [x for x in tensors if dtypes.is_inexact(x.dtype)]
    for g, slope, x in zip(found, wanted, watched, strict=True):
        if g is None:
            np.testing.assert_allclose(slope, 0, atol=1e-7)
        else:
            assert g.shape == x.shape
            assert g.dtype is x.dtype
            np.testing.assert_allclose(g.numpy(), slope, rtol=2e-5, atol=2e-7)


@each(gradient_runs())
def test_gradients(case: Case, dtype):
    arrays = case.arrays(dtype)
    tensors = [ll.constant(array) for array in arrays]
    weights = weights_like(tuple_of(case.call(*tensors)))
    found = checked(lambda *xs: pulled_back(case.call, xs, weights), tensors)
    assert any(g is not None for g in found), "nothing is connected"
    same_gradients(found, differences(case.call, arrays, weights), tensors)


@pytest.mark.slow  # each op's gradient, differentiated
@each(gradient_runs(only_smooth=True, of_each_call=True))
def test_second_order(case: Case, dtype):
    """Eagerly, and of a graph that was traced without knowing any size."""
    arrays = case.arrays(dtype)
    tensors = [ll.constant(array) for array in arrays]
    weights = weights_like(tuple_of(case.call(*tensors)))

    def gradient_of(function):
        return lambda *xs: tuple(g for g in pulled_back(function, xs, weights) if g is not None)

    gradient = gradient_of(case.call)
    outer = weights_like(gradient(*tensors), 2000)
    found = checked(lambda *xs: pulled_back(gradient, xs, outer), tensors)
    same_slopes(found, gradient, arrays, outer)
    if case.hides_sizes:
        signature = [ll.TensorSpec((None,) * x.ndim, x.dtype) for x in tensors]
        F = ll.function(case.call, input_signature=signature)
        watched = [x for x in arrays if x.dtype.kind in "fc"]
        eager = [np.zeros_like(x) if g is None else g.numpy() for g, x in zip(found, watched, strict=True)]
        same_gradients(pulled_back(gradient_of(F), tensors, outer), eager, tensors)


@pytest.mark.slow  # stages each op's gradient
@each(gradient_runs(of_each_call=True))
def test_staged_gradients(case: Case, dtype):
    """A tape inside a staged function, and one around it, with sizes known and unknown."""
    tensors = [ll.constant(array) for array in case.arrays(dtype)]
    weights = weights_like(tuple_of(case.call(*tensors)))

    def inside(*xs):
        return tuple(g for g in pulled_back(case.call, xs, weights) if g is not None)

    wanted = [g.numpy() for g in inside(*tensors)]
    ways = {"inside": staged(inside, tensors), "around": around(ll.function(case.call), tensors, weights)}
    if case.hides_sizes:
        signature = [ll.TensorSpec((None,) * x.ndim, x.dtype) for x in tensors]
        ways["inside, of unknown sizes"] = of_unknown_sizes(inside, tensors)
        ways["around, of unknown sizes"] = around(ll.function(case.call, input_signature=signature), tensors, weights)
    for way, found in ways.items():
        for g, value in zip(found, wanted, strict=True):
            np.testing.assert_allclose(g.numpy(), value, rtol=1e-10, atol=1e-12, err_msg=way)


def around(F, tensors, weights):
    restaging.forget()
    return [g for g in pulled_back(F, tensors, weights) if g is not None]


@each([(case,) for case in thinned(DIFFERENTIABLE, op_of)])
def test_gradients_have_the_dtype_and_shape_of_their_source(case: Case):
    for dtype in {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.complex64} & set(case.accepted):
        tensors = [ll.constant(array) for array in case.arrays(dtype)]
        weights = weights_like(tuple_of(case.call(*tensors)))
        found = checked(lambda *xs, weights=weights: pulled_back(case.call, xs, weights), tensors)
        for g, x in zip(found, [x for x in tensors if dtypes.is_inexact(x.dtype)], strict=True):
            assert g is None or (g.dtype is x.dtype and g.shape == x.shape), dtype.name


# --- nothing is forgotten

ELSEWHERE = {
    "constant": "tests/engine/graph",
    "read_variable": "the tests of variables",
    "assign": "the tests of variables",
    "assign_add": "the tests of variables",
    "assign_sub": "the tests of variables",
    "assign_slice": "the tests of variables",
    "assign_scatter": "the tests of variables",
    "assign_scatter_add": "the tests of variables",
    "assign_scatter_sub": "the tests of variables",
    "assign_scatter_mul": "the tests of variables",
    "assign_scatter_max": "the tests of variables",
    "assign_scatter_min": "the tests of variables",
    "assign_slice_add": "the tests of variables",
    "assign_slice_sub": "the tests of variables",
    "split_ends": "the tests of sizes",
    "nothing": "the tests of py_func",
    "py_func": "the tests of py_func",
    "py_func_forward": "the tests of py_func",
    "py_func_backward": "the tests of py_func",
    **dict.fromkeys(("begin_pass", "has_next_element", "next_element"), "the tests of data"),
    **{f"table_{what}": "the tests of lookup" for what in ("contains", "export", "insert", "lookup", "remove", "size")},
    "split_generator": "test_splitting.py, of random",
    "debug_print": "the tests of debug",
    "debug_check": "the tests of debug",
    "checked_index": "the tests of switch, vectorised",
    "random_gamma": "test_random_gradients.py; its values have a case",
    "random_log_gamma": "test_random_gradients.py; its values have a case",
}
"""Ops that are no functions of tensors alone, and where they are tested."""


def test_every_op_has_a_case():
    higher_order = {op.name for op in all_ops().values() if op.higher_order}
    ours = set(all_ops()) - set(ELSEWHERE) - higher_order
    missing = ours - {case.op for case in CASES}
    assert not missing, f"ops without a case: {sorted(missing)}"


def test_every_op_has_a_gradient_or_says_why_not():
    silent = [op.name for op in all_ops().values() if op.vjp is None and not op.why_no_gradient]
    assert not silent


def test_every_gradient_is_also_told_in_maths():
    untold = [op.name for op in all_ops().values() if op.vjp and not op.maths and not op.higher_order]
    assert not untold, f"ops without maths: {untold}"


def test_a_differentiable_op_is_checked_for_it():
    checked_ops = {case.op for case in DIFFERENTIABLE if in_doubles(case)}
    skipped = {op.name for op in all_ops().values() if op.vjp and not op.higher_order} - checked_ops - set(ELSEWHERE)
    assert not skipped, f"ops whose gradient no case checks: {sorted(skipped)}"
