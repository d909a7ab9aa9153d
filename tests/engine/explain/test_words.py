"""What newcomers were told, and could not use: the same questions, with answers that can be acted upon."""

from __future__ import annotations

import gc
import re
import time
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, CallError, DeadVariableError, DTypeError

one = ll.constant([1.0, 2.0])


@pytest.mark.filterwarnings("ignore::limelight.errors.HostRandomnessWarning")
def test_random_numbers_and_times_are_baked_in() -> None:
    f = ll.function(lambda x: x + np.random.rand() + time.time())
    assert ll.explain.baked(f).drawn == ()
    f(one)
    found = ll.explain.baked(f)
    assert [effect.kind for effect in found.drawn] == ["host randomness", "time"]
    assert "ll.explain.side_effects" in str(found)
    assert "np.random.rand(...)" in str(found)
    assert "no values baked in" not in str(found)


def test_purity_without_arguments_says_what_to_write() -> None:
    @ll.function
    def f(x: Any, y: Any, *, z: Any = 1.0) -> Any:
        return x + y + z

    with pytest.raises(CallError, match=r"write ll.explain.purity\(f, x, y\)\. .*test_words.py line"):
        ll.explain.purity(f)


def test_a_dead_variable_whose_name_was_rebound() -> None:
    w = ll.Variable([1.0, 2.0])

    @ll.function
    def fwd(x: Any) -> Any:
        return ll.sum(x @ w)

    fwd(one)
    w = ll.Variable([3.0, 4.0])
    gc.collect()
    with pytest.raises(
        DeadVariableError, match=r"name `w` has been rebound to another variable\. Call fwd.clear_cache"
    ):
        fwd(one)
    fwd.clear_cache()
    assert fwd(one).item() == 11.0


def test_a_dead_variable_whose_name_has_gone_is_to_be_kept() -> None:
    held: list[Any] = [ll.Variable(1.0)]
    f = ll.function(lambda x: x * held[0])
    f(one)
    held[0] = None
    gc.collect()
    with pytest.raises(DeadVariableError, match="which has been deleted; keep a reference"):
        f(one)


def test_what_is_not_used_is_called_so_without_internal_ops() -> None:
    v = ll.Variable(2.0)
    again = ll.function(lambda x: x * v)
    with ll.GradientTape() as tape:
        again(one)
        result = ll.constant(3.0) * 2.0
    said = str(ll.explain.why_none(tape, result, v))
    assert "`v` is not used by `result`" in said
    assert "call_forward" not in said
    assert ll.explain.why_none(tape, result, v).op == ""


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (np.sum, "write ll.sum(x)"),
        (np.add.reduce, "write ll.py_func(np.add.reduce, [x], output_specs)"),
        (np.spacing, "write ll.py_func(np.spacing, [x], output_specs)"),
        (lambda x: np.add(x, x, out=np.ones(2, np.float32)), "write ll.add without it"),
    ],
)
def test_nothing_is_taken_out_of_a_trace(call: Any, words: str) -> None:
    with pytest.raises(DTypeError) as caught:
        ll.function(lambda x: call(x * 1.0))(one)
    assert words in caught.value.bare
    assert ".numpy()" not in caught.value.bare


def test_gradients_come_before_variables() -> None:
    with pytest.raises(ArgumentError, match=r"gradients first, then variables.*apply\(gradients, variables\)"):
        ll.optim.SGD(0.1).apply([ll.Variable(1.0)], [ll.constant(1.0)])


class Own(ll.optim.Momentum):
    def __init__(self, rate: float, **others: Any) -> None:
        super().__init__(rate, **others)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ll.function(autografph=True), "ll.function has no option 'autografph'; did you mean 'autograph'"),
        (lambda: ll.function(lambda x: x, nam="f"), "no option 'nam'; did you mean 'name'"),
        (lambda: ll.optim.Adam(lr=0.1), "Adam has no setting 'lr'; did you mean 'learning_rate'"),
        (lambda: ll.optim.SGD(0.1, zzz=1), r"SGD has no setting 'zzz'\. It has learning_rate"),
    ],
)
def test_unknown_keywords_get_a_suggestion(make: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make()


def test_an_optimiser_with_settings_of_its_own_takes_them() -> None:
    assert Own(rate=0.5, nesterov=False, momentum=0.1).learning_rate.item() == 0.5


LOG: list[Any] = []
LR: Any = 0.1


def noted(x: Any, name: str = "h") -> Any:
    h = x * 2.0
    print("h is", h)  # noqa: T201  # what is explained
    print(f"{h} of {x}", name.upper() and "", sep="|")  # noqa: T201  # what is explained
    print(h)  # noqa: T201  # what is explained
    LOG.append(h)
    LOG.append((h, [x + 1 for x in range(2)]))
    LOG.append(
        h,
    )
    return h


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
def test_the_code_that_is_told_runs(capsys: pytest.CaptureFixture[str]) -> None:
    f = ll.function(noted)
    f(one)
    told = [re.findall(r"`([^`]*)`", effect.instead)[0] for effect in ll.explain.side_effects(f).records]
    assert told[0] == 'll.py_func(lambda h: print("h is", h), [h], None)'
    assert told[2] == "ll.py_func(print, [h], None)"
    assert told[3] == told[5] == "ll.py_func(LOG.append, [h], None)"
    assert told[4].startswith("ll.py_func(lambda h: LOG.append((h, [")
    assert told[1].endswith("[h, x], None)")  # `name` is no tensor

    def instead(x: Any) -> Any:
        h = x * 2.0
        for text in told:
            eval(text, {"ll": ll, "LOG": LOG, "h": h, "x": x, "name": "h"})
        return h

    staged = ll.function(instead)
    LOG.clear()
    for value in (one, one * 3.0):
        capsys.readouterr()
        staged(value)
        assert f"h is {value * 2.0!r}" in capsys.readouterr().out
    assert len(LOG) == 6
    LOG.clear()


def test_a_changed_number_becomes_a_tensor_or_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    @ll.function
    def step(x: Any, y: Any) -> Any:
        return x * LR + y

    step(one, one)
    monkeypatch.setitem(globals(), "LR", 0.2)
    (value,) = ll.explain.baked(step).changed
    assert "step(x, y, ll.constant(LR))" in value.fix
    assert "`LR = ll.Variable(0.1)`" in value.fix
