"""Section 4.3, state: behaviours 101 to 104 of functions that are saved."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import DTypeError, ExportError, ShapeError, SignatureError

both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])

MODEL = """
    import limelight as ll

    class Model(ll.Module):
        def __init__(self):
            self.layer, self.steps = ll.nn.Dense(2), ll.Variable(0)
            self.layer.build(2)
            self.table = ll.constant([10.0, 20.0])

        def scaled(self, x, by):
            return x * by + self.table

        @ll.function
        def call(self, x, *, scale=1.0):
            self.steps.assign_add(1)
            y = ll.cond(ll.sum(x) > 0.0, lambda: self.layer(x), lambda: -self.layer(x))
            y = ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), (ll.constant(0), y))[1]
            return {"y": ll.function(self.scaled)(y, scale), "steps": self.steps.read_value()}
"""
FRESH = """
    import sys, numpy as np, limelight as ll
    loaded, given = ll.load(sys.argv[1]), np.load(sys.argv[2])
    assert "model_of_the_test" not in sys.modules
    for i, arguments in enumerate([{}, {"scale": 3.0}]):
        for sign in (1.0, -1.0):
            y = loaded(x=sign * ll.constant(given["x"]), **arguments)["y"]
            np.testing.assert_array_equal(y, given[f"{i}{sign}"])
    assert loaded.steps.item() == int(given["steps"]) + 4
    print(loaded.functions["call"].__signature__)
"""


def test_101_a_saved_model_runs_in_a_process_without_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control flow, a nested function, captured constants, two signatures, parameters by name."""
    (tmp_path / "model_of_the_test.py").write_text(textwrap.dedent(MODEL))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "model_of_the_test", raising=False)
    import model_of_the_test

    x = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
    model = model_of_the_test.Model()
    results = {
        f"{i}{sign}": model(sign * ll.constant(x), **arguments)["y"].numpy()
        for i, arguments in enumerate([{}, {"scale": 3.0}])
        for sign in (1.0, -1.0)
    }
    path = ll.save(model, tmp_path / "model.ll")
    np.savez(tmp_path / "given.npz", x=x, steps=model.steps.numpy(), **results)
    (tmp_path / "elsewhere").mkdir()
    fresh = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FRESH), str(path), str(tmp_path / "given.npz")],
        cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert fresh.returncode == 0, fresh.stderr
    assert fresh.stdout.strip() == "(x, *, scale=1.0)"
    assert model.steps.item() == 4


def test_101_dtypes_and_shapes_are_checked_on_the_call(tmp_path: Path) -> None:
    f = ll.function(lambda x: x * 2.0)
    loaded = ll.load(ll.save(f, tmp_path / "f.ll", ll.TensorSpec((None, 2))))
    assert loaded(ll.ones((5, 2))).shape == (5, 2)
    for wrong in (ll.ones((5, 3)), ll.ones((2,)), ll.ones((5, 2), dtype="float64"), "text"):
        with pytest.raises((SignatureError, ShapeError, DTypeError), match=r"f32\[\?,2\]"):
            loaded(wrong)


def _python_code() -> Any:
    @ll.function
    def doubled(x: Any) -> Any:
        return ll.py_func(lambda x: x * 2.0, [x], ll.TensorSpec((2,)))

    return doubled


def _untracked() -> Any:
    class Model(ll.Module):
        def call(self, x: Any) -> Any:
            return x * hidden

    hidden = ll.Variable([1.0, 2.0], name="hidden")
    return Model()


def _open_closure() -> Any:
    class Settings:
        pass

    return ll.function(lambda x, settings=Settings(): x * 2.0)  # noqa: B008  # an object as a default


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_python_code, ("doubled cannot be saved", "py_func", "test_4_3_functions.py:")),
        (_untracked, ("Model", "'hidden'", "test_4_3_functions.py:", "make it an attribute of the module")),
        (_open_closure, ("settings", "Settings")),
    ],
)
def test_102_what_cannot_travel_is_refused_when_it_is_saved(
    make: Callable[[], Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    target = make()
    with pytest.raises(ExportError) as caught:
        ll.save(target, tmp_path / "f.ll", ll.TensorSpec((2,)))
    assert not list(tmp_path.iterdir())
    for word in words:
        assert word in str(caught.value), str(caught.value)


@both
def test_103_loaded_functions_are_differentiable_to_any_order(stage: Any, tmp_path: Path) -> None:
    @ll.function
    def f(x: Any) -> Any:
        return ll.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * ll.sin(x)), (ll.constant(0), x))[1]

    loaded = ll.load(ll.save(f, tmp_path / "f.ll", ll.TensorSpec(())))
    x = ll.constant(0.7)
    for order in range(3):
        g, h = loaded, f
        for _ in range(order):
            g, h = ll.grad(g), ll.grad(h)
        np.testing.assert_allclose(stage(g)(x).numpy(), h(x).numpy(), rtol=1e-6)


def test_103_new_functions_call_them_and_train_their_variables(tmp_path: Path) -> None:
    model = ll.nn.Dense(1)
    loaded = ll.load(ll.save(model, tmp_path / "m.ll", ll.TensorSpec((None, 2))))
    x, y = ll.constant([[1.0, 2.0], [3.0, 4.0]]), ll.constant([[1.0], [2.0]])
    optimizer = ll.optim.SGD(0.01)

    @ll.function
    def step() -> Any:
        with ll.GradientTape() as tape:
            loss = ll.mean((loaded(x) - y) ** 2)
        optimizer.apply(tape.gradient(loss, loaded.trainable_variables), loaded.trainable_variables)
        return loss

    before = model.kernel.numpy()
    losses = [step().item() for _ in range(5)]
    assert losses[-1] < losses[0]
    assert step.trace_count == 1
    np.testing.assert_array_equal(model.kernel.numpy(), before)


def test_103_an_unknown_signature_lists_those_there_are(tmp_path: Path) -> None:
    f = ll.function(lambda x, mode="sum": getattr(ll, mode)(x))
    specs = [(ll.TensorSpec((3,)), "sum"), (ll.TensorSpec((None, 2)), "max")]
    loaded = ll.load(ll.save(f, tmp_path / "f.ll", specs))
    assert loaded(ll.ones((4, 2)), "max").item() == 1.0
    with pytest.raises(SignatureError) as caught:
        loaded(ll.ones((4, 2)), "min")
    for words in ("x: f32[3], mode: 'sum'", "x: f32[?,2], mode: 'max'"):
        assert words in str(caught.value)


def test_104_restoring_a_loaded_module_keeps_its_trace_count(tmp_path: Path) -> None:
    model = ll.nn.Dense(1)
    loaded = ll.load(ll.save(model, tmp_path / "m.ll", ll.TensorSpec((None, 2))))
    step = ll.function(loaded)
    x = ll.ones((1, 2))
    first = step(x).item()
    checkpoint = ll.Checkpoint(model=loaded)
    path = checkpoint.write(tmp_path / "m.safetensors")
    loaded.kernel.assign_add(ll.ones((2, 1)))
    assert step(x).item() != first
    checkpoint.restore(path).assert_consumed()
    assert step(x).item() == first
    assert step.trace_count == 1
