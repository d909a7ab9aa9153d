"""What only a real GPU shows: training there, CuPy's pool, streams, DLPack, accuracy, JAX beside it."""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import limelight as ll
from limelight.executors import base as executors

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")]
RNG = np.random.default_rng(5)
PICTURES = RNG.standard_normal((8, 12, 12, 3)).astype("float32")
ROWS = RNG.standard_normal((8, 6, 16)).astype("float32")
LABELS = RNG.integers(0, 5, 8)


# Models


class Block(ll.Module):
    """A layer of a transformer."""

    def __init__(self):
        self.attention = ll.nn.MultiHeadAttention(4)
        self.norm = ll.nn.LayerNorm()
        self.wide = ll.nn.Dense(32, activation="gelu")
        self.narrow = ll.nn.Dense(16)

    def __call__(self, x):
        x = x + self.attention(x)
        return x + self.narrow(self.wide(self.norm(x)))


class Reader(ll.Module):
    """Reads rows by a layer, and says what they are by its last one."""

    def __init__(self, layer):
        self.layer = layer
        self.head = ll.nn.Dense(5)

    def __call__(self, x):
        y = self.layer(x)
        return self.head(y[:, -1] if y.ndim == 3 else ll.reshape(y, (y.shape[0], -1)))


def convolutional():
    return ll.nn.Sequential(
        ll.nn.Conv(8, (3, 3)), ll.nn.BatchNorm(), ll.nn.relu, ll.nn.MaxPool((2, 2)), ll.nn.Conv(4, (3, 3), stride=2)
    )


MODELS = {
    "dense": (lambda: Reader(ll.nn.Dense(12, activation="tanh")), ROWS),
    "convolutional": (lambda: Reader(convolutional()), PICTURES),
    "transformer": (lambda: Reader(Block()), ROWS),
    "lstm": (lambda: Reader(ll.nn.LSTM(8)), ROWS),
    "gru": (lambda: Reader(ll.nn.GRU(8)), ROWS),
}


def losses(model, device, staged):
    """Of six steps, and the weights after them."""
    make, inputs = MODELS[model]
    ll.random.seed(3)
    with ll.device(device):
        net, optimizer = make(), ll.optim.Momentum(0.05, 0.9)
        x, labels = ll.constant(inputs), ll.constant(LABELS)

        def step(x, labels):
            with ll.GradientTape() as tape:
                loss = ll.mean(ll.nn.softmax_cross_entropy(net(x), labels))
            optimizer.apply(tape.gradient(loss, net), net)
            return loss

        step = ll.function(step) if staged else step
        found = [float(step(x, labels)) for _ in range(6)]
    assert {v.device.short for v in net.trainable_variables} == {device}
    return found, [v.numpy() for v in net.trainable_variables]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("staged", [False, True], ids=["not staged", "staged"])
def test_models_train_as_on_the_cpu(model, staged):
    wanted, weights = losses(model, "CPU:0", False)
    found, there = losses(model, "GPU:0", staged)
    np.testing.assert_allclose(found, wanted, rtol=2e-3)
    assert found[-1] < found[0]
    for a, b in zip(there, weights, strict=True):
        np.testing.assert_allclose(a, b, atol=5e-3)


# Control flow


def loop(x):
    return ll.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, ll.tanh(y) * 1.5), (0, x))[1]


def scanned(x):
    return ll.scan(lambda total, row: (total + row, total * row), ll.zeros_like(x[0]), x)[1]


def branches(x):
    return ll.cond(ll.sum(x) > 0.0, lambda: ll.exp(x), lambda: x * x)


def examples(x):
    return ll.vectorize(lambda row: ll.cumsum(row) * ll.max(row))(x)


@pytest.mark.parametrize("function", [loop, scanned, branches, examples])
@pytest.mark.parametrize("staged", [False, True], ids=["not staged", "staged"])
def test_control_flow_and_its_gradient(function, staged):
    def run(x):
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x)

    x = ll.constant(ROWS[0])
    there = x.to("GPU:0")
    for a, b in zip((ll.function(run) if staged else run)(there), run(x), strict=True):
        assert a.device == "GPU:0"
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=1e-6)


# Accuracy


def test_products_of_float32_have_its_digits():
    """Those of TF32 are three."""
    a, b = RNG.standard_normal((2, 300, 300)).astype("float32")
    wanted = a.astype("float64") @ b
    found = (ll.constant(a).to("GPU:0") @ ll.constant(b).to("GPU:0")).numpy()
    assert np.abs(found - wanted).max() < 1e-4


