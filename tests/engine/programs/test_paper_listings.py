"""The eight listings of the paper, in its order, with the values that it prints or asserts."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll


def test_section_4_1_select_prints_what_the_paper_prints() -> None:
    def select(vector: ll.Tensor) -> ll.Tensor:
        A = ll.constant([[1.0, 0.0]])
        return ll.matmul(A, vector)

    x = ll.constant([[2.0], [-2.0]])
    assert str(select(x)) == "ll.Tensor(\n[[2.]], shape=(1, 1), dtype=float32)"
    assert ll.function(select)(x).tolist() == [[2.0]]


def test_section_4_1_numpy_noise_is_a_constant_of_the_graph() -> None:
    def add_noise(library: object) -> ll.Tensor:
        eye = ll.eye(5)
        randn = library.random.randn(5, 5) if library is np else ll.random.normal((5, 5))  # type: ignore[attr-defined]
        return eye + randn.astype("float32")

    frozen = ll.function(lambda: add_noise(np))
    assert np.array_equal(frozen().numpy(), frozen().numpy())
    fresh = ll.function(lambda: add_noise(ll))
    assert not np.array_equal(fresh().numpy(), fresh().numpy())


def test_listing_1_tapes_nest() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape() as t1, ll.GradientTape() as t2:
        t1.watch(x)
        t2.watch(x)
        y = x * x
        dy_dx = t2.gradient(y, x)
    d2y_dx2 = t1.gradient(dy_dx, x)
    assert dy_dx.item() == 6.0
    assert d2y_dx2.item() == 2.0


def test_listing_2_tapes_watch_variables() -> None:
    x = ll.Variable(3.0)
    with ll.GradientTape() as t1:
        with ll.GradientTape() as t2:
            y = x * x
        dy_dx = t2.gradient(y, x)
    d2y_dx2 = t1.gradient(dy_dx, x)
    assert dy_dx.item() == 6.0
    assert d2y_dx2.item() == 2.0


def test_listing_3_a_model_is_a_graph_of_named_edges() -> None:
    class Net(ll.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v = ll.Variable(1.0)
            self.out = ll.nn.Dense(1)

        def call(self, x: ll.Tensor) -> ll.Tensor:
            return self.out(ll.nn.softplus(x * self.v))

    net = Net()
    assert net(ll.ones((4, 2))).shape == (4, 1)
    assert [name for name, _ in net.edges()] == ["v", "out"]
    assert [name for name, _ in net.out.edges()] == ["kernel", "bias"]
    assert [path for path, _ in net.named_variables()] == ["v", "out/kernel", "out/bias"]


def _other_device() -> str:
    """A GPU where there is one, else a second CPU device: the listing is about copies, not about what copies."""
    if any(d.kind == "GPU" for d in ll.list_devices()):
        return "/gpu:0"
    ll.config.set_virtual_devices(CPU=max(2, sum(d.kind == "CPU" for d in ll.list_devices())))
    return "/cpu:1"


def test_listing_4_copies_between_devices() -> None:
    a = ll.constant(1.0)
    b = a.to(_other_device())
    assert a.device == "/cpu:0"
    assert b.device == _other_device()
    assert b.cpu().device == "/cpu:0"
    assert b.numpy() == 1.0


def test_listing_4_names_a_missing_gpu() -> None:
    if any(d.kind == "GPU" for d in ll.list_devices()):
        assert ll.constant(1.0).gpu().device == "/gpu:0"
    else:
        with pytest.raises(ll.errors.DeviceError, match="GPU:0"):
            ll.constant(1.0).gpu()


def test_listing_5_operands_are_copied_to_the_op() -> None:
    a = ll.constant(1.0)
    b = ll.constant(2.0)
    with ll.device(_other_device()):
        c = ll.add(a, b)
    assert c.numpy() == 3.0
    assert c.device == _other_device()
    assert a.device == "/cpu:0"


def test_listing_6_python_values_specialise() -> None:
    @ll.function
    def lossy_matmul(W: ll.Tensor, x: ll.Tensor, training: bool = True) -> ll.Tensor:
        outputs = ll.matmul(W, x)
        if training:
            outputs = ll.nn.dropout(outputs, 0.2)
        return outputs

    W = ll.random.normal((3, 5))
    x = ll.random.normal((5, 1))
    lossy_outputs = lossy_matmul(W, x, training=True)
    exact_outputs = lossy_matmul(W, x, training=False)
    assert len(lossy_matmul.trace_cache) == 2
    assert np.allclose(exact_outputs.numpy(), W.numpy() @ x.numpy(), atol=1e-6)
    kept = lossy_outputs.numpy() != 0
    assert np.allclose(lossy_outputs.numpy()[kept], (exact_outputs.numpy() / 0.8)[kept], atol=1e-5)
    with_dropout, without = (entry.graph for entry in lossy_matmul.trace_cache)
    assert len(with_dropout.nodes) > len(without.nodes) == 1


def test_listing_7_variables_are_captured_by_reference() -> None:
    v = ll.Variable(0.0)

    @ll.function
    def mutate() -> ll.Tensor:
        v.assign_add(1.0)
        return v.read_value()

    mutate()
    assert float(v.read_value()) == 1.0
    v.assign_add(1.0)
    assert float(v.read_value()) == 2.0
    mutate()
    assert float(v.read_value()) == 3.0
    assert mutate.trace_count == 1


def test_listing_8_graph_functions_nest() -> None:
    @ll.function
    def inner(a: ll.Tensor) -> ll.Tensor:
        return ll.nn.relu(a)

    @ll.function
    def outer(a: ll.Tensor, b: ll.Tensor) -> ll.Tensor:
        return inner(ll.matmul(a, b))

    result = outer(ll.eye(3), ll.diag(ll.constant([-1.0, 1.0, 2.0])))
    assert np.array_equal(result.numpy(), np.diag([0.0, 1.0, 2.0]))
    (outer_graph,) = (entry.graph for entry in outer.trace_cache)
    assert [node.op.name for node in outer_graph.nodes] == ["matmul", "call"]
    (called,) = outer_graph.nodes[1].functions
    assert [node.op.name for node in called.graph.nodes] == ["relu"]
    assert called is inner.trace_cache[0].function
