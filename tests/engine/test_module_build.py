"""`build`, `summary` and `parameter_count` of modules, without a call."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, ShapeError


class Branches(ll.Module):
    """Two inputs, a layer that is used twice, a variable of its own, a dictionary of layers."""

    def __init__(self) -> None:
        self.parts = {"left": ll.nn.Dense(4), "right": ll.nn.Dense(4)}
        self.shared = ll.nn.Dense(3)
        self.again = self.shared
        self.scale = ll.Variable(1.0, trainable=False)

    def call(self, x: Any, y: Any) -> Any:
        return self.shared(self.parts["left"](x)) + self.again(self.parts["right"](y)) * self.scale


MODELS = {
    "dense": (lambda: ll.nn.Sequential(ll.nn.Dense(8, "relu"), ll.nn.Dropout(0.5), ll.nn.Dense(1)), (5, 3)),
    "images": (
        lambda: ll.nn.Sequential(
            ll.nn.Conv(4, 3), ll.nn.BatchNorm(), ll.nn.MaxPool(2), ll.nn.Flatten(), ll.nn.Dense(2)
        ),
        (2, 8, 8, 1),
    ),
    "recurrent": (lambda: ll.nn.Sequential(ll.nn.LSTM(4), ll.nn.Dense(2)), (2, 5, 3)),
    "layer": (lambda: ll.nn.Dense(2), (4, 3)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch", ["known", "unknown"])
def test_build_makes_the_weights_that_the_first_call_makes(name: str, batch: str) -> None:
    make, shape = MODELS[name]
    called, built = make(), make()
    ll.random.seed(1)
    called(ll.ones(shape))
    ll.random.seed(1)
    built.build(shape if batch == "known" else (None, *shape[1:]))
    assert [path for path, _ in built.named_variables()] == [path for path, _ in called.named_variables()]
    for a, b in zip(called.variables, built.variables, strict=True):
        if "moving" not in a.name:  # statistics of a call
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    x = ll.random.normal(shape)
    assert built(x).shape == called(x).shape
    assert built.parameter_count == sum(int(np.prod(v.shape)) for v in called.variables)


def test_nothing_is_computed_but_the_weights() -> None:
    model = ll.nn.Sequential(ll.nn.Dense(2), ll.nn.Lambda(lambda x: ll.py_func(calls.append, [x], None) or x))
    calls: list[Any] = []
    model.build((None, 3))
    assert not calls
    model.add(ll.nn.Dense(1))  # no trace was kept


def test_specs_tensors_and_several_arguments() -> None:
    model = Branches()
    model.build((None, 2), ll.TensorSpec((None, 5), "float32"))
    assert [v.shape for v in model.variables] == [(2, 4), (4,), (5, 4), (4,), (4, 3), (3,), ()]
    other = Branches()
    other.build(np.ones((1, 2), np.float32), ll.ones((1, 5)))
    assert other.parameter_count == model.parameter_count
    ids = ll.nn.Sequential(ll.nn.Embedding(10, 4), ll.nn.Dense(1))
    ids.build(ll.TensorSpec((None, 7), "int32"))
    assert ids.variables[0].shape == (10, 4)


def test_a_layer_is_built_by_a_number_of_features_or_by_a_shape() -> None:
    for given in (3, (None, 3), ll.TensorSpec((5, 3))):
        layer = ll.nn.Dense(2)
        layer.build(given)  # type: ignore[arg-type]
        before = layer.kernel
        assert layer(ll.ones((1, 3))).shape == (1, 2)
        assert layer.kernel is before
        with pytest.raises(ShapeError, match="3 features, got 4"):
            layer(ll.ones((1, 4)))


def test_layers_that_build_as_keras_has_it() -> None:
    class Scaled(ll.nn.Layer):
        def build(self, input_shape: Any) -> None:
            self.inner = ll.nn.Dense(3)
            self.inner.build(input_shape)
            self.scale = self.weight("scale", (input_shape[-1],), ll.nn.initializers.ones)
            super().build(input_shape)

        def call(self, x: Any) -> Any:
            return self.inner(self.ready(x) * self.scale)

    layer = Scaled()
    layer.build((None, 5))
    assert layer.parameter_count == 5 + 15 + 3
    assert Scaled()(ll.ones((2, 5))).shape == (2, 3)


def test_a_build_that_fails_leaves_the_model_as_it_was() -> None:
    model = ll.nn.Sequential(ll.nn.Dense(2), ll.nn.Conv(3, 3))
    with pytest.raises(ShapeError):
        model.build((None, 3))
    assert not model.variables
    for wrong, words in ((5, r"write \(None, 5\)"), ("no", "str")):
        with pytest.raises(ArgumentError, match=words):
            model.build(wrong)


def test_a_model_without_weights_says_what_to_do() -> None:
    model = ll.nn.Sequential(ll.nn.Dense(2), ll.nn.Dense(3))
    with pytest.raises(ArgumentError, match=r"2 layers, Dense\(2\) first, have no weights yet.*build\(\(None, ...\)\)"):
        _ = model.parameter_count
    assert "no weights yet" in str(model.summary())
    assert model.summary().parameters == 0


def test_the_table_of_a_model() -> None:
    assert str(Branches().summary((None, 2), (None, 5))) == TABLE


TABLE = """\
Layer          Type   Output                         Parameters  Bytes
─────────────  ─────  ─────────────────────  ──────────────────  ─────
Branches              f32[?,3]                                1    4 B
  parts.left   Dense  f32[?,4]                               12   48 B
  parts.right  Dense  f32[?,4]                               24   96 B
  shared       Dense  f32[?,3] (of 2 calls)                  15   60 B
  again        Dense                         shared with shared

