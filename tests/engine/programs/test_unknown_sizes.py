"""One trace for every size: models with unknown sizes forwards, backwards and in whole training steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")

Spec = ll.TensorSpec


class Model(NamedTuple):
    """How to make it, the signature of its input, and inputs that fit."""

    make: Callable[[], Any]
    spec: ll.TensorSpec
    shapes: list[tuple[int, ...]]
    options: tuple[tuple[str, Any], ...] = ()


def attention() -> Any:
    class Attending(ll.Module):
        def __init__(self) -> None:
            self.attend = ll.nn.MultiHeadAttention(2, depth=4)
            self.out = ll.nn.Dense(3)

        def __call__(self, x: Any) -> Any:
            return self.out(ll.mean(self.attend(x, x), axis=1))

    return Attending()


def sequence(*layers: Any) -> Callable[[], Any]:
    return lambda: ll.nn.Sequential(*[layer() for layer in layers])


dense = lambda: ll.nn.Dense(3)  # noqa: E731
pooled = lambda axes: lambda: lambda x: ll.mean(x, axis=axes)  # noqa: E731
conv = lambda: ll.nn.Conv(4, 3, padding="same", activation=ll.nn.relu)  # noqa: E731
MODELS = {
    "mlp": Model(sequence(lambda: ll.nn.Dense(8, activation=ll.nn.relu), dense), Spec((None, 5)), [(4, 5), (1, 5)]),
    "convnet": Model(
        sequence(conv, lambda: ll.nn.MaxPool(2), ll.nn.Flatten, dense),
        Spec((None, 6, 6, 2)),
        [(3, 6, 6, 2), (1, 6, 6, 2)],
    ),
    "convnet of any size": Model(
        sequence(conv, lambda: ll.nn.AvgPool(2), pooled((1, 2)), dense),
        Spec((None, None, None, 2)),
        [(3, 6, 6, 2), (1, 8, 4, 2)],
    ),
    "lstm": Model(
        sequence(lambda: ll.nn.LSTM(4, return_sequences=True), lambda: ll.nn.LSTM(4), dense),
        Spec((None, None, 5)),
        [(4, 6, 5), (1, 3, 5)],
    ),
    "gru of one batch size": Model(sequence(lambda: ll.nn.GRU(4), dense), Spec((2, None, 5)), [(2, 6, 5), (2, 1, 5)]),
    "attention": Model(attention, Spec((None, None, 8)), [(4, 6, 8), (1, 3, 8)]),
    "batch norm": Model(
        sequence(lambda: ll.nn.Dense(8), ll.nn.BatchNorm, dense),
        Spec((None, 5)),
        [(4, 5), (7, 5)],
        (("training", True),),
    ),
    "layer norm": Model(sequence(lambda: ll.nn.Dense(8), ll.nn.LayerNorm, dense), Spec((None, 5)), [(4, 5), (7, 5)]),
    "embedding": Model(
        sequence(lambda: ll.nn.Embedding(10, 4), pooled(1), dense), Spec((None, None), "int32"), [(4, 5), (3, 2)]
    ),
}


def batch(model: Model, shape: tuple[int, ...], seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 10, shape) if model.spec.dtype == ll.int32 else rng.normal(size=shape)
    return ll.constant(x.astype(model.spec.dtype)), ll.constant(rng.integers(0, 3, shape[0]).astype("int32"))


def training(net: Any, options: dict[str, Any]) -> Callable[[Any, Any], Any]:
    optimiser = ll.optim.Adam(0.1)

    def step(x: Any, labels: Any) -> Any:
        with ll.GradientTape() as tape:
            scores = net(x, **options)
            loss = ll.mean(ll.nn.softmax_cross_entropy(scores, labels))
        optimiser.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
        return loss, scores

    return step


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_one_trace_trains_on_every_size(model: Model) -> None:
    nets = [model.make(), model.make()]
    for net in nets:
        net(batch(model, model.shapes[0])[0], **dict(model.options))
    for a, b in zip(nets[0].variables, nets[1].variables, strict=True):
        a.assign(b)
    eager, staged = (training(net, dict(model.options)) for net in nets)
    F = ll.function(staged, input_signature=[model.spec, Spec((None,), "int32")])
    for k, shape in enumerate([*model.shapes, *model.shapes]):
        given, wanted = F(*batch(model, shape, k)), eager(*batch(model, shape, k))
        np.testing.assert_allclose(given[0].numpy(), wanted[0].numpy(), rtol=2e-4, atol=2e-5)
    for a, b in zip(nets[0].variables, nets[1].variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-3, atol=2e-4)
    assert len(F.trace_cache) == 1
    graph = F.trace_cache[0].graph
    assert graph.outputs[1].spec.shape[1] == 3, "the number of classes is known"
    updates = [node for node in graph.nodes if node.op.effect == "write"]
    assert all(None not in value.spec.shape for node in updates for value in node.outputs), (
        "and so are gradients' sizes"
    )


# --- What is known stays known


def spec_of(f: Callable[..., Any], *specs: ll.TensorSpec) -> list[Any]:
    F = ll.function(f, input_signature=list(specs))
    F.get_concrete_function(*specs)
    return [value.spec.shape for value in F.trace_cache[0].graph.outputs]


n3 = Spec((None, 3))
KNOWN: list[tuple[Callable[[Any], Any], tuple[int | None, ...]]] = [
    (lambda x: ll.zeros(ll.shape_of(x)), (None, 3)),
    (lambda x: ll.zeros((ll.shape_of(x)[0], 4)), (None, 4)),
    (lambda x: ll.broadcast_to(x, [2, ll.shape_of(x)[0], 3]), (2, None, 3)),
    (lambda x: ll.broadcast_to(x, ll.concat([ll.constant([5]), ll.shape_of(x).astype("int32")])), (5, None, 3)),
    (lambda x: x.reshape((-1, ll.shape_of(x)[1])), (None, 3)),
    (lambda x: x.reshape((ll.shape_of(x)[0], ll.shape_of(x)[1], 1)), (None, 3, 1)),
    (lambda x: ll.random.normal(ll.shape_of(x)), (None, 3)),
    (
        lambda x: ll.ones(ll.stack([ll.prod(ll.shape_of(x)[1:]) * 2, ll.shape_of(x)[1] - 1 + 0 * ll.shape_of(x)[0]])),
        (6, 2),
    ),
    (lambda x: x[:, : ll.shape_of(x)[1] - 1], (None, 2)),
    (ll.grad(lambda x: ll.sum(ll.sum(x, axis=0) ** 2)), (None, 3)),
    (ll.grad(lambda x: ll.sum(x[:, :2] ** 2)), (None, 3)),
    (ll.grad(lambda x: ll.sum(ll.concat([x, x], axis=1) ** 2)), (None, 3)),
    (ll.grad(lambda x: ll.sum((x + ll.ones((2, 1, 3))) ** 2)), (None, 3)),
    (ll.grad(lambda x: ll.sum(ll.scan(lambda c, r: (c * r, c), ll.ones(3), x)[1])), (None, 3)),
    (ll.grad(lambda x: ll.sum(ll.scan(lambda c, r: (c * r, c), x, ll.ones(4))[0])), (None, 3)),
    (
        ll.grad(lambda x: ll.sum(ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, ll.sin(y)), (0, x))[1])),
        (None, 3),
    ),
    (lambda x: ll.scan(lambda c, r: (c * r, c), ll.ones(3), x)[1], (None, 3)),
    (lambda x: ll.nn.conv_transpose(x.expand_dims((0, 3)), ll.ones((3, 3, 5, 1)), stride=2), (1, None, 6, 5)),
]


@pytest.mark.parametrize(("f", "shape"), KNOWN, ids=range(len(KNOWN)))
def test_known_sizes_stay_known_and_are_right(f: Callable[..., Any], shape: tuple[int | None, ...]) -> None:
    assert spec_of(f, n3) == [shape]
    for rows in (4, 1):
        result = ll.function(f, input_signature=[n3])(ll.ones((rows, 3)))
        assert [n for n, known in zip(result.shape, shape, strict=True) if known not in (None, n)] == []
        assert result.shape == f(ll.ones((rows, 3))).shape


def test_what_does_not_fit_is_found_where_the_size_is_known() -> None:
    wrong = lambda x: ll.zeros(ll.shape_of(x)) @ ll.ones((4, 2))  # noqa: E731
    with pytest.raises(ShapeError, match=r"\(None, 3\).*\(4, 2\)|f32\[\?,3\].*f32\[4,2\]"):
        ll.function(wrong, input_signature=[n3])(ll.ones((2, 3)))
