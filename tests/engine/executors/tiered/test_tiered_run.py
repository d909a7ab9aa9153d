"""Tiered execution, by a clock, a thread and a compiler of the test's own: when it compiles, compares and switches."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import OutOfBoundsError
from limelight.executors import base
from limelight.executors.tiered import tiered_run
from limelight.executors.tiered.comparison import ROUNDS, disagreement
from limelight.executors.tiered.tiered_run import COMPARING, COMPILING, FIRST_LOOK, Means, TieredRun
from limelight.executors.xla.compiler_process import CompilerProcess, StoppedError
from limelight.executors.xla.program import RefusedValueError
from limelight.graph.ir import Graph

X = np.linspace(-1.0, 1.0, 6, dtype="float32")


class World:
    """Time that passes by `cost` seconds a run of the plan, and a thread that works when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.plan, self.program = 1.0, 0.25
        self.jobs: list[Callable[[CompilerProcess], None]] = []
        self.compiled: list[Program] = []
        self.wrong: Any = None
        self.error: Exception | None = None
        self.process = CompilerProcess()

    def work(self) -> None:
        while self.jobs:
            self.jobs.pop(0)(self.process)

    def compile(self, graph: Graph, process: CompilerProcess) -> Program:
        if self.error is not None:
            raise self.error
        self.compiled.append(Program(self, graph))
        return self.compiled[-1]


