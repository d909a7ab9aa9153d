"""The estimate of what a plan needs at most."""

from __future__ import annotations

import tracemalloc

import numpy as np

import limelight as ll  # noqa: F401  # registers the ops
from limelight.executors.plan import plan
from limelight.graph import parse

KB = 4 * 256


def graph(*lines: str, shape: str = "256") -> object:
    return parse(f"graph g\n  input %0: f32[{shape}]  x\n" + "".join(f"  {line}\n" for line in lines))


def test_buffers_that_are_written_over_count_once() -> None:
    made = graph("%1: f32[256] = tanh(%0)", "%2: f32[256] = exp(%1)", "%3: f32[256] = sin(%2)", "return %3")
    assert plan.build(made).memory()[0::2] == (KB, True)


def test_what_lives_at_once_adds_up() -> None:
    made = graph(
        "%1: f32[256] = tanh(%0)",
        "%2: f32[256] = exp(%0)",
        "%3: f32[256] = sin(%0)",
        "%4: f32[256] = add(%1, %2)",
        "%5: f32[256] = add(%4, %3)",
        "return %5",
    )
    peak = plan.build(made).memory()
    assert (peak.nbytes, peak.node.op.name) == (3 * KB, "sin")


def test_views_keep_what_they_show() -> None:
    view = "%2: f32[16,16] = reshape(%1)  {shape=(16, 16)}"
    made = graph("%1: f32[256] = tanh(%0)", view, "%3: f32[16,16] = matmul(%2, %2)", "return %2, %3")
    assert plan.build(made).memory().nbytes == 2 * KB
    made = graph("%1: f32[256] = tanh(%0)", view, "%3: f32[256] = exp(%0)", "return %3")
    assert plan.build(made).memory().nbytes == KB


def test_unknown_sizes_are_said_to_be() -> None:
    made = graph("%1: f32[?] = tanh(%0)", "return %1", shape="?")
    assert plan.build(made).memory()[0::2] == (0, False)


def test_it_is_about_what_a_run_allocates() -> None:
    n = 1 << 18
    lines = [f"%1: f32[{n}] = tanh(%0)", f"%2: f32[{n}] = exp(%1)", f"%3: f32[{n}] = multiply(%1, %2)"]
    lines += [f"%4: f32[{n}] = add(%3, %2)", f"%5: f32[{n}] = maximum(%4, %1)", "return %5"]
    run = plan.build(graph(*lines, shape=str(n)))
    x = np.ones(n, np.float32)
    tracemalloc.start()
    try:
        run(x)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    estimate = run.memory().nbytes
    assert 0.9 * estimate < used < 1.1 * estimate + 10_000
