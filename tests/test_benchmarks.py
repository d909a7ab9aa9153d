"""The hot paths stay hot paths, counted rather than timed; and the benchmark that times them runs."""

from __future__ import annotations

import gc
import importlib
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

import limelight as ll
from limelight import events
from limelight.core import devices, name_scopes
from limelight.executors.loops import native_loops

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
ENGINE = str(ROOT / "engine")


def python_calls(work: Callable[[], object]) -> list[str]:
    """The Python functions that `work` calls, by name, in order."""
    names: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    gc.collect()
    gc.disable()  # a collection in the middle would call what listens to those
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return names[1:]  # without `work` itself


@pytest.fixture
def a() -> ll.Tensor:
    return ll.constant(np.linspace(0.1, 1.0, 10, dtype=np.float32))


@pytest.fixture
def b() -> ll.Tensor:
    return ll.constant(np.linspace(0.2, 2.0, 10, dtype=np.float32))


@pytest.fixture
def plan() -> Iterator[None]:
    """Functions run on the plan, and stay there."""
    with ll.config.executor("plan"):
        yield


# Counted


def test_an_eager_operator_is_one_python_function_and_the_kernel(a, b):
    assert python_calls(lambda: a + b) == ["run"]
    assert python_calls(lambda: ll.tanh(a)) == ["tanh", "run"]


def test_a_choice_beside_a_number_is_as_short_as_one_of_two_tensors(a, b):
    chosen = a > b
    of_tensors = python_calls(lambda: ll.where(chosen, a, b))
    for number in (0.0, 0):
        assert python_calls(lambda number=number: ll.where(chosen, a, number)) == of_tensors
        assert ll.where(chosen, a, number).dtype is a.dtype


def test_a_recorded_operator_adds_two_calls(a, b):
    with ll.GradientTape() as tape:
        tape.watch(a)
        a + b  # makes the recipe
        found = python_calls(lambda: (a + b, a + b))
        assert python_calls(lambda: b + b) == ["run", "observe"]  # nothing that is watched
    assert found == [
        "run",
        "observe",
        "position",
        "<lambda>",
        "run",
        "observe",
        "<lambda>",
    ]  # known code is not located
    assert len(tape.entries) == 3


def test_a_scalar_operand_adds_two_calls(a):
    assert python_calls(lambda: a * 2.5) == ["run", "_beside_scalar", "_float32"]
    assert python_calls(lambda: 1 - a) == ["reflected", "run", "_beside_scalar", "_float32"]


def test_a_cached_staged_call_goes_straight_to_its_plan(a, plan):
    plus_one = ll.function(lambda x: x + 1)
    plus_one(a)
    plus_one(a)
    calls = python_calls(lambda: plus_one(a))
    assert calls == ["__call__", "plain_types", "_note_hit", "wanted", "run_payloads", "run", "wrap"]
    assert plus_one.trace_count == 1
    assert plus_one.trace_cache[0].hits == 2


GUARDED = ["__call__", "plain_types", "find", "payloads", "_note_hit", "wanted", "run_payloads", "run", "wrap"]
T = ll.constant([1.0, 2.0])


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (([T] * 100,), {}),
        (({f"k{i}": T for i in range(10)},), {}),
        (({"layers": [{"w": T, "b": T}] * 6, "head": (T, T)}, T), {}),
        ((T, 0.5), {}),
        ((np.ones(2, np.float32), "relu"), {}),
        (([ll.Variable(1.0), ll.Variable(2.0)],), {}),
        ((T, abs, (1, None)), {}),
        ((T,), {"y": T}),
    ],
    ids=["list", "dictionary", "parameters", "number", "array", "variables", "object", "keyword"],
)
def test_a_cached_call_calls_no_python_function_for_each_leaf(args, kwargs, plan):
    f = ll.function(lambda *xs, **more: ll.constant(1.0) + 1.0)
    for _ in range(5):
        f(*args, **kwargs)
    called = python_calls(lambda: f(*args, **kwargs))
    assert called.count("<listcomp>") <= 1  # which is a function up to Python 3.11
    called = [name for name in called if name != "<listcomp>"]
    assert called == [name for name in GUARDED if not kwargs or name != "plain_types"]
    assert f.trace_count == 1


