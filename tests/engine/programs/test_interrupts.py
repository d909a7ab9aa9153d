"""Exceptions and interrupts in the middle of everything, and what they must not leave behind."""

from __future__ import annotations

import _thread
import contextlib
import gc
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

import limelight as ll
from limelight.core import dispatch
from limelight.core.eager import entry_point
from limelight.core.op import Op
from limelight.errors import ArgumentError, LeakedTensorError, RunError, TapeError
from limelight.optimise.setting import setting
from limelight.user_code import tracebacks

sys.path.insert(0, str(Path(__file__).parent))

from interrupts import FOLDER, MOST, Work, interrupted, places_of, spread  # beside this file

Clean = Any  # the fixture of conftest.py
State = Callable[[], dict[str, Any]]

pytestmark = [
    pytest.mark.usefixtures("retraces_are_meant"),
    pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind"),
]

one = ll.constant(1.0)
scalar = ll.TensorSpec((), "float32")


# --- Tapes


def test_tapes_used_out_of_order(clean: Clean) -> None:
    with clean():
        tape = ll.GradientTape()
        with tape:
            tape.watch(one)
            y = one * one
            with pytest.raises(TapeError, match="recording already"), tape:
                pass
        tape.gradient(y, one)
        with pytest.raises(TapeError, match="persistent=True") as caught:
            tape.gradient(y, one)
        assert "test_interrupts.py line" in str(caught.value)
        with pytest.raises(ArgumentError, match="unconnected_gradients must be"):
            tape.gradient(y, one, unconnected_gradients="maybe")


@pytest.mark.parametrize("ending", ["close", "delete", "finish", "throw"])
@pytest.mark.parametrize("staged", [False, True], ids=["eager", "staged"])
def test_a_generator_suspended_in_a_tape_block(ending: str, staged: bool, clean: Clean) -> None:
    def recording(x: Any) -> Iterator[Any]:
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            yield tape, x * x
        yield None

    def run(x: Any) -> Any:
        generator = recording(x)
        tape, y = next(generator)
        z = y * x  # recorded: the block is open, if suspended
        if ending == "close":
            generator.close()
        elif ending == "finish":
            next(generator)
        elif ending == "throw":
            with contextlib.suppress(KeyError):
                generator.throw(KeyError("thrown in"))
        del generator
        assert not tape.active
        after = z * x  # not recorded
        return tape.gradient(z, x), ll.constant(0.0) if tape.gradient(after, x) is None else after

    with clean():
        found = (ll.function(run) if staged else run)(ll.constant(2.0))
    assert [t.item() for t in found] == [12.0, 0.0]


def test_a_tape_entered_in_a_trace_by_a_generator_that_outlives_it(clean: Clean) -> None:
    kept: list[Any] = []

    def recording(x: Any) -> Iterator[Any]:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            yield y
            yield tape.gradient(y, x)

    @ll.function
    def f(x: Any) -> Any:
        kept.append(recording(x))
        return next(kept[0])

    with clean():
        assert f(ll.constant(3.0)).item() == 9.0
        assert (one + one).item() == 2.0
        with pytest.raises(LeakedTensorError):
            next(kept[0])
    with clean():
        f.clear_cache()
        kept.clear()
        f(ll.constant(3.0))
        kept.pop().close()


# --- Exceptions and interrupts, in the middle of everything


def _raiser(error: BaseException) -> Callable[..., Any]:
    def fail(*args: Any) -> Any:
        raise error

    return fail


ERRORS = (KeyboardInterrupt, ZeroDivisionError, SystemExit, StopIteration, GeneratorExit, MemoryError)


@pytest.fixture(params=ERRORS, ids=lambda kind: kind.__name__)
def error(request: pytest.FixtureRequest) -> BaseException:
    """One for each test, which gets notes and is marked as the user's on its way."""
    made: BaseException = request.param("z")
    return made


def test_exceptions_in_the_middle_of_a_trace(error: BaseException, clean: Clean) -> None:
    fail = [True]

    def body(a: Any) -> Any:
        with ll.device("cpu:0"), ll.GradientTape() as tape:
            tape.watch(a)
            b = ll.cond(a > 0, lambda: a * 2, lambda: a)
            if fail[0]:
                raise error
        return tape.gradient(b, a)

    f = ll.function(body)
    outer = ll.function(lambda a: ll.while_loop(lambda i: i < 2, f, (a,))[0])
    for run in (f, outer, f):
        with clean(f, outer), pytest.raises(type(error)) as caught:
            run(one)
        assert caught.value is error
    fail[0] = False
    assert f(one).item() == 2.0
    assert outer(one).item() == 2.0


