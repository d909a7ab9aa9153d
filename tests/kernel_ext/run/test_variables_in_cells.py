"""Variables, models and optimisers that a staged cell reads: by any name, made again, exchanged."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    return run


TRAIN = """%%stage step -q
with ll.GradientTape() as tape:
    loss = ll.sum(net(x) ** 2)
{apply}
loss"""
MAKE = """ll.random.seed(1)
net = ll.nn.Sequential(ll.nn.Dense(4), ll.nn.Dense(1))
opt = ll.optim.Adam(0.1)"""


def trained(notebook, apply, cells):
    """The losses of a notebook, staged, and of the same one without its line; the number of traces."""
    losses = []
    for head in ("%%stage step -q\n", ""):
        notebook("import limelight as ll\nx = ll.ones((2, 3))")
        text = TRAIN.format(apply=apply).removeprefix("%%stage step -q\n")
        losses.append([
            notebook(head + text if cell == "train" else cell).value.item()
            for cell in cells
            if cell == "train" or notebook(cell) is None
        ])  # fmt: skip
    return losses, notebook("step.trace_count").value


@pytest.mark.parametrize(
    ("above", "apply"),
    [
        ("", "opt.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)"),
        ("net(x); weights = net.trainable_variables", "opt.apply(tape.gradient(loss, weights), weights)"),
        ("net(x); weights = tuple(net.variables)", "opt.apply(tape.gradient(loss, list(weights)), list(weights))"),
        (
            "net(x); named = dict(net.named_variables())",
            "opt.apply(tape.gradient(loss, list(named.values())), list(named.values()))",
        ),
        (
            "net(x); w, *rest = net.trainable_variables",
            "for v, g in zip([w, *rest], tape.gradient(loss, [w, *rest])): v.assign_sub(0.1 * g)",
        ),
        (
            "net(x); w = net.layers[0].kernel\ndef update(v, g): w.assign_sub(0.1 * g)",
            "update(w, tape.gradient(loss, w))",
        ),
    ],
)
def test_the_training_step_by_any_way(notebook, above, apply):
    steps = ["train"] * 3
    (staged, plain), traces = trained(notebook, apply, [MAKE, above or "0", *steps, MAKE, above or "0", *steps])
    assert staged == pytest.approx(plain, rel=1e-3)
    assert traces <= 4  # two for each model, which makes its weights in the first of them


def test_optimisers_and_networks_in_turn(notebook):
    apply = "opt.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)"
    make = MAKE + "\nadam, sgd, wide, small = opt, ll.optim.Momentum(0.1), ll.nn.Dense(5), net"
    cells = [make, "train", "opt = sgd", "train", "net = wide", "train", "opt = adam", "train", "net = small", "train"]
    (staged, plain), _ = trained(notebook, apply, cells)
    assert staged == pytest.approx(plain, rel=1e-3)


def test_an_attribute_made_again_is_traced_again(notebook):
    notebook("import limelight as ll\nclass Config: pass\ncfg = Config()")
    values = []
    for value in (1.0, 5.0):
        notebook(f"cfg.w = ll.Variable({value})")
        values += [notebook("%%stage step -q\ncfg.w.assign_add(1.0)").value.item() for _ in range(3)]
    assert values == [2.0, 3.0, 4.0, 6.0, 7.0, 8.0]
    assert notebook("step.trace_count").value == 2


def test_what_a_cell_makes_anew_is_refused_with_the_right_advice(notebook):
    notebook("import limelight as ll\nx = ll.ones((2, 3))")
    ran = notebook("%%stage -q\ny = ll.nn.Dense(2)(x)", fails=True)
    assert "a variable of a layer each time" in str(ran.error)
    assert "Create the layer in a cell above" in str(ran.error)
