"""The trees of real models: lanes, modules, repeats, tags, and what crosses from forward to backward."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import limelight as ll
from limelight_widgets.figures.graph import graph_figure
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.folds.graph_outline import outline
from limelight_widgets.folds.node_places import LANES

sys.path.insert(0, str(Path(__file__).parents[1]))

import models  # in the folder above

SMALL = ["conv_net", "vae", "gan", "u_net", pytest.param("transformer", marks=pytest.mark.slow)]
EITHER = pytest.mark.parametrize("version", ["traced", "optimised"])


@cache
def state_of(name: str) -> Any:
    function = models.MODELS[name]()  # which a view holds weakly
    fold = GraphFold(function)
    fold.describe_all()
    return fold.state()


def graph_of(name: str, version: str = "optimised") -> Any:
    state = state_of(name)
    return state["graphs"][next(v["graph"] for v in state["variants"] if v["key"] == version)]


def by_id(graph: Any) -> dict[str, Any]:
    return {group["id"]: group for group in graph["groups"]}


def inside(graph: Any, index: int) -> list[str]:
    return [group["label"] for group in graph["groups"] if group["parent"] == index]


def ids(graph: Any) -> list[str]:
    return [group["id"] for group in graph["groups"]]


def top(graph: Any) -> list[tuple[str, str]]:
    return [(group["lane"], group["label"]) for group in graph["groups"] if group["parent"] < 0]


def test_updates_by_hand_are_one_whatever_the_shapes_of_their_variables():
    weights = [ll.Variable(ll.ones(shape)) for shape in ((2, 3), (3, 3), (3, 1), (3,), (3,), (1,))]

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            for w, b in zip(weights[:3], weights[3:], strict=True):
                x = ll.tanh(x @ w + b)
            loss = ll.sum(x)
        for v, g in zip(weights, tape.gradient(loss, weights), strict=True):
            v.assign_sub(0.1 * g + 0.01 * v)
        return loss

    step(ll.ones((4, 2)))
    fold = GraphFold(step)
    fold.describe_all()
    (update,) = [group for group in fold.state()["graphs"][0]["groups"] if group["lane"] == "update"]
    assert update["repeat"]["count"] == 6


def test_rounds_of_a_loop_may_differ_in_a_number():
    @ll.function
    def histogram(x):
        counts = ll.zeros((5,))
        for i in range(5):
            counts = counts.at[i].set(ll.sum(ll.astype(ll.floor(x) == float(i), "float32")))
        return counts

    histogram(ll.ones((4,)))
    fold = GraphFold(histogram)
    fold.describe_all()
    (rounds,) = fold.state()["graphs"][0]["groups"]
    assert rounds["repeat"]["count"] == 5
    assert rounds["repeat"]["differs"] == ["equal: (·, 0.0) | (·, 1.0) | (·, 2.0) | (·, 3.0) | and 1 more"]


@EITHER
def test_a_step_is_a_model_and_its_gradient_and_the_update(version):
    graph = graph_of("conv_net", version)
    assert top(graph) == [
        ("forward", "model"),
        ("loss", "loss_of"),
        ("backward", "loss_of"),
        ("backward", "model"),
        ("update", "Adam: 10 variables, one rule"),
    ]
    assert inside(graph, 0) == ["conv1", "pool", "conv2", "pool (call 2)", "conv3", "dense", "head"]
    assert by_id(graph)["forward:model.conv1"]["cls"] == "Conv"
    assert inside(graph, graph["groups"].index(by_id(graph)["backward:model"]))[::-1] == inside(graph, 0)


@EITHER
def test_parameters_are_tags_of_what_uses_them(version):
    graph = graph_of("conv_net", version)
    assert by_id(graph)["forward:model.conv1"]["tags"] == ["conv1.kernel f32[3,3,3,16]", "conv1.bias f32[16]"]
    assert all(given["folded"] for given in graph["inputs"] if given.get("captured"))
    for index, node in enumerate(graph["nodes"]):
        into = graph["nodes"][node.get("folded_into", index)]
        assert "folded_into" not in into
        assert into.get("group") == node.get("group")
        assert node["op"] != "read_variable" or "folded_into" in node


@pytest.mark.slow
@EITHER
def test_equal_layers_are_one(version):
    graph = graph_of("transformer", version)
    assert inside(graph, 0) == ["embed", "blocks.0–3 ×4", "norm", "head"]
    repeat = by_id(graph)["forward:model/blocks.0×"]["repeat"]
    assert [graph["groups"][k]["path"] for k in repeat["members"]] == [f"model.blocks.{k}" for k in range(4)]
    assert by_id(graph)["backward:model/blocks.3×"]["repeat"]["count"] == 4


@pytest.mark.slow
def test_steps_of_a_loop_are_one_but_for_the_first_and_so_are_their_gradients():
    graph = graph_of("lstm")
    assert inside(graph, 0) == ["cell", "cell ×49", "head"]
    assert inside(graph, graph["groups"].index(by_id(graph)["backward:model"])) == ["head", "cell ×49", "cell"]


@pytest.mark.slow
@EITHER
def test_a_loop_without_modules_is_one(version):
    (group,) = graph_of("unrolled", version)["groups"]
    assert group["repeat"]["count"] == 2_000
    assert group["label"].endswith("×2,000")


def test_two_optimisers_are_two_groups():
    updates = [label for lane, label in top(graph_of("gan")) if lane == "update"]
    assert updates == ["Adam: 4 variables of generator, one rule", "SGD: 4 variables of discriminator, one rule"]


def test_one_optimiser_says_nothing_of_whose_variables_it_updates():
    v = [ll.Variable(float(i), name=f"net.layers.{i}.kernel") for i in range(2)]
    adam = ll.optim.Adam(1e-3)

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            loss = x * v[0] * v[1]
        adam.apply(tape.gradient(loss, v), v)

    step(ll.constant(2.0))
    graph = GraphFold(step).state()["graphs"][0]
    labels = [group["label"] for group in graph["groups"] if group["kind"] == "optimiser"]
    assert labels == ["Adam: 2 variables, one rule"]


def test_two_optimisers_of_one_class_are_told_apart_by_their_names():
    v, w = ll.Variable(1.0), ll.Variable(2.0)
    slow, fast = ll.optim.Adam(1e-4), ll.optim.Adam(4e-4)

    @ll.function
    def step(x):
        with ll.GradientTape(persistent=True) as tape:
            first, second = x * v, x * w * w
        slow.apply(tape.gradient(first, [v]), [v])
        fast.apply(tape.gradient(second, [w]), [w])

    step(ll.constant(2.0))
    graph = GraphFold(step).state()["graphs"][0]
    labels = [group["label"] for group in graph["groups"] if group["kind"] == "optimiser"]
    assert labels == ["Adam slow: 1 variable", "Adam fast: 1 variable"]


@pytest.mark.parametrize("name", SMALL)
def test_groups_are_the_same_in_both_versions_and_in_another_trace(name):
    """But for those of what only one of them does: repeats differ where ops are shared, or fused."""
    plain = [
        {
            group["id"]
            for group in graph_of(name, version)["groups"]
            if group["kind"] in {"module", "optimiser", "variable"}
        }
        for version in ("traced", "optimised")
    ]
    assert plain[1] <= plain[0]
    again = GraphFold(models.MODELS[name]()).state()
    assert ids(again["graphs"][0]) == ids(graph_of(name, "traced"))


@pytest.mark.parametrize("name", SMALL)
@EITHER
def test_the_tree_adds_up(name, version):
    graph = graph_of(name, version)
    nodes, groups = graph["nodes"], graph["groups"]
    told_in = Counter(nodes[node.get("folded_into", k)].get("group") for k, node in enumerate(nodes))
    assert json.loads(json.dumps(graph)) == graph
    assert {node["lane"] for node in nodes} <= set(LANES)
    for index, group in enumerate(groups):
        own = [node for node in nodes if node.get("group") == index]
        children = [child for child in groups if child["parent"] == index]
        assert group["size"] == len(own) + sum(child["size"] for child in children)
        assert group["ops"] == told_in[index] + sum(child["ops"] for child in children)
        assert {thing["lane"] for thing in [*own, *children] if "folded_into" not in thing} <= {group["lane"]}
        if "members" in group.get("repeat", {}):
            assert group["repeat"]["members"] == [groups.index(child) for child in children]
            assert len(children) == group["repeat"]["count"]
    crossing = sum(one["bytes"] for one in graph.get("crossings", ()))
    loose = crossing - sum(group["saved"] for group in groups if group["parent"] < 0)
    assert loose >= 0  # what is kept of ops that are in no group
    weights = [one["bytes"] for one in graph["crossings"]]
    assert weights == sorted(weights, reverse=True)


def test_what_crosses_is_told_with_its_bytes():
    graph = graph_of("conv_net", "traced")
    heaviest = graph["crossings"][0]
    ends = [graph["groups"][heaviest[end]]["id"] for end in ("from", "to")]
    assert ends == ["forward:model.conv1", "backward:model.conv1"]
    assert (heaviest["bytes"], heaviest["values"], heaviest["spec"]) == (4 * 16 * 16 * 16 * 4, 1, "f32[4,16,16,16]")


def test_updates_by_hand_are_in_the_lane_of_updates(make):
    maker = make("step")
    x, w = maker.input("x"), maker.input("w", captured=True)
    loss = maker.node("sum", maker.node("multiply", x, w))
    gradient = maker.node("multiply", x, loss, scope="gradient/")
    penalty = maker.node("square", gradient)
    second = maker.node("multiply", penalty, x, scope="gradient/")
    written = maker.node("assign_sub", w, maker.node("multiply", second, x))
    nodes = GraphFold(maker.graph(loss, written)).state()["graphs"][0]["nodes"]
    assert [node["lane"] for node in nodes] == ["forward"] * 2 + ["backward", "forward", "backward"] + ["update"] * 2


# In text


def test_the_outline_has_each_group_once_and_repeats_once():
    rows = outline(graph_of("conv_net"))
    assert [row.title for row in rows if row.depth == 0] == list(LANES)
    assert [row.title for row in rows if row.depth == 2][:3] == ["conv1", "pool", "conv2"]


@EITHER
@pytest.mark.parametrize("name", SMALL)
def test_the_counts_of_the_outline_add_up_to_the_number_of_ops(name, version):
    graph = graph_of(name, version)
    rows = outline(graph)
    for depth in {0, min(1, max(row.depth for row in rows if row.kind != "lane"))}:
        assert sum(row.ops for row in rows if row.depth == depth) == len(graph["nodes"])


@pytest.mark.parametrize("version", ["traced", "optimised"])
@pytest.mark.parametrize("name", SMALL)
def test_what_is_in_a_row_adds_up_to_it(name, version):
    """But for repeats, which show one round of several."""
    rows = outline(graph_of(name, version))
    for i, row in enumerate(rows):
        within = list(itertools.takewhile(lambda one, row=row: one.depth > row.depth, rows[i + 1 :]))
        if within and row.kind != "repeat":
            assert sum(one.ops for one in within if one.depth == row.depth + 1) == row.ops


@pytest.mark.parametrize("name", SMALL)
def test_what_the_optimiser_did_leads_to_the_number_of_ops(name):
    (said,) = re.findall(r"− [\d,]+ \+ [\d,]+ = ([\d,]+)", graph_figure(state_of(name), "optimised").text)
    assert int(said.replace(",", "")) == len(graph_of(name)["nodes"])


@pytest.mark.parametrize("most", [1, 10, 1_000])
def test_an_outline_is_as_long_as_it_may_be(most):
    graph = graph_of("u_net")
    rows = outline(graph, most)
    assert len(rows) <= max(most, 12)
    assert {row.title for row in rows} >= {"model"}


@pytest.mark.parametrize("name", SMALL)
def test_plain_text_is_the_outline_in_80_columns(name):
    text = graph_figure(state_of(name), "optimised").text
    assert max(map(len, text.splitlines())) <= 80
    assert "kept for the backward pass" in text
    assert len(text.splitlines()) < 80


def test_the_text_of_a_network_can_be_read():
    text = graph_figure(state_of("conv_net"), "optimised").text
    assert "│ │ conv1: Conv                   5  65.5 kB  kernel f32[3,3,3,16], bias" in text
    assert "Adam: 10 variables, one rule" in text
    assert "140 kB are kept for the backward pass: 65.5 kB of model.conv1" in text


def test_layers_of_a_sequence_are_called_by_their_class() -> None:
    model = ll.nn.Sequential(ll.nn.Dense(4, "relu"), ll.nn.Dense(3))

    @ll.function
    def apply(x):
        return model(x)

    apply(ll.ones((2, 5)))
    groups = GraphFold(apply).state()["graphs"][0]["groups"]
    named = [group for group in groups if group.get("cls") == "Dense"]
    assert [group["label"] for group in named] == ["0: Dense", "1: Dense"]
    assert [group["path"] for group in named] == ["model.layers.0", "model.layers.1"]


def test_lines_of_files_of_one_name_are_called_by_their_own_text(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"__name__": "__main__"}
    for name in ("left", "right"):
        file = tmp_path / name / "model.py"
        file.parent.mkdir()
        file.write_text(f"{name} = lambda x: x * 2.0 + x * 3.0 + x * 5.0 - x * 7.0\n")
        exec(compile(file.read_text(), str(file), "exec"), parts)

    @ll.function
    def program(x: Any) -> Any:
        y, z = parts["left"](x), parts["right"](x)
        for bit in f"{0x9E3779B97F4A7C15F39CC060:b}":  # without a period, or it would be a loop
            y = y * z if bit == "1" else y + z
        return y

    program(ll.ones(3))
    fold = GraphFold(program, "traced")
    fold.describe_all()
    titles = [group["label"] for group in fold.state()["graphs"][0]["groups"]]
    assert [title for title in titles if title.endswith("line 1")] == ["left · line 1", "right · line 1"]


def test_an_optimiser_counts_all_variables_though_several_in_a_row_are_repeated():
    """As of an encoder and a decoder, each with a table, of which only some rows change, and layers."""
    tables, layers = [ll.nn.Embedding(7, 4) for _ in range(2)], [ll.nn.Dense(4) for _ in range(2)]
    optimiser, ids = ll.optim.RMSProp(1e-3), ll.zeros((3,), dtype="int32")
    parts = [part for pair in zip(tables, layers, strict=True) for part in pair]

    @ll.function
    def step(ids):
        with ll.GradientTape() as tape:
            both = [layer(table(ids)) for table, layer in zip(tables, layers, strict=True)]
            loss = ll.sum(both[0] * both[1])
        weights = [v for part in parts for v in part.trainable_variables]
        optimiser.apply(tape.gradient(loss, weights), weights)
        return loss

    for table, layer in zip(tables, layers, strict=True):
        layer(table(ids))
    step(ids)
    fold = GraphFold(step)
    graph = fold.state()["graphs"][1]
    (label,) = [group["label"] for group in graph["groups"] if group["kind"] == "optimiser"]
    assert label == "RMSProp: 6 variables, 2 rules"


def test_what_is_kept_of_unknown_size_is_told_as_at_least():
    w, b = ll.Variable(ll.ones((20, 3))), ll.Variable(ll.ones(3))

    @ll.function(input_signature=[ll.TensorSpec((None, 20))])
    def step(x):
        with ll.GradientTape() as tape, ll.name_scope("layer"):
            y = x
            for _ in range(8):
                y = ll.tanh(y @ w @ ll.transpose(w) + ll.sum(ll.tanh(b)))
            loss = ll.sum(y * y)
        w.assign_sub(tape.gradient(loss, w))

    step(ll.ones((50, 20)))
    said = " ".join(graph_figure(GraphFold(step, "optimised").state(), "optimised").text.split())
    assert re.search(r"≥ \d+ B are kept for the backward pass", said), said
