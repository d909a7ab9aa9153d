"""The devices GPU:0 and GPU:1, whose arrays are CuPy's, on a pretended CuPy: places, copies, streams, errors."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from pretended_gpu import pretended_gpus

import limelight as ll
from limelight.errors import DeviceError, DTypeError, LinAlgError, OutOfBoundsError
from limelight.executors import base as executors

FAKES = Path(__file__).parents[2] / "fakes"

X = np.linspace(-1.0, 1.3, 15, dtype="float32").reshape(5, 3)


@pytest.fixture
def cupy(no_gpu):
    if no_gpu is None:
        pytest.skip("a real GPU is here, and its kernels would be taken for those of the pretended one")
    with pretended_gpus() as module:
        yield module


def counted(cupy, name):
    """How often that has happened since the last question."""
    return cupy._hardware.counts.pop(name, 0)


def test_each_gpu_is_a_device_of_its_own(cupy):
    assert [device.short for device in ll.list_devices() if device.kind == "GPU"] == ["GPU:0", "GPU:1"]
    for index in (0, 1):
        there = ll.constant(X).gpu(index)
        with ll.device(f"gpu:{index}"):
            made = ll.zeros((2,)) + 1.0
        for x in (there, made, there + there, ll.sum(there)):
            assert (x.device, type(x._data), x._data.device.id) == (f"GPU:{index}", cupy.ndarray, index)
    with pytest.raises(DeviceError, match=r"'gpu:7' does not exist here; devices here: .*GPU:0, GPU:1"):
        there.to("gpu:7")


@pytest.mark.slow  # a process of its own, which finds the devices by itself
def test_gpus_are_found_where_cupy_is_installed():
    code = f"import sys; sys.path.insert(0, {str(FAKES / 'libraries')!r}); import limelight as ll; "
    code += "assert 'cupy' not in sys.modules; print([d.short for d in ll.list_devices()], ll.ones(2).gpu(1).tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "'GPU:0', 'GPU:1'" in done.stdout, done.stderr
    assert done.stdout.endswith("[1.0, 1.0]\n")


# copies


def test_nobody_waits_for_copies_to_the_device_or_for_ops(cupy):
    x = ll.constant(X).to("GPU:0")
    y = ll.tanh(x @ x.T + 1.0).sum()
    assert (counted(cupy, "waits"), counted(cupy, "staging"), counted(cupy, "to host")) == (0, 1, 0)
    assert float(y) == pytest.approx(np.tanh(X @ X.T + 1.0).sum(), rel=1e-5)
    assert (counted(cupy, "waits"), counted(cupy, "to host")) == (1, 1)


def test_copies_have_causes_and_lines(cupy):
    ll.memory.reset()
    there = ll.constant(X).to("GPU:0")
    mixed = there + ll.constant(X) * 2.0
    moved = mixed.to("GPU:1")
    with ll.device("GPU:1"):
        ll.random.normal((2, 3))
        total = moved @ ll.ones((3, 1)).to("GPU:0")
    assert total.device == "GPU:1"
    copies = ll.memory.recent_copies()
    assert [(c.source_device, c.target_device, c.cause) for c in copies] == [
        ("CPU:0", "GPU:0", ".to()"),
        ("CPU:0", "GPU:0", "operand of add"),
        ("GPU:0", "GPU:1", ".to()"),
        ("CPU:0", "GPU:1", "draws, which the host makes"),
        ("GPU:1", "GPU:0", ".to()"),
        ("GPU:0", "GPU:1", "operand of matmul"),
    ]
    assert all(c.source.file == __file__ for c in copies)


def test_copies_between_gpus_pass_by_the_host(cupy):
    x = ll.constant(X).to("GPU:0") * 2.0
    counted(cupy, "to device")
    there = x.to("GPU:1")
    del x
    again = ll.ones((5, 3)).to("GPU:0") + 1.0  # in the memory that has become free
    assert (counted(cupy, "to host"), counted(cupy, "waits")) == (0, 0)
    np.testing.assert_allclose((there + again.to("GPU:1")).numpy(), X * 2.0 + 2.0)


def test_what_cupy_lacks_runs_on_the_host_and_says_so(cupy):
    ll.memory.reset()
    values = ll.linalg.eigvals(ll.constant([[2.0, 1.0], [0.0, 3.0]]).to("GPU:0"))
    copies = ll.memory.recent_copies()
    assert (values.device, sorted(values.numpy().real.tolist())) == ("GPU:0", [2.0, 3.0])
    assert [c.target_device for c in copies] == ["GPU:0", "CPU:0", "GPU:0"]
    assert {c.cause for c in copies[1:]} == {"eigvals on the host, as this CuPy has none"}


def test_draws_are_those_of_the_cpu(cupy):
    def draw():
        ll.random.seed(7)
        return [ll.random.normal((3,)), ll.random.poisson(ll.constant([2.0, 3.0])), ll.random.permutation(5)]

    here = draw()
    with ll.device("GPU:0"):
        there = draw()
    assert [x.device.short for x in there] == ["GPU:0"] * 3
    assert [x.tolist() for x in there] == [x.tolist() for x in here]


def test_dropout_brings_no_operand_to_the_host(cupy):
    x = ll.ones((4, 5)).to("GPU:0")
    ll.memory.reset()
    y = ll.nn.dropout(x, 0.5)
    assert [c.target_device for c in ll.memory.recent_copies()] == ["GPU:0"]
    assert set(y.numpy().ravel().tolist()) == {0.0, 2.0}


# streams


def test_ops_run_on_the_stream_that_is_entered_and_in_order(cupy):
    stream = cupy.cuda.Stream(non_blocking=True)
    x = ll.constant(X).to("GPU:0")
    with stream:
        before = stream.clock[stream.key]
        y = x * 2.0
        assert stream.clock[stream.key] > before
    z = y + x  # on the null stream again
    with cupy.cuda.Stream(non_blocking=True):
        np.testing.assert_allclose(ll.tanh(z).numpy(), np.tanh(X * 3.0), rtol=1e-6)


def test_the_pretended_device_notices_work_without_an_order(cupy):
    first = cupy.zeros(3)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        with pytest.raises(cupy._hardware.RaceError):
            first + 1.0
        stream.wait_event(cupy.cuda.Stream.null.record())
        second = first + 1.0
    with pytest.raises(cupy._hardware.RaceError):
        second.get()
    pinned = sys.modules["cupyx"].empty_pinned(3)
    cupy.asarray(pinned)
    pinned[:] = 1.0
    with pytest.raises(cupy._hardware.RaceError, match="while it was copied"):
        cupy.cuda.Device().synchronize()


def test_threads_share_the_null_stream(cupy):
    x, results = ll.constant(X).to("GPU:0"), []
    thread = threading.Thread(target=lambda: results.append(ll.exp(x)))
    thread.start()
    thread.join()
    np.testing.assert_allclose((results[0] + x).numpy(), np.exp(X) + X, rtol=1e-6)


# staged functions


def test_a_staged_step_stays_on_its_device_and_waits_for_nothing(cupy):
    with ll.device("GPU:0"):
        w = ll.Variable(X[:3])
        x, y = ll.constant(X), ll.constant(X[:, :1])

    @ll.function
    def step(x, y):
        with ll.GradientTape() as tape:
            loss = ll.mean((ll.tanh(x @ w).sum(1, keepdims=True) - y) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    with executors.chosen.override("plan"):
        step(x, y)
        ll.memory.reset()
        counted(cupy, "waits")
        losses = [step(x, y) for _ in range(3)]
    assert (counted(cupy, "waits"), counted(cupy, "to host"), ll.memory.recent_copies()) == (0, 0, ())
    assert (losses[0].device, w.device, type(w._data.array)) == ("GPU:0", "GPU:0", cupy.ndarray)
    assert float(losses[-1]) < float(losses[0])


def test_a_graph_on_two_gpus_copies_between_them(cupy):
    @ll.function
    def f(x):
        with ll.device("GPU:1"):
            y = ll.tanh(x)
        return ll.cond(ll.sum(x) > 0.0, lambda: x * 2.0, lambda: x), y

    with executors.chosen.override("plan"):
        f(ll.constant(X).to("GPU:0"))
        ll.memory.reset()
        doubled, y = f(ll.constant(X).to("GPU:0"))
    assert (doubled.device, y.device) == ("GPU:0", "GPU:1")
    copies = [(c.source_device, c.target_device) for c in ll.memory.recent_copies()]
    np.testing.assert_allclose(y.numpy(), np.tanh(X), rtol=1e-6)
    assert copies == [("CPU:0", "GPU:0"), ("GPU:0", "GPU:1")]


@pytest.mark.parametrize("executor", ["plan", "step", None])
def test_loops_and_their_gradients_run_there(cupy, executor):
    def f(x):
        total, states = ll.scan(lambda c, row: (ll.tanh(c + row), c * row), x[0], x)
        return ll.sum(states) + ll.sum(
            ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * total), (0, total))[1]
        )

    def gradient(x):
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = F(x)
        return tape.gradient(y, x)

    F = ll.function(f)
    with executors.chosen.override(executor or executors.chosen.get()):
        here, there = gradient(ll.constant(X)), gradient(ll.constant(X).to("GPU:0"))
    assert there.device == "GPU:0"
    np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=1e-5)
    F = f
    np.testing.assert_allclose(gradient(ll.constant(X).to("GPU:0")).numpy(), here.numpy(), rtol=1e-5)


def test_a_sum_in_another_order_is_not_guarded_there(cupy):
    """Each look at a norm would wait for the device; and the second GPU computes on itself."""
    f = ll.function(lambda x, w: x @ w + x @ (w * 2.0) + (x @ w) * 3.0)
    for index in (0, 1):
        x, w = ll.constant(X).gpu(index), ll.constant(X[:3]).gpu(index)
        with executors.chosen.override("plan"):
            f(x, w)
            counted(cupy, "waits")
            y = f(x, w)
        assert (counted(cupy, "waits"), y.device.index) == (0, index)
        np.testing.assert_allclose(y.numpy(), 6.0 * (X @ X[:3]), rtol=1e-5)


# what CuPy would not say


def test_an_index_that_is_not_there_is_an_error_as_on_the_cpu(cupy):
    there = ll.constant(X).to("GPU:0")
    v = ll.Variable(X)
    with ll.device("GPU:0"):
        w = ll.Variable(X)
    far = ll.constant([1, 7]).to("GPU:0")
    for run in (
        lambda: there[far],
        lambda: ll.take(there, far),
        lambda: ll.index_add(there, far, 1.0),
        lambda: ll.segment_sum(ll.ones((2,)).to("GPU:0"), far, 3),
        lambda: w.scatter_add(far, ll.ones((2, 3)).to("GPU:0")),
    ):
        with pytest.raises(OutOfBoundsError, match="out of bounds"):
            run()
    assert v.numpy().tolist() == w.numpy().tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int8", "complex64", "bool"])
def test_of_values_for_one_place_the_last_stays_and_sums_add_up(cupy, dtype):
    rng = np.random.default_rng(3)
    places = rng.integers(-4, 4, 40).astype("int32")
    values = rng.integers(0, 2 if dtype == "bool" else 5, (40, 2)).astype(dtype)
    start = rng.integers(0, 2, (4, 2)).astype(dtype)
    changes = ["set"] if dtype == "bool" else ["set", "add", "multiply"] if dtype[0] == "c" else [
        "set", "add", "multiply", "min", "max",
    ]  # fmt: skip
    for how in changes:
        here, there = (
            getattr(ll.constant(start).to(to).at[ll.constant(places).to(to)], how)(ll.constant(values).to(to))
            for to in ("CPU:0", "GPU:0")
        )
        np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=1e-3, err_msg=how)


def test_a_singular_matrix_is_an_error(cupy):
    singular = ll.constant([[1.0, 2.0], [2.0, 4.0]]).to("GPU:0")
    for run in (ll.linalg.inv, lambda x: ll.linalg.solve(x, x), lambda x: ll.linalg.cholesky(-x)):
        with pytest.raises(LinAlgError, match="the matrix"):
            run(singular)


def test_bfloat16_is_refused_in_words(cupy):
    words = r"a bfloat16 tensor cannot be on a GPU, as this CuPy has no such dtype; convert it first, x\.astype"
    for run in (
        lambda: ll.ones(2, dtype=ll.bfloat16).to("GPU:0"),
        lambda: ll.astype(ll.ones(2).to("GPU:0"), ll.bfloat16),
    ):
        with pytest.raises(DTypeError, match=words):
            run()


# other libraries


def test_memory_is_shared_by_dlpack_where_somebody_asks(cupy):
    with cupy.cuda.Device(1):
        array = cupy.arange(4.0)
    shared, copied = ll.from_dlpack(array), ll.from_dlpack(array, copy=True)
    assert (shared.device, copied.device) == ("GPU:1", "GPU:1")
    with cupy.cuda.Device(1):
        array[0] = 5.0
    assert (shared.tolist(), copied.tolist()) == ([5.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0])
    assert shared._data.data.ptr == array.data.ptr
    lent = shared.__dlpack__(copy=False).array
    given = shared.__dlpack__().array
    assert (lent.data.ptr == array.data.ptr, given.data.ptr == array.data.ptr) == (True, False)
    assert shared.__dlpack_device__() == (2, 1)
    assert np.from_dlpack(ll.constant(X)).tolist() == X.tolist()
    on_host = shared.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    assert type(on_host).__name__ == "PyCapsule"
    with pytest.raises(BufferError, match="only be a copy"):
        shared.__dlpack__(dl_device=(1, 0), copy=False)
    assert ll.from_dlpack(array, device="CPU:0").tolist() == [5.0, 1.0, 2.0, 3.0]
    with pytest.raises(BufferError, match="the array is on GPU:1, not on CPU:0"):
        ll.from_dlpack(array, device="CPU:0", copy=False)
