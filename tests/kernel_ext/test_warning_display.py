"""Limelight's warnings where a cell shows them: broken at words, displayed in a kernel, and gone when unloaded."""

from __future__ import annotations

import re
import sys
import warnings
from types import SimpleNamespace

import pytest

from limelight.errors import RetracingWarning
from limelight_kernel import warning_display
from limelight_kernel.extension import load_ipython_extension, unload_ipython_extension
from limelight_widgets.live import front_end

LONG = "`f` traced in 5 of its last 10 calls, " + "which costs more than running, " * 6 + "<b>"


@pytest.fixture
def ours():
    before, show = warning_display.show_ours()
    yield before, show
    warning_display.as_before(before, show)


def warn(category=RetracingWarning):
    warnings.showwarning(category(LONG), category, "cell.py", 3)


def test_a_terminal_has_it_on_stderr_broken_at_words(ours, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    warn()
    said = capsys.readouterr().err
    assert max(map(len, said.splitlines())) <= 60
    assert " ".join(said.split()) == " ".join(f"cell.py:3: RetracingWarning: {LONG}".split())


def test_a_kernel_displays_it_as_text_and_as_html(ours, monkeypatch):
    shown = []
    monkeypatch.setattr(front_end, "shell", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(warning_display, "display", lambda data, raw: shown.append(data))
    warn()
    (data,) = shown
    assert max(map(len, data["text/plain"].splitlines())) <= 80
    assert "<code>f</code>" in data["text/html"]
    assert "<b>" not in data["text/html"]


def test_other_warnings_and_files_are_left_to_python(ours, monkeypatch, capsys):
    told = []
    monkeypatch.setattr(warnings, "showwarning", lambda *given: told.append(given))
    inner_before, inner = warning_display.show_ours()
    warnings.showwarning(UserWarning("x"), UserWarning, "cell.py", 3)
    warnings.showwarning(RetracingWarning("x"), RetracingWarning, "cell.py", 3, sys.stdout)
    assert len(told) == 2
    warning_display.as_before(inner_before, inner)


def test_loading_and_unloading_leave_what_was_there(shell):
    before = warnings.showwarning
    load_ipython_extension(shell)
    assert warnings.showwarning is not before
    unload_ipython_extension(shell)
    assert warnings.showwarning is before


@pytest.mark.filterwarnings("always")
def test_any_warning_of_limelights_is_told_at_the_cell_as_readers_know_it(shell, capsys):
    load_ipython_extension(shell)
    shell.run_cell("import limelight as ll\nx = ll.zeros(3) + 1.0\nx.at[0].set(2.0)\ny = 1", store_history=True)
    unload_ipython_extension(shell)
    assert re.search(r"^In\[\d+\]:3: LostChangeWarning: x\.at\[i\]", capsys.readouterr().err, flags=re.MULTILINE)
