"""Which module's call a node of a trace belongs to, and what a trace calls its variables."""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.graph.printer import nested

X = ll.ones((2, 4))


class Pair(ll.Module):
    """Two layers, and an op of its own."""

    def __init__(self) -> None:
        self.first = ll.nn.Dense(4, "relu")
        self.rest = [ll.nn.Dense(3)]

    def call(self, x: Any) -> Any:
        return ll.tanh(self.rest[0](self.first(x)))


class Model(ll.Module):
    """Modules of modules."""

    def __init__(self) -> None:
        self.blocks = {"a": Pair(), "b": Pair()}

    def call(self, x: Any) -> Any:
        return self.blocks["b"](x) + self.blocks["a"](x)


def graph_of(f: Callable[..., Any], *args: Any) -> Any:
    staged = ll.function(f)
    staged(*args)
    return staged.trace_cache[-1].graph


def call_of(node: Any) -> Any:
    return getattr(node.stack[0], "call", None)


def path_of(node: Any) -> str:
    call = call_of(node)
    return "" if call is None else call.path


def paths(graph: Any, *ops: str) -> list[str]:
    return [path_of(node) for node in graph.nodes if node.op.name in ops]


@pytest.fixture
def model() -> Model:
    return Model()


def test_a_node_knows_the_call_by_attributes_from_the_outermost_module(model):
    graph = graph_of(lambda x: model(x) * 2.0, X)
    assert paths(graph, "matmul", "tanh") == [
        "model.blocks.b.first",
        "model.blocks.b.rest.0",
        "model.blocks.b",
        "model.blocks.a.first",
        "model.blocks.a.rest.0",
        "model.blocks.a",
    ]
    assert paths(graph, "add")[-1] == "model"
    assert paths(graph, "multiply") == [""]


def test_a_call_has_its_class_and_the_lines_that_make_it(model):
    graph = graph_of(lambda x: [model(x)], X)
    calls = {call_of(node).path: call_of(node) for node in graph.nodes}
    inner = calls["model.blocks.a"]
    assert [call.cls for call in inner.chain()] == ["Model", "Pair"]
    assert inner.at.text == 'return self.blocks["b"](x) + self.blocks["a"](x)'
    assert inner.defined.text == "def call(self, x: Any) -> Any:"
    assert calls["model.blocks.a.first"].defined is None  # a line of the library's is nobody's
    assert repr(inner) == "<call of model.blocks.a: Pair>"


def test_the_line_in_the_layer_and_that_of_its_caller_stay_in_the_stack(model):
    graph = graph_of(lambda x: [model(x)], X)
    stack = next(node for node in graph.nodes if node.op.name == "tanh").stack
    assert [line.text.split()[0] for line in stack[:2]] == ["return", "return"]
    assert "ll.tanh" in stack[0].text
    assert "self.blocks" in stack[1].text


def test_calls_of_one_module_are_told_apart():
    layer = ll.nn.Dense(4)
    graph = graph_of(lambda x: layer(layer(layer(x))), X)
    assert paths(graph, "matmul") == ["layer", "layer#2", "layer#3"]


def test_modules_of_one_name_are_told_apart():
    layers = [ll.nn.Dense(4), ll.nn.Dense(4)]

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    assert paths(graph_of(f, X), "matmul") == ["layer", "layer_2"]


def test_modules_that_are_gone_are_told_apart_from_those_that_come_after_them():
    def f(x):
        for _ in range(3):
            x = Squares()(x)
        return x

    assert paths(graph_of(f, X), "square") == ["Squares", "Squares_2", "Squares_3"]


class Squares(ll.Module):
    def call(self, x: Any) -> Any:
        return ll.square(x)


def test_a_module_that_is_called_across_the_tree_has_its_path_from_where_it_is_found():
    class Inner(ll.Module):
        def call(self, x, other):
            return other(x)

    class Outer(ll.Module):
        def __init__(self):
            self.inner, self.deep = Inner(), ll.nn.Sequential(ll.nn.Dense(2))

        def call(self, x):
            return self.inner(x, self.deep.layers[0])

    outer = Outer()
    assert paths(graph_of(lambda x: [outer(x)], X), "matmul") == ["outer.inner.deep.layers.0"]


