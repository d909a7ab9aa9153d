"""The views over programs that really run."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import limelight as ll
import limelight_widgets
from harness.waiting import until
from limelight_widgets.live import front_end as frontend


@pytest.fixture
def program():
    """A staged function that calls another, with a variable."""
    w = ll.Variable(np.ones((3, 2), "float32"), name="w")

    @ll.function
    def dense(x):
        return ll.tanh(x @ w)

    @ll.function
    def step(x):
        unused = ll.exp(x)  # noqa: F841
        return dense(x) * 2.0

    step.w = w
    return step


@pytest.fixture
def live(monkeypatch):
    """Makes views live, as their display in a notebook does; closes them at the end."""
    monkeypatch.setenv(frontend.VARIABLE, "1")
    shown = []

    def make(view):
        shown.append(view)
        assert view.widget is not None
        return view

    yield make
    for view in shown:
        view.close()


def test_a_staged_function_with_its_callee_lines_and_rules(program):
    program(ll.ones((4, 3)))
    state = limelight_widgets.graph(program).state()
    traced, optimised = (state["graphs"][v["graph"]] for v in state["variants"])
    assert {node["op"] for node in traced["nodes"]} >= {"exp", "call", "multiply"}
    assert "exp" not in {node["op"] for node in optimised["nodes"]}
    call = next(node for node in traced["nodes"] if node["op"] == "call")
    callee = state["graphs"][call["calls"][0][0]]
    matmul = next(node for node in callee["nodes"] if node["op"] == "matmul")
    source, line, function = matmul["stack"][0]
    shown = state["sources"][source]
    assert shown["text"][line - shown["first"]].strip() == "return ll.tanh(x @ w)"
    assert function == "dense"
    assert state["rules"]["matmul"]
    assert [i.get("captured", False) for i in traced["inputs"]] == [False, True]


def test_the_optimisers_arithmetic_closes(program):
    program(ll.ones((4, 3)))
    state = limelight_widgets.graph(program).state()
    before, after = (len(state["graphs"][v["graph"]]["nodes"]) for v in state["variants"])
    assert state["passes"]
    for applied in state["passes"]:
        assert applied["before"] - applied["removed"] + applied["added"] == applied["after"]
    assert (state["passes"][0]["before"], state["passes"][-1]["after"]) == (before, after)


def test_a_tapes_inputs_have_names_and_signs_are_explained():
    w1 = ll.Variable(ll.ones((4, 8)), name="w1")
    with ll.GradientTape() as recording:
        ll.tanh(ll.ones((2, 4)) @ w1)
    view = limelight_widgets.tape(recording)
    assert [row[3] for row in view.state()["rows"]] == [["w1 f32[4,8]"], ["-", "f32[4,8]"], ["f32[2,8]"]]
    for form in (view.static().text, view.static().html):
        assert "does not watch this input" in form.replace("\n", " ")


def test_a_tape_in_a_trace_whose_functions_read_variables_is_recorded():
    """Their backward graphs are built from stand-ins for variables, which have no name."""
    w1 = ll.Variable(ll.ones((4, 8)))
    network = ll.function(lambda x: x @ w1)

    @ll.function
    def step(x):
        with ll.GradientTape() as recording:
            loss = ll.sum(network(x))
        return recording.gradient(loss, w1)

    seen = []
    with ll.events.listen(seen.append, ll.events.Recorded):
        assert step(ll.ones((2, 4))).shape == (4, 8)
    assert any("variable f32[4,8]" in event.inputs for event in seen)


def test_open_views_follow_a_cleared_cache(program, live):
    program(ll.ones((4, 3)))
    graph, cache = live(limelight_widgets.graph(program)), live(limelight_widgets.trace_cache(program))
    program.clear_cache()
    assert "has forgotten its traces" in cache.state()["empty"]
    assert "has forgotten its traces" in graph.state()["empty"]
    program(ll.ones((7, 3)))
    (entry,) = cache.state()["functions"][0]["entries"]
    assert (entry["index"], graph.state()["label"]) == (1, "trace #2, 1 kept")


def test_the_newest_trace_appears_in_open_views(program, live):
    program(ll.ones((4, 3)))
    graph, cache = live(limelight_widgets.graph(program)), live(limelight_widgets.trace_cache(program))
    program(ll.ones((4, 3)))
    program(ll.ones((7, 3)))
    assert graph.state()["trace"] == 1
    first, second = cache.state()["functions"][0]["entries"]
    assert (first["hits"], second["hits"]) == (1, 0)
    assert "f32[7,3]" in second["signature"]
    assert "f32[4,3]\u00a0→\u00a0f32[7,3]" in second["reason"]
    assert cache.state()["newest"] == [program.id, 1]


def test_every_traced_function_is_in_the_cache_view_without_an_argument(program):
    program(ll.ones((4, 3)))
    names = {function["name"] for function in limelight_widgets.trace_cache().state()["functions"]}
    assert {"step", "dense"} <= names


def test_arguments_that_matter_come_first_and_objects_are_counted():
    def apply(activation, flag, x, loss):
        return loss(activation(x)) if flag else x

    step = ll.function(apply)
    step(ll.tanh, True, np.ones((2, 3), "float32"), ll.sum)
    (shown,) = limelight_widgets.trace_cache(step).state()["functions"][0]["entries"]
    assert shown["arguments"] == "x: f32[2,3], flag: True, +2\u00a0objects"
    assert shown["signature"].startswith("activation: ")


def test_a_used_tape_is_not_said_to_have_recorded_nothing():
    w = ll.Variable(np.ones((3, 2), "float32"))
    with ll.GradientTape() as tape:
        loss = ll.sum(w)
    tape.gradient(loss, w)
    assert "has answered" in limelight_widgets.tape(tape).state()["empty"]


def test_a_tapes_rows_are_its_entries_and_go_with_it(live):
    w = ll.Variable(np.ones((3, 2), "float32"))
    tape = ll.GradientTape()
    view = live(limelight_widgets.tape(tape))
    assert "with limelight.GradientTape()" in view.state()["empty"]
    with tape:
        loss = ll.sum(ll.tanh(w * 2.0))
    state = view.state()
    assert [row[1] for row in state["rows"]] == [entry.op for entry in tape.entries]
    assert [row[5] for row in state["rows"]] == [entry.saved_bytes for entry in tape.entries]
    assert state["rows"][-1][2][2] == "loss = ll.sum(ll.tanh(w * 2.0))"
    assert not state["released"]
    tape.gradient(loss, w)
    assert view.state()["released"]


@pytest.mark.slow  # looks through all objects of the process
def test_devices_show_what_is_live_and_which_line_copied(live):
    ll.config.set_virtual_devices(CPU=2)
    view = live(limelight_widgets.devices())
    x = ll.ones((100, 100))
    with ll.device("cpu:1"):
        y = x + 1.0
    state = view.state()
    by_name = {device["name"]: device for device in state["devices"]}
    for name, device in by_name.items():
        assert device["live"] == ll.memory_info(name).current
    assert by_name["CPU:1"]["live"] >= y.nbytes
    assert by_name["CPU:1"]["ops"] == 1
    copy = state["copies"][0]
    assert (copy["from"], copy["to"], copy["nbytes"], copy["what"]) == ("CPU:0", "CPU:1", 40_000, "x: f32[100,100]")
    assert copy["line"][2] == "y = x + 1.0"
    assert copy["fix"] == 'copy it once, before: x = x.to("CPU:1")'
    later = limelight_widgets.devices().state()["copies"]
    assert copy["line"] in [one["line"] for one in later], "copies made before a view was opened are in it"


@pytest.mark.slow  # looks through all objects of the process
def test_the_peak_has_the_intermediates_of_staged_calls_and_never_falls(live):
    @ll.function
    def wide(x):
        return ll.sum(ll.exp(x @ ll.transpose(x)) * 2.0)

    x = ll.ones((1000, 2))
    wide(x)
    gc.collect()  # what others have left would go at any time, and `live` with it
    view = live(limelight_widgets.devices())
    before = view.state()["devices"][0]
    wide(x)
    after = view.state()["devices"][0]
    assert after["peak"] >= before["live"] + 1000 * 1000 * 4
    assert after["exact"]
    assert view.state()["devices"][0]["peak"] == after["peak"], "a later look does not lower it"
    # A peak may be of before the view.
    assert before["live"] + 1000 * 1000 * 4 <= max(after["history"]) <= after["peak"]


@pytest.mark.slow  # looks through all objects of the process
def test_open_views_keep_no_tensor_and_no_function_alive(live, program):
    program(ll.ones((4, 3)))
    tape = ll.GradientTape()
    views = [limelight_widgets.graph(program), limelight_widgets.trace_cache(program), limelight_widgets.tape(tape)]
    for view in [*views, limelight_widgets.devices()]:
        live(view)
    with tape:
        tensor = ll.tanh(program.w * 3.0)
    refs = [weakref.ref(one) for one in (tensor, program, tape)]
    for view in views:
        view.state()
    del tensor, tape, program
    until(lambda: gc.collect() >= 0 and refs[0]() is None and refs[2]() is None)


def test_a_closed_view_costs_nothing(program, live):
    view = live(limelight_widgets.trace_cache(program))
    assert ll.events.wanted(ll.events.CacheMiss)
    view.close()
    assert not ll.events.wanted(ll.events.CacheMiss)


def test_a_scan_and_a_switch_show_their_functions():
    @ll.function
    def run(k, xs):
        chosen = ll.switch(k, [lambda: xs, lambda: ll.tanh(xs), lambda: -xs])
        return ll.scan(lambda total, x: (total + x, total), ll.constant(0.0), chosen)

    run(ll.constant(1), ll.ones(3))
    state = limelight_widgets.graph(run).state()
    graphs = [one for shown in _graphs_in(state) for one in shown]
    nodes = {node["op"]: node for graph in graphs for node in graph["nodes"]}
    called = lambda op: [name for _, name in nodes[op]["calls"]]  # noqa: E731
    assert called("switch") == ["branch0", "branch1", "branch2"]
    assert len(called("scan")) == 1
    assert "branches" not in nodes["switch"].get("attrs", {})
    ops = {name: [node["op"] for node in graph["nodes"]] for graph in graphs for name in [graph["name"]]}
    assert ops["branch1"] == ["tanh"]
    assert ops[called("scan")[0]] == ["add"]


def _graphs_in(state):
    """Every list of described graphs in a view's state."""
    if isinstance(state, dict):
        if isinstance(state.get("graphs"), list):
            yield state["graphs"]
        for value in state.values():
            yield from _graphs_in(value)
    elif isinstance(state, list):
        for value in state:
            yield from _graphs_in(value)