@pytest.mark.parametrize("where", ["forward", "backward", "second order"])
def test_exceptions_in_the_middle_of_a_run(error: BaseException, where: str, clean: Clean) -> None:
    fail = [False]

    def kernel(xp: Any, x: Any) -> Any:
        if fail[0]:
            raise error
        return x * 1

    broken = entry_point(Op("broken", inputs="x", infer=lambda x: x, kernel=kernel, vjp={"x": lambda g: broken(g) * 1}))
    f = ll.function(lambda a: broken(a) * a)

    def use(g: Callable[..., Any], where: str = "nowhere") -> Any:
        with ll.GradientTape() as outer:
            outer.watch(one)
            with ll.GradientTape() as tape:
                tape.watch(one)
                fail[0] = where == "forward"
                y = g(one)
            fail[0] = where == "backward"
            dy = tape.gradient(y, one)
        fail[0] = where == "second order"
        return outer.gradient(dy, one)

    assert use(f).item() == 2.0
    for g in (f, f.python_function):
        expected = RunError if isinstance(error, Exception) else type(error)
        with clean(f), pytest.raises(expected) as caught:
            use(g, where)
        assert caught.value is error or caught.value.__cause__ is error
        fail[0] = False
        assert use(g).item() == 2.0
    assert f.trace_count == 1


def test_exceptions_in_a_gradient_rule(error: BaseException, clean: Clean) -> None:
    fail = [True]

    def rule(g: Any) -> Any:
        if fail[0]:
            raise error
        return g * 3

    ruled = entry_point(Op("ruled", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x * 3, vjp={"x": rule}))

    def slope(g: Callable[..., Any]) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(one)
            y = g(one)
        return tape.gradient(y, one)

    for g in (ruled, ll.function(ruled), ll.function(lambda a: slope(ruled) * a)):
        fail[0] = True
        with clean(), pytest.raises(type(error)) as caught:
            slope(g)
        assert caught.value is error
        fail[0] = False
        assert slope(g).item() == 3.0


