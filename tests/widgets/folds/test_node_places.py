"""Where nodes belong that helpers of the user's have written: of functions, and of cells."""

from __future__ import annotations

import linecache

import pytest

import limelight as ll
from limelight import nn
from limelight_widgets.folds.graph import GraphFold

SOURCE = """\
def rest(x):
    y = ll.tanh(x)
    return ll.exp(y) * 2.0
def turn(net, x):
    return ll.sin(net(x) + x)
def model(net, x):
    for _ in range(4):
        x = rest(x)
        x = turn(net, x)
    return ll.sum(ll.abs(x))
"""


CALL = """\
@ll.function
def step(x):
    return model(net, x)
"""


def traced(monkeypatch: pytest.MonkeyPatch, name: str, source: str, **names: object) -> ll.function:
    """The function `step` of a source that a notebook might have."""
    monkeypatch.setitem(linecache.cache, name, (len(source), None, source.splitlines(keepends=True), name))
    names["ll"] = ll
    exec(compile(source, name, "exec"), names)
    return names["step"]


def top(function: ll.function) -> list[tuple[str, str]]:
    fold = GraphFold(function)
    fold.describe_all()
    graph = fold.state()["graphs"][0]
    return [(group["lane"], group["label"]) for group in graph["groups"] if group["parent"] < 0]


def test_rounds_of_helpers_that_call_a_model_are_one(monkeypatch):
    net = nn.Dense(3)
    x = ll.ones((2, 3))
    net(x)
    step = traced(monkeypatch, "<rounds>", SOURCE + CALL, net=net)
    step(x)
    assert top(step) == [("forward", "rest + turn ×4"), ("forward", "model")]


def test_a_helper_that_calls_a_model_once_does_not_hide_it(monkeypatch):
    net = nn.Dense(3)
    x = ll.ones((2, 3))
    net(x)
    source = SOURCE + "@ll.function\ndef step(x):\n    return ll.sum(turn(net, ll.exp(x)))"
    step = traced(monkeypatch, "<once>", source, net=net)
    step(x)
    assert ("forward", "net") in top(step)


def test_helpers_of_a_staged_cell_are_groups():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        shell.run_line_magic("load_ext", "limelight")
        shell.run_cell("import limelight as ll\nx = ll.ones((2,))\n" + SOURCE)
        shell.run_cell("%%stage -q step\na = rest(x)\nb = ll.sin(a)\nloss = ll.sum(rest(b))")
        assert top(shell.user_ns["step"]) == [("forward", "rest"), ("forward", "rest (call 2)")]
    finally:
        shell.run_line_magic("unload_ext", "limelight")
        InteractiveShell.clear_instance()


OTHER = """\
def other():
    def rest(x):
        return ll.cos(ll.sin(x)) * 3.0
    return rest
"""
TWO = "@ll.function\ndef step(x):\n    return ll.sum(rest(other()(rest(x))))\n"


def test_two_functions_of_one_name_are_not_two_calls_of_one(monkeypatch):
    step = traced(monkeypatch, "<two>", SOURCE + OTHER + TWO)
    step(ll.ones((2,)))
    in_one_file = [("forward", "rest"), ("forward", "rest (<two> line 12)"), ("forward", "rest (call 2)")]
    assert top(step) == in_one_file
    other = traced(monkeypatch, "<above>", OTHER + "step = other")
    step = traced(monkeypatch, "<below>", SOURCE + TWO, other=other)
    step(ll.ones((2,)))
    assert top(step) == [("forward", "rest"), ("forward", "rest (<above>)"), ("forward", "rest (call 2)")]


def lanes_of(step: ll.function) -> dict[str, list[str]]:
    """The ops of each lane, as traced."""
    fold = GraphFold(step)
    fold.describe_all()
    found: dict[str, list[str]] = {}
    for node in fold.state()["graphs"][0]["nodes"]:
        found.setdefault(node["lane"], []).append(node["op"])
    return found


def test_a_loss_of_inner_gradients_is_no_update(equation_step):
    """As of a differential equation: the loss is made of gradients, and no gradient reads its last ops."""
    found = lanes_of(equation_step)
    assert not {"mean", "max"} & set(found["update"])
    assert "mean" in found["forward"] + found["loss"]


@pytest.mark.parametrize("has_modules", [True, False])
def test_a_loss_with_weights_that_a_gradient_has_moved_is_no_update(has_modules):
    """As in meta-learning: no variable is updated."""
    net, x, w = nn.Dense(1), ll.ones((3, 2)), ll.ones((2, 2))
    net(x)

    def inner(w, x):
        return ll.mean((net(x @ w) if has_modules else ll.tanh(x @ w)) ** 2)

    @ll.function
    def meta(w, x):
        with ll.GradientTape() as tape:
            tape.watch(w)
            loss = inner(w, x)
        return inner(w - 0.1 * tape.gradient(loss, w), x)

    meta(w, x)
    found = lanes_of(meta)
    assert "update" not in found
    assert (found["forward"] + found.get("loss", [])).count("mean") == 2


def test_weights_that_are_given_back_moved_along_a_gradient_are_an_update():
    @ll.function
    def step(w, x):
        with ll.GradientTape() as tape:
            tape.watch(w)
            loss = ll.mean(ll.tanh(x @ w))
        return w - 0.1 * tape.gradient(loss, w)

    step(ll.ones((2, 1)), ll.ones((3, 2)))
    assert lanes_of(step)["update"] == ["constant", "multiply", "subtract"]