def test_branches_of_a_switch_and_bodies_of_loops_are_nested_graphs():
    def program(n, xs):
        chosen = ll.switch(n, [lambda: ll.exp(xs), lambda: ll.tanh(xs), lambda: xs * 2.0])
        total, _ = ll.scan(lambda carry, x: (carry + ll.sqrt(x), carry), ll.constant(0.0), ll.abs(chosen))
        return total

    function = ll.function(program)
    function(ll.constant(1), ll.ones((3,)))
    state = limelight_widgets.graph(function).state()
    top = state["graphs"][state["variants"][0]["graph"]]
    calls = {
        node["op"]: [state["graphs"][callee] for callee, _ in node["calls"]] for node in top["nodes"] if "calls" in node
    }
    assert [next(node["op"] for node in graph["nodes"]) for graph in calls["switch"]] == ["exp", "tanh", "constant"]
    (body,) = calls["scan"]
    assert "sqrt" in [node["op"] for node in body["nodes"]]
    assert "call" not in limelight_widgets.graph(function).static().text.splitlines()[0]


def test_traced_and_optimised_nodes_lead_to_each_other():
    def program(x):
        return ll.exp(x) + ll.exp(x) * 2.0

    function = ll.function(program)
    function(ll.ones((3,)))
    state = limelight_widgets.graph(function).state()
    before, after = (state["graphs"][variant["graph"]]["nodes"] for variant in state["variants"])
    words, standing, mark = before[1]["became"]
    assert words.startswith("shared with line ") or words.startswith("shared with an earlier exp")
    assert mark == "shared"
    (kept,) = standing
    assert after[kept]["op"] == "exp"
    assert after[kept]["was"] == [0, 1]
    assert {node.get("fused") for node in after} == {None, 1}


