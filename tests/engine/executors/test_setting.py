"""`ll.config.executor`: which executor functions are traced for."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight.errors import ArgumentError
from limelight.executors import base, setting
from limelight.executors.loops import native_loops
from limelight.executors.loops.native_loops import is_installed


def tier() -> str:
    f = ll.function(lambda x: x + 1.0)
    f(ll.constant(1.0))
    return f.trace_cache[0].tier


def test_it_holds_in_its_block_and_what_is_traced_stays() -> None:
    f = ll.function(lambda x: ll.tanh(x) * 2.0)
    with ll.config.executor("step") as setting:
        f(ll.constant(1.0))
        assert tier() == "step"
    assert repr(setting) == "<executor: step>"
    f(ll.constant(1.0))
    assert f.trace_cache[0].tier == "step"
    assert tier() == base.chosen.default


def test_without_a_block_it_holds_from_then_on() -> None:
    ll.config.executor("step")
    try:
        assert tier() == "step"
    finally:
        ll.config.executor(base.chosen.default)
    assert tier() == base.chosen.default


def test_auto_is_the_way_back_to_tiers() -> None:
    """A process that has named an executor compiles nothing by itself until it says "auto" again."""
    compiles = lambda: ll.function(lambda x: x + 1.0).get_concrete_function(ll.TensorSpec(())).function.compiles  # noqa: E731
    assert isinstance(base.chosen.default, base.Automatic)
    try:
        ll.config.executor("plan")
        assert (compiles(), tier()) == (False, "plan")
        ll.config.executor("auto")
        assert compiles()
        assert tier() == setting.checked("auto")
    finally:
        ll.config.executor(base.chosen.default)


def test_auto_takes_loops_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with ll.config.executor("auto"):
        assert tier() == ("loops" if is_installed() else "plan")
    monkeypatch.delitem(base._executors, "loops", raising=False)
    with ll.config.executor("auto"):
        assert tier() == "plan"
    with pytest.raises(ArgumentError, match=r"'loops' needs the package limelight-native.*pip install ./engine/native"):
        ll.config.executor("loops")


def test_one_that_cannot_be_loaded_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was built for another limelight says so where it is asked for, and "auto" does without."""

    def too_old() -> None:
        raise ImportError("limelight-native is older than limelight")

    monkeypatch.setattr(native_loops, "native", too_old)
    assert setting.checked("auto") == "plan"


@pytest.mark.parametrize("name", ["", "auto", "plan", "step"])
def test_the_environment_names_the_executor_of_a_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(setting.VARIABLE, name)
    assert setting.at_first() == setting.checked(name or "auto")


def test_the_environment_may_name_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(setting.VARIABLE, "fast")
    with pytest.raises(ArgumentError, match=r"LIMELIGHT_EXECUTOR='fast' in the environment: there is no executor"):
        setting.at_first()


def test_another_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"no executor 'fast'; write one of .*'plan', 'step', ('xla', )?'auto'"):
        ll.config.executor("fast")


def test_without_jax_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(base._executors, "xla", raising=False)
    with pytest.raises(ArgumentError, match=r"jit_compile=True needs JAX.*pip install 'limelight\[xla\]'"):
        ll.function(lambda x: x, jit_compile=True)
    with pytest.raises(ArgumentError, match=r"'xla' needs JAX.*pip install 'limelight\[xla\]'"):
        ll.config.executor("xla")