def test_an_attribute_of_a_plain_object_names_a_module():
    class Agent:
        def __init__(self):
            self.policy = ll.nn.Dense(2)

        def act(self, x):
            return self.policy(x)

    agent = Agent()
    assert paths(graph_of(agent.act, X), "matmul") == ["policy"]


def test_gradients_belong_to_the_module_of_their_op(model):
    model(X)

    def step(x):
        with ll.GradientTape() as tape:
            loss = model(x).sum()
        return tape.gradient(loss, model.trainable_variables)

    graph = graph_of(step, X)
    backward = [node for node in graph.nodes if node.scope.startswith("gradient/")]
    forward = {path_of(node) for node in graph.nodes if not node.scope.startswith("gradient/")}
    assert {path_of(node) for node in backward} - {""} == forward - {""} - {"model"}
    assert [path_of(node) for node in backward if node.op.name == "relu_grad"] == [
        "model.blocks.a.first",
        "model.blocks.b.first",
    ]
    assert all(getattr(node.stack[0], "of", "") for node in backward if path_of(node))


def test_gradients_are_told_apart_by_name_scope_too(model):
    def step(x):
        with ll.GradientTape() as tape:
            tape.watch(x)
            with ll.name_scope("head"):
                loss = model(x).sum()
        return tape.gradient(loss, x)

    graph = graph_of(step, X)
    assert {node.scope for node in graph.nodes if path_of(node)} == {"head/", "gradient/head/"}


def test_an_update_belongs_to_the_optimiser_and_the_variable(model):
    model(X)
    adam = ll.optim.Adam(0.1)

    def step(x):
        with ll.GradientTape() as tape:
            loss = model(x).sum()
        variables = model.trainable_variables
        adam.apply(tape.gradient(loss, variables), variables)

    graph = graph_of(step, X)
    assigned = [call_of(node) for node in graph.nodes if node.op.name == "assign_sub"]
    assert [call.chain()[0].cls for call in assigned] == ["Adam"] * 8
    assert [call.kind for call in assigned[0].chain()] == ["optimiser", "variable"]
    assert [call.path for call in assigned[:2]] == ["adam.blocks.a.first.kernel", "adam.blocks.a.first.bias"]


def test_captured_variables_are_named_by_attributes(model):
    model(X)
    graph = graph_of(lambda x: [model(x)], X)
    assert set(graph.input_names[1:]) == {path.replace("/", ".") for path, _ in model.named_variables()}


def test_the_name_of_a_module_stands_before_its_variables_where_there_are_several():
    encoder, decoder = ll.nn.Dense(2), ll.nn.Dense(3)
    graph = graph_of(lambda x: decoder(encoder(x)), X)
    assert list(graph.input_names[1:]) == ["encoder.kernel", "encoder.bias", "decoder.kernel", "decoder.bias"]


def test_slots_and_settings_of_an_optimiser_are_named_after_it_and_the_variable():
    layer, adam = ll.nn.Dense(1, use_bias=False), ll.optim.Adam(0.1)

    def step(x):
        with ll.GradientTape() as tape:
            loss = layer(x).sum()
        adam.apply(tape.gradient(loss, layer.variables), layer.variables)

    names = graph_of(step, X).input_names[1:]
    assert sorted(names) == ["adam.learning_rate", "adam.step", "kernel", "kernel/mean", "kernel/square"]


def test_branches_and_bodies_go_on_in_the_module_around_them():
    class Gated(ll.Module):
        def __init__(self):
            self.dense = ll.nn.Dense(4)

        def call(self, x):
            self.dense(x)
            return ll.cond(x.sum() > 0, lambda: self.dense(x), lambda: ll.exp(x))

    gated = Gated()
    graph = graph_of(lambda x: [gated(x)], X)
    inner = {path_of(node) for function in nested(graph) for node in function.graph.nodes}
    assert inner == {"gated.dense#2", "gated"}