def wasteful(x, w):
    """Something for each pass: pruned, folded, shared, hoisted out of a loop, and fused, here and in a function."""
    ll.exp(x)
    scale = ll.constant(2.0) * ll.constant(3.0)
    _, looped = ll.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v @ (w @ w)), (0, x))
    return ll.tanh(x * scale + 1.0) + ll.tanh(x * scale + 1.0), squashed(x), looped


@ll.function
def squashed(x):
    return ll.tanh(x) * 2.0 + 1.0


@pytest.fixture
def optimised_view():
    function = ll.function(wasteful)
    function(ll.ones((4, 3)), ll.ones((3, 3)))
    return limelight_widgets.graph(function)


def test_what_passes_did_is_marked_on_both_versions(optimised_view):
    state = optimised_view.state()
    before, after = (state["graphs"][variant["graph"]]["nodes"] for variant in state["variants"])
    marks = {(node["op"], node["became"][2]) for node in before}
    assert {("exp", "pruned"), ("multiply", "folded"), ("tanh", "shared"), ("tanh", "")} <= marks
    (hoisted,) = [node for node in after if "came" in node]
    assert hoisted["op"] == "matmul"
    assert hoisted["came"] == "hoist: this node is the same in every iteration of the while_loop"
    told = {one["name"]: one["changed"] for one in state["passes"] if "changed" in one}
    assert [before[index]["op"] for index, _ in told["share"]] == ["multiply", "add", "tanh"]
    assert all(said.startswith("shared with an earlier ") for _, said in told["share"])


