"""Weights of others: names, layouts, casts, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import limelight as ll
from limelight.errors import ArgumentError, CheckpointError, MissingCheckpointError


def values(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


@pytest.mark.parametrize("built", [False, True])
def test_weights_of_a_torch_model(built, tmp_path):
    """A Linear, a Conv2d and norms, in PyTorch's layout; the results are computed with NumPy."""
    weights = {
        "conv.weight": values(4, 3, 2, 2), "conv.bias": values(4), "norm.weight": values(4), "norm.bias": values(4),
        "norm.running_mean": values(4), "norm.running_var": np.abs(values(4)), "norm.num_batches_tracked": np.array(7),
        "fc.weight": values(5, 4), "fc.bias": values(5),
    }  # fmt: skip
    save_file(weights, tmp_path / "x")

    class Net(ll.Module):
        def __init__(self):
            self.conv, self.norm, self.fc = ll.nn.Conv(4, 2, padding="valid"), ll.nn.BatchNorm(), ll.nn.Dense(5)

        def call(self, x):
            return self.fc(self.norm(self.conv(x))[:, 0, 0])

    net, x = Net(), values(1, 2, 2, 3)
    if built:
        net(ll.constant(x))
    status = ll.nn.load_weights(net, tmp_path / "x", layout="torch")
    y = net(ll.constant(x)).numpy()
    status.assert_consumed()
    conv = np.einsum("nhwc,ochw->no", x, weights["conv.weight"]) + weights["conv.bias"]
    scaled = (conv - weights["norm.running_mean"]) / np.sqrt(weights["norm.running_var"] + net.norm.epsilon)
    expected = (scaled * weights["norm.weight"] + weights["norm.bias"]) @ weights["fc.weight"].T + weights["fc.bias"]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert status.tree().counts == {"matched": 8}


def test_transposed_convolutions_are_the_transposes_of_convolutions():
    """As PyTorch has it: with one weight (in, out, h, w), ConvTranspose is the gradient of Conv for its input."""
    weight = values(3, 2, 2, 2)
    up, down = (
        ll.nn.ConvTranspose(2, 2, padding="valid", use_bias=False),
        ll.nn.Conv(3, 2, padding="valid", use_bias=False),
    )
    y = ll.constant(values(1, 4, 4, 3))
    ll.nn.load_weights(up, {"weight": weight}, layout="torch").expect_partial()
    ll.nn.load_weights(down, {"weight": weight}, layout="torch").expect_partial()
    x = ll.zeros((1, 5, 5, 2))
    down(x)
    _, pull = ll.vjp(down, x)
    pulled = pull(y)
    pulled = pulled[0] if isinstance(pulled, (tuple, list)) else pulled
    np.testing.assert_allclose(up(y).numpy(), pulled.numpy(), rtol=1e-4, atol=1e-5)


def test_sequences_renaming_and_dropping():
    model = ll.nn.Sequential(ll.nn.Dense(2), ll.nn.relu, ll.nn.Dense(1, use_bias=False))
    weights = {"a.0.weight": values(2, 3), "a.0.bias": values(2), "out.weight": values(1, 2), "extra": values(1)}
    status = ll.nn.load_weights(model, weights, rename={"a": "", "out": "2", "extra": None}, layout="torch")
    model(ll.ones((1, 3)))
    status.assert_consumed()
    np.testing.assert_array_equal(model[2].kernel.numpy(), weights["out.weight"].T)
    by_function = ll.nn.load_weights(
        model, weights, rename=lambda name: "0.bias" if name == "a.0.bias" else None, layout="torch"
    )
    assert by_function.expect_partial().tree().counts == {"matched": 1, "new": 2}