def test_a_gradient_takes_few_calls_for_each_op(a, b):
    def forward_and_back() -> Any:
        with ll.GradientTape() as tape:
            tape.watch((a, b))
            y = ll.sum(ll.tanh(a * b) * a)
        return tape.gradient(y, (a, b))

    forward_and_back()  # makes the recipes
    assert len(python_calls(forward_and_back)) <= 120


def test_a_variable_as_an_operand_is_read_once_by_a_tape(a):
    v = ll.Variable(a)

    def uses(value: Any, times: int) -> list[str]:
        with ll.GradientTape() as tape:
            value * a  # read, and its recipe made
            calls = python_calls(lambda: [value * a for _ in range(times)])
        assert sum(entry.op == "read_variable" for entry in tape.entries) == (value is v)
        return calls

    tensor = ll.constant(np.ones(10, dtype=np.float32))
    more = (len(uses(v, 30)) - len(uses(v, 10))) / 20
    assert more == (len(uses(tensor, 30)) - len(uses(tensor, 10))) / 20 + 2  # the read, and the entry
    assert python_calls(lambda: (v * a, v * v, ll.exp(v))) == python_calls(
        lambda: (tensor * a, tensor * tensor, ll.exp(tensor))
    )
    with ll.GradientTape() as tape:
        y = v * a + ll.tanh(v) @ v
        v.assign_add(a)
        z = ll.sum(v * v)
    (g,) = tape.gradient([y, z], [v])
    assert sum(g.shape) == 10


@pytest.mark.parametrize(
    ("body", "inline", "staged"),
    [
        (lambda x, y: ll.sin(x), 1.8, 1.9),
        (lambda x, y: ll.tanh(x), 1.7, 1.5),
        (lambda x, y: ll.nn.sigmoid(x), 1.8, 1.9),
        (lambda x, y: x * y, 1.8, 1.6),
        (lambda x, y: x @ y, 1.5, 1.0),
        (lambda x, y: x + 1.0, 1.7, 0.7),
    ],
    ids=["sin", "tanh", "sigmoid", "multiply", "matmul", "number"],
)
def test_a_gradient_in_a_trace_takes_calls_in_proportion(body, inline, staged, monkeypatch):
    """Python functions for each op, in times of those that its trace takes: `inline` is a tape in the trace."""
    monkeypatch.setattr(devices, "_in_use", False)  # tapes note more where another test has used another device
    monkeypatch.setattr(name_scopes, "named_scopes", [])  # or a name scope
    arguments = [ll.constant(np.eye(3, dtype=np.float32))] * 2

    def calls(n: int, derived: Callable[..., Any]) -> int:
        def chain(x: Any, y: Any) -> Any:
            for _ in range(n):
                x = body(x, y)
            return ll.sum(x)

        inner = ll.function(chain)
        inner.get_concrete_function(*arguments)
        return len(python_calls(lambda: ll.function(derived(chain, inner)).get_concrete_function(*arguments)))

    def of(derived: Callable[..., Any]) -> float:
        calls(20, derived)  # recipes are made, lines looked up
        few, more, most = (calls(n, derived) for n in (50, 100, 200))
        assert abs((most - more) - 2 * (more - few)) <= 0.02 * most, "linear"
        return (most - more) / 100

    forward = of(lambda chain, traced: chain)
    assert of(lambda chain, traced: ll.grad(chain, (0, 1))) <= inline * forward
    assert of(lambda chain, traced: ll.grad(traced, (0, 1))) <= staged * forward