def test_functions_are_shown_as_they_run(optimised_view):
    state = optimised_view.state()
    called = {}
    for variant in state["variants"]:
        (node,) = [node for node in state["graphs"][variant["graph"]]["nodes"] if node["op"] == "call"]
        called[variant["key"]] = state["graphs"][node["calls"][0][0]]
    assert "fusions" not in called["traced"]
    assert called["optimised"]["fusions"] == [{"kind": "elementwise", "nodes": [0, 2, 4]}]
    assert [node.get("fused") for node in called["optimised"]["nodes"]] == [1, None, 1, None, 1]
    assert called["traced"]["nodes"][0]["became"] == ["kept; fused into group 1", [0], ""]
    assert called["optimised"]["nodes"][0]["was"] == [0]


def test_fusion_groups_are_in_every_static_form(optimised_view):
    shown = optimised_view.static()
    for form in (shown.html, shown.text):
        assert "fused 1: 4 ops in one go" in form
    assert shown.svg.index(">◉ fused 1: multiply · ") > shown.svg.rindex("<polygon"), "edges pass behind titles"
    assert "fused 1 (in squashed): 3 ops in one go: tanh, multiply, add" in shown.text
    assert "as traced: 3 pruned, 1 folded, 3 shared" in shown.text
    assert all(len(line) <= 80 for line in shown.text.splitlines())
    traced = limelight_widgets.graph(ll.function(wasteful), which="traced")
    assert "has not been traced yet" in traced.static().text


def test_long_names_can_be_read_in_the_text():
    @ll.function
    def a_function_whose_name_is_longer_than_the_column_of_a_table(an_argument_with_a_name_of_this_length):
        return ll.tanh(an_argument_with_a_name_of_this_length)

    outer = ll.function(lambda x: a_function_whose_name_is_longer_than_the_column_of_a_table(x) * x)
    outer(ll.ones((3,)))
    column = [line[7:].split("  ")[0].strip() for line in limelight_widgets.graph(outer).static().text.splitlines()]
    assert "a_function_whose_name_is_longer_than_the_column_of_a_table" in "".join(column)
