"""What `ll.save` writes and refuses, and what `ll.load` gives back."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ExportError, SignatureError

VECTOR = ll.TensorSpec((None,))
Pair = namedtuple("Pair", "first second")  # as users write it


@pytest.fixture
def again(tmp_path):
    """Saves and loads."""
    return lambda target, *signatures: ll.load(ll.save(target, tmp_path / "f.ll", list(signatures)))


class Net(ll.Module):
    def __init__(self):
        self.layers = [ll.nn.Dense(4, activation=ll.tanh), ll.nn.Dense(2)]
        self.scales = {"in": ll.Variable(2.0), "out": ll.Variable(0.5, trainable=False)}

    def call(self, x, training=False):
        for layer in self.layers:
            x = layer(x * self.scales["in"])
        return x * 2 if training else x

    @ll.function
    def norm(self):
        return ll.sum(ll.square(self.layers[0].kernel))


class TestWhatComesBack:
    def test_plain_values_choose_the_trace(self, again):
        f = ll.function(lambda x, power=2, *, how="sum": getattr(ll, how)(x**power))
        x = ll.constant([1.0, 2.0, 3.0])
        expected = f(x).item(), f(x, 3).item(), f(x, how="max").item()
        loaded = again(f)
        assert (loaded(x).item(), loaded(x, 3).item(), loaded(x, how="max").item()) == expected
        with pytest.raises(SignatureError) as caught:
            loaded(x, 4)
        for words in ("power: 4", "power: 2", "power: 3", "how: 'max'", "was loaded from a file"):
            assert words in str(caught.value)

    def test_structures_of_arguments_and_results(self, again):
        @ll.function
        def f(batch, *rest, **named):
            total = batch["x"] + batch["y"][0]
            return {"pair": Pair(total, None), "rest": [r * 2 for r in rest], "named": (named["w"],), 3: total.shape[0]}

        given = ({"x": ll.ones(2), "y": [ll.zeros(2)]}, ll.constant(1), ll.constant(2)), {"w": ll.ones((1, 1))}
        expected = f(*given[0], **given[1])
        result = again(f)(*given[0], **given[1])
        assert list(result) == list(expected)
        assert type(result["pair"]).__name__ == "Pair"
        assert result["pair"].second is None
        assert ll.tree.map(lambda x: None if x is None else x.tolist(), dict(result, pair=tuple(result["pair"]))) == (
            ll.tree.map(lambda x: None if x is None else x.tolist(), dict(expected, pair=tuple(expected["pair"])))
        )

    @pytest.mark.parametrize("value", [float("nan"), -0.0, float("inf"), 1 + 2j, b"\x00\xff", "ü\n", None, True, 2**70])
    def test_any_plain_value(self, again, value):
        f = ll.function(lambda x, value: x + 1)
        f(ll.ones(2), value)
        assert again(f)(ll.ones(2), value).tolist() == [2, 2]

    def test_unknown_sizes(self, again):
        loaded = again(lambda x: x + x.sum(), VECTOR)
        assert [loaded(ll.ones(n)).shape for n in (1, 2, 5)] == [(1,), (2,), (5,)]
        with pytest.raises(SignatureError, match=r"f32\[\?\]"):
            loaded(ll.ones((1, 2)))

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "complex64", "complex128"])
    @pytest.mark.parametrize("shape", [(), (0, 3), (40,)])
    def test_captures_of_any_dtype(self, again, dtype, shape):
        rng = np.random.default_rng(1)
        held = ll.astype(ll.constant(rng.integers(0, 2, shape)), dtype)
        v = ll.Variable(held)
        f = ll.function(lambda: (held, v.read_value(), ll.constant(held.numpy())))
        f()
        for x in again(f)():
            assert (x.dtype, x.shape, x.numpy().tobytes()) == (held.dtype, held.shape, held.numpy().tobytes())

    def test_each_load_has_variables_of_its_own(self, tmp_path):
        v = ll.Variable([1.0, 2.0], name="v")

        @ll.function
        def add(x):
            v.assign_add(x)
            return v.read_value()

        add(ll.zeros(2))
        path = ll.save(add, tmp_path / "add.ll")
        one, two = ll.load(path), ll.load(path)
        assert one(ll.ones(2)).tolist() == [2, 3]
        assert one(ll.ones(2)).tolist() == [3, 4]
        assert two(ll.zeros(2)).tolist() == [1, 2]
        assert v.tolist() == [1, 2]
        assert [x.name for x in one.variables] == ["v"]

    def test_a_module_has_its_tree(self, again):
        net, x = Net(), ll.ones((3, 5))
        expected = net(x), net(x, training=True), net.norm()
        loaded = again(net, ll.TensorSpec((None, 5)), (ll.TensorSpec((None, 5)), True))
        found = loaded(x), loaded(x, training=True), loaded.norm()
        assert [y.numpy().tobytes() for y in found] == [y.numpy().tobytes() for y in expected]
        assert [(path, v.trainable) for path, v in loaded.named_variables()] == [
            (path, v.trainable) for path, v in net.named_variables()
        ]
        assert loaded.layers[0].kernel.shape == (5, 4)

    def test_layers_without_variables_keep_their_places(self, again):
        net = ll.nn.Sequential(ll.nn.Flatten(), ll.nn.Dense(3), ll.nn.relu, ll.nn.Dense(2))
        net(ll.ones((1, 2, 2)))
        loaded = again(net, ll.TensorSpec((None, 2, 2)))
        assert [path for path, _ in loaded.named_variables()] == [path for path, _ in net.named_variables()]
        assert loaded.layers[1].kernel.shape == (4, 3)

    def test_it_can_be_trained_on_and_saved_again(self, again):
        net, x = Net(), ll.ones((3, 5))
        net(x), net.norm()
        loaded = again(net, ll.TensorSpec((None, 5)))
        optimiser = ll.optim.SGD(0.1)

        @ll.function
        def step(x):
            with ll.GradientTape() as tape:
                loss = ll.mean(ll.square(loaded(x)))
            optimiser.apply(tape.gradient(loss, loaded.trainable_variables), loaded.trainable_variables)
            return loss

        losses = [step(x).item() for _ in range(5)]
        assert losses == sorted(losses, reverse=True)
        assert losses[-1] < losses[0]
        twice = again(loaded)
        assert twice(x).numpy().tobytes() == loaded(x).numpy().tobytes()
        assert twice(x).numpy().tobytes() != net(x).numpy().tobytes()

    def test_generators_go_on_where_they_were(self, again):
        mine = ll.random.Generator(3)
        f = ll.function(lambda: (mine.normal((2,)), ll.random.uniform((2,))))
        f()
        loaded = again(f)
        ll.random.seed(9)
        expected = [x.tolist() for x in f()]
        ll.random.seed(9)
        assert [x.tolist() for x in loaded()] == expected

    def test_functions_by_name(self, again):
        loaded = again({"double": _staged(lambda x: x * 2), "half": _staged(lambda x: x / 2)})
        assert {name: f(ll.ones(1)).tolist() for name, f in loaded.items()} == {"double": [2], "half": [0.5]}

    def test_gradients_of_any_order_and_custom_ones(self, again):
        @ll.custom_gradient
        def clipped(x):
            return x * x, lambda g: ll.clip(g, -1.0, 1.0) * x

        f = _staged(lambda x: ll.sum(clipped(x) + ll.cond(x[0] > 0, lambda: ll.sin(x), lambda: ll.exp(x))))
        loaded, x = again(f), ll.constant([0.3])
        for order in range(3):
            mine, theirs = loaded, f
            for _ in range(order):
                mine, theirs = (_total(ll.grad(g)) for g in (mine, theirs))
            assert mine(x).item() == pytest.approx(theirs(x).item(), rel=1e-6)

    def test_in_a_process_that_lacks_the_code(self, tmp_path):
        net = ll.nn.Sequential(ll.nn.Dense(3, activation=ll.nn.relu), ll.nn.Dense(2))
        x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
        expected = net(x)
        ll.save(net, tmp_path / "net.ll", ll.TensorSpec((None, 4)))
        code = "import sys, numpy as np, limelight as ll; x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4); "
        code += "print(ll.load(sys.argv[1])(x).tolist())"
        done = subprocess.run(
            [sys.executable, "-c", code, tmp_path / "net.ll"], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert json.loads(done.stdout) == expected.tolist()


def _staged(f):
    staged = ll.function(f)
    staged(ll.ones(1))
    return staged


def _total(f):
    return lambda x: ll.sum(f(x))


class TestWhatIsRefused:
    """At save, with function, op and line; and no file is left."""

    def test_a_function_without_traces(self, tmp_path):
        with pytest.raises(ExportError, match=r"call it once, or give ll.save its signature"):
            ll.save(ll.function(lambda x: x), tmp_path / "f.ll")
        with pytest.raises(ExportError, match=r"Net has no trace to save"):
            ll.save(Net(), tmp_path / "f.ll")

    def test_a_variable_of_somebody_else(self, tmp_path):
        outside = ll.Variable(2.0, name="outside")

        class Uses(ll.Module):
            def call(self, x):
                return x * outside

        with pytest.raises(ExportError, match=r"'outside', in read_variable at test_save.py:\d+, which is not part"):
            ll.save(Uses(), tmp_path / "f.ll", VECTOR)

    def test_objects_and_variables_as_arguments(self, tmp_path):
        f = ll.function(lambda x, g: g(x))
        f(ll.ones(1), ll.tanh)
        with pytest.raises(ExportError, match=r"argument `g` is .*a Python object; have the function close over it"):
            ll.save(f, tmp_path / "f.ll")
        f = ll.function(lambda v: v + 1)
        f(ll.Variable(1.0))
        with pytest.raises(ExportError, match=r"argument `v` is a variable"):
            ll.save(f, tmp_path / "f.ll")

    def test_an_op_of_the_users(self, tmp_path):
        mine = ll.defop("mine_for_save", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x + 1, why_no_gradient="-")
        f = _staged(mine)
        with pytest.raises(ExportError, match=r"op mine_for_save is defined in .*test_save"):
            ll.save(f, tmp_path / "f.ll")

    @pytest.mark.parametrize("target", [3, None, "f", [1]])
    def test_what_is_no_function(self, tmp_path, target):
        with pytest.raises(ExportError, match=r"ll.save takes a function, a module or a dictionary"):
            ll.save(target, tmp_path / "f.ll")

    def test_places_that_cannot_be_written(self, tmp_path):
        f = _staged(lambda x: x)
        with pytest.raises(ExportError, match=r"is a folder; give the name of a file"):
            ll.save(f, tmp_path)
        with pytest.raises(ExportError, match=r"there is no folder"):
            ll.save(f, tmp_path / "no" / "f.ll")
        with pytest.raises(ExportError, match=r"takes a path"):
            ll.save(f, 3)

    def test_a_write_that_fails_leaves_what_was_there(self, tmp_path, monkeypatch):
        f = _staged(lambda x: x * 2)
        path = ll.save(f, tmp_path / "f.ll")
        before = path.read_bytes()

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(ExportError, match=r"No space left"):
            ll.save(f, path)
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["f.ll"]


class TestFilesOfOthers:
    def test_what_is_no_such_file(self, tmp_path):
        with pytest.raises(ExportError, match=r"there is no file"):
            ll.load(tmp_path / "none.ll")
        with pytest.raises(ExportError, match=r"is a folder"):
            ll.load(tmp_path)
        (tmp_path / "text").write_text("hello")
        with pytest.raises(ExportError, match=r"is no safetensors file"):
            ll.load(tmp_path / "text")

    def test_a_newer_format_says_so(self, tmp_path):
        path = ll.save(_staged(lambda x: x), tmp_path / "f.ll")
        path.write_bytes(path.read_bytes().replace(rb"\"version\": 1", rb"\"version\": 9"))
        with pytest.raises(ExportError, match=r"has version 9 of the format.*install a newer one"):
            ll.load(path)

    def test_the_first_format_can_always_be_read(self):
        loaded = ll.load(Path(__file__).with_name("first_format.ll"))
        assert loaded(ll.constant([1.0, 2.0])).tolist() == [4.0, 6.0]
        assert loaded.w.tolist() == [3.0, 4.0]

    def test_mutated_files_raise_our_error_or_run(self, tmp_path):
        net = Net()
        net(ll.ones((1, 5))), net.norm()
        path = ll.save(net, tmp_path / "f.ll", ll.TensorSpec((None, 5)))
        whole, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
        (length,) = struct.unpack("<Q", whole[:8])
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(rng.integers(1, 4)):
                at = int(rng.integers(0, length + 8))
                match rng.integers(3):
                    case 0:
                        data[at] = int(rng.integers(256))
                    case 1:
                        del data[at : at + int(rng.integers(1, 20))]
                    case 2:
                        data[at:at] = data[at : at + int(rng.integers(1, 20))]
            path.write_bytes(data)
            try:
                ll.load(path)
            except ExportError:
                refused += 1
        assert refused > 200