def test_exceptions_in_a_py_func(error: BaseException, clean: Clean) -> None:
    calls = [0]

    def sometimes(t: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            raise error
        return t * 2

    f = ll.function(lambda a: ll.while_loop(lambda i: i < 100, lambda i: ll.py_func(sometimes, [i], scalar), (a,))[0])

    def slope() -> Any:
        with ll.GradientTape() as tape:
            tape.watch(one)
            y = f(one)
        return tape.gradient(y, one)

    with clean(), pytest.raises(type(error)) as caught:
        slope()
    assert caught.value is error
    assert slope().item() == 128.0
    assert f.trace_count == 1


# Python drops an interrupt that arrives in a callback of a weak reference, and says so: who waits presses again.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("what", ["eager", "staged", "tape", "loop", "python"])
def test_a_real_interrupt_in_the_middle_of_work(what: str, clean: Clean) -> None:
    """Control-C, as a shell sends it: at whatever instruction the engine is just executing."""
    a = ll.ones((200,))
    step = ll.function(lambda t: ll.tanh(t * 2) + t)
    loop = ll.function(lambda t: ll.while_loop(lambda i, u: i < 10**9, lambda i, u: (i + 1, ll.tanh(u)), (0, t))[1])
    step(a)
    loop.get_concrete_function(a)

    def work() -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            if what == "eager":
                ll.tanh(a * 2) + a
            elif what == "staged":
                step(a)
            elif what == "loop":
                loop(a)
            elif what == "python":
                ll.function(lambda t: ll.tanh(t * 2))(a)
            else:
                with ll.GradientTape() as tape:
                    tape.watch(a)
                    y = ll.sum(step(a))
                tape.gradient(y, a)

    arrived = threading.Event()

    def press_again() -> None:
        while not arrived.wait(0.2):
            _thread.interrupt_main()
            arrived.wait(20)

    with clean(step, loop), pytest.raises(KeyboardInterrupt):
        presses = threading.Thread(target=press_again)
        presses.start()
        try:
            work()
        finally:
            arrived.set()
            presses.join()
    assert step(a).shape == (200,)


def test_broken_listeners_break_nothing(clean: Clean) -> None:
    with clean():
        subscription = ll.events.listen(_raiser(ValueError("a broken view")), ll.events.OpRan, ll.events.Traced)
        with pytest.warns(RuntimeWarning, match="a broken view"):
            assert ll.function(lambda a: a + 1)(one).item() == 2.0
        assert (one + one).item() == 2.0
        subscription.close()
    gc.collect()
    assert dispatch.active == []


# --- Interrupts at every line of the engine


def _differentiate() -> None:
    x = ll.constant([1.0, 2.0])
    with ll.GradientTape() as tape, tape.stop_recording():
        tape.watch(x)
    with ll.device("cpu:0"), ll.GradientTape(persistent=True) as outer, ll.GradientTape() as tape:
        outer.watch(x)
        tape.watch(x)
        y = ll.sum(ll.tanh(x * 2))
        tape.gradient(y, x)


def _stage() -> None:
    made: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        if not made:
            made.append(ll.Variable([1.0, 2.0]))
        with ll.device("cpu:0"), ll.init_scope():
            ll.ones((2,))
        return ll.cond(ll.sum(a) > 0, lambda: made[0].assign_add(a), lambda: a)

    f(ll.ones((2,)))


def _loop() -> None:
    body = lambda i, a: (i + 1, a * 2.0)  # noqa: E731
    ll.function(lambda a: ll.while_loop(lambda i, a: i < 2, body, (0, a)))(ll.ones((2,)))


def _staged_gradient() -> None:
    f = ll.function(lambda a: a * a)
    x = ll.ones((2,))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    tape.gradient(y, x)


def _py_func() -> None:
    x = ll.ones((2,))
    ll.function(lambda a: ll.py_func(lambda t: t * 2, [a], ll.TensorSpec((2,))))(x)


def _forward() -> None:
    x = ll.ones((2,))
    with ll.ForwardAccumulator(x, x) as outer, ll.ForwardAccumulator(x, x) as inner:
        y = ll.function(lambda a: a * a)(x) + ll.logsumexp(x)
    outer.jvp(inner.jvp(y))


def _vectorized() -> None:
    ll.hessian(lambda a: ll.sum(a * a * a))(ll.ones((2,)))


def _recomputed() -> None:
    x = ll.ones((2,))
    block = ll.recompute_grad(lambda a: (counted.assign_add(1.0), ll.tanh(a) * counted.read_value())[1])
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = block(x)
    tape.gradient(y, x)


def _assigned() -> None:
    counted.assign_add(1.0)
    counted.assign(counted.read_value() + 1.0)
    hit(ll.ones((2,)))


def _mapped() -> None:
    ll.vectorize(lambda a: ll.sin(a) + 1.0)(ll.ones((2, 2)))


def _scanned() -> None:
    ll.scan(lambda c, a: (c + a, c), ll.ones(()), ll.ones((2,)))


def _looped_gradient() -> None:
    x = ll.ones((2,))
    with ll.name_scope("outer"), ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * 2.0), (0, x))[1]
    tape.gradient(y, x)


def _configured() -> None:
    with ll.config.optimiser(level=0), ll.config.show_library_frames(), ll.config.run_functions_eagerly():
        hit(ll.ones((2,)))
    with ll.events.listen(lambda event: None, ll.events.OpRan):
        one + one


def _nested_settings() -> None:
    with ll.config.run_functions_eagerly(), ll.config.optimiser(level=1), ll.config.show_library_frames():
        try:
            with ll.config.run_functions_eagerly(False), ll.config.optimiser(level=0):  # noqa: SIM117  # nested
                with ll.config.show_library_frames(False), ll.config.optimiser(level=2):
                    noted(one)
        except KeyboardInterrupt:
            settings_within.append(_settings())
            raise
        noted(one)


def _settings() -> tuple[int, int, bool]:
    """How often a staged function's Python code runs, the level, and whether frames are shown."""
    runs = len(python_runs)
    noted(one)
    return len(python_runs) - runs, setting.get().level, tracebacks.shown()


python_runs: Final[list[Any]] = []
settings_within: Final[list[tuple[int, int, bool]]] = []


@ll.function
def noted(x: Any) -> Any:
    python_runs.append(x)
    return x + 1.0


counted = ll.Variable(0.0)
hit = ll.function(lambda a: a * counted)

