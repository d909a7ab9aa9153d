"""Convolutions on other devices agree with the CPU's: cuDNN's, on a pretended GPU, and XLA's."""

from __future__ import annotations

import importlib
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretended_gpu import pretended_gpus

import limelight as ll
from limelight.ops.nn import _cudnn_convolution

MARGINS = {"same": "same", "valid": "valid", "even": 1, "uneven": (0, 2)}
SETTINGS = st.fixed_dictionaries(
    {
        "space": st.lists(st.integers(5, 8), min_size=1, max_size=3),
        "window": st.integers(1, 3),
        "stride": st.integers(1, 3),
        "dilation": st.integers(1, 2),
        "groups": st.integers(1, 3),
        "margins": st.sampled_from(sorted(MARGINS)),
        "batch": st.integers(0, 2),
    }
)


@pytest.fixture(scope="module")
def cupy(no_gpu):
    if no_gpu is None:
        pytest.skip("a real GPU is here, and its kernels would be taken for those of the pretended one")
    with pretended_gpus() as module:
        yield module


def operands(of, dtype):
    rng, n, groups = np.random.default_rng(1), len(of["space"]), of["groups"]
    x = rng.standard_normal((of["batch"], *of["space"], 2 * groups)).astype(dtype)
    return ll.constant(x), ll.constant(rng.standard_normal((*[of["window"]] * n, 2, 3 * groups)).astype(dtype))


def with_gradients(of, x, w):
    """The convolution, both gradients, and the second ones of the filters, which have all three forms in them."""
    margins = MARGINS[of["margins"]]
    padding = [margins] * len(of["space"]) if isinstance(margins, tuple) else margins
    with ll.GradientTape(persistent=True) as outer:
        outer.watch([x, w])
        with ll.GradientTape() as tape:
            tape.watch([x, w])
            y = ll.nn.conv(x, w, of["stride"], padding, of["dilation"], of["groups"])
            loss = ll.sum(y * y)
        gradients = tape.gradient(loss, [x, w])
        total = ll.sum(gradients[0] ** 2)
    return y, *gradients, *outer.gradient(total, [x, w])


def agree(found, wanted, digits):
    for a, b in zip(found, wanted, strict=True):
        most = np.abs(b.numpy().astype("float64")).max(initial=0.0)
        assert np.abs(a.numpy().astype("float64") - b.numpy()).max(initial=0.0) <= digits * most


@settings(max_examples=20)
@given(SETTINGS, st.sampled_from(["float32", "float64"]))
def test_cudnn(cupy, of, dtype):
    x, w = operands(of, dtype)
    wanted = with_gradients(of, x, w)
    cupy._hardware.counts.pop("cudnn", None)
    found = with_gradients(of, x.to("GPU:0"), w.to("GPU:0"))
    ran = cupy._hardware.counts.pop("cudnn", 0)
    assert bool(ran) == (dtype == "float32" and of["batch"] > 0)
    assert {(y.device.short, type(y._data)) for y in found} == {("GPU:0", cupy.ndarray)}
    agree(found, wanted, 1e-5 if dtype == "float32" else 1e-12)


def test_what_cudnn_has_no_plan_for_runs_without_it(cupy):
    x, w = np.ones((1, 1001, 2), "float32"), np.ones((3, 2, 1), "float32")
    cupy._hardware.counts.pop("cudnn", None)
    found = ll.nn.conv(ll.constant(x).to("GPU:0"), ll.constant(w).to("GPU:0"))
    assert cupy._hardware.counts.pop("cudnn", 0) == 0
    np.testing.assert_array_equal(found.numpy(), ll.nn.conv(ll.constant(x), ll.constant(w)).numpy())


def test_without_the_front_end(cupy, monkeypatch):
    monkeypatch.setattr(_cudnn_convolution, "library", lambda: None)
    of = {"space": [5, 5], "window": 3, "stride": 1, "dilation": 1, "groups": 1, "margins": "same", "batch": 2}
    x, w = operands(of, "float32")
    agree(with_gradients(of, x.to("GPU:0"), w.to("GPU:0")), with_gradients(of, x, w), 1e-5)


def test_operands_in_another_order_in_memory(cupy):
    x = np.random.default_rng(0).standard_normal((3, 6, 5, 2)).astype("float32")
    w = np.random.default_rng(1).standard_normal((2, 4, 3, 3)).astype("float32")

    def turned(x, w):
        return ll.nn.conv(ll.permute_dims(x, (3, 1, 2, 0)), ll.permute_dims(w, (2, 3, 1, 0))[:, :, :, :1])

    wanted = turned(ll.constant(x), ll.constant(w[:, :3]).to("CPU:0"))
    found = turned(ll.constant(x).to("GPU:0"), ll.constant(w[:, :3]).to("GPU:0"))
    agree([found], [wanted], 1e-5)


def test_operands_that_begin_anywhere_in_memory(cupy):
    """Not only at multiples of 16 bytes, which is all that cuDNN takes."""
    x = np.random.default_rng(0).standard_normal((4, 5, 5, 3)).astype("float32")
    w = np.random.default_rng(1).standard_normal((4, 3, 3, 3, 1)).astype("float32")

    def gradients(x, w):
        x, w = x[1:], w[3]
        with ll.GradientTape() as tape:
            tape.watch([x, w])
            y = ll.nn.conv(x, w)
        return y, *tape.gradient(y, [x, w])

    cupy._hardware.counts.pop("cudnn", None)
    found = gradients(ll.constant(x).to("GPU:0"), ll.constant(w).to("GPU:0"))
    assert cupy._hardware.counts.pop("cudnn") == 3
    agree(found, gradients(ll.constant(x), ll.constant(w)), 1e-5)


