"""Warnings at the user's line: also at those of a terminal, `python -c` and `exec`, whose code is in no file."""

import warnings

import pytest

import limelight as ll
from limelight.errors import LostChangeWarning
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import warn_at


@pytest.mark.parametrize(
    ("file", "module"),
    [("/home/me/train.py", "train"), ("<stdin>", "<stdin>"), ("<ipython-input-3-8a>", "<ipython-input-3-8a>")],
)
def test_it_is_heard_from_every_file_and_filters_know_the_module(file, module):
    with pytest.warns(LostChangeWarning, match="lost") as heard:
        warn_at(Source(file, 3, "f"), "lost", LostChangeWarning)
    assert (heard[0].filename, heard[0].lineno) == (file, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module=module)
        warn_at(Source(file, 3, "f"), "lost", LostChangeWarning)


def test_a_change_that_is_lost_is_told_in_a_terminal():
    names = {"ll": ll}
    exec(compile("@ll.function\ndef f(x, d):\n    d['y'] = x\n    return x", "<stdin>", "exec"), names)
    with pytest.warns(LostChangeWarning, match="the change is lost"):
        names["f"](ll.ones(2), {})