def test_a_staged_function_begins_without_a_module():
    layer = ll.nn.Dense(4)
    inner = ll.function(lambda x: [layer(x)])

    class Calls(ll.Module):
        def call(self, x):
            return inner(x)

    outer = Calls()
    graph = graph_of(lambda x: [outer(x)], X)
    assert paths(graph, "call") == ["outer"]
    assert {path for function in nested(graph) for path in paths(function.graph, "matmul")} == {"layer"}


def test_passes_and_traces_keep_the_paths(model):
    staged = ll.function(lambda x: [model(x)])
    staged(X)
    staged(ll.ones((3, 4)))
    first, second = (entry for entry in staged.trace_cache)
    assert [path_of(node) for node in first.graph.nodes] == [path_of(node) for node in second.graph.nodes]
    optimised = first.function.optimised.graph
    assert {path_of(node) for node in optimised.nodes} <= {path_of(node) for node in first.graph.nodes}
    assert "model.blocks.a.first" in {path_of(node) for node in optimised.nodes}


def test_a_call_that_raises_is_over():
    class Raises(ll.Module):
        def call(self, x):
            raise KeyError(x)

    raises = Raises()

    def f(x):
        for error in (KeyError, KeyboardInterrupt):
            with contextlib.suppress(error):
                raises(x) if error is KeyError else interrupted(x)
        return ll.exp(x)

    class Interrupted(ll.Module):
        def call(self, x):
            raise KeyboardInterrupt

    interrupted = Interrupted()
    assert paths(graph_of(f, X), "exp") == [""]


def test_a_graph_keeps_no_module_alive():
    graph, seen = _graph_of_a_module_that_goes()
    gc.collect()
    assert seen() is None
    assert paths(graph, "exp") == ["module"]


def _graph_of_a_module_that_goes() -> tuple[Any, Any]:
    class Plain(ll.Module):
        def call(self, x):
            return ll.exp(x)

    module = Plain()

    def f(x: Any) -> Any:
        return module(x)

    return graph_of(f, X), weakref.ref(module)


def _calls(work: Callable[[], object]) -> list[str]:
    names: list[str] = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return names


def test_nothing_is_noted_of_eager_calls(model):
    model(X)
    calls = _calls(lambda: model(X))
    assert not {"within", "entered", "graph_writer"} & set(calls)
    with ll.GradientTape():
        assert "entered" not in _calls(lambda: model(X))


class Called(ll.Module):
    """A module that defines `__call__` instead of `call`."""

    def __init__(self) -> None:
        self.inner = ll.nn.Dense(3)

    def __call__(self, x: Any) -> Any:
        """Doubled."""
        return self.inner(x) * 2.0


class CalledAbove(Called):
    """Its `__call__` calls that of its base."""

    def __call__(self, x: Any) -> Any:
        return ll.tanh(super().__call__(x))


@pytest.mark.parametrize(("kind", "op"), [(Called, "multiply"), (CalledAbove, "tanh")])
def test_a_module_that_defines_dunder_call_has_its_calls_noted_once(kind: type, op: str) -> None:
    model = kind()
    graph = graph_of(model, X)
    assert paths(graph, "matmul", op) == ["f.inner", "f"]
    call = next(call_of(node) for node in graph.nodes if node.op.name == op)
    assert (call.cls, call.defined.function) == (kind.__name__, "__call__")


def test_dunder_call_stays_what_the_user_wrote() -> None:
    model = Called()
    assert Called.__call__.__doc__ == "Doubled."
    assert model(X).shape == (2, 3)
    staged = ll.function(model, autograph=True)
    assert staged(X).shape == (2, 3)


RATE = 2.0


class Rated(ll.Module):
    """Reads a global in `__call__`."""

    def __call__(self, x: Any) -> Any:
        return x * RATE


def test_the_globals_that_dunder_call_reads_are_told_as_those_of_call() -> None:
    model = Rated()
    staged = ll.function(model)
    staged(X)
    assert "RATE" in str(ll.explain.baked(staged))