Total: 52 parameters, 1 of them not trained, 208 B"""


def test_what_is_known_without_shapes() -> None:
    model = Branches()
    model(ll.ones((1, 2)), ll.ones((1, 5)))
    assert model.summary().parameters == model.parameter_count == 52
    assert "f32[?,3] (of 2 calls)" in str(model.summary())
    sequence = ll.nn.Sequential(ll.nn.Dense(2))
    sequence(ll.ones((4, 3)))
    assert "f32[?,2]" in str(sequence.summary())


def test_a_summary_after_a_call_leaves_the_model_as_it_was_and_may_not_know() -> None:
    class Keeping(ll.Module):
        def __init__(self) -> None:
            self.layer = ll.nn.Dense(2)
            self.seen: list[Any] = []

        def call(self, x: Any) -> Any:
            self.last = self.layer(x).reshape((x.shape[0] * 1, 2))  # for a number of rows that is known
            self.seen.append(self.last)
            return float(self.last[0, 0]) if self.asks else self.last

    model = Keeping()
    model.asks = False
    y = model(ll.ones((4, 3)))
    assert [row.output for _, row in model.summary().root.walk()] == ["f32[4,2]", "f32[4,2]"]
    assert model.last is y
    assert model.seen == [y]
    asking = Keeping()
    asking.asks = True  # a trace cannot answer
    asking(ll.ones((4, 3)))
    assert "f32[" not in str(asking.summary())
    assert asking.summary().parameters == 8


def test_the_tree_is_sound_html_and_escaped() -> None:
    model = ll.nn.Sequential(ll.nn.Dense(2))
    vars(model)["<script>alert(1)</script>"] = ll.nn.Dense(3)
    model.build((None, 3))
    html = model.summary()._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    opened: list[str] = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Checker().feed(html)
    assert not opened
    assert not any(f"color: {c}" in html for c in ("#", "black", "white"))  # those of the page, light or dark


def test_a_circle_of_modules_has_a_summary() -> None:
    a, b = Branches(), Branches()
    a.other, b.other = b, a  # type: ignore[attr-defined]
    assert "shared with the model" in str(a.summary())


def test_building_and_summing_up_leave_no_trace_behind() -> None:
    step = ll.function(lambda x: model(x) + 0.0)
    model = ll.nn.Sequential(ll.nn.Dense(2))
    model.build((None, 3))
    step(ll.ones((2, 3)))
    model.summary((None, 3))
    step(ll.ones((2, 3)))
    assert step.trace_count == 1
    with pytest.raises(ArgumentError, match="has traced this model"):
        model.add(ll.nn.Dense(1))


def test_a_variable_of_two_modules_counts_once() -> None:
    a, b = Branches(), Branches()
    b.scale = a.scale
    a.other = b  # type: ignore[attr-defined]
    summary = a.summary()
    assert summary.parameters == sum(row.own.parameters for _, row in summary.root.walk()) == 1


class Normed(ll.Module):
    def __init__(self):
        self.parts = ll.nn.Sequential(ll.nn.Dense(4), ll.nn.BatchNorm())

    def call(self, x, training=False, *, scale=None):
        return self.parts(x, training=training)


@pytest.mark.parametrize(
    "first_call",
    [
        lambda net: net(ll.ones((2, 3)), training=True),
        lambda net: net(ll.ones((2, 3)), True),
        lambda net: net(np.ones((2, 3), np.float32)),
        lambda net: net(x=ll.ones((2, 3)), scale=ll.ones(())),
    ],
)
def test_a_summary_knows_the_results_whatever_the_first_call_was_given(first_call):
    net = Normed()
    first_call(net)
    assert [row.output for _, row in net.summary().root.walk()] == ["f32[?,4]"] * 4


def test_the_names_of_trained_variables_go_with_the_gradients():
    net = Normed()
    with ll.GradientTape() as tape:
        loss = ll.sum(net(ll.ones((2, 3)), training=True))
    names = [name for name, _ in net.named_variables(trainable=True)]
    assert names == [f"parts/layers/{end}" for end in ("0/kernel", "0/bias", "1/scale", "1/offset")]
    assert len(tape.gradient(loss, net)) == len(names)
    assert [name for name, _ in net.named_variables(trainable=False)] == [
        "parts/layers/1/mean",
        "parts/layers/1/variance",
    ]
