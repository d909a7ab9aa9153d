"""What every test of Limelight may rely on."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator

import hypothesis
import pytest

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


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FailuresAtOnce(config))
    # Tests interrupt themselves, also in a run that a shell has begun in the background, with interrupts ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `gpu`, with the reason, where there is no usable GPU."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = why_no_gpu() if marked else None
    for item in marked:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


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


@pytest.fixture(autouse=True)
def _staged_for_the_first_time() -> None:
    """A test with many parameters stages its functions again and again, which would bring the retracing warning."""
    from limelight.explain.retracing import restaging

    restaging.forget()


@pytest.fixture(autouse=True)
def _nothing_left_open() -> Iterator[None]:
    """Fails a test that leaves an interpreter, a device scope or a listener behind: the next would run under it."""
    from limelight.core import dispatch

    before = list(dispatch.active)
    yield
    left = [one for one in dispatch.active if one not in before]
    dispatch.active[:] = before
    assert not left, f"left open by this test: {left}"


@pytest.fixture(autouse=True)
def _devices_as_before() -> Iterator[None]:
    """Takes back the virtual devices that a test has made: messages and lists name all there are."""
    from limelight.core import devices

    before = list(devices._local)
    yield
    devices._local[:] = before


@pytest.fixture(autouse=True)
def _ops_go_with_their_test() -> Iterator[None]:
    """Takes ops that a test has defined out of the registry: other tests walk over it."""
    import sys

    from limelight.core import op

    ops, modules = set(op._ops), set(sys.modules)
    yield
    for name in set(op._ops) - ops:
        home = op._homes[name]
        if home in modules or home not in sys.modules:  # a module imported for the first time keeps its ops
            del op._ops[name], op._homes[name]