class Program:
    """Stands for a compiled graph: it computes by a plan, on variables of its own where it is rehearsed."""

    def __init__(self, world: World, graph: Graph) -> None:
        self.world, self.run = world, base.get("plan").build(graph)
        self.calls = 0
        self.fails: Exception | None = None

    def runner(self) -> Callable[..., Any]:
        def run(*payloads: Any) -> Any:
            if self.fails is not None:
                raise self.fails
            self.calls += 1
            self.world.now += self.world.program
            return self.run(*payloads)

        return run

    def rehearse(self, payloads: Any) -> tuple[Any, Any]:
        if self.fails is not None:
            raise self.fails
        held = [x.array for x in payloads if hasattr(x, "array")]
        results = self.run(*payloads)
        changed = self.values_of_variables(payloads)
        for x, old in zip([x for x in payloads if hasattr(x, "array")], held, strict=True):
            x.set(old)
        return ([x + self.world.wrong for x in results] if self.world.wrong else results), changed

    def values_of_variables(self, payloads: Any) -> list[Any]:
        return [x.array for x in payloads if hasattr(x, "array")]

    def text(self) -> str:
        return "compiled text"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Functions that are traced now are tiered by these means, whether JAX is installed or not."""
    made = World()
    means = Means(lambda: made.now, made.jobs.append, made.compile, lambda graph: 10.0)

    def tiered(graph: Graph, quick: Any, tier: str, settled: Any) -> Any:
        def timed(*payloads: Any) -> Any:
            made.now += made.plan
            return quick(*payloads)

        timed.output_devices, timed.source, timed.memory = quick.output_devices, quick.source, quick.memory
        return TieredRun(graph, timed, tier, settled, means)

    monkeypatch.setattr("limelight.staging.graph_function.tiered", tiered)
    monkeypatch.setattr(tiered_run.xla, "refusals", lambda graph: [])
    with ll.config.deterministic(False), base.chosen.override(base.Automatic("plan")):  # nobody has named one
        yield made


def staged(body: Callable[..., Any] = lambda x: ll.tanh(x) * 2.0) -> tuple[Any, Any]:
    f = ll.function(body)
    f(X)
    return f, f.trace_cache[0]


def until(f: Any, entry: Any, progress: str, calls: int = 40) -> int:
    """Calls until the entry says this; how many calls that took."""
    for n in range(calls):
        if entry.tier_progress.startswith(progress):
            return n
        f(X)
    raise AssertionError(entry.tier_progress)


def compiled(world: World, body: Callable[..., Any] = lambda x: ll.tanh(x) * 2.0, when: str = "") -> tuple[Any, Any]:
    """A function whose program is ready: to be rehearsed, or, as `when` has it, to be "measured", or "settled" upon."""
    f, entry = staged(body)
    until(f, entry, COMPILING)
    world.work()
    if when == "measured":
        f(X), f(X)
    elif when == "settled":
        until(f, entry, "compiled: ")
    return f, entry


def is_right(f: Any) -> None:
    np.testing.assert_array_equal(f(X).numpy(), np.tanh(X) * 2)


def test_it_compiles_when_the_time_spent_exceeds_the_price_and_switches_when_faster(world: World) -> None:
    f, entry = staged()
    assert until(f, entry, COMPILING) == 9  # and the one before: ten seconds
    assert len(world.jobs) == 1
    for _ in range(20):
        f(X)
    assert (entry.tier, len(world.jobs)) == ("plan", 1)
    world.work()
    assert entry.tier_progress == COMPARING
    assert until(f, entry, "compiled: 4.0 times as fast") == 1 + 2 * ROUNDS
    assert entry.tier == "xla"
    before = world.compiled[0].calls
    is_right(f)
    assert world.compiled[0].calls == before + 1
    assert entry.function.run.source == "compiled text"


def test_it_stays_where_the_program_is_not_faster_and_nothing_stands_in_between(world: World) -> None:
    world.program = 0.95
    f, entry = compiled(world)
    until(f, entry, "kept on plan: compiled it is 1.1 times as fast")
    assert entry.tier == "plan"
    assert not isinstance(entry.function.run, TieredRun)


def test_a_hopeless_program_is_not_tried_to_the_end(world: World) -> None:
    world.program = 50.0
    f, entry = compiled(world)
    until(f, entry, "kept on plan")
    assert world.compiled[0].calls == 2


def test_runs_shorter_than_a_call_of_a_program_are_left_alone(world: World) -> None:
    world.plan = 5e-6
    f, entry = staged()
    for _ in range(FIRST_LOOK):
        f(X)
    assert entry.tier_progress == "kept on plan: its runs are too short to gain"
    assert not isinstance(entry.function.run, TieredRun)


def test_no_effect_happens_twice_and_draws_stay_the_same(world: World) -> None:
    def run(switched: bool) -> tuple[list[float], float]:
        v = ll.Variable(0.0)
        ll.random.seed(7)
        f = ll.function(lambda x: (v.assign_add(1.0), x.sum() + ll.random.uniform(()))[1])
        found = []
        for i in range(40):
            found.append(f(X).item())
            if switched and i == 20:
                world.work()
        if switched:
            assert f.trace_cache[0].tier == "xla"
        return found, float(v.numpy())

    with ll.config.deterministic():
        wanted = run(False)
    assert run(True) == wanted, "a rehearsal draws nothing and assigns nothing"


def test_results_that_differ_by_more_than_rounding_keep_it_on_the_plan(world: World) -> None:
    world.wrong = 0.1
    f, entry = compiled(world)
    is_right(f)
    assert entry.tier_progress == "kept on plan: compiled, output 0 differs by 0.07 of its largest number"


def test_an_error_of_the_compiler_is_told_and_harms_nothing(world: World) -> None:
    world.error = ValueError("no such instruction\nand more")
    f, entry = compiled(world)
    f(X)
    assert entry.tier_progress == "kept on plan: it could not be compiled: no such instruction"


def test_the_end_of_the_process_is_no_reason(world: World) -> None:
    world.error = StoppedError()
    f, entry = compiled(world)
    f(X)
    assert entry.tier_progress == COMPILING


@pytest.mark.parametrize("when", ["rehearsed", "measured", "settled"])
def test_a_program_that_fails_gives_way_to_the_plan_within_the_call(world: World, when: str) -> None:
    f, entry = compiled(world, when=when)
    world.compiled[0].fails = RuntimeError("RESOURCE_EXHAUSTED: no memory")
    is_right(f)
    assert entry.tier_progress.endswith("RESOURCE_EXHAUSTED: no memory")
    assert entry.tier == "plan"


@pytest.mark.parametrize("when", ["rehearsed", "measured", "settled"])
def test_a_value_that_is_refused_raises_in_the_words_of_the_plan(world: World, when: str) -> None:
    f, entry = compiled(world, lambda x: x[ll.astype(x[5] * 0.0, "int32") + 5], when)
    world.compiled[0].fails = RefusedValueError()
    assert f(X).item() == 1.0
    world.compiled[0].fails = None
    until(f, entry, "compiled: ")
    with pytest.raises(OutOfBoundsError):
        ll.function(lambda x, k: x[k])(X, ll.constant(9))


@pytest.mark.parametrize("said", ["", COMPILING, COMPARING, "compiled: "])
def test_a_forked_process_is_back_on_the_plan_and_stays_there_with_jax(
    world: World, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, entry = staged()
    if said:
        until(f, entry, COMPILING)
    if said not in ("", COMPILING):
        world.work()
        until(f, entry, said)
    jobs = len(world.jobs)
    monkeypatch.setattr(tiered_run, "_jax_was_forked", [False])
    monkeypatch.setitem(sys.modules, "jax", sys)
    tiered_run._begin_anew()  # as a forked process does
    assert (entry.tier, entry.tier_progress[:15]) == ("plan", "kept on plan: i")
    for _ in range(30):
        is_right(f)
    assert len(world.jobs) == jobs
    assert not any(program.calls > ROUNDS for program in world.compiled)


def test_a_process_that_is_forked_before_jax_is_there_compiles_for_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, entry = staged()
    until(f, entry, COMPILING)
    world.jobs.clear()  # its thread is the parent's
    monkeypatch.setattr(tiered_run, "_jax_was_forked", [False])
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    tiered_run._begin_anew()
    assert entry.tier_progress == ""
    until(f, entry, COMPILING)
    world.work()
    until(f, entry, "compiled: ")


def test_a_function_is_pinned_where_it_is(world: World) -> None:
    f, entry = staged()
    with ll.config.deterministic():
        for _ in range(30):
            f(X)
        assert (entry.tier_progress, world.jobs) == ("", [])
    until(f, entry, COMPILING, 100)
    world.work()
    with ll.config.deterministic():
        for _ in range(30):
            f(X)
    assert (entry.tier, world.compiled[0].calls) == ("plan", 0)
    until(f, entry, "compiled: ")
    with ll.config.deterministic() as setting:
        assert repr(setting) == "<deterministic: True>"


def test_only_what_nobody_has_chosen_for_is_tiered(world: World) -> None:
    never = ll.function(lambda x: x + 1.0, jit_compile=False)
    never(X)
    with ll.config.executor("plan"):
        named = ll.function(lambda x: x + 1.0)
        named(X)
    for f in (never, named):
        assert not isinstance(f.trace_cache[0].function.run, TieredRun)


def test_the_halves_of_a_gradient_are_tiered_too(world: World) -> None:
    f, _ = staged()
    for _ in range(30):
        ll.grad(lambda x: f(x).sum())(ll.constant(X))
    assert len(world.jobs) == 2


def test_a_function_goes_without_the_collector(world: World) -> None:
    f, entry = staged()
    until(f, entry, COMPILING)
    run = weakref.ref(entry.function._built)
    gc.disable()
    try:
        del f, entry
        assert run() is None
    finally:
        gc.enable()
    world.work()
    assert not world.compiled


def test_agreement_is_asked_by_dtype() -> None:
    x = np.array([1.0, np.nan, np.inf, -2.0], "float32")
    assert not disagreement([x], [x + np.float32(1e-5)])
    assert disagreement([x], [np.nan_to_num(x)]) == "output 0 differs by inf of its largest number"
    assert disagreement([x], [x.astype("float64")]) == "output 0 is float64[4], not float32[4]"
    assert disagreement([x > 0], [x > -5]) == "output 0 differs in 1 of 4 elements"
    assert not disagreement([np.zeros(0)], [np.zeros(0)])