def test_what_only_updates_read_is_of_the_update():
    net, rate = nn.Dense(2), ll.Variable(0.5)
    x = ll.ones((3, 2))
    net(x)

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            loss = ll.sum(net(x))
        for v, g in zip(net.trainable_variables, tape.gradient(loss, net.trainable_variables), strict=True):
            v.assign_sub(ll.exp(rate) * g)
        return loss

    step(x)
    found = lanes_of(step)
    assert found["update"].count("exp") == 2
    assert "exp" not in found["forward"] + found.get("loss", [])


def test_a_momentum_that_is_kept_by_hand_is_of_the_update():
    w, slow, count = ll.Variable(ll.ones((2, 3))), ll.Variable(ll.zeros((2, 3))), ll.Variable(0.0)

    @ll.function
    def step(x):
        count.assign_add(1.0)
        with ll.GradientTape() as tape:
            loss = ll.sum(ll.tanh(x @ w))
        slow.assign(0.9 * slow + tape.gradient(loss, w))
        w.assign_sub(0.1 * slow)
        return loss

    step(ll.ones((4, 2)))
    found = lanes_of(step)
    assert {"assign", "assign_sub", "multiply"} <= set(found["update"])
    assert "multiply" not in found["forward"]
    assert "assign_add" in found["forward"]


def test_each_of_two_models_that_are_trained_in_turns_has_its_loss():
    critic, maker = nn.Dense(1), nn.Dense(2)
    slow, fast = ll.optim.SGD(0.1), ll.optim.SGD(0.1)
    x = ll.ones((3, 2))
    critic(maker(x))

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            made = maker(x)
            first = ll.mean(ll.exp(critic(x))) + ll.mean(ll.exp(critic(made)))
        slow.apply(tape.gradient(first, critic.trainable_variables), critic.trainable_variables)
        with ll.GradientTape() as tape:
            second = ll.max(ll.tanh(critic(maker(x))))
        fast.apply(tape.gradient(second, maker.trainable_variables), maker.trainable_variables)
        return first, second

    step(x)
    found = lanes_of(step)
    assert [found["loss"].count(op) for op in ("exp", "mean", "tanh", "max")] == [2, 2, 1, 1]
    assert set(found["forward"]) <= {"matmul", "add", "read_variable", "linear"}


def test_what_a_loop_counts_after_each_call_is_of_no_loss():
    net, adam, x = nn.Dense(2), ll.optim.Adam(1e-3), ll.ones((3, 2))
    net(x)

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            total = 0.0
            for _ in range(4):
                x = net(x)
                total = total + ll.sum(ll.exp(x))
            loss = ll.mean(x) + total
        adam.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
        return loss

    step(x)
    found = lanes_of(step)
    assert found["forward"].count("exp") == 3  # the last comes after all calls


RECURRENCE = """\
def cell(h, x):
    return ll.tanh(x @ w + h @ u + b)
@ll.function
def step(seq):
    with ll.GradientTape() as tape:
        h = ll.zeros((2, 3))
        for t in range(6):
            h = cell(h, seq[t])
        loss = ll.sum(h ** 2)
    return tape.gradient(loss, [w, u, b])
"""


def test_gradients_of_a_recurrence_are_of_their_own_round(monkeypatch):
    w, u, b = ll.Variable(ll.ones((4, 3))), ll.Variable(ll.eye(3)), ll.Variable(ll.zeros(3))
    step = traced(monkeypatch, "<recurrence>", RECURRENCE, w=w, u=u, b=b)
    step(ll.ones((6, 2, 4)))
    fold = GraphFold(step)
    fold.describe_all()
    state = fold.state()
    for version in state["variants"][:2]:  # as traced, and optimised
        groups = state["graphs"][version["graph"]]["groups"]
        calls = [g for g in groups if g["lane"] == "backward" and g["label"].startswith("cell (call ")]
        assert [g["label"] for g in calls] == [f"cell (call {k})" for k in range(6, 1, -1)]
        assert len({g["size"] for g in calls[1:]}) == 1  # the last round adds to no later one
        assert all("repeat" not in g for g in calls)


RUNGE_KUTTA = """\
def slope(y):
    return ll.tanh(y @ a)
@ll.function
def step(y):
    for _ in range(8):
        p = slope(y); q = slope(y + 0.1 * p); r = slope(y + 0.1 * q); s = slope(y + 0.2 * r)
        y = y + 0.1 * (p + q + r + s)
    return y
"""


def test_calls_that_a_round_repeats_are_within_the_rounds(monkeypatch):
    step = traced(monkeypatch, "<runge-kutta>", RUNGE_KUTTA, a=ll.Variable(ll.eye(3)))
    step(ll.ones((2, 3)))
    fold = GraphFold(step)
    fold.describe_all()
    groups = fold.state()["graphs"][0]["groups"]
    (rounds,) = [group for group in groups if group["parent"] < 0]
    assert rounds["repeat"]["count"] == 8
    inside = [g["repeat"]["count"] for g in groups if g["parent"] in rounds["repeat"]["members"] and "repeat" in g]
    assert inside == [3] * 8