WORKS: Final = [
    _differentiate, _stage, _loop, _staged_gradient, _py_func, _forward, _vectorized, _recomputed, _assigned, _mapped,
    _scanned, _looped_gradient, _nested_settings, _configured,
]  # fmt: skip


def _swept(work: Callable[[], Any], points: Sequence[int], clean: Clean, state: Callable[[], dict[str, Any]]) -> None:
    """Interrupts `work` at each of `points`; afterwards everything is as it was, and variables hold whole numbers."""
    with clean():
        before = state()
        for at in points:
            held = counted.read_value().item()
            interrupted(work, at)
            assert (one + one).item() == 2.0
            assert state() == before, f"after an interrupt at point {at}"
            assert counted.read_value().item() in (held, held + 1, held + 2)
    work()


# Not `_configured`: a listener listens from the call of `listen` on, also where an interrupt keeps its block from it.
@pytest.mark.parametrize("work", WORKS[:-1])
@pytest.mark.own_exception_state  # see tests/engine/conftest.py
def test_an_interrupt_leaves_nothing_behind(work: Work, clean: Clean, state: State) -> None:
    work()
    _swept(work, spread(places_of(work), MOST), clean, state)


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.own_exception_state  # see tests/engine/conftest.py
def test_an_interrupt_at_the_entry_of_an_exit_leaves_nothing_behind(work: Work, clean: Clean, state: State) -> None:
    """Python looks for signals at the first instruction of an `__exit__`, before its code can guard against them."""
    work()
    exits: list[int] = []
    interrupted(work, -1, exits)
    most = len(exits) if os.environ.get("LIMELIGHT_TESTS") == "full" else 6
    _swept(work, sorted(random.Random(0).sample(exits, min(len(exits), most))), clean, state)


@pytest.mark.own_exception_state  # see tests/engine/conftest.py
def test_an_inner_setting_that_is_left_by_an_interrupt_gives_way_to_the_outer_one() -> None:
    noted(one)
    _nested_settings()
    after = _settings()
    for at in spread(places_of(_nested_settings), 4 * MOST):
        settings_within.clear()
        interrupted(_nested_settings, at)
        assert settings_within in ([], [(1, 1, True)]), at
        assert _settings() == after, at


def test_an_orphan_in_the_frame_that_goes_on(clean: Clean, state: Callable[[], dict[str, Any]]) -> None:
    """The frame of the `with` statement goes on, and comes by the same statement again."""
    with clean():
        before = state()
        for scope in (ll.GradientTape, lambda: ll.device("cpu:0"), ll.init_scope, lambda: ll.name_scope("a")):
            for _ in range(2):
                with contextlib.suppress(KeyboardInterrupt), left_by_interrupt(scope()):
                    one + one
                assert (one + one).item() == 2.0
                assert state() == before


class left_by_interrupt:  # noqa: N801  # used as a function
    """A scope whose `__exit__` is interrupted before it does anything."""

    def __init__(self, scope: Any) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        left.append(self._scope)
        self._scope.__enter__()

    def __exit__(self, *exc: object) -> None:
        raise KeyboardInterrupt


left: Final[list[Any]] = []


def test_a_tape_that_is_entered_by_hand_stays(clean: Clean) -> None:
    tape = ll.GradientTape()

    def enter() -> None:
        tape.__enter__()
        tape.watch(one)

    with clean():
        enter()
        with ll.name_scope("between"):
            ll.function(lambda a: a + 1)(one)
        y = one * one
        assert tape.active
        tape.__exit__(None, None, None)
        assert tape.gradient(y, one).item() == 2.0
        with contextlib.ExitStack() as stack:
            other = stack.enter_context(ll.GradientTape())
            other.watch(one)
            y = ll.function(lambda a: a * a)(one)
        assert other.gradient(y, one).item() == 2.0


def test_an_interrupted_loop_of_calls_shows_no_frame_of_the_library() -> None:
    def kernel(xp: Any, x: Any) -> Any:
        if calls:
            raise KeyboardInterrupt
        return x

    calls: list[int] = []
    f = ll.function(entry_point(Op("interrupted", inputs="x", infer=lambda x: x, kernel=kernel)))
    f(one)
    calls.append(1)
    with pytest.raises(KeyboardInterrupt) as caught:
        while True:
            f(one)
    files = [str(entry.path) for entry in caught.traceback]
    assert not [file for file in files if file.startswith(FOLDER)]
