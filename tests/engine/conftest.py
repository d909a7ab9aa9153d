"""What the engine's tests share: what must not change when something goes wrong."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

import limelight as ll
from limelight import settings
from limelight.core import autograph_hook, device_scopes, devices, dispatch, name_scopes
from limelight.core.variable import lift, on_create
from limelight.staging import function as staging
from limelight.user_code import source_line, tracebacks


@pytest.fixture(autouse=True)
def outside_of_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracebacks are cut as in a script, though the notebook of another test may still be there."""
    monkeypatch.setattr(tracebacks, "_displays", weakref.WeakSet())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs what is marked `own_exception_state` in a generator, which has one.

    What a trace function raises in an `except` block, CPython may leave behind as an exception that is being handled:
    it would be the context of all that later tests of the process raise. No signal's handler runs at such a place.
    """
    if pyfuncitem.get_closest_marker("own_exception_state") is None:
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    next(iter(pyfuncitem.obj(**given) for _ in (0,)))
    return True


def _locks() -> list[Any]:
    """The reentrant locks of modules: this thread would not notice that it has left one taken."""
    return _locks_of(frozenset([name for name in sys.modules if name.startswith("limelight.")]))


@functools.cache  # a sweep asks a thousand times, and modules have 20,000 names; none of them gets a lock later
def _locks_of(modules: frozenset[str]) -> list[Any]:
    return [x for name in modules for x in vars(sys.modules[name]).values() if type(x) is _RLOCK]


_RLOCK = type(threading.RLock())


Clean = Callable[..., AbstractContextManager[None]]


def engine_state() -> dict[str, Any]:
    """Everything of the engine's that a mistake could leave behind, as seen from this thread by the next op."""
    dispatch.heal()
    free = staging._trace_lock.lock.acquire(blocking=False)
    if free:
        staging._trace_lock.lock.release()
    return {
        "interpreters": dispatch.stack(),
        "active": list(dispatch.active),
        "scopes": list(dispatch.scopes),
        "device": device_scopes.requested_device(),
        "thread": {k: list(v) if isinstance(v, list) else v for k, v in vars(dispatch.local).items()},
        "state creation": (on_create.get(), lift.get()),
        "pretended lines": source_line._pretended(),
        "the lock of tracing can be taken": free,
        "tracing": staging._trace_lock.is_taken(),
        "name scope": name_scopes.current_name_scope(),
        "locks held": [lock for lock in _locks() if lock._is_owned()],
        "settings": [setting.get() for setting in settings._all],
        "converted": autograph_hook.maybe_converted(engine_state) is not engine_state,
        "garbage collector": gc.isenabled(),
    }


@pytest.fixture
def state() -> Callable[[], dict[str, Any]]:
    """A function that tells the state of the engine."""
    return engine_state


@pytest.fixture
def clean() -> Clean:
    """A block after which the engine must be as it was before, and the given functions' caches too."""

    @contextmanager
    def block(*functions: Any) -> Iterator[None]:
        before, caches = engine_state(), [list(f.trace_cache) for f in functions]
        yield
        assert engine_state() == before
        assert [list(f.trace_cache) for f in functions] == caches
        x = ll.constant([1.0, 2.0])
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = ll.function(lambda a: a * a + 1)(x)
        assert y.tolist() == [2.0, 5.0]
        assert tape.gradient(y, x).tolist() == [2.0, 4.0]

    return block


@pytest.fixture
def retraces_are_meant() -> Iterator[None]:
    """Parametrised tests stage one definition again and again: that is no mistake there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        yield


@pytest.fixture
def second_cpu(monkeypatch: pytest.MonkeyPatch) -> devices.Device:
    """The second one of two logical CPU devices, which are there for this test only."""
    monkeypatch.setattr(devices, "_local", devices.list_devices())
    monkeypatch.setattr(devices, "_in_use", False)
    ll.config.set_virtual_devices(CPU=2)
    return devices.find("CPU:1")
