"""What a compiled run has drawn when it fails is drawn again, unless others have drawn since."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.executors.xla.compiled import X, jax_only

import limelight as ll
from limelight.executors.xla.hoisted_draws import Draw

pytestmark = jax_only


@pytest.fixture
def made() -> Any:
    """A generator, and the program of a function that draws from it twice, with a way to run it."""
    noise = ll.random.Generator(3)
    f = ll.function(lambda x: x + noise.normal((5, 3)) + noise.normal((5, 3)), jit_compile=True)
    f(X)
    (program,) = f.trace_cache[0].function.run._programs.values()
    noise.reset(7)
    return noise, program, lambda: program.runner()(*[x._data for x in (ll.constant(X), noise)])


def test_what_another_thread_draws_during_a_run_that_fails_is_handed_out_once(made, monkeypatch):
    noise, program, run = made
    seen: list[Any] = []

    def interrupted(*arrays: Any) -> Any:
        seen.extend([noise.normal(()).item(), noise.split(1)[0].normal(()).item()])  # as another thread would
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_compiled", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert noise.normal(()).item() != seen[0]
    assert noise.split(1)[0].normal(()).item() != seen[1]


def test_a_generator_that_was_split_during_a_run_that_fails_hands_out_other_parts(made, monkeypatch):
    noise, program, run = made
    parts: list[Any] = []

    def interrupted(*arrays: Any) -> Any:
        parts.extend(noise.split(1))
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_compiled", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert noise.normal(()).item() == ll.random.Generator(7).normal(()).item()  # the run's own draws are taken back
    assert noise.split(1)[0].normal(()).item() != parts[0].normal(()).item()


def test_a_generator_that_is_set_during_a_run_that_fails_stays_set(made, monkeypatch):
    noise, program, run = made

    def interrupted(*arrays: Any) -> Any:
        noise.reset(11)
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_compiled", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert noise.normal(()).item() == ll.random.Generator(11).normal(()).item()


@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_interrupt_of_draws_takes_back_those_that_were_made(made, monkeypatch, after):
    noise, program, run = made
    calls: list[int] = []
    results = Draw.results

    def interrupted(draw: Draw, source: Any) -> Any:
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return results(draw, source)

    if after < len(program.draws):
        monkeypatch.setattr(Draw, "results", interrupted)
    else:
        monkeypatch.setattr(
            program, "_arrays", lambda payloads: interrupted(program.draws[0], calls.extend([1] * after))
        )
    with pytest.raises(KeyboardInterrupt):
        run()
    assert noise.normal(()).item() == ll.random.Generator(7).normal(()).item()
