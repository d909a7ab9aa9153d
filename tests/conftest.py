"""What every test of Limelight may rely on."""

from __future__ import annotations

import gc
import itertools
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from threading import get_ident
from types import FrameType
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis.internal.conjecture import junkdrawer, providers

sys.path.insert(0, str(Path(__file__).parent / "fakes"))  # libraries that stand in for hardware

# A shared machine pauses a process for longer than Hypothesis's deadline, and makes drawing examples look slow; the
# run's own time limit is enough. Examples are drawn from a fixed seed, so that a red test is red for everybody.
hypothesis.settings.register_profile(
    "limelight",
    max_examples=100 if os.environ.get("LIMELIGHT_TESTS") == "full" else 20,  # where a test does not say how many
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=True,
    print_blob=True,
)
hypothesis.settings.load_profile("limelight")
# Nor do they depend on the numbers that stand in the sources of whatever is imported by then: Hypothesis draws some of
# these, and takes eight seconds in each process to parse them all.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = providers.Constants
# It also times the garbage collector, in a callback of Python: threads take turns there, and CPython 3.11 raises
# SystemError where a collection within ast.parse lets another thread parse as well.
if hasattr(junkdrawer, "_gc_initialized"):
    junkdrawer._gc_initialized = True

REPOSITORY = str(Path(__file__).parents[1])
_CALLS_TESTS = str(Path("_pytest", "python.py"))
os.environ.setdefault("LIMELIGHT_COMPILATION_CACHE", "0")  # nothing is left in a user's folder, or found there


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thin", type=int, metavar="N", help="of each test's parameters at most N sets, spread evenly")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # while ten thousand tests are collected, nothing of which is garbage
    config.pluginmanager.register(FailuresAtOnce(config))
    # Tests interrupt themselves, also in a run that a shell has begun in the background, with interrupts ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    gc.freeze()  # nor will it be, and collections need not look at it
    gc.enable()


_finished = count(1)


def pytest_runtest_logfinish() -> None:
    """Reports, sources and caches live to the end, and collections need not look at them again and again."""
    if next(_finished) % 100 == 0:
        gc.collect()
        gc.freeze()