def test_nothing_slow_is_left_switched_on_behind_the_user(a, b):
    """A tape, a device scope, a listener and a trace that are over leave the hot path as it was."""
    with ll.GradientTape(), ll.device("cpu:0"), ll.events.listen(lambda event: None, ll.events.OpRan):
        a + b
    ll.function(lambda x: x + 1)(a)
    assert python_calls(lambda: a + b) == ["run"]


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (lambda x: x + x, 1),
        (ll.tanh, 1),
        (lambda x: x * 2.0, 1),
        (lambda x: ll.where(x > 0, x, x), 1.25),
        (lambda x: ll.reshape(x, (1000, 1000)), 0),
        (lambda x: x[10:-10], 0),
        (lambda x: x.sum(), 0),
    ],
    ids=["add", "tanh", "scalar", "where", "reshape", "slice", "sum"],
)
def test_no_hidden_copies_of_large_arrays(work, expected):
    x = ll.constant(np.ones(1_000_000, np.float32))
    work(x)
    tracemalloc.start()
    try:
        kept = work(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept.dtype == ll.float32
    assert peak == pytest.approx(expected * x.nbytes, abs=20_000)


# The benchmark itself


@pytest.fixture
def module() -> Iterator[Callable[[str], ModuleType]]:
    """Imports a benchmark; none of their names is left behind."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(BENCHMARKS))
        for script in BENCHMARKS.glob("*.py"):
            sys.modules.pop(script.stem, None)


@pytest.fixture
def report(module) -> ModuleType:
    return module("report")


EVALUATIONS = ("eager", "staging", "l2hmc", "resnet50", "transformer", "compile_device", "memory", "promises")


@pytest.mark.parametrize("name", EVALUATIONS)
def test_what_an_evaluation_promises_is_among_what_it_measures(name, module):
    evaluation = module(name).EVALUATION
    rows, libraries = ([x.name for x in many] for many in (evaluation.rows, evaluation.libraries))
    assert len(set(rows)) == len(rows)
    assert evaluation.quick
    assert module(evaluation.module or evaluation.name).LIBRARIES == evaluation.libraries
    for bar in evaluation.bars:
        assert {*bar.rows} <= {*rows}
        assert {bar.ours, bar.other} <= {*libraries}
    for library in evaluation.libraries:
        known = {name for row in (*evaluation.rows, *module("rows").ROWS) for name in (row.name, row.group)}
        assert {*library.lacks} <= known
    assert name in Path(ROOT / "Makefile").read_text(encoding="utf-8").partition("EVALUATIONS := ")[2].split("\n")[0]


def run_quickly(name: str, folder: Path, *options: str) -> tuple[dict[str, Any], str]:
    """The numbers that an evaluation writes, and what it prints."""
    command = [sys.executable, f"{name}.py", "--quick", "--rounds", "1", "--peers", "", "--out", str(folder), *options]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr  # it fails where a library finds another loss
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8")), done.stdout


@pytest.mark.slow  # starts another Python
def test_the_benchmark_runs_and_says_which_bars_hold(tmp_path):
    found, printed = run_quickly("eager", tmp_path)
    assert found["failed"] == []
    assert found["machine"]["cores"] >= 1
    assert {"load", "load after", "blas", "versions"} <= found["machine"].keys()
    assert {"add", "slice", "softmax", "add, recorded"} <= found["seconds"].keys()
    for row, seconds in found["seconds"].items():
        assert seconds.keys() == {"numpy", "limelight"}, row
        assert all(0 < value < 1 for values in seconds.values() for value in values), row
        assert seconds.keys() == found["processor seconds"][row].keys()
    assert all(bar[:6] in ("PASS  ", "FAIL  ", "SKIP  ") for bar in found["bars"])
    for line in found["bars"]:
        assert line in printed


def test_a_first_call_traces_also_after_steps_of_the_same_chain(module):
    rows, measure = module("rows"), module("measure")
    words = next(library for library in rows.LIBRARIES if library.name == "limelight").words()
    steps, first = (
        next(row for row in rows.ROWS if row.group == group and row.size == rows.CHAINS[0])
        for group in ("staged", "first call")
    )
    measure.runner(steps, words)(2)
    traced: list[events.Event] = []
    with events.listen(traced.append, events.Traced):
        measure.runner(first, words)(1)
    assert len(traced) == 1


@pytest.mark.slow  # starts another Python
def test_the_task_is_the_same_program_staged_and_not(tmp_path):
    found, printed = run_quickly("l2hmc", tmp_path)
    with_loops = {"limelight loops"} if native_loops.is_installed() else set()
    staged = {"limelight plan"} | with_loops
    assert found["seconds"]["first call, 10 samples"].keys() == staged
    assert found["seconds"]["10 samples"].keys() == {"limelight", "variables"} | staged
    assert "medians (least-most)" in printed
    assert (tmp_path / "l2hmc.svg").exists() == ("no plot" not in printed)


@pytest.mark.parametrize("stage", [False, True])
def test_a_task_is_trained_and_its_memory_counted(stage, module):
    training = module("training")
    task = training.Task(
        loss=lambda xp, p, data: xp.mean(xp.square(data[0] @ p[0])),
        parameters=lambda: [np.eye(2, dtype=np.float32)],
        batch=lambda n: [np.full((n, 2), 2.0, np.float32)],
        operations={"limelight": lambda: ll},
        rate=0.1,
    )
    words = training.limelight(task, stage=stage)
    losses = [words["step"](words["batch"](3)) for _ in range(3)]
    assert losses[0] == 4.0 == words["losses"][0]
    assert sorted(losses, reverse=True) == losses
    if sys.platform == "linux":
        # Of 32 MB each, since the system may give memory by pages of 2 MB, in whose rest a smaller array finds room.
        assert words["peak"](words["batch"](4_000_000), words["batch"](1)) > 30_000_000


def test_a_resnet_of_fifty_layers_is_what_its_name_says(module):
    resnet, operations = module("resnet50_program"), module("resnet50").OPERATIONS["limelight"]()
    parameters = resnet.parameters()
    assert sum(p.size for p in parameters) == 25_557_032  # without running averages
    assert sum(p.ndim in (2, 4) for p in parameters) == 50 + 4  # and the projections of four stages
    loss = float(resnet.loss(operations, list(map(ll.constant, parameters)), resnet.batch(2, 32)))
    assert abs(loss - np.log(resnet.CLASSES)) < 2.0


class Measuring:
    """Stands for the process that measures: says what it is told to, and lets the clock run."""

    now = 0.0
    takes: ClassVar[dict[tuple[str, str], float]] = {}

    def __init__(self, module: str) -> None:
        pass

    def measure(self, library: str, row: Any, seconds: float) -> tuple[float, float] | None:
        took = self.takes.get((library, row.name), 1.0)
        if took == float("inf"):
            raise KeyboardInterrupt
        Measuring.now += min(took, seconds)
        return None if took > seconds else (took, took)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("takes", "options", "measured", "missing"),
    [
        ({}, {}, 3 * 4, {}),
        ({}, {"seconds": 2.5}, 2, {("a", "y"): "was over", ("b", "y"): "was over"}),
        ({("a", "y"): 100.0}, {"seconds": 9.0}, 2, {("a", "y"): "was over", ("b", "y"): "was over"}),
        ({("a", "x"): 7.0}, {"patience": 5.0}, 3 * 2, {("a", "x"): "more than 5 s", ("a", "y"): "more than 5 s"}),
        ({("a", "y"): float("inf")}, {}, 2, {("a", "y"): "interrupted", ("b", "y"): "interrupted"}),
    ],
    ids=["all", "in a round", "in a row", "patience", "Ctrl-C"],
)
def test_a_run_that_ends_early_keeps_what_there_is(takes, options, measured, missing, module, monkeypatch):
    measure = module("measure")
    monkeypatch.setattr(Measuring, "now", 0.0)
    monkeypatch.setattr(Measuring, "takes", takes)
    monkeypatch.setattr(measure, "Worker", Measuring)
    monkeypatch.setattr(measure.time, "monotonic", lambda: Measuring.now)
    libraries = [measure.Library(name, name, dict) for name in "ab"]
    rows = [measure.Row(name, "steady state", "") for name in "xy"]
    found = measure.interleave(libraries, rows, 3, "nowhere", **options)
    assert sum(map(len, found.wall.values())) == measured
    assert found.failed == {}
    assert found.missing.keys() == missing.keys()
    for key, words in missing.items():
        assert words in found.missing[key]
    lines = module("evaluation")._left_out(found)
    assert len(lines) == len({(key[0], found.missing[key]) for key in missing})


def test_sizes_are_measured_one_after_the_other(module):
    evaluation, measure = module("evaluation"), module("measure")
    rows = [measure.Row(f"{name} {size}", name, "", size=size) for name in ("first", "steady") for size in (200, 10)]
    order = [row.name for row in evaluation._by_size([*rows, evaluation.LOSS])]
    assert order == ["first 200", "steady 200", evaluation.LOSS.name, "first 10", "steady 10"]


def test_a_known_loss_is_that_of_the_first_size(module):
    evaluation, l2hmc = module("evaluation"), module("l2hmc").EVALUATION
    rows_of = {size: [row for row in l2hmc.rows if not row.size or row.size == size] for size in l2hmc.sizes}
    assert {size for size, rows in rows_of.items() if evaluation._known_loss(l2hmc, rows)} == {l2hmc.sizes[0]}


def test_rounds_are_shown_with_their_spread(report, module):
    row = module("measure").Row("4 images", "steady state", "", size=4, unit="examples/s")
    libraries = [module("measure").Library(name, name, dict) for name in ("one", "other")]
    lines = report.by_library({("one", "4 images"): [1.0, 2.0, 4.0]}, libraries, [row])
    assert [line.split() for line in lines if line[0] != "-"][1:] == [["one", "2", "(1-4)"], ["other", "-"]]


def test_an_unknown_peer_is_refused():
    command = [sys.executable, "eager.py", "--peers", "theano"]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 1
    assert "no such peer: theano; there are autograd, jax, tensorflow and torch" in done.stderr


def test_verdicts_take_the_worst_row_or_the_mean(report):
    samples = {
        ("limelight", "x"): [2.0, 4.0],
        ("numpy", "x"): [1.0, 1.0],
        ("limelight", "y"): [1.0],
        ("numpy", "y"): [3.0],
    }
    worst = report.Bar("fast", ("x", "y"), "numpy", 2.5)
    assert report.verdict(worst, samples) == "FAIL  fast: 3.00 (x)"
    assert report.verdict(worst._replace(mean=True), samples) == "PASS  fast: 1.00 (the mean of 2 rows)"
    assert report.verdict(worst._replace(other="jax"), samples) == "SKIP  fast: not measured"


def test_times_are_shown_in_readable_units(report):
    shown = [report.show_seconds(s) for s in (None, 2.345e-7, 9.99e-5, 1.234e-4, 0.25)]
    assert shown == ["-", "0.23", "99.90", "123", "250 ms"]


@pytest.mark.slow  # starts another Python
def test_the_cost_of_explanations_is_printed_for_each_kind_of_difference():
    command = [sys.executable, "explain.py", "30", "3"]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.startswith("30 leaves, 3 traces")
    assert {"one shape", "all objects", "one key more"} <= {row[:24].strip() for row in rows}
    assert all(0 < float(row.split()[-2]) for row in rows)


def test_nothing_slows_down_the_attributes_of_tensors():
    """With a `__getattr__` of its own, Python would look up `x._data` the slow way: 10 % of `a + b`."""
    assert not hasattr(ll.Tensor, "__getattr__")
    assert ll.Tensor.__getattribute__ is object.__getattribute__


def test_calls_are_counted_out_by_those_after_the_first(module: Callable[[str], ModuleType]) -> None:
    asked = []

    def run(number: int) -> tuple[float, float]:  # the first call traces; a call takes a microsecond after 30 of them
        before, after = sum(asked), sum(asked) + number
        asked.append(number)
        slow = max(0, min(after, 30) - before)
        return (5.0 if before == 0 else 0.0) + slow * 1e-4 + (number - slow) * 1e-6, 0.0

    assert module("measure").calibrate(run, limit=0.004) == 4000
    assert asked[0] == 1