def test_own_names_and_casts(tmp_path):
    model = ll.nn.Sequential(ll.nn.Dense(2))
    model(ll.ones((1, 3)))
    path = ll.nn.save_weights(model, tmp_path / "x.safetensors")
    assert load_file(path).keys() == {"layers.0.kernel", "layers.0.bias"}
    half = {name.replace(".", "/"): x.astype("float16") for name, x in load_file(path).items()}
    again = ll.nn.Sequential(ll.nn.Dense(2))
    again(ll.ones((1, 3)))
    status = ll.nn.load_weights(again, half).assert_consumed()
    assert again[0].kernel.dtype == ll.float32
    np.testing.assert_allclose(again[0].kernel.numpy(), model[0].kernel.numpy(), rtol=1e-3)
    assert {record.state for record in status.tree().records} == {"matched"}


@dataclass
class Parts:
    scale: Any
    more: Any = None


class InParts(ll.Module):
    def __init__(self, value):
        self.parts = Parts(ll.Variable([value, value]), [ll.Variable(value)])
        self.layers_ = {"a": Parts(ll.nn.Dense(2))}
        self.layers_["a"].scale(ll.ones((1, 3)))


@pytest.mark.parametrize("layout", ["limelight", "torch"])
def test_weights_in_dataclasses_come_back(layout, tmp_path):
    first, second = InParts(1.0), InParts(2.0)
    path = ll.nn.save_weights(first, tmp_path / "x.safetensors", layout=layout)
    ll.nn.load_weights(second, path, layout=layout).assert_consumed()
    for (path, x), (other, y) in zip(first.named_variables(), second.named_variables(), strict=True):
        assert path == other
        np.testing.assert_array_equal(x.numpy(), y.numpy())


@pytest.mark.parametrize("layout", ["limelight", "torch"])
@pytest.mark.parametrize("place", ["\u00b2", "\u0663", "9" * 30, "-1"])
def test_names_that_are_nearly_positions(place, layout):
    model = ll.nn.Sequential(ll.nn.Dense(2))
    model(ll.ones((1, 3)))
    with pytest.raises(CheckpointError):
        ll.nn.load_weights(model, {f"layers.{place}.kernel": values(3, 2)}, layout=layout)


def test_what_is_saved_for_torch_is_in_its_layout(tmp_path):
    model = ll.nn.Sequential(ll.nn.Conv(4, (2, 3)), ll.nn.BatchNorm(), ll.nn.Dense(2))
    model(ll.ones((1, 5, 5, 3)))
    arrays = load_file(ll.nn.save_weights(model, tmp_path / "x", layout="torch"))
    assert arrays["layers.0.weight"].shape == (4, 3, 2, 3)
    assert arrays["layers.2.weight"].shape == (2, 4)
    assert "layers.1.running_var" in arrays
    again = ll.nn.Sequential(ll.nn.Conv(4, (2, 3)), ll.nn.BatchNorm(), ll.nn.Dense(2))
    status = ll.nn.load_weights(again, tmp_path / "x", layout="torch")
    again(ll.ones((1, 5, 5, 3)))
    status.assert_consumed()
    pairs = zip(model.variables, again.variables, strict=True)
    assert all((a.numpy() == b.numpy()).all() for a, b in pairs)


def test_shapes_that_do_not_fit_load_nothing():
    layer = ll.nn.Dense(2)
    layer(ll.ones((1, 3)))
    before = layer.bias.numpy()
    with pytest.raises(CheckpointError, match=r"`kernel` was saved as f32\[2,3\], and the variable is f32\[3,2\] now"):
        ll.nn.load_weights(layer, {"kernel": values(2, 3), "bias": values(2)})
    np.testing.assert_array_equal(layer.bias.numpy(), before)


def test_two_names_for_one_variable_are_ambiguous():
    with pytest.raises(CheckpointError, match="'a' and 'b' both lead to 'kernel': give one of them another name"):
        ll.nn.load_weights(ll.nn.Dense(2), {"a": values(3, 2), "b": values(3, 2)}, rename=lambda name: "kernel")


def test_weights_for_nothing_of_the_module():
    layer = ll.nn.Dense(2)
    layer(ll.ones((1, 3)))
    layer._features = 3
    with pytest.raises(CheckpointError, match=r"no array is for a variable of this Dense. The arrays are x.y; the var"):
        ll.nn.load_weights(layer, {"x.y": values(3)})


