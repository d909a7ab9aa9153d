"""How far a long question has come, while it is answered."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import limelight as ll
from limelight import explain
from limelight_kernel.magics import progress_line

CALL = "%tape --check f(x)"


@pytest.fixture
def hasty(run, monkeypatch):
    """A shell whose questions are all long."""
    monkeypatch.setattr(progress_line, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress_line, "_PACE", 0.0)
    run("%load_ext limelight\nimport limelight as ll\nx = ll.ones(3)\nf = ll.function(lambda x: (x * x).sum())")
    return run


def test_a_notebook_has_an_output_that_is_empty_in_the_end(hasty, monkeypatch):
    said = []
    monkeypatch.setattr(progress_line, "are_kept", lambda: True)
    monkeypatch.setattr(progress_line.front_end, "has_front_end", lambda: True)
    monkeypatch.setattr(progress_line, "display", lambda forms, name, update: said.append((forms, name, update)))
    hasty(CALL)
    assert [forms["text/plain"] for forms, _, _ in said] == [
        *(f"{n} of 3 numbers compared, now of x …" for n in (1, 2, 3)),
        "",
    ]
    assert len({name for _, name, _ in said}) == 1
    assert [update for _, _, update in said] == [False, True, True, True]


def test_a_terminal_has_a_line_that_is_written_over_and_a_file_has_none(hasty, monkeypatch):
    assert hasty(CALL).err == ""
    wrote = []
    monkeypatch.setattr(progress_line, "sys", SimpleNamespace(stderr=Terminal(wrote)))
    hasty(CALL)
    text = "".join(wrote)
    assert "2 of 3 numbers compared, now of x …" in text
    assert text.endswith("\r" + " " * len("3 of 3 numbers compared, now of x …") + "\r")
    assert "\n" not in text


def test_an_error_leaves_none_and_a_short_question_has_none(hasty, monkeypatch):
    wrote = []
    monkeypatch.setattr(progress_line, "sys", SimpleNamespace(stderr=Terminal(wrote)))

    with pytest.raises(KeyboardInterrupt), progress_line.ProgressLine():
        explain.check_gradient(lambda x: x * x, ll.ones(3))
        assert wrote
        raise KeyboardInterrupt
    assert wrote[-1].endswith(" \r")
    wrote.clear()
    monkeypatch.setattr(progress_line, "_PATIENCE", 1e9)
    hasty(CALL)
    assert not wrote


class Terminal:
    """A stream of which somebody sees what is written."""

    def __init__(self, wrote):
        self.write, self.flush, self.isatty = wrote.append, lambda: None, lambda: True
