"""`ll.progress`: a bar with values beside it, closed whatever ends the loop."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import limelight as ll
from limelight import progress_bar
from limelight.errors import ArgumentError, SymbolicValueError


def open_bars() -> int:
    return len(list(progress_bar._open))


def test_it_goes_through_and_shows_values(capsys: Any) -> None:
    bar = ll.progress(ll.data.from_sequence(range(4)).batch(2), description="epoch 1")
    assert len(bar) == 2
    for batch in bar:
        bar.show(loss=ll.mean(ll.astype(batch, ll.float32)), rate=ll.Variable(0.001), step="two", n=3, none=None)
    shown = capsys.readouterr().err
    assert "epoch 1: 100%" in shown
    assert "2/2" in shown
    assert "loss=2.5, rate=0.001, step=two, n=3, none=None" in shown
    assert not open_bars()


@pytest.mark.parametrize("end", ["break", "return", "raise", "interrupt", "with"])
def test_the_bar_is_closed_whatever_ends_the_loop(end: str, capsys: Any) -> None:
    def loop() -> None:
        if end == "with":
            with ll.progress(range(5)) as bar:
                iterator = iter(bar)
                next(iterator)
                assert open_bars() == 1
            assert not open_bars()
            return
        for i in ll.progress(range(5)):
            if i == 2 and end == "break":
                break
            if i == 2 and end == "return":
                return
            if i == 2:
                raise {"raise": ValueError, "interrupt": KeyboardInterrupt}[end]("as asked")

    if end in ("raise", "interrupt"):
        with pytest.raises((ValueError, KeyboardInterrupt), match="as asked"):
            loop()
        progress_bar._close_all()  # as an error does that ends a script
    else:
        loop()
    assert not open_bars()


@pytest.mark.slow  # starts an interpreter
def test_the_traceback_of_a_script_begins_on_a_line_of_its_own() -> None:
    script = "import limelight as ll\nfor i in ll.progress(range(5)):\n    if i == 2: raise ValueError('boom')\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    assert "Traceback (most recent call last):" in lines
    assert lines[-1] == "ValueError: boom"


def test_what_cannot_be_shown_is_said(capsys: Any) -> None:
    bar = ll.progress(range(2))
    with pytest.raises(SymbolicValueError, match=r"`loss` is a tensor of a trace.*return it"):
        ll.function(lambda x: bar.show(loss=x))(ll.constant(1.0))
    with pytest.raises(ArgumentError, match="`loss` has 2 elements"):
        bar.show(loss=ll.ones((2,)))
    bar.close()
    with pytest.raises(ArgumentError, match=r"ll.progress\(range\(5\)\)"):
        ll.progress(5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="around the loop that calls the function"):
        ll.function(lambda x: [x for _ in ll.progress(range(2))])(ll.constant(1.0))
    with pytest.raises(TypeError, match="total"):
        len(ll.progress(iter([1])))
    assert len(ll.progress(iter([1]), total=1)) == 1


def test_importing_limelight_imports_no_tqdm() -> None:
    code = "import sys, limelight; print('tqdm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