@pytest.mark.parametrize("settings", [(1, "same", 1, 1), (2, "same", 1, 1), (1, 2, 2, 3), (2, "valid", 1, 3)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_convolutions(settings, dtype):
    stride, padding, dilation, groups = settings
    w = RNG.standard_normal((3, 3, 3 // groups, 6)).astype(dtype)

    def run(x, w):
        with ll.GradientTape() as tape:
            tape.watch([x, w])
            y = ll.nn.conv(x, w, stride, padding, dilation, groups)
            loss = ll.sum(y * y)
        return y, *tape.gradient(loss, [x, w])

    operands = [ll.constant(PICTURES.astype(dtype)), ll.constant(w)]
    wanted = [result.numpy() for result in run(*operands)]
    there = [x.to("GPU:0") for x in operands]
    with ll.config.tf32(False):
        exact = [result.numpy() for result in run(*there)]
    rounded = [result.numpy() for result in run(*there)]
    digits = {"float64": 1e-12, "float32": 2e-5, "float16": 5e-3}[dtype]
    for a, b, c in zip(wanted, exact, rounded, strict=True):
        most = np.abs(a.astype(float)).max()
        assert np.abs(a.astype(float) - b).max() <= digits * most
        assert np.abs(a.astype(float) - c).max() <= max(digits, 5e-3) * most


def test_convolutions_of_slices_and_of_numbers_beyond_those_of_float16():
    pictures, filters = PICTURES[:, :11, :11] * np.float32(1e6), RNG.standard_normal((4, 3, 3, 3, 1)).astype("float32")

    def run(x, w):
        x, w = x[1:], w[3]  # at no multiple of 16 bytes
        with ll.GradientTape() as tape:
            tape.watch([x, w])
            y = ll.nn.conv(x, w)
        return y, *tape.gradient(y, [x, w])

    operands = [ll.constant(pictures), ll.constant(filters)]
    for a, b in zip(run(*operands), run(*[x.to("GPU:0") for x in operands]), strict=True):
        assert np.abs(a.numpy() - b.numpy()).max() <= 5e-3 * np.abs(a.numpy()).max()


def test_convolutions_are_the_same_each_time():
    x, w = ll.constant(PICTURES).to("GPU:0"), ll.constant(np.ones((3, 3, 3, 8), "float32")).to("GPU:0")

    def gradient():
        with ll.GradientTape() as tape:
            tape.watch(w)
            loss = ll.sum(ll.nn.conv(x, w) ** 3)
        return tape.gradient(loss, w).numpy()

    first = gradient()
    for _ in range(20):
        np.testing.assert_array_equal(gradient(), first)


@pytest.mark.parametrize("axes", [(0,), (0, 1), (0, 1, 2), 1, (1, 2), None])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "var", "any"])
def test_reductions_of_many(name, axes):
    x = RNG.standard_normal((64, 41, 32, 3)).astype("float32")
    found = getattr(ll, name)(ll.constant(x).to("GPU:0"), axes).numpy()
    wanted = getattr(np, name)(x.astype("float64"), axes)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=0.05 if name == "sum" else 1e-5)


# Memory


def test_the_pool_has_given_out_what_lives():
    import cupy

    with executors.chosen.override("plan"), ll.device("GPU:0"):
        gc.collect()
        pool = cupy.get_default_memory_pool()
        others = pool.used_bytes() - ll.memory_info("GPU:0").current
        kept = [ll.ones((1000, 100)), ll.zeros((7,))]
        w = ll.Variable(ll.ones((300, 300)))
        kept += [kept[0] * 2.0, ll.reshape(kept[0], (100, 1000)), kept[0][3:5], ll.sum(kept[0], 0), w.read_value()]
        kept += [*ll.linalg.qr(ll.random.normal((40, 30))), ll.sort(ll.random.normal((50,)))]
        kept += [ll.concat([kept[0], kept[0]]), w @ w, *ll.split(ll.ones((8, 8)), 2), kept[0].T]
        for _ in range(len(kept)):
            info = ll.memory_info("GPU:0")
            assert info.in_use == pool.used_bytes()
            assert pool.used_bytes() - info.current == others
            kept.pop()


def test_a_staged_step_keeps_nothing():
    import cupy

    pool = cupy.get_default_memory_pool()
    with ll.device("GPU:0"):
        w = ll.Variable(ll.ones((64, 64)))

        @ll.function
        def step(x):
            with ll.GradientTape() as tape:
                loss = ll.mean(ll.tanh(x @ w) ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return loss

        x = ll.random.normal((32, 64))
        for _ in range(3):
            float(step(x))
        gc.collect()
        before = pool.used_bytes()
        for _ in range(50):
            float(step(x))
    assert pool.used_bytes() == before


# Streams and threads


def test_streams_of_one_thread_wait_for_each_other():
    import cupy

    with ll.device("GPU:0"):
        x = ll.ones((2000, 2000))
        for _ in range(5):
            with cupy.cuda.Stream(non_blocking=True):
                y = x @ x * (1.0 / 2000.0)
            with cupy.cuda.Stream(non_blocking=True):
                x = y + 0.0
    np.testing.assert_allclose(x.numpy(), np.ones((2000, 2000)), rtol=1e-4)


def test_threads_run_one_function_at_once():
    found = {}

    @ll.function
    def f(x):
        for _ in range(10):
            x = ll.tanh(x @ x.T) @ x * 0.1
        return x

    inputs = [ll.constant(ROWS[i]).to("GPU:0") for i in range(8)]
    wanted = [f(x).numpy() for x in inputs]

    def work(i):
        found[i] = [f(inputs[i]).numpy() for _ in range(20)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(inputs)
    for i, results in found.items():
        for result in results:
            np.testing.assert_array_equal(result, wanted[i])


# Other libraries


def test_torch_and_cupy_share_memory_with_it():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs = torch.arange(12.0, device="cuda").reshape(3, 4)
    ours = ll.from_dlpack(theirs)
    assert (ours.device.short, ours.shape) == ("GPU:0", (3, 4))
    theirs += 1.0
    torch.cuda.synchronize()
    np.testing.assert_array_equal(ours.numpy(), np.arange(12.0).reshape(3, 4) + 1.0)
    back = torch.from_dlpack(ll.exp(ours))
    assert back.is_cuda
    np.testing.assert_allclose(back.cpu().numpy(), np.exp(np.arange(12.0).reshape(3, 4) + 1.0), rtol=1e-5)


def test_jax_shares_memory_with_it():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    x = jax.numpy.arange(6.0) * 2.0
    ours = ll.from_dlpack(x)
    assert ours.device == "GPU:0"
    np.testing.assert_array_equal((ours + 1.0).numpy(), np.arange(6.0) * 2.0 + 1.0)
    np.testing.assert_array_equal(jax.numpy.from_dlpack(ours + 1.0), np.arange(6.0) * 2.0 + 1.0)
    moved = ours.to("XLA:0")
    assert moved.device == "XLA:0"
    np.testing.assert_array_equal((moved * 2.0).to("GPU:0").numpy(), np.arange(6.0) * 4.0)


MEMORY = """
import limelight as ll
import numpy as np
x = ll.constant(np.ones((64, 64), "float32")).to("XLA:0")
y = ll.function(lambda x: ll.tanh(x @ x), jit_compile=True)(x)
here = ll.function(lambda x: ll.tanh(x @ x), jit_compile=True)(ll.ones((64, 64)))
import cupy
print(y._data.devices(), x.device.short, here.device.short)
free, total = cupy.cuda.Device(0).mem_info
print("GiB", (total - free) / 2**30)
"""


def test_jax_leaves_the_memory_alone():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    import cupy

    free, total = cupy.cuda.Device(0).mem_info
    before = (total - free) / 2**30
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XLA_PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    places, used = done.stdout.splitlines()
    assert "CudaDevice" in places or "cuda" in places.lower()
    assert float(used.split()[1]) < before + 4.0, done.stdout


def test_programs_for_the_cpu_are_compiled_for_it_beside_a_gpu():
    pytest.importorskip("jax", reason="JAX is not installed")
    importlib.import_module("limelight.core.backends.jax")
    f = ll.function(lambda x: ll.sum(ll.tanh(x) * x), jit_compile=True)
    x = ll.constant(ROWS)
    np.testing.assert_allclose(f(x).numpy(), np.sum(np.tanh(ROWS) * ROWS), rtol=1e-4)
    assert f(x).device == "CPU:0"