def test_wrong_arguments(tmp_path):
    layer = ll.nn.Dense(2)
    with pytest.raises(ArgumentError, match="load_weights: needs a module, got int"):
        ll.nn.load_weights(3, {})
    with pytest.raises(ArgumentError, match="layout is one of 'limelight', 'torch', 'keras', got 'flax'"):
        ll.nn.load_weights(layer, {}, layout="flax")
    with pytest.raises(ArgumentError, match="'kernel' is no array of numbers"):
        ll.nn.load_weights(layer, {"kernel": "text"})
    with pytest.raises(MissingCheckpointError):
        ll.nn.load_weights(layer, tmp_path / "x")
    with pytest.raises(CheckpointError, match="this Dense has no variables yet: call it once"):
        ll.nn.save_weights(layer, tmp_path / "x")


def test_a_file_of_functions_names_what_reads_it(tmp_path):
    net = ll.nn.Dense(2)
    path = ll.save(net, tmp_path / "net.ll", ll.TensorSpec((None, 3)))
    again = ll.nn.Dense(2)
    again(ll.ones((1, 3)))
    with pytest.raises(CheckpointError, match=r"ll\.load\(.*net\.ll") as caught:
        ll.nn.load_weights(again, path)
    loaded = ll.load(path)
    assert "load_weights(module, dict(loaded.named_variables()))" in str(caught.value)
    ll.nn.load_weights(again, dict(loaded.named_variables())).assert_consumed()
    np.testing.assert_array_equal(again.kernel.numpy(), net.kernel.numpy())


class Wave(ll.Module):
    def __init__(self, values):
        self.phase, self.size = ll.Variable(values), ll.Variable([1.0, 2.0])
        self.inner = ll.nn.Dense(2)
        self.inner(ll.ones((1, 3)))
        self.inner.kernel = ll.Variable(np.sum(values) * np.arange(6).reshape(3, 2))


@pytest.mark.parametrize("layout", ["limelight", "torch", "checkpoint"])
def test_complex128_is_taken_back(layout, tmp_path):
    values = np.arange(6).reshape(2, 3) * (1 + 2j)
    wave, other = Wave(values), Wave(np.zeros((2, 3), complex))
    path = tmp_path / "wave.safetensors"
    if layout == "checkpoint":
        ll.Checkpoint(**vars(wave)).write(path)
    else:
        ll.nn.save_weights(wave, path, layout=layout)
    ll.nn.load_weights(other, path, layout="torch" if layout == "torch" else "limelight").assert_consumed()
    for a, b in zip(wave.variables, other.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("told", ['["b"]', '["a"]', "7", "{", '["x"]'])
def test_what_is_wrongly_called_complex_is_refused(told, tmp_path):
    arrays = {"a": np.zeros((2, 3)), "b": np.zeros(2, "float32")}
    save_file(arrays, tmp_path / "x", {"limelight.complex128": told})
    with pytest.raises(CheckpointError, match="complex128"):
        ll.nn.load_weights(Wave(np.zeros(2, complex)), tmp_path / "x")


def test_keys_that_are_numbers_and_state_that_is_no_weight(tmp_path):
    def made():
        model = ll.Module()
        model.heads = {1: [ll.nn.Dense(2)], -2: ll.nn.Dense(2), "3": ll.nn.Dense(2)}
        model.draws = ll.random.Generator(1)
        for layer in (model.heads[1][0], model.heads[-2], model.heads["3"]):
            layer(ll.ones((1, 3)))
        return model

    for layout in ("limelight", "torch"):
        model, again = made(), made()
        path = ll.nn.save_weights(model, tmp_path / layout, layout=layout)
        status = ll.nn.load_weights(again, path, layout=layout).assert_consumed()
        assert repr(status).endswith(": 6 matched")
        np.testing.assert_array_equal(again.heads[1][0].kernel.numpy(), model.heads[1][0].kernel.numpy())
