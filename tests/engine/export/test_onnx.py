"""Functions as files of ONNX: networks, control flow, gradients, names, and what is refused with its line."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'limelight[onnx]'")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'limelight[onnx]'")

import onnx

import limelight as ll
from limelight.errors import ExportError
from limelight.export.to_onnx import check

spec = ll.TensorSpec
nn = ll.nn


def unread_initialisers(graph):
    def read(graph):
        inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
        own = {name for node in graph.node for name in node.input} | {x.name for x in graph.output}
        return own.union(*map(read, inner))

    return {one.name for one in graph.initializer} - read(graph)


@pytest.fixture
def exported(tmp_path):
    """Exports a function and returns what calls the file: arrays to a dictionary of arrays."""

    def export(target, signature=()):
        path = ll.export.onnx(target, tmp_path / "f.onnx", signature)
        assert not unread_initialisers(onnx.load(path).graph), "onnxruntime warns of them"
        session = check.session(path.read_bytes())
        names = [x.name for x in session.get_inputs()]
        return lambda *arrays: dict(
            zip(
                [y.name for y in session.get_outputs()],
                session.run(None, dict(zip(names, arrays, strict=True))),
                strict=True,
            )
        )

    return export


def draw(*shape):
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def close(mine, theirs, tolerance=1e-5):
    np.testing.assert_allclose(mine, theirs.numpy(), rtol=tolerance, atol=tolerance)


def test_a_network_for_any_batch(exported):
    net = nn.Sequential(nn.Dense(32, activation=nn.relu), nn.Dense(10), nn.softmax)
    run = exported(net, spec((None, 64)))
    for n in (1, 5):
        close(run(draw(n, 64))["output"], net(ll.constant(draw(n, 64))))


def test_a_query_for_sets_of_any_number_and_size(exported):
    """The sizes that broadcast it are folded, and left two initialisers that nothing read."""
    pool, seed = nn.MultiHeadAttention(2), ll.Variable(draw(1, 1, 4))

    def pooled(x, mask):
        query = ll.zeros((ll.shape_of(x)[0], 1, 4)) + seed
        return pool(query, x, x, mask=mask[:, None, None, :])

    pool(ll.ones((1, 2, 4)))
    run = exported(pooled, (spec((None, None, 4)), spec((None, None), "bool")))
    x, mask = draw(3, 5, 4), np.ones((3, 5), bool)
    close(run(x, mask)["output"], pooled(ll.constant(x), ll.constant(mask)))


def test_convolutions_pooling_and_batch_norm(exported):
    net = nn.Sequential(
        nn.Conv(8, 3, activation=nn.relu), nn.BatchNorm(), nn.MaxPool(2), nn.Conv(4, 3, stride=2), nn.AvgPool(2),
        nn.Flatten(), nn.Dense(3),
    )  # fmt: skip
    net(ll.ones((1, 16, 16, 3)))
    close(exported(net, spec((None, 16, 16, 3)))(draw(2, 16, 16, 3))["output"], net(ll.constant(draw(2, 16, 16, 3))))


def test_a_decoder_of_transposed_convolutions(exported):
    net = nn.Sequential(nn.Dense(32), nn.Reshape((4, 4, 2)), nn.ConvTranspose(3, 3, stride=2), nn.sigmoid)
    close(exported(net, spec((None, 4)))(draw(3, 4))["output"], net(ll.constant(draw(3, 4))))


def test_attention(exported):
    net = nn.MultiHeadAttention(2)
    net(ll.constant(draw(2, 5, 8)))
    close(exported(net, spec((None, 5, 8)))(draw(3, 5, 8))["output"], net(ll.constant(draw(3, 5, 8))))


def lstm(xs):
    wide = [ll.constant(draw(5, 24)) * 0.3, ll.constant(draw(6, 24)) * 0.3]

    def step(state, x):
        h, c = state
        i, f, g, o = ll.split(x @ wide[0] + h @ wide[1], 4, axis=-1)
        c = f.sigmoid() * c + i.sigmoid() * ll.tanh(g)
        h = o.sigmoid() * ll.tanh(c)
        return (h, c), h

    start = ll.zeros_like(xs[0, :, :1]) * ll.zeros((1, 6))
    (last, _), every = ll.scan(step, (start, start), xs)
    return {"last": last, "every": every}


def test_a_scan_of_any_length_with_results_by_name(exported):
    found, expected = exported(lstm, spec((None, None, 5)))(draw(7, 2, 5)), lstm(ll.constant(draw(7, 2, 5)))
    assert set(found) == {"last", "every"}
    for name, values in found.items():
        close(values, expected[name])


def test_a_layer_that_is_a_loop(exported):
    net = nn.LSTM(4)
    net(ll.constant(draw(2, 3, 5)))
    result = net(ll.constant(draw(2, 3, 5)))
    first = result if isinstance(result, ll.Tensor) else result[0]
    close(next(iter(exported(net, spec((2, 3, 5)))(draw(2, 3, 5)).values())), first)


def grow(x):
    return ll.while_loop(lambda i, y: (i < 5) & (y.sum() < 100.0), lambda i, y: (i + 1, y * 1.5), (ll.constant(0), x))[
        1
    ]


def choose(x):
    return ll.cond(x.sum() > 0, lambda: ll.exp(x), lambda: -x)


@pytest.mark.parametrize("f", [grow, choose, lambda x: lstm(x.reshape((2, 2, 5)))["last"]])
def test_gradients_of_control_flow(exported, f):
    def slope(x):
        return ll.grad(lambda x: (f(x) ** 2).sum())(x)

    for sign in (1.0, -1.0):
        x = sign * abs(draw(20))
        close(exported(slope, spec((20,)))(x)["output"], slope(ll.constant(x)), 1e-4)


def test_a_switch(exported):
    def pick(i, x):
        return ll.switch(i, [lambda: x, lambda: x * 2, lambda: ll.sin(x)])

    run = exported(pick, (spec((), ll.int32), spec((3,))))
    for i in range(3):
        close(run(np.array(i, np.int32), draw(3))["output"], pick(ll.constant(i), ll.constant(draw(3))))


def test_the_gradient_of_a_loss(exported):
    net = nn.Sequential(nn.Dense(8, activation=nn.gelu), nn.LayerNorm(), nn.Dense(3))

    def loss(x, labels):
        return ll.value_and_grad(lambda x: nn.softmax_cross_entropy(net(x), labels).mean())(x)

    run = exported(loss, (spec((None, 4)), spec((None,), ll.int32)))
    labels = np.array([0, 2], np.int32)
    for mine, theirs in zip(
        run(draw(2, 4), labels).values(), loss(ll.constant(draw(2, 4)), ll.constant(labels)), strict=True
    ):
        close(mine, theirs)


def test_dictionaries_and_tuples_in_and_out(exported):
    def f(batch, scale=2.0):
        return {"sum": batch["x"] + batch["y"][0], "rest": [batch["y"][1] * scale]}

    found = exported(f, {"x": spec((3,)), "y": (spec((3,)), spec((2,)))})(draw(3), draw(3), draw(2))
    assert set(found) == {"sum", "output_rest_0"}
    close(found["sum"], ll.constant(draw(3) * 2))


def test_a_loaded_function_and_a_custom_gradient(exported, tmp_path):
    @ll.custom_gradient
    def f(x):
        return ll.exp(x), lambda g: g * 3.0

    loaded = ll.load(ll.save(ll.grad(lambda x: f(x).sum()), tmp_path / "f.ll", spec((3,))))
    np.testing.assert_array_equal(exported(loaded)(draw(3))["output"], np.full(3, 3.0, np.float32))


def filtered(x):
    spectrum = ll.fft.rfft(x)
    return ll.fft.irfft(spectrum * ll.conj(spectrum) / 8.0 - spectrum, n=9)


SPECTRA = [
    lambda x: ll.abs(ll.fft.rfft(x) * 2.0),
    lambda x: ll.real(ll.fft.fftshift(ll.fft.fft2(ll.astype(x, ll.complex64), norm="ortho"))),
    filtered,
    lambda x: ll.imag(ll.fft.ifft(ll.stack([ll.astype(x, ll.complex64)] * 2)[0, :, 1:6])),
    ll.grad(lambda x: (ll.abs(ll.fft.rfft(x)) ** 2).sum() + filtered(x)[0].sum()),
]


@pytest.mark.parametrize("f", SPECTRA)
def test_complex_numbers_inside_of_a_function(f, exported):
    close(exported(f, spec((3, 9)))(draw(3, 9))["output"], f(ll.constant(draw(3, 9))), 1e-4)


# --- what is refused


def noisy(x):
    return x + ll.random.normal((3,))


REFUSED = [
    (noisy, "noisy cannot be exported to ONNX: random_normal at .*test_onnx.py:.*pass the draws as an argument"),
    (lambda x: ll.py_func(lambda v: v, [x], spec((3,))), "py_func at .*test_onnx.py:.*it runs your Python code"),
    (lambda x: ll.abs(ll.tan(ll.astype(x, ll.complex64))), "tan at .*complex numbers"),
    (lambda x: ll.linalg.eigh(x.reshape((3, 1)) * x)[0], "eigh at .*known up to signs"),
]


@pytest.mark.parametrize(("f", "why"), REFUSED)
def test_what_onnx_cannot_hold_is_refused_and_nothing_written(f, why, tmp_path):
    with pytest.raises(ExportError, match=why):
        ll.export.onnx(f, tmp_path / "f.onnx", spec((3,)))
    assert list(tmp_path.iterdir()) == []


def test_changes_of_variables_are_refused(tmp_path):
    count = ll.Variable(0.0)

    def f(x):
        count.assign_add(1.0)
        return x + count

    with pytest.raises(ExportError, match=r"f cannot be exported to ONNX: assign_add at .*return the new value"):
        ll.export.onnx(f, tmp_path / "f.onnx", spec((3,)))


def test_several_traces_are_listed(tmp_path):
    f = ll.function(lambda x: x + 1)
    f(ll.ones(3))
    f(ll.ones(4))
    with pytest.raises(ExportError, match=r"writes one trace, and .* has 2: give the signature"):
        ll.export.onnx(f, tmp_path / "f.onnx")


def test_complex_arguments_are_refused_in_words(tmp_path):
    with pytest.raises(ExportError, match=r"its argument `x` is complex.*ll\.real\(z\)"):
        ll.export.onnx(ll.real, tmp_path / "f.onnx", spec((3,), ll.complex64))


def test_arguments_that_cannot_be_drawn_are_taken_from_examples(tmp_path):
    with pytest.raises(ExportError, match="give tensors as the signature"):
        ll.export.onnx(lambda i: ll.ones(9)[i - 20], tmp_path / "g.onnx", spec((), ll.int32))
    assert ll.export.onnx(lambda i: ll.ones(9)[i - 20], tmp_path / "g.onnx", ll.constant(14)).exists()


def test_other_numbers_are_an_error_and_leave_the_old_file(tmp_path, monkeypatch):
    path = ll.export.onnx(lambda x: x + 1, tmp_path / "f.onnx", spec((3,)))
    before = path.read_bytes()
    monkeypatch.setattr(check, "run", lambda data, arguments: [np.zeros(3, np.float32)])
    with pytest.raises(ExportError, match="onnxruntime gives other numbers for result 0: they lie up to"):
        ll.export.onnx(lambda x: x + 2, path, spec((3,)))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_library_is_named():
    code = (
        "import sys; sys.modules['onnx'] = None\nimport limelight as ll\n"
        "try: ll.export.onnx(lambda x: x, 'f.onnx', ll.TensorSpec((3,)))\n"
        "except ll.errors.ExportError as error: assert \"pip install 'limelight[onnx]'\" in str(error)\n"
        "else: raise SystemExit('no error')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("target", "path", "why"),
    [
        (3, "f.onnx", "a function or a module, got int"),
        (nn.relu, 5, "a path as its second"),
        (nn.relu, "no/f", "no folder"),
    ],
)
def test_wrong_arguments(target, path, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExportError, match=why):
        ll.export.onnx(target, path, spec((3,)))