class FailuresAtOnce:
    """Shows why a test failed when it fails; pytest itself does so at the end, minutes later."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")  # which xdist's workers lack
        if terminal is not None and report.failed:
            terminal.ensure_newline()
            terminal.write_sep("_", f"{report.nodeid} ({report.when})")
            terminal.write_line(report.longreprtext)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Thins parameters where asked; skips the tests marked `gpu`, with the reason, where there is no usable GPU."""
    if config.option.thin:
        kept = _thinned(items, config.option.thin)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = why_no_gpu() if marked else None
    for item in marked:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def _thinned(items: list[pytest.Item], most: int) -> set[pytest.Item]:
    """The items, but of each test's parameters at most `most` sets, from all along its list."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {found[i * len(found) // most] for found in tests.values() for i in range(most)}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many random programs ran, and of which kinds: tests note it, in whatever process they run."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, ())]
    noted = [found for report in reports for name, found in report.user_properties if name == "random programs"]
    total = sum(map(Counter, noted), Counter())
    if total:
        terminalreporter.write_line("Random programs: " + ", ".join(f"{n:,} {what}" for what, n in total.most_common()))


def why_no_gpu() -> str | None:
    """Why tests cannot use a GPU, or None if they can."""
    if shutil.which("nvidia-smi") is None:
        return "no NVIDIA GPU on this machine (no nvidia-smi)"
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed (the extra `cuda`)"
    try:
        return None if cupy.cuda.runtime.getDeviceCount() else "CuPy sees no GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy cannot use the GPU: {error}"


@pytest.fixture(scope="session")
def no_gpu() -> str | None:
    """Why there is no GPU to use, or None."""
    return why_no_gpu()


@pytest.fixture(autouse=True, scope="session")
def _nothing_is_compiled_by_itself() -> Iterator[None]:
    """However long a function runs in all: tests shall not depend on the clock."""
    from limelight.executors import base

    pinned = base.pinned.set_globally(True)
    yield
    base.pinned.withdraw(pinned)


@pytest.fixture(autouse=True, scope="session")
def _who_keeps_a_tensor_is_searched_for_where_a_test_runs() -> Iterator[None]:
    """An error that asks what keeps a tensor looks through the user's modules: not those of a thousand other tests.

    Nor through pytest's own objects, which from any test lead to all others.
    """
    from limelight.user_code import holders

    every, all_frames = holders._modules, holders._frames

    def frames(frame: FrameType | None) -> Iterator[FrameType]:
        return itertools.takewhile(lambda one: not one.f_code.co_filename.endswith(_CALLS_TESTS), all_frames(frame))

    def modules() -> Iterator[tuple[dict[str, Any], str]]:
        running = {id(frame.f_globals) for frame in frames(sys._getframe())}
        for names, where in every():
            others = names.get("__name__") == "__main__" or str(names.get("__file__")).startswith(REPOSITORY)
            if id(names) in running or not others:
                yield names, where

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holders, "_modules", modules)
        patch.setattr(holders, "_frames", frames)
        patch.setattr(holders, "_INNER", (*holders._INNER, "_pytest", "pluggy", "xdist", "execnet", "hypothesis"))
        yield


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """For tests that compare the bytes alive: what others have left is gone, and nothing goes by itself meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Each test finds things as if it ran alone, and draws the same numbers, in whatever order they run.

    One fixture, since ten thousand tests pay for each: what they must not see of one another is undone here.
    """
    from limelight import events, settings
    from limelight.core import devices, dispatch, op
    from limelight.explain.retracing import restaging
    from limelight.random import default_generator

    restaging.forget()  # a test with many parameters stages its functions again and again, which would be warned of
    default_generator()._data.set(_seeded())  # `ll.random.seed(20)` runs an op, for five times as long
    random.seed(20)
    np.random.seed(20)
    interpreters, local = list(dispatch.active), devices.list_devices()
    ops, modules = set(op._ops), _modules()
    was_handled = sys.exc_info()[0]  # it would be the context of each exception of later tests
    listeners, values = dict(events._listeners), {setting: setting.get() for setting in settings._all}
    yield
    if events._listeners != listeners:
        gc.collect()  # a view that nobody holds listens until then
    left: list[Any] = [_where(one) for one in _still_active(dispatch.active, interpreters)]
    left += [f"{setting.name} = {value!r}" for setting, old in values.items() if (value := setting.get()) != old]
    left += _listening(events, listeners)
    left += [f"{handled.__name__}, which is being handled"] if (handled := sys.exc_info()[0]) is not was_handled else []
    dispatch.active[:] = interpreters
    dispatch.scopes[:] = [one for one in dispatch.scopes if one in interpreters]
    devices._local[:] = local  # messages and lists name all devices that there are
    for name in set(op._ops) - ops:  # other tests walk over the registry
        home = op._homes[name]
        if home in modules or home not in sys.modules:  # a module imported for the first time keeps its ops
            del op._ops[name], op._homes[name]
    assert not left, f"left by this test: {left}"  # an interpreter, a device scope, a listener or a setting


def _still_active(active: list[Any], before: list[Any]) -> list[Any]:
    """What is active and was not, once other threads, such as those of views, are done with theirs."""
    patience = time.monotonic() + 20
    while True:
        left = [one for one in active if one not in before]
        blocks = [getattr(one, "block", None) for one in left]
        if not any(block and block.thread != get_ident() for block in blocks) or time.monotonic() > patience:
            return left
        time.sleep(0.001)


def _where(one: Any) -> str:
    block = getattr(one, "block", None)
    return f"{one}" if block is None else f"{one} of {block.frame} in thread {block.thread}"


@cache
def _seeded() -> Any:
    """The state of a generator with the seed 20."""
    from limelight.ops.random._draws import state_of

    return state_of(20)


_modules_seen: tuple[Any, frozenset[str]] = (None, frozenset())


def _modules() -> frozenset[str]:
    """The names of all modules, made anew where one has come, which comes last, or gone: there are two thousand."""
    global _modules_seen
    mark = len(sys.modules), next(reversed(sys.modules))
    if mark != _modules_seen[0]:
        _modules_seen = mark, frozenset(sys.modules)
    return _modules_seen[1]


def _listening(events: Any, before: dict[Any, Any]) -> list[str]:
    """Who listens to which events, but for those that did `before`; and they do so no more."""
    new = [(kind, f) for kind, found in events._listeners.items() for f in found if f not in before.get(kind, ())]
    for _, deliver in new:
        deliver.__self__.close()
    return [f"{deliver.__self__._callback} of {kind.__name__}" for kind, deliver in new]