def plans_of(run):
    """The kernels that the plans made by `run` were told to avoid, each with its dtype."""
    made, planned = set(), _cudnn_convolution._planned

    def noted(cudnn, key, handle):
        plan = planned(cudnn, key, handle)
        made.add((key.dtype.name, tuple(sorted(note.name for note in plan.graph._avoided))))
        return plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cudnn_convolution, "_planned", noted)
        run()
    return made


def test_tf32_is_a_setting(cupy):
    x, w = ll.ones((1, 9, 9, 7)).to("GPU:0"), ll.ones((3, 3, 7, 5)).to("GPU:0")
    rounded = ("DOWN_CONVERT_INPUTS", "NONDETERMINISTIC")  # never to float16, which ends at 65504
    assert plans_of(lambda: ll.nn.conv(x, w)) == {("float32", rounded)}
    with ll.config.tf32(False):
        assert plans_of(lambda: ll.nn.conv(x, w)) == {("float32", (*rounded, "TENSOR_CORE"))}
        half = (x.astype("float16"), w.astype("float16"))
        assert plans_of(lambda: ll.nn.conv(*half)) == {("float16", ("NONDETERMINISTIC",))}
    assert plans_of(lambda: ll.nn.conv(x, w)) == set()  # that plan is there


def test_threads_that_end_leave_their_handles_to_others(cupy):
    import cudnn

    x, w = ll.ones((1, 5, 5, 2)).to("GPU:0"), ll.ones((3, 3, 2, 2)).to("GPU:0")
    ll.nn.conv(x, w)
    before = len(cudnn._streams)
    for _ in range(4):
        thread = threading.Thread(target=lambda: ll.nn.conv(x, w))
        thread.start()
        thread.join()
    assert len(cudnn._streams) == before


@pytest.mark.parametrize("error", [ImportError, OSError, RuntimeError])
def test_the_front_end_without_cudnn(cupy, monkeypatch, error):
    """Before version 1.15 its import says OSError where it does not find `libcudnn.so`; later a call RuntimeError."""

    def failing(name):
        raise error(name)

    monkeypatch.setattr(_cudnn_convolution.importlib, "import_module", failing)
    _cudnn_convolution.library.cache_clear()
    try:
        assert _cudnn_convolution.library() is None
    finally:
        _cudnn_convolution.library.cache_clear()


def test_streams_and_threads(cupy):
    """The pretended cuDNN checks that its handle has the stream, and that no work overtakes another."""
    x, w = ll.ones((1, 5, 5, 2)).to("GPU:0"), ll.ones((3, 3, 2, 2)).to("GPU:0")
    with cupy.cuda.Stream(non_blocking=True):
        y = ll.nn.conv(x, w)
    z = ll.nn.conv(y, w)
    found = []

    def work():
        there = ll.ones((1, 5, 5, 2)).to("GPU:0")
        found.append(ll.nn.conv(there, ll.ones((3, 3, 2, 2)).to("GPU:0")).numpy())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], y.numpy())
    agree([z], [ll.nn.conv(y.cpu(), w.cpu())], 1e-6)


def test_the_second_gpu(cupy):
    x, w = ll.ones((1, 4, 4, 2)).to("GPU:1"), ll.ones((3, 3, 2, 2)).to("GPU:1")
    y = ll.nn.conv(x, w)
    assert y.device == "GPU:1"
    agree([y], [ll.nn.conv(x.cpu(), w.cpu())], 1e-6)


# XLA


@pytest.fixture(scope="module")
def xla():
    """The module of its routes."""
    pytest.importorskip("jax", reason="JAX is not installed (the extra `xla`)")
    return importlib.import_module("limelight.ops.nn._jax_convolution")


def forced(route, on_cpu, at, groups, *operands):
    """What runs where XLA's device is no CPU."""
    return route(*operands, at, groups)


@settings(max_examples=8)
@given(SETTINGS)
def test_xla(xla, of):
    x, w = operands(of, "float64")
    wanted = with_gradients(of, x, w)
    there = [x.to("XLA:0"), w.to("XLA:0")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xla, "run", forced)
        agree(with_gradients(of, *there), wanted, 1e-10)


def test_a_program_for_the_cpu_has_products_in_it_and_one_for_a_gpu_convolutions(xla):
    jax = importlib.import_module("jax")
    at = _cudnn_convolution.Windows((5, 5), (3, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), (3, 3))

    def run(x, w):
        return xla.run(xla.forward, lambda x, w: x[:, :3, :3, :1] * w[0, 0], at, 1, x, w)

    operands = np.ones((1, 5, 5, 1), "float32"), np.ones((3, 3, 1, 1), "float32")
    for platform, is_there in (("cpu", False), ("cuda", True)):
        program = jax.export.export(jax.jit(run), platforms=[platform])(*operands).mlir_module()
        assert ("stablehlo.convolution" in program) == is_there
    np.testing.assert_array_equal(run(*operands), np.ones((1, 3, 3, 1)))  # arrays of the host


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_summed_in_32_bits_there(xla, dtype):
    x = ll.full((1, 5000, 1), 0.1, dtype=dtype).to("XLA:0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xla, "run", forced)
        found = ll.nn.conv(x, ll.ones((4999, 1, 1), dtype=dtype).to("XLA:0"), padding="valid")
    np.testing.assert_allclose(found.numpy().astype(float).ravel(), 4999 * float(x[0, 0, 0].item()), rtol=1e-2)
